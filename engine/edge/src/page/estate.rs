//! What becomes of a dead silo's pages: the word's step at its one heir. Pure.
//!
//! Runs by way of [`super::PageTable::inherit`], and in the models. Bounds: no loop. The caller vouches that the silo is
//! fenced: its threads are joined, or its root handler has published that it died, so that `last` is its last word.
//!
//! # Why
//!
//! *One heir.* Two silos that adopt what they find ownerless would both own it. Whoever fences a silo appoints one.
//!
//! *A grant of the dead stays a grant.* The dead may have sent a page that its receiver has installed, or will. So its
//! heir takes over the doubt and nothing else: it asks the receiver, and owns the page when the receiver has fenced it.

use crate::page::request::Limits;
use crate::page::transfer::{bereaved, caught_up};
use crate::page::word::{Epoch, Moment, Silo, State, Word};

/// What an heir got of one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Bequest {
    /// Nothing: the page was not the dead silo's, or is past.
    Nothing,
    /// The heir's own page, granted to the dead and never installed there: the heir's own bytes hold.
    Returned,
    /// The page, with the dead silo's bytes.
    Owned {
        /// Whether a write was in progress: bytes as they were, to be restored or answered with an error.
        is_torn: bool,
    },
    /// A grant of the dead, with the bytes that it sent: the page is the heir's if that silo fences the grant.
    Doubt {
        /// Who may have it.
        receiver: Silo,
        /// In which epoch.
        epoch: Epoch,
    },
}

impl Bequest {
    /// Whether the dead silo's bytes belong in place before the word says so.
    #[must_use]
    pub const fn has_bytes(self) -> bool {
        matches!(self, Bequest::Owned { .. } | Bequest::Doubt { .. })
    }
}

/// Silo `dead` is fenced with `last` as its own word of this page; silo `me` is its heir.
pub fn inherited(word: Word, me: Silo, dead: Silo, last: Word, limits: &Limits, now: Moment) -> (Bequest, Word) {
    let word = match bereaved(word, me, dead, last) {
        Some(mine) if mine.is_writable() => return (Bequest::Returned, mine),
        Some(theirs) => theirs,
        None => caught_up(word, last.epoch()),
    };
    if word.state() != State::NotOwner || word.epoch() > last.epoch() {
        return (Bequest::Nothing, word);
    }
    let epoch = last.epoch();
    if last.is_writable() {
        (Bequest::Owned { is_torn: last.is_busy() }, Word::owned(me, epoch.next()))
    } else if !last.awaits() {
        (Bequest::Nothing, word)
    } else if last.owner() == me {
        // Granted to the heir and not installed: the next epoch makes the grant, should it still come, an old one.
        (Bequest::Owned { is_torn: false }, Word::owned(me, epoch.next()))
    } else if word.epoch() == epoch {
        (Bequest::Nothing, word)
    } else {
        let doubt = Word::elsewhere(last.owner(), epoch).with_state(State::InDoubt).exchanging();
        (Bequest::Doubt { receiver: last.owner(), epoch }, doubt.with_deadline(now.plus(limits.resend_us)))
    }
}
