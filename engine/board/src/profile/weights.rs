//! How often the streams of an input come, against each other.
//!
//! Plain data; ranges are enforced in `check`. As the rest of the schema: every field is required.

use serde::{Deserialize, Serialize};

/// How often each stream's shots come, against the others'.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Weights {
    /// All equally often.
    Even,
    /// Stream n as often as (n + 1) to the minus this, above 0, at most 4.
    Zipf(f64),
    /// As often as these, one for each stream, each above 0 and at most 1e6.
    Each(Vec<f64>),
}

impl Weights {
    /// Of `streams` streams; `None`: all equally often.
    #[must_use]
    pub fn of(&self, streams: u32) -> Option<Vec<f64>> {
        match self {
            Weights::Even => None,
            Weights::Zipf(exponent) => Some((1..=streams).map(|n| f64::from(n).powf(-exponent)).collect()),
            Weights::Each(weights) => Some(weights.clone()),
        }
    }
}
