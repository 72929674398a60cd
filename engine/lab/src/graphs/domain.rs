//! A thread that stands for a device: it takes launches by handshake, runs their bodies, and
//! answers them.
//!
//! Owns the [`Link`] that a device worker uses, and the device thread's loop. Cold code for
//! `pinwheel graph`; idle threads yield. One launch under way for each device worker, as the
//! handshake allows.
//!
//! ```text
//!  worker of pool Device ──post(task's place)──▶ domain: runs the body
//!        task is Launched                            │
//!        end_launched ◀──collect(place)──────────────┘   successors on the processor are released
//! ```
//!
//! # Why the worker does not run the body itself
//! A launch returns before its work is done, and its completion is found later by polling. If
//! device tasks ran as plain bodies, the processor would never go on during a launch.

use crate::clock::Clock;
use crate::graph::{Body, CompleteError, Ended, Work, Worker};
use crate::units::Ticks;
use pinwheel_edge::queue::handshake::{Caller, Domain, handshake};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

/// The device worker's end.
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
    /// Ends the task that the device has completed, and launches one that is ready; returns how
    /// many steps it did.
    ///
    /// # Errors
    /// If another thread has ended the task.
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
                // The link has no launch under way when it takes a task.
                Err(_) => ControlFlow::Break(Ended::Failed(u32::MAX)),
            });
        }
        Ok(done)
    }
}

/// Runs posted tasks until `is_over`; `run` gets the task's index in the graph.
pub(super) fn serve(mut domain: Domain, is_over: &AtomicBool, mut run: impl FnMut(u64)) {
    // ORDERING: Relaxed: no task is posted after the end, and joining the thread publishes the
    // rest.
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
