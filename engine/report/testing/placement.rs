//! A synthetic director: two silos, the first of them too full with all faults.

use super::SyntheticFaults;
use pinwheel_engine::board::histogram::Histogram;
use pinwheel_engine::board::snapshot::{
    CandidateView, CrossingView, DecisionView, MoveFailure, MoveView, MovesView, OutcomeCount, OverflowView,
    PlacementView, QueueView, SiloDepthView,
};
use pinwheel_engine::streams::MoveStage;

/// Shots without a slot: none, or of every kind.
pub fn overflow(tenths: u64, trouble: SyntheticFaults) -> OverflowView {
    if trouble == SyntheticFaults::None {
        return OverflowView { strategy: "Block", ..OverflowView::default() };
    }
    let outcome = |outcome, count| OutcomeCount { outcome, count };
    OverflowView {
        strategy: "CpuFallback",
        full_for_ns: Some(12_000_000),
        full_silo: Some(0),
        episodes: 3,
        longest_ns: 84_000_000,
        recovery_ns_max: 4_100_000,
        outcomes: vec![outcome("waited", 41 * tenths), outcome("expired", 7), outcome("sent_to_cpu", 912)],
    }
}

/// Moves of the streams of one feed: one in progress, one given up.
pub fn moves(tenths: u64) -> MovesView {
    let stage = MoveStage::Transfer;
    let why = "silo 1 did not receive the page before the move's deadline (last response of silo 0: nothing); \
               lease_active: repeat the move after the lease ends; nothing: check the threads of both silos"
        .to_owned();
    MovesView {
        asked: 3,
        done: tenths / 10,
        failed: 1,
        last_failure: Some(MoveFailure { stream: 5, from: 0, to: 1, stage, age_ns: 700_000_000, why }),
        open: vec![MoveView { stream: 3, from: 0, to: 2, stage, age_ns: 1_400_000 }],
        staged: 40,
        handed_on: 20,
        pause: Histogram::of(&[39_000, 1_000_000]),
        quiesce: Histogram::of(&[20_000]),
        transfer: Histogram::of(&[15_000]),
        ..MovesView::default()
    }
}

/// The director after `tenths` tenths of a second.
pub fn placement(tenths: u64, trouble: SyntheticFaults) -> PlacementView {
    let bad = trouble == SyntheticFaults::All;
    let candidate = |silo, average, max, charge| CandidateView { silo, average, max, backlog_ns: 12_000_000, charge };
    let decision = |number, what, why, from, to| DecisionView {
        number,
        age_ns: 400_000_000 * (3 - number),
        what,
        why,
        stream: 3,
        from,
        to,
        on: vec![candidate(0, 0.41, 0.92, 0.0), candidate(1, 0.06, 0.21, 0.18)],
        share: 0.18,
    };
    let crossing =
        CrossingView { silo: 0, queue: "decode", old: Some(0.71), new: 0.92, is_over: true, age_ns: 900_000_000 };
    let decisions = match bad {
        true => {
            vec![decision(2, "move", Some("hot"), Some(0), Some(1)), decision(1, "placed_high", None, None, Some(1))]
        }
        false => vec![decision(1, "placed", None, None, Some(1))],
    };
    PlacementView {
        strategy: "best of two".to_owned(),
        rebalances: bad,
        hindrance: bad.then(|| "256 moves already wait to begin; ask again when some are done".to_owned()),
        streams: 4,
        high: 0.80,
        critical: 0.95,
        preferred_max: 0.70,
        enter: 0.80,
        leave: 0.65,
        refresh_ns: 1_000_000_000,
        snapshot: tenths / 10,
        age_ns: tenths % 10 * 100_000_000,
        samples: 20,
        spread_points: (tenths > 10).then_some(if bad { 35.5 } else { 1.2 }),
        placed: 4,
        placed_high: u64::from(bad),
        refused: u64::from(bad),
        moves_asked: if bad { tenths / 10 } else { 0 },
        moves_refused: u64::from(bad),
        crossings: if bad { [1, 0] } else { [0, 0] },
        crossing: bad.then_some(crossing),
        silos: vec![silo(0, if bad { 0.92 } else { 0.31 }, tenths), unknown(bad), silo(2, 0.21, tenths)],
        decisions,
        ..PlacementView::default()
    }
}

fn silo(silo: u32, full: f64, tenths: u64) -> SiloDepthView {
    let queues =
        [("rx", 0.1), ("device", 0.6), ("ready", 0.0), ("pool", 0.3), ("decode", 1.0), ("tx", 0.05), ("ports", 0.0)];
    let queue =
        |(queue, part): (&'static str, f64)| QueueView { queue, utilization: full * part, is_over: full * part > 0.8 };
    SiloDepthView {
        silo,
        queues: queues.map(queue).to_vec(),
        average: full * 0.3,
        max: full,
        fullest: "decode",
        waiting: 17 * tenths,
        backlog_ns: 12_000_000,
        processed: 20_000,
        idle_for_ns: Some(1_000),
        pressed_for_ns: (full > 0.8).then_some(2_400_000_000),
        streams: 2,
        charge: if full > 0.8 { 0.0 } else { 0.02 },
        ..SiloDepthView::default()
    }
}

fn unknown(bad: bool) -> SiloDepthView {
    let depth = silo(1, 0.25, 10);
    if bad {
        return SiloDepthView { unknown: Some("silent for 1200 ms".to_owned()), queues: Vec::new(), ..depth };
    }
    depth
}
