//! Streams whose silo has died, as the feed sees them from which their shots come.
//!
//! Part of the mover. Bounds: [`ADOPTIONS_MAX`] adoptions asked for at a time; the moves under way.

use super::{ADOPTIONS_MAX, Errand, Mover};
use crate::arbiter::errand::{DeskEnds, Report};
use crate::arbiter::page::Authority;
use crate::board::MoveBlock;
use crate::board::snapshot::MoveStage;
use crate::hot::Frame;
use crate::units::Ticks;

impl Mover {
    /// Shots of `stream` that go straight into a slot wait from now on.
    pub(in crate::feed) fn hold(&mut self, stream: u32) {
        self.ways[stream as usize].is_staged = true;
    }

    /// Shots of `stream` go their way again, unless it moves.
    pub(in crate::feed) fn release(&mut self, stream: u32) {
        self.ways[stream as usize].is_staged = self.moves.iter().any(|one| one.stream == stream);
    }

    /// Silo `dead` will say nothing any more, and `heir` has what it had: moves that wait for it go another way. Its last
    /// words are heard first.
    pub(in crate::feed) fn bereave(
        &mut self,
        (dead, heir): (usize, usize),
        frame: &Frame<'_>,
        block: &MoveBlock,
        flipped: &mut impl FnMut(u32, usize),
    ) {
        while let Some(report) = self.desk.hear(dead) {
            self.hear(report, frame, block, flipped);
        }
        self.dead |= 1 << dead;
        self.adopted = 0;
        self.has_changed = true;
        for at in 0..self.moves.len() {
            let was_there = usize::from(self.ways[self.moves[at].stream as usize].to) == dead;
            let one = &mut self.moves[at];
            let was_to = one.to == dead;
            if one.from == dead {
                one.from = heir;
            }
            if one.is_desisting && (was_to || was_there && one.at == MoveStage::Quiesce) {
                one.is_desisting = false;
            }
            match one.at {
                // What is asked of the heir is the adoption, see [`Mover::adopt`].
                MoveStage::Quiesce if was_there => {
                    one.has_failed = true;
                    Self::note(block, one, None, frame);
                    (one.at, one.since) = (MoveStage::Return, frame.now);
                }
                // Once it is quiet, the heir has it: that may be where it was.
                MoveStage::Quiesce if was_to => one.to = heir,
                MoveStage::Transfer if was_to => {
                    one.has_failed = true;
                    Self::note(block, one, None, frame);
                    (one.at, one.since) = (MoveStage::Return, frame.now);
                    let (number, page, from) = (one.number, one.stream, one.from);
                    self.ask(from, Errand::Fetch { number, page, lease_us: 0, authority: Authority::Port });
                }
                MoveStage::Resume if was_there => (one.at, one.since) = (MoveStage::Return, frame.now),
                _ => {}
            }
        }
    }

    /// Whether `stream` was decoded in `dead`, and nobody else has been asked to have it.
    pub(in crate::feed) fn is_orphan(&self, stream: u32, dead: usize) -> bool {
        let moves_on = || self.moves.iter().any(|one| one.stream == stream && one.at == MoveStage::Transfer);
        usize::from(self.ways[stream as usize].to) == dead && !moves_on()
    }

    /// Shots in the stage of `stream`.
    pub(in crate::feed) fn staged(&self, stream: u32) -> u64 {
        self.moves.iter().find(|one| one.stream == stream).map_or(0, |one| one.stage.take.depth())
    }

    /// Asks `heir` to have `stream`, every number of which before `below` is answered; `false`: as many are asked for as may be.
    pub(in crate::feed) fn adopt(&mut self, stream: u32, heir: usize, below: u64) -> bool {
        if self.adopting.len() == ADOPTIONS_MAX {
            return false;
        }
        self.number = self.number.wrapping_add(1);
        self.adopting.push((self.number, stream, heir));
        self.ask(heir, Errand::Adopt { number: self.number, page: stream, below });
        true
    }

    /// Adoptions of this rescue that were made.
    pub(in crate::feed) fn adopted(&self) -> usize {
        self.adopted
    }

    pub(super) fn hear_of_adoption(
        &mut self,
        number: u32,
        report: Report,
        now: Ticks,
        flipped: &mut impl FnMut(u32, usize),
    ) {
        let Report::Here { epoch, .. } = report else { return };
        let Some(at) = self.adopting.iter().position(|(asked, ..)| *asked == number) else { return };
        let (_, stream, heir) = self.adopting.swap_remove(at);
        self.adopted += 1;
        self.ways[stream as usize].lead(heir, epoch, now);
        flipped(stream, heir);
        for one in self.moves.iter_mut().filter(|one| one.stream == stream) {
            (one.at, one.since) = (MoveStage::Resume, now);
        }
        self.has_changed = true;
    }

    /// Silo `silo` is back, with an arbiter that is asked by `ends`; the ends before.
    pub(in crate::feed) fn welcome(&mut self, silo: usize, ends: DeskEnds) -> DeskEnds {
        self.dead &= !(1 << silo);
        self.desk.renew(silo, ends)
    }
}
