//! Restores the input order of answers.
//!
//! Owned by the sink. Holds at most `window` records from the oldest missing one on; allocates for
//! that distance only when answers are that far apart. Refuses a record beyond the window; drops
//! none silently.

use pinwheel_edge::slot::OBSERVABLE_WORDS_MAX;
use std::collections::VecDeque;

/// A record is too far after the oldest missing one.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "found shot {index} answered while shot {oldest} was still open, expected answers at most {window} shots apart"
)]
pub(super) struct TooFarAhead {
    index: u64,
    oldest: u64,
    window: usize,
}

/// The reorder window; see the module's text.
#[derive(Debug)]
pub(super) struct Reorder {
    /// Index of the front record; all records before it were emitted.
    base: u64,
    window: usize,
    /// Words of a record.
    width: usize,
    present: VecDeque<bool>,
    words: VecDeque<u64>,
}

impl Reorder {
    /// A window of `window` records of `width` words.
    pub(super) fn new(window: usize, width: usize) -> Reorder {
        assert!(width <= OBSERVABLE_WORDS_MAX, "{width} words pass the record's {OBSERVABLE_WORDS_MAX}");
        Reorder { base: 0, window, width, present: VecDeque::new(), words: VecDeque::new() }
    }

    /// Most records between the oldest missing one and the newest.
    pub(super) fn window(&self) -> usize {
        self.window
    }

    /// Takes the record of shot `index`, then emits all records that are now in order. Ignores a
    /// second record of a shot: the first answer counts.
    pub(super) fn insert<E>(
        &mut self,
        index: u64,
        record: &[u64],
        emit: impl FnMut(&[u64]) -> Result<(), E>,
    ) -> Result<Result<(), E>, TooFarAhead> {
        let Some(ahead) = index.checked_sub(self.base) else { return Ok(Ok(())) };
        let too_far = TooFarAhead { index, oldest: self.base, window: self.window };
        let ahead = usize::try_from(ahead).ok().filter(|ahead| *ahead < self.window).ok_or(too_far)?;
        if ahead >= self.present.len() {
            self.present.resize(ahead + 1, false);
            self.words.resize((ahead + 1) * self.width, 0);
        }
        if !self.present[ahead] {
            self.present[ahead] = true;
            for (place, word) in self.words.range_mut(ahead * self.width..).zip(&record[..self.width]) {
                *place = *word;
            }
        }
        Ok(self.give(false, emit))
    }

    /// Emits everything left, with zeros for shots without a record.
    pub(super) fn finish<E>(&mut self, emit: impl FnMut(&[u64]) -> Result<(), E>) -> Result<(), E> {
        self.give(true, emit)
    }

    fn give<E>(&mut self, gaps_too: bool, mut emit: impl FnMut(&[u64]) -> Result<(), E>) -> Result<(), E> {
        let mut record = [0u64; OBSERVABLE_WORDS_MAX];
        while self.present.front().is_some_and(|present| *present || gaps_too) {
            self.present.pop_front();
            for (place, word) in record.iter_mut().zip(self.words.drain(..self.width)) {
                *place = word;
            }
            self.base += 1;
            emit(&record[..self.width])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::Reorder;
    use std::convert::Infallible;

    fn feed(reorder: &mut Reorder, out: &mut Vec<Vec<u64>>, index: u64, record: &[u64]) -> bool {
        let emit = |record: &[u64]| {
            out.push(record.to_vec());
            Ok::<(), Infallible>(())
        };
        reorder.insert(index, record, emit).is_ok()
    }

    #[test]
    fn records_come_out_in_order_once_each() {
        let (mut reorder, mut out) = (Reorder::new(4, 2), Vec::new());
        for index in [2, 1, 2, 0, 0, 3] {
            assert!(feed(&mut reorder, &mut out, index, &[index, index + 100]));
        }
        assert_eq!(out, [[0, 100], [1, 101], [2, 102], [3, 103]]);
    }

    #[test]
    fn a_record_beyond_the_window_is_refused() {
        let (mut reorder, mut out) = (Reorder::new(4, 1), Vec::new());
        assert!(feed(&mut reorder, &mut out, 3, &[3]));
        assert!(!feed(&mut reorder, &mut out, 4, &[4]));
        assert!(feed(&mut reorder, &mut out, 0, &[0]));
        assert!(feed(&mut reorder, &mut out, 4, &[4]));
    }

    #[test]
    fn gaps_become_zeros_at_the_end() {
        let (mut reorder, mut out) = (Reorder::new(8, 1), Vec::new());
        feed(&mut reorder, &mut out, 2, &[7]);
        let emit = |record: &[u64]| {
            out.push(record.to_vec());
            Ok::<(), Infallible>(())
        };
        reorder.finish(emit).unwrap();
        assert_eq!(out, [[0], [0], [7]]);
    }

    #[test]
    fn records_without_words_are_still_counted() {
        let (mut reorder, mut out) = (Reorder::new(8, 0), Vec::new());
        feed(&mut reorder, &mut out, 1, &[]);
        feed(&mut reorder, &mut out, 0, &[]);
        assert_eq!(out.len(), 2);
    }
}
