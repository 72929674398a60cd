//! Alarms in a snapshot.

use crate::board::alarms::{AlarmState, Confidence, Site};
use crate::profile::Severity;
use serde::Serialize;
use std::cmp::Reverse;

/// One alarm. Times are nanoseconds since the engine's start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AlarmView {
    /// Its number in this run, by which it is acknowledged.
    pub number: u64,
    /// Name of its rule.
    pub rule: &'static str,
    /// Where the fault is.
    pub site: Site,
    /// Name of the thread, for a fault of one thread.
    pub thread: Option<String>,
    /// Severity by its rule.
    pub severity: Severity,
    /// Whether it is active.
    pub state: AlarmState,
    /// Start of its first episode.
    pub first_ns: u64,
    /// Start of its latest episode.
    pub onset_ns: u64,
    /// Last time at which it was active.
    pub last_ns: u64,
    /// End of its latest episode.
    pub ended_ns: Option<u64>,
    /// Length of its latest episode, so far.
    pub duration_ns: u64,
    /// Time from its onset to its verdict.
    pub judged_after_ns: Option<u64>,
    /// How often so far: what the engine counted, where it counts (late answers, errors); otherwise episodes.
    pub count: u64,
    /// When the operator acknowledged it.
    pub acknowledged_ns: Option<u64>,
    /// Until when it is snoozed.
    pub snoozed_until_ns: Option<u64>,
    /// How sure the verdict is.
    pub confidence: Confidence,
    /// Number of the alarm that is the root of its incident: its own number if none explains it; 0:
    /// not judged yet.
    pub incident: u64,
    /// Cause of the verdict, one word; empty: none.
    pub cause: String,
    /// Who caused it, if that is somebody outside the engine; else empty.
    pub who: String,
    /// What is wrong and why.
    pub sentence: String,
    /// Observations that support the verdict.
    pub evidence: Vec<String>,
    /// Stack of the stalled thread, innermost first.
    pub stack: Vec<String>,
    /// Stack frame that caused the stall.
    pub culprit: Option<String>,
    /// What to do.
    pub runbook: String,
}

/// Alarms that share a cause: the root, and the alarms that it explains. Times are nanoseconds
/// since the engine's start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IncidentView {
    /// Number of the root's alarm.
    pub number: u64,
    /// The alarm that explains all others.
    pub root: IncidentRoot,
    /// What it explains, earliest first.
    pub consequences: Vec<Consequence>,
    /// The highest severity of its alarms.
    pub severity: Severity,
    /// Whether one of its alarms is active.
    pub state: AlarmState,
    /// First onset of its latest episode.
    pub onset_ns: u64,
    /// End of its last alarm.
    pub ended_ns: Option<u64>,
    /// Length of its latest episode, so far.
    pub duration_ns: u64,
    /// Shots that were late or answered with an error in all its episodes.
    pub shots_hit: u64,
    /// How often so far: the `count` of its root's alarm.
    pub count: u64,
}

/// The root of an incident.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IncidentRoot {
    /// Name of its rule.
    pub rule: &'static str,
    /// Cause of the verdict, one word; empty: none yet.
    pub cause: String,
    /// What is wrong and why.
    pub sentence: String,
    /// Who caused it, if that is somebody outside the engine; else empty.
    pub who: String,
}

/// An alarm that another one explains.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Consequence {
    /// Name of its rule.
    pub rule: String,
    /// What is wrong.
    pub sentence: String,
}

impl Consequence {
    /// Of the lines that a root's row keeps.
    pub(in crate::board) fn read(lines: &str) -> Vec<Consequence> {
        let of = |line: &str| {
            let (rule, sentence) = line.split_once('\t').unwrap_or((line, ""));
            Consequence { rule: rule.to_owned(), sentence: sentence.to_owned() }
        };
        lines.lines().map(of).collect()
    }
}

impl IncidentView {
    /// Sort key of lists: active ones first, then by severity, then the newest first.
    pub(in crate::board) fn rank(&self) -> impl Ord + use<> {
        (self.state, Reverse(self.severity), Reverse(self.onset_ns), self.number)
    }
}

impl AlarmView {
    /// Whether the operator should look at it: it is active, is no note, and is neither
    /// acknowledged nor snoozed at `at_ns`.
    pub fn calls(&self, at_ns: u64) -> bool {
        self.is_active()
            && self.severity > Severity::Note
            && self.acknowledged_ns.is_none()
            && self.snoozed_until_ns.is_none_or(|until| until <= at_ns)
    }

    /// Whether it is active.
    pub fn is_active(&self) -> bool {
        self.state == AlarmState::Active
    }

    /// Sort key of lists: active alarms first, then by severity, then the newest first.
    pub(in crate::board) fn rank(&self) -> impl Ord + use<> {
        (self.state, Reverse(self.severity), Reverse(self.onset_ns), self.number)
    }
}
