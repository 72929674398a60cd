//! Streams: does each one's input match its error model?

use crate::model::Picture;
use crate::model::lists::stream_health;
use crate::theme::Tone;
use crate::widgets::format::{count, probability, time};
use crate::widgets::pen::Pen;
use pinwheel_engine::board::snapshot::StreamView;

/// Draws title and rows if a row fits; returns the rows used.
pub fn draw(picture: &Picture, pen: &mut Pen<'_>) -> u16 {
    let streams = &picture.snapshot.streams;
    if pen.height() < 3 || streams.is_empty() {
        return 0;
    }
    pen.rule(0, &format!("{} streams: answered, errors, late, LER, p99.9 since start, input", streams.len()));
    let visible = usize::from(pen.height() - 2);
    let mut y = 1;
    for stream in streams.iter().take(visible) {
        row(stream, pen, y);
        y += 1;
    }
    y
}

fn row(stream: &StreamView, pen: &mut Pen<'_>, y: u16) {
    let ler = match stream.shots_with_observables {
        0 => "–".to_owned(),
        judged => probability(stream.logical_errors as f64 / judged as f64),
    };
    let cells = [
        (1, format!("stream {}", stream.id)),
        (14, count(stream.answered)),
        (22, count(stream.errors)),
        (30, count(stream.late)),
        (38, ler),
        (46, time(stream.latency.quantile_ns(0.999))),
    ];
    for (x, text) in cells {
        pen.put(x, y, &text, Tone::Plain);
    }
    let health = &stream.input_health;
    let (glyph, word, tone) = stream_health(stream);
    pen.dot(54, y, glyph, tone);
    let x = pen.put(56, y, word, tone) + 2;
    let found =
        format!("{:.2} % fire, {:.2} % expected", health.fraction_found * 100.0, health.fraction_expected * 100.0);
    let x = pen.put(x, y, &found, Tone::Dim) + 2;
    if let Some((detector, fraction)) = health.hottest.first() {
        pen.put(x, y, &format!("hottest D{detector} {:.1} %", fraction * 100.0), Tone::Dim);
    }
}
