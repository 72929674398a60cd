//! Single-producer single-consumer ring.
//!
//! Owns a power-of-two array of slots and two cursors. Producer and consumer are one thread each;
//! both ends cache the other's cursor and re-read it only when the ring looks too full or too empty
//! for what is asked. Bounds: the capacity, and [`BATCH`] for a batch. Never waits, never allocates
//! after `channel`.
//!
//! | edge | release site | acquire site | publishes |
//! |---|---|---|---|
//! | R1 | [`Producer::push`], [`Producer::push_slice`] tail | [`Consumer::pop`], [`Consumer::drain`] tail | the items |
//! | R2 | [`Consumer::pop`], [`Consumer::drain`] head | [`Producer::room`] and pushes, head | that slots were read |
//! | R3 | [`Producer`]'s drop, abandoned | [`Consumer::is_abandoned`] | the last tail |
//!
//! # Why
//! A batch costs one cursor store, and its reader knows how many items it may read ahead: streams
//! belong here. A lone item of a cache line arrives sooner through [`line`](super::line), as one
//! line instead of two.

use super::slots::Slots;
use super::{BATCH, Full};
use crate::sync::{AtomicU64, Ordering, Padded, edge};
use std::sync::Arc;

struct Shared<T> {
    head: Padded<AtomicU64>,
    tail: Padded<AtomicU64>,
    abandoned: AtomicU64,
    slots: Slots<T>,
}

// SAFETY: a slot is touched by the producer only outside head..tail and by the consumer only
// inside; R1 and R2 order the two. `T: Copy`, so nothing needs dropping.
unsafe impl<T: Copy + Send> Sync for Shared<T> {}
// SAFETY: the ring owns its items; moving it moves them.
unsafe impl<T: Copy + Send> Send for Shared<T> {}

/// The writing end.
pub struct Producer<T> {
    ring: Arc<Shared<T>>,
    tail: u64,
    head_seen: u64,
}

/// The reading end.
pub struct Consumer<T> {
    ring: Arc<Shared<T>>,
    head: u64,
    tail_seen: u64,
}

/// A ring for `capacity` items, rounded up to a power of two.
///
/// # Panics
/// If `capacity` is 0 or above 2²⁴.
#[must_use]
pub fn channel<T: Copy + Send>(capacity: usize) -> (Producer<T>, Consumer<T>) {
    let cursor = || Padded(AtomicU64::new(0));
    let (slots, abandoned) = (Slots::new(capacity), AtomicU64::new(0));
    let ring = Arc::new(Shared { head: cursor(), tail: cursor(), abandoned, slots });
    (Producer { ring: Arc::clone(&ring), tail: 0, head_seen: 0 }, Consumer { ring, head: 0, tail_seen: 0 })
}

impl<T: Copy + Send> Producer<T> {
    /// Free slots, at least; re-reads the consumer's cursor only if none is known.
    #[inline(always)]
    pub fn room(&mut self) -> u64 {
        self.room_for(1)
    }

    /// Free slots, at least; re-reads the consumer's cursor only if fewer than `wanted` are known.
    #[inline(always)]
    fn room_for(&mut self, wanted: u64) -> u64 {
        let capacity = self.ring.slots.capacity();
        if capacity - (self.tail - self.head_seen) < wanted {
            // ORDERING: acquire side of R2: the consumer has read what we are about to overwrite.
            // Relaxed would let our write race with its read. Model:
            // loom_spsc::push_never_overwrites_an_unread_slot.
            self.head_seen = self.ring.head.0.load(edge("R2.acquire", Ordering::Acquire));
        }
        capacity - (self.tail - self.head_seen)
    }

    /// Appends `item`.
    ///
    /// # Errors
    /// [`Full`] with the item if there is no room.
    #[inline(always)]
    pub fn push(&mut self, item: T) -> Result<(), Full<T>> {
        if self.room() == 0 {
            return Err(Full(item));
        }
        // SAFETY: position `tail` is outside `head..tail` until R1, and `&mut self` on a
        // non-`Clone` end is the only writer.
        unsafe { self.ring.slots.write(self.tail, item) };
        self.publish(1);
        Ok(())
    }

    /// Appends the first items of `items`, as many as there is room for and at most [`BATCH`]; all
    /// become visible at once. Returns how many.
    #[inline]
    pub fn push_slice(&mut self, items: &[T]) -> usize {
        let wanted = items.len().min(BATCH);
        let count = wanted.min(self.room_for(wanted as u64) as usize);
        if count > 0 {
            // SAFETY: as in `push`, for `count` positions: there is room for them.
            unsafe { self.ring.slots.write_run(self.tail, &items[..count]) };
            self.publish(count as u64);
        }
        count
    }

