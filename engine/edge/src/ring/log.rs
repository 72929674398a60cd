//! Log of hot threads: fixed records, rendered to text elsewhere.
//!
//! Owns an [`mpsc`] ring of records and a count of dropped ones for each lane. Writers are hot
//! threads, one each; the reader is a cold one. Bounds: writers and capacity as given at
//! construction. Never waits: a record that finds no room is dropped and counted. Never formats,
//! never reads a clock, never allocates after `channel`. Its edges are those of [`mpsc`]; the
//! counts publish nothing but themselves (Relaxed).
//!
//! Order is each writer's own; records of different writers are put in order by their ticks.

use super::mpsc;
use crate::sync::{AtomicU64, Ordering, Padded};
use crate::units::Ticks;
use std::sync::Arc;

/// Numbers of one record, at most.
pub const NUMBERS_MAX: usize = 4;

/// What a hot thread had to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// When it was written.
    pub ticks: Ticks,
    numbers: [u64; NUMBERS_MAX],
    /// What: the reader knows its text.
    pub code: u16,
    /// Who: the number of the writer's thread.
    pub thread: u16,
    count: u8,
}

const _: () = assert!(size_of::<Record>() == 48, "a record is 48 bytes");

impl Record {
    /// The numbers that go with the code.
    #[must_use]
    pub fn numbers(&self) -> &[u64] {
        &self.numbers[..usize::from(self.count)]
    }
}

/// A writing end, for one thread.
pub struct Writer {
    lane: mpsc::Producer<Record>,
    dropped: Arc<[Padded<AtomicU64>]>,
    thread: u16,
}

/// The reading end.
pub struct Reader {
    lanes: mpsc::Consumer<Record>,
    dropped: Arc<[Padded<AtomicU64>]>,
}

/// A log for up to `writers` writers, each with room for `capacity` records, rounded up to a power
/// of two; the first writer is thread number `thread`.
///
/// # Panics
/// If `writers` is 0 or above [`mpsc::PRODUCERS_MAX`], or `capacity` is 0 or above 2²⁴.
#[must_use]
pub fn channel(writers: usize, capacity: usize, thread: u16) -> (Writer, Reader) {
    let (lane, lanes) = mpsc::channel(writers, capacity);
    let dropped: Arc<[_]> = (0..writers).map(|_| Padded(AtomicU64::new(0))).collect();
    (Writer { lane, dropped: Arc::clone(&dropped), thread }, Reader { lanes, dropped })
}

impl Writer {
    /// Another writer, for thread number `thread`, or `None` if there are as many as the log was
    /// made for.
    #[must_use]
    pub fn try_clone(&self, thread: u16) -> Option<Writer> {
        Some(Writer { lane: self.lane.try_clone()?, dropped: Arc::clone(&self.dropped), thread })
    }

    /// Appends a record, or drops and counts it if there is no room. More than [`NUMBERS_MAX`]
    /// numbers do not compile.
    #[inline]
    pub fn write<const N: usize>(&mut self, ticks: Ticks, code: u16, numbers: [u64; N]) {
        const { assert!(N <= NUMBERS_MAX, "a log record has at most 4 numbers") }
        let mut record = Record { ticks, numbers: [0; NUMBERS_MAX], code, thread: self.thread, count: N as u8 };
        record.numbers[..N].copy_from_slice(&numbers);
        if self.lane.push(record).is_err() {
            // The lane's owner alone writes its count.
            let count = &self.dropped[self.lane.lane()].0;
            count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
    }

    /// Records of this writer dropped so far.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped[self.lane.lane()].0.load(Ordering::Relaxed)
    }
}

impl Reader {
    /// Hands records to `take`, at most `limit` and at most [`BATCH`](super::BATCH), writers in
    /// turn. Returns how many: fewer than asked for means that there were no more.
    pub fn drain(&mut self, limit: usize, take: impl FnMut(Record)) -> usize {
        self.lanes.drain(limit, take)
    }

    /// Records dropped so far, of all writers.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped.iter().map(|count| count.0.load(Ordering::Relaxed)).sum()
    }

    /// Whether all writers have been dropped; nothing to drain then means nothing for ever.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.lanes.is_abandoned()
    }
}
