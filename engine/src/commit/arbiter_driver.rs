//! The silo's arbiter, as the graph role runs it: which silo may write each stream's state.
//!
//! Owns the silo's [`OwnershipDirectory`] and the rings to other silos. The graph role runs it once
//! a frame. Bounds: [`MESSAGES_MAX`] messages of each ring in a frame; one request for each page; a
//! check of deadlines each [`LOOK_EVERY`] (at rest: [`LOOK_AT_REST_EVERY`]), the board each
//! [`PUBLISH_EVERY`]. Never waits: a page that is away is requested, and its stream's commits are
//! not submitted meanwhile.
//!
//! # Why the graph role
//! Before a page may leave, the arbiter must know that no commit writes it and no readout reads it.
//! The graph role commits on its own thread, so none is in progress while the arbiter runs, and it
//! knows which readouts run. Any other thread would need one more word for each shot, stale when
//! read.

use super::state::{StateBytes, StreamStates};
use crate::arbiter::deadlines::Timebase;
use crate::arbiter::directory::{Context, OwnershipDirectory};
use crate::arbiter::driver::{Asked, Gva, PAGE_BYTES, Want};
use crate::arbiter::fence::Fenced;
use crate::arbiter::page::{Epoch, Hint, Moment, PageTable, Response, Routes, SILOS_MAX, Signals, Silo, WriteBuffer};
use crate::arbiter::protocol::{Change, Message};
use crate::arbiter::retry::{BackOff, Next};
use crate::board::ArbiterBlock;
use crate::clock::Clock;
use crate::hot::Frame;
use crate::hot::mailbox::{MailboxReceiver, MailboxSender, mailbox};
use crate::units::{Nanos, Ticks};
use pinwheel_edge::ring::spsc::{Consumer, Producer, channel};
use std::sync::Arc;

#[cfg(test)]
mod tests;

/// Most messages taken from one ring in a frame.
pub const MESSAGES_MAX: usize = 16;
/// Interval between two checks of deadlines.
pub const LOOK_EVERY: Nanos = Nanos(2_000);
/// The same interval while no page is in transfer or requested, and only leases and heat end.
pub const LOOK_AT_REST_EVERY: Nanos = Nanos(50_000);
/// Interval between two publications on the board.
pub const PUBLISH_EVERY: Nanos = Nanos(20_000_000);
/// Slots of a ring between two silos.
const LINK_SLOTS: usize = 64;
/// A request without a reply after this long is sent again.
const ANSWER_US_MAX: u32 = 200;
/// Length of a lock, in microseconds; a readout takes a tenth of it.
const LOCK_US: u32 = 100;

/// A message between two silos.
#[derive(Clone, Copy, Debug)]
pub struct PageMessage {
    /// Page that the message concerns.
    pub page: u32,
    /// Sender.
    pub from: Silo,
    /// Message of the protocol.
    pub message: Message,
    /// PAGE_DATA, beside a GRANT.
    pub state: StateBytes,
}

/// One silo's ends of the rings to and from another silo.
pub struct Link {
    /// The other silo.
    pub to: Silo,
    /// Sends to the other silo.
    pub sends: Producer<PageMessage>,
    /// Receives from the other silo.
    pub takes: Consumer<PageMessage>,
}

impl Link {
    /// The links of silos `one` and `other` to each other.
    pub fn pair(one: Silo, other: Silo) -> (Link, Link) {
        let ((there, from_one), (back, from_other)) = (channel(LINK_SLOTS), channel(LINK_SLOTS));
        (Link { to: other, sends: there, takes: from_other }, Link { to: one, sends: back, takes: from_one })
    }
}

/// Changes of other silos, as an arbiter receives them.
pub enum MembershipEvent {
    /// A silo is dead and fenced.
    Died {
        /// Proof that it is fenced.
        fenced: Fenced,
        /// The dead silo's page table.
        dead_pages: Arc<PageTable>,
        /// The dead silo's stream records.
        states: Arc<StreamStates>,
        /// The silo that takes its pages over.
        successor: Silo,
    },
    /// A silo runs again.
    Restarted {
        /// Link to it.
        link: Link,
    },
}

/// An arbiter's acknowledgement, with parts that it no longer uses, to be dropped on a cold thread.
pub enum MembershipAck {
    /// The pages of the dead silo are taken over.
    TakenOver {
        /// The dead silo's page table.
        dead_pages: Arc<PageTable>,
        /// The dead silo's stream records.
        states: Arc<StreamStates>,
    },
    /// The link is in use; the link that it replaced.
    Linked(Option<Link>),
}

