//! Two-level timer wheel: what is due by now, without a look at what is not.
//!
//! Owns the records of its timers and the lists they wait in. One thread owns a wheel and polls it; there is nothing
//! atomic in it. Bounds: the timers are reserved at construction; arm, cancel and re-arm take constant time; a poll
//! hands out at most [`EXPIRIES_MAX`] expiries and moves at most [`MOVES_MAX`] timers inwards; a deadline lies at most
//! [`HORIZON`] ahead. Never allocates after construction, never reads a clock, never calls back across threads: an
//! expiry is handed to the caller of [`Wheel::poll`], who makes it an event in somebody's ring and records its lateness.
//!
//! ```text
//!   inner: 65,536 slots of 1 µs from the cursor on          outer: 65,536 blocks of 65,536 µs (71 minutes)
//!   cursor ──▶ next occupied slot ── due? ──▶ out           its block begins ──▶ its timers move inwards
//! ```
//!
//! Gaps: the bitmaps of both levels find the next occupied slot or block in a few words, so a poll after an hour costs
//! what a poll after a microsecond does. Falling behind loses nothing: what a poll left is first in the next.
//! A timer is never early, and late by at most one slot plus the time to the next poll. Source: seed 004 §8.
//!
//! # Why
//!
//! *Lines instead of links.* A record does not point to its neighbours; a slot's timers stand in 64-byte lines of 13,
//! and a record knows its place. In linked records each link is a cache miss that the next one waits for: 19 ns an
//! expiry with a million timers. A line names 13 records at once, and their misses overlap.
//!
//! *A horizon instead of an overflow list.* Nothing here waits an hour. A list of the rest would need a scan that a
//! poll cannot bound.
//!
//! *Poll judges its deadlines without a wheel.* It visits each busy worker in every frame anyway, for the ready flag, so
//! a launch deadline costs it one comparison. Shots expire in the order in which they were submitted, all after the
//! same span, so only the oldest needs a look; a wheel would add an arm and a cancel to every shot. Both spans change
//! live and both leave out the time in which the machine stood still, so an expiry would only be a cause to compare
//! again, and to arm again.

mod lists;
mod occupancy;
#[cfg(test)]
mod tests;

use crate::units::{Nanos, Slots, TickRate, Ticks};
use lists::{Lists, Position};
use occupancy::{LEVEL, LEVEL_BITS};

/// Width of an inner slot.
pub const SLOT: Nanos = Nanos(1_000);
/// A deadline up to this far ahead of the last poll is accepted: all blocks but the one that has begun.
pub const HORIZON: Nanos = Nanos(SLOT.0 * (LEVEL as u64 - 1) * LEVEL as u64);
/// Most expiries of one poll.
pub const EXPIRIES_MAX: u32 = 64;
/// Most timers that one poll moves from the outer level to the inner.
pub const MOVES_MAX: u32 = 256;
/// Most timers of one wheel.
pub const TIMERS_MAX: Slots = Slots(1 << 24);

/// An armed timer. Goes stale when the timer expires or is cancelled, and stays so for 2³² uses of its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Handle {
    index: u32,
    generation: u32,
}

/// A timer whose deadline has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expired {
    /// The timer, stale by now.
    pub handle: Handle,
    /// What it was armed with.
    pub payload: u64,
    /// From its deadline to the poll that found it.
    pub lateness: Ticks,
}

/// What a poll did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Polled {
    /// Timers handed out.
    pub expired: u32,
    /// Timers moved from the outer level to the inner.
    pub moved: u32,
    /// Whether more may be due: poll again.
    pub is_behind: bool,
}

/// A timer was not armed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArmError {
    /// All records are in use.
    #[error("all {} timers of this wheel are armed; cancel one, or build the wheel with more", .0.0)]
    Full(Slots),
    /// Beyond [`HORIZON`].
    #[error("the deadline lies beyond the wheel's horizon of {} s after its last poll; arm a nearer one", HORIZON.0 / 1_000_000_000)]
    BeyondHorizon,
}

/// A timer was not re-armed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RearmError {
    /// It expired or was cancelled before.
    #[error("the timer has expired or was cancelled; arm a new one")]
    Stale,
    /// Beyond [`HORIZON`]; the timer keeps its old deadline.
    #[error("the deadline lies beyond the wheel's horizon of {} s after its last poll; the old one holds", HORIZON.0 / 1_000_000_000)]
    BeyondHorizon,
}

