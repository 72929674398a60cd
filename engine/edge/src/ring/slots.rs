//! The array under a ring: slots by position, masked.
//!
//! Owns the memory and nothing else; which position may be touched by whom is the business of the
//! ring around it.

use crate::sync::UnsafeCell;
use std::mem::MaybeUninit;

/// A power of two of slots.
pub(super) struct Slots<T>(Box<[UnsafeCell<MaybeUninit<T>>]>);

impl<T: Copy> Slots<T> {
    /// Slots for `capacity` items, rounded up to a power of two.
    ///
    /// # Panics
    /// If `capacity` is 0 or above 2²⁴.
    pub(super) fn new(capacity: usize) -> Slots<T> {
        assert!((1..=1 << 24).contains(&capacity), "ring capacity {capacity} outside 1..=2^24");
        Slots((0..capacity.next_power_of_two()).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect())
    }
}

impl<T> Slots<T> {
    pub(super) fn capacity(&self) -> u64 {
        self.0.len() as u64
    }

    #[inline(always)]
    fn at(&self, position: u64) -> &UnsafeCell<MaybeUninit<T>> {
        // SAFETY: the length is a power of two, at least 1, so the mask keeps the index below it.
        unsafe { self.0.get_unchecked(position as usize & (self.0.len() - 1)) }
    }
}

impl<T: Copy> Slots<T> {
    /// Writes the slot of `position`.
    ///
    /// # Safety
    /// No other thread may touch that slot at the same time.
    #[inline(always)]
    pub(super) unsafe fn write(&self, position: u64, item: T) {
        // SAFETY: the pointer is the slot's own; the caller has it alone.
        self.at(position).with_mut(|slot| unsafe { (*slot).write(item) });
    }

    /// Changes the item in the slot of `position` by `change`.
    ///
    /// # Safety
    /// It must have been written, and no other thread may touch it at the same time.
    #[inline(always)]
    pub(super) unsafe fn change(&self, position: u64, change: impl FnOnce(&mut T)) {
        // SAFETY: the pointer is the slot's own; the caller has it alone, and says that it was written.
        self.at(position).with_mut(|slot| change(unsafe { (*slot).assume_init_mut() }));
    }

    /// Writes `items`, at most the capacity, from `position` on, in two runs at most.
    ///
    /// # Safety
    /// No other thread may touch those slots at the same time.
    #[inline(always)]
    pub(super) unsafe fn write_run(&self, position: u64, items: &[T]) {
        let (low, high) = self.0.split_at(position as usize & (self.0.len() - 1));
        let (first, second) = items.split_at(items.len().min(high.len()));
        for (slots, items) in [(high, first), (low, second)] {
            for (slot, item) in slots.iter().zip(items) {
                // SAFETY: the pointer is the slot's own; the caller has it alone.
                slot.with_mut(|slot| unsafe { (*slot).write(*item) });
            }
        }
    }

    /// Reads the slot of `position`.
    ///
    /// # Safety
    /// It must have been written, and no thread may write it at the same time.
    #[inline(always)]
    pub(super) unsafe fn read(&self, position: u64) -> T {
        // SAFETY: written, says the caller; `T: Copy`, so any number of threads may copy it out.
        self.at(position).with(|slot| unsafe { (*slot).assume_init_read() })
    }
}
