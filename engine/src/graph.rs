//! The task graph: tasks name what they read and write, and run when what they wait for is done.
//!
//! | module | what |
//! |---|---|
//! | `config` | policies and limits |
//! | `region` | tiles of tensors, ranges of bytes |
//! | `task` | what is submitted, what a body sees, how it ends |
//! | `overlap`, `exact`, `found` | from regions to predecessors |
//! | `submit`, `promise`, `retire`, `record` | the submitting side, one owner |
//! | `shared`, `worker`, `complete` | the running side |
//! | `replay` | a graph that runs again without being submitted |
//! | `verdict`, `observe`, `trace` | what it says about itself |
//! | [`described`], [`bundled`], [`perform`], `domain` | graphs as text, and what running one costs |
//!
//! Owns nothing but what [`Workload::compile`] makes: a [`Submitter`] with worker 0 in it, the other [`Worker`]s, each
//! for a thread of its own, and a [`Completer`] for whoever hears of launches. None of them waits unless its name says so
//! (`submit`, `wait`, `finish`); a role calls `try_submit`, `work`, `poll_done`. Bounds: [`Config`]. Nothing allocates
//! after construction but a recording.
//!
//! ```
//! use pinwheel_engine::clock::Clock;
//! use pinwheel_engine::graph::{Config, Deps, Ended, Shape, Task, Work, Workload};
//!
//! let mut workload = Workload::new(Config { deps: Deps::InferBytesOverlap, ..Config::default() });
//! let row = workload.tensor(Shape { rows: 1, columns: 4096, element_bytes: 1, granule_bytes: 64 }).unwrap();
//! let body = |work: &Work| if work.task.kernel == 0 { Ended::Done } else { Ended::Failed(1) };
//! let (mut graph, _workers, _completer) = workload.compile(body, Clock::machine()).unwrap();
//! graph.submit(&Task::new(0, [0; 3]), &[row.range(0, 64).write()], &[]).unwrap();
//! graph.submit(&Task::new(0, [1; 3]), &[row.range(32, 64).read()], &[]).unwrap();
//! let summary = graph.finish();
//! assert_eq!((summary.retired, summary.edges, summary.failed), (2, 1, 0));
//! ```

pub mod bundled;
mod complete;
mod config;
pub mod described;
mod domain;
mod exact;
mod found;
mod observe;
mod overlap;
pub mod perform;
mod promise;
mod record;
mod region;
mod replay;
mod retire;
mod shared;
mod submit;
mod task;
mod trace;
mod verdict;
mod worker;

#[cfg(test)]
mod tests;

pub use complete::{CompleteError, Completer};
pub use config::{
    BATCH_MAX, Batch, Config, ConfigError, Deps, Filter, Issue, Overflow, PERMITS_MAX, POOLS, Placement, Pool, Ready,
    Start, Trace, WINDOW_TASKS_MAX, WORKERS_MAX,
};
pub use observe::Observed;
pub use record::RecordError;
pub use region::{Access, GRANULE_BYTES_MAX, Mode, Region, Shape, Tensor};
pub use replay::RecordingId;
pub use shared::{COUNTS, Count, Failure};
pub use submit::{SubmitError, Submitter, Summary};
pub use task::{Body, Brought, Ended, Reason, Status, Task, TaskId, Work};
pub use trace::{Event, write_trace};
pub use verdict::{Holdup, Verdict};
pub use worker::Worker;

use crate::clock::Clock;
use exact::Exact;
use overlap::Overlap;
use pinwheel_edge::queue::deque::deque;
use region::Placed;
use shared::Shared;
use std::sync::Arc;
use submit::Rules;
use task::{ByBody, ByCaller, Runner};

/// A graph that is being described.
pub struct Workload {
    config: Config,
    tensors: Vec<Placed>,
    granules: u64,
}

/// Why a graph cannot be compiled, or has no room for a tensor.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// A number outside its range.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A tensor without elements, or with a granule that is none.
    #[error(
        "tensor: found {shape:?}, expected elements, at most 2^40 bytes, and a granule of 16 to 32768 bytes that is a power of two; change it"
    )]
    Shape {
        /// The shape.
        shape: Shape,
    },
    /// Too many granules.
    #[error("tensors: found {needed} granules, expected at most {limit}; raise granules or granule_bytes")]
    Granules {
        /// Needed by all tensors so far.
        needed: u64,
        /// Most.
        limit: u32,
    },
}

/// What a compiled graph consists of.
pub type Compiled<B> = (Submitter<B>, Vec<Worker<B>>, Completer<B>);

impl Workload {
    /// A graph without tensors.
    #[must_use]
    pub fn new(config: Config) -> Workload {
        Workload { config, tensors: Vec::new(), granules: 0 }
    }

    /// Registers a tensor.
    ///
    /// # Errors
    /// If its shape is none, or there are too many granules.
    pub fn tensor(&mut self, shape: Shape) -> Result<Tensor, CompileError> {
        let Shape { rows, columns, element_bytes, granule_bytes } = shape;
        let pitch_bytes = u64::from(columns) * u64::from(element_bytes);
        let bytes = pitch_bytes.saturating_mul(rows.into());
        let is_granule = granule_bytes.is_power_of_two() && (16..=GRANULE_BYTES_MAX).contains(&granule_bytes);
        if !is_granule || bytes == 0 || bytes > 1 << 40 {
            return Err(CompileError::Shape { shape });
        }
        let needed = self.granules + bytes.div_ceil(granule_bytes.into());
        if needed > self.config.granules.into() {
            return Err(CompileError::Granules { needed, limit: self.config.granules });
        }
        let granule_shift = granule_bytes.trailing_zeros();
        self.tensors.push(Placed { shape, first_granule: self.granules as u32, granule_shift, pitch_bytes });
        self.granules = needed;
        Ok(Tensor { number: self.tensors.len() as u32 - 1, shape })
    }

    /// Makes the graph. The submitter has worker 0; the others are for threads of their own.
    ///
    /// # Errors
    /// If the configuration is none.
    pub fn compile<B: Body>(self, body: B, clock: Clock) -> Result<Compiled<B>, CompileError> {
        self.config.check()?;
        let config = self.config;
        let ends = config.workers.iter().map(|_| deque(config.records() as usize));
        let (owners, thieves): (Vec<_>, Vec<_>) = ends.unzip();
        let rules = match config.deps {
            Deps::Explicit => Rules::Explicit,
            Deps::InferTensorMapExact => Rules::Exact(Exact::new(config.map_entries, config.failures)),
            Deps::InferBytesOverlap => {
                let tensors = self.tensors.into_boxed_slice();
                Rules::Overlap(Overlap::new(tensors, self.granules as usize, config.map_entries))
            }
        };
        let shared = Arc::new(Shared::new(config, body, clock, thieves.into_boxed_slice()));
        let mut workers =
            owners.into_iter().zip(0..).map(|(owner, index)| Worker::new(Arc::clone(&shared), index, owner));
        let Some(first) = workers.next() else { unreachable!("checked: there is a worker") };
        let workers: Vec<_> = workers.collect();
        Ok((Submitter::new(first, rules), workers, Completer { shared }))
    }
}
