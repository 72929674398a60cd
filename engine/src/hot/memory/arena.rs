//! An arena: memory of one thread's own making, touched and locked before Live.
//!
//! Owns one place of the region. Blocks of up to [`CLASS_BYTES_MAX`] are powers of two and return to a list of their
//! class when their own thread frees them; larger ones, and those freed elsewhere, are not used again. Grows by
//! [`STEP`], beyond the first two mebibytes by huge pages where the system has them. Used by one thread at a time. Never
//! grows once sealed.

use super::region::{self, ARENA_BYTES_MAX, Place};
use super::{guard, lend, pages};
use std::alloc::Layout;
use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr::null_mut;
use std::sync::Arc;

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

/// What an arena holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArenaUse {
    /// Bytes given out or passed over.
    pub used_bytes: usize,
    /// Bytes touched.
    pub touched_bytes: usize,
    /// Of these: locked in memory.
    pub locked_bytes: usize,
}

/// The memory itself, alive as long as its arena or one of its blocks.
#[derive(Debug)]
pub(super) struct Chunk {
    place: Place,
    used: Cell<usize>,
    touched: Cell<usize>,
    locked: Cell<usize>,
    lock_refused: Cell<bool>,
    sealed: Cell<bool>,
    /// Address of the first free block of each class, which holds the next one's; 0: none.
    free: [Cell<usize>; CLASSES],
}

// SAFETY: the cells are touched by the thread that has the chunk attached, and an arena is attached to one thread at a
// time (`Arena::within` holds it exclusively, a hot thread keeps its own for life). Other threads only drop their count.
unsafe impl Send for Chunk {}
// SAFETY: as above.
unsafe impl Sync for Chunk {}

impl Chunk {
    fn new(place: Place) -> Chunk {
        Chunk {
            place,
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
    pub(super) fn allocate(&self, layout: Layout) -> *mut u8 {
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
    pub(super) fn free(&self, block: *mut u8, layout: Layout) {
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
        (self.place.address + at) as *mut u8
    }

    /// Touches, and locks where the limit allows, up to `end` at least.
    fn grow(&self, end: usize) -> bool {
        let from = self.touched.get();
        let step = if end > HUGE { HUGE } else { STEP };
        let to = end.next_multiple_of(step).min(ARENA_BYTES_MAX);
        let start = self.place.address + from;
        if step == HUGE {
            // SAFETY: the range lies in our place.
            unsafe { pages::prefer_huge(start, to - from) };
        }
        for page in (from..to).step_by(PAGE) {
            // SAFETY: in our place, mapped readable and writable, beyond everything handed out so far.
            unsafe { ((self.place.address + page) as *mut u8).write_volatile(0) };
        }
        // SAFETY: the range lies in our place, which is open.
        if !self.lock_refused.get() && unsafe { pages::lock(start, to - from) } {
            self.locked.set(self.locked.get() + (to - from));
        } else {
            self.lock_refused.set(true);
        }
        self.touched.set(to);
        true
    }
}

/// An arena's handle. Dropping it lets the memory go as soon as the last of its blocks is dropped.
#[derive(Debug)]
pub struct Arena {
    chunk: Option<Arc<Chunk>>,
}

impl Arena {
    /// An empty arena. Where the system gives no address space, everything inside it comes from the system's allocator.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "a place is taken on purpose")]
    pub fn new() -> Arena {
        let chunk = region::take().map(|place| Arc::new(Chunk::new(place)));
        if let Some(chunk) = &chunk {
            chunk.place.belongs_to(Arc::as_ptr(chunk));
        }
        Arena { chunk }
    }

    /// No arena: everything comes from the system's allocator.
    #[must_use]
    pub fn none() -> Arena {
        Arena { chunk: None }
    }

    /// Runs `body`; what it allocates on this thread lies in the arena.
    ///
    /// # Panics
    /// If the arena is sealed: memory is made before Live.
    pub fn within<R>(&mut self, body: impl FnOnce() -> R) -> R {
        assert!(!self.is_sealed(), "found an arena that is sealed, expected to fill it before Live");
        let _restore = Restore(guard::attach(self.chunk()));
        lend(body)
    }

    /// Touches `bytes` beyond what is used, for [`lend`] in Live.
    pub fn reserve(&mut self, bytes: usize) {
        if let Some(chunk) = &self.chunk {
            let end = (chunk.used.get() + bytes).min(ARENA_BYTES_MAX);
            if end > chunk.touched.get() && !chunk.sealed.get() {
                chunk.grow(end);
            }
        }
    }

    /// Ends all growth.
    pub fn seal(&mut self) {
        if let Some(chunk) = &self.chunk {
            chunk.sealed.set(true);
        }
    }

    /// Whether it may no longer grow.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        self.chunk.as_ref().is_some_and(|chunk| chunk.sealed.get())
    }

    /// What it holds.
    #[must_use]
    pub fn usage(&self) -> ArenaUse {
        self.chunk.as_ref().map_or_else(ArenaUse::default, |chunk| ArenaUse {
            used_bytes: chunk.used.get(),
            touched_bytes: chunk.touched.get(),
            locked_bytes: chunk.locked.get(),
        })
    }

    /// Makes this the arena that the calling thread is lent from.
    pub(in crate::hot) fn attach(self) -> Attached {
        let restore = Restore(guard::attach(self.chunk()));
        Attached { _restore: restore, arena: self, own_thread: PhantomData }
    }

    fn chunk(&self) -> *const Chunk {
        self.chunk.as_ref().map_or(std::ptr::null(), Arc::as_ptr)
    }
}

/// A thread's own arena, until it is dropped.
#[derive(Debug)]
pub(in crate::hot) struct Attached {
    /// Before the arena, so that nothing is lent from one that is gone.
    _restore: Restore,
    pub(in crate::hot) arena: Arena,
    own_thread: PhantomData<*const ()>,
}

#[derive(Debug)]
struct Restore(*const Chunk);

impl Drop for Restore {
    fn drop(&mut self) {
        guard::attach(self.0);
    }
}
