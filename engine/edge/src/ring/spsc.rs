//! Single-producer single-consumer ring.
//!
//! Owns a power-of-two array of slots and two cursors. Producer and consumer are one thread each; both ends cache the
//! other's cursor and re-read it only when the ring looks full or empty. Bounds: the capacity. Never waits, never
//! allocates after `channel`.
//!
//! | edge | release site | acquire site | publishes |
//! |---|---|---|---|
//! | R1 | [`Producer::push`] tail | [`Consumer::pop`] tail | the item |
//! | R2 | [`Consumer::pop`] head | [`Producer::push`] head | that the slot was read |
//! | R3 | [`Producer`]'s drop, abandoned | [`Consumer::is_abandoned`] | the last tail |

use super::Full;
use crate::sync::{AtomicU64, Ordering, Padded, UnsafeCell, edge};
use std::mem::MaybeUninit;
use std::sync::Arc;

struct Shared<T> {
    head: Padded<AtomicU64>,
    tail: Padded<AtomicU64>,
    abandoned: AtomicU64,
    slots: Box<[UnsafeCell<MaybeUninit<T>>]>,
}

// SAFETY: a slot is touched by the producer only outside head..tail and by the consumer only inside; R1 and R2 order
// the two. `T: Copy`, so nothing needs dropping.
unsafe impl<T: Copy + Send> Sync for Shared<T> {}
// SAFETY: the ring owns its items; moving it moves them.
unsafe impl<T: Copy + Send> Send for Shared<T> {}

impl<T> Shared<T> {
    fn slot(&self, position: u64) -> &UnsafeCell<MaybeUninit<T>> {
        &self.slots[position as usize & (self.slots.len() - 1)]
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
    tail_seen: u64,
}

/// A ring for `capacity` items, rounded up to a power of two.
///
/// # Panics
/// If `capacity` is 0 or above 2²⁴.
#[must_use]
pub fn channel<T: Copy + Send>(capacity: usize) -> (Producer<T>, Consumer<T>) {
    assert!((1..=1 << 24).contains(&capacity), "ring capacity {capacity} outside 1..=2^24");
    let slots = (0..capacity.next_power_of_two()).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect();
    let cursor = || Padded(AtomicU64::new(0));
    let ring = Arc::new(Shared { head: cursor(), tail: cursor(), abandoned: AtomicU64::new(0), slots });
    (Producer { ring: Arc::clone(&ring), tail: 0, head_seen: 0 }, Consumer { ring, head: 0, tail_seen: 0 })
}

impl<T: Copy + Send> Producer<T> {
    /// Free slots, at least; re-reads the consumer's cursor only if none is known.
    pub fn room(&mut self) -> u64 {
        let capacity = self.ring.slots.len() as u64;
        if self.tail - self.head_seen == capacity {
            // ORDERING: acquire side of R2: the consumer has read what we are about to overwrite. Relaxed would let
            // our write race with its read. Model: loom_spsc::push_never_overwrites_an_unread_slot.
            self.head_seen = self.ring.head.0.load(edge("R2.acquire", Ordering::Acquire));
        }
        capacity - (self.tail - self.head_seen)
    }

    /// Appends `item`.
    ///
    /// # Errors
    /// [`Full`] with the item if there is no room.
    pub fn push(&mut self, item: T) -> Result<(), Full<T>> {
        if self.room() == 0 {
            return Err(Full(item));
        }
        // SAFETY: in bounds by the mask. Unaliased: position `tail` is outside `head..tail` until R1, and `&mut self`
        // on a non-`Clone` end is the only writer.
        self.ring.slot(self.tail).with_mut(|slot| unsafe { (*slot).write(item) });
        self.tail += 1;
        // ORDERING: release side of R1, publishing the slot above. Relaxed could show `tail` before its bytes; SeqCst
        // adds nothing: one writer, one location. Model: loom_spsc::pop_never_sees_an_unwritten_slot.
        self.ring.tail.0.store(self.tail, edge("R1.release", Ordering::Release));
        Ok(())
    }

    /// Items ever pushed.
    #[must_use]
    pub fn pushed(&self) -> u64 {
        self.tail
    }

    /// Items in the ring as last known; at most the true depth plus what was popped since the last full look.
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

impl<T> Drop for Producer<T> {
    fn drop(&mut self) {
        // ORDERING: release side of R3: whoever sees the end abandoned sees its last tail. Relaxed (as a count of
        // handles would be) could show an abandoned, empty ring and then one more item. Model:
        // loom_spsc::an_abandoned_ring_shows_its_last_item.
        self.ring.abandoned.store(1, edge("R3.release", Ordering::Release));
    }
}

impl<T: Copy + Send> Consumer<T> {
    /// Takes the oldest item.
    pub fn pop(&mut self) -> Option<T> {
        if self.head == self.tail_seen {
            // ORDERING: acquire side of R1, see `push`.
            self.tail_seen = self.ring.tail.0.load(edge("R1.acquire", Ordering::Acquire));
            if self.head == self.tail_seen {
                return None;
            }
        }
        // SAFETY: position `head` is inside head..tail, written before R1 published it; only this end reads it.
        let item = self.ring.slot(self.head).with(|slot| unsafe { (*slot).assume_init_read() });
        self.head += 1;
        // ORDERING: release side of R2: the read above is done before the producer may overwrite the slot. Relaxed
        // could let the overwrite come first. Model: loom_spsc::push_never_overwrites_an_unread_slot.
        self.ring.head.0.store(self.head, edge("R2.release", Ordering::Release));
        Some(item)
    }

    /// Whether the producer has been dropped. Everything it pushed is visible to a `pop` after this call: empty then
    /// means empty for ever.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        // ORDERING: acquire side of R3, see the producer's drop.
        self.ring.abandoned.load(edge("R3.acquire", Ordering::Acquire)) != 0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::channel;
    use crate::ring::Full;

    #[test]
    fn a_full_ring_gives_the_item_back() {
        let (mut tx, mut rx) = channel::<u32>(2);
        assert_eq!(tx.push(1), Ok(()));
        assert_eq!(tx.push(2), Ok(()));
        assert_eq!(tx.push(3), Err(Full(3)));
        assert_eq!(rx.pop(), Some(1));
        assert_eq!(tx.push(3), Ok(()));
        assert_eq!((rx.pop(), rx.pop(), rx.pop()), (Some(2), Some(3), None));
    }

    #[test]
    fn a_million_items_cross_threads_in_order() {
        let (mut tx, mut rx) = channel::<u64>(64);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for i in 0..1_000_000u64 {
                    while tx.push(i).is_err() {
                        std::thread::yield_now();
                    }
                }
            });
            for i in 0..1_000_000u64 {
                loop {
                    if let Some(item) = rx.pop() {
                        assert_eq!(item, i);
                        break;
                    }
                    std::thread::yield_now();
                }
            }
        });
    }
}
