//! One writer, many readers, each of whom sees every item: the slowest reader holds the writer
//! back.
//!
//! Owns a power-of-two array of slots, the writer's cursor and one cursor for each reader. Writer
//! and readers are one thread each; all readers exist from the start, and one that is dropped no
//! longer counts. Bounds: the capacity, the readers, [`BATCH`] for a batch. Never waits, never
//! overwrites an item that a reader has not read, never allocates after `channel`.
//!
//! | edge | release site | acquire site | publishes |
//! |---|---|---|---|
//! | B1 | [`Writer::try_write`], [`Writer::try_write_over`] tail | [`Reader::read`], [`Reader::drain`] tail | the items |
//! | B2 | [`Reader::read`], [`Reader::drain`] cursor | [`Writer::try_write`], [`Writer::try_write_over`] cursors | that slots were read |
//! | B2 | [`Reader`]'s drop, cursor (`B2.leave`) | as above | that slots were read |
//! | B3 | [`Writer`]'s drop, abandoned | [`Reader::is_abandoned`] | the last tail |

use super::slots::Slots;
use super::{BATCH, Full};
use crate::sync::{AtomicU64, Ordering, Padded, edge};
use std::sync::Arc;

/// Readers of one ring, at most: the writer looks at all of them when the ring seems full.
pub const READERS_MAX: usize = 64;

/// The cursor of a reader that has left.
const GONE: u64 = u64::MAX;

struct Shared<T> {
    tail: Padded<AtomicU64>,
    cursors: Box<[Padded<AtomicU64>]>,
    abandoned: AtomicU64,
    slots: Slots<T>,
}

// SAFETY: a slot is written by the writer only when every reader's cursor is past it, and read by
// readers only before they move their cursors; B1 and B2 order the two. `T: Copy + Send`: each
// reader's copy is its own.
unsafe impl<T: Copy + Send> Sync for Shared<T> {}
// SAFETY: the ring owns its items; moving it moves them.
unsafe impl<T: Copy + Send> Send for Shared<T> {}

/// The writing end.
pub struct Writer<T> {
    ring: Arc<Shared<T>>,
    tail: u64,
    slowest_seen: u64,
    refused: u64,
}

/// A reading end.
pub struct Reader<T> {
    ring: Arc<Shared<T>>,
    number: usize,
    head: u64,
    tail_seen: u64,
}

/// A ring for `capacity` items, rounded up to a power of two, and its `readers` readers.
///
/// # Panics
/// If `capacity` is 0 or above 2²⁴, or `readers` is 0 or above [`READERS_MAX`].
#[must_use]
pub fn channel<T: Copy + Send>(capacity: usize, readers: usize) -> (Writer<T>, Vec<Reader<T>>) {
    assert!((1..=READERS_MAX).contains(&readers), "{readers} readers of a broadcast ring, not 1..={READERS_MAX}");
    let cursor = || Padded(AtomicU64::new(0));
    let (cursors, slots) = ((0..readers).map(|_| cursor()).collect(), Slots::new(capacity));
    let ring = Arc::new(Shared { tail: cursor(), cursors, abandoned: AtomicU64::new(0), slots });
    let reader = |number| Reader { ring: Arc::clone(&ring), number, head: 0, tail_seen: 0 };
    let readers = (0..readers).map(reader).collect();
    (Writer { ring, tail: 0, slowest_seen: 0, refused: 0 }, readers)
}

impl<T: Copy + Send> Writer<T> {
    /// Whether the next [`Writer::try_write`] succeeds: for who must not take what it could not
    /// pass on. Re-reads the readers' cursors only if no free slot is known.
    #[inline]
    pub fn has_room(&mut self) -> bool {
        let capacity = self.ring.slots.capacity();
        if self.tail - self.slowest_seen == capacity {
            // ORDERING: acquire side of B2: every reader has read what we are about to overwrite.
            // Relaxed would let our write race with a read. Model:
            // loom_broadcast::a_slot_is_rewritten_after_every_reader.
            let order = edge("B2.acquire", Ordering::Acquire);
            self.slowest_seen = self.ring.cursors.iter().fold(self.tail, |least, c| least.min(c.0.load(order)));
        }
        self.tail - self.slowest_seen < capacity
    }

    /// Appends `item` for every reader.
    ///
    /// # Errors
    /// [`Full`] with the item, counted in [`Writer::refused`], if the slowest reader is a lap
    /// behind.
    #[inline]
    pub fn try_write(&mut self, item: T) -> Result<(), Full<T>> {
        if !self.has_room() {
            self.refused += 1;
            return Err(Full(item));
        }
        // SAFETY: every reader is past position `tail` of the lap before and none is at it until
        // B1; `&mut self` on a non-`Clone` end is the only writer.
        unsafe { self.ring.slots.write(self.tail, item) };
        self.publish();
        Ok(())
    }

