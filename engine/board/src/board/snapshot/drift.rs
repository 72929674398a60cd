//! An error that differs from the model, within a stream's view.

use serde::Serialize;

/// An error that has become more or less frequent than the model says.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DriftView {
    /// The detector that it flips, or the lower of two.
    pub detector: u32,
    /// The higher of two.
    pub partner: Option<u32>,
    /// How often it happens, divided by the model's.
    pub ratio: f64,
    /// Since when, nanoseconds from the engine's start.
    pub since_ns: u64,
    /// Shots of the stream that were counted.
    pub shots: u64,
}

/// An error and its change, in words: `edge D12–D15 happens 2.1 times as often as the model says`.
pub fn drift_sentence(detector: u32, partner: Option<u32>, ratio: f64) -> String {
    match partner {
        Some(partner) => format!("edge D{detector}–D{partner} happens {ratio:.1} times as often as the model says"),
        None => format!("the boundary edge of D{detector} happens {ratio:.1} times as often as the model says"),
    }
}
