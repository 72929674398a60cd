//! Estimates the time from a completion on the device to poll's claim, across two clocks.
//!
//! Owns poll's [`Tap`], which samples one completion in [`SAMPLE_EVERY`], and the supervisor's
//! [`Transits`], which evaluates the samples. Bounds: [`SAMPLES`] between two evaluations; further
//! samples are dropped. The tap costs a hot thread two loads, a clock reading and a push per
//! sample.
//!
//! # Why this is an estimate with bounds
//! Device and host stamp by their own clocks. The host stamped every launch before the device began
//! it, and every claim after the device ended it. So the offset of the clocks lies between the
//! largest `launched − began` and the smallest `claimed − ended` of the samples of one evaluation,
//! which is too short for the clocks to drift apart. The estimate is the middle, and its error
//! bound half of the span: the board has both.

use super::rig::Reports;
use crate::units::{TickRate, Ticks};
use pinwheel_edge::ring::spsc::{self, Consumer, Producer};
use std::sync::Arc;

/// One completion in this many is sampled.
const SAMPLE_EVERY: u32 = 64;
/// Maximum of samples between two evaluations.
const SAMPLES: usize = 256;
/// With fewer samples the offset is bounded too loosely.
const SAMPLES_MIN: usize = 8;

/// One completion: the host's times in ticks, the device's in nanoseconds of its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Transit {
    launched: Ticks,
    claimed: Ticks,
    began_ns: u64,
    ended_ns: u64,
}

/// Poll's end of the samples.
pub struct Tap {
    reports: Arc<Reports>,
    samples: Producer<Transit>,
    left: u32,
}

/// The supervisor's end of the samples.
pub struct Transits {
    samples: Consumer<Transit>,
    rate: TickRate,
    taken: Vec<Transit>,
}

/// Creates both ends, for graphs that report to `reports`.
pub fn transits(reports: Arc<Reports>, rate: TickRate) -> (Tap, Transits) {
    let (samples, taken) = spsc::channel(SAMPLES);
    let tap = Tap { reports, samples, left: 0 };
    (tap, Transits { samples: taken, rate, taken: Vec::with_capacity(SAMPLES) })
}

impl Tap {
    /// Whether this completion is to be sampled.
    #[inline]
    pub fn is_due(&mut self) -> bool {
        let is_due = self.left == 0;
        self.left = if is_due { SAMPLE_EVERY - 1 } else { self.left - 1 };
        is_due
    }

    /// Samples the completion of worker `w`. Its ready word has been claimed and it is not free
    /// yet, so its report belongs to this completion.
    pub fn note(&mut self, w: usize, launched: Ticks, claimed: Ticks) {
        let (began_ns, ended_ns) = self.reports.stamps(w);
        // A full ring: the driver blocks the supervisor, and a missing sample does no harm.
        let _ = self.samples.push(Transit { launched, claimed, began_ns, ended_ns });
    }
}

impl Transits {
    /// Passes each sampled time from completion to claim to `each`, ns; returns the error bound of
    /// all, ns. `None`: too few samples, or contradicting clocks.
    pub(super) fn judge(&mut self, each: impl FnMut(u64)) -> Option<u64> {
        self.taken.clear();
        while self.taken.len() < SAMPLES
            && let Some(sample) = self.samples.pop()
        {
            self.taken.push(sample);
        }
        let rate = self.rate;
        judge(&self.taken, |ticks| rate.nanos(ticks).0, each)
    }
}

fn judge(samples: &[Transit], nanos: impl Fn(Ticks) -> u64, each: impl FnMut(u64)) -> Option<u64> {
    let first = samples.first().filter(|_| samples.len() >= SAMPLES_MIN)?;
    // Both clocks relative to the first sample: differences of differences, which are small.
    let host = |at: Ticks| nanos(Ticks(at.0.wrapping_sub(first.launched.0))) as i64;
    let device = |at_ns: u64| at_ns.wrapping_sub(first.began_ns) as i64;
    let least = samples.iter().map(|one| host(one.launched) - device(one.began_ns)).max()?;
    let most = samples.iter().map(|one| host(one.claimed) - device(one.ended_ns)).min()?;
    let span = u64::try_from(most - least).ok()?;
    let offset = least + span as i64 / 2;
    let transit = |one: &Transit| (host(one.claimed) - device(one.ended_ns) - offset) as u64;
    samples.iter().map(transit).for_each(each);
    Some(span.div_ceil(2))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{SAMPLES_MIN, Transit, judge};
    use crate::units::Ticks;

    /// Launches 5 µs apart, on a device whose clock is `ahead` of the host's; `times`: time to the
    /// start and time to the claim, around a run of 3 µs.
    fn samples(ahead: i64, times: &[(u64, u64)]) -> Vec<Transit> {
        let sample = |(index, &(start, claim)): (usize, &(u64, u64))| {
            let launched = 1_000_000 + index as u64 * 5_000;
            let (began, ended) = (launched + start, launched + start + 3_000);
            let device = |at: u64| (at as i64 + ahead) as u64;
            let (began_ns, ended_ns) = (device(began), device(ended));
            Transit { launched: Ticks(launched), claimed: Ticks(ended + claim), began_ns, ended_ns }
        };
        times.iter().enumerate().map(sample).collect()
    }

    #[test]
    fn the_time_to_the_claim_is_found_within_its_bounds_whatever_the_clocks_say() {
        let times = [
            (2_000, 900),
            (2_500, 400),
            (1_500, 700),
            (3_000, 300),
            (1_200, 5_000),
            (1_800, 350),
            (2_200, 450),
            (1_900, 600),
        ];
        for ahead in [0, 123_456_789_012, -900_000] {
            let mut found = Vec::new();
            let wrong_by = judge(&samples(ahead, &times), |ticks| ticks.0, |ns| found.push(ns)).unwrap();
            // The shortest start and the shortest claim bound the offset.
            assert_eq!(wrong_by, (1_200 + 300) / 2);
            for (found, (_, claim)) in found.iter().zip(times) {
                assert!(found.abs_diff(claim) <= wrong_by, "{found} for {claim}, within {wrong_by}");
            }
        }
    }

    #[test]
    fn too_few_samples_and_clocks_that_contradict_each_other_give_no_figure() {
        let few = samples(0, &[(1_000, 500); SAMPLES_MIN - 1]);
        assert_eq!(judge(&few, |ticks| ticks.0, |_| panic!("a figure")), None);
        let mut torn = samples(0, &[(1_000, 500); SAMPLES_MIN]);
        torn[3].ended_ns += 10_000;
        assert_eq!(judge(&torn, |ticks| ticks.0, |_| panic!("a figure")), None);
    }
}
