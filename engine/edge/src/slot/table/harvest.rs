//! The harvester's end of a table: takes answers in any order.
//!
//! Owns the cursor of a pass and the marks of slots that were harvested before older ones. Runs on
//! the harvester's thread. Bounds: [`LOOKS`] looks at slots in flight in each part of a pass. Never
//! waits. Edges: S5, S7.

use super::{AnswerTimes, BY_ROUNDS, HAS_TRUTH, HEADER_WORDS, RESULT_WORDS, ReplyTo, ShotHeader, SlotTable};
use crate::slot::word::{self, ErrorCode};
use crate::sync::{DataWord, Ordering, edge, words_of};
use crate::units::Ticks;
use std::sync::Arc;

/// The harvester's end: takes answers in any order.
#[derive(Debug)]
pub struct HarvestEnd {
    table: Arc<SlotTable>,
    /// Oldest position not yet harvested.
    tail: u64,
    cursor: u64,
    /// Slots in flight that this pass has looked at.
    looks: u64,
    /// Where the next pass's far part begins.
    far: u64,
    done: Box<[bool]>,
}

/// Slots in flight that each part of a pass looks at.
///
/// # Why two parts
/// Answers come mostly at the oldest slots. Looking at every slot in flight in each frame costs a
/// thousand loads and takes the answerers' lines away while they write them. So a pass looks at the
/// oldest slots, and at one stretch of the others in turn: what overtook many is found a few frames
/// later.
const LOOKS: u64 = 64;

/// An answered slot in the harvester's hands, until [`HarvestEnd::take`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// Index of the slot that holds the answer.
    pub slot: u32,
    /// The error, if it is one.
    pub error: Option<ErrorCode>,
    /// What gave the answer, in the numbers of whoever decodes; without meaning for an error.
    pub by: u32,
    /// What the feed said.
    pub header: ShotHeader,
    /// When dispatch took it.
    pub dispatched: Ticks,
    /// The steps after.
    pub times: AnswerTimes,
    /// Whether it was answered in ring order (nothing older is outstanding).
    pub oldest: bool,
    /// Whether the feed knew the true observables.
    pub has_truth: bool,
}

impl HarvestEnd {
    pub(super) fn new(table: Arc<SlotTable>) -> HarvestEnd {
        let done = vec![false; table.geometry.slots as usize].into();
        HarvestEnd { table, tail: 0, cursor: 0, looks: 0, far: 0, done }
    }

    /// Starts a new pass at the oldest outstanding slot.
    pub fn begin(&mut self) {
        self.cursor = self.tail;
        self.looks = 0;
    }

    /// The next answered slot of this pass. Ends at the first slot that is not dispatched (dispatch
    /// goes in order), or when it has looked at enough that are in flight.
    #[inline]
    pub fn next_answered(&mut self) -> Option<Answered> {
        let slots = self.done.len() as u64;
        while self.cursor - self.tail < slots {
            let slot = self.table.index(self.cursor);
            if !self.done[slot] {
                // ORDERING: acquire side of S5, see `SlotTable::give_answer`.
                match self.table.tx[slot].load(edge("S5.acquire", Ordering::Acquire)) {
                    word::EMPTY => break,
                    word::IN_FLIGHT => {
                        if self.looks == 2 * LOOKS {
                            self.far = self.cursor;
                            return None;
                        }
                        self.looks += 1;
                        if self.looks == LOOKS {
                            self.cursor = self.cursor.max(self.far);
                        }
                    }
                    answer => return Some(self.read(slot, answer)),
                }
            }
            self.cursor += 1;
        }
        self.far = self.tail;
        None
    }

    #[inline(always)]
    fn read(&self, slot: usize, answer: u64) -> Answered {
        let header: [u64; HEADER_WORDS] = words_of(self.table.headers.record(slot));
        let [stream, sequence, scheduled, submitted, flags, dispatched, peer, theirs] = header;
        let [completed, decoding, answered]: [u64; RESULT_WORDS] = words_of(self.table.results.record(slot));
        let arrived = if flags & BY_ROUNDS == 0 { 0 } else { self.table.last_rounds.record(slot)[0].load() };
        Answered {
            slot: slot as u32,
            error: word::error_in(answer),
            by: word::answered_by(answer),
            header: ShotHeader {
                stream: stream as u32,
                sequence,
                scheduled: Ticks(scheduled),
                submitted: Ticks(submitted),
                reply_to: ReplyTo { peer, sequence: theirs },
            },
            has_truth: flags & HAS_TRUTH != 0,
            dispatched: Ticks(dispatched),
            times: AnswerTimes {
                arrived: Ticks(arrived),
                completed: Ticks(completed),
                decoding: Ticks(decoding),
                answered: Ticks(answered),
            },
            oldest: self.cursor == self.tail,
        }
    }

    /// Leaves the answer that [`HarvestEnd::next_answered`] gave for a later pass, and goes on
    /// behind it.
    pub fn leave(&mut self) {
        self.cursor += 1;
    }

    /// Observable words of an answered slot.
    #[inline]
    #[must_use]
    pub fn observables(&self, answered: &Answered) -> &[DataWord] {
        &self.table.results.record(answered.slot as usize)[RESULT_WORDS..]
    }

    /// True observable words of an answered slot; meaningful if `has_truth`.
    #[inline]
    #[must_use]
    pub fn truth(&self, answered: &Answered) -> &[DataWord] {
        self.table.truths.record(answered.slot as usize)
    }

    /// Detector words of an answered slot, as the feed wrote them; complete if the answer is no error.
    #[inline]
    #[must_use]
    pub fn detectors(&self, answered: &Answered) -> &[DataWord] {
        self.table.payload.record(answered.slot as usize)
    }

    /// Gives the slot back to the feed.
    ///
    /// # Panics
    /// If the slot holds no answer: it was taken already.
    #[inline]
    pub fn take(&mut self, answered: &Answered) {
        let slot = answered.slot as usize;
        let answer = self.table.tx[slot].load(Ordering::Relaxed);
        assert!(answer != word::EMPTY && answer != word::IN_FLIGHT, "slot {slot} is harvested once per answer");
        // ORDERING: release side of S7: our reads of shot and result come first. Relaxed could
        // let the feed's next shot overwrite them under us. Model:
        // loom_slot::feed_writes_after_the_last_harvest.
        self.table.tx[slot].store(word::EMPTY, edge("S7.release", Ordering::Release));
        self.done[slot] = true;
        while self.done[self.table.index(self.tail)] {
            let tail = self.table.index(self.tail);
            self.done[tail] = false;
            self.tail += 1;
        }
        self.cursor = self.cursor.max(self.tail);
    }

    /// Oldest position not yet harvested.
    #[must_use]
    pub fn tail(&self) -> u64 {
        self.tail
    }
}
