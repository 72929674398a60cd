//! Cost of the path per shot: dispatch and its surroundings, with a null device and a null decoder.
//!
//! *One core*: all roles on one thread, in a frame like the engine's; the breakdown is the ticks
//! between roles. *Two threads*, cut in two places: the decoder alone on the second thread
//! (`threads`), or graph, decoder and harvest together (`threads_split`). `no_device`: without the
//! null device; the peers have none either.
//!
//! The peer does the same work over bounded `crossbeam` channels: shots copied, taken by a pool,
//! answers collected, each sequence number and answer checked. On one core and on two threads it
//! runs twice: *bare*, where it measures nothing, and *measured*, where it takes the same six
//! stamps and records the same histograms (eight of a silo, one of a stream) in `hdrhistogram`. No
//! peer has deadlines, tickets or a board.

use super::channels;
use super::input::{Input, parity};
use super::measure::{CLOCK, CORES, Effort, Placement, Suite, median};
use super::roles::{NullSilo, ROLES, STREAMS, check, null_silo};
use super::threads::{HotThreads, shared_on};
use pinwheel_edge::spin::{Phase, SpinPolicy};
use pinwheel_engine::board;
use pinwheel_engine::hot::{Frame, Scratch};
use pinwheel_engine::units::Ticks;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// Shots of one window; a repetition's reading is its median window, so that preempted ones do not
/// count.
const WINDOW: u64 = 2_048;

pub fn register(suite: &mut Suite) {
    let input = parity(suite.effort.scale(100_000));
    let repetitions = 15;
    let one = (Placement::OneCore, repetitions);
    let parts: Vec<&str> = ["total"].into_iter().chain(ROLES).collect();
    let (bare, wide, narrow) = (input.clone(), input.clone(), input.clone());
    let direct = suite.case("path, no device", &parts, one, move || one_core(&bare, 0));
    let path = suite.case("path, 64 workers", &parts, one, move || one_core(&wide, 64));
    let narrow = suite.case("path, 8 workers", &parts, one, move || one_core(&narrow, 8));
    let (bare, measured) = (input.clone(), input.clone());
    let bare = suite.case("crossbeam-channel", &["total"], one, move || vec![channels::one_core(&bare, None)]);
    let measured = suite.case("crossbeam-channel+hdrhistogram", &["total"], one, move || {
        vec![channels::one_core(&measured, Some(channels::Meter::new(STREAMS, 2)))]
    });
    let two = (Placement::CrossCore, if suite.effort == Effort::Full { 9 } else { 2 });
    let (alone, ours, split) = (input.clone(), input.clone(), input.clone());
    let direct_threads =
        suite.case("path, 2 threads, no device", &["total"], two, move || vec![two_threads(&alone, 0, &["decode"])]);
    let threads = suite.case("path, 2 threads", &["total"], two, move || vec![two_threads(&ours, 64, &["decode"])]);
    let split = suite.case("path, 2 threads, split at graph", &["total"], two, move || {
        vec![two_threads(&split, 64, &["graph", "decode", "harvest"])]
    });
    let (bare_input, measured_input) = (input.clone(), input);
    let pool = suite.case("crossbeam-channel, pool", &["total"], two, move || vec![channels::pool(&bare_input, None)]);
    let measured_pool = suite.case("crossbeam-channel+hdrhistogram, pool", &["total"], two, move || {
        vec![channels::pool(&measured_input, Some(channels::Meter::new(STREAMS, 2)))]
    });

    suite.figure("dispatch/path_no_device", "ns/shot", direct, Some(("crossbeam-channel", bare)));
    let with_stamps = Some(("crossbeam-channel+hdrhistogram", measured));
    suite.figure("dispatch/path_no_device_measured", "ns/shot", direct, with_stamps);
    suite.figure("dispatch/path", "ns/shot", path, Some(("crossbeam-channel", bare)));
    suite.figure("dispatch/path_measured", "ns/shot", path, Some(("crossbeam-channel+hdrhistogram", measured)));
    suite.figure("dispatch/path_8_workers", "ns/shot", narrow, Some(("crossbeam-channel", bare)));
    for (index, role) in ROLES.iter().enumerate() {
        suite.figure(format!("dispatch/{role}"), "ns/shot", path.part(index + 1), None);
    }
    suite.figure("dispatch/threads_no_device", "ns/shot", direct_threads, Some(("crossbeam-channel-pool", pool)));
    suite.figure("dispatch/threads", "ns/shot", threads, Some(("crossbeam-channel-pool", pool)));
    let with_stamps = Some(("crossbeam-channel-pool+hdrhistogram", measured_pool));
    suite.figure("dispatch/threads_measured", "ns/shot", threads, with_stamps);
    suite.figure("dispatch/threads_split", "ns/shot", split, Some(("crossbeam-channel-pool", pool)));
}

