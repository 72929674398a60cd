//! A contention load on the arbiter alone: each thread is a silo, all want the same pages, nothing else is there.
//!
//! What happens: a silo picks a page at random; what it owns it writes (or leases, one time in eight); what it does not
//! own it asks for (7 of 16 DEFAULT, 4 LOCK, 3 LEASE of [`LEASE_US`], 2 MIGRATE), and asks again by the advice of each
//! refusal, [`TRIES_MAX`] times at most. Messages travel by bounded rings; one that finds its ring full is lost, as on any
//! channel. Runs on scoped cold threads, until its time is over and no transfer is open. Bounds: [`OPEN_MAX`] transfers
//! open at each silo, [`SAMPLES_MAX`] latencies kept, [`GRACE`] to settle.
//!
//! # Why
//! Beside the pages stand two facts that the protocol never sees: who is writing, and what was written last. A second
//! writer, a lost value, and a page that nobody or two own at the end are violations.

mod member;

use crate::arbiter::page::{Limits, PageTable, SILOS_MAX, Silo};
use crate::board::histogram::Histogram;
use crate::clock::Clock;
use crate::units::Nanos;
use member::{Envelope, Member, Tally};
use pinwheel_edge::ring::spsc::{Consumer, Producer, channel};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Lease asked for.
pub const LEASE_US: u32 = 20;
/// Times that one request is made.
pub const TRIES_MAX: u8 = 64;
/// Transfers open at one silo.
pub const OPEN_MAX: usize = 64;
/// Latencies kept of each kind and thread; later ones are counted and not kept.
pub const SAMPLES_MAX: usize = 1 << 20;
/// How long transfers may stay open after the end.
pub const GRACE: Nanos = Nanos(2_000_000_000);
const RING_SLOTS: usize = 256;

/// What to run.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Pages: 1 to 2²⁰.
    pub pages: u32,
    /// Silos, a thread each: 2 to 64.
    pub silos: u8,
    /// For how long.
    pub duration: Nanos,
}

/// What came of it.
#[derive(Debug)]
pub struct Found {
    /// Decisions taken.
    pub decisions: u64,
    /// Time of one decision, the clock's own reading included.
    pub decision_ns: Histogram,
    /// Decisions by response.
    pub responses: BTreeMap<&'static str, u64>,
    /// Pages that arrived somewhere.
    pub transfers: u64,
    /// From the request that was granted to the page's arrival, at the requester.
    pub transfer_ns: Histogram,
    /// Writes committed.
    pub commits: u64,
    /// Transfers that were not acknowledged in time.
    pub in_doubt: u64,
    /// Messages that met a full ring.
    pub messages_lost: u64,
    /// Broken promises, one sentence each; the first of each silo and the state at the end.
    pub violations: Vec<String>,
}

/// What is true of a page, whatever the protocol says. Relaxed: values that one writer at a time leaves to the next, who
/// is ordered after it by the page's word, or the protocol is broken and the values show it.
#[derive(Default)]
struct Truth {
    writer: AtomicU32,
    last: AtomicU64,
}

struct Shared<'a> {
    load: Load,
    clock: &'a Clock,
    truth: &'a [Truth],
    is_over: &'a AtomicBool,
    quiet: &'a [AtomicBool],
}

/// Runs `load`.
///
/// # Panics
/// If pages or silos are outside their bounds: the command line checks them.
#[must_use]
pub fn run(load: Load, clock: &Clock) -> Found {
    assert!((2..=SILOS_MAX).contains(&load.silos) && load.pages > 0, "a load needs two silos and a page");
    let truth: Vec<Truth> = (0..load.pages).map(|_| Truth::default()).collect();
    let is_over = AtomicBool::new(false);
    let quiet: Vec<AtomicBool> = (0..load.silos).map(|_| AtomicBool::new(false)).collect();
    let shared = Shared { load, clock, truth: &truth, is_over: &is_over, quiet: &quiet };
    let members = members(&shared);
    let members: Vec<Member<'_>> = std::thread::scope(|scope| {
        let threads: Vec<_> = members.into_iter().map(|member| scope.spawn(move || member.live())).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    sum_up(&members, &truth, load)
}

