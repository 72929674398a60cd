//! Union-find decoding: clusters of defects that grow until each can be explained by itself.
//!
//! Owned and called by one thread; the [`MatchingModel`] is shared. All memory is allocated by
//! [`UnionFind::new`] and bounded by the graph (see [`UnionFind::bytes`]). Nothing panics on any shot;
//! after an error the decoder goes on with the next one.
//!
//! After Delfosse and Nickerson (arXiv:1709.06218) with weighted edges as by Huang, Newman and Brown
//! (arXiv:2004.04693). The answer always explains the shot, but need not be the lightest: clusters
//! never shrink, and in a cluster the way from defect to defect is given by the order in which they
//! met.
//!
//! ```text
//!   fired detectors ─▶ growth: clusters, the links between their balls ─▶ peel: the links of the answer
//!                       ▲ lattice: edges of a node by weight, coarse           │
//!                       ▲ calendar: what is due when                           └─▶ edges, observables, weight
//! ```

use std::sync::Arc;

use crate::bits::{flip, is_set, ones, xor};
use crate::defects::Defects;
use crate::graph::{Graph, NONE};
use crate::matcher::{MatchError, Matched};
use crate::model::MatchingModel;

mod calendar;
mod lattice;
mod growth;
mod peel;

use growth::{Growth, Reached};
use lattice::{Lattice, Side};
use peel::peel;

/// One worker's memory.
#[derive(Debug)]
pub struct UnionFind {
    model: Arc<MatchingModel>,
    lattice: Lattice,
    growth: Growth,
    defects: Defects,
    /// The links of the answer, by their numbers.
    taken: Vec<u32>,
    /// One bit for each reached node: the answer takes the edge through which it was reached.
    is_on_way: Vec<u64>,
    /// One bit for each edge; scratch.
    is_chosen: Vec<u64>,
}

impl UnionFind {
    /// A decoder for `model`. It does not use the model's tables.
    pub fn new(model: Arc<MatchingModel>) -> Self {
        let graph = &model.graph;
        let nodes = graph.boundary() as usize;
        let lattice = Lattice::new(graph);
        Self {
            growth: Growth::new(&lattice),
            defects: Defects::new(nodes),
            taken: Vec::with_capacity(nodes),
            is_on_way: vec![0; nodes.div_ceil(64)],
            is_chosen: vec![0; graph.edges.len().div_ceil(64)],
            lattice,
            model,
        }
    }

    /// The model.
    pub fn model(&self) -> &MatchingModel {
        &self.model
    }

    /// Bytes on the heap, without the shared model.
    pub const fn bytes(&self) -> usize {
        self.lattice.bytes()
            + self.growth.bytes()
            + self.defects.bytes()
            + 4 * self.taken.capacity()
            + 8 * (self.is_on_way.capacity() + self.is_chosen.capacity())
    }

    /// Explains the fired `detectors` (one that is listed twice has not fired), XORs the observables
    /// of the explanation into `observables` and returns the weight of its edges. Words beyond the
    /// graph's are left as they are, and missing ones are dropped.
    ///
    /// # Errors
    ///
    /// [`MatchError::Detector`] and [`MatchError::Unmatchable`]; `observables` is then unchanged.
    pub fn decode(
        &mut self,
        detectors: impl IntoIterator<Item = u32>,
        observables: &mut [u64],
    ) -> Result<Matched, MatchError> {
        self.taken.clear();
        self.is_on_way[..self.growth.reached.len().div_ceil(64)].fill(0);
        let Self { model, lattice, growth, defects, taken, .. } = self;
        let graph = &model.graph;
        let count = model.detectors();
        defects
            .collect(graph, detectors, std::iter::empty())
            .map_err(|detector| MatchError::Detector { detector, detectors: count })?;
        growth.run(lattice, &defects.nodes).map_err(|node| {
            let detector = graph.detector_of.get(node as usize).copied().unwrap_or(NONE);
            MatchError::Unmatchable { detector }
        })?;
        peel(&mut growth.defects, &growth.links, |link| taken.push(link));
        let units = self.sum(observables) + self.model.graph.always_weight;
        Ok(Matched { weight: units as f64 / self.model.graph.scale, units })
    }

    /// Hands the edges of the last answer to `take`, each once, in ascending order. After an error:
    /// of no answer in particular. Takes time for one bit of each edge.
    pub fn edges(&mut self, mut take: impl FnMut(u32)) {
        let Self { model, lattice, growth, taken, is_on_way, is_chosen, .. } = self;
        is_chosen.fill(0);
        for &edge in &model.graph.always_edges {
            flip(is_chosen, edge);
        }
        for link in taken.iter().map(|&link| &growth.links[link as usize]) {
            flip(is_chosen, lattice.sides[link.half as usize].edge);
        }
        for at in ones(is_on_way) {
            flip(is_chosen, lattice.sides[growth.reached[at as usize].half as usize].edge);
        }
        ones(is_chosen).for_each(&mut take);
    }

    /// XORs the observables of the answer into `flipped`; returns the weight of its edges, without
    /// that of the edges used in advance.
    fn sum(&mut self, flipped: &mut [u64]) -> i64 {
        let Self { model, lattice, growth, taken, is_on_way, .. } = self;
        let graph = &model.graph;
        xor(flipped, &graph.always_observables);
        let mut total = Total { graph, flipped, word: 0, weight: 0 };
        for link in taken.iter().map(|&link| &growth.links[link as usize]) {
            total.add(lattice.sides[link.half as usize], true);
            for mut at in link.ends.into_iter().filter(|&end| end != NONE) {
                // Ways may overlap: what two of them take, neither does.
                while let Reached { before, half, .. } = growth.reached[at as usize]
                    && before != NONE
                {
                    flip(is_on_way, at);
                    total.add(lattice.sides[half as usize], is_set(is_on_way, at));
                    at = before;
                }
            }
        }
        total.end()
    }
}

/// The sum of an answer's edges.
struct Total<'a> {
    graph: &'a Graph,
    flipped: &'a mut [u64],
    /// The observables, if they fit.
    word: u64,
    weight: i64,
}

impl Total<'_> {
    /// Adds an edge, or takes it away again.
    #[inline]
    fn add(&mut self, Side { weight, edge, .. }: Side, is_taken: bool) {
        self.weight += if is_taken { i64::from(weight) } else { -i64::from(weight) };
        if self.graph.observable_words == 1 {
            self.word ^= self.graph.observables[edge as usize];
        } else {
            xor(self.flipped, self.graph.observables_of(edge));
        }
    }

    fn end(self) -> i64 {
        if self.graph.observable_words == 1 {
            xor(self.flipped, &[self.word]);
        }
        self.weight
    }
}
