//! The alarms view: the incidents of the run, or every alarm, and the evidence of the selected one.
//!
//! Draws a list (glyph, onset, duration, count, severity, confidence, place, sentence) and below it
//! verdict, consequences, stack, evidence and runbook. Bounded by the board's alarm log and the pen.

use super::rows_of;
use super::table::{self, Empty};
use crate::model::alarms::{AlarmRows, incident_counts, place, selected, sureness};
use crate::model::lists::{List, shown};
use crate::model::{Model, Picture, View, Zoom};
use crate::theme::Tone;
use crate::widgets::format::{count, time};
use crate::widgets::pen::Pen;
use pinwheel_engine::board::alarms::Confidence;
use pinwheel_engine::board::snapshot::{AlarmView, IncidentView};

/// Text without alarms.
const EMPTY: Empty<'_> = Empty {
    why: "● none: no stall, no role panicked, nothing late, no answer carries an error",
    fill: "Where the profile says diagnostics: Off, nothing is checked.",
};
/// Most rows of the list, in percent: the details need the rest.
const LIST_PERCENT: usize = 40;

pub fn draw(model: &Model, picture: &Picture, pen: &mut Pen<'_>) {
    let alarms = &picture.snapshot.alarms;
    let counts = incident_counts(&picture.snapshot);
    let rows = shown(model, List::Alarms).len();
    let what = match model.alarm_rows {
        AlarmRows::Incidents => "incidents",
        AlarmRows::All => "all alarms of incidents",
    };
    let ended = picture.snapshot.incidents.iter().filter(|incident| incident.ended_ns.is_some()).count();
    let beside = format!(" {what}: {} active, {} unseen, {ended} ended ", counts.active, counts.calling);
    let height = pen.height();
    let visible = (rows + 1).min((rows_of(pen, 1) * LIST_PERCENT / 100).max(4));
    let split = match model.zoom {
        Zoom::Both if !alarms.is_empty() => u16::try_from(visible).unwrap_or(u16::MAX).saturating_add(1),
        Zoom::Details if !alarms.is_empty() => 0,
        _ => height,
    };
    if split > 0 {
        let title = (View::Alarms.heading(), beside.as_str());
        table::titled(model, List::Alarms, title, EMPTY, &mut pen.rows(0, split));
    }
    if let Some(alarm) = selected(model, &picture.snapshot) {
        details(picture, alarm, model.alarm_rows, &mut pen.rows(split, height));
    }
}

fn details(picture: &Picture, alarm: &AlarmView, rows: AlarmRows, pen: &mut Pen<'_>) {
    let cause = if alarm.cause.is_empty() { "no verdict yet" } else { &alarm.cause };
    let mut heading = format!("{} at {}: {cause}", alarm.rule, place(alarm));
    // A stall without an explanation has no confidence.
    if alarm.confidence != Confidence::Unexplained {
        heading = format!("{heading}, {}", sureness(alarm.confidence));
    }
    pen.rule(0, &heading);
    let mut y = pen.put_wrapped(1, 1, &alarm.sentence, Tone::Plain);
    let judged =
        alarm.judged_after_ns.map_or_else(|| "not judged yet".to_owned(), |ns| format!("judged after {}", time(ns)));
    let (now, mut state) = (picture.snapshot.at_ns, Vec::new());
    if alarm.acknowledged_ns.is_some() {
        state.push("acknowledged".to_owned());
    }
    if let Some(left) = alarm.snoozed_until_ns.and_then(|until| until.checked_sub(now)) {
        state.push(format!("snoozed for {}", time(left)));
    }
    state.push(judged);
    pen.put(1, y, &state.join(", "), Tone::Dim);
    y += 1;
    y = pen.put_wrapped(1, y, &format!("do: {}", alarm.runbook), Tone::Accent);
    match picture.snapshot.incidents.iter().find(|incident| incident.number == alarm.incident) {
        Some(incident) if incident.number != alarm.number => {
            let root = &incident.root;
            y = pen.put_wrapped(1, y, &format!("because of {}: {}", root.rule, root.sentence), Tone::Plain);
        }
        Some(incident) if rows == AlarmRows::Incidents => y = consequences(incident, y, pen),
        _ => {}
    }
    if let Some(culprit) = &alarm.culprit {
        y = pen.put_wrapped(1, y, &format!("culprit: {culprit}"), Tone::Warn);
    }
    // The stack gets half of the remaining rows; the evidence gets the other half.
    let left = rows_of(pen, y);
    let frames = if alarm.evidence.is_empty() { left } else { left / 2 };
    for (depth, frame) in alarm.stack.iter().take(frames).enumerate() {
        pen.put(1, y, &format!("#{depth:<2} {frame}"), Tone::Plain);
        y += 1;
    }
    for line in &alarm.evidence {
        y = pen.put_wrapped(1, y, &format!("· {line}"), Tone::Dim);
    }
}

/// Draws what the root explains and the shots that were hit; returns the row after it.
fn consequences(incident: &IncidentView, mut y: u16, pen: &mut Pen<'_>) -> u16 {
    if incident.shots_hit > 0 {
        let hit = format!("shots hit, late or answered with an error: {} at least", count(incident.shots_hit));
        pen.put(1, y, &hit, Tone::Warn);
        y += 1;
    }
    // Half of the rows that are left: stack and evidence need theirs.
    let most = (rows_of(pen, y) / 2).max(1);
    for consequence in incident.consequences.iter().take(most) {
        pen.put(1, y, &format!("└ {}: {}", consequence.rule, consequence.sentence), Tone::Plain);
        y += 1;
    }
    y
}
