//! A recording as a [`Source`]: the same console, read-only.
//!
//! Owns the recording; on the console thread. Nothing runs: there is nothing to switch, to drain or to wait for.

use super::past::{Note, Past, look};
use super::{Offer, Source};
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::profile::Profile;
use pinwheel_engine::record::tape::{Moment, Tape};
use std::path::Path;
use std::time::Duration;

/// Why nothing can be done to it.
const READ_ONLY: &str = "found a recording, expected a running engine; start one with pinwheel run";

/// A recording, or the last board of a process, with the recording that led to it.
pub struct Replay {
    tape: Option<Tape>,
    notes: Vec<Note>,
    /// The board that a killed process left: later than any picture.
    last: Option<Snapshot>,
    from_ns: u64,
    run_dir: Option<String>,
}

impl Replay {
    /// Looks at `tape`, at first `from_ns` after its engine's start.
    pub fn new(tape: Tape, notes: Vec<Note>, from_ns: u64) -> Replay {
        Replay { tape: Some(tape), notes, last: None, from_ns, run_dir: None }
    }

    /// The run's other files lie in `run_dir`: where it was recorded is not always where it is replayed.
    pub fn beside(self, run_dir: &Path) -> Replay {
        Replay { run_dir: Some(run_dir.display().to_string()).filter(|_| run_dir.is_dir()), ..self }
    }

    /// Looks at what a killed process left, and back from there.
    pub fn postmortem(tape: Option<Tape>, notes: Vec<Note>, last: Moment) -> Replay {
        let last = last.snapshot().ok().flatten();
        let from_ns = last.as_ref().map_or(0, |last| last.at_ns);
        Replay { tape, notes, last, from_ns, run_dir: None }
    }
}

impl Source for Replay {
    fn snapshot(&mut self) -> Option<Snapshot> {
        None
    }

    fn apply(&mut self, _name: &str, _profile: &Profile, _lent: Option<Duration>, _why: &str) -> Result<(), String> {
        Err(READ_ONLY.to_owned())
    }

    /// Nothing runs: it has drained.
    fn drain(&mut self, _why: &str) -> Result<(), String> {
        Ok(())
    }

    fn is_finished(&self) -> bool {
        true
    }

    fn offers(&self) -> Vec<Offer> {
        Vec::new()
    }

    fn past(&mut self, at_ns: u64) -> Result<Past, String> {
        let mut past = match &mut self.tape {
            Some(tape) => look(tape, at_ns, &self.notes),
            None => Ok(Past { from_ns: self.from_ns, ..Past::default() }),
        };
        if let (Some(last), Ok(past)) = (&self.last, &mut past) {
            if at_ns >= last.at_ns || past.pictures.is_empty() {
                past.pictures.retain(|picture| picture.at_ns < last.at_ns);
                past.pictures.push(last.clone());
            }
            past.to_ns = past.to_ns.max(last.at_ns);
        }
        if let (Some(run_dir), Ok(past)) = (&self.run_dir, &mut past) {
            past.pictures.iter_mut().for_each(|picture| picture.recorder.run_dir = Some(run_dir.clone()));
        }
        past
    }

    fn replay_from(&self) -> Option<u64> {
        Some(self.from_ns)
    }
}
