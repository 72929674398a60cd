//! Log-linear latency histogram: one writer, any number of readers, fixed memory.
//!
//! Owns the bucket arithmetic, the single-writer recorder over board words and the plain copy a snapshot carries.
//! Bounds: [`BUCKETS`] buckets cover 0..=2⁶³ ns; each bucket is at most 1/16 of its value wide, so a quantile read
//! from it is at most 6.25 % above the true one. Never allocates on the recording side, never reads a clock.

use super::reading::sum;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use std::sync::atomic::{AtomicU64, Ordering};
use zerocopy::FromBytes;

/// log2 of the linear sub-buckets of each power of two.
const SUB_BITS: u32 = 4;
const SUB: usize = 1 << SUB_BITS;
/// Number of buckets: 16 exact ones, then 16 for each of the 60 higher powers of two.
pub const BUCKETS: usize = SUB * 61;

/// The bucket that holds `value_ns`.
#[inline]
pub const fn bucket_of(value_ns: u64) -> usize {
    if value_ns < SUB as u64 {
        return value_ns as usize;
    }
    let exponent = 63 - value_ns.leading_zeros();
    let sub = (value_ns >> (exponent - SUB_BITS)) as usize & (SUB - 1);
    (exponent - SUB_BITS + 1) as usize * SUB + sub
}

/// The largest value that falls into `bucket`, in nanoseconds.
pub const fn bucket_top_ns(bucket: usize) -> u64 {
    if bucket < SUB {
        return bucket as u64;
    }
    let exponent = (bucket / SUB) as u32 - 1 + SUB_BITS;
    let sub = (bucket % SUB) as u64;
    let width = 1u64 << (exponent - SUB_BITS);
    (1u64 << exponent) + sub * width + (width - 1)
}

/// Board words of one histogram. All `Relaxed`: counters of one writer, a reader may be one record behind, or one batch
/// of a [`Recorder`].
#[repr(C, align(128))]
#[derive(FromBytes)]
pub struct HistogramBlock {
    /// Largest value recorded, nanoseconds.
    pub max_ns: AtomicU64,
    /// Sum of all values, nanoseconds.
    pub sum_ns: AtomicU64,
    reserved: [AtomicU64; 14],
    /// Values per bucket.
    pub buckets: [AtomicU64; BUCKETS],
}

impl HistogramBlock {
    /// Records one value. Call from the block's one writer only: the adds are a load and a store, not locked.
    #[inline]
    pub fn record(&self, value_ns: u64) {
        bump(&self.buckets[bucket_of(value_ns)], 1);
        self.note(value_ns, value_ns);
    }

    /// Adds to the sum, and raises the maximum.
    #[inline(always)]
    fn note(&self, sum_ns: u64, max_ns: u64) {
        bump(&self.sum_ns, sum_ns);
        if max_ns > self.max_ns.load(Ordering::Relaxed) {
            self.max_ns.store(max_ns, Ordering::Relaxed);
        }
    }

    /// Number of values: the sum of the buckets.
    pub fn count(&self) -> u64 {
        sum(self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)))
    }

    /// Forgets all values.
    pub fn clear(&self) {
        self.buckets.iter().chain([&self.sum_ns, &self.max_ns]).for_each(|word| word.store(0, Ordering::Relaxed));
    }

    /// A plain copy.
    pub fn snapshot(&self) -> Histogram {
        Histogram {
            counts: self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).collect(),
            sum_ns: self.sum_ns.load(Ordering::Relaxed),
            max_ns: self.max_ns.load(Ordering::Relaxed),
        }
    }
}

/// Deadlines at which error rates are told, nanoseconds after the scheduled arrival, ascending.
pub const DEADLINES_NS: [u64; 13] = [
    1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000, 2_000_000, 5_000_000, 10_000_000,
];

/// A value and its bucket, for who records it more than once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    ns: u64,
    bucket: usize,
}

impl Measured {
    /// `ns` nanoseconds.
    #[inline(always)]
    pub const fn of(ns: u64) -> Measured {
        Measured { ns, bucket: bucket_of(ns) }
    }

    /// In nanoseconds.
    #[inline(always)]
    pub const fn ns(self) -> u64 {
        self.ns
    }

    /// The first of [`DEADLINES_NS`] by which an answer of this latency is there.
    pub fn first_deadline(self) -> Option<usize> {
        DEADLINES_NS.iter().position(|&deadline| self.bucket < bucket_of(deadline))
    }
}

