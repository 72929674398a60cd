//! The list of incidents, or of all alarms.

use super::{Cell, REST, Spec, column, drawn_by_the_view};
use crate::model::Model;
use crate::model::alarms::{AlarmRows, incident, incident_look, look, place, sureness};
use crate::model::derived::utc_ns;
use crate::theme::Tone;
use crate::widgets::format::time_of_day;
use pinwheel_engine::board::snapshot::{AlarmView, IncidentView, Snapshot};

pub(super) static SPEC: Spec = Spec {
    columns: &[
        column("", [1, 1, 1], |m, row| on(m, row, glyph)),
        column("onset", [9, 9, 9], |m, row| on(m, row, onset)),
        column("lasted", [7, 7, 7], |m, row| on(m, row, lasted)),
        column("times", [6, 6, 6], |m, row| on(m, row, |alarm, _, _| Cell::count(alarm.count))),
        column("severity", [0, 8, 8], |m, row| {
            on(m, row, |alarm, incident, _| {
                let severity = incident.map_or(alarm.severity, |incident| incident.severity);
                Cell { rank: super::Rank::Number(f64::from(severity as u8)), ..Cell::words(severity.name()) }
            })
        }),
        column("also", [4, 4, 4], |m, row| on(m, row, |_, incident, _| also(incident))),
        column("hit", [0, 6, 6], |m, row| {
            on(m, row, |_, incident, _| incident.map_or_else(Cell::absent, |incident| Cell::count(incident.shots_hit)))
        }),
        column("sure", [0, 11, 11], |m, row| {
            on(m, row, |alarm, _, _| Cell::words(sureness(alarm.confidence)).toned(Tone::Dim))
        }),
        column("rule", [0, 0, 16], |m, row| on(m, row, |alarm, _, _| Cell::words(alarm.rule))),
        column("where", [9, 9, 9], |m, row| on(m, row, |alarm, _, _| Cell::words(place(alarm)).toned(Tone::Accent))),
        column("cause", [0, 0, 0], |m, row| on(m, row, |alarm, _, _| Cell::words(&alarm.cause))),
        column("what", [REST, REST, REST], |m, row| {
            on(m, row, |alarm, _, _| {
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

/// A cell of the alarm in `row`; with its incident if the list has those.
fn on(model: &Model, row: usize, cell: impl Fn(&AlarmView, Option<&IncidentView>, &Snapshot) -> Cell) -> Cell {
    let found = model.picture().and_then(|picture| {
        let alarm = picture.snapshot.alarms.get(row)?;
        let of_incident = model.alarm_rows == AlarmRows::Incidents;
        let incident = of_incident.then(|| incident(&picture.snapshot, alarm)).flatten();
        Some(cell(alarm, incident, &picture.snapshot))
    });
    found.unwrap_or_else(Cell::absent)
}

fn glyph(alarm: &AlarmView, incident: Option<&IncidentView>, snapshot: &Snapshot) -> Cell {
    let (glyph, tone) =
        incident.map_or_else(|| look(alarm, snapshot.at_ns), |incident| incident_look(incident, snapshot));
    Cell::words(glyph.to_string()).toned(tone)
}

fn onset(alarm: &AlarmView, incident: Option<&IncidentView>, snapshot: &Snapshot) -> Cell {
    let onset_ns = incident.map_or(alarm.onset_ns, |incident| incident.onset_ns);
    let utc_s = utc_ns(snapshot, onset_ns) / 1_000_000_000;
    Cell::number(time_of_day(utc_s), onset_ns as f64).toned(Tone::Dim)
}

fn lasted(alarm: &AlarmView, incident: Option<&IncidentView>, _: &Snapshot) -> Cell {
    Cell::time(Some(incident.map_or(alarm.duration_ns, |incident| incident.duration_ns)))
}

/// How many alarms the root explains.
fn also(incident: Option<&IncidentView>) -> Cell {
    match incident.map_or(0, |incident| incident.consequences.len()) {
        0 => Cell::absent(),
        others => Cell::number(format!("+{others}"), others as f64),
    }
}
