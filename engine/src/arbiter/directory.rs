//! A silo's arbiter: its table, routes, ports, deadlines, histories and counters.
//!
//! Owned and run by one thread of the silo, once a frame: messages
//! ([`OwnershipDirectory::receive`]), the frame's decisions ([`OwnershipDirectory::decide`]),
//! deadlines ([`OwnershipDirectory::look`]), the board ([`OwnershipDirectory::publish`]). Bounds:
//! [`OPEN_MAX`] open transfers, [`TAKEOVER_PAGES_MAX`] pages taken over in each check, otherwise
//! those of its parts. It copies bytes and sends messages through [`Context`]. Never waits, never
//! allocates after construction.

mod takeover;
mod publish;
#[cfg(test)]
mod tests;

use crate::arbiter::deadlines::{Deadlines, EXPIRIES_MAX, TRANSFER_TIMERS, Timebase};
use crate::arbiter::driver::{self, AskError, Asked, Gva, Released, Want};
use crate::arbiter::history::{History, Transition};
use crate::arbiter::page::{
    Cause, How, Moment, PageTable, Request, Response, Routes, SILOS_MAX, Signals, Silo, State, Word,
};
use crate::arbiter::ports::{OFFERS_MAX, Ports};
use crate::arbiter::protocol::{Change, Message, Outcome, look, receive, requested};
use crate::arbiter::retry::BackOff;
use crate::board::layout::ARBITER_ROWS;
use crate::timer::Handle;
use crate::units::{Nanos, Ticks};
use std::sync::Arc;
use takeover::PendingTakeover;
pub use takeover::TAKEOVER_PAGES_MAX;

/// Most transfers that one silo has open at once.
pub const OPEN_MAX: usize = TRANSFER_TIMERS as usize;

/// Services of the silo that a directory uses.
pub trait Context {
    /// Whether the stream of `page` has work that is not committed to the page yet.
    fn signals(&self, page: u32) -> Signals;
    /// Installs the bytes that came with the GRANT being handled.
    fn put(&mut self, page: u32);
    /// Installs the bytes of dead silo `dead`.
    fn take_over(&mut self, page: u32, dead: Silo);
    /// Sends `message`, and with a GRANT the page's bytes. A message that finds no room is lost.
    fn send(&mut self, to: Silo, page: u32, message: Message);
    /// The current time.
    fn ticks(&self) -> Ticks;
}

/// A transfer whose end is awaited.
#[derive(Clone, Copy, Debug)]
struct Open {
    page: u32,
    since: Ticks,
    cancels: u64,
    timer: Option<Handle>,
}

/// Counters, as the board shows them.
#[derive(Clone, Debug)]
pub struct Counts {
    /// Decisions by [`Response::number`].
    pub decisions: [u64; Response::NAMES.len()],
    /// Moves that broke a lease.
    pub forced: u64,
    /// Pages that left.
    pub left: u64,
    /// Pages that arrived.
    pub arrived: u64,
    /// Grants cancelled; the page stayed.
    pub kept: u64,
    /// Grants without an ACK in time.
    pub doubted: u64,
    /// CANCELs sent.
    pub cancels: u64,
    /// Pages taken over.
    pub taken_over: u64,
    /// How many of the pages taken over had a write in progress.
    pub torn: u64,
    /// Requests lost because the frame was full.
    pub unheard: u64,
    wins: [u64; SILOS_MAX as usize],
    refusals: [u64; SILOS_MAX as usize],
}

impl Counts {
    const NONE: Counts = Counts {
        decisions: [0; Response::NAMES.len()],
        forced: 0,
        left: 0,
        arrived: 0,
        kept: 0,
        doubted: 0,
        cancels: 0,
        taken_over: 0,
        torn: 0,
        unheard: 0,
        wins: [0; SILOS_MAX as usize],
        refusals: [0; SILOS_MAX as usize],
    };
}

/// Result of the sweep's last round.
#[derive(Clone, Copy, Debug)]
struct Round {
    at: Ticks,
    states: [u32; State::ALL.len()],
    leases: [(u32, Word, Ticks); ARBITER_ROWS],
    lease_count: usize,
}

