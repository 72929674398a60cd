//! Workers: which is busy, and with which slot? A row each; what its own word and the idle mask say against each other.

use super::{rows_of, scrolled};
use crate::model::{Model, Picture, View};
use crate::theme::Tone;
use crate::widgets::format::{count, time};
use crate::widgets::pen::Pen;
use pinwheel_engine::board::snapshot::{SiloView, WorkerState, WorkerView};

/// Draws the view.
pub fn draw(model: &Model, picture: &Picture, pen: &mut Pen<'_>) {
    pen.rule(0, View::Workers.title());
    let index = model.cursor.silo;
    let (Some(silo), Some(derived)) = (picture.snapshot.silos.get(index), picture.derived.silos.get(index)) else {
        pen.put(1, 1, "No silo yet: the engine is in its first phase. Workers appear with their device.", Tone::Warn);
        return;
    };
    let [free, running, claimed, quarantined] = derived.workers;
    let tone = if quarantined == 0 { Tone::Plain } else { Tone::Warn };
    let summary = format!(
        "silo {}: {free} free, {running} running, {claimed} claimed, {quarantined} in quarantine; idle mask 0x{:x}",
        silo.id, silo.idle_mask
    );
    pen.put(1, 1, &summary, tone);
    if silo.workers.is_empty() {
        pen.put(1, 2, "This silo has no device workers: shots go to the CPU predecoder.", Tone::Warn);
        return;
    }
    for (x, heading) in
        [(1, "id"), (5, "state"), (20, "since"), (28, "slot"), (36, "generation"), (48, "launches"), (58, "idle bit")]
    {
        pen.put(x, 2, heading, Tone::Dim);
    }
    let visible = rows_of(pen, 3);
    let first = scrolled(model.cursor.worker, visible, silo.workers.len());
    for (y, i) in (3..).zip(first..silo.workers.len()).take(visible) {
        row(silo, i, pen, y);
        if i == model.cursor.worker {
            pen.highlight(y);
        }
    }
}

fn row(silo: &SiloView, i: usize, pen: &mut Pen<'_>, y: u16) {
    let worker = &silo.workers[i];
    let (glyph, word, tone) = look(worker.state);
    pen.put(1, y, &format!("{i:>2}"), Tone::Plain);
    pen.dot(5, y, glyph, tone);
    pen.put(7, y, word, tone);
    pen.put(20, y, &time(worker.since_ns), Tone::Plain);
    let slot = if worker.state == WorkerState::Free { "–".to_owned() } else { worker.slot.to_string() };
    pen.put(28, y, &slot, Tone::Plain);
    pen.put(36, y, &worker.generation.to_string(), Tone::Plain);
    pen.put(48, y, &count(worker.launches), Tone::Plain);
    let bit = silo.idle_mask >> (i % 64) & 1 == 1;
    let (text, tone) = contradiction(worker, bit);
    pen.dot(58, y, if bit { '▮' } else { '▯' }, tone);
    pen.put(60, y, text, tone);
}

/// Word and mask are two words written one after the other, so a glimpse of both may disagree; one that lasts is wrong.
fn contradiction(worker: &WorkerView, idle_bit: bool) -> (&'static str, Tone) {
    const LASTING_NS: u64 = 1_000_000;
    let agrees = (worker.state == WorkerState::Free) == idle_bit;
    match (agrees, worker.since_ns > LASTING_NS) {
        (true, _) => ("", Tone::Good),
        (false, false) => ("changing", Tone::Dim),
        (false, true) if idle_bit => ("said idle, is not", Tone::Bad),
        (false, true) => ("free, not in the mask", Tone::Warn),
    }
}

fn look(state: WorkerState) -> (char, &'static str, Tone) {
    match state {
        WorkerState::Free => ('○', "free", Tone::Dim),
        WorkerState::Running => ('▶', "running", Tone::Good),
        WorkerState::Claimed => ('◆', "claimed", Tone::Accent),
        WorkerState::Quarantined => ('✖', "quarantined", Tone::Bad),
    }
}
