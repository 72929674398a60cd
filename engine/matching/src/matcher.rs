//! One worker's matcher.
//!
//! Owned and called by one thread; the [`MatchingModel`] is shared. All memory is allocated by
//! [`Matcher::new`] and bounded by the graph (see [`Matcher::bytes`]). Nothing panics on any shot;
//! after an error the matcher goes on with the next one.
//!
//! ```text
//!   fired detectors ─▶ defects, by part ─┬─▶ few, in a part with tables ─▶ near ─┬─▶ pairs ─▶ observables
//!                                        │                      large clusters │         └─▶ edges
//!                                        └─▶ many, or heavier edges ─▶ search ◀┘─▶ pairs
//! ```

use std::sync::Arc;

use crate::bits::{flip, ones, xor};
use crate::defects::Defects;
use crate::graph::{Adjacency, Graph, NONE};
use crate::model::MatchingModel;
use crate::near::Near;
use crate::paths::Paths;
use crate::search::{Failure, Pair, Search};
use crate::shortcuts::{DEFECTS_MAX, Distances, NearPair, Shortcuts};
use crate::table::Tables;
use crate::weights::Weights;

/// Why a shot has no answer.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum MatchError {
    #[error(
        "no set of edges explains detector {detector} and those connected with it; check that graph and shots belong \
         together"
    )]
    Unmatchable { detector: u32 },
    #[error("detector {detector} fired, but the graph has {detectors}; check that graph and shots belong together")]
    Detector { detector: u32, detectors: u32 },
    #[error("a weight is given for edge {edge}, but the graph has {edges} edges")]
    Edge { edge: u32, edges: u32 },
    #[error("the weight given for edge {edge} is {weight}; give a finite one")]
    Weight { edge: u32, weight: f64 },
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
    shortcuts: Shortcuts,
    search: Search,
    paths: Paths,
    weights: Weights,
    defects: Defects,
    /// The shot's defects by part.
    by_part: Vec<u32>,
    /// For each part, its defects; and the parts that have any.
    part_counts: Vec<u32>,
    part_ends: Vec<u32>,
    active_parts: Vec<u32>,
    /// The answer: what was matched on the tables, and what by the search.
    near_pairs: Vec<NearPair>,
    far_pairs: Vec<Pair>,
    /// Observables of the pairs that take lighter edges, if they fit one word.
    shortened_word: u64,
    /// One bit for each edge; scratch.
    is_chosen: Vec<u64>,
}

impl Matcher {
    /// A matcher for `model`.
    pub fn new(model: Arc<MatchingModel>) -> Self {
        let graph = &model.graph;
        let (nodes, parts) = (graph.boundary() as usize, graph.parts.len());
        Self {
            near: Near::new(),
            shortcuts: Shortcuts::new(),
            search: Search::new(nodes),
            paths: Paths::new(graph),
            weights: Weights::new(graph),
            defects: Defects::new(nodes),
            by_part: vec![0; nodes],
            part_counts: vec![0; parts],
            part_ends: vec![0; parts],
            active_parts: Vec::with_capacity(parts),
            near_pairs: Vec::with_capacity(nodes),
            far_pairs: Vec::with_capacity(nodes),
            shortened_word: 0,
            is_chosen: vec![0; graph.edges.len().div_ceil(64)],
            model,
        }
    }

    /// The model.
    pub fn model(&self) -> &MatchingModel {
        &self.model
    }

    /// Bytes on the heap, without the shared model.
    pub fn bytes(&self) -> usize {
        let words = self.by_part.capacity()
            + self.part_counts.capacity()
            + self.part_ends.capacity()
            + self.active_parts.capacity();
        self.defects.bytes()
            + self.search.bytes()
            + self.paths.bytes()
            + self.weights.bytes()
            + self.near_pairs.capacity() * size_of::<NearPair>()
            + self.far_pairs.capacity() * size_of::<Pair>()
            + 4 * words
            + 8 * self.is_chosen.len()
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
        if self.active_parts.is_empty() {
            // As in most shots of a small code.
            let graph = &self.model.graph;
            xor(observables, &graph.always_observables);
            return Ok(Matched { weight: graph.always_weight as f64 / graph.scale, units: graph.always_weight });
        }
        let matched = self.match_all()?;
        self.add_observables(observables);
        Ok(matched)
    }

