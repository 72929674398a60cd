//! One silo of a load: it serves messages and deadlines, and wants things.
//!
//! Owns a silo's table and bytes, its ends of the rings and what it has counted; one thread runs it. Bounds: see
//! [`super`].

use super::{GRACE, LEASE_US, OPEN_MAX, SAMPLES_MAX, Shared, TRIES_MAX};
use crate::arbiter::page::{Authority, Hint, Moment, PageTable, Request, Response, Signals, Silo, WriteBuffer};
use crate::arbiter::protocol::{Change, Message, look, receive};
use crate::units::Ticks;
use pinwheel_edge::ring::spsc::{Consumer, Producer};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

/// An answer that takes longer is given up.
const ANSWER_US_MAX: u32 = 2_000;
/// Messages taken of one ring before the next one has its turn.
const BATCH: usize = 64;

#[derive(Clone, Copy)]
pub(super) struct Envelope {
    page: u32,
    from: Silo,
    message: Message,
    value: u64,
}

/// The one request that is under way.
pub(super) struct Asked {
    page: u32,
    hint: Hint,
    at: Ticks,
    again: Moment,
    is_answered: bool,
    tries: u8,
}

pub(super) struct Tally {
    pub(super) decisions: u64,
    pub(super) decision_ns: Vec<u64>,
    pub(super) responses: BTreeMap<&'static str, u64>,
    pub(super) transfers: u64,
    pub(super) transfer_ns: Vec<u64>,
    pub(super) commits: u64,
    pub(super) in_doubt: u64,
    pub(super) lost: u64,
    pub(super) violation: Option<String>,
}

impl Tally {
    pub(super) fn new() -> Tally {
        Tally {
            decisions: 0,
            decision_ns: Vec::with_capacity(SAMPLES_MAX),
            responses: BTreeMap::new(),
            transfers: 0,
            transfer_ns: Vec::with_capacity(SAMPLES_MAX),
            commits: 0,
            in_doubt: 0,
            lost: 0,
            violation: None,
        }
    }
}

fn keep(samples: &mut Vec<u64>, ns: u64) {
    if samples.len() < SAMPLES_MAX {
        samples.push(ns);
    }
}

/// One silo.
pub(super) struct Member<'a> {
    pub(super) shared: Shared<'a>,
    pub(super) table: PageTable,
    /// The pages' bytes here.
    pub(super) values: Vec<u64>,
    pub(super) outs: Vec<Option<Producer<Envelope>>>,
    pub(super) ins: Vec<Consumer<Envelope>>,
    /// Pages granted and not acknowledged.
    pub(super) open: Vec<u32>,
    pub(super) asked: Option<Asked>,
    pub(super) random: u64,
    pub(super) tally: Tally,
}

