//! The graph role: makes tasks of jobs, commits of each stream in its order, and runs none of them.
//!
//! Owns the pool's submitter, the order of the streams, and the reading ends of what dispatch and poll answered with an
//! error. Bounds: 64 jobs a frame; all that was answered elsewhere, at most what its rings hold; the graph's window. With
//! no room in that it takes nothing in and comes back, so that its rings hold up those who write them. Never runs a body:
//! a long decode never holds up a submission.
//!
//! ```text
//!  ready ring ──job──▶ in its turn, nothing of the stream under way ──▶ Whole
//!                      else ──▶ Decode, and in its turn ──▶ Commit
//!                      by windows ──▶ Window, Window, …, and in its turn ──▶ Commit
//!                      by rounds ──▶ Window as its rounds come ([`rounds`]), …, likewise
//!                      no turn to wait for ──▶ Stray
//!  error rings ─(stream, sequence)─▶ in its turn ──▶ Bury
//! ```
//!
//! A turn comes only while the stream's page is here: the role runs the silo's arbiter too ([`Steward`]), and submits no
//! commit to a page that is away. Such a stream is held, and the others go on.
//!
//! # Why it takes in what was answered elsewhere before the job that it has in hand
//! A slot is reused only after its answer, and who answers with an error says so first. A job in hand is therefore at
//! most the slots ahead of whatever is not known, once all that was said before it is known.

mod rounds;

use super::carries::Carries;
use super::joint::{Desk, Joints};
use super::moves::{Floor, Moves};
use super::order::{Held, Order};
use super::pool::{Kernel, Regions, task_of};
use super::shown::Shown;
use super::state::StreamStates;
use super::steward::Steward;
use crate::arbiter::page::Hint;
use crate::board::{self, GraphBlock};
use crate::dispatch::{Pipe, Tombstone};
use crate::graph::{Access, Brought, SubmitError, Submitter, Task, TaskId};
use crate::hot::{BUDGET_ITEMS, Frame, Role, RoleError, Work};
use crate::profile::RoleKind;
use pinwheel_edge::ring::spsc::Consumer;
use pinwheel_edge::slot::jobs::Job;
use pinwheel_edge::slot::table::TicketView;
use pinwheel_edge::slot::word::ErrorCode;
use pinwheel_edge::slot::workers::WorkerBank;
use pinwheel_edge::spin::Phase;
use rounds::Arriving;
use std::collections::VecDeque;
use std::sync::Arc;

/// Tasks of which one is timed, from submission to begin.
const TIMED_EVERY: u64 = 16;

/// Why a task was not submitted.
enum NoRoom {
    /// There may be room later.
    Now,
    /// The profile wants it refused. What has been answered already waits all the same.
    ForIt,
}

/// What the role is made of.
pub struct OrchestratorParts {
    /// The silo's shared parts.
    pub pipe: Pipe,
    /// The device's workers, to release for a job that nobody decodes (`AfterDecode`).
    pub bank: Arc<WorkerBank>,
    /// The pool's submitter.
    pub submitter: Submitter<Brought>,
    /// What tasks declare.
    pub regions: Regions,
    /// What others answered with an error.
    pub tombstones: Vec<Consumer<Tombstone>>,
    /// Decode workers.
    pub decoders: u32,
    /// Carries of jobs, where shots are decoded by windows.
    pub carries: Option<Arc<Carries>>,
    /// The silo's arbiter.
    pub steward: Steward,
    /// Readouts of pairs of its streams, if there are any.
    pub joints: Option<Joints>,
    /// Streams that come and go, where there are several silos.
    pub moves: Option<Moves>,
    /// The streams' states.
    pub states: Arc<StreamStates>,
}

/// The role.
pub struct Orchestrator {
    parts: OrchestratorParts,
    order: Order,
    /// Of each stream: the last task that has its state.
    last: Box<[TaskId]>,
    /// A job that has found no room.
    in_hand: Option<Job>,
    /// A job of whose windows only the first ones have found room, and the next one.
    partial: Option<(Job, u32)>,
    /// Streams whose turn has come and found no room, each once.
    stuck: VecDeque<u32>,
    is_stuck: Box<[bool]>,
    /// Streams whose turn has come and whose page is away or to be read, each once.
    held: VecDeque<u32>,
    is_held: Box<[bool]>,
    arriving: Arriving,
    submitted: u64,
    shown: Shown,
}

