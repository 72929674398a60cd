//! The engine's wall clock: takes clock pairs, detects steps, publishes both.
//!
//! Owns the [`WallClock`] of the engine. Runs in the control thread's tick. Bounds: one pair every
//! [`CORRELATE_EVERY`], of five sandwich readings. Never waits and never changes earlier ticks:
//! readers of the board convert ticks to UTC by its pairs.

use crate::board::{self, Board};
use crate::clock::{CORRELATE_EVERY, Clock, Correlation, Step, WallClock};
use crate::fault::FaultCode;
use crate::units::Ticks;

/// The wall clock and the time of its next pair.
pub(super) struct Wall {
    utc: WallClock,
    every: Ticks,
    due: Ticks,
}

impl Wall {
    /// Takes and publishes the first pair.
    pub(super) fn new(clock: &Clock, board: &Board) -> Wall {
        let (first, every) = (Correlation::take(clock), clock.rate().ticks(CORRELATE_EVERY));
        board.clock().source.write(clock.source_name());
        board.clock().degraded.write(&clock.degraded().map(ToString::to_string).unwrap_or_default());
        board.clock().publish(&first);
        Wall { utc: WallClock::new(first, clock.rate()), every, due: first.ticks.plus(every) }
    }

    /// Takes a pair if one is due at `now`, or if the counter went back: it may take long until it
    /// reaches its old values.
    pub(super) fn step(&mut self, now: Ticks, clock: &Clock, board: &Board) {
        if now >= self.due || now.plus(self.every) < self.due {
            self.due = now.plus(self.every);
            self.note(Correlation::take(clock), board);
        }
    }

    fn note(&mut self, pair: Correlation, board: &Board) {
        let block = board.clock();
        let step = self.utc.note(pair);
        block.publish(&pair);
        let (kind, by_ns, code) = match step {
            None => return,
            Some(Step::Utc { by_ns }) => (0, by_ns, FaultCode::UtcStepped),
            Some(Step::Counter { by_ns }) => (1, by_ns, FaultCode::CounterStepped),
        };
        board::set(&block.step_ns[kind], by_ns.cast_unsigned());
        board::set(&block.step_ticks[kind], pair.ticks.0);
        board::add(&block.steps[kind], 1);
        // Faults are counted by silo; those of the clock, which all silos share, count in the
        // first.
        board.fault(0, code, pair.ticks, by_ns.unsigned_abs());
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::Wall;
    use crate::board::snapshot::StepView;
    use crate::board::{Board, Place, Shape};
    use crate::clock::{CORRELATE_EVERY, Clock, Correlation};
    use crate::fault::FaultCode;
    use crate::units::{Nanos, Ticks};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    fn world() -> (Arc<AtomicU64>, Clock, Board) {
        let nanos = Arc::new(AtomicU64::new(1_000));
        let clock = Clock::virtual_time(Arc::clone(&nanos));
        let shape = Shape { threads: 1, silos: 1, slots: 1, workers: 1, decoders: 1, streams: 1 };
        (nanos, clock, Board::create(shape, Place::Private).unwrap())
    }

    #[test]
    fn a_clock_pair_is_published_every_tenth_of_a_second() {
        let (nanos, clock, board) = world();
        let mut wall = Wall::new(&clock, &board);
        for _ in 0..1_000 {
            nanos.fetch_add(1_000_000, Ordering::Relaxed);
            wall.step(clock.ticks(), &clock, &board);
        }
        let shown = board.snapshot(&clock).clock;
        assert_eq!((shown.pairs, shown.utc_steps, shown.counter_steps), (11, 0, 0));
        assert_eq!((shown.source.as_str(), shown.degraded), ("virtual", None));
        assert_eq!(shown.pair.unwrap().utc_ns, 1_000 + 1_000_000_000);
    }

    #[test]
    fn a_counter_that_goes_back_gets_a_pair_at_once() {
        let (nanos, clock, board) = world();
        let every = CORRELATE_EVERY.0;
        nanos.store(10 * every, Ordering::Relaxed);
        let mut wall = Wall::new(&clock, &board);
        nanos.store(every, Ordering::Relaxed);
        wall.step(clock.ticks(), &clock, &board);
        let shown = board.snapshot(&clock).clock;
        assert_eq!((shown.pairs, shown.counter_steps), (2, 1));
        nanos.store(2 * every, Ordering::Relaxed);
        wall.step(clock.ticks(), &clock, &board);
        assert_eq!(board.snapshot(&clock).clock.pairs, 3, "and the next in its time");
    }

    #[test]
    fn a_step_is_counted_as_a_fault_with_its_size_and_time() {
        let (_, clock, board) = world();
        let mut wall = Wall::new(&clock, &board);
        let every = CORRELATE_EVERY.0;
        let pair = |at: u64, utc: u64, ticks: u64| Correlation {
            ticks: Ticks(1_000 + ticks),
            monotonic: Nanos(1_000 + at),
            utc: Nanos(1_000 + utc),
            width: Ticks(10),
        };
        wall.note(pair(every, every, every), &board);
        wall.note(pair(2 * every, every / 2, 2 * every), &board);
        wall.note(pair(3 * every, every / 2 + every, 9 * every), &board);
        let snapshot = board.snapshot(&clock);
        let shown = snapshot.clock;
        let back = StepView { by_ns: -3 * every as i64 / 2, at_ns: 2 * every };
        let ahead = StepView { by_ns: 6 * every as i64, at_ns: 9 * every };
        assert_eq!((shown.utc_steps, shown.utc_step_last), (1, Some(back)));
        assert_eq!((shown.counter_steps, shown.counter_step_last), (1, Some(ahead)));
        let faults: Vec<_> = snapshot.faults.iter().map(|fault| (fault.code, fault.detail)).collect();
        let codes = [FaultCode::UtcStepped, FaultCode::CounterStepped].map(FaultCode::number);
        assert_eq!(faults, [(codes[0], 3 * every / 2), (codes[1], 6 * every)]);
    }
}
