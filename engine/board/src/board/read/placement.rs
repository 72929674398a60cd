//! Computed fields of placement's views.

use crate::board::get;
use crate::board::layout::{DecisionRow, FeedBlock, PlacementBlock, QUEUES, Queue, SiloDepthBlock};
use crate::board::reading::{Now, fraction, number, one_less};
use crate::board::snapshot::{CandidateView, CrossingView, DecisionView, OutcomeCount, QueueView};
use crate::profile::OverflowStrategy;
use crate::roles::RoleKind;
use crate::streams::OverflowOutcome;
use pinwheel_edge::seqlock::Seqlock;
use std::sync::atomic::AtomicU64;

const KINDS: [&str; 5] = ["placed", "placed_high", "refused", "move", "move_refused"];
const REFUSALS: [&str; 2] = ["nothing known", "all silos high"];
const REASONS: [&str; 3] = ["hot", "uneven", "overflow"];

impl FeedBlock {
    pub(in crate::board) fn strategy(&self) -> &'static str {
        OverflowStrategy::ALL.get(get(&self.overflow_strategy) as usize).map_or("", |strategy| strategy.name())
    }
}

impl OutcomeCount {
    /// The outcomes that occurred, of a silo or a stream.
    pub(in crate::board) fn all(words: &[AtomicU64]) -> Vec<OutcomeCount> {
        let counted = OverflowOutcome::ALL.into_iter().zip(words);
        let counted = counted.map(|(outcome, word)| OutcomeCount { outcome: outcome.name(), count: get(word) });
        counted.filter(|outcome| outcome.count > 0).collect()
    }
}

impl PlacementBlock {
    pub(in crate::board) fn crossing(&self, now: &Now<'_>) -> Option<CrossingView> {
        let word = get(&self.crossing);
        let queue = Queue::ALL.get((word & 0xff) as usize >> 1)?;
        let [old, new] = self.crossing_bits.each_ref().map(fraction);
        now.age_if_any(&self.crossing_ticks).map(|age_ns| CrossingView {
            silo: (word >> 8) as u32,
            queue: queue.name(),
            old: old.is_finite().then_some(old),
            new,
            is_over: word & 1 == 1,
            age_ns,
        })
    }

    /// The last decisions, newest first.
    pub(in crate::board) fn decisions(&self, now: &Now<'_>) -> Vec<DecisionView> {
        let mut decisions: Vec<_> = self.decisions.iter().filter_map(|row| row.decision(now)).collect();
        decisions.sort_by_key(|decision| std::cmp::Reverse(decision.number));
        decisions
    }
}

impl SiloDepthBlock {
    /// The silo's queues; empty while they are unknown.
    pub(in crate::board) fn queues(&self) -> Vec<QueueView> {
        let (there, over) = (get(&self.queues), get(&self.over));
        let queues = (0..QUEUES).filter(|at| there >> at & 1 == 1).map(|at| QueueView {
            queue: Queue::ALL[at].name(),
            utilization: fraction(&self.share_bits[at]),
            is_over: over >> at & 1 == 1,
        });
        if self.unknown().is_none() { queues.collect() } else { Vec::new() }
    }

    /// Why the silo's queues are unknown.
    pub(in crate::board) fn unknown(&self) -> Option<String> {
        let (detail, ms) = (get(&self.detail), get(&self.detail) / 1_000_000);
        match get(&self.state) {
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
}

impl DecisionRow {
    fn decision(&self, now: &Now<'_>) -> Option<DecisionView> {
        self.lock().read(|number| self.numbered(number, now))?
    }

    /// Sequence lock of the decision.
    pub fn lock(&self) -> Seqlock<'_> {
        Seqlock::of_one_word(&self.number)
    }

    fn numbered(&self, row_number: u64, now: &Now<'_>) -> Option<DecisionView> {
        let kind = (get(&self.kind) as usize).checked_sub(1).filter(|kind| *kind < KINDS.len() && row_number != 0)?;
        let candidate = |at: usize| {
            Some(CandidateView {
                silo: one_less(&self.silos[at])?,
                average: fraction(&self.average_bits[at]),
                max: fraction(&self.max_bits[at]),
                backlog_ns: get(&self.backlog_ns[at]),
                charge: fraction(&self.charge_bits[at]),
            })
        };
        let reasons: &[&'static str] = match KINDS[kind] {
            "refused" => &REFUSALS,
            "move" | "move_refused" => &REASONS,
            _ => &[],
        };
        Some(DecisionView {
            number: row_number,
            age_ns: now.age_ns(&self.at),
            what: KINDS[kind],
            why: reasons.get(get(&self.why) as usize).copied(),
            stream: number(&self.stream),
            from: one_less(&self.from),
            to: one_less(&self.to),
            on: (0..2).filter_map(candidate).collect(),
            share: fraction(&self.share_bits),
        })
    }
}
