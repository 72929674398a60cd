//! Correlated matching: as two matchings by hand, and as `PyMatching`.
use std::collections::BTreeMap;
use std::sync::Arc;

use pinwheel_code::code::correlations::correlations;
use pinwheel_code::code::graph::Graph;
use pinwheel_code::code::ones;
use pinwheel_matching::{
    CorrelatedMatcher, CorrelatedModel, Correlation, CorrelationError, Edge, Matcher, MatchingModel, TABLE_BYTES_MAX,
};

use crate::oracle::{Draws, case, model};

#[test]
fn the_second_matching_has_the_weights_that_the_first_implies() {
    for seed in 0..2_000 {
        let mut draws = Draws(seed);
        let case = case(&mut draws);
        let edges = case.edges.len() as u64;
        let count = if edges == 0 { 0 } else { draws.below(4 * edges) };
        let drawn: Vec<Correlation> = (0..count)
            .map(|_| Correlation {
                edge: draws.below(edges) as u32,
                other: draws.below(edges) as u32,
                weight: draws.below(case.heaviest + 2) as f64 / 1024.0,
            })
            .collect();
        for bytes in [TABLE_BYTES_MAX, 0] {
            let model = Arc::new(model(&case, bytes));
            let mut plain = Matcher::new(Arc::clone(&model));
            let correlated = CorrelatedModel::new(model, drawn.iter().copied()).unwrap();
            let mut correlated = CorrelatedMatcher::new(Arc::new(correlated));
            for _ in 0..4 {
                let fired: Vec<u32> = (0..case.detectors).filter(|_| draws.below(4) == 0).collect();
                let (mut found, mut expected) = (vec![0; case.words], vec![0; case.words]);
                let given = correlated.decode(fired.iter().copied(), &mut found);
                let Ok(first) = plain.decode(fired.iter().copied(), &mut vec![0; case.words]) else {
                    assert!(given.is_err(), "seed {seed}");
                    assert_eq!(found, expected);
                    continue;
                };
                let mut chosen = Vec::new();
                plain.edges(|edge| chosen.push(edge));
                let mut weights = BTreeMap::new();
                for by in drawn.iter().filter(|by| chosen.contains(&by.edge)) {
                    let own = case.edges[by.other as usize].weight as f64 / 1024.0;
                    let weight = weights.entry(by.other).or_insert(own);
                    *weight = by.weight.min(*weight);
                }
                let second = plain.decode_weighted(fired.iter().copied(), weights.clone(), &mut expected).unwrap();
                let given = given.unwrap();
                assert_eq!(given.units, second.units, "seed {seed}: first {first:?}");
                // What it says it used weighs that much.
                let mut weight = 0.0;
                correlated.edges(|edge| {
                    let own = case.edges[edge as usize].weight as f64 / 1024.0;
                    weight += weights.get(&edge).unwrap_or(&own);
                });
                assert!((weight - given.weight).abs() < 1e-9, "seed {seed}: {weight}, {given:?}");
            }
        }
    }
}

#[test]
fn predictions_are_pymatchings() {
    for name in ["surf_z_d3_r3_p0.005", "surf_z_d5_r5_p0.005"] {
        let set = crate::golden_sets::committed(name);
        let expected = crate::golden_sets::correlated(&set);
        let graph = Graph::new(&set.model).unwrap();
        let edges = graph.edges.iter().map(|edge| Edge {
            a: edge.a,
            b: edge.b,
            weight: edge.weight,
            observables: &edge.observables,
        });
        let matching = Arc::new(MatchingModel::new(graph.detectors, 1, edges).unwrap());
        let of = correlations(&set.model, &graph).into_iter();
        let of = of.map(|by| Correlation { edge: by.edge, other: by.other, weight: by.weight });
        let model = Arc::new(CorrelatedModel::new(matching, of).unwrap());
        let mut matcher = CorrelatedMatcher::new(Arc::clone(&model));
        assert!(matcher.bytes() > 0 && model.bytes() > 0 && matcher.model().matching().edges() > 0);
        let (mut differing, mut ours, mut plain) = (0, 0, 0);
        for index in 0..set.detections.len() {
            let mut found = [0];
            matcher.decode(ones(set.detections.shot(index)), &mut found).unwrap();
            differing += u32::from(found != expected.shot(index));
            ours += u32::from(found != set.observables.shot(index));
            plain += u32::from(set.predictions.shot(index) != set.observables.shot(index));
        }
        // Ties of the first matching may be resolved differently.
        assert!(differing <= 1, "{name}: {differing} predictions differ");
        assert!(ours < plain, "{name}: {ours} logical errors, {plain} without correlations");
    }
}

#[test]
fn what_is_refused_is_refused_with_a_sentence() {
    let edge = Edge { a: 0, b: None, weight: 1.0, observables: &[] };
    let model = Arc::new(MatchingModel::new(1, 1, [edge, edge]).unwrap());
    let refused = |edge, other, weight| {
        let good = Correlation { edge: 0, other: 1, weight: 0.0 };
        CorrelatedModel::new(Arc::clone(&model), [good, Correlation { edge, other, weight }]).unwrap_err()
    };
    assert_eq!(refused(2, 0, 1.0), CorrelationError::Edge { index: 1, edge: 2, edges: 2 });
    assert_eq!(refused(1, 7, 1.0).to_string(), "correlation 1 names edge 7, but the graph has 2 edges");
    assert!(refused(0, 0, -0.5).to_string().starts_with("the weight of correlation 1 is -0.5; give a finite one"));
    assert!(matches!(refused(0, 0, f64::NAN), CorrelationError::Weight { index: 1, .. }));
}
