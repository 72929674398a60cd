//! Compares the work-stealing deque with `crossbeam-deque` and `st3`, all with 8-byte items.
//!
//! *Pair*: one push, one pop. *Drain*: a window of pushes, then as many pops. *Steal*: a thief on
//! the other core takes items that the owner pushed before, one by one. *Busy*: cost of an owner's
//! operation while a thief steals.

use super::measure::{CLOCK, CORES, Placement, Suite, median, ns_per, pin_to};
use pinwheel_edge::queue::deque::{self, Steal};
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const CAPACITY: usize = 8_192;
const WINDOW: u64 = 4_096;

/// An owner's end and a thief's end.
trait Deque: Send + 'static {
    type Thief: Send + 'static;
    fn make() -> (Self, Self::Thief)
    where
        Self: Sized;
    fn push(&mut self, item: u64);
    fn pop(&mut self) -> Option<u64>;
    fn steal(thief: &mut Self::Thief) -> Option<u64>;
}

impl Deque for deque::Owner {
    type Thief = deque::Thief;

    fn make() -> (deque::Owner, deque::Thief) {
        deque::deque(CAPACITY)
    }

    #[inline(always)]
    fn push(&mut self, item: u64) {
        assert!(deque::Owner::push(self, item).is_ok(), "there is room");
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<u64> {
        deque::Owner::pop(self)
    }

    #[inline(always)]
    fn steal(thief: &mut deque::Thief) -> Option<u64> {
        match thief.steal() {
            Steal::Success(item) => Some(item),
            Steal::Empty | Steal::Retry => None,
        }
    }
}

impl Deque for crossbeam_deque::Worker<u64> {
    type Thief = crossbeam_deque::Stealer<u64>;

    fn make() -> (Self, Self::Thief) {
        let worker = crossbeam_deque::Worker::new_lifo();
        let stealer = worker.stealer();
        (worker, stealer)
    }

    #[inline(always)]
    fn push(&mut self, item: u64) {
        crossbeam_deque::Worker::push(self, item);
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<u64> {
        crossbeam_deque::Worker::pop(self)
    }

    #[inline(always)]
    fn steal(thief: &mut Self::Thief) -> Option<u64> {
        thief.steal().success()
    }
}

impl Deque for st3::lifo::Worker<u64> {
    type Thief = (st3::lifo::Stealer<u64>, st3::lifo::Worker<u64>);

    fn make() -> (Self, Self::Thief) {
        let worker = st3::lifo::Worker::new(CAPACITY);
        let stealer = worker.stealer();
        (worker, (stealer, st3::lifo::Worker::new(CAPACITY)))
    }

    #[inline(always)]
    fn push(&mut self, item: u64) {
        assert!(st3::lifo::Worker::push(self, item).is_ok(), "there is room");
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<u64> {
        st3::lifo::Worker::pop(self)
    }

    #[inline(always)]
    fn steal((thief, own): &mut Self::Thief) -> Option<u64> {
        thief.steal_and_pop(own, |_| 1).ok().map(|(item, _)| item)
    }
}

type Ours = deque::Owner;
type Crossbeam = crossbeam_deque::Worker<u64>;
type St3 = st3::lifo::Worker<u64>;

pub fn register(suite: &mut Suite) {
    let windows = suite.effort.scale(256);
    let mut group = |name: &str, placement, [ours, crossbeam, st3]: [fn(u64) -> f64; 3]| {
        let candidates = [("deque", ours), ("crossbeam-deque", crossbeam), ("st3", st3)];
        suite.compare(name, (placement, 9), windows, &candidates);
    };
    let (one, two) = (Placement::OneCore, Placement::CrossCore);
    group("deque/pair", one, [pair::<Ours>, pair::<Crossbeam>, pair::<St3>]);
    group("deque/drain", one, [drain::<Ours>, drain::<Crossbeam>, drain::<St3>]);
    group("deque/steal", two, [steal::<Ours>, steal::<Crossbeam>, steal::<St3>]);
    group("deque/busy_owner", two, [busy::<Ours>, busy::<Crossbeam>, busy::<St3>]);
}

/// Nanoseconds per push and pop.
fn pair<D: Deque>(windows: u64) -> f64 {
    let (mut owner, _thief) = D::make();
    let window = |_| {
        let from = CLOCK.ticks();
        for item in 0..WINDOW {
            owner.push(item);
            black_box(owner.pop());
        }
        ns_per(from, WINDOW)
    };
    median(&(0..windows).map(window).collect::<Vec<_>>())
}

/// Nanoseconds per push and pop, all pushes first.
fn drain<D: Deque>(windows: u64) -> f64 {
    let (mut owner, _thief) = D::make();
    let window = |_| {
        let from = CLOCK.ticks();
        (0..WINDOW).for_each(|item| owner.push(item));
        (0..WINDOW).for_each(|item| assert_eq!(owner.pop(), Some(WINDOW - 1 - item)));
        ns_per(from, WINDOW)
    };
    median(&(0..windows).map(window).collect::<Vec<_>>())
}

/// Nanoseconds per item of a thief on the other core.
fn steal<D: Deque>(windows: u64) -> f64 {
    let window = |_| {
        let (mut owner, mut thief) = D::make();
        (0..WINDOW).for_each(|item| owner.push(item));
        let stealing = std::thread::spawn(move || {
            pin_to(CORES.there);
            let from = CLOCK.ticks();
            for expected in 0..WINDOW {
                assert_eq!(D::steal(&mut thief), Some(expected), "no other thread takes items");
            }
            ns_per(from, WINDOW)
        });
        stealing.join().unwrap()
    };
    median(&(0..windows.div_ceil(16)).map(window).collect::<Vec<_>>())
}

/// Nanoseconds per owner's operation in bursts of 64 over a backlog, while a thief steals.
fn busy<D: Deque>(windows: u64) -> f64 {
    let (mut owner, mut thief) = D::make();
    let flags = Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
    let seen = Arc::clone(&flags);
    let stealing = std::thread::spawn(move || {
        pin_to(CORES.there);
        seen[0].store(true, Ordering::Relaxed);
        while !seen[1].load(Ordering::Relaxed) {
            black_box(D::steal(&mut thief));
        }
    });
    while !flags[0].load(Ordering::Relaxed) {
        std::hint::spin_loop();
    }
    let mut readings = Vec::new();
    for _ in 0..windows {
        (0..1_000).for_each(|item| owner.push(item));
        let from = CLOCK.ticks();
        for _ in 0..WINDOW / 128 {
            (0..64).for_each(|item| owner.push(item));
            for _ in 0..64 {
                black_box(owner.pop());
            }
        }
        readings.push(ns_per(from, WINDOW));
        while owner.pop().is_some() {}
    }
    flags[1].store(true, Ordering::Relaxed);
    stealing.join().unwrap();
    median(&readings)
}
