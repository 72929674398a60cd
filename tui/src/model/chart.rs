//! The chart of a run: its span, its cursor, and the points read from the recording.
//!
//! Pure, on the console thread. Bounded by [`BINS_MAX`] points.

use super::Model;
use super::lookups::LookupRequest;
use crate::keymap::Step;

/// Most points of a chart.
pub const BINS_MAX: u16 = 240;
/// Columns beside the points: the labels on the left.
pub const LABEL: u16 = 11;
/// The shortest span, nanoseconds: the recording has ten pictures a second.
const SPAN_MIN_NS: u64 = 2_000_000_000;
/// The shortest time of a point.
const BIN_MIN_NS: u64 = 100_000_000;

/// Which part of the run is shown, and which point is under the cursor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chart {
    /// From and to, nanoseconds since the engine's start; `None`: the whole run.
    pub span_ns: Option<(u64, u64)>,
    /// The moment under the cursor; `None`: the last point.
    at_ns: Option<u64>,
}

/// The look-up that the chart needs.
pub fn request(model: &Model) -> LookupRequest {
    let (from_ns, to_ns) = model.chart.span_ns.unwrap_or((0, u64::MAX));
    let columns = u64::from(model.size.0.saturating_sub(LABEL + 1).clamp(1, BINS_MAX));
    let bins = (to_ns.saturating_sub(from_ns) / BIN_MIN_NS).clamp(1, columns);
    LookupRequest::Chart { from_ns, to_ns, bins: u16::try_from(bins).unwrap_or(BINS_MAX) }
}

/// Index of the point under the cursor.
pub fn cursor(model: &Model) -> Option<usize> {
    let points = model.lookups.chart.rows();
    let last = points.len().checked_sub(1)?;
    let at_ns = model.chart.at_ns.unwrap_or(u64::MAX);
    Some(points.partition_point(|point| point.to_ns < at_ns).min(last))
}

/// The moment in the middle of the point under the cursor.
pub fn moment(model: &Model) -> Option<u64> {
    let point = model.lookups.chart.rows().get(cursor(model)?)?;
    Some(point.from_ns.midpoint(point.to_ns))
}

/// Moves the cursor.
pub fn step(model: &mut Model, step: Step) {
    let Some(at) = cursor(model) else { return };
    let last = model.lookups.chart.rows().len() - 1;
    let at = match step {
        Step::Left | Step::Up => at.saturating_sub(1),
        Step::Right | Step::Down => (at + 1).min(last),
        Step::PageUp => at.saturating_sub(10),
        Step::PageDown => (at + 10).min(last),
        Step::First => 0,
        Step::Last => last,
    };
    // On the last point it stays with the present.
    let to_ns = model.lookups.chart.rows()[at].to_ns;
    model.chart.at_ns = (at < last).then_some(to_ns);
}

/// Shows half the span around the cursor, or twice the span; within the run.
pub fn zoom(model: &mut Model, is_closer: bool) {
    let (Some(at_ns), Some(run)) = (moment(model), model.lookups.chart_run_ns) else { return };
    let (first, last) = model.chart.span_ns.unwrap_or(run);
    let (now_ns, run_ns) = (last.saturating_sub(first), run.1.saturating_sub(run.0));
    let span_ns = if is_closer { (now_ns / 2).max(SPAN_MIN_NS) } else { now_ns.saturating_mul(2) };
    let from_ns = at_ns.saturating_sub(span_ns / 2).clamp(run.0, run.1.saturating_sub(span_ns).max(run.0));
    model.chart.at_ns = Some(at_ns);
    model.chart.span_ns = (span_ns < run_ns).then_some((from_ns, from_ns.saturating_add(span_ns)));
}
