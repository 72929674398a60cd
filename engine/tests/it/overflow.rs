//! Shots that arrive and find no slot, on a device that is too slow for them: each is answered
//! once, as the strategy says.

use crate::rig::{
    assert_nothing_lost, beside_another, brought, config, end, errors, execute, profile, run, sampler, total, until,
};
use pinwheel_edge::slot::word::ErrorCode;
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::engine::{Command, Engine};
use pinwheel_engine::profile::{Device, Latency, Overflow, OverflowStrategy, Profile, Rate, Silos, TakesPart};

const SHOTS: u64 = 1_000;

/// Two workers that take 2 ms each, so 1,000 shots a second at most; 20,000 arrive.
fn overrun(strategy: OverflowStrategy, deadline_ms: u32) -> Profile {
    let mut profile = profile();
    profile.device = Device::Sim { latency: Latency::Fixed { us: 2_000.0 } };
    profile.workers = 2;
    profile.input.rate = Rate::Hz(20_000.0);
    profile.placement.overflow = Overflow { strategy, deadline_ms, keep_shots: 16 };
    profile
}

fn counted(snapshot: &Snapshot, outcome: &str) -> u64 {
    let outcomes = snapshot.silos.iter().flat_map(|silo| &silo.overflow.outcomes);
    outcomes.filter(|counted| counted.outcome == outcome).map(|counted| counted.count).sum()
}

/// Runs it; everything is answered once, and stream and silo have counted the same.
fn played(strategy: OverflowStrategy, deadline_ms: u32) -> Snapshot {
    let _home = beside_another();
    let outcome = run(config(&overrun(strategy, deadline_ms), sampler(), Some(SHOTS)));
    assert_nothing_lost(&outcome);
    let snapshot = outcome.snapshot;
    assert_eq!(total(&snapshot, |c| c.answered), SHOTS);
    assert_eq!(snapshot.silos[0].graph.committed, SHOTS, "every number has had its turn in its stream");
    assert_eq!(snapshot.silos[0].graph.tombstones, total(&snapshot, |c| c.errored));
    let overflow = &snapshot.silos[0].overflow;
    assert_eq!(overflow.strategy, strategy.name());
    assert!(overflow.episodes > 0 && overflow.full_for_ns.is_none() && overflow.longest_ns > 0, "{overflow:?}");
    for outcome in ["waited", "expired", "dropped_oldest", "dropped_new", "sent_to_cpu", "sent_elsewhere"] {
        let of_streams = snapshot.streams.iter().flat_map(|stream| &stream.overflow);
        let of_streams: u64 = of_streams.filter(|one| one.outcome == outcome).map(|one| one.count).sum();
        assert_eq!(of_streams, counted(&snapshot, outcome), "{outcome}");
    }
    snapshot
}

#[test]
fn a_blocked_shot_is_answered_with_an_error_after_its_deadline() {
    // Once more where a decoder had no turn for so long that none came in time, or all of them at once.
    let has_both = (0..10).any(|_| {
        let snapshot = played(OverflowStrategy::Block, 20);
        let expired = counted(&snapshot, "expired");
        assert_eq!(
            (errors(&snapshot, ErrorCode::OverflowDeadline), total(&snapshot, |c| c.errored)),
            (expired, expired)
        );
        expired > 0 && counted(&snapshot, "waited") > 0
    });
    assert!(has_both, "shots that were answered in time, and shots that were not");
}

#[test]
fn with_time_to_wait_no_shot_is_refused() {
    let snapshot = played(OverflowStrategy::Block, 60_000);
    assert_eq!((counted(&snapshot, "expired"), total(&snapshot, |c| c.errored)), (0, 0));
}

#[test]
fn the_oldest_that_wait_are_dropped_and_answered() {
    let snapshot = played(OverflowStrategy::DropOldest, 60_000);
    let dropped = counted(&snapshot, "dropped_oldest");
    assert!(dropped > 0, "{:?}", snapshot.silos[0].overflow);
    assert_eq!((errors(&snapshot, ErrorCode::DroppedOldest), total(&snapshot, |c| c.errored)), (dropped, dropped));
}

#[test]
fn what_arrives_while_the_ring_is_full_is_dropped_and_answered() {
    let snapshot = played(OverflowStrategy::DropNew, 60_000);
    let dropped = counted(&snapshot, "dropped_new");
    assert!(dropped > 0 && counted(&snapshot, "waited") == 0, "{:?}", snapshot.silos[0].overflow);
    assert_eq!((errors(&snapshot, ErrorCode::DroppedNew), total(&snapshot, |c| c.errored)), (dropped, dropped));
}

#[test]
fn shots_go_past_a_device_that_is_too_slow_to_the_cpu_and_none_is_refused() {
    let snapshot = played(OverflowStrategy::CpuFallback, 60_000);
    let sent = counted(&snapshot, "sent_to_cpu");
    assert!(sent > 0, "{:?}", snapshot.silos[0].overflow);
    assert_eq!(total(&snapshot, |c| c.errored), 0);
    assert_eq!(total(&snapshot, |c| c.launched) + sent, SHOTS);
}

