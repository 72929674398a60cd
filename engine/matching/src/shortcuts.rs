//! Distances between the defects of a part with tables in which a few edges are lighter in this shot.
//!
//! Owned by one matcher. Begins with the distances of the table between defects and the ends of
//! lighter edges, and takes in one edge after the other: a shortest path has it once, or not at all.
//! Its ends are then needed no more, so what led to them stays as it was, and each path can be
//! traced. Exact. Two defects that an edge of weight 0 joins are partners at once: whatever else they
//! were matched with can be matched with each other by way of that edge. Bounded by [`CHANGED_MAX`] edges and [`DEFECTS_MAX`] defects; a part with more edges,
//! or with a heavier one, whose tables may say too little, is searched.

use crate::graph::{Graph, NONE};
use crate::table::{BEYOND, PartTable, Tables};
use crate::weights::Weights;

/// Most defects of a part that are matched on distances; a shot with more goes to the search at once.
pub(crate) const DEFECTS_MAX: usize = 16;
/// Most lighter edges of a part: with more of them the search takes less time.
const CHANGED_MAX: usize = 4;
const NODES_MAX: usize = DEFECTS_MAX + 2 * CHANGED_MAX;
/// No path.
pub(crate) const FAR: u64 = u64::MAX / 16;
/// No lighter edge on a path.
const PLAIN: u8 = u8::MAX;

/// Two defects that are matched, the lower node first unless an edge of weight 0 joins them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NearPair {
    pub(crate) a: u32,
    /// [`NONE`]: the boundary.
    pub(crate) b: u32,
    /// Whether the path between them takes an edge that is lighter in this shot.
    pub(crate) is_shortened: bool,
}

/// A lighter edge.
#[derive(Debug, Clone, Copy)]
struct Lighter {
    /// Its ends; the same one twice if it leads to the boundary.
    ends: [u32; 2],
    weight: u64,
    /// One of its half-edges.
    half: u32,
    is_to_boundary: bool,
}

/// What is known of the distances in a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Distances {
    /// Those that are needed are as the tables say.
    Plain,
    /// They are found.
    Shortened,
    /// They cannot be told from the tables.
    Unknown,
}

/// The lighter edges and the defects of one part.
#[derive(Debug)]
pub(crate) struct Shortcuts {
    lighter: [Lighter; CHANGED_MAX],
    lighter_count: usize,
    /// Pairs of defects at the ends of an edge of weight 0, and its half-edge.
    joined: [(NearPair, u32); CHANGED_MAX],
    joined_count: usize,
    /// The other defects, ascending, then both ends of each lighter edge.
    nodes: [u32; NODES_MAX],
    defect_count: usize,
    /// For two of these nodes, the one listed first first: their distance, and the lighter edge
    /// taken in last on the path between them, doubled; one more if that path has its second end
    /// first.
    distances: [[u64; NODES_MAX]; NODES_MAX],
    by: [[u8; NODES_MAX]; NODES_MAX],
    /// The same for the way to the boundary.
    alone: [u64; NODES_MAX],
    alone_by: [u8; NODES_MAX],
}

impl Shortcuts {
    pub(crate) const fn new() -> Self {
        Self {
            lighter: [Lighter { ends: [0; 2], weight: 0, half: 0, is_to_boundary: false }; CHANGED_MAX],
            lighter_count: 0,
            joined: [(NearPair { a: 0, b: 0, is_shortened: true }, 0); CHANGED_MAX],
            joined_count: 0,
            nodes: [0; NODES_MAX],
            defect_count: 0,
            distances: [[0; NODES_MAX]; NODES_MAX],
            by: [[PLAIN; NODES_MAX]; NODES_MAX],
            alone: [0; NODES_MAX],
            alone_by: [PLAIN; NODES_MAX],
        }
    }

    /// Joins what edges of weight 0 join, and finds the distances between the rest of `defects`, at
    /// most [`DEFECTS_MAX`], ascending nodes of `part`.
    pub(crate) fn measure(
        &mut self,
        graph: &Graph,
        tables: &Tables,
        weights: &Weights,
        part: u32,
        defects: &[u32],
    ) -> Distances {
        let Some(table) = tables.of_part(graph, part) else { return Distances::Unknown };
        self.defect_count = defects.len();
        self.nodes[..defects.len()].copy_from_slice(defects);
        if !self.collect(graph, weights, part) {
            return Distances::Unknown;
        }
        if !self.read_to_ends(tables, &table) {
            return Distances::Plain;
        }
        self.read_others(tables, &table);
        for index in (0..self.lighter_count).rev() {
            self.take_in(index);
        }
        Distances::Shortened
    }

