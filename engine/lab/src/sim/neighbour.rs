//! A second silo's arbiter, which requests the first one's pages over the simulated network.
//!
//! Owns the neighbour's arbiter and states. It has no shots of its own: it keeps a page for a while
//! and returns it. It is suspended at random. Bounds: those of the network and of an arbiter.

use super::network::Network;
use crate::arbiter::deadlines::Timebase;
use crate::arbiter::page::{Hint, Limits, PageTable, Silo};
use crate::board::ArbiterBlock;
use crate::clock::Clock;
use crate::commit::arbiter_driver::{ArbiterDriver, Link};
use crate::commit::state::StreamStates;
use crate::hot::Frame;
use crate::units::{Nanos, Ticks};
use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::sync::Arc;

/// The silo that has the shots.
const HOME: Silo = Silo::new(0);
const AWAY: Silo = Silo::new(1);
/// Requested lease, microseconds.
const LEASE_US: u32 = 300;
/// How long a suspension lasts.
const SUSPENSION: Nanos = Nanos::from_millis(3);

pub(super) struct Neighbour {
    arbiter: ArbiterDriver,
    states: Arc<StreamStates>,
    until: Ticks,
    is_greedy: bool,
}

impl Neighbour {
    /// Creates a neighbour that owns no page, and the first silo's link to it.
    pub(super) fn new(
        (clock, streams, observable_words): (&Clock, u32, usize),
        is_greedy: bool,
        network: &mut Network,
    ) -> (Neighbour, Link) {
        let base = Timebase { rate: clock.rate(), start: clock.start() };
        let pages = Arc::new(PageTable::new(AWAY, streams, Limits::SEED, |_| HOME));
        let states = Arc::new(StreamStates::new(pages, base, observable_words));
        let (link, own) = network.join(HOME, AWAY);
        let arbiter = ArbiterDriver::new(Arc::clone(&states), base, vec![own], None);
        (Neighbour { arbiter, states, until: Ticks(0), is_greedy }, link)
    }

    /// Runs its arbiter once.
    pub(super) fn step(&mut self, frame: &Frame<'_>, block: &ArbiterBlock, random: &mut Xoshiro256PlusPlus) {
        if frame.now < self.until {
            return;
        }
        if random.next_u64().is_multiple_of(500) {
            self.until = frame.now.plus(frame.clock().rate().ticks(SUSPENSION));
            return;
        }
        if self.is_greedy && random.next_u64().is_multiple_of(32) {
            let hint = Hint::ALL[(random.next_u64() % 4) as usize];
            let page = (random.next_u64() % self.states.pages().len() as u64) as u32;
            self.arbiter.want(page, (hint, LEASE_US), frame.now);
        }
        self.arbiter.serve(frame, block, &|_| false);
    }

    /// Stops requesting pages.
    pub(super) fn rest(&mut self) {
        self.is_greedy = false;
        self.arbiter.give_up();
    }

    /// Describes the first page invariant that is violated now.
    pub(super) fn broken(&self, home: &StreamStates) -> Option<String> {
        (0..home.pages().len() as u32).find_map(|page| {
            let (here, there) = (home.pages().word(page), self.states.pages().word(page));
            if here.is_writable() && there.is_writable() {
                return Some(format!("page {page} has two owners: {here:?} and {there:?}"));
            }
            let differ = || home.read(page) != self.states.read(page);
            (there.is_writable() && differ()).then(|| {
                let (old, new) = (home.read(page), self.states.read(page));
                format!("page {page} was written as {old:?} but arrived as {new:?}")
            })
        })
    }

    /// Whether each page has one owner, and no transfer is open.
    pub(super) fn is_settled(&self, home: &StreamStates) -> bool {
        (0..home.pages().len() as u32).all(|page| {
            let words = [home.pages().word(page), self.states.pages().word(page)];
            words.iter().filter(|word| word.is_writable()).count() == 1 && !words.iter().any(|word| word.awaits())
        })
    }
}
