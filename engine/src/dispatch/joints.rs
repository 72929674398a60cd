//! Joint readouts against the answers: what two streams' states said together is what both streams' answers say.
//!
//! Owns, for all silos together, the parity of each paired stream's answers, and what is told of each pair's readouts. Every
//! harvester enters what it takes; whoever has a pair tells its readouts; the harvester of the silo that the pair's shots come
//! from, which lives as long as the engine, holds one against the other. Knows nothing of states, pages or tasks. Bounds: as
//! many spans of a stream as all slots reach, twice, and some. Never waits, never allocates after construction.
//!
//! ```text
//!  harvest of any silo ─▶ its row of the stream's span ─┐
//!                                                       ├─▶ harvest at home: whole spans, their parity ─▶ judged
//!  graph of the silo that has the pair ─▶ the readout ──┘
//! ```
//!
//! | mark | set by | read by | publishes |
//! |---|---|---|---|
//! | `counts` of a silo | its harvest | harvest at home | the row's parity |
//! | `whole` | harvest at home | any harvest, any graph | the span's rows were read: they may be used again |
//! | `told` | graph of who has the pair | harvest at home | the readout, and that nothing beyond it was committed before |
//! | `taken` | harvest at home | graph of who has the pair | the readout was read: the next may be told |
//!
//! # Why the answers and not the truth
//! A frame is the parity of predictions. Where a shot was answered wrongly (a logical error, counted as such) it differs
//! from the truth for ever, so the parity of the answers is what a consistent readout must be.
//!
//! # Why one table for all silos
//! A stream that moves, or whose silo dies, leaves its answers with one harvester and goes on with another. Were each to keep
//! a parity of its own, the next one would begin with what the state says, and the check would confirm itself.

use crate::board::{self, HarvestBlock};
use crate::feed::requests::{home, partner};
use pinwheel_edge::page::Marks;
use pinwheel_edge::slot::OBSERVABLE_WORDS_MAX;
use pinwheel_edge::sync::{DataWord, DataWords, read_words};
use std::sync::Arc;

/// Pairs that are looked at in one frame.
const LOOKS: usize = 4;
/// Spans that a stream may be ahead of what is known whole, beyond what the slots reach.
const AHEAD: u64 = 8;
/// Bits of a count: [`JointTally::every`] is a million at most.
const COUNT_BITS: u32 = 20;
/// Words of a readout before its parity: how many sequence numbers each stream had committed.
const HEAD_WORDS: usize = 1;

/// One silo's answers by stream and span.
#[derive(Debug)]
struct Rows {
    /// Span, and how many of its answers this silo gave.
    counts: Marks,
    parity: DataWords,
}

/// What all silos know of paired streams.
#[derive(Debug)]
pub struct JointTally {
    every: u64,
    silos: u32,
    /// Spans that a row of each stream has room for.
    kept: u64,
    /// Spans that a stream may be ahead of what is whole.
    reach: u64,
    words: usize,
    pairs: Box<[[u32; 2]]>,
    rows: Box<[Rows]>,
    /// By stream: spans of which every answer was taken, and their rows read.
    whole: Marks,
    /// By pair: the number of both at which it is read next.
    until: Marks,
    /// By pair: readouts that were given up.
    refused: Marks,
    /// By pair: readouts told, and taken.
    told: Marks,
    taken: Marks,
    readouts: DataWords,
}

impl JointTally {
    /// Readouts of each pair after every `every` of its shots, of `streams` streams over `silos` silos of `slots` slots each,
    /// with answers of `words` words.
    #[must_use]
    pub fn new(every: u32, (streams, silos, slots): (u32, u32, u32), words: usize) -> JointTally {
        let reach = u64::from(slots) * u64::from(silos) / u64::from(every) + AHEAD;
        let kept = 2 * reach;
        let high = |low: u32| partner(low, streams, silos).filter(|high| *high > low);
        let pairs: Box<[[u32; 2]]> = (0..streams).filter_map(|low| Some([low, high(low)?])).collect();
        let rows = |_| {
            let records = streams as usize * kept as usize;
            Rows { counts: Marks::new(records as u32, |_| 0), parity: DataWords::new(records, words) }
        };
        let marks = |first: u64| Marks::new(pairs.len() as u32, |_| first);
        JointTally {
            every: every.into(),
            silos,
            kept,
            reach,
            words,
            rows: (0..silos).map(rows).collect(),
            whole: Marks::new(streams, |_| 0),
            until: marks(every.into()),
            refused: marks(0),
            told: marks(0),
            taken: marks(0),
            readouts: DataWords::new(pairs.len(), HEAD_WORDS + words),
            pairs,
        }
    }

