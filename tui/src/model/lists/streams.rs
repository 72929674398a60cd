//! The list of streams (logical qubits): latency, errors and input quality of each.

use super::{Cell, Line, REST, Spec, column, plain};
use crate::model::Model;
use crate::model::derived::StreamRates;
use crate::theme::Tone;
use crate::widgets::format::{count, number, probability, time};
use pinwheel_engine::board::deadlines::wrong_or_late;
use pinwheel_engine::board::snapshot::{DriftView, StreamView, drift_sentence};
use pinwheel_engine::streams::HealthVerdict;

pub(super) static SPEC: Spec = Spec {
    columns: &[
        column("stream", [7, 7, 7], |m, row| {
            on(m, row, |stream| Cell::number(stream.id.to_string(), stream.id.into()))
        }),
        column("silo", [5, 5, 5], |m, row| {
            on(m, row, |stream| Cell::number(stream.silo.to_string(), stream.silo.into()))
        }),
        column("answered/s", [11, 11, 11], |m, row| Cell::maybe(rates(m, row).map(|rates| rates.answered), number)),
        column("late/s", [7, 7, 7], |m, row| warned(rates(m, row).map(|rates| rates.late))),
        column("err/s", [7, 7, 7], |m, row| warned(rates(m, row).map(|rates| rates.errors))),
        column("LER", [8, 8, 8], |m, row| on(m, row, |stream| Cell::maybe(error_rate(stream), probability))),
        column("p50", [0, 7, 7], |m, row| on(m, row, |stream| quantile(stream, 0.5))),
        column("p99.9", [7, 7, 7], |m, row| on(m, row, |stream| quantile(stream, 0.999))),
        column("answered", [0, 9, 9], |m, row| on(m, row, |stream| Cell::count(stream.answered))),
        column("late", [0, 0, 8], |m, row| on(m, row, |stream| Cell::count(stream.late))),
        column("errors", [0, 0, 8], |m, row| on(m, row, |stream| Cell::count(stream.errors))),
        column("input", [REST, REST, REST], |m, row| {
            on(m, row, |stream| {
                let (glyph, words, tone) = health(stream);
                Cell::line((format!("{glyph} {words}"), tone))
            })
        }),
    ],
    len: |model| model.picture().map_or(0, |picture| picture.snapshot.streams.len()),
    key: |model, row| stream(model, row).map_or(0, |stream| stream.id.into()),
    details,
};

fn stream(model: &Model, row: usize) -> Option<&StreamView> {
    model.picture()?.snapshot.streams.get(row)
}

fn rates(model: &Model, row: usize) -> Option<StreamRates> {
    model.picture()?.derived.streams.get(row).copied()
}

fn on(model: &Model, row: usize, cell: impl Fn(&StreamView) -> Cell) -> Cell {
    stream(model, row).map_or_else(Cell::absent, cell)
}

fn warned(per_s: Option<f64>) -> Cell {
    let tone = if per_s.is_some_and(|per_s| per_s > 0.0) { Tone::Warn } else { Tone::Plain };
    Cell::maybe(per_s, number).toned(tone)
}

fn quantile(stream: &StreamView, quantile: f64) -> Cell {
    Cell::time((stream.latency.count() > 0).then(|| stream.latency.quantile_ns(quantile)))
}

fn error_rate(stream: &StreamView) -> Option<f64> {
    (stream.shots_with_observables > 0).then(|| stream.logical_errors as f64 / stream.shots_with_observables as f64)
}

/// The share of shots without a right answer by each deadline, in ns, from the last deadline that nearly
/// all miss: at least seven. `None` if it is not known of every answer whether it is right.
fn wrong_or_late_by(stream: &StreamView) -> Option<Vec<(u64, f64)>> {
    let found = wrong_or_late([stream]).filter(|_| stream.answered > 0)?;
    let shares = found.map(|at| (at.deadline_ns, at.shots as f64 / at.of as f64));
    let first = shares.iter().rposition(|(_, share)| *share > 0.99).unwrap_or(0).min(shares.len() - 7);
    Some(shares[first..].to_vec())
}

/// Four of these shares in a line. Every second one reaches from nearly all late to nearly all there.
fn at_deadlines(stream: &StreamView) -> String {
    let Some(shares) = wrong_or_late_by(stream) else {
        return "wrong or late by a deadline: not known without true observables of every shot".to_owned();
    };
    let some = shares.iter().step_by(2).take(4);
    let some = some.map(|(deadline_ns, share)| format!("{} {}", time(*deadline_ns), probability(*share)));
    format!("wrong, an error or not there by: {}", some.collect::<Vec<_>>().join(", "))
}

