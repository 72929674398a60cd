//! Checks whether a stream's shots fit the model that they are decoded with. Finds a wrong bit
//! order, for example.
//!
//! Owns the counters of one stream. One hot role feeds them; it, or a thread that it hands the
//! report to, judges them. Neither allocates. The first window counts every shot, of one of many
//! streams the first [`FIRST_OF_MANY`]; then 1 in [`SAMPLE`] is counted, and the other shots cost one
//! counter. A verdict uses the last one to two windows. A
//! window has [`WINDOW_MIN`] counted shots, or more if needed to expect enough events. Never reads
//! a clock.
//!
//! # Why three comparisons
//!
//! - *Total*: fired detectors against the model's, in standard deviations of the model (mechanisms
//!   are independent, so the variance is `Σ p(1-p)k²`, `k` the detectors of a mechanism). Finds
//!   random data, zeros, another noise strength.
//! - *Shape*: Pearson's chi-square over detectors, the model scaled to the total found. Finds
//!   permuted detectors where rates differ between them.
//! - *Pairs*: how often detectors that share a mechanism fire together. Reversing the bits in a
//!   byte keeps the total exactly and the shape nearly, but tears pairs apart: not those whose
//!   indices differ by whole bytes, so pairs are counted in groups of equal index difference, and
//!   one group that comes apart is enough.
//!
//! A permutation that maps the model onto itself is not found. It does no harm.
//!
//! No model is exact, so a deviation counts only if it is both significant and large. Real noise
//! that differs by a few per cent stays Good, however many shots are counted.

mod expected;

use expected::{Expected, GROUPS};
use std::sync::Arc;

use super::{Model, ones};
use crate::streams::HealthVerdict;

/// After the first shots, one in this many is counted.
pub const SAMPLE: u64 = 16;
/// More streams than this are many.
///
/// # Why many streams count fewer shots
/// The counters of many streams do not fit the caches: with 1,000 streams a counted shot takes ten
/// times as long as with one, and their first windows together last a thousand times as long.
const MANY: usize = 64;
/// First shots of each of many streams, all of which are counted.
pub const FIRST_OF_MANY: u64 = 256;
/// Least and most counted shots in a window of evidence.
pub const WINDOW_MIN: u32 = 4096;
/// See [`WINDOW_MIN`].
pub const WINDOW_MAX: u32 = 1 << 24;
/// Hottest detectors in a report.
pub const HOTTEST: usize = 5;
/// A group with fewer expected pairs than this gives no verdict.
const PAIRS_MIN: f64 = 30.0;
/// With fewer counted shots or expected events there is no verdict.
const SHOTS_MIN: u32 = 200;
const EVENTS_MIN: f64 = 1000.0;
/// Standard deviations from which a deviation is significant: in general, of a single detector
/// among thousands, and of two signs together.
const SIGNIFICANT: f64 = 6.0;
const SIGNIFICANT_LONE: f64 = 8.0;
const SIGNIFICANT_BOTH: f64 = 4.0;
/// Least variance assumed for a single detector, so that a few counts are never significant.
const LONE_SPREAD_MIN: f64 = 9.0;

/// A copy of one stream's health.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HealthReport {
    /// Shots received, counted or not.
    pub shots_seen: u64,
    /// Counted shots of the windows used.
    pub shots_examined: u64,
    /// Fired detectors per detector and shot; 0 without shots.
    pub fraction_found: f64,
    /// The same, as the model predicts it.
    pub fraction_expected: f64,
    /// Root mean square relative deviation of the detectors' fractions, sampling noise subtracted.
    pub shape_deviation: f64,
    /// In the group of pairs that deviates most: pairs that fired together, as a share of what the
    /// model expects. 1 if there is not enough evidence.
    pub pairs_found: f64,
    /// The verdict.
    pub verdict: HealthVerdict,
    /// Detectors that fired most, the most frequent first, with their fractions; `None` past the
    /// model's detectors.
    pub hottest: [Option<(u32, f64)>; HOTTEST],
}

#[derive(Debug, Clone)]
struct Window {
    shots: u32,
    pairs: [u64; GROUPS],
    counts: Vec<u32>,
}

/// The counters of one stream.
#[derive(Debug, Clone)]
pub struct InputHealth {
    expected: Arc<Expected>,
    window_shots: u32,
    /// First shots that are all counted.
    first: u64,
    shots_seen: u64,
    now: Window,
    before: Window,
}

