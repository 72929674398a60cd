//! Stalls of a running engine: provoked ones get their verdict, a quiet one blames nobody.

use crate::rig::{alone, assert_nothing_lost, config, end, execute, profile, sampler, switch, total, until};
use pinwheel_engine::board::Phase;
use pinwheel_engine::board::alarms::AlarmState;
use pinwheel_engine::board::snapshot::{AlarmView, ThreadView};
use pinwheel_engine::engine::{
    Accepted, Command, Config, Done, DrillRefused, Engine, LiveDrill, Refused, prepared_for_drills,
};
use pinwheel_engine::hot::drill_role::{DrillCommand, Misbehaviour};
use pinwheel_engine::profile::{AlarmAction, AlarmRule, Diagnostics, Profile, Rate, RuleId, Severity, SpinPolicy};
use pinwheel_engine::roles::RoleKind;
use pinwheel_engine::stall::Cause;
use std::sync::Arc;
use std::time::Duration;

fn steady() -> Profile {
    let mut profile = profile();
    profile.input.rate = Rate::Hz(500.0);
    profile
}

/// Glommio reports only when the task returns: a hang is then never reported.
#[test]
fn a_hang_is_reported_while_it_lasts_and_its_shots_are_answered_all_the_same() {
    let _home = alone();
    let drill_command = DrillCommand::new(0);
    let wanted = Config { drill_command: Some(Arc::clone(&drill_command)), ..config(&steady(), sampler(), None) };
    let engine = Engine::start(wanted).unwrap();
    until(&engine, "shots", |now| now.engine.phase == Phase::Live && total(now, |c| c.answered) > 20);
    let name = |now: &pinwheel_engine::board::snapshot::Snapshot| {
        let runs = now.threads.iter().find(|thread| thread.roles.iter().any(|role| role.kind == RoleKind::Dispatch));
        runs.unwrap().name.clone()
    };
    let is_told = |now: &pinwheel_engine::board::snapshot::Snapshot, alarm: &AlarmView| {
        let is_it = alarm.rule == "heartbeat" && alarm.thread.as_ref() == Some(&name(now));
        let is_ours = alarm.cause == Cause::Blocked.name() && alarm.severity == Severity::Warn;
        let has_grounds = alarm.sentence.contains("nanosleep") && !alarm.evidence.is_empty();
        is_it && is_ours && has_grounds && alarm.state == AlarmState::Active
    };
    let mut again_ns = 0;
    until(&engine, "the alarm", |now| {
        // Again once it is over: a watchdog that had no turn meanwhile has seen nothing of it.
        if now.at_ns >= again_ns && drill_command.is_taken() {
            drill_command.request(RoleKind::Dispatch, Misbehaviour::Sleep, Duration::from_millis(1_500));
            again_ns = now.at_ns + 4_000_000_000;
        }
        now.alarms.iter().any(|alarm| is_told(now, alarm))
    });
    until(&engine, "its end", |now| {
        now.alarms.iter().any(|alarm| alarm.rule == "heartbeat" && alarm.ended_ns.is_some())
    });
    execute(&engine, Command::Acknowledge { number: 0 }).unwrap();
    engine.request_drain();
    assert_nothing_lost(&end(engine));
}

#[test]
fn a_quiet_run_blames_nothing_of_its_own() {
    let _home = alone();
    let engine = Engine::start(config(&steady(), sampler(), Some(1_500))).unwrap();
    let outcome = end(engine);
    let ours = [Cause::LongHandler, Cause::Blocked, Cause::PageFaults, Cause::ClaimsWork, Cause::Died, Cause::Affinity];
    let blamed: Vec<_> = outcome.snapshot.alarms.iter().filter(|alarm| alarm.severity > Severity::Note).collect();
    assert!(blamed.iter().all(|alarm| ours.iter().all(|cause| cause.name() != alarm.cause)), "{blamed:?}");
    assert_nothing_lost(&outcome);
}

