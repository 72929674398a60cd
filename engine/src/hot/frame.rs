//! What a role is given: once at Init, and in each frame.

use super::BUDGET_NANOS;
use crate::board::Board;
use crate::clock::Clock;
use crate::units::{Nanos, Ticks};
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

/// One pass over a thread's roles.
pub struct Frame<'a> {
    /// When the frame began.
    pub now: Ticks,
    /// The engine's phase.
    pub phase: Phase,
    clock: &'a Clock,
    stop_after: Ticks,
    split: Option<&'a mut dyn FnMut() -> bool>,
}

impl<'a> Frame<'a> {
    /// A frame that begins at `now`.
    #[must_use]
    pub fn new(clock: &'a Clock, now: Ticks, phase: Phase) -> Frame<'a> {
        let stop_after = now.plus(clock.rate().ticks(Nanos(BUDGET_NANOS)));
        Frame { now, phase, clock, stop_after, split: None }
    }

    /// A frame of the rehearsal, which may split a role's call where it asks.
    #[must_use]
    pub fn rehearsed(clock: &'a Clock, phase: Phase, split: &'a mut dyn FnMut() -> bool) -> Frame<'a> {
        let mut frame = Frame::new(clock, clock.ticks(), phase);
        frame.split = Some(split);
        frame
    }

    /// A fresh reading, for stage edges only.
    #[inline]
    #[must_use]
    pub fn ticks(&self) -> Ticks {
        self.clock.ticks()
    }

    /// The clock, to convert units.
    #[must_use]
    pub fn clock(&self) -> &'a Clock {
        self.clock
    }

    /// Whether a role that has come to `at` should leave the rest to the next frame.
    #[inline]
    #[must_use]
    pub fn is_spent(&self, at: Ticks) -> bool {
        at >= self.stop_after
    }

    /// Injection point between two steps of one role: `true` asks it to put the second step off to its next frame, as
    /// a preemption would. Never on a real thread.
    #[inline]
    #[must_use]
    pub fn split_here(&mut self) -> bool {
        self.split.as_mut().is_some_and(|split| split())
    }
}
