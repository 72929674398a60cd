//! What a role is given: once at Init, and in each frame.

use super::BUDGET_NANOS;
use super::log::ThreadLog;
use crate::board::Board;
use crate::clock::Clock;
use crate::fault::EventCode;
use crate::units::{Nanos, Ticks};
use bumpalo::Bump;
use pinwheel_edge::spin::Phase;
use std::sync::Arc;

/// Items that a role handled in one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a thread that does not count its work never idles"]
pub struct Work(pub u32);

/// What a role may use while it is built.
pub struct Init<'a> {
    /// The engine's clock.
    pub clock: &'a Clock,
    /// The board.
    pub board: &'a Arc<Board>,
}

/// Bytes of a thread's frame arena: a frame's budget of items with a scratch of the widest shot each, twice over.
pub const SCRATCH_BYTES: usize = 2 << 20;

/// A hot thread's frame arena: empty again at each frame's start, never growing.
#[derive(Debug)]
pub struct Scratch(Bump);

impl Scratch {
    /// An empty one, from the calling thread's arena if it is lent one.
    pub fn new() -> Scratch {
        let bump = Bump::with_capacity(SCRATCH_BYTES);
        bump.set_allocation_limit(Some(bump.allocated_bytes()));
        Scratch(bump)
    }
}

impl Default for Scratch {
    fn default() -> Scratch {
        Scratch::new()
    }
}

/// One pass over a thread's roles.
pub struct Frame<'a> {
    /// When the frame began.
    pub now: Ticks,
    /// The engine's phase.
    pub phase: Phase,
    clock: &'a Clock,
    stop_after: Ticks,
    scratch: &'a Bump,
    log: Option<&'a ThreadLog>,
}

impl<'a> Frame<'a> {
    /// A frame that begins at `now`, with a scratch that is empty again.
    #[must_use]
    pub fn new(clock: &'a Clock, now: Ticks, phase: Phase, scratch: &'a mut Scratch) -> Frame<'a> {
        let stop_after = now.plus(clock.rate().ticks(Nanos(BUDGET_NANOS)));
        scratch.0.reset();
        Frame { now, phase, clock, stop_after, scratch: &scratch.0, log: None }
    }

    /// The frame of a thread whose events go into `log`.
    pub(super) fn logged(mut self, log: Option<&'a ThreadLog>) -> Frame<'a> {
        self.log = log;
        self
    }

    /// Writes an event into the thread's log, if it has one. For what changes a state, never for a
    /// shot that goes its way.
    #[inline]
    pub fn log<const N: usize>(&self, event: EventCode, numbers: [u64; N]) {
        if let Some(log) = self.log {
            log.write(self.ticks(), event, numbers);
        }
    }

    /// A fresh reading, for stage edges only.
    #[inline]
    pub fn ticks(&self) -> Ticks {
        self.clock.ticks()
    }

    /// The clock, to convert units.
    pub fn clock(&self) -> &'a Clock {
        self.clock
    }

    /// `count` words, zero, until the frame ends; `None` if the frame's arena has no room for them.
    #[inline]
    #[must_use]
    pub fn words(&self, count: usize) -> Option<&'a mut [u64]> {
        self.scratch.try_alloc_slice_fill_copy(count, 0).ok()
    }

    /// Whether a role that has come to `at` should leave the rest to the next frame.
    #[inline]
    pub fn is_spent(&self, at: Ticks) -> bool {
        at >= self.stop_after
    }
}
