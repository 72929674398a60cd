//! The graph role's part in a stream's move: the requests of its feed to this silo.
//!
//! Owns the streams that leave, the pages that arrive, and the endpoint to the feeds. Kept by the
//! graph role, the only role that knows when all of a stream is committed. Bounds: the feeds'
//! moves. Never waits: each frame checks once.
//!
//! ```text
//!  Quiesce ─▶ every number below is committed and its answer harvested ─▶ no longer served here ─▶ Quiet
//!  Fetch   ─▶ MIGRATE until the page is here ─▶ next number read from its state ─▶ served here ─▶ Here
//!  TakeOver ─▶ as Fetch, and the dead silo's unanswered shots are committed as errors ─▶ Here
//!  Cancel  ─▶ request dropped ─▶ Cancelled
//! ```
//!
//! # Why Quiet requires harvested answers
//! The stream's next answer comes from another silo. If one of the last answers were still in a
//! slot here, two harvesters would count the stream at once, and answers would leave the engine out
//! of order.

use super::arbiter_driver::ArbiterDriver;
use super::joint_readouts::Joints;
use super::reorder::ReorderBuffer;
use super::state::StreamStates;
use crate::arbiter::driver::Want;
use crate::arbiter::page::Hint;
use crate::arbiter::requests::{ArbiterEndpoint, ArbiterReport, ArbiterRequest, MOVES_MAX, TAKEOVERS_MAX};
use crate::board::{self, GraphBlock};
use crate::hot::Frame;
use crate::pipe::Watermarks;
use std::sync::Arc;

/// A stream that is to leave.
#[derive(Clone, Copy)]
struct Leaving {
    home: usize,
    number: u32,
    stream: u32,
    below: u64,
}

/// A page that is to arrive.
#[derive(Clone, Copy)]
struct Coming {
    home: usize,
    number: u32,
    stream: u32,
    lease_us: u32,
    /// After the death of its silo: the first sequence number that this silo receives.
    below: Option<u64>,
}

/// Parts of the graph role that a move uses.
pub(super) struct MoveContext<'a> {
    pub(super) arbiter: &'a mut ArbiterDriver,
    pub(super) reorder: &'a mut ReorderBuffer,
    pub(super) states: &'a StreamStates,
    /// Readouts of pairs, if any.
    pub(super) joints: &'a mut Option<Joints>,
    pub(super) block: &'a GraphBlock,
}

/// Moves that concern this silo.
pub struct Moves {
    endpoint: ArbiterEndpoint,
    watermarks: Arc<Watermarks>,
    leaving: Vec<Leaving>,
    coming: Vec<Coming>,
}

impl Moves {
    /// A list without moves.
    pub fn new(endpoint: ArbiterEndpoint, watermarks: Arc<Watermarks>) -> Moves {
        let most = endpoint.silos() * (MOVES_MAX + TAKEOVERS_MAX);
        Moves { endpoint, watermarks, leaving: Vec::with_capacity(most), coming: Vec::with_capacity(most) }
    }

    /// Whether no move is in progress.
    pub(super) fn is_quiet(&self) -> bool {
        self.leaving.is_empty() && self.coming.is_empty()
    }

    /// Handles new requests, streams that are quiet and pages that have arrived. Returns how many.
    pub(super) fn serve(&mut self, context: &mut MoveContext<'_>, frame: &Frame<'_>) -> u32 {
        let mut items = 0;
        for home in 0..self.endpoint.silos() {
            while let Some(request) = self.endpoint.take(home) {
                items += 1;
                self.begin(home, request, context, frame);
            }
        }
        for at in (0..self.leaving.len()).rev() {
            if self.has_left(&self.leaving[at], context, frame) {
                let Leaving { home, number, stream, .. } = self.leaving.swap_remove(at);
                self.watermarks.serves.set(stream, 0);
                self.endpoint.send(home, ArbiterReport::Quiet { number });
                items += 1;
            }
        }
        for at in (0..self.coming.len()).rev() {
            let coming = self.coming[at];
            if context.arbiter.may_commit(coming.stream) && self.has_skipped(coming, context, frame) {
                self.coming.swap_remove(at);
                self.is_here(coming, context, frame);
                items += 1;
            }
        }
        items
    }

    fn begin(&mut self, home: usize, request: ArbiterRequest, context: &mut MoveContext<'_>, frame: &Frame<'_>) {
        match request {
            ArbiterRequest::Quiesce { number, page: stream, below } => {
                self.leaving.push(Leaving { home, number, stream, below });
            }
            ArbiterRequest::Fetch { number, page: stream, lease_us, authority } => {
                if !context.arbiter.may_commit(stream) {
                    context.arbiter.want(stream, Want { hint: Hint::Migrate, ttl_us: 0, authority }, frame.now);
                }
                self.coming.push(Coming { home, number, stream, lease_us, below: None });
            }
            ArbiterRequest::TakeOver { number, page: stream, below } => {
                if !context.arbiter.may_commit(stream) {
                    context.arbiter.want(stream, (Hint::Migrate, 0), frame.now);
                }
                self.coming.push(Coming { home, number, stream, lease_us: 0, below: Some(below) });
            }
            ArbiterRequest::Cancel { number, page } => {
                self.leaving.retain(|leaving| (leaving.home, leaving.number) != (home, number));
                let before = self.coming.len();
                self.coming.retain(|coming| (coming.home, coming.number) != (home, number));
                let refusal = if self.coming.len() < before { context.arbiter.forget(page) } else { None };
                self.endpoint.send(home, ArbiterReport::Cancelled { number, refusal });
            }
        }
    }

    fn has_left(&self, leaving: &Leaving, context: &mut MoveContext<'_>, frame: &Frame<'_>) -> bool {
        let Leaving { stream, below, .. } = *leaving;
        let is_committed = context.reorder.next(stream) >= below;
        // If a stream leaves before its first shot here, another silo answered its last one.
        let is_answered = || self.watermarks.answered.get(stream).max(self.watermarks.begins.get(stream)) >= below;
        let MoveContext { joints, arbiter, .. } = context;
        is_committed
            && is_answered()
            && joints.as_mut().is_none_or(|joints| joints.leave(stream, arbiter, frame.ticks()))
    }

    /// After the death of the stream's silo: whether its unanswered shots are committed as errors.
    fn has_skipped(&self, coming: Coming, context: &MoveContext<'_>, frame: &Frame<'_>) -> bool {
        let Some(below) = coming.below else { return true };
        // The page is here, so a refusal is momentary.
        let Ok(write) = context.states.begin_write(coming.stream) else { return false };
        board::add(&context.block.skipped, write.skip_to(below, frame.now));
        true
    }

    fn is_here(&mut self, coming: Coming, context: &mut MoveContext<'_>, frame: &Frame<'_>) {
        let Coming { home, number, stream, lease_us, .. } = coming;
        // Commits of another silo. A page that was away and returned unchanged changes nothing.
        let committed = context.states.committed(stream);
        context.reorder.resume(stream, committed);
        self.watermarks.begins.set(stream, committed);
        let epoch = context.arbiter.settle_in(stream, lease_us, frame);
        self.watermarks.serves.set(stream, u64::from(epoch.number()) + 1);
        let MoveContext { joints, reorder, .. } = context;
        if let Some(joints) = joints {
            joints.arrive(stream, |stream| reorder.next(stream), frame.now);
        }
        self.endpoint.send(home, ArbiterReport::Here { number, epoch });
    }
}
