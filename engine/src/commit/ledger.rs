//! The answered sequence numbers of each stream: checks that each is answered exactly once, and in
//! which order.
//!
//! Owns one window per stream. Kept by harvest. Bounds: a window spans the slots of a silo: slots
//! are reused in ring order, so no two outstanding shots are further apart.

/// The ledger of one silo's streams.
#[derive(Debug)]
pub struct Ledger {
    window: u64,
    words: usize,
    streams: Vec<Stream>,
}

#[derive(Debug)]
struct Stream {
    /// Lowest sequence number without an answer.
    next: u64,
    answered: Box<[u64]>,
}

/// How an answer fits into its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The next in order.
    InOrder,
    /// The first answer of its number, ahead of an older number.
    OutOfOrder,
    /// A second answer to its number, or a number outside the window: always an error.
    Duplicate,
}

impl Ledger {
    /// A ledger for `streams` streams over `slots` slots.
    pub fn new(streams: usize, slots: u32) -> Ledger {
        let window = u64::from(slots).next_power_of_two().max(64);
        let words = (window / 64) as usize;
        let stream = || Stream { next: 0, answered: vec![0; words].into() };
        Ledger { window, words, streams: (0..streams).map(|_| stream()).collect() }
    }

    /// Records an answer.
    ///
    /// # Panics
    /// If the ledger has no such stream.
    pub fn enter(&mut self, stream: usize, sequence: u64) -> Outcome {
        let (window, words) = (self.window, self.words);
        let stream = &mut self.streams[stream];
        let place = |sequence: u64| ((sequence / 64) as usize & (words - 1), 1u64 << (sequence % 64));
        let (word, bit) = place(sequence);
        if sequence < stream.next || sequence >= stream.next + window || stream.answered[word] & bit != 0 {
            return Outcome::Duplicate;
        }
        if sequence != stream.next {
            stream.answered[word] |= bit;
            return Outcome::OutOfOrder;
        }
        stream.next += 1;
        loop {
            let (word, bit) = place(stream.next);
            if stream.answered[word] & bit == 0 {
                return Outcome::InOrder;
            }
            stream.answered[word] &= !bit;
            stream.next += 1;
        }
    }

    /// The stream has moved here; another silo answered all numbers before `first`. An older
    /// `first` changes nothing.
    ///
    /// # Panics
    /// If this silo has answered numbers below `first` out of order.
    pub fn resume(&mut self, stream: usize, first: u64) {
        let stream = &mut self.streams[stream];
        if first > stream.next {
            assert!(
                stream.answered.iter().all(|word| *word == 0),
                "this silo answered numbers that another silo has answered too"
            );
            stream.next = first;
        }
    }

    /// Lowest sequence number of `stream` without an answer.
    pub fn next(&self, stream: usize) -> u64 {
        self.streams[stream].next
    }
}

#[cfg(test)]
mod tests {
    use super::{Ledger, Outcome};

    #[test]
    fn out_of_order_and_duplicate_answers_are_detected() {
        let mut ledger = Ledger::new(2, 8);
        assert_eq!(ledger.enter(0, 0), Outcome::InOrder);
        assert_eq!(ledger.enter(0, 2), Outcome::OutOfOrder);
        assert_eq!(ledger.enter(0, 2), Outcome::Duplicate);
        assert_eq!(ledger.enter(0, 0), Outcome::Duplicate);
        assert_eq!(ledger.enter(1, 0), Outcome::InOrder);
        assert_eq!(ledger.enter(0, 1), Outcome::InOrder);
        assert_eq!(ledger.next(0), 3);
        assert_eq!(ledger.enter(0, 2), Outcome::Duplicate);
    }

    #[test]
    fn many_laps_leave_nothing_behind() {
        let mut ledger = Ledger::new(1, 64);
        for lap in 0..100u64 {
            for sequence in (lap * 64..lap * 64 + 64).rev() {
                assert_ne!(ledger.enter(0, sequence), Outcome::Duplicate);
            }
        }
        assert_eq!(ledger.next(0), 6_400);
    }

    #[test]
    fn a_stream_that_returns_continues_where_it_left_the_other_silo() {
        let mut ledger = Ledger::new(1, 64);
        assert_eq!(ledger.enter(0, 0), Outcome::InOrder);
        ledger.resume(0, 1_000);
        ledger.resume(0, 1);
        assert_eq!(ledger.enter(0, 999), Outcome::Duplicate);
        assert_eq!(ledger.enter(0, 1_000), Outcome::InOrder);
        assert_eq!(ledger.next(0), 1_001);
    }

    #[test]
    #[should_panic(expected = "another silo has answered too")]
    fn a_stream_that_returns_has_no_answers_here_beyond_those_of_the_other_silo() {
        let mut ledger = Ledger::new(1, 128);
        assert_eq!(ledger.enter(0, 100), Outcome::OutOfOrder);
        ledger.resume(0, 50);
    }

    #[test]
    fn a_number_beyond_the_window_is_refused() {
        let mut ledger = Ledger::new(1, 64);
        assert_eq!(ledger.enter(0, 64), Outcome::Duplicate);
        assert_eq!(ledger.enter(0, 63), Outcome::OutOfOrder);
        assert_eq!(ledger.enter(0, 0), Outcome::InOrder);
        assert_eq!((ledger.enter(0, 65), ledger.enter(0, 64)), (Outcome::Duplicate, Outcome::OutOfOrder));
        let mut odd = Ledger::new(1, 65);
        assert_eq!((odd.enter(0, 128), odd.enter(0, 127)), (Outcome::Duplicate, Outcome::OutOfOrder), "a power of two");
    }
}
