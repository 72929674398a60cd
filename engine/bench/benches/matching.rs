//! Matching of whole shots: time of a shot on one thread; and union-find beside it.
//!
//! On the surface codes of distance 3 and 5 that every checkout has, and up to 13 if larger sets lie
//! beside it or in `PINWHEEL_BENCH_DATA`. The matcher is the peer of union-find. Its own peer, the crate `stabilizer_qec`, takes two minutes to build and is only there
//! with the feature `peers`. All decode the same shots, packed 64 detectors to a word.

use super::input::{Input, all_surfaces};
use super::measure::{CLOCK, Placement, Suite, median, ns_per};
use pinwheel_engine::code::Model;
use pinwheel_engine::decode::MatcherModel;

/// Shots of a repetition.
const SHOTS: u64 = 2_000;
/// Shots between two stamps.
const WINDOW: usize = 100;
const REPETITIONS: (Placement, usize) = (Placement::OneCore, 7);

pub fn register(suite: &mut Suite) {
    for input in all_surfaces(suite.effort.scale(SHOTS)) {
        let ours = input.clone();
        let matching = |model: &Model| MatcherModel::new(model).unwrap();
        let run = move || vec![decode(&ours, matching)];
        let reading = suite.case(format!("match {}", input.name), &["shot"], REPETITIONS, run);
        let theirs = input.clone();
        let run = move || vec![decode(&theirs, |model| MatcherModel::union_find(model).unwrap())];
        let union_find = suite.case(format!("union-find {}", input.name), &["shot"], REPETITIONS, run);
        #[cfg(feature = "peers")]
        let peer = {
            let theirs = input.clone();
            let name = format!("match {}, stabilizer_qec", input.name);
            Some(("stabilizer_qec", suite.case(name, &["shot"], REPETITIONS, move || vec![peer::decode(&theirs)])))
        };
        #[cfg(not(feature = "peers"))]
        let peer = None;
        suite.figure(format!("matching/{}", input.name), "ns/shot", reading, peer);
        let matcher = Some(("sparse-blossom", reading));
        suite.figure(format!("matching/{}/union-find", input.name), "ns/shot", union_find, matcher);
    }
}

/// Time of a shot in the median window.
fn decode(input: &Input, prepared: impl Fn(&Model) -> MatcherModel) -> f64 {
    let mut matcher = prepared(&input.model).matcher();
    let mut observables = vec![0; input.model.observable_words()];
    each_window(input, |shot| {
        matcher.decode(shot, &mut observables).expect("shots of the model can be explained");
    })
}

/// Passes all shots; returns the time of a shot in the median window.
pub(super) fn each_window(input: &Input, mut decode: impl FnMut(&[u64])) -> f64 {
    let mut windows = Vec::new();
    for window in input.shots.words.chunks(WINDOW * input.shots.words_per_shot) {
        let from = CLOCK.ticks();
        window.chunks(input.shots.words_per_shot).for_each(&mut decode);
        windows.push(ns_per(from, (window.len() / input.shots.words_per_shot) as u64));
    }
    median(&windows)
}

#[cfg(feature = "peers")]
mod peer {
    use super::{Input, each_window};
    use pinwheel_engine::code::graph::Graph;
    use pinwheel_engine::code::ones;
    use stabilizer_qec::dem_decoder::int_weight;
    use stabilizer_qec::sparse::{Scratch, SparseGraph};

    /// The same by the library.
    pub(super) fn decode(input: &Input) -> f64 {
        let graph = Graph::new(&input.model).unwrap();
        let edges = graph.edges.iter().map(|edge| {
            let observables = edge.observables.first().copied().unwrap_or(0);
            (edge.a, edge.b.unwrap_or(graph.detectors), edge.weight, int_weight(edge.weight), observables)
        });
        let prepared = SparseGraph::from_weighted(graph.detectors as usize, &edges.collect::<Vec<_>>());
        let (mut scratch, mut defects) = (Scratch::new(&prepared), Vec::new());
        each_window(input, |shot| {
            defects.clear();
            defects.extend(ones(shot));
            if !defects.is_empty() {
                std::hint::black_box(prepared.decode(&mut scratch, &defects).expect("as above"));
            }
        })
    }
}
