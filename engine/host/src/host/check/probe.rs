//! The gap probe: what a hot core really does, seen from a thread that only reads the clock.
//!
//! Owns one thread for each hot core, for the span asked for; they are joined before [`run`] returns. Each spins on its core and
//! records the time between two reads: whatever takes the core away, and whoever, shows as a gap. Works everywhere,
//! needs no privilege. Never runs on a core that another engine has claimed: the caller claims them first.

use std::time::Duration;

use super::{Observations, Row, Rule, Verdict};
use crate::board::histogram::HistogramBlock;
use crate::clock::Clock;
use crate::host::pin;
use crate::units::Nanos;
use zerocopy::FromBytes;

/// How long each core is watched by a check that is asked for.
pub const SPAN: Duration = Duration::from_secs(1);
/// How long before a start: nobody waits a second for it. A rarer gap than 20 a second may not show.
pub const START_SPAN: Duration = Duration::from_millis(50);
/// A longer time between two reads of the clock is a gap.
pub const GAP_NS: u64 = 5_000;
/// Gaps a second that pass.
const GAPS_PER_SECOND_MAX: u64 = 10;
/// Reads between two looks at the end of the span.
const READS_PER_LOOK: u32 = 64;

/// What one core did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gaps {
    /// How long it was watched, nanoseconds.
    pub span_ns: u64,
    /// Times between two reads above [`GAP_NS`].
    pub count: u64,
    /// Their sum, nanoseconds.
    pub lost_ns: u64,
    /// The longest, nanoseconds.
    pub max_ns: u64,
    /// 99.99 % of the times between two reads were at most this, nanoseconds.
    pub p9999_ns: u64,
}

/// Watches all of `cores` at once for `span`.
#[must_use]
pub fn run(cores: &[u32], span: Duration, clock: &Clock) -> Vec<(u32, Result<Gaps, String>)> {
    let started: Vec<_> = cores
        .iter()
        .map(|&core| {
            let clock = clock.clone();
            let builder = std::thread::Builder::new().name(format!("probe-{core}"));
            #[expect(clippy::disallowed_methods, reason = "cold: the engine is not running yet")]
            (core, builder.spawn(move || watch(core, span, &clock)))
        })
        .collect();
    let joined = started.into_iter().map(|(core, started)| {
        let gaps = match started.map(std::thread::JoinHandle::join) {
            Ok(Ok(gaps)) => gaps,
            Ok(Err(_)) => Err("the probe panicked".to_owned()),
            Err(error) => Err(format!("no thread for the probe: {error}")),
        };
        (core, gaps)
    });
    joined.collect()
}

fn watch(core: u32, span: Duration, clock: &Clock) -> Result<Gaps, String> {
    pin::pin_current_thread(core).map_err(|error| error.to_string())?;
    let times = HistogramBlock::read_from_bytes(&vec![0; size_of::<HistogramBlock>()])
        .map_err(|_| "no memory for the probe".to_owned())?;
    let rate = clock.rate();
    let end = rate.ticks(Nanos(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)));
    let start = clock.ticks();
    let (mut last, mut count, mut lost_ns) = (start, 0, 0);
    while last.since(start) < end {
        for _ in 0..READS_PER_LOOK {
            let now = clock.ticks();
            let ns = rate.nanos(now.since(last)).0;
            times.record(ns);
            if ns > GAP_NS {
                count += 1;
                lost_ns += ns;
            }
            last = now;
        }
    }
    let seen = times.snapshot();
    let span_ns = rate.nanos(last.since(start)).0;
    Ok(Gaps { span_ns, count, lost_ns, max_ns: seen.max_ns(), p9999_ns: seen.quantile_ns(0.9999) })
}

/// A row for each hot core.
pub(super) fn rows(seen: &Observations) -> Vec<Row> {
    let row = |core: u32| {
        let gaps = seen.gaps.iter().find(|(watched, _)| *watched == core).map(|(_, gaps)| gaps);
        judge(core, gaps, seen.isolated.as_ref().is_some_and(|isolated| isolated.contains(&core)))
    };
    seen.hot.iter().map(|&core| row(core)).collect()
}

