//! Shots of a run for which no slot was free, in total and for each silo.

use super::text::{duration_text, grouped};
use pinwheel_engine::board::snapshot::{OutcomeCount, OverflowView, SiloView};
use serde::Serialize;
use std::collections::BTreeMap;

/// Totals of all silos; `silos` has each one.
#[derive(Clone, Debug, Serialize)]
pub struct OverflowReport {
    /// The overflow strategy at the end of the run.
    pub strategy: &'static str,
    /// Episodes: a ring became full while shots arrived.
    pub episodes: u64,
    /// Longest episode, nanoseconds.
    pub longest_ns: u64,
    /// Longest time from the last full ring until no shot waited, nanoseconds.
    pub recovery_ns_max: u64,
    /// Shots by outcome; only outcomes that occurred.
    pub outcomes: BTreeMap<&'static str, u64>,
    /// Silos with at least one episode.
    pub silos: Vec<SiloOverflow>,
}

/// Overflow of one silo.
#[derive(Clone, Debug, Serialize)]
pub struct SiloOverflow {
    /// Number of the silo.
    pub silo: u32,
    /// Counters from the board.
    #[serde(flatten)]
    pub overflow: OverflowView,
}

/// Counts by the name of the outcome; outcomes that did not occur are left out.
pub fn by_name(counts: &[OutcomeCount]) -> BTreeMap<&'static str, u64> {
    counts.iter().map(|counted| (counted.outcome, counted.count)).collect()
}

impl OverflowReport {
    /// Sums the overflow of all silos of a run.
    pub fn of(silos: &[SiloView]) -> OverflowReport {
        let all = || silos.iter().map(|silo| &silo.overflow);
        let mut outcomes = BTreeMap::new();
        for counted in all().flat_map(|overflow| &overflow.outcomes) {
            let sum: &mut u64 = outcomes.entry(counted.outcome).or_default();
            *sum = sum.saturating_add(counted.count);
        }
        let met = silos.iter().filter(|silo| silo.overflow.episodes > 0);
        OverflowReport {
            strategy: all().next().map_or("", |overflow| overflow.strategy),
            episodes: all().fold(0, |sum, overflow| sum.saturating_add(overflow.episodes)),
            longest_ns: all().map(|overflow| overflow.longest_ns).max().unwrap_or(0),
            recovery_ns_max: all().map(|overflow| overflow.recovery_ns_max).max().unwrap_or(0),
            outcomes,
            silos: met.map(|silo| SiloOverflow { silo: silo.id, overflow: silo.overflow.clone() }).collect(),
        }
    }

    /// One line of text.
    pub fn text(&self) -> String {
        let outcomes: Vec<String> = self
            .outcomes
            .iter()
            .map(|(outcome, times)| format!("{} {}", grouped(*times), outcome.replace('_', " ")))
            .collect();
        let (longest, recovery) = (duration_text(self.longest_ns), duration_text(self.recovery_ns_max));
        format!(
            "{}; longest {longest}, backlog cleared at most {recovery} after the last full ring; {}",
            self.strategy,
            outcomes.join(", ")
        )
    }
}
