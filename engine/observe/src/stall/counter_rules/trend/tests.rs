//! What runs out is said in time, with the time left; steps, noise and slow trends say nothing.
#![allow(clippy::unwrap_used, reason = "harness")]

use super::{CLOCK, DISK, MEMORY, SAMPLES, Trend, Trends};
use crate::board::alarms::Site;
use crate::board::{self, Board, Place, Shape};
use crate::clock::Correlation;
use crate::stall::counter_rules::Condition;
use crate::stall::verdict::Cause;
use crate::trees;
use crate::units::{Nanos, TickRate, Ticks};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tempfile::TempDir;

const S: u64 = 1_000_000_000;
const SLOTS: u32 = 1_000;

struct World {
    board: Board,
    root: TempDir,
    trends: Trends,
    at_s: u64,
}

fn world() -> World {
    let shape = Shape { threads: 1, silos: 1, slots: SLOTS, workers: 1, decoders: 1, streams: 1 };
    let root = tempfile::tempdir().unwrap();
    let trends = Trends::new(root.path(), TickRate::NANOS, 1);
    World { board: Board::create(shape, Place::Private).unwrap(), root, trends, at_s: 1 }
}

impl World {
    /// A second passes, then what runs out is asked for.
    fn second(&mut self) -> Vec<Condition> {
        self.at_s += 1;
        let mut found = Vec::new();
        self.trends.look(&self.board, self.at_s * S, None, &mut found);
        found
    }

    fn take_slots(&self, taken: f64) {
        board::set(&self.board.harvest(0).position, 5_000);
        board::set(&self.board.feed(0).position, 5_000 + taken as u64);
    }

    fn leave_memory(&self, kib: f64) {
        trees::write(self.root.path(), "proc/meminfo", &format!("MemAvailable: {kib:.0} kB\n"));
    }

    fn set_utc(&self, ahead_ns: f64) {
        let now_ns = self.at_s * S;
        let utc = Nanos(1_700_000_000 * S + now_ns.saturating_add_signed(ahead_ns as i64));
        self.board.clock().publish(&Correlation {
            ticks: Ticks(now_ns),
            monotonic: Nanos(now_ns),
            utc,
            width: Ticks(50),
        });
    }
}

/// The seconds at the end of the sentence.
fn said_s(condition: &Condition) -> f64 {
    let sentence = &condition.verdict.sentence;
    sentence.rsplit(' ').nth(1).unwrap().parse().unwrap()
}

/// Runs for two minutes of `set`, which takes the second; checks each time left by `true_left_s`,
/// and returns what was first said.
#[track_caller]
fn first_said(site: Site, mut set: impl FnMut(&World, f64), true_left_s: impl Fn(f64) -> f64) -> Option<(f64, String)> {
    let (mut world, mut first) = (world(), None);
    for second in 0..120 {
        set(&world, f64::from(second));
        for condition in world.second() {
            let left_s = true_left_s(f64::from(second));
            assert_eq!((condition.site, condition.verdict.cause), (site, Cause::RunningOut));
            let off = (said_s(&condition) - left_s).abs();
            assert!(off <= 0.3 * left_s + 1.0, "{left_s} s left at {second}: {}", condition.verdict.sentence);
            first.get_or_insert((left_s, condition.verdict.sentence));
        }
    }
    first
}

#[test]
fn each_resource_that_runs_out_is_said_with_the_time_left_within_30_percent() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
    let mut noise = move || f64::from(random.next_u32()) / f64::from(u32::MAX) - 0.5;
    // 10 slots a second from 50 on, each value wrong by up to 15: full at 95 s.
    let slots = |world: &World, second: f64| world.take_slots((50.0 + 10.0 * second + 30.0 * noise()).min(1e3));
    let (left_s, sentence) = first_said(Site::Silo(0, 0), slots, |second| 95.0 - second).unwrap();
    assert!((45.0..=80.0).contains(&left_s), "{left_s}");
    assert!(sentence.contains("of 1000 slots are taken") && sentence.contains(": all in"), "{sentence}");
    // 50 MiB a second of 4 GiB: none at 82 s.
    let memory = |world: &World, second: f64| world.leave_memory((4096.0 - 50.0 * second).max(0.0) * 1024.0);
    let (left_s, sentence) = first_said(MEMORY, memory, |second| 4096.0 / 50.0 - second).unwrap();
    assert!((50.0..=60.0).contains(&left_s), "{left_s}");
    assert!(sentence.contains("MiB of memory of the machine are left, 50.0 less each second"), "{sentence}");
    // A clock that is slewed as fast as the kernel does, from the first second on.
    let utc = |world: &World, second: f64| world.set_utc(second * 5e5);
    let (_, sentence) = first_said(CLOCK, utc, |_| 20.0).unwrap();
    assert!(sentence.contains("UTC gains 0.50 ms a second on the engine's counter: 10 ms in 20 s"), "{sentence}");
    let slow = |world: &World, second: f64| world.set_utc(second * -2.5e5);
    assert!(first_said(CLOCK, slow, |_| 40.0).unwrap().1.contains("UTC loses 0.25 ms"));
}

