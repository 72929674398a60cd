//! Latency: each stage and the total, in numbers and on one logarithmic scale.
//!
//! A strip runs from 100 ns to 1 s. Solid to the median, half to the 99th percentile, light to the
//! 99.9th, a dot at the maximum. A stage without a shot in the last second has no strip: absent is
//! not zero.

use crate::model::Picture;
use crate::model::derived::Quantiles;
use crate::theme::Tone;
use crate::widgets::format::time;
use crate::widgets::pen::Pen;

/// Columns of the numbers: median, 99th and 99.9th percentile, maximum; of the last second, by silo
/// and stage.
const NUMBERS: [u16; 4] = [14, 22, 30, 38];
/// Column of the strip.
const STRIP_AT: u16 = 46;
/// Decades of the scale, from 100 ns.
const DECADES: f64 = 7.0;

/// Draws a row per stage of each silo and one of the total, if one silo has room; returns the rows
/// used.
pub fn draw(picture: &Picture, pen: &mut Pen<'_>) -> u16 {
    let mut rows = Vec::new();
    for (silo, derived) in picture.snapshot.silos.iter().zip(&picture.derived.silos) {
        let stages = silo.stages.iter().zip(&derived.stages);
        for (stage, times) in stages.filter(|(stage, _)| stage.name != "device" || silo.has_device()) {
            rows.push((format!("{} {}", silo.id, stage.name), *times));
        }
    }
    let per_silo = rows.len() / picture.snapshot.silos.len().max(1);
    let room = usize::from(pen.height().saturating_sub(2));
    if per_silo == 0 || room < per_silo + 1 {
        return 0;
    }
    rows.truncate((room - 1) / per_silo * per_silo);
    rows.push(("all".to_owned(), picture.derived.latency));
    let mut end = pen.rule(0, "latency 1 s");
    for (x, heading) in NUMBERS.into_iter().zip(["p50", "p99", "p99.9", "max"]) {
        end = pen.put(x, 0, &format!("{heading} "), Tone::Dim);
    }
    let strip = pen.width().saturating_sub(STRIP_AT + 1).min(120);
    headings(pen, end, strip);
    let mut y = 1;
    for (name, times) in rows {
        row(&name, times, strip, pen, y);
        y += 1;
    }
    y
}

fn headings(pen: &mut Pen<'_>, from: u16, strip: u16) {
    for (decade, label) in [(1.0, "1µs"), (3.0, "100µs"), (5.0, "10ms"), (6.0, "100ms")] {
        let x = STRIP_AT + (decade / DECADES * f64::from(strip)) as u16;
        if x > from {
            pen.put(x, 0, label, Tone::Dim);
        }
    }
}

fn row(name: &str, times: Option<Quantiles>, strip: u16, pen: &mut Pen<'_>, y: u16) {
    pen.put(1, y, name, Tone::Dim);
    let Some(times) = times else {
        pen.put(NUMBERS[0], y, "nothing passed", Tone::Dim);
        return;
    };
    for (x, ns) in NUMBERS.into_iter().zip([times.p50_ns, times.p99_ns, times.p999_ns, times.max_ns]) {
        pen.put(x, y, &time(ns), Tone::Plain);
    }
    let column = |ns: u64| {
        let decades = (ns.max(1) as f64 / 100.0).log10().clamp(0.0, DECADES);
        (decades / DECADES * f64::from(strip)) as u16
    };
    for x in 0..=column(times.p999_ns).min(strip) {
        let glyph = match x {
            x if x <= column(times.p50_ns) => '█',
            x if x <= column(times.p99_ns) => '▒',
            _ => '░',
        };
        pen.dot(STRIP_AT + x, y, glyph, Tone::Good);
    }
    pen.dot(STRIP_AT + column(times.max_ns), y, '●', Tone::Warn);
}
