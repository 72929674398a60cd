//! The matcher for whole graphs: sparse blossom, exact minimum-weight perfect matching.
//!
//! One shared [`SparseModel`] per graph; one
//! [`SparseMatcher`] with its own memory per worker thread. All memory is allocated when they are
//! built; a shot allocates nothing.
//!
//! # Other bits as observables
//!
//! To the matching an observable is any bit that edges flip. Windows add bits for the detectors at
//! which their commits end (see [`window`](super::window)), so the search need not list edges. One
//! search carries any number of bits; up to 64 of them cost least.

use std::sync::Arc;

use pinwheel_matching::{
    CorrelatedMatcher, CorrelatedModel, Correlation, Edge, MatchError, Matched, Matcher as PlainMatcher, MatchingModel,
};

use super::{DecodeError, Decoded, Matcher};
use crate::code::graph::Graph;
use crate::code::{correlations, ones};

/// The matchers' names in reports.
const NAME: &str = "sparse-blossom";
const NAME_CORRELATED: &str = "correlated sparse-blossom";

/// A graph prepared for matching.
pub(super) struct SparseModel {
    matching: Arc<MatchingModel>,
    /// For matching in two passes.
    correlated: Option<Arc<CorrelatedModel>>,
    detector_words: usize,
    observable_words: usize,
    always_detectors: Vec<u64>,
    always_observables: Vec<u64>,
    always_weight: f64,
}

impl SparseModel {
    /// # Panics
    ///
    /// If `graph` has an edge that is none: a loop, an end past the detectors, a weight that is not
    /// finite. A [`Graph`] has none.
    pub(super) fn new(graph: &Graph) -> Self {
        let edges = graph.edges.iter().map(|edge| Edge {
            a: edge.a,
            b: edge.b,
            weight: edge.weight,
            observables: &edge.observables,
        });
        let matching = MatchingModel::new(graph.detectors, graph.observable_words, edges);
        Self {
            matching: Arc::new(matching.expect("a graph's edges join its own detectors")),
            correlated: None,
            detector_words: graph.detector_words,
            observable_words: graph.observable_words,
            always_detectors: graph.always_detectors.clone(),
            always_observables: graph.always_observables.clone(),
            always_weight: graph.always_weight,
        }
    }

    /// As [`Self::new`], for matching in two passes.
    ///
    /// # Panics
    ///
    /// As [`Self::new`]; if `correlations` are those of another graph.
    pub(super) fn correlated(graph: &Graph, correlations: &[correlations::Correlation]) -> Self {
        let plain = Self::new(graph);
        let each = correlations.iter().map(|by| Correlation { edge: by.edge, other: by.other, weight: by.weight });
        let correlated = CorrelatedModel::new(Arc::clone(&plain.matching), each);
        let correlated = Arc::new(correlated.expect("correlations name edges of their graph"));
        Self { correlated: Some(correlated), ..plain }
    }

    /// The matcher's name in reports.
    pub(super) const fn name(&self) -> &'static str {
        if self.correlated.is_some() { NAME_CORRELATED } else { NAME }
    }

    /// Bytes on the heap.
    pub(super) fn bytes(&self) -> usize {
        self.matching.bytes() + self.correlated.as_ref().map_or(0, |correlated| correlated.bytes())
    }

    /// 64-bit words flipped by a matching.
    pub(super) fn observable_words(&self) -> usize {
        self.observable_words
    }
}

/// Memory of one worker, for one pass or for two.
enum Matching {
    Plain(PlainMatcher),
    Correlated(CorrelatedMatcher),
}

impl Matching {
    fn decode(&mut self, defects: impl Iterator<Item = u32>, observables: &mut [u64]) -> Result<Matched, DecodeError> {
        let matched = match self {
            Self::Plain(matcher) => matcher.decode(defects, observables),
            Self::Correlated(matcher) => matcher.decode(defects, observables),
        };
        matched.map_err(reason)
    }
}

/// One worker's matcher.
pub(super) struct SparseMatcher {
    model: Arc<SparseModel>,
    matching: Matching,
    /// The syndrome, XORed with the detectors that negative weights always flip.
    syndrome: Vec<u64>,
}

impl SparseMatcher {
    pub(super) fn new(model: Arc<SparseModel>) -> Self {
        let matching = match &model.correlated {
            Some(correlated) => Matching::Correlated(CorrelatedMatcher::new(Arc::clone(correlated))),
            None => Matching::Plain(PlainMatcher::new(Arc::clone(&model.matching))),
        };
        let syndrome = vec![0; model.detector_words];
        Self { model, matching, syndrome }
    }

    /// Matches `defects`, XORs the matching's observables into `observables`, returns the weight.
    ///
    /// # Errors
    ///
    /// [`DecodeError`]; `observables` is then unchanged.
    pub(super) fn matched(
        &mut self,
        defects: impl Iterator<Item = u32>,
        observables: &mut [u64],
    ) -> Result<f64, DecodeError> {
        Ok(self.matching.decode(defects, observables)?.weight)
    }

    /// Writes the edges of the matching of `defects` to `edges`, as indices into [`Graph::edges`].
    /// Picks one of several shortest paths. For tests of commits.
    ///
    /// # Errors
    ///
    /// [`DecodeError`]; `edges` is then empty.
    #[cfg(test)]
    pub(super) fn edges(
        &mut self,
        defects: impl Iterator<Item = u32>,
        edges: &mut Vec<u32>,
    ) -> Result<(), DecodeError> {
        edges.clear();
        self.matching.decode(defects, &mut [])?;
        match &mut self.matching {
            Matching::Plain(matcher) => matcher.edges(|edge| edges.push(edge)),
            Matching::Correlated(matcher) => matcher.edges(|edge| edges.push(edge)),
        }
        Ok(())
    }
}

pub(super) const fn reason(error: MatchError) -> DecodeError {
    match error {
        MatchError::Declined => DecodeError::Declined,
        _ => DecodeError::Unmatchable,
    }
}

impl Matcher for SparseMatcher {
    fn decode(&mut self, syndrome: &[u64], observables: &mut [u64]) -> Result<Decoded, DecodeError> {
        let Self { model, matching, syndrome: flipped } = self;
        assert_eq!(syndrome.len(), model.detector_words, "the syndrome must be as wide as the model");
        assert_eq!(observables.len(), model.observable_words, "observables must be as wide as the model");
        for ((word, given), always) in flipped.iter_mut().zip(syndrome).zip(&model.always_detectors) {
            *word = given ^ always;
        }
        observables.copy_from_slice(&model.always_observables);
        let matched = matching.decode(ones(flipped), observables);
        let weight = matched.inspect_err(|_| observables.fill(0))?.weight;
        Ok(Decoded { weight: Some(weight + model.always_weight) })
    }

    fn bytes(&self) -> usize {
        let matching = match &self.matching {
            Matching::Plain(matcher) => matcher.bytes(),
            Matching::Correlated(matcher) => matcher.bytes(),
        };
        matching + 8 * self.syndrome.capacity()
    }

    fn name(&self) -> &'static str {
        self.model.name()
    }
}
