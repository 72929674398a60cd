//! Union-find: every answer explains its shot, what has no explanation is refused, and logical errors
//! are nearly as few as matching's.
use std::sync::Arc;

use pinwheel_code::code::{Model, Sampler, ones};
use pinwheel_matching::{Edge, MatchError, Matcher, MatchingModel, TABLE_BYTES_MAX, UnionFind};

use crate::oracle::{Case, Draws, case, model};

/// The detectors that fire if the errors at `edges` happen, and the sum of their weights.
fn explained(case: &Case, edges: impl Iterator<Item = u32>) -> (u64, i64) {
    edges.map(|index| &case.edges[index as usize]).fold((0, 0), |(fired, weight), edge| {
        (fired ^ 1 << edge.a ^ edge.b.map_or(0, |b| 1 << b), weight + edge.weight)
    })
}

/// One observable for each edge: an answer says which edges it has. What it says explains the shot and
/// weighs what it says; it is given if and only if there is a matching, and is never lighter.
#[test]
fn every_answer_explains_its_shot() {
    let graphs = crate::oracle::graphs(20_000);
    let (mut answered, mut heavier, mut refused) = (0, 0, 0);
    for seed in 0..graphs {
        let mut draws = Draws(seed);
        let mut case = case(&mut draws);
        case.words = case.edges.len().div_ceil(64);
        for (index, edge) in case.edges.iter_mut().enumerate() {
            edge.observables = vec![0; case.words];
            edge.observables[index / 64] = 1 << (index % 64);
        }
        let model = Arc::new(model(&case, 0));
        let (mut exact, mut decoder) = (Matcher::new(Arc::clone(&model)), UnionFind::new(model));
        for _ in 0..6 {
            let density = 1 + draws.below(8);
            let fired = (0..case.detectors).fold(0u64, |bits, at| bits | u64::from(draws.below(8) < density) << at);
            let listed = || (0..case.detectors).filter(|&at| fired >> at & 1 == 1);
            let mut found = vec![0; case.words];
            let answer = decoder.decode(listed(), &mut found);
            match (answer, exact.decode(listed(), &mut vec![0; case.words])) {
                (Ok(answer), Ok(least)) => {
                    let said = format!("seed {seed}: fired {fired:b}: {answer:?}; {case:?}");
                    let (shot, weight) = explained(&case, ones(&found));
                    assert_eq!((shot, weight * 512), (fired, answer.units), "{said}");
                    assert!(answer.units >= least.units, "lighter than {least:?}: {said}");
                    let mut edges = Vec::new();
                    decoder.edges(|edge| edges.push(edge));
                    assert_eq!(edges, ones(&found).collect::<Vec<_>>(), "{said}");
                    answered += 1;
                    heavier += u64::from(answer.units > least.units);
                }
                (Err(MatchError::Unmatchable { detector }), Err(MatchError::Unmatchable { .. })) => {
                    assert!(detector < case.detectors);
                    refused += 1;
                }
                (answer, exact) => panic!("seed {seed}: fired {fired:b}: {answer:?}, expected {exact:?}; {case:?}"),
            }
        }
    }
    assert!(answered > refused && refused > graphs / 20, "{answered} answered, {refused} refused");
    assert!(heavier > graphs / 200 && heavier < answered / 4, "{heavier} of {answered} are heavier than the lightest");
}

/// The detectors 0 and 1 with a boundary, 2 and 3 without, 4 without edges.
fn parts() -> UnionFind {
    let edge = |a, b, weight, observables| Edge { a, b, weight, observables };
    let edges = [
        edge(0, None, 2.0, &[1][..]),
        edge(0, Some(1), 2.5, &[2]),
        edge(2, Some(3), 1.0, &[4]),
        edge(2, Some(3), 0.5, &[8]),
    ];
    UnionFind::new(Arc::new(MatchingModel::new(5, 1, edges).unwrap()))
}

