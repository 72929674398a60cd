//! The steps that check results and measure times.

use super::line::{Line, Start, described, histogram};
use super::{Batch, Bench, StepResult};
use crate::board::histogram::Histogram;
use crate::code::{Model, Sampler};
use crate::predecode::{Local, Predecoder, Tables};
use crate::units::Ticks;
use std::sync::Arc;

/// Workers of steps with several busy workers.
const WORKERS: usize = 16;
/// Workers of steps with the maximum number of busy workers.
const WORKERS_MOST: usize = 64;
/// Shots drawn in advance, so that drawing is not measured.
const DRAWN: usize = 1024;
/// Warm-up launches, not measured.
const WARM: u64 = 1_000;

/// The CPU predecoder of a model, and its tables.
pub(super) fn local(model: &Model) -> Result<(Local, Arc<Tables>), String> {
    let local = Local::new(model).map_err(|error| error.to_string())?;
    let tables = Arc::new(local.tables(model.observable_words()));
    Ok((local, tables))
}

/// A line with a context of its own.
pub(super) fn line(bench: &Bench<'_>, model: &Model, workers: usize, batch: u32) -> Result<Line, String> {
    let (_, tables) = local(model)?;
    let context = bench.open().map_err(|error| error.to_string())?;
    Line::new(context, model, tables, (workers, batch), &bench.clock).map_err(|error| error.to_string())
}

/// Draws shots of a model.
pub(super) fn draw(model: &Model, seed: u64) -> Vec<Vec<u64>> {
    let mut sampler = Sampler::new(model, seed);
    let mut observables = vec![0; model.observable_words()];
    let mut shot = || {
        let mut shot = vec![0; model.detector_words()];
        sampler.draw(&mut shot[..], &mut observables[..]);
        shot
    };
    (0..DRAWN).map(|_| shot()).collect()
}

pub(super) fn open(bench: &mut Bench<'_>) -> StepResult {
    let began = bench.clock.ticks();
    let line = line(bench, &bench.config.small.0, WORKERS, 1)?;
    let ms = bench.ns(began, bench.clock.ticks()) as f64 / 1e6;
    let ((mapped, device), facts) = (line.rig.bytes(), &line.rig.context().facts);
    let connections = std::env::var("CUDA_DEVICE_MAX_CONNECTIONS").unwrap_or_else(|_| "not set".to_owned());
    let atomics = if facts.host_native_atomics { "has" } else { "has no" };
    Ok(format!(
        "context and {} graphs in {ms:.1} ms, CUDA_DEVICE_MAX_CONNECTIONS {connections}; {mapped} bytes of the engine's memory mapped, {device} bytes on the device; \
         {} multiprocessors; it {atomics} native atomics with the host (none are needed)",
        line.works.groups(),
        facts.multiprocessors
    ))
}

pub(super) fn bit_exact(bench: &mut Bench<'_>) -> StepResult {
    let shots = bench.config.scale.shots;
    let small = exact(bench, &bench.config.small.0, shots, 1)?;
    let batched = exact(bench, &bench.config.small.0, shots / 5, 4)?;
    let large = exact(bench, &bench.config.large.0, shots / 5, 1)?;
    let (one, other) = (&bench.config.small.1, &bench.config.large.1);
    Ok(format!("{one}: {small}; 4 to a launch: {batched}; {other}: {large}"))
}

