//! Streams measured together: both are read at one sequence number, and what is read is what their answers say.

use crate::rig::{assert_nothing_lost, beside_another, config, end, profile, run, sampler, until};
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::engine::{EndedBy, Engine};
use pinwheel_engine::profile::{HotAllocations, Profile, Rate, Silos};
use pinwheel_engine::roles::SiloState;
use pinwheel_engine::silo::SiloCommand;

fn sum(snapshot: &Snapshot, of: impl Fn(&pinwheel_engine::board::snapshot::Counters) -> u64) -> u64 {
    snapshot.silos.iter().map(|silo| of(&silo.counters)).sum()
}

#[test]
fn every_pair_of_streams_is_read_at_one_number_of_both_and_says_what_their_answers_say() {
    let _home = beside_another();
    for (streams, silos) in [(4, 1), (5, 2)] {
        let mut profile = profile();
        profile.hot_allocations = HotAllocations::Abort;
        profile.input.streams = streams;
        profile.silos = Silos::Count(silos);
        profile.input.joint_every = Some(10);
        let shots = 1_000 * u64::from(streams);
        let outcome = run(config(&profile, sampler(), Some(shots)));
        assert_nothing_lost(&outcome);
        let snapshot = &outcome.snapshot;
        let read = sum(snapshot, |counters| counters.joint_read);
        let refused = sum(snapshot, |counters| counters.joint_refused);
        // Two pairs of 1,000 shots each; the fifth stream is nobody's partner.
        assert_eq!(read + refused, 200, "{streams} streams");
        assert!(read > 100, "{read} read, {refused} given up");
        assert_eq!(sum(snapshot, |counters| counters.joint_consistent), read);
        for silo in &snapshot.silos {
            let pages = silo.arbiter.as_ref().expect("each silo's arbiter runs");
            assert_eq!(pages.pages, u64::from(streams));
        }
    }
}

#[test]
fn a_stream_whose_partner_sends_nothing_more_goes_on_without_the_readout() {
    let _home = beside_another();
    let mut profile = profile();
    profile.input.streams = 2;
    profile.input.joint_every = Some(10);
    // The first stream has its tenth shot, the second has nine.
    let outcome = run(config(&profile, sampler(), Some(19)));
    assert_nothing_lost(&outcome);
    let counters = &outcome.snapshot.silos[0].counters;
    assert_eq!((counters.joint_read, counters.joint_refused), (0, 1));
}

#[test]
fn a_run_whose_silos_have_one_stream_each_says_that_none_are_read_together() {
    let _home = beside_another();
    for streams in [1, 2] {
        let mut profile = profile();
        (profile.input.streams, profile.silos) = (streams, Silos::Count(streams));
        profile.input.joint_every = Some(10);
        let outcome = run(config(&profile, sampler(), Some(100)));
        assert_nothing_lost(&outcome);
        let notes = &outcome.snapshot.engine.notes;
        assert!(notes.iter().any(|note| note.starts_with("without effect: input.joint_every")), "{notes:?}");
    }
}

/// Two silos with two pairs each, at a rate that one of them can decode.
fn two_silos_of_pairs() -> Profile {
    let mut profile = profile();
    (profile.silos, profile.input.streams) = (Silos::Count(2), 8);
    profile.input.rate = Rate::Hz(20_000.0);
    profile.input.joint_every = Some(10);
    profile
}

/// Does `command` to `silo`, and waits for what comes of it, and for streams where `places` says.
fn and_see(engine: &Engine, silo: u32, command: SiloCommand, places: [u32; 2]) {
    engine.silo_commands().ask(silo, command).unwrap();
    let after = until(engine, "the command is done, and every pair is where it should be", |now| {
        let is_there = |stream: &pinwheel_engine::board::snapshot::StreamView| {
            u64::from(places[stream.id as usize % 2]) == u64::from(stream.silo)
        };
        now.silos[silo as usize].lifecycle.state == command.target_state() && now.streams.iter().all(is_there)
    });
    let read = sum(&after, |counters| counters.joint_read);
    until(engine, "readouts of all pairs", |now| sum(now, |counters| counters.joint_read) > read + 20);
}

#[test]
fn pairs_outlive_a_silo_that_dies_and_come_back_with_it() {
    let _home = beside_another();
    let engine = Engine::start(config(&two_silos_of_pairs(), sampler(), None)).unwrap();
    and_see(&engine, 0, SiloCommand::Kill, [1, 1]);
    and_see(&engine, 0, SiloCommand::Rejoin, [0, 1]);
    and_see(&engine, 1, SiloCommand::Drain, [0, 0]);
    and_see(&engine, 1, SiloCommand::Rejoin, [0, 1]);
    engine.request_drain();
    let outcome = end(engine);
    assert_eq!(outcome.ended_by, EndedBy::Drained, "{:?}", outcome.snapshot.engine.notes);
    assert_nothing_lost(&outcome);
    let read = sum(&outcome.snapshot, |counters| counters.joint_read);
    assert_eq!(sum(&outcome.snapshot, |counters| counters.joint_consistent), read);
    assert_eq!(outcome.snapshot.silos[0].lifecycle.state, SiloState::Live);
}
