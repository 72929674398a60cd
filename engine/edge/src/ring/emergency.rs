//! An SPSC ring with room that only urgent items may use: a stop or a cancel always gets through.
//!
//! Owns two [`spsc`] rings. Producer and consumer are one thread each. Bounds: `capacity` normal
//! items, `reserved` urgent ones, neither taking room from the other; [`BATCH`](super::BATCH) for a
//! batch. Never waits, never allocates after `channel`. Its edges are those of [`spsc`].
//!
//! # Why
//! An urgent item overtakes the normal ones: that is its purpose, and a consumer must expect the
//! cancel of something that it has not been given yet. Of urgent items, as of normal ones, the
//! order is that of their pushes.

use super::{Full, spsc};

/// The writing end.
pub struct Producer<T> {
    normal: spsc::Producer<T>,
    urgent: spsc::Producer<T>,
}

/// The reading end.
pub struct Consumer<T> {
    normal: spsc::Consumer<T>,
    urgent: spsc::Consumer<T>,
}

/// A ring for `capacity` normal and `reserved` urgent items, each rounded up to a power of two.
///
/// # Panics
/// If `capacity` or `reserved` is 0 or above 2²⁴.
#[must_use]
pub fn channel<T: Copy + Send>(capacity: usize, reserved: usize) -> (Producer<T>, Consumer<T>) {
    let (normal, normal_end) = spsc::channel(capacity);
    let (urgent, urgent_end) = spsc::channel(reserved);
    (Producer { normal, urgent }, Consumer { normal: normal_end, urgent: urgent_end })
}

impl<T: Copy + Send> Producer<T> {
    /// Appends a normal item.
    ///
    /// # Errors
    /// [`Full`] with the item if there is no normal room.
    #[inline]
    pub fn push(&mut self, item: T) -> Result<(), Full<T>> {
        self.normal.push(item)
    }

    /// Appends the first of `items`, as [`spsc::Producer::push_slice`].
    #[inline]
    pub fn push_slice(&mut self, items: &[T]) -> usize {
        self.normal.push_slice(items)
    }

    /// Appends an urgent item.
    ///
    /// # Errors
    /// [`Full`] with the item if the reserve is used up by urgent items that nobody has read.
    #[inline]
    pub fn push_urgent(&mut self, item: T) -> Result<(), Full<T>> {
        self.urgent.push(item)
    }

    /// Free slots for normal items, at least.
    pub fn room(&mut self) -> u64 {
        self.normal.room()
    }

    /// Free slots for urgent items, at least.
    pub fn room_urgent(&mut self) -> u64 {
        self.urgent.room()
    }
}

impl<T: Copy + Send> Consumer<T> {
    /// Takes the oldest urgent item, or the oldest normal one if no urgent one is there.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        self.urgent.pop().or_else(|| self.normal.pop())
    }

    /// Hands items to `take`, the urgent ones first, at most `limit` and at most
    /// [`BATCH`](super::BATCH). Returns how many.
    #[inline]
    pub fn drain(&mut self, limit: usize, mut take: impl FnMut(T)) -> usize {
        let limit = limit.min(super::BATCH);
        let urgent = self.urgent.drain(limit, &mut take);
        urgent + self.normal.drain(limit - urgent, take)
    }

    /// Whether the producer has been dropped; empty then means empty for ever.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.normal.is_abandoned() && self.urgent.is_abandoned()
    }
}
