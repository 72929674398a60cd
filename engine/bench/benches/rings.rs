//! Compares rings between the two cores with common alternatives.
//!
//! A reading is the median window's, in nanoseconds per item measured by the consumer (by the
//! producers, in `fill`), or per round trip. Items have 8 bytes, or 56 in a cache line: a line ring
//! keeps its sequence word in the other 8. One and two producers: there are two cores, so two
//! producers share one, or fill a ring at once without a reader.

use super::contenders::{
    Aligned, BATCH, Batches, Channel, Contender, Content, DisruptorMulti, DisruptorSingle, Item, Line, Many, Mpsc,
    Queue, Ringbuf, Rtrb, Spsc,
};
use super::measure::{CLOCK, CORES, Candidate, Placement, Suite, median, ns_per, pin_to, ping_pong};
use std::sync::{Arc, Barrier};

const CAPACITY: usize = 1024;
const WINDOW: u64 = 8_192;
const TRIPS: u64 = 20_000;
/// Items pushed by each of two producers into a ring with room for all.
const FILL: u64 = 30_000;

pub fn register(suite: &mut Suite) {
    let windows = suite.effort.scale(64);
    let mut group = |name: &str, of: &[Candidate]| suite.compare(name, (Placement::CrossCore, 11), windows, of);
    spsc(&mut group);
    round_trips(&mut group);
    mpsc(&mut group);
}

fn spsc(group: &mut impl FnMut(&str, &[Candidate])) {
    group(
        "ring/spsc_8B",
        &[
            ("spsc", single::<u64, Spsc>),
            ("rtrb", single::<u64, Rtrb>),
            ("ringbuf", single::<u64, Ringbuf>),
            ("disruptor", single::<u64, DisruptorSingle>),
        ],
    );
    group(
        "ring/spsc_8B_batch64",
        &[
            ("spsc", batch::<u64, Spsc>),
            ("rtrb", batch::<u64, Rtrb>),
            ("ringbuf", batch::<u64, Ringbuf>),
            ("disruptor", batch::<u64, DisruptorSingle>),
        ],
    );
    group(
        "ring/line_64B",
        &[
            ("line", single::<Content, Line>),
            ("spsc", single::<Aligned, Spsc>),
            ("rtrb", single::<Aligned, Rtrb>),
            ("ringbuf", single::<Aligned, Ringbuf>),
            ("disruptor", single::<Aligned, DisruptorSingle>),
        ],
    );
    group(
        "ring/line_64B_batch64",
        &[
            ("line", batch::<Content, Line>),
            ("spsc", batch::<Aligned, Spsc>),
            ("rtrb", batch::<Aligned, Rtrb>),
            ("ringbuf", batch::<Aligned, Ringbuf>),
            ("disruptor", batch::<Aligned, DisruptorSingle>),
        ],
    );
}

fn round_trips(group: &mut impl FnMut(&str, &[Candidate])) {
    group(
        "ring/round_trip_8B",
        &[
            ("line", round_trip::<u64, Line>),
            ("two-lines", |_| ping_pong()),
            ("spsc", round_trip::<u64, Spsc>),
            ("rtrb", round_trip::<u64, Rtrb>),
        ],
    );
    group(
        "ring/round_trip_64B",
        &[
            ("line", round_trip::<Content, Line>),
            ("two-lines", |_| ping_pong()),
            ("spsc", round_trip::<Aligned, Spsc>),
            ("rtrb", round_trip::<Aligned, Rtrb>),
        ],
    );
}

fn mpsc(group: &mut impl FnMut(&str, &[Candidate])) {
    group(
        "ring/mpsc_1",
        &[
            ("mpsc", single::<u64, Mpsc>),
            ("crossbeam-ArrayQueue", single::<u64, Queue>),
            ("crossbeam-channel", single::<u64, Channel>),
            ("disruptor", single::<u64, DisruptorMulti>),
        ],
    );
    group(
        "ring/mpsc_2",
        &[
            ("mpsc", two_producers::<Mpsc>),
            ("crossbeam-ArrayQueue", two_producers::<Queue>),
            ("crossbeam-channel", two_producers::<Channel>),
            ("disruptor", two_producers::<DisruptorMulti>),
        ],
    );
    group(
        "ring/mpsc_2_fill",
        &[
            ("mpsc", fill::<Mpsc>),
            ("crossbeam-ArrayQueue", fill::<Queue>),
            ("crossbeam-channel", fill::<Channel>),
            ("disruptor", fill::<DisruptorMulti>),
        ],
    );
}

/// One producer on this core, its consumer on the other, item by item.
pub(super) fn single<T: Item, C: Contender<T>>(windows: u64) -> f64 {
    let push = |tx: &mut C::Tx, sent: u64, _: u64| usize::from(C::push(tx, T::of(sent)));
    stream::<T, C>(windows, push, |rx, taken| C::pop(rx, &mut |item| in_order(item, taken)))
}

/// As `single`, 64 at a time.
fn batch<T: Item, C: Batches<T>>(windows: u64) -> f64 {
    let push = |tx: &mut C::Tx, sent: u64, items: u64| {
        C::push_batch(tx, BATCH.min((items - sent) as usize), |index| T::of(sent + index as u64))
    };
    stream::<T, C>(4 * windows, push, |rx, taken| C::pop_batch(rx, &mut |item| in_order(item, taken)))
}

#[inline(always)]
pub(super) fn in_order(item: &impl Item, taken: &mut u64) {
    assert_eq!(item.number(), *taken, "in order");
    *taken += 1;
}

