//! Counts by the number of faults in a shot, and error rates at other noise: subset sampling.
//!
//! Pure. Bounds: [`FAULTS_MAX`] faults; shots with more are counted with those of [`FAULTS_MAX`], which no rate uses.
//!
//! # The rule
//! A noise scale of s multiplies the odds p/(1-p) of each mechanism by s; for small probabilities
//! that is the probability itself. Which faults a shot of k faults has does not depend on s then. So
//! the rate at s is a sum over k: the probability of k faults at s, which the model gives, times the
//! rate of wrong answers among shots of k faults, which was counted at scale 1.
//!
//! # The interval
//! Each counted rate has its interval. The distances of their ends add up in squares, as independent errors do (G. Y.
//! Zou, A. Donner, Stat. Med. 27 (2008) 1693). Numbers of faults that were not seen count as all right below and as all
//! wrong above.

use crate::intervals::interval_95;
use crate::tallies::{Names, Tallies};
use pinwheel_engine::code::Model;
use std::collections::BTreeMap;

/// Most faults that are told apart.
pub const FAULTS_MAX: usize = 4_096;
/// Names of the counts in a row, before the number.
const NAMES: Names = ["shots_with_faults=", "errors_with_faults="];

/// Shots and wrong answers by number of faults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultCounts(Tallies);

/// An error rate at another scale of the noise.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct ScaledRate {
    /// The scale; 1: as collected.
    pub scale: f64,
    /// The rate of logical errors.
    pub rate: f64,
    /// An interval that has it in at least 95 of 100 collections.
    pub ci95: [f64; 2],
    /// Probability at this scale of a number of faults that was not seen; `ci95` counts it.
    pub unseen: f64,
}

impl FaultCounts {
    /// Counts a shot.
    pub fn add(&mut self, faults: u32, is_wrong: bool) {
        let [shots, errors] = self.0.at((faults as usize).min(FAULTS_MAX));
        *shots += 1;
        *errors += u64::from(is_wrong);
    }

    /// Adds the counts of others.
    pub fn merge(&mut self, other: &FaultCounts) {
        self.0.merge(&other.0);
    }

    /// The counts of a row, by name.
    pub fn named(&self) -> BTreeMap<String, u64> {
        self.0.named(NAMES)
    }

    /// Those that [`FaultCounts::named`] has named; names of others are left out.
    pub fn of_row(counts: &BTreeMap<String, u64>) -> FaultCounts {
        FaultCounts(Tallies::of_row(counts, NAMES, |faults| Some(faults.min(FAULTS_MAX))))
    }

    /// Shots counted.
    pub fn shots(&self) -> u64 {
        self.0.each().iter().fold(0, |sum: u64, [shots, _]| sum.saturating_add(*shots))
    }

    /// The error rate of `model` with its noise scaled by `scale`.
    pub fn rate_at(&self, model: &Model, scale: f64) -> ScaledRate {
        let told_apart = self.0.each().len().min(FAULTS_MAX);
        let probabilities = fault_numbers(model, scale, told_apart);
        let mut rate = 0.0;
        let mut seen = 0.0;
        // Squares of the distances from the rate to the ends of its interval.
        let mut below = 0.0;
        let mut above = 0.0;
        for (probability, [shots, errors]) in probabilities.iter().zip(self.0.each()) {
            // A row may say anything: of no number of faults are there more errors than shots.
            let errors = errors.min(shots);
            let Some([low, high]) = interval_95(*errors, *shots) else { continue };
            let counted = *errors as f64 / *shots as f64;
            seen += probability;
            rate += probability * counted;
            below += (probability * (counted - low)).powi(2);
            above += (probability * (high - counted)).powi(2);
        }
        let unseen = (1.0 - seen).max(0.0);
        let ci95 = [(rate - below.sqrt()).max(0.0), (rate + above.sqrt() + unseen).min(1.0)];
        ScaledRate { scale, rate, ci95, unseen }
    }
}

