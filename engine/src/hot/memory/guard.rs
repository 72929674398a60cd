//! The allocator that knows which thread calls, and each thread's account.
//!
//! Owns one small record per thread. A call outside every scope, on a thread that is not armed, costs a read of that
//! record beside the system's allocator. Bounds: none of its own. Never locks, never allocates by itself.

use super::region::chunk::Chunk;
use super::region::owner_of;
use super::site;
use crate::board::layout::SITE_FRAMES;
use crate::profile::HotAllocations;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr::null;
use std::sync::Arc;
use std::sync::OnceLock;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Off,
    Armed(HotAllocations),
}

/// A thread's account. No destructor, so that it can be read at any time of the thread's life.
struct Local {
    mode: Cell<Mode>,
    /// Whether calls are served from `arena`.
    lending: Cell<bool>,
    arena: Cell<*const Chunk>,
    calls: Cell<u64>,
    lent: Cell<u64>,
    site: Cell<[usize; SITE_FRAMES]>,
}

thread_local! {
    static LOCAL: Local = const {
        Local {
            mode: Cell::new(Mode::Off),
            lending: Cell::new(false),
            arena: Cell::new(null()),
            calls: Cell::new(0),
            lent: Cell::new(0),
            site: Cell::new([0; SITE_FRAMES]),
        }
    };
}

static BEFORE_ABORT: OnceLock<Box<dyn Fn() + Send + Sync>> = OnceLock::new();

/// Names what to run before [`HotAllocations::Abort`] speaks: a console gives its terminal back.
/// The first one stays.
pub fn set_before_abort(run: impl Fn() + Send + Sync + 'static) {
    let _ = BEFORE_ABORT.set(Box::new(run));
}

/// A thread's calls so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::hot) struct Account {
    /// Calls of the allocator while armed.
    pub(in crate::hot) calls: u64,
    /// Calls served from the thread's reserve while armed.
    pub(in crate::hot) lent: u64,
}

/// The account of the calling thread.
#[inline]
pub(in crate::hot) fn account() -> Account {
    LOCAL.with(|local| Account { calls: local.calls.get(), lent: local.lent.get() })
}

/// From here on each call of this thread counts.
pub(in crate::hot) fn arm(on_allocation: HotAllocations) {
    LOCAL.with(|local| local.mode.set(Mode::Armed(on_allocation)));
}

/// The calls count no more.
pub(in crate::hot) fn disarm() {
    LOCAL.with(|local| local.mode.set(Mode::Off));
}

/// The callers of the first call that counted; see [`site::described`].
pub(in crate::hot) fn first_callers() -> [usize; SITE_FRAMES] {
    LOCAL.with(|local| local.site.get())
}

/// Whether the program's allocator is [`Allocator`]: makes one armed call and looks whether it was seen.
pub(in crate::hot) fn is_seen() -> bool {
    LOCAL.with(|local| {
        let (before, lending) = (local.calls.get(), local.lending.replace(false));
        let site = local.site.get();
        local.mode.set(Mode::Armed(HotAllocations::Count));
        drop(std::hint::black_box(Box::new(0u64)));
        local.mode.set(Mode::Off);
        local.lending.set(lending);
        local.site.set(site);
        local.calls.replace(before) != before
    })
}

/// Makes `arena` the one that this thread is lent from, null for none. Returns the one before.
pub(super) fn attach(arena: *const Chunk) -> *const Chunk {
    LOCAL.with(|local| local.arena.replace(arena))
}

/// Runs `body`; its allocations on this thread come from the thread's arena, as far as that has room.
pub fn lend<R>(body: impl FnOnce() -> R) -> R {
    struct Back(bool);
    impl Drop for Back {
        fn drop(&mut self) {
            LOCAL.with(|local| local.lending.set(self.0));
        }
    }
    let _back = Back(LOCAL.with(|local| local.lending.replace(true)));
    body()
}

/// Runs `body`, whose calls are no offence: what must be made anew after a panic.
pub fn excused<R>(body: impl FnOnce() -> R) -> R {
    struct Back(Mode);
    impl Drop for Back {
        fn drop(&mut self) {
            LOCAL.with(|local| local.mode.set(self.0));
        }
    }
    let _back = Back(LOCAL.with(|local| local.mode.replace(Mode::Off)));
    body()
}

/// Runs `body` and counts how often this thread calls the allocator meanwhile: for tests of what
/// cold code costs. 0 where the program's allocator is another one.
pub fn calls_of<R>(body: impl FnOnce() -> R) -> (R, u64) {
    let begin =
        |local: &Local| (local.calls.get(), local.site.get(), local.mode.replace(Mode::Armed(HotAllocations::Count)));
    let (before, site, mode) = LOCAL.with(begin);
    let found = body();
    let calls = LOCAL.with(|local| {
        local.mode.set(mode);
        local.site.set(site);
        local.calls.replace(before) - before
    });
    (found, calls)
}

