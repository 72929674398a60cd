//! The moves' block as a picture.

use super::Reader;
use crate::board::get;
use crate::board::snapshot::{MoveFailure, MoveStage, MoveView, MovesView};
use pinwheel_edge::page::Response;

/// Marks a row in use.
const ROW: u64 = 1 << 63;

/// A move's row.
pub fn move_row(stream: u32, from: usize, to: usize, stage: MoveStage) -> u64 {
    u64::from(stream) | (from as u64) << 20 | (to as u64) << 26 | (stage as u64) << 32 | ROW
}

impl Reader<'_> {
    /// `None`: there is nowhere to move to.
    pub(super) fn moves(&self, silo: usize) -> Option<MovesView> {
        let block = (self.board.shape().silos > 1).then(|| self.board.moves(silo))?;
        let row = |row: u64, since| {
            let stage = *MoveStage::ALL.get((row >> 32 & 0xff) as usize)?;
            let (stream, from, to) = ((row & 0xf_ffff) as u32, (row >> 20 & 0x3f) as u32, (row >> 26 & 0x3f) as u32);
            (row & ROW != 0).then(|| MoveView { stream, from, to, stage, age_ns: self.age_ns(since) })
        };
        let failure = row(get(&block.failed_row), &block.failed_at);
        let refusal = get(&block.failed_refusal).checked_sub(1).and_then(|at| Response::NAMES.get(at as usize));
        let last_failure = failure.map(|MoveView { stream, from, to, stage, age_ns }| {
            let why = why(stage, (from, to), refusal.copied());
            MoveFailure { stream, from, to, stage, age_ns, why }
        });
        Some(MovesView {
            asked: get(&block.asked),
            needless: get(&block.needless),
            done: get(&block.done),
            failed: get(&block.failed),
            last_failure,
            open: block.open.iter().zip(&block.open_since).filter_map(|(word, since)| row(get(word), since)).collect(),
            staged: get(&block.staged),
            stage_waits: get(&block.stage_waits),
            handed_on: get(&block.handed_on),
            lane_waits: get(&block.lane_waits),
            taken_in: get(&block.taken_in),
            sent_back: get(&block.sent_back),
            pause: block.pause.snapshot(),
            quiesce: block.quiesce.snapshot(),
            transfer: block.transfer.snapshot(),
        })
    }
}

/// What was found of a move that was given up, what was expected, what to do.
fn why(stage: MoveStage, (from, to): (u32, u32), refusal: Option<&str>) -> String {
    if stage == MoveStage::Quiesce {
        return format!(
            "found shots unanswered at silo {from}, expected all within the patience of a move; see what holds them up"
        );
    }
    let said = refusal.unwrap_or("nothing");
    format!(
        "found silo {to} without the page (silo {from} said {said}), expected it there within the patience of a move; \
         lease_active: ask again when the lease is over; nothing: look in threads for both silos"
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::move_row;
    use crate::board::snapshot::{MoveStage, MoveView};
    use crate::board::{Board, Place, Shape, set};
    use crate::clock::Clock;
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
        assert!(why.contains("silo 0 said lease_active"), "{why}");
    }
}
