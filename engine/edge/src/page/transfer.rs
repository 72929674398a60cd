//! The word's steps of a transfer, at the giving and at the receiving silo. Pure.
//!
//! Runs on the arbiter's thread by way of [`super::PageTable`], and in the models. Bounds: no loop. Each step takes the
//! epoch of the message that caused it; a message of another epoch changes nothing, so duplicates, losses and any order
//! are harmless. Source: seed 001 §4.2 and §6, with the epochs and CANCEL of the design.
//!
//! # Why
//!
//! *One number says what was installed and what was fenced.* An epoch is granted once, by one silo to one silo, and the
//! next one exists only when that grant is over: installed, or cancelled and reclaimed. So whoever meets a grant or a
//! CANCEL older than the newest epoch it knows may acknowledge it: either it did install it, or its granter no longer
//! listens. Only the newest epoch can be either, and the fence mark tells which.
//!
//! *A newer grant ends an older wait.* A silo that awaits the acknowledgement of epoch e and is granted or refused a later
//! one knows that e was installed: nothing else lets later epochs be.

use crate::page::request::{Hint, Limits};
use crate::page::word::{Epoch, Moment, Silo, State, Word};

/// The part of a GRANT that the word takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Grant {
    /// Epoch of the ownership.
    pub epoch: Epoch,
    /// What it was asked for.
    pub hint: Hint,
    /// Lease of the new owner, counted from the installation by its own clock.
    pub ttl_us: u32,
}

/// What a receiver does with a GRANT or a CANCEL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Receipt {
    /// Installed now: acknowledge. The bytes must be in place before the word says so.
    Installed,
    /// Installed before: acknowledge, the first acknowledgement may be lost.
    Again,
    /// Fenced: a grant of this epoch will not be installed.
    Fenced,
    /// Says nothing: refused for its fence, or of no meaning here.
    Dropped,
}

/// A silo that waits for the end of an older transfer, and hears of `epoch`, knows that it has ended.
pub(super) const fn caught_up(word: Word, epoch: Epoch) -> Word {
    if word.state().is_exchanging() && epoch.number() > word.epoch().number() {
        Word::elsewhere(word.owner(), word.epoch())
    } else {
        word
    }
}

/// Whether `epoch` is over at this silo, installed or of no concern to its granter.
#[inline(always)]
const fn is_past(word: Word, epoch: Epoch) -> bool {
    let newest = word.epoch().number();
    epoch.number() < newest || epoch.number() == newest && word.is_writable()
}

/// A GRANT arrives at silo `me`.
pub fn install(word: Word, me: Silo, grant: &Grant, limits: &Limits, now: Moment) -> (Receipt, Word) {
    let word = caught_up(word, grant.epoch);
    if is_past(word, grant.epoch) {
        return (Receipt::Again, word);
    }
    if word.state() != State::NotOwner || grant.epoch == word.epoch() {
        return (Receipt::Dropped, word);
    }
    let owned = Word::owned(me, grant.epoch);
    let next = match limits.lease_us(grant.hint, grant.ttl_us) {
        0 => owned,
        lease_us => owned.with_state(State::Leased).with_hint(grant.hint).with_deadline(now.plus(lease_us)),
    };
    (Receipt::Installed, next)
}

/// A CANCEL of `epoch` arrives from silo `from`.
pub fn cancel(word: Word, from: Silo, epoch: Epoch) -> (Receipt, Word) {
    let word = caught_up(word, epoch);
    if is_past(word, epoch) {
        return (Receipt::Again, word);
    }
    match word.state() {
        State::NotOwner if epoch > word.epoch() => (Receipt::Fenced, Word::elsewhere(from, epoch).exchanging()),
        State::NotOwner if word.is_fenced() => (Receipt::Fenced, word),
        _ => (Receipt::Dropped, word),
    }
}

/// An ACK of `epoch` arrives from silo `from`: the page is there. `None` if nothing waits for it.
#[must_use]
pub fn acknowledged(word: Word, from: Silo, epoch: Epoch) -> Option<Word> {
    let is_awaited = word.awaits() && word.owner() == from && word.epoch() == epoch;
    is_awaited.then(|| Word::elsewhere(from, epoch))
}

/// A CANCEL_ACK of `epoch` arrives from silo `from`: it is fenced, the page stays with silo `me`. `None` if nothing
/// waits for it.
#[must_use]
pub fn reclaimed(word: Word, me: Silo, from: Silo, epoch: Epoch) -> Option<Word> {
    let is_awaited = word.state() == State::InDoubt && word.owner() == from && word.epoch() == epoch;
    is_awaited.then(|| Word::owned(me, epoch))
}

/// The receiver is dead and its thread is joined, so that `last`, its own word of this page, is its last: the page is
/// with silo `me` again if the receiver never installed it. `None` if nothing waits for that receiver.
#[inline]
#[must_use]
pub fn bereaved(word: Word, me: Silo, receiver: Silo, last: Word) -> Option<Word> {
    if !word.awaits() || word.owner() != receiver {
        return None;
    }
    let epoch = word.epoch();
    Some(if is_past(last, epoch) { Word::elsewhere(receiver, epoch) } else { Word::owned(me, epoch) })
}

/// Another silo says that `owner` has the page in `epoch`. Older news, and news to a silo that is concerned itself, change
/// nothing. Newer news may replace a fence: whatever was fenced is past.
#[must_use]
pub fn learned(word: Word, owner: Silo, epoch: Epoch) -> Word {
    let is_news = word.state() == State::NotOwner && epoch > word.epoch();
    if is_news { Word::elsewhere(owner, epoch) } else { word }
}

/// What a look at a page's deadline found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Due {
    /// Nothing.
    Nothing,
    /// Heat or a lease has ended.
    Cooled,
    /// A transfer is in doubt: send CANCEL of this epoch to that silo.
    Cancel(Silo, Epoch),
}

/// A look at the deadline of `word`: by the wheel, and by the sweep that keeps deadlines within half a wrap.
pub fn due(word: Word, limits: &Limits, now: Moment) -> (Due, Word) {
    match word.state() {
        State::Transferring | State::InDoubt if word.deadline().has_passed(now) => (
            Due::Cancel(word.owner(), word.epoch()),
            word.with_state(State::InDoubt).with_deadline(now.plus(limits.resend_us)),
        ),
        State::LocalHot | State::Leased if word.deadline().has_passed(now) => (Due::Cooled, word.settled(now)),
        _ => (Due::Nothing, word),
    }
}
