//! The shadow's view.

use super::Reader;
use crate::board::layout::ShadowBlock;
use crate::board::reading::{Now, flag};
use crate::board::snapshot::ShadowView;
use crate::board::{Board, get};
use crate::units::Ticks;

impl Board {
    /// Shots copied for the shadow since the start, and those left out, of all silos.
    #[must_use]
    pub fn shadow_samples(&self) -> (u64, u64) {
        let of = (0..self.shape().silos as usize).map(|silo| self.harvest(silo));
        let of = of.map(|block| (get(&block.shadow_sampled), get(&block.shadow_left_out)));
        of.fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1))
    }
}

impl Reader<'_> {
    pub(super) fn shadow(&self) -> Option<ShadowView> {
        let block = self.board.shadow();
        let (sampled, left_out) = self.board.shadow_samples();
        flag(&block.began).then(|| ShadowView::read(block, self.now, sampled, left_out))
    }
}

impl ShadowBlock {
    /// Share of a core that the shadow's thread took while it was on.
    pub(in crate::board) fn core_share(&self, now: &Now<'_>) -> f64 {
        let (began, ended) = (get(&self.began), get(&self.ended));
        let span_ns = if ended == 0 { now.since_ns(began) } else { now.span_ns(Ticks(ended).since(Ticks(began)).0) };
        now.span_ns(get(&self.busy_ticks)) as f64 / span_ns.max(1) as f64
    }
}
