//! A hot thread's long gaps on the board, measured by the thread between two of its frames.
//!
//! Owns the sequence number of each gap. The hot thread publishes (rarely: only gaps above its
//! limit), any reader reads. Bounds: the last [`GAPS_MAX`] gaps, the read attempts of a
//! [`Seqlock`]. Never waits.

use super::layout::{GAPS_MAX, GapRow};
use super::{ThreadBlock, add, get, set};
use crate::units::Ticks;
use pinwheel_edge::seqlock::Seqlock;

/// Stage of a gap that lay outside all roles.
pub const BETWEEN: u64 = 0;

/// One gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Its number on this thread, from 1.
    pub number: u64,
    /// Start of the long frame.
    pub start: Ticks,
    /// Length.
    pub length: Ticks,
    /// Role code + 1 of its longest part; [`BETWEEN`]: a wait outside all roles.
    pub stage: u64,
}

impl ThreadBlock {
    /// Records a gap. Only the thread itself may call this.
    #[cold]
    pub fn note_gap(&self, start: Ticks, length: Ticks, stage: u64) {
        let number = get(&self.gaps_count) + 1;
        let row = &self.gaps[(number % GAPS_MAX as u64) as usize];
        row.lock().write(number, || {
            set(&row.start, start.0);
            set(&row.length, length.0);
            set(&row.stage, stage);
        });
        set(&self.gaps_count, number);
    }

    /// Counts a frame of this `length` that found no work and then spun, and whether it lost its core
    /// meanwhile. Only the thread itself may call this.
    #[inline]
    pub fn note_polling(&self, length: Ticks, has_lost_core: bool) {
        add(&self.polling_ticks, length.0);
        if has_lost_core {
            add(&self.noise_gaps, 1);
            add(&self.noise_gap_ticks, length.0);
            set(&self.noise_gap_longest, get(&self.noise_gap_longest).max(length.0));
        }
    }

    /// Gap `number`; `None` if it was never written, has been overwritten, or the writer interfered
    /// with each attempt.
    pub fn gap(&self, number: u64) -> Option<Gap> {
        let row = &self.gaps[(number % GAPS_MAX as u64) as usize];
        let gap = |found| Gap {
            number: found,
            start: Ticks(get(&row.start)),
            length: Ticks(get(&row.length)),
            stage: get(&row.stage),
        };
        row.lock().read(gap).filter(|gap| number > 0 && gap.number == number)
    }
}

impl GapRow {
    /// Sequence lock of the row.
    pub(super) fn lock(&self) -> Seqlock<'_> {
        Seqlock::new(&self.begun, &self.number)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::GAPS_MAX;
    use crate::board::{Board, Place, Shape, get};
    use crate::units::Ticks;

    fn board() -> Board {
        let shape = Shape { threads: 1, silos: 1, slots: 1, workers: 1, decoders: 1, streams: 1 };
        Board::create(shape, Place::Private).unwrap()
    }

    #[test]
    fn frames_without_work_add_up_and_those_that_lost_the_core_beside_them() {
        let board = board();
        for length in [40, 5_000, 5_001, 90_000, 40] {
            board.thread(0).note_polling(Ticks(length), length > 5_000);
        }
        let block = board.thread(0);
        let words = [&block.polling_ticks, &block.noise_gaps, &block.noise_gap_ticks, &block.noise_gap_longest];
        assert_eq!(words.map(get), [100_081, 2, 95_001, 90_000]);
    }

    #[test]
    fn the_last_gaps_are_kept_whole_and_older_ones_are_gone() {
        let board = board();
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
