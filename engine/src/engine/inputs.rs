//! Another input, asked for by another process: on its way to whoever holds the engine.
//!
//! Owns the place where such a request waits. The control thread puts it there, the engine's holder takes it, on a cold
//! thread of its own. Bounds: one request waits. Never acts by itself.
//!
//! # Why the holder
//! A model decides what is built before hot threads run: another input is another engine. The one that ends cannot start
//! it, and what there is to be read, opened and told is known to whoever started this one.

use super::actor::Actor;
use super::assemble::check_width;
use super::wire::{Done, InputSpec};
use super::{Input, StartError};
use crate::feed::link;
use crate::feed::place::Place;
use crate::profile::Profile;
use crate::silo::Decoding;
use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// What hears how it went; whether anybody still waits for that.
pub(super) type Reply = Box<dyn FnOnce(Result<Done, String>) -> bool + Send>;

/// Another input that somebody asks for. One that is let go without an answer is refused to them.
pub struct InputWanted {
    /// Where shots are to come from.
    pub spec: InputSpec,
    /// Who asks, and why.
    pub by: Actor,
    reply: Reply,
}

impl InputWanted {
    /// Says that the engine drains for it; whether anybody still waits for it. Nothing is to be done else.
    #[must_use]
    pub fn accept(self, from: &str, to: &str) -> bool {
        (self.reply)(Ok(Done::Input { from: from.to_owned(), to: to.to_owned() }))
    }

    /// Says why not, in one sentence.
    pub fn refuse(self, said: &str) {
        // Whoever has gone meanwhile wants to know nothing.
        let _ = (self.reply)(Err(said.to_owned()));
    }
}

/// Where a request waits. Relaxed: a plain word that stands alone.
#[derive(Debug)]
pub(super) struct InputDesk {
    asked: Sender<InputWanted>,
    waiting: Receiver<InputWanted>,
    /// 1: the holder looks here.
    is_served: AtomicU64,
    /// What the run that follows takes.
    follows: OnceLock<String>,
}

impl Default for InputDesk {
    fn default() -> InputDesk {
        let (asked, waiting) = bounded(1);
        InputDesk { asked, waiting, is_served: AtomicU64::new(0), follows: OnceLock::new() }
    }
}

impl InputDesk {
    /// Puts a request here, or refuses it.
    pub(super) fn ask(&self, spec: InputSpec, by: Actor, reply: Reply) {
        let wanted = InputWanted { spec, by, reply };
        if self.is_served.load(Ordering::Relaxed) == 0 {
            return wanted.refuse(
                "found a process that starts no other run, expected pinwheel run; end this one and start another",
            );
        }
        if let Err(TrySendError::Full(wanted) | TrySendError::Disconnected(wanted)) = self.asked.try_send(wanted) {
            wanted.refuse("found another input asked for before this one, expected none on its way; try again");
        }
    }

    /// Takes the request that waits, in the holder's name.
    pub(super) fn take(&self) -> Option<InputWanted> {
        self.is_served.store(1, Ordering::Relaxed);
        self.waiting.try_recv().ok()
    }

    /// A run on `to` is to follow; the first word stands.
    pub(super) fn follow(&self, to: &str) {
        let _ = self.follows.set(to.to_owned());
    }

    /// What the run that follows takes, if one is to.
    pub(super) fn follows(&self) -> Option<&str> {
        self.follows.get().map(String::as_str)
    }
}

/// Whether an engine of `profile` can take `input`, as far as that can be told without making one. `held`: the live source
/// that the engine has which is to end first.
///
/// # Errors
/// [`StartError`]: its start would be refused.
pub fn check_input(profile: &Profile, input: &Input, held: Option<&Place>) -> Result<(), StartError> {
    let model = input.model();
    check_width(model)?;
    Decoding::new(Arc::clone(model), profile.predecoder, profile.window)?;
    match input {
        Input::Live { place, .. } if held != Some(place) => Ok(link::can_open(place)?),
        Input::Sampler { .. } | Input::Replay { .. } | Input::Stream { .. } | Input::Live { .. } => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{InputDesk, InputSpec, Reply};
    use crate::engine::actor::Actor;
    use crate::engine::wire::Done;
    use crate::engine::{EndedBy, Requests};
    use std::sync::mpsc::{Receiver, channel};

    fn asked(desk: &InputDesk, from: &str) -> Receiver<Result<Done, String>> {
        let (tell, told) = channel();
        let reply: Reply = Box::new(move |done| tell.send(done).is_ok());
        desk.ask(InputSpec { from: from.to_owned(), ..InputSpec::default() }, Actor::this_process(), reply);
        told
    }

    #[test]
    fn a_request_waits_for_the_holder_and_is_refused_where_there_is_none() {
        let desk = InputDesk::default();
        assert!(asked(&desk, "a").try_recv().is_ok_and(|said| said.is_err_and(|said| said.contains("pinwheel run"))));
        assert!(desk.take().is_none());
        let (first, second) = (asked(&desk, "b"), asked(&desk, "c"));
        assert!(second.try_recv().is_ok_and(|said| said.is_err_and(|said| said.contains("try again"))));
        let wanted = desk.take().expect("it waits");
        assert_eq!(wanted.spec.from, "b");
        assert!(wanted.accept("x", "b"));
        assert_eq!(first.try_recv(), Ok(Ok(Done::Input { from: "x".to_owned(), to: "b".to_owned() })));
        let gone = asked(&desk, "d");
        drop(gone);
        assert!(!desk.take().expect("it waits").accept("b", "d"), "nobody waits for it any more");
    }

    #[test]
    fn who_asks_for_the_end_wants_no_run_after_it() {
        let requests = Requests::default();
        requests.inputs.follow("b");
        assert_eq!(requests.follows(), None, "nothing is asked for yet");
        assert!(requests.ask(Requests::INPUT) && requests.follows() == Some("b"));
        assert!(!requests.ask(Requests::INPUT) && requests.follows() == Some("b"));
        assert!(!requests.ask(Requests::DRAINED) && requests.follows().is_none());
        assert!(!requests.ask(Requests::INPUT) && requests.follows().is_none());
        assert_eq!(requests.drain(), Some(EndedBy::Drained));
    }
}
