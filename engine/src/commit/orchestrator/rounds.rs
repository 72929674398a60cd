//! Shots that arrive by rounds: each window is submitted as soon as its last round has arrived.
//!
//! Owns these shots, in no order. Part of the graph role, on its thread. Bounds: [`LOOKS`] shots
//! checked in a frame, in turn; at most as many as jobs. Never waits: the role checks a window
//! again until its rounds have arrived, a deadline answers its shot, or the source abandons it.
//!
//! ```text
//!  ready ring ──job──▶ arriving ──a window's rounds complete──▶ Window … last ─▶ result, committed in stream order
//!                         ├─ answered meanwhile ──▶ Release after the submitted windows ──▶ result, dropped
//!                         └─ abandoned by its source ─▶ answered here, then as above
//! ```
//!
//! # Why the graph role polls the arrival word
//! The feed writes the arrival word for the decoder anyway. A check costs one load, for as many
//! frames as the shot's rounds take. A message for each round would need a ring, which could be
//! full.

use super::{NoRoom, Orchestrator, Underway};
use crate::hot::{BUDGET_ITEMS, Frame};
use crate::pipe::Carries;
use crate::roles::TaskKernel;
use pinwheel_edge::slot::Ticket;
use pinwheel_edge::slot::jobs::Job;
use pinwheel_edge::slot::table::{Arrival, TicketView};
use pinwheel_edge::slot::word::ErrorCode;

/// Most shots checked in a frame.
const LOOKS: usize = 64;

/// A shot whose rounds arrive.
struct Coming {
    job: Job,
    ticket: Ticket,
    /// Index of the window to submit next.
    next: u32,
}

/// All shots whose rounds arrive.
pub(super) struct Arriving {
    shots: Vec<Coming>,
    cursor: usize,
    /// Matchers that no shot has, where shots have one from their first window to their last.
    free_matchers: Vec<u32>,
}

/// Result of a check.
enum Look {
    /// More rounds are to come, or there was no room for those that arrived.
    Stays,
    /// All of its windows are submitted, or it was refused.
    Goes,
}

impl Arriving {
    /// An empty list with room for `jobs`.
    pub(super) fn new(jobs: usize, carries: Option<&Carries>) -> Arriving {
        let matchers = carries.and_then(Carries::matchers).unwrap_or(0);
        Arriving { shots: Vec::with_capacity(jobs), cursor: 0, free_matchers: (0..matchers).collect() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.shots.is_empty()
    }

    pub(super) fn count(&self) -> u64 {
        self.shots.len() as u64
    }
}

impl Orchestrator {
    /// Takes up a job if it arrives by rounds. Returns whether it does.
    pub(super) fn takes_rounds(&mut self, job: &Job) -> bool {
        if self.parts.carries.is_none() {
            return false;
        }
        let origin = self.parts.pipe.jobs.origin(job);
        if origin.by_rounds {
            let job = Job::from_number(job.number());
            self.arriving.shots.push(Coming { job, ticket: origin.ticket, next: 0 });
        }
        origin.by_rounds
    }

    /// Checks some of the arriving shots. Returns how many items it handled.
    pub(super) fn look_at_rounds(&mut self, frame: &Frame<'_>) -> u32 {
        let mut items = 0;
        for _ in 0..self.arriving.shots.len().min(LOOKS) {
            if items >= BUDGET_ITEMS || self.arriving.is_empty() {
                break;
            }
            if self.arriving.cursor >= self.arriving.shots.len() {
                self.arriving.cursor = 0;
            }
            let at = self.arriving.cursor;
            // Out of the list during the check, which borrows the whole role.
            let mut coming = self.arriving.shots.swap_remove(at);
            let before = coming.next;
            let look = self.look_at(&mut coming, frame);
            items += coming.next - before;
            if matches!(look, Look::Stays) {
                self.arriving.shots.push(coming);
                let last = self.arriving.shots.len() - 1;
                self.arriving.shots.swap(at, last);
                self.arriving.cursor += 1;
            } else {
                items += 1;
            }
        }
        items
    }