    /// The pairs, the lower stream of each first.
    #[must_use]
    pub fn pairs(&self) -> &[[u32; 2]] {
        &self.pairs
    }

    /// Shots between two readouts.
    #[must_use]
    pub fn every(&self) -> u64 {
        self.every
    }

    /// Words of an answer.
    #[must_use]
    pub fn words(&self) -> usize {
        self.words
    }

    fn at(&self, stream: u32, span: u64) -> u32 {
        (u64::from(stream) * self.kept + span % self.kept) as u32
    }

    /// An answer of a paired stream was taken at `silo`, the first of its number; `None`: it is an error.
    pub fn enter(&self, silo: usize, (stream, sequence): (u32, u64), observables: Option<&[DataWord]>) {
        let span = sequence / self.every;
        // By its own marks nobody comes so far: a number that a client made up.
        if span.saturating_sub(self.whole.get(stream)) >= self.kept {
            return;
        }
        let (Rows { counts, parity }, at) = (&self.rows[silo], self.at(stream, span));
        let row = parity.record(at as usize);
        let count = match counts.get(at) {
            word if word >> COUNT_BITS == span => word,
            _ => {
                row.iter().for_each(|word| word.store(0));
                span << COUNT_BITS
            }
        };
        if let Some(observables) = observables {
            row.iter().zip(observables).for_each(|(parity, word)| parity.store(parity.load() ^ word.load()));
        }
        counts.set(at, count + 1);
    }

    /// Whether the stream's commit of `sequence` stays within what the rows have room for.
    #[inline]
    #[must_use]
    pub fn has_room(&self, stream: u32, sequence: u64) -> bool {
        sequence / self.every < self.whole.get(stream) + self.reach
    }

    /// The number at which `pair` is read next. For who has the pair.
    #[must_use]
    pub fn until(&self, pair: u32) -> u64 {
        self.until.get(pair)
    }

    /// Sets it, after so many readouts were given up. For who has the pair.
    pub fn pass_over(&self, pair: u32, until: u64, readouts: u64) {
        self.refused.set(pair, self.refused.get(pair) + readouts);
        self.until.set(pair, until);
    }

    /// Whether a readout of `pair` can be told.
    #[must_use]
    pub fn is_heard(&self, pair: u32) -> bool {
        self.told.get(pair) == self.taken.get(pair)
    }

    /// Tells the parity of both frames after `committed` shots of each; the next is read at the next number. For who has
    /// the pair, if the one before [is heard](JointTally::is_heard).
    pub fn tell(&self, pair: u32, committed: u64, parity: &[u64]) {
        let readout = self.readouts.record(pair as usize);
        readout[0].store(committed);
        readout[HEAD_WORDS..].iter().zip(parity).for_each(|(to, from)| to.store(*from));
        self.until.set(pair, committed + self.every);
        self.told.set(pair, self.told.get(pair) + 1);
    }

    /// The readout of `pair` that waits to be judged: its number and parity.
    fn readout(&self, pair: u32) -> Option<(u64, [u64; OBSERVABLE_WORDS_MAX])> {
        if self.is_heard(pair) {
            return None;
        }
        let readout = self.readouts.record(pair as usize);
        let mut parity = [0; OBSERVABLE_WORDS_MAX];
        read_words(&readout[HEAD_WORDS..], &mut parity[..self.words]);
        Some((readout[0].load(), parity))
    }
}

