//! Placement's blocks as a picture.

use super::Reader;
use crate::board::get;
use crate::board::layout::{DecisionRow, QUEUES, Queue};
use crate::board::snapshot::{
    CandidateView, CrossingView, DecisionView, OutcomeCount, OverflowOutcome, OverflowView, PlacementView, QueueView,
    SiloDepthView,
};
use crate::profile::{OverflowStrategy, RoleKind};
use std::sync::atomic::AtomicU64;

const KINDS: [&str; 5] = ["placed", "placed_high", "refused", "move", "move_refused"];
const REFUSALS: [&str; 2] = ["nothing known", "all silos high"];
const REASONS: [&str; 3] = ["hot", "uneven", "overflow"];

fn share(word: &AtomicU64) -> f64 {
    f64::from_bits(get(word))
}

impl Reader<'_> {
    pub(super) fn overflow(&self, silo: usize) -> OverflowView {
        let block = self.board.feed(silo);
        let strategy = OverflowStrategy::ALL.get(get(&block.overflow_strategy) as usize);
        OverflowView {
            strategy: strategy.map_or("", |strategy| strategy.name()),
            full_for_ns: (get(&block.overflow_since) != 0).then(|| self.age_ns(&block.overflow_since)),
            full_silo: (get(&block.overflow_since) != 0).then(|| get(&block.overflow_silo) as u32),
            episodes: get(&block.overflow_episodes),
            longest_ns: self.span_ns(get(&block.overflow_ticks_max)),
            recovery_ns_max: self.span_ns(get(&block.overflow_recovery_ticks_max)),
            outcomes: outcomes(&block.overflow),
        }
    }

    pub(super) fn placement(&self) -> Option<PlacementView> {
        let block = self.board.placement();
        if get(&block.is_on) == 0 {
            return None;
        }
        let [high, critical, preferred_max, enter, leave] = block.limits.each_ref().map(share);
        let hindrance = block.hindrance.read();
        let spread = share(&block.spread_bits);
        let mut decisions: Vec<_> = block.decisions.iter().filter_map(|row| self.decision(row)).collect();
        decisions.sort_by_key(|decision| std::cmp::Reverse(decision.number));
        Some(PlacementView {
            strategy: block.strategy.read(),
            rebalances: get(&block.rebalances) != 0,
            hindrance: (!hindrance.is_empty()).then_some(hindrance),
            streams: get(&block.streams),
            high,
            critical,
            preferred_max,
            enter,
            leave,
            refresh_ns: get(&block.refresh_ns),
            snapshot: get(&block.snapshot),
            age_ns: self.age_ns(&block.snapshot_ticks),
            looks: get(&block.looks),
            spread_points: spread.is_finite().then_some(spread),
            placed: get(&block.placed),
            placed_high: get(&block.placed_high),
            refused: get(&block.refused),
            moves_asked: get(&block.moves_asked),
            moves_refused: get(&block.moves_refused),
            crossings: block.crossings.each_ref().map(get),
            crossing: self.crossing(),
            silos: (0..self.board.shape().silos as usize).map(|silo| self.silo_depth(silo)).collect(),
            decisions,
            decision_ns: block.decision.snapshot(),
            look_ns: block.look.snapshot(),
        })
    }

    fn crossing(&self) -> Option<CrossingView> {
        let block = self.board.placement();
        let word = get(&block.crossing);
        let queue = Queue::ALL.get((word & 0xff) as usize >> 1)?;
        let [old, new] = block.crossing_bits.each_ref().map(share);
        (get(&block.crossing_ticks) != 0).then(|| CrossingView {
            silo: (word >> 8) as u32,
            queue: queue.name(),
            old: old.is_finite().then_some(old),
            new,
            is_over: word & 1 == 1,
            age_ns: self.age_ns(&block.crossing_ticks),
        })
    }

    fn silo_depth(&self, silo: usize) -> SiloDepthView {
        let block = self.board.silo_depth(silo);
        let (there, over) = (get(&block.queues), get(&block.over));
        let queues = (0..QUEUES).filter(|at| there >> at & 1 == 1).map(|at| QueueView {
            queue: Queue::ALL[at].name(),
            utilization: share(&block.share_bits[at]),
            is_over: over >> at & 1 == 1,
        });
        let unknown = self.unknown(silo);
        let queues: Vec<QueueView> = if unknown.is_none() { queues.collect() } else { Vec::new() };
        SiloDepthView {
            silo: silo as u32,
            max: queues.iter().map(|queue| queue.utilization).fold(0.0, f64::max),
            queues,
            average: share(&block.average_bits),
            fullest: Queue::ALL.get(get(&block.fullest) as usize).map_or("", |queue| queue.name()),
            waiting: get(&block.waiting),
            backlog_ns: get(&block.backlog_ns),
            processed: get(&block.processed),
            errors: get(&block.errors),
            idle_for_ns: (get(&block.last_activity) != 0).then(|| self.age_ns(&block.last_activity)),
            pressed_for_ns: (get(&block.pressed_since) != 0).then(|| self.age_ns(&block.pressed_since)),
            streams: get(&block.streams),
            charge: share(&block.charge_bits),
            unknown,
        }
    }

    /// Why nothing is known of a silo, in words.
    fn unknown(&self, silo: usize) -> Option<String> {
        let block = self.board.silo_depth(silo);
        let (detail, ms) = (get(&block.detail), get(&block.detail) / 1_000_000);
        match get(&block.state) {
            1 => None,
            3 => Some("not running".to_owned()),
            4 => Some(format!("silent for {ms} ms")),
            5 => {
                let role = RoleKind::ALL[detail as usize % RoleKind::ALL.len()];
                Some(format!("{role} died"))
            }
            6 => Some(format!("last read {ms} ms ago")),
            _ => Some("not read yet".to_owned()),
        }
    }

    fn decision(&self, row: &DecisionRow) -> Option<DecisionView> {
        let number = crate::board::get_first(&row.number);
        let kind = (get(&row.kind) as usize).checked_sub(1).filter(|kind| *kind < KINDS.len() && number != 0)?;
        let why = get(&row.why) as usize;
        let candidate = |at: usize| {
            Some(CandidateView {
                silo: get(&row.silos[at]).checked_sub(1)? as u32,
                average: share(&row.average_bits[at]),
                max: share(&row.max_bits[at]),
                backlog_ns: get(&row.backlog_ns[at]),
                charge: share(&row.charge_bits[at]),
            })
        };
        let reasons: &[&'static str] = match KINDS[kind] {
            "refused" => &REFUSALS,
            "move" | "move_refused" => &REASONS,
            _ => &[],
        };
        Some(DecisionView {
            number,
            age_ns: self.age_ns(&row.at),
            what: KINDS[kind],
            why: reasons.get(why).copied(),
            stream: get(&row.stream) as u32,
            from: get(&row.from).checked_sub(1).map(|silo| silo as u32),
            to: get(&row.to).checked_sub(1).map(|silo| silo as u32),
            on: (0..2).filter_map(candidate).collect(),
            share: share(&row.share_bits),
        })
    }
}

/// The outcomes that occurred, of a silo or a stream.
pub(super) fn outcomes(words: &[AtomicU64]) -> Vec<OutcomeCount> {
    let counted = OverflowOutcome::ALL.into_iter().zip(words);
    let counted = counted.map(|(outcome, word)| OutcomeCount { outcome: outcome.name(), count: get(word) });
    counted.filter(|outcome| outcome.count > 0).collect()
}
