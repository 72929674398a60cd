#![allow(clippy::unwrap_used, reason = "harness")]
use super::soft_edges;
use crate::code::graph::Graph;
use crate::code::soft::SoftMap;
use crate::code::{Model, graph::GraphError};
use std::sync::Arc;

/// Edges in their order: D0 D1, D0 and the boundary, D1 and the boundary.
const MODEL: &str = "error(0.1) D0 D1\nerror(0.02) D0\nerror(0.2) D1 L0 ^ D0 D1\n";

fn with(map: &str) -> Result<Model, GraphError> {
    Model::parse(MODEL.as_bytes()).unwrap().with_soft(Arc::new(SoftMap::parse(map).unwrap()))
}

fn either(a: f64, b: f64) -> f64 {
    a * (1.0 - b) + b * (1.0 - a)
}

/// The probabilities that the bytes of a shot give edges.
fn changed(map: &str, soft: u64) -> Vec<(u32, f64)> {
    let model = with(map).unwrap();
    let edges = soft_edges(&model, &Graph::new(&model).unwrap()).unwrap().unwrap();
    edges.weights(&[soft]).map(|(edge, weight)| (edge, 1.0 / (1.0 + weight.exp()))).collect()
}

fn assert_close(found: &[(u32, f64)], expected: &[(u32, f64)]) {
    let is_close = |(a, b): (&(u32, f64), &(u32, f64))| a.0 == b.0 && (a.1 - b.1).abs() < 1e-12;
    assert!(found.len() == expected.len() && found.iter().zip(expected).all(is_close), "{found:?}, not {expected:?}");
}

#[test]
fn an_edge_has_its_other_errors_and_its_readouts_by_their_bytes_or_their_means() {
    let map = "soft 3\nS0 0.1 D0 D1\nS2 0.05 D1 D0\nS1 0.02 D0";
    let of_edge = either(0.1, 0.2);
    let readouts = either(0.1, 0.05);
    let rest = (of_edge - readouts) / (1.0 - 2.0 * readouts);
    let eleventh = 1.0 / 11.0;
    // No byte; byte 0; byte 1, whose edge has no other error; bytes 0 and 2.
    assert_close(&changed(map, 0), &[]);
    assert_close(&changed(map, 41), &[(0, either(rest, either(eleventh, 0.05)))]);
    assert_close(&changed(map, 41 << 8), &[(1, eleventh)]);
    assert_close(&changed(map, 1 | 41 << 16), &[(0, 0.5)]);
    assert_close(
        &changed(map, 41 | 41 << 8 | 41 << 16),
        &[(0, either(rest, either(eleventh, eleventh))), (1, eleventh)],
    );
}

#[test]
fn a_shot_without_soft_bytes_has_the_weights_of_the_model() {
    let model = with("soft 1\nS0 0.02 D0").unwrap();
    let graph = Graph::new(&model).unwrap();
    let edges = soft_edges(&model, &graph).unwrap().unwrap();
    assert!(graph.edges.iter().zip(&edges.base).all(|(edge, weight)| (edge.weight - weight).abs() < 1e-12));
    assert_eq!((model.detector_words(), model.soft_words(), model.shot_words()), (1, 1, 2));
}

#[test]
fn a_map_of_another_model_is_refused_in_one_sentence() {
    for (map, part) in [
        ("soft 1\nS0 0.01 D0 D2", "line 2: found D0 D2, expected the detectors of an error of the model"),
        (
            "soft 1\nS0 0.03 D0",
            "line 2: found readouts of D0 that are wrong with probability 3.000e-2, expected at most",
        ),
        ("soft 2\nS0 0.015 D0\nS1 0.015 D0", "line 3: found readouts of D0"),
    ] {
        let said = with(map).unwrap_err().to_string();
        assert!(said.contains(part) && said.starts_with("the map of soft bytes, ") && !said.contains('\n'), "{said}");
    }
    let heralded = Model::parse(b"error(0.1) D0 D1\nerror(0.1) D0 ^ D2\ndetector[herald] D2\n").unwrap();
    let map = Arc::new(SoftMap::parse("soft 1\nS0 0.01 D0").unwrap());
    let said = heralded.with_soft(map).unwrap_err().to_string();
    assert!(said.contains("a model with heralds"), "{said}");
}

#[test]
fn readouts_that_an_edge_likelier_than_not_has_no_room_for_are_refused() {
    // With one readout that is wrong with 0.2 an edge has a probability of 0.2 to 0.8, whatever else it has.
    let with = |text: &str, map: &str| {
        Model::parse(text.as_bytes()).unwrap().with_soft(Arc::new(SoftMap::parse(map).unwrap()))
    };
    let said = with("error(0.9) D0 L0\n", "soft 1\nS0 0.2 D0").unwrap_err().to_string();
    assert!(said.contains("wrong with probability 2.000e-1, expected at most 1.000e-1"), "{said}");
    let model = with("error(0.9) D0 L0\n", "soft 1\nS0 0.10000002 D0").unwrap();
    let edges = soft_edges(&model, &Graph::new(&model).unwrap()).unwrap().unwrap();
    for byte in 1..=255 {
        assert!(edges.weights(&[byte]).all(|(_, weight)| weight.is_finite()), "byte {byte}");
    }
}

/// The rest was 0 divided by 0, and no shot with soft bytes had an answer.
#[test]
fn readouts_that_are_wrong_half_of_the_time_but_for_rounding_have_weights() {
    let map = "soft 2\nS0 0.499999999 D0\nS1 0.499999999 D0";
    let model = Model::parse(b"error(0.5) D0 L0\n").unwrap();
    let model = model.with_soft(Arc::new(SoftMap::parse(map).unwrap())).unwrap();
    let edges = soft_edges(&model, &Graph::new(&model).unwrap()).unwrap().unwrap();
    for bytes in [1, 41, 255, 41 | 41 << 8] {
        assert!(edges.weights(&[bytes]).all(|(_, weight)| weight.is_finite()), "{bytes:x}");
    }
}
