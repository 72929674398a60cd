//! Single-producer single-consumer ring for items of up to 56 bytes: item and turn share a cache
//! line.
//!
//! Owns a power-of-two array of slots, a line each: a sequence word that says which position was
//! written last, and the item. Producer and consumer are one thread each. Bounds: the capacity, and
//! [`BATCH`] for a batch. Never waits, never allocates after `channel`.
//!
//! | edge | release site | acquire site | publishes |
//! |---|---|---|---|
//! | L1 | [`Producer::push`], [`Producer::push_each`] sequence | [`Consumer::pop`] sequence | the item |
//! | L2 | [`Consumer::pop`] head | [`Producer::push`] head | that the slots before it were read |
//! | L3 | [`Producer`]'s drop, abandoned | [`Consumer::is_abandoned`] | the last sequence word |
//!
//! # Why
//! A separate tail would be a second line that crosses for each item; here the consumer polls the
//! line that brings the item. The head crosses rarely: it is published after each quarter of the
//! ring, and when the consumer finds the ring empty. So a full ring may go on looking full until
//! its consumer has read a quarter of it.
//!
//! A batch is written last item first. Its reader waits at the first one's line and touches no
//! other until all are written; written in order, each line would be taken away by the reader in
//! the middle of the batch. For streams between far cores [`spsc`](super::spsc) may still be
//! faster: here the reader must look at each slot before it knows of the next.

use super::{BATCH, Full};
use crate::sync::{AtomicU64, Ordering, Padded, UnsafeCell, edge};
use std::mem::MaybeUninit;
use std::sync::Arc;

#[repr(C, align(64))]
struct Slot<T> {
    /// One more than the position that was written last; 0 before the first.
    sequence: AtomicU64,
    item: UnsafeCell<MaybeUninit<T>>,
}

impl<T> Slot<T> {
    /// A slot is one cache line; loom's cells are larger.
    const IS_A_LINE: () = assert!(cfg!(loom) || size_of::<Slot<T>>() == 64, "a line ring's item has at most 56 bytes");
}

struct Shared<T> {
    head: Padded<AtomicU64>,
    abandoned: AtomicU64,
    slots: Box<[Slot<T>]>,
}

// SAFETY: a slot's item is touched by the producer only outside head..tail and by the consumer only
// inside; L1 and L2 order the two. `T: Copy`, so nothing needs dropping.
unsafe impl<T: Copy + Send> Sync for Shared<T> {}
// SAFETY: the ring owns its items; moving it moves them.
unsafe impl<T: Copy + Send> Send for Shared<T> {}

impl<T> Shared<T> {
    #[inline(always)]
    fn slot(&self, position: u64) -> &Slot<T> {
        // SAFETY: the length is a power of two, at least 1, so the mask keeps the index below it.
        unsafe { self.slots.get_unchecked(position as usize & (self.slots.len() - 1)) }
    }
}

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
    head_published: u64,
    /// Items read before their slots are given back.
    quarter: u64,
}

/// A ring for `capacity` items, rounded up to a power of two. An item larger than 56 bytes does not
/// compile.
///
/// # Panics
/// If `capacity` is 0 or above 2²⁴.
#[must_use]
pub fn channel<T: Copy + Send>(capacity: usize) -> (Producer<T>, Consumer<T>) {
    const { Slot::<T>::IS_A_LINE }
    assert!((1..=1 << 24).contains(&capacity), "ring capacity {capacity} outside 1..=2^24");
    let slot = || Slot { sequence: AtomicU64::new(0), item: UnsafeCell::new(MaybeUninit::uninit()) };
    let slots: Box<[_]> = (0..capacity.next_power_of_two()).map(|_| slot()).collect();
    let quarter = (slots.len() as u64 / 4).max(1);
    let ring = Arc::new(Shared { head: Padded(AtomicU64::new(0)), abandoned: AtomicU64::new(0), slots });
    let producer = Producer { ring: Arc::clone(&ring), tail: 0, head_seen: 0 };
    (producer, Consumer { ring, head: 0, head_published: 0, quarter })
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
        let capacity = self.ring.slots.len() as u64;
        if capacity - (self.tail - self.head_seen) < wanted {
            // ORDERING: acquire side of L2: the consumer has read what we are about to overwrite.
            // Relaxed would let our write race with its read. Model:
            // loom_line::push_never_overwrites_an_unread_slot.
            self.head_seen = self.ring.head.0.load(edge("L2.acquire", Ordering::Acquire));
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
        self.fill(self.tail, item);
        self.tail += 1;
        Ok(())
    }

    /// Writes `item` at `position`, for which there is room, and says so.
    #[inline(always)]
    fn fill(&mut self, position: u64, item: T) {
        let slot = self.ring.slot(position);
        // SAFETY: the position is not the consumer's until L1, and `&mut self` on a non-`Clone` end
        // is the only writer.
        slot.item.with_mut(|item_at| unsafe { (*item_at).write(item) });
        // ORDERING: release side of L1, publishing the item. Relaxed could show the turn before the
        // bytes; SeqCst adds nothing: one writer, one location. Model:
        // loom_line::pop_never_sees_an_unwritten_slot.
        slot.sequence.store(position + 1, edge("L1.release", Ordering::Release));
    }

    /// Appends the first items of `items`, as many as there is room for and at most [`BATCH`].
    /// Returns how many.
    #[inline]
    pub fn push_slice(&mut self, items: &[T]) -> usize {
        self.push_each(items.len(), |index| items[index])
    }

    /// Appends `item(0)`, `item(1)` … up to `count` of them, as many as there is room for and at
    /// most [`BATCH`], each made where it will lie, the last one first; none is appended if `item`
    /// panics. Returns how many.
    #[inline]
    pub fn push_each(&mut self, count: usize, mut item: impl FnMut(usize) -> T) -> usize {
        let wanted = count.min(BATCH);
        let count = wanted.min(self.room_for(wanted as u64) as usize);
        let mut written = Written { producer: self, from: count, to: count };
        for index in (0..count).rev() {
            let position = written.producer.tail + index as u64;
            written.producer.fill(position, item(index));
            written.from = index;
        }
        std::mem::forget(written);
        self.tail += count as u64;
        count
    }

    /// Items ever pushed.
    #[must_use]
    pub fn pushed(&self) -> u64 {
        self.tail
    }

    /// Items not known to be read: the true depth plus less than a quarter of the ring.
    #[must_use]
    pub fn depth(&self) -> u64 {
        self.tail - self.ring.head.0.load(Ordering::Relaxed).min(self.tail)
    }

    /// Slots of the ring.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.ring.slots.len() as u64
    }
}

