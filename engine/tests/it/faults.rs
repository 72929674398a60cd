//! Every fault at once, on real threads, with profile switches: nothing is lost, nothing is answered twice.

use crate::rig::{
    LIMIT, assert_nothing_lost, beside_another, config, end, errors, profile, run, sampler, switch, total, until,
};
use pinwheel_edge::slot::word::ErrorCode;
use pinwheel_engine::engine::{EndedBy, Engine};
use pinwheel_engine::profile::{Device, FreeWorker, Latency, Predecoder, Profile};
use std::time::Instant;

/// The drill, denser: each fault some hundred times in 50,000 shots, deadlines of milliseconds.
pub(crate) fn drill(free_worker: FreeWorker) -> Profile {
    let (mut drill, _) = Profile::load("drill", None).unwrap();
    let quick = profile();
    (drill.slots, drill.limits.drain_grace_s) = (256, 60);
    drill.free_worker = free_worker;
    drill.predecoder = Predecoder::Local;
    drill.decoders = quick.decoders;
    drill.input.rate = quick.input.rate;
    drill.device = Device::Sim { latency: Latency::Uniform { min_us: 0.0, max_us: 20.0 } };
    drill.limits.launch_deadline_us = 1_000;
    drill.limits.shot_deadline_us = 3_000;
    drill.limits.late_us = 1_000;
    drill.faults.not_started = 0.005;
    drill.faults.unknown = 0.005;
    drill.faults.never_ready = 0.002;
    drill.faults.late_ready = 0.005;
    drill.faults.late_by_us = 2_000;
    drill.faults.inside_launch = 0.05;
    drill.faults.lose_device_every = Some(5_000);
    drill.faults.recover_after_ms = 1;
    drill.faults.decoder_panic = 0.002;
    drill.faults.bad_address = 0.005;
    drill
}

/// The codes that faults of a device, a decoder and an address come to. The others: `drained` in `endings`,
/// `unmatchable` in `inputs`, `unknown_stream` in `by_hand`.
const CODES: [ErrorCode; 7] = [
    ErrorCode::LaunchFailed,
    ErrorCode::LaunchUnknown,
    ErrorCode::BadAddress,
    ErrorCode::LaunchDeadline,
    ErrorCode::ShotDeadline,
    ErrorCode::DeviceLost,
    ErrorCode::DecoderPanic,
];

/// Runs `count` shots of the drill, and more until each error has come, while the profile goes lab,
/// shared, prod, lab, ... every 10 to 100 ms.
fn all_faults_with_switches(free_worker: FreeWorker, count: u64) {
    let home = beside_another();
    let drill = drill(free_worker);
    let engine = Engine::start(config(&drill, sampler(), None)).unwrap();
    let mut switches = 0;
    let mut pause_ns = 10_000_000;
    let from = Instant::now();
    for name in ["shared", "prod", "lab"].into_iter().cycle() {
        let mut next = drill.clone();
        let (named, _) = Profile::load(name, None).unwrap();
        (next.spin, next.spin_budgets) = (named.spin, named.spin_budgets);
        switch(&engine, name, &next);
        switches += 1;
        let asked = engine.snapshot();
        pause_ns = 10_000_000 + pause_ns * 7 % 90_000_001;
        let now = until(&engine, "acknowledgements", |now| {
            let epoch = asked.engine.spin_epoch_requested;
            let acknowledged = now.threads.iter().all(|thread| thread.epoch_acknowledged == epoch);
            acknowledged && now.at_ns > asked.at_ns + pause_ns
        });
        assert_eq!(now.engine.profile, name);
        let is_seen = CODES.into_iter().all(|code| errors(&now, code) > 0);
        if switches >= 3 && is_seen && total(&now, |c| c.submitted) >= count {
            break;
        }
        assert!(from.elapsed() < LIMIT, "after {switches} switches an error is missing: {:?}", now.silos[0].errors);
    }
    engine.request_drain();
    let outcome = end(engine);
    drop(home);
    assert_eq!(outcome.ended_by, EndedBy::Drained);
    assert_nothing_lost(&outcome);
    let count = total(&outcome.snapshot, |c| c.submitted);
    let counted: u64 = outcome.snapshot.silos[0].errors.iter().map(|error| error.count).sum();
    assert_eq!(total(&outcome.snapshot, |c| c.errored), counted);
    eprintln!(
        "{count} shots, {switches} switches, {} ms, {:?}, {:?}",
        outcome.elapsed_live_ns / 1_000_000,
        outcome.snapshot.silos[0].counters,
        outcome.snapshot.silos[0].errors
    );
}

