//! Checks joint readouts against answers: the parity read from two streams' states must be the
//! parity of their answers.
//!
//! Owns, for all silos together, the parity of each paired stream's answers and the latest readout
//! of each pair. Every harvester records its answers. The graph role of the silo that has a pair
//! reports its readouts. The harvester of the pair's home silo, which runs as long as the engine,
//! compares the two. Uses no states, pages or tasks. Bounds: for each stream, twice the spans that
//! all slots reach, and some more. Never waits, never allocates after construction.
//!
//! ```text
//!  harvest of any silo ─▶ its row of the stream's span ─┐
//!                                                       ├─▶ harvest at home: complete spans, their parity ─▶ compared
//!  graph of the silo that has the pair ─▶ the readout ──┘
//! ```
//!
//! | mark | set by | read by | publishes |
//! |---|---|---|---|
//! | `counts` of a silo | its harvest | harvest at home | the row's parity |
//! | `whole` | harvest at home | any harvest, any graph | the span's rows were read and may be reused |
//! | `reported` | graph of the silo that has the pair | harvest at home | the readout, and that nothing beyond it was committed before |
//! | `compared` | harvest at home | graph of the silo that has the pair | the readout was read; the next may be reported |
//!
//! # Why the answers and not the truth
//! A frame is the parity of predictions. After a wrong answer (a logical error, counted as such) it
//! differs from the truth for ever, so a consistent readout is the parity of the answers.
//!
//! # Why one table for all silos
//! When a stream moves or its silo dies, one harvester has its earlier answers and another its
//! later answers. If each kept a parity of its own, the second would begin with the stream's state,
//! and the check would compare the state with itself.

use crate::board::{self, HarvestBlock};
use crate::pipe::{home, partner};
use pinwheel_edge::page::Marks;
use pinwheel_edge::slot::OBSERVABLE_WORDS_MAX;
use pinwheel_edge::sync::{DataWord, DataWords, read_words};
use std::sync::Arc;

/// Most pairs checked in one frame.
const LOOKS: usize = 4;
/// Spans that a stream may be ahead of its complete spans, beyond the reach of the slots.
const AHEAD: u64 = 8;
/// Bits of a count: [`JointTally::every`] is a million at most.
const COUNT_BITS: u32 = 20;
/// Words of a readout before its parity: how many sequence numbers each stream had committed.
const HEAD_WORDS: usize = 1;

/// One silo's answers, by stream and span.
#[derive(Debug)]
struct Rows {
    /// Span, and how many of its answers this silo gave.
    counts: Marks,
    parity: DataWords,
}

/// Answers and readouts of the paired streams, over all silos.
#[derive(Debug)]
pub struct JointTally {
    every: u64,
    silos: u32,
    /// Spans for which each stream has rows.
    kept: u64,
    /// Spans that a stream may be ahead of its complete spans.
    reach: u64,
    words: usize,
    pairs: Box<[[u32; 2]]>,
    rows: Box<[Rows]>,
    /// By stream: spans whose answers are all recorded and whose rows are read.
    whole: Marks,
    /// By pair: the sequence number of its next readout.
    until: Marks,
    /// By pair: readouts given up.
    refused: Marks,
    /// By pair: readouts reported, and readouts compared.
    reported: Marks,
    compared: Marks,
    readouts: DataWords,
}

