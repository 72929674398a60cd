//! Correlated matching: a second matching in which edges that fail together with those of the first
//! are lighter.
//!
//! One shared [`CorrelatedModel`]; one [`CorrelatedMatcher`] for each worker, owned and called by its
//! thread. After Fowler (arXiv:1310.0863). An error that flips the detectors of two parts of a code
//! (a `Y` of a surface code) is an edge in each; if the matching of one part has its edge, the other
//! edge is likelier than its own weight says. The second matching is exact for its weights. Bounded
//! by the model and its correlations; a shot allocates nothing.
//!
//! # Cost
//!
//! Two matchings, the edges of the first, and the weights that change. In the second only parts with
//! defects count. Where few of their edges change, its distances come from the tables, too.

use std::sync::Arc;

use crate::matcher::{MatchError, Matched, Matcher};
use crate::model::MatchingModel;

/// The weight of an edge in the second matching if the first one has another edge.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Correlation {
    /// The edge of the first matching.
    pub edge: u32,
    /// The edge whose weight it changes.
    pub other: u32,
    /// That weight, 0 or more. It counts if it is below the edge's own; of several the least counts.
    pub weight: f64,
}

/// Why correlations do not fit a graph.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum CorrelationError {
    #[error("correlation {index} names edge {edge}, but the graph has {edges} edges")]
    Edge {
        /// Index of the correlation, from 0.
        index: usize,
        edge: u32,
        edges: u32,
    },
    #[error("the weight of correlation {index} is {weight}; give a finite one, 0 or more")]
    Weight {
        /// Index of the correlation, from 0.
        index: usize,
        weight: f64,
    },
}

/// An edge and its weight in the second matching.
#[derive(Debug, Clone, Copy)]
struct Implied {
    edge: u32,
    units: u32,
}

/// A matching problem and the correlations of its edges.
#[derive(Debug)]
pub struct CorrelatedModel {
    matching: Arc<MatchingModel>,
    /// For each edge its first implied weight, and the end of the last.
    starts: Vec<u32>,
    implied: Vec<Implied>,
}

impl CorrelatedModel {
    /// `matching` with `correlations`, at most 2^32 of them.
    ///
    /// # Errors
    ///
    /// [`CorrelationError`]; it names the correlation by its index.
    pub fn new(
        matching: Arc<MatchingModel>,
        correlations: impl IntoIterator<Item = Correlation>,
    ) -> Result<Self, CorrelationError> {
        let (edges, graph) = (matching.edges(), &matching.graph);
        let mut by_edge = Vec::new();
        for (index, Correlation { edge, other, weight }) in correlations.into_iter().enumerate() {
            if let Some(edge) = [edge, other].into_iter().find(|&edge| edge >= edges) {
                return Err(CorrelationError::Edge { index, edge, edges });
            }
            if !weight.is_finite() || weight < 0.0 {
                return Err(CorrelationError::Weight { index, weight });
            }
            let units = graph.units(weight);
            if units < graph.edges[other as usize].weight {
                by_edge.push((edge, Implied { edge: other, units: units as u32 }));
            }
        }
        by_edge.sort_by_key(|&(edge, _)| edge);
        let mut starts = vec![0; edges as usize + 1];
        by_edge.iter().for_each(|&(edge, _)| starts[edge as usize + 1] += 1);
        for edge in 0..edges as usize {
            starts[edge + 1] += starts[edge];
        }
        let implied = by_edge.into_iter().map(|(_, implied)| implied).collect();
        Ok(Self { matching, starts, implied })
    }

    /// The matching problem.
    pub fn matching(&self) -> &Arc<MatchingModel> {
        &self.matching
    }

    /// Bytes on the heap, without the matching problem.
    pub const fn bytes(&self) -> usize {
        self.starts.capacity() * 4 + self.implied.capacity() * size_of::<Implied>()
    }

    fn implied_by(&self, edge: u32) -> &[Implied] {
        &self.implied[self.starts[edge as usize] as usize..self.starts[edge as usize + 1] as usize]
    }
}

/// One worker's memory.
#[derive(Debug)]
pub struct CorrelatedMatcher {
    model: Arc<CorrelatedModel>,
    matcher: Matcher,
    /// The edges of the first matching.
    chosen: Vec<u32>,
}

impl CorrelatedMatcher {
    /// A matcher for `model`.
    pub fn new(model: Arc<CorrelatedModel>) -> Self {
        let matcher = Matcher::new(Arc::clone(&model.matching));
        let chosen = Vec::with_capacity(model.matching.edges() as usize);
        Self { model, matcher, chosen }
    }

    /// The model.
    pub fn model(&self) -> &CorrelatedModel {
        &self.model
    }

    /// Bytes on the heap, without the shared model.
    pub fn bytes(&self) -> usize {
        self.matcher.bytes() + self.chosen.capacity() * 4
    }

    /// Matches the fired `detectors` twice, XORs the observables of the second matching into
    /// `observables` and returns its weight, which is the sum of the weights that its edges have in
    /// it. As [`Matcher::decode`] otherwise.
    ///
    /// # Errors
    ///
    /// [`MatchError`]; `observables` is then unchanged.
    pub fn decode(
        &mut self,
        detectors: impl IntoIterator<Item = u32>,
        observables: &mut [u64],
    ) -> Result<Matched, MatchError> {
        let Self { model, matcher, chosen } = self;
        matcher.restore_weights();
        matcher.take(detectors)?;
        let mut matched = matcher.match_all()?;
        chosen.clear();
        matcher.edges(|edge| chosen.push(edge));
        let mut has_changed = false;
        for implied in chosen.iter().flat_map(|&edge| model.implied_by(edge)) {
            // Where there is no defect, lighter edges change nothing.
            if matcher.has_defects_around(implied.edge) && implied.units < matcher.units(implied.edge) {
                matcher.set_units(implied.edge, i64::from(implied.units));
                has_changed = true;
            }
        }
        if has_changed {
            matched = matcher.match_all()?;
        }
        matcher.add_observables(observables);
        Ok(matched)
    }

    /// Hands the edges of the second matching to `take`; see [`Matcher::edges`].
    pub fn edges(&mut self, take: impl FnMut(u32)) {
        self.matcher.edges(take);
    }
}
