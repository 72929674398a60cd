//! Compares rings, queues and the histogram with common alternatives.
//!
//! 8-byte items. *Single*: one push, one pop; *batch*: 64 pushes, then 64 pops (the peer's chunks
//! if it has them). *Cross*: producer and consumer on the two cores, with a bare ping-pong for
//! comparison. A reading is the median window's.

use super::measure::{CLOCK, CORES, Placement, Suite, median, ns_per, pin_to};
use crossbeam_queue::ArrayQueue;
use pinwheel_edge::queue::fifo::Fifo;
use pinwheel_edge::ring::spsc;
use pinwheel_engine::board::{Board, Place, Shape};
use std::sync::Arc;

const CAPACITY: usize = 1024;
const BATCH: u64 = 64;
const WINDOW: u64 = 8_192;

/// Its name, and a function of the number of windows that returns nanoseconds per item.
type Candidate = (&'static str, fn(u64) -> f64);

/// The writing end of a queue of words.
trait Push: Send + 'static {
    fn push(&mut self, item: u64) -> bool;
}

/// The reading end.
trait Pop: Send + 'static {
    fn pop(&mut self) -> Option<u64>;
}

macro_rules! ends {
    ($($push:ty, $pop:ty;)*) => {$(
        impl Push for $push {
            #[inline(always)]
            fn push(&mut self, item: u64) -> bool {
                <$push>::push(self, item).is_ok()
            }
        }
        impl Pop for $pop {
            #[inline(always)]
            fn pop(&mut self) -> Option<u64> {
                <$pop>::pop(self).into_iter().next()
            }
        }
    )*};
}

ends! {
    spsc::Producer<u64>, spsc::Consumer<u64>;
    rtrb::Producer<u64>, rtrb::Consumer<u64>;
}

macro_rules! shared {
    ($($queue:ty;)*) => {$(
        impl Push for Arc<$queue> {
            #[inline(always)]
            fn push(&mut self, item: u64) -> bool {
                <$queue>::push(self, item).is_ok()
            }
        }
        impl Pop for Arc<$queue> {
            #[inline(always)]
            fn pop(&mut self) -> Option<u64> {
                <$queue>::pop(self)
            }
        }
    )*};
}

shared! {
    Fifo<u64>;
    ArrayQueue<u64>;
}

fn fifo() -> (Arc<Fifo<u64>>, Arc<Fifo<u64>>) {
    let queue = Arc::new(Fifo::new(CAPACITY));
    (Arc::clone(&queue), queue)
}

fn array_queue() -> (Arc<ArrayQueue<u64>>, Arc<ArrayQueue<u64>>) {
    let queue = Arc::new(ArrayQueue::new(CAPACITY));
    (Arc::clone(&queue), queue)
}

/// Registers the area `queue`.
pub fn register(suite: &mut Suite) {
    let windows = suite.effort.scale(64);
    let mut group = |name: &str, placement, of: [Candidate; 3]| {
        let readings = of.map(|(which, run)| {
            (which, suite.case(format!("{name}, {which}"), &["total"], (placement, 11), move || vec![run(windows)]))
        });
        for (peer, reading) in &readings[1..] {
            suite.figure(name, "ns/op", readings[0].1, Some((peer, *reading)));
        }
    };
    let (one, two) = (Placement::OneCore, Placement::CrossCore);
    group(
        "queue/spsc_single",
        one,
        [
            ("spsc", |n| single(spsc::channel(CAPACITY), n, 1)),
            ("rtrb", |n| single(rtrb::RingBuffer::new(CAPACITY), n, 1)),
            ("crossbeam-ArrayQueue", |n| single(array_queue(), n, 1)),
        ],
    );
    group(
        "queue/spsc_batch64",
        one,
        [
            ("spsc", |n| single(spsc::channel(CAPACITY), n, BATCH)),
            ("rtrb", |n| single(rtrb::RingBuffer::new(CAPACITY), n, BATCH)),
            ("rtrb-chunks", rtrb_chunks),
        ],
    );
    group(
        "queue/spsc_cross",
        two,
        [
            ("spsc", |n| cross(spsc::channel(CAPACITY), n)),
            ("rtrb", |n| cross(rtrb::RingBuffer::new(CAPACITY), n)),
            ("crossbeam-ArrayQueue", |n| cross(array_queue(), n)),
        ],
    );
    let mut pair = |name: &str, placement, run: [fn(u64) -> f64; 2]| {
        let case = |suite: &mut Suite, which, run: fn(u64) -> f64| {
            suite.case(format!("{name}, {which}"), &["total"], (placement, 11), move || vec![run(windows)])
        };
        let ours = case(suite, "fifo", run[0]);
        let theirs = case(suite, "crossbeam-ArrayQueue", run[1]);
        suite.figure(name, "ns/op", ours, Some(("crossbeam-ArrayQueue", theirs)));
    };
    pair("queue/fifo_single", one, [|n| single(fifo(), n, 1), |n| single(array_queue(), n, 1)]);
    pair("queue/fifo_batch64", one, [|n| single(fifo(), n, BATCH), |n| single(array_queue(), n, BATCH)]);
    pair("queue/fifo_cross", two, [|n| cross(fifo(), n), |n| cross(array_queue(), n)]);
}

/// One thread: `batch` pushes, then as many pops; returns nanoseconds per push and pop.
fn single((mut tx, mut rx): (impl Push, impl Pop), windows: u64, batch: u64) -> f64 {
    let mut readings = Vec::new();
    let (mut sent, mut taken) = (0u64, 0u64);
    for _ in 0..windows {
        let from = CLOCK.ticks();
        for _ in 0..WINDOW / batch {
            for _ in 0..batch {
                assert!(tx.push(sent), "there is room");
                sent += 1;
            }
            for _ in 0..batch {
                assert_eq!(rx.pop(), Some(taken));
                taken += 1;
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
        for _ in 0..WINDOW / BATCH {
            let chunk = tx.write_chunk_uninit(BATCH as usize).expect("there is room");
            chunk.fill_from_iter(sent..sent + BATCH);
            sent += BATCH;
            for item in rx.read_chunk(BATCH as usize).expect("they are there") {
                assert_eq!(item, taken);
                taken += 1;
            }
        }
        readings.push(ns_per(from, WINDOW));
    }
    median(&readings)
}

/// Producer on the measuring core, consumer on the other; returns nanoseconds per item, measured by
/// the consumer.
fn cross((mut tx, mut rx): (impl Push, impl Pop), windows: u64) -> f64 {
    let items = windows * WINDOW;
    let consumer = std::thread::spawn(move || {
        pin_to(CORES.there);
        let (mut readings, mut from) = (Vec::new(), CLOCK.ticks());
        for expected in 0..items {
            assert_eq!(wait(|| rx.pop()), expected);
            if (expected + 1).is_multiple_of(WINDOW) {
                readings.push(ns_per(from, WINDOW));
                from = CLOCK.ticks();
            }
        }
        median(&readings)
    });
    for item in 0..items {
        wait(|| tx.push(item).then_some(()));
    }
    consumer.join().unwrap()
}

/// Spins until `attempt` succeeds; yields after a while, for machines whose cores are shared.
fn wait<T>(mut attempt: impl FnMut() -> Option<T>) -> T {
    let mut spins = 0u32;
    loop {
        if let Some(found) = attempt() {
            return found;
        }
        spins += 1;
        if spins.is_multiple_of(4_096) {
            std::thread::yield_now();
        }
        std::hint::spin_loop();
    }
}

/// Registers the area `histogram`.
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
