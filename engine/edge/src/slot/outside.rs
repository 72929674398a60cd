//! The outer ring: the slot protocol with a process that is not ours, in memory that both map.
//!
//! Owns both ends' steps over words that lie wherever a region puts them; [`Outside`] says where.
//! The engine's end keeps for itself which slots it holds and believes no word of the region about
//! it. Bounds: the slots. Never waits, never interprets a payload, never touches memory outside the
//! slices it is given.
//!
//! ```text
//!        client                    engine                            engine          client
//! rx: 0 ──U1──▶ where the shot is ──────────U2──▶ 0
//! tx: 0 ─────────────────▶ IN_FLIGHT (held) ──────────────────U3──▶ answer ──U4──▶ 0 ──▶ reuse
//! ```
//!
//! | edge | release site | acquire site | publishes | inside |
//! |---|---|---|---|---|
//! | U1 | [`ClientEnd::publish`] rx | [`EngineEnd::arrived`] rx | the shot; that the last answer was read | S1 |
//! | U2 | [`EngineEnd::hold`] rx | [`ClientEnd::is_vacant`] rx | IN_FLIGHT; that the shot was read | S8 |
//! | U3 | [`EngineEnd::answer`] tx | [`ClientEnd::collect`] tx | the answer | S5 |
//! | U4 | [`ClientEnd::collect`] tx | [`ClientEnd::is_vacant`] tx | that the answer was read | S7 |
//! | U5 | [`EngineEnd::grant`] granted | [`ClientEnd::is_granted`] granted | that the ring is empty and nothing is read any more |
//!
//! # Why a ring of its own
//! The seed lets the peer write the slots themselves. A peer that is not trusted would then write
//! words that dispatch, deadlines and harvest believe: every one of them would have to be checked
//! in every role. Here one role checks, and one shot is copied.

use super::word;
use crate::sync::{DataWord, MappedWord, Ordering, edge, read_words, write_words};

/// Where the words lie. `rx` and `tx` have one word for each slot, a power of two of them.
#[derive(Clone, Copy, Debug)]
pub struct Outside<'a> {
    /// Client to engine.
    pub rx: &'a [MappedWord],
    /// Engine to client.
    pub tx: &'a [MappedWord],
    /// The session that has the ring.
    pub granted: &'a MappedWord,
}

impl Outside<'_> {
    fn slot(&self, position: u64) -> usize {
        position as usize & (self.rx.len() - 1)
    }
}

/// The engine's end.
#[derive(Debug)]
pub struct EngineEnd {
    position: u64,
    held: Box<[bool]>,
}

impl EngineEnd {
    /// Of a ring of so many slots.
    #[must_use]
    pub fn new(slots: usize) -> EngineEnd {
        EngineEnd { position: 0, held: vec![false; slots].into() }
    }

    /// Empties the ring for `session`: whatever was in it is nobody's.
    pub fn grant(&mut self, outside: &Outside<'_>, session: u64) {
        self.held.fill(false);
        self.position = 0;
        for word in outside.rx.iter().chain(outside.tx) {
            word.store(0, Ordering::Relaxed);
        }
        // ORDERING: release side of U5: the ring is empty, and what was in it was read, before the
        // new client writes. Relaxed could let its first shot race with a read of the last
        // client's, or be wiped away. Model: loom_outside::a_new_client_writes_after_the_last_read.
        outside.granted.store(session, edge("U5.release", Ordering::Release));
    }

    /// The slot at the cursor and its rx word, if the client has written it. Not if the slot's
    /// answer is not out yet: then the client is ahead of itself, and waits.
    #[must_use]
    pub fn arrived(&self, outside: &Outside<'_>) -> Option<(u32, u64)> {
        let slot = outside.slot(self.position);
        if self.held[slot] {
            return None;
        }
        // ORDERING: acquire side of U1, see `publish`.
        let found = outside.rx[slot].load(edge("U1.acquire", Ordering::Acquire));
        (found != 0).then_some((slot as u32, found))
    }

