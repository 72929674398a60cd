//! The state of a graph at one moment, for publishing.
//!
//! Called now and then by the submitter's owner; also retires ended tasks. Reads each queue and
//! gate once.

use super::config::POOLS;
use super::submit::Submitter;
use super::task::{Body, Task, TaskId};

/// What holds a task up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockedBy {
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

/// A graph at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observed {
    /// Tasks submitted and not retired.
    pub window_used: u64,
    /// Most tasks that the window holds.
    pub window_tasks: u64,
    /// As [`Summary::stalls`](super::Summary::stalls).
    pub stalls: u64,
    /// Tasks retired.
    pub retired: u64,
    /// Tasks in the ready queues of each pool, without those sent to one worker.
    pub ready: [u64; POOLS],
    /// Permits in use, of all gates together.
    pub permits_used: u64,
    /// Permits of all gates together; 0 if there is no gate.
    pub permits: u64,
    /// Tasks that wait for a permit.
    pub parked: u64,
    /// The oldest task under way, and what it waits for.
    pub oldest: Option<(TaskId, Task, BlockedBy)>,
}

impl<B: Body> Submitter<B> {
    /// Retires ended tasks and returns the graph's state.
    pub fn observed(&mut self) -> Observed {
        self.retire();
        let shared = &*self.shared;
        let ready = std::array::from_fn(|pool| shared.queues_at(pool).iter().map(|queue| queue.depth()).sum());
        Observed {
            window_used: self.next - self.retired,
            window_tasks: shared.config.window_tasks.into(),
            stalls: self.summary.stalls,
            retired: self.retired - 1,
            ready,
            permits_used: shared.gates.iter().map(|gate| gate.in_use()).sum(),
            permits: shared.gates.iter().map(|gate| gate.permits()).sum(),
            parked: shared.parked(),
            oldest: self.oldest(),
        }
    }

    /// The oldest task under way, as of the last retirement, and what holds it up.
    fn oldest(&self) -> Option<(TaskId, Task, BlockedBy)> {
        if self.retired == self.next {
            return None;
        }
        let slot = self.shared.slot(self.retired);
        let what = Task::of_words(self.shared.fanout.payload(slot));
        let gate = self.shared.gate_of(&what).filter(|_| self.shared.is_parked(slot));
        let state = match (self.shared.fanout.pending(slot), gate) {
            (waits @ 2.., _) => BlockedBy::Predecessors(waits),
            (_, Some(gate)) => BlockedBy::Gate { in_use: self.shared.gates[gate].in_use() },
            _ => BlockedBy::Worker,
        };
        Some((TaskId(self.retired), what, state))
    }
}
