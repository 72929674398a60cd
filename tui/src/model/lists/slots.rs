//! The list of slots of the silo shown: the slots view shows it in place of the map while a filter
//! is set.

use super::{Cell, List, REST, Spec, by_place, column, drawn_by_the_view};
use crate::model::{Model, Overlay, Zoom};
use crate::theme::Tone;
use pinwheel_engine::board::snapshot::{SlotState, SlotView};

pub(super) static SPEC: Spec = Spec {
    columns: &[
        column("slot", [7, 7, 7], |m, row| on(m, row, |_, row| Cell::number(row.to_string(), row as f64))),
        column("state", [11, 11, 11], |m, row| on(m, row, |slot, _| state(slot.state))),
        column("since", [8, 8, 8], |m, row| on(m, row, |slot, _| Cell::time(Some(slot.since_ns)))),
        column("stream", [12, 12, 12], |m, row| {
            on(m, row, |slot, _| Cell::number(format!("stream {}", slot.stream), slot.stream.into()))
        }),
        column("shot", [12, 12, 12], |m, row| {
            on(m, row, |slot, _| Cell::number(slot.sequence.to_string(), slot.sequence as f64))
        }),
        column("worker", [REST, REST, REST], |m, row| {
            on(m, row, |slot, _| Cell::maybe(slot.worker.map(f64::from), |worker| format!("worker {worker}")))
        }),
    ],
    len: |model| model.silo().map_or(0, |silo| silo.slots.len()),
    key: by_place,
    details: drawn_by_the_view,
};

fn on(model: &Model, row: usize, cell: impl Fn(&SlotView, usize) -> Cell) -> Cell {
    let slot = model.silo().and_then(|silo| silo.slots.get(row));
    slot.map_or_else(Cell::absent, |slot| cell(slot, row))
}

/// Whether the slots view shows the list in place of the map: while a filter is written or holds,
/// and where the zoom leaves the map out.
pub fn is_listed(model: &Model) -> bool {
    let is_filtered =
        matches!(model.overlay, Some(Overlay::Filter(_))) || !model.lists.of(List::Slots).filter.is_empty();
    model.zoom != Zoom::Both || is_filtered
}

pub fn word(state: SlotState) -> &'static str {
    match state {
        SlotState::Idle => "idle",
        SlotState::Written => "written",
        SlotState::InFlight => "in flight",
        SlotState::Completed => "completed",
    }
}

fn state(state: SlotState) -> Cell {
    let tone = match state {
        SlotState::Idle => Tone::Dim,
        SlotState::Written => Tone::Accent,
        SlotState::InFlight => Tone::Good,
        SlotState::Completed => Tone::Plain,
    };
    Cell::words(word(state)).toned(tone)
}
