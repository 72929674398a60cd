//! Logical error rates: of the run, by stream and decoder, and at each deadline.
//!
//! Pure. Bounded by [`STREAMS_MAX`] streams.

use super::latency::power_text;
use super::markup::{Column, Markup};
use super::plot::{LogAxis, Plot};
use crate::evidence::Evidence;
use crate::report::{duration_text, grouped, interval_95, rate_text, sum};
use serde_json::Value;

/// Most streams that are listed.
const STREAMS_MAX: usize = 64;
/// Height of the plot, pixels.
const HEIGHT_PX: f64 = 190.0;

/// Writes the section.
pub fn write(run: &Evidence, page: &mut Markup) {
    page.section("Logical errors");
    let Some(rate) = run.report.get("logical_error_rate").and_then(Value::as_f64) else {
        page.paragraph("No logical error rate is known: no answer could be compared with true observables.");
        not_trusted(run, page);
        page.close("section");
        return;
    };
    let count = |name: &str| grouped(run.count(name).unwrap_or(0));
    page.paragraph(&format!(
        "{} of {} answers differ from the true observables: {} per shot, 95 % between {} (Wilson).",
        count("logical_errors"),
        count("shots_with_observables"),
        rate_text(rate),
        between(&run.report)
    ));
    not_trusted(run, page);
    let decoders = run.rows("decoders");
    if decoders.len() > 1 {
        page.element("h3", "", "By decoder");
        page.table(&columns("decoder"), &decoders.iter().map(decoder).collect::<Vec<_>>());
    }
    let streams = run.rows("streams");
    if streams.len() > 1 {
        page.element("h3", "", "By stream");
        page.table(&columns("stream"), &streams.iter().take(STREAMS_MAX).map(stream).collect::<Vec<_>>());
        if streams.len() > STREAMS_MAX {
            page.caption(&format!("{} further streams are in report.json.", streams.len() - STREAMS_MAX));
        }
    }
    by_deadline(run, rate, page);
    page.close("section");
}

/// The ends of a report's interval, as a sentence has them.
fn between(report: &Value) -> String {
    interval(report, "logical_error_rate_ci95").replace(" to ", " and ")
}

/// The answers that are not to be trusted, and the rate of the others; nothing if the run had no
/// bound for them.
fn not_trusted(run: &Evidence, page: &mut Markup) {
    let Some(abstention) = run.report.get("abstention").filter(|found| found.is_object()) else { return };
    let share = abstention.get("share").and_then(Value::as_f64).unwrap_or(0.0) * 100.0;
    let (answers, below_db) = (grouped(number(abstention, "abstained")), number(abstention, "below_db"));
    let rate = abstention.get("logical_error_rate").and_then(Value::as_f64);
    let others =
        rate.map(|rate| format!(" The others: {} per shot, 95 % between {}.", rate_text(rate), between(abstention)));
    page.paragraph(&format!(
        "{answers} answers ({share:.2} %) have a gap below {below_db} dB and are not to be trusted.{}",
        others.unwrap_or_default()
    ));
}

fn columns(what: &'static str) -> [Column; 5] {
    [
        Column::Text(what),
        Column::Number("answers"),
        Column::Number("logical errors"),
        Column::Number("rate"),
        Column::Number("95 % interval"),
    ]
}

fn number(row: &Value, key: &str) -> u64 {
    row.get(key).and_then(Value::as_u64).unwrap_or(0)
}

fn decoder(row: &Value) -> Vec<String> {
    let name = row.get("name").and_then(Value::as_str).unwrap_or_default();
    rated(name.to_owned(), number(row, "shots"), number(row, "logical_errors"), number(row, "shots_with_observables"))
}

/// A stream, with the counts of its decoders.
fn stream(row: &Value) -> Vec<String> {
    let decoders = || row.get("decoders").and_then(Value::as_array).into_iter().flatten();
    let [wrong, of] =
        ["logical_errors", "shots_with_observables"].map(|key| sum(decoders().map(|decoder| number(decoder, key))));
    rated(number(row, "id").to_string(), number(row, "answered"), wrong, of)
}

fn rated(name: String, answers: u64, wrong: u64, of: u64) -> Vec<String> {
    let rate = if of > 0 { rate_text(wrong as f64 / of as f64) } else { "–".to_owned() };
    let interval = interval_95(wrong, of).map_or_else(|| "–".to_owned(), interval_text);
    vec![name, grouped(answers), grouped(wrong), rate, interval]
}

fn interval_text([low, high]: [f64; 2]) -> String {
    format!("{} to {}", rate_text(low), rate_text(high))
}

/// An interval of the report, in words.
pub fn interval(value: &Value, key: &str) -> String {
    ends(value, key).map_or_else(|| "not known".to_owned(), interval_text)
}

fn ends(value: &Value, key: &str) -> Option<[f64; 2]> {
    let ends = value.get(key)?;
    Some([ends.get(0)?.as_f64()?, ends.get(1)?.as_f64()?])
}

/// A deadline with the share of shots without a right answer by then.
struct AtDeadline {
    t_ns: u64,
    rate: f64,
    ci95: [f64; 2],
}

/// The error rate that a deadline leaves: wrong, an error, or not there by then.
fn by_deadline(run: &Evidence, rate: f64, page: &mut Markup) {
    let point = |at: &Value| {
        Some(AtDeadline { t_ns: at.get("t_ns")?.as_u64()?, rate: at.get("rate")?.as_f64()?, ci95: ends(at, "ci95")? })
    };
    let points: Vec<AtDeadline> = run.rows("ler_at").iter().filter_map(point).collect();
    let axis = LogAxis::of(points.iter().map(|at| at.t_ns as f64));
    let heights = LogAxis::of(points.iter().flat_map(|at| [at.rate, at.ci95[0]]).chain([rate, 1.0]));
    let (Some(axis), Some(heights)) = (axis, heights) else { return };
    page.element("h3", "", "By deadline");
    page.open("figure", "");
    let mut plot = Plot::new(HEIGHT_PX, "Share of shots without a right answer, by deadline");
    let ticks = axis.powers().into_iter().map(|(place, ns)| (place, power_text(ns)));
    plot.ticks(&ticks.collect::<Vec<_>>());
    for (height, value) in heights.powers() {
        plot.level(height, &if value >= 1.0 { "1".to_owned() } else { format!("{value:.0e}") });
    }
    let curve = points.iter().map(|at| (axis.place(at.t_ns as f64), Some(heights.place(at.rate))));
    plot.curve(&curve.collect::<Vec<_>>(), "one");
    plot.floor(heights.place(rate), &format!("logical error rate {}", rate_text(rate)));
    for at in &points {
        plot.point(axis.place(at.t_ns as f64), heights.place(at.rate), at.ci95.map(|end| heights.place(end)));
    }
    page.made(&plot.into_markup());
    page.element(
        "figcaption",
        "",
        "Share of all shots whose answer was wrong, an error, or not there by the deadline.",
    );
    page.close("figure");
    // From the last deadline that nearly all shots miss.
    let first = points.iter().rposition(|at| at.rate > 0.99).unwrap_or(0);
    let row = |at: &AtDeadline| vec![duration_text(at.t_ns), rate_text(at.rate), interval_text(at.ci95)];
    let columns = [Column::Number("deadline"), Column::Number("rate"), Column::Number("95 % interval")];
    page.table(&columns, &points[first..].iter().map(row).collect::<Vec<_>>());
}
