//! The shadow's view.

use super::Reader;
use crate::board::layout::ShadowBlock;
use crate::board::reading::{Now, flag, sum};
use crate::board::snapshot::ShadowView;
use crate::board::{Board, HarvestBlock, get};
use crate::units::Ticks;
use std::sync::atomic::AtomicU64;

impl Board {
    /// Shots copied for the shadow since the start, and those left out, of all silos.
    pub fn shadow_samples(&self) -> (u64, u64) {
        let of = |word: fn(&HarvestBlock) -> &AtomicU64| {
            sum((0..self.shape().silos as usize).map(|silo| get(word(self.harvest(silo)))))
        };
        (of(|block| &block.shadow_sampled), of(|block| &block.shadow_left_out))
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