impl InputHealth {
    /// Counters at zero for a stream of `model`'s shots.
    pub fn new(model: &Model) -> Self {
        let window = Window { shots: 0, pairs: [0; GROUPS], counts: vec![0; model.detectors as usize] };
        let expected = Arc::new(Expected::new(model));
        let wanted = (2.0 * EVENTS_MIN / expected.total).clamp(f64::from(WINDOW_MIN), f64::from(WINDOW_MAX));
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to a u32's range")]
        let window_shots = wanted as u32;
        let first = u64::from(window_shots);
        Self { expected, window_shots, first, shots_seen: 0, now: window.clone(), before: window }
    }

    /// Counters at zero for one of `streams` streams of `model`'s shots. Clones share what the model predicts.
    pub fn one_of(model: &Model, streams: usize) -> Self {
        let one = Self::new(model);
        let first = if streams > MANY { FIRST_OF_MANY } else { one.first };
        Self { first, ..one }
    }

    /// Counts one packed shot.
    ///
    /// # Panics
    ///
    /// If a bit past the model's detectors is set.
    pub fn observe(&mut self, shot: &[u64]) {
        let seen = self.shots_seen;
        self.shots_seen += 1;
        if seen >= self.first && !seen.is_multiple_of(SAMPLE) {
            return;
        }
        if self.now.shots == self.window_shots {
            std::mem::swap(&mut self.now, &mut self.before);
            self.now.clear();
        }
        self.now.shots += 1;
        ones(shot).for_each(|detector| self.now.counts[detector as usize] += 1);
        for pair in self.expected.together.fired_in(shot) {
            self.now.pairs[usize::from(self.expected.group_of[pair])] += 1;
        }
    }

    /// Judges the counts. Does not allocate; takes some microseconds for a thousand detectors.
    pub fn assess(&self) -> HealthReport {
        let shots_counted = self.now.shots + self.before.shots;
        let shots = f64::from(shots_counted);
        let detectors = self.expected.fractions.len().max(1) as f64;
        let evidence = self.evidence(shots);
        let per_shot = |count: f64| if shots_counted == 0 { 0.0 } else { count / shots };
        HealthReport {
            shots_seen: self.shots_seen,
            shots_examined: u64::from(shots_counted),
            fraction_found: per_shot(evidence.fired) / detectors,
            fraction_expected: self.expected.total / detectors,
            shape_deviation: evidence.shape_deviation,
            pairs_found: evidence.pairs_ratio,
            verdict: if shots_counted < SHOTS_MIN { HealthVerdict::TooFew } else { evidence.verdict() },
            hottest: self.hottest().map(|slot| slot.map(|(index, count)| (index, per_shot(f64::from(count))))),
        }
    }

    /// Every detector's count, in order.
    fn counts(&self) -> impl Iterator<Item = f64> {
        self.now.counts.iter().zip(&self.before.counts).map(|(now, before)| f64::from(now + before))
    }

    fn evidence(&self, shots: f64) -> Evidence {
        let fired: f64 = self.counts().sum();
        let mean = shots * self.expected.total;
        let total_ratio = if mean > 0.0 { fired / mean } else { 1.0 };
        let (pairs_sigmas, pairs_ratio) = self.weakest_group(shots, total_ratio);
        let shape = self.shape(shots, total_ratio.clamp(0.1, 10.0));
        Evidence {
            fired,
            events_expected: mean,
            total_sigmas: (fired - mean) / (shots * self.expected.total_variance).max(1.0).sqrt(),
            total_ratio,
            shape_sigmas: shape.excess / shape.variance.max(1.0).sqrt(),
            shape_deviation: (shape.excess / (shots * shape.weight).max(1e-9)).max(0.0).sqrt(),
            pairs_sigmas,
            pairs_ratio,
            worst_sigmas: shape.worst_sigmas,
        }
    }

    /// Compares the detectors' shares with the model's, scaled to the total found.
    fn shape(&self, shots: f64, total_ratio: f64) -> Shape {
        let mut shape = Shape::default();
        for (count, fraction) in self.counts().zip(&self.expected.fractions) {
            let fraction = (fraction * total_ratio).min(0.999);
            let mean = shots * fraction;
            let spread = mean * (1.0 - fraction);
            // Below one expected count the term is held back, else one shot of a silent detector
            // would decide.
            let share = spread.min(1.0);
            shape.excess += (count - mean).powi(2) / spread.max(1.0) - share;
            shape.variance += share * 2.0f64.mul_add(SHARED * share, share / spread.max(f64::MIN_POSITIVE));
            shape.weight += share * fraction / (1.0 - fraction);
            if (count - mean).abs() > mean / 2.0 {
                let sigmas = (count - mean).abs() / spread.max(LONE_SPREAD_MIN).sqrt();
                shape.worst_sigmas = shape.worst_sigmas.max(sigmas);
            }
        }
        shape
    }

