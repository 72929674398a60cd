//! Bounded multi-producer multi-consumer queue in strict order of entry.
//!
//! Owns a power-of-two array of cells, each with a sequence word that says whose turn the cell is
//! (Vyukov's bounded queue, 2011). Any thread may push or pop. Bounds: the capacity; a push or pop
//! retries only when another one succeeded in between. Never waits for a particular thread except
//! that a cell claimed but not yet written holds up the cells behind it, which is the price of
//! strict order.
//!
//! | edge | release site | acquire site | publishes |
//! |---|---|---|---|
//! | F1 | [`Fifo::push`] sequence | [`Fifo::pop`] sequence | the item |
//! | F2 | [`Fifo::pop`] sequence | [`Fifo::push`] sequence | that the cell was read |

use crate::ring::Full;
use crate::sync::{AtomicU64, Ordering, Padded, UnsafeCell, edge};
use std::mem::MaybeUninit;

struct Cell<T> {
    sequence: AtomicU64,
    item: UnsafeCell<MaybeUninit<T>>,
}

/// A queue that any number of threads push to and pop from.
pub struct Fifo<T> {
    head: Padded<AtomicU64>,
    tail: Padded<AtomicU64>,
    cells: Box<[Cell<T>]>,
}

// SAFETY: a cell's item is touched only by the thread that won its position by CAS, between the two
// edges.
unsafe impl<T: Copy + Send> Sync for Fifo<T> {}
// SAFETY: the queue owns its items; moving it moves them.
unsafe impl<T: Copy + Send> Send for Fifo<T> {}

impl<T: Copy + Send> Fifo<T> {
    /// An empty queue for `capacity` items, rounded up to a power of two, at least 2.
    ///
    /// # Panics
    /// If `capacity` is 0 or above 2²⁴.
    #[must_use]
    pub fn new(capacity: usize) -> Fifo<T> {
        assert!((1..=1 << 24).contains(&capacity), "queue capacity {capacity} outside 1..=2^24");
        let size = capacity.next_power_of_two().max(2) as u64;
        let cell = |i| Cell { sequence: AtomicU64::new(i), item: UnsafeCell::new(MaybeUninit::uninit()) };
        Fifo { head: Padded(AtomicU64::new(0)), tail: Padded(AtomicU64::new(0)), cells: (0..size).map(cell).collect() }
    }

    fn cell(&self, position: u64) -> &Cell<T> {
        &self.cells[position as usize & (self.cells.len() - 1)]
    }

    /// Appends `item`.
    ///
    /// # Errors
    /// [`Full`] with the item if all cells are taken.
    pub fn push(&self, item: T) -> Result<(), Full<T>> {
        let mut position = self.tail.0.load(Ordering::Relaxed);
        loop {
            let cell = self.cell(position);
            // ORDERING: acquire side of F2: the popper has read the cell before we overwrite it.
            // Relaxed would let the overwrite race with that read. Model:
            // loom_fifo::items_cross_once_and_whole.
            let sequence = cell.sequence.load(edge("F2.acquire", Ordering::Acquire));
            match sequence.wrapping_sub(position) as i64 {
                0 => {
                    let next = position + 1;
                    match self.tail.0.compare_exchange_weak(position, next, Ordering::Relaxed, Ordering::Relaxed) {
                        Ok(_) => {
                            // SAFETY: winning the CAS makes this position ours until F1 publishes
                            // it.
                            cell.item.with_mut(|slot| unsafe { (*slot).write(item) });
                            // ORDERING: release side of F1, publishing the item. Relaxed could show
                            // the turn before the bytes. Model:
                            // loom_fifo::items_cross_once_and_whole.
                            cell.sequence.store(next, edge("F1.release", Ordering::Release));
                            return Ok(());
                        }
                        Err(now) => position = now,
                    }
                }
                lag if lag < 0 => return Err(Full(item)),
                _ => position = self.tail.0.load(Ordering::Relaxed),
            }
        }
    }

    /// Takes the oldest item.
    pub fn pop(&self) -> Option<T> {
        let mut position = self.head.0.load(Ordering::Relaxed);
        loop {
            let cell = self.cell(position);
            // ORDERING: acquire side of F1, see `push`.
            let sequence = cell.sequence.load(edge("F1.acquire", Ordering::Acquire));
            match sequence.wrapping_sub(position + 1) as i64 {
                0 => {
                    let next = position + 1;
                    match self.head.0.compare_exchange_weak(position, next, Ordering::Relaxed, Ordering::Relaxed) {
                        Ok(_) => {
                            // SAFETY: winning the CAS makes this position ours until F2 gives the
                            // cell back; F1 ordered the write of the item before this read.
                            let item = cell.item.with(|slot| unsafe { (*slot).assume_init_read() });
                            let turn = position + self.cells.len() as u64;
                            // ORDERING: release side of F2: the read above comes first. Relaxed
                            // could let the next write overtake it. Model:
                            // loom_fifo::items_cross_once_and_whole.
                            cell.sequence.store(turn, edge("F2.release", Ordering::Release));
                            return Some(item);
                        }
                        Err(now) => position = now,
                    }
                }
                lag if lag < 0 => return None,
                _ => position = self.head.0.load(Ordering::Relaxed),
            }
        }
    }

    /// Items inside, as two loads see it: the consumers' cursor first, so it is never negative.
    #[must_use]
    pub fn depth(&self) -> u64 {
        let head = self.head.0.load(Ordering::Relaxed);
        self.tail.0.load(Ordering::Relaxed).saturating_sub(head).min(self.cells.len() as u64)
    }

    /// Items ever pushed.
    #[must_use]
    pub fn pushed(&self) -> u64 {
        self.tail.0.load(Ordering::Relaxed)
    }

    /// Items it can hold.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.cells.len() as u64
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::Fifo;
    use crate::ring::Full;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn order_is_strict_and_a_full_queue_gives_the_item_back() {
        let queue = Fifo::new(2);
        assert_eq!(queue.push(1), Ok(()));
        assert_eq!(queue.push(2), Ok(()));
        assert_eq!(queue.push(3), Err(Full(3)));
        assert_eq!((queue.pop(), queue.pop(), queue.pop()), (Some(1), Some(2), None));
    }

    #[test]
    fn two_producers_and_two_consumers_lose_and_double_nothing() {
        let queue = Fifo::new(16);
        let (sum, taken) = (AtomicU64::new(0), AtomicU64::new(0));
        let (queue, sum, taken) = (&queue, &sum, &taken);
        std::thread::scope(|scope| {
            for producer in 0..2u64 {
                scope.spawn(move || {
                    for i in 0..100_000 {
                        while queue.push(producer * 100_000 + i).is_err() {
                            std::thread::yield_now();
                        }
                    }
                });
                scope.spawn(move || {
                    while taken.load(Ordering::Relaxed) < 200_000 {
                        match queue.pop() {
                            Some(item) => {
                                sum.fetch_add(item, Ordering::Relaxed);
                                taken.fetch_add(1, Ordering::Relaxed);
                            }
                            None => std::thread::yield_now(),
                        }
                    }
                });
            }
        });
        assert_eq!(sum.load(Ordering::Relaxed), (0..200_000u64).sum());
    }
}
