//! The log of events: what a run with faults leaves, and what a place that cannot be written does to it: nothing.

use crate::faults::drill;
use crate::rig::{assert_nothing_lost, beside_another, config, end, errors, profile, run, sampler, until};
use pinwheel_edge::slot::word::ErrorCode;
use pinwheel_engine::engine::Engine;
use pinwheel_engine::fault::FaultCode;
use pinwheel_engine::profile::{FreeWorker, Rate, RoleFault, SpinPolicy};
use pinwheel_engine::record::EventSink;
use pinwheel_engine::roles::RoleKind;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

const DAY_NS: u128 = 86_400_000_000_000;

/// The UTC of an event, in nanoseconds since `from`; it may be any number of days later.
fn utc_ns_since(from: Duration, line: &Value) -> u128 {
    let (_, time) = line["utc"].as_str().unwrap().split_once('T').unwrap();
    let parts: Vec<u128> = time.trim_end_matches('Z').split([':', '.']).map(|part| part.parse().unwrap()).collect();
    let [hours, minutes, seconds, nanos] = parts[..] else { panic!("{line}") };
    let of_day = ((hours * 60 + minutes) * 60 + seconds) * 1_000_000_000 + nanos;
    (of_day + DAY_NS - from.as_nanos() % DAY_NS) % DAY_NS
}

/// The texts of one kind of event, by thread.
fn texts<'a>(lines: &'a [Value], event: &str) -> BTreeMap<&'a str, Vec<&'a str>> {
    let mut by_thread: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in lines.iter().filter(|line| line["event"] == event) {
        by_thread.entry(line["thread"].as_str().unwrap()).or_default().push(line["text"].as_str().unwrap());
    }
    by_thread
}

#[test]
fn a_run_with_faults_leaves_its_events_in_order_with_their_utc() {
    let home = beside_another();
    let path = home.file("events.jsonl");
    let mut drill = drill(FreeWorker::AfterCopy);
    (drill.workers, drill.faults.lose_device_every, drill.spin) = (8, Some(1_000), SpinPolicy::Shared);
    // So slowly that every event has room in its lane however late the logger runs.
    drill.input.rate = Rate::Hz(20_000.0);
    let mut config = config(&drill, sampler(), None);
    config.events = Some(EventSink::create(&path));
    let utc = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let from = utc();
    let engine = Engine::start(config).unwrap();
    // By what it has seen, not by a number of shots: a cold thread brings the device back, and on a busy machine it may
    // get its turn only after any number of shots that went by the CPU meanwhile.
    until(&engine, "a fault of each kind, and the device back", |now| {
        let counters = &now.silos[0].counters;
        let back = now.faults.iter().any(|fault| fault.code == FaultCode::DeviceRecovered.number());
        let ended = [ErrorCode::LaunchUnknown, ErrorCode::LaunchDeadline].map(|code| errors(now, code));
        back && counters.late_completions > 0 && ended.into_iter().all(|count| count > 0)
    });
    engine.request_drain();
    let outcome = end(engine);
    let to = utc();
    assert_nothing_lost(&outcome);
    assert_eq!(outcome.events, Some(Ok(())));
    let lines = lines(&path);
    let log = outcome.snapshot.log;
    assert_eq!((lines.len() as u64, log.dropped, log.unkept), (log.written, 0, 0));

    let slack = Duration::from_secs(1);
    let mut last: BTreeMap<&str, (u64, u128)> = BTreeMap::new();
    for line in &lines {
        let (ticks, utc) = (line["ticks"].as_u64().unwrap(), utc_ns_since(from - slack, line));
        assert!(utc <= (to + 2 * slack - from).as_nanos(), "{line}");
        let before = last.insert(line["thread"].as_str().unwrap(), (ticks, utc)).unwrap_or_default();
        assert!(ticks >= before.0, "a thread's events are in order: {line} after {before:?}");
        assert!(utc + 1_000_000 >= before.1, "and so is their UTC: {line} after {before:?}");
    }
    let names: BTreeSet<&str> = outcome.snapshot.threads.iter().map(|thread| thread.name.as_str()).collect();
    assert_eq!(last.keys().copied().collect::<BTreeSet<_>>(), names, "every thread says something");

    for phases in texts(&lines, "phase_entered").values() {
        assert_eq!(*phases, ["WARMUP", "LIVE", "DRAIN", "SHUTDOWN"].map(|phase| format!("entered {phase}")));
    }
    assert!(texts(&lines, "policy_acknowledged").values().all(|texts| texts[0] == "runs spin policy shared, epoch 1"));
    assert_eq!(texts(&lines, "drain_finished").len(), names.len());
    for event in ["worker_quarantined", "launch_deadline", "late_completion", "device_lost", "device_recovered"] {
        assert!(!texts(&lines, event).is_empty(), "{event} never happened");
    }
    let count = |event: &str| texts(&lines, event).values().map(Vec::len).sum::<usize>() as u64;
    let counters = &outcome.snapshot.silos[0].counters;
    assert_eq!(count("worker_quarantined") + count("launch_deadline"), counters.quarantined);
    assert_eq!((count("late_completion"), count("device_lost")), (counters.late_completions, counters.device_losses));
}

#[test]
fn a_role_that_dies_is_an_event_with_its_place() {
    let home = beside_another();
    let path = home.file("events.jsonl");
    let mut profile = profile();
    profile.faults.role_panic = Some(RoleFault { role: RoleKind::Decode, after_items: 500 });
    let mut config = config(&profile, sampler(), None);
    config.events = Some(EventSink::create(&path));
    run(config);
    let lines = lines(&path);
    let died: Vec<&str> = texts(&lines, "role_died").into_values().flatten().collect();
    let [told] = died[..] else { panic!("{died:?}") };
    assert!(told.starts_with("decode of silo 0 panicked in frame ") && told.contains(", line "), "{told}");
}

#[test]
fn a_log_that_cannot_be_written_does_not_disturb_the_run() {
    let _home = beside_another();
    let mut config = config(&drill(FreeWorker::AfterDecode), sampler(), Some(5_000));
    config.events = Some(EventSink::create(Path::new("/nowhere/events.jsonl")));
    let outcome = run(config);
    assert_nothing_lost(&outcome);
    let said = outcome.events.unwrap().unwrap_err();
    assert!(said.contains("/nowhere/events.jsonl"), "{said}");
    assert_eq!(outcome.snapshot.log.written, 0);
    assert!(outcome.snapshot.log.unkept > 0);
}
