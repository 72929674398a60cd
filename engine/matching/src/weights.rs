//! The weights of one shot: the graph's, except for a list of edges.
//!
//! Owned by one matcher. A change costs constant time, and so does its undoing. Edges of negative
//! weight are used in advance (see [`graph`](crate::graph)); an edge whose weight has another sign in
//! this shot is *opposite*: what was done in advance is done once more, which undoes it. Bounded by
//! one entry for each edge.

use crate::graph::{Graph, Half, NONE};

/// An edge whose weight is this shot's.
#[derive(Debug, Clone, Copy)]
struct Change {
    edge: u32,
    /// The change before it in the same part.
    before: u32,
}

/// Weights for one shot.
#[derive(Debug)]
pub(crate) struct Weights {
    /// The graph's half-edges, with this shot's weights.
    halves: Vec<Half>,
    changes: Vec<Change>,
    /// For each part its last change.
    last_of_part: Vec<u32>,
    /// One bit for each edge.
    is_changed: Vec<u64>,
    is_opposite: Vec<u64>,
    /// Whether a weight is negative, here or in the graph, of an edge that changed.
    has_negative: bool,
}

impl Weights {
    /// The weights of `graph`.
    pub(crate) fn new(graph: &Graph) -> Self {
        let words = graph.edges.len().div_ceil(64);
        Self {
            halves: graph.halves.clone(),
            changes: Vec::with_capacity(graph.edges.len()),
            last_of_part: vec![NONE; graph.parts.len()],
            is_changed: vec![0; words],
            is_opposite: vec![0; words],
            has_negative: false,
        }
    }

    /// Bytes on the heap.
    pub(crate) const fn bytes(&self) -> usize {
        8 * (self.halves.capacity()
            + self.changes.capacity()
            + self.is_changed.capacity()
            + self.is_opposite.capacity())
            + 4 * self.last_of_part.capacity()
    }

    /// Half-edges with this shot's weights.
    #[inline]
    pub(crate) fn halves(&self) -> &[Half] {
        &self.halves
    }

    /// Whether no edge of `part` has one.
    #[inline]
    pub(crate) fn is_plain_in(&self, part: u32) -> bool {
        self.last_of_part[part as usize] == NONE
    }

    /// The edges of `part` that have one, each once.
    pub(crate) fn changed_in(&self, part: u32) -> impl Iterator<Item = u32> + '_ {
        let mut at = self.last_of_part[part as usize];
        std::iter::from_fn(move || {
            let Change { edge, before } = *self.changes.get(at as usize)?;
            at = before;
            Some(edge)
        })
    }

    /// All edges whose weight has another sign than the graph's.
    pub(crate) fn opposite(&self) -> impl Iterator<Item = u32> + '_ {
        let changes = if self.has_negative { &self.changes[..] } else { &[] };
        changes.iter().map(|change| change.edge).filter(|&edge| is_set(&self.is_opposite, edge))
    }

    /// One bit for each edge: its weight has another sign than the graph's.
    pub(crate) fn opposite_bits(&self) -> &[u64] {
        &self.is_opposite
    }

    /// The size of the weight of `edge`.
    #[inline]
    pub(crate) fn size(&self, graph: &Graph, edge: u32) -> u32 {
        self.halves[graph.edges[edge as usize].halves[0] as usize].weight
    }

    /// The sum of the weights used in advance, less that of the graph.
    pub(crate) fn in_advance(&self, graph: &Graph) -> i64 {
        if !self.has_negative {
            return 0;
        }
        let more = |&Change { edge, .. }: &Change| {
            let own = graph.edges[edge as usize].weight;
            let is_negative = (own < 0) != is_set(&self.is_opposite, edge);
            (if is_negative { -i64::from(self.size(graph, edge)) } else { 0 }) - own.min(0)
        };
        self.changes.iter().map(more).sum()
    }

    /// Gives `edge` the integer weight `weight`.
    pub(crate) fn set(&mut self, graph: &Graph, edge: u32, weight: i64) {
        if !is_set(&self.is_changed, edge) {
            flip(&mut self.is_changed, edge);
            let part = graph.part_of[graph.edges[edge as usize].a as usize];
            let last = &mut self.last_of_part[part as usize];
            self.changes.push(Change { edge, before: *last });
            *last = self.changes.len() as u32 - 1;
        }
        self.write(graph, edge, weight);
        let own = graph.edges[edge as usize].weight;
        self.has_negative |= weight < 0 || own < 0;
        let is_opposite = (weight < 0) != (own < 0);
        if is_set(&self.is_opposite, edge) != is_opposite {
            flip(&mut self.is_opposite, edge);
        }
    }

    /// Gives all edges the weights of `graph` again.
    pub(crate) fn restore(&mut self, graph: &Graph) {
        self.has_negative = false;
        while let Some(Change { edge, .. }) = self.changes.pop() {
            let ends = &graph.edges[edge as usize];
            self.write(graph, edge, ends.weight);
            self.last_of_part[graph.part_of[ends.a as usize] as usize] = NONE;
            self.is_changed[edge as usize / 64] &= !(1 << (edge % 64));
            self.is_opposite[edge as usize / 64] &= !(1 << (edge % 64));
        }
    }

    /// Sets the weight of both half-edges of `edge`.
    fn write(&mut self, graph: &Graph, edge: u32, weight: i64) {
        for half in graph.edges[edge as usize].halves.into_iter().filter(|&half| half != NONE) {
            self.halves[half as usize].weight = weight.unsigned_abs() as u32;
        }
    }
}

fn is_set(bits: &[u64], index: u32) -> bool {
    bits[index as usize / 64] >> (index % 64) & 1 == 1
}

/// Flips one bit.
pub(crate) fn flip(bits: &mut [u64], index: u32) {
    bits[index as usize / 64] ^= 1 << (index % 64);
}
