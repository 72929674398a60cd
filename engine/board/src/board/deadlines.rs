//! Error rates at a deadline: the share of shots whose answer is wrong, or not there by then.
//!
//! An answer counts as there by a deadline if its latency lies in a histogram's
//! bucket that ends by then, so a rate is that of a deadline up to 6.25 % shorter. Pure.

use super::histogram::{DEADLINES_NS, Histogram, bucket_of};
use super::reading::sum;
use super::snapshot::StreamView;

/// Shots that have no right answer by a deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrongOrLate {
    /// The deadline, nanoseconds.
    pub deadline_ns: u64,
    /// Shots that have an answer by now, but no right one by the deadline.
    pub shots: u64,
    /// All answers, errors included, as far as their latencies are known: a recording has those of
    /// a stream once a second.
    pub of: u64,
}

/// For each deadline the shots of `streams` that have no right answer by then. `None` if it is not
/// known of every answer whether it is right, or no latency is known.
pub fn wrong_or_late<'a>(
    streams: impl IntoIterator<Item = &'a StreamView>,
) -> Option<[WrongOrLate; DEADLINES_NS.len()]> {
    let mut found = DEADLINES_NS.map(|deadline_ns| WrongOrLate { deadline_ns, shots: 0, of: 0 });
    let mut is_judged = false;
    for stream in streams {
        if stream.answered > sum([stream.shots_with_observables, stream.errors]) {
            return None;
        }
        is_judged |= stream.shots_with_observables > 0;
        let (mut wrong, timed) = (0, stream.latency.count());
        for (at, wrong_in) in found.iter_mut().zip(stream.wrong_in) {
            wrong = sum([wrong, wrong_in]);
            let no_right_one = sum([late(&stream.latency, at.deadline_ns), wrong]).min(timed);
            at.shots = sum([at.shots, no_right_one]);
            at.of = sum([at.of, timed]);
        }
    }
    (is_judged && found[0].of > 0).then_some(found)
}

/// Answers that are not there by `deadline_ns`.
fn late(latency: &Histogram, deadline_ns: u64) -> u64 {
    let there = latency.buckets().filter(|&(top_ns, _)| bucket_of(top_ns) < bucket_of(deadline_ns));
    latency.count() - sum(there.map(|(_, count)| count))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::super::histogram::{HistogramBlock, Measured};
    use super::{DEADLINES_NS, StreamView, WrongOrLate, wrong_or_late};
    use zerocopy::FromZeros;

    #[test]
    fn a_shot_is_counted_once_at_each_deadline() {
        let block = HistogramBlock::new_zeroed();
        let mut stream = StreamView::default();
        // Each latency once right, once wrong.
        let latencies: Vec<u64> = DEADLINES_NS.iter().flat_map(|&at| [at / 2 + 1, at - 1, at, at + 1]).collect();
        for &latency in latencies.iter().chain(&latencies) {
            block.record(latency);
        }
        for &latency in &latencies {
            if let Some(first) = Measured::of(latency).first_deadline() {
                stream.wrong_in[first] += 1;
            }
        }
        stream.answered = 2 * latencies.len() as u64;
        (stream.shots_with_observables, stream.logical_errors) = (stream.answered, stream.answered / 2);
        stream.latency = block.snapshot();
        let found = wrong_or_late([&stream]).unwrap();
        for (index, at) in found.iter().enumerate() {
            let in_time = |&&latency: &&u64| Measured::of(latency).first_deadline().is_some_and(|first| first <= index);
            let right = latencies.iter().filter(in_time).count() as u64;
            let expected =
                WrongOrLate { deadline_ns: DEADLINES_NS[index], shots: stream.answered - right, of: stream.answered };
            assert_eq!(*at, expected);
            assert!(right > 0 && right < latencies.len() as u64);
        }
        stream.shots_with_observables -= 1;
        assert_eq!(wrong_or_late([&stream]), None, "an answer that nobody judged");
        assert_eq!(wrong_or_late([]), None);
    }
}
