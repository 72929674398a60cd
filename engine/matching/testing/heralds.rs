//! Shots with heralded erasures, for a test and an example.
//!
//! Data qubits of the distance 5 surface code are erased with 1 % before each round. An erased qubit
//! is left in a random state: each of its two edges, which join detectors of one round, is wrong
//! with one half. Both edges are drawn by themselves: no matching sees that they belong together.

use std::sync::Arc;

use pinwheel_code::code::graph::Graph;
use pinwheel_code::code::{Model, Sampler, bundled_named, flip, ones};
use pinwheel_matching::{Edge, Matcher, MatchingModel};

const ERASED: f64 = 0.01;

/// A shot.
pub(crate) struct Shot {
    /// Detectors that fired.
    pub(crate) fired: Vec<u32>,
    /// Edges of erased qubits.
    pub(crate) erased: Vec<u32>,
    /// True flips of the observable.
    pub(crate) flipped: u64,
}

/// The surface code at p = 0.001, and its graph.
pub(crate) fn surface() -> (Model, Graph) {
    let mut model = bundled_named("surface_d5").unwrap();
    // The bundled model with a fifth of its noise.
    model.errors.iter_mut().for_each(|error| error.probability /= 5.0);
    let graph = Graph::new(&model).unwrap();
    (model, graph)
}

/// The edges of data qubits: both detectors are of one round, or there is only one.
pub(crate) fn of_data(model: &Model, graph: &Graph) -> Vec<u32> {
    let time = |detector: u32| model.coordinates[detector as usize].last().copied();
    let edges = (0..).zip(&graph.edges);
    edges.filter(|(_, edge)| edge.b.is_none_or(|b| time(edge.a) == time(b))).map(|(index, _)| index).collect()
}

/// Draws `shots` shots, the same ones each time.
pub(crate) fn draw(model: &Model, graph: &Graph, shots: usize) -> Vec<Shot> {
    let (mut sampler, of_data, mut state) = (Sampler::new(model, 5), of_data(model, graph), 1u64);
    let mut below = move |end: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % end
    };
    let shot = |_| {
        let (mut fired, mut flipped) = (vec![0; model.detector_words()], vec![0; model.observable_words()]);
        sampler.draw(&mut fired, &mut flipped);
        let erased: Vec<u32> = of_data.iter().copied().filter(|_| below(1000) < 10).collect();
        for edge in erased.iter().map(|&edge| &graph.edges[edge as usize]).filter(|_| below(2) == 0) {
            flip(&mut fired, edge.a);
            edge.b.into_iter().for_each(|b| flip(&mut fired, b));
            flipped[0] ^= edge.observables[0];
        }
        Shot { fired: ones(&fired).collect(), erased, flipped: flipped[0] }
    };
    (0..shots).map(shot).collect()
}

/// A matcher with the weights of `graph`; those of the edges `unseen` are of qubits that are also
/// erased unseen.
pub(crate) fn matcher(graph: &Graph, unseen: &[u32]) -> Matcher {
    let edges = (0..).zip(&graph.edges).map(|(index, edge)| {
        let p = 1.0 / (1.0 + edge.weight.exp());
        let erased = if unseen.contains(&index) { ERASED / 2.0 } else { 0.0 };
        let p = p * (1.0 - erased) + erased * (1.0 - p);
        Edge { a: edge.a, b: edge.b, weight: ((1.0 - p) / p).ln(), observables: &edge.observables }
    });
    Matcher::new(Arc::new(MatchingModel::new(graph.detectors, 1, edges).unwrap()))
}

/// Decodes a shot with its heralds: edges of erased qubits weigh nothing.
pub(crate) fn with_heralds(matcher: &mut Matcher, shot: &Shot) -> u64 {
    let mut found = [0];
    let weights = shot.erased.iter().map(|&edge| (edge, 0.0));
    matcher.decode_weighted(shot.fired.iter().copied(), weights, &mut found).unwrap();
    found[0]
}

/// Decodes a shot without them.
pub(crate) fn without(matcher: &mut Matcher, shot: &Shot) -> u64 {
    let mut found = [0];
    matcher.decode(shot.fired.iter().copied(), &mut found).unwrap();
    found[0]
}
