//! The feed's part in several silos: shots of streams that are decoded elsewhere, and of other feeds' streams that are decoded here.
//!
//! Owns the lanes to and from the other silos' feeds. Runs on the feed's thread. Bounds: [`crossing_shots`] of a lane, 64 shots
//! of each kind a frame. A shot that has been drawn goes into a stage, a lane or a slot and stays in it until it
//! has gone on; a full one leaves the next shot where it is. Never blocks.
//!
//! ```text
//!  source ─▶ its stream moves? ─ yes ─▶ stage ── flipped ──┐
//!                 │ no                                     ▼
//!                 └─▶ decoded here? ─ yes ─▶ slot     slot, or lane ─▶ another feed ─▶ its epoch is the stream's here? ─▶ slot
//!                          └─ no ─▶ lane ─▶ as above                                        └─ no ─▶ lane back ─▶ as from the source
//! ```

use super::lane::{Head, LaneIn, LaneOut, Piece, lane};
use super::mover::{Mover, MoverParts};
use super::overflow::Bound;
use super::requests::{MoveRequests, home};
use super::rescue::{NewsDesk, Rescue};
use super::turns::Turns;
use super::{Feed, Source};
use crate::arbiter::errand::FeedDesk;
use crate::board;
use crate::hot::{BUDGET_ITEMS, Frame};
use crate::units::{Nanos, Ticks};
use pinwheel_edge::spin::Phase;
use std::sync::Arc;

/// Shots that a lane between two of `silos` feeds holds: all lanes into one silo hold about as many as a slot ring.
#[must_use]
pub fn crossing_shots(silos: usize) -> usize {
    (512 / silos.max(1)).clamp(16, 256)
}

/// One feed's ends of what runs between silos.
pub struct Crossing {
    /// To the arbiters.
    pub desk: FeedDesk,
    /// Moves asked for.
    pub requests: Arc<MoveRequests>,
    /// To the other feeds; `None` at its own place.
    pub outs: Vec<Option<LaneIn>>,
    /// From the other feeds.
    pub ins: Vec<LaneOut>,
    /// Which silos live.
    pub news: NewsDesk,
}

/// Lanes between `silos` feeds, for shots of so many words: of each silo, those out and those in.
#[must_use]
pub fn lanes(silos: usize, detector_words: usize, observable_words: usize) -> Vec<(Vec<Option<LaneIn>>, Vec<LaneOut>)> {
    let mut ends: Vec<(Vec<Option<LaneIn>>, Vec<LaneOut>)> = (0..silos).map(|_| (Vec::new(), Vec::new())).collect();
    for from in 0..silos {
        for to in 0..silos {
            if from == to {
                ends[from].0.push(None);
                continue;
            }
            let (put, take) = lane(detector_words, observable_words, crossing_shots(silos));
            ends[from].0.push(Some(put));
            ends[to].1.push(take);
        }
    }
    ends
}

/// What the feed keeps of it.
pub(super) struct Crossings {
    pub(super) mover: Mover,
    pub(super) rescue: Rescue,
    pub(super) outs: Vec<Option<LaneIn>>,
    pub(super) ins: Vec<LaneOut>,
    /// The lane whose turn it is.
    pub(super) first: usize,
    turns: Arc<Turns>,
    pub(super) silos: u32,
    has_closed: bool,
}

impl Crossings {
    pub(super) fn new(
        crossing: Crossing,
        turns: Arc<Turns>,
        silo: usize,
        streams: u32,
        widths: (usize, usize),
    ) -> Self {
        let Crossing { desk, requests, outs, ins, news } = crossing;
        let silos = desk.silos() as u32;
        let rescue = Rescue::new(news, streams, silos as usize, widths);
        let mover = Mover::new(MoverParts { silo, streams, desk, requests, widths });
        Crossings { mover, rescue, outs, ins, first: 0, turns, silos, has_closed: false }
    }

    /// The lane to where `stream` is decoded; `None` if that is here, or the feed has closed its lanes.
    fn lane(&mut self, stream: u32) -> Option<&mut LaneIn> {
        self.outs[self.mover.way(stream).0].as_mut()
    }

    /// Whether nothing is left to hand on, and nothing comes any more.
    fn is_drained(&self) -> bool {
        self.has_closed && self.ins.iter().all(LaneOut::has_ended)
    }
}

