//! The engine in this process as a [`Source`].
//!
//! Owns the engine's handle while the console runs; called from the console thread only. Never waits for a hot thread:
//! a snapshot is a copy of the board's words, a switch and a drain are requests.

use super::{Offer, SNOOZE, Source, offers_of};
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::profile::Profile;
use std::path::PathBuf;
use std::time::Duration;

/// What the console needs of an engine in its own process.
pub trait Handle {
    /// Why a profile is refused, in one sentence.
    type Refusal: std::fmt::Display;
    /// A copy of the board.
    fn snapshot(&self) -> Snapshot;
    /// Applies the live fields of `next`.
    fn apply(&mut self, name: &str, next: &Profile) -> Result<(), Self::Refusal>;
    /// The profile in force.
    fn profile(&self) -> &Profile;
    /// Asks for the drain.
    fn request_drain(&self);
    /// Acknowledges an alarm; 0: all that hold.
    fn acknowledge(&self, number: u64);
    /// Snoozes an alarm.
    fn snooze(&self, number: u64, span: Duration);
    /// Whether all hot threads have left.
    fn is_finished(&self) -> bool;
}

/// A live engine and the directory of its profiles.
pub struct Live<'a, H> {
    engine: &'a mut H,
    profiles: Option<PathBuf>,
}

impl<'a, H: Handle> Live<'a, H> {
    /// Watches `engine`; profiles are listed from `profiles` and from the binary.
    pub fn new(engine: &'a mut H, profiles: Option<PathBuf>) -> Live<'a, H> {
        Live { engine, profiles }
    }
}

impl<H: Handle> Source for Live<'_, H> {
    fn snapshot(&mut self) -> Option<Snapshot> {
        Some(self.engine.snapshot())
    }

    fn apply(&mut self, name: &str, profile: &Profile) -> Result<(), String> {
        self.engine.apply(name, profile).map_err(|refusal| refusal.to_string())
    }

    fn drain(&mut self) {
        self.engine.request_drain();
    }

    fn acknowledge(&mut self, number: u64) -> Result<(), String> {
        self.engine.acknowledge(number);
        Ok(())
    }

    fn snooze(&mut self, number: u64) -> Result<(), String> {
        self.engine.snooze(number, SNOOZE);
        Ok(())
    }

    fn is_finished(&self) -> bool {
        self.engine.is_finished()
    }

    fn offers(&self) -> Vec<Offer> {
        offers_of(self.profiles.as_deref(), self.engine.profile())
    }
}
