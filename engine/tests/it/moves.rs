//! Streams that move between silos under load: each shot is answered once, in order, and as if nothing had moved.

use crate::rig::{LIMIT, assert_nothing_lost, beside_another, config, end, look_again, profile, sampler, total, until};
use pinwheel_engine::board::histogram::Histogram;
use pinwheel_engine::board::snapshot::{MovesView, Snapshot};
use pinwheel_engine::engine::{Authority, Engine, MoveRefused, MoveRequest};
use pinwheel_engine::profile::{HotAllocations, Rate, Silos};
use std::time::{Duration, Instant};

fn moves(snapshot: &Snapshot, of: fn(&MovesView) -> u64) -> u64 {
    snapshot.silos.iter().filter_map(|silo| silo.moves.as_ref()).map(of).sum()
}

#[test]
fn streams_that_move_all_the_time_lose_nothing_and_double_nothing() {
    let _home = beside_another();
    for (silos, streams) in [(2, 3), (3, 7)] {
        let mut profile = profile();
        profile.hot_allocations = HotAllocations::Abort;
        (profile.silos, profile.input.streams) = (Silos::Count(silos), streams);
        let engine = Engine::start(config(&profile, sampler(), None)).unwrap();
        let mut asked = 0;
        until(&engine, "moves with shots in them", |now| {
            let (stream, to) = (asked % streams, asked / streams % silos);
            match engine.moves().ask(MoveRequest { stream, to, lease_ms: 0, by: Authority::Port }) {
                Ok(()) => asked += 1,
                Err(refused) => assert_eq!(refused, MoveRefused::Full),
            }
            let is_seen = moves(now, |moves| moves.staged) > 0 && moves(now, |moves| moves.taken_in) > 0;
            let is_enough = total(now, |counters| counters.answered) >= 4_000 * u64::from(streams);
            is_seen && is_enough && moves(now, |moves| moves.done) > u64::from(streams)
        });
        engine.request_drain();
        let outcome = end(engine);
        assert_nothing_lost(&outcome);
        let snapshot = &outcome.snapshot;
        assert_eq!(total(snapshot, |counters| counters.errored), 0);
        assert_eq!(moves(snapshot, |moves| moves.sent_back), 0, "no shot is late for its route");
        assert_eq!(total(snapshot, |counters| counters.out_of_order), 0, "answers leave in sequence");
        assert!(snapshot.silos.iter().all(|silo| silo.moves.as_ref().is_some_and(|moves| moves.open.is_empty())));
    }
}

#[test]
fn a_stream_under_a_lease_stays_for_its_term_unless_an_operator_moves_it() {
    let _home = beside_another();
    let mut profile = profile();
    (profile.silos, profile.input.streams) = (Silos::Count(2), 2);
    profile.input.rate = Rate::Hz(2_000.0);
    let engine = Engine::start(config(&profile, sampler(), None)).unwrap();
    let is_at = |silo: u32| move |snapshot: &Snapshot| snapshot.streams[0].silo == silo;
    let forced = |snapshot: &Snapshot| {
        snapshot.silos.iter().filter_map(|silo| silo.arbiter.as_ref()).map(|pages| pages.forced).sum::<u64>()
    };
    until(&engine, "live", |snapshot| total(snapshot, |counters| counters.answered) > 10);
    let there = MoveRequest { stream: 0, to: 1, lease_ms: 4_000, by: Authority::Port };
    let back = MoveRequest { stream: 0, to: 0, lease_ms: 0, by: Authority::Port };
    let refused = |snapshot: &Snapshot| {
        let failure = snapshot.silos[0].moves.as_ref().and_then(|moves| moves.last_failure.as_ref());
        failure.is_some_and(|failure| failure.to == 0 && failure.why.contains("lease_active"))
    };
    let from = Instant::now();
    let (mut has_refused, mut has_forced) = (false, false);
    // A machine that stands still for the lease's term lets it end, and a move that takes too long
    // is given up: each once more.
    while !has_refused || !has_forced {
        assert!(from.elapsed() < LIMIT, "a refused move: {has_refused}, a broken lease: {has_forced}");
        let began = Instant::now();
        let is_over = || began.elapsed() > Duration::from_secs(4);
        asked(&engine, there);
        if !is_at(1)(&engine.snapshot()) {
            continue;
        }
        let snapshot = asked(&engine, back);
        assert!(is_at(1)(&snapshot) || is_over(), "it stays");
        has_refused |= is_at(1)(&snapshot) && refused(&snapshot);
        let before = forced(&snapshot);
        let snapshot = asked(&engine, MoveRequest { by: Authority::Operator, ..back });
        // Until the count is there, or never: then the lease was over.
        has_forced |= is_at(0)(&snapshot)
            && forced(&until(&engine, "the count", |now| forced(now) > before || is_over())) > before;
        crate::rig::brought(&engine, &[0], 0);
    }
    engine.request_drain();
    assert_nothing_lost(&end(engine));
}