/// The probability after its odds have changed.
pub fn scaled(probability: f64, scale: f64) -> f64 {
    let odds = scale * probability;
    if probability >= 1.0 { 1.0 } else { odds / (1.0 - probability + odds) }
}

/// `model` with its noise scaled.
pub fn scaled_model(model: &Model, scale: f64) -> Model {
    let mut other = model.clone();
    other.errors.iter_mut().for_each(|error| error.probability = scaled(error.probability, scale));
    other
}

/// Probabilities of 0, 1, … `count - 1` faults in a shot, of the mechanisms that flip anything.
fn fault_numbers(model: &Model, scale: f64, count: usize) -> Vec<f64> {
    let mut numbers = vec![0.0; count];
    numbers.iter_mut().take(1).for_each(|none| *none = 1.0);
    let effective = model.errors.iter().filter(|error| {
        let effect = error.effect();
        error.probability > 0.0 && !(effect.detectors.is_empty() && effect.observables.is_empty())
    });
    for (done, error) in effective.enumerate() {
        let probability = scaled(error.probability, scale);
        let last = (done + 1).min(count.saturating_sub(1));
        for faults in (1..=last).rev() {
            numbers[faults] = numbers[faults] * (1.0 - probability) + numbers[faults - 1] * probability;
        }
        numbers.iter_mut().take(1).for_each(|none| *none *= 1.0 - probability);
    }
    numbers
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{FaultCounts, fault_numbers, scaled, scaled_model};
    use pinwheel_engine::code::{Model, Sampler};

    /// Three independent bits, of which the majority is decoded.
    const THREE: &[u8] = b"error(0.1) D0 L0\nerror(0.1) D1\nerror(0.2) D2\nerror(0.3) D3 ^ D3\n";

    #[test]
    fn numbers_of_faults_are_those_of_independent_mechanisms() {
        let model = Model::parse(THREE).unwrap();
        let found = fault_numbers(&model, 1.0, 4);
        for (found, expected) in found.iter().zip([0.648, 0.306, 0.044, 0.002]) {
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
        assert!((scaled(0.2, 2.0) - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!((scaled(1.0, 0.5), scaled(0.0, 2.0)), (1.0, 0.0));
        assert!(fault_numbers(&model, 1.0, 0).is_empty());
    }

    #[test]
    fn counts_come_back_from_their_names() {
        let mut counts = FaultCounts::default();
        for (faults, is_wrong) in [(0, false), (2, true), (2, false), (9_999, true)] {
            counts.add(faults, is_wrong);
        }
        assert_eq!(FaultCounts::of_row(&counts.named()), counts);
        assert_eq!(counts.shots(), 4);
        assert_eq!(counts.named()["errors_with_faults=2"], 1);
    }

    /// The exact rate of "more than one of ten bits flipped", and how many of 100 collections' intervals have it.
    #[test]
    fn intervals_at_other_noise_have_the_rate_of_direct_sampling_in_95_of_100_seeds() {
        let text: String = (0..10).map(|bit| format!("error({}) D{bit}\n", 0.02 + 0.004 * f64::from(bit))).collect();
        let model = Model::parse(text.as_bytes()).unwrap();
        let is_wrong = |shot: &[u64]| shot[0].count_ones() > 2;
        for scale in [0.5, 1.0, 2.0] {
            let direct = fault_numbers(&scaled_model(&model, scale), 1.0, 11);
            let expected: f64 = direct[3..].iter().sum();
            let has_it = |seed: u64| {
                let (mut sampler, mut shot, mut counts) = (Sampler::new(&model, seed), [0], FaultCounts::default());
                for _ in 0..20_000 {
                    let faults = sampler.draw(&mut shot, &mut []);
                    counts.add(faults, is_wrong(&shot));
                }
                let found = counts.rate_at(&model, scale);
                assert!(found.ci95[0] <= found.rate && found.rate <= found.ci95[1], "{found:?}");
                (found.ci95[0]..=found.ci95[1]).contains(&expected)
            };
            let covered = (0..100).filter(|seed| has_it(*seed)).count();
            assert!(covered >= 95, "scale {scale}: {covered} of 100");
        }
    }
}
