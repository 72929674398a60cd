//! Faults provoked on purpose: each has to end as the engine takes it, and leave a device that works.

use super::super::driver::Failure;
use super::super::launcher::meaning;
use super::super::rig::{CLOSE_LIMIT, launch};
use super::super::{Absent, OpenError};
use super::line::{Line, told};
use super::measure::{draw, exact, line};
use super::{Bench, Seen};
use crate::device::Launched;
use pinwheel_edge::slot::workers::State;
use std::ffi::CStr;
use std::ptr::null_mut;
use std::time::Duration;

/// Longest that a graph is held up, should nobody let it go.
const STALL_NS: u64 = 20_000_000_000;
/// How long a held graph is watched.
const HELD: Duration = Duration::from_millis(50);
/// Shots that show that a device works.
const SHOTS: u64 = 500;
/// Launches until a sticky error has to show.
const STICKY_LOOKS: u32 = 2_000;
/// Device memory that may be missing after everything was closed: the driver keeps some for itself.
const LEFT_MAX: u64 = 64 << 20;

#[expect(clippy::disallowed_methods, reason = "the check's thread is cold")]
fn pause(span: Duration) {
    std::thread::sleep(span);
}

/// Puts a kernel of two words into the first stream of `line`.
fn start(line: &Line, name: &CStr, mut words: [u64; 2]) -> Result<(), Failure> {
    let context = line.rig.context();
    let kernel = context.load()?.function(name)?;
    let mut arguments = words.each_mut().map(|word| std::ptr::from_mut(word).cast());
    // SAFETY: pinwheel_stall and pinwheel_poke take two words. Where poke writes is the step's own matter: nothing, or
    // nowhere.
    unsafe { launch(context.driver, kernel, (1, 32), line.rig.stream(0), &mut arguments) }
}

/// Holds the first stream up until the gate is opened.
fn stall(line: &Line) -> Result<(), String> {
    line.works.reports.gate().store(0);
    let gate = line.rig.gate().map_err(|error| error.to_string())?;
    start(line, c"pinwheel_stall", [gate, STALL_NS]).map_err(told)
}

/// A launch that the driver refuses: the worker is free, and the next launch works.
pub(super) fn refused(bench: &mut Bench<'_>) -> Seen {
    let mut line = line(bench, &bench.config.small.0, 1, 1)?;
    // SAFETY: null is no graph; the driver says so.
    let code = unsafe { (line.rig.context().driver.graph_launch)(null_mut(), line.rig.stream(0)) };
    if meaning(code) != Launched::NotStarted {
        return Err(format!(
            "{}: taken as {:?}, expected NotStarted",
            told(Failure { call: "cuGraphLaunch", code }),
            meaning(code)
        ));
    }
    line.one(&draw(&bench.config.small.0, 20)[0])?;
    match bench.open_index(u32::from(u16::MAX)) {
        Err(OpenError::Absent(Absent::Number { .. })) => {}
        Err(other) => return Err(format!("a device that there is not: {other}")),
        Ok(_) => return Err("a device that there is not was opened".to_owned()),
    }
    Ok(format!("code {code} for no graph, and the next launch works; a device that there is not is refused"))
}

/// A graph that misses its deadline: the worker is quarantined, comes back late, and is free again.
pub(super) fn late(bench: &mut Bench<'_>) -> Seen {
    let mut line = line(bench, &bench.config.small.0, 2, 1)?;
    let shot = &draw(&bench.config.small.0, 21)[0];
    stall(&line)?;
    let w = line.send(shot).map_err(told)?.ok_or("no worker is free")?;
    pause(HELD);
    if line.claim(w) {
        return Err("a graph behind a stalled one completed".to_owned());
    }
    let (generation, _) = line.works.bank.state(w);
    if !line.expire(w, generation) {
        return Err("the overdue launch could not be quarantined".to_owned());
    }
    // The other worker's stream goes on meanwhile.
    line.one(shot)?;
    line.works.reports.gate().store(1);
    let from = bench.clock.ticks();
    while !line.claim(w) {
        if bench.is_over(from) {
            return Err("the late graph never completed".to_owned());
        }
    }
    if line.finish(w) || line.works.bank.state(w).1 != State::Free {
        return Err("the late completion was not taken as late".to_owned());
    }
    let us = bench.ns(from, bench.clock.ticks()) as f64 / 1e3;
    line.one(shot)?;
    Ok(format!("quarantined after {} ms, back {us:.1} µs after it was let go, and used again", HELD.as_millis()))
}

