//! The chart: rate, trouble, latency and backlog over the run, and the values under the cursor.

use crate::keymap::{Action, Scope};
use crate::model::chart::{LABEL, cursor};
use crate::model::derived::utc_ns;
use crate::model::lookups::Point;
use crate::model::target::Target;
use crate::model::{Model, Picture, View};
use crate::theme::Tone;
use crate::widgets::format::{number, probability, time, time_of_day};
use crate::widgets::pen::Pen;
use crate::widgets::strip::column;

/// A value of a point, its tone, and how its largest one is written.
struct Curve {
    label: &'static str,
    of: fn(&Point) -> Option<f64>,
    tone: Tone,
    written: fn(f64) -> String,
}

const CURVES: [Curve; 4] = [
    Curve { label: "answers/s", of: |point| Some(point.answered), tone: Tone::Good, written: per_s },
    Curve {
        label: "p99.9",
        of: |point| point.latency.map(|latency| latency.p999_ns as f64),
        tone: Tone::Accent,
        written: |ns| time(ns as u64),
    },
    Curve { label: "late+err/s", of: |point| Some(point.late + point.errored), tone: Tone::Bad, written: per_s },
    Curve { label: "backlog", of: |point| Some(point.backlog as f64), tone: Tone::Warn, written: number },
];

/// A rate: a few events in a long span are not zero.
fn per_s(rate: f64) -> String {
    match rate {
        rate if rate == 0.0 || rate >= 9.95 => number(rate),
        rate if rate >= 0.05 => format!("{rate:.1}"),
        rate => probability(rate),
    }
}

pub fn draw(model: &Model, picture: &Picture, pen: &mut Pen<'_>) {
    pen.rule(0, View::Chart.heading());
    let points = model.lookups.chart.rows();
    let Some(at) = cursor(model) else {
        let pending = "reading the recording";
        let none = "the recording has no two pictures of this time yet";
        pen.put(1, 1, model.lookups.chart.why_empty(pending, none), Tone::Dim);
        return;
    };
    // Two rows of values and a time axis below the curves.
    let rows = pen.height().saturating_sub(4) / CURVES.len() as u16;
    for (curve, number) in CURVES.iter().zip(0..) {
        let mut pen = pen.part(0, 1 + number * rows, pen.width(), rows);
        one(curve, points, at, &mut pen);
    }
    let axis = 1 + rows * CURVES.len() as u16;
    time_axis(model, points, at, &mut pen.part(0, axis, pen.width(), 1));
    values(model, picture, &points[at], &mut pen.part(0, axis + 1, pen.width(), 2));
}

fn one(curve: &Curve, points: &[Point], at: usize, pen: &mut Pen<'_>) {
    let height = pen.height();
    let known = points.iter().filter_map(curve.of).reduce(f64::max);
    let max = known.unwrap_or(0.0);
    pen.put(1, 0, curve.label, Tone::Dim);
    if height > 1 {
        pen.put(1, 1, &known.map_or_else(|| "–".to_owned(), curve.written), Tone::Plain);
    }
    for (index, (x, point)) in (LABEL..).zip(points).enumerate() {
        for y in 0..height {
            let glyph = column((curve.of)(point), max, height, y);
            match (index == at, glyph) {
                (true, ' ') => pen.dot(x, y, '│', Tone::Dim),
                (true, glyph) => pen.dot(x, y, glyph, Tone::Title),
                (false, glyph) => pen.dot(x, y, glyph, curve.tone),
            }
        }
        for y in 0..height {
            pen.target(x, y, 1, Target::Moment(point.from_ns.midpoint(point.to_ns)));
        }
    }
}

/// The length of the span, the alarms' onsets, and the cursor.
fn time_axis(model: &Model, points: &[Point], at: usize, pen: &mut Pen<'_>) {
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return };
    let end = LABEL + u16::try_from(points.len()).unwrap_or(0);
    pen.line(LABEL, end, 0, '─', Tone::Dim);
    let newest = [model.picture(), model.live.picture.as_deref()];
    for alarm in newest.into_iter().flatten().flat_map(|picture| &picture.snapshot.alarms) {
        let is_of = |point: &Point| (point.from_ns..=point.to_ns).contains(&alarm.onset_ns);
        if let Some((x, _)) = (LABEL..end).zip(points).find(|(_, point)| is_of(point)) {
            pen.dot(x, 0, '▲', Tone::Warn);
        }
    }
    pen.dot(LABEL + u16::try_from(at).unwrap_or(0), 0, '●', Tone::Title);
    let span_s = last.to_ns.saturating_sub(first.from_ns) as f64 / 1e9;
    pen.put(1, 0, &format!("{span_s:.0} s"), Tone::Plain);
}

fn values(model: &Model, picture: &Picture, point: &Point, pen: &mut Pen<'_>) {
    let is_known = picture.snapshot.clock.pair.is_some();
    let utc = is_known.then(|| utc_ns(&picture.snapshot, point.to_ns) / 1_000_000_000);
    let when = utc.map_or_else(String::new, |seconds| format!("{}  ", time_of_day(seconds)));
    let (at_s, bin_s) = (point.to_ns as f64 / 1e9, (point.to_ns - point.from_ns) as f64 / 1e9);
    let latency = point.latency.map_or_else(
        || if point.answered > 0.0 { "latency not recorded here" } else { "no answers" }.to_owned(),
        |of| {
            format!(
                "p50 {}  p99 {}  p99.9 {}  max {}",
                time(of.p50_ns),
                time(of.p99_ns),
                time(of.p999_ns),
                time(of.max_ns)
            )
        },
    );
    let counts = format!(
        "{}/s  late {}/s  errors {}/s  backlog {}",
        per_s(point.answered),
        per_s(point.late),
        per_s(point.errored),
        number(point.backlog as f64)
    );
    let x = pen.put(1, 0, &format!("{when}{at_s:.1} s, {bin_s:.1} s long  "), Tone::Title);
    pen.put(x, 0, &counts, Tone::Plain);
    let key = |scope, action| model.keymap.first_key(scope, action);
    let x = pen.put(1, 1, &latency, Tone::Plain);
    let (closer, wider) = (key(Scope::Chart, Action::Closer), key(Scope::Chart, Action::Wider));
    let keys = format!("{closer} {wider} zoom, {} shows this moment", key(Scope::Views, Action::Follow));
    pen.put_right(x + 2, pen.width().saturating_sub(1), 1, &keys, Tone::Dim);
}