#[test]
fn without_diagnostics_nothing_is_judged_and_the_run_ends_in_order() {
    let _home = alone();
    let quiet = Profile { diagnostics: Diagnostics::Off, ..steady() };
    let drill_command = DrillCommand::new(0);
    let wanted = Config { drill_command: Some(Arc::clone(&drill_command)), ..config(&quiet, sampler(), None) };
    let engine = Engine::start(wanted).unwrap();
    until(&engine, "shots", |now| now.engine.phase == Phase::Live && total(now, |c| c.answered) > 20);
    drill_command.request(RoleKind::Dispatch, Misbehaviour::Sleep, Duration::from_millis(200));
    let answered = total(&engine.snapshot(), |c| c.answered);
    until(&engine, "more shots", |now| drill_command.is_taken() && total(now, |c| c.answered) > answered + 200);
    assert_eq!(engine.snapshot().alarms, []);
    let said = execute(&engine, Command::Acknowledge { number: 0 }).unwrap_err().to_string();
    assert!(said.contains("diagnostics"), "nobody keeps alarms: {said}");
    engine.request_drain();
    assert_nothing_lost(&end(engine));
}

/// With nothing under way the drain is over before the watchdog's next tick: the alarm must not
/// depend on that.
#[test]
fn a_death_is_an_alarm_however_soon_the_run_is_over() {
    let _home = alone();
    for _ in 0..2 {
        let drill_command = DrillCommand::new(0);
        let mut idle = steady();
        // A shot that was on its way when its poller died is answered by nobody.
        idle.limits.drain_grace_s = 1;
        idle.input.rate = Rate::Hz(0.5);
        let wanted = Config { drill_command: Some(Arc::clone(&drill_command)), ..config(&idle, sampler(), None) };
        let engine = Engine::start(wanted).unwrap();
        until(&engine, "Live", |now| now.engine.phase == Phase::Live);
        drill_command.request(RoleKind::Poll, Misbehaviour::Panic, Duration::ZERO);
        let outcome = end(engine);
        let alarms = outcome.snapshot.alarms;
        let died = alarms.iter().find(|alarm| alarm.rule == "role_died").unwrap_or_else(|| panic!("{alarms:?}"));
        assert!(died.sentence.contains("drill_role.rs:"), "it says where: {died:?}");
    }
}

#[test]
fn a_drill_in_a_running_engine_gets_its_verdict_and_the_log_says_who_asked_for_it() {
    let _home = alone();
    let lab = Profile { spin: SpinPolicy::Lab, ..steady() };
    let wanted = Config { drill_command: prepared_for_drills(&lab), ..config(&lab, sampler(), None) };
    let engine = Engine::start(wanted).unwrap();
    let live = until(&engine, "shots", |now| now.engine.phase == Phase::Live && total(now, |c| c.answered) > 20);
    let runs_dispatch = |thread: &&ThreadView| thread.roles.iter().any(|role| role.kind == RoleKind::Dispatch);
    let thread = live.threads.iter().find(runs_dispatch).unwrap().name.clone();
    let drill = |drill: LiveDrill, for_ms| execute(&engine, Command::Drill { name: drill.name().to_owned(), for_ms });
    drill(LiveDrill::ClaimsWork, Some(2_000)).unwrap();
    let busy = drill(LiveDrill::Sleep, None);
    assert!(matches!(busy, Err(Refused::Drill(DrillRefused::Busy { name: "claims-work" }))), "{busy:?}");
    let (mut is_told, mut is_over, mut is_judged) = (false, false, false);
    until(&engine, "a drill, its alarm, its end", |now| {
        let said = now.control.last.as_ref().map_or("", |action| action.what.as_str());
        is_told |= said.contains("drill sleep: dispatch on") && said.contains("process");
        is_over |= said.contains("drill sleep ended");
        is_judged |= now.alarms.iter().any(|alarm| {
            let is_it = alarm.rule == "heartbeat" && alarm.thread.as_ref() == Some(&thread);
            let root = now.incidents.iter().find(|incident| incident.number == alarm.incident);
            let is_root_right = root.is_some_and(|incident| incident.root.cause == alarm.cause);
            is_it && alarm.cause == LiveDrill::Sleep.expected().name() && is_root_right
        });
        // Again while something of it was not seen: where the machine stands still itself, that is
        // what is judged.
        let is_seen = is_told && is_over && is_judged;
        if !is_seen {
            match drill(LiveDrill::Sleep, Some(1_500)) {
                Ok(Accepted::Done(Done::Drill { thread: on, .. })) => assert_eq!(on, thread),
                refused => assert!(matches!(refused, Err(Refused::Drill(DrillRefused::Busy { .. }))), "{refused:?}"),
            }
        }
        is_seen
    });
    let mut prod = lab.clone();
    prod.spin = SpinPolicy::Prod;
    switch(&engine, "prod", &prod);
    let refused = drill(LiveDrill::Sleep, None);
    assert!(matches!(refused, Err(Refused::Drill(DrillRefused::Prod { profile })) if profile == "prod"));
    engine.request_drain();
    assert_nothing_lost(&end(engine));
}

