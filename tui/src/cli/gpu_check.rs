//! `pinwheel gpu-check`: checks and measures every step of the GPU path on this machine.
//!
//! Runs on the main thread, which is pinned meanwhile, for seven minutes at most (49 s on an H100). Exit status 0:
//! every step passed; 1: a step failed; 2: there is no GPU. Prints each step on standard error when
//! it ends; the JSON result is the last line.

use super::input;
use super::refusal::Refusal;
use super::say::{self, Print, counted};
use clap::Args as ClapArgs;
use pinwheel_engine::clock::Clock;
use pinwheel_engine::code::{Model, bundled_named};
use pinwheel_engine::device::cuda::check::{CheckConfig, GpuCheck, Scale, Step, check};
use pinwheel_engine::host::HostFacts;
use std::fmt::Write;
use std::path::PathBuf;

/// Shots of a distance-5 code.
const SMALL: &str = "surface_d5";
/// As wide as distance 13 over 13 rounds (1,176 detectors): 1,200.
const LARGE: &str = "surface_d5@r50";

#[derive(Debug, ClapArgs)]
pub struct GpuCheckArgs {
    /// Number of the GPU, as nvidia-smi lists it
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub device: u32,
    /// Core to run on [default: the last one allowed]
    #[arg(long, value_name = "N")]
    pub core: Option<u32>,
    /// Model of the large shots, whose times are reported; default surface_d5@r50, as wide as
    /// distance 13 over 13 rounds
    #[arg(long, value_name = "F")]
    pub dem: Option<PathBuf>,
    /// One hundredth of the repetitions: takes half a minute, with less accurate figures
    #[arg(long)]
    pub quick: bool,
    #[command(flatten)]
    pub print: Print,
}

pub fn gpu_check(args: &GpuCheckArgs) -> Result<u8, Refusal> {
    if let Some(core) = args.core {
        // A core that the check cannot pin itself to would leave the times without a place.
        HostFacts::read()?.restrict(&[core])?;
    }
    let bundled = |name: &str| -> Result<(Model, String), Refusal> {
        let model = bundled_named(name).map_err(|error| Refusal::Usage(format!("gpu-check: {error}")))?;
        Ok((model, name.to_owned()))
    };
    let large = match &args.dem {
        Some(path) => input::model_file(path)?,
        None => bundled(LARGE)?,
    };
    let scale = if args.quick { Scale::QUICK } else { Scale::FULL };
    let config = CheckConfig { index: args.device, core: args.core, small: bundled(SMALL)?, large, scale };
    let clock = Clock::machine();
    let found = check(&config, &clock, |step| say::people(&line(step)))
        .map_err(|absent| Refusal::Usage(format!("gpu-check: {absent}")))?;
    Ok(args.print.to_stdout(&found, || text(&found), u8::from(!found.is_sound())))
}

fn line(step: &Step) -> String {
    format!("  {:<18} {:<5} {}", step.name, if step.ok { "ok" } else { "FAIL" }, step.detail)
}

fn text(found: &GpuCheck) -> String {
    let failed = found.steps.iter().filter(|step| !step.ok).count();
    let name = found.device.as_ref().map_or("?", |device| &device.name);
    let steps = counted(found.steps.len() as u64, "step");
    let mut text = format!("{name}, CUDA {}: {steps}, {failed} failed\n", found.driver);
    let us = |ns: u64| ns as f64 / 1e3;
    let mut row = |name: &str, times: &pinwheel_engine::board::histogram::Histogram| {
        // Writing to a String cannot fail.
        if times.count() == 0 {
            let _ = writeln!(text, "  {name:<42} not measured");
            return;
        }
        let (p50, p99) = (us(times.quantile_ns(0.5)), us(times.quantile_ns(0.99)));
        let (p999, max) = (us(times.quantile_ns(0.999)), us(times.max_ns()));
        let _ = writeln!(text, "  {name:<42} {p50:>9.2} {p99:>9.2} {p999:>9.2} {max:>9.2}");
    };
    row("launch call", &found.launch_ns);
    row("rx to ready, one at a time", &found.rx_to_ready_ns);
    row("  of which the host's own work", &found.host_overhead_ns);
    row("  of which the graph, by the device's clock", &found.graph_device_ns);
    row("graph by events", &found.graph_events_ns);
    for batch in &found.batches {
        row(&format!("all busy, {} to a launch, {:.0}/s", batch.shots, batch.shots_per_s), &batch.rx_to_ready_ns);
    }
    for method in &found.compared {
        row(method.name, &method.rx_to_ready_ns);
    }
    text.replacen('\n', "\n  times in µs                                      p50       p99     p99.9       max\n", 1)
}

#[cfg(test)]
mod tests {
    use super::{line, text};
    use pinwheel_engine::device::cuda::check::{GpuCheck, Step};

    #[test]
    fn a_failed_step_is_printed_and_counted() {
        let step = Step { name: "bit_exact".to_owned(), ok: false, detail: "shot 3 differs".to_owned() };
        assert!(line(&step).contains("FAIL") && line(&step).contains("shot 3 differs"));
        let found = GpuCheck { steps: vec![step], ..GpuCheck::default() };
        assert!(!found.is_sound() && text(&found).contains("1 step, 1 failed"), "{}", text(&found));
        assert!(text(&found).contains("graph by events                            not measured"), "{}", text(&found));
    }
}
