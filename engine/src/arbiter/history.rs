//! History of a page: its last sixteen transitions, kept by the silo where they happened.
//!
//! Owned by the silo's arbiter, written and read on its thread. Bounds: [`PAGES_KEPT`] pages of
//! [`KEPT`] transitions. Never allocates after construction. Commits are not recorded: decode
//! workers make them, heat comes and goes a million times a second, and the word shows it.
//!
//! # Why
//! A ring for each page would be 400 MB for 2²⁰ pages of which a few move. In one ring for all, a
//! page that moves all the time would displace the last transitions of a page that moved once and
//! got lost: the page that an operator looks for. So pages that have moved have rings of their own,
//! found by number in sets of four; a new page replaces the one of its set that has been quiet for
//! longest. Up to [`PAGES_KEPT`] pages, each keeps its own.

use crate::arbiter::page::{Cause, Word};
use crate::units::Ticks;

/// Transitions kept for each page.
pub const KEPT: usize = 16;
/// Pages with a history at one time.
pub const PAGES_KEPT: u32 = 1_024;
const WAYS: usize = 4;
const NOBODY: u32 = u32::MAX;

/// One transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    /// Time of the transition.
    pub at: Ticks,
    /// Cause of the transition.
    pub cause: Cause,
    /// The word after it.
    pub word: Word,
}

#[derive(Clone, Copy, Debug)]
struct Ring {
    page: u32,
    next: u8,
    length: u8,
    last: Ticks,
    transitions: [Transition; KEPT],
}

/// The histories of one silo's pages.
#[derive(Debug)]
pub struct History {
    rings: Box<[Ring]>,
}

impl History {
    /// Empty histories for `pages` pages.
    pub fn new(pages: u32) -> History {
        let rings = pages.clamp(1, PAGES_KEPT).next_multiple_of(WAYS as u32);
        let none = Transition { at: Ticks(0), cause: Cause::Granted, word: Word::from_bits(0) };
        let ring = Ring { page: NOBODY, next: 0, length: 0, last: Ticks(0), transitions: [none; KEPT] };
        History { rings: vec![ring; rings as usize].into_boxed_slice() }
    }

    fn set(&self, page: u32) -> std::ops::Range<usize> {
        let set = page as usize % (self.rings.len() / WAYS);
        set * WAYS..(set + 1) * WAYS
    }

    /// Records a transition.
    pub fn note(&mut self, page: u32, at: Ticks, cause: Cause, word: Word) {
        let set = self.set(page);
        let set = &mut self.rings[set];
        let own = set.iter().position(|ring| ring.page == page);
        let quietest = || (0..WAYS).min_by_key(|way| (set[*way].page != NOBODY, set[*way].last)).unwrap_or(0);
        let ring = own.unwrap_or_else(quietest);
        let ring = &mut set[ring];
        if ring.page != page {
            (ring.page, ring.next, ring.length) = (page, 0, 0);
        }
        ring.transitions[ring.next as usize] = Transition { at, cause, word };
        ring.next = (ring.next + 1) % KEPT as u8;
        ring.length = (ring.length + 1).min(KEPT as u8);
        ring.last = at;
    }

    /// The kept transitions of `page`, oldest first.
    pub fn of(&self, page: u32) -> impl DoubleEndedIterator<Item = Transition> + '_ {
        let ring = self.rings[self.set(page)].iter().find(|ring| ring.page == page);
        ring.into_iter().flat_map(|ring| {
            let first = (ring.next + KEPT as u8 - ring.length) as usize;
            (0..ring.length as usize).map(move |at| ring.transitions[(first + at) % KEPT])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{History, KEPT, PAGES_KEPT};
    use crate::arbiter::page::{Cause, Word};
    use crate::units::Ticks;

    fn note(history: &mut History, page: u32, at: u64) {
        history.note(page, Ticks(at), Cause::Granted, Word::from_bits(at));
    }

    fn of(history: &History, page: u32) -> Vec<u64> {
        history.of(page).map(|transition| transition.at.0).collect()
    }

    #[test]
    fn the_last_sixteen_transitions_are_kept_oldest_first() {
        let mut history = History::new(3);
        (1..=20).for_each(|at| note(&mut history, 2, at));
        note(&mut history, 0, 7);
        assert_eq!(of(&history, 2), (5..=20).collect::<Vec<_>>());
        assert_eq!((of(&history, 2).len(), of(&history, 0), of(&history, 1)), (KEPT, vec![7], vec![]));
        assert_eq!(history.of(2).next_back().map(|last| last.word), Some(Word::from_bits(20)));
    }

    #[test]
    fn a_busy_page_does_not_push_out_the_history_of_a_quiet_one() {
        let mut history = History::new(1 << 20);
        note(&mut history, 5, 1);
        (2..10_000).for_each(|at| note(&mut history, 6, at));
        assert_eq!(of(&history, 5), [1]);
        // A new page replaces the quietest of its set of four.
        let sets = PAGES_KEPT / 4;
        (1..=4).for_each(|other| note(&mut history, 5 + other * sets, 10_000 + u64::from(other)));
        assert_eq!((of(&history, 5), of(&history, 5 + sets)), (vec![], vec![10_001]));
    }

    #[test]
    fn up_to_its_size_each_page_keeps_its_own() {
        let mut history = History::new(PAGES_KEPT);
        (0..PAGES_KEPT).for_each(|page| note(&mut history, page, u64::from(page) + 1));
        assert!((0..PAGES_KEPT).all(|page| of(&history, page) == [u64::from(page) + 1]));
    }
}
