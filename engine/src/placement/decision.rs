//! Placement decisions: where a stream goes, and the numbers that the decision was based on. Plain data.

use super::depth::SiloDepth;
use crate::units::Nanos;

/// A silo's load when it was compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// Number of the silo.
    pub silo: u32,
    /// Mean utilization of its queues, 0..=1.
    pub average: f64,
    /// Utilization of its fullest queue.
    pub max: f64,
    /// Time to answer the shots that wait there.
    pub backlog: Nanos,
    /// Expected increase of both by streams placed there since the snapshot.
    pub charge: f64,
}

impl Candidate {
    /// Silo `silo` with nothing charged.
    pub fn of(silo: u32, depth: &SiloDepth) -> Candidate {
        Candidate { silo, average: depth.average, max: depth.max, backlog: depth.backlog, charge: 0.0 }
    }
}

/// Why a stream should move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// A queue of its silo is over the limit.
    Hot,
    /// Its silo has much more to do than the others.
    Uneven,
    /// Shots wait for a slot of its silo.
    Overflow,
}

/// Why no silo takes a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No silo has a recent reading.
    NothingKnown,
    /// Every silo is above the limit, and the profile says to refuse then.
    AllHigh,
}

/// One decision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Decision {
    /// A new stream goes to `silo`.
    Place {
        /// The stream.
        stream: u32,
        /// Its silo.
        silo: u32,
        /// Every silo was above the limit; this one is the least full.
        is_high: bool,
    },
    /// A new stream goes nowhere.
    Refuse {
        /// The stream.
        stream: u32,
        /// Why.
        why: Refusal,
    },
    /// A stream should move. A lease keeps it at its new silo for a while.
    Move {
        /// The stream.
        stream: u32,
        /// The silo that owns it.
        from: u32,
        /// The silo that should.
        to: u32,
        /// Why.
        why: Why,
        /// Share of the old silo's fullest queue that is expected to move with it.
        share: f64,
        /// Lease that the stream holds at its new silo.
        lease: Nanos,
    },
}

/// A decision and the silos that were compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Made {
    /// The decision.
    pub decision: Decision,
    /// The silo chosen (or left), and the one it was compared with (or that it goes to).
    pub on: [Option<Candidate>; 2],
}
