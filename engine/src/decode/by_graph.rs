//! The decoders of one graph: sparse blossom (exact minimum-weight perfect matching), in one pass or in
//! two, union-find, and a look-up table.
//!
//! One shared [`GraphModel`] per graph; one [`GraphMatcher`] with its own memory per worker thread. All
//! memory is allocated when they are built; a shot allocates nothing. Windows decode their graphs by
//! them, too.
//!
//! # Other bits as observables
//!
//! To a decoder an observable is any bit that edges flip. Windows add bits for the detectors at which
//! their commits end (see [`window`](super::window)), so no edges are listed. One decode carries any
//! number of bits; up to 64 of them cost least.

use std::collections::BTreeMap;
use std::sync::Arc;

use pinwheel_matching::{
    Class, Confidence, ConfidenceModel, CorrelatedMatcher, CorrelatedModel, Correlation, Edge, LOOKUP_BYTES_MAX,
    Lookup, LookupError, LookupModel, MatchError, Matched, Matcher as PlainMatcher, MatchingModel, UnionFind,
};

use super::{DecodeError, Decoded, Matcher};
use crate::code::graph::Graph;
use crate::code::heralds::{Heralds, SharedEdge};
use crate::code::soft_edges::SoftEdges;
use crate::code::{bit, correlations, ones, ones_of};

/// Weights of edges by herald.
struct HeraldWeights {
    /// Packed detectors that are heralds.
    heralds: Box<[u64]>,
    /// For each detector the first of its weights, and the end of the last; heralds have some.
    starts: Box<[u32]>,
    /// Edges with their weights.
    weights: Box<[(u32, f64)]>,
    /// The same for edges that several heralds are about.
    shared_starts: Box<[u32]>,
    shared_of: Box<[u32]>,
    /// These edges.
    shared: Box<[SharedEdge]>,
}

impl HeraldWeights {
    fn new(graph: &Graph, heralds: &Heralds) -> Self {
        let mut by_herald: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (index, edge) in (0..).zip(&heralds.shared) {
            edge.heralds().for_each(|herald| by_herald.entry(herald).or_default().push(index));
        }
        let (mut starts, mut weights) = (Vec::with_capacity(graph.detectors as usize + 1), Vec::new());
        let (mut shared_starts, mut shared_of) = (Vec::with_capacity(graph.detectors as usize + 1), Vec::new());
        let mut each = heralds.heralds.iter().peekable();
        for detector in 0..=graph.detectors {
            starts.push(weights.len() as u32);
            shared_starts.push(shared_of.len() as u32);
            if let Some(herald) = each.next_if(|herald| herald.detector == detector) {
                weights.extend_from_slice(&herald.edges);
                shared_of.extend(by_herald.get(&detector).into_iter().flatten());
            }
        }
        Self {
            heralds: graph.herald_detectors.clone().into(),
            starts: starts.into(),
            weights: weights.into(),
            shared_starts: shared_starts.into(),
            shared_of: shared_of.into(),
            shared: heralds.shared.clone().into(),
        }
    }

    /// The edges whose weights a shot with this syndrome changes, and these weights; the last one of an edge counts.
    fn of_shot<'a>(&'a self, syndrome: &'a [u64]) -> impl Iterator<Item = (u32, f64)> + 'a {
        let fired = |heralds: &'a [u64]| {
            let words = (0..).zip(syndrome.iter().zip(heralds));
            words.flat_map(|(at, (given, heralds))| ones_of(given & heralds).map(move |bit| at * 64 + bit))
        };
        let range =
            |starts: &[u32], herald: u32| starts[herald as usize] as usize..starts[herald as usize + 1] as usize;
        let alone = fired(&self.heralds).flat_map(move |herald| &self.weights[range(&self.starts, herald)]).copied();
        let sharing = if self.shared.is_empty() { &[][..] } else { &self.heralds };
        let shared = fired(sharing).flat_map(move |herald| &self.shared_of[range(&self.shared_starts, herald)]);
        let together = shared.filter_map(|index| {
            let edge = &self.shared[*index as usize];
            edge.weight(syndrome).map(|weight| (edge.edge, weight))
        });
        alone.chain(together)
    }

    /// Bytes on the heap.
    fn heap_bytes(&self) -> usize {
        let of_shared = self.shared.iter().map(SharedEdge::heap_bytes).sum::<usize>();
        8 * self.heralds.len()
            + 4 * (self.starts.len() + self.shared_starts.len() + self.shared_of.len())
            + size_of_val(&*self.weights)
            + size_of_val(&*self.shared)
            + of_shared
    }
}

