//! The graph role: gives jobs to decode workers and commits their results in each stream's order.
//! It decodes nothing itself.
//!
//! Owns the lanes to the decode workers, the pool's submitter, the order of the streams, and the
//! reading ends of the error rings of dispatch and poll. Bounds: 64 jobs and 64 results a frame; all
//! error answers in its rings; the graph's window. While the lanes are full, or the window is, the
//! role takes nothing in, so its rings fill and hold up their writers.
//!
//! ```text
//!  ready ring ──job──▶ whole ──▶ lane of the worker with the fewest shots ──▶ result ─┐
//!                      by windows ──▶ Window, Window, … in the task graph ──▶ result ─┤
//!                      by rounds ──▶ Window as its rounds arrive ([`rounds`]), … ─────┤
//!  error rings ─(stream, sequence)─▶ tombstone ───────────────────────────────────────┴▶ in stream order ──▶ commit
//! ```
//!
//! A shot without a turn in its stream (a warm-up shot, a number that came before) is decoded and
//! answered without a commit.
//!
//! The role also runs the silo's arbiter ([`ArbiterDriver`]) and commits to a stream only while the
//! stream's page is here. A stream whose page is away is held; the other streams continue.
//!
//! # Why it commits on its own thread
//! The arbiter runs here as well, so a page that leaves has no commit in progress, and a commit needs
//! no exchange with the arbiter. A result that is the next of its stream is committed when it is
//! taken from the lane; nothing is submitted for it.
//!
//! # Why it reads the error rings before it handles the job in hand
//! A slot is reused only after its answer, and a role that answers with an error reports it first.
//! So once every earlier report is read, a job in hand is ahead of the oldest unknown number by at
//! most the number of slots.
//!
//! # Why it reads what waits in both error rings before it reads what comes after
//! A crowded table ends the reading, and it may leave errors in one ring. Streams wait for their
//! numbers. If the next call read the other ring again as far as it has been filled, numbers after
//! those would fill the table.

mod answers;
mod due;
mod rounds;

use super::arbiter_driver::ArbiterDriver;
use super::gauges::GraphGauges;
use super::joint_readouts::{Joints, ReadoutContext};
use super::moves::{MoveContext, Moves};
use super::reorder::ReorderBuffer;
use super::state::StreamStates;
use crate::board::{self, GraphBlock, ThreadBlock};
use crate::graph::{Access, CallerBody, SubmitError, Submitter, Task};
use crate::hot::{BUDGET_ITEMS, Frame, Role, Work};
use crate::pipe::lanes::{DecodeLanes, LINE_WORDS, ShotLine, fits_line};
use crate::pipe::pool::{Regions, task_of};
use crate::pipe::{Carries, FromPath, Pipe, Tombstone};
use crate::profile::ShotOrder;
use crate::roles::{RoleKind, TaskKernel};
use crate::units::Ticks;
use due::DueQueue;
use pinwheel_edge::slot::jobs::{Job, JobReturn};
use pinwheel_edge::slot::table::TicketView;
use pinwheel_edge::slot::word::ErrorCode;
use pinwheel_edge::slot::workers::ReleaseEnd;
use pinwheel_edge::spin::Phase;
use pinwheel_edge::sync::DataWord;
use rounds::Arriving;
use std::collections::VecDeque;
use std::sync::Arc;

/// One task in this many is timed, from submission to start.
const TIMED_EVERY: u64 = 16;

/// Why a task was not submitted.
enum NoRoom {
    /// There may be room later.
    Now,
    /// The profile asks for refusal (`Abort`).
    ForIt,
}

