//! Marks: one thread's progress in each stream, read by another thread.
//!
//! Owns one number per stream. One thread sets, any reads. Bounds: [`super::PAGES_MAX`] words.
//! Never waits, never allocates after construction.
//!
//! | edge | release site | acquire site | publishes |
//! |---|---|---|---|
//! | O6 | [`Marks::set`] | [`Marks::get`] | all work up to that mark |

use crate::sync::{AtomicU64, Ordering, edge};

/// One number for each stream.
#[derive(Debug)]
pub struct Marks {
    words: Box<[AtomicU64]>,
}

impl Marks {
    /// Marks for `streams` streams; `of` gives each stream's first number.
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
        // ORDERING: acquire side of O6. Relaxed could let a stream continue at another silo before
        // this silo's counts of it are visible there. Model:
        // loom_page::a_mark_shows_what_was_done_up_to_it.
        self.words[stream as usize].load(edge("O6.acquire", Ordering::Acquire))
    }

    /// Sets the mark of `stream`. Called by one thread only.
    #[inline]
    pub fn set(&self, stream: u32, value: u64) {
        // ORDERING: release side of O6, publishing all work up to the mark. Relaxed could show the
        // mark before that work; SeqCst adds nothing, there is one writer. Model: as above.
        self.words[stream as usize].store(value, edge("O6.release", Ordering::Release));
    }
}