/// How a graph is decoded, with what workers share for it.
#[derive(Clone)]
enum Prepared {
    Plain,
    Heralded(Arc<HeraldWeights>),
    Soft(Arc<SoftEdges>),
    Correlated(Arc<CorrelatedModel>),
    UnionFind,
    Lookup(Arc<LookupModel>),
}

/// A graph prepared for decoding.
#[derive(Clone)]
pub(super) struct GraphModel {
    matching: Arc<MatchingModel>,
    prepared: Prepared,
    /// The classes of each observable, if gaps are asked for.
    confidence: Vec<Arc<ConfidenceModel>>,
    detector_words: usize,
    /// Words of the soft bytes that follow a syndrome.
    soft_words: usize,
    observable_words: usize,
    always_detectors: Vec<u64>,
    always_observables: Vec<u64>,
    always_weight: f64,
    herald_detectors: Vec<u64>,
}

impl GraphModel {
    /// # Panics
    ///
    /// If `graph` has an edge that is none: a loop, an end past the detectors, a weight that is not
    /// finite. A [`Graph`] has none.
    pub(super) fn new(graph: &Graph) -> Self {
        let matching = MatchingModel::new(graph.detectors, graph.observable_words, edges(graph));
        Self {
            matching: Arc::new(matching.expect("a graph's edges join its own detectors")),
            prepared: Prepared::Plain,
            confidence: Vec::new(),
            detector_words: graph.detector_words,
            soft_words: graph.soft_words,
            observable_words: graph.observable_words,
            always_detectors: graph.always_detectors.clone(),
            always_observables: graph.always_observables.clone(),
            always_weight: graph.always_weight,
            herald_detectors: graph.herald_detectors.clone(),
        }
    }

    /// As [`Self::new`], for matching with the weights of each shot's heralds.
    ///
    /// # Panics
    ///
    /// As [`Self::new`]; if `heralds` are those of another graph.
    pub(super) fn heralded(graph: &Graph, heralds: &Heralds) -> Self {
        let prepared = Prepared::Heralded(Arc::new(HeraldWeights::new(graph, heralds)));
        Self::weighted(graph, &heralds.weights, prepared)
    }

    /// As [`Self::new`], for matching with the weights of each shot's soft bytes.
    ///
    /// # Panics
    ///
    /// As [`Self::new`]; if `soft` has the edges of another graph.
    pub(super) fn soft(graph: &Graph, soft: SoftEdges) -> Self {
        let soft = Arc::new(soft);
        Self::weighted(graph, &soft.base, Prepared::Soft(Arc::clone(&soft)))
    }

    /// For matching with other weights than the graph's, signed, some of which each shot changes.
    fn weighted(graph: &Graph, weights: &[f64], prepared: Prepared) -> Self {
        // Signed weights: the matcher itself uses edges of negative weight in advance.
        let edges = edges(graph).zip(weights).map(|(edge, &weight)| Edge { weight, ..edge });
        let matching = MatchingModel::new(graph.detectors, graph.observable_words, edges);
        Self {
            matching: Arc::new(matching.expect("a graph's edges join its own detectors")),
            prepared,
            detector_words: graph.detector_words,
            soft_words: graph.soft_words,
            observable_words: graph.observable_words,
            always_detectors: vec![0; graph.detector_words],
            always_observables: vec![0; graph.observable_words],
            always_weight: 0.0,
            herald_detectors: graph.herald_detectors.clone(),
            confidence: Vec::new(),
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
        Self { prepared: Prepared::Correlated(correlated), ..plain }
    }

    /// As [`Self::new`], for union-find.
    ///
    /// # Panics
    ///
    /// As [`Self::new`].
    pub(super) fn union_find(graph: &Graph) -> Self {
        Self { prepared: Prepared::UnionFind, ..Self::new(graph) }
    }

    /// As [`Self::new`], for a look-up table, which is built here.
    ///
    /// # Errors
    ///
    /// [`LookupError`], if the table is too large.
    ///
    /// # Panics
    ///
    /// As [`Self::new`].
    pub(super) fn lookup(graph: &Graph) -> Result<Self, LookupError> {
        let plain = Self::new(graph);
        let table = LookupModel::new(Arc::clone(&plain.matching), LOOKUP_BYTES_MAX)?;
        Ok(Self { prepared: Prepared::Lookup(Arc::new(table)), ..plain })
    }

    /// The same, prepared for gaps.
    ///
    /// # Errors
    ///
    /// One sentence, if a cycle away from the boundary flips an observable, or the model has heralds.
    pub(super) fn with_confidence(&self, graph: &Graph) -> Result<Self, String> {
        if graph.herald_detectors.iter().any(|word| *word != 0) {
            return Err(
                "found a model with heralds, expected one without: the gap has the weights of all shots".to_owned()
            );
        }
        let flipped = |observable: u32| {
            let word = observable as usize / 64;
            graph.edges.iter().any(|edge| edge.observables[word] >> (observable % 64) & 1 == 1)
        };
        let observables = (0..64 * graph.observable_words as u32).filter(|observable| flipped(*observable));
        let of = |observable| ConfidenceModel::new(graph.detectors, edges(graph), observable).map(Arc::new);
        let confidence = observables.map(of).collect::<Result<_, _>>().map_err(|error| error.to_string())?;
        Ok(Self { confidence, ..self.clone() })
    }

    /// The decoder's name in reports.
    pub(super) const fn name(&self) -> &'static str {
        match self.prepared {
            Prepared::Plain => "sparse-blossom",
            Prepared::Heralded(_) => "sparse-blossom with heralds",
            Prepared::Soft(_) => "sparse-blossom with soft bytes",
            Prepared::Correlated(_) => "correlated sparse-blossom",
            Prepared::UnionFind => "union-find",
            Prepared::Lookup(_) => "lookup",
        }
    }