impl JointTally {
    /// Readouts of each pair after every `every` of its shots, for `streams` streams over `silos`
    /// silos of `slots` slots each, with answers of `words` words.
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
            reported: marks(0),
            compared: marks(0),
            readouts: DataWords::new(pairs.len(), HEAD_WORDS + words),
            pairs,
        }
    }

    /// The pairs, the lower stream of each first.
    pub fn pairs(&self) -> &[[u32; 2]] {
        &self.pairs
    }

    /// Shots between two readouts.
    pub fn every(&self) -> u64 {
        self.every
    }

    /// Words of an answer.
    pub fn words(&self) -> usize {
        self.words
    }

    fn at(&self, stream: u32, span: u64) -> u32 {
        (u64::from(stream) * self.kept + span % self.kept) as u32
    }

    /// Records the first answer to a number of a paired stream at `silo`; `None`: an error answer.
    pub fn enter(&self, silo: usize, (stream, sequence): (u32, u64), observables: Option<&[DataWord]>) {
        let span = sequence / self.every;
        // Only a number that a client made up can be this far ahead.
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

    /// Whether the rows have room for the stream's commit of `sequence`.
    #[inline]
    pub fn has_room(&self, stream: u32, sequence: u64) -> bool {
        sequence / self.every < self.whole.get(stream) + self.reach
    }

    /// The sequence number of the pair's next readout. Call it only at the silo that has the pair.
    pub fn until(&self, pair: u32) -> u64 {
        self.until.get(pair)
    }

    /// Sets the next readout to `until` after `readouts` readouts were given up. Call it only at
    /// the silo that has the pair.
    pub fn pass_over(&self, pair: u32, until: u64, readouts: u64) {
        self.refused.set(pair, self.refused.get(pair) + readouts);
        self.until.set(pair, until);
    }

    /// Whether the last readout of `pair` was compared, so that the next can be reported.
    pub fn is_compared(&self, pair: u32) -> bool {
        self.reported.get(pair) == self.compared.get(pair)
    }

    /// Reports the parity of both frames after `committed` shots of each, and schedules the next
    /// readout. Call it only at the silo that has the pair, after the readout before [was
    /// compared](JointTally::is_compared).
    pub fn report(&self, pair: u32, committed: u64, parity: &[u64]) {
        let readout = self.readouts.record(pair as usize);
        readout[0].store(committed);
        readout[HEAD_WORDS..].iter().zip(parity).for_each(|(to, from)| to.store(*from));
        self.until.set(pair, committed + self.every);
        self.reported.set(pair, self.reported.get(pair) + 1);
    }

    /// The reported readout of `pair` that is not compared yet: its number and parity.
    fn readout(&self, pair: u32) -> Option<(u64, [u64; OBSERVABLE_WORDS_MAX])> {
        if self.is_compared(pair) {
            return None;
        }
        let readout = self.readouts.record(pair as usize);
        let mut parity = [0; OBSERVABLE_WORDS_MAX];
        read_words(&readout[HEAD_WORDS..], &mut parity[..self.words]);
        Some((readout[0].load(), parity))
    }
}

/// The parity of a stream's answers in its complete spans.
#[derive(Clone, Copy, Default)]
struct Sum {
    whole: u64,
    parity: [u64; OBSERVABLE_WORDS_MAX],
}

struct Own {
    pair: u32,
    sums: [Sum; 2],
    /// Readouts given up that the board has counted.
    refused: u64,
}

/// The check of one harvester.
pub struct JointCheck {
    tally: Arc<JointTally>,
    silo: usize,
    own: Box<[Own]>,
    /// By stream: whether it belongs to a pair.
    is_paired: Box<[bool]>,
    next: usize,
}

impl JointCheck {
    /// The check at `silo`.
    pub fn new(tally: Arc<JointTally>, silo: usize, streams: u32) -> JointCheck {
        let is_own = |[low, _]: &[u32; 2]| home(*low, tally.silos) == silo;
        let own = (0..).zip(tally.pairs()).filter(|(_, streams)| is_own(streams));
        let own = own.map(|(pair, _)| Own { pair, sums: [Sum::default(); 2], refused: 0 }).collect();
        let is_paired = (0..streams).map(|stream| partner(stream, streams, tally.silos).is_some()).collect();
        JointCheck { tally, silo, own, is_paired, next: 0 }
    }

    /// Records the first answer to a number; `None`: an error answer.
    pub fn enter(&self, stream: u32, sequence: u64, observables: Option<&[DataWord]>) {
        if self.is_paired.get(stream as usize).is_some_and(|is_paired| *is_paired) {
            self.tally.enter(self.silo, (stream, sequence), observables);
        }
    }

