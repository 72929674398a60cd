//! One worker's matcher.
//!
//! Owned and called by one thread; the [`MatchingModel`] is shared. All memory is allocated by
//! [`Matcher::new`] and bounded by the graph (see [`Matcher::bytes`]). Nothing panics on any shot;
//! after an error the matcher goes on with the next one.
//!
//! ```text
//!   fired detectors ─▶ defects, by part ─┬─▶ few, in a part with tables ─▶ near ─┬─▶ pairs ─▶ observables
//!                                        │                      large clusters │         └─▶ edges
//!                                        └─▶ many, or other weights ─▶ search ◀┘─▶ pairs
//! ```

use std::sync::Arc;

use crate::graph::{Adjacency, Graph, Half, NONE};
use crate::model::MatchingModel;
use crate::near::{DEFECTS_MAX, Near};
use crate::paths::Paths;
use crate::search::{Failure, Pair, Search};

/// Why a shot has no answer.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MatchError {
    /// No set of edges explains the fired detectors.
    #[error(
        "no set of edges explains detector {detector} and those connected with it; check that graph and shots belong \
         together"
    )]
    Unmatchable {
        /// A fired detector that has no partner.
        detector: u32,
    },
    /// A fired detector that the graph does not have.
    #[error("detector {detector} fired, but the graph has {detectors}; check that graph and shots belong together")]
    Detector {
        /// The detector.
        detector: u32,
        /// Number of detectors.
        detectors: u32,
    },
    /// A weight for an edge that the graph does not have.
    #[error("a weight is given for edge {edge}, but the graph has {edges} edges")]
    Edge {
        /// The edge.
        edge: u32,
        /// Number of edges.
        edges: u32,
    },
    /// A weight that is infinite or not a number.
    #[error("the weight given for edge {edge} is {weight}; give a finite one")]
    Weight {
        /// The edge.
        edge: u32,
        /// The weight.
        weight: f64,
    },
    /// The search took more steps than any shot needs.
    #[error("the search took more steps than any shot needs; report this graph and shot")]
    Declined,
}

/// An answer, beside the observables that it flipped.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Matched {
    /// Sum of the weights of the edges, in the unit of the edges' weights.
    pub weight: f64,
    /// The same in integer units; see [`MatchingModel::scale`].
    pub units: i64,
}

/// One worker's memory.
#[derive(Debug)]
pub struct Matcher {
    model: Arc<MatchingModel>,
    near: Near,
    search: Search,
    paths: Paths,
    /// The graph's half-edges, with this shot's weights.
    halves: Vec<Half>,
    /// Edges whose weights are this shot's, and for each whether its sign differs from the graph's.
    changed: Vec<u32>,
    is_changed: Vec<u64>,
    is_opposite: Vec<u64>,
    /// One bit for each detector: fired an odd number of times.
    fired: Vec<u64>,
    /// The shot's defects as nodes, by part.
    defects: Vec<u32>,
    by_part: Vec<u32>,
    /// For each part, its defects; and the parts that have any.
    part_counts: Vec<u32>,
    part_ends: Vec<u32>,
    active_parts: Vec<u32>,
    /// The answer; the first so many are of parts with tables.
    pairs: Vec<Pair>,
    near_pairs: usize,
    /// One bit for each edge; scratch.
    is_chosen: Vec<u64>,
}

impl Matcher {
    /// A matcher for `model`.
    #[must_use]
    pub fn new(model: Arc<MatchingModel>) -> Self {
        let graph = &model.graph;
        let (nodes, edges, parts) = (graph.boundary() as usize, graph.edges.len(), graph.parts.len());
        let edge_words = edges.div_ceil(64);
        Self {
            near: Near::new(),
            search: Search::new(nodes),
            paths: Paths::new(graph),
            halves: graph.halves.clone(),
            changed: Vec::with_capacity(edges),
            is_changed: vec![0; edge_words],
            is_opposite: vec![0; edge_words],
            fired: vec![0; nodes.div_ceil(64)],
            defects: Vec::with_capacity(nodes),
            by_part: vec![0; nodes],
            part_counts: vec![0; parts],
            part_ends: vec![0; parts],
            active_parts: Vec::with_capacity(parts),
            pairs: Vec::with_capacity(nodes),
            near_pairs: 0,
            is_chosen: vec![0; edge_words],
            model,
        }
    }

