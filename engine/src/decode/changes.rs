//! Changes of decoders while shots are decoded.
//!
//! Owns what is in force, and the cold ends of two mailboxes for each decode worker: one brings
//! prebuilt matchers, the other brings the worker's old ones back. Cold threads share it; each
//! holds the lock to move a few messages. A worker looks for a message once a call, between two
//! shots, and acknowledges by the epoch on its block of the board. Hot threads neither build nor
//! drop a matcher for a change.
//!
//! ```text
//!  requester: prepare, build (no lock) ─▶ begin ─▶ waiting ──mailbox──▶ worker: swap, acknowledge
//!                                                     ▲                        │
//!                                        step: drop ◀─┴────────mailbox─────────┘ the old ones
//! ```
//!
//! Bounds: for each worker one set under way and one that waits. A newer set replaces the one that
//! waits. A worker that has died keeps what it was given until its silo is rebuilt.
//!
//! # Why an arena for each set
//! Fresh memory from the system has no pages yet: the first shots after a change would each meet
//! page faults. An arena's pages are there, and go as soon as its last block is dropped.

use super::ReadyError;
use super::prepared::{Matchers, Prepared};
use crate::code::Model;
use crate::hot::mailbox::{MailboxReceiver, MailboxSender, mailbox};
use crate::hot::memory::Arena;
use crate::profile::{Profile, Window};
#[expect(clippy::disallowed_types, reason = "cold: shared by the engine's cold threads")]
use std::sync::Mutex;
use std::sync::{Arc, MutexGuard, PoisonError};

/// Why another decoder is refused; the decoders before stay in force.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChangeRefused {
    /// Shots are decoded by windows.
    #[error(
        "this run decodes its shots by windows, which keep their decoder to the end; start it again with another \
         decoder"
    )]
    Windows,
    /// There is no such stream.
    #[error("there is no stream {stream}; name one from 0 to {last}")]
    Stream {
        /// The stream named.
        stream: u32,
        /// The last stream.
        last: u32,
    },
    /// The decoder cannot decode the model.
    #[error(transparent)]
    Ready(#[from] ReadyError),
    /// Another change came first.
    #[error("another change of decoders was made at the same time; try again")]
    Busy,
}

/// Decoders and their matchers, ready to be used.
pub struct Change {
    prepared: Prepared,
    built: Vec<Matchers>,
    /// The epoch that was in force when they were built.
    after: u64,
}

/// One worker as the cold side sees it.
struct Place {
    silo: usize,
    index: usize,
    sender: MailboxSender<Matchers>,
    returns: MailboxReceiver<Matchers>,
    waiting: Option<Matchers>,
    /// It was sent a set, and has not returned the one before.
    is_under_way: bool,
}

struct State {
    epoch: u64,
    prepared: Prepared,
    places: Vec<Place>,
}

/// Changes of decoders; a clone refers to the same run.
#[derive(Clone)]
pub struct DecoderChanges {
    model: Arc<Model>,
    #[expect(clippy::disallowed_types, reason = "cold: shared by the engine's cold threads")]
    state: Arc<Mutex<State>>,
}

/// A decode worker's ends of its mailboxes, with the decoders that it begins with.
pub struct WorkerChanges {
    prepared: Prepared,
    epoch: u64,
    changes: MailboxReceiver<Matchers>,
    returns: MailboxSender<Matchers>,
}

impl DecoderChanges {
    /// `prepared` is in force, for `model`.
    #[must_use]
    pub fn new(model: &Arc<Model>, prepared: Prepared) -> DecoderChanges {
        let state = State { epoch: 1, prepared, places: Vec::new() };
        #[expect(clippy::disallowed_types, reason = "cold: shared by the engine's cold threads")]
        let state = Arc::new(Mutex::new(state));
        DecoderChanges { model: Arc::clone(model), state }
    }

    /// A panic under the lock leaves a change half sent; the next step sends the rest.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The ends of worker `index` of `silo`, which begins with what is in force. They replace those
    /// of a worker that ran there before.
    #[must_use]
    pub fn join(&self, silo: usize, index: usize) -> WorkerChanges {
        let ((sender, changes), (gives, returns)) = (mailbox(1), mailbox(1));
        let mut state = self.lock();
        let place = Place { silo, index, sender, returns, waiting: None, is_under_way: false };
        state.places.retain(|place| (place.silo, place.index) != (silo, index));
        state.places.push(place);
        WorkerChanges { prepared: state.prepared.clone(), epoch: state.epoch, changes, returns: gives }
    }

