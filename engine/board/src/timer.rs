//! Two-level timer wheel: finds due timers without visiting the others.
//!
//! Owns the records of its timers and the lists they wait in. One thread owns a wheel and polls it;
//! it uses no atomics. Bounds: the timers are reserved at construction; arm, cancel and re-arm take
//! constant time; a poll hands out at most [`EXPIRIES_MAX`] expiries and moves at most
//! [`MOVES_MAX`] timers towards their slots; a deadline lies at most [`HORIZON`] ahead. Never
//! allocates after construction, never reads a clock, never calls back across threads: the caller
//! of [`Wheel::poll`] receives each expiry, forwards it as an event and records its lateness.
//!
//! ```text
//!   inner: 65,536 slots of 1 µs from the cursor on           outer: 65,536 blocks of 65,536 µs (71 minutes)
//!   cursor ──▶ 256 slots ◀── its group begins ── 256 groups of 256 slots ◀── its block begins ── blocks
//!                │ due
//!                ▼ out
//! ```
//!
//! Gaps: the bitmaps of both levels find the next occupied slot or block in a few words, so a poll
//! after an hour costs the same as a poll after a microsecond. A late poll loses no timer: the next
//! poll starts with the timers that remain. A timer is never early, and late by at most one slot
//! plus the time to the next poll. Source: seed 004 §8.
//!
//! # Why
//!
//! *Lines instead of links.* Timers of one list are stored together, in lines of 256 bytes. Each
//! linked record would cost a cache miss, and the misses are serial.
//!
//! *The inner level in groups.* Distributing a million timers over 65,536 lists misses the cache
//! and the page table at every insertion. The inner level therefore keeps the 256 slots ahead of
//! the cursor apart, and the rest in groups of 256 slots that are sorted when they begin. Measured
//! against the same peer, that made insert and cancel twice as fast; insert and expire of a million
//! at once did not change beyond noise, and a wheel that cannot cancel is still faster at that.
//!
//! *A horizon instead of an overflow list.* No timer here waits an hour. An overflow list would
//! need a scan that a poll cannot bound.
//!
//! *Poll keeps few timers and cancels none.* Deadlines change live and exclude the time in which
//! the machine stood still, so an expiry causes a check and is no verdict. One timer for each busy
//! worker and one for the oldest open shot therefore suffice, armed again for the remaining time:
//! no shot costs an arm or a cancel, and a frame without a due timer costs one comparison, see
//! `dispatch::deadlines`.
//!
//! *The simulated device has no wheel.* It checks each worker's doorbell in every frame anyway, and
//! a due time adds one comparison.

mod lists;
mod occupancy;
#[cfg(test)]
mod tests;

use crate::units::{Nanos, Slots, TickRate, Ticks};
use lists::{BLOCK_BITS, BLOCKS, GROUP, GROUP_BITS, Lists, Position, Timer, block_list, group_list, slot_list};

/// Width of an inner slot.
pub const SLOT: Nanos = Nanos(1_000);
/// A deadline up to this far ahead of the last poll is accepted: all blocks but the one that has begun.
pub const HORIZON: Nanos = Nanos((SLOT.0 * (BLOCKS as u64 - 1)) << BLOCK_BITS);
/// Most expiries of one poll.
pub const EXPIRIES_MAX: u32 = 64;
/// Most timers that one poll moves towards their slots.
pub const MOVES_MAX: u32 = 256;
/// Most timers of one wheel.
pub const TIMERS_MAX: Slots = Slots(1 << 24);

/// An armed timer. Becomes stale when the timer expires or is cancelled, for 2³² uses of its
/// record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Handle {
    index: u32,
    generation: u32,
}

/// A timer whose deadline has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expired {
    /// The timer's handle, now stale.
    pub handle: Handle,
    /// The value it was armed with.
    pub payload: u64,
    /// From its deadline to the poll that found it.
    pub lateness: Ticks,
}

/// Result of a poll.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Polled {
    /// Timers handed out.
    pub expired: u32,
    /// Timers moved towards their slots.
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
    /// It has expired or was cancelled.
    #[error("the timer has expired or was cancelled; arm a new one")]
    Stale,
    /// Beyond [`HORIZON`]; the timer keeps its old deadline.
    #[error("the deadline lies beyond the wheel's horizon of {} s after its last poll; the old one holds", HORIZON.0 / 1_000_000_000)]
    BeyondHorizon,
}

/// Current or last position of a timer, and the number of uses of its record. An expiry does not
/// write here, where it would miss the cache: it wipes the timer's position, which then no longer
/// matches the handle.
#[derive(Clone, Copy, Debug)]
struct Record {
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
    pub fn new(rate: TickRate, start: Ticks, timers: Slots) -> Wheel {
        let possible = 1..=TIMERS_MAX.0;
        assert!(possible.contains(&timers.0), "a wheel holds 1 to {} timers, not {}", TIMERS_MAX.0, timers.0);
        let record = Record { position: Position::NOWHERE, generation: 0 };
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
    pub fn len(&self) -> usize {
        self.records.len() - self.free_len
    }

    /// Whether no timer is armed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Most timers that can be armed at once.
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
        let record = &mut self.records[index as usize];
        let generation = record.generation.wrapping_add(1);
        record.generation = generation;
        record.position = self.lists.push(list, Timer { deadline, payload, index, generation });
        Ok(Handle { index, generation })
    }

