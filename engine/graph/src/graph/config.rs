//! Policies and limits of a graph.
//!
//! Plain values, checked once by [`Config::check`]. Every limit of a loop, a queue or a wait of the
//! runtime is here.

use crate::profile::{self, SLAB_TASKS, STREAM_QUEUES_BYTES_MAX, TaskTrace};
// Of seed 002: `Ready` §2.3 and §3, `Overflow` §2.4, `Issue` §2.5, `Placement` §3.3, `Start` §7.2.
pub use crate::profile::{
    IssueGate as Issue, Placement, ReadyPolicy as Ready, StartPolicy as Start, WindowOverflow as Overflow,
};
use pinwheel_edge::queue::fanout::{SPILL_MAX, TASKS_MAX};

/// How dependencies are found (seed 002 §2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deps {
    /// A task depends on the last writer of exactly the region that it reads. Partial overlaps are
    /// ignored.
    InferTensorMapExact,
    /// A task depends on the last writers of any byte that it accesses, and, where it writes, on
    /// the last readers.
    InferBytesOverlap,
    /// A task depends only on the tasks that it names.
    Explicit,
}

/// When a worker releases the successors of the tasks that it has run (seed 002 §2.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// When this many tasks have ended; 1 means at once.
    pub threshold: u32,
    /// Before the next task begins, if the first of them ended at least this long ago.
    pub deadline_ns: u64,
}

/// Which tasks' times are recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trace {
    /// None.
    Off,
    /// Those that the filter selects: the latest [`Config::trace_events`] of each worker.
    Cycles(Filter),
}

/// Tasks by kernel and stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// One bit for each kernel; kernels from 64 on are always selected. No bit set selects all.
    kernels: u64,
    /// One bit for each stream, in words. Empty selects all.
    streams: Vec<u64>,
}

impl Filter {
    /// Selects tasks of these kernels, and of those from 64 on, and of these streams. An empty list selects all, and so
    /// does one without a kernel below 64.
    pub fn new(kernels: impl IntoIterator<Item = u16>, streams: impl IntoIterator<Item = u32>) -> Filter {
        let mut filter = Filter::default();
        kernels.into_iter().filter(|kernel| *kernel < 64).for_each(|kernel| filter.kernels |= 1 << kernel);
        for stream in streams {
            let word = stream as usize / 64;
            filter.streams.resize(filter.streams.len().max(word + 1), 0);
            filter.streams[word] |= 1 << (stream % 64);
        }
        filter
    }

    /// Whether it selects a task.
    pub fn takes(&self, kernel: u16, stream: u32) -> bool {
        let is_kernel = self.kernels == 0 || kernel >= 64 || self.kernels & 1 << kernel != 0;
        let of_stream = || self.streams.get(stream as usize / 64).is_some_and(|word| word & 1 << (stream % 64) != 0);
        is_kernel && (self.streams.is_empty() || of_stream())
    }
}

/// Where a worker runs its tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Pool {
    /// Processor cores.
    Cpu = 0,
    /// Launches on a device.
    Device = 1,
}

/// Number of pools.
pub const POOLS: usize = 2;

impl Pool {
    /// The pool with that number, modulo [`POOLS`].
    pub fn of(number: u8) -> Pool {
        if (number as usize).is_multiple_of(POOLS) { Pool::Cpu } else { Pool::Device }
    }
}

