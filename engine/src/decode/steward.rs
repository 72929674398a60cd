//! The silo's arbiter, as the graph role runs it: who may write which stream's state.
//!
//! Owns the silo's [`Keeper`] and the rings to other silos. Run by the graph role, once a frame. Bounds: [`LETTERS_MAX`]
//! letters of each ring in a frame; one request for each page; a look at deadlines each [`LOOK_EVERY`] (at rest: [`LOOK_AT_REST_EVERY`]), at the board each
//! [`PUBLISH_EVERY`]. Never waits: a page that is away is asked for, and its stream's commits are not submitted meanwhile.
//!
//! # Why the graph role
//! Whether a stream has uncommitted work is what the arbiter must know before a page may go, and the graph role alone knows it: it
//! submits the commits. On its thread the answer is a look at a task number; from any other it would be a word more
//! for each shot, and old when read. So a page that goes has no commit under way, and none is submitted while it is away.

use super::state::{StateBytes, StreamStates};
use crate::arbiter::deadlines::Timebase;
use crate::arbiter::driver::{Asked, Gva, PAGE_BYTES, Want};
use crate::arbiter::fence::Fenced;
use crate::arbiter::keeper::{Ground, Keeper};
use crate::arbiter::page::{Epoch, Hint, Moment, PageTable, Response, Routes, SILOS_MAX, Signals, Silo, WriteBuffer};
use crate::arbiter::protocol::{Change, Message};
use crate::arbiter::retry::{BackOff, Next};
use crate::board::ArbiterBlock;
use crate::clock::Clock;
use crate::hot::Frame;
use crate::hot::post::{Sends, Takes, post};
use crate::units::{Nanos, Ticks};
use pinwheel_edge::ring::spsc::{Consumer, Producer, channel};
use std::sync::Arc;

#[cfg(test)]
mod tests;

/// Letters taken of one ring in a frame.
pub const LETTERS_MAX: usize = 16;
/// From one look at deadlines to the next.
pub const LOOK_EVERY: Nanos = Nanos(2_000);
/// The same while no page is on its way or wanted, and only leases and heat end.
pub const LOOK_AT_REST_EVERY: Nanos = Nanos(50_000);
/// From one look of the board to the next.
pub const PUBLISH_EVERY: Nanos = Nanos(20_000_000);
/// Slots of a ring between two silos.
const LINK_SLOTS: usize = 64;
/// An answer that takes longer is given up, and the request made again.
const ANSWER_US_MAX: u32 = 200;
/// Lock asked for; what a readout takes is a tenth of it.
const LOCK_US: u32 = 100;

/// A message on its way between two silos.
#[derive(Clone, Copy, Debug)]
pub struct Letter {
    /// Of which page.
    pub page: u32,
    /// From whom.
    pub from: Silo,
    /// What.
    pub message: Message,
    /// PAGE_DATA, beside a GRANT.
    pub state: StateBytes,
}

/// One silo's ends of the rings to and from another one.
pub struct Link {
    /// The other one.
    pub to: Silo,
    /// To it.
    pub sends: Producer<Letter>,
    /// From it.
    pub takes: Consumer<Letter>,
}

impl Link {
    /// The links of silos `one` and `other` to each other.
    #[must_use]
    pub fn pair(one: Silo, other: Silo) -> (Link, Link) {
        let ((there, from_one), (back, from_other)) = (channel(LINK_SLOTS), channel(LINK_SLOTS));
        (Link { to: other, sends: there, takes: from_other }, Link { to: one, sends: back, takes: from_one })
    }
}

/// What an arbiter is told of other silos.
pub enum Tidings {
    /// One is fenced.
    Died {
        /// The evidence.
        fenced: Fenced,
        /// Its table.
        remains: Arc<PageTable>,
        /// Its streams' records.
        states: Arc<StreamStates>,
        /// Who has its pages from now on.
        heir: Silo,
    },
    /// One is there again.
    Back {
        /// To it.
        link: Link,
    },
}

/// What an arbiter says to that; with what it has no more use for, to be dropped elsewhere.
pub enum Heard {
    /// What the dead silo left is looked through.
    Buried {
        /// Its table.
        remains: Arc<PageTable>,
        /// Its streams' records.
        states: Arc<StreamStates>,
    },
    /// The link before.
    Welcomed(Option<Link>),
}

