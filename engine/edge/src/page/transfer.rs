//! The word's transitions in a transfer, at the granting and at the receiving silo. Pure.
//!
//! Called on the arbiter's thread by [`super::PageTable`], and in the models. Bounds: no loop. Each
//! step takes the epoch of the message that caused it; a message of another epoch changes nothing,
//! so duplicates, losses and reordering are harmless. Source: seed 001 §4.2 and §6, with the epochs
//! and CANCEL of the design.
//!
//! # Why
//!
//! *One number identifies both installed and fenced grants.* One silo grants an epoch once, to one
//! silo, and the next epoch exists only when that grant has ended: installed, or cancelled and
//! reclaimed. So a silo may acknowledge any grant or CANCEL older than the newest epoch it knows:
//! either it did install it, or the granter no longer waits. Only the newest epoch can be either,
//! and the fence mark distinguishes them.
//!
//! *A newer grant ends an older wait.* If a silo awaits the acknowledgement of epoch e and is
//! granted or refused a later one, then e was installed: otherwise no later epoch could exist.

use crate::page::hint::Hint;
use crate::page::request::Limits;
use crate::page::word::{Epoch, Moment, Silo, State, Word};

/// The fields of a GRANT that enter the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Grant {
    /// Epoch of the ownership.
    pub epoch: Epoch,
    /// Purpose of the request.
    pub hint: Hint,
    /// Lease of the new owner in microseconds, counted from the installation by its own clock.
    pub ttl_us: u32,
}

/// A receiver's reaction to a GRANT or a CANCEL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Receipt {
    /// Installed now: acknowledge. The bytes must be installed before the word changes.
    Installed,
    /// Installed before: acknowledge again, because the first acknowledgement may be lost.
    Again,
    /// Fenced: no grant of this epoch will be installed.
    Fenced,
    /// No reply: refused because of its fence, or not applicable here.
    Dropped,
}

/// A silo that awaits the end of an older transfer and receives a message of `epoch` concludes that
/// the transfer has ended.
pub(super) const fn caught_up(word: Word, epoch: Epoch) -> Word {
    if word.state().is_exchanging() && epoch.number() > word.epoch().number() {
        Word::elsewhere(word.owner(), word.epoch())
    } else {
        word
    }
}

/// Whether `epoch` has ended at this silo: installed, or no longer awaited by its granter.
#[inline(always)]
const fn is_past(word: Word, epoch: Epoch) -> bool {
    let newest = word.epoch().number();
    epoch.number() < newest || epoch.number() == newest && word.is_writable()
}

/// Handles a GRANT at silo `me`.
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

/// Handles a CANCEL of `epoch` from silo `from`.
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

/// Handles an ACK of `epoch` from silo `from`: the page has arrived there. `None` if no transfer
/// awaits it.
#[must_use]
pub fn acknowledged(word: Word, from: Silo, epoch: Epoch) -> Option<Word> {
    let is_awaited = word.awaits() && word.owner() == from && word.epoch() == epoch;
    is_awaited.then(|| Word::elsewhere(from, epoch))
}

/// Handles a CANCEL_ACK of `epoch` from silo `from`: the grant is fenced, and the page stays with
/// silo `me`. `None` if no transfer awaits it.
#[must_use]
pub fn reclaimed(word: Word, me: Silo, from: Silo, epoch: Epoch) -> Option<Word> {
    let is_awaited = word.state() == State::InDoubt && word.owner() == from && word.epoch() == epoch;
    is_awaited.then(|| Word::owned(me, epoch))
}

/// The receiver is dead and its thread is joined, so `last`, its own word of this page, is final:
/// the page returns to silo `me` if the receiver never installed it. `None` if no transfer awaits
/// that receiver.
#[inline]
#[must_use]
pub fn receiver_died(word: Word, me: Silo, receiver: Silo, last: Word) -> Option<Word> {
    if !word.awaits() || word.owner() != receiver {
        return None;
    }
    let epoch = word.epoch();
    Some(if is_past(last, epoch) { Word::elsewhere(receiver, epoch) } else { Word::owned(me, epoch) })
}

/// Records another silo's report that `owner` has the page in `epoch`. An older epoch changes
/// nothing, nor does a report to a silo that owns or transfers the page. A newer epoch may replace
/// a fence, because the fenced epoch has ended.
#[must_use]
pub fn learned(word: Word, owner: Silo, epoch: Epoch) -> Word {
    let is_news = word.state() == State::NotOwner && epoch > word.epoch();
    if is_news { Word::elsewhere(owner, epoch) } else { word }
}

/// Result of a deadline check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Due {
    /// The deadline has not passed, or the state has none.
    Nothing,
    /// Heat or a lease has expired.
    Cooled,
    /// A transfer is in doubt: send CANCEL of this epoch to that silo.
    Cancel(Silo, Epoch),
}

/// Checks the deadline of `word`: called by the wheel, and by the sweep that keeps deadlines within
/// half a wrap.
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