/// An arbiter's end of the mailboxes to the supervisor of the silos.
pub struct MembershipEndpoint {
    /// Events for the arbiter.
    pub takes: MailboxReceiver<MembershipEvent>,
    /// The arbiter's acknowledgements.
    pub tells: MailboxSender<MembershipAck>,
}

/// Capacity of a mailbox: there is one death or one restart at a time.
const EVENTS_MAX: usize = 2;

impl MembershipEndpoint {
    /// Both ends of the mailboxes.
    pub fn pair() -> ((MailboxSender<MembershipEvent>, MailboxReceiver<MembershipAck>), MembershipEndpoint) {
        let ((tells, takes), (says, hears)) = (mailbox(EVENTS_MAX), mailbox(EVENTS_MAX));
        ((tells, hears), MembershipEndpoint { takes, tells: says })
    }
}

/// A page that is away and requested.
struct Wanted {
    page: u32,
    what: Want,
    back_off: BackOff,
    again: Moment,
    refusal: Option<Response>,
}

/// The silo's arbiter with its rings.
pub struct ArbiterDriver {
    directory: OwnershipDirectory,
    storage: Storage,
    wanted: Vec<Wanted>,
    looked: Ticks,
    published: Ticks,
    membership: Option<MembershipEndpoint>,
    /// The dead silo whose pages are being taken over, and its table.
    taking_over: Option<(Silo, Arc<PageTable>)>,
}

/// The streams' states and the links, for the directory.
struct Storage {
    states: Arc<StreamStates>,
    links: Vec<Link>,
    /// The records of the dead silo that is being taken over.
    left: Option<Arc<StreamStates>>,
    /// The PAGE_DATA of the message being handled.
    incoming: StateBytes,
}

/// The storage, the clock and the readouts of one frame.
struct FrameContext<'a> {
    storage: &'a mut Storage,
    clock: &'a Clock,
    is_read: &'a dyn Fn(u32) -> bool,
}

impl Context for FrameContext<'_> {
    fn signals(&self, page: u32) -> Signals {
        let write_buffer = if (self.is_read)(page) { WriteBuffer::Pending } else { WriteBuffer::Drained };
        Signals { write_buffer }
    }

    fn put(&mut self, page: u32) {
        self.storage.states.put(page, &self.storage.incoming);
    }

    fn take_over(&mut self, page: u32, dead: Silo) {
        let Some(left) = &self.storage.left else {
            unreachable!("the records of dead silo {} are missing", dead.number())
        };
        // No thread writes the dead silo's records any more.
        self.storage.states.put(page, &left.bytes(page));
    }

    fn send(&mut self, to: Silo, page: u32, message: Message) {
        let Storage { states, links, .. } = &mut *self.storage;
        let Some(link) = links.iter_mut().find(|link| link.to == to) else { return };
        let state = if matches!(message, Message::Grant(_)) { states.bytes(page) } else { StateBytes::default() };
        // A message that finds no room is lost, as on any channel: the protocol asks again.
        let _ = link.sends.push(PageMessage { page, from: states.pages().silo(), message, state });
    }

    fn ticks(&self) -> Ticks {
        self.clock.ticks()
    }
}

impl ArbiterDriver {
    /// The arbiter of `states`, with the links to the silos that it exchanges pages with.
    pub fn new(
        states: Arc<StreamStates>,
        base: Timebase,
        mut links: Vec<Link>,
        membership: Option<MembershipEndpoint>,
    ) -> ArbiterDriver {
        // Room for silos that are rebuilt later.
        links.reserve(SILOS_MAX as usize);
        let pages = Arc::clone(states.pages());
        let routes = Arc::new(Routes::new(pages.len() as u32, |page| pages.word(page).owner()));
        let wanted = Vec::with_capacity(pages.len());
        let directory = OwnershipDirectory::new(pages, routes, base, |_| 0);
        let storage = Storage { states, links, left: None, incoming: StateBytes::default() };
        ArbiterDriver {
            directory,
            storage,
            wanted,
            looked: base.start,
            published: Ticks(0),
            membership,
            taking_over: None,
        }
    }

    /// Appoints the successors of silos that died before this arbiter was built.
    #[must_use]
    pub fn after(mut self, successors: &[(Silo, Silo)]) -> ArbiterDriver {
        successors.iter().for_each(|(dead, successor)| self.directory.appoint(*dead, *successor));
        self
    }

