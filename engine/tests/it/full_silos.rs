//! Silos that get more than they can do: they give streams away all the same, say why not where
//! they cannot, and are full no longer than shots wait.

use crate::rig::{assert_nothing_lost, beside_another, config, end, execute, profile, sampler, switch, until};
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::engine::{Command, Config, Engine, SiloCommand};
use pinwheel_engine::profile::{
    Device, Diagnostics, Latency, Overflow, OverflowStrategy, PlaceBy, Profile, Rate, Silos, TakesPart, Weights,
};

/// Two silos of two workers that take 2 ms each, so 1,000 shots a second at most in each.
fn slow(strategy: OverflowStrategy, streams: u32, rate_hz: f64) -> Profile {
    let mut profile = profile();
    profile.device = Device::Sim { latency: Latency::Fixed { us: 2_000.0 } };
    (profile.silos, profile.workers, profile.input.streams) = (Silos::Count(2), 2, streams);
    profile.input.rate = Rate::Hz(rate_hz);
    profile.placement.overflow = Overflow { strategy, deadline_ms: 60_000, keep_shots: 16 };
    profile.limits.drain_grace_s = 60;
    profile
}

fn is_full(silo: usize) -> impl FnMut(&Snapshot) -> bool {
    move |now| now.silos[silo].overflow.full_for_ns.is_some()
}

fn sent_elsewhere(now: &Snapshot) -> u64 {
    let outcomes = now.silos.iter().flat_map(|silo| &silo.overflow.outcomes);
    outcomes.filter(|counted| counted.outcome == "sent_elsewhere").map(|counted| counted.count).sum()
}

fn hindrance(now: &Snapshot) -> Option<String> {
    now.placement.as_ref()?.hindrance.clone()
}

/// What the first silo has when it is asked takes it a second to answer: ten times the patience of a step.
#[test]
fn a_stream_leaves_a_silo_whose_long_ring_is_full() {
    let _home = beside_another();
    let mut profile = slow(OverflowStrategy::Block, 4, 1_600.0);
    profile.slots = 1_024;
    profile.input.weights = Weights::Each(vec![10.0, 1.0, 10.0, 1.0]);
    let engine = Engine::start(config(&profile, sampler(), None)).unwrap();
    until(&engine, "a full ring", is_full(0));
    execute(&engine, Command::Move { stream: 2, to: 1 }).unwrap();
    let failed = |now: &Snapshot| now.silos[0].moves.as_ref().unwrap().failed;
    let seen = until(&engine, "the move's end", |now| now.streams[2].silo == 1 || failed(now) > 0);
    assert_eq!(failed(&seen), 0, "{:?}", seen.silos[0].moves.as_ref().unwrap().last_failure);
    engine.request_drain();
    assert_nothing_lost(&end(engine));
}

#[test]
fn a_full_silo_is_drained_with_one_request_for_each_stream() {
    let _home = beside_another();
    let mut profile = slow(OverflowStrategy::Block, 8, 3_000.0);
    (profile.slots, profile.limits.drain_grace_s) = (512, 120);
    let engine = Engine::start(config(&profile, sampler(), None)).unwrap();
    until(&engine, "a full ring", is_full(0));
    execute(&engine, Command::Silo { silo: 0, command: SiloCommand::Drain }).unwrap();
    let seen = until(&engine, "all streams elsewhere", |now| now.streams.iter().all(|stream| stream.silo == 1));
    let moves = seen.silos[0].moves.as_ref().unwrap();
    assert_eq!((moves.asked - moves.needless, moves.failed), (4, 0), "{moves:?}");
    assert!(moves.needless <= 4, "one that is on its way is not asked for: {moves:?}");
    engine.request_drain();
    assert_nothing_lost(&end(engine));
}

#[test]
fn a_rate_without_a_limit_ends_what_had_overflowed() {
    let _home = beside_another();
    let mut profile = slow(OverflowStrategy::CpuFallback, 4, 20_000.0);
    profile.decoders = pinwheel_engine::profile::Decoders::Count(1);
    let engine = Engine::start(config(&profile, sampler(), None)).unwrap();
    until(&engine, "a full ring", is_full(0));
    execute(&engine, Command::Rate { hz: None }).unwrap();
    let mut is_full = is_full(0);
    until(&engine, "the end of it", |now| !is_full(now));
    engine.request_drain();
    assert_nothing_lost(&end(engine));
}

#[test]
fn a_stream_that_fills_a_silo_alone_stays_and_the_engine_says_so() {
    let _home = beside_another();
    let mut profile = slow(OverflowStrategy::Migrate, 1, 20_000.0);
    (profile.placement.streams, profile.placement.refresh_ms) = (TakesPart::All, 50);
    // The first silo comes first, and the stream is there: it is placed without a move.
    profile.placement.by = PlaceBy::RoundRobin;
    let engine = Engine::start(config(&profile, sampler(), None)).unwrap();
    let is_said =
        |now: &Snapshot| hindrance(now).is_some_and(|text| text.contains("none of its streams fits elsewhere"));
    let seen = until(&engine, "why it stays", is_said);
    // On a machine that stood still the first silo may have been unknown.
    let has_moved = seen.silos.iter().filter_map(|silo| silo.moves.as_ref()).any(|moves| moves.asked > 0);
    assert!(has_moved || sent_elsewhere(&seen) == 0, "nothing was sent anywhere else than where it waited");
    engine.request_drain();
    let outcome = end(engine);
    assert_nothing_lost(&outcome);
}

#[test]
fn migrate_that_is_switched_on_live_says_what_it_misses_even_without_diagnostics() {
    let _home = beside_another();
    let mut profile = slow(OverflowStrategy::Block, 4, 20_000.0);
    (profile.diagnostics, profile.placement.refresh_ms) = (Diagnostics::Off, 50);
    let engine = Engine::start(config(&profile, sampler(), None)).unwrap();
    until(&engine, "a full ring", is_full(0));
    // Which streams may move is decided at the start: none.
    (profile.placement.overflow.strategy, profile.placement.streams) = (OverflowStrategy::Migrate, TakesPart::All);
    switch(&engine, "migrate", &profile);
    assert_eq!(engine.profile().validate(), [], "another input starts with it");
    let is_said = |now: &Snapshot| hindrance(now).is_some_and(|text| text.contains("placement.streams"));
    until(&engine, "what is missing", is_said);
    engine.request_drain();
    assert_nothing_lost(&end(engine));
}

#[test]
fn predictions_that_no_window_could_put_in_order_are_refused_at_the_start() {
    let home = beside_another();
    let mut profile = slow(OverflowStrategy::Block, 4, 1.0);
    (profile.input.rate, profile.input.weights) = (Rate::Max, Weights::Zipf(1.1));
    profile.device = Device::Sim { latency: Latency::None };
    let start = |profile: &Profile, count: Option<u64>| {
        let sink = crate::rig::sink(profile, 1, Some(&home.file("predictions.b8")), None);
        Engine::start(Config { sink: Some(sink), ..config(profile, sampler(), count) })
    };
    let refused = start(&profile, None).err().unwrap().to_string();
    assert!(refused.contains("2 silos with unequal weights") && refused.contains("set a rate"), "{refused}");
    assert_nothing_lost(&end(start(&profile, Some(1_000)).unwrap()));
}