/// Parts of the graph role.
pub struct OrchestratorParts {
    /// The silo's shared parts.
    pub pipe: Pipe,
    /// Frees the device's workers: a job that is decoded, or that no decoder takes, releases its
    /// worker (`AfterDecode`).
    pub release: ReleaseEnd,
    /// The lanes to the decode workers.
    pub lanes: DecodeLanes,
    /// The pool's submitter.
    pub submitter: Submitter<CallerBody>,
    /// Regions that tasks declare.
    pub regions: Regions,
    /// Jobs and answered errors of dispatch and poll.
    pub inputs: [FromPath; 2],
    /// Its way to return job buffers.
    pub returns: JobReturn,
    /// Carries of jobs, if shots are decoded by windows.
    pub carries: Option<Arc<Carries>>,
    /// The silo's arbiter.
    pub arbiter: ArbiterDriver,
    /// Readouts of pairs of its streams, if any.
    pub joints: Option<Joints>,
    /// Moves of streams, if there are several silos.
    pub moves: Option<Moves>,
    /// The streams' states.
    pub states: Arc<StreamStates>,
    /// Whether shots have a rescue decoder.
    pub has_rescue: bool,
}

/// What the graph role knows of a job that is being decoded.
#[derive(Clone, Copy, Default)]
struct Underway {
    /// It went through a lane; otherwise by windows.
    is_whole: bool,
    /// The worker whose lane it went through.
    worker: u8,
    /// Its number was taken in: its result is committed in stream order.
    is_ordered: bool,
}

/// The graph role.
pub struct Orchestrator {
    parts: OrchestratorParts,
    reorder: ReorderBuffer,
    /// By job.
    underway: Box<[Underway]>,
    /// Jobs of decode workers that have died, to be given to others.
    reassigned: VecDeque<u32>,
    /// Jobs in the task graph: their results are not back.
    in_windows: u64,
    /// Whether a shot's words travel in its line.
    fits_line: bool,
    is_polls_turn: bool,
    /// Shots by deadline, where the profile asks for that order.
    due: Option<DueQueue>,
    /// A job whose lane or task found no room.
    in_hand: Option<Job>,
    /// A job of which only the first windows found room, and the index of its next window.
    partial: Option<(Job, u32)>,
    /// Streams whose next commit waits for its page or for a joint readout, each once.
    held: VecDeque<u32>,
    is_held: Box<[bool]>,
    arriving: Arriving,
    submitted: u64,
    /// Tasks submitted when the submitter was flushed last.
    flushed: u64,
    gauges: GraphGauges,
    /// The observables of the result that is being committed, in the first `observable_words`. There
    /// is room for those of a line.
    observables: Vec<u64>,
    observable_words: usize,
}

impl Orchestrator {
    /// The role, built from its parts.
    pub fn new(parts: OrchestratorParts) -> Orchestrator {
        let (streams, geometry) = (parts.pipe.streams, parts.pipe.table.geometry());
        board::set(&parts.pipe.board.graph(parts.pipe.silo).lane_shots, parts.lanes.depth_max());
        let by_deadline = parts.pipe.deadlines.as_ref().is_some_and(|of| of.order == ShotOrder::Deadline);
        Orchestrator {
            due: by_deadline.then(|| DueQueue::new(parts.pipe.jobs.len(), parts.has_rescue)),
            reorder: ReorderBuffer::new(streams, geometry.slots, parts.pipe.jobs.len()),
            underway: vec![Underway::default(); parts.pipe.jobs.len()].into(),
            reassigned: VecDeque::with_capacity(parts.pipe.jobs.len()),
            in_windows: 0,
            fits_line: fits_line(geometry),
            is_polls_turn: false,
            in_hand: None,
            partial: None,
            arriving: Arriving::new(parts.pipe.jobs.len(), parts.carries.as_deref()),
            held: VecDeque::with_capacity(streams as usize),
            is_held: vec![false; streams as usize].into(),
            submitted: 0,
            flushed: 0,
            gauges: GraphGauges::new(streams),
            observables: vec![0; LINE_WORDS.max(geometry.observable_words as usize)],
            observable_words: geometry.observable_words as usize,
            parts,
        }
    }

    /// The next job to be decoded.
    #[inline]
    fn next_job(&mut self) -> Option<Job> {
        if self.due.is_some() { self.nearest() } else { self.pop() }
    }

    /// The oldest job. Dispatch and poll take turns: each passes jobs on at its own pace.
    fn pop(&mut self) -> Option<Job> {
        let [one, other] = &mut self.parts.inputs;
        let (first, second) = if self.is_polls_turn { (other, one) } else { (one, other) };
        self.is_polls_turn = !self.is_polls_turn;
        let job = first.job().or_else(|| second.job())?;
        board::add(&self.block().jobs, 1);
        Some(job)
    }