    /// Appends `item(0)`, `item(1)` … up to `count` of them, as many as there is room for and at
    /// most [`BATCH`], each made where it will lie; all become visible at once, and none if `item`
    /// panics. Returns how many.
    #[inline]
    pub fn push_each(&mut self, count: usize, mut item: impl FnMut(usize) -> T) -> usize {
        let wanted = count.min(BATCH);
        let count = wanted.min(self.room_for(wanted as u64) as usize);
        if count > 0 {
            for index in 0..count {
                // SAFETY: as in `push`, for `count` positions: there is room for them.
                unsafe { self.ring.slots.write(self.tail + index as u64, item(index)) };
            }
            self.publish(count as u64);
        }
        count
    }

    #[inline(always)]
    fn publish(&mut self, count: u64) {
        self.tail += count;
        // ORDERING: release side of R1, publishing the slots above. Relaxed could show `tail`
        // before their bytes; SeqCst adds nothing: one writer, one location. Model:
        // loom_spsc::pop_never_sees_an_unwritten_slot.
        self.ring.tail.0.store(self.tail, edge("R1.release", Ordering::Release));
    }

    /// Items ever pushed.
    #[must_use]
    pub fn pushed(&self) -> u64 {
        self.tail
    }

    /// Items in the ring now, as the consumer last published.
    #[must_use]
    pub fn depth(&self) -> u64 {
        self.tail - self.ring.head.0.load(Ordering::Relaxed).min(self.tail)
    }

    /// Slots of the ring.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.ring.slots.capacity()
    }
}

impl<T> Drop for Producer<T> {
    fn drop(&mut self) {
        // ORDERING: release side of R3: whoever sees the end abandoned sees its last tail. Relaxed
        // (as a count of handles would be) could show an abandoned, empty ring and then one more
        // item. Model: loom_spsc::an_abandoned_ring_shows_its_last_item.
        self.ring.abandoned.store(1, edge("R3.release", Ordering::Release));
    }
}

impl<T: Copy + Send> Consumer<T> {
    /// Items in the ring, at least; re-reads the producer's cursor only if fewer than `wanted` are
    /// known.
    #[inline(always)]
    fn known(&mut self, wanted: u64) -> u64 {
        if self.tail_seen - self.head < wanted {
            // ORDERING: acquire side of R1, see `publish`.
            self.tail_seen = self.ring.tail.0.load(edge("R1.acquire", Ordering::Acquire));
        }
        self.tail_seen - self.head
    }

    #[inline(always)]
    fn release(&mut self) {
        // ORDERING: release side of R2: what was read is read before the producer may overwrite its
        // slot. Relaxed could let the overwrite come first. Model:
        // loom_spsc::push_never_overwrites_an_unread_slot.
        self.ring.head.0.store(self.head, edge("R2.release", Ordering::Release));
    }

    /// Takes the oldest item.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<T> {
        if self.known(1) == 0 {
            return None;
        }
        // SAFETY: position `head` is inside head..tail, written before R1 published it; only this
        // end reads it.
        let item = unsafe { self.ring.slots.read(self.head) };
        self.head += 1;
        self.release();
        Some(item)
    }

    /// Hands the oldest items to `take`, at most `limit` and at most [`BATCH`], and gives their
    /// slots back at once. Returns how many: fewer than asked for means that the ring was empty
    /// after them.
    ///
    /// If `take` panics, its item is gone and the later ones stay.
    #[inline]
    pub fn drain(&mut self, limit: usize, mut take: impl FnMut(T)) -> usize {
        let limit = limit.min(BATCH) as u64;
        let count = limit.min(self.known(limit));
        for _ in 0..count {
            // SAFETY: as in `pop`: `count` positions from `head` are published.
            let item = unsafe { self.ring.slots.read(self.head) };
            self.head += 1;
            take(item);
        }
        if count > 0 {
            self.release();
        }
        count as usize
    }

    /// Items in the ring now, as the producer last published.
    #[must_use]
    pub fn depth(&self) -> u64 {
        self.ring.tail.0.load(Ordering::Relaxed).saturating_sub(self.head)
    }

    /// Whether the producer has been dropped. Everything it pushed is visible to a `pop` after this
    /// call: empty then means empty for ever.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        // ORDERING: acquire side of R3, see the producer's drop.
        self.ring.abandoned.load(edge("R3.acquire", Ordering::Acquire)) != 0
    }
}
