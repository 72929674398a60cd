//! Marks: how far one thread of a silo has come with each stream, for another thread of it to see.
//!
//! Owns one number per stream. One thread sets, any reads. Bounds: [`super::PAGES_MAX`] words. Never waits, never
//! allocates after construction.
//!
//! | edge | release site | acquire site | publishes |
//! |---|---|---|---|
//! | O6 | [`Marks::set`] | [`Marks::get`] | whatever was done up to that mark |

use crate::sync::{AtomicU64, Ordering, edge};

/// A number for each stream.
#[derive(Debug)]
pub struct Marks {
    words: Box<[AtomicU64]>,
}

impl Marks {
    /// `of` says each stream's first number.
    #[must_use]
    pub fn new(streams: u32, of: impl Fn(u32) -> u64) -> Marks {
        Marks { words: (0..streams).map(|stream| AtomicU64::new(of(stream))).collect() }
    }

    /// The mark of `stream`.
    ///
    /// # Panics
    /// As [`Marks::set`], if there is no such stream.
    #[inline]
    #[must_use]
    pub fn get(&self, stream: u32) -> u64 {
        // ORDERING: acquire side of O6. Relaxed could let a stream go on elsewhere before what was counted of it here is
        // seen there. Model: loom_page::a_mark_shows_what_was_done_up_to_it.
        self.words[stream as usize].load(edge("O6.acquire", Ordering::Acquire))
    }

    /// Sets the mark of `stream`. Called by one thread only.
    #[inline]
    pub fn set(&self, stream: u32, value: u64) {
        // ORDERING: release side of O6, publishing what was done up to the mark. Relaxed could show the mark before it;
        // SeqCst adds nothing, there is one writer. Model: as above.
        self.words[stream as usize].store(value, edge("O6.release", Ordering::Release));
    }
}
