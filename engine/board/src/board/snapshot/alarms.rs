//! The alarm log's part of the picture.

use crate::board::alarms::{AlarmState, Confidence, Site};
use crate::profile::Severity;
use serde::Serialize;
use std::cmp::Reverse;

/// One alarm. Times are nanoseconds since the engine's start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AlarmView {
    /// Its number in this run: what acknowledges it.
    pub number: u64,
    /// Its rule's name.
    pub rule: &'static str,
    /// Where.
    pub site: Site,
    /// Name of the thread, if it is at one.
    pub thread: Option<String>,
    /// How bad.
    pub severity: Severity,
    /// Whether it holds.
    pub state: AlarmState,
    /// Start of its first episode.
    pub first_ns: u64,
    /// Start of its latest episode.
    pub onset_ns: u64,
    /// When it was last seen to hold.
    pub last_ns: u64,
    /// End of its latest episode.
    pub ended_ns: Option<u64>,
    /// Length of its latest episode, so far.
    pub duration_ns: u64,
    /// From its onset to its verdict.
    pub judged_after_ns: Option<u64>,
    /// How often.
    pub count: u64,
    /// When the operator acknowledged it.
    pub acknowledged_ns: Option<u64>,
    /// Until when it is snoozed.
    pub snoozed_until_ns: Option<u64>,
    /// How sure the verdict is.
    pub confidence: Confidence,
    /// The cause in a word; empty: none.
    pub cause: String,
    /// What is wrong and why.
    pub sentence: String,
    /// What that rests on.
    pub evidence: Vec<String>,
    /// Stack of the stalled thread, innermost first.
    pub stack: Vec<String>,
    /// The line of it to blame.
    pub culprit: Option<String>,
    /// What to do.
    pub runbook: String,
}

impl AlarmView {
    /// Whether it wants attention: holds, is no note, and is neither acknowledged nor snoozed at `at_ns`.
    #[must_use]
    pub fn calls(&self, at_ns: u64) -> bool {
        self.is_active()
            && self.severity > Severity::Note
            && self.acknowledged_ns.is_none()
            && self.snoozed_until_ns.is_none_or(|until| until <= at_ns)
    }

    /// Whether it holds.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.state == AlarmState::Active
    }

    /// Order of lists: active ones, then the worst, then the newest.
    pub(in crate::board) fn rank(&self) -> impl Ord + use<> {
        (self.state, Reverse(self.severity), Reverse(self.onset_ns), self.number)
    }
}
