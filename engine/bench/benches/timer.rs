//! Compares the timer wheel with common alternatives: a million timers at once.
//!
//! Delays are uniform over 60,000 slots: a slot is 1 µs for ours and 1 ms for the peer, its finest
//! resolution; both do the same arithmetic and expire slot by slot. *Cancel*: each timer is
//! cancelled a thousand insertions later, so that a thousand are armed.

use super::measure::{CLOCK, Placement, Suite, ns_per};
use hierarchical_hash_wheel_timer::IdOnlyTimerEntry;
use hierarchical_hash_wheel_timer::wheels::{cancellable, quad_wheel};
use pinwheel_engine::timer::{SLOT, Wheel};
use pinwheel_engine::units::{Slots, TickRate, Ticks};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

const TIMERS: u64 = 1 << 20;
const DELAY_SLOTS_MAX: u64 = 60_000;
const ARMED: usize = 1_000;
const REPETITIONS: usize = 9;

/// Delays in slots, 1 to [`DELAY_SLOTS_MAX`], the same in every run.
fn delays(count: u64) -> Arc<[u32]> {
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let delay = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % DELAY_SLOTS_MAX) as u32 + 1
    };
    (0..count).map(delay).collect()
}

fn at(slot: u64) -> Ticks {
    Ticks(slot * SLOT.0)
}

pub fn register(suite: &mut Suite) {
    let delays = delays(suite.effort.scale(TIMERS));
    let mut case = |name: &str, parts: &[&str], run: fn(&[u32]) -> Vec<f64>| {
        let delays = Arc::clone(&delays);
        suite.case(name, parts, (Placement::OneCore, REPETITIONS), move || run(&delays))
    };
    let parts = ["insert", "expire", "both"];
    let ours = case("timer wheel", &parts, expire_ours);
    let peer = case("quad wheel", &parts, expire_peer);
    let peer_cancellable = case("cancellable wheel", &parts, expire_cancellable_peer);
    let ours_cancel = case("timer wheel, cancel", &["pair"], cancel_ours);
    let peer_cancel = case("cancellable wheel, cancel", &["pair"], cancel_peer);
    let idle = suite.case("timer wheel, idle poll", &["poll"], (Placement::OneCore, REPETITIONS), {
        let polls = suite.effort.scale(TIMERS);
        move || idle_ours(polls)
    });
    let name = "hierarchical_hash_wheel_timer";
    suite.figure("timer_insert_expire_1m", "ns", ours.part(2), Some((name, peer.part(2))));
    let cancellable = Some(("hierarchical_hash_wheel_timer-cancellable", peer_cancellable.part(2)));
    suite.figure("timer_insert_expire_1m", "ns", ours.part(2), cancellable);
    suite.figure("timer_insert_cancel_1m", "ns", ours_cancel, Some((name, peer_cancel)));
    suite.figure("timer_idle_poll", "ns", idle, None);
}

fn expire_ours(delays: &[u32]) -> Vec<f64> {
    let count = delays.len() as u64;
    let mut wheel = Wheel::new(TickRate::NANOS, Ticks(0), Slots(count as u32));
    let from = CLOCK.ticks();
    for (i, delay) in delays.iter().enumerate() {
        black_box(wheel.arm(at(u64::from(*delay)), i as u64).unwrap());
    }
    let insert = ns_per(from, count);
    let from = CLOCK.ticks();
    let (mut found, mut lateness) = (0, 0);
    for slot in 1..=DELAY_SLOTS_MAX {
        loop {
            let polled = wheel.poll(at(slot), |expired| lateness += black_box(expired).lateness.0);
            found += u64::from(polled.expired);
            if !polled.is_behind {
                break;
            }
        }
    }
    let expire = ns_per(from, count);
    assert_eq!((found, lateness), (count, 0), "each once, each on time");
    vec![insert, expire, insert + expire]
}

fn expire_peer(delays: &[u32]) -> Vec<f64> {
    let wheel = quad_wheel::QuadWheelWithOverflow::new(quad_wheel::no_prune::<u32>);
    expired(wheel, delays, |wheel, i, delay| wheel.insert_with_delay(i, delay).unwrap(), |wheel| wheel.tick())
}

/// The peer's wheel with cancellable timers, as ours has.
fn expire_cancellable_peer(delays: &[u32]) -> Vec<f64> {
    let wheel = cancellable::QuadWheelWithOverflow::<IdOnlyTimerEntry<u32>>::new();
    let insert = |wheel: &mut cancellable::QuadWheelWithOverflow<_>, i, delay| {
        wheel.insert(IdOnlyTimerEntry::new(i, delay)).unwrap();
    };
    expired(wheel, delays, insert, |wheel| wheel.tick())
}

fn expired<W, T>(
    mut wheel: W,
    delays: &[u32],
    insert: impl Fn(&mut W, u32, Duration),
    tick: impl Fn(&mut W) -> Vec<T>,
) -> Vec<f64> {
    let count = delays.len() as u64;
    let from = CLOCK.ticks();
    for (i, delay) in delays.iter().enumerate() {
        insert(&mut wheel, i as u32, Duration::from_millis(u64::from(*delay)));
    }
    let insert = ns_per(from, count);
    let from = CLOCK.ticks();
    let mut found = 0;
    for _ in 0..DELAY_SLOTS_MAX {
        found += black_box(tick(&mut wheel)).len() as u64;
    }
    let expire = ns_per(from, count);
    assert_eq!(found, count, "each once");
    vec![insert, expire, insert + expire]
}

fn cancel_ours(delays: &[u32]) -> Vec<f64> {
    let mut wheel = Wheel::new(TickRate::NANOS, Ticks(0), Slots(delays.len() as u32));
    let mut handles = Vec::with_capacity(delays.len());
    let from = CLOCK.ticks();
    for (i, delay) in delays.iter().enumerate() {
        handles.push(wheel.arm(at(u64::from(*delay)), i as u64).unwrap());
        if i >= ARMED {
            assert!(wheel.cancel(handles[i - ARMED]).is_some());
        }
    }
    vec![ns_per(from, delays.len() as u64)]
}

fn cancel_peer(delays: &[u32]) -> Vec<f64> {
    let mut wheel: cancellable::QuadWheelWithOverflow<IdOnlyTimerEntry<u32>> =
        cancellable::QuadWheelWithOverflow::new();
    let from = CLOCK.ticks();
    for (i, delay) in delays.iter().enumerate() {
        wheel.insert(IdOnlyTimerEntry::new(i as u32, Duration::from_millis(u64::from(*delay)))).unwrap();
        if i >= ARMED {
            wheel.cancel(&((i - ARMED) as u32)).unwrap();
        }
    }
    vec![ns_per(from, delays.len() as u64)]
}

/// Cost of a poll when no timer is due, with a thousand timers armed far ahead.
fn idle_ours(polls: u64) -> Vec<f64> {
    let mut wheel = Wheel::new(TickRate::NANOS, Ticks(0), Slots(ARMED as u32));
    for i in 0..ARMED as u64 {
        wheel.arm(at(1_000_000_000 + i), i).unwrap();
    }
    let from = CLOCK.ticks();
    for now in 0..polls {
        let polled = wheel.poll(black_box(Ticks(now * 200)), |expired| panic!("{expired:?} is not due"));
        assert!(!black_box(polled).is_behind);
    }
    vec![ns_per(from, polls)]
}