impl Orchestrator {
    /// The role with its ends.
    #[must_use]
    pub fn new(parts: OrchestratorParts) -> Orchestrator {
        let streams = parts.pipe.streams;
        Orchestrator {
            order: Order::new(streams, parts.pipe.table.geometry().slots),
            last: vec![TaskId(0); streams as usize].into(),
            in_hand: None,
            partial: None,
            arriving: Arriving::new(parts.pipe.jobs.len()),
            stuck: VecDeque::with_capacity(streams as usize),
            is_stuck: vec![false; streams as usize].into(),
            held: VecDeque::with_capacity(streams as usize),
            is_held: vec![false; streams as usize].into(),
            submitted: 0,
            shown: Shown::new(streams),
            parts,
        }
    }

    fn pop(&self) -> Option<Job> {
        let number = self.parts.pipe.ready.pop()?;
        board::add(&self.block().jobs, 1);
        Some(Job::from_number(number))
    }

    /// Takes up a job; gives it back if there was no room for its task.
    fn take_up(&mut self, job: Job, frame: &Frame<'_>) -> Option<Job> {
        if self.takes_rounds(&job) {
            return None;
        }
        let (stream, sequence) = self.parts.pipe.jobs.shot(&job);
        let number = job.number();
        let on_job = self.parts.regions.job(number);
        if !self.has_turn(stream, sequence) {
            let ticket = self.parts.pipe.jobs.origin(&job).ticket;
            if self.parts.pipe.table.is_open(ticket) == TicketView::Closed {
                self.drop_job(job);
                return None;
            }
            return self.submit(Kernel::Stray, stream, number.into(), &[on_job], frame).is_err().then_some(job);
        }
        if self.parts.carries.is_some() {
            return self.by_windows(job, 0, frame);
        }
        let is_next = sequence == self.order.next(stream);
        // One worker decodes one shot after the other anyway.
        let is_alone = || self.parts.decoders == 1 || !self.parts.submitter.is_under_way(self.last[stream as usize]);
        if is_next && is_alone() && self.may_commit(stream) {
            let accesses = [on_job, self.parts.regions.state(stream)];
            match self.submit(Kernel::Whole, stream, number.into(), &accesses, frame) {
                Ok(task) => {
                    self.last[stream as usize] = task;
                    self.pass(stream, frame);
                }
                Err(NoRoom::Now) => return Some(job),
                Err(NoRoom::ForIt) => self.refuse(job, frame),
            }
        } else {
            match self.submit(Kernel::Decode, stream, number.into(), &[on_job], frame) {
                Ok(_) => self.order.keep(stream, sequence, Held::Job(number)),
                Err(NoRoom::Now) => return Some(job),
                Err(NoRoom::ForIt) => self.refuse(job, frame),
            }
            if !is_next {
                self.shown.holds(stream, frame.now);
            }
        }
        self.advance(stream, frame);
        None
    }

    /// Submits the windows of a job's shot from `index` on, then its commit in its turn; gives the job back if there was
    /// no room even for its first window.
    fn by_windows(&mut self, job: Job, from: u32, frame: &Frame<'_>) -> Option<Job> {
        let Some(carries) = self.parts.carries.clone() else { return Some(job) };
        let (stream, sequence) = self.parts.pipe.jobs.shot(&job);
        let number = job.number();
        for index in from..carries.windows() {
            let accesses = [self.parts.regions.carry(number, carries.region(index))];
            let about = u64::from(number) | u64::from(index) << 32;
            match (self.submit(Kernel::Window, stream, about, &accesses, frame), index) {
                (Ok(_), _) => {}
                (Err(NoRoom::Now), 0) => return Some(job),
                (Err(NoRoom::ForIt), 0) => {
                    self.refuse(job, frame);
                    self.advance(stream, frame);
                    return None;
                }
                // What has begun is not refused any more.
                (Err(_), _) => {
                    self.partial = Some((job, index));
                    return None;
                }
            }
        }
        self.order.keep(stream, sequence, Held::Job(number));
        if sequence != self.order.next(stream) {
            self.shown.holds(stream, frame.now);
        }
        self.advance(stream, frame);
        None
    }

    /// Goes on with a shot whose windows found no room; whether they all have.
    fn finish_partial(&mut self, frame: &Frame<'_>) -> bool {
        if let Some((job, index)) = self.partial.take() {
            let left = self.by_windows(job, index, frame);
            debug_assert!(left.is_none(), "its first window is submitted");
        }
        self.partial.is_none()
    }

