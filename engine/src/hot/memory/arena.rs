//! An arena: memory of one thread's own making, touched and locked before Live.
//!
//! Owns one [`Chunk`] of the region. Used by one thread at a time. Never grows once sealed.

use super::region::chunk::Chunk;
use super::region::{self, ARENA_BYTES_MAX};
use super::{guard, lend};
use std::marker::PhantomData;
use std::sync::Arc;

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

/// An arena's handle. Dropping it lets the memory go as soon as the last of its blocks is dropped.
#[derive(Debug)]
pub struct Arena {
    chunk: Option<Arc<Chunk>>,
}

impl Arena {
    /// An empty arena. Where the system gives no address space, everything inside it comes from the system's allocator.
    #[expect(clippy::new_without_default, reason = "a slot is taken on purpose")]
    pub fn new() -> Arena {
        let chunk = region::take().map(|slot| Arc::new(Chunk::new(slot)));
        if let Some(chunk) = &chunk {
            chunk.slot.belongs_to(Arc::as_ptr(chunk));
        }
        Arena { chunk }
    }

    /// No arena: everything comes from the system's allocator.
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
    pub fn is_sealed(&self) -> bool {
        self.chunk.as_ref().is_some_and(|chunk| chunk.sealed.get())
    }

    /// What it holds.
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