#[derive(Clone, Copy, Debug)]
struct Record {
    deadline: Ticks,
    payload: u64,
    position: Position,
    generation: u32,
}

/// The wheel. Slots are counted from its start; `cursor` is the first one that may still hold something.
#[derive(Debug)]
pub struct Wheel {
    start: Ticks,
    slots_per_tick_q64: u64,
    cursor: u64,
    /// No slot and no block before this one needs a visit; cancelling may leave it too low, never too high.
    next_due: u64,
    lists: Lists,
    records: Box<[Record]>,
    free: Box<[u32]>,
    free_len: usize,
}

impl Wheel {
    /// An empty wheel with room for `timers`, all of it touched.
    ///
    /// # Panics
    /// If `timers` is zero or above [`TIMERS_MAX`].
    #[must_use]
    pub fn new(rate: TickRate, start: Ticks, timers: Slots) -> Wheel {
        let possible = 1..=TIMERS_MAX.0;
        assert!(possible.contains(&timers.0), "a wheel holds 1 to {} timers, not {}", TIMERS_MAX.0, timers.0);
        let record = Record { deadline: Ticks(0), payload: 0, position: Position::NOWHERE, generation: 0 };
        // Rounded up, so that a whole number of slots is counted as such; no counter ticks slower than once a slot.
        let slots_q64 = (u128::from(rate.nanos_per_tick_q32()) << 32) / u128::from(SLOT.0) + 1;
        Wheel {
            start,
            slots_per_tick_q64: u64::try_from(slots_q64).unwrap_or(u64::MAX),
            cursor: 0,
            next_due: u64::MAX,
            lists: Lists::new(timers.0 as usize),
            records: vec![record; timers.0 as usize].into_boxed_slice(),
            // Lowest last: the first to be used.
            free: (0..timers.0).rev().collect(),
            free_len: timers.0 as usize,
        }
    }