    /// The group of pairs that falls shortest: by how many standard deviations, and what share of
    /// the pairs that the model expects beyond chance was found.
    fn weakest_group(&self, shots: f64, total_ratio: f64) -> (f64, f64) {
        let counted = self.now.pairs.iter().zip(&self.before.pairs).map(|(now, before)| (now + before) as f64);
        let groups = counted.zip(self.expected.pairs);
        let groups = groups.map(|(count, (together, chance))| (count, together * shots, chance * shots));
        let judged = groups.filter(|&(_, together, chance)| together - chance >= PAIRS_MIN);
        let sized = judged.map(|(count, together, chance)| {
            let beyond = (count - chance * total_ratio.powi(2)) / (together - chance);
            ((count - together) / (PAIRS_SHARED * together).sqrt(), beyond)
        });
        sized.min_by(|(a, _), (b, _)| a.total_cmp(b)).unwrap_or((0.0, 1.0))
    }

    /// The hottest detectors and their counts.
    fn hottest(&self) -> [Option<(u32, u32)>; HOTTEST] {
        let mut hottest: [Option<(u32, u32)>; HOTTEST] = [None; HOTTEST];
        for (index, (now, before)) in (0u32..).zip(self.now.counts.iter().zip(&self.before.counts)) {
            let count = now + before;
            let rank = hottest.iter().position(|slot| slot.is_none_or(|(_, held)| count > held));
            if let Some(rank) = rank {
                hottest[rank..].rotate_right(1);
                hottest[rank] = Some((index, count));
            }
        }
        hottest
    }
}

/// Neighbouring detectors fire together, which increases chi-square's variance by about this
/// factor.
const SHARED: f64 = 1.5;
/// The same factor for the count of pairs, whose independent variance is its mean.
const PAIRS_SHARED: f64 = 2.0;

/// Sums over detectors.
#[derive(Default)]
struct Shape {
    /// Chi-square minus its expectation, and its variance.
    excess: f64,
    variance: f64,
    /// What a relative deviation of 1 in every detector would add to chi-square in one shot.
    weight: f64,
    /// The largest deviation of a detector, among those that deviate by half or more.
    worst_sigmas: f64,
}

/// Deviations, each as a size and as standard deviations.
struct Evidence {
    fired: f64,
    events_expected: f64,
    total_sigmas: f64,
    total_ratio: f64,
    shape_sigmas: f64,
    shape_deviation: f64,
    pairs_sigmas: f64,
    pairs_ratio: f64,
    worst_sigmas: f64,
}

impl Evidence {
    fn verdict(&self) -> HealthVerdict {
        if self.events_expected < EVENTS_MIN && self.fired < EVENTS_MIN {
            return HealthVerdict::TooFew;
        }
        let total = self.total_sigmas.abs() > SIGNIFICANT;
        let shape = self.shape_sigmas > SIGNIFICANT;
        // Weaker noise of the same kind has fewer pairs too: compare with the total before blaming
        // the order.
        let pairs_ratio = self.pairs_ratio / self.total_ratio.clamp(0.1, 1.0);
        let torn = |sigmas: f64, share: f64| -self.pairs_sigmas > sigmas && pairs_ratio < share;
        let misshapen = shape && self.shape_deviation > 0.25;
        if (total && !(0.33..=3.0).contains(&self.total_ratio))
            || (shape && self.shape_deviation > 0.6)
            || torn(SIGNIFICANT, 0.6)
            || (misshapen && torn(SIGNIFICANT_BOTH, 0.6))
        {
            HealthVerdict::Bad
        } else if (total && (self.total_ratio - 1.0).abs() > 0.25)
            || misshapen
            || torn(SIGNIFICANT, 0.75)
            || self.worst_sigmas > SIGNIFICANT_LONE
        {
            HealthVerdict::Suspect
        } else {
            HealthVerdict::Good
        }
    }
}

impl Window {
    fn clear(&mut self) {
        self.shots = 0;
        self.pairs = [0; GROUPS];
        self.counts.fill(0);
    }
}

#[cfg(test)]
mod tests;
