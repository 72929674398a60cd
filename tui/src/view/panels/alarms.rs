//! Incidents and faults in the overview, active incidents first: onset, glyph, count, sentence, number of consequences.

use crate::keymap::{Action, Scope};
use crate::model::alarms::{incident_counts, incident_look, place_of};
use crate::model::derived::utc_ns;
use crate::model::lists::List;
use crate::model::target::Target;
use crate::model::{Model, Picture, View};
use crate::theme::Tone;
use crate::widgets::format::{count, time, time_of_day};
use crate::widgets::pen::Pen;
use pinwheel_engine::board::snapshot::IncidentView;

pub fn draw(model: &Model, picture: &Picture, pen: &mut Pen<'_>) {
    let incidents = &picture.snapshot.incidents;
    let counts = incident_counts(&picture.snapshot);
    let others = incidents.len().saturating_sub(counts.active);
    let key = model.keymap.first_key(Scope::Views, Action::Show(View::Alarms));
    pen.rule(0, &format!("incidents: {} active, {others} ended or noted ({key} shows them)", counts.active));
    let engine = &picture.snapshot.engine;
    let (active, ended): (Vec<_>, Vec<_>) = incidents.iter().partition(|incident| incident.ended_ns.is_none());
    let mut y = 1;
    for (at, active_incident) in active.iter().enumerate() {
        let x = begin(model, picture, active_incident, y, pen);
        // Who did it stands at the end of a sentence. Each active incident has a row; a second row of this one comes
        // before the rows of faults, which say less.
        let others_from = pen.height().saturating_sub((active.len() - at - 1) as u16);
        let faults_from = others_from.saturating_sub(picture.snapshot.faults.len() as u16);
        let bottom = faults_from.max(others_from.min(y + 2)).max(y + 1);
        let tone = incident_look(active_incident, &picture.snapshot).1;
        y += pen.rows(y, bottom).put_wrapped(x, 0, &active_incident.root.sentence, tone);
    }
    for fault in &picture.snapshot.faults {
        let last = time_of_day(utc_ns(&picture.snapshot, fault.last_ns) / 1_000_000_000);
        let mut x = pen.put(1, y, &last, Tone::Dim) + 1;
        pen.dot(x, y, '◆', Tone::Warn);
        x = pen.put(x + 2, y, &format!("{}×", count(fault.count)), Tone::Warn) + 1;
        let place = fault.silo.map_or_else(String::new, |silo| format!("silo {silo}: "));
        pen.put(x, y, &format!("fault {}: {place}{} ({})", fault.code, fault.name, fault.detail), Tone::Plain);
        y += 1;
    }
    for incident in ended {
        let x = begin(model, picture, incident, y, pen);
        let x = pen.put(x, y, &incident.root.sentence, incident_look(incident, &picture.snapshot).1);
        let ago = picture.snapshot.at_ns.saturating_sub(incident.ended_ns.unwrap_or_default());
        pen.put(x + 1, y, &format!("(ended {} ago)", time(ago)), Tone::Dim);
        y += 1;
    }
    if y == 1 {
        pen.put(1, 1, "● none: no role panicked, no heartbeat is old, no answer carries an error", Tone::Good);
        y = 2;
    }
    for note in &engine.notes {
        pen.put(1, y, &format!("at start: {note}"), Tone::Dim);
        y += 1;
    }
}

/// The row of an incident up to its sentence; returns the column of that.
fn begin(model: &Model, picture: &Picture, incident: &IncidentView, y: u16, pen: &mut Pen<'_>) -> u16 {
    if let Some(row) = place_of(&picture.snapshot, incident.number, model.alarm_rows) {
        pen.target_row(y, Target::Row(List::Alarms, row));
    }
    let onset = time_of_day(utc_ns(&picture.snapshot, incident.onset_ns) / 1_000_000_000);
    let (glyph, tone) = incident_look(incident, &picture.snapshot);
    let mut x = pen.put(1, y, &onset, Tone::Dim) + 1;
    pen.dot(x, y, glyph, tone);
    x = pen.put(x + 2, y, &format!("{}×", count(incident.count)), tone) + 1;
    if !incident.consequences.is_empty() {
        x = pen.put(x, y, &format!("+{}", incident.consequences.len()), Tone::Dim) + 1;
    }
    x
}
