//! The part of a matching graph that belongs to one window.
//!
//! Cold code cuts every window once; equal cuts share one form. Bounded by the window. Numbers in a
//! cut are relative to its window, so that identical windows compare equal.

use super::Window;
use crate::code::Rounds;
use crate::code::graph::{Edge, Graph};
use crate::code::{flip, words};

/// In [`Cut::detector_at`]: a bit without a detector.
const NOBODY: u32 = u32::MAX;

/// The effect of committing an edge.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Commit {
    /// Bits flipped in the carry, counted from the window's first word; they may lie beyond the
    /// window's own words.
    pub(super) flips: Vec<u32>,
    /// Packed observables that it flips.
    pub(super) observables: Vec<u64>,
    /// The weight of the edge.
    pub(super) weight: f64,
}

/// A window's graph, and the mapping back to the carry.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cut {
    /// The window's detectors, in the model's order but numbered from 0, and its edges. Edges into
    /// the future have one end.
    pub(super) graph: Graph,
    /// The graph's detector for each bit of the window's words.
    detector_at: Vec<u32>,
    /// For each edge of the graph; `None` if the window does not commit it.
    pub(super) commits: Vec<Option<Commit>>,
    /// Ends of committed edges outside of the commit rounds, as bits of the carry from the window's
    /// first word on. The window's matching has one bit for each, after the observables.
    pub(super) outer: Vec<u32>,
    /// Words of the carry, from the window's first on, that hold its commit rounds.
    pub(super) commit_words: usize,
    /// Whether the window commits all its rounds.
    pub(super) is_last: bool,
}

impl Cut {
    /// The graph's detector for a bit of the window's words.
    pub(super) fn detector_at(&self, bit: u32) -> u32 {
        let detector = self.detector_at[bit as usize];
        debug_assert_ne!(detector, NOBODY, "a fired bit must belong to a detector");
        detector
    }
}

impl Cut {
    /// The window's graph for matching; unchanged for the last window. In other windows a committed
    /// edge flips its `observables` bits and then those of [`Self::outer`]; other edges flip
    /// nothing.
    pub(super) fn matching_graph(&self, observables: u32) -> Graph {
        let mut graph = self.graph.clone();
        if self.is_last {
            return graph;
        }
        let words = words(observables + self.outer.len() as u32).max(1);
        graph.observable_words = words;
        graph.always_observables = vec![0; words];
        for (edge, commit) in graph.edges.iter_mut().zip(&self.commits) {
            let mut flipped = vec![0; words];
            if let Some(commit) = commit {
                flipped.iter_mut().zip(&commit.observables).for_each(|(word, by)| *word = *by);
                for at in commit.flips.iter().filter_map(|bit| self.outer.binary_search(bit).ok()) {
                    flip(&mut flipped, observables + at as u32);
                }
            }
            edge.observables = flipped;
        }
        graph
    }
}

/// Cuts one graph into windows.
pub(super) struct Cutter<'a> {
    graph: &'a Graph,
    rounds: &'a Rounds,
    /// The edges, by the round of their earliest end.
    begun: Vec<Vec<u32>>,
}

impl<'a> Cutter<'a> {
    pub(super) fn new(graph: &'a Graph, rounds: &'a Rounds) -> Self {
        let mut begun = vec![Vec::new(); rounds.count() as usize];
        for (index, edge) in (0..).zip(&graph.edges) {
            let earliest = ends(edge).map(|end| rounds.of(end)).min();
            begun[earliest.unwrap_or(0) as usize].push(index);
        }
        Self { graph, rounds, begun }
    }

    /// The window's cut, and the end of the rounds that its commits may flip.
    pub(super) fn cut(&self, window: &Window) -> (Cut, u32) {
        let mut detectors: Vec<u32> =
            window.rounds.clone().flat_map(|round| self.rounds.members(round)).copied().collect();
        detectors.sort_unstable();
        let own_words = self.rounds.words(window.rounds.clone());
        let first_bit = bits(own_words.start);
        let mut detector_at = vec![NOBODY; own_words.len() * 64];
        for (local, &detector) in (0..).zip(&detectors) {
            detector_at[(self.rounds.position(detector) - first_bit) as usize] = local;
        }
        let mut indices: Vec<u32> = window.rounds.clone().flat_map(|r| &self.begun[r as usize]).copied().collect();
        indices.sort_unstable();
        let (mut edges, mut commits, mut touched) = (Vec::new(), Vec::new(), window.rounds.start);
        for index in indices {
            let edge = &self.graph.edges[index as usize];
            edges.push(local_edge(edge, &detectors));
            let is_committed = ends(edge).any(|end| window.commits.contains(&self.rounds.of(end)));
            commits.push(is_committed.then(|| {
                touched = ends(edge).map(|end| self.rounds.of(end) + 1).fold(touched, u32::max);
                let flips = ends(edge).map(|end| self.rounds.position(end) - first_bit).collect();
                Commit { flips, observables: edge.observables.clone(), weight: edge.weight }
            }));
        }
        let graph = self.graph_of(&detectors, edges);
        let commit_words = self.rounds.words(window.commits.clone()).len();
        let flips = commits.iter().flatten().flat_map(|commit| commit.flips.iter().copied());
        let mut outer: Vec<u32> = flips.filter(|&bit| bit >= bits(commit_words)).collect();
        outer.sort_unstable();
        outer.dedup();
        let is_last = window.is_last();
        (Cut { graph, detector_at, commits, outer, commit_words, is_last }, touched)
    }

    /// Builds the window's graph. The always-flipped bits apply once per shot, so they are empty
    /// here.
    fn graph_of(&self, detectors: &[u32], edges: Vec<Edge>) -> Graph {
        let detectors = u32::try_from(detectors.len()).unwrap_or(u32::MAX);
        Graph {
            detectors,
            detector_words: words(detectors),
            soft_words: 0,
            observable_words: self.graph.observable_words,
            edges,
            always_detectors: vec![0; words(detectors)],
            always_observables: vec![0; self.graph.observable_words],
            always_weight: 0.0,
            herald_detectors: vec![0; words(detectors)],
        }
    }
}

fn ends(edge: &Edge) -> impl Iterator<Item = u32> {
    std::iter::once(edge.a).chain(edge.b)
}

/// `edge` in the window's own numbers: an end outside of it becomes the boundary.
fn local_edge(edge: &Edge, detectors: &[u32]) -> Edge {
    let local = |end: u32| detectors.binary_search(&end).ok().and_then(|index| u32::try_from(index).ok());
    let mut inside = ends(edge).filter_map(local);
    let a = inside.next().unwrap_or(NOBODY);
    Edge { a, b: inside.next(), weight: edge.weight, observables: edge.observables.clone() }
}

fn bits(words: usize) -> u32 {
    u32::try_from(words * 64).unwrap_or(u32::MAX)
}
