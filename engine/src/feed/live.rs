//! The feed's part in a live source: from the lane into slots, and the link's frame where it is here.
//!
//! Runs on the feed's thread. Bounds: 64 shots a frame. A shot of a lane was promised an answer: it goes on in Drain too.

use super::Feed;
use super::source::Source;
use crate::board;
use crate::hot::{BUDGET_ITEMS, Frame};

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
        let Some((stream, _)) = live.lane.peek() else { return false };
        if !self.is_direct(stream) {
            return self.forward_elsewhere(stream);
        }
        if self.end.vacant().is_none() {
            board::add(&self.board.feed(self.share.silo).slot_waits, 1);
            return false;
        }
        let Source::Live(live) = &mut self.source else { return false };
        let Some(head) = live.lane.take(&mut self.detectors, &mut self.observables) else { return false };
        self.write(&head, frame.ticks());
        if let Ok(own) = self.share.own.binary_search(&stream) {
            self.health[own].observe(&self.detectors);
        }
        self.submitted += 1;
        self.next[stream as usize] = head.sequence + 1;
        true
    }

    /// The lane's next shot, of a stream that moves or is decoded in another silo.
    fn forward_elsewhere(&mut self, stream: u32) -> bool {
        if !self.has_way(stream) {
            return false;
        }
        let Source::Live(live) = &mut self.source else { return false };
        let Some(head) = live.lane.take(&mut self.detectors, &mut self.observables) else { return false };
        self.send(&head);
        if let Ok(own) = self.share.own.binary_search(&stream) {
            self.health[own].observe(&self.detectors);
        }
        self.submitted += 1;
        self.next[stream as usize] = head.sequence + 1;
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
