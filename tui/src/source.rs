//! The source of the console's pictures, and its commands.
//!
//! Owns the [`Source`] trait and its plain data; called from the console thread only. A call may do
//! file I/O (profiles) but must not wait for the engine. `attach` is an engine in another process,
//! `other_host` one of another machine, `replay` a recording; `pinwheel run` has the engine in its
//! own process.

pub mod attach;
pub mod lookup;
pub mod data;
mod chart;
mod effects;
pub mod other_host;
pub mod past;
pub mod replay;

pub use data::{Access, Offer, OfferBody, Ownership, Reply};

use past::Past;
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::engine::Command;
use pinwheel_engine::profile::{self, Profile};
use std::path::Path;
use std::rc::Rc;

/// An engine as the console uses it.
pub trait Source {
    /// The engine's current state; `None` if it cannot be read (the console then shows the last
    /// picture and its age).
    fn snapshot(&mut self) -> Option<Snapshot>;
    /// Has the engine execute `command`, with the reason `why`. The error is one sentence.
    fn execute(&mut self, command: &Command, why: &str) -> Result<(), String>;
    /// Whether this process or another owns the engine, and the console's rights.
    fn ownership(&self) -> Ownership {
        Ownership::Own
    }
    /// Replies of another process since the last call.
    fn replies(&mut self) -> Vec<Reply> {
        Vec::new()
    }
    /// Why no further picture will arrive, in one sentence; `None`: pictures arrive, or the engine
    /// has ended in order.
    fn lost(&self) -> Option<String> {
        None
    }
    /// Whether all hot threads have returned.
    fn is_finished(&self) -> bool;
    /// The profiles on offer, each compared with the profile in force; at most [`OFFERS_MAX`] are
    /// shown.
    fn offers(&self) -> Vec<Offer> {
        Vec::new()
    }
    /// The newest recorded moment at or before `at_ns` after the engine's start; the first one, if
    /// all are later. The error is one sentence.
    fn past(&mut self, at_ns: u64) -> Result<Past, String>;
    /// The same; where that moment is not after `shown_ns`, the next one.
    fn past_after(&mut self, shown_ns: u64, at_ns: u64) -> Result<Past, String> {
        past::after(shown_ns, at_ns, |at_ns| self.past(at_ns))
    }
    /// First moment of a replay, nanoseconds after the engine's start; `None`: not a replay.
    fn replay_from(&self) -> Option<u64> {
        None
    }
}

/// Most profiles that the console lists.
pub const OFFERS_MAX: usize = 64;

/// The profiles of `dir` and those built in, each compared with `current`.
pub fn offers_of(dir: Option<&Path>, current: &Profile) -> Vec<Offer> {
    let in_force = Rc::new(current.clone());
    profile::names(dir)
        .into_iter()
        .take(OFFERS_MAX)
        .map(|name| match Profile::load(&name, dir) {
            Ok((profile, origin)) => {
                let changes = profile::diff(current, &profile);
                let body = OfferBody { profile: Rc::new(profile), in_force: Rc::clone(&in_force), changes };
                Offer { name, origin: origin.to_string(), body: Ok(body) }
            }
            Err(error) => Offer { name, origin: "refused".to_owned(), body: Err(error.to_string()) },
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
