//! Moves of streams between silos, as the feed sees them from which their shots come.
//!
//! Owns where each of its streams' shots go now, the stage of each stream that moves, and the desk to the arbiters. Part of
//! the feed, on its thread. Bounds: [`MOVES_MAX`] moves at once, a stage of [`STAGE_SHOTS`] shots for each; [`PATIENCE`] for
//! each step that can be given up, for the first the time in which the owner answers what it has. Never waits: each frame goes
//! on with what has been reported.
//!
//! ```text
//!  1 quiesce: shots go to the stage; the owner finishes those before ── Quiet ──▶ 2 transfer: the other silo fetches the page
//!      │ its time is over: Desist                                                    │ Here: the route flips, with its epoch
//!      ▼                                                                             ▼
//!    stays where it is                                   PATIENCE over: Desist ── 4 return: the owner fetches it back
//!      └───────────────▶ 3 resume: the stage goes out, then shots go directly again ◀┘
//! ```
//!
//! # Why the feed, and why it never changes
//! One feed has a stream's source, its schedule and its numbers. As long as it alone says where a shot goes, there is one
//! order and one place to stage; a feed that changed with the stream would have to hand on both. A stream that is decoded
//! elsewhere costs its shots one copy from lane to slot.
//!
//! # Why a full owner has more time
//! It finishes the stream's shots among all that it has: with 1,024 slots at 1,000 shots a second the last of them is answered
//! after a second. One that was given less could give nothing away when it should most. So it has until a shot's deadline, by
//! which each is answered, if only with an error; and goes on having time while what it had at the beginning is being answered.
//! One that answers nothing of it any more, and has passed the deadline, is given up. Whoever asks need not know any of this.
//!
//! # Why nothing can come too late
//! The owner lets the page go after it has answered every number before the first staged one, those on their way included. So
//! no shot of the old route is under way when the route flips. A shot that meets another epoch all the same comes back here.

use super::crossing::crossing_shots;
use super::lane::{LaneIn, LaneOut, lane};
use super::overflow::{self, Bound};
use super::requests::{MoveRequest, MoveRequests};
use crate::arbiter::errand::{ADOPTIONS_MAX, Errand, FeedDesk, MOVES_MAX, Report};
use crate::arbiter::page::{Authority, Epoch, Response};
use crate::board::layout::MOVE_ROWS;
use crate::board::snapshot::{MoveStage, OverflowOutcome};
use crate::board::{self, Board, MoveBlock, move_row};
use crate::fault::EventCode;
use crate::hot::Frame;
use crate::units::{Nanos, Ticks};
use std::sync::Arc;

/// Shots of one moving stream.
pub(super) const STAGE_SHOTS: usize = 1_024;
/// How long the receiver may take to have the page; and the owner to finish beyond a shot's deadline, and with one of the shots
/// that it had when it was asked.
pub(super) const PATIENCE: Nanos = Nanos::from_millis(100);

const _: () = assert!(MOVES_MAX == MOVE_ROWS, "the board shows every move");

/// Where a stream's shots go.
#[derive(Clone, Copy)]
struct Way {
    to: u8,
    epoch: u32,
    is_staged: bool,
    /// When it began to lead there; zero: it always has.
    came: Ticks,
}

impl Way {
    /// Shots go to silo `to` from now on, first those of the stage.
    fn lead(&mut self, to: usize, epoch: Epoch, now: Ticks) {
        let came = if usize::from(self.to) == to { self.came } else { now };
        *self = Way { to: to as u8, epoch: epoch.number(), is_staged: true, came };
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
    held: Held,
    by: Authority,
    at: MoveStage,
    /// Since when it is at this stage, and since when it is under way.
    since: Ticks,
    began: Ticks,
    /// Told to desist, and not heard of it yet.
    is_desisting: bool,
    /// It will stay where it was.
    has_failed: bool,
    /// How long it stood still.
    pause: Nanos,
    /// Of the stage, since it goes out: shots gone, shots put in behind.
    gone: u64,
    late: u64,
    /// Shots in it that had to wait before they got there: where they go to is known at the end.
    deferred: u64,
    stage: Stage,
}

/// What the owner had when it was asked to finish, and how far it is with that, by all that it has answered.
struct Held {
    until: u64,
    answered: u64,
    /// When it last answered one of them.
    at: Ticks,
}

impl Held {
    /// What silo `from` has now, with `on_the_way` more shots at most that it has not taken in.
    fn of(board: &Board, from: usize, on_the_way: u64, now: Ticks) -> Held {
        // What is taken away is read first: at worst it seems to have a little more.
        let answered = board::get(&board.harvest(from).position);
        let written = board::get(&board.feed(from).position);
        Held { until: written.max(answered) + on_the_way, answered, at: now }
    }

