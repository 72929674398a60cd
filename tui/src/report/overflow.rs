//! Shots of a run that found no slot, of all silos together and of each.

use super::text::{duration_text, grouped};
use pinwheel_engine::board::snapshot::{OutcomeCount, OverflowView, SiloView};
use serde::Serialize;
use std::collections::BTreeMap;

/// All silos together; each by itself in `silos`.
#[derive(Clone, Debug, Serialize)]
pub struct OverflowReport {
    /// The strategy in force at the end.
    pub strategy: &'static str,
    /// Times that a ring became full while shots arrived.
    pub episodes: u64,
    /// The longest of them.
    pub longest_ns: u64,
    /// The longest from the last full ring to the moment when no shot waited any more.
    pub recovery_ns_max: u64,
    /// By outcome; only those that occurred.
    pub outcomes: BTreeMap<&'static str, u64>,
    /// By silo; only those whose ring was ever full.
    pub silos: Vec<SiloOverflow>,
}

/// One silo.
#[derive(Clone, Debug, Serialize)]
pub struct SiloOverflow {
    /// Its number.
    pub silo: u32,
    /// What the board says of it.
    #[serde(flatten)]
    pub overflow: OverflowView,
}

/// Outcomes by name.
pub fn by_name(counts: &[OutcomeCount]) -> BTreeMap<&'static str, u64> {
    counts.iter().map(|counted| (counted.outcome, counted.count)).collect()
}

impl OverflowReport {
    /// Of the silos of a run.
    pub fn of(silos: &[SiloView]) -> OverflowReport {
        let all = || silos.iter().map(|silo| &silo.overflow);
        let mut outcomes = BTreeMap::new();
        for counted in all().flat_map(|overflow| &overflow.outcomes) {
            *outcomes.entry(counted.outcome).or_default() += counted.count;
        }
        let met = silos.iter().filter(|silo| silo.overflow.episodes > 0);
        OverflowReport {
            strategy: all().next().map_or("", |overflow| overflow.strategy),
            episodes: all().map(|overflow| overflow.episodes).sum(),
            longest_ns: all().map(|overflow| overflow.longest_ns).max().unwrap_or(0),
            recovery_ns_max: all().map(|overflow| overflow.recovery_ns_max).max().unwrap_or(0),
            outcomes,
            silos: met.map(|silo| SiloOverflow { silo: silo.id, overflow: silo.overflow.clone() }).collect(),
        }
    }

    /// In one line, for people.
    pub fn told(&self) -> String {
        let outcomes: Vec<String> = self
            .outcomes
            .iter()
            .map(|(outcome, times)| format!("{} {}", grouped(*times), outcome.replace('_', " ")))
            .collect();
        let (longest, recovery) = (duration_text(self.longest_ns), duration_text(self.recovery_ns_max));
        format!(
            "{}; longest {longest}, over {recovery} after the last full ring; {}",
            self.strategy,
            outcomes.join(", ")
        )
    }
}