/// Configuration of a graph.
#[derive(Clone)]
pub struct Config {
    /// How dependencies are found.
    pub deps: Deps,
    /// The order in which ready tasks run.
    pub ready: Ready,
    /// Which worker receives a ready task.
    pub placement: Placement,
    /// When the first task may run: at the latest when a submission finds no room.
    pub start: Start,
    /// What happens when the window is full.
    pub overflow: Overflow,
    /// Most tasks that are submitted and not retired.
    pub window_tasks: u32,
    /// Most tasks admitted under [`Overflow::Benchmark`].
    pub slab_tasks: u32,
    /// Limit of tasks between dispatch and completion. A permit that comes back goes to the task that
    /// has waited longest for it.
    pub issue: Issue,
    /// When successors are released.
    pub batch: Batch,
    /// Which tasks' times are recorded.
    pub trace: Trace,
    /// The pool of each worker; worker 0 is the submitter's.
    pub workers: Vec<Pool>,
    /// Streams that have queues and gates of their own; a task's stream is taken modulo this.
    pub streams: u32,
    /// Entries of the exact map; in the overlap map, pieces beyond one writer and two readers of a
    /// granule.
    pub map_entries: u32,
    /// Most granules of all tensors together.
    pub granules: u32,
    /// Tasks that each ready queue holds.
    pub ready_tasks: u32,
    /// Dependencies under way beyond four of a task.
    pub spill_links: u32,
    /// Failed tasks that are remembered after they retired. One more cancels the graph.
    pub failures: u32,
    /// Most recordings.
    pub recordings: u32,
    /// Most tasks of a recording.
    pub recorded_tasks: u32,
    /// Events kept for each worker.
    pub trace_events: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            deps: Deps::InferBytesOverlap,
            ready: Ready::Auto,
            placement: Placement::Releaser,
            start: Start::Immediate,
            overflow: Overflow::Stall,
            window_tasks: 8_192,
            slab_tasks: SLAB_TASKS,
            issue: Issue::Open,
            batch: Batch { threshold: 1, deadline_ns: BATCH_DEADLINE_NS },
            trace: Trace::Off,
            workers: vec![Pool::Cpu],
            streams: 64,
            map_entries: 16_384,
            granules: 1 << 22,
            ready_tasks: 262_144,
            spill_links: 65_536,
            failures: 1_024,
            recordings: 4,
            recorded_tasks: 1 << 20,
            trace_events: 65_536,
        }
    }
}

/// A completion waits this long for others of its batch.
const BATCH_DEADLINE_NS: u64 = 2_000;
/// Tasks in each ready queue of the graph that decode workers run, or the window if that is larger.
const READY_TASKS: u32 = 16_384;
/// Largest [`Config::window_tasks`].
pub const WINDOW_TASKS_MAX: u32 = profile::WINDOW_TASKS_MAX;
/// Most workers of a graph, all pools together.
pub const WORKERS_MAX: u32 = 256;
/// Largest [`Batch::threshold`].
pub const BATCH_MAX: u32 = 4_096;
/// Most permits of a gate.
pub const PERMITS_MAX: u32 = TASKS_MAX;

impl From<&profile::Graph> for Config {
    /// The graph settings of a profile for decode workers. Their owner sets workers, streams and
    /// tensors.
    fn from(graph: &profile::Graph) -> Config {
        Config {
            ready: graph.ready,
            placement: graph.placement,
            start: graph.start,
            overflow: graph.overflow,
            issue: graph.issue,
            window_tasks: graph.window_tasks,
            batch: Batch { threshold: graph.batch_tasks, deadline_ns: BATCH_DEADLINE_NS },
            ready_tasks: READY_TASKS.max(graph.window_tasks),
            trace: match &graph.trace {
                TaskTrace::Off => Trace::Off,
                TaskTrace::Cycles { kernels, streams } => {
                    Trace::Cycles(Filter::new(kernels.iter().map(|kernel| *kernel as u16), streams.iter().copied()))
                }
            },
            trace_events: graph.trace_events,
            ..Config::default()
        }
    }
}

/// Why a configuration is not valid.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ConfigError {
    #[error("{field}: found {found}, expected {least}..={most}; set it within")]
    Outside { field: &'static str, found: u64, least: u64, most: u64 },
    #[error(
        "{field}: found {streams} streams with a queue of {records} tasks each, expected queues of at most \
        {limit} bytes together; lower the window, or let the streams share a queue"
    )]
    Queues {
        /// The policy that needs these queues: `ready` or `issue`.
        field: &'static str,
        streams: u32,
        records: u32,
        limit: u64,
    },
}