/// The end of a batch that is written from its end on. If the rest of it never comes, what was
/// written is taken back: no reader has come so far, because none passes the first slot of the
/// batch, and none will find it.
struct Written<'a, T> {
    producer: &'a mut Producer<T>,
    from: usize,
    to: usize,
}

impl<T> Drop for Written<'_, T> {
    fn drop(&mut self) {
        for index in self.from..self.to {
            // Relaxed: the reader sees it with the slot before, whose sequence word L1 publishes
            // later.
            self.producer.ring.slot(self.producer.tail + index as u64).sequence.store(0, Ordering::Relaxed);
        }
    }
}

impl<T> Drop for Producer<T> {
    fn drop(&mut self) {
        // ORDERING: release side of L3: whoever sees the end abandoned sees its last sequence word.
        // Relaxed could show an abandoned, empty ring and then one more item. Model:
        // loom_line::an_abandoned_ring_shows_its_last_item.
        self.ring.abandoned.store(1, edge("L3.release", Ordering::Release));
    }
}

impl<T: Copy + Send> Consumer<T> {
    /// Takes the oldest item.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<T> {
        let slot = self.ring.slot(self.head);
        // ORDERING: acquire side of L1, see `push`.
        if slot.sequence.load(edge("L1.acquire", Ordering::Acquire)) != self.head + 1 {
            if self.head != self.head_published {
                self.release();
            }
            return None;
        }
        // SAFETY: the sequence word says that this position was written; only this end reads it,
        // and the producer returns to it after L2.
        let item = slot.item.with(|item_at| unsafe { (*item_at).assume_init_read() });
        self.head += 1;
        if self.head - self.head_published == self.quarter {
            self.release();
        }
        Some(item)
    }

    /// Fetches the lines of the next items, at most `limit`, all at once: popped one after the other,
    /// each might be waited for. Returns how many of the items are there.
    #[inline]
    pub fn fetch(&self, limit: usize) -> usize {
        let there = |at: u64| {
            // Relaxed: `pop` acquires each item.
            self.ring.slot(self.head + at).sequence.load(Ordering::Relaxed) == self.head + at + 1
        };
        (0..limit as u64).take_while(|at| there(*at)).count()
    }

    #[inline(always)]
    fn release(&mut self) {
        self.head_published = self.head;
        // ORDERING: release side of L2: the reads before it are done before the producer may
        // overwrite the slots. Relaxed could let an overwrite come first. Model:
        // loom_line::push_never_overwrites_an_unread_slot.
        self.ring.head.0.store(self.head, edge("L2.release", Ordering::Release));
    }

    /// Hands the oldest items to `take`, at most `limit` and at most [`BATCH`]. Returns how many:
    /// fewer than asked for means that the ring was empty after them.
    ///
    /// If `take` panics, its item is gone and the later ones stay.
    #[inline]
    pub fn drain(&mut self, limit: usize, mut take: impl FnMut(T)) -> usize {
        let limit = limit.min(BATCH);
        for count in 0..limit {
            let Some(item) = self.pop() else { return count };
            take(item);
        }
        limit
    }

    /// Whether the producer has been dropped. Everything it pushed is visible to a `pop` after this
    /// call: empty then means empty for ever.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        // ORDERING: acquire side of L3, see the producer's drop.
        self.ring.abandoned.load(edge("L3.acquire", Ordering::Acquire)) != 0
    }
}