    /// The model.
    #[must_use]
    pub fn model(&self) -> &MatchingModel {
        &self.model
    }

    /// Bytes on the heap, without the shared model.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let words = self.changed.capacity()
            + self.defects.capacity()
            + self.by_part.capacity()
            + self.part_counts.capacity()
            + self.part_ends.capacity()
            + self.active_parts.capacity();
        let longs = self.is_changed.len() + self.is_opposite.len() + self.fired.len() + self.is_chosen.len();
        self.search.bytes()
            + self.paths.bytes()
            + self.halves.capacity() * size_of::<Half>()
            + self.pairs.capacity() * size_of::<Pair>()
            + 4 * words
            + 8 * longs
    }

    /// Matches the fired `detectors` (one that is listed twice has not fired), XORs the observables
    /// of the matching into `observables` and returns its weight. Words beyond the graph's are left
    /// as they are, and missing ones are dropped.
    ///
    /// # Errors
    ///
    /// [`MatchError`]; `observables` is then unchanged.
    pub fn decode(
        &mut self,
        detectors: impl IntoIterator<Item = u32>,
        observables: &mut [u64],
    ) -> Result<Matched, MatchError> {
        self.restore_weights();
        self.take(detectors)?;
        self.answer(observables)
    }

    /// As [`Self::decode`], with other weights for some edges in this shot: `(edge, weight)`, any
    /// finite numbers, the last one given for an edge. Weights are rounded to the graph's units,
    /// and no heavier than 2^29 of them. Searches edge by edge, so it takes as long as a shot of a
    /// part without tables, and beyond that time in proportion to the list.
    ///
    /// # Errors
    ///
    /// [`MatchError`]; `observables` is then unchanged.
    pub fn decode_weighted(
        &mut self,
        detectors: impl IntoIterator<Item = u32>,
        weights: impl IntoIterator<Item = (u32, f64)>,
        observables: &mut [u64],
    ) -> Result<Matched, MatchError> {
        self.restore_weights();
        for (edge, weight) in weights {
            self.set_weight(edge, weight)?;
        }
        self.take(detectors)?;
        self.answer(observables)
    }

    /// Hands the edges of the last answer to `take`, each once, in ascending order. After an error:
    /// of no answer in particular. Takes one search for each pair outside of the tables, and time
    /// for one bit of each edge.
    pub fn edges(&mut self, mut take: impl FnMut(u32)) {
        let Self { model, paths, halves, pairs, near_pairs, is_chosen, is_opposite, .. } = self;
        let MatchingModel { graph, tables } = &**model;
        is_chosen.copy_from_slice(is_opposite);
        for &edge in &graph.always_edges {
            flip(is_chosen, edge);
        }
        let (near, far) = pairs.split_at(*near_pairs);
        for pair in near {
            tables.path(graph, pair.a, pair.b, |half| flip(is_chosen, graph.edge_of[half as usize]));
        }
        for pair in far {
            let to = if pair.b == NONE { graph.boundary() } else { pair.b };
            paths.search(graph, halves, pair.a, to);
            paths.edges(graph, to).for_each(|edge| flip(is_chosen, edge));
        }
        for (word, &bits) in (0..).zip(is_chosen.iter()) {
            let mut bits = bits;
            while bits != 0 {
                take(word * 64 + bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
    }

    /// Gives the edges of the last shot their own weights again.
    fn restore_weights(&mut self) {
        let Self { model, halves, changed, is_changed, is_opposite, .. } = self;
        let graph = &model.graph;
        for &edge in changed.iter() {
            let weight = graph.edges[edge as usize].weight;
            set_halves(graph, halves, edge, weight);
            is_changed[edge as usize / 64] &= !(1 << (edge % 64));
            is_opposite[edge as usize / 64] &= !(1 << (edge % 64));
        }
        changed.clear();
    }

    fn set_weight(&mut self, edge: u32, weight: f64) -> Result<(), MatchError> {
        let Self { model, halves, changed, is_changed, is_opposite, .. } = self;
        let graph = &model.graph;
        let edges = graph.edges();
        if edge >= edges {
            return Err(MatchError::Edge { edge, edges });
        }
        if !weight.is_finite() {
            return Err(MatchError::Weight { edge, weight });
        }
        if is_changed[edge as usize / 64] >> (edge % 64) & 1 == 0 {
            flip(is_changed, edge);
            changed.push(edge);
        }
        let weight = graph.units(weight);
        set_halves(graph, halves, edge, weight);
        let is_opposite_now = is_opposite[edge as usize / 64] >> (edge % 64) & 1 == 1;
        if is_opposite_now != ((weight < 0) != (graph.edges[edge as usize].weight < 0)) {
            flip(is_opposite, edge);
        }
        Ok(())
    }

    /// Collects the defects: what fired, and what the edges used in advance flip.
    fn take(&mut self, detectors: impl IntoIterator<Item = u32>) -> Result<(), MatchError> {
        let Self { model, defects, fired, .. } = self;
        let graph = &model.graph;
        self.pairs.clear();
        self.near_pairs = 0;
        defects.clear();
        let count = model.detectors();
        let mut end = 0;
        let mut is_ascending = graph.always_detectors.is_empty() && self.changed.is_empty();
        for detector in detectors {
            if detector >= count {
                fired.fill(0);
                return Err(MatchError::Detector { detector, detectors: count });
            }
            is_ascending &= detector >= end;
            end = detector + 1;
            if defects.len() == defects.capacity() {
                // Listed twice, or there would not be so many.
                fold(fired, defects);
                is_ascending = false;
            }
            defects.push(detector);
        }
        if !is_ascending {
            fold(fired, defects);
            graph.always_detectors.iter().for_each(|&detector| flip(fired, detector));
            for &edge in &self.changed {
                if self.is_opposite[edge as usize / 64] >> (edge % 64) & 1 == 1 {
                    let ends = &graph.edges[edge as usize];
                    for node in [ends.a, ends.b].into_iter().filter(|&node| node != graph.boundary()) {
                        flip(fired, graph.detector_of[node as usize]);
                    }
                }
            }
            for (word, bits) in (0..).zip(fired.iter_mut()) {
                while *bits != 0 {
                    defects.push(word * 64 + bits.trailing_zeros());
                    *bits &= *bits - 1;
                }
            }
        }
        for defect in defects.iter_mut() {
            *defect = graph.node_of[*defect as usize];
        }
        Ok(())
    }

    /// Matches the defects and adds up the answer.
    fn answer(&mut self, observables: &mut [u64]) -> Result<Matched, MatchError> {
        self.sort_by_part();
        let failed = |graph: &Graph, failure| match failure {
            Failure::Unmatched(node) => {
                let detector = graph.detector_of.get(node as usize).copied().unwrap_or(NONE);
                MatchError::Unmatchable { detector }
            }
            Failure::Declined => MatchError::Declined,
        };
        let mut units = self.match_near().map_err(|failure| failed(&self.model.graph, failure))?;
        units += self.match_far().map_err(|failure| failed(&self.model.graph, failure))?;
        units += self.model.graph.always_weight;
        for &edge in &self.changed {
            let weight = self.halves_weight(edge);
            let own = self.model.graph.edges[edge as usize].weight;
            let is_opposite = self.is_opposite[edge as usize / 64] >> (edge % 64) & 1 == 1;
            let is_negative = (own < 0) != is_opposite;
            units += if is_negative { -weight } else { 0 } - own.min(0);
        }
        self.add_observables(observables);
        Ok(Matched { weight: units as f64 / self.model.graph.scale, units })
    }

    fn halves_weight(&self, edge: u32) -> i64 {
        let half = self.model.graph.edges[edge as usize].halves[0];
        i64::from(self.halves[half as usize].weight)
    }

    /// Puts the defects of each part side by side.
    fn sort_by_part(&mut self) {
        let Self { model, defects, by_part, part_counts, part_ends, active_parts, .. } = self;
        let graph = &model.graph;
        for &part in active_parts.iter() {
            part_counts[part as usize] = 0;
        }
        active_parts.clear();
        for &defect in defects.iter() {
            let part = graph.part_of[defect as usize];
            let count = &mut part_counts[part as usize];
            if *count == 0 {
                active_parts.push(part);
            }
            *count += 1;
        }
        let mut end = 0;
        for &part in active_parts.iter() {
            part_ends[part as usize] = end;
            end += part_counts[part as usize];
        }
        for &defect in defects.iter() {
            let end = &mut part_ends[graph.part_of[defect as usize] as usize];
            by_part[*end as usize] = defect;
            *end += 1;
        }
    }

    /// Whether the defects of `part` are matched on the distances between them.
    fn is_near(&self, part: u32) -> bool {
        self.changed.is_empty()
            && self.part_counts[part as usize] as usize <= DEFECTS_MAX
            && self.model.tables.covers(part)
    }

    /// Matches what is near in parts with tables and few defects, and adds all other defects to the
    /// search; returns the weight of the former.
    fn match_near(&mut self) -> Result<i64, Failure> {
        self.search.reset();
        let mut weight = 0;
        for index in 0..self.active_parts.len() {
            let part = self.active_parts[index];
            let is_near = self.is_near(part);
            let Self { model, near, search, pairs, by_part, part_counts, part_ends, .. } = self;
            let end = part_ends[part as usize] as usize;
            let defects = &by_part[end - part_counts[part as usize] as usize..end];
            if is_near {
                let leave = |defect| search.add_defect(defect);
                weight += near.matched(&model.graph, &model.tables, defects, |pair| pairs.push(pair), leave)?;
            } else {
                defects.iter().for_each(|&defect| search.add_defect(defect));
            }
        }
        self.near_pairs = self.pairs.len();
        Ok(weight)
    }

    /// Matches the defects in the search, edge by edge; returns the weight.
    fn match_far(&mut self) -> Result<i64, Failure> {
        let Self { model, search, halves, pairs, .. } = self;
        if search.is_empty() {
            return Ok(0);
        }
        let graph = &model.graph;
        let over = Adjacency {
            starts: &graph.starts,
            halves,
            twins: &graph.twins,
            observables: &graph.half_observables,
            boundary: graph.boundary(),
        };
        search.run(over)?;
        search.pairs(|pair| pairs.push(pair));
        Ok(search.weight())
    }

    /// XORs the observables of the matching, and of the edges used in advance, into `flipped`.
    fn add_observables(&mut self, flipped: &mut [u64]) {
        let Self { model, paths, halves, pairs, near_pairs, changed, is_opposite, .. } = self;
        let MatchingModel { graph, tables } = &**model;
        let (near, far) = pairs.split_at(*near_pairs);
        xor(flipped, &graph.always_observables);
        for &edge in changed.iter().filter(|&&edge| is_opposite[edge as usize / 64] >> (edge % 64) & 1 == 1) {
            xor(flipped, graph.observables_of(edge));
        }
        if graph.observable_words <= 1 {
            let mut word = 0;
            for pair in near {
                tables.path(graph, pair.a, pair.b, |half| word ^= graph.half_observables[half as usize]);
            }
            for pair in far {
                word ^= pair.observables;
            }
            xor(flipped, &[word]);
            return;
        }
        for pair in near {
            tables.path(graph, pair.a, pair.b, |half| {
                xor(flipped, graph.observables_of(graph.edge_of[half as usize]));
            });
        }
        for pair in far {
            let to = if pair.b == NONE { graph.boundary() } else { pair.b };
            paths.search(graph, halves, pair.a, to);
            paths.edges(graph, to).for_each(|edge| xor(flipped, graph.observables_of(edge)));
        }
    }
}

/// Sets the weight of both half-edges of `edge`.
fn set_halves(graph: &Graph, halves: &mut [Half], edge: u32, weight: i64) {
    let weight = weight.unsigned_abs() as u32;
    for half in graph.edges[edge as usize].halves.into_iter().filter(|&half| half != NONE) {
        halves[half as usize].weight = weight;
    }
}

fn flip(bits: &mut [u64], index: u32) {
    bits[index as usize / 64] ^= 1 << (index % 64);
}

fn xor(flipped: &mut [u64], by: &[u64]) {
    flipped.iter_mut().zip(by).for_each(|(word, by)| *word ^= by);
}

/// Moves a list of detectors to their bits.
fn fold(fired: &mut [u64], detectors: &mut Vec<u32>) {
    detectors.iter().for_each(|&detector| flip(fired, detector));
    detectors.clear();
}
