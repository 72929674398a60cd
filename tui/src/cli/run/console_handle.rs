//! Connects the console to the runs of this process.
//!
//! Runs on the console thread, ten times a second; no call blocks.

use super::run_sequence::RunSequence;
use crate::source::Reply;
use crate::source::live::Handle;
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::engine::{Actor, Command};
use pinwheel_engine::profile::Profile;
use pinwheel_engine::record::RecentRecording;
use std::sync::Arc;

impl Handle for RunSequence {
    fn snapshot(&self) -> Option<Snapshot> {
        RunSequence::snapshot(self)
    }

    fn execute(&mut self, command: &Command, why: &str) -> Result<(), String> {
        RunSequence::execute(self, command, &Actor::this_process_for(why))
    }

    fn profile(&self) -> Option<Arc<Profile>> {
        RunSequence::profile(self)
    }

    fn replies(&mut self) -> Vec<Reply> {
        self.step()
    }

    fn is_finished(&self) -> bool {
        RunSequence::is_finished(self)
    }

    fn recent_recording(&self) -> Option<&RecentRecording> {
        self.engine().ok()?.recent_recording()
    }
}