    /// Appends an item for every reader by changing one in place, so that an item that is mostly as
    /// its predecessors is not written whole: `change` gets what the slot held a lap before, in the
    /// first lap `blank`. Returns `false`, counted in [`Writer::refused`], if the slowest reader is
    /// a lap behind.
    #[inline]
    pub fn try_write_over(&mut self, blank: impl FnOnce() -> T, change: impl FnOnce(&mut T)) -> bool {
        if !self.has_room() {
            self.refused += 1;
            return false;
        }
        if self.tail < self.ring.slots.capacity() {
            // SAFETY: as in `try_write`.
            unsafe { self.ring.slots.write(self.tail, blank()) };
        }
        // SAFETY: as in `try_write`; the slot was written just now or in the first lap.
        unsafe { self.ring.slots.change(self.tail, change) };
        self.publish();
        true
    }

    #[inline(always)]
    fn publish(&mut self) {
        self.tail += 1;
        // ORDERING: release side of B1, publishing the slot above. Relaxed could show `tail`
        // before its bytes; SeqCst adds nothing: one writer, one location. Model:
        // loom_broadcast::every_reader_sees_every_item.
        self.ring.tail.0.store(self.tail, edge("B1.release", Ordering::Release));
    }

    /// Items refused so far.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Items written so far.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.tail
    }

    /// Slots of the ring.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.ring.slots.capacity()
    }

    /// Readers there were at the start.
    #[must_use]
    pub fn readers(&self) -> usize {
        self.ring.cursors.len()
    }

    /// Items that reader number `reader` has not read yet, as it last published; `None` after it
    /// left.
    ///
    /// # Panics
    /// If there never was such a reader.
    #[must_use]
    pub fn lag(&self, reader: usize) -> Option<u64> {
        let cursor = self.ring.cursors[reader].0.load(Ordering::Relaxed);
        (cursor != GONE).then(|| self.tail - cursor)
    }
}

impl<T> Drop for Writer<T> {
    fn drop(&mut self) {
        // ORDERING: release side of B3: whoever sees the end abandoned sees its last tail. Relaxed
        // could show an abandoned, read-out ring and then one more item. Model:
        // loom_broadcast::an_abandoned_ring_shows_its_last_item.
        self.ring.abandoned.store(1, edge("B3.release", Ordering::Release));
    }
}

impl<T: Copy + Send> Reader<T> {
    /// Items to read, at least; re-reads the writer's cursor only if fewer than `wanted` are known.
    #[inline]
    fn known(&mut self, wanted: u64) -> u64 {
        if self.tail_seen - self.head < wanted {
            // ORDERING: acquire side of B1, see `publish`.
            self.tail_seen = self.ring.tail.0.load(edge("B1.acquire", Ordering::Acquire));
        }
        self.tail_seen - self.head
    }

    #[inline(always)]
    fn release(&mut self) {
        // ORDERING: release side of B2: what was read is read before the writer may overwrite its
        // slot. Relaxed could let the overwrite come first. Model:
        // loom_broadcast::a_slot_is_rewritten_after_every_reader.
        self.ring.cursors[self.number].0.store(self.head, edge("B2.release", Ordering::Release));
    }

    /// Reads the next item.
    #[inline]
    pub fn read(&mut self) -> Option<T> {
        if self.known(1) == 0 {
            return None;
        }
        // SAFETY: written before B1 published it; the writer does not return to it before B2.
        let item = unsafe { self.ring.slots.read(self.head) };
        self.head += 1;
        self.release();
        Some(item)
    }

    /// Hands the next items to `take`, at most `limit` and at most [`BATCH`], and moves the cursor
    /// once. Returns how many: fewer than asked for means that there were no more.
    ///
    /// If `take` panics, its item counts as read and the later ones stay.
    #[inline]
    pub fn drain(&mut self, limit: usize, mut take: impl FnMut(T)) -> usize {
        let limit = limit.min(BATCH) as u64;
        let count = limit.min(self.known(limit));
        for _ in 0..count {
            // SAFETY: as in `read`: `count` positions from `head` are published.
            let item = unsafe { self.ring.slots.read(self.head) };
            self.head += 1;
            take(item);
        }
        if count > 0 {
            self.release();
        }
        count as usize
    }

    /// This reader's number: its place in what `channel` returned.
    #[must_use]
    pub fn number(&self) -> usize {
        self.number
    }

    /// Items not read yet.
    #[must_use]
    pub fn lag(&self) -> u64 {
        self.ring.tail.0.load(Ordering::Relaxed).saturating_sub(self.head)
    }

    /// Whether the writer has been dropped. Everything it wrote is visible to a `read` after this
    /// call: nothing to read then means nothing for ever.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        // ORDERING: acquire side of B3, see the writer's drop.
        self.ring.abandoned.load(edge("B3.acquire", Ordering::Acquire)) != 0
    }
}

impl<T> Drop for Reader<T> {
    fn drop(&mut self) {
        // ORDERING: release side of B2 as in `release`: a reader that leaves has read what it read.
        // Model: loom_broadcast::a_reader_that_leaves_frees_its_slots.
        self.ring.cursors[self.number].0.store(GONE, edge("B2.leave", Ordering::Release));
    }
}
