//! Below 80×24: the state of the console and the most important facts, one per row, as far as rows
//! reach.

use super::header::{alarm_summary, badges};
use crate::model::{Model, View};
use crate::theme::Tone;
use crate::view::FULL;
use crate::widgets::format::{clock, count, rate, time, time_or_dash};
use crate::widgets::pen::Pen;
use crate::widgets::strip::heat;

/// Draws one row: phase, time, and badges; returns the column after it.
pub fn status(model: &Model, pen: &mut Pen<'_>) -> u16 {
    let Some(picture) = model.picture() else { return pen.put(0, 0, "no picture yet", Tone::Warn) + 1 };
    let snapshot = &picture.snapshot;
    let x = pen.put(0, 0, snapshot.engine.phase.name(), Tone::Accent) + 1;
    let x = pen.put(x, 0, &clock(snapshot.at_ns / 1_000_000_000), Tone::Plain) + 1;
    badges(model, pen, x)
}

/// Draws the number of alarms after it: beside a list the alarms have no row of their own.
pub fn alarms(model: &Model, x: u16, pen: &mut Pen<'_>) {
    let (alarms, tone) = alarm_summary(model);
    pen.put_right(x, pen.width(), 0, &alarms, tone);
}

/// Draws the facts.
pub fn facts(model: &Model, pen: &mut Pen<'_>) {
    let Some(picture) = model.picture() else { return };
    let snapshot = &picture.snapshot;
    let derived = &picture.derived;
    let (alarms, alarm_tone) = alarm_summary(model);
    let facts = [
        (alarms, alarm_tone),
        (format!("answered {}", rate(derived.rates.map(|r| r.answered))), Tone::Accent),
        (format!("p99.9 {}", time_or_dash(derived.latency.map(|l| l.p999_ns))), Tone::Plain),
        (format!("backlog {}", count(derived.backlog)), Tone::Plain),
        (format!("errors {}", count(derived.totals.errored)), Tone::Plain),
        (format!("profile {}", snapshot.engine.profile), Tone::Plain),
    ];
    let mut y = 0;
    for (text, tone) in facts {
        pen.put(0, y, &text, tone);
        y += 1;
    }
    for thread in &snapshot.threads {
        let (glyph, tone) = heat(thread.heartbeat_age_ns, snapshot.engine.heartbeat_limit_ns);
        pen.dot(0, y, glyph, tone);
        pen.put(2, y, &format!("{} {}", thread.name, time(thread.heartbeat_age_ns)), tone);
        y = y.saturating_add(1);
    }
    let what = if model.view == View::Overview { "all" } else { model.view.name() };
    pen.put(0, y, &format!("{}×{} or more shows {what}", FULL.0, FULL.1), Tone::Dim);
}
