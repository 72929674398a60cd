//! A second silo's arbiter, which wants the first one's pages, by way of the mail.
//!
//! Owns the neighbour's steward and states. Has no shots of its own: what it holds it keeps for a while, and gives back. Now
//! and then it stands still. Bounds: those of the mail and of a steward.

use super::mail::Mail;
use crate::arbiter::deadlines::Timebase;
use crate::arbiter::page::{Hint, Limits, PageTable, Silo};
use crate::board::ArbiterBlock;
use crate::clock::Clock;
use crate::decode::state::StreamStates;
use crate::decode::steward::{Link, Steward};
use crate::hot::Frame;
use crate::units::{Nanos, Ticks};
use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::sync::Arc;

/// The silo that has the shots.
pub(super) const HOME: Silo = Silo::new(0);
const AWAY: Silo = Silo::new(1);
/// Lease asked for.
const LEASE_US: u32 = 300;
/// How long a stand-still lasts.
const STUN: Nanos = Nanos::from_millis(3);

/// The neighbour and the mail.
pub(super) struct Neighbour {
    steward: Steward,
    states: Arc<StreamStates>,
    mail: Mail,
    until: Ticks,
    is_greedy: bool,
}

impl Neighbour {
    /// A neighbour that owns nothing yet, and the first silo's link to it.
    pub(super) fn new(clock: &Clock, streams: u32, observable_words: usize, is_greedy: bool) -> (Neighbour, Link) {
        let base = Timebase { rate: clock.rate(), start: clock.start() };
        let pages = Arc::new(PageTable::new(AWAY, streams, Limits::SEED, |_| HOME));
        let states = Arc::new(StreamStates::new(pages, base, observable_words));
        let mut mail = Mail::new();
        let (link, own) = mail.join(HOME, AWAY);
        let steward = Steward::new(Arc::clone(&states), base, vec![own], None);
        (Neighbour { steward, states, mail, until: Ticks(0), is_greedy }, link)
    }

    /// Its arbiter's turn.
    pub(super) fn step(&mut self, frame: &Frame<'_>, block: &ArbiterBlock, random: &mut Xoshiro256PlusPlus) {
        if frame.now < self.until {
            return;
        }
        if random.next_u64().is_multiple_of(500) {
            self.until = frame.now.plus(frame.clock().rate().ticks(STUN));
            return;
        }
        if self.is_greedy && random.next_u64().is_multiple_of(32) {
            let hint = Hint::ALL[(random.next_u64() % 4) as usize];
            let page = (random.next_u64() % self.states.pages().len() as u64) as u32;
            self.steward.want(page, (hint, LEASE_US), frame.now);
        }
        self.steward.serve(frame, block, &|_| false);
    }

    /// It wants nothing any more.
    pub(super) fn rest(&mut self) {
        self.is_greedy = false;
        self.steward.give_up();
    }

    /// The mail's turn.
    pub(super) fn carry(&mut self, random: &mut Xoshiro256PlusPlus) {
        self.mail.carry(random);
    }

    /// The first promise about pages that is broken now.
    pub(super) fn broken(&self, home: &StreamStates) -> Option<String> {
        (0..home.pages().len() as u32).find_map(|page| {
            let (here, there) = (home.pages().word(page), self.states.pages().word(page));
            if here.is_writable() && there.is_writable() {
                return Some(format!("page {page} has two owners: {here:?} and {there:?}"));
            }
            let differ = || home.read(page) != self.states.read(page);
            (there.is_writable() && differ()).then(|| {
                let (old, new) = (home.read(page), self.states.read(page));
                format!("page {page} arrived as {new:?}, and was written as {old:?}")
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
