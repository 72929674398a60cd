//! The decision: computes the response and the next word from a word and a request. Pure; covers
//! every transition except those of a transfer.
//!
//! Runs wherever [`super::PageTable`] calls it, and in the models. Bounds: no loop. Source: seed
//! 001 §4.2, in its order: lease, heat, uncommitted work, then one step to TRANSFERRING.
//!
//! ```text
//!            commit                    request granted                 ACK
//!   IDLE ───────────▶ LOCAL_HOT   IDLE ───────────────▶ TRANSFERRING ─────▶ NOT_OWNER ── GRANT ──▶ IDLE or LEASED
//!    ▲ ◀── heat ends ──┘           ▲                         │ no ACK in time    ▲
//!    └──── lease ends, release ──── LEASED                   ▼                   │ ACK
//!    └◀──── CANCEL_ACK, receiver dead before it installed ─ IN_DOUBT ────────────┘
//! ```
//!
//! # Why
//!
//! *A drain instead of a counter of renewals.* The word has no room to count how often heat was
//! renewed, and a count would also limit a page that no other silo requests. Heat is renewed until
//! a request has been refused [`Limits::refusals_max`] times, or is a MIGRATE. That refusal sets
//! the drain in the word; from then on neither heat nor a local lease begins until the page has
//! moved. The requester then waits at most for the heat or lease in progress.
//!
//! *The page at rest first.* Most requests find an owned page without heat, lease or write: its
//! lowest seven bits hold nothing but a drain, so a few comparisons decide it. The rest of the flow
//! is a separate function, and a test checks that both give the same answers.
//!
//! *A request carries the epoch it was made for.* Otherwise a late duplicate would move the page
//! back to a silo that released it long ago.

use crate::page::hint::Hint;
use crate::page::request::{Authority, How, Limits, Request, Response, Signals, WriteBuffer};
use crate::page::word::{Moment, State, Word};

/// Decides `request` for a page whose word is `word`.
#[inline]
pub fn decide(word: Word, request: &Request, signals: Signals, limits: &Limits, now: Moment) -> (Response, Word) {
    match at_rest(word, request, signals, limits, now) {
        Some(next) => (Response::Granted { epoch: next.epoch(), how: How::Moves }, next),
        None => at_length(word, request, signals, limits, now),
    }
}

/// The word with the page granted, if the page is at rest: the same result as [`at_length`].
#[inline(always)]
pub(super) fn at_rest(word: Word, request: &Request, signals: Signals, limits: &Limits, now: Moment) -> Option<Word> {
    let is_free = word.is_at_rest() && request.epoch == word.epoch() && request.from != word.owner();
    let may_move = word.epoch() < limits.epoch_last && signals.write_buffer == WriteBuffer::Drained;
    (is_free && may_move).then(|| word.granted(request.from, request.hint, now.plus(limits.ack_us)))
}

/// The complete decision.
pub fn at_length(word: Word, request: &Request, signals: Signals, limits: &Limits, now: Moment) -> (Response, Word) {
    let word = word.settled(now);
    match word.state() {
        State::Idle | State::LocalHot | State::Leased if request.from == word.owner() => {
            own(word, request, limits, now)
        }
        State::Idle | State::LocalHot | State::Leased => other(word, request, signals, limits, now),
        State::Transferring if is_repeat(word, request) => {
            (Response::Granted { epoch: word.epoch(), how: How::Again }, word)
        }
        State::Transferring => (Response::TryLater, word),
        State::NotOwner => (Response::NotOwner { owner: word.owner(), epoch: word.epoch() }, word),
        State::InDoubt => (Response::InDoubt, word),
    }
}

fn is_repeat(word: Word, request: &Request) -> bool {
    request.from == word.owner() && request.epoch.next() == word.epoch()
}

/// Decides a silo's request for its own page.
fn own(word: Word, request: &Request, limits: &Limits, now: Moment) -> (Response, Word) {
    let here = Response::Granted { epoch: word.epoch(), how: How::Here };
    let lease_us = limits.lease_us(request.hint, request.ttl_us);
    if word.state() == State::Leased {
        (Response::LeaseYours { left_us: word.deadline().left_us(now) }, word)
    } else if lease_us == 0 {
        (here, word)
    } else if word.is_busy() || word.is_draining() {
        (Response::TryLater, word)
    } else {
        (here, word.with_state(State::Leased).with_hint(request.hint).with_deadline(now.plus(lease_us)))
    }
}

/// Decides another silo's request for a page of this silo.
#[inline]
fn other(word: Word, request: &Request, signals: Signals, limits: &Limits, now: Moment) -> (Response, Word) {
    if request.epoch != word.epoch() {
        return (Response::Stale { epoch: word.epoch() }, word);
    }
    if word.epoch() >= limits.epoch_last {
        return (Response::EpochsSpent, word);
    }
    let is_forced = request.authority == Authority::Operator;
    let is_leased = word.state() == State::Leased;
    let refusal = if is_leased && !is_forced {
        Some(Response::LeaseActive { left_us: word.deadline().left_us(now) })
    } else if word.state() == State::LocalHot && !is_forced && request.hint != Hint::Migrate {
        Some(if request.hint == Hint::Lock { Response::TryAgainSoon } else { Response::Busy })
    } else if word.is_busy() || signals.write_buffer == WriteBuffer::Pending {
        Some(Response::TryLater)
    } else {
        None
    };
    match refusal {
        Some(refusal) if is_forced || request.hint == Hint::Migrate || request.refusals >= limits.refusals_max => {
            (refusal, word.with_hint(Hint::Migrate))
        }
        Some(refusal) => (refusal, word),
        None => {
            let how = if is_leased { How::Forced } else { How::Moves };
            let next = word.granted(request.from, request.hint, now.plus(limits.ack_us));
            (Response::Granted { epoch: next.epoch(), how }, next)
        }
    }
}

/// Why a write did not begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteRefused {
    /// Another silo owns the page.
    NotOwner,
    /// The page is in transfer to another silo.
    Transferring,
    /// The page is in doubt: another silo may own it.
    InDoubt,
    /// Another write is in progress.
    Busy,
    /// Other transitions won each of this call's attempts.
    Contended,
}

/// The word with a write in progress.
///
/// # Errors
/// If the silo may not write the page, or is writing it already.
#[inline]
pub fn begin_write(word: Word) -> Result<Word, WriteRefused> {
    match word.state() {
        State::NotOwner => Err(WriteRefused::NotOwner),
        State::Transferring => Err(WriteRefused::Transferring),
        State::InDoubt => Err(WriteRefused::InDoubt),
        State::Idle | State::LocalHot | State::Leased if word.is_busy() => Err(WriteRefused::Busy),
        State::Idle | State::LocalHot | State::Leased => Ok(word.busy()),
    }
}

/// The word after a commit: hot, unless a lease dominates or the page drains.
#[inline]
#[must_use]
pub fn commit(word: Word, limits: &Limits, now: Moment) -> Word {
    let word = word.settled(now).quiet();
    if word.state() == State::Leased || word.is_draining() {
        word
    } else {
        word.with_state(State::LocalHot).with_deadline(now.plus(limits.hot_us))
    }
}

/// The word after a lease was released; unchanged if there is none.
#[must_use]
pub const fn release(word: Word) -> Word {
    match word.state() {
        State::Leased => word.cooled(),
        _ => word,
    }
}