/// The system's allocator behind arenas and account. Declare it with `#[global_allocator]`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Allocator;

impl Local {
    /// A block of the thread's arena, or null.
    #[inline]
    fn lent(&self, layout: Layout) -> *mut u8 {
        let arena = self.arena.get();
        if !self.lending.get() || arena.is_null() {
            return std::ptr::null_mut();
        }
        // SAFETY: an attached arena outlives its attachment, and it is attached to this thread alone.
        let block = unsafe { &*arena }.allocate(layout);
        if !block.is_null() {
            // SAFETY: the pointer came from `Arc::as_ptr` and its arena is alive; the count is the block's.
            unsafe { Arc::increment_strong_count(arena) };
            if self.mode.get() != Mode::Off {
                self.lent.set(self.lent.get() + 1);
            }
        }
        block
    }

    /// Takes a block of the region back; `false`: it is the system's.
    #[inline]
    fn taken_back(&self, block: *mut u8, layout: Layout) -> bool {
        let Some(owner) = owner_of(block as usize) else { return false };
        if owner == self.arena.get() {
            // SAFETY: the block holds its arena alive, which is attached to this thread alone.
            unsafe { &*owner }.free(block, layout);
        }
        // SAFETY: this is the count that the block was given in `lent`.
        unsafe { Arc::decrement_strong_count(owner) };
        true
    }

    /// A call that the system's allocator serves.
    #[inline]
    fn note(&self, bytes: usize) {
        if let Mode::Armed(on_allocation) = self.mode.get() {
            self.offence(bytes, on_allocation);
        }
    }

    #[cold]
    fn offence(&self, bytes: usize, on_allocation: HotAllocations) {
        // A panic allocates its payload; that it happened is told in other words.
        if std::thread::panicking() {
            return;
        }
        let calls = self.calls.get() + 1;
        self.calls.set(calls);
        if calls > 1 && on_allocation == HotAllocations::Count {
            return;
        }
        self.mode.set(Mode::Off);
        self.site.set(site::callers());
        if on_allocation == HotAllocations::Abort {
            abort(bytes, &self.site.get());
        }
        self.mode.set(Mode::Armed(on_allocation));
    }
}

fn abort(bytes: usize, site: &[usize; SITE_FRAMES]) -> ! {
    use std::io::Write;
    if let Some(run) = BEFORE_ABORT.get() {
        run();
    }
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("?");
    let place = site::described(site);
    let _ = writeln!(
        std::io::stderr(),
        "pinwheel: found an allocator call of {bytes} bytes on hot thread {name} in Live, expected none (hot_allocations: \
         Abort); it came from {place}; mend it, or count such calls with hot_allocations: Count"
    );
    std::process::abort()
}

// SAFETY: blocks come from the system's allocator or from an arena's chunk, each block goes back to where it came from,
// told apart by address alone; sizes and alignments are those of the layout.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LOCAL.with(|local| {
            let lent = local.lent(layout);
            if !lent.is_null() {
                return lent;
            }
            local.note(layout.size());
            // SAFETY: the caller's layout.
            unsafe { System.alloc(layout) }
        })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        LOCAL.with(|local| {
            let lent = local.lent(layout);
            if !lent.is_null() {
                // SAFETY: the block is `layout.size()` bytes long and nobody else's. It may have been used before.
                unsafe { lent.write_bytes(0, layout.size()) };
                return lent;
            }
            local.note(layout.size());
            // SAFETY: the caller's layout.
            unsafe { System.alloc_zeroed(layout) }
        })
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        LOCAL.with(|local| {
            if !local.taken_back(block, layout) {
                local.note(layout.size());
                // SAFETY: not of the region, so the system's; the caller's layout.
                unsafe { System.dealloc(block, layout) };
            }
        });
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        LOCAL.with(|local| {
            if owner_of(block as usize).is_none() && (!local.lending.get() || local.arena.get().is_null()) {
                local.note(bytes);
                // SAFETY: the system's block, the caller's layout and size.
                return unsafe { System.realloc(block, layout, bytes) };
            }
            // SAFETY: the caller promises that `bytes`, rounded up to the alignment, does not overflow.
            let grown = unsafe { Layout::from_size_align_unchecked(bytes, layout.align()) };
            // SAFETY: the new block is `bytes` long, the old one `layout.size()`; they do not overlap.
            unsafe {
                let new = self.alloc(grown);
                if !new.is_null() {
                    std::ptr::copy_nonoverlapping(block, new, layout.size().min(bytes));
                    self.dealloc(block, layout);
                }
                new
            }
        })
    }
}
