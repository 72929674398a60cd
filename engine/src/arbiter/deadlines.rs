//! Deadlines of one silo's pages: transfers and leases on the timer wheel, everything else by a sweep.
//!
//! Owned by the silo's arbiter and run on its thread. Selects the pages to check;
//! [`super::protocol::look`] checks them. Bounds: [`TRANSFER_TIMERS`] and [`LEASE_TIMERS`] timers,
//! [`EXPIRIES_MAX`] expiries and [`VISITS_MAX`] visited pages in each poll. Never allocates after
//! construction.
//!
//! # Why
//!
//! *Three mechanisms for one deadline.* A decision settles the word that it reads, so a late timer
//! delays no request. The wheel serves pages without requests: a transfer whose ACK is lost, a
//! lease that is over. The sweep exists because a deadline has 24 bits: three quarters of 16.7 s
//! after it passed, it looks like a future deadline. Each page is visited within [`SWEEP_US`], half
//! the interval that would suffice. Heat, which each commit renews, is left to the sweep.
//!
//! *A lease timer is not cancelled.* It only triggers a check: if the lease was given back early,
//! the check finds nothing. A lease that finds no free timer ends by the next decision or by the
//! sweep.
//!
//! *After a stall.* If the machine stalls for longer than a sweep, a page may look hot or leased
//! that is not, for 4.2 s at most. The silo then refuses a request that it could grant; it never
//! grants one that it should refuse.

use crate::arbiter::page::{Moment, State, Word};
use crate::timer::{Handle, Wheel};
use crate::units::{Nanos, Slots, TickRate, Ticks};

/// Number of timers for transfers.
pub const TRANSFER_TIMERS: u32 = 64;
/// Number of timers for leases.
pub const LEASE_TIMERS: u32 = 1_024;
/// Most pages that one poll of the wheel returns.
pub const EXPIRIES_MAX: usize = crate::timer::EXPIRIES_MAX as usize;
/// Longest time between two visits of one page: a quarter of a deadline's range.
pub const SWEEP_US: u32 = 1 << 22;
/// Shortest interval between two visits: a visit costs the word's writer a cache-line transfer.
pub const VISIT_US: u32 = 4;
/// Shortest round: the console refreshes no faster.
pub const ROUND_US_MIN: u32 = 100_000;
/// Most visits of one poll.
pub const VISITS_MAX: u32 = 256;

const LEASE: u64 = 1 << 32;

/// Converts ticks into the moments of one silo's words.
#[derive(Clone, Copy, Debug)]
pub struct Timebase {
    /// Ticks per nanosecond.
    pub rate: TickRate,
    /// Ticks at moment 0.
    pub start: Ticks,
}

impl Timebase {
    /// The moment at `at`.
    #[inline]
    pub fn moment(&self, at: Ticks) -> Moment {
        Moment::from_micros(self.rate.nanos(at.since(self.start)).0 / 1_000)
    }

    fn after_us(&self, now: Ticks, us: u32) -> Ticks {
        now.plus(self.rate.ticks(Nanos::from_micros(u64::from(us))))
    }
}

/// The timer wheel and the sweep of one silo.
#[derive(Debug)]
pub struct Deadlines {
    base: Timebase,
    wheel: Wheel,
    lease_timers: u32,
    sweep: Sweep,
}

impl Deadlines {
    /// No timers, and a sweep over `pages` pages.
    pub fn new(base: Timebase, pages: u32) -> Deadlines {
        let wheel = Wheel::new(base.rate, base.start, Slots(TRANSFER_TIMERS + LEASE_TIMERS));
        Deadlines { base, wheel, lease_timers: 0, sweep: Sweep::new(base, pages) }
    }

    /// Arms the wheel for a transfer of `page` that is due in `left_us`.
    #[must_use]
    pub fn arm_transfer(&mut self, page: u32, left_us: u32, now: Ticks) -> Option<Handle> {
        self.wheel.arm(self.base.after_us(now, left_us), u64::from(page)).ok()
    }

