//! What is known of each stream beside its shots under way: how far it is committed, and its Pauli frame.
//!
//! Owns one record for each stream of the engine: a page, in the arbiter's words. Written by whichever decode worker runs
//! the stream's next commit: the graph lets one of them run at a time, each after the one before (the record is their
//! InOut region), and its edges T1 to T3 order the words. Every write passes [`StreamStates::begin_write`], which the page's word
//! decides: while the page is another silo's, on its way or in doubt, nothing is written here. Bounds: the streams. Never
//! allocates after construction, never waits: who is refused asks again.

use crate::arbiter::deadlines::Timebase;
use crate::arbiter::page::{PageTable, WriteRefused, Writing};
use crate::units::Ticks;
use pinwheel_edge::slot::OBSERVABLE_WORDS_MAX;
use pinwheel_edge::sync::{DataWord, DataWords};
use std::sync::Arc;

/// Words of a record before the parities: sequence numbers committed, tombstones among them.
pub(super) const HEAD_WORDS: usize = 2;

/// A record on its way from one silo to another: PAGE_DATA.
pub type StateBytes = [u64; HEAD_WORDS + OBSERVABLE_WORDS_MAX];

/// The records.
pub struct StreamStates {
    words: DataWords,
    pages: Arc<PageTable>,
    base: Timebase,
}

/// A stream's record, as somebody reads it who knows that nobody writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamState {
    /// Sequence numbers committed: the next one to be.
    pub committed: u64,
    /// Of these: answered with an error.
    pub tombstones: u64,
    /// The Pauli frame: the parity of all observables committed.
    pub frame: Vec<u64>,
}

impl StreamStates {
    /// One for each page of `pages`, with so many words of observables: nothing committed, every frame even.
    ///
    /// # Panics
    /// If these are more than [`OBSERVABLE_WORDS_MAX`].
    #[must_use]
    pub fn new(pages: Arc<PageTable>, base: Timebase, observable_words: usize) -> StreamStates {
        assert!(observable_words <= OBSERVABLE_WORDS_MAX, "{observable_words} words do not travel");
        StreamStates { words: DataWords::new(pages.len(), HEAD_WORDS + observable_words), pages, base }
    }

    /// The page words that say who may write.
    #[must_use]
    pub fn pages(&self) -> &Arc<PageTable> {
        &self.pages
    }

    /// The right to commit one sequence number of `stream`, for the task whose turn it is.
    ///
    /// # Errors
    /// If the state is not this silo's to write now: the commit waits, and asks again.
    #[inline]
    pub fn begin_write(&self, stream: u32) -> Result<StateWrite<'_>, WriteRefused> {
        let writing = self.pages.begin_write(stream)?;
        Ok(StateWrite { record: self.words.record(stream as usize), writing, base: self.base })
    }

    /// The record of `stream`, to be sent: for whom the arbiter lets, who alone may read it then.
    #[must_use]
    pub fn bytes(&self, stream: u32) -> StateBytes {
        let mut bytes = [0; HEAD_WORDS + OBSERVABLE_WORDS_MAX];
        bytes.iter_mut().zip(self.words.record(stream as usize)).for_each(|(byte, word)| *byte = word.load());
        bytes
    }

    /// Puts a record that was sent in place: for whom the arbiter lets, who alone may write it then.
    pub fn put(&self, stream: u32, bytes: &StateBytes) {
        self.words.record(stream as usize).iter().zip(bytes).for_each(|(word, byte)| word.store(*byte));
    }

    /// Sequence numbers of `stream` committed. For who knows that nobody writes it.
    #[must_use]
    pub fn committed(&self, stream: u32) -> u64 {
        self.words.record(stream as usize)[0].load()
    }

    /// How things stand with `stream`. For checks between two tasks, and after the last.
    #[must_use]
    pub fn read(&self, stream: u32) -> StreamState {
        let record = self.words.record(stream as usize);
        StreamState {
            committed: record[0].load(),
            tombstones: record[1].load(),
            frame: record[HEAD_WORDS..].iter().map(DataWord::load).collect(),
        }
    }
}

/// One write to a stream's record.
#[must_use = "a sequence number that is neither committed nor buried holds up its stream"]
pub struct StateWrite<'a> {
    record: &'a [DataWord],
    writing: Writing<'a>,
    base: Timebase,
}

