//! Shortest paths on the graph: from one node to all, to another, or to the boundary.
//!
//! Cold code fills tables with it; a matcher finds the edges between two matched defects where it
//! has no table. Dijkstra's search over one part; memory for each node, allocated by [`Paths::new`].

use crate::graph::{Graph, Half, NONE, Part};
use crate::queue::EventQueue;

/// Not reached.
pub(crate) const FAR: i64 = i64::MAX;

/// A search for shortest paths.
#[derive(Debug)]
pub(crate) struct Paths {
    /// For each node, the boundary last: its distance.
    pub(crate) distance: Vec<i64>,
    /// The half-edge by which it was reached, and the node it came from.
    came_by: Vec<(u32, u32)>,
    queue: EventQueue,
    touched: Vec<u32>,
}

impl Paths {
    /// A search over `graph`.
    pub(crate) fn new(graph: &Graph) -> Self {
        let nodes = graph.boundary() as usize + 1;
        Self {
            distance: vec![FAR; nodes],
            came_by: vec![(NONE, NONE); nodes],
            queue: EventQueue::new(nodes),
            touched: Vec::with_capacity(nodes),
        }
    }

    /// Bytes on the heap.
    pub(crate) fn bytes(&self) -> usize {
        self.distance.capacity() * 8 + self.came_by.capacity() * 8 + self.queue.bytes() + self.touched.capacity() * 4
    }

    /// Distances from `from`, until `to` is settled; from everything in reach if `to` is [`NONE`].
    /// Paths end at the boundary and do not lead through it.
    pub(crate) fn search(&mut self, graph: &Graph, halves: &[Half], from: u32, to: u32) {
        self.reset();
        self.reach(from, 0, (NONE, NONE));
        self.spread(graph, halves, to);
    }

    /// Distances from the boundary to all nodes of `part`. A node beside it is reached by its own
    /// half-edge.
    pub(crate) fn search_from_boundary(&mut self, graph: &Graph, part: &Part) {
        self.reset();
        for node in part.first..part.first + part.nodes {
            for half in graph.starts[node as usize]..graph.starts[node as usize + 1] {
                let Half { to, weight } = graph.halves[half as usize];
                if to == graph.boundary() {
                    self.reach(node, i64::from(weight), (half, to));
                }
            }
        }
        self.spread(graph, &graph.halves, NONE);
    }

    fn reset(&mut self) {
        for &node in &self.touched {
            self.distance[node as usize] = FAR;
        }
        self.touched.clear();
        self.queue.clear();
    }

    /// Settles nodes by their distance, until `to` is settled.
    fn spread(&mut self, graph: &Graph, halves: &[Half], to: u32) {
        while let Some(node) = self.queue.pop() {
            if node == to {
                return;
            }
            if node == graph.boundary() {
                continue;
            }
            let distance = self.queue.now();
            let (first, end) = (graph.starts[node as usize], graph.starts[node as usize + 1]);
            for half in first..end {
                let Half { to, weight } = halves[half as usize];
                self.reach(to, distance + i64::from(weight), (half, node));
            }
        }
    }

    fn reach(&mut self, node: u32, distance: i64, by: (u32, u32)) {
        let known = &mut self.distance[node as usize];
        if distance >= *known {
            return;
        }
        if *known == FAR {
            self.touched.push(node);
        }
        *known = distance;
        self.came_by[node as usize] = by;
        self.queue.set(node, distance);
    }

    /// The edges from `to` back to where the last search began.
    pub(crate) fn edges<'a>(&'a self, graph: &'a Graph, to: u32) -> impl Iterator<Item = u32> + 'a {
        let mut at = to;
        std::iter::from_fn(move || {
            let half = self.last_half(at)?;
            (_, at) = self.came_by[at as usize];
            Some(graph.edge_of[half as usize])
        })
    }

    /// The half-edge by which the last search reached `to`.
    pub(crate) fn last_half(&self, to: u32) -> Option<u32> {
        let (half, _) = self.came_by[to as usize];
        (half != NONE && self.distance[to as usize] != FAR).then_some(half)
    }

    /// The node from which the last search reached `to`.
    pub(crate) fn came_from(&self, to: u32) -> u32 {
        self.came_by[to as usize].1
    }
}
