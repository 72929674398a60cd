//! The task graph. A task names the regions that it reads and writes, and runs once its
//! dependencies have ended.
//!
//! | module | what |
//! |---|---|
//! | `config` | policies and limits |
//! | `region` | tiles of tensors, ranges of bytes |
//! | `task` | a task as it is submitted, as its body sees it, and its result |
//! | `overlap`, `exact`, `predecessors` | find a task's predecessors from its regions |
//! | `submit`, `retire`, `record` | the submitting side, owned by one thread |
//! | `shared`, `worker`, `complete` | the side that runs tasks |
//! | `replay` | a recorded graph, which runs again without being submitted |
//! | `observe`, `trace` | diagnostics: state and times of tasks |
//!
//! [`Workload::compile`] makes a [`Submitter`], which contains worker 0, the other [`Worker`]s, one
//! for each thread, and a [`Completer`] for the thread that receives launch completions. Only
//! `submit`, `wait` and `finish` wait. A role calls `try_submit`, `work` and `poll_done`.
//! [`Config`] sets all bounds. After construction only a recording allocates.
//!
//! ```
//! use pinwheel_board::clock::Clock;
//! use pinwheel_graph::graph::{Config, Deps, Ended, Shape, Task, Work, Workload};
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

mod complete;
mod config;
mod exact;
mod predecessors;
mod observe;
mod overlap;
mod record;
mod region;
mod replay;
mod retire;
mod shared;
mod submit;
mod task;
mod trace;
mod worker;

#[cfg(test)]
mod tests;

pub use complete::{CompleteError, Completer};
pub use config::{
    BATCH_MAX, Batch, Config, ConfigError, Deps, Filter, Issue, Overflow, PERMITS_MAX, POOLS, Placement, Pool, Ready,
    Start, Trace, WINDOW_TASKS_MAX, WORKERS_MAX,
};
pub use observe::{BlockedBy, Observed};
pub use record::RecordError;
pub use region::{Access, GRANULE_BYTES_MAX, Mode, Region, Shape, Tensor};
pub use replay::RecordingId;
pub use shared::{COUNTS, Count, Failure};
pub use submit::{SubmitError, Submitter, Summary};
pub use task::{Body, CallerBody, Ended, Reason, Status, Task, TaskId, Work};
pub use trace::{Event, write_trace};
pub use worker::Worker;

use crate::clock::Clock;
use exact::Exact;
use overlap::Overlap;
use pinwheel_edge::queue::deque::deque;
use region::TensorLayout;
use shared::Shared;
use std::sync::Arc;
use submit::DependencyMap;
use task::{ByBody, ByCaller, Runner};

/// A graph before it is compiled: its configuration and its tensors.
pub struct Workload {
    config: Config,
    tensors: Vec<TensorLayout>,
    granules: u64,
}

/// Why a graph cannot be compiled, or a tensor cannot be registered.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum CompileError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(
        "tensor: found {shape:?}, expected elements, at most 2^40 bytes, and a granule of 16 to 32768 bytes \
        that is a power of two; change it"
    )]
    Shape { shape: Shape },
    #[error("tensors: found {needed} granules, expected at most {limit}; raise granules or granule_bytes")]
    Granules { needed: u64, limit: u32 },
}

/// The submitter, the other workers and the completer of a compiled graph.
pub type Compiled<B> = (Submitter<B>, Vec<Worker<B>>, Completer<B>);

impl Workload {
    /// A graph without tensors.
    pub fn new(config: Config) -> Workload {
        Workload { config, tensors: Vec::new(), granules: 0 }
    }

    /// Registers a tensor.
    ///
    /// # Errors
    /// If the shape is not valid, or the tensors together need too many granules.
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
        let layout = TensorLayout { shape, first_granule: self.granules as u32, granule_shift, pitch_bytes };
        self.tensors.push(layout);
        self.granules = needed;
        Ok(Tensor { number: self.tensors.len() as u32 - 1, layout })
    }

    /// Compiles the graph. The submitter contains worker 0; each other worker needs a thread.
    ///
    /// # Errors
    /// If the configuration is not valid.
    pub fn compile<B: Body>(self, body: B, clock: Clock) -> Result<Compiled<B>, CompileError> {
        self.config.check()?;
        let config = self.config;
        let ends = config.workers.iter().map(|_| deque(config.records() as usize));
        let (owners, thieves): (Vec<_>, Vec<_>) = ends.unzip();
        let rules = match config.deps {
            Deps::Explicit => DependencyMap::Explicit,
            Deps::InferTensorMapExact => DependencyMap::Exact(Exact::new(config.map_entries, config.failures)),
            Deps::InferBytesOverlap => {
                let tensors = self.tensors.into_boxed_slice();
                DependencyMap::Overlap(Overlap::new(tensors, self.granules as usize, config.map_entries))
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
