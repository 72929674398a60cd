//! Three hops between hot threads: feed → role → role → feed, each over a ring of the engine's,
//! each to the other core.
//!
//! One message at a time, each at the earliest [`EVERY`] after the previous one, so that no
//! queueing is measured. The clock is read when the feed writes and when a feed receives the
//! message again; frames of both threads lie in between. The aim is a p99 of at most 1 µs, or of
//! four bare round trips between the same cores, whichever is larger. A machine that preempts its
//! cores for a hundredth of the time has no such p99: bare round trips at the same pace are shown
//! for comparison.

use super::measure::{CLOCK, CORES, Placement, Suite, pin_to, ping_pong};
use super::threads::{HotThreads, each, shared};
use pinwheel_edge::ring::line;
use pinwheel_edge::spin::{Phase, SpinPolicy};
use pinwheel_engine::board::histogram::Histogram;
use pinwheel_engine::units::{Nanos, Ticks};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Interval between two messages.
pub const EVERY: Nanos = Nanos(10_000);
const MESSAGES: u64 = 40_000;
const CAPACITY: usize = 64;
const PARTS: [&str; 3] = ["p50", "p99", "p99.9"];

pub fn register(suite: &mut Suite) {
    let messages = suite.effort.scale(MESSAGES);
    let ours = suite.case("three hops", &PARTS, (Placement::CrossCore, 9), move || three_hops(messages));
    let bare = suite.case("bare round trips", &PARTS, (Placement::CrossCore, 9), move || bare(messages));
    let trip = suite.case("bare round trip", &["x4"], (Placement::CrossCore, 9), || vec![4.0 * ping_pong()]);
    suite.figure("hops/three_p50", "ns", ours, Some(("bare-round-trip", bare)));
    suite.figure("hops/three_p99", "ns", ours.part(1), Some(("bare-round-trip", bare.part(1))));
    suite.figure("hops/three_p99", "ns", ours.part(1), Some(("4-median-round-trips", trip)));
    suite.figure("hops/three_p999", "ns", ours.part(2), Some(("bare-round-trip", bare.part(2))));
}

/// Two lines and two loops at the same pace: the machine's share of two hops.
pub fn bare(messages: u64) -> Vec<f64> {
    let lines = Arc::new([const { Line(AtomicU64::new(0)) }; 2]);
    let echo = {
        let lines = Arc::clone(&lines);
        std::thread::spawn(move || {
            pin_to(CORES.there);
            for message in 1..=messages {
                while lines[0].0.load(Ordering::Acquire) != message {
                    std::hint::spin_loop();
                }
                lines[1].0.store(message, Ordering::Release);
            }
        })
    };
    let every = CLOCK.rate().ticks(EVERY);
    let (mut times, mut next) = (Vec::with_capacity(messages as usize), CLOCK.ticks());
    for message in 1..=messages {
        while CLOCK.ticks() < next {
            std::hint::spin_loop();
        }
        let sent = CLOCK.ticks();
        next = sent.plus(every);
        lines[0].0.store(message, Ordering::Release);
        while lines[1].0.load(Ordering::Acquire) != message {
            std::hint::spin_loop();
        }
        times.push(CLOCK.rate().nanos(CLOCK.ticks().since(sent)).0);
    }
    echo.join().unwrap();
    quantiles(&times)
}

/// p50, p99 and p99.9.
pub fn quantiles(times_ns: &[u64]) -> Vec<f64> {
    let times = Histogram::of(times_ns);
    [0.5, 0.99, 0.999].map(|q| times.quantile_ns(q) as f64).to_vec()
}

#[repr(align(128))]
struct Line(AtomicU64);

fn three_hops(messages: u64) -> Vec<f64> {
    let shared = shared(2);
    let ((mut out, mut first_in), (mut first_out, mut second_in), (mut second_out, mut back)) =
        (line::channel::<Ticks>(CAPACITY), line::channel::<Ticks>(CAPACITY), line::channel::<Ticks>(CAPACITY));
    let every = CLOCK.rate().ticks(EVERY);
    let arrived = Arc::new(AtomicU64::new(0));
    let (mut next, mut sent, taken) = (Ticks(0), 0, Arc::clone(&arrived));
    let feed = each(move |frame| {
        let now = frame.ticks();
        // Relaxed: only a count; the rings carry the times.
        if now < next || taken.load(Ordering::Relaxed) != sent || out.push(now).is_err() {
            return 0;
        }
        (next, sent) = (now.plus(every), sent + 1);
        1
    });
    let first = each(move |_| first_in.pop().map_or(0, |sent| u32::from(first_out.push(sent).is_ok())));
    let second = each(move |_| second_in.pop().map_or(0, |sent| u32::from(second_out.push(sent).is_ok())));
    let mut times = Vec::with_capacity(messages as usize);
    let (sender, found) = std::sync::mpsc::channel();
    let mut count = 0;
    let collect = each(move |frame| {
        let Some(sent) = back.pop() else { return 0 };
        let now = frame.ticks();
        count += 1;
        arrived.store(count, Ordering::Relaxed);
        if times.len() < times.capacity() {
            times.push(CLOCK.rate().nanos(now.since(sent)).0);
            if times.len() == times.capacity() {
                let _ = sender.send(std::mem::take(&mut times));
            }
        }
        1
    });
    let plan = [(CORES.here, vec![feed, second]), (CORES.there, vec![first, collect])];
    let running = HotThreads::start(&shared, SpinPolicy::Prod, plan);
    shared.phase.advance(Phase::Live);
    // Blocks: a polling thread would take a core away from the measurement.
    let times = found.recv().unwrap();
    shared.phase.advance(Phase::Shutdown);
    running.join();
    quantiles(&times)
}
