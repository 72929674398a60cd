//! Converts ticks to UTC for records.
//!
//! Owns the last [`PAIRS`] correlations and a rate that follows them. One cold thread owns a wall
//! clock and notes a pair every [`super::CORRELATE_EVERY`]. Bounds: 6.4 s of pairs, a search among
//! them. Never reads a clock.
//!
//! ```text
//!   oldest pair          pair    pair          newest pair
//!   ◀── by the rate ──│── between the two ──│── by the rate ──▶
//! ```
//!
//! # Why
//!
//! *Steps show in UTC less monotonic time.* The kernel slews both together, so their difference
//! changes only when the clock is set or a leap second is inserted. Read uncertainty moves the
//! difference by at most the widths of the pairs; a larger change is a step. Between a pair and its
//! successor behind a step, the older pair's UTC continues, because the moment of the step is
//! unknown.
//!
//! *A counter jump empties the pairs.* After a suspend or a migration to another host, the old
//! pairs do not apply to the new ticks.

use super::Correlation;
use crate::units::{Nanos, TickRate, Ticks};
use std::collections::VecDeque;

/// Pairs remembered.
pub const PAIRS: usize = 64;
/// Allowed change of the difference of two clocks, in addition to the widths of the reads.
const STEP_MIN_NS: i64 = 1_000;
/// Deviation of the counter from monotonic time that counts as a jump: 1/1,000 of the span.
const JUMP_SHARE: i64 = 1_000;
/// Share of its error by which a new pair corrects the rate.
const GAIN: f64 = 0.125;

/// A step of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// UTC was set, or a leap second was inserted.
    Utc {
        /// Forwards if positive.
        by_ns: i64,
    },
    /// The counter moved against monotonic time: a suspend, another host, a counter that is not invariant.
    Counter {
        /// Counter ahead if positive.
        by_ns: i64,
    },
}

/// Ticks to UTC.
#[derive(Clone, Debug)]
pub struct WallClock {
    /// Never empty, ticks growing.
    pairs: VecDeque<Correlation>,
    nanos_per_tick: f64,
}

impl WallClock {
    /// Begins with `first`; `rate` holds until pairs refine it.
    pub fn new(first: Correlation, rate: TickRate) -> WallClock {
        let mut pairs = VecDeque::with_capacity(PAIRS);
        pairs.push_back(first);
        WallClock { pairs, nanos_per_tick: rate.nanos_per_tick_q32() as f64 / 4_294_967_296.0 }
    }

    /// Adds a later pair; returns a step since the last pair.
    pub fn note(&mut self, pair: Correlation) -> Option<Step> {
        let last = self.newest();
        let slack_ns = STEP_MIN_NS + self.nanos(Ticks(last.width.0.saturating_add(pair.width.0)));
        let passed_ns = difference(pair.monotonic, last.monotonic);
        let counted_ns = (pair.ticks.0.wrapping_sub(last.ticks.0).cast_signed() as f64 * self.nanos_per_tick) as i64;
        let off_ns = counted_ns - passed_ns;
        if pair.ticks <= last.ticks || off_ns.abs() > slack_ns + passed_ns.abs() / JUMP_SHARE {
            self.pairs.clear();
            self.pairs.push_back(pair);
            return Some(Step::Counter { by_ns: off_ns });
        }
        if self.pairs.len() == PAIRS {
            self.pairs.pop_front();
        }
        self.pairs.push_back(pair);
        self.refine();
        let by_ns = difference(pair.utc, last.utc) - passed_ns;
        (by_ns.abs() > slack_ns).then_some(Step::Utc { by_ns })
    }

    /// UTC at `at`, since 1970. Grows with `at` for as long as no pair is noted and no step lies between.
    pub fn utc(&self, at: Ticks) -> Nanos {
        let later = self.pairs.partition_point(|pair| pair.ticks <= at);
        let from = self.pairs[later.saturating_sub(1)];
        let span_ns = match self.pairs.get(later) {
            Some(to) if later > 0 => between_ns(&from, to, at),
            Some(_) => -self.nanos(from.ticks.since(at)),
            None => self.nanos(at.since(from.ticks)),
        };
        Nanos(from.utc.0.saturating_add_signed(span_ns))
    }

    fn newest(&self) -> Correlation {
        self.pairs[self.pairs.len() - 1]
    }

    /// Moves the rate towards the rate of the remembered pairs.
    fn refine(&mut self) {
        let (oldest, newest) = (self.pairs[0], self.newest());
        let ticks = newest.ticks.since(oldest.ticks).0;
        let passed_ns = difference(newest.monotonic, oldest.monotonic);
        if ticks > 0 && passed_ns > 0 {
            self.nanos_per_tick += (passed_ns as f64 / ticks as f64 - self.nanos_per_tick) * GAIN;
        }
    }

    fn nanos(&self, ticks: Ticks) -> i64 {
        (ticks.0 as f64 * self.nanos_per_tick) as i64
    }
}

