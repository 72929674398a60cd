//! A load of the arbiter in this process as a [`Source`].
//!
//! Owns nothing: borrows the load while the console shows it; called from the console thread only. A load has no profile,
//! so there is none to offer or to apply.

use crate::source::past::Past;
use crate::source::{Offer, Source};
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::profile::Profile;
use pinwheel_lab::arbiter_load::Running;
use std::time::Duration;

impl Source for &Running {
    fn snapshot(&mut self) -> Option<Snapshot> {
        Some(self.board().snapshot(self.clock()))
    }

    fn apply(&mut self, _: &str, _: &Profile, _: Option<Duration>, _why: &str) -> Result<(), String> {
        Err("found a load of the arbiter, expected an engine: a load has no profile; pinwheel run starts one"
            .to_owned())
    }

    fn drain(&mut self, _why: &str) -> Result<(), String> {
        self.request_end();
        Ok(())
    }

    fn is_finished(&self) -> bool {
        Running::is_finished(self)
    }

    fn past(&mut self, _at_ns: u64) -> Result<Past, String> {
        Err("found a load without a recorder, expected a run; look back at pinwheel run".to_owned())
    }

    fn offers(&self) -> Vec<Offer> {
        Vec::new()
    }
}
