//! Moves of streams between silos, run by the feed that the streams' shots come from.
//!
//! Owns the current destination of each stream's shots, the stage of each moving stream, and the
//! endpoint to the arbiters. Part of the feed, on its thread. Bounds: [`MOVES_MAX`] moves at once,
//! with a stage of [`STAGE_SHOTS`] shots each. Each step that can be cancelled lasts [`STEP_LIMIT`]
//! at most; the first step also has the time in which the owner answers its backlog. Never waits:
//! each frame continues from the reports received so far.
//!
//! ```text
//!  1 quiesce: shots go to the stage; the owner finishes earlier shots ── Quiet ──▶ 2 transfer: the other silo fetches the page
//!      │ time limit over: Cancel                                                     │ Here: the route changes, with its epoch
//!      ▼                                                                             ▼
//!    stays where it is                                STEP_LIMIT over: Cancel ── 4 return: the owner fetches the page back
//!      └───────────────▶ 3 resume: the stage is sent, then shots go directly again ◀──┘
//! ```
//!
//! # Why the feed runs the moves, and never changes
//! One feed has a stream's source, its schedule and its numbers. As long as this feed alone routes
//! the stream's shots, there is one order and one place to stage them. A feed that moved with the
//! stream would have to hand over both. A stream that is decoded elsewhere costs each shot one copy
//! from lane to slot.
//!
//! # Why an owner with a backlog has more time
//! The owner finishes the stream's shots among all others: with 1,024 slots at 1,000 shots a second
//! the last one is answered after a second. With a shorter limit a full silo could give no stream
//! away when it is most needed. So the owner has until a shot's deadline, by which each shot is
//! answered, if only with an error; and longer while it keeps answering shots of its initial
//! backlog. The move is cancelled if the owner has passed the deadline and no longer answers any of
//! these shots. Whoever requests a move need not know this.
//!
//! # Why no shot arrives late
//! The owner releases the page after it has answered every number before the first staged one,
//! including shots in lanes. So no shot of the old route is under way when the route changes. A
//! shot that nevertheless meets another epoch comes back to this feed.

use super::lane::crossing_shots;
use super::lane::{LaneIn, LaneOut, lane};
use super::overflow::{self, Bound};
use super::requests::{MoveRequest, MoveRequests};
use crate::arbiter::page::{Authority, Epoch, Response};
use crate::arbiter::requests::{ArbiterReport, ArbiterRequest, FeedEndpoint, MOVES_MAX, TAKEOVERS_MAX};
use crate::board::layout::MOVE_ROWS;
use crate::board::{self, Board, MoveBlock, move_row};
use crate::fault::EventCode;
use crate::hot::Frame;
use crate::streams::{MoveStage, OverflowOutcome};
use crate::units::{Nanos, Ticks};
use std::sync::Arc;

/// Shots in the stage of one moving stream.
pub(super) const STAGE_SHOTS: usize = 1_024;
/// Longest time for the receiver to fetch the page. Also the owner's time beyond a shot's deadline,
/// and its time for one shot of its initial backlog.
pub(super) const STEP_LIMIT: Nanos = Nanos::from_millis(100);

const _: () = assert!(MOVES_MAX == MOVE_ROWS, "the board shows every move");

/// Where a stream's shots go.
#[derive(Clone, Copy)]
struct Destination {
    to: u8,
    epoch: u32,
    is_staged: bool,
    /// When the stream's shots began to go there; zero: from the start.
    routed_since: Ticks,
}

impl Destination {
    /// Sends shots to silo `to` from now on, staged shots first.
    fn point_to(&mut self, to: usize, epoch: Epoch, now: Ticks) {
        let routed_since = if usize::from(self.to) == to { self.routed_since } else { now };
        *self = Destination { to: to as u8, epoch: epoch.number(), is_staged: true, routed_since };
    }
}

/// A stage: both ends of a lane.
struct Stage {
    put: LaneIn,
    take: LaneOut,
}