    /// Collects the lighter edges of `part`; false if there are too many, or a heavier one.
    fn collect(&mut self, graph: &Graph, weights: &Weights, part: u32) -> bool {
        (self.lighter_count, self.joined_count) = (0, 0);
        for edge in weights.changed_in(part) {
            let ends = &graph.edges[edge as usize];
            let (own, weight) = (ends.weight.unsigned_abs(), u64::from(weights.size(graph, edge)));
            if weight == own {
                continue;
            }
            if weight > own || self.lighter_count == CHANGED_MAX {
                return false;
            }
            let is_to_boundary = ends.b == graph.boundary();
            let (half, both) = (ends.halves[0], [ends.a, if is_to_boundary { ends.a } else { ends.b }]);
            self.lighter[self.lighter_count] = Lighter { ends: both, weight, half, is_to_boundary };
            self.lighter_count += 1;
            if weight == 0 {
                self.join(ends.a, if is_to_boundary { NONE } else { ends.b }, half);
            }
        }
        let ends = self.nodes[self.defect_count..].chunks_exact_mut(2);
        for (nodes, lighter) in ends.zip(&self.lighter[..self.lighter_count]) {
            nodes.copy_from_slice(&lighter.ends);
        }
        true
    }

    /// Makes the defects at `a` and `b`, or the boundary if `b` is [`NONE`], partners, if they are
    /// defects.
    fn join(&mut self, a: u32, b: u32, half: u32) {
        let place = |node| self.nodes[..self.defect_count].iter().position(|&defect| defect == node);
        let (Some(first), second) = (place(a), place(b)) else { return };
        if second.is_none() && b != NONE {
            return;
        }
        // The later one first, which leaves the other where it is.
        let places =
            [second.map_or(first, |second| second.max(first)), second.map_or(first, |second| second.min(first))];
        for &place in &places[..1 + usize::from(second.is_some())] {
            self.nodes.copy_within(place + 1..self.defect_count, place);
            self.defect_count -= 1;
        }
        self.joined[self.joined_count] = (NearPair { a, b, is_shortened: true }, half);
        self.joined_count += 1;
    }