#[test]
fn a_lost_device_and_a_long_handler_at_once_are_two_incidents() {
    let _home = alone();
    let mut lossy = steady();
    (lossy.faults.lose_device_every, lossy.faults.recover_after_ms) = (Some(500), 1_500);
    let drill_command = DrillCommand::new(0);
    let wanted = Config { drill_command: Some(Arc::clone(&drill_command)), ..config(&lossy, sampler(), None) };
    let engine = Engine::start(wanted).unwrap();
    let causes = [Cause::DeviceHung, Cause::LongHandler].map(Cause::name);
    let mut again_ns = 0;
    let shown = until(&engine, "both incidents", |now| {
        let is_lost = now.alarms.iter().any(|alarm| alarm.rule == "device_lost" && alarm.is_active());
        // Again while the two were not seen together: on a busy machine the thread may lose its
        // core instead.
        if is_lost && drill_command.is_taken() && now.at_ns >= again_ns {
            drill_command.request(RoleKind::Harvest, Misbehaviour::Compute, Duration::from_millis(300));
            again_ns = now.at_ns + 1_000_000_000;
        }
        let spans = causes.map(|cause| {
            let incident = now.incidents.iter().find(|incident| incident.root.cause == cause)?;
            Some((incident.onset_ns, incident.onset_ns + incident.duration_ns))
        });
        matches!(spans, [Some((one, one_end)), Some((other, other_end))] if one < other_end && other < one_end)
    });
    for alarm in shown.alarms.iter().filter(|alarm| alarm.rule == "quarantine" && alarm.is_active()) {
        let root = shown.incidents.iter().find(|incident| incident.number == alarm.incident);
        assert!(root.is_none_or(|incident| incident.root.cause != Cause::LongHandler.name()), "{root:?}");
    }
    engine.request_drain();
    assert_nothing_lost(&end(engine));
}

#[test]
fn an_alarm_rule_that_stops_the_feed_is_in_the_actions_log_and_an_operator_lets_it_go_again() {
    let _home = alone();
    let mut rules = steady();
    let stop = AlarmRule { action: AlarmAction::StopFeed, ..RuleId::Heartbeat.bundled() };
    rules.alarms.retain(|rule| rule.id != RuleId::Heartbeat);
    rules.alarms.push(stop);
    let drill_command = DrillCommand::new(0);
    let wanted = Config { drill_command: Some(Arc::clone(&drill_command)), ..config(&rules, sampler(), None) };
    let engine = Engine::start(wanted).unwrap();
    until(&engine, "shots", |now| now.engine.phase == Phase::Live && total(now, |c| c.answered) > 20);
    let mut again_ns = 0;
    let held = until(&engine, "the feed held by the alarm", |now| {
        if now.at_ns >= again_ns && drill_command.is_taken() {
            drill_command.request(RoleKind::Dispatch, Misbehaviour::Sleep, Duration::from_millis(1_500));
            again_ns = now.at_ns + 4_000_000_000;
        }
        // The feed is held before the action is recorded: a picture between the two shows the first
        // alone.
        now.control.held.is_some() && now.control.last.is_some()
    });
    let by = held.control.held.unwrap().by;
    assert!(by.starts_with("an alarm: "), "{by}");
    assert!(held.control.last.unwrap().what.starts_with("feed held by an alarm: "));
    let answered = total(&engine.snapshot(), |c| c.answered);
    until(&engine, "shots again", |now| {
        // Held once more where the machine takes a hot thread's core for as long.
        if now.control.held.is_some() {
            execute(&engine, Command::Resume).unwrap();
        }
        total(now, |c| c.answered) > answered
    });
    engine.request_drain();
    assert_nothing_lost(&end(engine));
}

/// Ten minutes of the lab's profile on a machine with nothing else to do: `PINWHEEL_QUIET_S` says
/// other seconds. Its result is one line.
#[test]
#[ignore = "ten minutes on a quiet machine"]
fn ten_quiet_minutes_of_lab_have_no_warn_and_no_critical() {
    let _home = alone();
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