fn members<'a>(shared: &Shared<'a>) -> Vec<Member<'a>> {
    let silos = shared.load.silos;
    let mut outs: Vec<Vec<Option<Producer<Envelope>>>> =
        (0..silos).map(|_| (0..silos).map(|_| None).collect()).collect();
    let mut ins: Vec<Vec<Consumer<Envelope>>> = (0..silos).map(|_| Vec::new()).collect();
    for (from, outs) in outs.iter_mut().enumerate() {
        for to in (0..silos as usize).filter(|to| *to != from) {
            let (producer, consumer) = channel(RING_SLOTS);
            outs[to] = Some(producer);
            ins[to].push(consumer);
        }
    }
    let member = |(at, (outs, ins)): (usize, (_, _))| {
        let me = Silo::new(at as u8);
        let owner = |page: u32| Silo::new((page % u32::from(silos)) as u8);
        Member {
            shared: Shared { ..*shared },
            table: PageTable::new(me, shared.load.pages, Limits::SEED, owner),
            values: vec![0; shared.load.pages as usize],
            outs,
            ins,
            open: Vec::with_capacity(OPEN_MAX),
            asked: None,
            random: 0x9E37_79B9_7F4A_7C15 ^ (at as u64 + 1) << 32,
            tally: Tally::new(),
        }
    };
    outs.into_iter().zip(ins).enumerate().map(member).collect()
}

fn sum_up(members: &[Member<'_>], truth: &[Truth], load: Load) -> Found {
    let all =
        |of: fn(&Tally) -> &[u64]| members.iter().flat_map(|member| of(&member.tally)).copied().collect::<Vec<_>>();
    let sum = |of: fn(&Tally) -> u64| members.iter().map(|member| of(&member.tally)).sum();
    let mut responses = BTreeMap::new();
    for (name, count) in members.iter().flat_map(|member| &member.tally.responses) {
        *responses.entry(*name).or_insert(0) += count;
    }
    let mut violations: Vec<String> = members.iter().filter_map(|member| member.tally.violation.clone()).collect();
    if members.len() < usize::from(load.silos) {
        violations.push(format!(
            "{} of {} silos ended by a panic",
            usize::from(load.silos) - members.len(),
            load.silos
        ));
    }
    violations.extend((0..load.pages).filter_map(|page| at_the_end(members, truth, page)).take(16));
    Found {
        decisions: sum(|tally| tally.decisions),
        decision_ns: Histogram::of(&all(|tally| &tally.decision_ns)),
        responses,
        transfers: sum(|tally| tally.transfers),
        transfer_ns: Histogram::of(&all(|tally| &tally.transfer_ns)),
        commits: sum(|tally| tally.commits),
        in_doubt: sum(|tally| tally.in_doubt),
        messages_lost: sum(|tally| tally.lost),
        violations,
    }
}

/// What is wrong with `page` when all has settled.
fn at_the_end(members: &[Member<'_>], truth: &[Truth], page: u32) -> Option<String> {
    let owners: Vec<&Member<'_>> =
        members.iter().filter(|member| member.table.word(page).state().is_writable()).collect();
    let last = truth[page as usize].last.load(Ordering::Relaxed);
    match owners[..] {
        [owner] if owner.values[page as usize] == last => None,
        [owner] => Some(format!("page {page} ends with value {}, the last is {last}", owner.values[page as usize])),
        _ => Some(format!("page {page} ends with {} owners, expected 1", owners.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::{Load, run};
    use crate::clock::Clock;
    use crate::units::Nanos;

    #[test]
    fn three_silos_that_want_the_same_pages_break_no_promise() {
        let load = Load { pages: 3, silos: 3, duration: Nanos::from_millis(200) };
        let found = run(load, &Clock::machine());
        assert!(found.violations.is_empty(), "{:?}", found.violations);
        assert!(found.transfers > 0 && found.commits > found.transfers, "{found:?}");
        assert_eq!(found.responses.values().sum::<u64>(), found.decisions);
        assert!(found.responses.contains_key("granted"), "{:?}", found.responses);
    }
}