    /// Handles changes of other silos.
    fn receive_membership(&mut self, frame: &Frame<'_>, is_read: &dyn Fn(u32) -> bool) {
        let ArbiterDriver { directory, storage, membership: Some(membership), taking_over, .. } = self else { return };
        if let Some((dead, dead_pages)) = taking_over.take_if(|(dead, _)| directory.is_settled(*dead))
            && let Some(states) = storage.left.take()
        {
            debug_assert!(directory.is_settled(dead));
            assert!(
                membership.tells.push(MembershipAck::TakenOver { dead_pages, states }).is_ok(),
                "each event is acknowledged once"
            );
        }
        if taking_over.is_some() {
            return;
        }
        match membership.takes.pop() {
            None => {}
            Some(MembershipEvent::Died { fenced, dead_pages, states, successor }) => {
                storage.left = Some(states);
                let mut context = FrameContext { storage, clock: frame.clock(), is_read };
                directory.take_over_pages(&mut context, &fenced, &dead_pages, successor);
                *taking_over = Some((fenced.silo(), dead_pages));
            }
            Some(MembershipEvent::Restarted { link }) => {
                directory.appoint(link.to, link.to);
                let place = storage.links.iter_mut().find(|before| before.to == link.to);
                let before = match place {
                    Some(place) => Some(std::mem::replace(place, link)),
                    // The silo was dead when this arbiter was built.
                    None => {
                        storage.links.push(link);
                        None
                    }
                };
                assert!(
                    membership.tells.push(MembershipAck::Linked(before)).is_ok(),
                    "each event is acknowledged once"
                );
            }
        }
    }

    /// Whether `stream` may be committed to: its page is here and not in transfer.
    #[inline]
    pub fn may_commit(&self, stream: u32) -> bool {
        self.directory.table().word(stream).is_writable()
    }

    /// Requests the page of `stream` until it is here.
    pub fn want(&mut self, stream: u32, what: impl Into<Want>, now: Ticks) {
        let what = what.into();
        match self.wanted.iter_mut().find(|wanted| wanted.page == stream) {
            // A request to keep the page outweighs one to write it once, and may be granted where that was refused.
            Some(wanted) if what.hint == Hint::Migrate => {
                (wanted.what, wanted.again) = (what, self.directory.moment(now));
            }
            Some(_) => {}
            None => {
                let (again, back_off) = (self.directory.moment(now), BackOff::new(stream + 1));
                self.wanted.push(Wanted { page: stream, what, back_off, again, refusal: None });
            }
        }
    }

    /// Stops requesting the page of `stream`; returns its owner's last refusal. A page in transfer
    /// arrives all the same.
    pub fn forget(&mut self, stream: u32) -> Option<Response> {
        let at = self.wanted.iter().position(|wanted| wanted.page == stream)?;
        self.wanted.swap_remove(at).refusal
    }

    /// The page of `stream` is here to stay: takes a lease of `lease_us` microseconds, if any.
    /// Returns its epoch.
    pub fn settle_in(&mut self, stream: u32, lease_us: u32, frame: &Frame<'_>) -> Epoch {
        if lease_us > 0 {
            // No readout reads a page that has just arrived.
            let is_read = &|_| false;
            let mut context = FrameContext { storage: &mut self.storage, clock: frame.clock(), is_read };
            // Refused only if another silo drains the page already: it may then move on, which a
            // lease would delay.
            let _ =
                self.directory.request_ownership(&mut context, gva(stream), (Hint::Lease, lease_us), &BackOff::new(1));
        }
        self.directory.table().word(stream).epoch()
    }

    /// Locks the page of `stream` and returns the epoch of the lock. Otherwise requests the page if
    /// it is away.
    pub fn lock(&mut self, stream: u32, frame: &Frame<'_>, is_read: &dyn Fn(u32) -> bool) -> Option<Epoch> {
        if !self.may_commit(stream) {
            self.want(stream, (Hint::Lock, LOCK_US), frame.now);
            return None;
        }
        let mut context = FrameContext { storage: &mut self.storage, clock: frame.clock(), is_read };
        let asked =
            self.directory.request_ownership(&mut context, gva(stream), (Hint::Lock, LOCK_US), &BackOff::new(1));
        let is_locked = matches!(asked, Ok(Asked::Here(response)) if response.is_granted());
        is_locked.then(|| self.directory.table().word(stream).epoch())
    }

