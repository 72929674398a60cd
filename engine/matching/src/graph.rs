//! The matching problem: detectors, edges, integer weights, connected parts.
//!
//! Built once by cold code from plain data; read by every matcher. Bounded by the model: 24 bytes
//! for each end of an edge, 24 and the observables for each edge.
//!
//! # Integer weights
//!
//! Weights become even integers, `2 * round(weight * scale)`, so that two regions that grow towards
//! each other meet at an integer time. The scale is 2^18 for each unit of weight (for `ln((1-p)/p)`:
//! nats), and less, by powers of two, if the heaviest edge would exceed 2^29. A matching of `k`
//! edges is thus rounded by at most `k / (2 * scale)`: 2 millionths of a nat for each edge.
//!
//! # Negative weights
//!
//! An edge of negative weight is used in advance: its two detectors and its observables are flipped
//! in every shot, its weight is added to every answer, and the search sees the opposite weight. An
//! answer that uses it then takes it back.
//!
//! # Numbers of nodes
//!
//! Inside the crate a detector is a *node*: nodes of one connected part are consecutive. The number
//! behind the last node stands for the boundary.

use std::ops::Range;

/// No index.
pub(crate) const NONE: u32 = u32::MAX;
/// Units for each unit of weight, halved because integer weights are even.
const SCALE_MAX: f64 = (1 << 18) as f64;
/// Heaviest integer weight, halved.
const HALF_WEIGHT_MAX: f64 = (1 << 28) as f64;
/// Detectors and edges that indices have room for.
const SIZE_MAX: usize = 1 << 29;

/// An edge as the caller gives it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Edge<'a> {
    /// A detector.
    pub a: u32,
    /// Another detector, or the boundary.
    pub b: Option<u32>,
    /// Any finite number; for errors of probability `p`, `ln((1-p)/p)`.
    pub weight: f64,
    /// Packed observables that the edge flips; missing words are 0.
    pub observables: &'a [u64],
}

/// Why edges are not a matching problem.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum GraphError {
    #[error("edge {edge} ends at detector {detector}, but there are {detectors}; check the number of detectors")]
    Detector {
        /// Index of the edge, from 0.
        edge: usize,
        detector: u32,
        detectors: u32,
    },
    #[error("edge {edge} joins detector {detector} to itself; leave it out: it explains nothing")]
    Loop {
        /// Index of the edge, from 0.
        edge: usize,
        detector: u32,
    },
    #[error("the weight of edge {edge} is {weight}; give a finite one")]
    Weight {
        /// Index of the edge, from 0.
        edge: usize,
        weight: f64,
    },
    #[error("edge {edge} has {found} words of observables, but the graph has {words}")]
    Observables {
        /// Index of the edge, from 0.
        edge: usize,
        found: usize,
        words: usize,
    },
    #[error("{found} {what} are too many; a graph has room for 536870912")]
    Size {
        /// `detectors`, `edges` or `words of observables`.
        what: &'static str,
        found: usize,
    },
}

/// One end's view of an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Half {
    /// The node at the other end; the boundary is the number behind the last node. In a stream see
    /// [`Adjacency::counts_from`].
    pub(crate) to: u32,
    /// Integer weight, even.
    pub(crate) weight: u32,
}

/// Nodes and their edges, as one search reads them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Adjacency<'a> {
    /// For each node its first half-edge, and behind it the end of its last.
    pub(crate) starts: &'a [u32],
    pub(crate) halves: &'a [Half],
    /// For each half-edge the other end's, counted from the first of its node; [`NONE`] at the
    /// boundary.
    pub(crate) twins: &'a [u32],
    /// For each half-edge its observables, if they fit one word and the search adds them up.
    pub(crate) observables: &'a [u64],
    /// What [`Half::to`] counts from: all bits are set for the half-edge's own node, so that nodes
    /// alike share their half-edges, and none for node 0.
    pub(crate) counts_from: u32,
    /// Whether the half-edges of each node ascend by weight.
    pub(crate) is_by_weight: bool,
}

