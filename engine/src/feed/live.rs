//! The feed's part in a live source: from the lane into slots, and the link's frame where it is here.
//!
//! Runs on the feed's thread. Bounds: 64 shots or pieces a frame; one open shot a stream. A shot of a lane was promised an
//! answer: it goes on in Drain too, and one whose rest will not come any more is given up there.
//!
//! # Why pieces never hold each other up
//! A shot needs a slot, a further piece none, and a lane has one order: a shot that waits for a slot holds up the pieces behind
//! it. So shots come by pieces only where a silo has [`SLOTS_PER_STREAM`] times as many slots as streams: the slots of shots
//! that are whole come free by themselves.

use super::Feed;
use super::lane::{Head, Piece};
use super::source::Source;
use crate::board;
use crate::hot::{BUDGET_ITEMS, Flow, Frame};
use pinwheel_edge::spin::Phase;

/// Slots of a silo for each of its streams, at least, where shots come by pieces.
pub const SLOTS_PER_STREAM: u32 = 2;

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
        // Held, shots wait where they came in; in Drain they have been promised an answer.
        let runs = frame.phase == Phase::Drain || self.settings.flow() == Flow::Runs;
        while runs && items < BUDGET_ITEMS && !frame.is_spent(frame.ticks()) && self.forward_next(frame) {
            items += 1;
        }
        let Source::Live(live) = &self.source else { return items };
        let waiting = live.lane.depth();
        let has_ended = live.lane.has_ended();
        if has_ended && !self.exhausted {
            for open in &mut self.open {
                // One that was answered meanwhile has nobody to tell.
                let _ = open.take().map(|shot| self.end.abandon(shot));
            }
        }
        self.exhausted = has_ended;
        board::set(&self.block().scheduled, self.submitted + waiting);
        items
    }

    fn forward_next(&mut self, frame: &Frame<'_>) -> bool {
        let Source::Live(live) = &mut self.source else { return false };
        let (block, now) = (self.board.feed(self.share.silo), frame.ticks());
        let Some((stream, _, piece)) = live.lane.peek() else {
            self.overflow.clear(now, block, &self.pressure);
            return false;
        };
        // Where streams may move, shots come whole.
        let bound = self.bound(stream);
        let begins = matches!(piece, Piece::Whole | Piece::Opens(_));
        if (begins || !bound.is_direct) && !self.has_room(bound, stream, Some(now)) {
            return false;
        }
        let Source::Live(live) = &mut self.source else { return false };
        // Where shots come by pieces, these are what waits.
        let waiting = live.lane.depth();
        let Some(mut head) = live.lane.take(&mut self.detectors, &mut self.observables) else { return false };
        if !begins && bound.is_direct {
            self.go_on(&head);
            return true;
        }
        head.refused = self.judge(stream, head.arrived, bound, waiting, now);
        if bound.is_direct {
            self.write(&head, now)
        } else {
            self.send(&head)
        }
        if let (Piece::Whole, Ok(own)) = (piece, self.share.own.binary_search(&stream)) {
            self.health[own].observe(&self.detectors);
        }
        self.submitted += 1;
        self.next[stream as usize] = head.sequence + 1;
        true
    }

    /// Goes on with an open shot.
    fn go_on(&mut self, head: &Head) {
        let Ok(own) = self.share.own.binary_search(&head.stream) else { return };
        let Some(shot) = self.open[own] else { return };
        let known = self.open_words[own];
        // One that was answered meanwhile, and whose slot is another's, has nobody to tell.
        let _ = match head.piece {
            Piece::Whole | Piece::Opens(_) | Piece::Mark => false,
            Piece::More(words) => {
                self.open_words[own] = words;
                self.end.extend(shot, known, &self.detectors[known as usize..words as usize])
            }
            Piece::Last => {
                self.open[own] = None;
                self.health[own].observe(&self.detectors);
                self.end.extend(shot, known, &self.detectors[known as usize..]) && self.end.complete(shot, head.arrived)
            }
            Piece::GivenUp => {
                self.open[own] = None;
                self.end.abandon(shot)
            }
        };
    }

    /// Whether nothing of a live source is left on its way in or back.
    pub(super) fn has_forwarded_all(&self) -> bool {
        match &self.source {
            Source::Live(live) => live.lane.has_ended() && live.link.as_ref().is_none_or(|link| link.is_drained()),
            Source::Sampler(_) | Source::Replay { .. } | Source::Stage(_) => true,
        }
    }
}
