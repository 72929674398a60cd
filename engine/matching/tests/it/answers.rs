//! Small graphs with known answers, and everything that is refused.
use std::sync::Arc;

use pinwheel_matching::{Edge, GraphError, MatchError, Matcher, MatchingModel};

const fn edge(a: u32, b: Option<u32>, weight: f64, observables: &[u64]) -> Edge<'_> {
    Edge { a, b, weight, observables }
}

fn matcher(detectors: u32, words: usize, edges: &[Edge<'_>], table_bytes_max: usize) -> Matcher {
    let model = MatchingModel::with_tables(detectors, words, edges.iter().copied(), table_bytes_max);
    Matcher::new(Arc::new(model.unwrap()))
}

/// The detectors 0 and 1 with a boundary, 2 and 3 without, 4 without edges.
fn parts() -> [Edge<'static>; 4] {
    [edge(0, None, 2.0, &[1]), edge(0, Some(1), 2.5, &[2]), edge(2, Some(3), 1.0, &[4]), edge(2, Some(3), 0.5, &[8])]
}

#[test]
fn a_defect_without_partner_is_named_and_the_matcher_goes_on() {
    for table_bytes_max in [0, 1 << 20] {
        let mut matcher = matcher(5, 1, &parts(), table_bytes_max);
        for (fired, among) in [(vec![4], 4..5), (vec![2], 2..3), (vec![0, 1, 3], 3..4), (vec![2, 3, 4], 4..5)] {
            let mut found = [64];
            let said = matcher.decode(fired.iter().copied(), &mut found).unwrap_err();
            assert!(matches!(said, MatchError::Unmatchable { detector } if among.contains(&detector)), "{said}");
            assert_eq!(found, [64], "an error changes nothing");
            let answer = matcher.decode([0, 1, 2, 3], &mut found).unwrap();
            assert_eq!((found, answer.weight), ([64 ^ 2 ^ 8], 3.0));
        }
    }
}

#[test]
fn detectors_in_any_order_and_listed_twice_count_by_parity() {
    let mut matcher = matcher(5, 1, &parts(), 1 << 20);
    let mut found = [0];
    let weight = matcher.decode([3, 1, 4, 2, 1, 4, 0, 4, 0, 4, 3, 3, 1], &mut found).unwrap().weight;
    assert_eq!((found, weight), ([1 ^ 2 ^ 8], 5.0));
    let mut edges = Vec::new();
    matcher.edges(|edge| edges.push(edge));
    assert_eq!(edges, [0, 1, 3]);
}

#[test]
fn an_edge_of_negative_weight_is_used_unless_the_shot_says_otherwise() {
    for table_bytes_max in [0, 1 << 20] {
        let edges = [edge(0, None, 1.0, &[1]), edge(0, Some(1), -2.0, &[2]), edge(1, None, 1.5, &[4])];
        let mut matcher = matcher(2, 1, &edges, table_bytes_max);
        let mut answer = |fired: &[u32], weights: &[(u32, f64)]| {
            let mut found = [0];
            let fired = fired.iter().copied();
            let answer = matcher.decode_weighted(fired, weights.iter().copied(), &mut found).unwrap();
            (found[0], answer.weight)
        };
        assert_eq!(answer(&[0, 1], &[]), (2, -2.0));
        assert_eq!(answer(&[], &[]), (0, 0.0));
        assert_eq!(answer(&[1], &[]), (1 | 2, -1.0));
        // Without the sign, another sign, the last of two.
        assert_eq!(answer(&[1], &[(1, 2.0)]), (4, 1.5));
        assert_eq!(answer(&[1], &[(0, -1.0), (1, 2.0)]), (1 | 2, 1.0));
        assert_eq!(answer(&[1], &[(1, 2.0), (1, -3.0)]), (1 | 2, -2.0));
        assert_eq!(answer(&[1], &[]), (1 | 2, -1.0));
    }
}

#[test]
fn a_shot_in_which_nothing_fired_has_no_edges_of_the_shot_before_it() {
    for table_bytes_max in [0, 1 << 20] {
        // The edges of negative weight flip both detectors twice.
        let edges = [edge(0, Some(1), -2.0, &[2]), edge(0, Some(1), -1.0, &[4]), edge(0, None, 1.0, &[1])];
        let mut matcher = matcher(2, 1, &edges, table_bytes_max);
        let mut found = [0];
        matcher.decode([0], &mut found).unwrap();
        let mut found = [64];
        let answer = matcher.decode([], &mut found).unwrap();
        let weighted = matcher.decode_weighted([], [], &mut [0]).unwrap();
        assert_eq!((found, answer.weight, answer.units), ([64 ^ 2 ^ 4], -3.0, weighted.units));
        let mut edges = Vec::new();
        matcher.edges(|edge| edges.push(edge));
        assert_eq!(edges, [0, 1]);
    }
}

#[test]
fn a_graph_without_detectors_edges_or_observables_answers() {
    assert_eq!(matcher(0, 0, &[], 0).decode([], &mut []).unwrap().units, 0);
    let mut alone = matcher(3, 0, &[edge(1, None, 0.0, &[])], 1 << 20);
    assert_eq!(alone.decode([1], &mut []).unwrap().units, 0);
    assert!(alone.decode([0], &mut []).is_err());
    assert!(alone.bytes() > 0 && alone.model().bytes() > 0);
    assert_eq!((alone.model().detectors(), alone.model().edges(), alone.model().observable_words()), (3, 1, 0));
}

#[test]
fn weights_of_any_size_keep_their_order() {
    for weight in [1e-3, 7.0, 1000.0, 1e9, 1e300] {
        let edges = [edge(0, None, weight, &[1]), edge(0, Some(1), weight / 4.0, &[2]), edge(1, None, weight, &[4])];
        let mut matcher = matcher(2, 1, &edges, 1 << 20);
        let mut found = [0];
        let given = matcher.decode([0], &mut found).unwrap().weight;
        assert!((given / weight - 1.0).abs() < 0.01, "{given} of {weight}");
        assert_eq!(found, [1]);
        found = [0];
        matcher.decode_weighted([0], [(0, 1e301)], &mut found).unwrap();
        assert_eq!(found, [if weight < 100.0 { 2 | 4 } else { found[0] }]);
    }
}

#[test]
fn what_is_refused_is_refused_with_a_sentence() {
    let refused = |detectors, edges: &[Edge<'_>]| {
        MatchingModel::new(detectors, 1, edges.iter().copied()).unwrap_err().to_string()
    };
    let good = edge(0, None, 1.0, &[]);
    assert_eq!(
        refused(2, &[good, edge(0, Some(2), 1.0, &[])]),
        "edge 1 ends at detector 2, but there are 2; check the number of detectors"
    );
    assert!(refused(2, &[good, edge(1, Some(1), 1.0, &[])]).starts_with("edge 1 joins detector 1 to itself"));
    assert!(refused(2, &[edge(1, None, f64::NAN, &[])]).starts_with("the weight of edge 0 is NaN"));
    assert!(refused(2, &[edge(1, None, 1.0, &[0, 1])]).starts_with("edge 0 has 2 words of observables"));
    assert_eq!(
        MatchingModel::new(u32::MAX, 1, []).unwrap_err(),
        GraphError::Size { what: "detectors", found: u32::MAX as usize }
    );
    assert_eq!(
        MatchingModel::new(1, usize::MAX, []).unwrap_err(),
        GraphError::Size { what: "words of observables", found: usize::MAX }
    );
    let mut matcher = matcher(2, 1, &[good], 0);
    let mut said = |fired: u32, changed: (u32, f64)| {
        matcher.decode_weighted([fired], [changed], &mut [0]).unwrap_err().to_string()
    };
    assert!(said(2, (0, 1.0)).starts_with("detector 2 fired, but the graph has 2"));
    assert!(said(0, (1, 1.0)).starts_with("a weight is given for edge 1, but the graph has 1"));
    assert!(said(0, (0, f64::INFINITY)).starts_with("the weight given for edge 0 is inf"));
    assert!(matcher.decode([0], &mut [0]).is_ok());
}

#[test]
fn edges_are_handed_out_again_after_the_caller_panicked() {
    let mut matcher = matcher(1, 1, &[edge(0, None, 1.0, &[])], 1 << 20);
    matcher.decode([0], &mut [0]).unwrap();
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| matcher.edges(|_| panic!("the caller's"))));
    assert!(caught.is_err());
    let mut edges = Vec::new();
    matcher.edges(|edge| edges.push(edge));
    assert_eq!(edges, [0]);
}