#[test]
fn a_disk_that_fills_is_said_until_its_own_limit() {
    let mut world = world();
    world.trends.sampled_ns = Some(u64::MAX - S);
    let mut said = Vec::new();
    for second in 0..100 {
        world.trends.disk.add(f64::from(second), 1_256.0 - 12.5 * f64::from(second));
        let found = world.second();
        said.extend(found.into_iter().map(|condition| (second, condition)));
    }
    let (first, condition) = &said[0];
    assert_eq!((*first, condition.site, said_s(condition)), (21, DISK, 59.0));
    assert!(condition.verdict.sentence.starts_with("994 MiB are free where the run is kept, 12.5 less each second"));
    assert_eq!(said.last().unwrap().0, 80, "from then on the disk's own rule holds");
}

#[test]
fn a_disk_below_its_limit_that_becomes_free_says_nothing() {
    let mut world = world();
    world.trends.sampled_ns = Some(u64::MAX - S);
    for second in 0..30 {
        world.trends.disk.add(f64::from(second), 100.0 + 10.0 * f64::from(second));
        assert_eq!(world.second(), []);
    }
}

#[test]
fn steps_noise_slow_trends_and_what_becomes_free_say_nothing() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(11);
    let mut noise = move || f64::from(random.next_u32()) / f64::from(u32::MAX) - 0.5;
    let never = |site, set: &mut dyn FnMut(&World, f64)| {
        let said = first_said(site, set, |_| f64::NAN);
        assert_eq!(said, None);
    };
    never(MEMORY, &mut |world, second| world.leave_memory(if second < 60.0 { 8e6 } else { 1e5 }));
    never(MEMORY, &mut |world, second| world.leave_memory(8e6 - 2e4 * second));
    never(MEMORY, &mut |world, second| world.leave_memory(1e5 + 2e4 * second));
    never(CLOCK, &mut |world, second| world.set_utc(second * 1e5));
    never(CLOCK, &mut |world, second| world.set_utc(if second < 60.0 { 0.0 } else { 90e9 }));
    for _ in 0..20 {
        never(Site::Silo(0, 0), &mut |world, _| world.take_slots(700.0 + 500.0 * noise()));
    }
    let mut trend = Trend::default();
    (0..SAMPLES).for_each(|at| trend.add(at as f64, 3.0));
    assert_eq!(trend.line(0.0).and_then(|line| line.left_s(1.0)), None, "no change never reaches a limit");
}

#[test]
fn a_line_has_ten_values_close_to_it_and_changes_by_its_least_or_more() {
    let of = |count: usize, value: &dyn Fn(f64) -> f64| {
        let mut trend = Trend::default();
        (0..count).for_each(|at| trend.add(100.0 + at as f64, value(at as f64)));
        trend
    };
    let rising = of(SAMPLES, &|at| 3.0 * at + 1.0);
    let line = rising.line(27.0).unwrap();
    assert!((line.now - 28.0).abs() < 1e-9 && (line.each_s - 3.0).abs() < 1e-9, "{line:?}");
    assert_eq!(rising.line(27.1), None);
    assert_eq!(of(SAMPLES - 1, &|at| 3.0 * at).line(1.0), None);
    let falling = of(SAMPLES + 5, &|at| -2.0 * at).line(18.0).unwrap();
    assert!((falling.now + 28.0).abs() < 1e-9 && (falling.each_s + 2.0).abs() < 1e-9, "{falling:?}");
    assert_eq!(of(SAMPLES, &|at| if at < 5.0 { 0.0 } else { 9.0 }).line(1.0), None, "a step");
    let mut moment = Trend::default();
    (0..SAMPLES).for_each(|at| moment.add(7.0, at as f64));
    assert_eq!(moment.line(0.0), None, "of one moment");
    // Of the variance of a zigzag the line explains 0.902 and 0.8996.
    let zigzag =
        |height: f64| of(SAMPLES, &|at| at + if (at as u64).is_multiple_of(2) { height } else { -height }).line(1.0);
    assert_eq!([zigzag(0.91).is_some(), zigzag(0.92).is_some()], [true, false]);
    let left_s = |limit: f64| rising.line(1.0).unwrap().left_s(limit).map(f64::round);
    assert_eq!([left_s(28.0 + 3.0 * 59.9), left_s(28.0 + 3.0 * 60.1), left_s(27.0)], [Some(60.0), None, None]);
}

#[test]
fn a_resource_that_changes_by_too_little_in_ten_seconds_says_nothing() {
    let mut said = Vec::new();
    for each_s in [5.0, 6.0] {
        let set = |world: &World, second: f64| world.take_slots((900.0 + each_s * second).min(1e3));
        said.push(first_said(Site::Silo(0, 0), set, |second| 100.0 / each_s - second).is_some());
    }
    for each_s in [0.8, 1.0] {
        let set = |world: &World, second: f64| world.leave_memory((30.0 - each_s * second).max(0.0) * 1024.0);
        said.push(first_said(MEMORY, set, |second| 30.0 / each_s - second).is_some());
    }
    assert_eq!(said, [false, true, false, true]);
}