    /// Takes up a job; returns it if there was no room for it.
    fn take_up(&mut self, job: Job, frame: &Frame<'_>) -> Option<Job> {
        if self.takes_rounds(&job) {
            return None;
        }
        let (stream, sequence) = self.parts.pipe.jobs.shot(&job);
        let is_ordered = self.has_turn(stream, sequence);
        if is_ordered && self.parts.carries.as_ref().is_some_and(|carries| carries.split_whole_shots()) {
            return self.by_windows(job, 0, frame);
        }
        let worker = self.parts.lanes.free();
        if worker.is_none() && !self.parts.lanes.are_closed() {
            board::add(&self.block().lane_waits, 1);
            return Some(job);
        }
        if is_ordered {
            self.reorder.take(stream, sequence);
        }
        match worker {
            Some(worker) => self.assign(job, worker, (stream, is_ordered), frame),
            None => self.answer_undecoded(job, is_ordered, frame),
        }
        None
    }

    /// Answers a whole shot with an error, because no decode worker is left. If it is ordered, its
    /// number was taken in.
    fn answer_undecoded(&mut self, job: Job, is_ordered: bool, frame: &Frame<'_>) {
        let ticket = self.parts.pipe.jobs.origin(&job).ticket;
        if is_ordered {
            self.keep_failed(job, ErrorCode::Drained, frame);
        } else if self.parts.pipe.close(ticket, ErrorCode::Drained, frame.ticks()) {
            self.give_back(job);
        } else {
            self.drop_job(job);
        }
    }

    /// Gives a whole shot to `worker`, unless it was answered on its way. If it is ordered, its number
    /// was taken in.
    fn assign(&mut self, job: Job, worker: usize, (stream, is_ordered): (u32, bool), frame: &Frame<'_>) {
        let jobs = &self.parts.pipe.jobs;
        let origin = jobs.origin(&job);
        let TicketView::Open { submitted } = self.parts.pipe.table.is_open(origin.ticket) else {
            if is_ordered {
                self.keep_failed(job, ErrorCode::ShotDeadline, frame);
            } else {
                self.drop_job(job);
            }
            return;
        };
        let left = self.left(stream, submitted, frame.now);
        let jobs = &self.parts.pipe.jobs;
        let words = if self.fits_line {
            let (detectors, observables) = (jobs.detectors(&job), jobs.observables(&job));
            let word = |at| detectors.get(at).or_else(|| observables.get(at - detectors.len()));
            std::array::from_fn(|at| word(at).map_or(0, DataWord::load))
        } else {
            [0; LINE_WORDS]
        };
        let shot = ShotLine {
            job: job.number(),
            stream,
            generation: origin.ticket.generation,
            slot: origin.ticket.slot as u16,
            raw: u16::from(origin.raw),
            left,
            assigned: frame.now,
            words,
        };
        self.underway[job.number() as usize] = Underway { is_whole: true, worker: worker as u8, is_ordered };
        self.parts.lanes.assign(worker, shot);
    }

    /// Takes the shots of decode workers that have died, after their last results. Each such worker
    /// has published its death, so nothing more comes from it.
    fn close_lanes(&mut self, frame: &Frame<'_>) {
        for worker in 0..self.parts.lanes.len() {
            if self.parts.lanes.is_closed(worker) || !has_died(&self.parts.pipe, worker) {
                continue;
            }
            while self.take_result(worker, &mut None, frame) {}
            self.parts.lanes.close(worker);
            let of_it = |underway: &Underway| underway.is_whole && usize::from(underway.worker) == worker;
            let jobs = (0..).zip(&self.underway).filter(|(_, underway)| of_it(underway)).map(|(job, _)| job);
            self.reassigned.extend(jobs);
        }
    }

