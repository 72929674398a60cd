#![allow(clippy::unwrap_used, reason = "harness")]

use std::collections::BTreeMap;

use proptest::prelude::{Strategy, any, prop, prop_oneof, proptest};
use proptest::test_runner::Config;

use super::{ArmError, EXPIRIES_MAX, Expired, HORIZON, Handle, MOVES_MAX, RearmError, Wheel};
use crate::units::{Nanos, Slots, TickRate, Ticks};

const MINUTE: u64 = 60_000_000_000;

fn wheel(timers: u32) -> Wheel {
    Wheel::new(TickRate::NANOS, Ticks(0), Slots(timers))
}

/// Polls until nothing is left for `now`; the polls it took and what came out.
fn drain(wheel: &mut Wheel, now: Ticks) -> (u32, Vec<Expired>) {
    let (mut polls, mut found) = (0, Vec::new());
    loop {
        polls += 1;
        let before = found.len();
        let polled = wheel.poll(now, |expired| found.push(expired));
        assert_eq!(found.len() - before, polled.expired as usize);
        assert!(polled.expired <= EXPIRIES_MAX && polled.moved <= MOVES_MAX);
        assert!(!polled.is_behind || polled.expired == EXPIRIES_MAX || polled.moved == MOVES_MAX, "idle but behind");
        if !polled.is_behind {
            return (polls, found);
        }
    }
}

fn payloads(found: &[Expired]) -> Vec<u64> {
    found.iter().map(|expired| expired.payload).collect()
}

#[test]
fn a_timer_is_never_early_and_at_most_a_slot_late() {
    for deadline in [0, 1, 999, 1_000, 1_001, 65_535_999, 65_536_001, 3_600 * 1_000_000_000] {
        let mut wheel = wheel(1);
        let handle = wheel.arm(Ticks(deadline), 7).unwrap();
        let early = drain(&mut wheel, Ticks(deadline.saturating_sub(1)));
        assert!(deadline == 0 || early.1.is_empty(), "{deadline}: {early:?}");
        let (_, found) = if deadline == 0 { early } else { drain(&mut wheel, Ticks(deadline + 999)) };
        let lateness = Ticks(if deadline == 0 { 0 } else { 999 });
        assert_eq!(found, [Expired { handle, payload: 7, lateness }], "{deadline}");
        assert!(wheel.is_empty());
    }
}

#[test]
fn a_passed_deadline_is_handed_out_by_the_next_poll_of_the_same_slot() {
    let mut wheel = wheel(4);
    assert!(drain(&mut wheel, Ticks(5_000_500)).1.is_empty());
    wheel.arm(Ticks(3), 1).unwrap();
    wheel.arm(Ticks(5_000_000), 2).unwrap();
    let (_, mut found) = drain(&mut wheel, Ticks(5_000_500));
    found.sort_by_key(|expired| expired.payload);
    assert_eq!(payloads(&found), [1, 2]);
    assert_eq!(found[0].lateness, Ticks(5_000_497));
}

#[test]
fn sixty_four_expire_in_a_poll_and_the_rest_in_the_next() {
    let mut wheel = wheel(200);
    for payload in 0..200 {
        wheel.arm(Ticks(10_000 + payload % 3 * 40_000), payload).unwrap();
    }
    let (polls, found) = drain(&mut wheel, Ticks(MINUTE));
    assert_eq!(polls, 4);
    let mut all = payloads(&found);
    all.sort_unstable();
    assert_eq!(all, (0..200).collect::<Vec<_>>());
    let slots: Vec<u64> = found.iter().map(|expired| expired.payload % 3).collect();
    assert!(slots.is_sorted(), "oldest slot first, across polls");
}

#[test]
fn a_block_of_many_timers_moves_inwards_in_bounded_polls() {
    let mut wheel = wheel(1_000);
    for payload in 0..1_000 {
        wheel.arm(Ticks(10 * MINUTE + payload), payload).unwrap();
    }
    let (polls, found) = drain(&mut wheel, Ticks(11 * MINUTE));
    assert_eq!(found.len(), 1_000);
    assert!(polls >= 1_000 / EXPIRIES_MAX, "{polls}");
}

#[test]
fn any_gap_is_crossed_in_one_poll() {
    let mut wheel = wheel(2);
    for hour in 0..100 {
        let now = Ticks(hour * 60 * MINUTE);
        wheel.arm(Ticks(now.0 + 59 * MINUTE), hour).unwrap();
        let polled = wheel.poll(Ticks(now.0 + 60 * MINUTE - 1), |expired| assert_eq!(expired.payload, hour));
        assert_eq!((polled.expired, polled.is_behind), (1, false));
    }
}

