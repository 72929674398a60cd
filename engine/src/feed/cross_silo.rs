//! The feed's traffic with other silos: shots of its streams that are decoded elsewhere, and shots
//! of other feeds' streams that are decoded here.
//!
//! Owns the lanes to and from the other silos' feeds. Runs on the feed's thread. Bounds:
//! [`crossing_shots`] of a lane, 64 shots of each kind a frame. A drawn shot goes into a stage, a
//! lane or a slot and stays there until it is sent on; if that is full, the next shot stays at its
//! source. Never blocks.
//!
//! ```text
//!  source ─▶ stream moves? ─ yes ─▶ stage ── route changed ─┐
//!                 │ no                                      ▼
//!                 └─▶ decoded here? ─ yes ─▶ slot     slot, or lane ─▶ another feed ─▶ stream here with this epoch? ─ yes ─▶ slot
//!                          └─ no ─▶ lane ─▶ as above                                       └─ no ─▶ lane back ─▶ as from the source
//! ```

pub mod failover;

use super::lane::{Head, LaneIn, LaneOut, Piece, crossing_shots, lane};
use super::mover::{Mover, MoverParts};
use super::overflow::Bound;
use super::requests::MoveRequests;
use super::{Feed, Source};
use crate::arbiter::requests::FeedEndpoint;
use crate::board;
use crate::hot::{BUDGET_ITEMS, Frame};
use crate::pipe::{Watermarks, home};
use crate::units::{Nanos, Ticks};
use failover::{Failover, SiloEventEndpoint};
use pinwheel_edge::spin::Phase;
use std::sync::Arc;

/// One feed's ends of the connections between silos.
pub struct CrossSiloParts {
    /// To the arbiters.
    pub endpoint: FeedEndpoint,
    /// Requested moves.
    pub requests: Arc<MoveRequests>,
    /// To the other feeds; `None` at this feed's own index.
    pub outs: Vec<Option<LaneIn>>,
    /// From the other feeds.
    pub ins: Vec<LaneOut>,
    /// Deaths and restarts of silos.
    pub events: SiloEventEndpoint,
}

/// Lanes between `silos` feeds, for shots of the given widths. Returns the outgoing and incoming
/// ends of each silo.
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

/// The feed's state of this traffic.
pub(super) struct CrossSilo {
    pub(super) mover: Mover,
    failover: Failover,
    pub(super) outs: Vec<Option<LaneIn>>,
    pub(super) ins: Vec<LaneOut>,
    /// Index of the incoming lane that is served first.
    pub(super) first: usize,
    watermarks: Arc<Watermarks>,
    pub(super) silos: u32,
    has_closed: bool,
}

impl CrossSilo {
    pub(super) fn new(
        cross_silo: CrossSiloParts,
        watermarks: Arc<Watermarks>,
        silo: usize,
        streams: u32,
        widths: (usize, usize),
    ) -> Self {
        let CrossSiloParts { endpoint, requests, outs, ins, events } = cross_silo;
        let silos = endpoint.silos() as u32;
        let failover = Failover::new(events, streams, silos as usize, widths);
        let mover = Mover::new(MoverParts { silo, streams, endpoint, requests, widths });
        CrossSilo { mover, failover, outs, ins, first: 0, watermarks, silos, has_closed: false }
    }

    /// The lane to the silo that decodes `stream`; `None` if that is this silo, or the feed has
    /// closed its lanes.
    fn lane(&mut self, stream: u32) -> Option<&mut LaneIn> {
        self.outs[self.mover.route(stream).0].as_mut()
    }

    /// Whether no shot is left to hand on, and none can arrive.
    fn is_drained(&self) -> bool {
        self.has_closed && self.ins.iter().all(LaneOut::has_ended)
    }
}

impl Feed {
    /// Where the next shot of `stream` goes.
    #[inline]
    pub(super) fn bound(&self, stream: u32) -> Bound {
        let here = Bound { silo: self.share.silo, is_direct: true, is_staged: false, routed_since: Ticks(0) };
        self.crossings.as_ref().map_or(here, |crossings| crossings.mover.bound(stream))
    }

    /// Whether the next shot of `stream` goes straight into a slot of this silo.
    #[inline]
    pub(super) fn is_direct(&self, stream: u32) -> bool {
        self.crossings.as_ref().is_none_or(|crossings| crossings.mover.is_direct(stream))
    }

