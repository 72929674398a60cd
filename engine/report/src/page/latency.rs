//! Latency as a whole and by stage: histograms over a logarithmic axis, and their quantiles.
//!
//! Pure. Without a recording only the quantiles of the report are known.

use super::markup::{Column, Markup};
use super::plot::{LogAxis, Plot};
use crate::evidence::{Evidence, latency};
use crate::report::{duration_text, grouped, merged};
use pinwheel_engine::board::histogram::{Histogram, bucket_of, bucket_top_ns};
use pinwheel_engine::board::snapshot::Snapshot;
use serde_json::Value;

/// Bars for each power of ten.
const BARS_PER_DECADE: f64 = 16.0;
/// Height of a plot, pixels: of the whole, of a stage.
const HEIGHTS_PX: [f64; 2] = [190.0, 116.0];
/// Height above the bars for the names of the quantiles, pixels.
const NAMES_PX: f64 = 48.0;

/// Writes the section.
pub fn write(run: &Evidence, page: &mut Markup) {
    page.section("Latency");
    let rows = quantiles(&run.report);
    if rows.is_empty() {
        page.paragraph("No latency is known.");
        page.close("section");
        return;
    }
    if let Some(last) = &run.last {
        plots(last, page);
        let (drawn, answered) = (latency(last).count(), run.count("answered").unwrap_or(0));
        if drawn < answered {
            let (drawn, answered) = (grouped(drawn), grouped(answered));
            page.caption(&format!("The recording has {drawn} of {answered} answers; the table has all."));
        }
    }
    let columns = [
        Column::Text("time"),
        Column::Number("p50"),
        Column::Number("p90"),
        Column::Number("p99"),
        Column::Number("p99.9"),
        Column::Number("longest"),
        Column::Number("shots"),
    ];
    page.table(&columns, &rows);
    page.caption(
        "Latency runs from the scheduled arrival of a shot to its answer; its stages, from feed to harvest, add up to it. \
         Latency from submit leaves out the wait for a slot.",
    );
    page.caption("A quantile is the upper end of its bucket, at most 6.25 % above the value.");
    page.close("section");
}

/// The rows of the table, from the report.
fn quantiles(report: &Value) -> Vec<Vec<String>> {
    let row = |name: &str, times: &Value| {
        let count = times.get("count").and_then(Value::as_u64).filter(|count| *count > 0)?;
        let time = |key: &str| times.get(key).and_then(Value::as_u64).map_or_else(String::new, duration_text);
        let times = ["p50", "p90", "p99", "p999", "max"].map(time);
        let name = name.replace('_', " ");
        Some([name].into_iter().chain(times).chain([grouped(count)]).collect())
    };
    let whole = ["latency_ns", "latency_from_submit_ns"];
    let whole = whole.iter().filter_map(|key| row(key.trim_end_matches("_ns"), report.get(*key)?));
    let stages = report.get("stages").and_then(Value::as_object).into_iter().flatten();
    let mut rows: Vec<Vec<String>> = whole.collect();
    let mut stages: Vec<(&String, &Value)> = stages.collect();
    // A JSON object has no order; a shot has.
    stages.sort_by_key(|(name, _)| PATH.iter().position(|(stage, _)| stage == name).unwrap_or(PATH.len()));
    rows.extend(stages.into_iter().filter_map(|(name, times)| row(name, times)));
    rows
}

/// The stages of a shot's path, and what each measures.
const PATH: [(&str, &str); 6] = [
    ("feed", "scheduled to written into a slot"),
    ("dispatch", "written to launched"),
    ("device", "launched to its result claimed"),
    ("queue", "waiting for a decoder"),
    ("decode", "in the decoder"),
    ("harvest", "answered to harvested"),
];

fn meaning(name: &str) -> &'static str {
    match name {
        "latency" => "scheduled arrival to answer",
        stage => PATH.iter().find(|(known, _)| *known == stage).map_or("", |(_, meaning)| meaning),
    }
}

