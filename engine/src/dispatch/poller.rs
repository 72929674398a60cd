//! Poll: claims completions, hands jobs on, judges deadlines.
//!
//! Owns the poller's end of the workers and the cursor of the oldest open ticket. Bounds: at most 64 workers and 64
//! tickets a frame; the ready queue has room for every job, which is the room that a claim needs.
//!
//! A timer says which launch, or that the oldest ticket, has to be judged: see [`super::deadlines`]. The launch deadline
//! is judged after the ready flag was looked at, so that a completion beats its deadline. The shot deadline follows
//! tickets in ring order: they open in that order and with growing submission times, so the first one that is open and
//! in time ends the search, and its deadline is the next cause to look. The ticket of a shot under way is the very word that a
//! decoder is about to claim: it is not looked at without a cause.

use super::deadlines::Deadlines;
use super::{Pipe, Tombstones};
use crate::board::{self, PollBlock};
use crate::device::cuda::Tap;
use crate::fault::{EventCode, FaultCode};
use crate::hot::{BUDGET_ITEMS, Frame, Role, RoleError, Work};
use crate::profile::{FreeWorker, RoleKind};
use crate::units::{Nanos, TickRate, Ticks};
use pinwheel_edge::slot::Ticket;
use pinwheel_edge::slot::jobs::Origin;
use pinwheel_edge::slot::table::TicketView;
use pinwheel_edge::slot::word::ErrorCode;
use pinwheel_edge::slot::workers::{PollWorkers, Settled};
use pinwheel_edge::spin::Phase;

/// How often the workers' words are copied to the board.
const PUBLISH_EVERY: Nanos = Nanos(200_000);

/// The role.
pub struct Poller {
    pipe: Pipe,
    workers: PollWorkers,
    tombstones: Tombstones,
    free_worker: FreeWorker,
    deadlines: Deadlines,
    /// Oldest position whose ticket may be open.
    oldest: u64,
    publish_every: Ticks,
    published: Ticks,
    /// Notes completions of a GPU now and then.
    tap: Option<Tap>,
}

impl Poller {
    /// The role with its end.
    #[must_use]
    pub fn new(
        pipe: Pipe,
        workers: PollWorkers,
        tombstones: Tombstones,
        free_worker: FreeWorker,
        rate: TickRate,
    ) -> Poller {
        board::set(&pipe.board.poll(pipe.silo).ready_capacity, pipe.ready.capacity());
        Poller {
            pipe,
            workers,
            tombstones,
            free_worker,
            deadlines: Deadlines::new(rate),
            oldest: 0,
            publish_every: rate.ticks(PUBLISH_EVERY),
            published: Ticks(0),
            tap: None,
        }
    }

    /// With `tap` to note how long completions lay there.
    #[must_use]
    pub fn tapped(self, tap: Option<Tap>) -> Poller {
        Poller { tap, ..self }
    }

    fn complete(&mut self, w: usize, frame: &Frame<'_>) {
        let now = frame.now;
        if let Some(tap) = &mut self.tap
            && tap.is_due()
            && let Some((_, launched)) = self.workers.running(w)
        {
            tap.note(w, launched, frame.ticks());
        }
        match self.workers.settle(w) {
            Settled::Job { job, ticket, generation } => {
                let worker = match self.free_worker {
                    FreeWorker::AfterCopy => None,
                    FreeWorker::AfterDecode => Some((w as u8, generation)),
                };
                self.pipe
                    .jobs
                    .set_origin(&job, &Origin { ticket, completed: now, worker, raw: false, by_rounds: false });
                board::set(&self.pipe.board.slots(self.pipe.silo)[ticket.slot as usize].completed, now.0);
                self.pipe.hand_on(job);
                if worker.is_none() {
                    self.workers.bank().release(w, generation);
                }
                // Warm-up shots are nobody's: they are gone before Live.
                if frame.phase != Phase::Warmup {
                    board::add(&self.block().completed, 1);
                }
            }
            Settled::Late { job } => {
                self.pipe.jobs.give(job);
                self.note_late(w, frame);
            }
            Settled::Stale => self.note_late(w, frame),
        }
    }

    fn note_late(&self, w: usize, frame: &Frame<'_>) {
        board::add(&self.block().late_completions, 1);
        self.pipe.board.fault(self.pipe.silo, FaultCode::LateCompletion, frame.now, w as u64);
        frame.log(EventCode::LateCompletion, [self.pipe.silo as u64, w as u64]);
    }

