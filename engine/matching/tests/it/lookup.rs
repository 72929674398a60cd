//! Look-up tables against the matcher on every syndrome, and tables that are too large.
use std::sync::Arc;

use pinwheel_code::code::graph::Graph;
use pinwheel_code::code::{bundled_named, ones};
use pinwheel_matching::{Edge, LOOKUP_BYTES_MAX, Lookup, LookupError, LookupModel, MatchError, Matcher, MatchingModel};

use crate::oracle::{Draws, case, model};

fn both(model: MatchingModel) -> (Matcher, Lookup) {
    let model = Arc::new(model);
    let table = LookupModel::new(Arc::clone(&model), LOOKUP_BYTES_MAX).unwrap();
    (Matcher::new(model), Lookup::new(Arc::new(table)))
}

#[test]
fn every_syndrome_has_the_matchers_answer() {
    let (mut answered, mut refused, mut ties) = (0, 0, 0);
    for seed in 0..1_000 {
        let mut draws = Draws(seed);
        let mut case = case(&mut draws);
        if case.detectors > 10 {
            case.detectors = 10;
            case.edges.retain(|edge| edge.a < 10 && edge.b.is_none_or(|b| b < 10));
        }
        let (mut matcher, mut lookup) = both(model(&case, [0, 1 << 20][seed as usize % 2]));
        for fired in 0u64..1 << case.detectors {
            let (mut expected, mut found) = (vec![7; case.words], vec![7; case.words]);
            let said = lookup.decode(ones(&[fired]), &mut found);
            match (matcher.decode(ones(&[fired]), &mut expected), said) {
                (Ok(exact), Ok(said)) => {
                    assert_eq!(said, exact, "seed {seed}: fired {fired:b}; {case:?}");
                    // Of several matchings that weigh the same the matcher may have chosen another one when
                    // other parts had defects, too.
                    assert!(found == expected || case.heaviest < 1_000_000, "seed {seed}: fired {fired:b}; {case:?}");
                    ties += u32::from(found != expected);
                    answered += 1;
                }
                (Err(MatchError::Unmatchable { .. }), Err(MatchError::Unmatchable { detector })) => {
                    assert!(fired >> detector & 1 == 1 && found == expected, "seed {seed}");
                    refused += 1;
                }
                (exact, said) => panic!("seed {seed}: fired {fired:b}: {said:?}, expected {exact:?}; {case:?}"),
            }
        }
    }
    assert!(answered > 100_000 && refused > 10_000, "{answered} answered, {refused} refused");
    assert!(ties < answered / 1_000, "{ties} of {answered} answers differ");
}

#[test]
fn a_shot_whose_caller_panicked_is_not_in_the_next_answer() {
    let edges = [Edge { a: 0, b: None, weight: 1.0, observables: &[1] }];
    let (_, mut lookup) = both(MatchingModel::new(1, 1, edges).unwrap());
    let fired = [0, 1].into_iter().inspect(|detector| assert!(*detector == 0, "the caller's"));
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| lookup.decode(fired, &mut [0])));
    assert!(caught.is_err());
    let mut found = [0];
    assert_eq!((lookup.decode([], &mut found).unwrap().units, found), (0, [0]));
}

#[test]
fn the_table_of_distance_3_answers_like_the_matcher() {
    let code = bundled_named("surface_d3").unwrap();
    let graph = Graph::new(&code).unwrap();
    let edges = graph.edges.iter().map(|edge| Edge {
        a: edge.a,
        b: edge.b,
        weight: edge.weight,
        observables: &edge.observables,
    });
    let (mut matcher, mut lookup) = both(MatchingModel::new(graph.detectors, 1, edges).unwrap());
    // Parts of 16 and 8 detectors, a weight and a word for each of their syndromes.
    let bytes = lookup.model().bytes();
    assert!((16 * ((1 << 16) + (1 << 8))..1_100_000).contains(&bytes), "{bytes} bytes");
    for fired in (0u64..1 << graph.detectors).step_by(97) {
        let (mut expected, mut found) = ([0], [0]);
        let exact = matcher.decode(ones(&[fired]), &mut expected).unwrap();
        assert_eq!((lookup.decode(ones(&[fired]), &mut found).unwrap(), found), (exact, expected), "fired {fired:b}");
    }
}

#[test]
fn what_is_listed_twice_has_not_fired_and_strange_detectors_are_refused() {
    let edges = [(0, Some(1)), (0, None)].map(|(a, b)| Edge { a, b, weight: -1.5, observables: &[3, 1] });
    let (mut matcher, mut lookup) = both(MatchingModel::new(3, 2, edges).unwrap());
    for fired in [vec![], vec![1, 0, 1], vec![0, 1, 1, 1], vec![0, 0]] {
        let (mut expected, mut found) = ([0, 8, 4], [0, 8, 4]);
        let exact = matcher.decode(fired.iter().copied(), &mut expected).unwrap();
        assert_eq!((lookup.decode(fired.iter().copied(), &mut found).unwrap(), found), (exact, expected));
        let strange = lookup.decode([0, 3], &mut found);
        assert_eq!(strange, Err(MatchError::Detector { detector: 3, detectors: 3 }));
        assert_eq!(lookup.decode([0, 2], &mut found), Err(MatchError::Unmatchable { detector: 2 }));
        assert_eq!(found, expected, "an error changes nothing");
    }
    assert_eq!(lookup.decode([1], &mut []).unwrap(), matcher.decode([1], &mut []).unwrap());
    assert!(lookup.bytes() > 0 && lookup.model().matching().detectors() == 3);
}

#[test]
fn a_table_that_is_too_large_is_refused_with_its_size() {
    let line = |detectors: u32| {
        let edges = (1..detectors).map(|at| Edge { a: at - 1, b: Some(at), weight: 1.0, observables: &[] });
        Arc::new(MatchingModel::new(detectors, 1, edges).unwrap())
    };
    let refused = |detectors, limit| LookupModel::new(line(detectors), limit).unwrap_err();
    assert_eq!(refused(23, LOOKUP_BYTES_MAX), LookupError::Size { log2_bytes: 27, limit: 1 << 26, detectors: 23 });
    assert_eq!(refused(60, usize::MAX), LookupError::Size { log2_bytes: 64, limit: usize::MAX, detectors: 60 });
    assert_eq!(refused(2_000, 0), LookupError::Size { log2_bytes: 2_004, limit: 0, detectors: 2_000 });
    assert!(LookupModel::new(line(10), 16 << 10).is_ok());
    let said = refused(60, LOOKUP_BYTES_MAX).to_string();
    let expected = "a look-up table of this model takes 2^64 bytes, but the limit is 67108864: its largest connected \
                    part has 60 detectors; choose another decoder";
    assert_eq!(said, expected);
}
