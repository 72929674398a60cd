//! Streams measured together: both are read at one sequence number, and what is read is what their answers say.

use crate::rig::{alone, assert_nothing_lost, config, profile, run, sampler};
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::profile::{HotAllocations, Silos};

fn sum(snapshot: &Snapshot, of: impl Fn(&pinwheel_engine::board::snapshot::Counters) -> u64) -> u64 {
    snapshot.silos.iter().map(|silo| of(&silo.counters)).sum()
}

#[test]
fn every_pair_of_streams_is_read_at_one_number_of_both_and_says_what_their_answers_say() {
    let _alone = alone();
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
    let _alone = alone();
    let mut profile = profile();
    profile.input.streams = 2;
    profile.input.joint_every = Some(10);
    // The first stream has its tenth shot, the second has nine.
    let outcome = run(config(&profile, sampler(), Some(19)));
    assert_nothing_lost(&outcome);
    let counters = &outcome.snapshot.silos[0].counters;
    assert_eq!((counters.joint_read, counters.joint_refused), (0, 1));
}
