//! A role that panics, each kind in turn: the engine ends in order and says where.

use crate::endings::{GRACE_AND_LEAVING, assert_accounted_for, impatient};
use crate::rig::{beside_another, config, end, errors, profile, sampler, total};
use pinwheel_edge::slot::word::ErrorCode;
use pinwheel_engine::engine::{EndedBy, Engine, Outcome};
use pinwheel_engine::fault::FaultCode;
use pinwheel_engine::profile::{Decoders, Device, FreeWorker, Latency, Profile, Rate, RoleFault};
use pinwheel_engine::roles::RoleKind;
use std::time::Instant;

/// Runs until `role` has handled 500 items and panics.
fn run_without(role: RoleKind) -> Outcome {
    // A drain that ends well by itself has all the time it needs.
    let ends_well = matches!(role, RoleKind::Feed | RoleKind::Device | RoleKind::Decode);
    run(if ends_well { profile() } else { impatient() }, role)
}

fn run(mut profile: Profile, role: RoleKind) -> Outcome {
    let _home = beside_another();
    // Only a device that is gone is to miss it: no thread stands still for so long.
    profile.limits.launch_deadline_us = if role == RoleKind::Device { 100_000 } else { 60_000_000 };
    if matches!(role, RoleKind::Device | RoleKind::Poll) {
        // So that shots wait for a worker whenever it dies, and are launched after: fewer workers than
        // slots, and a worker is not free while its shot waits for a decoder.
        profile.input.rate = Rate::Max;
        profile.free_worker = FreeWorker::AfterDecode;
    }
    profile.device = Device::Sim { latency: Latency::Fixed { us: 100.0 } };
    profile.faults.role_panic = Some(RoleFault { role, after_items: 500 });
    let from = Instant::now();
    let outcome = end(Engine::start(config(&profile, sampler(), None)).unwrap());
    assert!(from.elapsed() < 2 * GRACE_AND_LEAVING, "{:?}", from.elapsed());
    assert_eq!(outcome.ended_by, EndedBy::Fault);
    assert_accounted_for(&outcome);
    let dead: Vec<_> = outcome
        .snapshot
        .threads
        .iter()
        .flat_map(|thread| thread.roles.iter().map(move |role| (thread, role)))
        .filter(|(_, role)| role.died_frame.is_some())
        .collect();
    let [(thread, died)] = dead[..] else { panic!("{} roles died", dead.len()) };
    assert_eq!((died.kind, died.index), (role, 0));
    assert!(died.died_frame.unwrap() <= thread.frames);
    let site = thread.panic_site.as_deref().unwrap();
    assert!(site.contains("hot/faulty.rs:"), "{site}");
    let faults = &outcome.snapshot.faults;
    assert_eq!(
        faults.iter().find(|fault| fault.code == FaultCode::RoleDied.number()).map(|fault| fault.count),
        Some(1)
    );
    outcome
}

#[test]
fn a_feed_that_panics_leaves_nothing_unanswered() {
    let outcome = run_without(RoleKind::Feed);
    assert_eq!(outcome.unanswered, []);
}

#[test]
fn a_dispatcher_that_panics_leaves_only_what_it_had_not_taken() {
    let outcome = run_without(RoleKind::Dispatch);
    assert_eq!(total(&outcome.snapshot, |c| c.dispatched), total(&outcome.snapshot, |c| c.answered));
}

#[test]
fn a_device_that_panics_is_lost_and_everything_is_answered() {
    let outcome = run_without(RoleKind::Device);
    assert_eq!(outcome.unanswered, []);
    assert!(errors(&outcome.snapshot, ErrorCode::LaunchDeadline) > 0);
}

#[test]
fn a_poller_that_panics_leaves_its_shots_to_the_drain() {
    let outcome = run_without(RoleKind::Poll);
    assert!(errors(&outcome.snapshot, ErrorCode::Drained) > 0);
}

#[test]
fn without_a_decoder_the_shots_are_answered_before_the_grace_ends() {
    let mut profile = profile();
    profile.decoders = Decoders::Count(1);
    // Longer than `run` allows.
    profile.limits.drain_grace_s = 600;
    let outcome = run(profile, RoleKind::Decode);
    assert_eq!(outcome.unanswered, []);
    assert!(errors(&outcome.snapshot, ErrorCode::Drained) > 0);
    assert_eq!(errors(&outcome.snapshot, ErrorCode::ShotDeadline), 0);
}

#[test]
fn a_decoder_that_panics_leaves_its_work_to_the_others() {
    let outcome = run_without(RoleKind::Decode);
    assert_eq!(outcome.unanswered, []);
    assert_eq!(total(&outcome.snapshot, |c| c.errored), 0);
}

#[test]
fn a_harvester_that_panics_leaves_its_shots_listed() {
    let outcome = run_without(RoleKind::Harvest);
    assert!(!outcome.unanswered.is_empty());
}