/// Compares `shots` shots with the CPU predecoder, as many at once as there are workers.
pub(super) fn exact(bench: &Bench<'_>, model: &Model, shots: u64, batch: u32) -> StepResult {
    let mut line = line(bench, model, WORKERS, batch)?;
    let (mut cpu, _) = local(model)?;
    let drawn = draw(model, 7);
    let mut expected = (line.residual.clone(), line.flips.clone());
    let (began, mut sent, mut done, mut resolved) = (bench.clock.ticks(), 0u64, 0u64, 0u64);
    let mut with_events = 0u64;
    let mut shot_of = [0usize; WORKERS];
    while done < shots {
        while sent < shots {
            let index = (sent % DRAWN as u64) as usize;
            let Some(w) = line.send(&drawn[index]).map_err(described)? else { break };
            (shot_of[w], sent) = (index, sent + 1);
        }
        line.flush().map_err(described)?;
        for w in 0..WORKERS {
            if line.dispatch.bank().idle_mask() >> w & 1 == 1 {
                continue;
            }
            line.wait(w)?;
            let shot = &drawn[shot_of[w]];
            with_events += u64::from(shot.iter().any(|word| *word != 0));
            resolved += u64::from(cpu.predecode(shot, &mut expected.0, &mut expected.1).resolved);
            if line.residual != expected.0 || line.flips != expected.1 {
                return Err(format!(
                    "shot {} differs: found residual {:x?} and flips {:x?}, expected {:x?} and {:x?}",
                    shot_of[w], line.residual, line.flips, expected.0, expected.1
                ));
            }
            done += 1;
        }
        if bench.is_over(began) {
            break;
        }
    }
    let reported: u64 = (0..WORKERS).map(|w| line.works.reports.removed(w)).sum();
    if reported != resolved {
        return Err(format!("{reported} detection events reported as removed, expected {resolved}"));
    }
    if with_events == 0 {
        return Err(format!(
            "measured nothing: none of {done} shots had a detection event, expected some; name a model with more errors"
        ));
    }
    Ok(format!("{done} of {shots} shots identical, {resolved} events removed"))
}

pub(super) fn launches(bench: &mut Bench<'_>) -> StepResult {
    let launches = bench.config.scale.launches;
    let mut line = line(bench, &bench.config.small.0, WORKERS, 1)?;
    let drawn = draw(&bench.config.small.0, 8);
    let (began, mut sent, mut done) = (bench.clock.ticks(), 0u64, 0u64);
    while done < launches {
        while sent < launches && line.send(&drawn[(sent % DRAWN as u64) as usize]).map_err(described)?.is_some() {
            sent += 1;
            if sent == WARM.min(launches / 10) {
                line.launch_ns = histogram();
            }
        }
        for w in 0..WORKERS {
            if line.claim(w) {
                done += u64::from(line.finish(w));
            }
        }
        if bench.is_over(began) {
            // Those that are under way have time of their own to complete.
            for w in 0..WORKERS {
                if line.dispatch.bank().idle_mask() >> w & 1 == 0 {
                    line.wait(w)?;
                    done += 1;
                }
            }
            break;
        }
    }
    let per_s = done as f64 * 1e9 / bench.ns(began, bench.clock.ticks()) as f64;
    if line.strays > 0 {
        return Err(format!("{} completions of launches that were never started", line.strays));
    }
    bench.found.launch_ns = line.launch_ns.snapshot();
    Ok(format!(
        "{done} launches, each completed once; {per_s:.0}/s with {WORKERS} workers; call {}",
        formatted_times(&bench.found.launch_ns)?
    ))
}

/// Formats p50, p99 and p99.9 in microseconds; an error without a time.
pub(super) fn formatted_times(times: &Histogram) -> StepResult {
    if times.max_ns() == 0 {
        return Err(
            "measured nothing: found no completed launch with a time, expected one at least; end what else uses \
                    the device, and check without --quick"
                .to_owned(),
        );
    }
    let us = |q: f64| times.quantile_ns(q) as f64 / 1e3;
    Ok(format!("p50 {:.2} µs, p99 {:.2} µs, p99.9 {:.2} µs", us(0.5), us(0.99), us(0.999)))
}

pub(super) fn rx_to_ready(bench: &mut Bench<'_>) -> StepResult {
    let rounds = bench.config.scale.rounds;
    let model = &bench.config.large.0;
    let mut line = line(bench, model, WORKERS, 1)?;
    let drawn = draw(model, 9);
    let (whole, overhead, graph) = (histogram(), histogram(), histogram());
    let (began, mut done) = (bench.clock.ticks(), 0);
    // Round robin over the workers, as in a paced engine: each stream rests between its shots.
    let mut parked = Vec::new();
    for round in 0..rounds + WARM.min(rounds / 10) {
        let shot = &drawn[(round % DRAWN as u64) as usize];
        let (sent, w) = (bench.clock.ticks(), line.send(shot).map_err(described)?.ok_or("no worker is free")?);
        let launched = bench.clock.ticks();
        let seen = spin(bench, &mut line, w)?;
        line.finish(w);
        let ended = bench.clock.ticks();
        park(&mut line, &mut parked);
        if round >= WARM.min(rounds / 10) {
            whole.record(bench.ns(sent, seen));
            overhead.record(bench.ns(sent, launched) + bench.ns(seen, ended));
            graph.record(line.works.reports.graph_ns(w));
            done += 1;
        }
        if bench.is_over(began) {
            break;
        }
    }
    let found = &mut bench.found;
    (found.rx_to_ready_ns, found.host_overhead_ns) = (whole.snapshot(), overhead.snapshot());
    found.graph_device_ns = graph.snapshot();
    Ok(format!(
        "{done} shots of {} one at a time over {WORKERS} workers: {}; host's own work {}; graph by the device's clock {}",
        bench.config.large.1,
        formatted_times(&bench.found.rx_to_ready_ns)?,
        formatted_times(&bench.found.host_overhead_ns)?,
        formatted_times(&bench.found.graph_device_ns)?
    ))
}

