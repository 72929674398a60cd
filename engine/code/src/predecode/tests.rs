#![allow(clippy::unwrap_used, reason = "harness")]

use super::*;
use crate::code::graph::GraphError;
use crate::code::{Model, Sampler, bundled, golden, ones};

/// A line of detectors, all edges alike, the boundary at both ends: D0 to D9.
fn line() -> Model {
    let links: String = (0..9).map(|index| format!("error(0.01) D{index} D{} L{index}\n", index + 1)).collect();
    Model::parse(format!("error(0.01) D0 L9\n{links}error(0.01) D9 L10\n").as_bytes()).unwrap()
}

/// What `Local` leaves, and the observables it flips, on the line.
fn on_line(fired: &[u32]) -> (Vec<u32>, Vec<u32>, u32) {
    let mut syndrome = [0];
    fired.iter().for_each(|&index| crate::code::flip(&mut syndrome, index));
    let (mut residual, mut observables) = ([u64::MAX], [u64::MAX]);
    let done = Local::new(&line()).unwrap().predecode(&syndrome, &mut residual, &mut observables);
    (ones(&residual).collect(), ones(&observables).collect(), done.resolved)
}

#[test]
fn an_isolated_pair_is_resolved_over_its_edge() {
    assert_eq!(on_line(&[4, 5]), (vec![], vec![4], 2));
}

#[test]
fn two_isolated_pairs_are_resolved_each() {
    assert_eq!(on_line(&[2, 3, 6, 7]), (vec![], vec![2, 6], 4));
}

#[test]
fn a_pair_with_a_third_near_is_handed_on() {
    assert_eq!(on_line(&[4, 5, 7]), (vec![4, 5, 7], vec![], 0));
}

#[test]
fn a_pair_without_an_edge_is_handed_on() {
    assert_eq!(on_line(&[3, 5]), (vec![3, 5], vec![], 0));
}

#[test]
fn a_lone_detector_matches_only_the_boundary_next_to_it() {
    assert_eq!(on_line(&[0]), (vec![], vec![9], 1));
    assert_eq!(on_line(&[1]), (vec![1], vec![], 0));
    assert_eq!(on_line(&[9, 4]), (vec![4], vec![10], 1));
}

#[test]
fn nothing_is_done_where_some_mechanism_is_likelier_than_not() {
    let mut model = line();
    model.errors[3].probability = 0.9;
    let (mut residual, mut observables) = ([0], [0]);
    let done = Local::new(&model).unwrap().predecode(&[0b11_0000], &mut residual, &mut observables);
    assert_eq!((done.resolved, residual, observables), (0, [0b11_0000], [0]));
}

#[test]
fn passthrough_hands_everything_on() {
    let (mut residual, mut observables) = ([0; 2], [u64::MAX]);
    let done = Passthrough.predecode(&[5, 6], &mut residual, &mut observables);
    assert_eq!((done.resolved, residual, observables), (0, [5, 6], [0]));
}

#[test]
fn a_model_that_is_no_matching_problem_is_refused() {
    let model = Model::parse(b"error(0.1) D0 D1 D2").unwrap();
    assert!(matches!(Local::new(&model), Err(GraphError::NotGraphLike { .. })));
}

#[test]
fn the_residual_only_loses_what_is_counted_as_resolved() {
    let model = bundled();
    let (mut sampler, mut local) = (Sampler::new(&model, 17), Local::new(&model).unwrap());
    let (mut shot, mut residual, mut observables) = ([0; 2], [0; 2], [0]);
    let (mut fired, mut resolved) = (0, 0);
    for _ in 0..5000 {
        sampler.draw(&mut shot, &mut observables);
        let done = local.predecode(&shot, &mut residual, &mut observables);
        assert!(shot.iter().zip(&residual).all(|(before, after)| before & after == *after), "nothing new fires");
        let lost: u32 = shot.iter().zip(&residual).map(|(before, after)| (before ^ after).count_ones()).sum();
        assert_eq!(lost, done.resolved);
        fired += shot.iter().map(|word| word.count_ones()).sum::<u32>();
        resolved += done.resolved;
    }
    assert!(resolved * 6 > fired, "at p = 0.005 and d = 5 more than a sixth is resolved: {resolved} of {fired}");
}

#[test]
fn golden_shots_are_resolved_as_the_reference_does() {
    // Weak evidence per set, strong over all: the reference decoder is asked for the residual by
    // decode's tests.
    for set in golden::all() {
        let mut local = Local::new(&set.model).unwrap();
        let mut residual = vec![0; set.model.detector_words()];
        let mut observables = vec![0; set.model.observable_words()];
        let (mut whole, mut wrong) = (0u32, 0u32);
        for index in 0..set.detections.len() {
            local.predecode(set.detections.shot(index), &mut residual, &mut observables);
            if residual.iter().all(|&word| word == 0) {
                whole += 1;
                wrong += u32::from(observables != set.predictions.shot(index));
            }
        }
        assert!(wrong <= 1, "{}: of {whole} shots resolved whole, {wrong} differ from the reference", set.name);
    }
}
