//! The list of the run's events.

use super::{Cell, Line, REST, Spec, column, plain};
use crate::model::Model;
use crate::model::lookups::Event;
use crate::theme::Tone;

pub(super) static SPEC: Spec = Spec {
    columns: &[
        column("when", [13, 25, 25], |m, row| on(m, row, |event| when(m, event))),
        column("thread", [11, 11, 11], |m, row| on(m, row, |event| Cell::words(&event.thread).toned(Tone::Accent))),
        column("event", [19, 19, 19], |m, row| on(m, row, |event| Cell::words(&event.event).toned(Tone::Title))),
        column("what", [REST, REST, REST], |m, row| on(m, row, |event| Cell::words(&event.text))),
    ],
    len: |model| model.lookups.log.rows().len(),
    key: |model, row| model.lookups.log.rows().get(row).map_or(0, |event| event.number),
    details,
};

fn on(model: &Model, row: usize, cell: impl Fn(&Event) -> Cell) -> Cell {
    model.lookups.log.rows().get(row).map_or_else(Cell::absent, cell)
}

/// The time of day, with its date where there is room.
fn when(model: &Model, event: &Event) -> Cell {
    let text = match model.size.0 {
        0..=99 => event.utc.split('T').nth(1).unwrap_or(&event.utc).chars().take(12).collect(),
        _ => event.utc.chars().take(24).collect::<String>(),
    };
    let cell = match event.at_ns {
        Some(at_ns) => Cell::number(text, at_ns as f64),
        None => Cell::words(text),
    };
    cell.toned(Tone::Dim)
}

fn details(model: &Model, row: usize) -> Vec<Line> {
    let Some(event) = model.lookups.log.rows().get(row) else { return Vec::new() };
    let numbers: Vec<String> = event.numbers.iter().map(u64::to_string).collect();
    let mut lines =
        vec![plain(format!("{} on {}, {}", event.event, event.thread, event.utc)), plain(event.text.clone())];
    if !numbers.is_empty() {
        lines.push((format!("its numbers, as recorded: {}", numbers.join(" ")), Tone::Dim));
    }
    lines
}
