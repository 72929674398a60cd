//! Compares rings, queues and the histogram with common alternatives.
//!
//! 8-byte items. *Single*: one push, one pop; *batch*: 64 pushes, then 64 pops (the peer's chunks
//! if it has them). *Cross*: producer and consumer on the two cores, with a bare ping-pong for
//! comparison. A reading is the median window's.

use super::contenders::{BATCH, Contender, Queue, Rtrb, SharedFifo, Spsc};
use super::measure::{CLOCK, Candidate, Placement, Suite, median, ns_per};
use super::rings::{in_order, single as cross};
use pinwheel_engine::board::{Board, Place, Shape};

const CAPACITY: usize = 1024;
const WINDOW: u64 = 8_192;

pub fn register(suite: &mut Suite) {
    let windows = suite.effort.scale(64);
    let (one, two) = ((Placement::OneCore, 11), (Placement::CrossCore, 11));
    let peer = "crossbeam-ArrayQueue";
    let mut group = |name: &str, place, of: &[Candidate]| suite.compare(name, place, windows, of);
    group(
        "queue/spsc_single",
        one,
        &[("spsc", single::<Spsc, 1>), ("rtrb", single::<Rtrb, 1>), (peer, single::<Queue, 1>)],
    );
    group(
        "queue/spsc_batch64",
        one,
        &[("spsc", single::<Spsc, BATCH>), ("rtrb", single::<Rtrb, BATCH>), ("rtrb-chunks", rtrb_chunks)],
    );
    group(
        "queue/spsc_cross",
        two,
        &[("spsc", cross::<u64, Spsc>), ("rtrb", cross::<u64, Rtrb>), (peer, cross::<u64, Queue>)],
    );
    group("queue/fifo_single", one, &[("fifo", single::<SharedFifo, 1>), (peer, single::<Queue, 1>)]);
    group("queue/fifo_batch64", one, &[("fifo", single::<SharedFifo, BATCH>), (peer, single::<Queue, BATCH>)]);
    group("queue/fifo_cross", two, &[("fifo", cross::<u64, SharedFifo>), (peer, cross::<u64, Queue>)]);
}

/// One thread: a batch of pushes, then as many pops; returns nanoseconds per push and pop.
fn single<C: Contender<u64>, const SIZE: usize>(windows: u64) -> f64 {
    let (mut tx, mut rx) = C::make(CAPACITY);
    let mut readings = Vec::new();
    let (mut sent, mut taken) = (0u64, 0u64);
    for _ in 0..windows {
        let from = CLOCK.ticks();
        for _ in 0..WINDOW / SIZE as u64 {
            for _ in 0..SIZE {
                assert!(C::push(&mut tx, sent), "there is room");
                sent += 1;
            }
            for _ in 0..SIZE {
                assert_eq!(C::pop(&mut rx, &mut |item| in_order(item, &mut taken)), 1);
            }
        }
        readings.push(ns_per(from, WINDOW));
    }
    median(&readings)
}

fn rtrb_chunks(windows: u64) -> f64 {
    let (mut tx, mut rx) = rtrb::RingBuffer::<u64>::new(CAPACITY);
    let mut readings = Vec::new();
    let (mut sent, mut taken) = (0u64, 0u64);
    for _ in 0..windows {
        let from = CLOCK.ticks();
        for _ in 0..WINDOW / BATCH as u64 {
            let chunk = tx.write_chunk_uninit(BATCH).expect("there is room");
            chunk.fill_from_iter(sent..sent + BATCH as u64);
            sent += BATCH as u64;
            for item in rx.read_chunk(BATCH).expect("they are there") {
                assert_eq!(item, taken);
                taken += 1;
            }
        }
        readings.push(ns_per(from, WINDOW));
    }
    median(&readings)
}

pub fn register_histogram(suite: &mut Suite) {
    let windows = suite.effort.scale(64);
    let one = (Placement::OneCore, 11);
    let ours = suite.case("histogram record", &["total"], one, move || {
        let shape = Shape { threads: 1, silos: 1, slots: 8, workers: 1, decoders: 1, streams: 1 };
        let board = Board::create(shape, Place::Private).unwrap();
        let block = &board.latency(0).total;
        let found = record(windows, |value| block.record(value));
        assert_eq!(block.snapshot().count(), windows * WINDOW);
        vec![found]
    });
    let theirs = suite.case("hdrhistogram record", &["total"], one, move || {
        let mut histogram = hdrhistogram::Histogram::<u64>::new_with_bounds(1, 60_000_000_000, 2).unwrap();
        let found = record(windows, |value| histogram.saturating_record(value));
        assert_eq!(histogram.len(), windows * WINDOW);
        vec![found]
    });
    suite.figure("histogram/record", "ns/op", ours, Some(("hdrhistogram", theirs)));
}

/// Records values spread over latencies from 100 ns to 1 ms.
fn record(windows: u64, mut one: impl FnMut(u64)) -> f64 {
    let values: Vec<u64> =
        (0..WINDOW).map(|n| 100 << (n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 60).min(13)).map(|v| v + v / 3).collect();
    let mut readings = Vec::new();
    for _ in 0..windows {
        let from = CLOCK.ticks();
        for value in &values {
            one(*value);
        }
        readings.push(ns_per(from, WINDOW));
    }
    median(&readings)
}