    /// Disarms a timer and returns its payload; `None` if it has expired or was cancelled before.
    #[inline]
    pub fn cancel(&mut self, handle: Handle) -> Option<u64> {
        let timer = self.detach(self.position_of(handle)?);
        self.release(timer.index);
        Some(timer.payload)
    }

    /// Gives an armed timer another deadline; its handle stays good.
    ///
    /// # Errors
    /// If it is not armed, or `deadline` is too far ahead.
    #[inline]
    pub fn rearm(&mut self, handle: Handle, deadline: Ticks) -> Result<(), RearmError> {
        let position = self.position_of(handle).ok_or(RearmError::Stale)?;
        let list = self.list_for(deadline).ok_or(RearmError::BeyondHorizon)?;
        let timer = Timer { deadline, ..self.detach(position) };
        self.records[handle.index as usize].position = self.lists.push(list, timer);
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
            self.sort_out(block_list(self.cursor >> BLOCK_BITS), &mut polled);
            self.sort_out(group_list(self.cursor >> GROUP_BITS), &mut polled);
            if !polled.is_behind {
                self.expire(now, &mut polled, &mut out);
            }
            if polled.is_behind {
                return polled;
            }
            self.next_due = self.lists.next_occupied(self.cursor);
        }
        self.cursor = self.cursor.max(target);
        polled
    }

    /// Moves the timers of the group or block that the cursor has reached nearer to their slots.
    fn sort_out(&mut self, list: usize, polled: &mut Polled) {
        while let Some(head) = self.lists.head(list, MOVES_MAX - polled.moved) {
            if head.len() == 0 {
                polled.is_behind = true;
                return;
            }
            for position in head.positions() {
                // Read in place: a copy would wait for the line.
                let timer = *self.lists.at(position);
                let due = self.due_of(timer.deadline).max(self.cursor);
                let near =
                    if due - self.cursor < GROUP as u64 { slot_list(due) } else { group_list(due >> GROUP_BITS) };
                self.records[timer.index as usize].position = self.lists.push(near, timer);
            }
            self.lists.cut(list, head);
            polled.moved += head.len();
        }
    }

    /// Hands out the timers of the cursor's slot.
    #[inline]
    fn expire(&mut self, now: Ticks, polled: &mut Polled, out: &mut impl FnMut(Expired)) {
        let list = slot_list(self.cursor);
        while let Some(head) = self.lists.head(list, EXPIRIES_MAX - polled.expired) {
            if head.len() == 0 {
                polled.is_behind = true;
                return;
            }
            polled.expired += head.len();
            for (one, position) in head.one_by_one() {
                // Cut before it is handed out: the others stay armed if the caller panics.
                self.lists.cut(list, one);
                let Timer { deadline, payload, index, generation } = *self.lists.at(position);
                self.lists.wipe(position);
                self.release(index);
                out(Expired { handle: Handle { index, generation }, payload, lateness: now.since(deadline) });
            }
        }
    }

    /// The list for a deadline, and `next_due` lowered to its visit; `None` beyond the horizon.
    #[inline]
    fn list_for(&mut self, deadline: Ticks) -> Option<usize> {
        let due = self.due_of(deadline).max(self.cursor);
        let (group, block) = (due >> GROUP_BITS, due >> BLOCK_BITS);
        let (visit, list) = if due - self.cursor < GROUP as u64 {
            (due, slot_list(due))
        } else if group - (self.cursor >> GROUP_BITS) < GROUP as u64 {
            (group << GROUP_BITS, group_list(group))
        } else if block - (self.cursor >> BLOCK_BITS) < BLOCKS as u64 {
            (block << BLOCK_BITS, block_list(block))
        } else {
            return None;
        };
        self.next_due = self.next_due.min(visit);
        Some(list)
    }

    #[inline]
    fn position_of(&self, handle: Handle) -> Option<Position> {
        // Of a record that was never used: another wheel's handle.
        let position = self.records.get(handle.index as usize)?.position;
        if position == Position::NOWHERE {
            return None;
        }
        let timer = self.lists.at(position);
        ((timer.index, timer.generation) == (handle.index, handle.generation)).then_some(position)
    }

    #[inline]
    fn detach(&mut self, position: Position) -> Timer {
        let timer = *self.lists.at(position);
        if let Some(moved) = self.lists.remove(position) {
            self.records[moved as usize].position = position;
        }
        timer
    }

    #[inline]
    fn release(&mut self, index: u32) {
        self.free[self.free_len] = index;
        self.free_len += 1;
    }

    /// The slot that holds a moment, given in ticks since the start.
    #[inline]
    fn slot_of(&self, ticks: u64) -> u64 {
        ((u128::from(ticks) * u128::from(self.slots_per_tick_q64)) >> 64) as u64
    }

    /// The first slot that begins at or after `deadline`: `slot_of` grows with its argument, so a
    /// moment in this slot is later than the last tick before the deadline.
    #[inline]
    fn due_of(&self, deadline: Ticks) -> u64 {
        deadline.since(self.start).0.checked_sub(1).map_or(0, |before| self.slot_of(before) + 1)
    }
}
