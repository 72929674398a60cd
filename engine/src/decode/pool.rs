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
//! | `Window` | part of the carry | decodes one window of a shot; its commit follows the last |
//! | `Joint` | two states | reads both at one sequence number |
//! | `Stray` | job | decodes and answers what has no turn: a warm-up shot, a number that came before |
//!
//! # Why two tasks for a shot
//! Decodes of a stream are independent and take microseconds; its commits have an order and take a tenth of one. The
//! state's region is InOut of the commits alone, so the graph runs them one after the other, in the order in which they
//! were submitted, and the decodes all at once.

use super::carries::Carries;
use crate::clock::Clock;
use crate::graph::{
    Access, Brought, CompileError, Config, Deps, GRANULE_BYTES_MAX, Pool as Resource, Ready, Shape, Submitter, Task,
    Tensor, Worker, Workload,
};

use std::ops::Range;

pub use crate::profile::TaskKernel as Kernel;

/// Bytes that stand for one job or one state, and the granule of both: only who they belong to matters.
const CELL_BYTES: u32 = 16;
/// Where the submitter's worker would run tasks: nowhere, for none are for the device.
const NOWHERE: Resource = Resource::Device;

/// The kernel of a task.
///
/// # Panics
/// If it is none of the pool's.
#[must_use]
#[inline]
pub fn kernel_of(task: &Task) -> Kernel {
    Kernel::ALL[usize::from(task.kernel)]
}

/// A task of `kernel`, for `stream`; `about` is a job's number or, to bury, a sequence number.
#[must_use]
#[inline]
pub fn task_of(kernel: Kernel, stream: u32, about: u64, submitted: u64) -> Task {
    Task { stream, ..Task::new(kernel as u16, [about, submitted, 0]) }
}

/// The regions.
#[derive(Clone, Copy, Debug)]
pub struct Regions {
    jobs: Tensor,
    states: Tensor,
    carries: Option<Tensor>,
}

impl Regions {
    /// A job's buffer, read and written.
    #[must_use]
    #[inline]
    pub fn job(&self, number: u32) -> Access {
        self.jobs.range(number * CELL_BYTES, CELL_BYTES).update()
    }

    /// Some words of a job's carry, read and written.
    ///
    /// # Panics
    /// If shots have no carry: they are decoded whole.
    #[must_use]
    pub fn carry(&self, number: u32, words: Range<u32>) -> Access {
        let Some(carries) = self.carries else { panic!("whole shots have no carry") };
        carries.tile(number, words.start, 1, words.end - words.start).update()
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
    pub fn new(
        config: Config,
        decoders: u32,
        jobs: u32,
        streams: u32,
        carries: Option<&Carries>,
        clock: &Clock,
    ) -> Result<Pool, CompileError> {
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
        let (of_jobs, states) = (cells(jobs)?, cells(streams)?);
        let carry = |carries: &Carries| {
            let columns = carries.stride_words();
            // About as large as a region: most of them then lie in a granule or two.
            let last = carries.region(carries.windows() - 1);
            let granule_bytes = (8 * (last.end - last.start)).next_power_of_two().clamp(64, GRANULE_BYTES_MAX);
            workload.tensor(Shape { rows: jobs, columns, element_bytes: 8, granule_bytes })
        };
        let regions = Regions { jobs: of_jobs, states, carries: carries.map(carry).transpose()? };
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Carries, Kernel, Pool, kernel_of, task_of};
    use crate::clock::Clock;
    use crate::code::bundled_named;
    use crate::decode::MatcherModel;
    use crate::graph::{Config, Ended};
    use crate::profile::WindowRounds;
    use std::ops::ControlFlow;

    fn config() -> Config {
        Config { window_tasks: 256, ready_tasks: 256, ..Config::default() }
    }

    /// The order in which a lone decoder meets what `submit` submits, by kernel, stream and argument.
    fn met(mut pool: Pool) -> Vec<(Kernel, u32, u64)> {
        let mut met = Vec::new();
        pool.workers[0].work_by(1_000, |work| {
            met.push((kernel_of(&work.task), work.task.stream, work.task.args[0]));
            ControlFlow::Continue(Ended::Done)
        });
        assert!(pool.submitter.poll_done());
        met
    }

    #[test]
    fn commits_of_a_stream_wait_for_each_other_and_decodes_for_nobody() {
        let mut pool = Pool::new(config(), 2, 8, 2, None, &Clock::machine()).unwrap();
        let (regions, submitter) = (pool.regions, &mut pool.submitter);
        for job in 0..4u32 {
            submitter.try_submit(&task_of(Kernel::Decode, 0, job.into(), 0), &[regions.job(job)], &[]).unwrap();
        }
        assert_eq!(submitter.summary().edges, 0, "decodes are independent");
        for job in [2u32, 0, 1, 3] {
            let accesses = [regions.job(job), regions.state(0)];
            submitter.try_submit(&task_of(Kernel::Commit, 0, job.into(), 0), &accesses, &[]).unwrap();
        }
        submitter.try_submit(&task_of(Kernel::Bury, 1, 9, 0), &[regions.state(1)], &[]).unwrap();
        // Four commits on their decodes, and three on the commit before; another stream's waits for none of them.
        assert_eq!(submitter.summary().edges, 7);
        let met = met(pool);
        let commits: Vec<u64> =
            met.iter().filter(|(kernel, ..)| *kernel == Kernel::Commit).map(|(.., about)| *about).collect();
        assert_eq!(commits, [2, 0, 1, 3], "in the order in which they were submitted");
        assert_eq!(met.len(), 9);
    }

    #[test]
    fn windows_of_a_shot_follow_each_other_by_the_overlap_of_their_regions_alone() {
        let model = bundled_named("surface_d3@r12").unwrap();
        let size = WindowRounds { commit_rounds: 2, buffer_rounds: 2 };
        let carries = Carries::of(&MatcherModel::windowed(&model, size).unwrap(), 4, false).unwrap();
        let mut pool = Pool::new(config(), 2, 4, 2, Some(&carries), &Clock::machine()).unwrap();
        let (regions, submitter) = (pool.regions, &mut pool.submitter);
        let windows = carries.windows();
        assert!(windows > 4);
        for index in 0..windows {
            // Two shots in turn, of different streams: what one waits for is never the other's.
            for job in 0..2u32 {
                let task = task_of(Kernel::Window, job, u64::from(job) | u64::from(index) << 32, 0);
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

    #[test]
    fn a_window_never_reaches_into_rounds_that_its_neighbour_does_not_share() {
        let model = bundled_named("surface_d3@r12").unwrap();
        let size = WindowRounds { commit_rounds: 3, buffer_rounds: 1 };
        let carries = Carries::of(&MatcherModel::windowed(&model, size).unwrap(), 1, false).unwrap();
        for index in 1..carries.windows() {
            let (before, here) = (carries.region(index - 1), carries.region(index));
            assert!(before.end > here.start, "neighbours overlap: {before:?} {here:?}");
        }
    }
}
