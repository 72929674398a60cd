//! Decodes the shots of a file, for comparison with other decoders on the same files; see
//! `engine/bench/pymatching`.
//!
//! ```sh
//! decode F.dem F.b8 OUT [--correlated | --union-find] [--laps N] [--single]
//! ```
//!
//! Writes `OUT.b8` (predictions) and `OUT.f64` (weights, little-endian, one for each shot), and prints the
//! mean time of a shot in each of N laps over the file, in ns. With `--single` each shot is timed by
//! itself; one line has the median and the 99.9 % quantile over the shots of the least time of each.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods, reason = "a tool for tests")]

use std::sync::Arc;
use std::time::Instant;

use pinwheel_code::code::correlations::correlations;
use pinwheel_code::code::graph::Graph;
use pinwheel_code::code::{Format, Layout, Model, ShotSet, ShotWriter, ones};
use pinwheel_matching::{
    CorrelatedMatcher, CorrelatedModel, Correlation, Edge, MatchError, Matched, Matcher, MatchingModel, UnionFind,
};

enum Decoder {
    Plain(Matcher),
    Correlated(CorrelatedMatcher),
    UnionFind(UnionFind),
}

impl Decoder {
    fn new(model: &Model, is_correlated: bool, is_union_find: bool) -> (Self, Graph) {
        let graph = Graph::new(model).unwrap();
        let edges = graph.edges.iter().map(|edge| Edge {
            a: edge.a,
            b: edge.b,
            weight: edge.weight,
            observables: &edge.observables,
        });
        let matching = Arc::new(MatchingModel::new(graph.detectors, graph.observable_words, edges).unwrap());
        if is_union_find {
            return (Self::UnionFind(UnionFind::new(matching)), graph);
        }
        if !is_correlated {
            return (Self::Plain(Matcher::new(matching)), graph);
        }
        let of = correlations(model, &graph).into_iter();
        let of = of.map(|by| Correlation { edge: by.edge, other: by.other, weight: by.weight });
        let model = CorrelatedModel::new(matching, of).unwrap();
        (Self::Correlated(CorrelatedMatcher::new(Arc::new(model))), graph)
    }

    fn decode(&mut self, fired: impl IntoIterator<Item = u32>, observables: &mut [u64]) -> Result<Matched, MatchError> {
        match self {
            Self::Plain(matcher) => matcher.decode(fired, observables),
            Self::Correlated(matcher) => matcher.decode(fired, observables),
            Self::UnionFind(decoder) => decoder.decode(fired, observables),
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    let laps = arguments.iter().position(|argument| argument == "--laps");
    let laps: usize = laps.map_or(1, |at| arguments[at + 1].parse().unwrap());
    let model = Model::parse(&std::fs::read(&arguments[0]).unwrap()).unwrap();
    let layout = Layout::detectors(model.detectors);
    let shots = ShotSet::read(&std::fs::read(&arguments[1]).unwrap()[..], Format::B8, layout).unwrap();
    let (mut decoder, graph) = Decoder::new(&model, has("--correlated"), has("--union-find"));

    let mut predictions = ShotWriter::new(Vec::new(), Format::B8, Layout::observables(model.observables));
    let mut weights = Vec::new();
    for index in 0..shots.len() {
        let always = graph.always_detectors.iter().zip(shots.shot(index)).map(|(always, word)| always ^ word);
        let mut observables = graph.always_observables.clone();
        let matched = decoder.decode(ones(&always.collect::<Vec<u64>>()), &mut observables);
        // A shot that cannot be matched weighs nothing and flips nothing.
        let weight = matched.as_ref().map_or(f64::NAN, |matched| matched.weight + graph.always_weight);
        if matched.is_err() {
            observables.fill(0);
        }
        predictions.write_shot(&observables).unwrap();
        weights.extend(weight.to_le_bytes());
    }
    std::fs::write(format!("{}.b8", arguments[2]), predictions.finish().unwrap()).unwrap();
    std::fs::write(format!("{}.f64", arguments[2]), weights).unwrap();

    let mut observables = graph.always_observables.clone();
    let mut decode = |index| std::hint::black_box(decoder.decode(ones(shots.shot(index)), &mut observables)).is_ok();
    if has("--single") {
        let mut least = vec![u128::MAX; shots.len()];
        for _ in 0..laps {
            for (index, least) in least.iter_mut().enumerate() {
                let before = Instant::now();
                decode(index);
                *least = before.elapsed().as_nanos().min(*least);
            }
        }
        least.sort_unstable();
        println!("{} {}", least[least.len() / 2], least[least.len() * 999 / 1000]);
        return;
    }
    for _ in 0..laps {
        let start = Instant::now();
        for index in 0..shots.len() {
            decode(index);
        }
        println!("{}", start.elapsed().as_nanos() as f64 / shots.len() as f64);
    }
}