impl Adjacency<'_> {
    /// The half-edges of `node`.
    #[inline]
    pub(crate) fn of(&self, node: u32) -> Range<usize> {
        self.starts[node as usize] as usize..self.starts[node as usize + 1] as usize
    }

    /// The other end of `half`, which is one of `node`.
    #[inline]
    pub(crate) const fn other(&self, node: u32, half: Half) -> u32 {
        (node & self.counts_from).wrapping_add(half.to)
    }

    /// The other end's view of `half`, which leads to node `to`.
    #[inline]
    pub(crate) fn twin(&self, half: usize, to: u32) -> u32 {
        self.starts[to as usize] + self.twins[half]
    }
}

/// An edge in the graph's own numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ends {
    /// Nodes; `b` may be the boundary.
    pub(crate) a: u32,
    pub(crate) b: u32,
    /// The half-edges of `a` and `b`; [`NONE`] at the boundary.
    pub(crate) halves: [u32; 2],
    /// Signed integer weight.
    pub(crate) weight: i64,
}

/// Nodes that edges connect.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    pub(crate) first: u32,
    pub(crate) nodes: u32,
    pub(crate) has_boundary: bool,
}

/// Nodes, edges, and their numbers.
#[derive(Debug)]
pub(crate) struct Graph {
    pub(crate) node_of: Vec<u32>,
    pub(crate) detector_of: Vec<u32>,
    pub(crate) part_of: Vec<u32>,
    pub(crate) parts: Vec<Part>,
    pub(crate) edges: Vec<Ends>,
    pub(crate) starts: Vec<u32>,
    pub(crate) halves: Vec<Half>,
    /// The edge of each half-edge.
    pub(crate) edge_of: Vec<u32>,
    /// The other end's half-edge of each, counted from the first of its node; [`NONE`] at the
    /// boundary.
    pub(crate) twins: Vec<u32>,
    /// Packed observables of each edge.
    pub(crate) observables: Vec<u64>,
    /// Observables of each half-edge; empty if they do not fit one word.
    pub(crate) half_observables: Vec<u64>,
    pub(crate) observable_words: usize,
    /// Detectors that an odd number of edges of negative weight flips, ascending.
    pub(crate) always_detectors: Vec<u32>,
    pub(crate) always_observables: Vec<u64>,
    /// The edges of negative weight.
    pub(crate) always_edges: Vec<u32>,
    pub(crate) always_weight: i64,
    /// Integer units for each unit of weight.
    pub(crate) scale: f64,
}