    /// Answers a shot that the window has no room for (`Abort`): its stream goes on without it.
    fn refuse(&mut self, job: Job, frame: &Frame<'_>) {
        let (stream, sequence) = self.parts.pipe.jobs.shot(&job);
        let ticket = self.parts.pipe.jobs.origin(&job).ticket;
        self.order.keep(stream, sequence, Held::Tombstone);
        if self.parts.pipe.close(ticket, ErrorCode::WindowFull, frame.ticks()) {
            board::add(&self.block().refused, 1);
            self.give_back(job);
        } else {
            self.drop_job(job);
        }
    }

    fn give_back(&self, job: Job) {
        let origin = self.parts.pipe.jobs.origin(&job);
        self.parts.pipe.jobs.give(job);
        if let Some((worker, generation)) = origin.worker {
            self.parts.bank.release(usize::from(worker), generation);
        }
    }

    /// Whether a sequence number is one that its stream waits for. Others are those of shots that only warm the path,
    /// and what a client sends twice, or out of all order: nobody's turn, and no commit.
    fn has_turn(&self, stream: u32, sequence: u64) -> bool {
        stream < self.parts.pipe.streams
            && !self.order.is_known(stream, sequence)
            && sequence < self.order.next(stream).saturating_add(self.order.reach())
    }

    /// A job whose shot was answered before it came here.
    fn drop_job(&self, job: Job) {
        self.give_back(job);
        board::add(&self.block().claims_lost, 1);
    }

    /// Takes in what was answered elsewhere.
    fn take_in(&mut self, frame: &Frame<'_>) -> u32 {
        let mut items = 0;
        for ring in 0..self.parts.tombstones.len() {
            while self.stuck.is_empty()
                && !self.is_crowded()
                && let Some(Tombstone { stream, sequence }) = self.parts.tombstones[ring].pop()
            {
                items += 1;
                if self.has_turn(stream, sequence) {
                    board::add(&self.block().told, 1);
                    self.order.keep(stream, sequence, Held::Tombstone);
                    if sequence != self.order.next(stream) {
                        self.shown.holds(stream, frame.now);
                    }
                    self.advance(stream, frame);
                }
            }
        }
        items
    }

    /// Submits the commits of a stream whose turn has come. Without room for one the stream is stuck, without its page
    /// it is held.
    fn advance(&mut self, stream: u32, frame: &Frame<'_>) {
        while let Some(held) = self.order.peek(stream) {
            if !self.may_commit(stream) {
                if !self.parts.steward.may_commit(stream) {
                    self.parts.steward.want(stream, (Hint::Default, 0), frame.now);
                }
                if !std::mem::replace(&mut self.is_held[stream as usize], true) {
                    self.held.push_back(stream);
                }
                return;
            }
            let state = self.parts.regions.state(stream);
            let task = match held {
                Held::Job(number) => {
                    // By windows, the commit follows the last one, by what that one wrote.
                    let decoded = match &self.parts.carries {
                        None => self.parts.regions.job(number),
                        Some(carries) => self.parts.regions.carry(number, carries.region(carries.windows() - 1)),
                    };
                    self.submit(Kernel::Commit, stream, number.into(), &[decoded, state], frame)
                }
                Held::Tombstone => self.submit(Kernel::Bury, stream, self.order.next(stream), &[state], frame),
            };
            let Ok(task) = task else {
                if !std::mem::replace(&mut self.is_stuck[stream as usize], true) {
                    self.stuck.push_back(stream);
                }
                return;
            };
            self.last[stream as usize] = task;
            self.pass(stream, frame);
            self.shown.passes(stream, frame.now);
        }
    }

    /// Goes on with the streams that are stuck; whether none is any more.
    fn unstick(&mut self, frame: &Frame<'_>) -> bool {
        for _ in 0..self.stuck.len() {
            let Some(stream) = self.stuck.pop_front() else { break };
            self.is_stuck[stream as usize] = false;
            self.advance(stream, frame);
        }
        self.stuck.is_empty()
    }

    fn may_commit(&self, stream: u32) -> bool {
        let is_read = |joints: &Joints| joints.may_commit(stream, self.order.next(stream));
        self.parts.steward.may_commit(stream) && self.parts.joints.as_ref().is_none_or(is_read)
    }

    /// The commit of the stream's next number was submitted.
    fn pass(&mut self, stream: u32, frame: &Frame<'_>) {
        self.order.pass(stream);
        if let Some(joints) = &mut self.parts.joints {
            joints.passed(stream, self.order.next(stream), frame.now);
        }
    }

    /// Whether nothing more is taken in until a stream that is held goes on.
    fn is_crowded(&self) -> bool {
        !self.held.is_empty() && self.order.is_crowded()
    }

