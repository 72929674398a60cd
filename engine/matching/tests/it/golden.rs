//! Golden sets: the weights of `PyMatching` 2.4 on every shot, its predictions but for ties.
use std::sync::Arc;

use pinwheel_code::code::graph::Graph;
use pinwheel_code::code::{Model, ones};
use pinwheel_matching::{Edge, Matcher, MatchingModel, TABLE_BYTES_MAX};

pub(crate) fn model(model: &Model, table_bytes_max: usize) -> MatchingModel {
    let graph = Graph::new(model).unwrap();
    let edges = graph.edges.iter().map(|edge| Edge {
        a: edge.a,
        b: edge.b,
        weight: edge.weight,
        observables: &edge.observables,
    });
    MatchingModel::with_tables(model.detectors, model.observable_words(), edges, table_bytes_max).unwrap()
}

#[test]
fn weights_and_predictions_are_pymatchings() {
    for (set, table_bytes_max) in crate::golden_sets::all().iter().flat_map(|set| [(set, TABLE_BYTES_MAX), (set, 0)]) {
        let mut matcher = Matcher::new(Arc::new(model(&set.model, table_bytes_max)));
        let (mut ties, mut worst) = (0, 0.0f64);
        for index in 0..set.detections.len() {
            let mut found = vec![0; set.model.observable_words()];
            let weight = matcher.decode(ones(set.detections.shot(index)), &mut found).unwrap().weight;
            let expected = f64::from(set.weights[index]);
            worst = worst.max((weight - expected).abs() / expected.max(1.0));
            ties += usize::from(found != set.predictions.shot(index));
        }
        assert!(worst <= 1e-6, "{}: a weight is off by {worst}", set.name);
        assert!(ties <= 1, "{}: {ties} predictions of {} differ", set.name, set.detections.len());
    }
}
