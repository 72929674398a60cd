//! Slots: rx, tx and ticket words, payloads, headers and result blocks of one silo.
//!
//! Owns the arrays and the three ends that move along them: feed writes, dispatch takes in ring
//! order, harvest takes in any order. [`Claim`] is the right, and the duty, to answer one shot.
//! Bounds: the geometry. Edges: see [`super`]'s table. Longer than 500 lines, because one slot's
//! words are one protocol, with every ordering argued.
//!
//! A slot: idle (rx 0, tx 0) → written (rx address, tx 0) → in flight (rx 0, tx IN_FLIGHT) →
//! completed (rx 0, tx answer) → idle.

use super::word::{self, ErrorCode};
use super::{DETECTOR_WORDS_MAX, OBSERVABLE_WORDS_MAX, SLOTS_MAX, Ticket};
use crate::sync::{AtomicU64, DataWord, DataWords, Ordering, Span, edge, write_words};
use crate::units::Ticks;
use std::sync::Arc;

mod harvest;
mod rounds;
pub use harvest::{Answered, HarvestEnd};
use rounds::Arriving;
pub use rounds::{Arrival, OpenShot};

const OPEN: u64 = 1;
const HEADER_WORDS: usize = 8;
/// Where in a header stands who gets the answer, behind what dispatch writes.
const REPLY_TO: usize = 6;
/// Times before the observables in a result: with one word of these a result is half a line.
const RESULT_WORDS: usize = 3;
/// In a header's flags: the true observables are known.
const HAS_TRUTH: u64 = 1;
/// In a header's flags: the payload comes by and by.
const BY_ROUNDS: u64 = 2;

/// Sizes of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Slots, a power of two.
    pub slots: u32,
    /// 64-bit words of detector bits in a shot.
    pub detector_words: u32,
    /// 64-bit words of observable bits in an answer.
    pub observable_words: u32,
}

/// What the feed says of a shot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShotHeader {
    /// Number of the stream that the shot belongs to.
    pub stream: u32,
    /// Sequence number within the stream.
    pub sequence: u64,
    /// When the shot was due by the schedule of its stream.
    pub scheduled: Ticks,
    /// When it was written into the slot.
    pub submitted: Ticks,
    /// Whose shot it is: the answer carries it back.
    pub reply_to: ReplyTo,
}

/// Where a shot came from, in the words of whoever fed it. Nothing between feed and harvest looks
/// at it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ReplyTo {
    /// Who gets the answer.
    pub peer: u64,
    /// The sequence number that the peer gave it.
    pub sequence: u64,
}

/// When the steps between dispatch and answer happened; zero where one did not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnswerTimes {
    /// Its last round came, if it came by rounds; of other shots it is not kept.
    pub arrived: Ticks,
    /// Device output claimed.
    pub completed: Ticks,
    /// A decoder began with it.
    pub decoding: Ticks,
    /// Its answer was written.
    pub answered: Ticks,
}

/// The words of one silo's slots.
#[derive(Debug)]
pub struct SlotTable {
    geometry: Geometry,
    rx: Box<[AtomicU64]>,
    tx: Box<[AtomicU64]>,
    tickets: Box<[AtomicU64]>,
    /// Submission time of the shot that a ticket is open for; an atomic of its own because the
    /// deadline reads it before it owns the claim.
    opened: Box<[AtomicU64]>,
    arrivals: Box<[Arriving]>,
    payload: DataWords,
    headers: DataWords,
    truths: DataWords,
    results: DataWords,
    /// Of shots by rounds: [`AnswerTimes::arrived`].
    last_rounds: DataWords,
}