/// Sum and maximum of the values that a histogram's writer recorded and has not published yet. Buckets are written at
/// once.
///
/// # Why buckets are not held back
/// Counting how many values in a row lie in one bucket costs a branch for each. Where values vary, its mispredictions
/// cost more than the writes that it saves. Who knows that values are equal records them with one call.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recorder {
    sum_ns: u64,
    max_ns: u64,
}

impl Recorder {
    /// Records `value` `times` times.
    #[inline(always)]
    pub fn record(&mut self, block: &HistogramBlock, value: Measured, times: u64) {
        bump(&block.buckets[value.bucket], times);
        self.sum_ns = self.sum_ns.wrapping_add(value.ns.wrapping_mul(times));
        self.max_ns = self.max_ns.max(value.ns);
    }

    /// Writes what the block lacks. Everything recorded is then on the board.
    #[inline]
    pub fn publish(&mut self, block: &HistogramBlock) {
        block.note(self.sum_ns, self.max_ns);
        (self.sum_ns, self.max_ns) = (0, 0);
    }
}

/// Adds to a single-writer counter without a locked instruction.
#[inline]
pub(crate) fn bump(word: &AtomicU64, by: u64) {
    word.store(word.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
}

/// A histogram at one moment. Serialises as `{p50,p90,p99,p999,max,mean,count}` in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    counts: Vec<u64>,
    sum_ns: u64,
    max_ns: u64,
}

impl Histogram {
    /// Number of values.
    pub fn count(&self) -> u64 {
        sum(self.counts.iter().copied())
    }

    /// Largest value ever recorded, nanoseconds.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// Arithmetic mean, nanoseconds; 0 when empty.
    pub fn mean_ns(&self) -> u64 {
        self.sum_ns.checked_div(self.count()).unwrap_or(0)
    }

    /// Value at quantile `q` in 0..=1, nanoseconds: the top of its bucket, never above the maximum; 0 when empty.
    pub fn quantile_ns(&self, q: f64) -> u64 {
        let count = self.count();
        if count == 0 {
            return 0;
        }
        let rank = ((q.clamp(0.0, 1.0) * count as f64).ceil() as u64).max(1);
        let mut seen = 0u64;
        for (bucket, n) in self.counts.iter().enumerate() {
            seen = seen.saturating_add(*n);
            if seen >= rank {
                return bucket_top_ns(bucket).min(self.max_ns.max(1));
            }
        }
        self.max_ns
    }

    /// How many values lie in buckets wholly above `limit_ns`, and about what they add up to,
    /// nanoseconds: each counts as its bucket's top.
    pub fn above(&self, limit_ns: u64) -> (u64, u64) {
        let above = self.counts.iter().enumerate().skip(bucket_of(limit_ns) + 1);
        above.fold((0u64, 0u64), |(count, sum_ns), (bucket, n)| {
            (count.saturating_add(*n), sum_ns.saturating_add(n.saturating_mul(bucket_top_ns(bucket).min(self.max_ns))))
        })
    }

    /// Sum of all values, nanoseconds.
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// The buckets that hold something: each one's largest value, nanoseconds, and its count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.counts.iter().enumerate().filter(|(_, count)| **count > 0).map(|(at, count)| (bucket_top_ns(at), *count))
    }

    /// The largest distance of two distribution functions (Kolmogorov and Smirnov), 0..=1; `None` if one is empty.
    pub fn distance(&self, other: &Histogram) -> Option<f64> {
        let (mine, theirs) = (self.count() as f64, other.count() as f64);
        if mine == 0.0 || theirs == 0.0 {
            return None;
        }
        let (mut one, mut two, mut most) = (0.0, 0.0, 0.0f64);
        for bucket in 0..self.counts.len().max(other.counts.len()) {
            one += self.counts.get(bucket).copied().unwrap_or(0) as f64 / mine;
            two += other.counts.get(bucket).copied().unwrap_or(0) as f64 / theirs;
            most = most.max((one - two).abs());
        }
        Some(most)
    }

    /// What was recorded since `earlier`, a snapshot of the same histogram. The maximum is the top of the highest
    /// bucket that grew.
    pub fn since(&self, earlier: &Histogram) -> Histogram {
        let before = |bucket: usize| earlier.counts.get(bucket).copied().unwrap_or(0);
        let counts: Vec<u64> = self.counts.iter().enumerate().map(|(b, n)| n.saturating_sub(before(b))).collect();
        let top = counts.iter().rposition(|n| *n > 0).map_or(0, bucket_top_ns);
        Histogram { counts, sum_ns: self.sum_ns.saturating_sub(earlier.sum_ns), max_ns: top.min(self.max_ns) }
    }

    /// Adds `other` (another silo's histogram of the same stage).
    pub fn merge(&mut self, other: &Histogram) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine = mine.saturating_add(*theirs);
        }
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// A histogram of the given values (tests and cold summaries).
    pub fn of(values_ns: &[u64]) -> Histogram {
        let mut counts = vec![0; BUCKETS];
        for value in values_ns {
            counts[bucket_of(*value)] += 1;
        }
        Histogram { counts, sum_ns: values_ns.iter().sum(), max_ns: values_ns.iter().copied().max().unwrap_or(0) }
    }
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Histogram", 7)?;
        out.serialize_field("p50", &self.quantile_ns(0.50))?;
        out.serialize_field("p90", &self.quantile_ns(0.90))?;
        out.serialize_field("p99", &self.quantile_ns(0.99))?;
        out.serialize_field("p999", &self.quantile_ns(0.999))?;
        out.serialize_field("max", &self.max_ns)?;
        out.serialize_field("mean", &self.mean_ns())?;
        out.serialize_field("count", &self.count())?;
        out.end()
    }
}

