//! The outer ring: the slot protocol with a process that is not ours, in memory that both map. A decode
//! worker has such a ring of one slot with the process of a decoder plugin; there the worker is the client.
//!
//! Owns both ends' steps over records that lie wherever a region puts them; [`Outside`] says where.
//! Each end keeps for itself which slots are in use: the engine believes no word of the region about
//! it. Bounds: the slots. Never waits, never interprets a payload, never touches memory outside the
//! words it is given.
//!
//! ```text
//!         client                    engine                         client
//! shot:   words, turn p + 1 ──U1──▶ copied, held
//! answer:                           words, turn p + 1 ──U2──▶ read; slot p mod N is free for p + N
//! ```
//!
//! A record begins with its head: the turn in the low half, one more than the shot's position, and
//! in the high half what the writer adds. A reader polls the line that brings the record: a record
//! of at most eight words crosses in one cache line.
//!
//! | edge | release site | acquire site | publishes | inside |
//! |---|---|---|---|---|
//! | U1 | [`ClientEnd::publish`] head | [`EngineEnd::take`] head | the shot; that the slot's last answer was read | S1, S7 |
//! | U2 | [`EngineEnd::answer`] head | [`ClientEnd::collect`] head | the answer; that the shot was read | S5, S8 |
//! | U3 | [`EngineEnd::grant`] granted | [`ClientEnd::is_granted`] granted | that the ring is empty and nothing is read any more |
//!
//! # Why a ring of its own
//! The seed lets the peer write the slots themselves. A peer that is not trusted would then write
//! words that dispatch, deadlines and harvest believe: every one of them would have to be checked
//! in every role. Here one role checks, and one shot is copied.

use crate::sync::{DataWord, MappedWord, Ordering, edge, read_words, write_words};

/// A shot or an answer.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Its first word: the turn, and what the writer adds.
    pub head: &'a MappedWord,
    /// Its other words.
    pub words: &'a [DataWord],
}

/// Where the records lie.
pub trait Outside {
    /// The shot of slot `slot`.
    fn shot(&self, slot: usize) -> Record<'_>;
    /// The answer of slot `slot`.
    fn answer(&self, slot: usize) -> Record<'_>;
    /// The session that has the ring.
    fn granted(&self) -> &MappedWord;
}

/// The turn of the shot at `position`, and of its answer. It differs from the turns that a slot had
/// before, and from that of an empty one in the first 2³² shots of a session.
#[must_use]
pub const fn turn(position: u64) -> u32 {
    (position as u32).wrapping_add(1)
}

const fn head(turn: u32, added: u32) -> u64 {
    (added as u64) << 32 | turn as u64
}

fn slot(position: u64, slots: usize) -> usize {
    position as usize & (slots - 1)
}

/// The engine's end.
#[derive(Debug)]
pub struct EngineEnd {
    position: u64,
    /// The turn of each slot's shot until it is answered.
    held: Box<[Option<u32>]>,
}

impl EngineEnd {
    /// Of a ring of so many slots, a power of two.
    #[must_use]
    pub fn new(slots: usize) -> EngineEnd {
        EngineEnd { position: 0, held: vec![None; slots].into() }
    }

    /// Empties the ring for `session`: whatever was in it is nobody's.
    pub fn grant(&mut self, outside: &impl Outside, session: u64) {
        self.held.fill(None);
        self.position = 0;
        for slot in 0..self.held.len() {
            outside.shot(slot).head.store(0, Ordering::Relaxed);
            outside.answer(slot).head.store(0, Ordering::Relaxed);
        }
        // ORDERING: release side of U3: the ring is empty, and what was in it was read, before the
        // new client writes. Relaxed could let its first shot race with a read of the last
        // client's, or be wiped away. Model: loom_outside::a_new_client_writes_after_the_last_read.
        outside.granted().store(session, edge("U3.release", Ordering::Release));
    }

