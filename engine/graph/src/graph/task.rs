//! Tasks: as they are submitted, as their bodies see them, and their results.
//!
//! Plain values. A task's description fits into the four words of its record.

use super::config::Pool;
use pinwheel_edge::queue::fanout::PAYLOAD;
use std::ops::ControlFlow;

/// A task's number: its record and the record's generation. Never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u64);

impl std::fmt::Display for TaskId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Description of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// The number of the body's kernel that runs.
    pub kernel: u16,
    /// The pool whose workers may run it.
    pub pool: Pool,
    /// Its stream; queues, gates and placement may depend on it.
    pub stream: u32,
    /// Arguments of the kernel.
    pub args: [u64; PAYLOAD - 1],
}

impl Task {
    /// A task of stream 0 for the processor's pool.
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
    /// The task's number; for a recorded task, its index in the recording.
    pub id: TaskId,
    /// The task's description.
    pub task: Task,
    /// The number of the worker that runs it.
    pub worker: u32,
    pub(super) item: u64,
}

/// The result of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The work is done.
    Done,
    /// The work was launched on a device; a [`Completer`](super::Completer) ends the task later.
    Launched,
    /// The work failed, with a code of the body's own.
    Failed(u32),
}

/// The code that runs tasks. A panic is caught and fails its task.
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

/// The body of a graph whose workers pass bodies to [`Worker::work_by`](super::Worker::work_by)
/// themselves.
#[derive(Clone, Copy, Debug)]
pub struct CallerBody;

impl Body for CallerBody {
    fn run(&self, work: &Work) -> Ended {
        unreachable!("task {}: its worker must run it by work_by", work.id)
    }
}

/// Runs bodies.
pub(super) trait Runner<B> {
    /// Runs `work`; `Break` ends the worker's turn.
    fn run(&mut self, body: &B, work: &Work) -> ControlFlow<Ended, Ended>;
}

/// Runs the graph's own body.
pub(super) struct ByBody;

impl<B: Body> Runner<B> for ByBody {
    #[inline(always)]
    fn run(&mut self, body: &B, work: &Work) -> ControlFlow<Ended, Ended> {
        ControlFlow::Continue(body.run(work))
    }
}

/// Runs the body that the caller of the turn passed.
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
    /// Its body returned this code.
    Failed(u32),
    /// Its body panicked.
    Panicked,
}

/// The state of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It waits or runs.
    UnderWay,
    /// It is done.
    Done,
    /// It failed.
    Failed,
    /// It was skipped because this task failed, whose results it reads.
    Poisoned(TaskId),
    /// It was skipped because the graph was cancelled.
    Cancelled,
    /// Its result is not known any more: it retired after more tasks had failed than are remembered, or
    /// 2²⁹ tasks ago.
    Forgotten,
}

/// Set in the outcome of a failed task and of all tasks that it poisons; the low bits are its
/// number's.
pub(super) const FAILED: u32 = 1 << 31;
/// The outcome of a task that was skipped because the graph was cancelled.
pub(super) const CANCELLED: u32 = 1 << 30;

/// The outcome of a failed task and of its dependents.
#[inline]
pub(super) fn outcome_of(task: u64) -> u32 {
    (task as u32 & !FAILED) | FAILED
}

/// The status that an outcome stands for; `task` is a number near that of the failed task.
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
        let task = Task { kernel: 0xFFFE, pool: Pool::Device, stream: u32::MAX, args: [1, u64::MAX, 3] };
        assert_eq!(Task::of_words(task.words()), task);
        assert_eq!(Task::of_words(Task::new(3, [0; 3]).words()), Task::new(3, [0; 3]));
    }

    #[test]
    fn an_outcome_names_the_failed_task_across_the_wrap_of_its_bits() {
        let failed = (1 << 31) - 2;
        assert_eq!(status_of(failed, outcome_of(failed)), Status::Failed);
        assert_eq!(status_of(failed + 5, outcome_of(failed)), Status::Poisoned(TaskId(failed)));
        assert_eq!((status_of(9, 0), status_of(9, CANCELLED)), (Status::Done, Status::Cancelled));
    }
}
