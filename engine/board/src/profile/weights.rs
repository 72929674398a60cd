//! Relative rates of an input's streams.
//!
//! Plain data; ranges are enforced in `check`. As in the rest of the schema, every field is
//! required.

use serde::{Deserialize, Serialize};

/// Relative rate of each stream's shots.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Weights {
    /// Equal rates.
    Even,
    /// Stream n in proportion to (n + 1) to the minus this exponent, above 0, at most 4.
    Zipf(f64),
    /// In proportion to these weights, one for each stream, each above 0 and at most 1e6.
    Each(Vec<f64>),
}

impl Weights {
    /// The weights of `streams` streams; `None`: equal rates.
    pub fn of(&self, streams: u32) -> Option<Vec<f64>> {
        match self {
            Weights::Even => None,
            Weights::Zipf(exponent) => Some((1..=streams).map(|n| f64::from(n).powf(-exponent)).collect()),
            Weights::Each(weights) => Some(weights.clone()),
        }
    }
}
