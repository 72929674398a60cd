//! The list of device workers of the silo shown, with the state of each.

use super::{Cell, Line, REST, Spec, by_place, column, plain};
use crate::model::Model;
use crate::theme::Tone;
use crate::widgets::format::{count, time};
use pinwheel_engine::board::snapshot::{SiloView, WorkerState, WorkerView};

pub(super) static SPEC: Spec = Spec {
    columns: &[
        column("worker", [7, 7, 7], |m, row| on(m, row, |_, _, row| Cell::number(row.to_string(), row as f64))),
        column("state", [14, 14, 14], |m, row| on(m, row, |_, worker, _| state(worker.state))),
        column("since", [8, 8, 8], |m, row| on(m, row, |_, worker, _| Cell::time(Some(worker.since_ns)))),
        column("slot", [7, 7, 7], |m, row| on(m, row, |_, worker, _| slot(worker))),
        column("generation", [11, 11, 11], |m, row| {
            on(m, row, |_, worker, _| Cell::number(worker.generation.to_string(), worker.generation as f64))
        }),
        column("launches", [9, 9, 9], |m, row| on(m, row, |_, worker, _| Cell::count(worker.launches))),
        column("idle bit", [REST, REST, REST], |m, row| on(m, row, idle_bit)),
    ],
    len: |model| model.silo().map_or(0, |silo| silo.workers.len()),
    key: by_place,
    details,
};

fn on(model: &Model, row: usize, cell: impl Fn(&SiloView, &WorkerView, usize) -> Cell) -> Cell {
    let found = model.silo().and_then(|silo| Some(cell(silo, silo.workers.get(row)?, row)));
    found.unwrap_or_else(Cell::absent)
}

fn state(state: WorkerState) -> Cell {
    let (glyph, word, tone) = match state {
        WorkerState::Free => ('○', "free", Tone::Dim),
        WorkerState::Running => ('▶', "running", Tone::Good),
        WorkerState::Claimed => ('◆', "claimed", Tone::Accent),
        WorkerState::Quarantined => ('✖', "quarantined", Tone::Bad),
    };
    Cell::words(format!("{glyph} {word}")).toned(tone)
}

fn slot(worker: &WorkerView) -> Cell {
    match worker.state {
        WorkerState::Free => Cell::absent(),
        _ => Cell::number(worker.slot.to_string(), worker.slot.into()),
    }
}

fn has_idle_bit(silo: &SiloView, row: usize) -> bool {
    silo.idle_mask >> (row % 64) & 1 == 1
}

/// State word and idle mask are two separate writes, so a brief disagreement is normal; a lasting
/// one is a fault.
fn idle_bit(silo: &SiloView, worker: &WorkerView, row: usize) -> Cell {
    const LASTING_NS: u64 = 1_000_000;
    let bit = has_idle_bit(silo, row);
    let agrees = (worker.state == WorkerState::Free) == bit;
    let (word, tone) = match (agrees, worker.since_ns > LASTING_NS) {
        (true, _) => ("", Tone::Good),
        (false, false) => ("changing", Tone::Dim),
        (false, true) if bit => ("said idle, is not", Tone::Bad),
        (false, true) => ("free, not in the mask", Tone::Warn),
    };
    Cell::words(format!("{} {word}", if bit { '▮' } else { '▯' }).trim_end()).toned(tone)
}

fn details(model: &Model, row: usize) -> Vec<Line> {
    let Some((silo, worker)) = model.silo().and_then(|silo| Some((silo, silo.workers.get(row)?))) else {
        return Vec::new();
    };
    let (now, what) = match worker.state {
        WorkerState::Free => ("free".to_owned(), "its bit of the idle mask is set: dispatch may take it"),
        WorkerState::Running => {
            (format!("runs the predecode step of slot {}", worker.slot), "the device has the input")
        }
        WorkerState::Claimed => (
            format!("its output of slot {} is claimed", worker.slot),
            "poll has seen its ready flag; it is free when the output is copied, or decoded, as the profile says",
        ),
        WorkerState::Quarantined => (
            format!("in quarantine since slot {}", worker.slot),
            "its launch passed the deadline or could not be told: nothing it writes is taken, and nothing waits for it",
        ),
    };
    let mut lines = vec![
        plain(format!("worker {row} of silo {}: {now} for {}", silo.id, time(worker.since_ns))),
        (what.to_owned(), Tone::Dim),
        plain(format!(
            "launch {} of this worker, generation {}; idle bit {}",
            count(worker.launches),
            worker.generation,
            if has_idle_bit(silo, row) { "set" } else { "clear" }
        )),
    ];
    let held = silo.slots.get(worker.slot as usize).filter(|_| worker.state != WorkerState::Free);
    lines.extend(held.map(|slot| {
        let answered = if slot.times.answered_ns == 0 { "not answered yet" } else { "answered" };
        plain(format!("slot {}: stream {} shot {}, {answered}", worker.slot, slot.stream, slot.sequence))
    }));
    lines
}
