//! The engine in this process as a [`Source`].
//!
//! Owns the engine's handle while the console runs; called from the console thread only. Never waits for a hot thread:
//! a snapshot is a copy of the board's words, a switch and a drain are requests.

use super::past::{Note, Past, look};
use super::{Hold, News, Offer, SNOOZE, Source, offers_of};
use crate::model::deeds::Deed;
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::profile::{Profile, Rate};
use pinwheel_engine::record::LookBack;
use pinwheel_engine::record::tape::Tape;
use pinwheel_engine::units::Nanos;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What the console needs of an engine in its own process.
pub trait Handle {
    /// Why a profile is refused, in one sentence.
    type Refusal: std::fmt::Display;
    /// A copy of the board; `None`: there is none at this moment.
    fn snapshot(&self) -> Option<Snapshot>;
    /// Applies the live fields of `next`; `lent`: for so long only.
    fn apply(&mut self, name: &str, next: &Profile, lent: Option<Duration>, why: &str) -> Result<(), Self::Refusal>;
    /// The profile in force; `None`: likewise.
    fn profile(&self) -> Option<Arc<Profile>>;
    /// Asks for the drain.
    fn request_drain(&mut self, why: &str);
    /// Acknowledges an alarm; 0: all that hold. The error is one sentence.
    fn acknowledge(&self, number: u64) -> Result<(), String>;
    /// Snoozes an alarm; the error is one sentence.
    fn snooze(&self, number: u64, span: Duration) -> Result<(), String>;
    /// Holds the feed or lets it go; the error is one sentence.
    fn hold(&self, hold: Hold, why: &str) -> Result<(), String>;
    /// Another rate; the error is one sentence.
    fn set_rate(&self, rate: Rate, why: &str) -> Result<(), String>;
    /// Does something to a silo, a stream, the input; the error is one sentence.
    fn act(&mut self, deed: &Deed, why: &str) -> Result<(), String>;
    /// What came of what takes its time.
    fn news(&mut self) -> Vec<News>;
    /// Whether all hot threads have left.
    fn is_finished(&self) -> bool;
    /// What looks back at the last minutes; `None`: no recorder runs.
    fn look_back(&self) -> Option<&LookBack>;
    /// Keeps a note; the error is one sentence.
    fn note(&self, text: &str) -> Result<(), String>;
}

/// A live engine and the directory of its profiles.
pub struct Live<'a, H> {
    engine: &'a mut H,
    profiles: Option<PathBuf>,
    /// What was looked at last: the minutes in memory, or the recording on disk.
    tape: Option<Tape>,
    notes: Vec<Note>,
    /// Start of the run that was seen last, and the moment.
    seen: Option<(u64, u64)>,
}

impl<'a, H: Handle> Live<'a, H> {
    /// Watches `engine`; profiles are listed from `profiles` and from the binary.
    pub fn new(engine: &'a mut H, profiles: Option<PathBuf>) -> Live<'a, H> {
        Live { engine, profiles, tape: None, notes: Vec::new(), seen: None }
    }
}

impl<H: Handle> Source for Live<'_, H> {
    fn snapshot(&mut self) -> Option<Snapshot> {
        let snapshot = self.engine.snapshot()?;
        let seen = (snapshot.engine.started_utc_s, snapshot.at_ns);
        if self.seen.is_some_and(|before| before.0 != seen.0 || before.1 > seen.1) {
            // What was looked at last is the run before.
            (self.tape, self.notes) = (None, Vec::new());
        }
        self.seen = Some(seen);
        Some(snapshot)
    }

    fn apply(&mut self, name: &str, profile: &Profile, lent: Option<Duration>, why: &str) -> Result<(), String> {
        self.engine.apply(name, profile, lent, why).map_err(|refusal| refusal.to_string())
    }

    fn drain(&mut self, why: &str) -> Result<(), String> {
        self.engine.request_drain(why);
        Ok(())
    }

    fn hold(&mut self, hold: Hold, why: &str) -> Result<(), String> {
        self.engine.hold(hold, why)
    }

    fn set_rate(&mut self, rate: Rate, why: &str) -> Result<(), String> {
        self.engine.set_rate(rate, why)
    }

    fn act(&mut self, deed: &Deed, why: &str) -> Result<(), String> {
        self.engine.act(deed, why)
    }

    fn news(&mut self) -> Vec<News> {
        self.engine.news()
    }

    fn acknowledge(&mut self, number: u64) -> Result<(), String> {
        self.engine.acknowledge(number)
    }

    fn snooze(&mut self, number: u64) -> Result<(), String> {
        self.engine.snooze(number, SNOOZE)
    }

    fn is_finished(&self) -> bool {
        self.engine.is_finished()
    }

    fn offers(&self) -> Vec<Offer> {
        let profile = self.engine.profile();
        profile.map_or_else(Vec::new, |profile| offers_of(self.profiles.as_deref(), &profile))
    }

    fn past(&mut self, at_ns: u64) -> Result<Past, String> {
        let Some(look_back) = self.engine.look_back().cloned() else {
            return Err(
                "found no recorder in this run, expected diagnostics: On; set it in the profile and start again"
                    .to_owned(),
            );
        };
        let holds = |tape: &Tape| {
            let span = tape.span().map(|(from, to)| (tape.since_start(from), tape.since_start(to)));
            span.is_some_and(|(from, to)| (from..=to).contains(&Nanos(at_ns)))
        };
        if !self.tape.as_ref().is_some_and(holds) {
            let recent = look_back.tape().map_err(|error| error.to_string())?;
            // Beyond the minutes in memory there is the run's own recording, still being written.
            let is_older = recent.span().is_some_and(|(from, _)| Nanos(at_ns) < recent.since_start(from));
            let file = look_back.file().filter(|_| is_older).and_then(|path| Tape::open(path).ok());
            self.tape = Some(file.unwrap_or(recent));
        }
        match &mut self.tape {
            Some(tape) => look(tape, at_ns, &self.notes),
            None => Err("found no recording, expected one; try again".to_owned()),
        }
    }

    fn note(&mut self, text: &str) -> Result<(), String> {
        self.engine.note(text)?;
        self.notes.extend(self.engine.snapshot().map(|snapshot| (snapshot.at_ns, text.to_owned())));
        Ok(())
    }
}