    /// As [`Self::decode`], with other weights for some edges in this shot: `(edge, weight)`, any
    /// finite numbers, the last one given for an edge. Weights are rounded to the graph's units,
    /// and no heavier than 2^29 of them. Beyond a plain shot it takes time in proportion to the list.
    /// A part with a heavier edge, or with more than four lighter ones, is searched edge by edge and
    /// takes as long as one without tables.
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
        let matched = self.match_all()?;
        self.add_observables(observables);
        Ok(matched)
    }

    /// Hands the edges of the last answer to `take`, each once, in ascending order. After an error:
    /// of no answer in particular. Takes time for one bit of each edge, and one search for each pair
    /// that was matched by the search in a part without tables or with other weights.
    ///
    /// They explain the shot and weigh what the answer weighs. Where several shortest paths lead from
    /// one defect to its partner, it may be another one than that whose observables the answer has.
    pub fn edges(&mut self, mut take: impl FnMut(u32)) {
        let mut is_chosen = std::mem::take(&mut self.is_chosen);
        is_chosen.fill(0);
        let always = self.model.graph.always_edges.iter().copied();
        always.chain(self.weights.opposite()).for_each(|edge| flip(&mut is_chosen, edge));
        self.each_edge(|_, edge| flip(&mut is_chosen, edge));
        // Back before `take`, which may panic.
        self.is_chosen = is_chosen;
        ones(&self.is_chosen).for_each(&mut take);
    }

    /// Forgets the last shot's answer, and gives edges their own weights again.
    pub(crate) fn restore_weights(&mut self) {
        self.near_pairs.clear();
        self.far_pairs.clear();
        self.weights.restore(&self.model.graph);
    }

    fn set_weight(&mut self, edge: u32, weight: f64) -> Result<(), MatchError> {
        let edges = self.model.graph.edges();
        if edge >= edges {
            return Err(MatchError::Edge { edge, edges });
        }
        if !weight.is_finite() {
            return Err(MatchError::Weight { edge, weight });
        }
        self.set_units(edge, self.model.graph.units(weight));
        Ok(())
    }

    /// Gives an edge of the graph another integer weight in this shot.
    pub(crate) fn set_units(&mut self, edge: u32, weight: i64) {
        self.weights.set(&self.model.graph, edge, weight);
    }

    /// The integer weight of an edge in this shot, without its sign.
    pub(crate) fn units(&self, edge: u32) -> u32 {
        self.weights.size(&self.model.graph, edge)
    }

    /// Whether the part of `edge` has defects in this shot.
    pub(crate) fn has_defects_around(&self, edge: u32) -> bool {
        let graph = &self.model.graph;
        self.part_counts[graph.part_of[graph.edges[edge as usize].a as usize] as usize] > 0
    }

    /// Collects the defects: what fired, and what the edges used in advance flip.
    pub(crate) fn take(&mut self, detectors: impl IntoIterator<Item = u32>) -> Result<(), MatchError> {
        let Self { model, weights, defects, .. } = self;
        let graph = &model.graph;
        let ends = |edge: u32| [graph.edges[edge as usize].a, graph.edges[edge as usize].b];
        let flipped = weights.opposite().flat_map(ends).filter(|&node| node != graph.boundary());
        let count = model.detectors();
        defects
            .collect(graph, detectors, flipped)
            .map_err(|detector| MatchError::Detector { detector, detectors: count })?;
        self.sort_by_part();
        Ok(())
    }

    /// Matches the defects with this shot's weights.
    pub(crate) fn match_all(&mut self) -> Result<Matched, MatchError> {
        let units = self.match_near().and_then(|near| Ok(near + self.match_far()?));
        let graph = &self.model.graph;
        let units = units.map_err(|failure| match failure {
            Failure::Unmatched(node) => {
                let detector = graph.detector_of.get(node as usize).copied().unwrap_or(NONE);
                MatchError::Unmatchable { detector }
            }
            Failure::Declined => MatchError::Declined,
        })?;
        let units = units + graph.always_weight + self.weights.in_advance(graph);
        Ok(Matched { weight: units as f64 / graph.scale, units })
    }

    /// Puts the defects of each part side by side.
    fn sort_by_part(&mut self) {
        let Self { model, defects, by_part, part_counts, part_ends, active_parts, .. } = self;
        let graph = &model.graph;
        for &part in active_parts.iter() {
            part_counts[part as usize] = 0;
        }
        active_parts.clear();
        for &defect in &defects.nodes {
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
        for &defect in &defects.nodes {
            let end = &mut part_ends[graph.part_of[defect as usize] as usize];
            by_part[*end as usize] = defect;
            *end += 1;
        }
    }

    /// Matches what is near in parts with tables and few defects, and adds all other defects to the
    /// search; returns the weight of the former.
    fn match_near(&mut self) -> Result<i64, Failure> {
        let Self { model, near, shortcuts, search, weights, near_pairs, shortened_word, .. } = self;
        let MatchingModel { graph, tables } = &**model;
        search.reset();
        near_pairs.clear();
        *shortened_word = 0;
        let mut weight = 0;
        for &part in &self.active_parts {
            let defects = defects_of(&self.by_part, &self.part_counts, &self.part_ends, part);
            let leave = |defect| search.add_defect(defect);
            if defects.len() > DEFECTS_MAX || !tables.covers(part) {
                defects.iter().copied().for_each(leave);
                continue;
            }
            if weights.is_plain_in(part) {
                weight += near.matched(graph, tables, defects, |pair| near_pairs.push(pair), leave)?;
                continue;
            }
            let first = near_pairs.len();
            let take = |pair| near_pairs.push(pair);
            weight += match shortcuts.measure(graph, tables, weights, part, defects) {
                Distances::Plain => near.matched(graph, tables, shortcuts.defects(), take, leave)?,
                Distances::Shortened => near.matched_shortened(shortcuts, take, leave)?,
                Distances::Unknown => {
                    defects.iter().copied().for_each(leave);
                    continue;
                }
            };
            near_pairs.extend(shortcuts.joined());
            if graph.observable_words == 1 {
                let mut take = |half: u32| *shortened_word ^= graph.half_observables[half as usize];
                for pair in near_pairs[first..].iter().filter(|pair| pair.is_shortened) {
                    shortcuts.path(graph, tables, pair, &mut take);
                }
            }
        }
        Ok(weight)
    }

    /// Matches the defects in the search, edge by edge; returns the weight.
    fn match_far(&mut self) -> Result<i64, Failure> {
        let Self { model, search, weights, far_pairs, .. } = self;
        far_pairs.clear();
        if search.is_empty() {
            return Ok(0);
        }
        let graph = &model.graph;
        weights.write(graph);
        let over = Adjacency {
            starts: &graph.starts,
            halves: weights.halves(),
            twins: &graph.twins,
            observables: &graph.half_observables,
            counts_from: 0,
            is_by_weight: weights.are_graphs(),
        };
        search.run(over)?;
        search.pairs(|pair| far_pairs.push(pair));
        Ok(search.weight())
    }

    /// XORs the observables of the matching, and of the edges used in advance, into `flipped`.
    pub(crate) fn add_observables(&mut self, flipped: &mut [u64]) {
        let graph = &self.model.graph;
        xor(flipped, &graph.always_observables);
        self.weights.opposite().for_each(|edge| xor(flipped, graph.observables_of(edge)));
        if graph.observable_words > 1 {
            self.each_edge(|graph, edge| xor(flipped, graph.observables_of(edge)));
            return;
        }
        let mut word = self.shortened_word;
        for pair in self.near_pairs.iter().filter(|pair| !pair.is_shortened) {
            let take = |half: u32| word ^= graph.half_observables[half as usize];
            self.model.tables.path(graph, pair.a, pair.b, take);
        }
        for pair in &self.far_pairs {
            word ^= pair.observables;
        }
        xor(flipped, &[word]);
    }

    /// Hands the edges between matched defects to `take`.
    fn each_edge(&mut self, mut take: impl FnMut(&Graph, u32)) {
        let Self { model, shortcuts, paths, weights, near_pairs, far_pairs, .. } = self;
        let MatchingModel { graph, tables } = &**model;
        let mut measured = NONE;
        for pair in near_pairs.iter() {
            let mut take = |half: u32| take(graph, graph.edge_of[half as usize]);
            if !pair.is_shortened {
                tables.path(graph, pair.a, pair.b, take);
                continue;
            }
            let part = graph.part_of[pair.a as usize];
            if measured != part {
                let defects = defects_of(&self.by_part, &self.part_counts, &self.part_ends, part);
                shortcuts.measure(graph, tables, weights, part, defects);
                measured = part;
            }
            shortcuts.path(graph, tables, pair, &mut take);
        }
        for pair in far_pairs.iter() {
            far_path(graph, tables, weights, paths, pair, &mut |edge| take(graph, edge));
        }
    }
}

/// The defects of `part` among those of all parts.
fn defects_of<'a>(by_part: &'a [u32], counts: &[u32], ends: &[u32], part: u32) -> &'a [u32] {
    let (count, end) = (counts[part as usize] as usize, ends[part as usize] as usize);
    &by_part[end - count..end]
}

/// Hands the edges between two defects that the search matched to `take`.
fn far_path(
    graph: &Graph,
    tables: &Tables,
    weights: &Weights,
    paths: &mut Paths,
    pair: &Pair,
    take: &mut impl FnMut(u32),
) {
    let part = graph.part_of[pair.a as usize];
    if weights.is_plain_in(part) && tables.covers(part) {
        tables.path(graph, pair.a, pair.b, |half| take(graph.edge_of[half as usize]));
        return;
    }
    let to = if pair.b == NONE { graph.boundary() } else { pair.b };
    paths.search(graph, weights.halves(), pair.a, to);
    paths.edges(graph, to).for_each(take);
}