/// Monotonic time from `from` to `at`, which lies before `to`.
fn between_ns(from: &Correlation, to: &Correlation, at: Ticks) -> i64 {
    let passed = i128::from(difference(to.monotonic, from.monotonic));
    let ticks = i128::from(to.ticks.since(from.ticks).0.max(1));
    (i128::from(at.since(from.ticks).0) * passed / ticks) as i64
}

fn difference(later: Nanos, earlier: Nanos) -> i64 {
    later.0.wrapping_sub(earlier.0).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::{Correlation, PAIRS, Step, WallClock};
    use crate::units::{Nanos, TickRate, Ticks};

    const EPOCH: u64 = 1_700_000_000_000_000_000;
    const EVERY: u64 = 100_000_000;

    /// What a counter of 2.5 GHz, of which the rate is known to `error`, reads `ns` after the start.
    fn pair(ns: u64, offset_ns: i64) -> Correlation {
        let utc = Nanos((EPOCH + ns).saturating_add_signed(offset_ns));
        Correlation { ticks: Ticks(ns / 2 * 5), monotonic: Nanos(77 + ns), utc, width: Ticks(200) }
    }

    fn wall(error: f64) -> WallClock {
        WallClock::new(pair(0, 0), TickRate::from_hz(2.5e9 * (1.0 + error)))
    }

    #[test]
    fn utc_between_two_pairs_is_theirs_and_beyond_them_follows_the_rate() {
        let mut wall = wall(1e-5);
        for k in 1..=200 {
            assert_eq!(wall.note(pair(k * EVERY, 0)), None);
        }
        for ns in [200 * EVERY - 3 * EVERY / 2, 200 * EVERY - EVERY - 2, 200 * EVERY] {
            assert_eq!(wall.utc(Ticks(ns / 2 * 5)), Nanos(EPOCH + ns));
        }
        let ahead = 200 * EVERY + EVERY;
        assert!(wall.utc(Ticks(ahead / 2 * 5)).0.abs_diff(EPOCH + ahead) < 10);
        let before = EVERY;
        assert!(wall.utc(Ticks(before / 2 * 5)).0.abs_diff(EPOCH + before) < 1_000, "older than {PAIRS} pairs");
    }

    #[test]
    fn the_rate_is_refined_slowly() {
        let mut wall = wall(1e-5);
        let error = |wall: &WallClock| (wall.nanos_per_tick / 0.4 - 1.0).abs();
        let at_start = error(&wall);
        wall.note(pair(EVERY, 0));
        assert!(error(&wall) > at_start * 0.8, "one pair does not move it far");
        for k in 2..100 {
            wall.note(pair(k * EVERY, 0));
        }
        assert!(error(&wall) < at_start / 1_000.0);
    }

    #[test]
    fn a_clock_that_was_set_is_flagged_once_with_its_size() {
        for by_ns in [3_600_000_000_000, -1_000_000_000, 25_000, -25_000] {
            let mut wall = wall(0.0);
            assert_eq!(wall.note(pair(EVERY, 0)), None);
            assert_eq!(wall.note(pair(2 * EVERY, by_ns)), Some(Step::Utc { by_ns }));
            assert_eq!(wall.note(pair(3 * EVERY, by_ns)), None);
            let at = |ns: u64| wall.utc(Ticks(ns / 2 * 5));
            assert_eq!(at(3 * EVERY / 2), Nanos(EPOCH + 3 * EVERY / 2), "the older pair's goes on");
            assert_eq!(at(5 * EVERY / 2), Nanos((EPOCH + 5 * EVERY / 2).saturating_add_signed(by_ns)));
        }
    }

    #[test]
    fn a_wide_sandwich_is_no_step() {
        let mut wall = wall(0.0);
        let wide = Correlation { width: Ticks(2_500_000), ..pair(EVERY, 400_000) };
        assert_eq!(wall.note(wide), None);
    }

    #[test]
    fn a_counter_that_jumps_is_flagged_and_its_old_pairs_are_forgotten() {
        let mut wall = wall(0.0);
        wall.note(pair(EVERY, 0));
        let ahead = Correlation { ticks: Ticks(100 * EVERY / 2 * 5), ..pair(2 * EVERY, 0) };
        let Some(Step::Counter { by_ns }) = wall.note(ahead) else { panic!("the counter jumped") };
        assert!(by_ns.abs_diff(98 * EVERY as i64) < 100, "{by_ns}");
        assert_eq!(wall.utc(ahead.ticks), Nanos(EPOCH + 2 * EVERY));
        let back = Correlation { ticks: Ticks(5), ..pair(3 * EVERY, 0) };
        assert!(matches!(wall.note(back), Some(Step::Counter { by_ns }) if by_ns < 0));
        assert_eq!(wall.utc(Ticks(5)), Nanos(EPOCH + 3 * EVERY));
    }
}