/// Holds the bit of the last worker until all others have been used: the bit scan would select it
/// again.
fn park(line: &mut Line, parked: &mut Vec<usize>) {
    parked.extend(line.dispatch.take_idle());
    if parked.len() == line.works.bank.len() {
        parked.drain(..).for_each(|w| line.dispatch.untake(w));
    }
}

/// Spins until worker `w`'s completion is claimed; returns the time of the claim.
fn spin(bench: &Bench<'_>, line: &mut Line, w: usize) -> Result<Ticks, String> {
    let from = bench.clock.ticks();
    let mut looks = 0u32;
    while !line.claim(w) {
        std::hint::spin_loop();
        looks += 1;
        if looks.is_multiple_of(4096) && bench.is_over(from) {
            return Err(format!("worker {w} did not complete"));
        }
    }
    Ok(bench.clock.ticks())
}

pub(super) fn graph_time(bench: &mut Bench<'_>) -> StepResult {
    let model = &bench.config.large.0;
    let mut line = line(bench, model, 1, 1)?;
    line.start = Start::Timed;
    let drawn = draw(model, 10);
    let (times, began) = (histogram(), bench.clock.ticks());
    for shot in drawn.iter().cycle().take((bench.config.scale.rounds / 10).min(10_000) as usize) {
        line.one(shot)?;
        line.rig.context().synchronize().map_err(described)?;
        let ns = line.rig.elapsed_ns().map_err(described)?;
        times.record(ns);
        if bench.is_over(began) {
            break;
        }
    }
    bench.found.graph_events_ns = times.snapshot();
    Ok(format!("{} by events around it: {}", bench.config.large.1, formatted_times(&bench.found.graph_events_ns)?))
}

pub(super) fn batch(bench: &mut Bench<'_>, batch: u32) -> StepResult {
    let model = &bench.config.small.0;
    let mut line = line(bench, model, WORKERS_MOST, batch)?;
    let drawn = draw(model, 11);
    let latency = histogram();
    let (began, mut sent, mut done) = (bench.clock.ticks(), 0u64, 0u64);
    let mut now = began;
    while bench.ns(began, now) < bench.config.scale.busy.0 {
        while line.send(&drawn[(sent % DRAWN as u64) as usize]).map_err(described)?.is_some() {
            sent += 1;
        }
        line.flush().map_err(described)?;
        now = bench.clock.ticks();
        for w in 0..WORKERS_MOST {
            if line.claim(w) {
                latency.record(bench.ns(line.sent_at(w), now));
                done += u64::from(line.finish(w));
            }
        }
    }
    let shots_per_s = done as f64 * 1e9 / bench.ns(began, bench.clock.ticks()) as f64;
    let (rx_to_ready_ns, launch_ns) = (latency.snapshot(), line.launch_ns.snapshot());
    let summary = format!(
        "{shots_per_s:.0} shots/s of {} with {WORKERS_MOST} workers; rx to ready {}; call {}",
        bench.config.small.1,
        formatted_times(&rx_to_ready_ns)?,
        formatted_times(&launch_ns)?
    );
    bench.found.batches.push(Batch { shots: batch, shots_per_s, rx_to_ready_ns });
    if line.strays == 0 {
        Ok(summary)
    } else {
        Err(format!("{} completions of launches that were never started; {summary}", line.strays))
    }
}
