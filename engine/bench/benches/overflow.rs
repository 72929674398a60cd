//! Overflow: how long shots find no free slot after a burst, by strategy; and how long until
//! streams have left a permanently overloaded silo.
//!
//! The device completes 4,000 shots a second (four workers of 1 ms each). 2,000 arrive, and for a
//! tenth of a second 12,000: 800 more than it can complete. Recovery counts from the end of the
//! burst until no shot waits outside the ring. Shots may wait for 30 ms, so under `Block` recovery
//! takes 60: those of the burst are gone after 30, and the arrivals meanwhile are half of the
//! device's capacity. The peer waits without a limit, like a queue without a strategy. Under
//! `Migrate` all streams of two such silos are in one, 5,000 shots arrive permanently, and recovery
//! counts from the first shot that waits until none does.

use super::measure::{CLOCK, Placement, Reading, Suite};
use super::overhead::{live, unrecorded};
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::code::bundled_named;
use pinwheel_engine::engine::{Actor, Command, Config, Engine, Input};
use pinwheel_engine::profile::{Device, Latency, Overflow, OverflowStrategy, Profile, Rate, Silos, TakesPart};
use pinwheel_engine::units::Ticks;
use std::sync::Arc;
use std::time::Duration;

const SETTLES: Duration = Duration::from_millis(200);
const LOOK: Duration = Duration::from_micros(500);
const BURST: Duration = Duration::from_millis(100);
const BASE_HZ: f64 = 2_000.0;
const BURST_HZ: f64 = 12_000.0;
const SKEWED_HZ: f64 = 5_000.0;
const BURSTS: u64 = 10;
const WAIT_MS: u32 = 30;
const PATIENT_MS: u32 = 60_000;
const STREAMS: u32 = 6;
/// An overload that lasts longer is reported with this time.
const GIVEN_UP_MS: f64 = 5_000.0;
/// Longest wait for any condition.
const LIMIT: Duration = Duration::from_secs(20);
const PARTS: [&str; 3] = ["ms to recover, median", "ms, longest", "% of the shots refused"];

pub fn register(suite: &mut Suite) {
    let own = (Placement::Own, 3);
    let bursts = suite.effort.scale(BURSTS);
    let mut case =
        |name: &str, strategy, wait_ms| suite.case(name, &PARTS, own, move || after_bursts(strategy, wait_ms, bursts));
    let waits = case("a queue that waits without a limit", OverflowStrategy::Block, PATIENT_MS);
    let strategies = [
        OverflowStrategy::Block,
        OverflowStrategy::DropOldest,
        OverflowStrategy::DropNew,
        OverflowStrategy::CpuFallback,
    ];
    let found: Vec<(OverflowStrategy, Reading)> =
        strategies.iter().map(|strategy| (*strategy, case(strategy.name(), *strategy, WAIT_MS))).collect();
    for (strategy, reading) in found {
        for (part, name) in [(0, "recovery"), (1, "recovery_max")] {
            let name = format!("overflow/{}/{name}", strategy.name());
            suite.figure(name, "ms", reading.part(part), Some(("waits without a limit", waits.part(part))));
        }
    }
    let engines = suite.effort.scale(8);
    let migrates = suite.case("Migrate, overloaded for good", &PARTS, own, move || while_overloaded(engines));
    suite.figure("overflow/Migrate/recovery", "ms", migrates, None);
    suite.figure("overflow/Migrate/recovery_max", "ms", migrates.part(1), None);
}

fn config(strategy: OverflowStrategy, deadline_ms: u32, silos: u32) -> Config {
    let (mut profile, _) = Profile::load("lab", None).unwrap();
    (profile.silos, profile.slots, profile.workers) = (Silos::Count(silos), 64, 4);
    profile.device = Device::Sim { latency: Latency::Fixed { us: 1_000.0 } };
    profile.input.streams = STREAMS;
    profile.input.rate = Rate::Hz(if silos == 1 { BASE_HZ } else { BASE_HZ / 2.0 });
    profile.placement.overflow = Overflow { strategy, deadline_ms, keep_shots: 64 };
    profile.placement.streams = TakesPart::All;
    let model = bundled_named("surface_d3").unwrap();
    unrecorded(profile, Input::Sampler { model: Arc::new(model), name: "surface_d3".to_string(), seed: 1 })
}

fn waits(snapshot: &Snapshot) -> bool {
    snapshot.silos.iter().any(|silo| silo.overflow.full_for_ns.is_some())
}

fn ms_since(from: Ticks) -> f64 {
    CLOCK.rate().nanos(CLOCK.ticks().since(from)).0 as f64 / 1e6
}

