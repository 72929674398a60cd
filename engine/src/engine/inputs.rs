//! Requests for another input, passed to the owner of the engine.
//!
//! Owns the queue of such a request. The cold thread that executes the command enqueues it; the
//! engine's owner takes it, on a cold thread of its own. Bounds: one request waits. Never acts by
//! itself.
//!
//! # Why the owner starts the next run
//! The model determines the structures that hot threads run on, so another input needs another
//! engine. The ending engine cannot start it; only the program that started this engine knows which
//! files to open and what to report.

use super::actor::Actor;
use super::assemble::check_fit;
use super::command::InputSpec;
use super::reply::Done;
use super::{Input, StartError};
use crate::feed::address::SourceAddress;
use crate::feed::link;
use crate::profile::Profile;
use crate::silo::Decoding;
use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use std::path::Path;
use std::sync::{Arc, OnceLock, mpsc};

/// A request for another input. Dropping it without a reply refuses it.
pub struct InputWanted {
    /// The requested source of shots.
    pub spec: InputSpec,
    /// The requester, with the reason.
    pub by: Actor,
    reply: mpsc::SyncSender<Result<Done, String>>,
}

impl InputWanted {
    /// Accepts: the engine drains for this input. `false`: the requester no longer waits, and
    /// nothing must be done.
    pub fn accept(self, from: &str, to: &str) -> bool {
        self.reply.try_send(Ok(Done::Input { from: from.to_owned(), to: to.to_owned() })).is_ok()
    }

    /// Refuses, for the reason in this sentence.
    pub fn refuse(self, said: &str) {
        // A requester that has gone needs no reply.
        let _ = self.reply.try_send(Err(said.to_owned()));
    }
}

/// The queue of one request.
#[derive(Debug)]
pub(super) struct InputQueue {
    asked: Sender<InputWanted>,
    waiting: Receiver<InputWanted>,
    /// The owner takes requests here. Known from the start: another process finds the engine before
    /// its owner has looked for a request.
    is_served: bool,
    /// Name of the input of the run that follows.
    follows: OnceLock<String>,
}

impl InputQueue {
    pub(super) fn new(is_served: bool) -> InputQueue {
        let (asked, waiting) = bounded(1);
        InputQueue { asked, waiting, is_served, follows: OnceLock::new() }
    }

    /// Enqueues a request, or refuses it; the result arrives at the returned receiver.
    pub(super) fn ask(&self, spec: InputSpec, by: Actor) -> mpsc::Receiver<Result<Done, String>> {
        let (reply, answer) = mpsc::sync_channel(1);
        let wanted = InputWanted { spec, by, reply };
        if !self.is_served {
            wanted
                .refuse("this process cannot start another run, only pinwheel run can; end this one and start another");
        } else if let Err(TrySendError::Full(wanted) | TrySendError::Disconnected(wanted)) = self.asked.try_send(wanted)
        {
            wanted.refuse("an input change is already in progress; wait for it to finish, then try again");
        }
        answer
    }

    /// Takes the waiting request, for the owner.
    pub(super) fn take(&self) -> Option<InputWanted> {
        self.waiting.try_recv().ok()
    }

    /// Sets the input `to` of the run that follows; the first call counts.
    pub(super) fn follow(&self, to: &str) {
        let _ = self.follows.set(to.to_owned());
    }

    /// Name of the input of the run that follows, if one follows.
    pub(super) fn follows(&self) -> Option<&str> {
        self.follows.get().map(String::as_str)
    }
}

