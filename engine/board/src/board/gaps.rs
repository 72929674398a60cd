//! A hot thread's long gaps on the board: what it found itself between two of its frames.
//!
//! Owns the number under which a gap is written. The hot thread publishes (rarely: only gaps above its limit), any reader
//! reads. Bounds: the last [`GAPS_MAX`] gaps, [`TRIES`] readings. Never waits.
//!
//! | edge | release site | acquire site | publishes |
//! |---|---|---|---|
//! | G1 | [`ThreadBlock::note_gap`], fence after `begun` | [`ThreadBlock::gap`], fence before `begun` | that the words may be a later gap's |
//! | G2 | [`ThreadBlock::note_gap`], `number` | [`ThreadBlock::gap`], `number` | the words |

use super::{ThreadBlock, get, set};
use crate::units::Ticks;
use std::sync::atomic::{Ordering, fence};

/// Gaps that a thread keeps on the board.
pub const GAPS_MAX: usize = 16;
/// Stage of a gap that lay outside all roles.
pub const BETWEEN: u64 = 0;
const TRIES: usize = 4;

/// One gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Its number on this thread, from 1.
    pub number: u64,
    /// Start of the frame that took so long.
    pub start: Ticks,
    /// How long.
    pub length: Ticks,
    /// Role code + 1 of the longest part of it; [`BETWEEN`]: it lay outside all roles, in waiting.
    pub stage: u64,
}

impl ThreadBlock {
    /// Writes a gap down. Call from the thread itself only.
    #[cold]
    pub fn note_gap(&self, start: Ticks, length: Ticks, stage: u64) {
        let number = get(&self.gaps_count) + 1;
        let row = &self.gaps[(number % GAPS_MAX as u64) as usize];
        set(&row.begun, number);
        // ORDERING: release side of G1: whoever sees a word stored below sees `begun` moved.
        fence(Ordering::Release);
        set(&row.start, start.0);
        set(&row.length, length.0);
        set(&row.stage, stage);
        // ORDERING: release side of G2, publishing the words above. Relaxed could show the number before them.
        row.number.store(number, Ordering::Release);
        set(&self.gaps_count, number);
    }

    /// Gap `number`; `None` if it was never written, is overwritten, or each reading met the writer.
    #[must_use]
    pub fn gap(&self, number: u64) -> Option<Gap> {
        let row = &self.gaps[(number % GAPS_MAX as u64) as usize];
        (0..TRIES).find_map(|_| {
            // ORDERING: acquire side of G2.
            let found = row.number.load(Ordering::Acquire);
            let gap =
                Gap { number, start: Ticks(get(&row.start)), length: Ticks(get(&row.length)), stage: get(&row.stage) };
            // ORDERING: acquire side of G1: a word of a later gap above shows its number below.
            fence(Ordering::Acquire);
            (number > 0 && found == number && get(&row.begun) == number).then_some(gap)
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::GAPS_MAX;
    use crate::board::{Board, Place, Shape};
    use crate::units::Ticks;

    #[test]
    fn the_last_gaps_are_kept_whole_and_older_ones_are_gone() {
        let shape = Shape { threads: 1, silos: 1, slots: 1, workers: 1, decoders: 1, streams: 1 };
        let board = Board::create(shape, Place::Private).unwrap();
        let thread = board.thread(0);
        assert_eq!(thread.gap(0), None);
        assert_eq!(thread.gap(1), None);
        let last = GAPS_MAX as u64 + 3;
        (1..=last).for_each(|number| thread.note_gap(Ticks(number), Ticks(10 * number), number % 7));
        assert_eq!(thread.gap(3), None, "overwritten");
        for number in 4..=last {
            let gap = thread.gap(number).unwrap();
            assert_eq!((gap.start, gap.length, gap.stage), (Ticks(number), Ticks(10 * number), number % 7));
        }
        assert_eq!(thread.gap(last + 1), None);
    }
}
