//! Words by which a reader knows that what it read belongs together: a publication word, and the
//! sequence lock.
//!
//! Owns nothing: the words lie wherever the caller has them, in a mapped region too, and any bytes
//! in them are valid, such as those that a process left when it died in the middle of a record. One
//! thread writes a record, any thread or process reads it, from pages that it may only read as
//! well. Bounds: the writer never waits, a reader tries [`TRIES`] times. Allocates nothing.
//!
//! | edge | release site | acquire site | publishes |
//! |---|---|---|---|
//! | Q1 | [`Seqlock::write`], fence after `begun` | [`Seqlock::try_read`], fence before `begun` | that the words may be the next record's |
//! | Q2 | [`set_last`] | [`get_first`] | what was written before the word |
//!
//! # Why fences on the reader's side
//! Rust promises relaxed loads, and no others, on pages that are mapped for reading only. A relaxed
//! load with an acquire fence after it orders at least as much as an acquire load, and costs
//! nothing more on x86-64.
//!
//! # Why the record's words are atomics
//! A reader may read them while they are written, and then throws away what it read. With plain
//! data that would be a data race.

use crate::sync::{MappedWord, Ordering, edge, fence_edge};

/// Times that [`Seqlock::read`] tries. A record is written in nanoseconds, and rarely.
pub const TRIES: usize = 8;

/// Stores into a word that only the caller writes, after everything that it wrote before.
#[inline]
pub fn set_last(word: &MappedWord, value: u64) {
    // ORDERING: release side of Q2: a reader that gets the value by `get_first` sees what was
    // written before it. Relaxed could show the value before the words that it publishes. One
    // writer, one location: nothing stronger is needed. Model:
    // loom_seqlock::a_publication_word_shows_what_was_written_before_it.
    word.store(value, edge("Q2.release", Ordering::Release));
}

/// Reads a word before everything that it publishes; see [`set_last`].
#[inline]
#[must_use]
pub fn get_first(word: &MappedWord) -> u64 {
    let value = word.load(Ordering::Relaxed);
    // ORDERING: acquire side of Q2, of the load above. Without it the words read next could be
    // older than the value. Model: as for `set_last`.
    fence_edge("Q2.acquire", Ordering::Acquire);
    value
}

/// The numbers of a record that has a meaning only as a whole. Each record written has a number of
/// its own, above 0.
#[derive(Clone, Copy, Debug)]
pub struct Seqlock<'a> {
    begun: Option<&'a MappedWord>,
    written: &'a MappedWord,
}

impl<'a> Seqlock<'a> {
    /// `begun` holds the number of the record that was begun last, `written` of the one that was
    /// completed last.
    #[must_use]
    pub fn new(begun: &'a MappedWord, written: &'a MappedWord) -> Seqlock<'a> {
        Seqlock { begun: Some(begun), written }
    }

    /// One word does for both: it is 0 while a record is written, and nothing is read then.
    #[must_use]
    pub fn of_one_word(written: &'a MappedWord) -> Seqlock<'a> {
        Seqlock { begun: None, written }
    }

    /// Writes record `number`, whose words `words` stores. Called by the record's one writer, with
    /// a number that no earlier record had.
    #[inline]
    pub fn write(&self, number: u64, words: impl FnOnce()) {
        match self.begun {
            Some(begun) => begun.store(number, Ordering::Relaxed),
            None => self.written.store(0, Ordering::Relaxed),
        }
        // ORDERING: release side of Q1: whoever sees a word that is stored below sees that the
        // record was begun. Without it a reader could take new words for the old record's. A
        // release store of `begun` would order what comes before it, not what follows. Model:
        // loom_seqlock::a_record_is_read_whole_or_not_at_all.
        fence_edge("Q1.release", Ordering::Release);
        words();
        set_last(self.written, number);
    }

    /// What `words` makes of the record's number and words, read once; `None` if they were being
    /// written meanwhile. Number 0: nothing was written yet.
    #[inline]
    pub fn try_read<R>(&self, words: impl FnOnce(u64) -> R) -> Option<R> {
        let number = get_first(self.written);
        if number == 0 && self.begun.is_none() {
            return None;
        }
        let found = words(number);
        // ORDERING: acquire side of Q1, of the relaxed loads in `words`: if one of them saw a later
        // record's word, the load below sees that record's number. Without it that load could be
        // done first. Model: as for `write`.
        fence_edge("Q1.acquire", Ordering::Acquire);
        (self.begun.unwrap_or(self.written).load(Ordering::Relaxed) == number).then_some(found)
    }

    /// As [`Seqlock::try_read`], tried [`TRIES`] times.
    #[inline]
    pub fn read<R>(&self, mut words: impl FnMut(u64) -> R) -> Option<R> {
        (0..TRIES).find_map(|_| self.try_read(&mut words))
    }
}
