//! Three hops between hot threads: feed → role → role → feed, each over a ring of the engine's, each to the other core.
//!
//! One message at a time, every [`EVERY`], so that what is measured is the way and no queue. The clock is read when the
//! feed writes and when the message is back in a feed's hands; the frames of both threads lie in between. The aim is a
//! p99 of at most 1 µs, or of four bare round trips between the same cores, whichever is larger. On a machine that takes
//! its cores away for a hundredth of the time nothing has such a p99: bare round trips at the same pace stand beside.

use super::measure::{CLOCK, CORES, Placement, Suite, pin_to, ping_pong};
use super::threads::{HotThreads, each, shared};
use pinwheel_edge::ring::line;
use pinwheel_edge::spin::{Phase, SpinPolicy};
use pinwheel_engine::board::histogram::Histogram;
use pinwheel_engine::units::{Nanos, Ticks};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// From one message to the next.
const EVERY: Nanos = Nanos(10_000);
const MESSAGES: u64 = 40_000;
const CAPACITY: usize = 64;
const PARTS: [&str; 3] = ["p50", "p99", "p99.9"];

/// Registers the area `hops`.
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

/// Two lines and two loops, at the same pace: what the machine takes of two hops, without anything of ours.
fn bare(messages: u64) -> Vec<f64> {
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

fn quantiles(times_ns: &[u64]) -> Vec<f64> {
    let times = Histogram::of(times_ns);
    [0.5, 0.99, 0.999].map(|q| times.quantile_ns(q) as f64).to_vec()
}

#[repr(align(128))]
struct Line(AtomicU64);

fn three_hops(messages: u64) -> Vec<f64> {
    let shared = shared(2);
    let ((mut out, mut first_in), (mut first_out, mut second_in), (mut second_out, mut back)) =
        (line::channel::<Ticks>(CAPACITY), line::channel::<Ticks>(CAPACITY), line::channel::<Ticks>(CAPACITY));
    let done = Arc::new(AtomicU64::new(0));
    let (every, arrived) = (CLOCK.rate().ticks(EVERY), Arc::clone(&done));
    let mut next = Ticks(0);
    let feed = each(move |frame| {
        let now = frame.ticks();
        u32::from(
            now >= next && out.push(now).is_ok() && {
                next = now.plus(every);
                true
            },
        )
    });
    let first = each(move |_| first_in.pop().map_or(0, |sent| u32::from(first_out.push(sent).is_ok())));
    let second = each(move |_| second_in.pop().map_or(0, |sent| u32::from(second_out.push(sent).is_ok())));
    let mut times = Vec::with_capacity(messages as usize);
    let (sender, found) = std::sync::mpsc::channel();
    let collect = each(move |frame| {
        let Some(sent) = back.pop() else { return 0 };
        if times.len() < times.capacity() {
            times.push(CLOCK.rate().nanos(frame.ticks().since(sent)).0);
            if times.len() == times.capacity() {
                let _ = sender.send(std::mem::take(&mut times));
                arrived.store(1, Ordering::Relaxed);
            }
        }
        1
    });
    let plan = [(CORES.here, vec![feed, second]), (CORES.there, vec![first, collect])];
    let running = HotThreads::start(&shared, SpinPolicy::Prod, plan);
    shared.phase.advance(Phase::Live);
    while done.load(Ordering::Relaxed) == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    shared.phase.advance(Phase::Shutdown);
    running.join();
    quantiles(&found.recv().unwrap())
}