    /// Goes on with the streams whose page has come back.
    fn take_hold(&mut self, frame: &Frame<'_>) {
        for _ in 0..self.held.len() {
            let Some(stream) = self.held.pop_front() else { break };
            self.is_held[stream as usize] = false;
            self.advance(stream, frame);
        }
    }

    /// Runs the arbiter.
    fn serve(&mut self, frame: &Frame<'_>) -> u32 {
        let Orchestrator { parts, last, order, .. } = self;
        let OrchestratorParts { pipe, submitter, steward, joints, regions, moves, states, .. } = parts;
        let is_pending = |page: u32| submitter.is_under_way(last[page as usize]);
        let mut items = steward.serve(frame, pipe.board.arbiter(pipe.silo), &is_pending);
        if let Some(moves) = moves {
            let block = pipe.board.graph(pipe.silo);
            let is_under_way = &is_pending;
            items += moves.serve(&mut Floor { steward, order, states, joints, block, is_under_way }, frame);
        }
        if let Some(joints) = joints.as_mut().filter(|joints| !joints.is_quiet()) {
            let next = |stream: u32| order.next(stream);
            joints.look(&mut Desk { steward, submitter, regions, last, next: &next }, frame);
        }
        items
    }

    /// Submits a task, if there is room.
    fn submit(
        &mut self,
        kernel: Kernel,
        stream: u32,
        about: u64,
        of: &[Access],
        frame: &Frame<'_>,
    ) -> Result<TaskId, NoRoom> {
        let is_timed = self.submitted.is_multiple_of(TIMED_EVERY);
        let begun = if is_timed { frame.ticks().0 } else { 0 };
        let task: Task = task_of(kernel, stream, about, begun);
        match self.parts.submitter.try_submit(&task, of, &[]) {
            Ok(id) => {
                self.submitted += 1;
                if is_timed {
                    let spent = frame.ticks().0.saturating_sub(begun);
                    self.block().submit.record(frame.clock().rate().nanos(crate::units::Ticks(spent)).0);
                }
                Ok(id)
            }
            Err(SubmitError::Full { .. }) => Err(NoRoom::Now),
            Err(SubmitError::Overflow { .. }) => Err(NoRoom::ForIt),
            Err(error) => panic!("the pool's own tasks are in order: {error}"),
        }
    }

    fn block(&self) -> &GraphBlock {
        self.parts.pipe.board.graph(self.parts.pipe.silo)
    }
}

impl Role for Orchestrator {
    fn kind(&self) -> RoleKind {
        RoleKind::Graph
    }

    fn warm_up(&mut self, _frame: &mut Frame<'_>) -> Result<(), RoleError> {
        Ok(())
    }

    fn work(&mut self, frame: &mut Frame<'_>) -> Work {
        if frame.phase == Phase::Drain {
            // Nothing comes any more that a start could wait for.
            self.parts.submitter.start();
        }
        let mut items = self.serve(frame);
        if !self.held.is_empty() {
            self.take_hold(frame);
        }
        let is_free = self.stuck.is_empty() || self.unstick(frame);
        if is_free && !self.arriving.is_empty() {
            items += self.look_at_rounds(frame);
        }
        while is_free && items < BUDGET_ITEMS && !self.is_crowded() && self.finish_partial(frame) {
            let job = self.in_hand.take().or_else(|| self.pop());
            items += self.take_in(frame);
            let Some(job) = job else { break };
            self.in_hand = if self.stuck.is_empty() { self.take_up(job, frame) } else { Some(job) };
            if self.in_hand.is_some() {
                break;
            }
            items += 1;
        }
        if items > 0 {
            self.parts.submitter.flush();
            board::set(&self.block().submitted, self.submitted);
            board::set(&self.block().arriving, self.arriving.count());
        }
        let Orchestrator { parts, order, shown, .. } = self;
        shown.publish(parts.pipe.board.graph(parts.pipe.silo), &mut parts.submitter, order, frame);
        Work(items)
    }

    fn is_drained(&self) -> bool {
        self.in_hand.is_none()
            && self.partial.is_none()
            && self.arriving.is_empty()
            && self.stuck.is_empty()
            && self.held.is_empty()
            && self.parts.joints.as_ref().is_none_or(Joints::is_quiet)
            && self.parts.moves.as_ref().is_none_or(Moves::is_quiet)
            && self.parts.pipe.ready.depth() == 0
            && self.parts.tombstones.iter().all(|ring| ring.depth() == 0)
    }
}
