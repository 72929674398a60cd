//! Two silos' arbiters on one thread, connected by their rings.

#![allow(clippy::unwrap_used, reason = "harness")]

use super::{ArbiterDriver, Link};
use crate::arbiter::deadlines::Timebase;
use crate::arbiter::driver::Want;
use crate::arbiter::page::{Authority, Hint, Limits, PageTable, Silo, State};
use crate::board::{Board, Place, Shape};
use crate::clock::Clock;
use crate::commit::state::StreamStates;
use crate::hot::{Frame, Scratch};
use pinwheel_edge::spin::Phase;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const IDLE: fn(u32) -> bool = |_| false;

/// Two arbiters with one page each; silo `n` owns page `n`.
struct Pair {
    nanos: Arc<AtomicU64>,
    clock: Clock,
    board: Board,
    scratch: Scratch,
    arbiters: [ArbiterDriver; 2],
}

impl Pair {
    fn new() -> Pair {
        let nanos = Arc::new(AtomicU64::new(1_000_000));
        let clock = Clock::virtual_time(Arc::clone(&nanos));
        let shape = Shape { threads: 1, silos: 2, slots: 1, workers: 1, decoders: 1, streams: 2 };
        let board = Board::create(shape, Place::Private).unwrap();
        let base = Timebase { rate: clock.rate(), start: clock.start() };
        let arbiter = |silo: u8, link: Link| {
            let pages = Arc::new(PageTable::new(Silo::new(silo), 2, Limits::SEED, |page| Silo::new(page as u8)));
            ArbiterDriver::new(Arc::new(StreamStates::new(pages, base, 1)), base, vec![link], None)
        };
        let (one, other) = Link::pair(Silo::new(0), Silo::new(1));
        let arbiters = [arbiter(0, one), arbiter(1, other)];
        Pair { nanos, clock, board, scratch: Scratch::new(), arbiters }
    }

    /// One frame of silo `silo`: its arbiter, then `body`.
    fn frame<R>(&mut self, silo: usize, body: impl FnOnce(&mut ArbiterDriver, &Frame<'_>) -> R) -> R {
        self.nanos.fetch_add(250, Ordering::Relaxed);
        let frame = Frame::new(&self.clock, self.clock.ticks(), Phase::Live, &mut self.scratch);
        self.arbiters[silo].serve(&frame, self.board.arbiter(silo), &IDLE);
        body(&mut self.arbiters[silo], &frame)
    }
}

#[test]
fn two_silos_that_lock_both_pages_take_turns() {
    let mut pair = Pair::new();
    let mut acquired = [0u32; 2];
    for _ in 0..100_000 {
        for (silo, acquired) in acquired.iter_mut().enumerate() {
            pair.frame(silo, |arbiter, frame| {
                if arbiter.lock_both([0, 1], frame, &IDLE).is_some() {
                    *acquired += 1;
                    arbiter.unlock(1, frame.ticks());
                    arbiter.unlock(0, frame.ticks());
                }
            });
        }
    }
    let [fewer, more] = [acquired.iter().min().unwrap(), acquired.iter().max().unwrap()];
    assert!(*fewer > 1_000 && more < &(fewer * 2), "acquisitions of both pages by silo: {acquired:?}");
}

#[test]
fn a_stream_that_settles_in_gets_a_lease_if_one_is_asked_for() {
    let mut pair = Pair::new();
    let settled = |pair: &mut Pair, lease_us| {
        pair.frame(0, |arbiter, frame| {
            let epoch = arbiter.settle_in(0, lease_us, frame);
            let word = arbiter.directory.table().word(0);
            assert_eq!(epoch, word.epoch());
            word.state()
        })
    };
    assert_eq!(settled(&mut pair, 0), State::Idle);
    assert_eq!(settled(&mut pair, 50), State::Leased);
}

#[test]
fn an_operators_move_does_not_wait_for_the_lease_that_an_earlier_request_waits_for() {
    let mut pair = Pair::new();
    let mut ask = |authority, what: (Hint, u32)| {
        let want = Want { authority, ..Want::from(what) };
        pair.frame(1, |arbiter, frame| arbiter.settle_in(1, 4_000_000, frame));
        pair.frame(0, |arbiter, frame| arbiter.want(1, want, frame.now));
        // Half a millisecond.
        (0..1_000).any(|_| {
            pair.frame(1, |_, _| ());
            pair.frame(0, |arbiter, _| arbiter.may_commit(1))
        })
    };
    assert!(!ask(Authority::Port, (Hint::Lock, 50)));
    assert!(ask(Authority::Operator, (Hint::Migrate, 0)));
}