    /// Takes the shot at the cursor, if the client has written it: its slot, and what the client
    /// added to the head. Copies its words into `shot`. Takes none while the slot's answer is not
    /// out yet: then the client is ahead of itself, and waits.
    #[must_use]
    #[inline]
    pub fn take(&mut self, outside: &impl Outside, shot: &mut [u64]) -> Option<(u32, u32)> {
        let slot = slot(self.position, self.held.len());
        if self.held[slot].is_some() {
            return None;
        }
        let (record, turn) = (outside.shot(slot), turn(self.position));
        // ORDERING: acquire side of U1, see `publish`.
        let head = record.head.load(edge("U1.acquire", Ordering::Acquire));
        if head as u32 != turn {
            return None;
        }
        read_words(record.words, shot);
        self.held[slot] = Some(turn);
        self.position += 1;
        Some((slot as u32, (head >> 32) as u32))
    }

    /// Answers a held slot with `words`, and `added` in the head; `false` if it is not held.
    #[inline]
    pub fn answer(&mut self, outside: &impl Outside, slot: u32, added: u32, words: &[u64]) -> bool {
        let Some(turn) = self.held.get_mut(slot as usize).and_then(Option::take) else { return false };
        let record = outside.answer(slot as usize);
        write_words(record.words, words);
        // ORDERING: release side of U2, publishing the answer; our reads of the shot came before.
        // Relaxed could show the turn before the words, or let the client's next shot overwrite this
        // one while we read it. Models: loom_outside::a_client_reads_a_whole_answer,
        // a_shot_is_written_after_the_last_was_read.
        record.head.store(head(turn, added), edge("U2.release", Ordering::Release));
        true
    }
}

/// The client's end.
#[derive(Debug)]
pub struct ClientEnd {
    position: u64,
    /// Whether each slot's shot is written and its answer not read.
    waits: Box<[bool]>,
}

impl ClientEnd {
    /// Of a ring of so many slots, a power of two.
    #[must_use]
    pub fn new(slots: usize) -> ClientEnd {
        ClientEnd { position: 0, waits: vec![false; slots].into() }
    }

    /// Whether the engine has given the ring to `session`.
    #[must_use]
    pub fn is_granted(&self, outside: &impl Outside, session: u64) -> bool {
        // ORDERING: acquire side of U3, see `grant`.
        outside.granted().load(edge("U3.acquire", Ordering::Acquire)) == session
    }

    /// Shots published.
    #[must_use]
    pub fn published(&self) -> u64 {
        self.position
    }

    /// Whether the slot at the cursor is free: the answer of its last shot has been read.
    #[must_use]
    pub fn is_vacant(&self) -> bool {
        !self.waits[slot(self.position, self.waits.len())]
    }

    /// Whether the answer of the shot at `position`, one of the last lap, has not been read.
    #[must_use]
    pub fn waits(&self, position: u64) -> bool {
        self.waits[slot(position, self.waits.len())]
    }

    /// Publishes a shot at the cursor, with `added` in its head; `false` if the slot is not free.
    #[must_use]
    pub fn publish(&mut self, outside: &impl Outside, added: u32, shot: &[u64]) -> bool {
        if !self.is_vacant() {
            return false;
        }
        let slot = slot(self.position, self.waits.len());
        let record = outside.shot(slot);
        write_words(record.words, shot);
        // ORDERING: release side of U1, publishing the shot; our read of the slot's last answer came
        // before. Relaxed could hand the engine the last shot's words, or let it overwrite the
        // answer while we read it. Models: loom_outside::the_engine_sees_the_whole_shot,
        // an_answer_is_written_after_the_last_was_read.
        record.head.store(head(turn(self.position), added), edge("U1.release", Ordering::Release));
        self.waits[slot] = true;
        self.position += 1;
        true
    }

    /// Takes the answer to the shot at `position`, one of the last lap, if it is there and was not
    /// taken: what the engine added to the head. Copies its words into `answer`.
    #[must_use]
    pub fn collect(&mut self, outside: &impl Outside, position: u64, answer: &mut [u64]) -> Option<u32> {
        if !self.waits(position) {
            return None;
        }
        let slot = slot(position, self.waits.len());
        let record = outside.answer(slot);
        // ORDERING: acquire side of U2, see `EngineEnd::answer`.
        let head = record.head.load(edge("U2.acquire", Ordering::Acquire));
        if head as u32 != turn(position) {
            return None;
        }
        read_words(record.words, answer);
        self.waits[slot] = false;
        Some((head >> 32) as u32)
    }
}
