//! Distances between all nodes of a part, and the first step of each shortest path.
//!
//! Built once by cold code, one search for each node; read by every matcher. 3 bytes for each two
//! nodes of a part, so parts get a table only while the tables fit the model's limit; parts beyond
//! it are searched edge by edge.
//!
//! A distance takes the half of a square above its diagonal. A step takes all of the square: at
//! `(from, to)` the half-edge of `to`, counted from its first, with which its path back begins.

use crate::graph::{Graph, Half, NONE, Part};
use crate::paths::Paths;

/// No path, or one longer than fits.
pub(crate) const BEYOND: u32 = u32::MAX;
/// Edges of a node that a step has room for.
const DEGREE_MAX: u32 = 255;

/// Where a part's tables begin.
#[derive(Debug, Clone, Copy)]
struct Place {
    distances: usize,
    steps: usize,
}

/// The tables of one graph.
#[derive(Debug)]
pub(crate) struct Tables {
    /// `None` for a part without a table.
    places: Vec<Option<Place>>,
    distances: Vec<u32>,
    steps: Vec<u8>,
    /// For each node, its distance to the boundary and the first step there.
    boundary: Vec<u32>,
    boundary_steps: Vec<u8>,
}

/// The distances of one part.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PartTable<'a> {
    distances: &'a [u32],
    first: u32,
    nodes: usize,
}

impl PartTable<'_> {
    /// The distance between two nodes of the part.
    #[inline]
    pub(crate) fn distance(&self, a: u32, b: u32) -> u32 {
        let (row, column) = ((a.min(b) - self.first) as usize, (a.max(b) - self.first) as usize);
        // Without a branch: whether they are the same is as likely as not, and costs more to guess than
        // to read.
        let is_other = row != column;
        let behind = self.distances[row * (2 * self.nodes - row - 1) / 2 + (column - row - usize::from(is_other))];
        if is_other { behind } else { 0 }
    }
}

/// Entries above the diagonal of a square of `nodes`.
const fn triangle(nodes: usize) -> usize {
    nodes * nodes.saturating_sub(1) / 2
}

impl Tables {
    /// The tables of `graph`, in at most `bytes_max` bytes.
    pub(crate) fn new(graph: &Graph, bytes_max: usize) -> Self {
        let nodes = graph.boundary() as usize;
        let mut tables = Self {
            places: vec![None; graph.parts.len()],
            distances: Vec::new(),
            steps: Vec::new(),
            boundary: vec![BEYOND; nodes],
            boundary_steps: vec![0; nodes],
        };
        let mut paths = Paths::new(graph);
        for (index, part) in graph.parts.iter().enumerate() {
            let nodes = part.nodes as usize;
            let bytes = tables.distances.len() * 4 + tables.steps.len() + triangle(nodes) * 4 + nodes * nodes;
            if bytes <= bytes_max {
                tables.places[index] = tables.fill(graph, part, &mut paths);
            }
        }
        // A part's last node has nothing behind it; what is read for it is not used.
        tables.distances.push(BEYOND);
        tables.distances.shrink_to_fit();
        tables.steps.shrink_to_fit();
        tables
    }

    /// Adds the tables of `part`; `None` and nothing if one of its numbers does not fit.
    fn fill(&mut self, graph: &Graph, part: &Part, paths: &mut Paths) -> Option<Place> {
        let place = Place { distances: self.distances.len(), steps: self.steps.len() };
        let members = part.first..part.first + part.nodes;
        for from in members.clone() {
            if graph.starts[from as usize + 1] - graph.starts[from as usize] > DEGREE_MAX {
                return self.give_up(place);
            }
            paths.search(graph, &graph.halves, from, NONE);
            for to in members.clone() {
                if to > from {
                    let Some(distance) = short(paths.distance[to as usize]) else { return self.give_up(place) };
                    self.distances.push(distance);
                }
                self.steps.push(paths.last_half(to).map_or(0, |half| graph.step_back(half)));
            }
        }
        paths.search_from_boundary(graph, part);
        for node in members {
            let Some(half) = paths.last_half(node) else { continue };
            let Some(distance) = short(paths.distance[node as usize]) else { return self.give_up(place) };
            self.boundary[node as usize] = distance;
            self.boundary_steps[node as usize] = if paths.came_from(node) == graph.boundary() {
                graph.step_of(half, node)
            } else {
                graph.step_back(half)
            };
        }
        Some(place)
    }