#[test]
fn what_was_listed_before_the_caller_panicked_is_not_in_the_next_answer() {
    let mut matcher = matcher(5, 1, &parts(), 1 << 20);
    // More than there are detectors: the list is folded before the panic.
    let fired = (0..9).map(|at| if at < 8 { 0 } else { panic!("the caller's") });
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| matcher.decode(fired, &mut [0])));
    assert!(caught.is_err());
    let mut found = [0];
    assert_eq!((matcher.decode([1, 0], &mut found).unwrap().weight, found), (2.5, [2]));
}

#[test]
fn what_an_error_leaves_behind_is_not_in_the_next_answer() {
    let mut matcher = matcher(5, 1, &parts(), 1 << 20);
    let mut found = [0];
    assert!(matcher.decode([0, 1, 2, 3].into_iter().chain([0; 8]), &mut found).is_ok());
    found = [0];
    for wrong in [vec![0, 0, 1, 1, 1, 1, 9], vec![1, 2, 4], vec![9]] {
        assert!(matcher.decode(wrong, &mut found).is_err());
        matcher.edges(|edge| assert!(edge < 4));
        assert_eq!(matcher.decode([0], &mut found).unwrap().weight, 2.0);
        assert_eq!(std::mem::take(&mut found), [1]);
        assert!(matcher.decode_weighted([0], [(0, 8.0), (7, 1.0)], &mut found).is_err());
        assert_eq!(matcher.decode([], &mut found).unwrap().weight, 0.0);
    }
}