impl Feed {
    /// Where the next shot of `stream` goes.
    #[inline]
    pub(super) fn bound(&self, stream: u32) -> Bound {
        let here = Bound { silo: self.share.silo, is_direct: true, is_staged: false, came: Ticks(0) };
        self.crossings.as_ref().map_or(here, |crossings| crossings.mover.bound(stream))
    }

    /// Whether the next shot of `stream` goes straight into a slot of this silo.
    #[inline]
    pub(super) fn is_direct(&self, stream: u32) -> bool {
        self.crossings.as_ref().is_none_or(|crossings| crossings.mover.is_direct(stream))
    }

    /// Whether a shot of `stream`, which is not direct, can be taken from its source now.
    pub(super) fn has_way(&mut self, stream: u32) -> bool {
        let Some(crossings) = &mut self.crossings else { return false };
        let block = self.board.moves(self.share.silo);
        let staged = crossings.mover.stage_room(stream);
        let is_staged = staged.is_some();
        let has_room = match staged {
            Some(room) => room > 0,
            None => crossings.lane(stream).is_some_and(|lane| lane.room() > 0),
        };
        if !has_room {
            board::add(if is_staged { &block.stage_waits } else { &block.lane_waits }, 1);
        }
        has_room
    }

    /// Sends the shot in hand its way, for which there is room.
    pub(super) fn send(&mut self, head: &Head) {
        let Some(crossings) = &mut self.crossings else { unreachable!("a single silo's shots are direct") };
        let block = self.board.moves(self.share.silo);
        if let Some(stage) = crossings.mover.stage(head.stream) {
            board::add(&block.staged, 1);
            assert!(
                stage.put(head, &self.detectors, &self.observables),
                "room was looked for before the shot was drawn"
            );
            crossings.mover.note_staged(head.stream);
            return;
        }
        let epoch = crossings.mover.way(head.stream).1;
        let Some(lane) = crossings.lane(head.stream) else {
            unreachable!("its way was looked for before it was drawn")
        };
        board::add(&block.handed_on, 1);
        let head = Head { epoch, ..*head };
        assert!(lane.put(&head, &self.detectors, &self.observables), "room was looked for before the shot was drawn");
    }

    /// One frame between silos: moves, stages that go out, shots of other feeds. Returns how many.
    pub(super) fn cross(&mut self, frame: &Frame<'_>) -> u32 {
        if self.crossings.is_none() || !matches!(frame.phase, Phase::Live | Phase::Drain) {
            return 0;
        }
        let mut items = self.rescue(frame) + self.step_moves(frame);
        // What goes back to its feed comes before shots that this one has for the same lane: they are without end.
        let is_halted = self.is_halted();
        let mut taken = if is_halted { self.take_turns(frame) } else { 0 };
        let mut nth = 0;
        // What came back from a dead silo is older than what is staged.
        let is_rescuing = self.crossings.as_ref().is_some_and(|crossings| crossings.rescue.is_on());
        while !is_rescuing
            && items < BUDGET_ITEMS
            && let Some(has_gone) = self.resume_next(nth, frame)
        {
            items += u32::from(has_gone);
            nth += usize::from(!has_gone);
        }
        if !is_halted {
            taken = self.take_turns(frame);
        }
        self.close_lanes(frame);
        items + taken
    }

    /// Takes in from each lane in turn; how many. The first one that had something comes last the next time: with two lanes one
    /// would else always come after the other, and find no slot.
    fn take_turns(&mut self, frame: &Frame<'_>) -> u32 {
        let lanes = self.crossings.as_ref().map_or(0, |crossings| crossings.ins.len());
        let (mut taken, mut next) = (0, None);
        for _ in 0..lanes {
            let before = taken;
            while taken < BUDGET_ITEMS && self.take_in(frame) {
                taken += 1;
            }
            if let Some(crossings) = &mut self.crossings {
                crossings.first = (crossings.first + 1) % lanes;
                next = next.or((taken > before).then_some(crossings.first));
            }
        }
        if let (Some(crossings), Some(next)) = (&mut self.crossings, next) {
            crossings.first = next;
        }
        taken
    }

    fn step_moves(&mut self, frame: &Frame<'_>) -> u32 {
        let Feed { crossings, board, next, settings, .. } = self;
        let Some(crossings) = crossings else { return 0 };
        let takes_more = (frame.phase == Phase::Live, crossings.rescue.is_rescuing());
        let deadline = Nanos(settings.shot_deadline_ns());
        crossings.mover.step(frame, takes_more, (board, deadline), |stream| next[stream as usize])
    }