/// A table and its three ends.
///
/// # Panics
/// If the slots are no power of two in 1..=65,536 or the words exceed their limits: profiles and
/// models are checked before.
#[must_use]
pub fn table(geometry: Geometry) -> (FeedEnd, DispatchEnd, HarvestEnd, Arc<SlotTable>) {
    let slots = geometry.slots as usize;
    assert!(slots.is_power_of_two() && slots <= SLOTS_MAX, "{slots} slots");
    assert!((1..=DETECTOR_WORDS_MAX).contains(&(geometry.detector_words as usize)), "{geometry:?}");
    assert!((1..=OBSERVABLE_WORDS_MAX).contains(&(geometry.observable_words as usize)), "{geometry:?}");
    let zeros = || (0..slots).map(|_| AtomicU64::new(0)).collect::<Box<[_]>>();
    let table = Arc::new(SlotTable {
        geometry,
        rx: zeros(),
        tx: zeros(),
        tickets: zeros(),
        opened: zeros(),
        arrivals: (0..slots).map(|_| Arriving::new()).collect(),
        payload: DataWords::in_pages(slots, geometry.detector_words as usize),
        headers: DataWords::new(slots, HEADER_WORDS),
        truths: DataWords::new(slots, geometry.observable_words as usize),
        results: DataWords::new(slots, RESULT_WORDS + geometry.observable_words as usize),
        last_rounds: DataWords::new(slots, 1),
    });
    (
        FeedEnd { table: Arc::clone(&table), position: 0, is_vacant: false },
        DispatchEnd { table: Arc::clone(&table), position: 0 },
        HarvestEnd::new(Arc::clone(&table)),
        table,
    )
}

impl SlotTable {
    /// Slots, and words of a shot and of an answer.
    #[must_use]
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }
    #[inline]
    fn index(&self, position: u64) -> usize {
        position as usize & (self.rx.len() - 1)
    }
    #[inline]
    fn generation(&self, position: u64) -> u64 {
        position / self.rx.len() as u64 + 1
    }

    /// The ticket of the shot that is the `position`-th of this table.
    #[must_use]
    #[inline]
    pub fn ticket_at(&self, position: u64) -> Ticket {
        Ticket { slot: self.index(position) as u32, generation: self.generation(position) }
    }

    /// Address of a slot's own payload.
    #[must_use]
    #[inline]
    pub fn payload_address(&self, slot: u32) -> u64 {
        self.payload.record(slot as usize).as_ptr().addr() as u64
    }

    /// Where all payloads lie.
    #[must_use]
    pub fn payload_span(&self) -> Span {
        self.payload.span()
    }

    /// The shot's words at `address`, or `None` if it is misaligned or does not lie wholly inside
    /// the payload memory.
    #[must_use]
    #[inline(always)]
    pub fn payload_at(&self, address: u64) -> Option<&[DataWord]> {
        let offset = address.checked_sub(self.payload.all().as_ptr().addr() as u64)?;
        let word_bytes = size_of::<DataWord>() as u64;
        if offset % word_bytes != 0 {
            return None;
        }
        let first = usize::try_from(offset / word_bytes).ok()?;
        self.payload.all().get(first..first.checked_add(self.geometry.detector_words as usize)?)
    }

    /// The first position at or after `position` whose ticket may be open: what the slot of
    /// `position` has gone through since then tells how far dispatch has come, and all but the last
    /// lap is answered.
    #[must_use]
    pub fn first_open_after(&self, position: u64) -> u64 {
        // Relaxed: the word only grows, and nothing is read that it publishes; an older value skips
        // less.
        let held = self.tickets[self.index(position)].load(Ordering::Relaxed) >> 1;
        match held.saturating_sub(self.generation(position)) {
            0 => position,
            laps => position + (laps - 1) * self.rx.len() as u64 + 1,
        }
    }

    /// Whether `ticket` can still be answered; and when its shot was submitted.
    #[must_use]
    #[inline(always)]
    pub fn is_open(&self, ticket: Ticket) -> TicketView {
        // ORDERING: second acquire side of S2, so that `opened` below is this generation's or a
        // later one's. Relaxed could pair the open ticket with the submission time of the shot
        // before it, and expire a fresh shot. Model:
        // loom_slot::an_open_ticket_shows_its_own_submission.
        let found = self.tickets[ticket.slot as usize].load(edge("S2.view", Ordering::Acquire));
        match found.cmp(&(ticket.generation << 1 | OPEN)) {
            std::cmp::Ordering::Equal => {
                TicketView::Open { submitted: Ticks(self.opened[ticket.slot as usize].load(Ordering::Relaxed)) }
            }
            std::cmp::Ordering::Less if found >> 1 < ticket.generation => TicketView::NotYet,
            _ => TicketView::Closed,
        }
    }

    /// Wins the right to answer `ticket`, or `None` if it is closed. The loser counts itself.
    #[must_use]
    #[inline(always)]
    pub fn claim(&self, ticket: Ticket) -> Option<Claim<'_>> {
        let open = ticket.generation << 1 | OPEN;
        let closed = ticket.generation << 1;
        self.tickets[ticket.slot as usize]
            // ORDERING: acquire side of S2: IN_FLIGHT, and the harvester's reads of the slot's last
            // result, come before whatever the claimer writes; a deadline has no other edge to
            // them. Release is not needed, nobody learns anything from a closed ticket. Model:
            // loom_slot::a_claimer_writes_after_the_last_harvest.
            .compare_exchange(open, closed, edge("S2.acquire", Ordering::Acquire), Ordering::Relaxed)
            .ok()
            .map(|_| Claim { table: self, ticket, answered: false })
    }

    /// Whether nothing is in the slot: for conservation checks, not for the protocol.
    #[must_use]
    pub fn is_idle(&self, slot: u32) -> bool {
        self.rx[slot as usize].load(Ordering::Relaxed) == 0
            && self.tx[slot as usize].load(Ordering::Relaxed) == word::EMPTY
    }
}

