//! Compares decisions on pages with simpler implementations.
//!
//! One decision is one attempt to take a page or to give it back. Ours is the complete decision:
//! [`PageTable::decide`] with hints, leases, heat, epochs, then the receiver's refusal back to its
//! owner. The peers keep a state, an owner, an epoch and a deadline: behind a lock around a map, or
//! packed in one word with a CAS. *Decision*: 1,024 pages at rest, one after another. *There and
//! back*: the same page taken and given back at once. *Alone*: one thread. *Contended*: one thread
//! is measured while another does the same, on one page (the line itself moves between cores) or on
//! 1,024.
#![allow(clippy::disallowed_types, reason = "peers lock")]

use super::measure::{CLOCK, CORES, Effort, Placement, Suite, median, ns_per, pin_to};
use pinwheel_edge::page::{
    Authority, Epoch, Failed, Hint, Limits, Moment, PageTable, Request, Signals, Silo, WriteBuffer,
};
use std::collections::HashMap;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Pages that can be taken by an agent and given back.
trait Pages: Send + Sync + 'static {
    fn new(pages: u32) -> Self;
    fn take(&self, page: u32, agent: u8) -> bool;
    fn give(&self, page: u32, agent: u8) -> bool;
}

struct Ours(PageTable);

const OWNER: Silo = Silo::new(0);
const DRAINED: Signals = Signals { write_buffer: WriteBuffer::Drained };

impl Pages for Ours {
    fn new(pages: u32) -> Ours {
        Ours(PageTable::new(OWNER, pages, Limits::SEED, |_| OWNER))
    }

    #[inline(always)]
    fn take(&self, page: u32, agent: u8) -> bool {
        let (from, epoch) = (Silo::new(agent), self.0.word(page).epoch());
        let (hint, authority) = (Hint::Default, Authority::Port);
        let request = Request { from, epoch, hint, ttl_us: 0, refusals: 0, authority };
        self.0.decide(page, &request, DRAINED, Moment::from_micros(1)).is_granted()
    }

    #[inline(always)]
    fn give(&self, page: u32, agent: u8) -> bool {
        // The receiver never installed the page, so no later word follows.
        let failed = Failed::Dead {
            receiver: Silo::new(agent),
            last: pinwheel_edge::page::Word::elsewhere(OWNER, Epoch::default()),
        };
        self.0.reclaim(page, failed).unwrap_or(false)
    }
}

#[derive(Clone, Copy, Default)]
struct Plain {
    is_taken: bool,
    owner: u8,
    epoch: u32,
    deadline: u64,
}

impl Plain {
    #[inline(always)]
    fn take(&mut self, agent: u8) -> bool {
        if self.is_taken && self.deadline >= 1 {
            return false;
        }
        *self = Plain { is_taken: true, owner: agent, epoch: self.epoch + 1, deadline: 11 };
        true
    }

    #[inline(always)]
    fn give(&mut self, agent: u8) -> bool {
        let is_mine = self.is_taken && self.owner == agent;
        self.is_taken &= !is_mine;
        is_mine
    }
}

fn map<M: FromIterator<(u32, Plain)>>(pages: u32) -> M {
    (0..pages).map(|page| (page, Plain::default())).collect()
}

macro_rules! locked {
    ($($name:ident($inner:ty), $new:expr, |$map:ident, $page:ident| $entry:expr;)*) => {$(
        struct $name($inner);

        impl Pages for $name {
            fn new(pages: u32) -> $name {
                $name($new(pages))
            }

            #[inline(always)]
            fn take(&self, $page: u32, agent: u8) -> bool {
                let $map = &self.0;
                $entry.take(agent)
            }

            #[inline(always)]
            fn give(&self, $page: u32, agent: u8) -> bool {
                let $map = &self.0;
                $entry.give(agent)
            }
        }
    )*};
}

locked! {
    StdMutex(Mutex<HashMap<u32, Plain>>), |pages| Mutex::new(map(pages)),
        |map, page| map.lock().unwrap().get_mut(&page).unwrap();
    ParkingLot(parking_lot::Mutex<HashMap<u32, Plain>>), |pages| parking_lot::Mutex::new(map(pages)),
        |map, page| map.lock().get_mut(&page).unwrap();
    Dash(dashmap::DashMap<u32, Plain>), map, |map, page| map.get_mut(&page).unwrap();
}

#[repr(align(64))]
struct Line(AtomicU64);

/// The straightforward implementation: `deadline << 32 | epoch << 16 | owner << 3 | taken`, a line
/// per page, one CAS.
struct Packed(Vec<Line>);

impl Pages for Packed {
    fn new(pages: u32) -> Packed {
        Packed((0..pages).map(|_| Line(AtomicU64::new(0))).collect())
    }

    #[inline(always)]
    fn take(&self, page: u32, agent: u8) -> bool {
        let word = &self.0[page as usize].0;
        let mut seen = word.load(Ordering::Acquire);
        loop {
            if seen & 7 != 0 && ((seen >> 32) as u32).wrapping_sub(1) as i32 >= 0 {
                return false;
            }
            let epoch = u64::from(((seen >> 16) as u16).wrapping_add(1));
            let next = 1 | u64::from(agent) << 3 | epoch << 16 | 11 << 32;
            match word.compare_exchange_weak(seen, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return true,
                Err(other) => seen = other,
            }
        }
    }

    #[inline(always)]
    fn give(&self, page: u32, agent: u8) -> bool {
        let word = &self.0[page as usize].0;
        let mut seen = word.load(Ordering::Acquire);
        loop {
            if seen & 7 != 1 || (seen >> 3) & 0x1fff != u64::from(agent) {
                return false;
            }
            match word.compare_exchange_weak(seen, seen & !0xffff, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return true,
                Err(other) => seen = other,
            }
        }
    }
}

