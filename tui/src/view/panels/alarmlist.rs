//! The alarms view: every alarm of the run, and of the one under the cursor what it rests on.
//!
//! Draws a list (glyph, onset, duration, count, severity, sureness, place, sentence) and below it verdict, stack, evidence and
//! runbook. Bounded by the board's alarm log and the pen.

use super::alarms::look;
use super::{rows_of, scrolled};
use crate::model::alarms::{place, standing};
use crate::model::{Model, Picture};
use crate::theme::Tone;
use crate::widgets::format::{count, time, time_of_day};
use crate::widgets::pen::Pen;
use pinwheel_engine::board::alarms::Confidence;
use pinwheel_engine::board::snapshot::AlarmView;

/// Share of the rows that the list may take, in percent.
const LIST_PERCENT: usize = 40;

/// Draws list and details.
pub fn draw(model: &Model, picture: &Picture, pen: &mut Pen<'_>) {
    let alarms = &picture.snapshot.alarms;
    let stand = standing(&picture.snapshot);
    let ended = alarms.iter().filter(|alarm| !alarm.is_active()).count();
    pen.rule(0, &format!("alarms: {} call, {} hold, {ended} ended", stand.calling, stand.active));
    if alarms.is_empty() {
        pen.put(1, 1, "● none: no stall, no role died, nothing late, no answer carries an error", Tone::Good);
        pen.put(1, 2, "With diagnostics: Off in the profile nothing is judged, and nothing would be here.", Tone::Dim);
        return;
    }
    let room = rows_of(pen, 1);
    let visible = alarms.len().min((room * LIST_PERCENT / 100).max(3));
    let cursor = model.cursor.alarm.min(alarms.len() - 1);
    let first = scrolled(cursor, visible, alarms.len());
    let shown = alarms.iter().enumerate().skip(first).take(visible);
    for (y, (index, alarm)) in (1u16..).zip(shown) {
        row(picture, alarm, y, pen);
        if index == cursor {
            pen.highlight(y);
        }
    }
    let top = u16::try_from(visible).unwrap_or(u16::MAX).saturating_add(1);
    details(picture, &alarms[cursor], &mut pen.rows(top, pen.height()));
}

fn row(picture: &Picture, alarm: &AlarmView, y: u16, pen: &mut Pen<'_>) {
    let engine = &picture.snapshot.engine;
    let (glyph, tone) = look(alarm, picture.snapshot.at_ns);
    pen.dot(1, y, glyph, tone);
    let mut x = pen.put(3, y, &time_of_day(engine.started_utc_s + alarm.onset_ns / 1_000_000_000), Tone::Dim) + 1;
    x = pen.put(x, y, &format!("{:>8}", time(alarm.duration_ns)), tone) + 1;
    x = pen.put(x, y, &format!("{:>4}×", count(alarm.count)), tone) + 1;
    x = pen.put(x, y, &format!("{:<8}", alarm.severity.name()), tone) + 1;
    x = pen.put(x, y, &format!("{:<11}", sureness(alarm.confidence)), Tone::Dim) + 1;
    x = pen.put(x, y, &format!("{:<9}", place(alarm)), Tone::Accent) + 1;
    pen.put(x, y, &alarm.sentence, if alarm.is_active() { Tone::Plain } else { Tone::Dim });
}

fn sureness(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::Certain => "certain",
        Confidence::Likely => "likely",
        Confidence::Unexplained => "unexplained",
    }
}

fn details(picture: &Picture, alarm: &AlarmView, pen: &mut Pen<'_>) {
    let cause = if alarm.cause.is_empty() { "no verdict yet" } else { &alarm.cause };
    pen.rule(0, &format!("{} at {}: {cause}, {}", alarm.rule, place(alarm), sureness(alarm.confidence)));
    let mut y = wrapped(pen, 1, "", &alarm.sentence, Tone::Plain);
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
    y = wrapped(pen, y, "do: ", &alarm.runbook, Tone::Accent);
    if let Some(culprit) = &alarm.culprit {
        y = wrapped(pen, y, "culprit: ", culprit, Tone::Warn);
    }
    // Half of what is left for the stack, where there is one: the evidence is worth no less.
    let left = rows_of(pen, y);
    let frames = if alarm.evidence.is_empty() { left } else { left / 2 };
    for (depth, frame) in alarm.stack.iter().take(frames).enumerate() {
        pen.put(1, y, &format!("#{depth:<2} {frame}"), Tone::Plain);
        y += 1;
    }
    for line in &alarm.evidence {
        y = wrapped(pen, y, "· ", line, Tone::Dim);
    }
}

/// Puts a text over as many rows as it needs, broken at spaces; returns the row after it.
fn wrapped(pen: &mut Pen<'_>, mut y: u16, lead: &str, text: &str, tone: Tone) -> u16 {
    let width = usize::from(pen.width().saturating_sub(2)).max(10);
    let mut line = lead.to_owned();
    for word in text.split(' ') {
        if line.chars().count() + word.chars().count() + 1 > width && !line.trim().is_empty() {
            pen.put(1, y, &line, tone);
            y += 1;
            line = "  ".to_owned();
        }
        if !line.is_empty() && !line.ends_with(' ') {
            line.push(' ');
        }
        line.push_str(word);
    }
    pen.put(1, y, &line, tone);
    y + 1
}
