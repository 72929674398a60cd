//! Stalls of a running engine: provoked ones get their verdict, a quiet one blames nobody.

use crate::rig::{alone, assert_nothing_lost, config, end, profile, sampler, total, until};
use pinwheel_engine::board::Phase;
use pinwheel_engine::board::alarms::AlarmState;
use pinwheel_engine::board::snapshot::AlarmView;
use pinwheel_engine::drill::{self, Drill, Program, Row};
use pinwheel_engine::engine::{Actor, Config, DrillRefused, Engine, LiveDrill, prepared_for_drills};
use pinwheel_engine::hot::provoke::{Deed, Provocation};
use pinwheel_engine::profile::{Diagnostics, Profile, Rate, RoleKind, Severity, SpinPolicy};
use pinwheel_engine::stall::Cause;
use std::sync::Arc;
use std::time::Duration;

/// No drill here starts a child.
fn run(drill: Drill) -> Row {
    let program = Program { path: "/nonexistent".into(), words: Vec::new() };
    let row = drill::run(drill, &program);
    eprintln!("{row:?}");
    row
}

fn assert_right(drill: Drill) {
    let _alone = alone();
    let row = run(drill);
    assert!(row.is_right(), "{row:?}");
}

fn steady() -> Profile {
    let mut profile = profile();
    profile.input.rate = Rate::Hz(500.0);
    profile
}

/// Glommio reports only when the task returns: a hang is then never reported.
#[test]
fn a_hang_is_reported_while_it_lasts_and_its_shots_are_answered_all_the_same() {
    let _alone = alone();
    let provocation = Provocation::new(0);
    let wanted = Config { provocation: Some(Arc::clone(&provocation)), ..config(&steady(), sampler(), None) };
    let engine = Engine::start(wanted).unwrap();
    until(&engine, "shots", |now| now.engine.phase == Phase::Live && total(now, |c| c.answered) > 20);
    provocation.order(RoleKind::Dispatch, Deed::Sleep, Duration::from_millis(1_500));
    let name = |now: &pinwheel_engine::board::snapshot::Snapshot| {
        let runs = now.threads.iter().find(|thread| thread.roles.iter().any(|role| role.kind == RoleKind::Dispatch));
        runs.unwrap().name.clone()
    };
    let seen = until(&engine, "the alarm", |now| {
        now.alarms.iter().any(|alarm| {
            let is_it = alarm.rule == "heartbeat" && alarm.thread.as_ref() == Some(&name(now));
            let is_ours = alarm.cause == Cause::Blocked.name() && alarm.severity == Severity::Warn;
            is_it && alarm.state == AlarmState::Active && is_ours
        })
    });
    let is_it = |alarm: &&AlarmView| alarm.rule == "heartbeat" && alarm.severity == Severity::Warn;
    let alarm = seen.alarms.iter().find(is_it).unwrap();
    assert!(alarm.sentence.contains("nanosleep") && !alarm.evidence.is_empty(), "{alarm:?}");
    until(&engine, "its end", |now| {
        now.alarms.iter().any(|alarm| alarm.rule == "heartbeat" && alarm.ended_ns.is_some())
    });
    engine.acknowledge(0).unwrap();
    engine.request_drain();
    assert_nothing_lost(&end(engine));
}

#[test]
fn a_quiet_run_blames_nothing_of_its_own() {
    let _alone = alone();
    let engine = Engine::start(config(&steady(), sampler(), Some(1_500))).unwrap();
    let outcome = end(engine);
    let ours = [Cause::LongHandler, Cause::Blocked, Cause::PageFaults, Cause::ClaimsWork, Cause::Died, Cause::Affinity];
    let blamed: Vec<_> = outcome.snapshot.alarms.iter().filter(|alarm| alarm.severity > Severity::Note).collect();
    assert!(blamed.iter().all(|alarm| ours.iter().all(|cause| cause.name() != alarm.cause)), "{blamed:?}");
    assert_nothing_lost(&outcome);
}

#[test]
fn without_diagnostics_nothing_is_judged_and_the_run_ends_in_order() {
    let _alone = alone();
    let quiet = Profile { diagnostics: Diagnostics::Off, ..steady() };
    let provocation = Provocation::new(0);
    let wanted = Config { provocation: Some(Arc::clone(&provocation)), ..config(&quiet, sampler(), None) };
    let engine = Engine::start(wanted).unwrap();
    until(&engine, "shots", |now| now.engine.phase == Phase::Live && total(now, |c| c.answered) > 20);
    provocation.order(RoleKind::Dispatch, Deed::Sleep, Duration::from_millis(200));
    let answered = total(&engine.snapshot(), |c| c.answered);
    until(&engine, "more shots", |now| provocation.is_taken() && total(now, |c| c.answered) > answered + 200);
    assert_eq!(engine.snapshot().alarms, []);
    let said = engine.acknowledge(0).unwrap_err().to_string();
    assert!(said.contains("diagnostics"), "nobody keeps alarms: {said}");
    engine.request_drain();
    assert_nothing_lost(&end(engine));
}

#[test]
fn a_role_that_claims_work_for_ever_gets_its_verdict() {
    assert_right(Drill::ClaimsWork);
}

