//! A device's side of a described graph: a thread of its own that takes launches by handshake and answers them.
//!
//! Owns the [`Link`] that a device's worker drives, and the domain's loop. Cold code, for `pinwheel graph`: threads that find
//! nothing yield. Bounds: one launch under way for each device worker, as the handshake has it.
//!
//! ```text
//!  worker of pool Device ──post(task's place)──▶ domain: runs the body
//!        task is Launched                            │
//!        end_launched ◀──collect(place)──────────────┘   successors on the processor are released
//! ```
//!
//! # Why the worker does not run the body itself
//! A launch returns before its work is done, and its completion is found by looking. A graph whose device tasks were plain
//! bodies would never meet an order in which the processor goes on meanwhile.

use crate::clock::Clock;
use crate::graph::{Body, CompleteError, Ended, Work, Worker};
use crate::units::Ticks;
use pinwheel_edge::queue::handshake::{Caller, Domain, handshake};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

/// The worker's end.
pub(super) struct Link {
    caller: Caller,
    clock: Clock,
    under_way: Option<(Work, Ticks)>,
}

/// Both ends.
pub(super) fn link(clock: &Clock) -> (Link, Domain) {
    let (caller, domain) = handshake();
    (Link { caller, clock: clock.clone(), under_way: None }, domain)
}

impl Link {
    /// Ends what the domain has answered, and launches what is ready; says how much it did.
    ///
    /// # Errors
    /// If a task was ended by somebody else.
    pub(super) fn step<B: Body>(&mut self, worker: &mut Worker<B>) -> Result<u32, CompleteError> {
        let mut done = 0;
        if let Some((work, began)) = self.under_way
            && let Some((_, place)) = self.caller.collect()
        {
            debug_assert_eq!(place, work.task.args[0], "answers come in the order of launches");
            self.under_way = None;
            worker.end_launched_work(&work, began)?;
            done += 1;
        }
        if self.under_way.is_none() {
            let Link { caller, clock, under_way } = self;
            done += worker.work_by(1, |work| match caller.post(work.task.args[0]) {
                Ok(_) => {
                    *under_way = Some((*work, clock.ticks()));
                    ControlFlow::Break(Ended::Launched)
                }
                // The link is free before it takes a task up.
                Err(_) => ControlFlow::Break(Ended::Failed(u32::MAX)),
            });
        }
        Ok(done)
    }
}

/// Does what is posted, until `is_over`; `run` does the task at that place of the graph.
pub(super) fn serve(mut domain: Domain, is_over: &AtomicBool, mut run: impl FnMut(u64)) {
    // ORDERING: Relaxed: what is left undone after the end is nobody's; the join of the thread publishes the rest.
    while !is_over.load(Ordering::Relaxed) {
        match domain.take() {
            Some((_, place)) => {
                run(place);
                domain.finish(place);
            }
            None => std::thread::yield_now(),
        }
    }
}