    fn look_at(&mut self, coming: &mut Coming, frame: &Frame<'_>) -> Look {
        let (jobs, table) = (&self.parts.pipe.jobs, &self.parts.pipe.table);
        let (stream, sequence) = jobs.shot(&coming.job);
        if table.is_open(coming.ticket) == TicketView::Closed {
            return self.release_buffer(coming, stream, frame);
        }
        let words = match table.arrival(coming.ticket) {
            Arrival::Gone => return self.release_buffer(coming, stream, frame),
            Arrival::Abandoned => {
                if self.parts.pipe.close(coming.ticket, ErrorCode::RoundsMissing, frame.ticks()) {
                    self.skip(stream, sequence, frame);
                }
                return self.release_buffer(coming, stream, frame);
            }
            Arrival::Words(words) => words,
        };
        match self.submit_windows(coming, stream, words, frame) {
            Err(NoRoom::ForIt) if coming.next == 0 => {
                if self.parts.pipe.close(coming.ticket, ErrorCode::WindowFull, frame.ticks()) {
                    self.skip(stream, sequence, frame);
                }
                self.release_buffer(coming, stream, frame)
            }
            Ok(true) => {
                // Not ordered if a deadline settled its number meanwhile: its result is dropped.
                let is_ordered = self.has_turn(stream, sequence);
                if is_ordered {
                    self.reorder.take(stream, sequence);
                }
                self.underway[coming.job.number() as usize] = Underway { is_ordered, ..Underway::default() };
                Look::Goes
            }
            Ok(false) | Err(_) => Look::Stays,
        }
    }

    /// Submits the windows whose rounds are among the first `words`. Returns whether all windows
    /// are submitted.
    fn submit_windows(
        &mut self,
        coming: &mut Coming,
        stream: u32,
        words: u32,
        frame: &Frame<'_>,
    ) -> Result<bool, NoRoom> {
        let Some(carries) = &self.parts.carries else { return Ok(true) };
        let arrived = |next: u32| next < carries.windows() && carries.needed_words(next) <= words;
        let (count, mut next) = (carries.windows(), coming.next);
        while arrived(next) {
            next += 1;
        }
        while coming.next < next {
            if coming.next == 0 && !self.give_matcher(&coming.job) {
                // Its rounds wait in the slot until another shot ends.
                return Ok(false);
            }
            if let Err(no_room) = self.submit_window(&coming.job, coming.next, stream, frame) {
                self.take_matcher(&coming.job, coming.next > 0);
                return Err(no_room);
            }
            coming.next += 1;
        }
        Ok(coming.next == count)
    }

    /// Gives the shot of `job` a matcher, where shots have one from their first window to their last.
    /// Returns whether it can begin.
    pub(super) fn give_matcher(&mut self, job: &Job) -> bool {
        let Some(carries) = self.parts.carries.as_ref().filter(|carries| carries.matchers().is_some()) else {
            return true;
        };
        let Some(matcher) = self.arriving.free_matchers.pop() else { return false };
        carries.set_matcher(job, matcher);
        true
    }

    /// Takes the matcher of the shot of `job` back, unless the shot goes on or was decoded whole.
    pub(super) fn take_matcher(&mut self, job: &Job, keeps: bool) {
        if let Some(carries) = self.parts.carries.as_ref().filter(|carries| !keeps && carries.matchers().is_some()) {
            self.arriving.free_matchers.push(carries.matcher_of(job));
        }
    }

    /// Returns the buffer of a shot that was answered before its last round, after the windows that
    /// still use it.
    fn release_buffer(&mut self, coming: &mut Coming, stream: u32, frame: &Frame<'_>) -> Look {
        let number = coming.job.number();
        let Some(last) = coming.next.checked_sub(1) else {
            self.drop_job(Job::from_number(number));
            return Look::Goes;
        };
        let Some(carries) = &self.parts.carries else { return Look::Goes };
        let accesses = [self.parts.regions.carry(number, carries.region_up_to(last))];
        match self.submit(TaskKernel::Release, stream, number.into(), &accesses, frame) {
            Ok(()) => {
                self.in_windows += 1;
                self.underway[number as usize] = Underway::default();
                Look::Goes
            }
            Err(_) => Look::Stays,
        }
    }
}
