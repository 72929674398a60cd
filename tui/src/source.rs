//! Where the console's picture comes from, and what may be asked of it.
//!
//! Owns the [`Source`] trait and the plain data that crosses it; called from the console thread only. A call may do
//! file I/O (profiles) but must not wait for the engine. `live` is the engine in this process, `attach` one in another,
//! `replay` a recording.

pub mod attach;
pub mod beside;
pub mod effects;
pub mod live;
pub mod past;
pub mod replay;
#[cfg(test)]
pub mod synthetic;

use crate::model::deeds::Deed;
use past::Past;
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::profile::{self, Change, Profile, Rate};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

/// An engine seen from the console.
pub trait Source {
    /// The engine now; `None` when it cannot be read (the console then shows its last picture and that picture's age).
    fn snapshot(&mut self) -> Option<Snapshot>;
    /// Applies every field of `profile` that can change on a running engine; `lent`: for so long only. The error is one
    /// sentence.
    fn apply(&mut self, name: &str, profile: &Profile, lent: Option<Duration>, why: &str) -> Result<(), String>;
    /// Stops the feed and lets every accepted shot finish. The error is one sentence.
    fn drain(&mut self, why: &str) -> Result<(), String>;
    /// Holds the feed or lets it go. The error is one sentence.
    fn hold(&mut self, _hold: Hold, _why: &str) -> Result<(), String> {
        Err(NOT_RUNNING.to_owned())
    }
    /// Another rate, until a profile says another. The error is one sentence.
    fn set_rate(&mut self, _rate: Rate, _why: &str) -> Result<(), String> {
        Err(NOT_RUNNING.to_owned())
    }
    /// Does something to a silo, a stream, the input. The error is one sentence.
    fn act(&mut self, _deed: &Deed, _why: &str) -> Result<(), String> {
        Err(NOT_RUNNING.to_owned())
    }
    /// Whose engine this is.
    fn bond(&self) -> Bond {
        Bond::Own
    }
    /// What another process has said since the last call to what was asked of it.
    fn news(&mut self) -> Vec<News> {
        Vec::new()
    }
    /// Why no picture will come any more, in one sentence; `None`: pictures come, or the engine has ended in order.
    fn lost(&self) -> Option<String> {
        None
    }
    /// Acknowledges alarm `number`; 0: all that hold. The error is one sentence: what is only shown cannot be answered.
    fn acknowledge(&mut self, _number: u64) -> Result<(), String> {
        Err(NOT_RUNNING.to_owned())
    }
    /// Lets alarm `number` not call for [`SNOOZE`].
    fn snooze(&mut self, _number: u64) -> Result<(), String> {
        Err(NOT_RUNNING.to_owned())
    }
    /// Whether all hot threads have left.
    fn is_finished(&self) -> bool;
    /// The profiles that could be applied, each compared with the one in force; at most [`OFFERS_MAX`] are shown.
    fn offers(&self) -> Vec<Offer>;
    /// The recorded moment nearest to `at_ns` after the engine's start. The error is one sentence.
    fn past(&mut self, at_ns: u64) -> Result<Past, String>;
    /// Keeps a note of the operator. The error is one sentence.
    fn note(&mut self, _text: &str) -> Result<(), String> {
        Err("found a recording, expected a running engine to write a note into; notes are made while it runs"
            .to_owned())
    }
    /// Where a replay begins, nanoseconds after the engine's start; `None`: this is no replay.
    fn replay_from(&self) -> Option<u64> {
        None
    }
}

/// What is only shown cannot be acted on.
const NOT_RUNNING: &str = "what is shown is no running engine of this console";

/// Whether the feed is to be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// What is under way finishes, nothing more is taken.
    Hold,
    /// As before.
    Release,
}

/// Whose engine is shown, and what may be done to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bond {
    /// This process's: leaving ends it.
    Own,
    /// Another process's: leaving leaves it as it is.
    Attached {
        /// The process.
        pid: u32,
        /// Whether it may be acted on.
        access: Access,
    },
}

/// What may be done to another process's engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Look.
    Watch,
    /// Whatever its own console may.
    Act,
}

/// What another process said to something that was asked of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// It was done.
    Done(String),
    /// It was not, and why.
    Refused(String),
}

/// How long a snoozed alarm does not call.
pub const SNOOZE: Duration = Duration::from_secs(600);

/// Most profiles that the console lists.
pub const OFFERS_MAX: usize = 64;

/// A profile that could be applied.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    /// Its name.
    pub name: String,
    /// Where it was read from ("built in", a path).
    pub origin: String,
    /// What it is, or why it cannot be used, in one sentence.
    pub body: Result<OfferBody, String>,
}

/// A profile that can be used.
#[derive(Clone, Debug, PartialEq)]
pub struct OfferBody {
    /// The profile.
    pub profile: Rc<Profile>,
    /// How it differs from the one in force; empty when it does not.
    pub changes: Vec<Change>,
}

/// The profiles of `dir` and those built in, each compared with `current`.
pub fn offers_of(dir: Option<&Path>, current: &Profile) -> Vec<Offer> {
    profile::list(dir)
        .into_iter()
        .take(OFFERS_MAX)
        .map(|entry| match Profile::load(&entry.name, dir) {
            Ok((profile, origin)) => {
                let changes = profile::diff(current, &profile);
                let body = OfferBody { profile: Rc::new(profile), changes };
                Offer { name: entry.name, origin: origin.to_string(), body: Ok(body) }
            }
            Err(error) => Offer { name: entry.name, origin: "refused".to_owned(), body: Err(error.to_string()) },
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]

    use super::{Profile, offers_of};

    #[test]
    fn the_profile_in_force_is_offered_without_changes_and_the_others_with_some() {
        let (lab, _) = Profile::load("lab", None).unwrap();
        let offers = offers_of(None, &lab);
        assert!(offers.len() >= 4);
        for offer in offers {
            let body = offer.body.unwrap();
            assert_eq!(body.changes.is_empty(), offer.name == "lab", "{}", offer.name);
        }
    }
}
