//! The decode pool as a task graph: what its tasks are, and what they read and write.
//!
//! Owns the kernels' numbers and the regions: one for each job buffer, one for each stream's state. Made once by cold
//! code; then the submitter belongs to the graph role, each worker to a decode role. Bounds: the graph's [`Config`].
//!
//! | kernel | regions | does |
//! |---|---|---|
//! | `Whole` | job, state | decodes, commits and answers a shot of a stream that has nothing under way |
//! | `Decode` | job | decodes a shot into its job |
//! | `Commit` | job, state | commits and answers what was decoded |
//! | `Bury` | state | commits that a shot was answered with an error elsewhere |
//! | `Stray` | job | decodes and answers what has no turn: a warm-up shot, a number that came before |
//!
//! # Why two tasks for a shot
//! Decodes of a stream are independent and take microseconds; its commits have an order and take a tenth of one. The
//! state's region is InOut of the commits alone, so the graph runs them one after the other, in the order in which they
//! were submitted, and the decodes all at once.

use crate::clock::Clock;
use crate::graph::{
    Access, Brought, CompileError, Config, Deps, Pool as Resource, Ready, Shape, Submitter, Task, Tensor, Worker,
    Workload,
};

/// Bytes that stand for one job or one state, and the granule of both: only who they belong to matters.
const CELL_BYTES: u32 = 16;
/// Where the submitter's worker would run tasks: nowhere, for none are for the device.
const NOWHERE: Resource = Resource::Device;

/// What a task of the pool does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Kernel {
    /// Decodes, commits and answers.
    Whole = 0,
    /// Decodes.
    Decode = 1,
    /// Commits and answers.
    Commit = 2,
    /// Commits an error.
    Bury = 3,
    /// Decodes and answers without a commit.
    Stray = 4,
}

impl Kernel {
    /// Every kernel, by number.
    pub const ALL: [Kernel; 5] = [Kernel::Whole, Kernel::Decode, Kernel::Commit, Kernel::Bury, Kernel::Stray];

    /// The kernel of a task.
    ///
    /// # Panics
    /// If it is none of the pool's.
    #[must_use]
    #[inline]
    pub fn of(task: &Task) -> Kernel {
        Kernel::ALL[usize::from(task.kernel)]
    }

    /// A task of it, for `stream`; `about` is a job's number or, to bury, a sequence number.
    #[must_use]
    #[inline]
    pub fn task(self, stream: u32, about: u64, submitted: u64) -> Task {
        Task { stream, ..Task::new(self as u16, [about, submitted, 0]) }
    }
}

/// The regions.
#[derive(Clone, Copy, Debug)]
pub struct Regions {
    jobs: Tensor,
    states: Tensor,
}

impl Regions {
    /// A job's buffer, read and written.
    #[must_use]
    #[inline]
    pub fn job(&self, number: u32) -> Access {
        self.jobs.range(number * CELL_BYTES, CELL_BYTES).update()
    }

    /// A stream's state, read and written.
    #[must_use]
    #[inline]
    pub fn state(&self, stream: u32) -> Access {
        self.states.range(stream * CELL_BYTES, CELL_BYTES).update()
    }
}

/// A pool, to be handed out.
pub struct Pool {
    /// The graph role's.
    pub submitter: Submitter<Brought>,
    /// One for each decode role.
    pub workers: Vec<Worker<Brought>>,
    /// What tasks declare.
    pub regions: Regions,
    ready: Ready,
}

impl Pool {
    /// A pool of `decoders` workers over `jobs` job buffers and the states of `streams` streams, with the limits and
    /// policies of `config`.
    ///
    /// # Errors
    /// If the configuration is none.
    pub fn new(config: Config, decoders: u32, jobs: u32, streams: u32, clock: &Clock) -> Result<Pool, CompileError> {
        let ready = match config.ready {
            // As the seed has it (§6, §8), by those who run tasks: the submitter's own worker runs none.
            Ready::Auto if decoders < 4 => Ready::Fifo,
            Ready::Auto => Ready::WorkSteal,
            other => other,
        };
        let mut workers = vec![Resource::Cpu; decoders as usize + 1];
        workers[0] = NOWHERE;
        let mut workload = Workload::new(Config { deps: Deps::InferBytesOverlap, ready, workers, ..config });
        let mut cells = |count: u32| {
            let columns = count.max(1) * CELL_BYTES;
            workload.tensor(Shape { rows: 1, columns, element_bytes: 1, granule_bytes: CELL_BYTES })
        };
        let regions = Regions { jobs: cells(jobs)?, states: cells(streams)? };
        let (submitter, workers, _) = workload.compile(Brought, clock.clone())?;
        Ok(Pool { submitter, workers, regions, ready })
    }

    /// The order in which ready tasks are taken, in words.
    #[must_use]
    pub fn policy(&self) -> &'static str {
        match self.ready {
            Ready::FifoPerStream => "FIFO per stream",
            Ready::WorkSteal => "work stealing",
            Ready::Fifo | Ready::Auto => "FIFO",
        }
    }
}
