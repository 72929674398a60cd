//! The committed state of each stream: how many sequence numbers are committed, and its Pauli
//! frame.
//!
//! Owns one record (the arbiter's page) for each stream of the engine. The graph role writes it, one
//! commit after the other in stream order. A joint readout's task reads it: the graph role commits
//! nothing to the stream until the task has ended, and the graph's edges T1 to T3 order the words.
//! Every write passes [`StreamStates::begin_write`], which checks the page word: while another silo
//! owns the page, or it is in transfer or in doubt, nothing is written here. The silo's arbiter runs
//! on the same thread, so no transfer begins during a write. Bounds: the streams. Never allocates
//! after construction, never waits: a refused commit tries again.

use crate::arbiter::deadlines::Timebase;
use crate::arbiter::page::{PageTable, WriteRefused};
use crate::units::Ticks;
use pinwheel_edge::slot::OBSERVABLE_WORDS_MAX;
use pinwheel_edge::sync::{DataWord, DataWords};
use std::sync::Arc;

/// Words of a record before the parities: sequence numbers committed, and how many of them are
/// tombstones.
pub(super) const HEAD_WORDS: usize = 2;

/// A record in transfer from one silo to another: PAGE_DATA.
pub type StateBytes = [u64; HEAD_WORDS + OBSERVABLE_WORDS_MAX];

/// The records of all streams.
pub struct StreamStates {
    words: DataWords,
    pages: Arc<PageTable>,
    base: Timebase,
}

/// A copy of a stream's record, read while no thread writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamState {
    /// Sequence numbers committed, which is also the next sequence number.
    pub committed: u64,
    /// How many of them were answered with an error.
    pub tombstones: u64,
    /// The Pauli frame: the parity of all observables committed.
    pub frame: Vec<u64>,
}

impl StreamStates {
    /// One record for each page of `pages`, with `observable_words` words of observables: nothing
    /// committed, every frame even.
    ///
    /// # Panics
    /// If `observable_words` exceeds [`OBSERVABLE_WORDS_MAX`].
    pub fn new(pages: Arc<PageTable>, base: Timebase, observable_words: usize) -> StreamStates {
        assert!(
            observable_words <= OBSERVABLE_WORDS_MAX,
            "a record holds {OBSERVABLE_WORDS_MAX} observable words at most, not {observable_words}"
        );
        StreamStates { words: DataWords::new(pages.len(), HEAD_WORDS + observable_words), pages, base }
    }

    /// The page words, which say which silo may write each record.
    pub fn pages(&self) -> &Arc<PageTable> {
        &self.pages
    }

    /// The right to commit one sequence number of `stream`.
    ///
    /// # Errors
    /// If this silo may not write the state now: the commit waits and tries again.
    #[inline]
    pub fn begin_write(&self, stream: u32) -> Result<StateWrite<'_>, WriteRefused> {
        self.pages.may_write(stream)?;
        Ok(StateWrite { states: self, stream })
    }

    /// The record of `stream`, to send. Call it only after the arbiter has granted the page; no
    /// other thread accesses it then.
    pub fn bytes(&self, stream: u32) -> StateBytes {
        let mut bytes = [0; HEAD_WORDS + OBSERVABLE_WORDS_MAX];
        bytes.iter_mut().zip(self.words.record(stream as usize)).for_each(|(byte, word)| *byte = word.load());
        bytes
    }

    /// Installs a received record. Call it only while the arbiter installs the page; no other
    /// thread accesses it then.
    pub fn put(&self, stream: u32, bytes: &StateBytes) {
        self.words.record(stream as usize).iter().zip(bytes).for_each(|(word, byte)| word.store(*byte));
    }

    /// Sequence numbers of `stream` committed. Call it only while no thread writes the record.
    pub fn committed(&self, stream: u32) -> u64 {
        self.words.record(stream as usize)[0].load()
    }

    /// The record of `stream`. For checks between two tasks, and after the last.
    pub fn read(&self, stream: u32) -> StreamState {
        let record = self.words.record(stream as usize);
        StreamState {
            committed: record[0].load(),
            tombstones: record[1].load(),
            frame: record[HEAD_WORDS..].iter().map(DataWord::load).collect(),
        }
    }
}

/// The right to write a stream's record once.
#[must_use = "a sequence number that is neither committed nor skipped holds up its stream"]
pub struct StateWrite<'a> {
    states: &'a StreamStates,
    stream: u32,
}

impl StateWrite<'_> {
    /// Commits the answer of `sequence` at `at`; the page is hot from then on.
    ///
    /// # Panics
    /// If `sequence` is not the stream's next.
    #[inline]
    pub fn commit(self, sequence: u64, observables: &[u64], at: Ticks) {
        self.advance(sequence);
        for (parity, word) in self.record()[HEAD_WORDS..].iter().zip(observables) {
            parity.store(parity.load() ^ word);
        }
        self.end(at);
    }

    /// Commits an error answer of `sequence`: the frame stays unchanged.
    ///
    /// # Panics
    /// If `sequence` is not the stream's next.
    pub fn skip(self, sequence: u64, at: Ticks) {
        self.advance(sequence);
        let tombstones = &self.record()[1];
        tombstones.store(tombstones.load() + 1);
        self.end(at);
    }

    /// Commits an error answer for every number from the next up to, but not including, `below`.
    /// Returns how many.
    pub fn skip_to(self, below: u64, at: Ticks) -> u64 {
        let [committed, tombstones] = [&self.record()[0], &self.record()[1]];
        let count = below.saturating_sub(committed.load());
        committed.store(committed.load() + count);
        tombstones.store(tombstones.load() + count);
        self.end(at);
        count
    }
    #[inline]
    fn advance(&self, sequence: u64) {
        let committed = &self.record()[0];
        assert_eq!(committed.load(), sequence, "commits of a stream are in its order");
        committed.store(sequence + 1);
    }

    fn record(&self) -> &[DataWord] {
        self.states.words.record(self.stream as usize)
    }
    #[inline]
    fn end(&self, at: Ticks) {
        self.states.pages.written(self.stream, self.states.base.moment(at));
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
    fn a_frame_is_the_parity_of_the_commits_and_a_tombstone_leaves_it() {
        let states = states(2);
        states.begin_write(1).unwrap().commit(0, &[0b11, 1], Ticks(0));
        states.begin_write(1).unwrap().skip(1, Ticks(0));
        states.begin_write(1).unwrap().commit(2, &[0b01, 1], Ticks(0));
        assert_eq!(states.read(1), StreamState { committed: 3, tombstones: 1, frame: vec![0b10, 0] });
        assert_eq!(states.read(0), StreamState { committed: 0, tombstones: 0, frame: vec![0, 0] });
    }

    #[test]
    fn skip_to_commits_each_number_below_its_bound_once() {
        let states = states(1);
        states.begin_write(0).unwrap().commit(0, &[1], Ticks(0));
        assert_eq!(states.begin_write(0).unwrap().skip_to(4, Ticks(0)), 3);
        assert_eq!(states.begin_write(0).unwrap().skip_to(4, Ticks(0)), 0);
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
        states.begin_write(1).unwrap().skip(0, Ticks(9_000));
        for page in [0, 1] {
            let word = states.pages().word(page);
            assert_eq!((word.state(), word.deadline().left_us(Moment::from_micros(9))), (State::LocalHot, 1));
        }
    }

    #[test]
    fn a_state_of_another_silo_or_in_transfer_is_not_written() {
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
