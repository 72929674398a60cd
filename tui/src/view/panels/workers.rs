//! Workers: which is busy, and with which slot? A row each; what its own word and the idle mask say against each other.

use super::{rows_of, scrolled};
use crate::model::{Model, Picture, View};
use crate::theme::Tone;
use crate::widgets::format::{count, time};
use crate::widgets::pen::Pen;
use pinwheel_engine::board::snapshot::{GpuView, SiloView, WorkerState, WorkerView};

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
    let visible = rows_of(pen, 3 + u16::from(silo.gpu.is_some()));
    if let Some(gpu) = &silo.gpu {
        let tone = if gpu.launch_errors == 0 { Tone::Plain } else { Tone::Warn };
        pen.put(1, 3 + visible as u16, &gpu_line(gpu), tone);
    }
    let first = scrolled(model.cursor.worker, visible, silo.workers.len());
    for (y, i) in (3..).zip(first..silo.workers.len()).take(visible) {
        row(silo, i, pen, y);
        if i == model.cursor.worker {
            pen.highlight(y);
        }
    }
}

/// The GPU in one line.
fn gpu_line(gpu: &GpuView) -> String {
    let (launch, graph) = (&gpu.launch_ns, &gpu.graph_ns);
    let call = time(launch.quantile_ns(0.5));
    let mut text =
        format!("GPU: {} launches, call {call} p50 {} p99", count(gpu.launches), time(launch.quantile_ns(0.99)));
    if graph.count() > 0 {
        text += &format!(", graph {}", time(graph.quantile_ns(0.5)));
    }
    if let Some(free) = gpu.memory_free_bytes {
        text += &format!(", {} MiB free", free >> 20);
    }
    if let Some(mhz) = gpu.clock_sm_mhz {
        text += &format!(", {mhz} MHz");
    }
    if gpu.launch_errors > 0 {
        text += &format!("; {} failed, last code {}", count(gpu.launch_errors), gpu.error_code);
    }
    text
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