struct Move {
    number: u32,
    stream: u32,
    from: usize,
    to: usize,
    lease_us: u32,
    backlog: Backlog,
    by: Authority,
    at: MoveStage,
    /// When the present step began, and when the move began.
    since: Ticks,
    began: Ticks,
    /// The silo that was asked to cancel, until it answers.
    cancels: Option<usize>,
    /// The stream stays where it was.
    has_failed: bool,
    /// How long the stream's shots were staged.
    pause: Nanos,
    /// Since the stage is being sent: shots sent from it, shots added to it.
    gone: u64,
    late: u64,
    /// Staged shots that had to wait at the source. Their outcome is counted when the move ends.
    deferred: u64,
    stage: Stage,
}

impl Move {
    /// The request to the destination for the page.
    fn request(&self) -> ArbiterRequest {
        ArbiterRequest::Fetch { number: self.number, page: self.stream, lease_us: self.lease_us, authority: self.by }
    }

    /// The request to the owner for the page of a move that failed.
    fn request_back(&self) -> ArbiterRequest {
        ArbiterRequest::Fetch { number: self.number, page: self.stream, lease_us: 0, authority: Authority::Port }
    }
}

/// The owner's backlog when it was asked to finish, and its progress, as positions in its answers.
struct Backlog {
    until: u64,
    answered: u64,
    /// When the owner last answered a shot of the backlog.
    at: Ticks,
}

impl Backlog {
    /// The backlog of silo `from`, with at most `on_the_way` shots that it has not taken in yet.
    fn of(board: &Board, from: usize, on_the_way: u64, now: Ticks) -> Backlog {
        // Reads the subtrahend first: the backlog is at worst overestimated slightly.
        let answered = board::get(&board.harvest(from).position);
        let written = board::get(&board.feed(from).position);
        Backlog { until: written.max(answered) + on_the_way, answered, at: now }
    }

    fn update(&mut self, answered: u64, now: Ticks) {
        if answered > self.answered && self.answered < self.until {
            (self.answered, self.at) = (answered, now);
        }
    }
}

pub(super) struct MoverParts {
    pub(super) silo: usize,
    pub(super) streams: u32,
    pub(super) endpoint: FeedEndpoint,
    pub(super) requests: Arc<MoveRequests>,
    /// Words of detectors and of observables.
    pub(super) widths: (usize, usize),
}

/// Whether a failover is reassigning streams of a dead silo; their shots are sent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailingOver {
    /// No failover.
    No,
    /// A failover is under way.
    Yes,
}

/// Moves of one feed's streams.
pub(super) struct Mover {
    silo: usize,
    routes: Box<[Destination]>,
    endpoint: FeedEndpoint,
    requests: Arc<MoveRequests>,
    taken: u64,
    moves: Vec<Move>,
    free: Vec<Stage>,
    number: u32,
    has_changed: bool,
    /// A shot in a slot is answered within this time.
    deadline: Nanos,
    /// Dead silos, one bit each.
    dead: u64,
    /// Takeovers requested: number, stream, successor.
    taking_over: Vec<(u32, u32, usize)>,
    /// Takeovers completed in this failover.
    taken_over: usize,
}

impl Mover {
    /// A mover without moves: every stream's shots go directly into slots of this silo.
    pub(super) fn new(parts: MoverParts) -> Mover {
        let MoverParts { silo, streams, endpoint, requests, widths: (detectors, observables) } = parts;
        let route = Destination { to: silo as u8, epoch: 0, is_staged: false, routed_since: Ticks(0) };
        let stage = |_| {
            let (put, take) = lane(detectors, observables, STAGE_SHOTS);
            Stage { put, take }
        };
        Mover {
            silo,
            routes: vec![route; streams as usize].into(),
            endpoint,
            requests,
            taken: 0,
            moves: Vec::with_capacity(MOVES_MAX),
            free: (0..MOVES_MAX).map(stage).collect(),
            number: 0,
            has_changed: true,
            deadline: Nanos(0),
            dead: 0,
            taking_over: Vec::with_capacity(TAKEOVERS_MAX),
            taken_over: 0,
        }
    }