    /// Quarantines worker `w` if its launch is overdue, and has it watched if it is not.
    fn judge_launch(&mut self, w: usize, frame: &Frame<'_>) {
        let now = frame.now;
        let Some((generation, started)) = self.workers.running(w) else { return };
        // Without room to tell of it, it is judged in the next frame: nobody watches it until then.
        if !self.deadlines.launch_is_overdue(w, started, now) || !self.tombstones.has_room() {
            return;
        }
        if let Some(ticket) = self.workers.quarantine(w, generation) {
            board::add(&self.block().quarantined, 1);
            self.pipe.board.fault(self.pipe.silo, FaultCode::WorkerQuarantined, now, w as u64);
            let age_ns = frame.clock().rate().nanos(now.since(started)).0;
            let numbers = [self.pipe.silo as u64, w as u64, u64::from(ticket.slot), age_ns];
            frame.log(EventCode::LaunchDeadline, numbers);
            self.fail(ticket, ErrorCode::LaunchDeadline, frame);
        }
    }

    /// Goes on from the oldest ticket that may be open, answers what is overdue, and has the next one watched. A search
    /// that its bound ended goes on in the next frame, and counts as an item so that there is one soon.
    fn judge_shots(&mut self, frame: &Frame<'_>) -> u32 {
        self.oldest = self.pipe.table.first_open_after(self.oldest);
        let mut expired = 0;
        for _ in 0..BUDGET_ITEMS {
            let ticket = self.pipe.table.ticket_at(self.oldest);
            match self.pipe.table.is_open(ticket) {
                TicketView::NotYet => {
                    self.deadlines.watch_shots(None, frame.now);
                    return expired;
                }
                TicketView::Closed => {}
                TicketView::Open { submitted } => match self.deadlines.shot_is_overdue(submitted, frame.now) {
                    Ok(()) if !self.tombstones.has_room() => break,
                    Ok(()) => {
                        self.fail(ticket, ErrorCode::ShotDeadline, frame);
                        expired += 1;
                    }
                    Err(due) => {
                        self.deadlines.watch_shots(Some(due), frame.now);
                        return expired;
                    }
                },
            }
            self.oldest += 1;
        }
        self.deadlines.watch_shots(Some(frame.now), frame.now);
        expired.max(1)
    }

    fn fail(&mut self, ticket: Ticket, code: ErrorCode, frame: &Frame<'_>) {
        if !self.pipe.fail(ticket, code, frame.ticks(), &mut self.tombstones) {
            board::add(&self.block().claims_lost, 1);
        }
    }

    fn publish(&mut self, now: Ticks) {
        if now.since(self.published) < self.publish_every {
            return;
        }
        self.published = now;
        let (block, bank) = (self.block(), self.workers.bank());
        board::set(&block.idle_mask, bank.idle_mask());
        board::set(&block.ready_depth, self.pipe.ready.depth());
        board::set(&block.ready_pushed, self.pipe.ready.pushed());
        for w in 0..bank.len() {
            let (generation, state) = bank.state(w);
            let word = generation << 2 | state as u64;
            if board::get(&block.worker_words[w]) != word || board::get(&block.worker_since[w]) == 0 {
                board::set(&block.worker_words[w], word);
                board::set(&block.worker_since[w], now.0);
                board::set(&block.worker_slots[w], u64::from(bank.slot_of(w)));
            }
        }
    }

    fn block(&self) -> &PollBlock {
        self.pipe.board.poll(self.pipe.silo)
    }
}

impl Role for Poller {
    fn kind(&self) -> RoleKind {
        RoleKind::Poll
    }

    fn warm_up(&mut self, _frame: &mut Frame<'_>) -> Result<(), RoleError> {
        Ok(())
    }

    fn work(&mut self, frame: &mut Frame<'_>) -> Work {
        let lateness = &self.pipe.board.poll(self.pipe.silo).timer_lateness;
        let due = self.deadlines.begin(frame.now, &self.pipe.settings, lateness);
        let (mut items, mut waiting) = (0, 0);
        for w in bits(self.workers.busy_mask()) {
            if self.workers.claim_ready(w) {
                self.complete(w, frame);
                items += 1;
            } else {
                waiting |= 1 << w;
            }
        }
        // Those whose timer expired, and those that have none.
        for w in bits(self.deadlines.unwatched(waiting)) {
            self.judge_launch(w, frame);
        }
        if due.shots || frame.phase == Phase::Drain {
            items += self.judge_shots(frame);
        }
        self.publish(frame.now);
        Work(items)
    }

    fn is_drained(&self) -> bool {
        matches!(self.pipe.table.is_open(self.pipe.table.ticket_at(self.oldest)), TicketView::NotYet)
    }
}

/// The places of the bits of `mask`.
fn bits(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let w = (mask != 0).then(|| mask.trailing_zeros() as usize)?;
        mask &= mask - 1;
        Some(w)
    })
}
