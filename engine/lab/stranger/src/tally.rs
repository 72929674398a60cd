//! What all rounds together have done and found. Owned by `main`; each round adds to it once.

use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Sums of rounds. A violation is lost, duplicated or wrong shots, a hang, or any other broken promise.
#[derive(Debug, Default)]
pub struct Tally {
    pub rounds: u64,
    pub shots: u64,
    pub accepted: u64,
    pub answered: u64,
    pub errors: u64,
    pub lost: u64,
    pub duplicated: u64,
    pub wrong: u64,
    pub hangs: u64,
    /// Shots whose engine was killed before it answered them.
    pub killed_with_engine: u64,
    /// Shots whose client was killed before it had their answers.
    pub killed_with_client: u64,
    pub faults: BTreeMap<String, u64>,
    /// Faults that this machine does not permit, by what it said.
    pub not_permitted: BTreeMap<String, u64>,
    /// Shots by ingress.
    pub ingresses: BTreeMap<String, u64>,
    pub resident_growth_kb_max: i64,
    pub violations: Vec<Value>,
}

impl Tally {
    pub fn fault(&mut self, kind: &str) {
        *self.faults.entry(kind.into()).or_default() += 1;
    }

    /// Counts a fault that the machine refuses.
    pub fn not_permitted(&mut self, what: String) {
        *self.not_permitted.entry(what).or_default() += 1;
    }

    pub fn violation(&mut self, what: impl Into<String>, evidence: impl Into<Value>) {
        self.violations.push(json!({ "what": what.into(), "evidence": evidence.into() }));
    }

    pub fn hang(&mut self, what: impl Into<String>, evidence: Value) {
        self.hangs += 1;
        self.violation(format!("hang: {}", what.into()), evidence);
    }

    /// Adds a round, and marks its violations with what replays them.
    pub fn add_round(&mut self, mut round: Tally, seed: u64, number: u64, kind: &str) {
        for violation in &mut round.violations {
            violation["seed"] = seed.into();
            violation["round"] = number.into();
            violation["kind"] = kind.into();
        }
        self.rounds += 1;
        self.add(round);
    }

    /// Adds what another thread has counted.
    pub fn add(&mut self, other: Tally) {
        self.shots += other.shots;
        self.accepted += other.accepted;
        self.answered += other.answered;
        self.errors += other.errors;
        self.lost += other.lost;
        self.duplicated += other.duplicated;
        self.wrong += other.wrong;
        self.hangs += other.hangs;
        self.killed_with_engine += other.killed_with_engine;
        self.killed_with_client += other.killed_with_client;
        self.resident_growth_kb_max = self.resident_growth_kb_max.max(other.resident_growth_kb_max);
        for (into, from) in [
            (&mut self.faults, other.faults),
            (&mut self.not_permitted, other.not_permitted),
            (&mut self.ingresses, other.ingresses),
        ] {
            for (key, count) in from {
                *into.entry(key).or_default() += count;
            }
        }
        self.violations.extend(other.violations);
    }

    pub fn is_sound(&self) -> bool {
        self.lost + self.duplicated + self.wrong + self.hangs == 0 && self.violations.is_empty()
    }

    pub fn json(&self, seed: u64) -> Value {
        json!({
            "seed": seed,
            "rounds": self.rounds,
            "shots": self.shots,
            "accepted": self.accepted,
            "answered": self.answered,
            "errors": self.errors,
            "killed_with_engine": self.killed_with_engine,
            "killed_with_client": self.killed_with_client,
            "lost": self.lost,
            "duplicated": self.duplicated,
            "wrong": self.wrong,
            "hangs": self.hangs,
            "faults": self.faults.values().sum::<u64>(),
            "faults_by": self.faults,
            "not_permitted": self.not_permitted,
            "ingresses": self.ingresses,
            "resident_growth_kb_max": self.resident_growth_kb_max,
            "violations": self.violations,
        })
    }
}
