//! One clock reading for several shots of a batch.
//!
//! Owns how many shots share the next reading. Part of the feed and of dispatch, on their threads.
//! Bounds: [`SHOTS_MAX`] shots a reading. A call begins with a reading: the stamps of a shot that comes
//! alone are exact.
//!
//! # Why the number varies
//! As many shots share a reading as were last handled in about [`SPAN`]. So a stamp is about that old
//! at most, and a role that takes long for a shot does not overrun the frame's budget.

use super::Frame;
use crate::units::{Nanos, Ticks};

/// Most shots that share a reading.
const SHOTS_MAX: u32 = 16;
/// Time of the shots that share a reading.
const SPAN: Nanos = Nanos(1_000);

/// The shots of one reading, over all calls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchClock(u32);

impl BatchClock {
    pub(crate) const fn new() -> BatchClock {
        BatchClock(1)
    }

    /// The readings of one call.
    pub(crate) fn begin(&mut self, frame: &Frame<'_>) -> Readings<'_> {
        let span = frame.clock().rate().ticks(SPAN);
        Readings { shots: &mut self.0, left: 0, now: None, span }
    }
}

/// The readings of one call.
#[derive(Debug)]
pub(crate) struct Readings<'a> {
    shots: &'a mut u32,
    /// Shots to come that share the last reading.
    left: u32,
    now: Option<Ticks>,
    span: Ticks,
}

impl Readings<'_> {
    /// The time of the next shot.
    #[inline]
    pub(crate) fn next(&mut self, frame: &Frame<'_>) -> Ticks {
        if let Some(now) = self.now.filter(|_| self.left > 0) {
            self.left -= 1;
            return now;
        }
        let now = frame.ticks();
        if let Some(before) = self.now {
            let is_short = now.since(before) <= self.span;
            *self.shots = if is_short { (*self.shots * 2).min(SHOTS_MAX) } else { (*self.shots / 2).max(1) };
        }
        self.left = *self.shots - 1;
        self.now = Some(now);
        now
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Frame, Scratch};
    use super::{BatchClock, SHOTS_MAX, SPAN};
    use crate::clock::Clock;
    use pinwheel_edge::spin::Phase;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// A clock, and the nanoseconds that it shows.
    fn clock() -> (Clock, Arc<AtomicU64>) {
        let now = Arc::new(AtomicU64::new(1));
        (Clock::virtual_time(Arc::clone(&now)), now)
    }

    /// For each of `shots` shots of one call, which take `each_ns` to feed: its stamp, and the time.
    fn call(shared: &mut BatchClock, clock: &(Clock, Arc<AtomicU64>), shots: u32, each_ns: u64) -> Vec<(u64, u64)> {
        let (clock, now) = clock;
        let mut scratch = Scratch::new();
        let frame = Frame::new(clock, clock.ticks(), Phase::Live, &mut scratch);
        let mut readings = shared.begin(&frame);
        let shot = |_| (readings.next(&frame).0, now.fetch_add(each_ns, Ordering::Relaxed));
        (0..shots).map(shot).collect()
    }

    fn readings(shots: &[(u64, u64)]) -> usize {
        shots.iter().filter(|(stamp, now)| stamp == now).count()
    }

    #[test]
    fn quick_shots_share_a_reading_and_slow_ones_have_one_each() {
        let (clock, mut shared) = (clock(), BatchClock::new());
        let quick = call(&mut shared, &clock, 4 * SHOTS_MAX, 10);
        assert_eq!(quick.len(), 4 * SHOTS_MAX as usize);
        assert!(readings(&quick) < 10, "{quick:?}");
        assert!(quick.iter().all(|(stamp, now)| stamp <= now && now - stamp < SPAN.0));
        call(&mut shared, &clock, 4 * SHOTS_MAX, 5 * SPAN.0);
        let slow = call(&mut shared, &clock, SHOTS_MAX, 5 * SPAN.0);
        assert_eq!(readings(&slow), slow.len(), "{slow:?}");
    }

    #[test]
    fn a_shot_that_comes_alone_has_its_own_reading() {
        let (clock, mut shared) = (clock(), BatchClock::new());
        call(&mut shared, &clock, 4 * SHOTS_MAX, 10);
        for _ in 0..10 {
            clock.1.fetch_add(12_345, Ordering::Relaxed);
            assert_eq!(readings(&call(&mut shared, &clock, 1, 10)), 1);
        }
    }
}
