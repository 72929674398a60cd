//! An arbiter load in this process as a [`Source`] of the console.
//!
//! Borrows the load while the console shows it; called from the console thread only. A load has no
//! profile and executes no command except its end.

use crate::source::Source;
use crate::source::past::Past;
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::engine::Command;
use pinwheel_lab::arbiter_load::Running;

impl Source for &Running {
    fn snapshot(&mut self) -> Option<Snapshot> {
        Some(self.board().snapshot(self.clock()))
    }

    fn execute(&mut self, command: &Command, _why: &str) -> Result<(), String> {
        if *command == Command::Drain {
            self.request_end();
            return Ok(());
        }
        Err("an arbiter load does not execute this command; start an engine with pinwheel run".to_owned())
    }

    fn is_finished(&self) -> bool {
        Running::is_finished(self)
    }

    fn past(&mut self, _at_ns: u64) -> Result<Past, String> {
        Err("an arbiter load is not recorded; only runs of pinwheel run can be replayed".to_owned())
    }
}
