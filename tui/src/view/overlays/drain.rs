//! Progress of the drain: the unanswered shots, and their positions in the path.

use super::middle;
use crate::keymap::{Action, Scope};
use crate::model::lists::slot_word;
use crate::model::{Model, Picture};
use crate::theme::Tone;
use crate::view::panels::worker_of;
use crate::widgets::format::{count, time};
use crate::widgets::pen::Pen;
use pinwheel_engine::board::snapshot::SlotState;

/// Draws the progress, always from the live picture.
pub fn draw(model: &Model, since_ns: u64, pen: &mut Pen<'_>) {
    let mut part = middle(pen, 76, 14);
    let age = time(model.now_ns.saturating_sub(since_ns));
    let mut inside = part.framed(&format!("draining for {age}"));
    let Some(picture) = model.live.picture.as_deref() else {
        inside.put(1, 0, "Waiting for the engine's first picture.", Tone::Warn);
        return;
    };
    summary(picture, &mut inside);
    let rows = inside.height();
    unanswered(picture, &mut inside.rows(3, rows.saturating_sub(1)));
    let last = rows.saturating_sub(1);
    let quit = model.keymap.first_key(Scope::Views, Action::Quit);
    inside.put(1, last, &format!("It ends by itself. {quit} asks whether to quit earlier."), Tone::Dim);
}

fn summary(picture: &Picture, pen: &mut Pen<'_>) {
    let derived = &picture.derived;
    let tone = if derived.open == 0 { Tone::Good } else { Tone::Warn };
    let text = format!(
        "{} of {} answered; {} not answered yet",
        count(derived.totals.answered),
        count(derived.totals.submitted),
        count(derived.open)
    );
    pen.put(1, 0, &text, tone);
    let phase = picture.snapshot.engine.phase.name();
    let text = format!("phase {phase}; {} shots were due and not yet accepted", count(derived.backlog));
    pen.put(1, 1, &text, Tone::Dim);
}

fn unanswered(picture: &Picture, pen: &mut Pen<'_>) {
    let held = picture.snapshot.silos.iter().flat_map(|silo| {
        let slots = silo.slots.iter().enumerate().filter(|(_, slot)| slot.state != SlotState::Idle);
        slots.map(move |(i, slot)| (silo.id, i, slot))
    });
    let total = held.clone().count();
    if total == 0 {
        pen.put(1, 0, "No slot holds a shot.", Tone::Good);
        return;
    }
    let rows = usize::from(pen.height());
    let shown = if total > rows { rows.saturating_sub(1) } else { rows };
    for (y, (silo, i, slot)) in (0..).zip(held.take(shown)) {
        let worker = worker_of(slot);
        let text = format!(
            "silo {silo} slot {i}: stream {} shot {}, {} for {}, {worker}",
            slot.stream,
            slot.sequence,
            slot_word(slot.state),
            time(slot.since_ns)
        );
        pen.put(1, y, &text, Tone::Plain);
    }
    if total > rows {
        pen.put(1, pen.height().saturating_sub(1), &format!("… and {} more", total - shown), Tone::Dim);
    }
}
