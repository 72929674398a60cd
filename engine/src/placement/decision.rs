//! What the director says: where a stream goes, and with which numbers in hand.
//!
//! Plain data, handed to who acts on it through a bounded ring, and shown. Nothing here acts.

use super::depth::SiloDepth;
use crate::units::Nanos;

/// A silo as it stood when it was compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// Silo.
    pub silo: u32,
    /// Mean over its queues.
    pub average: f64,
    /// Of its fullest queue.
    pub max: f64,
    /// How long answering what waits there takes.
    pub backlog: Nanos,
    /// What picks since the snapshot are expected to add to both.
    pub charge: f64,
}

impl Candidate {
    /// Silo `silo` with nothing charged.
    #[must_use]
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
    /// Nothing is known of any silo, or what is known is old.
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
        /// Every silo was above the limit: this is the least bad.
        is_high: bool,
    },
    /// A new stream goes nowhere.
    Refuse {
        /// The stream.
        stream: u32,
        /// Why.
        why: Refusal,
    },
    /// A stream should move. Where it arrives it holds a lease, so that it cannot be sent on at once.
    Move {
        /// The stream.
        stream: u32,
        /// The silo that owns it.
        from: u32,
        /// The silo that should.
        to: u32,
        /// Why.
        why: Why,
        /// What of the silo's fullest queue is expected to go with it.
        share: f64,
        /// Lease that the stream holds at its new silo.
        lease: Nanos,
    },
}

/// A decision and what it was made on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Made {
    /// The decision.
    pub decision: Decision,
    /// The silo chosen (or left), and the one it was compared with (or that it goes to).
    pub on: [Option<Candidate>; 2],
}
