//! Deliberate faults: each must end as the engine expects, and leave a working device.

use super::super::driver::Failure;
use super::super::launcher::meaning;
use super::super::rig::{CLOSE_LIMIT, launch};
use super::super::{Absent, OpenError};
use super::line::{Line, described};
use super::measure::{draw, exact, line};
use super::{Bench, StepResult};
use crate::device::Launched;
use pinwheel_edge::slot::workers::WorkerState;
use std::ffi::CStr;
use std::ptr::null_mut;
use std::time::Duration;

/// Maximum duration of a stalled graph that is not released.
const STALL_NS: u64 = 20_000_000_000;
/// How long a stalled graph is watched.
const HELD: Duration = Duration::from_millis(50);
/// Shots that verify a working device.
const SHOTS: u64 = 500;
/// Launches within which a sticky error must show, and the time between two. They are few because
/// a driver (580.159, H100) crashed in a launch when a thousand launches of a lost context waited;
/// an engine has one for each worker.
const STICKY_LOOKS: u32 = 200;
const STICKY_LOOK: Duration = Duration::from_millis(10);
/// Device memory that may be missing after everything is closed: the driver keeps some.
const LEFT_MAX: u64 = 64 << 20;
/// Device memory that each context of the last step takes: more than a driver keeps for small
/// allocations, so that free memory differs by it.
const TAKEN: u64 = 2 * LEFT_MAX;

#[expect(clippy::disallowed_methods, reason = "the check's thread is cold")]
fn pause(span: Duration) {
    std::thread::sleep(span);
}

/// Launches a kernel of two arguments in the first stream of `line`.
fn start(line: &Line, name: &CStr, mut words: [u64; 2]) -> Result<(), Failure> {
    let context = line.rig.context();
    let kernel = context.load()?.function(name)?;
    let mut arguments = words.each_mut().map(|word| std::ptr::from_mut(word).cast());
    // SAFETY: pinwheel_stall and pinwheel_poke take two words. The step chooses the address that
    // poke writes: none, or an invalid one.
    unsafe { launch(context.driver, kernel, (1, 32), line.rig.stream(0), &mut arguments) }
}

/// Stalls the first stream until the gate is opened.
fn stall(line: &Line) -> Result<(), String> {
    line.works.reports.gate().store(0);
    let gate = line.rig.gate().map_err(|error| error.to_string())?;
    start(line, c"pinwheel_stall", [gate, STALL_NS]).map_err(described)
}

/// A launch that the driver refuses: the worker stays free, and the next launch works.
pub(super) fn refused(bench: &mut Bench<'_>) -> StepResult {
    let mut line = line(bench, &bench.config.small.0, 1, 1)?;
    // SAFETY: null is no graph; the driver returns an error.
    let code = unsafe { (line.rig.context().driver.graph_launch)(null_mut(), line.rig.stream(0)) };
    if meaning(code) != Launched::NotStarted {
        return Err(format!(
            "{}: classified as {:?}, expected NotStarted",
            described(Failure { call: "cuGraphLaunch", code }),
            meaning(code)
        ));
    }
    line.one(&draw(&bench.config.small.0, 20)[0])?;
    match bench.open_index(u32::from(u16::MAX)) {
        Err(OpenError::Absent(Absent::Number { .. })) => {}
        Err(other) => return Err(format!("a device number that does not exist: {other}")),
        Ok(_) => return Err("a device number that does not exist was opened".to_owned()),
    }
    Ok(format!("code {code} for no graph, and the next launch works; a device number that does not exist is refused"))
}

/// A graph that misses its deadline: the worker is quarantined, completes late, and is free again.
pub(super) fn late(bench: &mut Bench<'_>) -> StepResult {
    let mut line = line(bench, &bench.config.small.0, 2, 1)?;
    let shot = &draw(&bench.config.small.0, 21)[0];
    stall(&line)?;
    let w = line.send(shot).map_err(described)?.ok_or("no worker is free")?;
    pause(HELD);
    if line.claim(w) {
        return Err("a graph behind a stalled one completed".to_owned());
    }
    let (generation, _) = line.works.bank.state(w);
    if !line.expire(w, generation) {
        return Err("the overdue launch could not be quarantined".to_owned());
    }
    // The other worker's stream keeps working.
    line.one(shot)?;
    line.works.reports.gate().store(1);
    let from = bench.clock.ticks();
    while !line.claim(w) {
        if bench.is_over(from) {
            return Err("the late graph never completed".to_owned());
        }
    }
    if line.finish(w) || line.works.bank.state(w).1 != WorkerState::Free {
        return Err("the late completion was not classified as late".to_owned());
    }
    let us = bench.ns(from, bench.clock.ticks()) as f64 / 1e3;
    line.one(shot)?;
    Ok(format!("quarantined after {} ms, back {us:.1} µs after its release, and used again", HELD.as_millis()))
}

/// A graph that does not end: closing gives up after its limit and keeps the memory.
pub(super) fn hung(bench: &mut Bench<'_>) -> StepResult {
    let line = line(bench, &bench.config.small.0, 1, 1)?;
    stall(&line)?;
    let from = bench.clock.ticks();
    if line.rig.settle() {
        return Err("a rig with a stalled graph was classified as idle".to_owned());
    }
    let waited_ms = bench.ns(from, bench.clock.ticks()) / 1_000_000;
    if u128::from(waited_ms) > 3 * CLOSE_LIMIT.as_millis() {
        return Err(format!("closing waited {waited_ms} ms, expected about {} ms", CLOSE_LIMIT.as_millis()));
    }
    line.works.reports.gate().store(1);
    if !line.rig.settle() {
        return Err("a rig whose graph has ended was not classified as idle".to_owned());
    }
    Ok(format!("not closed for {waited_ms} ms while it ran, closed after it ended"))
}

