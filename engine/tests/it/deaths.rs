//! Silos that die and come back while streams move: each shot is answered once, the others go on,
//! the streams are decoded elsewhere.

use crate::rig::{
    LIMIT, assert_nothing_lost, beside_another, config, end, errors, execute, look_again, profile, sampler, total,
    until,
};
use pinwheel_edge::slot::word::ErrorCode;
use pinwheel_engine::board::snapshot::{LifecycleView, Snapshot};
use pinwheel_engine::engine::{
    Authority, Command, EndedBy, Engine, MoveRefused, MoveRequest, Outcome, Refused, SiloCommand, SiloRefused,
};
use pinwheel_engine::profile::{Device, HotAllocations, Latency, Rate, RoleFault, Silos};
use pinwheel_engine::roles::RoleKind;
use pinwheel_engine::roles::SiloState;
use std::time::Instant;

fn sum(snapshot: &Snapshot, of: impl Fn(&LifecycleView) -> u64) -> u64 {
    snapshot.silos.iter().map(|silo| of(&silo.lifecycle)).sum()
}

/// Every shot was answered once, and with an error only those that a dead silo had.
fn assert_only_the_dead_erred(outcome: &Outcome) {
    assert_nothing_lost(outcome);
    let snapshot = &outcome.snapshot;
    let errored = total(snapshot, |counters| counters.errored);
    assert_eq!(
        (errored, errors(snapshot, ErrorCode::SiloDied)),
        (sum(snapshot, |lifecycle| lifecycle.errored), errored)
    );
}

/// Runs over three silos until so many shots are answered, and silos have died, left streams and
/// come back; a stream moves all the time, and silos die and come back in turn.
fn run_through_deaths(shots: u64) -> Outcome {
    let _home = beside_another();
    let mut profile = profile();
    profile.hot_allocations = HotAllocations::Abort;
    (profile.silos, profile.input.streams) = (Silos::Count(3), 6);
    let engine = Engine::start(config(&profile, sampler(), None)).unwrap();
    let commands = engine.silo_commands();
    let (mut asked, mut turn) = (0, 0);
    until(&engine, "deaths, successors and returns", |now| {
        let (stream, to) = (asked % 6, asked / 6 % 3);
        asked += 1;
        let request = MoveRequest { stream, to, lease_ms: 0, by: Authority::Port };
        let refused = engine.moves().ask(request).err();
        assert!(matches!(refused, None | Some(MoveRefused::Full | MoveRefused::Shut { .. })), "{refused:?}");
        let silo = turn % 3;
        match commands.state(silo) {
            // A command that already waits has the same effect.
            SiloState::Live => drop(commands.ask(silo, SiloCommand::Kill)),
            SiloState::Dead => turn += u32::from(commands.ask(silo, SiloCommand::Rejoin).is_ok()),
            _ => {}
        }
        let seen = |of: fn(&LifecycleView) -> u64| sum(now, of);
        let is_seen = seen(|lifecycle| lifecycle.deaths) > 2
            && seen(|lifecycle| lifecycle.rejoins) > 1
            && seen(|lifecycle| lifecycle.left) > 0;
        is_seen && total(now, |counters| counters.answered) >= shots
    });
    engine.request_drain();
    end(engine)
}

#[test]
fn twenty_thousand_shots_are_answered_once_while_silos_die_and_streams_move() {
    let outcome = run_through_deaths(20_000);
    assert_eq!(outcome.ended_by, EndedBy::Drained, "{:?}", outcome.snapshot.engine.notes);
    assert_only_the_dead_erred(&outcome);
    let snapshot = &outcome.snapshot;
    let (deaths, rejoins) = (sum(snapshot, |lifecycle| lifecycle.deaths), sum(snapshot, |lifecycle| lifecycle.rejoins));
    let worst = snapshot.silos.iter().map(|silo| silo.lifecycle.elsewhere.max_ns()).max();
    eprintln!("{deaths} deaths, {rejoins} returns, elsewhere after {worst:?} ns at most");
}

#[test]
#[ignore = "a million shots, minutes on two cores"]
fn a_million_shots_are_answered_once_while_silos_die_and_streams_move() {
    let outcome = run_through_deaths(1_000_000);
    assert_eq!(outcome.ended_by, EndedBy::Drained, "{:?}", outcome.snapshot.engine.notes);
    assert_only_the_dead_erred(&outcome);
}

/// Deeds on four silos in an order that nobody chose, several at a time: the last living one dies
/// never, successors die, drains are cut short by deaths, and the dead and the drained come back.
/// Each silo takes 4,000 shots a second, and more come.
#[test]
fn silos_that_die_drain_and_come_back_in_any_order_lose_nothing_while_more_comes_than_is_decoded() {
    let _home = beside_another();
    let mut profile = profile();
    (profile.silos, profile.input.streams, profile.workers) = (Silos::Count(4), 16, 4);
    profile.device = Device::Sim { latency: Latency::Fixed { us: 1_000.0 } };
    profile.limits.drain_grace_s = 60;
    let engine = Engine::start(config(&profile, sampler(), None)).unwrap();
    let commands = engine.silo_commands();
    let (mut seed, mut deaths_at_once) = (7u64, 0);
    let mut draw = |below: u32| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as u32 % below
    };
    let is_enough = |now: &Snapshot, at_once: usize| {
        let [deaths, drains] = [sum(now, |lifecycle| lifecycle.deaths), sum(now, |lifecycle| lifecycle.drains)];
        at_once == 3 && deaths > 6 && drains > 2 && total(now, |counters| counters.answered) > 5_000
    };
    let from = Instant::now();
    while !engine.is_finished() && !is_enough(&engine.snapshot(), deaths_at_once) {
        let (stream, to) = (draw(16), draw(4));
        // Refused is as good: what counts is what it meets.
        let _ = engine.moves().ask(MoveRequest { stream, to, lease_ms: 0, by: Authority::Port });
        let command = [SiloCommand::Drain, SiloCommand::Kill, SiloCommand::Kill, SiloCommand::Rejoin][draw(4) as usize];
        let _ = commands.ask(draw(4), command);
        let dead = (0..4).filter(|silo| matches!(commands.state(*silo), SiloState::Dead | SiloState::Dying)).count();
        deaths_at_once = deaths_at_once.max(dead);
        assert!(from.elapsed() < LIMIT, "{deaths_at_once} dead at once: {:?}", engine.snapshot().silos[0].lifecycle);
        look_again();
    }
    engine.request_drain();
    let outcome = end(engine);
    assert_eq!(outcome.ended_by, EndedBy::Drained, "{:?}", outcome.snapshot.engine.notes);
    assert_only_the_dead_erred(&outcome);
}