/// A stream's answers so far, at home.
#[derive(Clone, Copy, Default)]
struct Sum {
    whole: u64,
    parity: [u64; OBSERVABLE_WORDS_MAX],
}

struct Own {
    pair: u32,
    sums: [Sum; 2],
    /// Readouts given up that are counted.
    refused: u64,
}

/// The check at one harvester.
pub struct JointCheck {
    tally: Arc<JointTally>,
    silo: usize,
    own: Box<[Own]>,
    /// By stream: whether it is one of a pair.
    is_paired: Box<[bool]>,
    next: usize,
}

impl JointCheck {
    /// That of `silo`.
    #[must_use]
    pub fn new(tally: Arc<JointTally>, silo: usize, streams: u32) -> JointCheck {
        let is_own = |[low, _]: &[u32; 2]| home(*low, tally.silos) == silo;
        let own = (0..).zip(tally.pairs()).filter(|(_, streams)| is_own(streams));
        let own = own.map(|(pair, _)| Own { pair, sums: [Sum::default(); 2], refused: 0 }).collect();
        let is_paired = (0..streams).map(|stream| partner(stream, streams, tally.silos).is_some()).collect();
        JointCheck { tally, silo, own, is_paired, next: 0 }
    }

    /// An answer was taken, the first of its number; `None`: it is an error.
    pub fn enter(&self, stream: u32, sequence: u64, observables: Option<&[DataWord]>) {
        if self.is_paired.get(stream as usize).is_some_and(|is_paired| *is_paired) {
            self.tally.enter(self.silo, (stream, sequence), observables);
        }
    }

    /// Looks at a few of its pairs: what was told of them, and whether the answers say the same.
    pub fn look(&mut self, block: &HarvestBlock) {
        for _ in 0..LOOKS.min(self.own.len()) {
            let pairs = self.own.len();
            let own = &mut self.own[self.next];
            self.next = (self.next + 1) % pairs;
            let refused = self.tally.refused.get(own.pair);
            board::add(&block.joint_refused, refused - std::mem::replace(&mut own.refused, refused));
            if let Some(is_consistent) = own.judge(&self.tally) {
                board::add(&block.joint_read, 1);
                board::add(&block.joint_consistent, u64::from(is_consistent));
            }
        }
    }

    /// Whether nothing waits to be judged or counted.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        let is_over = |own: &Own| self.tally.is_heard(own.pair) && self.tally.refused.get(own.pair) == own.refused;
        self.own.iter().all(is_over)
    }
}

impl Own {
    /// Whether the readout that was told is what the answers say; `None`: none was told, or they are not all taken.
    fn judge(&mut self, tally: &JointTally) -> Option<bool> {
        let streams = tally.pairs[self.pair as usize];
        for (sum, stream) in self.sums.iter_mut().zip(streams) {
            while sum.take_in(tally, stream, self.pair) {}
        }
        let (committed, told) = tally.readout(self.pair)?;
        let spans = committed / tally.every;
        if self.sums.iter().any(|sum| sum.whole < spans) {
            return None;
        }
        let [one, other] = &self.sums;
        let is_parity = (0..tally.words).all(|word| one.parity[word] ^ other.parity[word] == told[word]);
        tally.taken.set(self.pair, tally.told.get(self.pair));
        Some(is_parity)
    }
}