    /// Timers armed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.records.len() - self.free_len
    }

    /// Whether no timer is armed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Most timers that can be armed at once.
    #[must_use]
    pub fn capacity(&self) -> Slots {
        Slots(self.records.len() as u32)
    }

    /// Arms a timer. One whose deadline has passed is handed out by the next poll.
    ///
    /// # Errors
    /// If all records are in use, or `deadline` is too far ahead.
    #[inline]
    pub fn arm(&mut self, deadline: Ticks, payload: u64) -> Result<Handle, ArmError> {
        let list = self.list_for(deadline).ok_or(ArmError::BeyondHorizon)?;
        let Some(top) = self.free_len.checked_sub(1) else { return Err(ArmError::Full(self.capacity())) };
        self.free_len = top;
        let index = self.free[top];
        let position = self.lists.push(list, index);
        let record = &mut self.records[index as usize];
        (record.deadline, record.payload, record.position) = (deadline, payload, position);
        Ok(Handle { index, generation: record.generation })
    }

    /// Disarms a timer and returns its payload; `None` if it has expired or was cancelled before.
    #[inline]
    pub fn cancel(&mut self, handle: Handle) -> Option<u64> {
        let record = *self.record_of(handle)?;
        self.detach(record.position);
        self.release(handle.index);
        Some(record.payload)
    }

    /// Gives an armed timer another deadline; its handle stays good.
    ///
    /// # Errors
    /// If it is not armed, or `deadline` is too far ahead.
    #[inline]
    pub fn rearm(&mut self, handle: Handle, deadline: Ticks) -> Result<(), RearmError> {
        let position = self.record_of(handle).ok_or(RearmError::Stale)?.position;
        let list = self.list_for(deadline).ok_or(RearmError::BeyondHorizon)?;
        self.detach(position);
        let position = self.lists.push(list, handle.index);
        let record = &mut self.records[handle.index as usize];
        (record.deadline, record.position) = (deadline, position);
        Ok(())
    }

    /// Hands out what is due at `now`, oldest slot first, in no order within a slot. Time that runs backwards makes
    /// nothing due.
    #[inline]
    pub fn poll(&mut self, now: Ticks, mut out: impl FnMut(Expired)) -> Polled {
        let target = self.slot_of(now.since(self.start).0);
        let mut polled = Polled::default();
        // Each pass hands out or moves a timer, or makes `next_due` exact, which the first pass may find too low.
        while target >= self.next_due {
            self.cursor = self.cursor.max(self.next_due);
            self.move_inwards(&mut polled);
            if !polled.is_behind {
                self.expire(now, &mut polled, &mut out);
            }
            if polled.is_behind {
                return polled;
            }
            self.next_due = self.next_occupied();
        }
        self.cursor = self.cursor.max(target);
        polled
    }

    /// Moves the timers of the block that the cursor has reached.
    fn move_inwards(&mut self, polled: &mut Polled) {
        let list = outer_list(self.cursor >> LEVEL_BITS);
        while self.lists.outer().is_set(list) {
            let left = MOVES_MAX - polled.moved;
            if left == 0 {
                polled.is_behind = true;
                return;
            }
            let taken = self.lists.take(list, left as usize);
            for &index in taken.as_slice() {
                let due = self.due_of(self.records[index as usize].deadline).max(self.cursor);
                self.records[index as usize].position = self.lists.push(inner_list(due), index);
            }
            polled.moved += taken.as_slice().len() as u32;
        }
    }

    /// Hands out the timers of the cursor's slot.
    #[inline]
    fn expire(&mut self, now: Ticks, polled: &mut Polled, out: &mut impl FnMut(Expired)) {
        let list = inner_list(self.cursor);
        while self.lists.inner().is_set(list) {
            let left = EXPIRIES_MAX - polled.expired;
            if left == 0 {
                polled.is_behind = true;
                return;
            }
            let taken = self.lists.take(list, left as usize);
            for &index in taken.as_slice() {
                let record = self.records[index as usize];
                let handle = Handle { index, generation: record.generation };
                self.release(index);
                out(Expired { handle, payload: record.payload, lateness: now.since(record.deadline) });
            }
            polled.expired += taken.as_slice().len() as u32;
        }
    }

    /// The first slot that holds a timer or begins an occupied block.
    fn next_occupied(&self) -> u64 {
        let block = self.cursor >> LEVEL_BITS;
        let slot = self.lists.inner().distance(inner_list(self.cursor)).map(|d| self.cursor + d as u64);
        let begun = self.lists.outer().distance(outer_list(block)).map(|d| (block + d as u64) << LEVEL_BITS);
        slot.unwrap_or(u64::MAX).min(begun.unwrap_or(u64::MAX))
    }

    /// The list for a deadline, and `next_due` lowered to its visit; `None` beyond the horizon.
    #[inline]
    fn list_for(&mut self, deadline: Ticks) -> Option<usize> {
        let due = self.due_of(deadline).max(self.cursor);
        if due - self.cursor < LEVEL as u64 {
            self.next_due = self.next_due.min(due);
            return Some(inner_list(due));
        }
        let block = due >> LEVEL_BITS;
        if block - (self.cursor >> LEVEL_BITS) >= LEVEL as u64 {
            return None;
        }
        self.next_due = self.next_due.min(block << LEVEL_BITS);
        Some(outer_list(block))
    }

    fn record_of(&self, handle: Handle) -> Option<&Record> {
        self.records.get(handle.index as usize).filter(|record| record.generation == handle.generation)
    }

    fn detach(&mut self, position: Position) {
        if let Some(moved) = self.lists.remove(position) {
            self.records[moved as usize].position = position;
        }
    }

    #[inline]
    fn release(&mut self, index: u32) {
        let record = &mut self.records[index as usize];
        record.generation = record.generation.wrapping_add(1);
        self.free[self.free_len] = index;
        self.free_len += 1;
    }

    /// The slot that holds a moment, given in ticks since the start.
    #[inline]
    fn slot_of(&self, ticks: u64) -> u64 {
        ((u128::from(ticks) * u128::from(self.slots_per_tick_q64)) >> 64) as u64
    }

    /// The first slot that begins at or after `deadline`: `slot_of` grows with its argument, so a moment in this slot is
    /// later than the last tick before the deadline.
    #[inline]
    fn due_of(&self, deadline: Ticks) -> u64 {
        deadline.since(self.start).0.checked_sub(1).map_or(0, |before| self.slot_of(before) + 1)
    }
}

fn inner_list(slot: u64) -> usize {
    slot as usize % LEVEL
}

fn outer_list(block: u64) -> usize {
    LEVEL + block as usize % LEVEL
}