/// A graph that does not end: closing gives up after its limit, and keeps the memory.
pub(super) fn hung(bench: &mut Bench<'_>) -> Seen {
    let line = line(bench, &bench.config.small.0, 1, 1)?;
    stall(&line)?;
    let from = bench.clock.ticks();
    if line.rig.settle() {
        return Err("a rig with a stalled graph was taken as idle".to_owned());
    }
    let waited_ms = bench.ns(from, bench.clock.ticks()) / 1_000_000;
    if u128::from(waited_ms) > 3 * CLOSE_LIMIT.as_millis() {
        return Err(format!("closing waited {waited_ms} ms, expected about {} ms", CLOSE_LIMIT.as_millis()));
    }
    line.works.reports.gate().store(1);
    if !line.rig.settle() {
        return Err("a rig whose graph has ended was not taken as idle".to_owned());
    }
    Ok(format!("not closed for {waited_ms} ms while it ran, closed after it ended"))
}

/// A sticky error: the device is lost for its context, and works in a new one.
pub(super) fn sticky(bench: &mut Bench<'_>) -> Seen {
    let mut line = line(bench, &bench.config.small.0, 16, 1)?;
    let shot = &draw(&bench.config.small.0, 22)[0];
    start(&line, c"pinwheel_poke", [16, 1]).map_err(told)?;
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
        // With every worker held by the dead device the launch call has to be asked directly.
        if line.dispatch.bank().idle_mask() == 0 {
            let code = line.rig.launch(0);
            if code != 0 {
                failure = Some(Failure { call: "cuGraphLaunch", code });
                break;
            }
        }
        pause(Duration::from_micros(100));
    }
    let Some(failure) = failure else { return Err("no launch said that the device was lost".to_owned()) };
    if meaning(failure.code) != Launched::Lost {
        return Err(format!("{}, expected Lost", told(failure)));
    }
    let from = bench.clock.ticks();
    drop(line);
    let again = exact(bench, &bench.config.small.0, SHOTS, 1).map_err(|why| format!("after {failure}: {why}"))?;
    let ms = bench.ns(from, bench.clock.ticks()) as f64 / 1e6;
    Ok(format!("{failure}, taken as Lost; in a new context {again}, {ms:.0} ms after"))
}

/// No memory: refused, and nothing else is harmed.
pub(super) fn no_memory(bench: &mut Bench<'_>) -> Seen {
    let mut line = line(bench, &bench.config.small.0, 1, 1)?;
    match line.rig.context().zeroed(1 << 50) {
        Err(failure) if meaning(failure.code) == Launched::NotStarted => {
            line.one(&draw(&bench.config.small.0, 23)[0])?;
            Ok(format!("{failure}, and the next launch works"))
        }
        Err(failure) => Err(told(failure)),
        Ok(_) => Err("a petabyte of device memory was given".to_owned()),
    }
}

/// Two contexts on one device, as two silos or two processes have them.
pub(super) fn two_at_once(bench: &mut Bench<'_>) -> Seen {
    let (mut one, mut other) = (line(bench, &bench.config.small.0, 2, 1)?, line(bench, &bench.config.small.0, 2, 1)?);
    let drawn = draw(&bench.config.small.0, 24);
    let from = bench.clock.ticks();
    for shot in drawn.iter().cycle().take(SHOTS as usize) {
        let w = one.send(shot).map_err(told)?.ok_or("no worker is free")?;
        let v = other.send(shot).map_err(told)?.ok_or("no worker is free")?;
        one.wait(w)?;
        other.wait(v)?;
        if one.residual != other.residual {
            return Err("the two contexts disagree about a shot".to_owned());
        }
    }
    let us = bench.ns(from, bench.clock.ticks()) as f64 / 1e3 / SHOTS as f64;
    Ok(format!("{SHOTS} shots in each of two contexts, {us:.1} µs a pair: they take turns on the device"))
}

/// Everything is closed: the device has its memory back.
pub(super) fn teardown(bench: &mut Bench<'_>) -> Seen {
    let watcher = bench.open().map_err(|error| error.to_string())?;
    let free = || -> Result<u64, String> {
        watcher.bind().map_err(told)?;
        watcher.free_bytes().map_err(told)
    };
    // The first time makes what a driver keeps for good.
    drop(line(bench, &bench.config.large.0, 16, 1)?);
    let before = free()?;
    for _ in 0..3 {
        let mut line = line(bench, &bench.config.large.0, 16, 1)?;
        line.one(&draw(&bench.config.large.0, 25)[0])?;
        line.send(&draw(&bench.config.large.0, 26)[0]).map_err(told)?;
        // Closed with a graph under way.
        drop(line);
    }
    let left = before.saturating_sub(free()?);
    let told = format!("opened, launched and closed three times; {left} bytes of device memory are missing");
    if left <= LEFT_MAX { Ok(told) } else { Err(told) }
}