#[test]
fn a_part_that_cannot_be_explained_is_named_and_the_decoder_goes_on() {
    let mut decoder = parts();
    for (fired, among) in [(vec![4], 4..5), (vec![2], 2..3), (vec![0, 1, 3], 3..4), (vec![2, 3, 4], 4..5)] {
        let mut found = [64];
        let said = decoder.decode(fired.iter().copied(), &mut found).unwrap_err();
        assert!(matches!(said, MatchError::Unmatchable { detector } if among.contains(&detector)), "{said}");
        assert_eq!(decoder.decode([0, 5], &mut found), Err(MatchError::Detector { detector: 5, detectors: 5 }));
        assert_eq!(found, [64], "an error changes nothing");
        let answer = decoder.decode([0, 1, 2, 3], &mut found).unwrap();
        assert_eq!((found, answer.weight), ([64 ^ 2 ^ 8], 3.0));
    }
    let none = UnionFind::new(Arc::new(MatchingModel::new(0, 0, []).unwrap())).decode([], &mut []).unwrap();
    assert_eq!(none.units, 0);
}

#[test]
fn detectors_in_any_order_and_listed_twice_count_by_parity() {
    let mut decoder = parts();
    let mut found = [0, 7];
    let weight = decoder.decode([3, 1, 4, 2, 1, 4, 0, 4, 0, 4, 3, 3, 1], &mut found).unwrap().weight;
    assert_eq!((found, weight), ([1 ^ 2 ^ 8, 7], 5.0));
    let mut edges = Vec::new();
    decoder.edges(|edge| edges.push(edge));
    assert_eq!(edges, [0, 1, 3]);
    assert!(decoder.bytes() > 0 && decoder.model().detectors() == 5);
}

/// Weights from a billionth to a billion in one graph: time goes on in leaps.
#[test]
fn weights_of_any_ratio_end() {
    let edges = (0..60u32).map(|at| Edge {
        a: at,
        b: (at < 59).then_some(at + 1),
        weight: 10f64.powi(at as i32 % 19 - 9),
        observables: &[],
    });
    let model = Arc::new(MatchingModel::new(60, 0, edges).unwrap());
    let (mut exact, mut decoder) = (Matcher::new(Arc::clone(&model)), UnionFind::new(model));
    for fired in 0..60 {
        let both = [exact.decode([fired], &mut []), decoder.decode([fired], &mut [])];
        let [exact, found] = both.map(|answer| answer.unwrap().units);
        assert_eq!(exact, found, "there is one way to the boundary");
    }
}

/// Logical errors of both on the same shots.
fn logical_errors(model: &Model, shots: u32) -> [u32; 2] {
    let matching = Arc::new(crate::golden::model(model, TABLE_BYTES_MAX));
    let (mut exact, mut decoder) = (Matcher::new(Arc::clone(&matching)), UnionFind::new(matching));
    let mut sampler = Sampler::new(model, 13);
    let mut fired = vec![0; model.detector_words()];
    let mut counts = [0; 2];
    for _ in 0..shots {
        let (mut truth, mut matched, mut found) = ([0], [0], [0]);
        sampler.draw(&mut fired, &mut truth);
        exact.decode(ones(&fired), &mut matched).unwrap();
        decoder.decode(ones(&fired), &mut found).unwrap();
        counts[0] += u32::from(matched != truth);
        counts[1] += u32::from(found != truth);
    }
    counts
}

/// The set of distance 9 is there if the shared sets lie beside the checkout.
#[test]
fn logical_errors_are_at_most_1_3_times_matchings() {
    let sets = crate::golden_sets::all();
    // With the shared sets there are eight.
    let expected = if sets.len() > 2 { 2 } else { 1 };
    let mut compared = 0;
    for set in sets {
        let shots = match &set.name[..] {
            "surf_z_d5_r5_p0.005" => 40_000,
            "surf_z_d9_r9_p0.005" => 20_000,
            _ => continue,
        };
        let [matched, found] = logical_errors(&set.model, shots);
        let said = format!("{}: {shots} shots, {matched} logical errors of matching, {found} of union-find", set.name);
        assert!(matched > 100, "too few to tell: {said}");
        assert!(f64::from(found) <= 1.3 * f64::from(matched), "{said}");
        let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("{said}\n").as_bytes());
        compared += 1;
    }
    assert_eq!(compared, expected, "distances 5 and 9");
}
