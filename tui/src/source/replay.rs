//! A recording as a read-only [`Source`] of the same console.
//!
//! Owns the recording; on the console thread. No engine runs, so no command applies.

use super::Source;
use super::past::{Note, Past, look};
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::engine::Command;
use pinwheel_engine::record::tape::{Moment, Tape};
use std::path::Path;

/// Refusal of every command.
const READ_ONLY: &str = "this is a recording; start an engine with pinwheel run";

/// A recording, or the last board of a process, with the recording that led to it.
pub struct Replay {
    tape: Option<Tape>,
    notes: Vec<Note>,
    /// The board that a killed process left: newer than any picture of the recording.
    last: Option<Snapshot>,
    from_ns: u64,
    run_dir: Option<String>,
}

impl Replay {
    /// Shows `tape`, first at `from_ns` after its engine's start.
    pub fn new(tape: Tape, notes: Vec<Note>, from_ns: u64) -> Replay {
        Replay { tape: Some(tape), notes, last: None, from_ns, run_dir: None }
    }

    /// Takes the run's other files from `run_dir`: a recording may be replayed in another place.
    pub fn beside(self, run_dir: &Path) -> Replay {
        Replay { run_dir: Some(run_dir.display().to_string()).filter(|_| run_dir.is_dir()), ..self }
    }

    /// Shows the last board of a killed process, with its recording as the past.
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

    /// No engine runs: draining is complete.
    fn execute(&mut self, command: &Command, _why: &str) -> Result<(), String> {
        if *command == Command::Drain { Ok(()) } else { Err(READ_ONLY.to_owned()) }
    }

    fn is_finished(&self) -> bool {
        true
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
