//! What an engine says of time: the pairs of its clocks.

use crate::rig::{alone, assert_nothing_lost, config, end, errors, profile, sampler, switch, until};
use pinwheel_edge::slot::word::ErrorCode;
use pinwheel_engine::engine::Engine;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

#[test]
fn a_running_engine_follows_utc_and_counts_no_step() {
    let _home = alone();
    let engine = Engine::start(config(&profile(), sampler(), None)).unwrap();
    let shown = until(&engine, "three pairs", |now| now.clock.pairs >= 3).clock;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    engine.request_drain();
    let outcome = end(engine);
    assert!(!shown.source.is_empty());
    let pair = shown.pair.unwrap();
    let age = now.checked_sub(Duration::from_nanos(pair.utc_ns)).expect("the pair was taken before");
    assert!(age < Duration::from_secs(60), "{age:?}");
    assert!(pair.width_ns > 0 && pair.at_ns > 0, "{pair:?}");
    assert!(outcome.snapshot.clock.pairs >= 3);
    assert_eq!((outcome.snapshot.clock.utc_steps, outcome.snapshot.clock.counter_steps), (0, 0));
}

#[test]
fn deadlines_that_are_shortened_live_strike_what_runs_already() {
    let _home = alone();
    let mut profile = profile();
    profile.workers = 4;
    profile.faults.never_ready = 1.0;
    profile.faults.recover_after_ms = 1;
    let engine = Engine::start(config(&profile, sampler(), None)).unwrap();
    let stuck = until(&engine, "four launches", |now| now.silos[0].counters.launched == 4);
    assert_eq!(stuck.silos[0].counters.quarantined, 0, "the limit is a minute");
    profile.limits.launch_deadline_us = 1_000;
    profile.limits.shot_deadline_us = 2_000;
    switch(&engine, "shorter", &profile);
    let struck = until(&engine, "quarantine", |now| now.silos[0].counters.quarantined >= 4);
    assert!(struck.at_ns - stuck.at_ns < 30_000_000_000, "it did not wait for the old deadline");
    let late = until(&engine, "lateness", |now| now.silos[0].timer_lateness.count() > 4);
    assert!(late.silos[0].timer_lateness.max_ns() < 60_000_000_000);
    engine.request_drain();
    let outcome = end(engine);
    assert_nothing_lost(&outcome);
    assert!(errors(&outcome.snapshot, ErrorCode::LaunchDeadline) >= 4);
}
