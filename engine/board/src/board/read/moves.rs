//! Computed fields of the moves' view.

use crate::board::get;
use crate::board::layout::MoveBlock;
use crate::board::reading::Now;
use crate::board::snapshot::{MoveFailure, MoveView};
use crate::streams::MoveStage;
use pinwheel_edge::page::Response;
use std::sync::atomic::AtomicU64;

/// Marks a used row.
const ROW: u64 = 1 << 63;

/// A move's row.
pub fn move_row(stream: u32, from: usize, to: usize, stage: MoveStage) -> u64 {
    u64::from(stream) | (from as u64) << 20 | (to as u64) << 26 | (stage as u64) << 32 | ROW
}

fn row(row: u64, since: &AtomicU64, now: &Now<'_>) -> Option<MoveView> {
    let stage = *MoveStage::ALL.get((row >> 32 & 0xff) as usize)?;
    let (stream, from, to) = ((row & 0xf_ffff) as u32, (row >> 20 & 0x3f) as u32, (row >> 26 & 0x3f) as u32);
    (row & ROW != 0).then(|| MoveView { stream, from, to, stage, age_ns: now.age_ns(since) })
}

impl MoveBlock {
    pub(in crate::board) fn last_failure(&self, now: &Now<'_>) -> Option<MoveFailure> {
        let MoveView { stream, from, to, stage, age_ns } = row(get(&self.failed_row), &self.failed_at, now)?;
        let refusal = get(&self.failed_refusal).checked_sub(1).and_then(|at| Response::NAMES.get(at as usize));
        let why = why(stage, (from, to), refusal.copied());
        Some(MoveFailure { stream, from, to, stage, age_ns, why })
    }

    pub(in crate::board) fn open(&self, now: &Now<'_>) -> Vec<MoveView> {
        self.open.iter().zip(&self.open_since).filter_map(|(word, since)| row(get(word), since, now)).collect()
    }
}

/// Why a move was abandoned, and what to do.
fn why(stage: MoveStage, (from, to): (u32, u32), refusal: Option<&str>) -> String {
    if stage == MoveStage::Quiesce {
        return format!(
            "silo {from} did not answer all shots before the move's deadline; check its queues and workers"
        );
    }
    let said = refusal.unwrap_or("nothing");
    format!(
        "silo {to} did not receive the page before the move's deadline (last response of silo {from}: {said}); \
         lease_active: repeat the move after the lease ends; nothing: check the threads of both silos"
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::move_row;
    use crate::board::snapshot::MoveView;
    use crate::board::{Board, Place, Shape, set};
    use crate::clock::Clock;
    use crate::streams::MoveStage;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn a_move_is_shown_by_its_stage_and_a_failed_one_says_what_to_do() {
        let shape = Shape { threads: 1, silos: 2, slots: 1, workers: 1, decoders: 1, streams: 1 };
        let board = Board::create(shape, Place::Private).unwrap();
        let clock = Clock::virtual_time(Arc::new(AtomicU64::new(50_000)));
        let block = board.moves(1);
        set(&block.open[2], move_row(1_000_000, 63, 1, MoveStage::Transfer));
        set(&block.open_since[2], 40_000);
        let view = board.snapshot(&clock).silos[1].moves.clone().unwrap();
        let open = MoveView { stream: 1_000_000, from: 63, to: 1, stage: MoveStage::Transfer, age_ns: 10_000 };
        assert_eq!((view.open, view.last_failure), (vec![open], None));
        set(&block.failed_row, move_row(3, 0, 1, MoveStage::Transfer));
        set(&block.failed_refusal, 3);
        let why = board.snapshot(&clock).silos[1].moves.clone().unwrap().last_failure.unwrap().why;
        assert!(why.contains("silo 0: lease_active"), "{why}");
    }
}