#[cfg(test)]
mod tests {
    use super::{BUCKETS, Histogram, HistogramBlock, Measured, Recorder, bucket_of, bucket_top_ns};
    use proptest::prelude::*;
    use zerocopy::FromZeros;

    proptest! {
        #[test]
        fn a_recorder_publishes_what_records_one_by_one_would_have(
            batches in prop::collection::vec(
                prop::collection::vec((prop_oneof![0u64..40, 1_000u64..1_100, any::<u64>()], 1u64..4), 0..20), 0..8,
            )
        ) {
            let (one, run) = (HistogramBlock::new_zeroed(), HistogramBlock::new_zeroed());
            let mut recorder = Recorder::default();
            for batch in batches {
                for (value_ns, times) in batch {
                    (0..times).for_each(|_| one.record(value_ns));
                    recorder.record(&run, Measured::of(value_ns), times);
                }
                recorder.publish(&run);
                prop_assert_eq!(run.snapshot(), one.snapshot());
            }
        }
    }

    #[test]
    fn every_value_lies_in_its_bucket_and_no_wider_than_a_sixteenth() {
        let mut value = 1u64;
        while value < 1 << 62 {
            for v in [value - 1, value, value + 1, value + value / 3] {
                let bucket = bucket_of(v);
                assert!(bucket < BUCKETS);
                assert!(bucket_top_ns(bucket) >= v);
                assert!(bucket == 0 || bucket_top_ns(bucket - 1) < v);
                assert!(bucket_top_ns(bucket) - v <= v / 16 + 1);
            }
            value *= 2;
        }
        assert!(bucket_of(u64::MAX) < BUCKETS);
    }

    #[test]
    fn quantiles_are_within_a_bucket_of_the_truth() {
        let values: Vec<u64> = (1..=10_000).collect();
        let histogram = Histogram::of(&values);
        assert_eq!(histogram.count(), 10_000);
        for (q, truth) in [(0.5, 5_000u64), (0.99, 9_900), (0.999, 9_990)] {
            let found = histogram.quantile_ns(q);
            assert!(found >= truth && found <= truth + truth / 16 + 1, "{q}: {found}");
        }
        assert_eq!(histogram.quantile_ns(1.0), 10_000);
    }

    #[test]
    fn the_distance_of_distributions_is_none_to_itself_and_one_to_what_lies_apart() {
        let (low, high) = (Histogram::of(&[10, 20, 30]), Histogram::of(&[1_000, 2_000]));
        assert_eq!(low.distance(&low), Some(0.0));
        assert!((low.distance(&high).unwrap_or(0.0) - 1.0).abs() < 1e-9);
        assert_eq!(low.distance(&Histogram::default()), None);
        assert_eq!(low.buckets().map(|(_, count)| count).sum::<u64>(), 3);
    }

    #[test]
    fn a_difference_holds_only_what_came_between() {
        let earlier = Histogram::of(&[10, 20]);
        let later = Histogram::of(&[10, 20, 1_000]);
        let between = later.since(&earlier);
        assert_eq!(between.count(), 1);
        assert_eq!(between.quantile_ns(0.5), 1_000);
    }

    /// A board or a recording of another program may hold any number.
    #[test]
    fn counts_beyond_the_largest_number_have_quantiles() {
        let mut full = Histogram::of(&[10, 20, 1_000]);
        full.counts.iter_mut().for_each(|count| *count <<= 63);
        assert_eq!((full.count(), full.quantile_ns(0.5), full.quantile_ns(1.0)), (u64::MAX, 10, 20));
        assert_eq!(full.above(5), (u64::MAX, u64::MAX));
    }
}
