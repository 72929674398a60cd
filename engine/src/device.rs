//! The device contract, and the devices.
//!
//! Owns what dispatch may ask of a device ([`Launch`]) and the words by which a lost device is brought back. `launch` is
//! called by dispatch on its thread; completions come through the workers' ready flags; [`Recovery`] runs on a cold
//! thread. Bounds: one launch per worker in progress. Never queries the device: a completion is a flag, or it is
//! overdue.

#[expect(unsafe_code, reason = "calls the CUDA driver")]
pub mod cuda;
pub mod sim;

use crate::hot::Frame;
use crate::units::{Nanos, TickRate, Ticks};
use pinwheel_edge::slot::health::{Health, HealthWord};
use pinwheel_edge::slot::workers::Mail;
use std::sync::Arc;

/// What became of a launch call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launched {
    /// The graph runs or will run.
    Started,
    /// It certainly does not run: the worker is free.
    NotStarted,
    /// An error came back although the graph may run (drivers report older errors late): the worker is quarantined.
    Unknown,
    /// The device is gone (its error is sticky): the worker is quarantined, the shot lost with it.
    Lost,
}

/// Starts a worker's graph; its mailbox is filled.
pub trait Launch {
    /// Launches worker `worker`, whose mailbox holds `mail`.
    fn launch(&mut self, worker: usize, mail: Mail, frame: &Frame<'_>) -> Launched;

    /// Starts what [`Launch::launch`] put off to start it with others; dispatch calls it at the end of its frame, until
    /// it returns `None`. What could not be started then is returned.
    fn flush(&mut self, _frame: &Frame<'_>) -> Option<Failed> {
        None
    }

    /// Readies the device for its first launch.
    ///
    /// # Errors
    /// Found, expected, remedy.
    fn warm_up(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// The device is declared lost: gives it up, before anybody brings it back.
    fn let_go(&mut self) {}

    /// The device is back: takes it up again.
    fn take_up(&mut self) {}
}

/// Launches that failed after their own call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed {
    /// Bits of their workers.
    pub workers: u64,
    /// What became of them; never `Started` nor `NotStarted`.
    pub how: Launched,
}

/// Makes a lost device anew, on a thread of its own: what it takes is nobody's to wait for.
pub trait Renew: Send {
    /// Begins. Called when the device was given up.
    fn begin(&mut self);

    /// Whether a renewal has ended, once for each.
    fn is_done(&mut self) -> bool;

    /// Nobody launches any more: closes the device when nothing of it runs, and waits for nothing.
    fn retire(&mut self);

    /// After that: whether its thread has ended.
    fn has_ended(&mut self) -> bool;
}

/// Brings a lost device back, from a cold thread.
///
/// "Reset" between RESETTING and RESET is done by the device's own role where the device is one that polls (the
/// stand-in), else by a [`Renew`]. The wait stands for the time in which a stand-in's context would be made anew.
pub struct Recovery {
    health: Arc<HealthWord>,
    wait: Nanos,
    lost_at: Option<Ticks>,
    renew: Option<Box<dyn Renew>>,
    /// That of the dead path before, which still has something to close.
    before: Option<Box<Recovery>>,
}

impl Recovery {
    /// Watches `health`; a lost device is reopened after `wait`.
    #[must_use]
    pub fn new(health: Arc<HealthWord>, wait: Nanos) -> Recovery {
        Recovery { health, wait, lost_at: None, renew: None, before: None }
    }

    /// The device is made anew by `renew`.
    #[must_use]
    pub fn renewed_by(self, renew: Box<dyn Renew>) -> Recovery {
        Recovery { renew: Some(renew), ..self }
    }

    /// Takes the place of `before`, the path of which is dead: its device is closed, and this one's is opened after that.
    ///
    /// # Why not both at once
    /// Both have the silo's slots registered with the driver, and the one that is closed takes the registration back.
    pub fn succeed(&mut self, mut before: Recovery) {
        if let Some(renew) = &mut before.renew {
            renew.retire();
        }
        self.before = (!before.has_ended()).then(|| Box::new(before));
    }

    /// Whether nothing of it is left to close.
    fn has_ended(&mut self) -> bool {
        self.before.take_if(|before| before.has_ended());
        self.before.is_none() && self.renew.as_mut().is_none_or(|renew| renew.has_ended())
    }

    /// Does what is due now. Call about once a millisecond.
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

    /// Closes its device when it is told to, and makes one when `has_begun` says so.
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
    fn a_device_is_opened_only_after_those_of_the_dead_paths_before_are_closed() {
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
        assert!(!begun(&mut third), "the first one of all is open still");
        made[0].has_ended.store(true, Ordering::Relaxed);
        assert!(begun(&mut third) && !made[2].is_retired.load(Ordering::Relaxed));
        assert_eq!(health.current(), Health::Resetting);
    }
}