#[test]
fn a_cancelled_timer_never_expires_and_its_handle_is_stale() {
    let mut wheel = wheel(2);
    let first = wheel.arm(Ticks(5_000), 1).unwrap();
    assert_eq!(wheel.cancel(first), Some(1));
    assert_eq!(wheel.cancel(first), None);
    let second = wheel.arm(Ticks(5_000), 2).unwrap();
    assert_eq!(wheel.cancel(first), None, "the record is in use again, the handle is not its");
    assert_eq!(wheel.rearm(first, Ticks(9_000)), Err(RearmError::Stale));
    assert_eq!(drain(&mut wheel, Ticks(6_000)).1[0].handle, second);
    assert_eq!(wheel.cancel(second), None);
}

#[test]
fn a_caller_that_panics_loses_the_timer_that_it_was_handed_and_no_other() {
    let mut wheel = wheel(4);
    let handles = [1, 2, 3].map(|payload| wheel.arm(Ticks(5_000), payload).unwrap());
    let mut handed = None;
    let panics = |expired: Expired| {
        handed = Some(expired.handle);
        panic!("the caller's")
    };
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| wheel.poll(Ticks(6_000), panics)));
    assert!(caught.is_err() && wheel.len() == 2);
    let left: Vec<Handle> = handles.into_iter().filter(|handle| Some(*handle) != handed).collect();
    assert_eq!(wheel.cancel(handed.unwrap()), None);
    assert!(wheel.cancel(left[0]).is_some());
    let (_, found) = drain(&mut wheel, Ticks(6_000));
    assert_eq!((found.len(), found[0].handle, wheel.is_empty()), (1, left[1], true));
}

#[test]
fn a_handle_of_another_wheel_is_stale() {
    let foreign = wheel(1).arm(Ticks(5_000), 1).unwrap();
    let mut wheel = wheel(2);
    assert_eq!((wheel.cancel(foreign), wheel.rearm(foreign, Ticks(9_000))), (None, Err(RearmError::Stale)));
}

#[test]
fn a_rearmed_timer_expires_once_at_its_new_deadline() {
    let mut wheel = wheel(2);
    let handle = wheel.arm(Ticks(5_000), 1).unwrap();
    wheel.rearm(handle, Ticks(20 * MINUTE)).unwrap();
    assert!(drain(&mut wheel, Ticks(MINUTE)).1.is_empty());
    wheel.rearm(handle, Ticks(2 * MINUTE)).unwrap();
    assert_eq!(drain(&mut wheel, Ticks(2 * MINUTE)).1.len(), 1);
    assert!(drain(&mut wheel, Ticks(30 * MINUTE)).1.is_empty());
}

#[test]
fn a_full_wheel_and_a_deadline_beyond_the_horizon_are_refused() {
    const { assert!(HORIZON.0 >= 60 * MINUTE) };
    let mut wheel = wheel(1);
    let now = Ticks(7 * MINUTE + 123_456_789);
    assert!(drain(&mut wheel, now).1.is_empty());
    let beyond = Ticks(now.0 + HORIZON.0 + 65_536_000);
    assert_eq!(wheel.arm(beyond, 0), Err(ArmError::BeyondHorizon));
    assert!(wheel.is_empty(), "a refusal takes no record");
    let handle = wheel.arm(Ticks(now.0 + HORIZON.0), 0).unwrap();
    assert_eq!(wheel.arm(now, 0), Err(ArmError::Full(Slots(1))));
    assert_eq!(wheel.rearm(handle, beyond), Err(RearmError::BeyondHorizon));
    assert_eq!(drain(&mut wheel, Ticks(now.0 + HORIZON.0 + 999)).1.len(), 1, "a refused re-arm leaves the deadline");
}

#[test]
fn time_that_runs_backwards_makes_nothing_due() {
    let mut wheel = wheel(1);
    assert!(drain(&mut wheel, Ticks(MINUTE)).1.is_empty());
    wheel.arm(Ticks(MINUTE + 5_000), 0).unwrap();
    assert!(drain(&mut wheel, Ticks(10)).1.is_empty());
    assert_eq!(drain(&mut wheel, Ticks(MINUTE + 6_000)).1.len(), 1);
}

#[derive(Clone, Debug)]
enum Step {
    Arm(u64),
    Cancel(usize),
    Rearm(usize, u64),
    Poll(u64),
    Drain(u64),
}

