//! The engine in this process as a [`Source`].
//!
//! Owns the engine's handle while the console runs; called from the console thread only. Never
//! waits for a hot thread: a snapshot is a copy of the board's words, and no command waits for the
//! threads concerned.

use super::past::{Note, Past, look};
use super::{Offer, Reply, Source, offers_of};
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::engine::Command;
use pinwheel_engine::profile::Profile;
use pinwheel_engine::record::RecentRecording;
use pinwheel_engine::record::tape::Tape;
use pinwheel_engine::units::Nanos;
use std::path::PathBuf;
use std::sync::Arc;

/// The console's interface to an engine in its own process.
pub trait Handle {
    /// A copy of the board; `None`: the run has none at the moment.
    fn snapshot(&self) -> Option<Snapshot>;
    /// Executes `command` in the name of the console's user; the error is one sentence.
    fn execute(&mut self, command: &Command, why: &str) -> Result<(), String>;
    /// The profile in force; `None` without a board.
    fn profile(&self) -> Option<Arc<Profile>>;
    /// Replies to commands that take longer.
    fn replies(&mut self) -> Vec<Reply>;
    /// Whether all hot threads have returned.
    fn is_finished(&self) -> bool;
    /// The recording of the last minutes; `None`: no recorder runs.
    fn recent_recording(&self) -> Option<&RecentRecording>;
}

/// A live engine and the directory of its profiles.
pub struct Live<'a, H> {
    engine: &'a mut H,
    profiles: Option<PathBuf>,
    /// The recording read last: the minutes in memory, or the file on disk.
    tape: Option<Tape>,
    notes: Vec<Note>,
    /// Start of the run read last, and its newest moment.
    seen: Option<(u64, u64)>,
}

impl<'a, H: Handle> Live<'a, H> {
    /// Shows `engine`; profiles are listed from `profiles` and from the binary.
    pub fn new(engine: &'a mut H, profiles: Option<PathBuf>) -> Live<'a, H> {
        Live { engine, profiles, tape: None, notes: Vec::new(), seen: None }
    }
}

impl<H: Handle> Source for Live<'_, H> {
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
        self.engine.execute(command, why)?;
        if let Command::Note { text } = command {
            self.notes.extend(self.engine.snapshot().map(|snapshot| (snapshot.at_ns, text.clone())));
        }
        Ok(())
    }

    fn replies(&mut self) -> Vec<Reply> {
        self.engine.replies()
    }

    fn is_finished(&self) -> bool {
        self.engine.is_finished()
    }

    fn offers(&self) -> Vec<Offer> {
        let profile = self.engine.profile();
        profile.map_or_else(Vec::new, |profile| offers_of(self.profiles.as_deref(), &profile))
    }

    fn past(&mut self, at_ns: u64) -> Result<Past, String> {
        let Some(recent_recording) = self.engine.recent_recording().cloned() else {
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