/// Of two silos that each take 200 shots a second one has all four streams, and 320 come: a busy
/// machine decodes them too.
#[test]
fn a_full_silo_gives_streams_away_and_what_waits_goes_with_them() {
    let _home = beside_another();
    let mut profile = overrun(OverflowStrategy::Migrate, 60_000);
    profile.device = Device::Sim { latency: Latency::Fixed { us: 10_000.0 } };
    (profile.silos, profile.input.streams) = (Silos::Count(2), 4);
    (profile.placement.streams, profile.placement.refresh_ms) = (TakesPart::All, 50);
    profile.input.rate = Rate::Hz(100.0);
    let engine = Engine::start(config(&profile, sampler(), None)).unwrap();
    let placed = |now: &Snapshot| now.placement.as_ref().is_some_and(|placement| placement.placed == 4);
    until(&engine, "placements", placed);
    // What waits for a slot is sent elsewhere; what arrives while its stream is on its way is handed on by the move.
    let went_along = |now: &Snapshot| {
        let moves = now.silos.iter().filter_map(|silo| silo.moves.as_ref());
        counted(now, "sent_elsewhere") + moves.map(|moves| moves.handed_on).sum::<u64>()
    };
    let before = went_along(&brought(&engine, &[0, 1, 2, 3], 0));
    execute(&engine, Command::Rate { hz: Some(320.0) }).unwrap();
    let is_relieved = |now: &Snapshot| {
        let away = now.streams.iter().filter(|stream| stream.silo == 1).count();
        let waits = now.silos.iter().any(|silo| silo.overflow.full_for_ns.is_some());
        away > 0 && !waits && went_along(now) > before
    };
    let seen = until(&engine, "relief", is_relieved);
    let decisions = seen.placement.unwrap().decisions;
    let moved = decisions.iter().find(|made| made.why == Some("overflow")).unwrap();
    assert_eq!((moved.what, moved.from, moved.to), ("move", Some(0), Some(1)));
    assert!(moved.share > 0.0 && moved.on.len() == 2, "{moved:?}");
    engine.request_drain();
    let outcome = end(engine);
    assert_nothing_lost(&outcome);
    assert_eq!(total(&outcome.snapshot, |c| c.errored), 0);
}

/// Two streams, both decoded in the other silo, which takes 1,000 shots a second of 20,000: the
/// feed that has them sees the lane full, and refuses what comes too late there.
#[test]
fn what_waits_for_another_silo_is_refused_as_what_waits_for_its_own() {
    let _home = beside_another();
    let mut profile = overrun(OverflowStrategy::Block, 20);
    (profile.silos, profile.input.streams) = (Silos::Count(2), 2);
    profile.input.rate = Rate::Hz(200.0);
    let engine = Engine::start(config(&profile, sampler(), None)).unwrap();
    until(&engine, "live", |now| total(now, |counters| counters.answered) > 10);
    brought(&engine, &[0], 1);
    execute(&engine, Command::Rate { hz: Some(20_000.0) }).unwrap();
    let expired = |now: &Snapshot| {
        let of = |stream: usize| {
            let outcomes = now.streams[stream].overflow.iter();
            outcomes.filter(|one| one.outcome == "expired").map(|one| one.count).sum::<u64>()
        };
        (of(0) > 0 && of(1) > 0).then(|| of(0) + of(1))
    };
    until(&engine, "refusals of both streams", |now| expired(now).is_some());
    engine.request_drain();
    let outcome = end(engine);
    assert_nothing_lost(&outcome);
    let snapshot = &outcome.snapshot;
    let refused = expired(snapshot).unwrap();
    assert_eq!((errors(snapshot, ErrorCode::OverflowDeadline), total(snapshot, |c| c.errored)), (refused, refused));
    assert_eq!(snapshot.silos.iter().map(|silo| silo.graph.tombstones).sum::<u64>(), refused);
}

#[test]
fn shots_that_come_as_fast_as_slots_come_free_find_one() {
    let _home = beside_another();
    let mut profile = overrun(OverflowStrategy::DropNew, 1);
    profile.input.rate = Rate::Max;
    let outcome = run(config(&profile, sampler(), Some(500)));
    assert_nothing_lost(&outcome);
    assert_eq!(total(&outcome.snapshot, |c| c.errored), 0);
}

#[test]
fn the_director_reads_the_queues_of_a_running_engine() {
    let _home = beside_another();
    let mut profile = overrun(OverflowStrategy::Block, 60_000);
    profile.placement.refresh_ms = 20;
    let engine = Engine::start(config(&profile, sampler(), None)).unwrap();
    // Shots of the warm-up fill the ring too, and wait for nobody.
    let full = |now: &Snapshot| {
        let silos = now.placement.iter().flat_map(|placement| &placement.silos);
        let mut rx = silos.filter(|silo| silo.unknown.is_none() && silo.waiting > 0).flat_map(|silo| &silo.queues);
        rx.any(|queue| queue.queue == "rx" && queue.utilization > 0.8 && queue.is_over)
    };
    let seen = until(&engine, "a full ring", full);
    let placement = seen.placement.unwrap();
    assert!(placement.crossings[0] > 0 && placement.silos[0].backlog_ns > 0, "{:?}", placement.silos);
    engine.request_drain();
    assert_nothing_lost(&end(engine));
}