    fn look(&mut self, answered: u64, now: Ticks) {
        if answered > self.answered && self.answered < self.until {
            (self.answered, self.at) = (answered, now);
        }
    }
}

/// What the mover is made of.
pub(super) struct MoverParts {
    pub(super) silo: usize,
    pub(super) streams: u32,
    pub(super) desk: FeedDesk,
    pub(super) requests: Arc<MoveRequests>,
    /// Words of detectors and of observables.
    pub(super) widths: (usize, usize),
}

/// Whether streams of a dead silo are taken elsewhere: their shots go out first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rescuing {
    /// No.
    No,
    /// They are.
    Yes,
}

/// Moves of one feed's streams.
pub(super) struct Mover {
    silo: usize,
    ways: Box<[Way]>,
    desk: FeedDesk,
    requests: Arc<MoveRequests>,
    taken: u64,
    moves: Vec<Move>,
    free: Vec<Stage>,
    number: u32,
    has_changed: bool,
    /// By when a shot that is in a slot is answered.
    deadline: Nanos,
    /// Silos that are dead, a bit each.
    dead: u64,
    /// Adoptions that are asked for: number, stream, and the heir.
    adopting: Vec<(u32, u32, usize)>,
    /// Of this rescue: adoptions that were made.
    adopted: usize,
}

