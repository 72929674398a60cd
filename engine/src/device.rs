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
}

impl Recovery {
    /// Watches `health`; a lost device is reopened after `wait`.
    #[must_use]
    pub fn new(health: Arc<HealthWord>, wait: Nanos) -> Recovery {
        Recovery { health, wait, lost_at: None, renew: None }
    }

    /// The device is made anew by `renew`.
    #[must_use]
    pub fn renewed_by(self, renew: Box<dyn Renew>) -> Recovery {
        Recovery { renew: Some(renew), ..self }
    }

    /// Does what is due now. Call about once a millisecond.
    pub fn step(&mut self, now: Ticks, rate: TickRate) {
        match self.health.current() {
            Health::Lost => {
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
