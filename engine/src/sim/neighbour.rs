//! A second silo's arbiter, which wants the first one's pages, and the mail between the two, which is not reliable.
//!
//! Owns the neighbour's steward and states, and the letters under way. Has no shots of its own: what it holds it keeps for
//! a while, and gives back. Bounds: [`MAIL_MAX`] letters under way; one that finds no room is lost. Some letters are
//! lost, some come twice, late or after younger ones; now and then the neighbour stands still.

use crate::arbiter::deadlines::Timebase;
use crate::arbiter::page::{Hint, Limits, PageTable, Silo};
use crate::board::ArbiterBlock;
use crate::clock::Clock;
use crate::decode::state::StreamStates;
use crate::decode::steward::{Letter, Link, Steward};
use crate::hot::Frame;
use crate::units::{Nanos, Ticks};
use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::sync::Arc;

/// The silo that has the shots.
pub(super) const HOME: Silo = Silo::new(0);
const AWAY: Silo = Silo::new(1);
/// Letters under way.
const MAIL_MAX: usize = 64;
/// Lease asked for.
const LEASE_US: u32 = 300;
/// How long a stand-still lasts.
const STUN: Nanos = Nanos::from_millis(3);

/// The neighbour and the mail.
pub(super) struct Neighbour {
    steward: Steward,
    states: Arc<StreamStates>,
    /// The mail's ends of the links to the first silo and to the neighbour.
    ends: [Link; 2],
    /// Letters under way, and to which end.
    mail: Vec<(usize, Letter)>,
    until: Ticks,
    is_greedy: bool,
}

impl Neighbour {
    /// A neighbour that owns nothing yet, and the first silo's link to it.
    pub(super) fn new(clock: &Clock, streams: u32, observable_words: usize, is_greedy: bool) -> (Neighbour, Link) {
        let base = Timebase { rate: clock.rate(), start: clock.start() };
        let pages = Arc::new(PageTable::new(AWAY, streams, Limits::SEED, |_| HOME));
        let states = Arc::new(StreamStates::new(pages, base, observable_words));
        let (link, to_home) = Link::pair(HOME, AWAY);
        let (to_away, own) = Link::pair(HOME, AWAY);
        let steward = Steward::new(Arc::clone(&states), base, vec![own]);
        let (ends, mail) = ([to_home, to_away], Vec::with_capacity(MAIL_MAX));
        (Neighbour { steward, states, ends, mail, until: Ticks(0), is_greedy }, link)
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

    /// The mail's turn: most letters arrive, in whatever order.
    pub(super) fn carry(&mut self, random: &mut Xoshiro256PlusPlus) {
        for end in 0..2 {
            while self.mail.len() < MAIL_MAX
                && let Some(letter) = self.ends[end].takes.pop()
            {
                self.mail.push((1 - end, letter));
            }
        }
        for at in (0..self.mail.len()).rev() {
            let draw = random.next_u64();
            if !draw.is_multiple_of(3) {
                continue;
            }
            let (end, letter) = self.mail[at];
            let (is_lost, is_doubled) = ((draw >> 8).is_multiple_of(12), (draw >> 16).is_multiple_of(12));
            if !is_lost {
                let _ = self.ends[end].sends.push(letter);
            }
            if is_lost || !is_doubled {
                self.mail.remove(at);
            }
        }
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
