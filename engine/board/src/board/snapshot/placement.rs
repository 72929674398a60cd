//! Placement in a snapshot: queue depths of the silos, decisions, outcomes of shots that found no
//! slot.

use serde::Serialize;

/// How often one outcome occurred.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OutcomeCount {
    /// Name of the outcome.
    pub outcome: &'static str,
    /// Shots with this outcome.
    pub count: u64,
}

/// One queue that crossed a limit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CrossingView {
    /// Number of the silo.
    pub silo: u32,
    /// Name of the queue.
    pub queue: &'static str,
    /// Its share before the crossing; `None`: not known.
    pub old: Option<f64>,
    /// Its share after the crossing.
    pub new: f64,
    /// Whether it rose above the limit.
    pub is_over: bool,
    /// Time since the crossing.
    pub age_ns: u64,
}

/// One queue of a silo.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QueueView {
    /// Name of the queue.
    pub queue: &'static str,
    /// Share of its places taken, mean over the interval.
    pub utilization: f64,
    /// Whether it is over its limit.
    pub is_over: bool,
}

/// One decision, with the numbers that it used.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DecisionView {
    /// Number, from 1.
    pub number: u64,
    /// Time since the decision.
    pub age_ns: u64,
    /// The decision.
    pub what: &'static str,
    /// Reason of the decision.
    pub why: Option<&'static str>,
    /// Stream that was placed or moved.
    pub stream: u32,
    /// Silo that it leaves.
    pub from: Option<u32>,
    /// Silo that it goes to.
    pub to: Option<u32>,
    /// The silos compared: the one chosen or left first.
    pub on: Vec<CandidateView>,
    /// Of a move: the share that is expected to move with the stream.
    pub share: f64,
}

/// Measures of a silo at the time of the comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CandidateView {
    /// Number of the silo.
    pub silo: u32,
    /// Mean share of its queues.
    pub average: f64,
    /// Share of its fullest queue.
    pub max: f64,
    /// Expected time to answer the waiting shots.
    pub backlog_ns: u64,
    /// Share of the queues that streams placed since the snapshot are expected to take.
    pub charge: f64,
}
