//! The matcher: `stabilizer_qec`'s sparse blossom, exact minimum-weight perfect matching.
//!
//! Only this file names that crate. One shared [`SparseModel`] per model; one [`SparseMatcher`]
//! with its own scratch per worker thread.
//!
//! # Where it still allocates
//!
//! The scratch grows to the largest shot seen and then stays. After that only the library's
//! `shatter` allocates: it copies a blossom's cycle into short-lived vectors each time a blossom
//! shatters: about 1 allocation in 370 shots at d = 5 and 1 in 17 at d = 9 (surface code, p =
//! 0.005). Callers cannot avoid it, so the library allocates from the thread's own reserve: see
//! [`memory::lend`].
//!
//! # Why one graph per 64 observables
//!
//! The library carries 64 observables along an edge. The matching does not depend on them, so the
//! same search over a graph with the next 64 finds the same matching and yields their bits. Models
//! of up to 64 observables need one search.
//!
//! # Other bits as observables
//!
//! To the library an observable is any bit that edges flip. Windows add bits for the detectors at
//! which their commits end (see [`window`](super::window)), so the search need not list edges.

use std::sync::Arc;

use stabilizer_qec::dem_decoder::{DecodeError as LibraryError, int_weight};
use stabilizer_qec::sparse::{Scratch, SparseGraph};

use super::{DecodeError, Decoded, Matcher};
use crate::code::graph::Graph;
use crate::code::ones;
use crate::hot::memory;

/// The matcher's name in reports.
pub(super) const NAME: &str = "sparse-blossom";

/// The graphs of one model.
pub(super) struct SparseModel {
    /// One per 64 observables, at least one.
    graphs: Vec<SparseGraph>,
    detectors: u32,
    detector_words: usize,
    observable_words: usize,
    always_detectors: Vec<u64>,
    always_observables: Vec<u64>,
    always_weight: f64,
}

impl SparseModel {
    pub(super) fn new(graph: &Graph) -> Self {
        let library_graph = |word: usize| {
            let edges = graph.edges.iter().map(|edge| {
                let observables = edge.observables.get(word).copied().unwrap_or(0);
                (edge.a, edge.b.unwrap_or(graph.detectors), edge.weight, int_weight(edge.weight), observables)
            });
            SparseGraph::from_weighted(graph.detectors as usize, &edges.collect::<Vec<_>>())
        };
        Self {
            graphs: (0..graph.observable_words.max(1)).map(library_graph).collect(),
            detectors: graph.detectors,
            detector_words: graph.detector_words,
            observable_words: graph.observable_words,
            always_detectors: graph.always_detectors.clone(),
            always_observables: graph.always_observables.clone(),
            always_weight: graph.always_weight,
        }
    }
}

impl SparseModel {
    /// 64-bit words flipped by a matching.
    pub(super) fn observable_words(&self) -> usize {
        self.observable_words
    }
}

/// One worker's matcher.
pub(super) struct SparseMatcher {
    model: Arc<SparseModel>,
    scratch: Vec<Scratch>,
    /// The syndrome, XORed with the detectors that negative weights always flip, and its set bits.
    syndrome: Vec<u64>,
    defects: Vec<u32>,
}

impl SparseMatcher {
    pub(super) fn new(model: Arc<SparseModel>) -> Self {
        let scratch = model.graphs.iter().map(Scratch::new).collect();
        let defects = Vec::with_capacity(model.detectors as usize);
        let syndrome = vec![0; model.detector_words];
        Self { model, scratch, syndrome, defects }
    }
}

impl SparseMatcher {
    /// Matches `defects`, XORs the matching's observables into `observables`, returns the weight.
    ///
    /// # Errors
    ///
    /// [`DecodeError`]; `observables` is then undefined.
    pub(super) fn matched(
        &mut self,
        defects: impl Iterator<Item = u32>,
        observables: &mut [u64],
    ) -> Result<f64, DecodeError> {
        self.take(defects);
        let mut weight = 0.0;
        if !self.defects.is_empty() {
            for (word, (graph, scratch)) in self.model.graphs.iter().zip(&mut self.scratch).enumerate() {
                let found = memory::lend(|| graph.decode(scratch, &self.defects)).map_err(reason)?;
                weight = found.weight;
                if let Some(flipped) = observables.get_mut(word) {
                    *flipped ^= found.observables;
                }
            }
        }
        Ok(weight)
    }

    /// Writes the edges of the matching of `defects` to `edges`, as indices into [`Graph::edges`].
    /// Takes one more search for each matched pair and picks one of several shortest paths. For
    /// tests of commits.
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
        self.take(defects);
        edges.clear();
        if self.defects.is_empty() {
            return Ok(());
        }
        memory::lend(|| {
            let found = self.model.graphs[0].decode_edge_ids(&mut self.scratch[0], &self.defects).map_err(reason)?;
            edges.extend_from_slice(&found);
            Ok(())
        })
    }

    /// Collects `defects` in ascending order, which the library requires.
    fn take(&mut self, defects: impl Iterator<Item = u32>) {
        self.defects.clear();
        self.defects.extend(defects);
        if !self.defects.is_sorted() {
            self.defects.sort_unstable();
        }
    }
}

const fn reason(error: LibraryError) -> DecodeError {
    match error {
        LibraryError::Unmatchable => DecodeError::Unmatchable,
        LibraryError::MatcherDeclined | LibraryError::TooManyDefects(_) => DecodeError::Declined,
    }
}

impl Matcher for SparseMatcher {
    fn decode(&mut self, syndrome: &[u64], observables: &mut [u64]) -> Result<Decoded, DecodeError> {
        let model = Arc::clone(&self.model);
        assert_eq!(syndrome.len(), model.detector_words, "the syndrome must be as wide as the model");
        assert_eq!(observables.len(), model.observable_words, "observables must be as wide as the model");
        let mut flipped = std::mem::take(&mut self.syndrome);
        for ((word, given), always) in flipped.iter_mut().zip(syndrome).zip(&model.always_detectors) {
            *word = given ^ always;
        }
        observables.copy_from_slice(&model.always_observables);
        let matched = self.matched(ones(&flipped), observables);
        self.syndrome = flipped;
        let weight = matched.inspect_err(|_| observables.fill(0))?;
        Ok(Decoded { weight: Some(weight + model.always_weight) })
    }

    fn name(&self) -> &'static str {
        NAME
    }
}