    /// Lets one shot of the `nth` stage that goes out go; `None`: there is no such stage.
    fn resume_next(&mut self, nth: usize, frame: &Frame<'_>) -> Option<bool> {
        let crossings = self.crossings.as_mut()?;
        let (stream, stage) = crossings.mover.resuming(nth)?;
        if stage.depth() == 0 {
            return Some(false);
        }
        let (to, epoch) = crossings.mover.way(stream);
        if to == self.share.silo {
            if self.end.vacant().is_none() {
                return Some(false);
            }
        } else if crossings.outs[to].as_ref().is_none_or(|lane| lane.room() == 0) {
            return Some(false);
        }
        let (_, stage) = crossings.mover.resuming(nth)?;
        let head = stage.take(&mut self.detectors, &mut self.observables)?;
        crossings.mover.note_gone(stream);
        if to == self.share.silo {
            self.write(&head, frame.ticks());
        } else if let Some(lane) = &mut crossings.outs[to] {
            board::add(&self.board.moves(self.share.silo).handed_on, 1);
            assert!(lane.put(&Head { epoch, ..head }, &self.detectors, &self.observables), "there was room");
        }
        Some(true)
    }

    /// Takes one shot of another feed: into a slot, or back.
    fn take_in(&mut self, frame: &Frame<'_>) -> bool {
        let Some(crossings) = &mut self.crossings else { return false };
        let lane = &mut crossings.ins[crossings.first];
        let Some((stream, epoch, piece)) = lane.peek() else { return false };
        if (piece == Piece::Mark || crossings.rescue.is_on())
            && let Some(is_taken) = self.take_for_rescue()
        {
            return is_taken;
        }
        let Some(crossings) = &mut self.crossings else { return false };
        let origin = home(stream, crossings.silos);
        if origin == self.share.silo {
            // It comes back: as if it came from the source.
            if self.is_direct(stream) && self.end.vacant().is_some() {
                return self.take_head().is_some_and(|head| {
                    self.write(&head, frame.ticks());
                    true
                });
            }
            if self.is_direct(stream) || !self.has_way(stream) {
                return false;
            }
            let Some(head) = self.take_head() else { return false };
            self.send(&head);
            return true;
        }
        let goes_back = crossings.rescue.turns_away();
        if goes_back == Some(false) {
            return false;
        }
        let is_ours = goes_back.is_none() && crossings.turns.serves.get(stream) == u64::from(epoch) + 1;
        // At the end there is nobody to give it back to, and its page is asked for from here.
        if is_ours || crossings.has_closed {
            if self.end.vacant().is_none() {
                board::add(&self.board.feed(self.share.silo).slot_waits, 1);
                return false;
            }
            let Some(head) = self.take_head() else { return false };
            board::add(&self.board.moves(self.share.silo).taken_in, 1);
            self.write(&head, frame.ticks());
            return true;
        }
        if crossings.outs[origin].as_ref().is_none_or(|lane| lane.room() == 0) {
            return false;
        }
        let Some(head) = self.take_head() else { return false };
        board::add(&self.board.moves(self.share.silo).sent_back, 1);
        let Some(Some(lane)) = self.crossings.as_mut().map(|crossings| &mut crossings.outs[origin]) else {
            return false;
        };
        assert!(lane.put(&head, &self.detectors, &self.observables), "there was room");
        true
    }

    pub(super) fn take_head(&mut self) -> Option<Head> {
        let crossings = self.crossings.as_mut()?;
        crossings.ins[crossings.first].take(&mut self.detectors, &mut self.observables)
    }

    /// In Drain, when nothing of this feed's is left to hand on, its lanes end: the others then know.
    fn close_lanes(&mut self, frame: &Frame<'_>) {
        let is_fed = !matches!(self.source, Source::Live(_)) || self.has_forwarded_all();
        let Some(crossings) = &mut self.crossings else { return };
        let is_quiet = crossings.mover.is_quiet() && !crossings.rescue.is_on();
        if frame.phase == Phase::Drain && self.draining && is_fed && !crossings.has_closed && is_quiet {
            crossings.has_closed = true;
            crossings.outs.iter_mut().for_each(|lane| *lane = None);
        }
    }

    /// Whether nothing is left between this silo and others.
    pub(super) fn has_crossed_all(&self) -> bool {
        self.crossings.as_ref().is_none_or(Crossings::is_drained)
    }
}
