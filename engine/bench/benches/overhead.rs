//! The engine end to end against a bare loop over the same shots: what the path takes from decoding.
//!
//! No device latency, no predecoder, as fast as slots come free: decode is the bottleneck. Ours is the engine's time per
//! answered shot with one decode worker, over a span in Live; theirs is one thread that decodes shot after shot on the
//! core on which the engine puts its decode worker. On two cores that worker shares its core with the cold threads.

use super::input::{Input, surfaces};
use super::measure::{CLOCK, CORES, Placement, Suite, ns_per, pin_to};
use pinwheel_engine::board::Phase;
use pinwheel_engine::decode::MatcherModel;
use pinwheel_engine::engine::{Config, Engine, Input as Feeding};
use pinwheel_engine::profile::{Decoders, Device, Latency, Predecoder, Profile, Rate};
use std::sync::Arc;
use std::time::Duration;

const REPETITIONS: usize = 7;

/// Registers the area `overhead`.
pub fn register(suite: &mut Suite) {
    // More shots than the engine can answer in its span: some milliseconds each way do not end it early.
    for input in surfaces([600_000, 60_000]) {
        let span = Duration::from_millis(suite.effort.scale(1_600));
        let bare_shots = suite.effort.scale(if input.name == "d5" { 60_000 } else { 8_000 });
        let (ours, theirs, name) = (input.clone(), input.clone(), input.name);
        let own = (Placement::Own, REPETITIONS);
        let engine = suite.case(format!("engine {name}"), &["total"], own, move || vec![engine(&ours, span)]);
        let bare =
            suite.case(format!("bare decode loop {name}"), &["total"], own, move || vec![bare(&theirs, bare_shots)]);
        suite.figure(format!("overhead/{name}"), "ns/shot", engine, Some(("bare-decode-loop", bare)));
    }
}

fn bare(input: &Input, shots: u64) -> f64 {
    pin_to(CORES.there);
    let mut matcher = MatcherModel::new(&input.model).unwrap().matcher();
    let mut observables = vec![0; input.model.observable_words()];
    let mut flipped = 0;
    let warm = shots / 8;
    let mut from = CLOCK.ticks();
    for (index, shot) in input.shots.iter().take((warm + shots) as usize).enumerate() {
        if index as u64 == warm {
            from = CLOCK.ticks();
        }
        matcher.decode(shot, &mut observables).expect("shots of the model can be matched");
        flipped += observables[0];
    }
    assert!(flipped > 0, "some shot flips its observable");
    ns_per(from, shots)
}

fn engine(input: &Input, span: Duration) -> f64 {
    let mut profile = Profile::load("lab", None).unwrap().0;
    profile.device = Device::Sim { latency: Latency::None };
    profile.predecoder = Predecoder::None;
    profile.input.rate = Rate::Max;
    profile.decoders = Decoders::Count(1);
    // A full ring waits long for its one decoder; nothing of that is a fault here.
    profile.limits.shot_deadline_us = 60_000_000;
    profile.slots = 256;
    let config = Config {
        profile_name: "lab".to_string(),
        profile,
        label: "bench".to_string(),
        input: Feeding::Replay {
            model: Arc::clone(&input.model),
            name: input.name.to_string(),
            shots: Arc::clone(&input.shots),
            observables: None,
        },
        count: None,
        duration: None,
        sink: None,
        notes: Vec::new(),
    };
    let engine = Engine::start(config).expect("the engine starts");
    while engine.snapshot().engine.phase != Phase::Live {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(span / 8);
    let answered = || engine.snapshot().silos[0].counters.answered;
    let (before, from) = (answered(), CLOCK.ticks());
    std::thread::sleep(span);
    let taken = answered() - before;
    let found = ns_per(from, taken);
    engine.request_drain();
    let outcome = engine.finish();
    let counters = &outcome.snapshot.silos[0].counters;
    assert_eq!((counters.errored, outcome.unanswered.len()), (0, 0), "every shot was answered, none with an error");
    found
}
