#![allow(clippy::unwrap_used, reason = "harness")]

use super::super::{bundled, ones};
use super::*;

/// Standard deviations that a count may lie off: one false alarm in 10⁸ comparisons.
const SIGMAS: f64 = 5.7;

fn model(text: &str) -> Model {
    Model::parse(text.as_bytes()).unwrap()
}

/// Whether `count` of `trials` fits probability `p`.
fn fits(count: u32, trials: u32, p: f64) -> bool {
    let mean = f64::from(trials) * p;
    (f64::from(count) - mean).abs() <= SIGMAS * (mean * (1.0 - p)).max(1.0).sqrt()
}

#[test]
fn every_mechanism_fires_at_its_own_rate() {
    // One detector each; neighbours in probability share a class, and equal ones too.
    let rates = [1.0, 0.9, 0.51, 0.5, 0.3, 0.26, 0.011, 0.011, 0.010, 0.008, 1e-3, 1e-5, 1e-300, 0.0];
    let text: String = rates.iter().enumerate().map(|(index, p)| format!("error({p}) D{index} L{index}\n")).collect();
    let model = model(&text);
    let mut sampler = Sampler::new(&model, 5);
    let (mut detectors, mut observables) = ([0], [0]);
    let mut counts = vec![0; rates.len()];
    let mut both = 0;
    let trials = 200_000;
    for _ in 0..trials {
        sampler.draw(&mut detectors, &mut observables);
        assert_eq!(detectors, observables);
        ones(&detectors).for_each(|index| counts[index as usize] += 1);
        both += u32::from(detectors[0] & 0b1_1000 == 0b1_1000);
    }
    for (&p, &count) in rates.iter().zip(&counts) {
        assert!(fits(count, trials, p), "p = {p}: {count} of {trials}");
    }
    assert!(fits(both, trials, 0.5 * 0.3), "mechanisms are independent: {both}");
}

#[test]
fn shots_are_independent_of_the_shot_before() {
    let mut sampler = Sampler::new(&model("error(0.2) D0\nerror(0.2) D1\n"), 11);
    let (mut shot, mut before) = ([0], [0]);
    let mut repeated = 0;
    let trials = 100_000;
    for _ in 0..trials {
        sampler.draw(&mut shot, &mut []);
        repeated += u32::from(shot[0] & before[0] & 1 == 1);
        before = shot;
    }
    assert!(fits(repeated, trials, 0.04), "{repeated}");
}

#[test]
fn the_bundled_model_fires_as_expected() {
    let model = bundled();
    let mut sampler = Sampler::new(&model, 3);
    let mut shot = vec![0; model.detector_words()];
    let mut counts = vec![0; model.detectors as usize];
    let trials = 50_000;
    for _ in 0..trials {
        sampler.draw(&mut shot, &mut [0]);
        ones(&shot).for_each(|index| counts[index as usize] += 1);
    }
    for (index, (&count, &p)) in counts.iter().zip(&model.expected_detection_fractions()).enumerate() {
        assert!(fits(count, trials, p), "D{index}: {count} of {trials}, expected {p}");
    }
}

#[test]
fn equal_seeds_draw_equal_shots_and_others_do_not() {
    let model = bundled();
    let draw = |seed| {
        let mut sampler = Sampler::new(&model, seed);
        let mut shots = vec![0; 200];
        for shot in shots.chunks_exact_mut(2) {
            sampler.draw(shot, &mut [0]);
        }
        shots
    };
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
}

#[test]
fn a_sampler_that_begins_again_draws_as_a_new_one_does() {
    let model = bundled();
    let (mut again, mut new) = (Sampler::new(&model, 1), Sampler::new(&model, 9));
    let draw = |sampler: &mut Sampler| {
        let mut shot = vec![0; 2];
        (sampler.draw(&mut shot, &mut [0]), shot)
    };
    (0..100).for_each(|_| drop(draw(&mut again)));
    again.restart(9);
    (0..1_000).for_each(|_| assert_eq!(draw(&mut again), draw(&mut new)));
}

#[test]
fn the_mechanisms_of_a_shot_are_counted() {
    let mut sampler = Sampler::new(&model("error(1) D0 L2\nerror(1) D1\nerror(1) D3 ^ D3\nerror(0) D2\n"), 0);
    assert_eq!(sampler.draw(&mut [0], &mut [0]), 2);
}

#[test]
fn parts_of_one_mechanism_flip_together_and_cancel() {
    let mut sampler = Sampler::new(&model("error(1) D0 D1 ^ D1 D70 L2\nerror(0.5) D3 ^ D3\n"), 0);
    let (mut shot, mut observables) = ([0; 2], [0]);
    sampler.draw(&mut shot, &mut observables);
    assert_eq!((shot, observables), ([1, 1 << 6], [0b100]));
}