/// Asks for a move of a stream whose feed is silo 0's, and waits until that has done with it, one way or another.
fn asked(engine: &Engine, request: MoveRequest) -> Snapshot {
    let of = |snapshot: &Snapshot| {
        let moves = snapshot.silos[0].moves.as_ref().unwrap();
        (moves.asked, moves.open.is_empty(), moves.done + moves.failed + moves.needless)
    };
    let before = until(engine, "an end of other moves", |snapshot| {
        let (asked, is_idle, ended) = of(snapshot);
        is_idle && asked == ended
    });
    engine.moves().ask(request).unwrap();
    until(engine, "the move's end", |snapshot| {
        let (asked, is_idle, ended) = of(snapshot);
        asked > of(&before).0 && is_idle && asked == ended
    })
}

/// Streams of [`others_ns`] that move, and all of them.
const MOVING: u32 = 3;
const STREAMS: u32 = 12;

/// What the answers of streams that stay take while others move, or not: p50, p99 and p99.9, ns;
/// and how many moves were made.
fn others_ns(moves_every: Option<Duration>) -> ([u64; 3], u64) {
    let mut profile = profile();
    (profile.silos, profile.input.streams) = (Silos::Count(3), STREAMS);
    profile.input.rate = Rate::Hz(20_000.0);
    let engine = Engine::start(config(&profile, sampler(), Some(80_000))).unwrap();
    let mut asked = 0u32;
    while !engine.is_finished() {
        let Some(every) = moves_every else {
            look_again();
            continue;
        };
        let request = MoveRequest { stream: asked % MOVING, to: asked / MOVING % 3, lease_ms: 0, by: Authority::Port };
        asked += u32::from(engine.moves().ask(request).is_ok());
        std::thread::park_timeout(every);
    }
    let outcome = end(engine);
    assert_nothing_lost(&outcome);
    let mut latency = Histogram::of(&[]);
    outcome.snapshot.streams.iter().skip(MOVING as usize).for_each(|stream| latency.merge(&stream.latency));
    ([0.5, 0.99, 0.999].map(|quantile| latency.quantile_ns(quantile)), moves(&outcome.snapshot, |moves| moves.done))
}

#[test]
#[ignore = "a measurement: a minute, on a machine with nothing else to do"]
fn streams_that_stay_hardly_notice_that_others_move_every_millisecond() {
    const PAIRS: usize = 7;
    let _home = beside_another();
    let (mut still, mut moved) = (Vec::new(), Vec::new());
    for pair in 0..PAIRS {
        // In turns the first of the two.
        for moves in [pair % 2 == 0, pair % 2 != 0] {
            let (found, made) = others_ns(moves.then_some(Duration::from_millis(1)));
            eprintln!("{} moves: p50, p99, p99.9 of the others {found:?} ns", made);
            if moves { moved.push(found) } else { still.push(found) }
        }
    }
    let median = |found: &[[u64; 3]], at: usize| {
        let mut values: Vec<u64> = found.iter().map(|found| found[at]).collect();
        values.sort_unstable();
        values[PAIRS / 2] as f64
    };
    for (at, name) in [(0, "p50"), (1, "p99"), (2, "p99.9")] {
        let (with, without) = (median(&moved, at), median(&still, at));
        eprintln!("{name}: median {with:.0} against {without:.0} ns, {:.2} times", with / without);
    }
    assert!(median(&moved, 2) < 1.2 * median(&still, 2));
}
