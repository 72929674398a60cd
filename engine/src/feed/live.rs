//! The feed's part in a live source: from the lane into slots, and the link's frame where it is here.
//!
//! Runs on the feed's thread. Bounds: 64 shots a frame. A shot of a lane was promised an answer: it goes on in Drain too.

use super::source::Source;
use super::{BAD_ADDRESS_OFFSET, Feed};
use crate::board;
use crate::hot::{BUDGET_ITEMS, Frame};
use pinwheel_edge::slot::table::ShotHeader;

impl Feed {
    pub(super) fn is_live(&self) -> bool {
        matches!(self.source, Source::Live(_))
    }

    /// One frame of the link; returns what it handled.
    pub(super) fn work_link(&mut self, frame: &Frame<'_>) -> u32 {
        match &mut self.source {
            Source::Live(live) => live.link.as_mut().map_or(0, |link| link.work(frame)),
            Source::Sampler(_) | Source::Replay { .. } | Source::Stage(_) => 0,
        }
    }

    /// Shots of the lane into slots, for as long as there are both.
    pub(super) fn forward(&mut self, frame: &Frame<'_>) -> u32 {
        let mut items = 0;
        while items < BUDGET_ITEMS && !frame.is_spent(frame.ticks()) && self.forward_next(frame) {
            items += 1;
        }
        let Source::Live(live) = &self.source else { return items };
        let waiting = live.lane.depth();
        self.exhausted = live.lane.has_ended();
        board::set(&self.block().scheduled, self.submitted + waiting);
        items
    }

    fn forward_next(&mut self, frame: &Frame<'_>) -> bool {
        let Source::Live(live) = &mut self.source else { return false };
        if live.lane.depth() == 0 {
            return false;
        }
        let Some(vacant) = self.end.vacant() else {
            board::add(&self.board.feed(self.share.silo).slot_waits, 1);
            return false;
        };
        let Some(head) = live.lane.take(&mut self.detectors, &mut self.observables) else { return false };
        let (stream, sequence, reply_to) = (head.stream, head.sequence, head.reply_to);
        let header = ShotHeader { stream, sequence, scheduled: head.arrived, submitted: frame.ticks(), reply_to };
        let truth = head.truth_known.then_some(self.observables.as_slice());
        let slot = if self.injector.address_is_bad() {
            vacant.submit_at(BAD_ADDRESS_OFFSET, &header, &self.detectors, truth)
        } else {
            vacant.submit(&header, &self.detectors, truth)
        };
        self.stamp(slot, &header);
        if let Ok(own) = self.share.own.binary_search(&stream) {
            self.health[own].observe(&self.detectors);
        }
        self.submitted += 1;
        true
    }

    /// Whether nothing of a live source is left on its way in or back.
    pub(super) fn has_forwarded_all(&self) -> bool {
        match &self.source {
            Source::Live(live) => live.lane.has_ended() && live.link.as_ref().is_none_or(|link| link.is_drained()),
            Source::Sampler(_) | Source::Replay { .. } | Source::Stage(_) => true,
        }
    }
}