    /// Locks both pages, the lower page first. If the higher page is away, the lower page stays
    /// locked as long as a lock lasts: call again, or release both.
    ///
    /// # Why the first lock is kept
    /// A silo that released its first page while the other is in transfer would find it gone when
    /// the other arrives. Of two silos with a page each, the silo that happened to hold both would
    /// then continue for ever, while the other silo received one page after the other and never
    /// both. No silo waits for a lower page while it holds a higher page, so keeping the lock
    /// cannot deadlock. A refused silo drains the page, so the holder's next lock is refused and
    /// the refused silo gets its turn.
    pub fn lock_both(
        &mut self,
        [low, high]: [u32; 2],
        frame: &Frame<'_>,
        is_read: &dyn Fn(u32) -> bool,
    ) -> Option<[Epoch; 2]> {
        let one = self.lock(low, frame, is_read)?;
        let other = self.lock(high, frame, is_read)?;
        Some([one, other])
    }

    /// Releases a lock. A lock that has already expired needs no release. A lease that the stream
    /// came with stays.
    pub fn unlock(&mut self, stream: u32, now: Ticks) {
        if self.directory.table().word(stream).hint() == Hint::Lease {
            return;
        }
        let _ = self.directory.release_ownership(gva(stream), now);
    }

    /// Stops requesting pages. A page in transfer arrives all the same.
    pub fn give_up(&mut self) {
        self.wanted.clear();
    }

    /// Handles messages, decisions, deadlines, requests and the board. `is_read` says whether a
    /// joint readout reads a stream's state.
    #[inline]
    pub fn serve(&mut self, frame: &Frame<'_>, block: &ArbiterBlock, is_read: &dyn Fn(u32) -> bool) -> u32 {
        let rate = frame.clock().rate();
        let mut items = 0;
        let mut every = LOOK_AT_REST_EVERY;
        if self.membership.is_some() {
            self.receive_membership(frame, is_read);
        }
        if !self.storage.links.is_empty() {
            items = self.exchange(frame, is_read);
            if self.directory.transfers_open() > 0 || !self.wanted.is_empty() || self.taking_over.is_some() {
                every = LOOK_EVERY;
            }
        }
        if frame.now.since(self.looked) >= rate.ticks(every) {
            self.looked = frame.now;
            let mut context = FrameContext { storage: &mut self.storage, clock: frame.clock(), is_read };
            self.directory.look(&mut context);
            self.ask(frame, is_read);
            if frame.now.since(self.published) >= rate.ticks(PUBLISH_EVERY) {
                self.published = frame.now;
                self.directory.publish(block);
            }
        }
        items
    }

    fn exchange(&mut self, frame: &Frame<'_>, is_read: &dyn Fn(u32) -> bool) -> u32 {
        let mut items = 0;
        for link in 0..self.storage.links.len() {
            for _ in 0..MESSAGES_MAX {
                let Some(received) = self.storage.links[link].takes.pop() else { break };
                items += 1;
                self.storage.incoming = received.state;
                let mut context = FrameContext { storage: &mut self.storage, clock: frame.clock(), is_read };
                let change = self.directory.receive(&mut context, received.page, received.from, &received.message);
                if let Change::Refused(response) = change {
                    self.refused(received.page, response, frame.ticks());
                }
            }
        }
        let mut context = FrameContext { storage: &mut self.storage, clock: frame.clock(), is_read };
        self.directory.decide(&mut context);
        items
    }

    fn refused(&mut self, page: u32, response: Response, now: Ticks) {
        let now = self.directory.moment(now);
        let Some(wanted) = self.wanted.iter_mut().find(|wanted| wanted.page == page) else { return };
        wanted.next(response, now);
    }

    /// Sends the requests that are due.
    fn ask(&mut self, frame: &Frame<'_>, is_read: &dyn Fn(u32) -> bool) {
        let pages = Arc::clone(self.storage.states.pages());
        self.wanted.retain(|wanted| !pages.word(wanted.page).is_writable());
        let now = self.directory.moment(frame.now);
        let ArbiterDriver { directory, storage, wanted, .. } = self;
        for wanted in wanted.iter_mut().filter(|wanted| wanted.again.has_passed(now)) {
            let mut context = FrameContext { storage, clock: frame.clock(), is_read };
            match directory.request_ownership(&mut context, gva(wanted.page), wanted.what, &wanted.back_off) {
                Ok(Asked::Here(response)) => wanted.next(response, now),
                Ok(Asked::Send { .. }) => wanted.again = now.plus(ANSWER_US_MAX),
                Err(error) => unreachable!("every stream has a page: {error}"),
            }
        }
    }
}

fn gva(page: u32) -> Gva {
    Gva(u64::from(page) * PAGE_BYTES)
}

impl Wanted {
    /// Schedules the next attempt after a refusal. Requests go on until the shots' deadlines; the
    /// arbiter never gives up.
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