impl Config {
    /// Checks that every number is within its range.
    ///
    /// # Errors
    /// The first number that is outside.
    pub fn check(&self) -> Result<(), ConfigError> {
        let permits = match self.issue {
            Issue::Open => 1,
            Issue::Global(permits) | Issue::PerStream(permits) | Issue::PerPool(permits) => permits,
        };
        let rows = [
            ("window_tasks", self.window_tasks, 1, WINDOW_TASKS_MAX),
            ("slab_tasks", self.slab_tasks, 1, TASKS_MAX),
            ("issue", permits, 1, PERMITS_MAX),
            ("batch.threshold", self.batch.threshold, 1, BATCH_MAX),
            ("workers", self.workers.len() as u32, 1, WORKERS_MAX),
            ("streams", self.streams, 1, 4_096),
            ("map_entries", self.map_entries, 16, 1 << 24),
            ("granules", self.granules, 1, 1 << 24),
            ("ready_tasks", self.ready_tasks, 2, 1 << 24),
            ("spill_links", self.spill_links, 0, SPILL_MAX),
            ("failures", self.failures, 1, 1 << 20),
            ("recordings", self.recordings, 0, 256),
            ("recorded_tasks", self.recorded_tasks, 1, 1 << 24),
            ("trace_events", self.trace_events, 1, 1 << 24),
        ];
        let outside = rows.into_iter().find(|(_, found, least, most)| !(least..=most).contains(&found));
        if let Some((field, found, least, most)) = outside {
            let (found, least, most) = (found.into(), least.into(), most.into());
            return Err(ConfigError::Outside { field, found, least, most });
        }
        self.check_queues()
    }

    fn check_queues(&self) -> Result<(), ConfigError> {
        let (streams, records, limit) = (self.streams, self.records(), STREAM_QUEUES_BYTES_MAX);
        let is_much = profile::stream_queues_bytes(streams, records) > limit;
        let asks = [
            ("ready", self.ready_policy() == Ready::FifoPerStream),
            ("issue", matches!(self.issue, Issue::PerStream(_))),
        ];
        match asks.into_iter().find(|(_, has_queues)| *has_queues && is_much) {
            Some((field, _)) => Err(ConfigError::Queues { field, streams, records, limit }),
            None => Ok(()),
        }
    }

    /// The order in which ready tasks run. [`Ready::Auto`] follows the seed's tables: device tasks
    /// run in order, in order of each stream if there are several; four or more workers steal,
    /// fewer share one queue.
    pub fn ready_policy(&self) -> Ready {
        let is_device = self.workers.iter().all(|pool| *pool != Pool::Cpu);
        match self.ready {
            Ready::Auto if is_device && self.streams > 1 => Ready::FifoPerStream,
            Ready::Auto if is_device || self.workers.len() < 4 => Ready::Fifo,
            Ready::Auto => Ready::WorkSteal,
            other => other,
        }
    }

    /// Spilled links: a power of two, at least one for each record, so that a submission never
    /// waits forever.
    pub fn spilled(&self) -> u32 {
        self.spill_links.max(self.records()).next_power_of_two()
    }

    /// Task records: a power of two that holds the window.
    pub fn records(&self) -> u32 {
        let tasks = match self.overflow {
            Overflow::Benchmark => self.slab_tasks.max(self.window_tasks),
            Overflow::Stall | Overflow::Abort => self.window_tasks,
        };
        tasks.next_power_of_two().max(4)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Config, ConfigError, Issue, Pool, Ready};

    #[test]
    fn a_number_outside_its_range_is_named() {
        let config = Config { window_tasks: 0, ..Config::default() };
        let expected = ConfigError::Outside { field: "window_tasks", found: 0, least: 1, most: 524_288 };
        assert_eq!(config.check(), Err(expected));
        assert_eq!(Config::default().check(), Ok(()));
    }

    #[test]
    fn a_queue_for_each_stream_has_a_limit_in_bytes() {
        let many = Config { streams: 4_096, window_tasks: 524_288, ..Config::default() };
        assert_eq!(many.check(), Ok(()));
        for config in [
            Config { ready: Ready::FifoPerStream, ..many.clone() },
            Config { issue: Issue::PerStream(2), ..many.clone() },
        ] {
            let said = config.check().unwrap_err().to_string();
            assert!(said.contains("4096 streams with a queue of 524288 tasks each"), "{said}");
            assert_eq!(Config { window_tasks: 8_192, ..config }.check(), Ok(()));
        }
    }

    #[test]
    fn auto_follows_the_seeds_tables() {
        let of = |workers: Vec<Pool>, streams| Config { workers, streams, ..Config::default() }.ready_policy();
        assert_eq!(of(vec![Pool::Cpu; 2], 8), Ready::Fifo);
        assert_eq!(of(vec![Pool::Cpu; 4], 1), Ready::WorkSteal);
        assert_eq!(of(vec![Pool::Device; 1], 1), Ready::Fifo);
        assert_eq!(of(vec![Pool::Device; 2], 4), Ready::FifoPerStream);
    }
}