/// An arbiter's end of the way to who knows which silos live.
pub struct Post {
    /// What it is told.
    pub takes: Takes<Tidings>,
    /// What it says.
    pub tells: Sends<Heard>,
}

/// Tidings that wait: there is one death or one return at a time.
const TIDINGS_MAX: usize = 2;

impl Post {
    /// Both ends.
    #[must_use]
    pub fn pair() -> ((Sends<Tidings>, Takes<Heard>), Post) {
        let ((tells, takes), (says, hears)) = (post(TIDINGS_MAX), post(TIDINGS_MAX));
        ((tells, hears), Post { takes, tells: says })
    }
}

/// A page that is away and wanted.
struct Wanted {
    page: u32,
    what: Want,
    back_off: BackOff,
    again: Moment,
    refusal: Option<Response>,
}

/// The arbiter and its ways out.
pub struct Steward {
    keeper: Keeper,
    floor: Floor,
    wanted: Vec<Wanted>,
    looked: Ticks,
    published: Ticks,
    post: Option<Post>,
    /// Whose remains are looked through.
    burying: Option<(Silo, Arc<PageTable>)>,
}

/// What the keeper works with.
struct Floor {
    states: Arc<StreamStates>,
    links: Vec<Link>,
    /// The records of the silo that is buried.
    left: Option<Arc<StreamStates>>,
    /// The bytes beside the message in hand.
    incoming: StateBytes,
}

/// The floor in one frame.
struct Standing<'a> {
    floor: &'a mut Floor,
    clock: &'a Clock,
    is_pending: &'a dyn Fn(u32) -> bool,
}

impl Ground for Standing<'_> {
    fn signals(&self, page: u32) -> Signals {
        let write_buffer = if (self.is_pending)(page) { WriteBuffer::Pending } else { WriteBuffer::Drained };
        Signals { write_buffer }
    }

    fn put(&mut self, page: u32) {
        self.floor.states.put(page, &self.floor.incoming);
    }

    fn inherit(&mut self, page: u32, dead: Silo) {
        let Some(left) = &self.floor.left else { unreachable!("silo {} is buried with its records", dead.number()) };
        // Nobody writes there any more.
        self.floor.states.put(page, &left.bytes(page));
    }

    fn send(&mut self, to: Silo, page: u32, message: Message) {
        let Floor { states, links, .. } = &mut *self.floor;
        let Some(link) = links.iter_mut().find(|link| link.to == to) else { return };
        let state = if matches!(message, Message::Grant(_)) { states.bytes(page) } else { StateBytes::default() };
        // One that finds no room is lost, as on any channel: the protocol asks again.
        let _ = link.sends.push(Letter { page, from: states.pages().silo(), message, state });
    }

    fn ticks(&self) -> Ticks {
        self.clock.ticks()
    }
}

impl Steward {
    /// The arbiter of `states`, with the links to the silos that it exchanges pages with.
    #[must_use]
    pub fn new(states: Arc<StreamStates>, base: Timebase, mut links: Vec<Link>, post: Option<Post>) -> Steward {
        // Those that come back later find room.
        links.reserve(SILOS_MAX as usize);
        let pages = Arc::clone(states.pages());
        let routes = Arc::new(Routes::new(pages.len() as u32, |page| pages.word(page).owner()));
        let wanted = Vec::with_capacity(pages.len());
        let keeper = Keeper::new(pages, routes, base, |_| 0);
        let floor = Floor { states, links, left: None, incoming: StateBytes::default() };
        Steward { keeper, floor, wanted, looked: base.start, published: Ticks(0), post, burying: None }
    }

    /// Of silos that died before this one was built: who answers for each.
    #[must_use]
    pub fn after(mut self, heirs: &[(Silo, Silo)]) -> Steward {
        heirs.iter().for_each(|(dead, heir)| self.keeper.appoint(*dead, *heir));
        self
    }

