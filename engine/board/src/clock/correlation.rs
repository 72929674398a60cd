//! One moment on three clocks: ticks, monotonic time, UTC.
//!
//! Owns nothing. For cold threads, every [`CORRELATE_EVERY`]. Bounds: [`READS`] reads. The system's
//! clocks are read between two reads of the counter; the narrowest of these intervals is kept,
//! because a thread that is descheduled between them makes a wide one. Never blocks.

use super::{Clock, System};
use crate::units::{Nanos, Ticks};

/// How often a cold thread takes a pair.
pub const CORRELATE_EVERY: Nanos = Nanos(100_000_000);
/// Intervals measured, of which the narrowest is kept.
pub const READS: usize = 5;

/// The same moment on three clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Correlation {
    /// Middle of the interval.
    pub ticks: Ticks,
    /// The system's monotonic clock.
    pub monotonic: Nanos,
    /// UTC since 1970.
    pub utc: Nanos,
    /// Length of the interval between the two counter reads: the moment is known to half of this.
    pub width: Ticks,
}

impl Correlation {
    /// Reads all three clocks.
    #[must_use]
    pub fn take(clock: &Clock) -> Correlation {
        narrowest(|| clock.ticks(), || clock.system())
    }
}

/// The narrowest of [`READS`] intervals.
pub(super) fn narrowest(mut ticks: impl FnMut() -> Ticks, mut system: impl FnMut() -> System) -> Correlation {
    let mut sandwich = || {
        let before = ticks();
        let System { monotonic, utc } = system();
        let width = ticks().since(before);
        Correlation { ticks: before.plus(Ticks(width.0 / 2)), monotonic, utc, width }
    };
    let first = sandwich();
    (1..READS).fold(first, |best, _| {
        let next = sandwich();
        if next.width < best.width { next } else { best }
    })
}

#[cfg(test)]
mod tests {
    use super::{Correlation, READS, narrowest};
    use crate::clock::System;
    use crate::units::{Nanos, Ticks};

    #[test]
    fn the_narrowest_of_five_sandwiches_wins() {
        let widths = [90, 40, 30, 5_000, 31];
        let mut ends = (0u64..).zip(widths).flat_map(|(k, width)| [k * 10_000, k * 10_000 + width]);
        let mut reads = 0;
        let ticks = || Ticks(ends.next().expect("two reads a sandwich"));
        let system = || {
            reads += 1;
            System { monotonic: Nanos(reads), utc: Nanos(100 + reads) }
        };
        let found = narrowest(ticks, system);
        let expected = Correlation { ticks: Ticks(20_015), monotonic: Nanos(3), utc: Nanos(103), width: Ticks(30) };
        assert_eq!(found, expected);
        assert_eq!(reads as usize, READS);
    }
}