    /// Whether a shot of `stream` goes straight into a slot of this silo.
    #[inline]
    pub(super) fn is_direct(&self, stream: u32) -> bool {
        self.bound(stream).is_direct
    }

    /// Where the next shot of `stream` goes.
    #[inline]
    pub(super) fn bound(&self, stream: u32) -> Bound {
        let Destination { to, is_staged, routed_since, .. } = self.routes[stream as usize];
        let silo = usize::from(to);
        Bound { silo, is_direct: silo == self.silo && !is_staged, is_staged, routed_since }
    }

    /// The silo that takes the shots of `stream`, and the epoch of that route.
    pub(super) fn route(&self, stream: u32) -> (usize, u32) {
        let route = self.routes[stream as usize];
        (usize::from(route.to), route.epoch)
    }

    /// Shots that the stage of `stream` can take now; `None` if the stream does not move. A stage
    /// that is being sent accepts one shot for two sent: otherwise a source with a constant backlog
    /// would keep it full for ever.
    pub(super) fn stage_room(&self, stream: u32) -> Option<u64> {
        if !self.routes[stream as usize].is_staged {
            return None;
        }
        // Shots of a held stream that does not move wait at the source.
        let Some(one) = self.moves.iter().find(|one| one.stream == stream) else { return Some(0) };
        let is_ahead = one.at == MoveStage::Resume && one.late * 2 > one.gone;
        Some(if is_ahead { 0 } else { one.stage.put.room() })
    }

    /// Counts a shot put into the stage of `stream`.
    pub(super) fn note_staged(&mut self, stream: u32) {
        let resuming = self.moves.iter_mut().filter(|one| one.at == MoveStage::Resume);
        resuming.filter(|one| one.stream == stream).for_each(|one| one.late += 1);
    }

    /// Defers the outcome of a shot of `stream` that had to wait until its move succeeds or fails.
    /// Returns `false` if the destination is already known, or the stream does not move.
    pub(super) fn defer(&mut self, stream: u32) -> bool {
        let mut open = self.moves.iter_mut().filter(|one| one.at != MoveStage::Resume);
        let Some(one) = open.find(|one| one.stream == stream) else { return false };
        one.deferred += 1;
        true
    }

    /// Counts a shot of `stream` that left its stage.
    pub(super) fn note_gone(&mut self, stream: u32) {
        self.moves.iter_mut().filter(|one| one.stream == stream).for_each(|one| one.gone += 1);
    }

    /// The stage for the next shot of `stream`, if the stream moves.
    pub(super) fn stage(&mut self, stream: u32) -> Option<&mut LaneIn> {
        if !self.routes[stream as usize].is_staged {
            return None;
        }
        self.moves.iter_mut().find(|one| one.stream == stream).map(|one| &mut one.stage.put)
    }

    /// The `nth` stream whose stage is being sent, and that stage.
    pub(super) fn resuming(&mut self, nth: usize) -> Option<(u32, &mut LaneOut)> {
        let resuming = self.moves.iter_mut().filter(|one| one.at == MoveStage::Resume);
        resuming.map(|one| (one.stream, &mut one.stage.take)).nth(nth)
    }

    /// Whether no stream moves.
    pub(super) fn is_quiet(&self) -> bool {
        self.moves.is_empty()
    }

    /// One frame: reports, overdue steps, requests. A shot in a slot is answered within `deadline`;
    /// `next` returns the next sequence number of a stream.
    pub(super) fn step(
        &mut self,
        frame: &Frame<'_>,
        (takes_more, failover): (bool, FailingOver),
        (board, deadline): (&Board, Nanos),
        next: impl Fn(u32) -> u64,
    ) -> u32 {
        let mut items = 0;
        let block = board.moves(self.silo);
        let mut flipped = |stream: u32, to: usize| board::set(&board.stream_feed(stream as usize).silo, to as u64);
        self.deadline = deadline;
        if !self.moves.is_empty() || !self.taking_over.is_empty() {
            for silo in 0..self.endpoint.silos() {
                while let Some(report) = self.endpoint.receive(silo) {
                    items += 1;
                    self.take_report(report, frame, block, &mut flipped);
                }
            }
            if failover == FailingOver::No {
                self.finish(frame, board);
            }
            self.cancel_overdue(frame, board);
        }
        if takes_more && failover == FailingOver::No && self.moves.len() < MOVES_MAX {
            items += self.take_request(frame, board, next);
        }
        if self.has_changed {
            self.publish(block);
        }
        items
    }