    /// Takes in what became of other silos.
    fn hear(&mut self, frame: &Frame<'_>, is_pending: &dyn Fn(u32) -> bool) {
        let Steward { keeper, floor, post: Some(post), burying, .. } = self else { return };
        if let Some((dead, remains)) = burying.take_if(|(dead, _)| keeper.is_settled(*dead))
            && let Some(states) = floor.left.take()
        {
            debug_assert!(keeper.is_settled(dead));
            assert!(post.tells.push(Heard::Buried { remains, states }).is_ok(), "each tiding is answered once");
        }
        if burying.is_some() {
            return;
        }
        match post.takes.pop() {
            None => {}
            Some(Tidings::Died { fenced, remains, states, heir }) => {
                floor.left = Some(states);
                let mut ground = Standing { floor, clock: frame.clock(), is_pending };
                keeper.bury(&mut ground, &fenced, &remains, heir);
                *burying = Some((fenced.silo(), remains));
            }
            Some(Tidings::Back { link }) => {
                keeper.appoint(link.to, link.to);
                let place = floor.links.iter_mut().find(|before| before.to == link.to);
                let before = match place {
                    Some(place) => Some(std::mem::replace(place, link)),
                    // One that was dead when this one was built.
                    None => {
                        floor.links.push(link);
                        None
                    }
                };
                assert!(post.tells.push(Heard::Welcomed(before)).is_ok(), "each tiding is answered once");
            }
        }
    }

    /// Whether a commit to `stream` may be submitted: its page is here, and is not on its way.
    #[inline]
    #[must_use]
    pub fn may_commit(&self, stream: u32) -> bool {
        self.keeper.table().word(stream).is_writable()
    }

    /// Asks for the page of `stream` until it is here, for `what` and so many microseconds.
    pub fn want(&mut self, stream: u32, what: impl Into<Want>, now: Ticks) {
        let what = what.into();
        match self.wanted.iter_mut().find(|wanted| wanted.page == stream) {
            // Whoever is to keep the page asks with more weight than who waits for it.
            Some(wanted) if what.hint == Hint::Migrate => wanted.what = what,
            Some(_) => {}
            None => {
                let (again, back_off) = (self.keeper.moment(now), BackOff::new(stream + 1));
                self.wanted.push(Wanted { page: stream, what, back_off, again, refusal: None });
            }
        }
    }

    /// Asks for the page of `stream` no more; what its owner had said last. What is on its way comes all the same.
    pub fn forget(&mut self, stream: u32) -> Option<Response> {
        let at = self.wanted.iter().position(|wanted| wanted.page == stream)?;
        self.wanted.swap_remove(at).refusal
    }

    /// The page of `stream` is here to stay: holds a lease of so many microseconds, if any. Returns its epoch.
    pub fn settle_in(
        &mut self,
        stream: u32,
        lease_us: u32,
        frame: &Frame<'_>,
        is_pending: &dyn Fn(u32) -> bool,
    ) -> Epoch {
        if lease_us > 0 {
            let mut ground = Standing { floor: &mut self.floor, clock: frame.clock(), is_pending };
            // Refused only if somebody drains the page already: then it may move on, which a lease would delay.
            let _ = self.keeper.request_ownership(&mut ground, gva(stream), (Hint::Lease, lease_us), &BackOff::new(1));
        }
        self.keeper.table().word(stream).epoch()
    }

    /// Locks the page of `stream`: the epoch of the lock. Without it, the page is asked for if it is away.
    pub fn lock(&mut self, stream: u32, frame: &Frame<'_>, is_pending: &dyn Fn(u32) -> bool) -> Option<Epoch> {
        if !self.may_commit(stream) {
            self.want(stream, (Hint::Lock, LOCK_US), frame.now);
            return None;
        }
        let mut ground = Standing { floor: &mut self.floor, clock: frame.clock(), is_pending };
        let asked = self.keeper.request_ownership(&mut ground, gva(stream), (Hint::Lock, LOCK_US), &BackOff::new(1));
        let is_locked = matches!(asked, Ok(Asked::Here(response)) if response.is_granted());
        is_locked.then(|| self.keeper.table().word(stream).epoch())
    }

    /// Locks both pages, the lower one first. Without the higher one the lower one stays locked, as long as a lock lasts:
    /// call again, or give both back.
    ///
    /// # Why the first lock is kept
    /// A silo that gave it back while the other page is on its way would find it gone when that page comes: of two silos
    /// with a page each, the one that happened to hold both would go on for ever, and the other get one after the other and
    /// never both. Nobody waits for a lower page with a higher one in hand, so keeping it cannot deadlock; a refused silo
    /// drains the page, so that the holder's next lock is refused and the turn is its.
    pub fn lock_both(
        &mut self,
        [low, high]: [u32; 2],
        frame: &Frame<'_>,
        is_pending: &dyn Fn(u32) -> bool,
    ) -> Option<[Epoch; 2]> {
        let one = self.lock(low, frame, is_pending)?;
        let other = self.lock(high, frame, is_pending)?;
        Some([one, other])
    }