/// Durations since the last publication: measured during decisions, recorded on the board once a
/// frame.
#[derive(Debug)]
struct Times {
    decisions_ns: Vec<u64>,
    transfers_ns: Vec<u64>,
}

/// A silo's arbiter.
#[derive(Debug)]
pub struct OwnershipDirectory {
    table: Arc<PageTable>,
    routes: Arc<Routes>,
    base: Timebase,
    ports: Ports,
    deadlines: Deadlines,
    history: History,
    open: Vec<Open>,
    successors: [Silo; SILOS_MAX as usize],
    takeovers: Vec<PendingTakeover>,
    counts: Counts,
    times: Times,
    /// The round in progress, and the last complete round.
    rounds: [Round; 2],
    watched: Option<u32>,
    last_moved: Option<u32>,
}

impl OwnershipDirectory {
    /// The arbiter of `table`; `priority` gives the static priority of each port.
    pub fn new(
        table: Arc<PageTable>,
        routes: Arc<Routes>,
        base: Timebase,
        priority: impl Fn(Silo) -> u8,
    ) -> OwnershipDirectory {
        let pages = table.len() as u32;
        let none = (0, Word::from_bits(0), Ticks(0));
        let round = Round { at: base.start, states: [0; 6], leases: [none; ARBITER_ROWS], lease_count: 0 };
        OwnershipDirectory {
            routes,
            base,
            ports: Ports::new(priority),
            deadlines: Deadlines::new(base, pages),
            history: History::new(pages),
            open: Vec::with_capacity(OPEN_MAX),
            successors: std::array::from_fn(|silo| Silo::new(silo as u8)),
            takeovers: Vec::with_capacity(SILOS_MAX as usize),
            counts: Counts::NONE,
            times: Times { decisions_ns: Vec::with_capacity(1 << 12), transfers_ns: Vec::with_capacity(1 << 10) },
            rounds: [round; 2],
            watched: None,
            last_moved: None,
            table,
        }
    }

    /// The silo's page table.
    pub fn table(&self) -> &PageTable {
        &self.table
    }

    /// The counters.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Number of open transfers.
    pub fn transfers_open(&self) -> usize {
        self.open.len()
    }

