//! The panels of the views, one file each: `draw(model, …, pen)` draws only in the pen's area.

pub mod alarmlist;
pub mod alarms;
pub mod arbiter;
pub mod chart;
pub mod footer;
pub mod graph;
pub mod header;
pub mod help;
pub mod latency;
pub mod lost;
pub mod more;
pub mod overview;
pub mod path;
pub mod placement;
pub mod profiles;
pub mod reduced;
pub mod slotmap;
pub mod slots;
pub mod sources;
pub mod streams;
pub mod table;
pub mod tabs;
pub mod threads;
pub mod timeline;
pub mod tour;
pub mod trends;
pub mod workers;

use crate::keymap::{Action, Scope};
use crate::model::derived::SiloDerived;
use crate::model::{Model, Picture};
use crate::theme::Tone;
use crate::widgets::format::time;
use crate::widgets::pen::Pen;
use pinwheel_engine::board::snapshot::{SiloView, SlotState, SlotView};
use pinwheel_engine::roles::SiloState;

/// Number of the silo shown, of all silos, and the key for the next one.
pub fn which_silo(model: &Model, silo: u32) -> String {
    let silos = model.picture().map_or(0, |picture| picture.snapshot.silos.len());
    match silos {
        0 | 1 => format!("silo {silo}"),
        _ => format!("silo {silo} of {silos}, {}: next", model.keymap.first_key(Scope::Views, Action::NextSilo)),
    }
}

/// Glyph, state with its time, and tone of a silo that is not live; `None`: it is live.
pub fn lifecycle_look(silo: &SiloView) -> Option<(char, String, Tone)> {
    let (glyph, tone) = match silo.lifecycle.state {
        SiloState::Live => return None,
        SiloState::Dying | SiloState::Dead => ('✖', Tone::Bad),
        SiloState::Draining | SiloState::Drained | SiloState::Rejoining => ('▲', Tone::Warn),
    };
    Some((glyph, format!("{} {}", silo.lifecycle.state.name(), time(silo.lifecycle.age_ns)), tone))
}

/// What the shot in a slot waits for.
pub fn waits_on(slot: &SlotView) -> String {
    match slot.state {
        SlotState::Completed => "harvest".to_owned(),
        SlotState::Idle | SlotState::Written => "dispatch".to_owned(),
        SlotState::InFlight if slot.worker.is_none() || slot.times.completed_ns > 0 => "decode".to_owned(),
        SlotState::InFlight => worker_of(slot),
    }
}

/// The worker that has the shot in a slot.
pub fn worker_of(slot: &SlotView) -> String {
    slot.worker.map_or_else(|| "no device worker".to_owned(), |worker| format!("worker {worker}"))
}

/// The silo shown; before one exists the view says so, and that it `awaits` it.
pub fn shown_silo<'a>(
    model: &Model,
    picture: &'a Picture,
    awaits: &str,
    pen: &mut Pen<'_>,
) -> Option<(&'a SiloView, &'a SiloDerived)> {
    let index = model.cursor.silo;
    let found = picture.snapshot.silos.get(index).zip(picture.derived.silos.get(index));
    if found.is_none() {
        pen.rule(0, model.view.heading());
        pen.put(1, 1, &format!("No silo yet: the engine is starting. {awaits}"), Tone::Warn);
    }
    found
}

/// The first visible row that keeps `cursor` within `visible` rows.
pub fn scrolled(cursor: usize, visible: usize, length: usize) -> usize {
    let first = cursor.saturating_sub(visible.saturating_sub(1));
    first.min(length.saturating_sub(visible))
}

/// Number of rows of the pen below `from`.
pub fn rows_of(pen: &Pen<'_>, from: u16) -> usize {
    usize::from(pen.height().saturating_sub(from))
}