impl Sum {
    /// Takes in the next span, if all of its answers were taken and no readout before it waits to be judged; whether it did.
    fn take_in(&mut self, tally: &JointTally, stream: u32, pair: u32) -> bool {
        let at = tally.at(stream, self.whole);
        let count = |rows: &Rows| match rows.counts.get(at) {
            word if word >> COUNT_BITS == self.whole => word & ((1 << COUNT_BITS) - 1),
            _ => 0,
        };
        if tally.rows.iter().map(count).sum::<u64>() < tally.every {
            return false;
        }
        // After the counts: who committed this span had told the readout before it, so that is seen now. A span of nothing
        // but errors may be whole before that, and has no parity.
        if tally.readout(pair).is_some_and(|(committed, _)| committed / tally.every <= self.whole) {
            return false;
        }
        for rows in tally.rows.iter().filter(|rows| count(rows) > 0) {
            let row = rows.parity.record(at as usize);
            self.parity.iter_mut().zip(row).for_each(|(parity, word)| *parity ^= word.load());
        }
        self.whole += 1;
        tally.whole.set(stream, self.whole);
        true
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{JointCheck, JointTally};
    use crate::board::{Board, Place, Shape, get};
    use pinwheel_edge::sync::DataWord;
    use std::sync::Arc;

    fn board() -> Board {
        let shape = Shape { threads: 1, silos: 1, slots: 8, workers: 1, decoders: 1, streams: 2 };
        Board::create(shape, Place::Private).unwrap()
    }

    fn word(bits: u64) -> [DataWord; 1] {
        [DataWord::new(bits)]
    }

    #[test]
    fn a_readout_is_held_against_the_answers_up_to_its_number_in_whatever_order_they_are_taken() {
        let board = board();
        let block = board.harvest(0);
        let tally = Arc::new(JointTally::new(2, (2, 1, 8), 1));
        let mut check = JointCheck::new(Arc::clone(&tally), 0, 2);
        let found = || [&block.joint_read, &block.joint_consistent, &block.joint_refused].map(get);
        check.enter(0, 1, Some(&word(1)));
        check.enter(0, 0, Some(&word(2)));
        assert!(tally.is_heard(0));
        tally.tell(0, 2, &[1 ^ 2 ^ 4]);
        check.look(block);
        assert_eq!((found(), check.is_quiet(), tally.is_heard(0)), ([0; 3], false, false), "one stream's answers lack");
        check.enter(1, 0, Some(&word(4)));
        // Two errors of the next span are told already: they change no parity.
        check.enter(0, 2, None);
        check.enter(0, 3, None);
        check.enter(1, 1, None);
        check.look(block);
        assert_eq!((found(), check.is_quiet(), tally.until(0)), ([1, 1, 0], true, 4));
        check.enter(1, 2, Some(&word(64)));
        check.enter(1, 3, None);
        tally.tell(0, 4, &[1 ^ 2 ^ 4]);
        tally.pass_over(0, 8, 1);
        check.look(block);
        assert_eq!(found(), [2, 1, 1], "a readout that missed a commit is not consistent");
    }

    #[test]
    fn answers_of_two_silos_are_one_parity_and_a_number_out_of_all_order_is_none() {
        let board = board();
        let block = board.harvest(0);
        // Streams 0 and 2 are silo 0's pair.
        let tally = Arc::new(JointTally::new(10, (4, 2, 8), 1));
        assert_eq!(tally.pairs(), [[0, 2], [1, 3]]);
        let mut checks = [0, 1].map(|silo| JointCheck::new(Arc::clone(&tally), silo, 4));
        let mut parity = 0;
        for sequence in 0..10u64 {
            for stream in [0, 2] {
                let bits = sequence << 8 | u64::from(stream);
                parity ^= bits;
                checks[usize::from(sequence >= 6)].enter(stream, sequence, Some(&word(bits)));
            }
        }
        checks[0].enter(0, u64::MAX / 2, Some(&word(1)));
        tally.tell(0, 10, &[parity]);
        checks[1].look(block);
        assert!(checks[1].is_quiet() && !checks[0].is_quiet(), "it is judged at home");
        checks[0].look(block);
        assert_eq!([get(&block.joint_read), get(&block.joint_consistent)], [1, 1]);
    }

    #[test]
    fn a_stream_runs_no_further_ahead_than_rows_have_room() {
        let board = board();
        let tally = Arc::new(JointTally::new(10, (2, 1, 8), 1));
        let mut check = JointCheck::new(Arc::clone(&tally), 0, 2);
        let mut sequence = 0;
        while tally.has_room(0, sequence) {
            check.enter(0, sequence, Some(&word(1)));
            sequence += 1;
        }
        assert_eq!(sequence, 80, "the slots reach one span, and eight more");
        check.look(board.harvest(0));
        assert!(tally.has_room(0, sequence + 79) && !tally.has_room(0, sequence + 80));
    }
}