fn span() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0..3_000u64, 4 => 0..200_000_000u64, 2 => 0..70 * MINUTE, 1 => 60_000_000..70_000_000u64]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => span().prop_map(Step::Arm),
        3 => any::<usize>().prop_map(Step::Cancel),
        3 => (any::<usize>(), span()).prop_map(|(k, span)| Step::Rearm(k, span)),
        4 => span().prop_map(Step::Poll),
        1 => (0..200 * MINUTE).prop_map(Step::Drain),
    ]
}

/// What the wheel must hold: the deadline of each armed timer, by payload, and its handle.
struct Oracle {
    wheel: Wheel,
    now: Ticks,
    slot: Ticks,
    armed: BTreeMap<u64, (Ticks, Handle)>,
    stale: Vec<Handle>,
    next: u64,
}

impl Oracle {
    fn new(rate: TickRate, start: Ticks) -> Oracle {
        let slot = Ticks(rate.ticks(Nanos(1_000)).0 + 2);
        let wheel = Wheel::new(rate, start, Slots(300));
        Oracle { wheel, now: start, slot, armed: BTreeMap::new(), stale: Vec::new(), next: 0 }
    }

    fn nth(&self, k: usize) -> Option<u64> {
        self.armed.keys().nth(k % self.armed.len().max(1)).copied()
    }

    fn poll_once(&mut self) -> bool {
        let mut found = Vec::new();
        let polled = self.wheel.poll(self.now, |expired| found.push(expired));
        assert!(found.len() <= EXPIRIES_MAX as usize && polled.moved <= MOVES_MAX);
        for expired in found {
            let (deadline, handle) = self.armed.remove(&expired.payload).expect("armed, and handed out once");
            assert!(deadline <= self.now, "early: {deadline:?} at {:?}", self.now);
            assert_eq!((expired.handle, expired.lateness), (handle, self.now.since(deadline)));
            self.stale.push(handle);
        }
        if !polled.is_behind {
            let late = self.armed.values().find(|(deadline, _)| deadline.plus(self.slot) <= self.now);
            assert_eq!(late, None, "left behind at {:?}", self.now);
        }
        polled.is_behind
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Arm(span) => {
                let deadline = self.now.plus(Ticks(span));
                match self.wheel.arm(deadline, self.next) {
                    Ok(handle) => {
                        self.armed.insert(self.next, (deadline, handle));
                        self.next += 1;
                    }
                    // The cursor may trail the time by what a bounded poll left; only then is a near deadline far.
                    Err(ArmError::BeyondHorizon) => assert!(span > MINUTE),
                    Err(ArmError::Full(_)) => assert_eq!(self.armed.len(), 300),
                }
            }
            Step::Cancel(k) => {
                let Some(payload) = self.nth(k) else { return };
                let (_, handle) = self.armed.remove(&payload).unwrap();
                assert_eq!(self.wheel.cancel(handle), Some(payload));
                self.stale.push(handle);
            }
            Step::Rearm(k, span) => {
                let Some(payload) = self.nth(k) else { return };
                let (deadline, handle) = (self.now.plus(Ticks(span)), self.armed[&payload].1);
                if self.wheel.rearm(handle, deadline).is_ok() {
                    self.armed.insert(payload, (deadline, handle));
                }
            }
            Step::Poll(span) => {
                self.now = self.now.plus(Ticks(span));
                self.poll_once();
            }
            Step::Drain(span) => {
                self.now = self.now.plus(Ticks(span));
                while self.poll_once() {}
            }
        }
        assert_eq!(self.wheel.len(), self.armed.len());
    }
}

proptest! {
    #![proptest_config(Config { cases: 300, failure_persistence: None, ..Config::default() })]
    #[test]
    fn the_wheel_agrees_with_an_ordered_map(
        steps in prop::collection::vec(step(), 1..600),
        is_counter in any::<bool>(),
        start in 0..1u64 << 60,
    ) {
        let rate = if is_counter { TickRate::from_hz(2.45e9) } else { TickRate::NANOS };
        let mut oracle = Oracle::new(rate, Ticks(start));
        for step in &steps {
            oracle.step(step);
        }
        oracle.step(&Step::Drain(200 * MINUTE * 3));
        assert!(oracle.armed.is_empty(), "the last drain hands out everything");
        for handle in std::mem::take(&mut oracle.stale) {
            assert_eq!(oracle.wheel.cancel(handle), None);
        }
    }
}
