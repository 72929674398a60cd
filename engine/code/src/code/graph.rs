//! A model as a matching graph: one edge per pair of detectors, or per detector and the boundary.
//!
//! Built by cold code; read by the predecoder and the matcher. Bounded by the model.
//!
//! # Why edges are merged like this
//!
//! Answers must agree with `PyMatching`'s (Higgott, Gidney, arXiv:2303.15933). So parallel edges
//! become one edge of the odd-parity probability `p₁(1-p₂) + p₂(1-p₁)`, with the observables of the
//! first, even if a later one differs. A probability above one half gives a negative weight. Such
//! an edge is applied to every shot in advance (its detectors, observables and weight), and the
//! graph has it with the opposite weight. Mechanisms of probability 0 and parts without detectors
//! add nothing. Heralds are left out of the parts: an edge has the probability of all shots, whether its
//! herald fires or not.

use std::collections::{BTreeMap, BTreeSet};

use super::measure::MapError;
use super::{Component, Model, flip};

/// Heaviest edge, above `ln((1-p)/p)` of any positive `p`.
const WEIGHT_MAX: f64 = 1000.0;

/// Why a model is not a matching problem.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum GraphError {
    #[error(
        "found an error mechanism (number {mechanism}) with a part of {detectors} detectors, expected at most 2 in each \
         part; decompose the model (stim: decompose_errors=True)"
    )]
    NotGraphLike {
        /// Index of the mechanism in the model, from 0.
        mechanism: usize,
        detectors: usize,
    },
    #[error("the map of soft bytes, {0}")]
    Soft(#[from] MapError),
    #[error("detector D{detector} is tagged as a herald, but no error flips it; add its errors, or remove the tag")]
    Herald { detector: u32 },
}

/// An edge; `b` is `None` at the boundary.
#[derive(Debug, Clone, PartialEq)]
pub struct Edge {
    /// The lower detector.
    pub a: u32,
    /// The higher detector.
    pub b: Option<u32>,
    /// `|ln((1-p)/p)|`, at most 1000.
    pub weight: f64,
    /// Packed observables.
    pub observables: Vec<u64>,
}

/// The matching problem of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    /// Number of detectors.
    pub detectors: u32,
    /// Words of a syndrome.
    pub detector_words: usize,
    /// Words of the soft bytes that follow a syndrome.
    pub soft_words: usize,
    /// Words of the observables.
    pub observable_words: usize,
    /// Sorted by their ends.
    pub edges: Vec<Edge>,
    /// Detectors that the edges of negative weight flip in every shot.
    pub always_detectors: Vec<u64>,
    /// Observables that they flip.
    pub always_observables: Vec<u64>,
    /// Sum of their weights, at most 0.
    pub always_weight: f64,
    /// Heralds, which no edge has.
    pub herald_detectors: Vec<u64>,
}

/// Ends of an edge; the boundary sorts last.
type Ends = (u32, u32);
const BOUNDARY: u32 = u32::MAX;

impl Graph {
    /// The graph of `model`.
    ///
    /// # Errors
    ///
    /// If a part of a mechanism flips more than two detectors, or no mechanism flips a herald.
    pub fn new(model: &Model) -> Result<Self, GraphError> {
        let mut graph = Self {
            detectors: model.detectors,
            detector_words: model.detector_words(),
            soft_words: model.soft_words(),
            observable_words: model.observable_words(),
            edges: Vec::new(),
            always_detectors: vec![0; model.detector_words()],
            always_observables: vec![0; model.observable_words()],
            always_weight: 0.0,
            herald_detectors: vec![0; model.detector_words()],
        };
        let flipped: BTreeSet<u32> = model.errors.iter().flat_map(|error| error.effect().detectors).collect();
        for &detector in &model.heralds {
            if !flipped.contains(&detector) {
                return Err(GraphError::Herald { detector });
            }
            flip(&mut graph.herald_detectors, detector);
        }
        for ((a, b), (probability, observables)) in merged(model)? {
            graph.add(a, (b != BOUNDARY).then_some(b), probability, observables);
        }
        Ok(graph)
    }

    /// The edge of a part of a mechanism of `model`; `None` if it flips no detector.
    #[expect(clippy::cast_possible_truncation, reason = "a model has fewer than 2^24 parts")]
    pub(super) fn edge_of(&self, model: &Model, part: &Component) -> Option<u32> {
        let ends = match model.without_heralds(part)[..] {
            [a] => (a, BOUNDARY),
            [a, b] => (a, b),
            _ => return None,
        };
        // Sorted by their ends, the boundary last.
        let of = |edge: &Edge| (edge.a, edge.b.unwrap_or(BOUNDARY));
        self.edges.binary_search_by_key(&ends, of).ok().map(|index| index as u32)
    }

    fn add(&mut self, a: u32, b: Option<u32>, probability: f64, flipped: &[u32]) {
        let mut observables = vec![0; self.observable_words];
        flipped.iter().for_each(|&index| flip(&mut observables, index));
        let weight = weight_of(probability);
        if weight < 0.0 {
            flip(&mut self.always_detectors, a);
            b.into_iter().for_each(|b| flip(&mut self.always_detectors, b));
            self.always_observables.iter_mut().zip(&observables).for_each(|(word, by)| *word ^= by);
            self.always_weight += weight;
        }
        self.edges.push(Edge { a, b, weight: weight.abs(), observables });
    }
}

/// `ln((1-p)/p)`, at most 1000 either way.
pub(super) fn weight_of(probability: f64) -> f64 {
    ((1.0 - probability).ln() - probability.ln()).clamp(-WEIGHT_MAX, WEIGHT_MAX)
}

/// Merges parts with equal ends into one edge: its probability, and the observables of the first.
fn merged(model: &Model) -> Result<BTreeMap<Ends, (f64, &[u32])>, GraphError> {
    let mut edges: BTreeMap<Ends, (f64, &[u32])> = BTreeMap::new();
    for (mechanism, error) in model.errors.iter().enumerate().filter(|(_, error)| error.probability > 0.0) {
        let p = error.probability;
        for part in &error.components {
            let detectors = model.without_heralds(part);
            let ends = match detectors[..] {
                [] => continue,
                [a] => (a, BOUNDARY),
                [a, b] => (a, b),
                _ => return Err(GraphError::NotGraphLike { mechanism, detectors: detectors.len() }),
            };
            let odd = |(sum, _): &mut (f64, _)| *sum = *sum * (1.0 - p) + p * (1.0 - *sum);
            edges.entry(ends).and_modify(odd).or_insert((p, &part.observables));
        }
    }
    Ok(edges)
}

#[cfg(test)]
mod tests;
