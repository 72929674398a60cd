//! Full rings on every side: everything waits, nothing is dropped, and it drains when the last reader reads.

use crate::endings::pipe;
use crate::rig::{alone, assert_nothing_lost, config, end, errors, profile, run, sampler, sink, total, until};
use pinwheel_edge::slot::word::ErrorCode;
use pinwheel_engine::engine::{EndedBy, Engine};
use pinwheel_engine::profile::{Device, FreeWorker, Latency, Rate};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};

#[test]
fn full_rings_on_every_side_drain() {
    const COUNT: u64 = 6_000;
    let home = alone();
    let mut profile = profile();
    (profile.slots, profile.workers, profile.free_worker) = (8, 1, FreeWorker::AfterDecode);
    profile.device = Device::Sim { latency: Latency::Uniform { min_us: 0.0, max_us: 5.0 } };
    let path = home.file("answers");
    let reader = pipe(&path);
    let mut config = config(&profile, sampler(), Some(COUNT));
    config.sink = Some(sink(&profile, 1, None, Some(&path)));
    let engine = Engine::start(config).unwrap();
    until(&engine, "every ring full", |now| {
        let silo = &now.silos[0];
        let answers = silo.rings.iter().find(|ring| ring.name == "answers").unwrap();
        silo.counters.slot_waits > 0 && silo.counters.worker_waits > 0 && answers.refusals > 0
    });
    // Now somebody reads.
    let lines = std::thread::spawn(move || {
        let mut seen = BTreeSet::new();
        for line in BufReader::new(reader).lines().take(COUNT as usize) {
            let line: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
            assert_eq!(line["status"], "ok");
            seen.insert((line["stream"].as_u64().unwrap(), line["seq"].as_u64().unwrap()));
        }
        seen
    });
    let outcome = end(engine);
    assert_eq!((outcome.ended_by, outcome.sink.as_ref()), (EndedBy::Count, Some(&Ok(()))));
    assert_nothing_lost(&outcome);
    let seen = lines.join().unwrap();
    let expected: BTreeSet<_> = (0..COUNT).map(|index| (index % 4, index / 4)).collect();
    assert!(seen == expected, "{} distinct answers", seen.len());
}

#[test]
fn late_completions_are_counted_answer_no_shot_and_return_their_worker() {
    let _home = alone();
    let mut profile = profile();
    // More workers than late launches at a time, some 9: the device is never lost.
    profile.workers = 64;
    profile.input.rate = Rate::Hz(500.0);
    // Longer than a busy machine keeps a thread waiting, and the late ones come later than that again.
    profile.limits.launch_deadline_us = 2_000_000;
    profile.faults.late_ready = 0.005;
    profile.faults.late_by_us = 3_500_000;
    let engine = Engine::start(config(&profile, sampler(), None)).unwrap();
    until(&engine, "late completions", |now| total(now, |c| c.late_completions) > 0);
    engine.request_drain();
    let outcome = end(engine);
    assert_nothing_lost(&outcome);
    let counters = &outcome.snapshot.silos[0].counters;
    assert_eq!(errors(&outcome.snapshot, ErrorCode::LaunchDeadline), counters.errored);
    assert_eq!(counters.quarantined, counters.errored);
    assert_eq!(counters.completed + counters.errored, counters.submitted, "{counters:?}");
    assert_eq!((counters.device_losses, counters.cpu_fallbacks), (0, 0));
}

#[test]
fn the_board_shows_a_shots_steps_in_order_and_ages_that_grow() {
    let _home = alone();
    let engine = Engine::start(config(&profile(), sampler(), None)).unwrap();
    let now = until(&engine, "answers", |now| total(now, |c| c.answered) > 1_000);
    for slot in &now.silos[0].slots {
        let times = &slot.times;
        let steps = [times.dispatched_ns, times.completed_ns, times.decoding_ns, times.answered_ns, times.harvested_ns];
        let taken: Vec<u64> = steps.into_iter().filter(|at| *at > 0).collect();
        assert!(taken.iter().all(|at| *at >= times.submitted_ns), "{slot:?}");
    }
    let later = until(&engine, "time", |later| later.at_ns > now.at_ns);
    assert!(later.threads.iter().zip(&now.threads).all(|(later, now)| later.frames >= now.frames));
    engine.request_drain();
    assert_nothing_lost(&end(engine));
}

#[test]
fn latency_counts_from_the_scheduled_arrival_and_both_are_shown() {
    let _home = alone();
    let mut profile = profile();
    // Far above any capacity: shots are scheduled long before a slot is free for them.
    profile.input.rate = Rate::Hz(1e8);
    let outcome = run(config(&profile, sampler(), Some(20_000)));
    assert_nothing_lost(&outcome);
    let silo = &outcome.snapshot.silos[0];
    assert_eq!((silo.latency.count(), silo.latency_from_submit.count()), (20_000, 20_000));
    let (scheduled, submitted) = (silo.latency.quantile_ns(0.9), silo.latency_from_submit.quantile_ns(0.9));
    assert!(scheduled > 2 * submitted, "{scheduled} from schedule, {submitted} from submission");
    let feed = silo.stages.iter().find(|stage| stage.name == "feed").unwrap();
    assert!(feed.time.quantile_ns(0.9) > scheduled / 2, "the wait for a slot is the feed's stage");
}