    /// What is in force.
    #[must_use]
    pub fn in_force(&self) -> Prepared {
        self.lock().prepared.clone()
    }

    /// Epoch of what is in force.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.lock().epoch
    }

    /// Prepares the decoders of `profile` for the running engine, whose streams and windows it has, and
    /// builds the matchers of all workers, on the calling thread. Takes as long as that takes.
    ///
    /// # Errors
    /// [`ChangeRefused`], in one sentence; nothing has changed.
    pub fn prepare(&self, profile: &Profile) -> Result<Change, ChangeRefused> {
        if profile.window != Window::None {
            return Err(ChangeRefused::Windows);
        }
        let last = profile.input.streams - 1;
        if let Some(named) = profile.streams.iter().find(|named| named.stream > last) {
            return Err(ChangeRefused::Stream { stream: named.stream, last });
        }
        let (in_force, after) = {
            let state = self.lock();
            (state.prepared.clone(), state.epoch)
        };
        Ok(Change { after, ..self.build(Prepared::of(&self.model, profile, Some(&in_force))?) })
    }

    /// Builds the matchers of all workers for what was in force before.
    #[must_use]
    pub fn build(&self, prepared: Prepared) -> Change {
        let (after, workers) = {
            let state = self.lock();
            (state.epoch, state.places.len())
        };
        let built = (0..workers).map(|_| matchers(&prepared)).collect();
        Change { prepared, built, after }
    }

    /// Puts a change into force, and returns its epoch: a worker that acknowledges it decodes by the
    /// new decoders only.
    ///
    /// # Errors
    /// [`ChangeRefused::Busy`] if another change came after [`DecoderChanges::prepare`].
    pub fn begin(&self, change: Change) -> Result<u64, ChangeRefused> {
        let Change { prepared, mut built, after } = change;
        let mut state = self.lock();
        if state.epoch != after {
            return Err(ChangeRefused::Busy);
        }
        state.epoch += 1;
        let State { epoch, places, .. } = &mut *state;
        let mut replaced = Vec::with_capacity(places.len());
        for place in places {
            // A silo that was rebuilt meanwhile may have added a worker.
            let mut own = built.pop().unwrap_or_else(|| matchers(&prepared));
            own.epoch = *epoch;
            replaced.push(place.waiting.replace(own));
        }
        state.prepared = prepared;
        let epoch = state.epoch;
        drop(state);
        self.step();
        Ok(epoch)
    }

    /// Sends what waits, and drops what came back. Called by the control thread once a tick.
    pub fn step(&self) {
        let mut state = self.lock();
        let mut back = Vec::new();
        for place in &mut state.places {
            if let Some(old) = place.returns.pop() {
                back.push(old);
                place.is_under_way = false;
            }
            if !place.is_under_way
                && let Some(next) = place.waiting.take()
            {
                // The mailbox is empty, unless its worker is gone: then nobody needs them.
                match place.sender.push(next) {
                    Ok(()) => place.is_under_way = true,
                    Err(unsent) => back.push(unsent),
                }
            }
        }
        drop(state);
        // Their memory is freed here, without the lock.
        drop(back);
    }
}

/// A set of matchers with memory of its own, which is touched here.
fn matchers(prepared: &Prepared) -> Matchers {
    Arena::new().within(|| prepared.matchers(0))
}

impl WorkerChanges {
    /// The matchers that the worker begins with, built for the calling thread.
    pub(super) fn first(&self) -> Matchers {
        self.prepared.matchers(self.epoch)
    }

    /// The decoder of the streams that are not named.
    pub(super) fn main(&self) -> &super::MatcherModel {
        self.prepared.main()
    }

    /// Whether other matchers have come.
    #[inline]
    pub(super) fn is_waiting(&self) -> bool {
        self.changes.is_waiting()
    }

    /// Exchanges `own` for the matchers that have come, if they are visible to this thread already.
    pub(super) fn exchange(&mut self, own: &mut Matchers) {
        let Some(new) = self.changes.pop() else { return };
        let old = std::mem::replace(own, new);
        // There is room: the next set comes after this one was taken out. Without a receiver the run
        // is over.
        let _ = self.returns.push(old);
    }
}