    /// Gives the shots of dead workers to others.
    fn reassign(&mut self, frame: &Frame<'_>) {
        while let Some(number) = self.reassigned.front().copied() {
            let worker = self.parts.lanes.free();
            if worker.is_none() && !self.parts.lanes.are_closed() {
                return;
            }
            self.reassigned.pop_front();
            let Underway { is_ordered, .. } = std::mem::take(&mut self.underway[number as usize]);
            let job = Job::from_number(number);
            let (stream, _) = self.parts.pipe.jobs.shot(&job);
            match worker {
                Some(worker) => self.assign(job, worker, (stream, is_ordered), frame),
                None => self.answer_undecoded(job, is_ordered, frame),
            }
        }
    }

    /// Submits the windows of a job's shot from `from` on; its result follows the last. Returns the
    /// job if there was no room even for its first window.
    fn by_windows(&mut self, job: Job, from: u32, frame: &Frame<'_>) -> Option<Job> {
        let windows = self.parts.carries.as_ref().map_or(0, |carries| carries.windows());
        let (stream, sequence) = self.parts.pipe.jobs.shot(&job);
        if from == 0 && !self.give_matcher(&job) {
            return Some(job);
        }
        for index in from..windows {
            match (self.submit_window(&job, index, stream, frame), index) {
                (Ok(()), _) => {}
                (Err(NoRoom::Now), 0) => {
                    self.take_matcher(&job, false);
                    return Some(job);
                }
                (Err(NoRoom::ForIt), 0) => {
                    self.take_matcher(&job, false);
                    self.refuse(job, ErrorCode::WindowFull, frame);
                    return None;
                }
                // A shot whose windows have begun is no longer refused.
                (Err(_), _) => {
                    self.partial = Some((job, index));
                    return None;
                }
            }
            if index == 0 {
                self.reorder.take(stream, sequence);
                self.underway[job.number() as usize] = Underway { is_ordered: true, ..Underway::default() };
            }
        }
        None
    }

    /// Submits window `index` of a job's shot.
    fn submit_window(&mut self, job: &Job, index: u32, stream: u32, frame: &Frame<'_>) -> Result<(), NoRoom> {
        let Some(carries) = &self.parts.carries else { return Ok(()) };
        let number = job.number();
        let accesses = [self.parts.regions.carry(number, carries.region(index))];
        let is_last = index + 1 == carries.windows();
        let about = u64::from(number) | u64::from(index) << 32;
        self.submit(TaskKernel::Window, stream, about, &accesses, frame)?;
        self.in_windows += u64::from(is_last);
        Ok(())
    }

    /// Submits the remaining windows of a shot that found no room. Returns whether none remain.
    fn finish_partial(&mut self, frame: &Frame<'_>) -> bool {
        if let Some((job, index)) = self.partial.take() {
            let left = self.by_windows(job, index, frame);
            debug_assert!(left.is_none(), "a partial job has its first window submitted");
        }
        self.partial.is_none()
    }

    /// Answers a shot with an error, at once; its stream continues without it.
    fn refuse(&mut self, job: Job, why: ErrorCode, frame: &Frame<'_>) {
        let (stream, sequence) = self.parts.pipe.jobs.shot(&job);
        let ticket = self.parts.pipe.jobs.origin(&job).ticket;
        if self.parts.pipe.close(ticket, why, frame.ticks()) {
            board::add(&self.block().refused, 1);
            self.give_back(job);
        } else {
            self.drop_job(job);
        }
        self.skip(stream, sequence, frame);
    }

    fn give_back(&mut self, job: Job) {
        let worker = self.parts.pipe.jobs.origin(&job).worker;
        self.release(worker);
        self.parts.returns.give(job);
    }

    /// Frees the device worker that was held until the decode (`AfterDecode`).
    fn release(&mut self, worker: Option<(u8, u64)>) {
        if let Some((worker, generation)) = worker {
            self.parts.release.release(usize::from(worker), generation);
        }
    }

    /// Whether the stream waits for this sequence number. It does not for warm-up shots, nor for a
    /// number that a client sent twice or far out of range; those get no commit.
    fn has_turn(&self, stream: u32, sequence: u64) -> bool {
        stream < self.parts.pipe.streams
            && !self.reorder.is_known(stream, sequence)
            && sequence < self.reorder.next(stream).saturating_add(self.reorder.reach())
    }

