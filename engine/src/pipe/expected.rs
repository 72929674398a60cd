//! What a repeated step is expected to take, from what it took.
//!
//! Owned by the one role that measures and reads it. No clock, no allocation, 16 bytes.

/// The mean and the mean deviation move by this part of a difference.
const STEP: u64 = 8;
/// Each refusal makes them smaller by this part.
const FADE: u64 = 64;
/// A measurement of up to so many ticks, less than a microsecond, always counts in full.
const SHORT: u64 = 1024;

/// The first so many measurements only give the least of them.
const FIRST: u32 = 3;

/// Ticks that a step takes, as the retransmission timer of TCP estimates them (Jacobson 1988).
///
/// An estimate may keep a step from being tried, and then nothing corrects it. Three rules keep cold caches or
/// an interruption of the thread from refusing shots for ever: the estimate starts with the least of the first
/// three measurements; one measurement counts at most twice what was expected; and [`ExpectedTime::fade`] makes
/// the estimate smaller with each refusal until the step is tried again.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExpectedTime {
    mean: u64,
    deviation: u64,
    /// Measurements, at most [`FIRST`].
    measured: u32,
}

impl ExpectedTime {
    /// Mean, ticks; 0: not known yet.
    #[inline]
    pub fn mean(&self) -> u64 {
        if self.is_known() { self.mean } else { 0 }
    }

    /// Mean and mean deviation together, ticks; 0: not known yet.
    #[inline]
    pub fn usual_most(&self) -> u64 {
        if self.is_known() { self.mean + self.deviation } else { 0 }
    }

    /// Whether it was measured often enough.
    #[inline]
    pub fn is_known(&self) -> bool {
        self.measured == FIRST
    }

    /// The step has taken `ticks`.
    #[inline]
    pub fn note(&mut self, ticks: u64) {
        if !self.is_known() {
            let least = if self.measured == 0 { ticks } else { ticks.min(self.mean) };
            *self = ExpectedTime { mean: least.max(1), deviation: least / 2, measured: self.measured + 1 };
            return;
        }
        let ticks = ticks.min((2 * (self.mean + self.deviation)).max(SHORT));
        self.deviation = self.deviation - self.deviation / STEP + ticks.abs_diff(self.mean) / STEP;
        self.mean = (self.mean - self.mean / STEP + ticks / STEP).max(1);
    }

    /// A shot was refused because the step takes too long.
    #[inline]
    pub fn fade(&mut self) {
        self.mean -= self.mean.div_ceil(FADE);
        self.deviation -= self.deviation.div_ceil(FADE);
    }
}

#[cfg(test)]
mod tests {
    use super::ExpectedTime;

    fn known(ticks: u64) -> ExpectedTime {
        let mut expected = ExpectedTime::default();
        (0..200).for_each(|_| expected.note(ticks));
        expected
    }

    #[test]
    fn it_follows_what_is_measured_from_any_first_measurements() {
        for first in [0, 1, 100, 50_000, 10_000_000] {
            let mut expected = known(first);
            (0..200).for_each(|_| expected.note(50_000));
            assert!((49_000..=51_000).contains(&expected.mean()), "{first}: {expected:?}");
        }
    }

    #[test]
    fn it_starts_with_the_least_of_three() {
        let mut expected = ExpectedTime::default();
        for ticks in [900_000, 50_000, 70_000] {
            assert_eq!((expected.mean(), expected.usual_most()), (0, 0));
            expected.note(ticks);
        }
        assert_eq!((expected.mean(), expected.usual_most()), (50_000, 75_000));
    }

    #[test]
    fn one_interruption_counts_at_most_twice_what_was_expected() {
        let mut expected = known(50_000);
        expected.note(10_000_000);
        assert!(expected.mean() < 62_500, "{expected:?}");
    }

    #[test]
    fn it_fades_to_nothing() {
        let mut expected = known(10_000_000);
        (0..2_000).for_each(|_| expected.fade());
        assert_eq!(expected.usual_most(), 0);
    }
}