#[test]
fn every_fault_and_every_switch_loses_nothing_when_workers_are_free_after_copy() {
    all_faults_with_switches(FreeWorker::AfterCopy, 50_000);
}

#[test]
fn every_fault_and_every_switch_loses_nothing_when_workers_are_free_after_decode() {
    all_faults_with_switches(FreeWorker::AfterDecode, 50_000);
}

#[test]
#[ignore = "a million shots, minutes on two cores"]
fn every_fault_and_every_switch_loses_nothing_in_a_million_shots() {
    all_faults_with_switches(FreeWorker::AfterCopy, 1_000_000);
}

#[test]
#[ignore = "a million shots, minutes on two cores"]
fn every_fault_and_every_switch_loses_nothing_in_a_million_shots_after_decode() {
    all_faults_with_switches(FreeWorker::AfterDecode, 1_000_000);
}

fn device_completes_inside_launch(free_worker: FreeWorker, workers: u32, count: u64) {
    let _home = beside_another();
    let mut profile = profile();
    profile.workers = workers;
    profile.free_worker = free_worker;
    profile.faults.inside_launch = 1.0;
    let outcome = run(config(&profile, sampler(), Some(count)));
    assert_nothing_lost(&outcome);
    let counters = &outcome.snapshot.silos[0].counters;
    assert_eq!((counters.launched, counters.completed, counters.errored), (count, count, 0));
    eprintln!("{count} shots inside the launch, {} ms", outcome.elapsed_live_ns / 1_000_000);
}

#[test]
fn a_device_that_completes_inside_launch_loses_nothing() {
    device_completes_inside_launch(FreeWorker::AfterCopy, 8, 10_000);
    device_completes_inside_launch(FreeWorker::AfterDecode, 1, 10_000);
}

#[test]
#[ignore = "a million shots, half a minute on two cores"]
fn a_device_that_completes_inside_launch_loses_nothing_in_a_million_shots() {
    device_completes_inside_launch(FreeWorker::AfterCopy, 8, 1_000_000);
}

#[test]
fn every_thread_acknowledges_a_switch_and_prod_is_refused_where_a_core_is_not_its_own() {
    let _home = beside_another();
    let engine = Engine::start(config(&profile(), sampler(), None)).unwrap();
    until(&engine, "an answer", |now| total(now, |c| c.answered) > 0);
    for (epoch, name) in (2..).zip(["prod", "shared", "lab", "prod"]) {
        let mut next = (*engine.profile()).clone();
        next.spin = Profile::load(name, None).unwrap().0.spin;
        switch(&engine, name, &next);
        let now = until(&engine, "the acknowledgement", |now| {
            now.threads.iter().all(|thread| thread.epoch_acknowledged == epoch)
        });
        for thread in &now.threads {
            assert_eq!(thread.policy_acknowledged, thread.policy_requested, "{}", thread.name);
            let runs_the_profiles = thread.policy_acknowledged == now.engine.spin_requested;
            assert_eq!(runs_the_profiles, thread.policy_refusal.is_none(), "{}", thread.name);
            if name == "prod" {
                assert_eq!(thread.policy_refusal.is_some(), !thread.exclusive, "{}", thread.name);
            }
        }
    }
    engine.request_drain();
    let outcome = end(engine);
    assert_eq!(outcome.ended_by, EndedBy::Drained);
    assert_nothing_lost(&outcome);
}
