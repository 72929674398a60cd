//! The list of alarms.

use super::{Cell, REST, Spec, column, drawn_by_the_view};
use crate::model::Model;
use crate::model::alarms::{look, place, sureness};
use crate::theme::Tone;
use crate::widgets::format::time_of_day;
use pinwheel_engine::board::snapshot::{AlarmView, Snapshot};

pub(super) static SPEC: Spec = Spec {
    columns: &[
        column("", [1, 1, 1], |m, row| on(m, row, glyph)),
        column("onset", [9, 9, 9], |m, row| on(m, row, onset)),
        column("lasted", [7, 7, 7], |m, row| on(m, row, |alarm, _| Cell::time(Some(alarm.duration_ns)))),
        column("times", [6, 6, 6], |m, row| on(m, row, |alarm, _| Cell::count(alarm.count))),
        column("severity", [8, 8, 8], |m, row| {
            on(m, row, |alarm, _| Cell {
                rank: super::Rank::Number(f64::from(alarm.severity as u8)),
                ..Cell::words(alarm.severity.name())
            })
        }),
        column("sure", [0, 11, 11], |m, row| {
            on(m, row, |alarm, _| Cell::words(sureness(alarm.confidence)).toned(Tone::Dim))
        }),
        column("rule", [0, 0, 16], |m, row| on(m, row, |alarm, _| Cell::words(alarm.rule))),
        column("where", [9, 9, 9], |m, row| on(m, row, |alarm, _| Cell::words(place(alarm)).toned(Tone::Accent))),
        column("cause", [0, 0, 0], |m, row| on(m, row, |alarm, _| Cell::words(&alarm.cause))),
        column("what", [REST, REST, REST], |m, row| {
            on(m, row, |alarm, _| {
                Cell::words(&alarm.sentence).toned(if alarm.is_active() { Tone::Plain } else { Tone::Dim })
            })
        }),
    ],
    len: |model| model.picture().map_or(0, |picture| picture.snapshot.alarms.len()),
    key: |model, row| {
        let alarm = model.picture().and_then(|picture| picture.snapshot.alarms.get(row));
        alarm.map_or(0, |alarm| alarm.number)
    },
    details: drawn_by_the_view,
};

fn on(model: &Model, row: usize, cell: impl Fn(&AlarmView, &Snapshot) -> Cell) -> Cell {
    let found = model.picture().and_then(|picture| Some(cell(picture.snapshot.alarms.get(row)?, &picture.snapshot)));
    found.unwrap_or_else(Cell::absent)
}

fn glyph(alarm: &AlarmView, snapshot: &Snapshot) -> Cell {
    let (glyph, tone) = look(alarm, snapshot.at_ns);
    Cell::words(glyph.to_string()).toned(tone)
}

fn onset(alarm: &AlarmView, snapshot: &Snapshot) -> Cell {
    let utc_s = snapshot.engine.started_utc_s + alarm.onset_ns / 1_000_000_000;
    Cell::number(time_of_day(utc_s), alarm.onset_ns as f64).toned(Tone::Dim)
}