/// Runs all shots through one thread; returns nanoseconds per shot in total, then by role.
fn one_core(input: &Input, workers: u32) -> Vec<f64> {
    let windows = by_role(null_silo(input, workers), input.shots.len() as u64, WINDOW);
    (0..=ROLES.len()).map(|part| median(&windows.iter().map(|window| window[part]).collect::<Vec<_>>())).collect()
}

/// Runs a silo of one decode worker through `shots`, all there are, on this thread; returns
/// nanoseconds per shot in total, then by role, for each window.
pub(super) fn by_role(mut silo: NullSilo, shots: u64, window: u64) -> Vec<[f64; 1 + ROLES.len()]> {
    let mut roles = silo.build();
    let board = silo.board;
    let (block, harvest) = (board.thread(0), board.harvest(0));
    let mut windows: Vec<[f64; 1 + ROLES.len()]> = Vec::new();
    let (mut spent, mut answered, mut scratch) = ([0u64; ROLES.len()], 0, Scratch::new());
    while board::get(&harvest.answered) < shots {
        let now = CLOCK.ticks();
        let mut frame = Frame::new(&CLOCK, now, Phase::Live, &mut scratch);
        let mut before = now;
        for (role, spent) in roles.iter_mut().zip(&mut spent) {
            board::set(&block.stage, role.kind() as u64 + 1);
            let work = catch_unwind(AssertUnwindSafe(|| role.work(&mut frame))).expect("no role panics");
            board::add(&block.items, u64::from(work.0));
            let after = CLOCK.ticks();
            *spent += after.since(before).0;
            before = after;
        }
        board::set(&block.heartbeat, now.0);
        board::add(&block.frames, 1);
        let taken = board::get(&harvest.answered) - answered;
        if taken >= window {
            let ns = |ticks: u64| CLOCK.rate().nanos(Ticks(ticks)).0 as f64 / taken as f64;
            let mut parts = [ns(spent.iter().sum()); 1 + ROLES.len()];
            parts[1..].iter_mut().zip(spent).for_each(|(part, ticks)| *part = ns(ticks));
            windows.push(parts);
            (spent, answered) = ([0; ROLES.len()], answered + taken);
        }
    }
    check(&board, shots);
    windows
}

/// Runs all shots through two hot threads of the engine, the roles `there` of [`ROLES`] on the
/// second; returns nanoseconds per shot.
fn two_threads(input: &Input, workers: u32, there: &[&str]) -> f64 {
    let mut silo = null_silo(input, workers);
    let shared = shared_on(Arc::clone(&silo.board));
    let (mut here_specs, mut there_specs) = (Vec::new(), Vec::new());
    for (role, spec) in ROLES.iter().zip(silo.specs.drain(..)) {
        if there.contains(role) { &mut there_specs } else { &mut here_specs }.push(spec);
    }
    let running = HotThreads::start(&shared, SpinPolicy::Prod, [(CORES.there, there_specs), (CORES.here, here_specs)]);
    let shots = input.shots.len() as u64;
    let from = CLOCK.ticks();
    shared.phase.advance(Phase::Live);
    while board::get(&silo.board.harvest(0).answered) < shots {
        // This thread waits on a hot thread's core: each look takes that core from it.
        std::thread::sleep(Duration::from_millis(1));
    }
    let last = silo.board.slots(0).iter().map(|slot| board::get(&slot.harvested)).max().expect("a silo has slots");
    shared.phase.advance(Phase::Shutdown);
    running.join();
    check(&silo.board, shots);
    CLOCK.rate().nanos(Ticks(last).since(from)).0 as f64 / shots as f64
}