/// What a deadline sees of a ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TicketView {
    /// Not dispatched yet.
    NotYet,
    /// Dispatched and unanswered.
    Open {
        /// When its shot was written.
        submitted: Ticks,
    },
    /// Answered, or being answered.
    Closed,
}

/// The right and duty to answer one shot. Dropped unanswered (a panic unwinds), it answers
/// `DecoderPanic`.
#[derive(Debug)]
#[must_use = "whoever closes a ticket must answer it"]
pub struct Claim<'a> {
    table: &'a SlotTable,
    ticket: Ticket,
    answered: bool,
}

impl Claim<'_> {
    /// Stream and sequence number of the shot: the slot's header is the claimer's until the answer.
    #[must_use]
    pub fn shot(&self) -> (u32, u64) {
        let header = self.table.headers.record(self.ticket.slot as usize);
        (header[0].load() as u32, header[1].load())
    }

    /// Answers with observable bits (missing words are zero).
    pub fn answer(self, observables: &[u64], times: AnswerTimes) {
        self.answer_after(observables, times, 0, || ());
    }

    /// As [`Claim::answer`], with what gave the answer, and `commit` between the result block and
    /// the answer word: who sees the answer sees what it did. If it panics, the shot is answered as
    /// by a drop.
    #[inline(always)]
    pub fn answer_after(self, observables: &[u64], times: AnswerTimes, by: u32, commit: impl FnOnce()) {
        let answer = word::ready(self.ticket.generation, by);
        self.finish(answer, observables, times, commit);
    }

    /// Answers with an error word; the observables read as zero.
    pub fn fail(self, code: ErrorCode, times: AnswerTimes) {
        self.fail_after(code, times, || ());
    }

    /// As [`Claim::fail`], with `note` before the answer word, as in [`Claim::answer_after`].
    pub fn fail_after(self, code: ErrorCode, times: AnswerTimes, note: impl FnOnce()) {
        self.finish(word::error(code), &[], times, note);
    }

    #[inline(always)]
    fn finish(mut self, answer: u64, observables: &[u64], times: AnswerTimes, commit: impl FnOnce()) {
        // First, because writing cannot panic; only a model's race check can, and must not be
        // answered again.
        self.answered = true;
        self.table.write_result(self.ticket.slot, observables, times);
        // If this panics, the drop answers.
        self.answered = false;
        commit();
        self.answered = true;
        self.table.give_answer(self.ticket.slot, answer);
    }
}

impl SlotTable {
    #[inline(always)]
    fn write_result(&self, slot: u32, observables: &[u64], times: AnswerTimes) {
        let result = self.results.record(slot as usize);
        write_words(result, &[times.completed.0, times.decoding.0, times.answered.0]);
        if times.arrived != Ticks(0) {
            self.last_rounds.record(slot as usize)[0].store(times.arrived.0);
        }
        for (index, word) in result[RESULT_WORDS..].iter().enumerate() {
            word.store(observables.get(index).copied().unwrap_or(0));
        }
    }

    #[inline(always)]
    fn give_answer(&self, slot: u32, answer: u64) {
        // ORDERING: release side of S5, publishing the result block. Relaxed could show the answer
        // before its observables. Model: loom_slot::harvest_reads_a_whole_answer.
        self.tx[slot as usize].store(answer, edge("S5.release", Ordering::Release));
    }

    /// By value, so that a claim stays in registers.
    #[cold]
    fn answer_unanswered(&self, ticket: Ticket) {
        self.write_result(ticket.slot, &[], AnswerTimes::default());
        self.give_answer(ticket.slot, word::error(ErrorCode::DecoderPanic));
    }
}

