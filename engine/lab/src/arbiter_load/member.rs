//! One silo of a load: serves messages and deadlines, and requests pages.
//!
//! Owns a silo's arbiter and bytes, its ring endpoints and its counts; runs on one thread. Bounds:
//! see [`super`].

use super::{GRACE, LEASE_US, PUBLISH_EVERY, SAMPLES_MAX, Shared};
use crate::arbiter::directory::{Context, OwnershipDirectory};
use crate::arbiter::driver::{Asked, Gva, PAGE_BYTES};
use crate::arbiter::page::{Hint, Moment, Response, Signals, Silo, WriteBuffer};
use crate::arbiter::protocol::{Change, Message};
use crate::arbiter::retry::{BackOff, Next};
use crate::board::{add, set};
use crate::clock::Clock;
use crate::units::{Nanos, Ticks};
use pinwheel_edge::ring::spsc::{Consumer, Producer};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Time limit for an answer, microseconds.
const ANSWER_US_MAX: u32 = 2_000;
/// Messages taken from one ring before the next ring is served.
const BATCH: usize = 16;

#[derive(Clone, Copy)]
pub(super) struct Envelope {
    page: u32,
    from: Silo,
    message: Message,
    value: u64,
}

/// The open request of this silo.
pub(super) struct OpenRequest {
    page: u32,
    hint: Hint,
    back_off: BackOff,
    at: Ticks,
    again: Moment,
    is_answered: bool,
}

pub(super) struct Tally {
    pub(super) transfer_ns: Vec<u64>,
    pub(super) commits: u64,
    pub(super) violation: Option<String>,
}

impl Tally {
    pub(super) fn new() -> Tally {
        Tally { transfer_ns: Vec::with_capacity(SAMPLES_MAX), commits: 0, violation: None }
    }
}

/// The silo's bytes, clock and outgoing rings.
pub(super) struct MemberContext {
    pub(super) me: Silo,
    pub(super) clock: Clock,
    pub(super) values: Vec<u64>,
    /// The bytes of the message being handled.
    pub(super) incoming: u64,
    pub(super) outs: Vec<Option<Producer<Envelope>>>,
    pub(super) lost: u64,
}

impl Context for MemberContext {
    fn signals(&self, _: u32) -> Signals {
        Signals { write_buffer: WriteBuffer::Drained }
    }

    fn put(&mut self, page: u32) {
        self.values[page as usize] = self.incoming;
    }

    fn take_over(&mut self, _: u32, _: Silo) {
        // A load has no takeovers: a panic of a silo ends it as a violation.
    }

    fn send(&mut self, to: Silo, page: u32, message: Message) {
        let value = if matches!(message, Message::Grant(_)) { self.values[page as usize] } else { 0 };
        let envelope = Envelope { page, from: self.me, message, value };
        let ring = self.outs[to.number() as usize].as_mut();
        self.lost += u64::from(ring.is_none_or(|ring| ring.push(envelope).is_err()));
    }

    fn ticks(&self) -> Ticks {
        self.clock.ticks()
    }
}

/// One silo.
pub(super) struct Member {
    pub(super) directory: OwnershipDirectory,
    pub(super) context: MemberContext,
    pub(super) shared: Arc<Shared>,
    pub(super) ins: Vec<Consumer<Envelope>>,
    pub(super) asked: Option<OpenRequest>,
    pub(super) random: u64,
    pub(super) tally: Tally,
}

impl Member {
    pub(super) fn live(mut self) -> Member {
        let started = self.context.ticks();
        let mut shown = started;
        while self.since(started) < self.shared.load.duration && !self.shared.is_over.load(Ordering::Relaxed) {
            self.serve();
            self.act();
            self.show(&mut shown);
        }
        self.shared.is_over.store(true, Ordering::Relaxed);
        let ending = self.context.ticks();
        while self.since(ending) < GRACE && !self.shared.quiet.iter().all(|quiet| quiet.load(Ordering::Relaxed)) {
            self.serve();
            let is_quiet = self.directory.transfers_open() == 0;
            self.shared.quiet[self.me()].store(is_quiet, Ordering::Relaxed);
            std::thread::yield_now();
        }
        self.directory.publish(self.shared.board.arbiter(self.me()));
        set(&self.shared.board.thread(self.me()).state, 2);
        self
    }

    fn me(&self) -> usize {
        self.context.me.number() as usize
    }

    fn since(&self, at: Ticks) -> Nanos {
        self.context.clock.rate().nanos(self.context.ticks().since(at))
    }

    fn show(&mut self, shown: &mut Ticks) {
        let now = self.context.ticks();
        let block = self.shared.board.thread(self.me());
        add(&block.frames, 1);
        if self.since(*shown) >= PUBLISH_EVERY {
            *shown = now;
            set(&block.heartbeat, now.0);
            self.directory.publish(self.shared.board.arbiter(self.me()));
        }
    }