    /// Takes the slot that [`EngineEnd::arrived`] returned, whose shot has been copied.
    pub fn hold(&mut self, outside: &Outside<'_>) {
        let slot = outside.slot(self.position);
        outside.tx[slot].store(word::IN_FLIGHT, Ordering::Relaxed);
        self.held[slot] = true;
        self.position += 1;
        // ORDERING: release side of U2: our reads of the shot, and IN_FLIGHT, come first. Relaxed
        // could let the client's next shot overwrite this one under us, beside an old tx 0. Model:
        // loom_outside::a_client_never_reuses_a_slot_that_is_held.
        outside.rx[slot].store(0, edge("U2.release", Ordering::Release));
    }

    /// Answers a held slot with `answer`, never 0; `false` if it is not held.
    pub fn answer(&mut self, outside: &Outside<'_>, slot: u32, record: (&[DataWord], &[u64]), answer: u64) -> bool {
        let Some(held) = self.held.get_mut(slot as usize) else { return false };
        if !std::mem::take(held) {
            return false;
        }
        write_words(record.0, record.1);
        // ORDERING: release side of U3, publishing the record. Relaxed could show the answer before
        // it. Model: loom_outside::a_client_reads_a_whole_answer.
        outside.tx[slot as usize].store(answer, edge("U3.release", Ordering::Release));
        true
    }

    /// Shots taken of this session.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.position
    }
}

/// The client's end: one thread's, or one that publishes and one that collects.
#[derive(Clone, Debug, Default)]
pub struct ClientEnd {
    position: u64,
}

impl ClientEnd {
    /// Whether the engine has given the ring to `session`.
    #[must_use]
    pub fn is_granted(&self, outside: &Outside<'_>, session: u64) -> bool {
        // ORDERING: acquire side of U5, see `grant`.
        outside.granted.load(edge("U5.acquire", Ordering::Acquire)) == session
    }

    /// Whether the slot at the cursor is free: rx first, **then** tx.
    #[must_use]
    pub fn is_vacant(&self, outside: &Outside<'_>) -> bool {
        let slot = outside.slot(self.position);
        // ORDERING: acquire side of U2, see `hold`; then of U4: whoever collects has read the
        // slot's last answer. Relaxed would let the engine's next answer race with that read.
        // Model: loom_outside::an_answer_is_written_after_the_last_was_read.
        outside.rx[slot].load(edge("U2.acquire", Ordering::Acquire)) == 0
            && outside.tx[slot].load(edge("U4.acquire", Ordering::Acquire)) == word::EMPTY
    }

    /// The slot at the cursor.
    #[must_use]
    pub fn slot(&self, outside: &Outside<'_>) -> u32 {
        outside.slot(self.position) as u32
    }

    /// Writes `shot` into `record` and publishes it at the cursor, which must be vacant, as `rx`,
    /// never 0.
    pub fn publish(&mut self, outside: &Outside<'_>, record: &[DataWord], shot: &[u64], rx: u64) {
        write_words(record, shot);
        let slot = outside.slot(self.position);
        self.position += 1;
        // ORDERING: release side of U1, publishing the shot. Relaxed could hand the engine the last
        // shot's words. Model: loom_outside::the_engine_sees_the_whole_shot.
        outside.rx[slot].store(rx, edge("U1.release", Ordering::Release));
    }

    /// Takes the answer of `slot`, if it is there: its word, and its record in `out`.
    #[must_use]
    pub fn collect(outside: &Outside<'_>, slot: u32, record: &[DataWord], out: &mut [u64]) -> Option<u64> {
        let tx = &outside.tx[slot as usize];
        // ORDERING: acquire side of U3, see `answer`.
        let answer = tx.load(edge("U3.acquire", Ordering::Acquire));
        if answer == word::EMPTY || answer == word::IN_FLIGHT {
            return None;
        }
        read_words(record, out);
        // ORDERING: release side of U4, see `is_vacant`.
        tx.store(word::EMPTY, edge("U4.release", Ordering::Release));
        Some(answer)
    }
}