/// Checks whether an engine of `profile` can take `input`, as far as possible without building one.
/// `held`: the live source of the present engine, which ends first.
///
/// # Errors
/// [`StartError`]: the start would be refused.
pub fn check_input(
    profile: &Profile,
    input: &Input,
    held: Option<&SourceAddress>,
    boards: &Path,
) -> Result<(), StartError> {
    let model = input.model();
    check_fit(profile, input)?;
    Decoding::of(Arc::clone(model), profile)?;
    match input {
        Input::Live { place, .. } if held != Some(place) => Ok(link::can_open(place, boards)?),
        Input::Sampler { .. } | Input::Replay { .. } | Input::Stream { .. } | Input::Live { .. } => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Done, Input, InputQueue, InputSpec, Profile, check_fit};
    use crate::code::{Layout, Model, ShotSet};
    use crate::engine::actor::Actor;
    use crate::engine::{EndedBy, Requests};
    use std::sync::Arc;
    use std::sync::mpsc::Receiver;

    fn asked(queue: &InputQueue, from: &str) -> Receiver<Result<Done, String>> {
        queue.ask(InputSpec { from: from.to_owned(), ..InputSpec::default() }, Actor::this_process(""))
    }

    #[test]
    fn a_request_waits_for_the_owner_and_is_refused_without_one() {
        let unserved = InputQueue::new(false);
        let refused = asked(&unserved, "a").try_recv();
        assert!(refused.is_ok_and(|said| said.is_err_and(|said| said.contains("pinwheel run"))));
        assert!(unserved.take().is_none());
        let queue = InputQueue::new(true);
        let (first, second) = (asked(&queue, "b"), asked(&queue, "c"));
        assert!(second.try_recv().is_ok_and(|said| said.is_err_and(|said| said.contains("try again"))));
        let wanted = queue.take().expect("it waits");
        assert_eq!(wanted.spec.from, "b");
        assert!(wanted.accept("x", "b"));
        assert_eq!(first.try_recv(), Ok(Ok(Done::Input { from: "x".to_owned(), to: "b".to_owned() })));
        let gone = asked(&queue, "d");
        drop(gone);
        assert!(!queue.take().expect("it waits").accept("b", "d"), "its requester has gone");
    }

    #[test]
    fn a_requested_end_cancels_the_following_run() {
        let requests = Requests::new(true);
        requests.inputs.follow("b");
        assert_eq!(requests.follows(), None, "no request yet");
        assert!(requests.ask(Requests::INPUT) && requests.follows() == Some("b"));
        assert!(!requests.ask(Requests::INPUT) && requests.follows() == Some("b"));
        assert!(!requests.ask(Requests::DRAINED) && requests.follows().is_none());
        assert!(!requests.ask(Requests::INPUT) && requests.follows().is_none());
        assert_eq!(requests.drain(), Some(EndedBy::Drained));
    }

    /// A replay of `bits` and `flips` by a model of three detectors and one observable.
    fn refused(bits: ShotSet, flips: Option<ShotSet>) -> Option<String> {
        let model = Arc::new(Model::parse(b"error(0.1) D0 D2 L0\n").unwrap());
        let (shots, observables) = (Arc::new(bits), flips.map(Arc::new));
        let input = Input::Replay { model, name: "a.b8".to_owned(), shots, observables };
        let (profile, _) = Profile::load("lab", None).unwrap();
        check_fit(&profile, &input).err().map(|error| error.to_string())
    }

    #[test]
    fn a_profile_with_a_value_outside_its_range_is_refused() {
        let (mut profile, _) = Profile::load("lab", None).unwrap();
        profile.slots = 63;
        let model = Arc::new(Model::parse(b"error(0.1) D0 L0\n").unwrap());
        let input = Input::Sampler { model, name: "a".to_owned(), seed: 1 };
        let refused = check_fit(&profile, &input).err().map(|error| error.to_string());
        assert!(refused.as_ref().is_some_and(|said| said.starts_with("profile: slots: found 63")), "{refused:?}");
    }

    #[test]
    fn shots_in_memory_are_of_their_model() {
        let bits = |detectors, shots| ShotSet::zeros(Layout::detectors(detectors), shots);
        let flips = |observables, shots| Some(ShotSet::zeros(Layout::observables(observables), shots));
        assert_eq!(refused(bits(3, 0), None), None);
        assert_eq!(refused(bits(3, 2), flips(1, 2)), None);
        let mut other = bits(3, 2);
        other.words = vec![0b111, 0b1000];
        for (found, expected) in [
            (refused(bits(67, 2), None), "a.b8: found 67 bits in a shot, expected 3"),
            (refused(other, None), "a bit set in shot 1"),
            (refused(bits(3, 2), flips(65, 2)), "found 65 true observables of a shot, expected 1"),
            (refused(bits(3, 2), flips(1, 1)), "found 1 shots with true observables, expected 2"),
        ] {
            assert!(found.as_ref().is_some_and(|said| said.contains(expected)), "{found:?}");
        }
    }
}
