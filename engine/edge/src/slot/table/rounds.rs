//! Shots whose payload comes by and by: what of it is there.
//!
//! Owns an arrival word for each slot. The feed opens such a shot with what it has, and says with
//! each word that it adds how many leading words are whole; whoever decodes reads those and no
//! others. Bounds: the payload's words. Never waits: a shot whose rest never comes is answered by
//! its deadline, or at once where the feed gives it up.
//!
//! | edge | release site | acquire site | publishes |
//! |---|---|---|---|
//! | S9 | [`FeedEnd::extend`], [`FeedEnd::complete`], [`FeedEnd::abandon`] | [`SlotTable::arrival`] | the leading words, the last round's time |
//!
//! # Why whole words
//! A word is written once, before it is counted: so no reader ever meets a writer. Rounds of
//! detectors share words at their edges, so a window may wait for up to 63 detectors of the round
//! after; the last one, for which an answer waits, never does.
//!
//! # Why a slot is held while its shot comes
//! The payload has one place, and the slot is held until the answer anyway. A shot that expired
//! while it came leaves its slot to others: the feed, which alone reuses slots, then adds no more
//! to it ([`FeedEnd::extend`] refuses).

use super::{BY_ROUNDS, FeedEnd, ShotHeader, SlotTable, Ticket, Vacant};
use crate::sync::{AtomicU64, DataWord, Ordering, edge, write_words};
use crate::units::Ticks;

/// Bits of an arrival word that count words; the rest is the slot's generation.
const COUNT_BITS: u32 = 16;
const COUNT: u64 = (1 << COUNT_BITS) - 1;
/// As a count: the rest will never come.
const ABANDONED: u64 = COUNT;

const _: () = assert!((super::DETECTOR_WORDS_MAX as u64) < ABANDONED, "a count of words is not the mark");

/// One slot's arrival word, and when the last round came.
#[derive(Debug)]
pub(super) struct Arriving {
    word: AtomicU64,
    last_round: AtomicU64,
}

impl Arriving {
    pub(super) fn new() -> Arriving {
        Arriving { word: AtomicU64::new(0), last_round: AtomicU64::new(0) }
    }
}

/// How far a shot's payload has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// So many leading words are whole.
    Words(u32),
    /// The rest will never come.
    Abandoned,
    /// The shot has been answered, and its slot is another's.
    Gone,
}

/// A shot that the feed has opened and not completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenShot {
    position: u64,
    /// Index of the slot that its rounds are written into.
    pub slot: u32,
}

impl Vacant<'_> {
    /// Writes a shot of which only the first `words` words of `payload` have come, and publishes
    /// it. `truth`: the true observables, if known.
    pub fn open(self, header: &ShotHeader, payload: &[u64], words: u32, truth: Option<&[u64]>) -> OpenShot {
        let (position, slot) = (self.end.position, self.end.next_slot());
        let table = &self.end.table;
        let arriving = &table.arrivals[slot as usize];
        // Relaxed: published with the shot, by S1.
        arriving.last_round.store(0, Ordering::Relaxed);
        arriving.word.store(table.generation(position) << COUNT_BITS | u64::from(words), Ordering::Relaxed);
        // For an answer that names no last round.
        table.last_rounds.record(slot as usize)[0].store(0);
        let address = table.payload_address(slot);
        self.write(address, header, payload, truth, BY_ROUNDS);
        OpenShot { position, slot }
    }
}

impl FeedEnd {
    /// Adds whole words to an open shot, from `first` on; `false` if it has been answered and its
    /// slot is another's.
    pub fn extend(&mut self, shot: OpenShot, first: u32, words: &[u64]) -> bool {
        if self.is_reused(shot) {
            return false;
        }
        write_words(&self.table.payload.record(shot.slot as usize)[first as usize..], words);
        self.publish(shot, u64::from(first) + words.len() as u64);
        true
    }

    /// All of an open shot has come, its last round at `last_round`; `false` as above.
    pub fn complete(&mut self, shot: OpenShot, last_round: Ticks) -> bool {
        if self.is_reused(shot) {
            return false;
        }
        self.table.arrivals[shot.slot as usize].last_round.store(last_round.0, Ordering::Relaxed);
        self.publish(shot, u64::from(self.table.geometry.detector_words));
        true
    }

    /// The rest of an open shot will never come; `false` as above.
    pub fn abandon(&mut self, shot: OpenShot) -> bool {
        if self.is_reused(shot) {
            return false;
        }
        self.publish(shot, ABANDONED);
        true
    }

    fn is_reused(&self, shot: OpenShot) -> bool {
        self.position - shot.position > u64::from(self.table.geometry.slots)
    }

    fn publish(&self, shot: OpenShot, count: u64) {
        let word = self.table.generation(shot.position) << COUNT_BITS | count;
        // ORDERING: release side of S9, publishing the words counted and the last round's time.
        // Relaxed could count a word before its bits. Model:
        // loom_slot::a_word_is_counted_after_its_bits.
        self.table.arrivals[shot.slot as usize].word.store(word, edge("S9.release", Ordering::Release));
    }
}

impl SlotTable {
    /// How far the payload of the shot behind `ticket` has come, if that comes by rounds.
    #[must_use]
    pub fn arrival(&self, ticket: Ticket) -> Arrival {
        let word = &self.arrivals[ticket.slot as usize].word;
        // ORDERING: acquire side of S9, see `publish`.
        let word = word.load(edge("S9.acquire", Ordering::Acquire));
        match word & COUNT {
            _ if word >> COUNT_BITS != ticket.generation => Arrival::Gone,
            ABANDONED => Arrival::Abandoned,
            words => Arrival::Words(words as u32),
        }
    }

    /// When the last round of the shot in `slot` came; zero before. For whom [`SlotTable::arrival`]
    /// has told, himself or through a queue, that all is there.
    #[must_use]
    pub fn last_round(&self, slot: u32) -> Ticks {
        Ticks(self.arrivals[slot as usize].last_round.load(Ordering::Relaxed))
    }

    /// The payload of the shot in `slot`: of one that comes by rounds, the words that have been
    /// counted. What is read after its answer may be another shot's.
    #[must_use]
    pub fn payload(&self, slot: u32) -> &[DataWord] {
        self.payload.record(slot as usize)
    }
}
