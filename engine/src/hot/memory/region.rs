//! The address range that all arenas share, so that one comparison tells their blocks from the system's.
//!
//! Owns the reservation, made once and never given back, and the slots in it. Taking and returning a slot is cold
//! (a lock, system calls); asking whether an address lies inside is two loads. Bounded by [`ARENAS_MAX`] slots of
//! [`ARENA_BYTES_MAX`] bytes of address space; memory is used only where an arena has grown.

pub(super) mod chunk;

use super::pages;
use crate::host::limit;
use chunk::{Chunk, HUGE};
use std::ptr::null_mut;
#[expect(clippy::disallowed_types, reason = "slots change hands on cold paths only")]
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Most arenas of a process at one time.
pub const ARENAS_MAX: usize = 256;
/// Most bytes of one arena.
pub const ARENA_BYTES_MAX: usize = 64 << 20;

/// First address; 0: not reserved. Relaxed, as are the owners: whoever asks about a block of the region was handed that
/// block, and therefore everything that was stored before the block was made.
static BASE: AtomicUsize = AtomicUsize::new(0);
/// Who owns each slot.
static OWNERS: [AtomicPtr<Chunk>; ARENAS_MAX] = [const { AtomicPtr::new(null_mut()) }; ARENAS_MAX];
#[expect(clippy::disallowed_types, reason = "slots change hands on cold paths only")]
static SLOTS: Mutex<ArenaSlots> = Mutex::new(ArenaSlots { base: None, taken: [false; ARENAS_MAX] });

struct ArenaSlots {
    /// `Some(0)`: the system refused.
    base: Option<usize>,
    taken: [bool; ARENAS_MAX],
}

/// A slot of the region, readable and writable, without pages yet.
#[derive(Debug)]
pub(super) struct ArenaSlot {
    number: usize,
    pub(super) address: usize,
}

/// Takes a slot; `None` where the system gives no address space, or all are taken.
pub(super) fn take() -> Option<ArenaSlot> {
    let mut slots = SLOTS.lock().unwrap_or_else(PoisonError::into_inner);
    let base = *slots.base.get_or_insert_with(reserve);
    let number = slots.taken.iter().position(|taken| !taken).filter(|_| base != 0)?;
    let address = base + number * ARENA_BYTES_MAX;
    // SAFETY: the range is a free slot of our own reservation: nobody has a reference into it.
    if !unsafe { pages::open(address, ARENA_BYTES_MAX) } {
        return None;
    }
    slots.taken[number] = true;
    Some(ArenaSlot { number, address })
}

/// The address of the region; 0 if there is none. Under a limit on the address space the region takes at
/// most half of it: the rest is for threads that start later.
fn reserve() -> usize {
    // Huge pages begin at their own multiples.
    let bytes = ARENAS_MAX * ARENA_BYTES_MAX + HUGE;
    if limit::address_bytes().is_some_and(|limit| limit < 2 * bytes as u64) {
        return 0;
    }
    let base = pages::reserve(bytes).next_multiple_of(HUGE);
    BASE.store(base, Ordering::Relaxed);
    base
}

impl ArenaSlot {
    /// Names the chunk that answers for blocks of this slot.
    pub(super) fn belongs_to(&self, chunk: *const Chunk) {
        OWNERS[self.number].store(chunk.cast_mut(), Ordering::Relaxed);
    }
}

impl Drop for ArenaSlot {
    /// Gives pages, locks and advice back at once, by a mapping in their stead.
    fn drop(&mut self) {
        let mut slots = SLOTS.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the slot is ours and its last block is gone: a chunk drops it when its count has reached zero.
        let is_empty = unsafe { pages::empty(self.address, ARENA_BYTES_MAX) };
        // A slot that could not be emptied is not used again.
        slots.taken[self.number] = !is_empty;
    }
}

/// The chunk that answers for `address`, if that lies in the region.
#[inline]
pub(super) fn owner_of(address: usize) -> Option<*const Chunk> {
    let base = BASE.load(Ordering::Relaxed);
    let offset = address.wrapping_sub(base);
    if base == 0 || offset >= ARENAS_MAX * ARENA_BYTES_MAX {
        return None;
    }
    Some(OWNERS[offset / ARENA_BYTES_MAX].load(Ordering::Relaxed).cast_const())
}
