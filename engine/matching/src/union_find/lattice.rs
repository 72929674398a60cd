//! The graph as clusters grow on it: edges of a node by weight, in coarse units.
//!
//! Built with a decoder, read by its growth. 20 bytes for each end of an edge.
//!
//! # Coarse weights
//!
//! The mean edge weighs [`MEAN`] units, so that a ring of some hundred units of time holds nearly all
//! events. Edges heavier than [`HEAVIEST`] units count as that. The answer's weight is exact.

use crate::graph::Graph;

/// Units of the mean weight.
const MEAN: f64 = 64.0;
/// Units of the heaviest edge.
const HEAVIEST: i32 = 1 << 12;

/// One end's view of an edge, as clusters grow.
#[derive(Debug, Clone, Copy)]
pub(super) struct Half {
    /// The node at the other end, or the boundary.
    pub(super) to: u32,
    /// In coarse units.
    pub(super) length: i32,
}

/// What an answer takes of a half-edge.
#[derive(Debug, Clone, Copy)]
pub(super) struct Side {
    /// Its weight, in units of the graph.
    pub(super) weight: u32,
    /// The graph's edge.
    pub(super) edge: u32,
}

/// Nodes and their edges.
#[derive(Debug)]
pub(super) struct Lattice {
    /// For each node its first half-edge, and the end of the last.
    pub(super) starts: Vec<u32>,
    /// Those of a node by weight.
    pub(super) halves: Vec<Half>,
    pub(super) sides: Vec<Side>,
    /// For each node its neighbours of lower numbers, by weight, with the half-edges that lead there; and
    /// where they begin.
    pub(super) lower: Vec<[u32; 2]>,
    pub(super) lower_starts: Vec<u32>,
    /// The least length.
    pub(super) shortest: i32,
    /// The node that stands for the boundary.
    pub(super) boundary: u32,
    /// Number of edges.
    pub(super) edges: u32,
}

impl Lattice {
    pub(super) fn new(graph: &Graph) -> Self {
        let sum: f64 = graph.halves.iter().map(|half| f64::from(half.weight)).sum();
        let scale = MEAN * graph.halves.len() as f64 / sum.max(1.0);
        // A path through all nodes fits a time.
        let longest = HEAVIEST.min((1 << 29) / (graph.boundary() as i32 + 1)).max(1);
        let coarse = |weight: u32| ((f64::from(weight) * scale).round() as i32).min(longest);
        let mut order: Vec<u32> = (0..graph.halves.len() as u32).collect();
        for node in 0..graph.boundary() as usize {
            let own = graph.starts[node] as usize..graph.starts[node + 1] as usize;
            order[own].sort_by_key(|&half| graph.halves[half as usize].weight);
        }
        let half = |&half: &u32| {
            let half = graph.halves[half as usize];
            Half { to: half.to, length: coarse(half.weight) }
        };
        let side =
            |&half: &u32| Side { weight: graph.halves[half as usize].weight, edge: graph.edge_of[half as usize] };
        let halves: Vec<Half> = order.iter().map(half).collect();
        let (mut lower, mut lower_starts) = (Vec::with_capacity(halves.len() / 2), vec![0]);
        for (node, ends) in (0..graph.boundary()).zip(graph.starts.windows(2)) {
            let own = (ends[0]..ends[1]).map(|half| [halves[half as usize].to, half]);
            lower.extend(own.filter(|&[to, _]| to < node));
            lower_starts.push(lower.len() as u32);
        }
        Self {
            lower,
            lower_starts,
            starts: graph.starts.clone(),
            shortest: halves.iter().map(|half| half.length).min().unwrap_or(0),
            halves,
            sides: order.iter().map(side).collect(),
            boundary: graph.boundary(),
            edges: graph.edges(),
        }
    }

    /// Bytes on the heap.
    pub(super) const fn bytes(&self) -> usize {
        self.halves.capacity() * size_of::<Half>()
            + self.sides.capacity() * size_of::<Side>()
            + self.lower.capacity() * size_of::<[u32; 2]>()
            + 4 * (self.starts.capacity() + self.lower_starts.capacity())
    }
}
