//! A chunk: the memory of one arena, given out in blocks.
//!
//! Owns one slot of the region. Blocks of up to [`CLASS_BYTES_MAX`] are powers of two and return to
//! a list of their class when their own thread frees them; larger ones, and those freed elsewhere,
//! are not used again. Grows by [`STEP`], beyond the first two mebibytes by huge pages where the
//! system has them. Used by one thread at a time. Never grows once sealed.

use super::{ARENA_BYTES_MAX, ArenaSlot};
use crate::hot::memory::pages;
use std::alloc::Layout;
use std::cell::Cell;
use std::ptr::null_mut;

/// Smallest block.
const BLOCK_MIN: usize = 16;
/// Largest block that is used again.
const CLASS_BYTES_MAX: usize = 1 << 20;
const CLASSES: usize = (CLASS_BYTES_MAX / BLOCK_MIN).ilog2() as usize + 1;
/// What a growing arena takes at least.
const STEP: usize = 64 << 10;
/// A huge page; arenas that stay below one are not worth one.
pub(super) const HUGE: usize = 2 << 20;
const PAGE: usize = 4096;

/// The memory itself, alive as long as its arena or one of its blocks.
#[derive(Debug)]
pub(in crate::hot::memory) struct Chunk {
    pub(in crate::hot::memory) slot: ArenaSlot,
    pub(in crate::hot::memory) used: Cell<usize>,
    pub(in crate::hot::memory) touched: Cell<usize>,
    pub(in crate::hot::memory) locked: Cell<usize>,
    lock_refused: Cell<bool>,
    pub(in crate::hot::memory) sealed: Cell<bool>,
    /// Address of the first free block of each class, which holds the next one's; 0: none.
    free: [Cell<usize>; CLASSES],
}

// SAFETY: the cells are touched by the thread that has the chunk attached, and an arena is attached
// to one thread at a time (`Arena::within` holds it exclusively, a hot thread keeps its own for
// life). Other threads only drop their count.
unsafe impl Send for Chunk {}
// SAFETY: as above.
unsafe impl Sync for Chunk {}

impl Chunk {
    pub(in crate::hot::memory) fn new(slot: ArenaSlot) -> Chunk {
        Chunk {
            slot,
            used: Cell::new(0),
            touched: Cell::new(0),
            locked: Cell::new(0),
            lock_refused: Cell::new(false),
            sealed: Cell::new(false),
            free: [const { Cell::new(0) }; CLASSES],
        }
    }

    fn class(layout: Layout) -> Option<usize> {
        let bytes = layout.size().max(layout.align()).max(BLOCK_MIN);
        (bytes <= CLASS_BYTES_MAX && layout.align() <= PAGE)
            .then(|| (bytes.next_power_of_two() / BLOCK_MIN).ilog2() as usize)
    }

    /// A block, or null. Only on the thread that has the chunk attached.
    pub(in crate::hot::memory) fn allocate(&self, layout: Layout) -> *mut u8 {
        let Some(class) = Chunk::class(layout) else {
            return self.bump(layout.size().next_multiple_of(64), layout.align().max(64));
        };
        let free = self.free[class].get();
        if free == 0 {
            return self.bump(BLOCK_MIN << class, (BLOCK_MIN << class).min(PAGE));
        }
        // SAFETY: a listed block is free, at least a word long and aligned to a word; `free` wrote the word.
        self.free[class].set(unsafe { *(free as *const usize) });
        free as *mut u8
    }

    /// Takes a block back. Only on the thread that has the chunk attached.
    pub(in crate::hot::memory) fn free(&self, block: *mut u8, layout: Layout) {
        if let Some(class) = Chunk::class(layout) {
            // SAFETY: the block is the caller's to give up, at least a word long and aligned to a word.
            unsafe { *block.cast::<usize>() = self.free[class].get() };
            self.free[class].set(block as usize);
        }
    }

    fn bump(&self, bytes: usize, align: usize) -> *mut u8 {
        // Places begin at multiples of a page.
        if align > PAGE {
            return null_mut();
        }
        let at = self.used.get().next_multiple_of(align);
        let Some(end) = at.checked_add(bytes).filter(|end| *end <= ARENA_BYTES_MAX) else { return null_mut() };
        if end > self.touched.get() && (self.sealed.get() || !self.grow(end)) {
            return null_mut();
        }
        self.used.set(end);
        (self.slot.address + at) as *mut u8
    }

    /// Touches, and locks where the limit allows, up to `end` at least.
    pub(in crate::hot::memory) fn grow(&self, end: usize) -> bool {
        let from = self.touched.get();
        let step = if end > HUGE { HUGE } else { STEP };
        let to = end.next_multiple_of(step).min(ARENA_BYTES_MAX);
        let start = self.slot.address + from;
        if step == HUGE {
            // SAFETY: the range lies in our slot.
            unsafe { pages::prefer_huge(start, to - from) };
        }
        for page in (from..to).step_by(PAGE) {
            // SAFETY: in our slot, mapped readable and writable, beyond everything handed out so far.
            unsafe { ((self.slot.address + page) as *mut u8).write_volatile(0) };
        }
        // SAFETY: the range lies in our slot, which is open.
        if !self.lock_refused.get() && unsafe { pages::lock(start, to - from) } {
            self.locked.set(self.locked.get() + (to - from));
        } else {
            self.lock_refused.set(true);
        }
        self.touched.set(to);
        true
    }
}
