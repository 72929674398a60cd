//! The newest pair of the clocks on the board: four words that mean something only together.
//!
//! Owns the number under which they are written. One cold thread publishes, any thread reads; neither waits for the
//! other. Bounds: [`TRIES`] readings. What stays torn is not shown.
//!
//! | edge | release site | acquire site | publishes |
//! |---|---|---|---|
//! | C1 | [`ClockBlock::publish`], fence after `pairs_begun` | [`ClockBlock::pair`], fence before `pairs_begun` | that the words may be the next pair's |
//! | C2 | [`ClockBlock::publish`], `pairs` | [`ClockBlock::pair`], `pairs` | the words |

use super::{ClockBlock, get, set};
use crate::clock::Correlation;
use crate::units::{Nanos, Ticks};
use std::sync::atomic::{Ordering, fence};

/// Readings before a reader goes without. A pair is written every 100 ms, in nanoseconds.
const TRIES: usize = 4;

impl ClockBlock {
    /// Writes `pair`. Call from the block's one writer only.
    pub fn publish(&self, pair: &Correlation) {
        let number = get(&self.pairs) + 1;
        set(&self.pairs_begun, number);
        // ORDERING: release side of C1: whoever sees a word stored below sees `pairs_begun` moved. Without it a reader
        // could take new words for the old pair's.
        fence(Ordering::Release);
        set(&self.ticks, pair.ticks.0);
        set(&self.monotonic_ns, pair.monotonic.0);
        set(&self.utc_ns, pair.utc.0);
        set(&self.width_ticks, pair.width.0);
        // ORDERING: release side of C2, publishing the words above. Relaxed could show the number before them.
        self.pairs.store(number, Ordering::Release);
    }

    /// The newest pair; `None` before the first, or if each reading met the writer.
    #[must_use]
    pub fn pair(&self) -> Option<Correlation> {
        (0..TRIES).find_map(|_| {
            // ORDERING: acquire side of C2, see `publish`.
            let number = self.pairs.load(Ordering::Acquire);
            let pair = Correlation {
                ticks: Ticks(get(&self.ticks)),
                monotonic: Nanos(get(&self.monotonic_ns)),
                utc: Nanos(get(&self.utc_ns)),
                width: Ticks(get(&self.width_ticks)),
            };
            // ORDERING: acquire side of C1, see `publish`: a word of the next pair above shows its number below.
            fence(Ordering::Acquire);
            (number > 0 && get(&self.pairs_begun) == number).then_some(pair)
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "harness")]
    use crate::board::{Board, Place, Shape};
    use crate::clock::Correlation;
    use crate::units::{Nanos, Ticks};

    fn pair(number: u64) -> Correlation {
        Correlation { ticks: Ticks(number), monotonic: Nanos(number), utc: Nanos(number), width: Ticks(number) }
    }

    #[test]
    fn a_pair_is_seen_whole_or_not_at_all() {
        let shape = Shape { threads: 1, silos: 1, slots: 1, workers: 1, decoders: 1, streams: 1 };
        let board = Board::create(shape, Place::Private).unwrap();
        assert_eq!(board.clock().pair(), None, "none was taken");
        let last = 200_000;
        let mut seen = 0;
        std::thread::scope(|scope| {
            scope.spawn(|| (1..=last).for_each(|number| board.clock().publish(&pair(number))));
            while seen < last {
                if let Some(found) = board.clock().pair() {
                    assert_eq!(found, pair(found.ticks.0));
                    assert!(found.ticks.0 >= seen);
                    seen = found.ticks.0;
                }
            }
        });
    }
}