impl StateWrite<'_> {
    /// Commits the answer of `sequence` at `at`, from when on the page is hot.
    ///
    /// # Panics
    /// If it is not the next of its stream.
    pub fn commit(self, sequence: u64, observables: &[u64], at: Ticks) {
        self.advance(sequence);
        for (parity, word) in self.record[HEAD_WORDS..].iter().zip(observables) {
            parity.store(parity.load() ^ word);
        }
        self.writing.commit(self.base.moment(at));
    }

    /// Commits that `sequence` was answered with an error: the frame stays as it is.
    ///
    /// # Panics
    /// If it is not the next of its stream.
    pub fn bury(self, sequence: u64, at: Ticks) {
        self.advance(sequence);
        self.record[1].store(self.record[1].load() + 1);
        self.writing.commit(self.base.moment(at));
    }

    /// Commits that every number from the next one up to `below` was answered with an error; how many those are.
    pub fn bury_to(self, below: u64, at: Ticks) -> u64 {
        let next = self.record[0].load();
        let count = below.saturating_sub(next);
        self.record[0].store(next + count);
        self.record[1].store(self.record[1].load() + count);
        self.writing.commit(self.base.moment(at));
        count
    }

    fn advance(&self, sequence: u64) {
        assert_eq!(self.record[0].load(), sequence, "commits of a stream are in its order");
        self.record[0].store(sequence + 1);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{StreamState, StreamStates};
    use crate::arbiter::deadlines::Timebase;
    use crate::arbiter::page::{Authority, Hint, Limits, Moment, PageTable, Request, Signals, Silo, State};
    use crate::arbiter::page::{WriteBuffer, WriteRefused};
    use crate::units::{TickRate, Ticks};
    use std::sync::Arc;

    const ME: Silo = Silo::new(0);
    const OTHER: Silo = Silo::new(1);
    const BASE: Timebase = Timebase { rate: TickRate::NANOS, start: Ticks(0) };

    fn states(observable_words: usize) -> StreamStates {
        let owner = |page| if page == 2 { OTHER } else { ME };
        StreamStates::new(Arc::new(PageTable::new(ME, 3, Limits::SEED, owner)), BASE, observable_words)
    }

    #[test]
    fn a_frame_is_the_parity_of_what_was_committed_and_a_tombstone_leaves_it() {
        let states = states(2);
        states.begin_write(1).unwrap().commit(0, &[0b11, 1], Ticks(0));
        states.begin_write(1).unwrap().bury(1, Ticks(0));
        states.begin_write(1).unwrap().commit(2, &[0b01, 1], Ticks(0));
        assert_eq!(states.read(1), StreamState { committed: 3, tombstones: 1, frame: vec![0b10, 0] });
        assert_eq!(states.read(0), StreamState { committed: 0, tombstones: 0, frame: vec![0, 0] });
    }

    #[test]
    fn an_heir_buries_what_was_answered_with_an_error_and_no_number_twice() {
        let states = states(1);
        states.begin_write(0).unwrap().commit(0, &[1], Ticks(0));
        assert_eq!(states.begin_write(0).unwrap().bury_to(4, Ticks(0)), 3);
        assert_eq!(states.begin_write(0).unwrap().bury_to(4, Ticks(0)), 0);
        assert_eq!(states.read(0), StreamState { committed: 4, tombstones: 3, frame: vec![1] });
    }

    #[test]
    #[should_panic(expected = "commits of a stream are in its order")]
    fn a_commit_out_of_order_is_refused() {
        states(1).begin_write(0).unwrap().commit(1, &[0], Ticks(0));
    }

    #[test]
    fn a_commit_makes_its_page_hot_and_a_tombstone_does_too() {
        let states = states(1);
        states.begin_write(0).unwrap().commit(0, &[0], Ticks(9_000));
        states.begin_write(1).unwrap().bury(0, Ticks(9_000));
        for page in [0, 1] {
            let word = states.pages().word(page);
            assert_eq!((word.state(), word.deadline().left_us(Moment::from_micros(9))), (State::LocalHot, 1));
        }
    }

    #[test]
    fn a_state_that_is_another_silos_or_on_its_way_is_not_written() {
        let states = states(1);
        assert_eq!(states.begin_write(2).err(), Some(WriteRefused::NotOwner));
        let (epoch, authority) = (states.pages().word(0).epoch(), Authority::Port);
        let request = Request { from: OTHER, epoch, hint: Hint::Default, ttl_us: 0, refusals: 0, authority };
        let signals = Signals { write_buffer: WriteBuffer::Drained };
        assert!(states.pages().decide(0, &request, signals, Moment::from_micros(1)).is_granted());
        assert_eq!(states.begin_write(0).err(), Some(WriteRefused::Transferring));
        let _ = states.pages().due(0, Moment::from_micros(100)).unwrap();
        assert_eq!(states.begin_write(0).err(), Some(WriteRefused::InDoubt));
        assert_eq!(states.read(0).committed, 0);
    }

    #[test]
    fn a_record_arrives_as_it_was_sent() {
        let (from, to) = (states(2), states(2));
        from.begin_write(1).unwrap().commit(0, &[5, 7], Ticks(0));
        to.put(1, &from.bytes(1));
        assert_eq!(to.read(1), from.read(1));
    }
}
