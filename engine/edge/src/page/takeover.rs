//! Takeover of a dead silo's pages: the transition of the word at the only successor. Pure.
//!
//! Called by [`super::PageTable::take_over`], and in the models. Bounds: no loop. The caller
//! guarantees that the silo is fenced: its threads are joined, or its root handler has published
//! its death, so `last` is the silo's final word.
//!
//! # Why
//!
//! *One successor.* If two silos took over the same pages, both would own them. The silo's
//! supervisor appoints one.
//!
//! *A dead silo's grant stays a grant.* The dead silo may have sent a page that its receiver has
//! installed, or will install. So the successor takes over the transfer in doubt: it asks the
//! receiver, and owns the page once the receiver has fenced it.

use crate::page::request::Limits;
use crate::page::transfer::{caught_up, receiver_died};
use crate::page::word::{Epoch, Moment, Silo, State, Word};

/// The result of one page's takeover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Takeover {
    /// No change: the page was not the dead silo's, or its word is outdated.
    Nothing,
    /// The successor had granted its own page to the dead silo, which never installed it: the
    /// successor's bytes are valid.
    Returned,
    /// The page, with the dead silo's bytes.
    Owned {
        /// Whether a write was in progress: the bytes may be incomplete, to be restored or answered
        /// with an error.
        is_torn: bool,
    },
    /// A grant of the dead silo, with the bytes that it sent: the page becomes the successor's if
    /// the receiver fences the grant.
    Doubt {
        /// The silo that may have the page.
        receiver: Silo,
        /// Epoch of the grant.
        epoch: Epoch,
    },
}

impl Takeover {
    /// Whether the dead silo's bytes must be installed before the word changes.
    #[must_use]
    pub const fn has_bytes(self) -> bool {
        matches!(self, Takeover::Owned { .. } | Takeover::Doubt { .. })
    }
}

/// Takes a page over: silo `dead` is fenced, `last` is its own word of the page, and silo `me` is
/// its successor.
pub fn taken_over(word: Word, me: Silo, dead: Silo, last: Word, limits: &Limits, now: Moment) -> (Takeover, Word) {
    let word = match receiver_died(word, me, dead, last) {
        Some(mine) if mine.is_writable() => return (Takeover::Returned, mine),
        Some(theirs) => theirs,
        None => caught_up(word, last.epoch()),
    };
    if word.state() != State::NotOwner || word.epoch() > last.epoch() {
        return (Takeover::Nothing, word);
    }
    let epoch = last.epoch();
    if last.is_writable() {
        (Takeover::Owned { is_torn: last.is_busy() }, Word::owned(me, epoch.next()))
    } else if !last.awaits() {
        (Takeover::Nothing, word)
    } else if last.owner() == me {
        // Granted to the successor and not installed: the next epoch makes the grant outdated,
        // should it still arrive.
        (Takeover::Owned { is_torn: false }, Word::owned(me, epoch.next()))
    } else if word.epoch() == epoch {
        (Takeover::Nothing, word)
    } else {
        let doubt = Word::elsewhere(last.owner(), epoch).with_state(State::InDoubt).exchanging();
        (Takeover::Doubt { receiver: last.owner(), epoch }, doubt.with_deadline(now.plus(limits.resend_us)))
    }
}
