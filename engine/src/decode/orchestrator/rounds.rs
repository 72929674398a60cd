//! Shots that come by rounds: each window is submitted as soon as its last round is there.
//!
//! Owns the shots under way, in no order. Part of the graph role, on its thread. Bounds: [`LOOKS`] shots looked at in a
//! frame, in turn; at most the jobs under way. Never waits: a window whose rounds are not there is looked at again, until
//! its shot is answered by a deadline or its source gives it up.
//!
//! ```text
//!  ready ring ──job──▶ arriving ──rounds of a window there──▶ Window … last one ─▶ in its turn ──▶ Commit
//!                         ├─ answered meanwhile ──▶ Stray behind the windows that were submitted
//!                         └─ given up by its source ─▶ answered here, then likewise
//! ```
//!
//! # Why the graph role looks, and no word is sent
//! The arrival word is written for whoever decodes; a look costs a load, and a shot is under way for as many frames as its
//! rounds take. A message for each round would cost a ring, and could find it full.

use super::{Held, NoRoom, Orchestrator};
use crate::decode::pool::Kernel;
use crate::hot::{BUDGET_ITEMS, Frame};
use pinwheel_edge::slot::Ticket;
use pinwheel_edge::slot::jobs::Job;
use pinwheel_edge::slot::table::{Arrival, TicketView};
use pinwheel_edge::slot::word::ErrorCode;

/// Shots looked at in a frame.
const LOOKS: usize = 64;

/// A shot whose rounds come.
struct Coming {
    job: Job,
    ticket: Ticket,
    /// The window that is submitted next.
    next: u32,
}

/// All of them.
pub(super) struct Arriving {
    shots: Vec<Coming>,
    cursor: usize,
}

/// What a look came to.
enum Look {
    /// There is more to come, or no room for what has come.
    Stays,
    /// All of its windows are submitted, or it was refused.
    Goes,
}

impl Arriving {
    /// With room for `jobs`.
    pub(super) fn new(jobs: usize) -> Arriving {
        Arriving { shots: Vec::with_capacity(jobs), cursor: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.shots.is_empty()
    }

    pub(super) fn count(&self) -> u64 {
        self.shots.len() as u64
    }
}

impl Orchestrator {
    /// Takes up a job whose rounds come, if it is one.
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

    /// Looks at some of the shots whose rounds come; returns how many got on.
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
            // Out of the list for the look, which may need all of the role.
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
            return self.bring_home(coming, stream, frame);
        }
        let words = match table.arrival(coming.ticket) {
            Arrival::Gone => return self.bring_home(coming, stream, frame),
            Arrival::Abandoned => {
                if self.parts.pipe.close(coming.ticket, ErrorCode::RoundsMissing, frame.ticks()) {
                    self.bury(stream, sequence, frame);
                }
                return self.bring_home(coming, stream, frame);
            }
            Arrival::Words(words) => words,
        };
        match self.submit_windows(coming, stream, words, frame) {
            Err(NoRoom::ForIt) if coming.next == 0 => {
                if self.parts.pipe.close(coming.ticket, ErrorCode::WindowFull, frame.ticks()) {
                    self.bury(stream, sequence, frame);
                }
                self.bring_home(coming, stream, frame)
            }
            Ok(true) if self.has_turn(stream, sequence) => {
                self.order.keep(stream, sequence, Held::Job(coming.job.number()));
                if sequence != self.order.next(stream) {
                    self.shown.holds(stream, frame.now);
                }
                self.advance(stream, frame);
                Look::Goes
            }
            // Its number was settled by a deadline in this very moment.
            Ok(true) => self.bring_home(coming, stream, frame),
            Ok(false) | Err(_) => Look::Stays,
        }
    }

    /// Submits the windows whose rounds are among the first `words`; whether these are all.
    fn submit_windows(
        &mut self,
        coming: &mut Coming,
        stream: u32,
        words: u32,
        frame: &Frame<'_>,
    ) -> Result<bool, NoRoom> {
        let Some(carries) = self.parts.carries.clone() else { return Ok(true) };
        let number = coming.job.number();
        while coming.next < carries.windows() && carries.needed_words(coming.next) <= words {
            let accesses = [self.parts.regions.carry(number, carries.region(coming.next))];
            let about = u64::from(number) | u64::from(coming.next) << 32;
            self.submit(Kernel::Window, stream, about, &accesses, frame)?;
            coming.next += 1;
        }
        Ok(coming.next == carries.windows())
    }

    /// The number was answered here: its stream goes on without it.
    fn bury(&mut self, stream: u32, sequence: u64, frame: &Frame<'_>) {
        if self.has_turn(stream, sequence) {
            self.order.keep(stream, sequence, Held::Tombstone);
            if sequence != self.order.next(stream) {
                self.shown.holds(stream, frame.now);
            }
            self.advance(stream, frame);
        }
    }

    /// Gives back the buffer of a shot that was answered while it came, behind the windows that still use it.
    fn bring_home(&mut self, coming: &mut Coming, stream: u32, frame: &Frame<'_>) -> Look {
        let number = coming.job.number();
        let Some(last) = coming.next.checked_sub(1) else {
            self.drop_job(Job::from_number(number));
            return Look::Goes;
        };
        let Some(carries) = self.parts.carries.clone() else { return Look::Goes };
        let accesses = [self.parts.regions.carry(number, carries.region(last))];
        match self.submit(Kernel::Stray, stream, number.into(), &accesses, frame) {
            Ok(_) => Look::Goes,
            Err(_) => Look::Stays,
        }
    }
}