/// These shares, each with a bar: full for all shots, and a power of ten shorter for each five cells.
fn plot_at_deadlines(stream: &StreamView) -> Vec<Line> {
    const CELLS_PER_DECADE: f64 = 5.0;
    const CELLS: f64 = 6.0 * CELLS_PER_DECADE;
    let Some(shares) = wrong_or_late_by(stream) else { return Vec::new() };
    let rows = shares.iter().map(|(deadline_ns, share)| {
        let cells = CELLS_PER_DECADE.mul_add(share.log10(), CELLS).clamp(0.0, CELLS).round() as usize;
        plain(format!("{:>7} {} {}", time(*deadline_ns), "█".repeat(cells), probability(*share)))
    });
    let caption = "wrong, an error or not there by (five cells: ten times as many):";
    std::iter::once(plain(caption.to_owned())).chain(rows).collect()
}

/// Glyph, text and tone of how well the input matches the error model.
pub fn health(stream: &StreamView) -> (char, &'static str, Tone) {
    match stream.input_health.verdict {
        HealthVerdict::TooFew => ('○', "too few shots to tell", Tone::Dim),
        HealthVerdict::Good => ('●', "as the model says", Tone::Good),
        HealthVerdict::Suspect => ('▲', "suspect", Tone::Warn),
        HealthVerdict::Bad => ('✖', "not this model's data", Tone::Bad),
    }
}

fn details(model: &Model, row: usize) -> Vec<Line> {
    let Some(stream) = stream(model, row) else { return Vec::new() };
    let latency = &stream.latency;
    let quantiles = [0.5, 0.99, 0.999].map(|quantile| time(latency.quantile_ns(quantile)));
    let [p50, p99, p999] = quantiles;
    let of_it = |n: u64| 100.0 * n as f64 / stream.answered.max(1) as f64;
    let found = &stream.input_health;
    let mut lines = vec![
        plain(format!(
            "stream {} in silo {}: {} answered, {} late ({:.2}%), {} errors ({:.2}%)",
            stream.id,
            stream.silo,
            count(stream.answered),
            count(stream.late),
            of_it(stream.late),
            count(stream.errors),
            of_it(stream.errors)
        )),
        plain(format!("latency since the start: p50 {p50}  p99 {p99}  p99.9 {p999}  max {}", time(latency.max_ns()))),
        match error_rate(stream) {
            Some(rate) => plain(format!(
                "{} of {} answers wrong: logical error rate {}",
                count(stream.logical_errors),
                count(stream.shots_with_observables),
                probability(rate)
            )),
            None => ("no answers judged: the input brings no true observables (--observables)".to_owned(), Tone::Dim),
        },
        plain(at_deadlines(stream)),
        plain(format!("Pauli frame, the parity of its answers: {:#x}", stream.frame)),
        plain(format!(
            "input: {:.2} % of detectors fire, {:.2} % expected, over {} shots",
            found.fraction_found * 100.0,
            found.fraction_expected * 100.0,
            count(found.shots_examined)
        )),
    ];
    if stream.missed + stream.rescued > 0 {
        lines.push(plain(format!(
            "deadlines: {} missed ({:.2}%), of these {} refused; {} rescued ({:.2}%), of these {} wrong",
            count(stream.missed),
            of_it(stream.missed),
            count(stream.refused),
            count(stream.rescued),
            of_it(stream.rescued),
            count(stream.rescued_wrong)
        )));
    }
    if let Some(drift) = &found.drift {
        let DriftView { detector, partner, ratio, since_ns, .. } = *drift;
        let age = model.picture().map_or(0, |picture| picture.snapshot.at_ns.saturating_sub(since_ns));
        lines.push((format!("{}, for {}", drift_sentence(detector, partner, ratio), time(age)), Tone::Warn));
    }
    if !found.hottest.is_empty() {
        let hottest = found.hottest.iter().map(|(detector, share)| format!("D{detector} {:.1} %", share * 100.0));
        lines.push(plain(format!("fire most: {}", hottest.collect::<Vec<_>>().join(", "))));
    }
    lines.extend(plot_at_deadlines(stream));
    lines
}