/// A sticky error: the device is lost. Says whether the driver opens a new context afterwards.
pub(super) fn sticky(bench: &mut Bench<'_>) -> StepResult {
    let mut line = line(bench, &bench.config.small.0, 16, 1)?;
    let shot = &draw(&bench.config.small.0, 22)[0];
    start(&line, c"pinwheel_poke", [16, 1]).map_err(described)?;
    let mut failure = None;
    for _ in 0..STICKY_LOOKS {
        match line.send(shot) {
            Ok(Some(w)) if line.claim(w) => {
                line.finish(w);
            }
            Ok(_) => {}
            Err(error) => {
                failure = Some(error);
                break;
            }
        }
        // Every worker is held by the lost device, so launch directly.
        if line.dispatch.bank().idle_mask() == 0 {
            let code = line.rig.launch(0);
            if code != 0 {
                failure = Some(Failure { call: "cuGraphLaunch", code });
                break;
            }
        }
        pause(STICKY_LOOK);
    }
    let Some(failure) = failure else { return Err("no launch reported that the device was lost".to_owned()) };
    if meaning(failure.code) != Launched::Lost {
        return Err(format!("{}, expected Lost", described(failure)));
    }
    let from = bench.clock.ticks();
    drop(line);
    if let Some(code) = bench.open().err().and_then(|error| error.process_error()) {
        let refused = Failure { call: "cuCtxCreate", code };
        return Ok(format!(
            "{failure}, classified as Lost; {refused}: this process gets no new context, restart the engine"
        ));
    }
    let again = exact(bench, &bench.config.small.0, SHOTS, 1).map_err(|why| format!("after {failure}: {why}"))?;
    let ms = bench.ns(from, bench.clock.ticks()) as f64 / 1e6;
    Ok(format!("{failure}, classified as Lost; in a new context {again}, {ms:.0} ms after"))
}

/// Too little memory: the request is refused, and the device keeps working.
pub(super) fn no_memory(bench: &mut Bench<'_>) -> StepResult {
    let mut line = line(bench, &bench.config.small.0, 1, 1)?;
    match line.rig.context().zeroed(1 << 50) {
        Err(failure) if meaning(failure.code) == Launched::NotStarted => {
            line.one(&draw(&bench.config.small.0, 23)[0])?;
            Ok(format!("{failure}, and the next launch works"))
        }
        Err(failure) => Err(described(failure)),
        Ok(_) => Err("a petabyte of device memory was granted".to_owned()),
    }
}

/// Two contexts on one device, as with two silos or two processes.
pub(super) fn two_at_once(bench: &mut Bench<'_>) -> StepResult {
    let (mut one, mut other) = (line(bench, &bench.config.small.0, 2, 1)?, line(bench, &bench.config.small.0, 2, 1)?);
    let drawn = draw(&bench.config.small.0, 24);
    let (from, mut done) = (bench.clock.ticks(), 0u32);
    for shot in drawn.iter().cycle().take(SHOTS as usize) {
        let w = one.send(shot).map_err(described)?.ok_or("no worker is free")?;
        let v = other.send(shot).map_err(described)?.ok_or("no worker is free")?;
        one.wait(w)?;
        other.wait(v)?;
        if one.residual != other.residual {
            return Err("the two contexts disagree about a shot".to_owned());
        }
        done += 1;
        if bench.is_over(from) {
            break;
        }
    }
    let us = bench.ns(from, bench.clock.ticks()) as f64 / 1e3 / f64::from(done);
    Ok(format!("{done} shots in each of two contexts, {us:.1} µs a pair: they take turns on the device"))
}

/// After everything is closed, the device's memory is free again.
pub(super) fn teardown(bench: &mut Bench<'_>) -> StepResult {
    let watcher = bench.open().map_err(|error| error.to_string())?;
    let free = || -> Result<u64, String> {
        watcher.bind().map_err(described)?;
        watcher.free_bytes().map_err(described)
    };
    // The first time includes allocations that the driver keeps.
    drop(line(bench, &bench.config.large.0, 16, 1)?);
    let before = free()?;
    for _ in 0..3 {
        let mut line = line(bench, &bench.config.large.0, 16, 1)?;
        line.rig.context().zeroed(TAKEN).map_err(described)?;
        let with = free()?;
        line.one(&draw(&bench.config.large.0, 25)[0])?;
        line.send(&draw(&bench.config.large.0, 26)[0]).map_err(described)?;
        // Closes while a graph runs.
        drop(line);
        if with + LEFT_MAX > before {
            return Err(format!(
                "measured nothing: the driver says {before} bytes free without a context and {with} with one of \
                 {TAKEN} bytes, expected less with it; check on a device that no other process uses"
            ));
        }
    }
    let left = before.saturating_sub(free()?);
    let summary = format!("opened, launched and closed three times; {left} bytes of device memory are missing");
    if left <= LEFT_MAX { Ok(summary) } else { Err(summary) }
}