    /// Checks a few of this silo's pairs: compares reported readouts with the answers.
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

    /// Whether no readout is left to compare or count.
    pub fn is_quiet(&self) -> bool {
        let is_over = |own: &Own| self.tally.is_compared(own.pair) && self.tally.refused.get(own.pair) == own.refused;
        self.own.iter().all(is_over)
    }
}

impl Own {
    /// Whether the reported readout equals the answers' parity; `None`: none was reported, or
    /// answers are missing.
    fn judge(&mut self, tally: &JointTally) -> Option<bool> {
        let streams = tally.pairs[self.pair as usize];
        for (sum, stream) in self.sums.iter_mut().zip(streams) {
            while sum.take_in(tally, stream, self.pair) {}
        }
        let (committed, reported) = tally.readout(self.pair)?;
        let spans = committed / tally.every;
        if self.sums.iter().any(|sum| sum.whole < spans) {
            return None;
        }
        let [one, other] = &self.sums;
        let is_parity = (0..tally.words).all(|word| one.parity[word] ^ other.parity[word] == reported[word]);
        tally.compared.set(self.pair, tally.reported.get(self.pair));
        Some(is_parity)
    }
}

impl Sum {
    /// Adds the stream's next span if all of its answers are recorded and no earlier readout is
    /// left to compare. Returns whether it did.
    fn take_in(&mut self, tally: &JointTally, stream: u32, pair: u32) -> bool {
        let at = tally.at(stream, self.whole);
        let count = |rows: &Rows| match rows.counts.get(at) {
            word if word >> COUNT_BITS == self.whole => word & ((1 << COUNT_BITS) - 1),
            _ => 0,
        };
        if tally.rows.iter().map(count).sum::<u64>() < tally.every {
            return false;
        }
        // Read after the counts: the silo that committed this span had reported the readout before
        // it, so that report is visible now. A span of error answers alone may be complete earlier;
        // it has no parity.
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
    fn a_readout_is_compared_with_the_answers_up_to_its_number_in_any_order() {
        let board = board();
        let block = board.harvest(0);
        let tally = Arc::new(JointTally::new(2, (2, 1, 8), 1));
        let mut check = JointCheck::new(Arc::clone(&tally), 0, 2);
        let found = || [&block.joint_read, &block.joint_consistent, &block.joint_refused].map(get);
        check.enter(0, 1, Some(&word(1)));
        check.enter(0, 0, Some(&word(2)));
        assert!(tally.is_compared(0));
        tally.report(0, 2, &[1 ^ 2 ^ 4]);
        check.look(block);
        assert_eq!(
            (found(), check.is_quiet(), tally.is_compared(0)),
            ([0; 3], false, false),
            "one stream's answers are missing"
        );
        check.enter(1, 0, Some(&word(4)));
        // Two errors of the next span are recorded already: they change no parity.
        check.enter(0, 2, None);
        check.enter(0, 3, None);
        check.enter(1, 1, None);
        check.look(block);
        assert_eq!((found(), check.is_quiet(), tally.until(0)), ([1, 1, 0], true, 4));
        check.enter(1, 2, Some(&word(64)));
        check.enter(1, 3, None);
        tally.report(0, 4, &[1 ^ 2 ^ 4]);
        tally.pass_over(0, 8, 1);
        check.look(block);
        assert_eq!(found(), [2, 1, 1], "a readout that missed a commit is not consistent");
    }

    #[test]
    fn answers_of_two_silos_form_one_parity_and_a_number_out_of_range_is_ignored() {
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
        tally.report(0, 10, &[parity]);
        checks[1].look(block);
        assert!(checks[1].is_quiet() && !checks[0].is_quiet(), "it is judged at home");
        checks[0].look(block);
        assert_eq!([get(&block.joint_read), get(&block.joint_consistent)], [1, 1]);
    }

    #[test]
    fn a_stream_stays_within_the_room_of_its_rows() {
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
