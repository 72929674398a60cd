//! The last minute as sparklines: answers per second, latency, backlog.

use crate::model::Model;
use crate::model::history::Sample;
use crate::theme::Tone;
use crate::widgets::format::{number, time};
use crate::widgets::pen::Pen;
use crate::widgets::strip::bar;

/// Columns of the label before a strip.
const LABEL: u16 = 10;
/// Columns of the number after it.
const NUMBER: u16 = 14;

/// Most rows.
pub const ROWS_MAX: u16 = 3;

/// Draws as many strips as there are rows.
pub fn draw(model: &Model, pen: &mut Pen<'_>) {
    let cells = pen.width().saturating_sub(LABEL + NUMBER);
    let strips: [(&str, Value, Show); 3] = [
        ("answered", |s| s.answered_per_s, |max| format!("max {}/s", number(max))),
        ("p99.9", |s| s.p999_ns.map(|ns| ns as f64), |max| format!("max {}", time(max as u64))),
        ("backlog", |s| Some(s.backlog as f64), |max| format!("max {}", number(max))),
    ];
    for ((label, value, show), y) in strips.into_iter().zip(0..pen.height()) {
        pen.put(1, y, label, Tone::Dim);
        strip(model, value, show, &mut pen.part(LABEL, y, cells + NUMBER, 1), cells);
    }
}

type Value = fn(&Sample) -> Option<f64>;
type Show = fn(f64) -> String;

/// The newest sample is at the right end; missing samples are blank.
fn strip(model: &Model, value: Value, show: Show, pen: &mut Pen<'_>, cells: u16) {
    let history = &model.scene().history;
    let largest = history.last(usize::from(cells)).filter_map(value).reduce(f64::max);
    let max = largest.unwrap_or(0.0);
    let known = history.len().min(usize::from(cells));
    let first = cells - u16::try_from(known).unwrap_or(cells);
    for (sample, x) in history.last(usize::from(cells)).zip(first..cells) {
        pen.dot(x, 0, bar(value(sample), max), Tone::Good);
    }
    pen.put(cells + 1, 0, &largest.map_or_else(|| "–".to_owned(), show), Tone::Plain);
}