    fn take_request(&mut self, frame: &Frame<'_>, board: &Board, next: impl Fn(u32) -> u64) -> u32 {
        let Some(request) = self.requests.take(self.silo, self.taken) else { return 0 };
        let block = board.moves(self.silo);
        self.taken += 1;
        board::add(&block.asked, 1);
        let MoveRequest { stream, to, lease_ms, by } = request;
        let (from, to) = (self.route(stream).0, to as usize);
        let is_dead = self.dead & 1 << to != 0;
        if from == to || is_dead || self.moves.iter().any(|one| one.stream == stream) {
            board::add(&block.needless, 1);
            self.requests.end(stream);
            return 1;
        }
        let Some(stage) = self.free.pop() else { unreachable!("there is a stage for each move") };
        self.number = self.number.wrapping_add(1);
        let (number, now) = (self.number, frame.now);
        self.routes[stream as usize].is_staged = true;
        self.moves.push(Move {
            number,
            stream,
            from,
            to,
            lease_us: lease_ms * 1_000,
            backlog: Backlog::of(
                board,
                from,
                if from == self.silo { 0 } else { crossing_shots(self.endpoint.silos()) as u64 },
                now,
            ),
            by,
            at: MoveStage::Quiesce,
            since: now,
            began: now,
            cancels: None,
            has_failed: false,
            pause: Nanos(0),
            gone: 0,
            late: 0,
            deferred: 0,
            stage,
        });
        self.ask(from, ArbiterRequest::Quiesce { number, page: stream, below: next(stream) });
        self.has_changed = true;
        1
    }

    /// Each move has at most one unanswered request, so the endpoint has room.
    fn ask(&mut self, silo: usize, request: ArbiterRequest) {
        assert!(self.endpoint.ask(silo, request), "one request at a time for each move");
    }

    fn take_report(
        &mut self,
        report: ArbiterReport,
        frame: &Frame<'_>,
        block: &MoveBlock,
        flipped: &mut impl FnMut(u32, usize),
    ) {
        let (ArbiterReport::Quiet { number }
        | ArbiterReport::Here { number, .. }
        | ArbiterReport::Cancelled { number, .. }) = report;
        let Some(at) = self.moves.iter().position(|one| one.number == number) else {
            self.take_takeover_report(number, report, frame.now, flipped);
            return;
        };
        let one = &mut self.moves[at];
        let (rate, now) = (frame.clock().rate(), frame.now);
        self.has_changed = true;
        let stream = one.stream;
        let asked = match (report, one.at) {
            (ArbiterReport::Quiet { .. }, _) => {
                block.quiesce.record(rate.nanos(now.since(one.since)).0);
                (one.at, one.since) = (MoveStage::Transfer, now);
                // A move that is being cancelled waits for the answer to the cancel.
                one.cancels.is_none().then(|| (one.to, one.request()))
            }
            (ArbiterReport::Here { epoch, .. }, stage) => {
                let to = if stage == MoveStage::Return { one.from } else { one.to };
                if stage == MoveStage::Transfer {
                    one.pause = rate.nanos(now.since(one.began));
                    block.transfer.record(rate.nanos(now.since(one.since)).0);
                    block.pause.record(one.pause.0);
                }
                self.routes[stream as usize].point_to(to, epoch, now);
                flipped(stream, to);
                // The answer to an earlier cancel is still due.
                (one.at, one.since) = (MoveStage::Resume, now);
                None
            }
            (ArbiterReport::Cancelled { refusal, .. }, stage) => {
                one.cancels = None;
                match stage {
                    // The stream never left.
                    MoveStage::Quiesce => {
                        one.has_failed = true;
                        Self::note(block, one, refusal, frame);
                        (one.at, one.since) = (MoveStage::Resume, now);
                        None
                    }
                    MoveStage::Transfer => {
                        one.has_failed = true;
                        Self::note(block, one, refusal, frame);
                        (one.at, one.since) = (MoveStage::Return, now);
                        Some((one.from, one.request_back()))
                    }
                    MoveStage::Return | MoveStage::Resume => None,
                }
            }
        };
        if let Some((silo, request)) = asked {
            self.ask(silo, request);
        }
    }