    /// Drops a job whose shot was already answered.
    fn drop_job(&mut self, job: Job) {
        self.give_back(job);
        board::add(&self.block().claims_lost, 1);
    }

    /// Takes in the shots that other roles answered with an error: first those that an earlier call left, then
    /// those that are reported now.
    fn take_in(&mut self, frame: &Frame<'_>) -> u32 {
        let mut items = 0;
        if self.are_errors_due() {
            items = self.take_in_due_errors(frame);
            if self.are_errors_due() {
                return items;
            }
        }
        self.parts.inputs.iter_mut().for_each(FromPath::take_stock);
        // Usually there are none.
        if self.are_errors_due() {
            items += self.take_in_due_errors(frame);
        }
        items
    }

    #[inline]
    fn are_errors_due(&self) -> bool {
        let [one, other] = &self.parts.inputs;
        one.has_due() || other.has_due()
    }

    /// Takes in the tombstones that are due, of both rings, until the table is crowded.
    fn take_in_due_errors(&mut self, frame: &Frame<'_>) -> u32 {
        let mut items = 0;
        for input in 0..self.parts.inputs.len() {
            while !self.is_crowded()
                && let Some(Tombstone { stream, sequence }) = self.parts.inputs[input].tombstone()
            {
                items += 1;
                self.skip(stream, sequence, frame);
            }
        }
        items
    }

    /// The number was answered with an error; its stream continues without it.
    fn skip(&mut self, stream: u32, sequence: u64, frame: &Frame<'_>) {
        if !self.has_turn(stream, sequence) {
            return;
        }
        board::add(&self.block().errors_received, 1);
        self.reorder.take_tombstone(stream, sequence);
        if sequence == self.reorder.next(stream) {
            self.advance(stream, frame.ticks(), frame);
        } else {
            self.gauges.holds(stream, frame.now);
        }
    }

    fn may_commit(&self, stream: u32) -> bool {
        let is_read = |joints: &Joints| joints.may_commit(stream, self.reorder.next(stream));
        self.parts.arbiter.may_commit(stream) && self.parts.joints.as_ref().is_none_or(is_read)
    }

    /// Records that the stream's next number is committed.
    fn pass(&mut self, stream: u32, now: Ticks) {
        self.reorder.pass(stream);
        if let Some(joints) = &mut self.parts.joints {
            joints.passed(stream, self.reorder.next(stream), now);
        }
    }

    /// Whether to take nothing more in until a held stream continues or a result comes. With
    /// neither to wait for, what is missing is still to be taken in.
    fn is_crowded(&self) -> bool {
        self.reorder.is_crowded() && (!self.held.is_empty() || self.parts.lanes.in_flight() > 0 || self.in_windows > 0)
    }

    /// Retries the held streams.
    fn resume_held(&mut self, frame: &Frame<'_>) {
        for _ in 0..self.held.len() {
            let Some(stream) = self.held.pop_front() else { break };
            self.is_held[stream as usize] = false;
            self.advance(stream, frame.ticks(), frame);
        }
    }

    /// Runs the arbiter, the moves and the joint readouts.
    fn serve(&mut self, frame: &Frame<'_>) -> u32 {
        let Orchestrator { parts, reorder, .. } = self;
        let OrchestratorParts { pipe, submitter, arbiter, joints, regions, moves, states, .. } = parts;
        let is_read = |page: u32| joints.as_ref().is_some_and(|joints| joints.is_read(page));
        let mut items = arbiter.serve(frame, pipe.board.arbiter(pipe.silo), &is_read);
        if let Some(moves) = moves {
            let block = pipe.board.graph(pipe.silo);
            items += moves.serve(&mut MoveContext { arbiter, reorder, states, joints, block }, frame);
        }
        if let Some(joints) = joints.as_mut().filter(|joints| !joints.is_quiet()) {
            let next = |stream: u32| reorder.next(stream);
            joints.look(&mut ReadoutContext { arbiter, submitter, regions, next: &next }, frame);
        }
        items
    }

