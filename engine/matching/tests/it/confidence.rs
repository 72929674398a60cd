//! The weights of the two classes against all sets of edges.
use pinwheel_matching::{Class, Confidence, ConfidenceError, ConfidenceModel, Edge, MatchError};
use std::sync::Arc;

const DETECTORS: u32 = 6;

struct Draws(u64);

impl Draws {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// Ends, weight, and whether it flips observable 65.
type Drawn = (u32, Option<u32>, i64, bool);

/// Edges anywhere. Between detectors they flip the observable if the ends lie on different sides.
fn drawn(draws: &mut Draws) -> Vec<Drawn> {
    let sides = draws.below(1 << DETECTORS);
    let mut edges = Vec::new();
    for _ in 0..2 + draws.below(11) {
        let a = draws.below(u64::from(DETECTORS)) as u32;
        let b = draws.below(u64::from(DETECTORS) + 3) as u32;
        let weight = draws.below(30) as i64 - [0, 0, 10][draws.below(3) as usize];
        if b >= DETECTORS {
            edges.push((a, None, weight, draws.below(2) == 0));
        } else if a != b {
            edges.push((a, Some(b), weight, (sides >> a ^ sides >> b) & 1 == 1));
        }
    }
    edges
}

/// The least weight of each class, by all sets of edges.
fn least(edges: &[Drawn], fired: u64) -> [Option<i64>; 2] {
    let mut least: [Option<i64>; 2] = [None; 2];
    for chosen in 0u32..1 << edges.len() {
        let (mut explained, mut weight, mut class) = (0u64, 0, false);
        for (_, &(a, b, own, flips)) in edges.iter().enumerate().filter(|&(at, _)| chosen >> at & 1 == 1) {
            explained ^= 1 << a ^ b.map_or(0, |b| 1 << b);
            weight += own;
            class ^= flips;
        }
        if explained == fired {
            let best = &mut least[usize::from(class)];
            *best = Some(best.map_or(weight, |best| best.min(weight)));
        }
    }
    least
}

#[test]
fn each_class_weighs_what_its_lightest_set_of_edges_weighs() {
    for seed in 0..400 {
        let mut draws = Draws(seed);
        let edges = drawn(&mut draws);
        let given = edges.iter().map(|&(a, b, weight, flips)| {
            let observables: &[u64] = if flips { &[1, 2] } else { &[1] };
            Edge { a, b, weight: weight as f64, observables }
        });
        let mut confidence = Confidence::new(Arc::new(ConfidenceModel::new(DETECTORS, given, 65).unwrap()));
        for _ in 0..8 {
            let fired = draws.below(1 << DETECTORS);
            let listed = (0..DETECTORS).filter(move |&at| fired >> at & 1 == 1);
            let expected = least(&edges, fired);
            for (class, expected) in [Class::Kept, Class::Flipped].into_iter().zip(expected) {
                let found = confidence.weight(listed.clone(), class);
                assert_eq!(found.ok().map(|found| found.weight), expected.map(|least| least as f64), "seed {seed}");
            }
        }
    }
}

#[test]
fn an_observable_of_a_torus_is_refused() {
    let ring = |flips: &'static [u64]| {
        let edge = |a, b, observables| Edge { a, b: Some(b), weight: 1.0, observables };
        let edges = [edge(0, 1, &[][..]), edge(1, 2, &[]), edge(2, 0, flips)];
        ConfidenceModel::new(3, edges, 0).map(|model| Confidence::new(Arc::new(model)))
    };
    assert!(matches!(ring(&[1]), Err(ConfidenceError::Cycle { observable: 0, .. })));
    let mut kept = ring(&[2]).unwrap();
    assert_eq!(kept.weight([0, 1], Class::Kept).unwrap().weight, 1.0);
    assert_eq!(kept.weight([0, 1], Class::Flipped), Err(MatchError::Unmatchable { detector: 3 }));
    assert_eq!(kept.weight([3], Class::Kept), Err(MatchError::Detector { detector: 3, detectors: 3 }));
    assert!(kept.bytes() > 0);
}
