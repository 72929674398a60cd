//! Workers: which is busy, and with which slot? One row each; compares the worker's state word with
//! the idle mask.

use super::table::{self, Empty};
use super::{shown_silo, which_silo};
use crate::model::lists::List;
use crate::model::{Model, Picture};
use crate::theme::Tone;
use crate::widgets::format::{count, time};
use crate::widgets::pen::Pen;
use pinwheel_engine::board::snapshot::GpuView;

/// Text for a silo without a device.
const EMPTY: Empty<'_> = Empty {
    why: "This silo has no device: its decode workers predecode.",
    fill: "Device workers come with a device: --device sim or cuda, and workers: in the profile.",
};

pub fn draw(model: &Model, picture: &Picture, pen: &mut Pen<'_>) {
    let Some((silo, derived)) = shown_silo(model, picture, "Workers appear with their device.", pen) else { return };
    let height = pen.height();
    let below = 1 + u16::from(silo.gpu.is_some());
    table::view(model, List::Workers, EMPTY, &mut pen.rows(0, height.saturating_sub(below)));
    if let Some(gpu) = &silo.gpu {
        let tone = if gpu.launch_errors == 0 { Tone::Plain } else { Tone::Warn };
        pen.put(1, height.saturating_sub(2), &gpu_line(gpu), tone);
    }
    if !silo.has_device() {
        return;
    }
    let [free, running, claimed, quarantined] = derived.workers;
    let tone = if quarantined == 0 { Tone::Plain } else { Tone::Warn };
    let summary = format!(
        "{}; {free} free, {running} running, {claimed} claimed, {quarantined} in quarantine; idle 0x{:x}",
        which_silo(model, silo.id),
        silo.idle_mask
    );
    pen.put(1, height.saturating_sub(1), &summary, tone);
}

fn gpu_line(gpu: &GpuView) -> String {
    let (launch, graph) = (&gpu.launch_ns, &gpu.graph_ns);
    let call = time(launch.quantile_ns(0.5));
    let mut text =
        format!("GPU: {} launches, call {call} p50 {} p99", count(gpu.launches), time(launch.quantile_ns(0.99)));
    if graph.count() > 0 {
        text += &format!(", graph {}", time(graph.quantile_ns(0.5)));
    }
    let claim = &gpu.completion_to_claim_ns;
    if claim.count() > 0 {
        let within = time(gpu.completion_to_claim_error_ns);
        text += &format!(", claimed after {} ±{within}", time(claim.quantile_ns(0.5)));
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
