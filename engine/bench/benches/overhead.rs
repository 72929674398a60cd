//! Compares the engine end to end with a bare loop over the same shots: the path's overhead on
//! decoding.
//!
//! No device, no predecoder, shots as fast as slots come free: decoding is the bottleneck.
//! Ours is the engine's time per answered shot with one decode worker, over a span in Live. Theirs
//! is one thread that decodes shot after shot on the core of the engine's decode worker. On two
//! cores that worker shares its core with the cold threads. The `_cpu` figures compare the two
//! threads' own processor time per shot. The engine's decode thread spins while the ring thread is
//! preempted, so on a loaded machine both figures measure the load; quote them from an idle one.

use super::input::{Input, surfaces};
use super::measure::{CLOCK, CORES, Placement, Suite, ns_per, pin_to};
use pinwheel_engine::board::{self, Phase};
use pinwheel_engine::decode::MatcherModel;
use pinwheel_engine::engine::{Config, Engine, Input as Feeding};
use pinwheel_engine::profile::{Decoders, Device, Predecoder, Profile, Rate};
use pinwheel_engine::roles::RoleKind;
use std::sync::Arc;
use std::time::Duration;

const REPETITIONS: usize = 7;
/// Wall time per shot, and processor time of the decoding thread.
const PARTS: [&str; 2] = ["wall", "cpu"];

pub fn register(suite: &mut Suite) {
    // More shots than the engine can answer in its span, so that it does not end early.
    for input in surfaces([4_000_000, 400_000]) {
        let span = Duration::from_millis(suite.effort.scale(1_600));
        let bare_shots = suite.effort.scale(if input.name == "d5" { 60_000 } else { 8_000 });
        let (ours, theirs, name) = (input.clone(), input.clone(), input.name);
        let own = (Placement::Own, REPETITIONS);
        let engine = suite.case(format!("engine {name}"), &PARTS, own, move || engine(&ours, span));
        let bare = suite.case(format!("bare decode loop {name}"), &PARTS, own, move || bare(&theirs, bare_shots));
        for (part, tail) in ["", "_cpu"].iter().enumerate() {
            let peer = Some(("bare-decode-loop", bare.part(part)));
            suite.figure(format!("overhead/{name}{tail}"), "ns/shot", engine.part(part), peer);
        }
    }
}

/// Processor time of thread `tid` of this process, nanoseconds; 0 if the system does not report it.
fn cpu_ns(tid: u32) -> u64 {
    let line = std::fs::read_to_string(format!("/proc/self/task/{tid}/schedstat")).unwrap_or_default();
    line.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0)
}

fn own_tid() -> u32 {
    let link = std::fs::read_link("/proc/thread-self").unwrap_or_default();
    link.file_name().and_then(|name| name.to_str()?.parse().ok()).unwrap_or(0)
}

fn bare(input: &Input, shots: u64) -> Vec<f64> {
    pin_to(CORES.there);
    let mut matcher = MatcherModel::new(&input.model).unwrap().matcher();
    let mut observables = vec![0; input.model.observable_words()];
    let mut flipped = 0;
    let warm = shots / 8;
    let (mut from, mut cpu) = (CLOCK.ticks(), cpu_ns(own_tid()));
    for (index, shot) in input.shots.iter().take((warm + shots) as usize).enumerate() {
        if index as u64 == warm {
            (from, cpu) = (CLOCK.ticks(), cpu_ns(own_tid()));
        }
        matcher.decode(shot, &mut observables).expect("shots of the model can be matched");
        flipped += observables[0];
    }
    assert!(flipped > 0, "some shot flips its observable");
    vec![ns_per(from, shots), (cpu_ns(own_tid()) - cpu) as f64 / shots as f64]
}

fn engine(input: &Input, span: Duration) -> Vec<f64> {
    let mut profile = Profile::load("lab", None).unwrap().0;
    profile.device = Device::None;
    profile.predecoder = Predecoder::None;
    profile.input.rate = Rate::Max;
    profile.decoders = Decoders::Count(1);
    // With a full ring shots wait long for the only decoder; that is no fault here.
    profile.limits.shot_deadline_us = 60_000_000;
    profile.slots = 256;
    // No yields: a thread that has yielded often is not scheduled for seconds once other work wants
    // its core (seen on Linux 6.18), and this case measures the engine.
    profile.spin_budgets.lab_spin_us = 1_000_000;
    let shots = input.shots.len() as u64;
    let input = Feeding::Replay {
        model: Arc::clone(&input.model),
        name: input.name.to_string(),
        shots: Arc::clone(&input.shots),
        observables: None,
    };
    let engine = live(unrecorded(profile, input), span / 8);
    let decoder = engine.plan().threads.iter().position(|thread| thread.roles[0].kind == RoleKind::Decode);
    let decoder = decoder.expect("decode has a thread of its own; does another engine hold a core?");
    let tid = engine.snapshot().threads[decoder].tid;
    let answered = || engine.snapshot().silos[0].counters.answered;
    let (before, cpu, from) = (answered(), cpu_ns(tid), CLOCK.ticks());
    std::thread::sleep(span);
    let taken = answered() - before;
    assert!(before + taken < shots, "the input outlasts the span");
    let found = vec![ns_per(from, taken), (cpu_ns(tid) - cpu) as f64 / taken as f64];
    engine.request_drain();
    let outcome = engine.finish();
    let counters = &outcome.snapshot.silos[0].counters;
    assert_eq!((counters.errored, outcome.unanswered.len()), (0, 0), "every shot was answered, none with an error");
    found
}

/// An engine that writes no files.
pub(super) fn unrecorded(profile: Profile, input: Feeding) -> Config {
    Config {
        profile_name: "lab".to_string(),
        profile,
        label: "bench".to_string(),
        input,
        count: None,
        duration: None,
        sink: None,
        events: None,
        run_dir: None,
        environment: None,
        notes: Vec::new(),
        drill_command: None,
        bridge: None,
        boards: board::directory(),
        takes_inputs: false,
        profiles: None,
    }
}

/// Starts an engine and runs it in Live for `settles`, so that the start is not measured.
pub(super) fn live(config: Config, settles: Duration) -> Engine {
    let engine = Engine::start(config).expect("the engine starts");
    while engine.snapshot().engine.phase != Phase::Live {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(settles);
    engine
}
