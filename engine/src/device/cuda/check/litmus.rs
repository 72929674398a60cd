//! Orderings between host and device, on the protocol's own words and edges.
//!
//! A violation is a word older than the ready word (S4) or doorbell (S3) that published it. The
//! result bounds the rate of violations and proves nothing: the proof is in the models and in the
//! compiled instructions.

use super::super::driver::Failure;
use super::super::rig::{Rig, launch};
use super::line::{Line, described};
use super::measure::line;
use super::{Bench, StepResult};
use crate::code::bundled_named;
use pinwheel_edge::slot::jobs::Job;
use pinwheel_edge::sync::Span;
use std::ffi::CStr;

/// Parallel lanes: a block and a worker each.
const LANES: usize = 32;
/// Words of a lane, as in predecoder.cu. The job buffers have room for them.
const WORDS: usize = 16;
/// Numbers, or reads, of one launch of a lane: takes milliseconds.
const ROUNDS: u64 = 4_096;

/// A line with buffers of at least [`WORDS`] words.
fn wide(bench: &Bench<'_>) -> Result<Line, String> {
    let model = bundled_named("surface_d5@r50").map_err(|error| error.to_string())?;
    line(bench, &model, LANES, 1)
}

/// The kernels' argument for each lane.
#[repr(C)]
#[derive(Clone, Copy)]
struct Lane {
    words: u64,
    flag: u64,
}

/// Lanes on the device, and two counters for each.
struct Lanes {
    lanes: u64,
    taken: u64,
    broken: u64,
}

impl Lanes {
    fn new(line: &Line, flag: impl Fn(usize) -> u64) -> Result<Lanes, String> {
        let rig = &line.rig;
        let lane = |w: usize| -> Result<Lane, String> {
            let words = Span::of(&line.works.jobs.detectors(&Job::from_number(w as u32))[..WORDS]);
            let flag = Span { address: flag(w), bytes: 8 };
            let device = |span| rig.device_address(span).map_err(|error| error.to_string());
            Ok(Lane { words: device(words)?, flag: device(flag)? })
        };
        let lanes = (0..LANES).map(lane).collect::<Result<Vec<_>, _>>()?;
        let made = || -> Result<Lanes, Failure> {
            let context = rig.context();
            let counters = || context.zeroed(LANES as u64 * 8);
            Ok(Lanes { lanes: context.uploaded(&lanes)?, taken: counters()?, broken: counters()? })
        };
        made().map_err(described)
    }
}

/// Launches a litmus kernel in the first stream.
fn start(rig: &Rig, name: &CStr, mut words: [u64; 4]) -> Result<(), Failure> {
    let kernel = rig.context().load()?.function(name)?;
    let mut arguments = words.each_mut().map(|word| std::ptr::from_mut(word).cast());
    // SAFETY: both kernels take words only; pinwheel_litmus_out uses the first three.
    unsafe { launch(rig.context().driver, kernel, (LANES as u32, 32), rig.stream(0), &mut arguments) }
}

/// From the device to the host: all threads write words, one stores ready; the host claims and
/// reads.
pub(super) fn out(bench: &mut Bench<'_>) -> StepResult {
    let mut line = wide(bench)?;
    let lanes = Lanes::new(&line, |w| line.works.bank.device_words(w).ready)?;
    let wanted = bench.config.scale.hand_overs;
    let (began, mut from, mut seen, mut broken) = (bench.clock.ticks(), 1u64, 0u64, 0u64);
    while (from - 1) * (LANES as u64) < wanted && !bench.is_over(began) {
        start(&line.rig, c"pinwheel_litmus_out", [lanes.lanes, from, ROUNDS, 0]).map_err(described)?;
        let last = from + ROUNDS - 1;
        while !(0..LANES).all(|w| line.poll.claimed(w) == last) {
            for w in 0..LANES {
                if line.poll.claim_ready(w) {
                    let number = line.poll.claimed(w);
                    let words = &line.works.jobs.detectors(&Job::from_number(w as u32))[..WORDS];
                    broken += words.iter().filter(|word| word.load() < number).count() as u64;
                    let _ = line.poll.settle(w);
                    seen += 1;
                }
            }
            if bench.is_over(began) {
                break;
            }
        }
        from += ROUNDS;
    }
    line.rig.context().synchronize().map_err(described)?;
    let handed = (from - 1) * LANES as u64;
    let summary = format!(
        "{handed} hand-overs of {WORDS} words over {LANES} lanes, {seen} of them claimed; {broken} older words"
    );
    if broken == 0 && seen > 0 { Ok(summary) } else { Err(summary) }
}

/// From the host to the device: the host writes words and rings; a device thread polls and reads.
pub(super) fn inward(bench: &mut Bench<'_>) -> StepResult {
    let line = wide(bench)?;
    let lanes = Lanes::new(&line, |w| line.works.bank.device_words(w).doorbell)?;
    let wanted = bench.config.scale.hand_overs;
    let (began, mut number) = (bench.clock.ticks(), 0u64);
    while number * (LANES as u64) < wanted && !bench.is_over(began) {
        let looks = [lanes.lanes, ROUNDS, lanes.taken, lanes.broken];
        start(&line.rig, c"pinwheel_litmus_in", looks).map_err(described)?;
        // Rings while the kernel polls, until the stream is idle again.
        while !line.rig.is_stream_idle(0).map_err(described)? {
            for _ in 0..16 {
                number += 1;
                for w in 0..LANES {
                    let job = Job::from_number(w as u32);
                    line.works.jobs.detectors(&job)[..WORDS].iter().for_each(|word| word.store(number));
                    line.works.bank.ring(w, number);
                }
            }
        }
    }
    line.rig.context().synchronize().map_err(described)?;
    let sum = |at: u64| -> Result<u64, String> {
        let mut counters = [0u64; LANES];
        line.rig.context().download(at, &mut counters).map_err(described)?;
        Ok(counters.iter().sum())
    };
    let (taken, broken) = (sum(lanes.taken)?, sum(lanes.broken)?);
    let handed = number * LANES as u64;
    let summary =
        format!("{handed} hand-overs of {WORDS} words over {LANES} lanes, {taken} of them taken; {broken} older words");
    if broken == 0 && taken > 0 { Ok(summary) } else { Err(summary) }
}
