//! The weights of one shot: the graph's, except for a list of edges.
//!
//! Owned by one matcher. A change costs constant time, and so does its undoing. The half-edges get the
//! shot's weights only if a search reads them. Edges of negative
//! weight are used in advance (see [`graph`](crate::graph)); an edge whose weight has another sign in
//! this shot is *opposite*: what was done in advance is done once more, which undoes it. Bounded by
//! one entry for each edge.

use crate::graph::{Graph, Half, NONE};

/// An edge whose weight is this shot's.
#[derive(Debug, Clone, Copy)]
struct Change {
    edge: u32,
    /// Its weight without the sign.
    size: u32,
    /// The change before it in the same part.
    before: u32,
    part: u32,
    /// Whether the weight has another sign than the graph's.
    is_opposite: bool,
}

/// Weights for one shot.
#[derive(Debug)]
pub(crate) struct Weights {
    /// The graph's half-edges, with this shot's weights once they are written.
    halves: Vec<Half>,
    /// Whether the changes made so far are written, and whether any is.
    is_written: bool,
    has_written: bool,
    changes: Vec<Change>,
    /// For each part its last change.
    last_of_part: Vec<u32>,
    /// For each edge its change.
    change_of: Vec<u32>,
    /// Whether a weight is negative, here or in the graph, of an edge that changed.
    has_negative: bool,
}

impl Weights {
    /// The weights of `graph`.
    pub(crate) fn new(graph: &Graph) -> Self {
        Self {
            halves: graph.halves.clone(),
            is_written: false,
            has_written: false,
            changes: Vec::with_capacity(graph.edges.len()),
            last_of_part: vec![NONE; graph.parts.len()],
            change_of: vec![NONE; graph.edges.len()],
            has_negative: false,
        }
    }

    /// Bytes on the heap.
    pub(crate) const fn bytes(&self) -> usize {
        self.halves.capacity() * size_of::<Half>()
            + self.changes.capacity() * size_of::<Change>()
            + 4 * (self.last_of_part.capacity() + self.change_of.capacity())
    }

    /// Writes this shot's weights to the half-edges.
    pub(crate) fn write(&mut self, graph: &Graph) {
        if !self.is_written {
            for &Change { edge, size, .. } in &self.changes {
                write(&mut self.halves, graph, edge, size);
            }
            (self.is_written, self.has_written) = (true, !self.changes.is_empty());
        }
    }

    /// Whether the weights last written are the graph's.
    #[inline]
    pub(crate) const fn are_graphs(&self) -> bool {
        !self.has_written
    }

    /// Half-edges with the weights last written.
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
            let Change { edge, before, .. } = *self.changes.get(at as usize)?;
            at = before;
            Some(edge)
        })
    }

    /// All edges whose weight has another sign than the graph's.
    pub(crate) fn opposite(&self) -> impl Iterator<Item = u32> + '_ {
        let changes = if self.has_negative { &self.changes[..] } else { &[] };
        changes.iter().filter(|change| change.is_opposite).map(|change| change.edge)
    }

    /// The size of the weight of `edge`.
    #[inline]
    pub(crate) fn size(&self, graph: &Graph, edge: u32) -> u32 {
        match self.changes.get(self.change_of[edge as usize] as usize) {
            Some(change) => change.size,
            None => graph.edges[edge as usize].weight.unsigned_abs() as u32,
        }
    }

    /// The sum of the weights used in advance, less that of the graph.
    pub(crate) fn in_advance(&self, graph: &Graph) -> i64 {
        if !self.has_negative {
            return 0;
        }
        let more = |&Change { edge, size, is_opposite, .. }: &Change| {
            let own = graph.edges[edge as usize].weight;
            let is_negative = (own < 0) != is_opposite;
            (if is_negative { -i64::from(size) } else { 0 }) - own.min(0)
        };
        self.changes.iter().map(more).sum()
    }

    /// Gives `edge` the integer weight `weight`.
    pub(crate) fn set(&mut self, graph: &Graph, edge: u32, weight: i64) {
        let ends = &graph.edges[edge as usize];
        let (size, is_opposite) = (weight.unsigned_abs() as u32, (weight < 0) != (ends.weight < 0));
        self.has_negative |= weight < 0 || ends.weight < 0;
        self.is_written = false;
        if let Some(change) = self.changes.get_mut(self.change_of[edge as usize] as usize) {
            (change.size, change.is_opposite) = (size, is_opposite);
            return;
        }
        let part = graph.part_of[ends.a as usize];
        let here = self.changes.len() as u32;
        let before = std::mem::replace(&mut self.last_of_part[part as usize], here);
        self.changes.push(Change { edge, size, before, part, is_opposite });
        self.change_of[edge as usize] = here;
    }

    /// Gives all edges the weights of `graph` again.
    pub(crate) fn restore(&mut self, graph: &Graph) {
        for &Change { edge, part, .. } in &self.changes {
            if self.has_written {
                write(&mut self.halves, graph, edge, graph.edges[edge as usize].weight.unsigned_abs() as u32);
            }
            self.last_of_part[part as usize] = NONE;
            self.change_of[edge as usize] = NONE;
        }
        self.changes.clear();
        (self.has_negative, self.is_written, self.has_written) = (false, false, false);
    }
}

/// Sets the weight of both half-edges of `edge`.
fn write(halves: &mut [Half], graph: &Graph, edge: u32, size: u32) {
    for half in graph.edges[edge as usize].halves.into_iter().filter(|&half| half != NONE) {
        halves[half as usize].weight = size;
    }
}
