//! Counters of what a recorded task still waits for: each goes down to zero once a round.
//!
//! Owns a word for each task. Whoever finishes a predecessor releases its successors; the last one
//! has the right, and the duty, to start the task, and arms its counter for the next round before
//! it does. Bounds: the tasks. Never waits.
//!
//! | edge | release site | acquire site | publishes |
//! |---|---|---|---|
//! | C1 | [`Countdown::release`], not the last | [`Countdown::release`], the last | what each predecessor did |

use crate::sync::{AtomicU32, Ordering, edge};

/// A counter for each task of a recorded graph.
pub struct Countdown {
    left: Box<[AtomicU32]>,
}

impl Countdown {
    /// Counters that start at `initial`.
    #[must_use]
    pub fn new(initial: &[u32]) -> Countdown {
        Countdown { left: initial.iter().map(|count| AtomicU32::new(*count)).collect() }
    }

    /// One of the things that `task` waits for is done; says whether it was the last.
    ///
    /// # Why
    /// A one that is read cannot change: it counts the caller itself. So the last needs no
    /// exchange, and a task with one predecessor none at all.
    #[inline(always)]
    pub fn release(&self, task: usize) -> bool {
        let left = &self.left[task];
        // ORDERING: acquire side of C1: what the other predecessors did. Relaxed would start the
        // task before their work is seen. Model: loom_fanout::the_last_release_sees_all_work.
        if left.load(edge("C1.last", Ordering::Acquire)) == 1 {
            return true;
        }
        // ORDERING: both sides of C1: release what this predecessor did, and acquire in case it is
        // the last after all. Model as above.
        left.fetch_sub(1, edge("C1.release", Ordering::AcqRel)) == 1
    }

    /// So many of the things that `task` waits for are done; says whether they were the last.
    #[inline]
    pub fn release_many(&self, task: usize, count: u32) -> bool {
        // ORDERING: as in `release`, both sides of C1. Model:
        // loom_fanout::the_last_of_a_round_sees_all_work.
        self.left[task].fetch_sub(count, edge("C1.many", Ordering::AcqRel)) == count
    }

    /// Arms `task` for the next round; for whoever was told that it was the last.
    #[inline(always)]
    pub fn arm(&self, task: usize, count: u32) {
        // What follows publishes it: the next round begins only after this task is done.
        self.left[task].store(count, Ordering::Relaxed);
    }
}
