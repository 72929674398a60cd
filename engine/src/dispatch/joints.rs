//! Joint readouts against the answers: what two streams' states said together is what both streams' answers say.
//!
//! Owns the parity of each stream's answers at every readout's number, and readouts whose answers are not all taken yet. Kept by
//! harvest. Knows nothing of states, pages or tasks: it counts what it takes out of the slots, in whatever order. Bounds:
//! as many readouts of a stream as the slots reach, and some.
//!
//! # Why the answers and not the truth
//! A frame is the parity of predictions. Where a shot was answered wrongly (a logical error, counted as such) it differs
//! from the truth for ever, so the parity of the answers is what a consistent readout must be.

use crate::board::{self, HarvestBlock};
use pinwheel_edge::ring::spsc::Consumer;
use pinwheel_edge::slot::OBSERVABLE_WORDS_MAX;
use pinwheel_edge::sync::DataWord;

/// A readout, or one that was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JointResult {
    /// Of whom.
    pub streams: [u32; 2],
    /// How many sequence numbers each had committed.
    pub committed: u64,
    /// Whether it was read.
    pub is_read: bool,
    /// The parity of both frames.
    pub observables: [u64; OBSERVABLE_WORDS_MAX],
}

struct Stream {
    /// Spans between two readouts of which every answer is taken.
    whole: u64,
    parity: Box<[u64]>,
    /// By span: the parity of its answers so far.
    spans: Box<[u64]>,
    /// By span: the parity of all answers up to its end.
    ends: Box<[u64]>,
}

/// The check.
pub struct JointCheck {
    every: u64,
    kept: u64,
    words: usize,
    streams: Vec<Option<Stream>>,
    takes: Consumer<JointResult>,
    /// Readouts whose answers are not all taken.
    waiting: Vec<JointResult>,
}

impl JointCheck {
    /// A check of readouts `every` so many shots over so many `slots`, of the streams `own`.
    #[must_use]
    pub fn new(
        (every, slots): (u32, u32),
        (own, streams): (&[u32], u32),
        words: usize,
        takes: Consumer<JointResult>,
    ) -> JointCheck {
        let kept = u64::from(slots / every) + 4;
        let stream = |stream: u32| {
            let row = || vec![0; kept as usize * words].into_boxed_slice();
            let parity = vec![0; words].into_boxed_slice();
            own.contains(&stream).then(|| Stream { whole: 0, parity, spans: row(), ends: row() })
        };
        JointCheck {
            every: u64::from(every),
            kept,
            words,
            streams: (0..streams).map(stream).collect(),
            takes,
            waiting: Vec::with_capacity(own.len() * kept as usize),
        }
    }

    /// An answer was taken, the first of its number; `next` is the lowest number of its stream that was not.
    pub fn enter(&mut self, stream: u32, sequence: u64, observables: Option<&[DataWord]>, next: u64) {
        let (words, kept, every) = (self.words, self.kept, self.every);
        let Some(Some(stream)) = self.streams.get_mut(stream as usize) else { return };
        let row = |span: u64| (span % kept) as usize * words..((span % kept) as usize + 1) * words;
        if let Some(observables) = observables {
            let span = &mut stream.spans[row(sequence / every)];
            span.iter_mut().zip(observables).for_each(|(parity, word)| *parity ^= word.load());
        }
        while next >= (stream.whole + 1) * every {
            let at = row(stream.whole);
            let span = &mut stream.spans[at.clone()];
            stream.parity.iter_mut().zip(span).for_each(|(parity, word)| *parity ^= std::mem::take(word));
            stream.ends[at].copy_from_slice(&stream.parity);
            stream.whole += 1;
        }
    }

    /// Takes readouts in, and judges those whose answers are all taken.
    pub fn look(&mut self, block: &HarvestBlock) {
        while self.waiting.len() < self.waiting.capacity()
            && let Some(result) = self.takes.pop()
        {
            if result.is_read {
                board::add(&block.joint_read, 1);
                self.waiting.push(result);
            } else {
                board::add(&block.joint_refused, 1);
            }
        }
        for at in (0..self.waiting.len()).rev() {
            if let Some(is_consistent) = self.judge(&self.waiting[at]) {
                board::add(&block.joint_consistent, u64::from(is_consistent));
                self.waiting.swap_remove(at);
            }
        }
    }

    /// Whether nothing waits to be judged.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.waiting.is_empty() && self.takes.depth() == 0
    }

    /// Whether a readout is what the answers say; `None`: they are not all taken. One so old that the answers' parity is
    /// gone is not consistent: it was told after its streams went on.
    fn judge(&self, result: &JointResult) -> Option<bool> {
        let [one, other] = result.streams.map(|stream| self.streams.get(stream as usize).and_then(Option::as_ref));
        let (Some(one), Some(other)) = (one, other) else { return Some(false) };
        let span = result.committed / self.every - 1;
        if one.whole <= span || other.whole <= span {
            return None;
        }
        let is_kept = |stream: &Stream| stream.whole - span <= self.kept;
        let at = (span % self.kept) as usize * self.words;
        let is_parity =
            (0..self.words).all(|word| one.ends[at + word] ^ other.ends[at + word] == result.observables[word]);
        Some(is_kept(one) && is_kept(other) && is_parity)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{JointCheck, JointResult};
    use crate::board::{Board, Place, Shape, get};
    use pinwheel_edge::ring::spsc::channel;
    use pinwheel_edge::slot::OBSERVABLE_WORDS_MAX;
    use pinwheel_edge::sync::DataWord;

    fn result(committed: u64, is_read: bool, word: u64) -> JointResult {
        let mut observables = [0; OBSERVABLE_WORDS_MAX];
        observables[0] = word;
        JointResult { streams: [0, 1], committed, is_read, observables }
    }

    #[test]
    fn a_readout_is_held_against_the_answers_up_to_its_number_in_whatever_order_they_are_taken() {
        let shape = Shape { threads: 1, silos: 1, slots: 8, workers: 1, decoders: 1, streams: 2 };
        let board = Board::create(shape, Place::Private).unwrap();
        let block = board.harvest(0);
        let (mut tells, takes) = channel(8);
        let mut check = JointCheck::new((2, 8), (&[0, 1], 2), 1, takes);
        let found = || [&block.joint_read, &block.joint_consistent, &block.joint_refused].map(get);
        let word = |bits| [DataWord::new(bits)];
        check.enter(0, 2, Some(&word(64)), 0);
        check.enter(0, 1, Some(&word(1)), 0);
        check.enter(0, 0, Some(&word(2)), 3);
        tells.push(result(2, true, 1 ^ 2 ^ 4)).unwrap();
        check.look(block);
        assert_eq!((found(), check.is_quiet()), ([1, 0, 0], false), "the other stream's answers are not taken");
        check.enter(1, 0, Some(&word(4)), 1);
        check.enter(1, 1, None, 2);
        check.look(block);
        assert_eq!((found(), check.is_quiet()), ([1, 1, 0], true), "an error leaves the parity");
        check.enter(1, 2, None, 3);
        check.enter(1, 3, None, 4);
        check.enter(0, 3, None, 4);
        tells.push(result(4, true, 1 ^ 2 ^ 4)).unwrap();
        tells.push(result(6, false, 0)).unwrap();
        check.look(block);
        assert_eq!(found(), [2, 1, 1], "a readout that missed a commit is not consistent");
    }
}