    /// The last transitions of `page`, oldest first.
    pub fn history(&self, page: u32) -> impl DoubleEndedIterator<Item = Transition> + '_ {
        self.history.of(page)
    }

    /// The moment at `at`, in the time base of this silo's words.
    pub fn moment(&self, at: Ticks) -> Moment {
        self.base.moment(at)
    }

    /// Requests a page for a driver. A message is sent at once; its reply arrives with a later
    /// [`OwnershipDirectory::receive`].
    ///
    /// # Errors
    /// If there is no such page.
    pub fn request_ownership(
        &mut self,
        context: &mut impl Context,
        gva: Gva,
        want: impl Into<Want>,
        back_off: &BackOff,
    ) -> Result<Asked, AskError> {
        let page = driver::page_of(&self.table, gva)?;
        let now = context.ticks();
        self.take_over_if_dead(context, page, now);
        let asked =
            driver::request_ownership(&self.table, gva, want, back_off, context.signals(page), self.base.moment(now))?;
        Ok(match asked {
            Asked::Here(response) => {
                self.note_time(context, now);
                self.counts.decisions[response.number()] += 1;
                self.lease_began(page, response, now);
                asked
            }
            Asked::Send { to, page, message } => match self.address(to) {
                me if me == self.table.silo() => Asked::Here(Response::TryLater),
                to => {
                    context.send(to, page, message);
                    Asked::Send { to, page, message }
                }
            },
        })
    }

    /// Gives a lease back.
    ///
    /// # Errors
    /// If there is no such page.
    pub fn release_ownership(&mut self, gva: Gva, now: Ticks) -> Result<Released, AskError> {
        let released = driver::release_ownership(&self.table, gva)?;
        if released == Released::Given {
            self.note(driver::page_of(&self.table, gva)?, now, Cause::Released);
        }
        Ok(released)
    }

    /// Handles a message. Requests wait for the frame's [`OwnershipDirectory::decide`].
    pub fn receive(&mut self, context: &mut impl Context, page: u32, from: Silo, message: &Message) -> Change {
        let now = context.ticks();
        match message {
            Message::Request(_) if self.address(from) != from => return Change::Nothing,
            Message::Request(request) => {
                self.take_over_if_dead(context, page, now);
                self.counts.unheard += u64::from(self.ports.offer(page, *request).is_err());
                return Change::Nothing;
            }
            _ => {}
        }
        let signals = context.signals(page);
        let outcome = receive(&self.table, page, (from, message), signals, self.base.moment(now), || context.put(page));
        self.settle(context, (page, from), outcome, now);
        outcome.change
    }

    /// Answers the frame's requests.
    pub fn decide(&mut self, context: &mut impl Context) {
        if self.ports.offers() == 0 {
            return;
        }
        let room = OPEN_MAX - self.open.len();
        let (mut granted, mut count) = (0, 0);
        let mut answers = [None; OFFERS_MAX];
        let (table, base, times) = (&self.table, self.base, &mut self.times.decisions_ns);
        let silo: &_ = context;
        self.ports.decide(
            |page, request| {
                if granted >= room && request.from != table.silo() {
                    return Response::TryLater;
                }
                let before = silo.ticks();
                let response = table.decide(page, request, silo.signals(page), base.moment(before));
                push(times, base, silo.ticks().since(before));
                granted += usize::from(matches!(response, Response::Granted { .. }));
                response
            },
            |page, request, response| {
                answers[count] = Some((page, *request, response));
                count += 1;
            },
        );
        for (page, request, response) in answers.into_iter().flatten() {
            self.answered(context, page, &request, response);
        }
    }

    fn answered(&mut self, context: &mut impl Context, page: u32, request: &Request, response: Response) {
        let now = context.ticks();
        self.counts.decisions[response.number()] += 1;
        let port = request.from.number() as usize;
        let counted = if response.is_granted() { &mut self.counts.wins } else { &mut self.counts.refusals };
        counted[port] += 1;
        self.lease_began(page, response, now);
        self.settle(context, (page, request.from), requested(request, response), now);
    }

    /// Applies the outcome of a message or a decision: replies, timers, routes, history.
    fn settle(&mut self, context: &mut impl Context, (page, peer): (u32, Silo), outcome: Outcome, now: Ticks) {
        match outcome.change {
            Change::Departs(how) => self.departs(page, how, now),
            Change::Arrived(epoch) => {
                self.counts.arrived += 1;
                self.routes.flip(page, self.table.silo(), epoch);
                self.last_moved = Some(page);
                self.note(page, now, Cause::Arrived);
                let word = self.table.word(page);
                if word.state() == State::Leased {
                    self.deadlines.arm_lease(page, word.deadline().left_us(self.base.moment(now)), now);
                }
            }
            Change::Left(to, epoch) => {
                self.counts.left += 1;
                self.routes.flip(page, to, epoch);
                self.note(page, now, Cause::Left);
                self.closes(page, now);
            }
            Change::Kept(epoch) => {
                self.counts.kept += 1;
                self.routes.flip(page, self.table.silo(), epoch);
                self.note(page, now, Cause::Kept);
                self.closes(page, now);
            }
            Change::Refused(_) | Change::Nothing => {
                if matches!(outcome.reply, Some(Message::CancelAck(_))) {
                    self.note(page, now, Cause::Fenced);
                }
            }
        }
        if let Some(reply) = outcome.reply {
            context.send(peer, page, reply);
        }
    }

    fn departs(&mut self, page: u32, how: How, now: Ticks) {
        if how == How::Again {
            return;
        }
        let cause = if how == How::Forced { Cause::Forced } else { Cause::Granted };
        self.counts.forced += u64::from(how == How::Forced);
        self.last_moved = Some(page);
        self.note(page, now, cause);
        self.opens(page, now);
    }

    /// Awaits the end of a transfer. One more than [`OPEN_MAX`], as a takeover may bring, waits for the sweep.
    fn opens(&mut self, page: u32, now: Ticks) {
        if self.open.len() == OPEN_MAX {
            return;
        }
        let left_us = self.table.word(page).deadline().left_us(self.base.moment(now));
        let timer = self.deadlines.arm_transfer(page, left_us, now);
        self.open.push(Open { page, since: now, cancels: 0, timer });
    }

    fn closes(&mut self, page: u32, now: Ticks) {
        let Some(at) = self.open.iter().position(|open| open.page == page) else { return };
        let open = self.open.swap_remove(at);
        if let Some(timer) = open.timer {
            self.deadlines.disarm(timer);
        }
        push(&mut self.times.transfers_ns, self.base, now.since(open.since));
    }

    fn lease_began(&mut self, page: u32, response: Response, now: Ticks) {
        let word = self.table.word(page);
        if matches!(response, Response::Granted { how: How::Here, .. }) && word.state() == State::Leased {
            self.note(page, now, Cause::LeaseBegan);
            self.deadlines.arm_lease(page, word.deadline().left_us(self.base.moment(now)), now);
        }
    }

    /// Checks deadlines that have passed and pages whose visit is due, and takes pages over.
    pub fn look(&mut self, context: &mut impl Context) {
        let now = context.ticks();
        let mut pages = [0; EXPIRIES_MAX];
        let expired = self.deadlines.expired(now, &mut pages);
        for page in &pages[..expired] {
            self.look_at(context, *page, now);
        }
        for _ in 0..self.deadlines.visits_due(now) {
            let table = &self.table;
            let visit = self.deadlines.visit(|page| table.word(page));
            if !matches!(visit.word.state(), State::Idle | State::NotOwner) {
                self.look_at(context, visit.page, now);
            }
            self.round(visit, now);
        }
        self.take_over_some(context, now);
    }

    fn look_at(&mut self, context: &mut impl Context, page: u32, now: Ticks) {
        let before = self.table.word(page).state();
        let message = look(&self.table, page, self.base.moment(now));
        let word = self.table.word(page);
        if before == State::Leased && word.state() == State::Idle {
            self.note(page, now, Cause::Cooled);
        }
        if !word.awaits() {
            return;
        }
        if self.open.iter().all(|open| open.page != page) {
            self.opens(page, now);
        }
        let left_us = word.deadline().left_us(self.base.moment(now));
        if let Some(open) = self.open.iter_mut().find(|open| open.page == page) {
            open.cancels += u64::from(message.is_some());
            if let Some(timer) = open.timer.take() {
                self.deadlines.disarm(timer);
            }
            open.timer = self.deadlines.arm_transfer(page, left_us.max(1), now);
        }
        if let Some((to, message)) = message {
            self.counts.cancels += 1;
            if before == State::Transferring {
                self.counts.doubted += 1;
                self.note(page, now, Cause::Doubted);
            }
            context.send(self.address(to), page, message);
        }
    }

    fn note(&mut self, page: u32, now: Ticks, cause: Cause) {
        self.history.note(page, now, cause, self.table.word(page));
    }

    fn note_time(&mut self, context: &impl Context, before: Ticks) {
        push(&mut self.times.decisions_ns, self.base, context.ticks().since(before));
    }

    /// The silo that handles messages to `silo` now: itself, or the successor of a dead silo.
    pub fn address(&self, silo: Silo) -> Silo {
        let mut at = silo;
        // A successor is appointed after its predecessor's death, so the chain has at most as many
        // links as silos.
        for _ in 0..SILOS_MAX {
            match self.successors[at.number() as usize] {
                next if next == at => break,
                next => at = next,
            }
        }
        at
    }
}

/// Keeps a duration for the board, while there is room until the next publication.
fn push(times: &mut Vec<u64>, base: Timebase, span: Ticks) {
    if times.len() < times.capacity() {
        let Nanos(ns) = base.rate.nanos(span);
        times.push(ns);
    }
}