impl<'a> Member<'a> {
    pub(super) fn live(mut self) -> Member<'a> {
        let started = self.shared.clock.ticks();
        let elapsed =
            |member: &Member<'_>| member.shared.clock.rate().nanos(member.shared.clock.ticks().since(started));
        while elapsed(&self) < self.shared.load.duration {
            self.serve();
            self.act();
        }
        self.shared.is_over.store(true, Ordering::Relaxed);
        let end = elapsed(&self).0 + GRACE.0;
        while elapsed(&self).0 < end && !self.shared.quiet.iter().all(|quiet| quiet.load(Ordering::Relaxed)) {
            self.serve();
            self.shared.quiet[self.me()].store(self.open.is_empty(), Ordering::Relaxed);
            std::thread::yield_now();
        }
        self
    }

    fn me(&self) -> usize {
        self.table.silo().number() as usize
    }

    fn now(&self) -> (Ticks, Moment) {
        let ticks = self.shared.clock.ticks();
        (ticks, Moment::from_micros(self.shared.clock.since_start(ticks).0 / 1_000))
    }

    fn below(&mut self, bound: u32) -> u32 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (((self.random >> 32) * u64::from(bound)) >> 32) as u32
    }

    fn send(&mut self, to: Silo, page: u32, message: Message) {
        let value = if matches!(message, Message::Grant(_)) { self.values[page as usize] } else { 0 };
        let envelope = Envelope { page, from: self.table.silo(), message, value };
        let ring = self.outs[to.number() as usize].as_mut();
        self.tally.lost += u64::from(ring.is_none_or(|ring| ring.push(envelope).is_err()));
    }

    /// Messages that have come, deadlines that have passed.
    fn serve(&mut self) {
        for ring in 0..self.ins.len() {
            for _ in 0..BATCH {
                let Some(envelope) = self.ins[ring].pop() else { break };
                self.receive(&envelope);
            }
        }
        let (_, now) = self.now();
        let table = &self.table;
        self.open.retain(|page| table.word(*page).state().is_exchanging());
        for at in 0..self.open.len() {
            let page = self.open[at];
            if let Some((to, message)) = look(&self.table, page, now) {
                self.tally.in_doubt += 1;
                self.send(to, page, message);
            }
        }
    }

    fn receive(&mut self, envelope: &Envelope) {
        let Envelope { page, from, message, value } = *envelope;
        let is_request = matches!(message, Message::Request(_));
        // No room to watch one more transfer, or no time to end it: the requester hears nothing, as of a lost message.
        if is_request && (self.open.len() == OPEN_MAX || self.shared.is_over.load(Ordering::Relaxed)) {
            return;
        }
        let (from_ticks, now) = self.now();
        let bytes = &mut self.values[page as usize];
        let signals = Signals { write_buffer: WriteBuffer::Drained };
        let outcome = receive(&self.table, page, (from, &message), signals, now, || *bytes = value);
        if is_request {
            let ns = self.shared.clock.rate().nanos(self.shared.clock.ticks().since(from_ticks)).0;
            self.decided(ns, outcome.reply);
        }
        match outcome.change {
            Change::Departs(_) if !self.open.contains(&page) => self.open.push(page),
            Change::Arrived(_) => self.arrived(page),
            Change::Refused(response) => self.refused(page, response),
            Change::Departs(_) | Change::Left(..) | Change::Kept(_) | Change::Nothing => {}
        }
        if let Some(reply) = outcome.reply {
            self.send(from, page, reply);
        }
    }

    fn decided(&mut self, ns: u64, reply: Option<Message>) {
        self.tally.decisions += 1;
        keep(&mut self.tally.decision_ns, ns);
        let name = match reply {
            Some(Message::Refused(response)) => name(response),
            _ => "granted",
        };
        *self.tally.responses.entry(name).or_insert(0) += 1;
    }

    fn arrived(&mut self, page: u32) {
        self.tally.transfers += 1;
        if let Some(asked) = self.asked.take_if(|asked| asked.page == page) {
            let ns = self.shared.clock.rate().nanos(self.shared.clock.ticks().since(asked.at)).0;
            keep(&mut self.tally.transfer_ns, ns);
        }
    }

    fn refused(&mut self, page: u32, response: Response) {
        let (_, now) = self.now();
        let Some(asked) = self.asked.as_mut().filter(|asked| asked.page == page) else { return };
        asked.is_answered = true;
        asked.again = now.plus(match response {
            Response::LeaseActive { left_us } => left_us,
            Response::Busy | Response::TryLater | Response::InDoubt => u32::from(asked.tries),
            _ => 0,
        });
    }

    /// One thing that this silo wants.
    fn act(&mut self) {
        let (at, now) = self.now();
        if let Some(asked) = &self.asked {
            let is_due = asked.again.has_passed(now);
            if is_due && (asked.tries == TRIES_MAX || !asked.is_answered) {
                self.asked = None;
            } else if is_due {
                let (page, hint, tries) = (asked.page, asked.hint, asked.tries + 1);
                self.ask((page, hint), tries, at, now);
            }
        } else {
            let (page, hint) = (self.below(self.shared.load.pages), self.hint());
            if self.table.word(page).state().is_writable() {
                self.use_own(page, now);
            } else {
                self.ask((page, hint), 1, at, now);
            }
        }
        let own = self.below(self.shared.load.pages);
        self.write(own, now);
    }

    fn hint(&mut self) -> Hint {
        match self.below(16) {
            0..7 => Hint::Default,
            7..11 => Hint::Lock,
            11..14 => Hint::Lease,
            _ => Hint::Migrate,
        }
    }

    fn ask(&mut self, (page, hint): (u32, Hint), tries: u8, at: Ticks, now: Moment) {
        let word = self.table.word(page);
        if word.state().is_writable() || word.owner() == self.table.silo() {
            self.asked = None;
            return;
        }
        let (from, epoch) = (self.table.silo(), word.epoch());
        let request = Request { from, epoch, hint, ttl_us: LEASE_US, refusals: tries - 1, authority: Authority::Port };
        self.asked = Some(Asked { page, hint, at, again: now.plus(ANSWER_US_MAX), is_answered: false, tries });
        self.send(word.owner(), page, Message::Request(request));
    }

    fn use_own(&mut self, page: u32, now: Moment) {
        if self.below(8) == 0 {
            let (from, epoch) = (self.table.silo(), self.table.word(page).epoch());
            let (hint, authority) = (Hint::Lock, Authority::Port);
            let request = Request { from, epoch, hint, ttl_us: LEASE_US, refusals: 0, authority };
            let before = self.shared.clock.ticks();
            let response = self.table.decide(page, &request, Signals { write_buffer: WriteBuffer::Drained }, now);
            let ns = self.shared.clock.rate().nanos(self.shared.clock.ticks().since(before)).0;
            self.decided(ns, (!response.is_granted()).then_some(Message::Refused(response)));
        }
        self.write(page, now);
    }

    /// Writes a page if it is ours, and checks what the protocol promises of it.
    fn write(&mut self, page: u32, now: Moment) {
        let Ok(writing) = self.table.begin_write(page) else { return };
        let truth = &self.shared.truth[page as usize];
        let me = u32::from(self.table.silo().number()) + 1;
        let other = truth.writer.swap(me, Ordering::Relaxed);
        let (value, last) = (self.values[page as usize], truth.last.load(Ordering::Relaxed));
        if other != 0 {
            self.tally.violation.get_or_insert(format!("silos {} and {} write page {page} at once", other - 1, me - 1));
        }
        if value != last {
            self.tally
                .violation
                .get_or_insert(format!("silo {} has value {value} of page {page}, the last is {last}", me - 1));
        }
        self.values[page as usize] = last + 1;
        truth.last.store(last + 1, Ordering::Relaxed);
        truth.writer.store(0, Ordering::Relaxed);
        writing.commit(now);
        self.tally.commits += 1;
    }
}

/// Its name in reports.
fn name(response: Response) -> &'static str {
    match response {
        Response::Granted { .. } => "granted",
        Response::LeaseYours { .. } => "lease_yours",
        Response::LeaseActive { .. } => "lease_active",
        Response::Busy => "busy",
        Response::TryAgainSoon => "try_again_soon",
        Response::TryLater => "try_later",
        Response::Collision => "collision",
        Response::NotOwner { .. } => "not_owner",
        Response::Stale { .. } => "stale",
        Response::InDoubt => "in_doubt",
        Response::EpochsSpent => "epochs_spent",
    }
}
