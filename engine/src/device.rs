//! The device contract, and the devices.
//!
//! Owns what dispatch may ask of a device ([`Launch`]) and the words by which a lost device is brought back. `launch` is
//! called by dispatch on its thread; completions come through the workers' ready flags; [`Recovery`] runs on a cold
//! thread. Bounds: one launch per worker in progress. Never queries the device: a completion is a flag, or it is
//! overdue.

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
}

/// Brings a lost device back, from a cold thread.
///
/// For a device that polls (the stand-in), "reset" is done by its own role between RESETTING and RESET; the wait
/// stands for the time in which a real device's context is made anew.
#[derive(Debug)]
pub struct Recovery {
    health: Arc<HealthWord>,
    wait: Nanos,
    lost_at: Option<Ticks>,
}

impl Recovery {
    /// Watches `health`; a lost device is reopened after `wait`.
    #[must_use]
    pub fn new(health: Arc<HealthWord>, wait: Nanos) -> Recovery {
        Recovery { health, wait, lost_at: None }
    }

    /// Does what is due now. Call about once a millisecond.
    pub fn step(&mut self, now: Ticks, rate: TickRate) {
        match self.health.current() {
            Health::Lost => {
                self.lost_at = Some(now);
                self.health.advance(Health::Lost);
            }
            Health::Reset => {
                let lost_at = *self.lost_at.get_or_insert(now);
                if rate.nanos(now.since(lost_at)) >= self.wait {
                    self.health.advance(Health::Reset);
                }
            }
            Health::Online | Health::Resetting | Health::Recovered => {}
        }
    }
}
