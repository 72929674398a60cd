//! The graph role's part in a stream's move: what its feed asks of this silo.
//!
//! Owns the streams that are to leave, the pages that are to come, and the desk to the feeds. Kept by the graph role, which
//! alone knows when all of a stream is committed. Bounds: the feeds' moves. Never waits: each frame looks once.
//!
//! ```text
//!  Quiesce ─▶ every number below is committed, its answer harvested ─▶ no longer taken here ─▶ Quiet
//!  Fetch   ─▶ MIGRATE until the page is here ─▶ its next number is what its state says ─▶ taken here ─▶ Here
//!  Adopt   ─▶ as Fetch, and what the dead silo left unanswered is committed as errors ─▶ Here
//!  Desist  ─▶ forgotten ─▶ Desisted
//! ```
//!
//! # Why quiet means harvested
//! The stream's next answer comes out of another silo. Were one of the last ones still in a slot here, two harvesters would
//! count one stream at once, and answers leave the engine in no order.

use super::joint::Joints;
use super::order::Order;
use super::state::StreamStates;
use super::steward::Steward;
use crate::arbiter::driver::Want;
use crate::arbiter::errand::{ADOPTIONS_MAX, ArbiterDesk, Errand, MOVES_MAX, Report};
use crate::arbiter::page::Hint;
use crate::board::{self, GraphBlock};
use crate::feed::turns::Turns;
use crate::hot::Frame;
use std::sync::Arc;

/// A stream that is to leave.
#[derive(Clone, Copy)]
struct Leaving {
    home: usize,
    number: u32,
    stream: u32,
    below: u64,
}

/// A page that is to come.
#[derive(Clone, Copy)]
struct Coming {
    home: usize,
    number: u32,
    stream: u32,
    lease_us: u32,
    /// Of one whose silo died: the first number that comes here.
    below: Option<u64>,
}

/// What of the graph role a look needs.
pub(super) struct Floor<'a> {
    pub(super) steward: &'a mut Steward,
    pub(super) order: &'a mut Order,
    pub(super) states: &'a StreamStates,
    /// Readouts of pairs, if there are any.
    pub(super) joints: &'a mut Option<Joints>,
    pub(super) block: &'a GraphBlock,
    pub(super) is_under_way: &'a dyn Fn(u32) -> bool,
}

/// Moves that concern this silo.
pub struct Moves {
    desk: ArbiterDesk,
    turns: Arc<Turns>,
    leaving: Vec<Leaving>,
    coming: Vec<Coming>,
}

impl Moves {
    /// Nothing moves yet.
    #[must_use]
    pub fn new(desk: ArbiterDesk, turns: Arc<Turns>) -> Moves {
        let most = desk.silos() * (MOVES_MAX + ADOPTIONS_MAX);
        Moves { desk, turns, leaving: Vec::with_capacity(most), coming: Vec::with_capacity(most) }
    }

    /// Whether nothing moves.
    pub(super) fn is_quiet(&self) -> bool {
        self.leaving.is_empty() && self.coming.is_empty()
    }

    /// Errands that have come, streams that are quiet, pages that are here; how many.
    pub(super) fn serve(&mut self, floor: &mut Floor<'_>, frame: &Frame<'_>) -> u32 {
        let mut items = 0;
        for home in 0..self.desk.silos() {
            while let Some(errand) = self.desk.take(home) {
                items += 1;
                self.begin(home, errand, floor, frame);
            }
        }
        for at in (0..self.leaving.len()).rev() {
            if self.has_left(&self.leaving[at], floor, frame) {
                let Leaving { home, number, stream, .. } = self.leaving.swap_remove(at);
                self.turns.serves.set(stream, 0);
                self.desk.tell(home, Report::Quiet { number });
                items += 1;
            }
        }
        for at in (0..self.coming.len()).rev() {
            let coming = self.coming[at];
            if floor.steward.may_commit(coming.stream) && self.has_buried(coming, floor, frame) {
                self.coming.swap_remove(at);
                self.is_here(coming, floor, frame);
                items += 1;
            }
        }
        items
    }

    fn begin(&mut self, home: usize, errand: Errand, floor: &mut Floor<'_>, frame: &Frame<'_>) {
        match errand {
            Errand::Quiesce { number, page: stream, below } => {
                self.leaving.push(Leaving { home, number, stream, below });
            }
            Errand::Fetch { number, page: stream, lease_us, authority } => {
                if !floor.steward.may_commit(stream) {
                    floor.steward.want(stream, Want { hint: Hint::Migrate, ttl_us: 0, authority }, frame.now);
                }
                self.coming.push(Coming { home, number, stream, lease_us, below: None });
            }
            Errand::Adopt { number, page: stream, below } => {
                if !floor.steward.may_commit(stream) {
                    floor.steward.want(stream, (Hint::Migrate, 0), frame.now);
                }
                self.coming.push(Coming { home, number, stream, lease_us: 0, below: Some(below) });
            }
            Errand::Desist { number, page } => {
                self.leaving.retain(|leaving| (leaving.home, leaving.number) != (home, number));
                let before = self.coming.len();
                self.coming.retain(|coming| (coming.home, coming.number) != (home, number));
                let refusal = if self.coming.len() < before { floor.steward.forget(page) } else { None };
                self.desk.tell(home, Report::Desisted { number, refusal });
            }
        }
    }

    fn has_left(&self, leaving: &Leaving, floor: &mut Floor<'_>, frame: &Frame<'_>) -> bool {
        let Leaving { stream, below, .. } = *leaving;
        let is_committed = floor.order.next(stream) >= below && !(floor.is_under_way)(stream);
        // Of a stream that leaves before its first shot here, the last one was answered elsewhere.
        let is_answered = || self.turns.answered.get(stream).max(self.turns.begins.get(stream)) >= below;
        let Floor { joints, steward, .. } = floor;
        is_committed
            && is_answered()
            && joints.as_mut().is_none_or(|joints| joints.let_go(stream, steward, frame.ticks()))
    }

    /// Of a stream whose silo died: whether what that left unanswered is committed as errors.
    fn has_buried(&self, coming: Coming, floor: &Floor<'_>, frame: &Frame<'_>) -> bool {
        let Some(below) = coming.below else { return true };
        // Refused only for this moment: the page is here.
        let Ok(write) = floor.states.begin_write(coming.stream) else { return false };
        board::add(&floor.block.buried, write.bury_to(below, frame.now));
        true
    }

    fn is_here(&mut self, coming: Coming, floor: &mut Floor<'_>, frame: &Frame<'_>) {
        let Coming { home, number, stream, lease_us, .. } = coming;
        // What was committed elsewhere; a page that was away and came back as it was changes nothing.
        let committed = floor.states.committed(stream);
        floor.order.resume(stream, committed);
        self.turns.begins.set(stream, committed);
        let epoch = floor.steward.settle_in(stream, lease_us, frame, floor.is_under_way);
        self.turns.serves.set(stream, u64::from(epoch.number()) + 1);
        let Floor { joints, order, .. } = floor;
        if let Some(joints) = joints {
            joints.come(stream, |stream| order.next(stream), frame.now);
        }
        self.desk.tell(home, Report::Here { number, epoch });
    }
}
