//! Tasks as they are submitted, and as their bodies see them.
//!
//! Pure values; a task's description fits in the four words that its record has for it.

use super::config::Pool;
use pinwheel_edge::queue::fanout::PAYLOAD;
use std::ops::ControlFlow;

/// A task's number: which record it has, and which of that record's tasks it is. Never given out twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u64);

impl std::fmt::Display for TaskId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// What a task is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Which of the body's kernels.
    pub kernel: u16,
    /// Where.
    pub pool: Pool,
    /// Whose: queues, gates and placement may go by it.
    pub stream: u32,
    /// The kernel's own.
    pub args: [u64; PAYLOAD - 1],
}

impl Task {
    /// A task of the processor's, of stream 0.
    #[must_use]
    #[inline(always)]
    pub fn new(kernel: u16, args: [u64; PAYLOAD - 1]) -> Task {
        Task { kernel, pool: Pool::Cpu, stream: 0, args }
    }

    #[inline(always)]
    pub(super) fn words(&self) -> [u64; PAYLOAD] {
        let first = u64::from(self.kernel) | (self.pool as u64) << 16 | u64::from(self.stream) << 32;
        [first, self.args[0], self.args[1], self.args[2]]
    }

    #[inline(always)]
    pub(super) fn of_words(words: [u64; PAYLOAD]) -> Task {
        let [first, args @ ..] = words;
        Task { kernel: first as u16, pool: Pool::of((first >> 16) as u8), stream: (first >> 32) as u32, args }
    }
}

/// A task as its body sees it.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// Its number; of a recorded task its index in the recording.
    pub id: TaskId,
    /// What it is to do.
    pub task: Task,
    /// Who runs it.
    pub worker: u32,
    pub(super) item: u64,
}

/// How a body ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Done.
    Done,
    /// Begun elsewhere: a [`Completer`](super::Completer) will say when it is done.
    Launched,
    /// Not done, with a code of the body's own.
    Failed(u32),
}

/// What tasks do. A panic is caught for each task and is a failure.
pub trait Body: Send + Sync {
    /// Does `work`.
    fn run(&self, work: &Work) -> Ended;
}

impl<F: Fn(&Work) -> Ended + Send + Sync> Body for F {
    #[inline(always)]
    fn run(&self, work: &Work) -> Ended {
        self(work)
    }
}

/// The body of a graph whose workers bring their own along; see [`Worker::work_by`](super::Worker::work_by).
#[derive(Clone, Copy, Debug)]
pub struct Brought;

impl Body for Brought {
    fn run(&self, work: &Work) -> Ended {
        unreachable!("task {}: whoever takes it up brings its body", work.id)
    }
}

/// Who runs bodies.
pub(super) trait Runner<B> {
    /// Does `work`; `Break` ends the worker's turn.
    fn run(&mut self, body: &B, work: &Work) -> ControlFlow<Ended, Ended>;
}

/// The graph's own body does.
pub(super) struct ByBody;

impl<B: Body> Runner<B> for ByBody {
    #[inline(always)]
    fn run(&mut self, body: &B, work: &Work) -> ControlFlow<Ended, Ended> {
        ControlFlow::Continue(body.run(work))
    }
}

/// The caller of the turn does.
pub(super) struct ByCaller<F>(pub(super) F);

impl<B, F: FnMut(&Work) -> ControlFlow<Ended, Ended>> Runner<B> for ByCaller<F> {
    #[inline(always)]
    fn run(&mut self, _body: &B, work: &Work) -> ControlFlow<Ended, Ended> {
        self.0(work)
    }
}

/// Why a task was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Its body says so, with this code.
    Failed(u32),
    /// Its body panicked.
    Panicked,
    /// It was promised and never submitted before the graph was closed.
    NeverSubmitted,
}

/// What became of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It waits or runs.
    UnderWay,
    /// It is done.
    Done,
    /// It failed.
    Failed,
    /// It was not run, for this one failed, whose results it reads.
    Poisoned(TaskId),
    /// It was not run, for the graph was cancelled.
    Cancelled,
    /// It has retired, after more had failed than are remembered.
    Forgotten,
}

/// Set in the outcome of a task that failed, and of all that it poisons, beside the low bits of its number.
pub(super) const FAILED: u32 = 1 << 31;
/// The outcome of a task that was not run because the graph was cancelled.
pub(super) const CANCELLED: u32 = 1 << 30;

/// The outcome of a failed task and of its dependents.
#[inline]
pub(super) fn outcome_of(task: u64) -> u32 {
    (task as u32 & !FAILED) | FAILED
}

/// The status that an outcome tells, of task `task` and near that number.
pub(super) fn status_of(task: u64, outcome: u32) -> Status {
    if outcome == 0 {
        return Status::Done;
    }
    if outcome & FAILED == 0 {
        return Status::Cancelled;
    }
    let age = (task as u32 & !FAILED).wrapping_sub(outcome & !FAILED) & !FAILED;
    if age == 0 { Status::Failed } else { Status::Poisoned(TaskId(task.wrapping_sub(u64::from(age)))) }
}

#[cfg(test)]
mod tests {
    use super::{CANCELLED, Pool, Status, Task, TaskId, outcome_of, status_of};

    #[test]
    fn a_task_survives_its_words() {
        let task = Task { kernel: 0xFFFE, pool: Pool::Cube, stream: u32::MAX, args: [1, u64::MAX, 3] };
        assert_eq!(Task::of_words(task.words()), task);
        assert_eq!(Task::of_words(Task::new(3, [0; 3]).words()), Task::new(3, [0; 3]));
    }

    #[test]
    fn an_outcome_tells_who_failed_across_the_wrap_of_its_bits() {
        let failed = (1 << 31) - 2;
        assert_eq!(status_of(failed, outcome_of(failed)), Status::Failed);
        assert_eq!(status_of(failed + 5, outcome_of(failed)), Status::Poisoned(TaskId(failed)));
        assert_eq!((status_of(9, 0), status_of(9, CANCELLED)), (Status::Done, Status::Cancelled));
    }
}