/// Where a core is isolated the promise is made, so breaking it is a failure; elsewhere it is a warning.
fn judge(core: u32, gaps: Option<&Result<Gaps, String>>, isolated: bool) -> Row {
    let rule = Rule::new(
        "gap_probe",
        format!("p99.99 below {} µs, at most {GAPS_PER_SECOND_MAX} gaps above it a second", GAP_NS / 1_000),
        "what takes the core away for longer shows in every latency above the median",
        "see the rows that warn or fail above",
    );
    let mut row = match gaps {
        None => rule.hidden(),
        Some(Err(why)) => rule.found(Verdict::NotVisible, why.clone()),
        Some(Ok(gaps)) => {
            let per_second = u128::from(gaps.count) * 1_000_000_000 / u128::from(gaps.span_ns).max(1);
            // One gap in a short watch is no rate.
            let keeps = gaps.p9999_ns < GAP_NS && (gaps.count <= 1 || per_second <= u128::from(GAPS_PER_SECOND_MAX));
            let verdict = match (keeps, isolated) {
                (true, _) => Verdict::Pass,
                (false, true) => Verdict::Fail,
                (false, false) => Verdict::Warn,
            };
            let share = gaps.lost_ns as f64 / gaps.span_ns.max(1) as f64;
            let micros = |ns: u64| ns as f64 / 1e3;
            let found = format!(
                "watched for {} ms: {per_second} gaps above {} µs a second, {:.3} % of the time, max {:.1} µs, p99.99 {:.2} µs",
                gaps.span_ns / 1_000_000,
                GAP_NS / 1_000,
                share * 100.0,
                micros(gaps.max_ns),
                micros(gaps.p9999_ns)
            );
            rule.found(verdict, found)
        }
    };
    row.id = format!("gap_probe_core_{core}");
    row
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Gaps, SPAN, judge, run};
    use crate::clock::Clock;
    use crate::host::check::Verdict;
    use std::time::Duration;

    #[test]
    fn a_broken_promise_fails_where_the_core_is_isolated_and_warns_elsewhere() {
        let quiet = Gaps { span_ns: 1_000_000_000, count: 3, lost_ns: 30_000, max_ns: 12_000, p9999_ns: 60 };
        let noisy = Gaps { count: 400, lost_ns: 4_000_000, p9999_ns: 7_000, ..quiet };
        for (gaps, isolated, verdict) in [
            (quiet, true, Verdict::Pass),
            (quiet, false, Verdict::Pass),
            (noisy, true, Verdict::Fail),
            (noisy, false, Verdict::Warn),
        ] {
            assert_eq!(judge(4, Some(&Ok(gaps)), isolated).verdict, verdict);
        }
        let row = judge(4, Some(&Ok(noisy)), true);
        assert_eq!(row.id, "gap_probe_core_4");
        assert_eq!(
            row.found,
            "watched for 1000 ms: 400 gaps above 5 µs a second, 0.400 % of the time, max 12.0 µs, p99.99 7.00 µs"
        );
        assert_eq!(judge(4, None, true).verdict, Verdict::NotVisible);
    }

    #[test]
    fn one_gap_in_a_short_watch_is_no_rate_and_two_are() {
        let one = Gaps { span_ns: 50_000_000, count: 1, lost_ns: 9_000, max_ns: 9_000, p9999_ns: 60 };
        assert_eq!(judge(4, Some(&Ok(one)), true).verdict, Verdict::Pass);
        assert_eq!(judge(4, Some(&Ok(Gaps { count: 2, ..one })), true).verdict, Verdict::Fail);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_core_is_watched_for_the_span_and_one_that_is_not_there_is_not_visible() {
        let core = crate::host::pin::allowed_cores().unwrap()[0];
        let span = Duration::from_millis(20);
        assert!(span < SPAN);
        let seen = run(&[core, 1023], span, &Clock::machine());
        let gaps = seen[0].1.as_ref().unwrap();
        assert!(gaps.span_ns >= 20_000_000 && gaps.max_ns >= gaps.p9999_ns && gaps.lost_ns <= gaps.span_ns, "{gaps:?}");
        assert!(gaps.count == 0 || gaps.lost_ns > gaps.count * super::GAP_NS, "{gaps:?}");
        assert_eq!(judge(1023, Some(&seen[1].1), true).verdict, Verdict::NotVisible);
    }
}
