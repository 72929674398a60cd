//! Streams that move between silos under load: each shot is answered once, in order, and as if nothing had moved.

use crate::rig::{alone, assert_nothing_lost, config, end, look_again, profile, sampler, total, until};
use pinwheel_engine::board::snapshot::{MovesView, Snapshot};
use pinwheel_engine::engine::{Authority, Engine, MoveRefused, MoveRequest};
use pinwheel_engine::profile::{HotAllocations, Rate, Silos};
use std::time::{Duration, Instant};

fn moves(snapshot: &Snapshot, of: fn(&MovesView) -> u64) -> u64 {
    snapshot.silos.iter().filter_map(|silo| silo.moves.as_ref()).map(of).sum()
}

#[test]
fn streams_that_move_all_the_time_lose_nothing_and_double_nothing() {
    let _alone = alone();
    for (silos, streams) in [(2, 3), (3, 7)] {
        let mut profile = profile();
        profile.hot_allocations = HotAllocations::Abort;
        (profile.silos, profile.input.streams) = (Silos::Count(silos), streams);
        let engine = Engine::start(config(&profile, sampler(), Some(20_000 * u64::from(streams)))).unwrap();
        let mut asked = 0;
        while !engine.is_finished() {
            let (stream, to) = (asked % streams, asked / streams % silos);
            match engine.move_stream(MoveRequest { stream, to, lease_ms: 0, by: Authority::Port }) {
                Ok(()) => asked += 1,
                Err(refused) => assert_eq!(refused, MoveRefused::Full),
            }
            look_again();
        }
        let outcome = end(engine);
        assert_nothing_lost(&outcome);
        let snapshot = &outcome.snapshot;
        assert_eq!(total(snapshot, |counters| counters.errored), 0);
        let (done, failed) = (moves(snapshot, |moves| moves.done), moves(snapshot, |moves| moves.failed));
        assert!(done > u64::from(streams), "{done} moves of {asked} made, {failed} given up");
        assert!(moves(snapshot, |moves| moves.staged) > 0 && moves(snapshot, |moves| moves.taken_in) > 0);
        assert_eq!(moves(snapshot, |moves| moves.sent_back), 0, "no shot is late for its route");
        assert_eq!(total(snapshot, |counters| counters.out_of_order), 0, "answers leave in sequence");
        assert!(snapshot.silos.iter().all(|silo| silo.moves.as_ref().is_some_and(|moves| moves.open.is_empty())));
    }
}

#[test]
fn a_stream_under_a_lease_stays_for_its_term_unless_an_operator_moves_it() {
    let _alone = alone();
    let mut profile = profile();
    (profile.silos, profile.input.streams) = (Silos::Count(2), 2);
    profile.input.rate = Rate::Hz(2_000.0);
    let engine = Engine::start(config(&profile, sampler(), None)).unwrap();
    let is_at = |silo: u32| move |snapshot: &Snapshot| snapshot.streams[0].silo == silo;
    let forced = |snapshot: &Snapshot| {
        snapshot.silos.iter().filter_map(|silo| silo.arbiter.as_ref()).map(|pages| pages.forced).sum::<u64>()
    };
    until(&engine, "live", |snapshot| total(snapshot, |counters| counters.answered) > 10);
    let began = Instant::now();
    engine.move_stream(MoveRequest { stream: 0, to: 1, lease_ms: 4_000, by: Authority::Port }).unwrap();
    until(&engine, "the move", is_at(1));
    let back = MoveRequest { stream: 0, to: 0, lease_ms: 0, by: Authority::Port };
    engine.move_stream(back).unwrap();
    let snapshot = until(&engine, "the failure", |snapshot| moves(snapshot, |moves| moves.failed) == 1);
    assert!(is_at(1)(&snapshot), "it stays");
    let failure = snapshot.silos[0].moves.as_ref().and_then(|moves| moves.last_failure.clone()).unwrap();
    assert!(failure.why.contains("lease_active"), "{failure:?}");
    until(&engine, "the end of that move", |snapshot| snapshot.silos[0].moves.as_ref().unwrap().open.is_empty());
    engine.move_stream(MoveRequest { by: Authority::Operator, ..back }).unwrap();
    until(&engine, "the forced move", is_at(0));
    // A machine that stood still for the lease's term has let it end.
    let is_over = began.elapsed() > Duration::from_secs(4);
    until(&engine, "the broken lease's count", |snapshot| is_over || forced(snapshot) == 1);
    engine.request_drain();
    assert_nothing_lost(&end(engine));
}
