//! Deadlines of answers: the order in which shots are decoded, and the decoder of shots for which the usual
//! one takes too long.
//!
//! Plain data; `check` enforces the ranges written here.

use serde::{Deserialize, Serialize};

/// Deadlines of answers, and what keeps them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deadlines {
    /// Which waiting shot is decoded next; whole shots only, unless `Fifo`.
    pub order: ShotOrder,
    /// What answers a shot that its decoder cannot finish by its deadline; needs `order: Deadline`. `None`: such a
    /// shot is answered with an error.
    pub rescue: Option<Rescue>,
    /// From write until a shot's answer is due, µs, 1..=limits.shot_deadline_us; `None`: `limits.shot_deadline_us`.
    pub answer_us: Option<u32>,
    /// Streams with a deadline of their own, each named at most once.
    pub streams: Vec<StreamDeadline>,
}

impl Deadlines {
    /// Whether an answer is due before `limits.shot_deadline_us`, or shots are decoded by their deadlines.
    pub fn are_set(&self) -> bool {
        self.order == ShotOrder::Deadline || self.answer_us.is_some() || !self.streams.is_empty()
    }
}

/// Which waiting shot is decoded next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ShotOrder {
    /// The one that has waited longest.
    Fifo,
    /// The one whose deadline is nearest. A shot that cannot be answered by its deadline is answered with an error at
    /// once, so that it takes no time from others.
    Deadline,
}

/// What answers a shot that its decoder cannot finish by its deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Rescue {
    /// Matching: faster than `Correlated`.
    Matching,
    /// Union-find: about half of matching's time from distance 9 on, at an error rate of 0.5 %.
    UnionFind,
    /// A look-up table, for small models.
    Lookup,
    /// The flips of the local predecoder alone: pairs of neighbouring detection events are explained, all others are
    /// ignored. The least time, and by far the most logical errors.
    Predecoder,
}

/// The deadline of one stream's answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamDeadline {
    /// The stream, below `input.streams`.
    pub stream: u32,
    /// From write until its answer is due, µs, 1..=limits.shot_deadline_us.
    pub answer_us: u32,
}
