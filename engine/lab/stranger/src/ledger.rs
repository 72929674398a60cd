//! What became of each shot of one batch.
//!
//! Owned by the thread that reads the answers. A shot is *accepted* when the program says that it took
//! it: how each ingress says so is in the header of `main.rs`. An answer with an error code is an
//! answer. A decoded one is *wrong* if its observables are no right prediction; it is judged only where
//! its decoder is exact.

use crate::model::Right;

/// An answer, as any ingress tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Observables by an exact decoder: must be right.
    Exact(bool),
    /// Observables by a decoder that may differ: most must be right.
    Other(bool),
    /// An error code by its name or number.
    Error,
}

/// The shots of one batch and their answers.
#[derive(Debug)]
pub struct Ledger {
    right: Vec<Right>,
    /// Answers to each shot so far.
    seen: Vec<u8>,
    pub answered: u64,
    pub duplicated: u64,
    pub wrong: u64,
    pub errors: u64,
    /// Answers to shots that were never sent.
    pub foreign: u64,
    /// Of [`Answer::Other`]: all, and those that are right.
    pub others: u64,
    pub others_right: u64,
    /// The first shot with each kind of trouble.
    pub first: Option<String>,
}

impl Ledger {
    pub fn new(right: Vec<Right>) -> Ledger {
        let seen = vec![0; right.len()];
        Ledger {
            right,
            seen,
            answered: 0,
            duplicated: 0,
            wrong: 0,
            errors: 0,
            foreign: 0,
            others: 0,
            others_right: 0,
            first: None,
        }
    }

    pub fn shots(&self) -> usize {
        self.right.len()
    }

    pub fn has(&self, index: usize) -> bool {
        self.seen[index] > 0
    }

    /// Takes the answer to the shot of this index.
    pub fn answer(&mut self, index: u64, answer: Answer) {
        let Some(seen) = usize::try_from(index).ok().and_then(|index| self.seen.get_mut(index)) else {
            self.foreign += 1;
            self.note(|| format!("an answer to shot {index}, which was not sent"));
            return;
        };
        *seen = seen.saturating_add(1);
        if *seen > 1 {
            self.duplicated += 1;
            self.note(|| format!("shot {index} answered again: {answer:?}"));
            return;
        }
        self.answered += 1;
        let is_right = |flips: bool| self.right[index as usize] >> u8::from(flips) & 1 == 1;
        match answer {
            Answer::Error => self.errors += 1,
            Answer::Exact(flips) if !is_right(flips) => {
                self.wrong += 1;
                self.note(|| format!("shot {index} has the wrong prediction {flips}"));
            }
            Answer::Exact(_) => {}
            Answer::Other(flips) => {
                self.others += 1;
                self.others_right += u64::from(is_right(flips));
            }
        }
    }

    fn note(&mut self, what: impl FnOnce() -> String) {
        self.first.get_or_insert_with(what);
    }

    /// Shots without an answer, the first ones.
    pub fn unanswered(&self) -> (u64, Vec<usize>) {
        let without = |(_, seen): &(usize, &u8)| **seen == 0;
        let count = self.seen.iter().enumerate().filter(without).count() as u64;
        (count, self.seen.iter().enumerate().filter(without).map(|(index, _)| index).take(5).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::{Answer, Ledger};

    #[test]
    fn wrong_repeated_missing_and_foreign_answers_are_noticed() {
        // Right: not flipped, flipped, either, not flipped.
        let mut ledger = Ledger::new(vec![1, 2, 3, 1]);
        ledger.answer(0, Answer::Exact(false));
        ledger.answer(1, Answer::Exact(false));
        ledger.answer(2, Answer::Exact(true));
        ledger.answer(2, Answer::Exact(true));
        ledger.answer(4, Answer::Error);
        assert_eq!((ledger.answered, ledger.wrong, ledger.duplicated, ledger.foreign), (3, 1, 1, 1));
        assert_eq!(ledger.unanswered(), (1, vec![3]));
        assert_eq!(ledger.first.as_deref(), Some("shot 1 has the wrong prediction false"));
    }

    #[test]
    fn other_decoders_are_only_counted() {
        let mut ledger = Ledger::new(vec![1, 1]);
        ledger.answer(0, Answer::Other(true));
        ledger.answer(1, Answer::Other(false));
        assert_eq!((ledger.wrong, ledger.others, ledger.others_right), (0, 2, 1));
    }
}