/// A histogram for each stage below that of the whole, over one axis.
fn plots(last: &Snapshot, page: &mut Markup) {
    let whole = latency(last);
    let stages: Vec<(&str, Histogram)> = PATH
        .iter()
        .map(|(name, _)| {
            let of_silos = last.silos.iter().flat_map(|silo| &silo.stages).filter(|stage| stage.name == *name);
            (*name, merged(of_silos.map(|stage| &stage.time)))
        })
        .filter(|(_, times)| times.count() > 0)
        .collect();
    let all = stages.iter().map(|(_, times)| times).chain([&whole]);
    // One shot in a hundred below the axis is left out, so that a few nanoseconds do not stretch it.
    let ends = all.filter(|times| times.count() > 0).flat_map(|times| [times.quantile_ns(0.01), times.max_ns()]);
    let Some(axis) = LogAxis::of(ends.map(|ns| ns as f64)) else { return };
    let named = [("latency", whole)].into_iter().chain(stages);
    for (index, (name, times)) in named.filter(|(_, times)| times.count() > 0).enumerate() {
        page.open("figure", "");
        page.element("figcaption", "title", &format!("{name}: {}", meaning(name)));
        page.made(&histogram(&times, axis, HEIGHTS_PX[index.min(1)], name));
        page.close("figure");
    }
    page.caption("Height: share of the shots in a bar. All plots have one axis, which is logarithmic.");
}

fn histogram(times: &Histogram, axis: LogAxis, height_px: f64, name: &str) -> String {
    let mut plot = Plot::new(height_px, &format!("Histogram of {name}"));
    let ticks = axis.powers().into_iter().map(|(place, ns)| (place, power_text(ns)));
    plot.ticks(&ticks.collect::<Vec<_>>());
    let bars = bars(times, axis);
    let highest = bars.iter().copied().fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    for (index, share) in bars.iter().enumerate().filter(|(_, share)| **share > 0.0) {
        let (from, to) = (index as f64 / bars.len() as f64, (index + 1) as f64 / bars.len() as f64);
        plot.bar(from, to, share / highest * (1.0 - NAMES_PX / height_px));
    }
    for (row, (quantile, q)) in [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)].into_iter().enumerate() {
        let ns = times.quantile_ns(q);
        plot.mark(axis.place(ns as f64), row as u32, &format!("{quantile} {}", duration_text(ns)));
    }
    plot.into_markup()
}

/// The share of values in each bar of the axis. A bucket is spread over the bars that it covers.
fn bars(times: &Histogram, axis: LogAxis) -> Vec<f64> {
    let count = (axis.decades() * BARS_PER_DECADE) as usize;
    let mut bars = vec![0.0; count];
    for (top_ns, shots) in times.buckets() {
        let bottom_ns = bucket_of(top_ns).checked_sub(1).map_or(0, |below| bucket_top_ns(below) + 1);
        let place = |ns: f64| axis.place(ns.max(0.5)) * count as f64;
        let (from, to) = (place(bottom_ns as f64), place(top_ns as f64 + 1.0));
        let share = shots as f64 / times.count() as f64;
        let (first, last) = (from as usize, (to.ceil() as usize).min(count));
        if to <= from {
            bars[first.min(count - 1)] += share;
            continue;
        }
        for (bar, height) in bars.iter_mut().enumerate().take(last).skip(first) {
            let covered = to.min(bar as f64 + 1.0) - from.max(bar as f64);
            *height += share * covered.max(0.0) / (to - from);
        }
    }
    bars
}

/// A power of ten of nanoseconds.
pub fn power_text(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns < 1e3 => (ns, "ns"),
        ns if ns < 1e6 => (ns / 1e3, "µs"),
        ns if ns < 1e9 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    format!("{value:.0} {unit}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Histogram, LogAxis, bars, histogram};

    #[test]
    fn each_shot_is_in_the_bars_once() {
        let values: Vec<u64> = (1..2_000).map(|n| n * n).chain([7; 100]).collect();
        let times = Histogram::of(&values);
        for ends in [[1.0, 4e6], [1e3, 1e4]] {
            let bars = bars(&times, LogAxis::of(ends).unwrap());
            assert!((bars.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{bars:?}");
        }
    }

    #[test]
    fn quantiles_are_marked_with_their_times() {
        let times = Histogram::of(&[[40_000; 990].as_slice(), &[9_000_000; 10]].concat());
        let text = histogram(&times, LogAxis::of([1e4, 1e7]).unwrap(), 100.0, "decode");
        for mark in ["p50 41.0 µs", "p99 41.0 µs", "p99.9 9.00 ms", ">10 µs<", ">10 ms<"] {
            assert!(text.contains(mark), "{mark}: {text}");
        }
    }
}