#[test]
fn a_role_that_panics_is_in_the_alarm_log_with_its_place() {
    assert_right(Drill::RolePanic);
}

/// With nothing under way the drain is over before the watchdog's next tick: the alarm must not depend on that.
#[test]
fn a_death_is_an_alarm_however_soon_the_run_is_over() {
    let _alone = alone();
    for _ in 0..6 {
        let provocation = Provocation::new(0);
        let mut idle = steady();
        idle.input.rate = Rate::Hz(0.5);
        let wanted = Config { provocation: Some(Arc::clone(&provocation)), ..config(&idle, sampler(), None) };
        let engine = Engine::start(wanted).unwrap();
        until(&engine, "Live", |now| now.engine.phase == Phase::Live);
        provocation.order(RoleKind::Poll, Deed::Panic, Duration::ZERO);
        let outcome = end(engine);
        let alarms = outcome.snapshot.alarms;
        let died = alarms.iter().find(|alarm| alarm.rule == "role_died").unwrap_or_else(|| panic!("{alarms:?}"));
        assert!(died.sentence.contains("provoke.rs:"), "it says where: {died:?}");
    }
}

#[test]
fn a_drill_in_a_running_engine_gets_its_verdict_and_the_log_says_who_asked_for_it() {
    let _alone = alone();
    let lab = Profile { spin: SpinPolicy::Lab, ..steady() };
    let wanted = Config { provocation: prepared_for_drills(&lab), ..config(&lab, sampler(), None) };
    let engine = Engine::start(wanted).unwrap();
    until(&engine, "shots", |now| now.engine.phase == Phase::Live && total(now, |c| c.answered) > 20);
    let me = Actor::this_process();
    assert_eq!(engine.may_drill(), Ok(()));
    let started = engine.drill(LiveDrill::Sleep, Some(Duration::from_millis(1_500)), &me).unwrap();
    let busy = engine.drill(LiveDrill::ClaimsWork, None, &me);
    assert_eq!(busy, Err(DrillRefused::Busy { name: "sleep" }));
    let said = engine.snapshot().control.last.unwrap().what;
    assert!(said.contains("drill sleep: dispatch on") && said.contains("process"), "{said}");
    until(&engine, "the alarm", |now| {
        let is_it = |alarm: &AlarmView| alarm.rule == "heartbeat" && alarm.thread.as_ref() == Some(&started.thread);
        now.alarms.iter().any(|alarm| is_it(alarm) && alarm.cause == LiveDrill::Sleep.expected().name())
    });
    let ended = |now: &pinwheel_engine::board::snapshot::Snapshot| {
        now.control.last.as_ref().is_some_and(|action| action.what.contains("drill sleep ended"))
    };
    until(&engine, "its end", ended);
    let mut prod = lab.clone();
    prod.spin = SpinPolicy::Prod;
    engine.switch("prod", &prod, None, &me).unwrap();
    assert_eq!(engine.may_drill(), Err(DrillRefused::Prod { profile: "prod".into() }));
    engine.request_drain();
    assert_nothing_lost(&end(engine));
}

#[test]
fn a_device_that_hangs_gets_its_verdict() {
    assert_right(Drill::DeviceHang);
}

/// Unmapping memory in this process interrupts hot cores (TLB shoot-downs): that row is watched.
#[test]
fn memory_that_is_unmapped_all_the_time_is_seen_as_interrupts_of_a_hot_core() {
    let _alone = alone();
    let row = run(Drill::AllocationStorm);
    if row.permitted && row.given.is_none() {
        return eprintln!("skipped: no shoot-downs are counted on this machine: {row:?}");
    }
    assert!(row.is_right(), "{row:?}");
}

#[test]
fn a_drill_that_is_not_permitted_says_why() {
    let row = run(Drill::LostAck);
    assert!(!row.permitted && row.is_right() && row.reason.unwrap().contains("arbiter"));
}

/// Ten minutes of the lab's profile on a machine with nothing else to do: `PINWHEEL_QUIET_S` says other seconds. Its result is
/// one line.
#[test]
#[ignore = "ten minutes on a quiet machine"]
fn ten_quiet_minutes_of_lab_have_no_warn_and_no_critical() {
    let _alone = alone();
    let span_s = std::env::var("PINWHEEL_QUIET_S").ok().and_then(|text| text.parse().ok()).unwrap_or(600);
    let (lab, _) = Profile::load("lab", None).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let run_dir = Some(folder.path().to_owned());
    let duration = Some(Duration::from_secs(span_s));
    let outcome = Engine::start(Config { run_dir, duration, ..config(&lab, sampler(), None) }).unwrap().finish();
    let alarms = &outcome.snapshot.alarms;
    let of = |severity| alarms.iter().filter(move |alarm| alarm.severity == severity);
    let count = |severity| of(severity).map(|alarm| alarm.count).sum::<u64>();
    let loud: Vec<&str> = of(Severity::Critical).chain(of(Severity::Warn)).map(|alarm| &*alarm.sentence).collect();
    let (critical, warn, note) = (count(Severity::Critical), count(Severity::Warn), count(Severity::Note));
    eprintln!("QUIET {span_s} s: {critical} critical, {warn} warn, {note} notes; {}", loud.join(" | "));
    assert_eq!(outcome.unanswered, []);
    assert!(loud.is_empty());
}
