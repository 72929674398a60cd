//! The device contract, and its implementations.
//!
//! Owns the operations that dispatch needs of a device ([`Launch`]) and the recovery of a lost
//! device. Dispatch calls `launch` on its thread; completions arrive through the workers' ready
//! flags; [`Recovery`] runs on a cold thread. Bounds: one launch per worker in progress. Never
//! queries the device: a launch sets its ready flag, or it becomes overdue.

#[expect(unsafe_code, reason = "calls the CUDA driver")]
pub mod cuda;
pub mod sim;

use crate::hot::Frame;
use crate::units::{Nanos, TickRate, Ticks};
use pinwheel_edge::slot::health::{Health, HealthWord};
use pinwheel_edge::slot::workers::Mail;
use std::sync::Arc;

/// The outcome of a launch call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launched {
    /// The graph runs or will run.
    Started,
    /// The graph certainly does not run: the worker is free.
    NotStarted,
    /// The call failed although the graph may run (drivers report older errors late): the worker is
    /// quarantined.
    Unknown,
    /// The device is lost (its error is sticky): the worker is quarantined and the shot is answered
    /// with an error.
    Lost,
}

/// Starts a worker's graph, after its mailbox was filled.
pub trait Launch {
    /// Whether there is a device.
    const EXISTS: bool = true;

    /// Launches worker `worker`, whose mailbox holds `mail`.
    fn launch(&mut self, worker: usize, mail: Mail, frame: &Frame<'_>) -> Launched;

    /// Starts the launches that [`Launch::launch`] postponed to start them together. Dispatch calls
    /// it at the end of its frame until it returns `None`; otherwise it returns the launches that
    /// failed.
    fn flush(&mut self, _frame: &Frame<'_>) -> Option<Failed> {
        None
    }

    /// Prepares the device for its first launch.
    ///
    /// # Errors
    /// Why the device cannot launch, and what to do.
    fn warm_up(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// Releases the device, which has been declared lost, before it is recovered.
    fn release(&mut self) {}

    /// Uses the device again after its recovery.
    fn resume(&mut self) {}
}

/// No device: dispatch hands each shot to the graph role, and the decode worker predecodes it.
pub struct NoDevice;

impl Launch for NoDevice {
    const EXISTS: bool = false;

    fn launch(&mut self, _worker: usize, _mail: Mail, _frame: &Frame<'_>) -> Launched {
        unreachable!("without a device dispatch launches nothing")
    }
}

/// Launches that failed after their own call had returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed {
    /// Bit mask of their workers.
    pub workers: u64,
    /// Their outcome; never `Started` nor `NotStarted`.
    pub how: Launched,
}

/// Recreates a lost device on a thread of its own, so that nothing waits for it.
pub trait Renew: Send {
    /// Begins. Called after the device was released.
    fn begin(&mut self);

    /// Whether a renewal has ended; true once for each renewal.
    fn is_done(&mut self) -> bool;

    /// Closes the device as soon as none of its work runs; returns at once. Called after the last
    /// launch.
    fn retire(&mut self);

    /// Whether the thread has ended after [`Renew::retire`].
    fn has_ended(&mut self) -> bool;
}

/// Recovers a lost device, from a cold thread.
///
/// The step from RESETTING to RESET is done by the device's own role if the device polls (the
/// stand-in), otherwise by a [`Renew`]. For the stand-in, the wait stands for the time to recreate
/// a context.
pub struct Recovery {
    health: Arc<HealthWord>,
    wait: Nanos,
    lost_at: Option<Ticks>,
    renew: Option<Box<dyn Renew>>,
    /// The recovery of the previous, dead path, which still has a device to close.
    before: Option<Box<Recovery>>,
}

impl Recovery {
    /// Watches `health`; reopens a lost device after `wait`.
    pub fn new(health: Arc<HealthWord>, wait: Nanos) -> Recovery {
        Recovery { health, wait, lost_at: None, renew: None, before: None }
    }

    /// Uses `renew` to recreate the device.
    #[must_use]
    pub fn renewed_by(self, renew: Box<dyn Renew>) -> Recovery {
        Recovery { renew: Some(renew), ..self }
    }

    /// Replaces `before`, whose path is dead: closes its device, then opens this one's.
    ///
    /// # Why not both at once
    /// Both register the silo's slots with the driver, and closing the old device removes the
    /// registration.
    pub fn succeed(&mut self, mut before: Recovery) {
        if let Some(renew) = &mut before.renew {
            renew.retire();
        }
        self.before = (!before.has_ended()).then(|| Box::new(before));
    }

    /// Whether nothing is left to close.
    fn has_ended(&mut self) -> bool {
        self.before.take_if(|before| before.has_ended());
        self.before.is_none() && self.renew.as_mut().is_none_or(|renew| renew.has_ended())
    }

    /// Does the due steps. Call about once a millisecond.
    pub fn step(&mut self, now: Ticks, rate: TickRate) {
        match self.health.current() {
            Health::Lost => {
                self.before.take_if(|before| before.has_ended());
                if self.before.is_some() {
                    return;
                }
                self.lost_at = Some(now);
                self.health.advance(Health::Lost);
                if let Some(renew) = &mut self.renew {
                    renew.begin();
                }
            }
            Health::Resetting => {
                if self.renew.as_mut().is_some_and(|renew| renew.is_done()) {
                    self.health.advance(Health::Resetting);
                }
            }
            Health::Reset => {
                let lost_at = *self.lost_at.get_or_insert(now);
                if rate.nanos(now.since(lost_at)) >= self.wait {
                    self.health.advance(Health::Reset);
                }
            }
            Health::Online | Health::Recovered => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Recovery, Renew};
    use crate::units::{Nanos, TickRate, Ticks};
    use pinwheel_edge::slot::health::{Health, HealthWord};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Closes its device when `has_ended` is set, and records the calls of `begin` and `retire`.
    #[derive(Clone, Default)]
    struct Made {
        has_begun: Arc<AtomicBool>,
        is_retired: Arc<AtomicBool>,
        has_ended: Arc<AtomicBool>,
    }

    impl Renew for Made {
        fn begin(&mut self) {
            self.has_begun.store(true, Ordering::Relaxed);
        }

        fn is_done(&mut self) -> bool {
            true
        }

        fn retire(&mut self) {
            self.is_retired.store(true, Ordering::Relaxed);
        }

        fn has_ended(&mut self) -> bool {
            self.has_ended.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn a_device_is_opened_only_after_all_earlier_ones_of_the_silo_are_closed() {
        let made: [Made; 3] = std::array::from_fn(|_| Made::default());
        let health = Arc::new(HealthWord::new());
        let [first, second, mut third] =
            made.clone().map(|made| Recovery::new(Arc::clone(&health), Nanos(0)).renewed_by(Box::new(made)));
        let mut second = second;
        second.succeed(first);
        third.succeed(second);
        let begun = |recovery: &mut Recovery| {
            recovery.step(Ticks(1), TickRate::NANOS);
            made[2].has_begun.load(Ordering::Relaxed)
        };
        health.advance(Health::Online);
        assert!(made[..2].iter().all(|made| made.is_retired.load(Ordering::Relaxed)));
        assert!(!begun(&mut third));
        made[1].has_ended.store(true, Ordering::Relaxed);
        assert!(!begun(&mut third), "the first device is still open");
        made[0].has_ended.store(true, Ordering::Relaxed);
        assert!(begun(&mut third) && !made[2].is_retired.load(Ordering::Relaxed));
        assert_eq!(health.current(), Health::Resetting);
    }
}
