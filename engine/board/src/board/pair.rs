//! The newest clock pair on the board: four words that are read together.
//!
//! Owns their sequence number. One cold thread publishes, any thread reads; neither waits for the
//! other. Bounds: the read attempts of a [`Seqlock`]. A pair that changes during every attempt is
//! not shown.

use super::{ClockBlock, get, set};
use crate::clock::Correlation;
use crate::units::{Nanos, Ticks};
use pinwheel_edge::seqlock::Seqlock;

impl ClockBlock {
    /// Writes `pair`. Only the block's one writer may call this.
    pub fn publish(&self, pair: &Correlation) {
        self.lock().write(get(&self.pairs) + 1, || {
            set(&self.ticks, pair.ticks.0);
            set(&self.monotonic_ns, pair.monotonic.0);
            set(&self.utc_ns, pair.utc.0);
            set(&self.width_ticks, pair.width.0);
        });
    }

    /// The newest pair; `None` before the first, or if the writer interfered with each attempt.
    pub fn pair(&self) -> Option<Correlation> {
        let pair = || Correlation {
            ticks: Ticks(get(&self.ticks)),
            monotonic: Nanos(get(&self.monotonic_ns)),
            utc: Nanos(get(&self.utc_ns)),
            width: Ticks(get(&self.width_ticks)),
        };
        self.lock().read(|number| (number > 0).then(pair))?
    }

    /// Sequence lock of the pair.
    pub(super) fn lock(&self) -> Seqlock<'_> {
        Seqlock::new(&self.pairs_begun, &self.pairs)
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