    /// Bytes on the heap.
    pub(super) fn bytes(&self) -> usize {
        let more = match &self.prepared {
            Prepared::Plain | Prepared::UnionFind => 0,
            Prepared::Heralded(heralds) => heralds.heap_bytes(),
            Prepared::Soft(soft) => soft.heap_bytes(),
            Prepared::Correlated(correlated) => correlated.bytes(),
            Prepared::Lookup(table) => table.bytes(),
        };
        let confidence: usize = self.confidence.iter().map(|of| of.bytes()).sum();
        self.matching.bytes() + more + confidence
    }

    /// 64-bit words flipped by a matching.
    pub(super) fn observable_words(&self) -> usize {
        self.observable_words
    }
}

/// The edges of `graph` as the decoders take them.
pub(super) fn edges(graph: &Graph) -> impl Iterator<Item = Edge<'_>> {
    let edges = graph.edges.iter();
    edges.map(|edge| Edge { a: edge.a, b: edge.b, weight: edge.weight, observables: &edge.observables })
}

/// Memory of one worker.
enum Decoder {
    Plain(PlainMatcher),
    Heralded(PlainMatcher, Arc<HeraldWeights>),
    Soft(PlainMatcher, Arc<SoftEdges>),
    Correlated(CorrelatedMatcher),
    UnionFind(UnionFind),
    Lookup(Lookup),
}

impl Decoder {
    /// The shot has the heralds of `syndrome` beside `defects`, and these soft bytes.
    fn decode(
        &mut self,
        defects: impl Iterator<Item = u32>,
        syndrome: &[u64],
        soft: &[u64],
        observables: &mut [u64],
    ) -> Result<Matched, DecodeError> {
        let matched = match self {
            Self::Plain(matcher) => matcher.decode(defects, observables),
            Self::Heralded(matcher, by) => matcher.decode_weighted(defects, by.of_shot(syndrome), observables),
            Self::Soft(matcher, edges) => matcher.decode_weighted(defects, edges.weights(soft), observables),
            Self::Correlated(matcher) => matcher.decode(defects, observables),
            Self::UnionFind(decoder) => decoder.decode(defects, observables),
            Self::Lookup(decoder) => decoder.decode(defects, observables),
        };
        matched.map_err(reason)
    }
}

/// One worker's matcher.
pub(super) struct GraphMatcher {
    model: Arc<GraphModel>,
    decoder: Decoder,
    /// For each observable, if gaps are asked for.
    confidence: Vec<(u32, Confidence)>,
    /// The syndrome, XORed with the detectors that negative weights always flip.
    syndrome: Vec<u64>,
}

impl GraphMatcher {
    pub(super) fn new(model: Arc<GraphModel>) -> Self {
        let matching = Arc::clone(&model.matching);
        let decoder = match model.prepared.clone() {
            Prepared::Plain => Decoder::Plain(PlainMatcher::new(matching)),
            Prepared::Heralded(heralds) => Decoder::Heralded(PlainMatcher::new(matching), heralds),
            Prepared::Soft(soft) => Decoder::Soft(PlainMatcher::new(matching), soft),
            Prepared::Correlated(correlated) => Decoder::Correlated(CorrelatedMatcher::new(correlated)),
            Prepared::UnionFind => Decoder::UnionFind(UnionFind::new(matching)),
            Prepared::Lookup(table) => Decoder::Lookup(Lookup::new(table)),
        };
        let syndrome = vec![0; model.detector_words];
        let confidence = model.confidence.iter().map(|of| (of.observable(), Confidence::new(Arc::clone(of)))).collect();
        Self { model, decoder, confidence, syndrome }
    }

