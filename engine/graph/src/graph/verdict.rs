//! Why nothing moves: a proof of deadlock, or an alarm that no task has retired for some time. They are different
//! messages, for the first needs no clock and the second proves nothing.
//!
//! Observations in, verdict out; made by the submitter on request.

use super::submit::Submitter;
use super::task::{Body, Task, TaskId};
use crate::units::Nanos;

/// Why nothing moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It never will, unless the promise is kept.
    Deadlock {
        /// The oldest task that waits.
        task: TaskId,
        /// The promise.
        waits_on: TaskId,
    },
    /// It has not for some time.
    NoProgress {
        /// The oldest task under way.
        task: TaskId,
        /// What it is to do.
        what: Task,
        /// What holds it up, as far as can be seen.
        state: Holdup,
        /// For how long no task has retired.
        for_ns: Nanos,
    },
}

/// What holds a task up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holdup {
    /// So many predecessors, which are under way themselves.
    Predecessors(u32),
    /// A worker has not taken it up or not ended it, or a device has not answered.
    Worker,
    /// Its gate has no permit: all are in use.
    Gate {
        /// Permits in use.
        in_use: u64,
    },
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Verdict::Deadlock { task, waits_on } => write!(
                f,
                "deadlock: task {task}, the oldest of an open scope, waits on {waits_on}, which was never submitted; \
                 submit the promise before the graph is closed, or raise window_tasks if the window keeps it out"
            ),
            Verdict::NoProgress { task, what, state, for_ns } => {
                let ms = for_ns.0 / 1_000_000;
                let Task { kernel, pool, stream, .. } = what;
                write!(f, "no progress for {ms} ms: task {task} (kernel {kernel}, stream {stream}, pool {pool:?}) ")?;
                match state {
                    Holdup::Predecessors(count) => {
                        write!(f, "waits for {count} tasks under way; look at those, or raise window_tasks")
                    }
                    Holdup::Worker => {
                        write!(f, "is ready or runs; look at pool {pool:?}'s workers, or add one to workers")
                    }
                    Holdup::Gate { in_use } => {
                        write!(
                            f,
                            "waits for a permit, {in_use} of which are in use; look at their holders, or raise issue"
                        )
                    }
                }
            }
        }
    }
}

impl<B: Body> Submitter<B> {
    /// Why nothing moves: a proof if there is one, an alarm if no task has retired for `limit`.
    pub fn verdict(&mut self, limit: Nanos) -> Option<Verdict> {
        self.retire();
        let now = self.shared.clock.ticks();
        if self.progress.0 != self.retired || self.retired == self.next {
            self.progress = (self.retired, now);
            return None;
        }
        if let Some((task, waits_on)) = self.blocked_by_promise() {
            return Some(Verdict::Deadlock { task, waits_on });
        }
        let for_ns = self.shared.clock.rate().nanos(now.since(self.progress.1));
        if for_ns < limit {
            return None;
        }
        let (task, what, state) = self.oldest()?;
        Some(Verdict::NoProgress { task, what, state, for_ns })
    }

    /// The oldest task under way, as of the last retirement, and what holds it up.
    pub(super) fn oldest(&self) -> Option<(TaskId, Task, Holdup)> {
        if self.retired == self.next {
            return None;
        }
        let slot = self.shared.slot(self.retired);
        let what = Task::of_words(self.shared.fanout.payload(slot));
        let gate = self.shared.gate_of(&what).map(|gate| &self.shared.gates[gate]);
        let state = match (self.shared.fanout.pending(slot), gate) {
            (waits @ 2.., _) => Holdup::Predecessors(waits),
            (_, Some(gate)) if gate.in_use() == gate.permits() => Holdup::Gate { in_use: gate.in_use() },
            _ => Holdup::Worker,
        };
        Some((TaskId(self.retired), what, state))
    }
}
