//! The engine in this process as a [`Source`].
//!
//! Owns the engine's handle while the console runs; called from the console thread only. Never
//! waits for a hot thread: a snapshot is a copy of the board's words, and no command waits for the
//! threads concerned.

use super::WatchedRun;
use super::run_sequence::RunSequence;
use crate::source::past::{Note, Past, look};
use crate::source::{Offer, Reply, Source, offers_of};
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::engine::{Actor, Command, Engine};
use pinwheel_engine::record::tape::Tape;
use pinwheel_engine::units::Nanos;
use std::path::PathBuf;

/// A live engine and the directory of its profiles.
pub(super) struct Live<'a> {
    engine: &'a mut RunSequence,
    profiles: Option<PathBuf>,
    /// The recording read last: the minutes in memory, or the file on disk.
    tape: Option<Tape>,
    notes: Vec<Note>,
    /// Start of the run read last, and its newest moment.
    seen: Option<(u64, u64)>,
}

impl<'a> Live<'a> {
    /// Shows `engine`; profiles are listed from `profiles` and from the binary.
    pub(super) fn new(engine: &'a mut RunSequence, profiles: Option<PathBuf>) -> Live<'a> {
        Live { engine, profiles, tape: None, notes: Vec::new(), seen: None }
    }
}

impl Source for Live<'_> {
    fn snapshot(&mut self) -> Option<Snapshot> {
        let snapshot = self.engine.snapshot()?;
        let seen = (snapshot.engine.started_utc_s, snapshot.at_ns);
        if self.seen.is_some_and(|before| before.0 != seen.0 || before.1 > seen.1) {
            // The recording read last belongs to the previous run.
            (self.tape, self.notes) = (None, Vec::new());
        }
        self.seen = Some(seen);
        Some(snapshot)
    }

    fn execute(&mut self, command: &Command, why: &str) -> Result<(), String> {
        self.engine.execute(command, &Actor::this_process(why))?;
        if let Command::Note { text } = command {
            self.notes.extend(self.engine.snapshot().map(|snapshot| (snapshot.at_ns, text.clone())));
        }
        Ok(())
    }

    fn replies(&mut self) -> Vec<Reply> {
        self.engine.step()
    }

    fn is_finished(&self) -> bool {
        self.engine.is_finished()
    }

    fn offers(&self) -> Vec<Offer> {
        let profile = self.engine.profile();
        profile.map_or_else(Vec::new, |profile| offers_of(self.profiles.as_deref(), &profile))
    }

    fn past(&mut self, at_ns: u64) -> Result<Past, String> {
        let engine = self.engine.engine().ok();
        let Some(recent_recording) = engine.and_then(Engine::recent_recording).cloned() else {
            return Err("this run has no recorder; set diagnostics: On in the profile and restart".to_owned());
        };
        let holds = |tape: &Tape| {
            let span = tape.span().map(|(from, to)| (tape.since_start(from), tape.since_start(to)));
            span.is_some_and(|(from, to)| (from..=to).contains(&Nanos(at_ns)))
        };
        if !self.tape.as_ref().is_some_and(holds) {
            let recent = recent_recording.tape().map_err(|error| error.to_string())?;
            // Older moments are in the run's own recording on disk, which is still being written.
            let is_older = recent.span().is_some_and(|(from, _)| Nanos(at_ns) < recent.since_start(from));
            let file = recent_recording.file().filter(|_| is_older).and_then(|path| Tape::open(path).ok());
            self.tape = Some(file.unwrap_or(recent));
        }
        match &mut self.tape {
            Some(tape) => look(tape, at_ns, &self.notes),
            None => Err("there is no recording yet; try again".to_owned()),
        }
    }
}
