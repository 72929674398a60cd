//! Jitter: regularity of a hot thread's frames, compared with a loop that only reads the counter.
//!
//! Both run alone on the same core under the same conditions, in alternation, and record each gap
//! into the same kind of histogram. Gaps in both come from the machine (ticks, interrupts, the
//! hypervisor); gaps only in the thread come from the engine. The quantiles are nearly always met,
//! so the number of gaps above 5 µs per second, their share of time and the longest are also
//! reported. On an isolated core, p99.99 below 5 µs passes, otherwise it fails.

use super::measure::{CLOCK, CORES, Placement, Reading, Suite};
use super::threads::{HotThreads, each, shared};
use pinwheel_edge::spin::{Phase, SpinPolicy};
use pinwheel_engine::board::histogram::{Histogram, HistogramBlock};
use pinwheel_engine::board::{Board, Place, Shape};
use pinwheel_engine::units::Nanos;
use std::time::Duration;

/// Shortest gap that counts as noise.
const NOISE_NS: u64 = 5_000;
/// Turns of each loop; 20 s together in a full run.
const TURNS: usize = 8;
const TURN_MS: u64 = 2_500;

const PARTS: [&str; 4] = ["p99.99 ns", "gaps/s", "noise %", "max ns"];

pub fn register(suite: &mut Suite) {
    let span = Duration::from_millis(suite.effort.scale(TURN_MS));
    let own = (Placement::Own, TURNS);
    let ours = suite.case("jitter, hot thread", &PARTS, own, move || hot(span));
    let bare = suite.case("jitter, bare loop", &PARTS, own, move || bare(span));
    let part = |reading: Reading, index| reading.part(index);
    for (index, (name, unit)) in
        [("p9999", "ns"), ("gaps_over_5us", "1/s"), ("noise_share", "%"), ("max", "ns")].into_iter().enumerate()
    {
        suite.figure(format!("jitter/{name}"), unit, part(ours, index), Some(("bare-loop", part(bare, index))));
    }
}

/// The figures of a turn's gaps.
fn judged(gaps: &Histogram, span: Duration) -> Vec<f64> {
    let (count, sum_ns) = gaps.above(NOISE_NS);
    let p9999_ns = gaps.quantile_ns(0.9999);
    if is_isolated(CORES.here) {
        println!("# jitter on isolated core {}: {}", CORES.here, if p9999_ns < NOISE_NS { "passed" } else { "FAILED" });
    }
    let share = 100.0 * sum_ns as f64 / span.as_nanos() as f64;
    vec![p9999_ns as f64, count as f64 / span.as_secs_f64(), share, gaps.max_ns() as f64]
}

/// The frame loop with a role that does nothing.
fn hot(span: Duration) -> Vec<f64> {
    let shared = shared(1);
    let running = HotThreads::start(&shared, SpinPolicy::Prod, [(CORES.here, vec![each(|_| 0)])]);
    shared.phase.advance(Phase::Live);
    std::thread::sleep(span / 10);
    let gaps = &shared.board.thread(0).frame_gap;
    let before = gaps.snapshot();
    std::thread::sleep(span);
    let found = gaps.snapshot().since(&before);
    shared.phase.advance(Phase::Shutdown);
    running.join();
    judged(&found, span)
}

/// The smallest loop that can detect a gap.
fn bare(span: Duration) -> Vec<f64> {
    let shape = Shape { threads: 1, silos: 1, slots: 8, workers: 1, decoders: 1, streams: 1 };
    let board = Board::create(shape, Place::Private).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            super::measure::pin_to(CORES.here);
            watch(&board.thread(0).frame_gap, span);
        });
    });
    judged(&board.thread(0).frame_gap.snapshot(), span)
}

fn watch(gaps: &HistogramBlock, span: Duration) {
    let (rate, from) = (CLOCK.rate(), CLOCK.ticks());
    let until = from.plus(rate.ticks(Nanos(span.as_nanos() as u64)));
    let mut last = from;
    while last < until {
        let now = CLOCK.ticks();
        gaps.record(rate.nanos(now.since(last)).0);
        last = now;
        std::hint::spin_loop();
    }
}

/// Whether the kernel keeps all other work off `core`.
fn is_isolated(core: u32) -> bool {
    let list = std::fs::read_to_string("/sys/devices/system/cpu/isolated").unwrap_or_default();
    list.trim().split(',').any(|range| {
        let mut ends = range.split('-').map_while(|end| end.parse::<u32>().ok());
        ends.next().is_some_and(|first| (first..=ends.next().unwrap_or(first)).contains(&core))
    })
}