    /// Whether a shot of `stream`, which is not direct, can be taken from its source now.
    pub(super) fn has_route(&mut self, stream: u32) -> bool {
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

    /// Sends the current shot to its stage or lane, which has room.
    pub(super) fn send(&mut self, head: &Head) {
        let Some(crossings) = &mut self.crossings else { unreachable!("all shots of a single silo are direct") };
        let block = self.board.moves(self.share.silo);
        if let Some(stage) = crossings.mover.stage(head.stream) {
            board::add(&block.staged, 1);
            assert!(
                stage.put(head, &self.detectors, &self.observables),
                "the caller checked for room before it drew the shot"
            );
            crossings.mover.note_staged(head.stream);
            return;
        }
        let epoch = crossings.mover.route(head.stream).1;
        let Some(lane) = crossings.lane(head.stream) else {
            unreachable!("the caller checked the route before it drew the shot")
        };
        board::add(&block.handed_on, 1);
        let head = Head { epoch, ..*head };
        assert!(
            lane.put(&head, &self.detectors, &self.observables),
            "the caller checked for room before it drew the shot"
        );
    }

    /// One frame of traffic between silos: moves, staged shots, shots of other feeds. Returns how
    /// many shots.
    pub(super) fn cross(&mut self, frame: &Frame<'_>) -> u32 {
        if self.crossings.is_none() || !matches!(frame.phase, Phase::Live | Phase::Drain) {
            return 0;
        }
        let mut items = self.failover(frame) + self.step_moves(frame);
        // Shots that return to their feeds come before this feed's own shots for the same lane,
        // which never end.
        let has_stopped = self.has_stopped();
        let mut taken = if has_stopped { self.take_turns(frame) } else { 0 };
        let mut nth = 0;
        // Shots that came back from a dead silo are older than staged shots.
        let is_failing_over = self.crossings.as_ref().is_some_and(|crossings| crossings.failover.is_on());
        while !is_failing_over
            && items < BUDGET_ITEMS
            && let Some(has_gone) = self.resume_next(nth, frame)
        {
            items += u32::from(has_gone);
            nth += usize::from(!has_gone);
        }
        if !has_stopped {
            taken = self.take_turns(frame);
        }
        self.close_lanes(frame);
        items + taken
    }

    /// Takes in shots from each lane in turn and returns how many. The first lane that had a shot
    /// comes last next time; otherwise one of two lanes would always come second and find no slot.
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
        let takes_more = (frame.phase == Phase::Live, crossings.failover.failing_over());
        let deadline = Nanos(settings.shot_deadline_ns());
        crossings.mover.step(frame, takes_more, (board, deadline), |stream| next[stream as usize])
    }

    /// Sends one shot of the `nth` stage that is being sent; `None` if there is no such stage.
    fn resume_next(&mut self, nth: usize, frame: &Frame<'_>) -> Option<bool> {
        let crossings = self.crossings.as_mut()?;
        let (stream, stage) = crossings.mover.resuming(nth)?;
        if stage.depth() == 0 {
            return Some(false);
        }
        let (to, epoch) = crossings.mover.route(stream);
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

    /// Takes in one shot of another feed: into a slot, or back to that feed.
    fn take_in(&mut self, frame: &Frame<'_>) -> bool {
        let Some(crossings) = &mut self.crossings else { return false };
        let lane = &mut crossings.ins[crossings.first];
        let Some((stream, epoch, piece)) = lane.peek() else { return false };
        if (piece == Piece::Mark || crossings.failover.is_on())
            && let Some(is_taken) = self.take_for_failover()
        {
            return is_taken;
        }
        let Some(crossings) = &mut self.crossings else { return false };
        let origin = home(stream, crossings.silos);
        if origin == self.share.silo {
            // The shot comes back: treat it as if it came from the source.
            if self.is_direct(stream) && self.end.vacant().is_some() {
                return self.take_head().is_some_and(|head| {
                    self.write(&head, frame.ticks());
                    true
                });
            }
            if self.is_direct(stream) || !self.has_route(stream) {
                return false;
            }
            let Some(head) = self.take_head() else { return false };
            self.send(&head);
            return true;
        }
        let goes_back = crossings.failover.turns_away();
        if goes_back == Some(false) {
            return false;
        }
        let is_ours = goes_back.is_none() && crossings.watermarks.serves.get(stream) == u64::from(epoch) + 1;
        // After the lanes have closed the shot cannot go back; this silo requests the page instead.
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

    /// Closes the lanes in Drain when this feed has handed on all its shots, so that the other
    /// feeds see the end.
    fn close_lanes(&mut self, frame: &Frame<'_>) {
        let is_fed = !matches!(self.source, Source::Live(_)) || self.has_forwarded_all();
        let Some(crossings) = &mut self.crossings else { return };
        let is_quiet = crossings.mover.is_quiet() && !crossings.failover.is_on();
        if frame.phase == Phase::Drain && self.draining && is_fed && !crossings.has_closed && is_quiet {
            crossings.has_closed = true;
            crossings.outs.iter_mut().for_each(|lane| *lane = None);
        }
    }

    /// Whether no shot is left between this silo and others.
    pub(super) fn has_crossed_all(&self) -> bool {
        self.crossings.as_ref().is_none_or(CrossSilo::is_drained)
    }
}
