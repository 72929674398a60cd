//! Poll: claims completions, passes jobs on, checks deadlines.
//!
//! Owns the poller's end of the workers and the cursor of the oldest open ticket. Bounds: at most
//! 64 workers and 64 tickets a frame; a claim needs room in the ready queue, which has room for
//! every job.
//!
//! Timers select the launches to check, or the oldest ticket: see [`super::deadlines`]. Poll checks
//! the launch deadline, and the launches that dispatch reports as failed, after the ready flag, so
//! that a completion takes precedence. The shot
//! deadline follows tickets in ring order: they open in that order and with growing submission
//! times. The search ends at the first open ticket that is not overdue, and the timer is armed for
//! its deadline. A decoder is about to claim the ticket word of a shot in flight, so poll reads
//! that word only on expiry.

use super::deadlines::Deadlines;
use crate::board::{self, PollBlock};
use crate::device::cuda::Tap;
use crate::fault::{EventCode, FaultCode};
use crate::hot::{BUDGET_ITEMS, Frame, Role, Work};
use crate::pipe::{Pipe, ToGraph};
use crate::profile::FreeWorker;
use crate::roles::RoleKind;
use crate::units::{Nanos, TickRate, Ticks};
use pinwheel_edge::slot::Ticket;
use pinwheel_edge::slot::jobs::{Job, JobReturn, Origin};
use pinwheel_edge::slot::table::TicketView;
use pinwheel_edge::slot::word::ErrorCode;
use pinwheel_edge::slot::workers::{PollWorkers, Resolved, Settled};
use pinwheel_edge::spin::Phase;

/// Interval between copies to the board of words that cost a look at other cores' lines.
pub(super) const PUBLISH_EVERY: Nanos = Nanos(200_000);

/// The poll role.
pub struct Poller {
    pipe: Pipe,
    workers: PollWorkers,
    jobs: JobReturn,
    to_graph: ToGraph,
    free_worker: FreeWorker,
    deadlines: Deadlines,
    /// Oldest position whose ticket may be open.
    oldest: u64,
    publish_every: Ticks,
    published: Ticks,
    /// Samples completions of a GPU.
    tap: Option<Tap>,
}

impl Poller {
    /// Builds the role from its endpoints.
    pub fn new(
        pipe: Pipe,
        workers: PollWorkers,
        jobs: JobReturn,
        to_graph: ToGraph,
        free_worker: FreeWorker,
        rate: TickRate,
    ) -> Poller {
        board::set(&pipe.board.poll(pipe.silo).ready_capacity, to_graph.capacity());
        Poller {
            pipe,
            workers,
            jobs,
            to_graph,
            free_worker,
            deadlines: Deadlines::new(rate),
            oldest: 0,
            publish_every: rate.ticks(PUBLISH_EVERY),
            published: Ticks(0),
            tap: None,
        }
    }

    /// Adds `tap`, which samples how long completions waited for poll.
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
                self.to_graph.pass(job);
                board::add(&self.block().ready_pushed, 1);
                if worker.is_none() {
                    self.workers.release(w, generation);
                }
                // Warm-up shots belong to no stream and finish before Live.
                if frame.phase != Phase::Warmup {
                    board::add(&self.block().completed, 1);
                }
            }
            Settled::Late { job } => {
                self.return_job(job);
                self.note_late(w, frame);
            }
            Settled::Stale => self.note_late(w, frame),
        }
    }

    fn return_job(&mut self, job: Job) {
        self.jobs.give(job);
        board::add(&self.block().jobs_returned, 1);
    }

    fn note_late(&self, w: usize, frame: &Frame<'_>) {
        board::add(&self.block().late_completions, 1);
        self.pipe.board.fault(self.pipe.silo, FaultCode::LateCompletion, frame.now, w as u64);
        frame.log(EventCode::LateCompletion, [self.pipe.silo as u64, w as u64]);
    }

    /// Does what follows from the reports of dispatch. Without room for a tombstone the rest waits for
    /// the next frame.
    fn resolve_reports(&mut self, frame: &Frame<'_>) {
        for w in bits(self.workers.reported()) {
            if !self.to_graph.has_room() {
                return;
            }
            match self.workers.resolve(w) {
                Resolved::Quarantined { ticket, code } => {
                    let numbers = [self.pipe.silo as u64, w as u64, u64::from(ticket.slot), code as u64];
                    frame.log(EventCode::WorkerQuarantined, numbers);
                    self.quarantined(w, ticket, code, frame);
                }
                Resolved::Freed { job } => self.return_job(job),
                Resolved::Nothing => {}
            }
        }
    }

    /// Counts worker `w` as quarantined and answers its shot.
    fn quarantined(&mut self, w: usize, ticket: Ticket, code: ErrorCode, frame: &Frame<'_>) {
        board::add(&self.block().quarantined, 1);
        self.pipe.board.fault(self.pipe.silo, FaultCode::WorkerQuarantined, frame.now, w as u64);
        self.fail(ticket, code, frame);
    }

    /// Quarantines worker `w` if its launch is overdue, and arms its timer otherwise.
    fn judge_launch(&mut self, w: usize, frame: &Frame<'_>) {
        let now = frame.now;
        let Some((generation, started)) = self.workers.running(w) else { return };
        // Without room for a tombstone it stays unwatched and is checked in the next frame.
        if !self.deadlines.launch_is_overdue(w, started, now) || !self.to_graph.has_room() {
            return;
        }
        if let Some(ticket) = self.workers.quarantine(w, generation) {
            let age_ns = frame.clock().rate().nanos(now.since(started)).0;
            let numbers = [self.pipe.silo as u64, w as u64, u64::from(ticket.slot), age_ns];
            frame.log(EventCode::LaunchDeadline, numbers);
            self.quarantined(w, ticket, ErrorCode::LaunchDeadline, frame);
        }
    }

    /// Continues from the oldest ticket that may be open, answers overdue shots, and arms the timer
    /// for the next one. A search that reached its bound continues in the next frame, and counts as
    /// an item so that this frame comes soon.
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
                    Ok(()) if !self.to_graph.has_room() => break,
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
        if !self.pipe.fail(ticket, code, frame.ticks(), &mut self.to_graph) {
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
        if !bank.is_empty() {
            // Without a device dispatch publishes its own ring's.
            board::set(&block.ready_depth, self.to_graph.depth());
        }
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
        self.resolve_reports(frame);
        // Workers whose timer expired, and workers without one.
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

/// The positions of the bits of `mask`.
fn bits(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let w = (mask != 0).then(|| mask.trailing_zeros() as usize)?;
        mask &= mask - 1;
        Some(w)
    })
}
