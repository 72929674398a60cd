//! What a graph looks like from outside: for whoever publishes it.
//!
//! Called by the submitter's owner now and then; retires what can be. Bounds: queues and gates, each read once.

use super::config::POOLS;
use super::submit::Submitter;
use super::task::{Body, Task, TaskId};
use super::verdict::Holdup;

/// A graph at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observed {
    /// Tasks submitted and not retired.
    pub window_used: u64,
    /// Most of them.
    pub window_tasks: u64,
    /// Submissions that found no room at once.
    pub stalls: u64,
    /// Tasks retired.
    pub retired: u64,
    /// Tasks in the queues of each pool, tasks sent to one of its workers not counted.
    pub ready: [u64; POOLS],
    /// Permits in use, of all gates.
    pub permits_used: u64,
    /// Permits, of all gates; 0: there is no gate.
    pub permits: u64,
    /// Tasks set aside for want of one.
    pub parked: u64,
    /// The oldest task under way.
    pub oldest: Option<(TaskId, Task, Holdup)>,
}

impl<B: Body> Submitter<B> {
    /// The graph as it is now.
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
            parked: shared.parked.iter().map(|parked| parked.depth()).sum(),
            oldest: self.oldest(),
        }
    }
}