impl Drop for Claim<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if !self.answered {
            self.table.answer_unanswered(self.ticket);
        }
    }
}

/// The feed's end: writes shots in ring order.
#[derive(Debug)]
pub struct FeedEnd {
    table: Arc<SlotTable>,
    position: u64,
    /// The next slot was found free: only a shot of this end takes it.
    is_vacant: bool,
}

impl FeedEnd {
    /// The next slot, if it is free: rx first, **then** tx.
    #[inline]
    pub fn vacant(&mut self) -> Option<Vacant<'_>> {
        if self.is_vacant {
            return Some(Vacant { end: self });
        }
        let slot = self.table.index(self.position);
        // ORDERING: acquire side of S8: having seen rx 0 we must see the IN_FLIGHT that was stored
        // before it; with Relaxed, a stale tx 0 would pass below and a shot in flight be
        // overwritten. Model: loom_slot::feed_never_reuses_a_slot_in_flight.
        if self.table.rx[slot].load(edge("S8.acquire", Ordering::Acquire)) != 0 {
            return None;
        }
        // ORDERING: acquire side of S7: the harvester has read header and result. Relaxed would let
        // our writes race with its reads. Model: loom_slot::feed_writes_after_the_last_harvest.
        if self.table.tx[slot].load(edge("S7.acquire", Ordering::Acquire)) != word::EMPTY {
            return None;
        }
        self.is_vacant = true;
        Some(Vacant { end: self })
    }

    /// Shots submitted so far.
    #[must_use]
    pub fn submitted(&self) -> u64 {
        self.position
    }

    /// Slots there are.
    #[must_use]
    pub fn slots(&self) -> u32 {
        self.table.geometry.slots
    }

    /// The slot that comes next.
    #[must_use]
    pub fn next_slot(&self) -> u32 {
        self.table.index(self.position) as u32
    }
}

/// A free slot in the feed's hands.
#[derive(Debug)]
pub struct Vacant<'a> {
    end: &'a mut FeedEnd,
}

impl Vacant<'_> {
    /// Writes a shot and publishes it. `truth`: the true observables, if known. Returns the slot.
    pub fn submit(self, header: &ShotHeader, payload: &[u64], truth: Option<&[u64]>) -> u32 {
        let address = self.end.table.payload_address(self.end.next_slot());
        self.submit_at(address, header, payload, truth)
    }

    /// As [`Vacant::submit`], with a payload address of the caller's choice (a source that keeps
    /// its payloads elsewhere, or an injected fault). Dispatch validates it.
    #[inline(always)]
    pub fn submit_at(self, address: u64, header: &ShotHeader, payload: &[u64], truth: Option<&[u64]>) -> u32 {
        self.write(address, header, payload, truth, 0)
    }
    #[inline(always)]
    fn write(self, address: u64, header: &ShotHeader, payload: &[u64], truth: Option<&[u64]>, flags: u64) -> u32 {
        let table = &*self.end.table;
        let slot = table.index(self.end.position);
        write_words(table.payload.record(slot), payload);
        write_words(table.truths.record(slot), truth.unwrap_or(&[]));
        let words = [
            u64::from(header.stream),
            header.sequence,
            header.scheduled.0,
            header.submitted.0,
            flags | if truth.is_some() { HAS_TRUTH } else { 0 },
        ];
        write_words(table.headers.record(slot), &words);
        write_words(&table.headers.record(slot)[REPLY_TO..], &[header.reply_to.peer, header.reply_to.sequence]);
        // ORDERING: release side of S1, publishing payload and header. Relaxed could hand dispatch
        // the previous shot's bytes. Model: loom_slot::dispatch_sees_the_whole_shot.
        table.rx[slot].store(address, edge("S1.release", Ordering::Release));
        self.end.position += 1;
        self.end.is_vacant = false;
        slot as u32
    }
}

/// The dispatcher's end: takes shots in ring order.
#[derive(Debug)]
pub struct DispatchEnd {
    table: Arc<SlotTable>,
    position: u64,
}

/// A shot that dispatch sees but has not yet taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// Index of the slot that the feed wrote it into.
    pub slot: u32,
    /// Payload address as the feed wrote it; not yet validated.
    pub address: u64,
    /// Number of the stream that the shot belongs to.
    pub stream: u32,
    /// Sequence number within the stream.
    pub sequence: u64,
    /// When it was submitted.
    pub submitted: Ticks,
    /// Its payload comes by and by: [`SlotTable::arrival`] says how far it is.
    pub by_rounds: bool,
}

