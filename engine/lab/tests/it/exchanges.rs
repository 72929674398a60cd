//! What a shot costs in locked exchanges: read-modify-writes of words that threads share.
//!
//! All roles of a silo run in turn on this thread, with the null device and the null decoder of the
//! benchmark `dispatch/path`. What is counted is the path of a shot, whatever the machine. Not
//! counted: what other crates than `edge` exchange, such as the counts of an `Arc`.

use pinwheel_edge::spin::Phase;
use pinwheel_edge::sync::exchanges;
use pinwheel_engine::board;
use pinwheel_engine::hot::{Frame, Scratch};
use std::sync::atomic::Ordering;

/// The clock that the benchmark's roles read: virtual here, so that each run counts the same.
mod measure {
    use pinwheel_engine::clock::Clock;
    use std::sync::atomic::AtomicU64;
    use std::sync::{Arc, LazyLock};

    pub(crate) static NANOS: LazyLock<Arc<AtomicU64>> = LazyLock::new(|| Arc::new(AtomicU64::new(1_000_000)));
    pub(crate) static CLOCK: LazyLock<Clock> = LazyLock::new(|| Clock::virtual_time(Arc::clone(&NANOS)));
}
#[path = "../../../bench/benches/input.rs"]
#[allow(dead_code, reason = "a benchmark reads larger inputs too")]
mod input;
#[path = "../../../bench/benches/roles.rs"]
#[allow(dead_code, reason = "a benchmark names the roles")]
mod roles;

const SHOTS: u64 = 10_000;
/// Virtual time that a role takes in a frame.
const STEP_NS: u64 = 1_000;

/// Locked exchanges that a shot may cost.
const EXCHANGES_A_SHOT_MAX: f64 = 1.0;

#[test]
fn a_shot_costs_few_locked_exchanges() {
    let mut silo = roles::null_silo(&input::parity(SHOTS), 64);
    let mut roles = silo.build();
    let harvest = silo.board.harvest(0);
    let (before, mut scratch) = (exchanges(), Scratch::new());
    while board::get(&harvest.answered) < SHOTS {
        let mut frame = Frame::new(&measure::CLOCK, measure::CLOCK.ticks(), Phase::Live, &mut scratch);
        for role in &mut roles {
            measure::NANOS.fetch_add(STEP_NS, Ordering::Relaxed);
            let _ = role.work(&mut frame);
        }
    }
    let mut lines = exchanges();
    for (line, times) in before {
        *lines.get_mut(&line).unwrap() -= times;
    }
    roles::check(&silo.board, SHOTS);
    let a_shot = |times: u64| times as f64 / SHOTS as f64;
    let total = a_shot(lines.values().sum());
    eprintln!("{total:.2} locked exchanges a shot");
    for ((file, line), times) in lines {
        eprintln!("{:6.2} {file}:{line}", a_shot(times));
    }
    // None at all: they are not counted.
    assert!(total > 0.0 && total <= EXCHANGES_A_SHOT_MAX, "{total:.2} locked exchanges a shot, by line above");
}
