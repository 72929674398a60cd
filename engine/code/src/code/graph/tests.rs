#![allow(clippy::unwrap_used, reason = "harness")]

use super::super::golden;
use super::*;
use crate::code::ones;

fn graph(text: &str) -> Graph {
    Graph::new(&Model::parse(text.as_bytes()).unwrap()).unwrap()
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs().max(1.0)
}

#[test]
fn golden_graphs_are_pymatchings_edge_by_edge() {
    for name in ["surf_z_d3_r3_p0.005", "surf_z_d5_r5_p0.005"] {
        let file = std::fs::read(golden::committed_directory().join(format!("{name}.edges.json"))).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&file).unwrap();
        let mut theirs: Vec<(i64, i64, f64, Vec<u64>)> = json["edges"].as_array().unwrap().iter().map(edge).collect();
        theirs.sort_by_key(|&(a, b, ..)| (a, b));
        let graph = Graph::new(&golden::committed(name).model).unwrap();
        let ours = graph.edges.iter().map(|edge| {
            let observables = ones(&edge.observables).map(u64::from).collect();
            (i64::from(edge.a), edge.b.map_or(-1, i64::from), edge.weight, observables)
        });
        let mut ours: Vec<(i64, i64, f64, Vec<u64>)> = ours.collect();
        ours.sort_by_key(|&(a, b, ..)| (a, b));
        assert_eq!(ours.len(), theirs.len(), "{name}");
        for (our, their) in ours.iter().zip(&theirs) {
            let same = (our.0, our.1, &our.3) == (their.0, their.1, &their.3);
            assert!(same && close(our.2, their.2), "{name}: {our:?}, {their:?}");
        }
    }
}

/// A line of `edges.json`, the lower end first, the boundary (-1) second.
fn edge(line: &serde_json::Value) -> (i64, i64, f64, Vec<u64>) {
    let (u, v) = (line[0].as_i64().unwrap(), line[1].as_i64().unwrap());
    let (u, v) = if v == -1 { (u, v) } else { (u.min(v), u.max(v)) };
    let observables = line[4].as_array().unwrap().iter().map(|id| id.as_u64().unwrap()).collect();
    (u, v, line[2].as_f64().unwrap(), observables)
}

#[test]
fn parallel_parts_merge_by_parity_and_keep_the_first_observables() {
    let graph = graph("error(0.1) D0 D1 L3\nerror(0.2) D1 D0\nerror(0) D0 D1 L1\nerror(0.3) D0 ^ L2\n");
    assert_eq!(graph.edges.len(), 2);
    let merged: f64 = 0.1 * 0.8 + 0.9 * 0.2;
    assert!(close(graph.edges[0].weight, ((1.0 - merged) / merged).ln()));
    assert_eq!((graph.edges[0].b, &graph.edges[0].observables), (Some(1), &vec![0b1000]));
    assert_eq!((graph.edges[1].a, graph.edges[1].b), (0, None));
}

#[test]
fn likely_mechanisms_are_taken_as_used_beforehand() {
    let graph = graph("error(0.9) D0 D1 L0\nerror(1) D1\nerror(0.5) D0\n");
    assert_eq!((graph.always_detectors[0], graph.always_observables[0]), (0b01, 1));
    assert!(close(graph.always_weight, (1.0f64 / 9.0).ln() - WEIGHT_MAX));
    assert!(graph.edges.iter().all(|edge| (0.0..=WEIGHT_MAX).contains(&edge.weight)));
}

#[test]
fn undecomposed_parts_are_refused_with_the_option_that_decomposes() {
    let model = Model::parse(b"error(0.1) D0 D1\nerror(0.1) D0 D1 ^ D2 D3 D4\n").unwrap();
    let error = Graph::new(&model).unwrap_err();
    assert_eq!(error, GraphError::NotGraphLike { mechanism: 1, detectors: 3 });
    assert!(error.to_string().contains("decompose_errors=True"));
    // One that cannot happen needs no edge.
    assert_eq!(graph("error(0.1) D0\nerror(0) D0 D1 D2\n").edges.len(), 1);
}