    fn give_up(&mut self, place: Place) -> Option<Place> {
        self.distances.truncate(place.distances);
        self.steps.truncate(place.steps);
        None
    }

    /// Bytes on the heap.
    pub(crate) fn bytes(&self) -> usize {
        self.distances.len() * 4
            + self.steps.len()
            + self.boundary.len() * 5
            + self.places.len() * size_of::<Option<Place>>()
    }

    /// Whether `part` has tables.
    #[inline]
    pub(crate) fn covers(&self, part: u32) -> bool {
        self.places[part as usize].is_some()
    }

    /// The distances of `part`; `None` if it has no tables.
    #[inline]
    pub(crate) fn of_part(&self, graph: &Graph, part: u32) -> Option<PartTable<'_>> {
        let place = self.places.get(part as usize).copied().flatten()?;
        let Part { first, nodes, .. } = graph.parts[part as usize];
        Some(PartTable { distances: &self.distances[place.distances..], first, nodes: nodes as usize })
    }

    /// Distances from `from` to the nodes of its part behind it.
    #[inline]
    pub(crate) fn distances_behind(&self, graph: &Graph, from: u32) -> &[u32] {
        let part = graph.part_of[from as usize];
        let Some(place) = self.places[part as usize] else { return &[] };
        let Part { first, nodes, .. } = graph.parts[part as usize];
        let (row, nodes) = ((from - first) as usize, nodes as usize);
        let at = place.distances + triangle(nodes) - triangle(nodes - row);
        &self.distances[at..at + nodes - row - 1]
    }

    /// The distance from `node` to the boundary; [`BEYOND`] if there is no path.
    #[inline]
    pub(crate) fn to_boundary(&self, node: u32) -> u32 {
        self.boundary[node as usize]
    }

    /// Hands the half-edges of the shortest path between `a` and `b` to `take`; `b` is [`NONE`] at
    /// the boundary. Both are in a part with tables.
    #[inline]
    pub(crate) fn path(&self, graph: &Graph, a: u32, b: u32, mut take: impl FnMut(u32)) {
        if b == NONE {
            let mut at = a;
            while at != graph.boundary() {
                let half = graph.starts[at as usize] + u32::from(self.boundary_steps[at as usize]);
                take(half);
                at = graph.halves[half as usize].to;
            }
            return;
        }
        let part = graph.part_of[a as usize];
        let Some(place) = self.places[part as usize] else { return };
        let Part { first, nodes, .. } = graph.parts[part as usize];
        let row = place.steps + (a - first) as usize * nodes as usize;
        let mut at = b;
        while at != a {
            let half = graph.starts[at as usize] + u32::from(self.steps[row + (at - first) as usize]);
            take(half);
            at = graph.halves[half as usize].to;
        }
    }
}

/// A distance as it is stored.
fn short(distance: i64) -> Option<u32> {
    u32::try_from(distance).ok().filter(|&distance| distance != BEYOND)
}

impl Graph {
    /// The other end's half-edge of `half`, counted from the first of its node.
    fn step_back(&self, half: u32) -> u8 {
        u8::try_from(self.twins[half as usize]).unwrap_or(0)
    }

    /// `half` of `node`, counted from its first.
    fn step_of(&self, half: u32, node: u32) -> u8 {
        u8::try_from(half - self.starts[node as usize]).unwrap_or(0)
    }
}

const _: () = assert!(size_of::<Half>() == 8, "a half-edge is a word");