    /// Gives a lock back. One that has ended by its time is not held, which is as well; a lease that the stream came with
    /// stays.
    pub fn unlock(&mut self, stream: u32, now: Ticks) {
        if self.keeper.table().word(stream).hint() == Hint::Lease {
            return;
        }
        let _ = self.keeper.release_ownership(gva(stream), now);
    }

    /// Asks for no page any more. What is on its way comes all the same.
    pub fn give_up(&mut self) {
        self.wanted.clear();
    }

    /// Letters, decisions, deadlines, requests, the board. `is_pending` says whether a commit of a stream is under way.
    #[inline]
    pub fn serve(&mut self, frame: &Frame<'_>, block: &ArbiterBlock, is_pending: &dyn Fn(u32) -> bool) -> u32 {
        let rate = frame.clock().rate();
        let mut items = 0;
        let mut every = LOOK_AT_REST_EVERY;
        if self.post.is_some() {
            self.hear(frame, is_pending);
        }
        if !self.floor.links.is_empty() {
            items = self.exchange(frame, is_pending);
            if self.keeper.transfers_open() > 0 || !self.wanted.is_empty() || self.burying.is_some() {
                every = LOOK_EVERY;
            }
        }
        if frame.now.since(self.looked) >= rate.ticks(every) {
            self.looked = frame.now;
            let mut ground = Standing { floor: &mut self.floor, clock: frame.clock(), is_pending };
            self.keeper.look(&mut ground);
            self.ask(frame, is_pending);
            if frame.now.since(self.published) >= rate.ticks(PUBLISH_EVERY) {
                self.published = frame.now;
                self.keeper.publish(block);
            }
        }
        items
    }

    fn exchange(&mut self, frame: &Frame<'_>, is_pending: &dyn Fn(u32) -> bool) -> u32 {
        let mut items = 0;
        for link in 0..self.floor.links.len() {
            for _ in 0..LETTERS_MAX {
                let Some(letter) = self.floor.links[link].takes.pop() else { break };
                items += 1;
                self.floor.incoming = letter.state;
                let mut ground = Standing { floor: &mut self.floor, clock: frame.clock(), is_pending };
                let change = self.keeper.receive(&mut ground, letter.page, letter.from, &letter.message);
                if let Change::Refused(response) = change {
                    self.refused(letter.page, response, frame.ticks());
                }
            }
        }
        let mut ground = Standing { floor: &mut self.floor, clock: frame.clock(), is_pending };
        self.keeper.decide(&mut ground);
        items
    }

    fn refused(&mut self, page: u32, response: Response, now: Ticks) {
        let now = self.keeper.moment(now);
        let Some(wanted) = self.wanted.iter_mut().find(|wanted| wanted.page == page) else { return };
        wanted.next(response, now);
    }

    /// Requests whose time has come.
    fn ask(&mut self, frame: &Frame<'_>, is_pending: &dyn Fn(u32) -> bool) {
        let pages = Arc::clone(self.floor.states.pages());
        self.wanted.retain(|wanted| !pages.word(wanted.page).is_writable());
        let now = self.keeper.moment(frame.now);
        let Steward { keeper, floor, wanted, .. } = self;
        for wanted in wanted.iter_mut().filter(|wanted| wanted.again.has_passed(now)) {
            let mut ground = Standing { floor, clock: frame.clock(), is_pending };
            match keeper.request_ownership(&mut ground, gva(wanted.page), wanted.what, &wanted.back_off) {
                Ok(Asked::Here(response)) => wanted.next(response, now),
                Ok(Asked::Send { .. }) => wanted.again = now.plus(ANSWER_US_MAX),
                Err(error) => unreachable!("a stream has a page: {error}"),
            }
        }
    }
}

fn gva(page: u32) -> Gva {
    Gva(u64::from(page) * PAGE_BYTES)
}

impl Wanted {
    /// After a refusal. Whoever waits for the page does so until its shots' deadlines, so nobody gives up here.
    fn next(&mut self, response: Response, now: Moment) {
        self.refusal = Some(response);
        match self.back_off.next(response, now) {
            Next::At(again) => self.again = again,
            Next::Done | Next::GiveUp => {
                self.back_off = BackOff::new(self.page + 1);
                self.again = now.plus(ANSWER_US_MAX);
            }
        }
    }
}
