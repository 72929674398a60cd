//! The feed's part in a live source: moves shots from the lane into slots, and runs the link where
//! this feed has it.
//!
//! Runs on the feed's thread. Bounds: 64 shots or pieces a frame; one open shot a stream. Every
//! shot of a lane will be answered: it is forwarded in Drain too, and given up there if its
//! remaining pieces cannot arrive.
//!
//! # Why pieces never block each other
//! A shot needs a slot, a further piece needs none, and a lane has one order: a shot that waits for
//! a slot blocks the pieces behind it. So shots come in pieces only where a silo has
//! [`SLOTS_PER_STREAM`] times as many slots as streams: the slots of complete shots come free
//! without further pieces.

use super::Feed;
use super::lane::{Head, Piece};
use super::source::Source;
use crate::board;
use crate::hot::{BUDGET_ITEMS, Frame};
use crate::units::Ticks;

/// Fewest slots of a silo for each of its streams, where shots come in pieces.
pub const SLOTS_PER_STREAM: u32 = 2;

impl Feed {
    pub(super) fn is_live(&self) -> bool {
        matches!(self.source, Source::Live(_))
    }

    /// One frame of the link; returns how many parts and answers it handled.
    pub(super) fn work_link(&mut self, frame: &Frame<'_>) -> u32 {
        match &mut self.source {
            Source::Live(live) => live.link.as_mut().map_or(0, |link| link.work(frame)),
            Source::Sampler(_) | Source::Replay { .. } | Source::Stage(_) => 0,
        }
    }

    /// Sends the answers that the link's rings hold; returns how many.
    pub(super) fn send_link_answers(&mut self, frame: &Frame<'_>) -> u32 {
        match &mut self.source {
            Source::Live(live) => live.link.as_mut().map_or(0, |link| link.send_answers(frame)),
            Source::Sampler(_) | Source::Replay { .. } | Source::Stage(_) => 0,
        }
    }

    /// Moves shots of the lane into slots while both are available.
    pub(super) fn forward(&mut self, frame: &Frame<'_>) -> u32 {
        let (mut items, mut clock) = (0, self.clock);
        let mut readings = clock.begin(frame);
        // While the feed is held, shots wait in the lane. Those whose first piece was taken go on.
        let runs = self.runs(frame);
        let mut now = frame.now;
        if !runs {
            // What waits because the feed is held is no overflow.
            self.overflow.clear(now, self.board.feed(self.share.silo), &self.pressure);
        }
        while items < BUDGET_ITEMS {
            // Without a shot the clock is not read.
            let Some((stream, piece)) = self.first_waiting(runs) else {
                self.overflow.clear(now, self.board.feed(self.share.silo), &self.pressure);
                break;
            };
            now = readings.next(frame);
            if frame.is_spent(now) || !self.forward_next(stream, piece, now) {
                break;
            }
            items += 1;
        }
        self.clock = clock;
        let Source::Live(live) = &self.source else { return items };
        let waiting = live.lane.depth();
        let has_ended = live.lane.has_ended();
        if has_ended && !self.exhausted {
            for open in &mut self.open {
                // A shot that was answered meanwhile needs no abandoning.
                let _ = open.take().map(|shot| self.end.abandon(shot));
            }
        }
        self.exhausted = has_ended;
        board::set(&self.block().scheduled, self.submitted + waiting);
        items
    }

    /// Stream and piece of the next record to forward, if the feed `runs` or is held.
    fn first_waiting(&mut self, runs: bool) -> Option<(u32, Piece)> {
        let Source::Live(live) = &mut self.source else { return None };
        let (own, open) = (&self.share.own, &self.open);
        let is_open = |stream: u32| own.binary_search(&stream).is_ok_and(|own| open[own].is_some());
        let next = if runs { live.lane.peek() } else { live.lane.peek_further(is_open) };
        next.map(|(stream, _, piece)| (stream, piece))
    }

    fn forward_next(&mut self, stream: u32, piece: Piece, now: Ticks) -> bool {
        // Where streams may move, shots are complete.
        let bound = self.bound(stream);
        let begins = piece.begins();
        if (begins || !bound.is_direct) && !self.has_room(bound, stream, Some(now)) {
            return false;
        }
        let Source::Live(live) = &mut self.source else { return false };
        // Where shots come in pieces, the depth counts pieces.
        let waiting = live.lane.depth();
        let Some(mut head) = live.lane.take(&mut self.detectors, &mut self.observables) else { return false };
        if !begins && bound.is_direct {
            self.go_on(&head);
            return true;
        }
        // A shot of this batch may have arrived after the clock reading.
        let now = now.max(head.arrived);
        if let Some(outcome) = self.overflow.judge(head.arrived, bound, || waiting, now, &self.settings) {
            head.refused = self.refuse(stream, outcome);
        }
        if bound.is_direct {
            self.write(&head, now)
        } else {
            self.send(&head)
        }
        if let (Piece::Whole, Ok(own)) = (piece, self.share.own.binary_search(&stream)) {
            self.observe(own, stream);
        }
        self.submitted += 1;
        self.next[stream as usize] = head.sequence + 1;
        true
    }

    /// Continues an open shot with a further piece.
    fn go_on(&mut self, head: &Head) {
        let Ok(own) = self.share.own.binary_search(&head.stream) else { return };
        let Some(shot) = self.open[own] else { return };
        let known = self.open_words[own];
        // A shot that was answered meanwhile, and whose slot was reused, takes no more pieces.
        let _ = match head.piece {
            Piece::Whole | Piece::Opens(_) | Piece::Mark => false,
            Piece::More(words) => {
                self.open_words[own] = words;
                self.end.extend(shot, known, &self.detectors[known as usize..words as usize])
            }
            Piece::Last => {
                self.open[own] = None;
                self.observe(own, head.stream);
                self.end.extend(shot, known, &self.detectors[known as usize..]) && self.end.complete(shot, head.arrived)
            }
            Piece::GivenUp => {
                self.open[own] = None;
                self.end.abandon(shot)
            }
        };
    }

    /// Whether no shot or answer of a live source is under way.
    pub(super) fn has_forwarded_all(&self) -> bool {
        match &self.source {
            Source::Live(live) => live.lane.has_ended() && live.link.as_ref().is_none_or(|link| link.is_drained()),
            Source::Sampler(_) | Source::Replay { .. } | Source::Stage(_) => true,
        }
    }
}
