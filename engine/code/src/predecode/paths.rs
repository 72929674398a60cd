//! Shortest paths in a matching graph, up to a radius, by Dijkstra's algorithm. Used to build a
//! predecoder.
//!
//! Cold code only; bounded by the graph.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::code::graph::Graph;

/// An edge, seen from one of its ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Neighbour {
    /// The other end; `None` is the boundary.
    pub(super) to: Option<u32>,
    pub(super) weight: f64,
    /// Index of the edge in the graph.
    pub(super) edge: usize,
}

/// Per detector, its edges.
pub(super) type Neighbours = Vec<Vec<Neighbour>>;

/// The edges of `graph`, by detector.
pub(super) fn neighbours(graph: &Graph) -> Neighbours {
    let mut neighbours: Neighbours = vec![Vec::new(); graph.detectors as usize];
    for (index, edge) in graph.edges.iter().enumerate() {
        let neighbour = |to| Neighbour { to, weight: edge.weight, edge: index };
        neighbours[edge.a as usize].push(neighbour(edge.b));
        if let Some(b) = edge.b {
            neighbours[b as usize].push(neighbour(Some(edge.a)));
        }
    }
    neighbours
}

/// Distance of every detector to the boundary; infinite where no path leads to it.
pub(super) fn boundary_distances(neighbours: &Neighbours) -> Vec<f64> {
    let exits = (0u32..).zip(neighbours).flat_map(|(index, neighbours)| {
        neighbours.iter().filter(|neighbour| neighbour.to.is_none()).map(move |neighbour| (neighbour.weight, index))
    });
    let mut paths = Paths { distances: vec![f64::INFINITY; neighbours.len()], reached: Vec::new() };
    paths.search(neighbours, exits.collect::<Vec<_>>(), f64::INFINITY);
    paths.distances
}

/// A distance and its detector, ordered; distances are finite.
#[derive(PartialEq)]
struct Reach(f64, u32);

impl Eq for Reach {}

impl PartialOrd for Reach {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Reach {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0).then(self.1.cmp(&other.1))
    }
}

/// The result of a search. The next search reuses its memory.
pub(super) struct Paths {
    distances: Vec<f64>,
    reached: Vec<u32>,
}

impl Paths {
    pub(super) fn new(detectors: u32) -> Self {
        Self { distances: vec![f64::INFINITY; detectors as usize], reached: Vec::new() }
    }

    /// Finds the detectors closer than `radius` to the starts (distance so far, detector), not
    /// through the boundary.
    pub(super) fn search(
        &mut self,
        neighbours: &Neighbours,
        starts: impl IntoIterator<Item = (f64, u32)>,
        radius: f64,
    ) {
        for detector in self.reached.drain(..) {
            self.distances[detector as usize] = f64::INFINITY;
        }
        let mut queue = BinaryHeap::new();
        for (distance, start) in starts {
            self.offer(&mut queue, distance, start);
        }
        while let Some(Reverse(Reach(distance, detector))) = queue.pop() {
            if distance > self.distances[detector as usize] {
                continue;
            }
            for neighbour in &neighbours[detector as usize] {
                let further = distance + neighbour.weight;
                if let (Some(to), true) = (neighbour.to, further < radius) {
                    self.offer(&mut queue, further, to);
                }
            }
        }
    }

    fn offer(&mut self, queue: &mut BinaryHeap<Reverse<Reach>>, distance: f64, detector: u32) {
        let known = &mut self.distances[detector as usize];
        if distance < *known {
            if known.is_infinite() {
                self.reached.push(detector);
            }
            *known = distance;
            queue.push(Reverse(Reach(distance, detector)));
        }
    }

    /// Distance of a detector; infinite if the search did not reach it.
    pub(super) fn distance(&self, detector: u32) -> f64 {
        self.distances[detector as usize]
    }

    /// The detectors reached, the starts among them, in no order.
    pub(super) fn reached(&self) -> impl Iterator<Item = u32> + '_ {
        self.reached.iter().copied()
    }
}
