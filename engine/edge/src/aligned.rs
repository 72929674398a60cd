//! Items in memory of their own, from a boundary to a boundary: of cache lines or of pages.
//!
//! Owns the memory, for as long as the items live. Made on a cold thread. Bounds: the items given,
//! rounded up to the boundary. Never grows, never moves.
//!
//! # Why whole pages
//! A driver registers host memory for a device by pages. If banks of two silos lay on one page,
//! only one of the silos could register it, and the end of that silo's device context would take
//! the page away from the other.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::fmt;
use std::ops::Deref;
use std::ptr::NonNull;

/// Bytes of a cache line.
pub const LINE_BYTES: usize = 64;
/// Bytes of the largest page that a system of this architecture uses by default.
pub const PAGE_BYTES: usize = if cfg!(target_arch = "aarch64") { 64 << 10 } else { 4 << 10 };

/// A fixed number of items in one allocation; reads as a slice of them.
pub struct Aligned<T> {
    first: NonNull<T>,
    count: usize,
    layout: Layout,
}

// SAFETY: it owns its items, like a box of a slice.
unsafe impl<T: Send> Send for Aligned<T> {}
// SAFETY: shared, it hands out shared references to its items only.
unsafe impl<T: Sync> Sync for Aligned<T> {}

impl<T> Aligned<T> {
    /// `items`, in memory whose start and size are multiples of `boundary` bytes.
    ///
    /// # Panics
    /// If `boundary` is no power of two, or the items do not fit into the address space.
    #[must_use]
    pub fn new(boundary: usize, items: impl ExactSizeIterator<Item = T>) -> Aligned<T> {
        let boundary = boundary.max(align_of::<T>());
        let count = items.len();
        // An allocation has at least one byte.
        let bytes = count.checked_mul(size_of::<T>()).and_then(|bytes| bytes.max(1).checked_next_multiple_of(boundary));
        let layout = bytes.and_then(|bytes| Layout::from_size_align(bytes, boundary).ok());
        let layout = layout.expect("a bank fits into the address space, on a boundary that is a power of two");
        // SAFETY: the size is not zero.
        let memory = unsafe { alloc(layout) }.cast::<T>();
        let Some(first) = NonNull::new(memory) else { handle_alloc_error(layout) };
        let mut made = Aligned { first, count: 0, layout };
        for item in items.take(count) {
            // SAFETY: fewer than `count` items lie there so far, and the memory has room for
            // `count`, aligned for them.
            unsafe { first.add(made.count).write(item) };
            made.count += 1;
        }
        assert_eq!(made.count, count, "as many items as announced");
        made
    }
}

impl<T> Deref for Aligned<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: `count` items were written there, and stay until `self` is dropped.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.count) }
    }
}

impl<T> Drop for Aligned<T> {
    fn drop(&mut self) {
        // SAFETY: the items are ours, and nobody sees them any more.
        unsafe { std::ptr::slice_from_raw_parts_mut(self.first.as_ptr(), self.count).drop_in_place() };
        // SAFETY: allocated in `new` with this layout.
        unsafe { dealloc(self.first.as_ptr().cast(), self.layout) };
    }
}

impl<T: fmt::Debug> fmt::Debug for Aligned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.deref().fmt(f)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{Aligned, LINE_BYTES, PAGE_BYTES};
    use std::sync::Arc;

    #[test]
    fn items_lie_from_boundary_to_boundary_and_are_dropped_once() {
        let item = Arc::new(7);
        for boundary in [LINE_BYTES, PAGE_BYTES] {
            for count in [0, 1, 9, PAGE_BYTES] {
                let items = Aligned::new(boundary, (0..count).map(|_| Arc::clone(&item)));
                assert_eq!((items.len(), Arc::strong_count(&item)), (count, count + 1));
                assert!(items.as_ptr().addr().is_multiple_of(boundary) && items.iter().all(|item| **item == 7));
            }
        }
        assert_eq!(Arc::strong_count(&item), 1);
    }

    /// Rounded up, so many would be none.
    #[test]
    #[should_panic(expected = "fits into the address space")]
    fn more_items_than_the_address_space_holds_are_refused() {
        let _ = Aligned::new(LINE_BYTES, (0..usize::MAX).map(|_| 7u8));
    }

    #[test]
    fn an_item_whose_making_panics_leaves_the_others_to_be_dropped() {
        let item = Arc::new(7);
        let made = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            Aligned::new(LINE_BYTES, (0..4).map(|at| if at < 3 { Arc::clone(&item) } else { panic!("the fourth") }))
        }));
        assert!(made.is_err() && Arc::strong_count(&item) == 1);
    }
}