    /// Arms the wheel for the end of a lease, if a timer is free.
    pub fn arm_lease(&mut self, page: u32, left_us: u32, now: Ticks) {
        if self.lease_timers < LEASE_TIMERS
            && self.wheel.arm(self.base.after_us(now, left_us), LEASE | u64::from(page)).is_ok()
        {
            self.lease_timers += 1;
        }
    }

    /// Disarms the timer of a transfer that has ended.
    pub fn disarm(&mut self, handle: Handle) {
        self.wheel.cancel(handle);
    }

    /// Writes the pages whose timers have expired to `pages` and returns their number. Any more
    /// follow in the next poll.
    pub fn expired(&mut self, now: Ticks, pages: &mut [u32; EXPIRIES_MAX]) -> usize {
        let (mut found, mut leases) = (0, 0);
        let polled = self.wheel.poll(now, |expired| {
            leases += u32::from(expired.payload & LEASE != 0);
            pages[found] = expired.payload as u32;
            found += 1;
        });
        self.lease_timers -= leases;
        debug_assert_eq!(polled.expired as usize, found);
        found
    }

    /// Number of pages to visit now.
    pub fn visits_due(&mut self, now: Ticks) -> u32 {
        self.sweep.visits_due(now)
    }

    /// Visits the next page in turn.
    pub fn visit(&mut self, word: impl FnOnce(u32) -> Word) -> Visit {
        self.sweep.visit(word)
    }
}

/// One visit of the sweep.
#[derive(Clone, Copy, Debug)]
pub struct Visit {
    /// Number of the page.
    pub page: u32,
    /// The page's word.
    pub word: Word,
    /// Pages by state, in the order of [`State::ALL`], if this visit ends a round.
    pub round: Option<[u32; State::ALL.len()]>,
}

/// Visits every page in turn, each within the round's time.
#[derive(Debug)]
struct Sweep {
    pages: u32,
    round: Ticks,
    last: Ticks,
    /// Ticks, times pages, that no visit has been made for yet.
    credit: u128,
    next: u32,
    states: [u32; State::ALL.len()],
}

impl Sweep {
    fn new(base: Timebase, pages: u32) -> Sweep {
        let round_us = pages.saturating_mul(VISIT_US).clamp(ROUND_US_MIN, SWEEP_US);
        let round = base.rate.ticks(Nanos::from_micros(u64::from(round_us)));
        Sweep { pages, round, last: base.start, credit: 0, next: 0, states: [0; State::ALL.len()] }
    }

    fn visits_due(&mut self, now: Ticks) -> u32 {
        let round = u128::from(self.round.0.max(1));
        self.credit += u128::from(now.since(self.last).0) * u128::from(self.pages);
        self.last = self.last.max(now);
        let visits = (self.credit / round).min(u128::from(VISITS_MAX));
        self.credit -= visits * round;
        // After a stall the sweep makes one round, not one for each round it missed.
        self.credit = self.credit.min(u128::from(self.pages) * round);
        visits as u32
    }

    fn visit(&mut self, word: impl FnOnce(u32) -> Word) -> Visit {
        let page = self.next;
        let word = word(page);
        self.states[word.state() as usize] += 1;
        self.next += 1;
        let is_round = self.next == self.pages;
        let round = is_round.then(|| std::mem::take(&mut self.states));
        self.next = if is_round { 0 } else { self.next };
        Visit { page, word, round }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Deadlines, EXPIRIES_MAX, LEASE_TIMERS, SWEEP_US, Timebase};
    use crate::arbiter::page::{Authority, Epoch, Hint, Limits, Moment, PageTable, Request, Response, Signals};
    use crate::arbiter::page::{LEASE_US_MAX, Silo, State, WriteBuffer};
    use crate::arbiter::protocol::look;
    use crate::units::{Nanos, TickRate, Ticks};

    const BASE: Timebase = Timebase { rate: TickRate::NANOS, start: Ticks(0) };
    const ME: Silo = Silo::new(0);

    fn at_us(us: u64) -> Ticks {
        Ticks(Nanos::from_micros(us).0)
    }

