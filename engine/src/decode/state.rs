//! What is known of each stream beside its shots under way: how far it is committed, and its Pauli frame.
//!
//! Owns one record for each stream of the engine. Written by whichever decode worker runs the stream's next commit:
//! the graph lets one of them run at a time, each after the one before (the record is their InOut region), and its edges
//! T1 to T3 order the words. Every write passes [`StreamStates::begin_write`], and ends when what that returned is gone:
//! whoever decides who may write a stream's state decides there. Bounds: the streams. Never allocates after construction.

use pinwheel_edge::sync::{DataWord, DataWords};

/// Words of a record before the parities: sequence numbers committed, tombstones among them.
const HEAD_WORDS: usize = 2;

/// The records.
pub struct StreamStates {
    words: DataWords,
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
    /// For `streams` streams with so many words of observables: nothing committed, every frame even.
    #[must_use]
    pub fn new(streams: u32, observable_words: usize) -> StreamStates {
        StreamStates { words: DataWords::new(streams as usize, HEAD_WORDS + observable_words) }
    }

    /// The right to commit one sequence number of `stream`, for the task whose turn it is.
    pub fn begin_write(&self, stream: u32) -> StateWrite<'_> {
        StateWrite { record: self.words.record(stream as usize) }
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
}

impl StateWrite<'_> {
    /// Commits the answer of `sequence`.
    ///
    /// # Panics
    /// If it is not the next of its stream.
    pub fn commit(self, sequence: u64, observables: &[u64]) {
        self.advance(sequence);
        for (parity, word) in self.record[HEAD_WORDS..].iter().zip(observables) {
            parity.store(parity.load() ^ word);
        }
    }

    /// Commits that `sequence` was answered with an error: the frame stays as it is.
    ///
    /// # Panics
    /// If it is not the next of its stream.
    pub fn bury(self, sequence: u64) {
        self.advance(sequence);
        self.record[1].store(self.record[1].load() + 1);
    }

    fn advance(&self, sequence: u64) {
        assert_eq!(self.record[0].load(), sequence, "commits of a stream are in its order");
        self.record[0].store(sequence + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::{StreamState, StreamStates};

    #[test]
    fn a_frame_is_the_parity_of_what_was_committed_and_a_tombstone_leaves_it() {
        let states = StreamStates::new(2, 2);
        states.begin_write(1).commit(0, &[0b11, 1]);
        states.begin_write(1).bury(1);
        states.begin_write(1).commit(2, &[0b01, 1]);
        assert_eq!(states.read(1), StreamState { committed: 3, tombstones: 1, frame: vec![0b10, 0] });
        assert_eq!(states.read(0), StreamState { committed: 0, tombstones: 0, frame: vec![0, 0] });
    }

    #[test]
    #[should_panic(expected = "commits of a stream are in its order")]
    fn a_commit_out_of_order_is_refused() {
        StreamStates::new(1, 1).begin_write(0).commit(1, &[0]);
    }
}