    /// Reports a failed move on the board and in the log.
    fn note(block: &MoveBlock, one: &Move, refusal: Option<Response>, frame: &Frame<'_>) {
        let numbers = [u64::from(one.stream), one.from as u64, one.to as u64, one.at as u64];
        frame.log(EventCode::MoveGivenUp, numbers);
        board::add(&block.failed, 1);
        board::set(&block.failed_row, move_row(one.stream, one.from, one.to, one.at));
        board::set(&block.failed_refusal, refusal.map_or(0, |refusal| refusal.number() as u64 + 1));
        board::set(&block.failed_at, frame.now.0);
    }

    /// Requests to cancel overdue moves.
    fn cancel_overdue(&mut self, frame: &Frame<'_>, board: &Board) {
        let (rate, now) = (frame.clock().rate(), frame.now);
        // The owner's time limit, independent of its progress.
        let finishing = rate.ticks(Nanos(self.deadline.0.saturating_add(STEP_LIMIT.0)));
        for at in 0..self.moves.len() {
            let one = &mut self.moves[at];
            let (silo, is_overdue) = match one.at {
                MoveStage::Quiesce => {
                    one.backlog.update(board::get(&board.harvest(one.from).position), now);
                    let is_stalled = now.since(one.backlog.at) > rate.ticks(STEP_LIMIT);
                    (one.from, is_stalled && now.since(one.since) > finishing)
                }
                MoveStage::Transfer => (one.to, now.since(one.since) > rate.ticks(STEP_LIMIT)),
                // Nothing to cancel: the page can only go back to its owner.
                MoveStage::Return | MoveStage::Resume => continue,
            };
            if is_overdue && one.cancels.is_none() {
                one.cancels = Some(silo);
                let request = ArbiterRequest::Cancel { number: one.number, page: one.stream };
                self.ask(silo, request);
            }
        }
    }

    /// Ends the moves whose stages are empty: from now on their shots go directly.
    fn finish(&mut self, frame: &Frame<'_>, board: &Board) {
        for at in (0..self.moves.len()).rev() {
            let one = &self.moves[at];
            if one.at != MoveStage::Resume || one.cancels.is_some() || one.stage.take.depth() > 0 {
                continue;
            }
            let one = self.moves.swap_remove(at);
            self.routes[one.stream as usize].is_staged = false;
            let outcome = if one.has_failed { OverflowOutcome::Waited } else { OverflowOutcome::SentElsewhere };
            if one.deferred > 0 {
                overflow::count(outcome, one.deferred, board.feed(self.silo), board.stream_feed(one.stream as usize));
            }
            if !one.has_failed {
                board::add(&board.moves(self.silo).done, 1);
                let numbers = [u64::from(one.stream), one.from as u64, one.to as u64, one.pause.0];
                frame.log(EventCode::StreamMoved, numbers);
            }
            self.free.push(one.stage);
            // After the route: a reader that sees the end of the move also sees the new route.
            self.requests.end(one.stream);
            self.has_changed = true;
        }
    }

    fn publish(&mut self, block: &MoveBlock) {
        self.has_changed = false;
        for (at, row) in block.open.iter().enumerate() {
            let Some(one) = self.moves.get(at) else {
                board::set(row, 0);
                continue;
            };
            board::set(&block.open_since[at], one.since.0);
            board::set(row, move_row(one.stream, one.from, one.to, one.at));
        }
    }
}

mod unassigned;
#[cfg(test)]
mod tests;