    fn request(from: Silo, hint: Hint) -> Request {
        let (epoch, authority) = (Epoch::default(), Authority::Port);
        Request { from, epoch, hint, ttl_us: LEASE_US_MAX, refusals: 0, authority }
    }

    fn ask(table: &PageTable, request: &Request, now: Moment) -> Response {
        table.decide(0, request, Signals { write_buffer: WriteBuffer::Drained }, now)
    }

    /// Polls every millisecond from `from_us` to `to_us`.
    fn run(deadlines: &mut Deadlines, table: &PageTable, (from_us, to_us): (u64, u64)) {
        let mut pages = [0; EXPIRIES_MAX];
        for us in (from_us..to_us).step_by(1_000) {
            let now = at_us(us);
            let expired = deadlines.expired(now, &mut pages);
            for page in &pages[..expired] {
                let _ = look(table, *page, BASE.moment(now));
            }
            for _ in 0..deadlines.visits_due(now) {
                let page = deadlines.visit(|page| table.word(page)).page;
                let _ = look(table, page, BASE.moment(now));
            }
        }
    }

    #[test]
    fn heat_without_requests_ends_before_its_deadline_wraps() {
        for started_us in [0_u64, (1 << 24) - 2, (1 << 24) - 1_000_000, 3 << 24] {
            let table = PageTable::new(ME, 8, Limits::SEED, |_| ME);
            table.begin_write(5).unwrap().commit(BASE.moment(at_us(started_us)));
            let deadline = table.word(5).deadline();
            // When the wrapped deadline would look like a future one: the case that the sweep is
            // for.
            let comes_round_us = started_us + (1 << 24) - u64::from(LEASE_US_MAX);
            assert!(!deadline.has_passed(BASE.moment(at_us(comes_round_us))), "{started_us}");
            let mut deadlines = Deadlines::new(Timebase { start: at_us(0), ..BASE }, 8);
            run(&mut deadlines, &table, (started_us, comes_round_us));
            assert_eq!(table.word(5).state(), State::Idle, "{started_us}");
        }
    }

    #[test]
    fn every_page_is_visited_within_half_a_wrap_however_many_there_are() {
        for pages in [1, 7, 100_000, 1 << 20] {
            let mut deadlines = Deadlines::new(BASE, pages);
            let table = PageTable::new(ME, 1, Limits::SEED, |_| ME);
            let (mut visits, mut rounds) = (0_u64, 0);
            for us in (0..u64::from(SWEEP_US) * 2 + 2_000).step_by(500) {
                for _ in 0..deadlines.visits_due(at_us(us)) {
                    visits += 1;
                    rounds += u32::from(deadlines.visit(|_| table.word(0)).round.is_some());
                }
            }
            assert!(rounds >= 2, "{pages} pages: {visits} visits in two sweeps");
            assert!(pages < 1 << 20 || visits < 3 << 20, "{visits} visits");
        }
        const { assert!(SWEEP_US <= 1 << 23) };
    }

    #[test]
    fn a_lease_ends_at_its_time_by_the_wheel_and_before_it_by_a_decision() {
        let started_us = (1 << 24) - 2_000_000;
        let table = PageTable::new(ME, 1, Limits::SEED, |_| ME);
        let mut deadlines = Deadlines::new(BASE, 1);
        assert_eq!(deadlines.expired(at_us(started_us), &mut [0; EXPIRIES_MAX]), 0);
        let now = BASE.moment(at_us(started_us));
        assert!(ask(&table, &request(ME, Hint::Lease), now).is_granted());
        deadlines.arm_lease(0, table.word(0).deadline().left_us(now), at_us(started_us));
        let ends_us = started_us + u64::from(LEASE_US_MAX);
        let mut pages = [7; EXPIRIES_MAX];
        assert_eq!(
            deadlines.expired(at_us(ends_us - 2), &mut pages),
            0,
            "the lease ends after the wrap, and not before"
        );
        assert_eq!(table.word(0).state(), State::Leased);
        let before = BASE.moment(at_us(ends_us - 1));
        assert_eq!(ask(&table, &request(Silo::new(1), Hint::Default), before), Response::LeaseActive { left_us: 1 });
        assert_eq!((deadlines.expired(at_us(ends_us + 2), &mut pages), pages[0], deadlines.wheel.len()), (1, 0, 0));
        let after = BASE.moment(at_us(ends_us));
        assert!(
            ask(&table, &request(Silo::new(1), Hint::Default), after).is_granted(),
            "the decision settles the lease, without the wheel"
        );
    }