    fn below(&mut self, bound: u32) -> u32 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (((self.random >> 32) * u64::from(bound)) >> 32) as u32
    }

    /// Handles received messages, the frame's decisions and expired deadlines.
    fn serve(&mut self) {
        for ring in 0..self.ins.len() {
            for _ in 0..BATCH {
                let Some(envelope) = self.ins[ring].pop() else { break };
                self.receive(&envelope);
            }
        }
        self.directory.decide(&mut self.context);
        self.directory.look(&mut self.context);
    }

    fn receive(&mut self, envelope: &Envelope) {
        let Envelope { page, from, message, value } = *envelope;
        // In the closing phase requests are dropped like lost messages.
        if matches!(message, Message::Request(_)) && self.shared.is_over.load(Ordering::Relaxed) {
            return;
        }
        self.context.incoming = value;
        match self.directory.receive(&mut self.context, page, from, &message) {
            Change::Arrived(_) => self.arrived(page),
            Change::Refused(response) => self.refused(page, response),
            Change::Departs(_) | Change::Left(..) | Change::Kept(_) | Change::Nothing => {}
        }
    }

    fn arrived(&mut self, page: u32) {
        if let Some(asked) = self.asked.take_if(|asked| asked.page == page)
            && self.tally.transfer_ns.len() < SAMPLES_MAX
        {
            self.tally.transfer_ns.push(self.since(asked.at).0);
        }
    }

    fn refused(&mut self, page: u32, response: Response) {
        let now = self.directory.moment(self.context.ticks());
        let Some(asked) = self.asked.as_mut().filter(|asked| asked.page == page) else { return };
        asked.is_answered = true;
        match asked.back_off.next(response, now) {
            Next::At(again) => asked.again = again,
            Next::Done | Next::GiveUp => self.asked = None,
        }
    }

    /// Makes one request or one write.
    fn act(&mut self) {
        let at = self.context.ticks();
        let now = self.directory.moment(at);
        match self.asked.take() {
            Some(asked) if !asked.again.has_passed(now) => self.asked = Some(asked),
            Some(asked) if asked.is_answered => self.ask(asked.page, asked.hint, asked.back_off, at),
            Some(_) => {}
            None => {
                let (page, hint) = (self.below(self.shared.load.pages), self.hint());
                if self.directory.table().word(page).is_writable() {
                    self.use_own(page, now);
                } else {
                    let seed = self.below(u32::MAX);
                    self.ask(page, hint, BackOff::new(seed), at);
                }
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

    fn request(&mut self, page: u32, hint: Hint, back_off: &BackOff) -> Option<Asked> {
        let gva = Gva(u64::from(page) * PAGE_BYTES);
        self.directory.request_ownership(&mut self.context, gva, (hint, LEASE_US), back_off).ok()
    }

    /// `at`: when the request was first made or repeated; the wait after a refusal does not count
    /// as transfer time.
    fn ask(&mut self, page: u32, hint: Hint, back_off: BackOff, at: Ticks) {
        if let Some(Asked::Send { page, .. }) = self.request(page, hint, &back_off) {
            let again = self.directory.moment(at).plus(ANSWER_US_MAX);
            self.asked = Some(OpenRequest { page, hint, back_off, at, again, is_answered: false });
        }
    }

    /// Writes a page of its own, or locks and releases it one time in eight.
    fn use_own(&mut self, page: u32, now: Moment) {
        let is_locked = self.below(8) == 0
            && matches!(
                self.request(page, Hint::Lock, &BackOff::new(1)),
                Some(Asked::Here(response)) if response.is_granted()
            );
        self.write(page, now);
        if is_locked && self.below(2) == 0 {
            let at = self.context.ticks();
            // The lock may have expired meanwhile; then there is nothing to release.
            let _ = self.directory.release_ownership(Gva(u64::from(page) * PAGE_BYTES), at);
        }
    }

    /// Writes a page if this silo owns it, and checks the protocol's guarantees.
    fn write(&mut self, page: u32, now: Moment) {
        let Ok(writing) = self.directory.table().begin_write(page) else { return };
        let truth = &self.shared.truth[page as usize];
        let me = u32::from(self.context.me.number()) + 1;
        let other = truth.writer.swap(me, Ordering::Relaxed);
        let (value, last) = (self.context.values[page as usize], truth.last.load(Ordering::Relaxed));
        if other != 0 {
            self.tally.violation.get_or_insert(format!("silos {} and {} write page {page} at once", other - 1, me - 1));
        }
        if value != last {
            self.tally
                .violation
                .get_or_insert(format!("silo {} has value {value} of page {page}, the last is {last}", me - 1));
        }
        self.context.values[page as usize] = last + 1;
        truth.last.store(last + 1, Ordering::Relaxed);
        truth.writer.store(0, Ordering::Relaxed);
        writing.commit(now);
        self.tally.commits += 1;
    }
}