impl Mover {
    /// Every stream of this silo goes directly.
    pub(super) fn new(parts: MoverParts) -> Mover {
        let MoverParts { silo, streams, desk, requests, widths: (detectors, observables) } = parts;
        let way = Way { to: silo as u8, epoch: 0, is_staged: false, came: Ticks(0) };
        let stage = |_| {
            let (put, take) = lane(detectors, observables, STAGE_SHOTS);
            Stage { put, take }
        };
        Mover {
            silo,
            ways: vec![way; streams as usize].into(),
            desk,
            requests,
            taken: 0,
            moves: Vec::with_capacity(MOVES_MAX),
            free: (0..MOVES_MAX).map(stage).collect(),
            number: 0,
            has_changed: true,
            deadline: Nanos(0),
            dead: 0,
            adopting: Vec::with_capacity(ADOPTIONS_MAX),
            adopted: 0,
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
        let Way { to, is_staged, came, .. } = self.ways[stream as usize];
        let silo = usize::from(to);
        Bound { silo, is_direct: silo == self.silo && !is_staged, is_staged, came }
    }

    /// The silo that takes the shots of `stream`, and since which epoch.
    pub(super) fn way(&self, stream: u32) -> (usize, u32) {
        let way = self.ways[stream as usize];
        (usize::from(way.to), way.epoch)
    }

    /// Shots that the stage of `stream` takes now; `None`: it does not move. A stage that goes out takes one for two that have
    /// gone: otherwise a source that is never empty would keep it full for ever.
    pub(super) fn stage_room(&self, stream: u32) -> Option<u64> {
        if !self.ways[stream as usize].is_staged {
            return None;
        }
        // One that is held and does not move waits at its source.
        let Some(one) = self.moves.iter().find(|one| one.stream == stream) else { return Some(0) };
        let is_ahead = one.at == MoveStage::Resume && one.late * 2 > one.gone;
        Some(if is_ahead { 0 } else { one.stage.put.room() })
    }

    /// A shot was put into the stage of `stream`.
    pub(super) fn note_staged(&mut self, stream: u32) {
        let resuming = self.moves.iter_mut().filter(|one| one.at == MoveStage::Resume);
        resuming.filter(|one| one.stream == stream).for_each(|one| one.late += 1);
    }

    /// A shot of `stream`, which had to wait, goes into its stage: what became of it is counted when the move has been made or
    /// has failed. `false`: that is known already, or it does not move.
    pub(super) fn defer(&mut self, stream: u32) -> bool {
        let mut open = self.moves.iter_mut().filter(|one| one.at != MoveStage::Resume);
        let Some(one) = open.find(|one| one.stream == stream) else { return false };
        one.deferred += 1;
        true
    }

    /// A shot of `stream` has left its stage.
    pub(super) fn note_gone(&mut self, stream: u32) {
        self.moves.iter_mut().filter(|one| one.stream == stream).for_each(|one| one.gone += 1);
    }

    /// The stage that the next shot of `stream` goes to, if it moves.
    pub(super) fn stage(&mut self, stream: u32) -> Option<&mut LaneIn> {
        if !self.ways[stream as usize].is_staged {
            return None;
        }
        self.moves.iter_mut().find(|one| one.stream == stream).map(|one| &mut one.stage.put)
    }

    /// A stream whose stage goes out now, and that stage; `nth` of them.
    pub(super) fn resuming(&mut self, nth: usize) -> Option<(u32, &mut LaneOut)> {
        let resuming = self.moves.iter_mut().filter(|one| one.at == MoveStage::Resume);
        resuming.map(|one| (one.stream, &mut one.stage.take)).nth(nth)
    }

    /// Whether nothing moves.
    pub(super) fn is_quiet(&self) -> bool {
        self.moves.is_empty()
    }

    /// One frame: reports, what has waited too long, requests. A shot in a slot is answered within `deadline`; `next` says each
    /// stream's next number.
    pub(super) fn step(
        &mut self,
        frame: &Frame<'_>,
        (takes_more, rescue): (bool, Rescuing),
        (board, deadline): (&Board, Nanos),
        next: impl Fn(u32) -> u64,
    ) -> u32 {
        let mut items = 0;
        let block = board.moves(self.silo);
        let mut flipped = |stream: u32, to: usize| board::set(&board.stream_feed(stream as usize).silo, to as u64);
        self.deadline = deadline;
        if !self.moves.is_empty() || !self.adopting.is_empty() {
            for silo in 0..self.desk.silos() {
                while let Some(report) = self.desk.hear(silo) {
                    items += 1;
                    self.hear(report, frame, block, &mut flipped);
                }
            }
            if rescue == Rescuing::No {
                self.finish(frame, board);
            }
            self.judge(frame, board);
        }
        if takes_more && rescue == Rescuing::No && self.moves.len() < MOVES_MAX {
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
        let (from, to) = (self.way(stream).0, to as usize);
        let is_dead = self.dead & 1 << to != 0;
        if from == to || is_dead || self.moves.iter().any(|one| one.stream == stream) {
            board::add(&block.needless, 1);
            self.requests.end(stream);
            return 1;
        }
        let Some(stage) = self.free.pop() else { unreachable!("a stage for each move") };
        self.number = self.number.wrapping_add(1);
        let (number, now) = (self.number, frame.now);
        self.ways[stream as usize].is_staged = true;
        self.moves.push(Move {
            number,
            stream,
            from,
            to,
            lease_us: lease_ms * 1_000,
            held: Held::of(
                board,
                from,
                if from == self.silo { 0 } else { crossing_shots(self.desk.silos()) as u64 },
                now,
            ),
            by,
            at: MoveStage::Quiesce,
            since: now,
            began: now,
            is_desisting: false,
            has_failed: false,
            pause: Nanos(0),
            gone: 0,
            late: 0,
            deferred: 0,
            stage,
        });
        self.ask(from, Errand::Quiesce { number, page: stream, below: next(stream) });
        self.has_changed = true;
        1
    }

    /// Every errand of a move is answered before its next one, so there is room.
    fn ask(&mut self, silo: usize, errand: Errand) {
        assert!(self.desk.ask(silo, errand), "an errand at a time for each move");
    }

    fn hear(&mut self, report: Report, frame: &Frame<'_>, block: &MoveBlock, flipped: &mut impl FnMut(u32, usize)) {
        let (Report::Quiet { number } | Report::Here { number, .. } | Report::Desisted { number, .. }) = report;
        let Some(at) = self.moves.iter().position(|one| one.number == number) else {
            self.hear_of_adoption(number, report, frame.now, flipped);
            return;
        };
        let one = &mut self.moves[at];
        let (rate, now) = (frame.clock().rate(), frame.now);
        self.has_changed = true;
        let (stream, page) = (one.stream, one.stream);
        let asked = match (report, one.at) {
            (Report::Quiet { .. }, _) => {
                block.quiesce.record(rate.nanos(now.since(one.since)).0);
                (one.at, one.since) = (MoveStage::Transfer, now);
                // One that is told to desist hears of that first.
                let fetch = Errand::Fetch { number, page, lease_us: one.lease_us, authority: one.by };
                (!one.is_desisting).then_some((one.to, fetch))
            }
            (Report::Here { epoch, .. }, stage) => {
                let to = if stage == MoveStage::Return { one.from } else { one.to };
                if stage == MoveStage::Transfer {
                    one.pause = rate.nanos(now.since(one.began));
                    block.transfer.record(rate.nanos(now.since(one.since)).0);
                    block.pause.record(one.pause.0);
                }
                self.ways[stream as usize].lead(to, epoch, now);
                flipped(stream, to);
                // Told to desist all the same: its word comes yet.
                (one.at, one.since) = (MoveStage::Resume, now);
                None
            }
            (Report::Desisted { refusal, .. }, stage) => {
                one.is_desisting = false;
                match stage {
                    // It never left.
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
                        Some((one.from, Errand::Fetch { number, page, lease_us: 0, authority: Authority::Port }))
                    }
                    MoveStage::Return | MoveStage::Resume => None,
                }
            }
        };
        if let Some((silo, errand)) = asked {
            self.ask(silo, errand);
        }
    }

    /// Why a move has failed, for the board and the log.
    fn note(block: &MoveBlock, one: &Move, refusal: Option<Response>, frame: &Frame<'_>) {
        let numbers = [u64::from(one.stream), one.from as u64, one.to as u64, one.at as u64];
        frame.log(EventCode::MoveGivenUp, numbers);
        board::add(&block.failed, 1);
        board::set(&block.failed_row, move_row(one.stream, one.from, one.to, one.at));
        board::set(&block.failed_refusal, refusal.map_or(0, |refusal| refusal.number() as u64 + 1));
        board::set(&block.failed_at, frame.now.0);
    }

    /// What waits too long is told to leave off.
    fn judge(&mut self, frame: &Frame<'_>, board: &Board) {
        let (rate, now) = (frame.clock().rate(), frame.now);
        // What the owner has to finish in, whatever it does.
        let finishing = rate.ticks(Nanos(self.deadline.0.saturating_add(PATIENCE.0)));
        for at in 0..self.moves.len() {
            let one = &mut self.moves[at];
            let (silo, is_late) = match one.at {
                MoveStage::Quiesce => {
                    one.held.look(board::get(&board.harvest(one.from).position), now);
                    let stands = now.since(one.held.at) > rate.ticks(PATIENCE);
                    (one.from, stands && now.since(one.since) > finishing)
                }
                MoveStage::Transfer => (one.to, now.since(one.since) > rate.ticks(PATIENCE)),
                // The page comes back, or its doubt ends: there is nowhere else to go.
                MoveStage::Return | MoveStage::Resume => continue,
            };
            if is_late && !one.is_desisting {
                one.is_desisting = true;
                let errand = Errand::Desist { number: one.number, page: one.stream };
                self.ask(silo, errand);
            }
        }
    }

    /// Ends the moves whose stages are empty: from now on their shots go directly.
    fn finish(&mut self, frame: &Frame<'_>, board: &Board) {
        for at in (0..self.moves.len()).rev() {
            let one = &self.moves[at];
            if one.at != MoveStage::Resume || one.is_desisting || one.stage.take.depth() > 0 {
                continue;
            }
            let one = self.moves.swap_remove(at);
            self.ways[one.stream as usize].is_staged = false;
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
            // Behind the route: who sees that it has ended sees where it led.
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

mod orphans;
#[cfg(test)]
mod tests;