#[test]
fn a_role_that_dies_in_one_of_several_silos_ends_neither_the_run_nor_the_other_silos() {
    for role in [RoleKind::Dispatch, RoleKind::Device, RoleKind::Poll, RoleKind::Graph, RoleKind::Decode] {
        let _home = beside_another();
        let mut profile = profile();
        (profile.silos, profile.input.streams) = (Silos::Count(2), 4);
        profile.faults.role_panic = Some(RoleFault { role, after_items: 500 });
        let engine = Engine::start(config(&profile, sampler(), Some(20_000))).unwrap();
        let outcome = end(engine);
        assert_eq!(outcome.ended_by, EndedBy::Count, "{role}: {:?}", outcome.snapshot.engine.notes);
        assert_nothing_lost(&outcome);
        let lifecycle = &outcome.snapshot.silos[0].lifecycle;
        assert_eq!(
            (lifecycle.state, lifecycle.deaths, lifecycle.left, lifecycle.successor),
            (SiloState::Dead, 1, 2, Some(1)),
            "{role}"
        );
        assert!(lifecycle.why.contains(role.name()) && lifecycle.why.contains("hot/faulty.rs:"), "{}", lifecycle.why);
        assert!(outcome.snapshot.streams.iter().all(|stream| stream.silo == 1), "{role}");
    }
}

#[test]
fn a_panic_in_an_ingress_or_egress_role_ends_the_run_of_several_silos() {
    let _home = beside_another();
    let mut profile = profile();
    (profile.silos, profile.input.streams) = (Silos::Count(2), 4);
    profile.faults.role_panic = Some(RoleFault { role: RoleKind::Feed, after_items: 500 });
    // What the feed leaves behind never comes: the drain waits for its whole grace.
    profile.limits.drain_grace_s = 1;
    let outcome = end(Engine::start(config(&profile, sampler(), None)).unwrap());
    assert_eq!(outcome.ended_by, EndedBy::Fault);
}

#[test]
fn a_silo_is_drained_and_comes_back_without_an_error() {
    let _home = beside_another();
    let mut profile = profile();
    (profile.silos, profile.input.streams) = (Silos::Count(2), 4);
    profile.input.rate = Rate::Hz(5_000.0);
    let engine = Engine::start(config(&profile, sampler(), None)).unwrap();
    let on_silo = |silo, command| execute(&engine, Command::Silo { silo, command });
    until(&engine, "live", |snapshot| total(snapshot, |counters| counters.answered) > 10);
    on_silo(0, SiloCommand::Drain).unwrap();
    let drained = until(&engine, "drained", |snapshot| snapshot.silos[0].lifecycle.state == SiloState::Drained);
    assert!(drained.streams.iter().all(|stream| stream.silo == 1));
    let there = execute(&engine, Command::Move { stream: 0, to: 0 });
    assert!(matches!(there, Err(Refused::Move(MoveRefused::Shut { silo: 0 }))), "{there:?}");
    let killed = on_silo(1, SiloCommand::Kill);
    assert!(matches!(killed, Err(Refused::Silo(SiloRefused::Last { silo: 1 }))), "{killed:?}");
    on_silo(0, SiloCommand::Rejoin).unwrap();
    let (mut drains, mut since_ns) = (1, drained.at_ns);
    until(&engine, "its streams", |snapshot| {
        let lifecycle = &snapshot.silos[0].lifecycle;
        // Streams are asked to come home for 5 s only: on a machine that stood still for so long, once more.
        if snapshot.at_ns > since_ns + 20_000_000_000
            && lifecycle.state == SiloState::Live
            && lifecycle.drains == drains
        {
            (drains, since_ns) = (drains + 1, snapshot.at_ns);
            on_silo(0, SiloCommand::Drain).unwrap();
        }
        if lifecycle.state == SiloState::Drained && lifecycle.drains == drains {
            // Refused where it is on its way already.
            since_ns = on_silo(0, SiloCommand::Rejoin).map_or(since_ns, |_| snapshot.at_ns);
        }
        snapshot.streams.iter().all(|stream| stream.silo == stream.id % 2) && lifecycle.drains == drains
    });
    engine.request_drain();
    let outcome = end(engine);
    assert_nothing_lost(&outcome);
    assert_eq!(total(&outcome.snapshot, |counters| counters.errored), 0);
}

#[test]
fn a_single_silo_cannot_be_killed() {
    let _home = beside_another();
    let engine = Engine::start(config(&profile(), sampler(), None)).unwrap();
    let killed = execute(&engine, Command::Silo { silo: 0, command: SiloCommand::Kill });
    assert!(matches!(killed, Err(Refused::Silo(SiloRefused::Single))), "{killed:?}");
    engine.request_drain();
    assert_nothing_lost(&end(engine));
}