/// Streams items through `push` and `pop`, which return the number of items moved.
fn stream<T: Item, C: Contender<T>>(
    windows: u64,
    push: impl Fn(&mut C::Tx, u64, u64) -> usize,
    pop: impl Fn(&mut C::Rx, &mut u64) -> usize + Send + 'static,
) -> f64 {
    let items = windows * WINDOW;
    let (mut tx, mut rx) = C::make(CAPACITY);
    let consumer = std::thread::spawn(move || {
        pin_to(CORES.there);
        let mut meter = Meter::new();
        let mut taken = 0;
        while taken < items {
            spin_until(|| pop(&mut rx, &mut taken));
            meter.reached(taken);
        }
        median(&meter.readings)
    });
    let mut sent = 0;
    while sent < items {
        sent += spin_until(|| push(&mut tx, sent, items)) as u64;
    }
    consumer.join().unwrap()
}

/// Sends an item to the other core and back, over two rings.
fn round_trip<T: Item, C: Contender<T>>(_: u64) -> f64 {
    let ((mut there, mut arrived), (mut back, mut returned)) = (C::make(BATCH), C::make(BATCH));
    let partner = std::thread::spawn(move || {
        pin_to(CORES.there);
        for _ in 0..TRIPS {
            let mut found = T::default();
            spin_until(|| C::pop(&mut arrived, &mut |item| found = *item));
            assert!(C::push(&mut back, found), "there is one item");
        }
    });
    let mut trips = Vec::with_capacity(TRIPS as usize);
    for trip in 0..TRIPS {
        let from = CLOCK.ticks();
        assert!(C::push(&mut there, T::of(trip)), "there is one item");
        spin_until(|| C::pop(&mut returned, &mut |item| assert_eq!(item.number(), trip)));
        trips.push(ns_per(from, 1));
    }
    partner.join().unwrap();
    median(&trips)
}

/// Two producers that share this core, the consumer on the other.
fn two_producers<C: Many<u64>>(windows: u64) -> f64 {
    let items = windows / 2 * WINDOW;
    let (tx, mut rx) = C::make(CAPACITY);
    let producers: Vec<_> = [C::another(&tx), tx]
        .into_iter()
        .enumerate()
        .map(|(who, mut tx)| {
            std::thread::spawn(move || {
                pin_to(CORES.here);
                for item in 0..items / 2 {
                    spin_until(|| usize::from(C::push(&mut tx, item * 2 + who as u64)));
                }
            })
        })
        .collect();
    let consumer = std::thread::spawn(move || {
        pin_to(CORES.there);
        let (mut meter, mut taken, mut next) = (Meter::new(), 0, [0, 1]);
        while taken < items {
            spin_until(|| {
                C::pop(&mut rx, &mut |item| {
                    let expected = &mut next[(item % 2) as usize];
                    assert_eq!(item, expected, "each producer's items in their order");
                    *expected += 2;
                    taken += 1;
                })
            });
            meter.reached(taken);
        }
        median(&meter.readings)
    });
    let found = consumer.join().unwrap();
    producers.into_iter().for_each(|producer| producer.join().unwrap());
    found
}

/// Two producers on the two cores at once, without a reader: cost of a contended push.
fn fill<C: Many<u64>>(windows: u64) -> f64 {
    let rounds = (windows / 8).max(1);
    let readings: Vec<f64> = (0..rounds).map(|_| fill_once::<C>()).collect();
    median(&readings)
}

fn fill_once<C: Many<u64>>() -> f64 {
    let (mut tx, mut rx) = C::make(65_536);
    // Touches every slot, so that no push causes a page fault.
    (0..65_536).for_each(|item| assert!(C::push(&mut tx, item)));
    let mut taken = 0;
    while taken < 65_536 {
        taken += C::pop(&mut rx, &mut |_| ());
    }
    let mut other = C::another(&tx);
    // The other producer's lane, if it has one.
    (0..65_536).for_each(|item| assert!(C::push(&mut other, item)));
    taken = 0;
    while taken < 65_536 {
        taken += C::pop(&mut rx, &mut |_| ());
    }
    let start = Arc::new(Barrier::new(2));
    let [here, there] = [(tx, CORES.here), (other, CORES.there)].map(|(mut tx, core)| {
        let start = Arc::clone(&start);
        std::thread::spawn(move || {
            pin_to(core);
            start.wait();
            let from = CLOCK.ticks();
            (0..FILL).for_each(|item| assert!(C::push(&mut tx, item)));
            ns_per(from, FILL)
        })
    });
    let sum = here.join().unwrap() + there.join().unwrap();
    drop(rx);
    sum / 2.0
}

/// Times of completed windows.
struct Meter {
    readings: Vec<f64>,
    from: pinwheel_engine::units::Ticks,
    since: u64,
}

impl Meter {
    fn new() -> Meter {
        Meter { readings: Vec::new(), from: CLOCK.ticks(), since: 0 }
    }

    #[inline(always)]
    fn reached(&mut self, taken: u64) {
        if taken - self.since >= WINDOW {
            self.readings.push(ns_per(self.from, taken - self.since));
            (self.from, self.since) = (CLOCK.ticks(), taken);
        }
    }
}

/// Spins until `attempt` moves an item; yields after a while, for machines whose cores are shared.
#[inline(always)]
fn spin_until(mut attempt: impl FnMut() -> usize) -> usize {
    let mut spins = 0u32;
    loop {
        let count = attempt();
        if count > 0 {
            return count;
        }
        spins += 1;
        if spins.is_multiple_of(1_024) {
            std::thread::yield_now();
        }
        std::hint::spin_loop();
    }
}
