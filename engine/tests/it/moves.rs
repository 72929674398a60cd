//! Streams that move between silos under load: each shot is answered once, in order, and as if nothing had moved.

use crate::rig::{alone, assert_nothing_lost, config, end, look_again, profile, sampler, total};
use pinwheel_engine::board::snapshot::MovesView;
use pinwheel_engine::engine::{Engine, MoveRefused, MoveRequest};
use pinwheel_engine::profile::HotAllocations;

fn moves(snapshot: &pinwheel_engine::board::snapshot::Snapshot, of: fn(&MovesView) -> u64) -> u64 {
    snapshot.silos.iter().filter_map(|silo| silo.moves.as_ref()).map(of).sum()
}

#[test]
fn streams_that_move_all_the_time_lose_nothing_and_double_nothing() {
    let _alone = alone();
    for (silos, streams) in [(2, 3), (3, 7)] {
        let mut profile = profile();
        profile.hot_allocations = HotAllocations::Abort;
        (profile.silos, profile.input.streams) = (silos, streams);
        let engine = Engine::start(config(&profile, sampler(), Some(20_000 * u64::from(streams)))).unwrap();
        let mut asked = 0;
        while !engine.is_finished() {
            let (stream, to) = (asked % streams, asked / streams % silos);
            match engine.move_stream(MoveRequest { stream, to, lease_ms: 0 }) {
                Ok(()) => asked += 1,
                Err(refused) => assert_eq!(refused, MoveRefused::Full),
            }
            look_again();
        }
        let outcome = end(engine);
        assert_nothing_lost(&outcome);
        let snapshot = &outcome.snapshot;
        assert_eq!(total(snapshot, |counters| counters.errored), 0);
        assert_eq!(total(snapshot, |counters| counters.out_of_order), 0);
        let (done, failed) = (moves(snapshot, |moves| moves.done), moves(snapshot, |moves| moves.failed));
        assert!(done > u64::from(streams), "{done} moves of {asked} made, {failed} given up");
        assert!(moves(snapshot, |moves| moves.staged) > 0 && moves(snapshot, |moves| moves.taken_in) > 0);
        assert_eq!(moves(snapshot, |moves| moves.sent_back), 0, "no shot is late for its route");
        assert!(snapshot.silos.iter().all(|silo| silo.moves.as_ref().is_some_and(|moves| moves.open.is_empty())));
    }
}