impl SlotTable {
    /// Dispatch's last touch of a slot.
    #[inline]
    fn give_rx_back(&self, slot: usize) {
        // ORDERING: release side of S8, publishing IN_FLIGHT. Relaxed could show rx 0 beside the
        // old tx 0. Model: loom_slot::feed_never_reuses_a_slot_in_flight.
        self.rx[slot].store(0, edge("S8.release", Ordering::Release));
    }
}

impl DispatchEnd {
    /// The end of a dispatcher that is dead, for its one successor: whoever calls has seen the word
    /// by which its loop says that it is never called again, and knows that the feed writes nothing
    /// more before the successor has begun. `published` is a number of shots that it had taken at
    /// some time, `written` how many the feed has written.
    #[must_use]
    pub fn succeed(table: &Arc<SlotTable>, published: u64, written: u64) -> DispatchEnd {
        let slots = u64::from(table.geometry.slots);
        let mut position = published.max(written.saturating_sub(slots));
        while position < written {
            let slot = table.index(position);
            // Relaxed, here and below: the death of the only writer was seen by an edge of its own.
            if table.tickets[slot].load(Ordering::Relaxed) >> 1 < table.generation(position) {
                break;
            }
            // It died between the hold and the retirement; of a later lap's shot the word would be
            // the feed's.
            if position + slots >= written && table.rx[slot].load(Ordering::Relaxed) != 0 {
                table.give_rx_back(slot);
            }
            position += 1;
        }
        DispatchEnd { table: Arc::clone(table), position }
    }

    /// The next shot, if it has been written.
    #[must_use]
    #[inline(always)]
    pub fn arrived(&self) -> Option<Arrived> {
        let slot = self.table.index(self.position);
        // ORDERING: acquire side of S1, see `Vacant::submit_at`.
        let address = self.table.rx[slot].load(edge("S1.acquire", Ordering::Acquire));
        if address == 0 {
            return None;
        }
        let header = self.table.headers.record(slot);
        Some(Arrived {
            slot: slot as u32,
            address,
            stream: header[0].load() as u32,
            sequence: header[1].load(),
            submitted: Ticks(header[3].load()),
            by_rounds: header[4].load() & BY_ROUNDS != 0,
        })
    }

    /// Holds the shot that [`DispatchEnd::arrived`] returned: stamps it, marks it in flight, opens
    /// its ticket. Comes before the launch.
    ///
    /// # Panics
    /// If `arrived` is not the shot at the cursor, or was held already.
    #[inline(always)]
    pub fn hold(&mut self, arrived: &Arrived, dispatched: Ticks) -> Ticket {
        let ticket = self.table.ticket_at(self.position);
        let slot = ticket.slot as usize;
        assert_eq!(arrived.slot, ticket.slot, "only the shot at the cursor can be held");
        let before = self.table.tickets[slot].load(Ordering::Relaxed);
        assert_eq!(before, (ticket.generation - 1) << 1, "the shot before in this slot is answered, this one not held");
        let header = self.table.headers.record(slot);
        header[5].store(dispatched.0);
        self.table.opened[slot].store(arrived.submitted.0, Ordering::Relaxed);
        self.table.tx[slot].store(word::IN_FLIGHT, Ordering::Relaxed);
        // ORDERING: release side of S2: a claimer's answer comes after IN_FLIGHT and after the
        // harvest of the shot before. Relaxed could let IN_FLIGHT land on the answer, or the result
        // under the harvester's eyes. Model: loom_slot::a_claimer_writes_after_the_last_harvest.
        self.table.tickets[slot].store(ticket.generation << 1 | OPEN, edge("S2.release", Ordering::Release));
        ticket
    }

    /// Gives the slot's rx back, dispatch's last touch of it, and goes on to the next.
    ///
    /// # Panics
    /// If the shot was not held: it could never be answered.
    #[inline(always)]
    pub fn retire(&mut self) {
        let slot = self.table.index(self.position);
        let held = self.table.tickets[slot].load(Ordering::Relaxed) >> 1;
        assert_eq!(held, self.table.generation(self.position), "only a shot that was held can be retired");
        self.table.give_rx_back(slot);
        self.position += 1;
    }

    /// Shots taken so far.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.position
    }
}