/// Milliseconds until the condition holds.
fn until(engine: &Engine, what: &str, mut is_so: impl FnMut(&Snapshot) -> bool) -> f64 {
    let from = CLOCK.ticks();
    loop {
        let now = engine.snapshot();
        if is_so(&now) {
            break;
        }
        let homes: Vec<u32> = now.streams.iter().map(|stream| stream.silo).collect();
        let overflow: Vec<_> = now.silos.iter().map(|silo| &silo.overflow).collect();
        let hindrance = now.placement.as_ref().and_then(|placement| placement.hindrance.as_deref());
        let is_late = ms_since(from) >= LIMIT.as_millis() as f64;
        assert!(!is_late, "{what} never came: streams at {homes:?}, {overflow:?}, {hindrance:?}");
        std::thread::sleep(LOOK);
    }
    ms_since(from)
}

fn summary(mut recoveries: Vec<f64>, engine: Engine) -> Vec<f64> {
    engine.request_drain();
    let outcome = engine.finish();
    assert!(outcome.unanswered.is_empty(), "every shot is answered");
    let sum = |of: fn(&pinwheel_engine::board::snapshot::Counters) -> u64| {
        outcome.snapshot.silos.iter().map(|silo| of(&silo.counters)).sum::<u64>() as f64
    };
    recoveries.sort_by(f64::total_cmp);
    let refused = sum(|counters| counters.errored) / sum(|counters| counters.answered).max(1.0);
    vec![recoveries[recoveries.len() / 2], recoveries[recoveries.len() - 1], refused * 100.0]
}

fn rate(engine: &Engine, hz: f64) {
    engine.execute(Command::Rate { hz: Some(hz) }, &Actor::this_process("")).unwrap();
}

fn after_bursts(strategy: OverflowStrategy, wait_ms: u32, bursts: u64) -> Vec<f64> {
    let engine = live(config(strategy, wait_ms, 1), SETTLES);
    let recover = |_| {
        rate(&engine, BURST_HZ);
        std::thread::sleep(BURST);
        rate(&engine, BASE_HZ);
        let took = until(&engine, "recovery", |now| !waits(now));
        std::thread::sleep(BURST);
        took
    };
    let recoveries = (0..bursts).map(recover).collect();
    summary(recoveries, engine)
}

fn while_overloaded(engines: u64) -> Vec<f64> {
    let mut found: Vec<Vec<f64>> = (0..engines).map(|_| once_overloaded()).collect();
    found.sort_by(|one, other| one[0].total_cmp(&other[0]));
    let refused = found.iter().map(|one| one[2]).fold(0.0, f64::max);
    vec![found[found.len() / 2][0], found[found.len() - 1][0], refused]
}

fn once_overloaded() -> Vec<f64> {
    let engine = live(config(OverflowStrategy::Migrate, 1_000, 2), SETTLES);
    let placed = |now: &Snapshot| {
        now.placement.as_ref().is_some_and(|placement| placement.placed == u64::from(STREAMS))
            && now.silos.iter().filter_map(|silo| silo.moves.as_ref()).all(|moves| moves.open.is_empty())
    };
    until(&engine, "placement", placed);
    // On a busy machine a move may be given up, so it is requested until it succeeds.
    until(&engine, "all streams in one silo", |now| {
        let is_quiet = now.silos.iter().filter_map(|silo| silo.moves.as_ref()).all(|moves| moves.open.is_empty());
        for (stream, _) in (0..).zip(&now.streams).filter(|(_, stream)| is_quiet && stream.silo != 0) {
            let _ = engine.execute(Command::Move { stream, to: 0 }, &Actor::this_process(""));
        }
        now.streams.iter().all(|stream| stream.silo == 0)
    });
    rate(&engine, SKEWED_HZ);
    until(&engine, "the first shot that waits", waits);
    // Recovered when no shot has waited for a while: a ring that fills again has not recovered.
    let (from, mut calm) = (CLOCK.ticks(), None);
    until(&engine, "recovery", |now| {
        calm = if waits(now) { None } else { calm.or_else(|| Some(CLOCK.ticks())) };
        calm.is_some_and(|since| ms_since(since) > 50.0) || ms_since(from) > GIVEN_UP_MS
    });
    // A machine without time for either silo has not recovered.
    let calm = calm.or_else(|| Some(CLOCK.ticks()));
    let took = CLOCK.rate().nanos(calm.unwrap_or(from).since(from)).0 as f64 / 1e6;
    summary(vec![took], engine)
}