    /// Submits a task, if there is room.
    fn submit(
        &mut self,
        kernel: TaskKernel,
        stream: u32,
        about: u64,
        of: &[Access],
        frame: &Frame<'_>,
    ) -> Result<(), NoRoom> {
        let is_timed = self.submitted.is_multiple_of(TIMED_EVERY);
        let begun = if is_timed { frame.ticks().0 } else { 0 };
        let task: Task = task_of(kernel, stream, about, begun);
        match self.parts.submitter.try_submit(&task, of, &[]) {
            Ok(_) => {
                self.submitted += 1;
                if is_timed {
                    let spent = frame.ticks().0.saturating_sub(begun);
                    self.block().submit.record(frame.clock().rate().nanos(Ticks(spent)).0);
                }
                Ok(())
            }
            Err(SubmitError::Full { .. }) => Err(NoRoom::Now),
            Err(SubmitError::Overflow { .. }) => Err(NoRoom::ForIt),
            Err(error) => panic!("the pool refused one of its own tasks: {error}"),
        }
    }

    fn block(&self) -> &GraphBlock {
        self.parts.pipe.board.graph(self.parts.pipe.silo)
    }
}

/// Whether the decode role `index` of this silo has died.
fn has_died(pipe: &Pipe, index: usize) -> bool {
    let decode = RoleKind::Decode as u64 | (pipe.silo as u64) << 8;
    pipe.board.threads().iter().flat_map(ThreadBlock::own_roles).any(|role| {
        let is_it = board::get(&role.identity) == decode | (index as u64) << 40;
        // Acquires what the role did last: its results.
        is_it && board::get_first(&role.died) != 0
    })
}

impl Role for Orchestrator {
    fn kind(&self) -> RoleKind {
        RoleKind::Graph
    }

    fn work(&mut self, frame: &mut Frame<'_>) -> Work {
        if frame.phase == Phase::Drain || self.is_crowded() {
            // No further task comes that a batched start could wait for.
            self.parts.submitter.start();
        }
        let mut items = self.serve(frame);
        if !self.held.is_empty() {
            self.resume_held(frame);
        }
        if frame.phase == Phase::Drain {
            // The death of a role drains the engine.
            self.close_lanes(frame);
            self.reassign(frame);
        }
        let results = self.take_results(frame);
        if !self.arriving.is_empty() {
            items += self.look_at_rounds(frame);
        }
        // Not of the budget: a long queue must not keep workers waiting.
        let queued = if self.due.is_some() { self.take_in_due(frame) } else { 0 };
        while items < BUDGET_ITEMS && !self.is_crowded() && self.finish_partial(frame) {
            let job = self.in_hand.take().or_else(|| self.next_job());
            items += self.take_in(frame);
            let Some(job) = job else { break };
            self.in_hand = self.take_up(job, frame);
            if self.in_hand.is_some() {
                break;
            }
            items += 1;
        }
        items += results + queued;
        if self.flushed != self.submitted {
            // The rest of a partial shot's windows is no item, and must be flushed all the same.
            self.flushed = self.submitted;
            self.parts.submitter.flush();
            board::set(&self.block().submitted, self.submitted);
        }
        if items > 0 {
            board::set(&self.block().arriving, self.arriving.count());
        }
        let Orchestrator { parts, reorder, gauges, .. } = self;
        let (board, silo) = (&parts.pipe.board, parts.pipe.silo);
        let blocks = (board.graph(silo), board.decoders(silo));
        gauges.publish(blocks, &mut parts.submitter, &parts.lanes, reorder, frame);
        Work(items)
    }

    fn is_drained(&self) -> bool {
        self.in_hand.is_none()
            && self.partial.is_none()
            && self.due.as_ref().is_none_or(DueQueue::is_empty)
            && self.arriving.is_empty()
            && self.held.is_empty()
            && self.in_windows == 0
            && self.reassigned.is_empty()
            && self.parts.lanes.in_flight() == 0
            && self.parts.joints.as_ref().is_none_or(Joints::is_quiet)
            && self.parts.moves.as_ref().is_none_or(Moves::is_quiet)
            && self.parts.inputs.iter().all(FromPath::is_empty)
    }
}