    #[test]
    fn a_moment_is_in_microseconds_since_the_start() {
        let base = Timebase { start: Ticks(5_000), ..BASE };
        assert_eq!(base.moment(Ticks(12_999)), Moment::from_micros(7));
        assert_eq!(base.after_us(Ticks(1), 3), Ticks(3_001));
    }

    #[test]
    fn visits_come_evenly_over_a_round_at_most_256_at_once_and_after_a_stall_one_round_more() {
        let due = |deadlines: &mut Deadlines, us: u64| {
            let visits: Vec<u32> = (0..6).map(|_| deadlines.visits_due(at_us(us))).collect();
            visits.into_iter().filter(|visits| *visits > 0).collect::<Vec<_>>()
        };
        let mut few = Deadlines::new(BASE, 8);
        assert!(due(&mut few, 12_499).is_empty());
        assert_eq!(due(&mut few, 12_500), [1], "a round takes 100 ms at least");
        assert_eq!(due(&mut few, 100_000), [7]);
        assert!(due(&mut few, 50_000).is_empty(), "time does not go back");
        assert_eq!(due(&mut few, 112_500), [1]);
        let mut many = Deadlines::new(BASE, 1_000);
        assert_eq!(due(&mut many, 100_000), [256, 256, 256, 232]);
        assert_eq!(due(&mut many, 1_100_000), [256, 256, 256, 256, 232], "not ten rounds");
        let mut more = Deadlines::new(BASE, 100_000);
        assert_eq!((due(&mut more, 3), due(&mut more, 4)), (vec![], vec![1]), "4 us a page");
        let mut most = Deadlines::new(BASE, 1 << 22);
        assert_eq!(due(&mut most, 10), [10], "and a round takes no longer than a sweep");
    }

    #[test]
    fn a_round_visits_each_page_once_in_turn_and_counts_their_states() {
        let table = PageTable::new(ME, 3, Limits::SEED, |page| Silo::new(u8::from(page == 1)));
        table.begin_write(2).unwrap().commit(BASE.moment(at_us(1)));
        let mut deadlines = Deadlines::new(BASE, 3);
        for _ in 0..2 {
            let visits = [0; 3].map(|_| deadlines.visit(|page| table.word(page)));
            assert_eq!(visits.map(|visit| visit.page), [0, 1, 2]);
            assert_eq!([visits[0].round, visits[1].round], [None, None]);
            let of = |state: State| visits[2].round.unwrap()[state as usize];
            assert_eq!([of(State::Idle), of(State::NotOwner), of(State::LocalHot)], [1, 1, 1]);
            assert_eq!(visits[2].round.unwrap().iter().sum::<u32>(), 3);
        }
    }

    #[test]
    fn leases_beyond_the_timers_leave_room_for_transfers() {
        let mut deadlines = Deadlines::new(BASE, 1);
        for _ in 0..LEASE_TIMERS + 10 {
            deadlines.arm_lease(0, 50, at_us(0));
        }
        assert_eq!(deadlines.wheel.len(), LEASE_TIMERS as usize);
        let transfer = deadlines.arm_transfer(0, 10, at_us(0)).unwrap();
        deadlines.disarm(transfer);
        let mut pages = [0; EXPIRIES_MAX];
        while deadlines.expired(at_us(60), &mut pages) > 0 {}
        deadlines.arm_lease(0, 50, at_us(60));
        assert_eq!(deadlines.wheel.len(), 1);
    }
}