struct Pick(u64);

impl Pick {
    #[inline(always)]
    fn page(&mut self, pages: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 32) as u32 & (pages - 1)
    }
}

const WINDOW: u64 = 2_000;
const AT_REST: u32 = 1_024;

/// Nanoseconds per decision on one thread that takes a page and gives it back at once, for the
/// median window: each exchange waits for the previous one on the same line.
fn alone<P: Pages>(pages: u32, windows: u64) -> f64 {
    let (held, mut pick) = (P::new(pages), Pick(77));
    let window = || {
        let from = CLOCK.ticks();
        for _ in 0..WINDOW / 2 {
            let page = pick.page(pages);
            black_box(held.take(page, 1));
            black_box(held.give(page, 1));
        }
        ns_per(from, WINDOW)
    };
    median(&std::iter::repeat_with(window).take(windows as usize).collect::<Vec<_>>())
}

/// Nanoseconds per decision on pages at rest, one after another: each is taken, and given back
/// outside the measurement.
fn decisions<P: Pages>(windows: u64) -> f64 {
    let held = P::new(AT_REST);
    let mut window = || {
        let from = CLOCK.ticks();
        for page in 0..AT_REST {
            black_box(held.take(page, 1));
        }
        let ns = ns_per(from, u64::from(AT_REST));
        for page in 0..AT_REST {
            assert!(held.give(page, 1));
        }
        ns
    };
    median(&std::iter::repeat_with(&mut window).take(windows as usize).collect::<Vec<_>>())
}

/// Latencies of single decisions, the clock reading included: p50, p99, p99.9.
fn latencies<P: Pages>(pages: u32, samples: u64, is_contended: bool) -> Vec<f64> {
    let held = Arc::new(P::new(pages));
    let is_over = Arc::new(AtomicBool::new(!is_contended));
    let other = {
        let (held, is_over) = (Arc::clone(&held), Arc::clone(&is_over));
        std::thread::spawn(move || {
            pin_to(CORES.there);
            let mut pick = Pick(99);
            while !is_over.load(Ordering::Relaxed) {
                let page = pick.page(pages);
                black_box(held.take(page, 2));
                black_box(held.give(page, 2));
            }
        })
    };
    let mut pick = Pick(77);
    let mut found: Vec<f64> = (0..samples)
        .map(|_| {
            let page = pick.page(pages);
            let from = CLOCK.ticks();
            black_box(held.take(page, 1));
            let ns = ns_per(from, 1);
            black_box(held.give(page, 1));
            ns
        })
        .collect();
    is_over.store(true, Ordering::Relaxed);
    other.join().unwrap();
    found.sort_by(f64::total_cmp);
    [0.5, 0.99, 0.999].map(|q| found[((found.len() - 1) as f64 * q) as usize]).to_vec()
}

/// Name, and functions for at rest, there and back, latencies.
type Candidate = (&'static str, fn(u64) -> f64, fn(u32, u64) -> f64, fn(u32, u64, bool) -> Vec<f64>);

const OURS: Candidate = ("ours", decisions::<Ours>, alone::<Ours>, latencies::<Ours>);
const PEERS: [Candidate; 4] = [
    ("packed-cas", decisions::<Packed>, alone::<Packed>, latencies::<Packed>),
    ("std-mutex-hashmap", decisions::<StdMutex>, alone::<StdMutex>, latencies::<StdMutex>),
    ("parking_lot-hashmap", decisions::<ParkingLot>, alone::<ParkingLot>, latencies::<ParkingLot>),
    ("dashmap", decisions::<Dash>, alone::<Dash>, latencies::<Dash>),
];
const PARTS: [&str; 3] = ["p50", "p99", "p999"];

fn at_rest(suite: &mut Suite) {
    let windows = suite.effort.scale(400);
    let case = |suite: &mut Suite, (name, decisions, ..): Candidate| {
        let run = move || vec![decisions(windows)];
        suite.case(format!("decision {name}"), &["ns"], (Placement::OneCore, 11), run)
    };
    let ours = case(suite, OURS);
    for peer in PEERS {
        let theirs = case(suite, peer);
        suite.figure("arbiter/decision", "ns", ours, Some((peer.0, theirs)));
    }
}

pub fn register(suite: &mut Suite) {
    at_rest(suite);
    for pages in [1, 1_024] {
        let case = |suite: &mut Suite, (name, _, alone, latencies): Candidate| {
            let effort: Effort = suite.effort;
            let (windows, samples) = (effort.scale(200), effort.scale(50_000));
            let one = (Placement::OneCore, 7);
            let apart =
                suite.case(format!("there and back {pages} {name}"), &["ns"], one, move || vec![alone(pages, windows)]);
            let quiet =
                suite.case(format!("latency {pages} {name}"), &PARTS, one, move || latencies(pages, samples, false));
            let contended =
                suite.case(format!("contended {pages} {name}"), &PARTS, (Placement::CrossCore, 11), move || {
                    latencies(pages, samples, true)
                });
            (apart, quiet, contended)
        };
        let ours = case(suite, OURS);
        for peer in PEERS {
            let theirs = case(suite, peer);
            suite.figure(format!("arbiter/there-and-back-{pages}"), "ns", ours.0, Some((peer.0, theirs.0)));
            for (part, name) in PARTS.iter().enumerate() {
                let figure = |what: &str| format!("arbiter/{what}-{pages}-{name}");
                suite.figure(figure("alone"), "ns", ours.1.part(part), Some((peer.0, theirs.1.part(part))));
                suite.figure(figure("contended"), "ns", ours.2.part(part), Some((peer.0, theirs.2.part(part))));
            }
        }
    }
}
