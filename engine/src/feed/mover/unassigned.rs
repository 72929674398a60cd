//! Streams of a dead silo, at the feed that their shots come from.
//!
//! Part of the mover. Bounds: [`TAKEOVERS_MAX`] takeovers requested at a time; the moves under way.

use super::{ArbiterRequest, Mover, TAKEOVERS_MAX};
use crate::arbiter::requests::{ArbiterReport, EndpointEnds};
use crate::board::MoveBlock;
use crate::hot::Frame;
use crate::streams::MoveStage;
use crate::units::Ticks;

impl Mover {
    /// Holds the shots of `stream` that would go straight into a slot.
    pub(in crate::feed) fn hold(&mut self, stream: u32) {
        self.routes[stream as usize].is_staged = true;
    }

    /// Ends the hold of `stream`; its shots are sent again unless it moves.
    pub(in crate::feed) fn release(&mut self, stream: u32) {
        self.routes[stream as usize].is_staged = self.moves.iter().any(|one| one.stream == stream);
    }

    /// Redirects moves that wait for the dead silo `dead`, whose streams `successor` takes over.
    /// First handles the last reports of `dead`.
    pub(in crate::feed) fn settle_transfer(
        &mut self,
        (dead, successor): (usize, usize),
        frame: &Frame<'_>,
        block: &MoveBlock,
        flipped: &mut impl FnMut(u32, usize),
    ) {
        while let Some(report) = self.endpoint.receive(dead) {
            self.take_report(report, frame, block, flipped);
        }
        self.dead |= 1 << dead;
        self.taken_over = 0;
        self.has_changed = true;
        for at in 0..self.moves.len() {
            let was_there = usize::from(self.routes[self.moves[at].stream as usize].to) == dead;
            let one = &mut self.moves[at];
            let was_to = one.to == dead;
            if one.from == dead {
                one.from = successor;
            }
            // A dead silo answers no cancel; a living one still does.
            let was_asked = one.cancels.take_if(|asked| *asked == dead).is_some();
            match one.at {
                // The successor gets a takeover request, see [`Mover::take_over_stream`].
                MoveStage::Quiesce if was_there => {
                    one.has_failed = true;
                    Self::note(block, one, None, frame);
                    (one.at, one.since) = (MoveStage::Return, frame.now);
                }
                // After quiesce the successor fetches the page; the successor may be the present
                // owner.
                MoveStage::Quiesce if was_to => one.to = successor,
                MoveStage::Transfer if was_to => {
                    one.has_failed = true;
                    Self::note(block, one, None, frame);
                    (one.at, one.since) = (MoveStage::Return, frame.now);
                    // Where the destination was the owner, too, the successor gets a takeover request.
                    if !was_there {
                        let (from, request) = (one.from, one.request_back());
                        self.ask(from, request);
                    }
                }
                // Its owner was quiet before it took the cancel: the move goes on.
                MoveStage::Transfer if was_asked => {
                    one.since = frame.now;
                    let (to, request) = (one.to, one.request());
                    self.ask(to, request);
                }
                MoveStage::Resume if was_there => (one.at, one.since) = (MoveStage::Return, frame.now),
                _ => {}
            }
        }
    }

    /// Whether `stream` was decoded in `dead` and no other silo has been asked to take it.
    pub(in crate::feed) fn is_unassigned(&self, stream: u32, dead: usize) -> bool {
        let moves_on = || self.moves.iter().any(|one| one.stream == stream && one.at == MoveStage::Transfer);
        usize::from(self.routes[stream as usize].to) == dead && !moves_on()
    }

    /// Shots in the stage of `stream`.
    pub(in crate::feed) fn staged(&self, stream: u32) -> u64 {
        self.moves.iter().find(|one| one.stream == stream).map_or(0, |one| one.stage.take.depth())
    }

    /// Asks `successor` to take over `stream`, whose numbers before `below` are all answered.
    /// Returns `false` if [`TAKEOVERS_MAX`] requests are open.
    pub(in crate::feed) fn take_over_stream(&mut self, stream: u32, successor: usize, below: u64) -> bool {
        if self.taking_over.len() == TAKEOVERS_MAX {
            return false;
        }
        self.number = self.number.wrapping_add(1);
        self.taking_over.push((self.number, stream, successor));
        self.ask(successor, ArbiterRequest::TakeOver { number: self.number, page: stream, below });
        true
    }

    /// Takeovers completed in this failover.
    pub(in crate::feed) fn taken_over(&self) -> usize {
        self.taken_over
    }

    pub(super) fn take_takeover_report(
        &mut self,
        number: u32,
        report: ArbiterReport,
        now: Ticks,
        flipped: &mut impl FnMut(u32, usize),
    ) {
        let ArbiterReport::Here { epoch, .. } = report else { return };
        let Some(at) = self.taking_over.iter().position(|(asked, ..)| *asked == number) else { return };
        let (_, stream, successor) = self.taking_over.swap_remove(at);
        self.taken_over += 1;
        self.routes[stream as usize].point_to(successor, epoch, now);
        flipped(stream, successor);
        for one in self.moves.iter_mut().filter(|one| one.stream == stream) {
            (one.at, one.since) = (MoveStage::Resume, now);
        }
        self.has_changed = true;
    }

    /// Connects the arbiter of restarted silo `silo` through `ends`; returns the previous ends.
    pub(in crate::feed) fn relink(&mut self, silo: usize, ends: EndpointEnds) -> EndpointEnds {
        self.dead &= !(1 << silo);
        self.endpoint.replace(silo, ends)
    }
}