impl Graph {
    /// The graph of `detectors` detectors and `edges`, whose observables take `observable_words`
    /// words. Parallel edges may differ in everything; searches use the lightest.
    ///
    /// # Errors
    ///
    /// [`GraphError`]: it names the edge by its index.
    pub(crate) fn new<'a>(
        detectors: u32,
        observable_words: usize,
        edges: impl IntoIterator<Item = Edge<'a>>,
    ) -> Result<Self, GraphError> {
        let edges: Vec<Edge<'a>> = edges.into_iter().collect();
        checked(detectors, observable_words, &edges)?;
        let heaviest = edges.iter().map(|edge| edge.weight.abs()).fold(0.0, f64::max);
        let mut half_scale = SCALE_MAX;
        while heaviest * half_scale > HALF_WEIGHT_MAX {
            half_scale /= 2.0;
        }
        let mut graph = Self::numbered(detectors, &edges);
        graph.observable_words = observable_words;
        graph.always_observables = vec![0; observable_words];
        graph.scale = 2.0 * half_scale;
        for edge in &edges {
            graph.observables.extend((0..observable_words).map(|word| edge.observables.get(word).unwrap_or(&0)));
        }
        for edge in &edges {
            let node = |detector: u32| graph.node_of[detector as usize];
            let (a, b) = (node(edge.a), edge.b.map_or(detectors, node));
            let weight = graph.units(edge.weight);
            graph.edges.push(Ends { a, b, halves: [NONE; 2], weight });
        }
        graph.link();
        graph.apply_negative();
        graph.shrink_to_fit();
        Ok(graph)
    }

    /// Gives back what its lists have reserved while they grew.
    fn shrink_to_fit(&mut self) {
        self.parts.shrink_to_fit();
        self.edges.shrink_to_fit();
        self.halves.shrink_to_fit();
        self.edge_of.shrink_to_fit();
        self.twins.shrink_to_fit();
        self.observables.shrink_to_fit();
        self.half_observables.shrink_to_fit();
        self.always_detectors.shrink_to_fit();
        self.always_edges.shrink_to_fit();
    }

    /// Numbers the nodes part by part.
    fn numbered(detectors: u32, edges: &[Edge<'_>]) -> Self {
        let count = detectors as usize;
        let mut root: Vec<u32> = (0..detectors).collect();
        for edge in edges {
            let Some(b) = edge.b else { continue };
            let (a, b) = (find(&mut root, edge.a), find(&mut root, b));
            root[a.max(b) as usize] = a.min(b);
        }
        let mut sizes = vec![0u32; count];
        let roots: Vec<u32> = (0..detectors).map(|detector| find(&mut root, detector)).collect();
        roots.iter().for_each(|&of| sizes[of as usize] += 1);
        let (mut parts, mut part_of_root, mut first) = (Vec::new(), vec![NONE; count], 0);
        for (detector, &nodes) in sizes.iter().enumerate().filter(|&(_, &nodes)| nodes > 0) {
            part_of_root[detector] = parts.len() as u32;
            parts.push(Part { first, nodes, has_boundary: false });
            first += nodes;
        }
        for edge in edges.iter().filter(|edge| edge.b.is_none()) {
            parts[part_of_root[roots[edge.a as usize] as usize] as usize].has_boundary = true;
        }
        let mut next: Vec<u32> = parts.iter().map(|part: &Part| part.first).collect();
        let (mut node_of, mut detector_of, mut part_of) = (vec![0; count], vec![0; count], vec![0; count]);
        for detector in 0..detectors {
            let part = part_of_root[roots[detector as usize] as usize];
            let node = next[part as usize];
            next[part as usize] += 1;
            node_of[detector as usize] = node;
            detector_of[node as usize] = detector;
            part_of[node as usize] = part;
        }
        Self {
            node_of,
            detector_of,
            part_of,
            parts,
            edges: Vec::with_capacity(edges.len()),
            starts: Vec::new(),
            halves: Vec::new(),
            edge_of: Vec::new(),
            twins: Vec::new(),
            observables: Vec::new(),
            half_observables: Vec::new(),
            observable_words: 0,
            always_detectors: Vec::new(),
            always_observables: Vec::new(),
            always_edges: Vec::new(),
            always_weight: 0,
            scale: 0.0,
        }
    }

    /// Sorts the half-edges by their node, those of a node by weight.
    fn link(&mut self) {
        let boundary = self.boundary();
        let mut starts = vec![0u32; self.node_of.len() + 2];
        for edge in &self.edges {
            starts[edge.a as usize + 1] += 1;
            starts[edge.b as usize + 1] += u32::from(edge.b != boundary);
        }
        for index in 1..starts.len() {
            starts[index] += starts[index - 1];
        }
        let total = starts.last().copied().unwrap_or(0) as usize;
        let mut next = starts.clone();
        self.halves = vec![Half { to: NONE, weight: 0 }; total];
        self.edge_of = vec![NONE; total];
        let mut order: Vec<u32> = (0..self.edges.len() as u32).collect();
        order.sort_by_key(|&edge| self.edges[edge as usize].weight.unsigned_abs());
        for index in order {
            let edge = &mut self.edges[index as usize];
            for (side, (from, to)) in [(edge.a, edge.b), (edge.b, edge.a)].into_iter().enumerate() {
                if from == boundary {
                    continue;
                }
                let half = next[from as usize];
                next[from as usize] += 1;
                self.halves[half as usize] = Half { to, weight: edge.weight.unsigned_abs() as u32 };
                self.edge_of[half as usize] = index;
                edge.halves[side] = half;
            }
        }
        self.twins = vec![NONE; total];
        for edge in self.edges.iter().filter(|edge| edge.b != boundary) {
            let [a, b] = edge.halves;
            self.twins[a as usize] = b - starts[edge.b as usize];
            self.twins[b as usize] = a - starts[edge.a as usize];
        }
        if self.observable_words <= 1 {
            let of = |&edge: &u32| self.observables.get(edge as usize).copied().unwrap_or(0);
            self.half_observables = self.edge_of.iter().map(of).collect();
        }
        self.starts = starts;
    }

    /// Adds up the effect of the edges of negative weight.
    fn apply_negative(&mut self) {
        let mut flipped = vec![false; self.node_of.len() + 1];
        for (index, edge) in self.edges.iter().enumerate().filter(|(_, edge)| edge.weight < 0) {
            flipped[edge.a as usize] ^= true;
            flipped[edge.b as usize] ^= true;
            self.always_weight += edge.weight;
            self.always_edges.push(index as u32);
            let at = index * self.observable_words;
            let words = &self.observables[at..at + self.observable_words];
            self.always_observables.iter_mut().zip(words).for_each(|(word, by)| *word ^= by);
        }
        let nodes = self.node_of.iter().enumerate().filter(|&(_, &node)| flipped[node as usize]);
        self.always_detectors = nodes.map(|(detector, _)| detector as u32).collect();
    }

    /// The node that stands for the boundary.
    pub(crate) const fn boundary(&self) -> u32 {
        self.node_of.len() as u32
    }

    /// The integer weight of `weight`, at most 2^29 either way.
    #[inline]
    pub(crate) fn units(&self, weight: f64) -> i64 {
        let halves = (weight * (self.scale / 2.0)).clamp(-HALF_WEIGHT_MAX, HALF_WEIGHT_MAX);
        // Rounds without a call of the library: the sum is below 2^29.
        2 * (halves + 0.5f64.copysign(halves)) as i64
    }

    #[inline]
    pub(crate) fn observables_of(&self, edge: u32) -> &[u64] {
        let at = edge as usize * self.observable_words;
        &self.observables[at..at + self.observable_words]
    }

    /// Number of edges.
    pub(crate) const fn edges(&self) -> u32 {
        self.edges.len() as u32
    }

    /// Bytes on the heap.
    pub(crate) fn bytes(&self) -> usize {
        let words = self.node_of.len() + self.detector_of.len() + self.part_of.len() + self.starts.len();
        let words =
            words + self.edge_of.len() + self.twins.len() + self.always_detectors.len() + self.always_edges.len();
        let longs = self.observables.len() + self.half_observables.len() + self.always_observables.len();
        4 * words
            + 8 * longs
            + self.parts.len() * size_of::<Part>()
            + self.edges.len() * size_of::<Ends>()
            + self.halves.len() * size_of::<Half>()
    }
}

/// Refuses edges that no search could use.
fn checked(detectors: u32, words: usize, edges: &[Edge<'_>]) -> Result<(), GraphError> {
    for (what, found) in [("detectors", detectors as usize), ("edges", edges.len()), ("words of observables", words)] {
        if found > SIZE_MAX {
            return Err(GraphError::Size { what, found });
        }
    }
    for (index, edge) in edges.iter().enumerate() {
        if let Some(detector) = std::iter::once(edge.a).chain(edge.b).find(|&end| end >= detectors) {
            return Err(GraphError::Detector { edge: index, detector, detectors });
        }
        if edge.b == Some(edge.a) {
            return Err(GraphError::Loop { edge: index, detector: edge.a });
        }
        if !edge.weight.is_finite() {
            return Err(GraphError::Weight { edge: index, weight: edge.weight });
        }
        if edge.observables.len() > words {
            return Err(GraphError::Observables { edge: index, found: edge.observables.len(), words });
        }
    }
    Ok(())
}

/// The root of `of`, with its path halved.
fn find(root: &mut [u32], mut of: u32) -> u32 {
    while root[of as usize] != of {
        let up = root[root[of as usize] as usize];
        root[of as usize] = up;
        of = up;
    }
    of
}
