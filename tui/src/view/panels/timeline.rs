//! A row with the position of the picture in the recording, and its alarms and notes.

use crate::keymap::{Action, Scope};
use crate::model::target::Target;
use crate::model::{Mode, Model, Timeline};
use crate::theme::Tone;
use crate::widgets::pen::Pen;

/// Columns of the text on the right.
const WORDS: u16 = 30;

pub fn draw(model: &Model, line: &Timeline, pen: &mut Pen<'_>) {
    let width = pen.width();
    let columns = width.saturating_sub(WORDS + 2).max(8);
    let span_ns = line.to_ns.saturating_sub(line.from_ns).max(1);
    let column = |at_ns: u64| {
        let into_ns = at_ns.saturating_sub(line.from_ns).min(span_ns);
        let last = u128::from(columns - 1);
        1 + u16::try_from(u128::from(into_ns) * last / u128::from(span_ns)).unwrap_or(0)
    };
    pen.put(1, 0, &"─".repeat(usize::from(columns)), Tone::Dim);
    for x in 0..columns {
        let into_ns = u128::from(span_ns) * u128::from(x) / u128::from(columns.max(2) - 1);
        let at_ns = line.from_ns.saturating_add(u64::try_from(into_ns).unwrap_or(span_ns));
        pen.target(1 + x, 0, 1, Target::Moment(at_ns));
    }
    for (at_ns, _) in &line.notes {
        pen.put(column(*at_ns), 0, "n", Tone::Accent);
    }
    let newest = [model.picture(), model.live.picture.as_deref()];
    for alarm in newest.into_iter().flatten().flat_map(|picture| &picture.snapshot.alarms) {
        if (line.from_ns..=line.to_ns).contains(&alarm.onset_ns) {
            pen.put(column(alarm.onset_ns), 0, "▲", Tone::Warn);
        }
    }
    pen.put(column(line.at_ns), 0, "●", Tone::Title);
    let at_s = line.at_ns as f64 / 1e9;
    let behind_s = model.behind_ns(line) as f64 / 1e9;
    let key = |scope, action| model.keymap.first_key(scope, action);
    let running = match model.mode {
        Mode::Replay { running_since_ns: Some(_) } => "runs".to_owned(),
        Mode::Replay { .. } => format!("{} runs", key(Scope::Past, Action::Play)),
        Mode::Live => format!("{}: now", key(Scope::Views, Action::Freeze)),
    };
    pen.put_right(
        columns + 1,
        width.saturating_sub(1),
        0,
        &format!("{at_s:.3} s  -{behind_s:.1} s  {running}"),
        Tone::Accent,
    );
    // The note of this moment, if it has room.
    if let Some((_, text)) = line.notes.iter().rev().find(|(at_ns, _)| at_ns.abs_diff(line.at_ns) < 500_000_000) {
        pen.put(
            column(line.at_ns).saturating_add(2).min(columns.saturating_sub(8)),
            0,
            &format!(" {text} "),
            Tone::Badge,
        );
    }
}