    /// Decodes `defects`, XORs the observables of the edges that explain them into `observables`, returns the weight.
    ///
    /// # Errors
    ///
    /// [`DecodeError`]; `observables` is then unchanged.
    pub(super) fn matched(
        &mut self,
        defects: impl Iterator<Item = u32>,
        observables: &mut [u64],
    ) -> Result<f64, DecodeError> {
        Ok(self.decoder.decode(defects, &[], &[], observables)?.weight)
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
        self.decoder.decode(defects, &[], &[], &mut [])?;
        match &mut self.decoder {
            Decoder::Plain(matcher) | Decoder::Heralded(matcher, _) | Decoder::Soft(matcher, _) => {
                matcher.edges(|edge| edges.push(edge));
            }
            Decoder::Correlated(matcher) => matcher.edges(|edge| edges.push(edge)),
            Decoder::UnionFind(decoder) => decoder.edges(|edge| edges.push(edge)),
            Decoder::Lookup(_) => unreachable!("a table has no edges"),
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

/// The weight of the best explanation with other observables less that of the best with those that were
/// answered: the least over the observables, of which at least one is another. `least`: the weight with
/// the answered ones, if it is known.
fn gap(
    confidence: &mut [(u32, Confidence)],
    syndrome: &[u64],
    is_flipped: impl Fn(u32) -> bool,
    least: Option<f64>,
) -> Option<f64> {
    let mut found: Option<f64> = None;
    for (observable, of) in confidence {
        let (own, other) =
            if is_flipped(*observable) { (Class::Flipped, Class::Kept) } else { (Class::Kept, Class::Flipped) };
        let mut weight = |class| match of.weight(ones(syndrome), class) {
            Ok(matched) => Some(matched.weight),
            // Nothing explains the shot with that observable.
            Err(MatchError::Unmatchable { .. }) => Some(f64::INFINITY),
            Err(_) => None,
        };
        let own = match least {
            Some(least) => least,
            None => weight(own)?,
        };
        let gap = weight(other)? - own;
        found = Some(found.map_or(gap, |least| least.min(gap)));
    }
    found
}

impl Matcher for GraphMatcher {
    fn decode(&mut self, syndrome: &[u64], observables: &mut [u64]) -> Result<Decoded, DecodeError> {
        let Self { model, decoder, confidence, syndrome: flipped } = self;
        assert_eq!(
            syndrome.len(),
            model.detector_words + model.soft_words,
            "the syndrome must be as wide as the model"
        );
        let (syndrome, soft) = syndrome.split_at(model.detector_words);
        assert_eq!(observables.len(), model.observable_words, "observables must be as wide as the model");
        let of_model = model.always_detectors.iter().zip(&model.herald_detectors);
        for ((word, given), (always, heralds)) in flipped.iter_mut().zip(syndrome).zip(of_model) {
            *word = (given ^ always) & !heralds;
        }
        observables.copy_from_slice(&model.always_observables);
        let matched = decoder.decode(ones(flipped), syndrome, soft, observables);
        let weight = matched.inspect_err(|_| observables.fill(0))?.weight;
        // Of an exact matching the weight is that of the best explanation with its observables.
        let least = matches!(decoder, Decoder::Plain(_)).then_some(weight);
        let is_flipped = |observable: u32| bit(observables, observable) != bit(&model.always_observables, observable);
        let gap = gap(confidence, flipped, is_flipped, least);
        Ok(Decoded { weight: Some(weight + model.always_weight), gap })
    }

    fn bytes(&self) -> usize {
        let decoder = match &self.decoder {
            Decoder::Plain(matcher) | Decoder::Heralded(matcher, _) | Decoder::Soft(matcher, _) => matcher.bytes(),
            Decoder::Correlated(matcher) => matcher.bytes(),
            Decoder::UnionFind(decoder) => decoder.bytes(),
            Decoder::Lookup(decoder) => decoder.bytes(),
        };
        let confidence: usize = self.confidence.iter().map(|(_, of)| of.bytes()).sum();
        decoder + confidence + 8 * self.syndrome.capacity()
    }
}
