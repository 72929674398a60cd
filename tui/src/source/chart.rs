//! The points of a chart, read from the run's recording.
//!
//! On the look-up thread: a long recording delays no key. A point is the difference of two pictures'
//! counters and histograms, so its rates and percentiles are those of all its answers, however long
//! it is. Bounded by the bins that are asked for, one picture each.

use crate::model::derived::quantiles;
use crate::model::lookups::Point;
use pinwheel_engine::board::histogram::Histogram;
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::record::tape::Tape;
use pinwheel_engine::units::Nanos;
use pinwheel_report::report::merged;

/// The points, and the span of the whole recording, nanoseconds since the engine's start.
pub type Points = (Vec<Point>, (u64, u64));

/// At most `bins` points from `from_ns` to `to_ns`.
///
/// # Errors
/// One sentence, if the recording cannot be read or is empty.
pub fn points(tape: &mut Tape, (from_ns, to_ns): (u64, u64), bins: u16) -> Result<Points, String> {
    let none = || "nothing is recorded yet".to_owned();
    let (first, last) = tape.span().ok_or_else(none)?;
    let whole = (tape.since_start(first).0, tape.since_start(last).0);
    let (from_ns, to_ns) = (from_ns.max(whole.0), to_ns.min(whole.1));
    let span_ns = to_ns.saturating_sub(from_ns);
    let mut points = Vec::new();
    let mut before: Option<Totals> = None;
    for bin in 0..=u64::from(bins) {
        let into_ns = u128::from(span_ns) * u128::from(bin) / u128::from(bins.max(1));
        let at = tape.tick_at(Nanos(from_ns + u64::try_from(into_ns).unwrap_or(span_ns)));
        let moment = tape.at(at).map_err(|error| error.to_string())?;
        let Some(snapshot) = moment.and_then(|moment| moment.snapshot().ok().flatten()) else { continue };
        let now = Totals::of(&snapshot);
        // Two bins may have the same picture.
        if before.as_ref().is_some_and(|before| now.at_ns <= before.at_ns) {
            continue;
        }
        points.extend(before.as_ref().map(|before| now.since(before)));
        before = Some(now);
    }
    Ok((points, whole))
}

/// Counters over all silos.
struct Totals {
    at_ns: u64,
    answered: u64,
    late: u64,
    errored: u64,
    backlog: u64,
    latency: Histogram,
}

impl Totals {
    fn of(snapshot: &Snapshot) -> Totals {
        let totals = snapshot.totals();
        Totals {
            at_ns: snapshot.at_ns,
            answered: totals.answered,
            late: totals.late,
            errored: totals.errored,
            backlog: totals.scheduled.saturating_sub(totals.submitted),
            latency: merged(snapshot.silos.iter().map(|silo| &silo.latency)),
        }
    }

    fn since(&self, before: &Totals) -> Point {
        let seconds = (self.at_ns - before.at_ns) as f64 / 1e9;
        let each_s = |now: u64, then: u64| now.saturating_sub(then) as f64 / seconds;
        Point {
            from_ns: before.at_ns,
            to_ns: self.at_ns,
            answered: each_s(self.answered, before.answered),
            late: each_s(self.late, before.late),
            errored: each_s(self.errored, before.errored),
            latency: quantiles(&self.latency.since(&before.latency)),
            backlog: self.backlog,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]

    use super::points;
    use pinwheel_engine::record::tape::Tape;
    use std::path::Path;

    #[test]
    fn points_count_every_answer_of_their_span_once() {
        let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
        let mut tape = Tape::open(&run).unwrap();
        let (_, (from_ns, to_ns)) = points(&mut tape, (0, u64::MAX), 1).unwrap();
        let mut answers = |(from_ns, to_ns), bins| {
            let (points, run_ns) = points(&mut tape, (from_ns, to_ns), bins).unwrap();
            assert!(points.len() <= usize::from(bins) && run_ns.0 < run_ns.1);
            assert!(points.windows(2).all(|pair| pair[0].to_ns == pair[1].from_ns), "no gap, no overlap");
            let of = |point: &crate::model::lookups::Point| {
                (point.answered * (point.to_ns - point.from_ns) as f64 / 1e9).round() as u64
            };
            points.iter().map(of).sum::<u64>()
        };
        let all = answers((0, u64::MAX), 1);
        assert!(all > 0);
        for bins in [2, 7, 60, 240] {
            assert_eq!(answers((0, u64::MAX), bins), all, "{bins}");
        }
        let half_ns = from_ns.midpoint(to_ns);
        assert_eq!(answers((from_ns, half_ns), 5) + answers((half_ns, to_ns), 5), all);
        assert_eq!(answers((to_ns, from_ns), 5), 0);
    }
}