    /// The pairs that edges of weight 0 join.
    pub(crate) fn joined(&self) -> impl Iterator<Item = NearPair> + '_ {
        self.joined[..self.joined_count].iter().map(|&(pair, _)| pair)
    }

    /// The other defects, ascending.
    pub(crate) fn defects(&self) -> &[u32] {
        &self.nodes[..self.defect_count]
    }

    /// Reads the distances from the defects to the ends of lighter edges. Tells whether any such edge
    /// can be on a path that is needed: one between two defects is shorter than their ways to the
    /// boundary together, so one of them is nearer to the first or last lighter edge on it than to
    /// the boundary.
    fn read_to_ends(&mut self, tables: &Tables, table: &PartTable<'_>) -> bool {
        let ends = self.defect_count..self.defect_count + 2 * self.lighter_count;
        let mut is_near = false;
        for a in 0..self.defect_count {
            let from = self.nodes[a];
            let alone = weight_of(tables.to_boundary(from));
            (self.alone[a], self.alone_by[a]) = (alone, PLAIN);
            for end in ends.clone() {
                let distance = u64::from(table.distance(from, self.nodes[end]));
                self.distances[a][end] = distance;
                self.by[a][end] = PLAIN;
                is_near |= distance < alone;
            }
        }
        is_near
    }

    /// Reads the distances between defects, and between the ends of different edges.
    fn read_others(&mut self, tables: &Tables, table: &PartTable<'_>) {
        let (defects, all) = (self.defect_count, self.defect_count + 2 * self.lighter_count);
        for a in 0..all {
            let from = self.nodes[a];
            let others = if a < defects {
                a + 1..defects
            } else {
                (self.alone[a], self.alone_by[a]) = (weight_of(tables.to_boundary(from)), PLAIN);
                defects + ((a - defects) / 2 + 1) * 2..all
            };
            for b in others {
                self.distances[a][b] = u64::from(table.distance(from, self.nodes[b]));
                self.by[a][b] = PLAIN;
            }
        }
    }

    /// Shortens the distances between the nodes before its ends by the lighter edge `index`.
    fn take_in(&mut self, index: usize) {
        let Lighter { weight, is_to_boundary, .. } = self.lighter[index];
        let (u, v) = (self.defect_count + 2 * index, self.defect_count + 2 * index + 1);
        let (by, by_other) = (2 * index as u8, 2 * index as u8 + 1);
        let (from_u, from_v) = if is_to_boundary { (FAR, 0) } else { (self.alone[u], self.alone[v]) };
        for a in 0..u {
            let (to_u, to_v) = (self.distances[a][u] + weight, self.distances[a][v] + weight);
            // All without branches: what is shorter is as good as drawn.
            let (through, other) = (to_u + from_v, to_v + from_u);
            let (least, known) = (through.min(other), self.alone[a]);
            let least_by = if other < through { by_other } else { by };
            self.alone_by[a] = if least < known { least_by } else { self.alone_by[a] };
            self.alone[a] = least.min(known);
            if is_to_boundary {
                continue;
            }
            for b in a + 1..u {
                let (through, other) = (to_u + self.distances[b][v], to_v + self.distances[b][u]);
                let (least, known) = (through.min(other), self.distances[a][b]);
                let least_by = if other < through { by_other } else { by };
                self.by[a][b] = if least < known { least_by } else { self.by[a][b] };
                self.distances[a][b] = least.min(known);
            }
        }
    }

    /// The distance between two defects, the one listed first first, and whether the path has a
    /// lighter edge.
    #[inline]
    pub(crate) const fn between(&self, a: usize, b: usize) -> (u64, bool) {
        (self.distances[a][b], self.by[a][b] != PLAIN)
    }

    /// The distance from a defect to the boundary, [`FAR`] if there is none, and whether the path has
    /// a lighter edge.
    #[inline]
    pub(crate) const fn to_boundary(&self, a: usize) -> (u64, bool) {
        (self.alone[a], self.alone_by[a] != PLAIN)
    }

    /// Hands the half-edges of the shortest path between two matched defects to `take`.
    pub(crate) fn path(&self, graph: &Graph, tables: &Tables, pair: &NearPair, take: &mut impl FnMut(u32)) {
        let NearPair { a, b, .. } = *pair;
        let joined = self.joined[..self.joined_count].iter().find(|(joined, _)| (joined.a, joined.b) == (a, b));
        if let Some(&(_, half)) = joined {
            take(half);
            return;
        }
        let place = |node| self.nodes[..self.defect_count].iter().position(|&defect| defect == node);
        match (place(a), place(b)) {
            (Some(a), Some(b)) => self.trace(graph, tables, a, b, take),
            (Some(a), None) if b == NONE => self.trace_out(graph, tables, a, take),
            _ => {}
        }
    }

    /// Goes one edge deeper with each call.
    fn trace(&self, graph: &Graph, tables: &Tables, a: usize, b: usize, take: &mut impl FnMut(u32)) {
        let by = self.by[a][b];
        if by == PLAIN {
            return tables.path(graph, self.nodes[a], self.nodes[b], take);
        }
        let (near_a, near_b) = self.ends(by);
        self.trace(graph, tables, a, near_a, take);
        take(self.lighter[usize::from(by / 2)].half);
        self.trace(graph, tables, b, near_b, take);
    }

    fn trace_out(&self, graph: &Graph, tables: &Tables, a: usize, take: &mut impl FnMut(u32)) {
        let by = self.alone_by[a];
        if by == PLAIN {
            return tables.path(graph, self.nodes[a], NONE, take);
        }
        let (near, far) = self.ends(by);
        self.trace(graph, tables, a, near, take);
        let Lighter { half, is_to_boundary, .. } = self.lighter[usize::from(by / 2)];
        take(half);
        if !is_to_boundary {
            self.trace_out(graph, tables, far, take);
        }
    }

    /// The ends of a lighter edge in the order of the path.
    fn ends(&self, by: u8) -> (usize, usize) {
        let first = self.defect_count + usize::from(by / 2) * 2;
        if by.is_multiple_of(2) { (first, first + 1) } else { (first + 1, first) }
    }
}

/// A distance of the tables.
pub(crate) fn weight_of(distance: u32) -> u64 {
    if distance == BEYOND { FAR } else { u64::from(distance) }
}
