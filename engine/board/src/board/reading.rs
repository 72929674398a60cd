//! Helpers for readers of a board: the moment of reading, and words that are not plain counts.
//!
//! Pure arithmetic over one word each.

use super::get;
use crate::clock::Clock;
use crate::units::Ticks;
use std::sync::atomic::AtomicU64;

/// The moment at which a board is read, by the engine's clock.
pub(in crate::board) struct Now<'a> {
    clock: &'a Clock,
    ticks: Ticks,
}

impl<'a> Now<'a> {
    pub(in crate::board) fn by(clock: &'a Clock) -> Now<'a> {
        Now { clock, ticks: clock.ticks() }
    }

    /// This moment, nanoseconds since start.
    pub(in crate::board) fn ns(&self) -> u64 {
        self.start_ns(self.ticks)
    }

    /// From the start to `ticks`, nanoseconds.
    pub(in crate::board) fn start_ns(&self, ticks: Ticks) -> u64 {
        self.clock.since_start(ticks).0
    }

    /// Nanoseconds since the tick in `word`.
    pub(in crate::board) fn age_ns(&self, word: &AtomicU64) -> u64 {
        self.since_ns(get(word))
    }

    /// Nanoseconds since the tick in `word`; `None` if it was never written.
    pub(in crate::board) fn age_if_any(&self, word: &AtomicU64) -> Option<u64> {
        Some(get(word)).filter(|ticks| *ticks != 0).map(|ticks| self.since_ns(ticks))
    }

    /// Nanoseconds since a tick.
    pub(in crate::board) fn since_ns(&self, ticks: u64) -> u64 {
        self.span_ns(self.ticks.since(Ticks(ticks)).0)
    }

    /// Nanoseconds until the tick in `word`.
    pub(in crate::board) fn left_ns(&self, word: &AtomicU64) -> u64 {
        self.span_ns(Ticks(get(word)).since(self.ticks).0)
    }

    /// The duration of `ticks` in nanoseconds.
    pub(in crate::board) fn span_ns(&self, ticks: u64) -> u64 {
        self.clock.rate().nanos(Ticks(ticks)).0
    }

    /// A tick in nanoseconds since start; 0 for a word that was never written.
    pub(in crate::board) fn at_ns(&self, ticks: u64) -> u64 {
        if ticks == 0 { 0 } else { self.start_ns(Ticks(ticks)).max(1) }
    }
}

/// The sum of counters, or the largest number: a file that another program wrote may have any counters.
pub(in crate::board) fn sum(counters: impl IntoIterator<Item = u64>) -> u64 {
    counters.into_iter().fold(0, u64::saturating_add)
}

pub(in crate::board) fn number(word: &AtomicU64) -> u32 {
    get(word) as u32
}

pub(in crate::board) fn flag(word: &AtomicU64) -> bool {
    get(word) != 0
}

/// A fraction, stored as the bits of an `f64`.
pub(in crate::board) fn fraction(word: &AtomicU64) -> f64 {
    f64::from_bits(get(word))
}

/// A number that is stored plus one; 0 stands for none.
pub(in crate::board) fn one_less(word: &AtomicU64) -> Option<u32> {
    get(word).checked_sub(1).map(|number| number as u32)
}

/// A number of which 0 stands for none.
pub(in crate::board) fn if_any(word: &AtomicU64) -> Option<u64> {
    Some(get(word)).filter(|value| *value != 0)
}
