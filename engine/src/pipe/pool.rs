//! The decode pool as a task graph: its tasks, and the regions they read and write.
//!
//! Owns the kernels' numbers and the regions: parts of each job's carry, one for each stream's state.
//! Made once by cold code; then the submitter belongs to the graph role, each worker to a decode
//! role. Bounds: the graph's [`Config`].
//!
//! | kernel | regions | does |
//! |---|---|---|
//! | `Window` | part of the carry | decodes one window of a shot; the last one sends the result |
//! | `Release` | part of the carry | returns the buffer of a shot answered before its last round |
//! | `Joint` | two states | reads both at one sequence number |
//!
//! Shots that are decoded whole are no tasks: see [`lanes`](super::lanes).

use super::Carries;
use crate::clock::Clock;
use crate::graph::{
    Access, CallerBody, CompileError, Config, Deps, GRANULE_BYTES_MAX, Pool as Resource, Ready, Shape, Submitter, Task,
    Tensor, Worker, Workload,
};

use std::ops::Range;

use crate::roles::TaskKernel;

/// Bytes that stand for one state, and its granule: only the overlap of regions matters.
const CELL_BYTES: u32 = 16;
/// Resource of the submitter's worker: no task runs on the device, so it runs none.
const NOWHERE: Resource = Resource::Device;

/// The kernel of a task.
///
/// # Panics
/// If the kernel does not belong to the pool.
#[inline]
pub fn kernel_of(task: &Task) -> TaskKernel {
    TaskKernel::ALL[usize::from(task.kernel)]
}

/// A task of `kernel` for `stream`; `about` is a job's number and, above bit 32, a window's index.
#[inline]
pub fn task_of(kernel: TaskKernel, stream: u32, about: u64, submitted: u64) -> Task {
    Task { stream, ..Task::new(kernel as u16, [about, submitted, 0]) }
}

/// The regions that tasks declare.
#[derive(Clone, Copy, Debug)]
pub struct Regions {
    states: Tensor,
    carries: Option<Tensor>,
}

impl Regions {
    /// Some words of a job's carry, read and written.
    ///
    /// # Panics
    /// If shots have no carry because they are decoded whole.
    pub fn carry(&self, number: u32, words: Range<u32>) -> Access {
        let Some(carries) = self.carries else { panic!("whole shots have no carry") };
        carries.tile(number, words.start, 1, words.end - words.start).update()
    }

    /// A stream's state, read and written.
    #[inline]
    pub fn state(&self, stream: u32) -> Access {
        self.states.range(stream * CELL_BYTES, CELL_BYTES).update()
    }
}

/// The parts of a pool, for its roles.
pub struct Pool {
    /// For the graph role.
    pub submitter: Submitter<CallerBody>,
    /// One for each decode role.
    pub workers: Vec<Worker<CallerBody>>,
    /// The regions that tasks declare.
    pub regions: Regions,
    ready: Ready,
}

impl Pool {
    /// A pool of `decoders` workers over `jobs` job buffers and the states of `streams` streams,
    /// with the limits and policies of `config`.
    ///
    /// # Errors
    /// If the configuration is invalid.
    pub fn new(
        config: Config,
        decoders: u32,
        jobs: u32,
        streams: u32,
        carries: Option<&Carries>,
        clock: &Clock,
    ) -> Result<Pool, CompileError> {
        let ready = match config.ready {
            // As in the seed (§6, §8), by the number of workers that run tasks: the submitter's own
            // worker runs none.
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
        let states = cells(streams)?;
        let carry = |carries: &Carries| {
            let columns = carries.stride_words();
            // About the size of a region, so that most regions lie in one or two granules.
            let last = carries.region(carries.windows() - 1);
            let granule_bytes = (8 * (last.end - last.start)).next_power_of_two().clamp(64, GRANULE_BYTES_MAX);
            workload.tensor(Shape { rows: jobs, columns, element_bytes: 8, granule_bytes })
        };
        let regions = Regions { states, carries: carries.map(carry).transpose()? };
        let (submitter, workers, _) = workload.compile(CallerBody, clock.clone())?;
        Ok(Pool { submitter, workers, regions, ready })
    }

    /// Name of the policy that orders ready tasks.
    pub fn policy(&self) -> &'static str {
        match self.ready {
            Ready::FifoPerStream => "FIFO per stream",
            Ready::WorkSteal => "work stealing",
            Ready::Fifo | Ready::Auto => "FIFO",
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Carries, Pool, TaskKernel, kernel_of, task_of};
    use crate::clock::Clock;
    use crate::graph::{Config, Ended};
    use crate::pipe::CarryWindow;
    use std::ops::ControlFlow;

    fn config() -> Config {
        Config { window_tasks: 256, ready_tasks: 256, ..Config::default() }
    }

    /// The order in which a single decoder receives the tasks of `submit`, by kernel, stream and
    /// argument.
    fn met(mut pool: Pool) -> Vec<(TaskKernel, u32, u64)> {
        let mut met = Vec::new();
        pool.workers[0].work_by(1_000, |work| {
            met.push((kernel_of(&work.task), work.task.stream, work.task.args[0]));
            ControlFlow::Continue(Ended::Done)
        });
        assert!(pool.submitter.poll_done());
        met
    }

    #[test]
    fn windows_of_a_shot_follow_each_other_by_the_overlap_of_their_regions_alone() {
        // Each window shares two words with the one before.
        let window = |index: u32| CarryWindow { words: 2 * index..2 * index + 4, needed_words: 0 };
        let carries = Carries::new(4, 14, (0..6).map(window).collect());
        let mut pool = Pool::new(config(), 2, 4, 2, Some(&carries), &Clock::machine()).unwrap();
        let (regions, submitter) = (pool.regions, &mut pool.submitter);
        let windows = carries.windows();
        for index in 0..windows {
            // Two shots of different streams alternate: neither waits for the other.
            for job in 0..2u32 {
                let task = task_of(TaskKernel::Window, job, u64::from(job) | u64::from(index) << 32, 0);
                submitter.try_submit(&task, &[regions.carry(job, carries.region(index))], &[]).unwrap();
            }
        }
        let met = met(pool);
        for job in 0..2u64 {
            let of_job = met.iter().filter(|(.., about)| about & 0xffff_ffff == job).map(|(.., about)| about >> 32);
            assert!(of_job.eq(0..u64::from(windows)), "in series");
        }
        let first_rounds: Vec<u64> = met.iter().take(2).map(|(.., about)| about >> 32).collect();
        assert_eq!(first_rounds, [0, 0], "shots do not wait for each other");
    }
}
