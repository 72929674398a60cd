//! Scrubbing: a snapshot of any moment of a long recording, compared with the minimum work for one.
//!
//! The recording is an hour at ten pictures a second, written by the recorder under virtual time
//! from a board of the lab's sizes with 2,000 shots between two pictures; it is kept in the
//! temporary directory during the measurement. Ours is the time from a randomly drawn instant to
//! its snapshot, with the file open. The peer has that instant's words in memory and makes the same
//! snapshot from them: the unavoidable part. `look_back` measures the same over the ten minutes in
//! a running recorder's memory, from scratch.

use super::measure::{CLOCK, Placement, Suite, median};
use pinwheel_engine::board::{self, Board, Place, Shape};
use pinwheel_engine::clock::Clock;
use pinwheel_engine::record::tape::Tape;
use pinwheel_engine::record::{Recorder, SNAPSHOT_PERIOD};
use pinwheel_engine::units::Ticks;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

const SHAPE: Shape = Shape { threads: 4, silos: 1, slots: 1024, workers: 8, decoders: 2, streams: 4 };
/// Shots between two pictures: 20,000 a second.
const SHOTS: u64 = 2_000;
const LOOKS: u64 = 200;
const REPETITIONS: usize = 3;
const PARTS: [&str; 3] = ["p50 ms", "p99 ms", "max ms"];

pub fn register(suite: &mut Suite) {
    let pictures = suite.effort.scale(36_000);
    let looks = suite.effort.scale(LOOKS);
    let kept = Arc::new(OnceLock::new());
    let made = move || -> Arc<tempfile::TempDir> {
        Arc::clone(kept.get_or_init(|| {
            let folder = tempfile::tempdir().unwrap();
            drop(recorded(pictures, Some(folder.path())));
            Arc::new(folder)
        }))
    };
    let own = (Placement::OneCore, REPETITIONS);
    let (here, there) = (made.clone(), made);
    let ours = suite.case("scrub to an instant", &PARTS, own, move || scrub(&here(), looks));
    let peer = suite.case("snapshot of words in memory", &PARTS, own, move || bare(&there(), looks));
    let back = suite.case("look back from scratch", &PARTS, own, move || look_back(looks.div_ceil(10)));
    for (part, tail) in ["p50", "p99", "max"].iter().enumerate() {
        suite.figure(format!("scrub/{tail}"), "ms", ours.part(part), Some(("snapshot-alone", peer.part(part))));
        suite.figure(
            format!("scrub/look_back_{tail}"),
            "ms",
            back.part(part),
            Some(("snapshot-alone", peer.part(part))),
        );
    }
}

/// A recorder that has taken `pictures` pictures.
fn recorded(pictures: u64, run: Option<&std::path::Path>) -> Recorder {
    let nanos = Arc::new(AtomicU64::new(1_000_000));
    let clock = Clock::virtual_time(Arc::clone(&nanos));
    let board = Arc::new(Board::create(SHAPE, Place::Private).unwrap());
    board::set(&board.header().nanos_per_tick_q32, 1 << 32);
    board::set(&board.header().start_ticks, clock.start().0);
    let mut recorder = Recorder::new(Arc::clone(&board), clock, run);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
    let mut draw = move |below: u64| random.next_u64() % below;
    let mut shot = 0u64;
    for _ in 0..pictures {
        let now = nanos.fetch_add(SNAPSHOT_PERIOD.0, Ordering::Relaxed);
        for _ in 0..SHOTS {
            answer(&board, shot, now, &mut draw);
            shot += 1;
        }
        for thread in (0..SHAPE.threads as usize).map(|index| board.thread(index)) {
            board::set(&thread.heartbeat, now + draw(1_000));
            board::add(&thread.frames, 30_000 + draw(9_000));
            (0..300).for_each(|_| thread.frame_gap.record(200 + draw(9_000)));
        }
        recorder.step();
    }
    recorder
}

/// Writes one shot's path to the board.
fn answer(board: &Board, shot: u64, now: u64, draw: &mut impl FnMut(u64) -> u64) {
    let stamps = &board.slots(0)[(shot % u64::from(SHAPE.slots)) as usize];
    let mut at = now + shot % SHOTS * 50_000;
    board::set(&stamps.sequence, shot / 4);
    for word in [&stamps.scheduled, &stamps.submitted, &stamps.dispatched, &stamps.completed, &stamps.decoding] {
        board::set(word, at);
        at += draw(20_000);
    }
    board::set(&stamps.answered, at);
    board::set(&stamps.harvested, if shot % SHOTS > SHOTS - 50 { 0 } else { at + 500 });
    let latency = board.latency(0);
    for histogram in [&latency.total, &latency.from_submit].into_iter().chain(&latency.stages) {
        histogram.record(20_000 + draw(150_000));
    }
    board.stream_harvest((shot % 4) as usize).latency.record(20_000 + draw(150_000));
}

/// Instants drawn over the whole of `tape`.
fn instants(tape: &Tape, looks: u64) -> Vec<Ticks> {
    let (from, to) = tape.span().unwrap();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(11);
    (0..looks).map(|_| Ticks(from.0 + random.next_u64() % (to.0 - from.0))).collect()
}

fn scrub(folder: &tempfile::TempDir, looks: u64) -> Vec<f64> {
    let mut tape = Tape::open(folder.path()).unwrap();
    let took = instants(&tape, looks).into_iter().map(|at| {
        timed(|| {
            let moment = tape.at(at).unwrap().unwrap();
            std::hint::black_box(moment.snapshot().unwrap());
        })
    });
    judged(took.collect())
}

fn bare(folder: &tempfile::TempDir, looks: u64) -> Vec<f64> {
    let mut tape = Tape::open(folder.path()).unwrap();
    let moment = tape.at(instants(&tape, 1)[0]).unwrap().unwrap();
    judged((0..looks).map(|_| timed(|| drop(std::hint::black_box(moment.snapshot().unwrap())))).collect())
}

/// Ten minutes in memory; each look opens them anew, like a console's first look.
fn look_back(looks: u64) -> Vec<f64> {
    static RECORDER: OnceLock<pinwheel_engine::record::RecentRecording> = OnceLock::new();
    let look_back = RECORDER.get_or_init(|| recorded(6_000, None).recent_recording());
    let asked = instants(&look_back.tape().unwrap(), looks.max(2));
    let took = asked.into_iter().map(|at| {
        timed(|| {
            let moment = look_back.tape().unwrap().at(at).unwrap().unwrap();
            std::hint::black_box(moment.snapshot().unwrap());
        })
    });
    judged(took.collect())
}

/// Milliseconds that `body` takes.
fn timed(body: impl FnOnce()) -> f64 {
    let from = CLOCK.ticks();
    body();
    CLOCK.rate().nanos(CLOCK.ticks().since(from)).0 as f64 / 1e6
}

fn judged(mut took: Vec<f64>) -> Vec<f64> {
    took.sort_by(f64::total_cmp);
    let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize];
    vec![median(&took), at(0.99), at(1.0)]
}
