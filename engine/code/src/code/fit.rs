//! Fits a model's probabilities to shots: how often each detector fired, and each pair of detectors
//! that share a mechanism.
//!
//! Cold; bounded by the model and [`SWEEPS_MAX`]. What the model says flips what is never questioned, only
//! how often.
//!
//! # The equations
//!
//! With the weight `w = -ln(1-2p)` of a mechanism, independent mechanisms make linear equations. A
//! detector that fires with frequency `f` says that the weights of the mechanisms that flip it sum to
//! `-ln(1-2f)`. Two detectors of which exactly one fires with frequency `g` say that the weights of the
//! mechanisms that flip both sum to `(ln(1-2g) - ln(1-2f₁) - ln(1-2f₂)) / 2`. To first order this is the
//! `p_ij` of the repetition-code experiments (Google Quantum AI, Nature 595, 383).
//!
//! The weights are those of least squares, none negative. Each equation counts by the inverse of its
//! statistical variance. That a weight is the model's is one more equation: it decides where shots do not,
//! and fades as shots come. Mechanisms that flip the same detectors keep their proportion, which no shot
//! tells.
//!
//! # Why no probability becomes 0
//!
//! That some shots show no error of a kind does not make it impossible: no decoder could answer the first shot
//! that has one. Of N shots with none, the probability is estimated as 1/(2N): Jeffreys' prior, as Krichevsky
//! and Trofimov (IEEE Trans. Inf. Theory 27 (1981) 199) use it for counts of 0. No fitted weight is below that
//! of this probability, or below the model's own where the model says that the error is rarer still.

use std::collections::BTreeMap;

use super::Model;
use super::pairs::{PairCounts, Pairs};

/// Standard deviation of a weight about the model's, as a share of it.
const TRUST: f64 = 0.5;
/// Most sweeps over the mechanisms.
const SWEEPS_MAX: u32 = 1000;
/// A sweep that changes no weight by more than this share of it is the last.
const CONVERGED: f64 = 1e-7;

/// Why shots cannot be fitted.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum FitError {
    #[error("found no shots, expected some thousands to fit a model to")]
    NoShots,
    #[error(
        "detector D{detector} fired in {fraction:.3} of the shots, expected less than half; check that model and \
         shots belong together"
    )]
    Random { detector: u32, fraction: f64 },
}

/// What the counts say that the weights of some mechanisms sum to.
struct Equation {
    /// Inverse of the variance of that sum.
    certainty: f64,
    /// By how much the weights exceed it now.
    excess: f64,
}

/// Mechanisms that flip the same detectors.
#[derive(Clone, Copy, Default)]
struct Kind {
    /// The sum of their weights in the model.
    own: f64,
    /// The same as fitted.
    now: f64,
    /// What it is at least: too rare for these shots to tell.
    least: f64,
}

/// A model with fitted probabilities.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// The model.
    pub model: Model,
    /// Mechanisms that the shots would make rarer than they can tell. They have the least probability.
    pub too_rare: usize,
}

/// Standard deviations by which what fires in less than half of the shots must do so.
const BELOW_HALF: f64 = 6.0;

/// Whether this count is below half of the shots, and not by chance. Of what fires in half of them no weight can be
/// told.
pub(super) fn is_below_half(count: u64, shots: u64) -> bool {
    shots as f64 - 2.0 * count as f64 > BELOW_HALF * (shots as f64).sqrt()
}

/// The sum of the weights of a detector's mechanisms, by how often it fired.
pub(super) fn single_sum(fired: u64, shots: u64) -> f64 {
    -(-2.0 * fired as f64 / shots as f64).ln_1p()
}

/// The count that is nearest to half of the shots, of those that tell of the mechanisms that flip both of a pair.
pub(super) fn most_frequent(fired: [u64; 2], together: u64) -> u64 {
    let one = fired[0] + fired[1] - 2 * together;
    one.max(fired[0]).max(fired[1])
}

/// The sum of the weights of the mechanisms that flip both of a pair.
pub(super) fn pair_sum(fired: [u64; 2], together: u64, shots: u64) -> f64 {
    let one = fired[0] + fired[1] - 2 * together;
    (single_sum(fired[0], shots) + single_sum(fired[1], shots) - single_sum(one, shots)) / 2.0
}

/// The weight of a mechanism of probability `p`. One likelier than not has the weight of its opposite: detectors
/// that fire in less than half of the shots have the same counts with both.
pub(super) fn weight(p: f64) -> f64 {
    -(-2.0 * p.min(1.0 - p).min(0.5 - 1e-9)).ln_1p()
}

/// `model` with the probabilities that explain `counts` best. Mechanisms of probability 0 and 1 keep it, and
/// those likelier than not stay so. Detectors that fire in about half of the shots, as the model says, tell nothing.
///
/// # Errors
///
/// [`FitError`].
///
/// # Panics
///
/// If the counts are not of this model and these pairs.
pub fn fitted(model: &Model, pairs: &Pairs, counts: &PairCounts) -> Result<Fit, FitError> {
    let mut equations = equations(model, pairs, counts)?;
    let mut kinds: BTreeMap<Vec<usize>, Kind> = BTreeMap::new();
    for error in model.errors.iter().filter(|error| weight(error.probability) > 0.0) {
        let terms = equations_of(model, pairs, &error.effect().detectors);
        kinds.entry(terms).or_default().own += weight(error.probability);
    }
    let unseen = weight(0.5 / counts.shots as f64);
    for (terms, kind) in &mut kinds {
        (kind.now, kind.least) = (kind.own, kind.own.min(unseen));
        terms.iter().for_each(|&term| equations[term].excess += kind.own);
    }
    for _ in 0..SWEEPS_MAX {
        let mut largest = 0.0f64;
        for (terms, Kind { own, now, least }) in &mut kinds {
            let trust = (TRUST * *own).powi(-2);
            let (mut pull, mut certainty) = (trust * (*now - *own), trust);
            for Equation { excess, certainty: of_it } in terms.iter().map(|&term| &equations[term]) {
                pull += of_it * excess;
                certainty += of_it;
            }
            let change = (*now - pull / certainty).max(*least) - *now;
            *now += change;
            terms.iter().for_each(|&term| equations[term].excess += change);
            largest = largest.max(change.abs() / *own);
        }
        if largest < CONVERGED {
            break;
        }
    }
    let mut fit = Fit { model: model.clone(), too_rare: 0 };
    for error in fit.model.errors.iter_mut().filter(|error| weight(error.probability) > 0.0) {
        let Kind { own, now, least } = kinds[&equations_of(model, pairs, &error.effect().detectors)];
        fit.too_rare += usize::from(now <= least);
        let rarer = -(-weight(error.probability) * now / own).exp_m1() / 2.0;
        error.probability = if error.probability > 0.5 { 1.0 - rarer } else { rarer };
    }
    Ok(fit)
}

/// An equation for each detector, then one for each pair.
fn equations(model: &Model, pairs: &Pairs, counts: &PairCounts) -> Result<Vec<Equation>, FitError> {
    let PairCounts { shots, fired, together } = counts;
    if *shots == 0 {
        return Err(FitError::NoShots);
    }
    // A model may say that a detector fires in half of the shots or more, as those of a gauge do.
    let expected = model.expected_detection_fractions();
    let is_random = |(detector, fired): &(u32, &u64)| 2 * **fired >= *shots && expected[*detector as usize] < 0.5;
    if let Some((detector, found)) = (0..).zip(fired).find(is_random) {
        return Err(FitError::Random { detector, fraction: *found as f64 / *shots as f64 });
    }
    // The variance of a frequency; a count of 0 is as uncertain as one of 1. The nearer to one half the most
    // frequent is, the more the sum varies.
    let equation = |sum: f64, count: u64, most: u64| match is_below_half(most, *shots) {
        true => {
            let from_half = (*shots - 2 * most) as f64;
            Equation { certainty: from_half.powi(2) / (4.0 * count.max(1) as f64), excess: -sum }
        }
        false => Equation { certainty: 0.0, excess: 0.0 },
    };
    let singles = fired.iter().map(|&fired| equation(single_sum(fired, *shots), fired, fired));
    let pairs = pairs.ends().iter().zip(together).map(|(&(a, b), &together)| {
        let fired = [fired[a as usize], fired[b as usize]];
        equation(pair_sum(fired, together, *shots), together, most_frequent(fired, together))
    });
    Ok(singles.chain(pairs).collect())
}

/// Indices of the equations that a mechanism takes part in.
fn equations_of(model: &Model, pairs: &Pairs, detectors: &[u32]) -> Vec<usize> {
    let singles = detectors.iter().map(|&detector| detector as usize);
    let pairs = pairs.among(detectors).map(|pair| model.detectors as usize + pair);
    singles.chain(pairs).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::super::{Sampler, bundled, golden};
    use super::*;
    use rand_core::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    fn counted(source: &Model, pairs: &Pairs, shots: u64) -> PairCounts {
        let mut counts = PairCounts::new(source.detectors, pairs);
        let mut sampler = Sampler::new(source, 3);
        let (mut shot, mut flips) = (vec![0; source.detector_words()], vec![0; source.observable_words()]);
        for _ in 0..shots {
            sampler.draw(&mut shot, &mut flips);
            counts.observe(pairs, &shot);
        }
        counts
    }

    /// Sum of the probabilities' differences, as a share of `truth`'s probabilities.
    fn distance(found: &Model, truth: &Model) -> f64 {
        let each = found.errors.iter().zip(&truth.errors).map(|(a, b)| (a.probability - b.probability).abs());
        each.sum::<f64>() / truth.errors.iter().map(|error| error.probability).sum::<f64>()
    }

    #[test]
    fn probabilities_that_differ_between_mechanisms_are_found() {
        let model = bundled();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
        let mut truth = model.clone();
        for error in &mut truth.errors {
            error.probability *= 0.5 + 1.5 * (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        }
        let pairs = Pairs::new(&model);
        let few = fitted(&model, &pairs, &counted(&truth, &pairs, 20_000)).unwrap().model;
        let many = fitted(&model, &pairs, &counted(&truth, &pairs, 400_000)).unwrap().model;
        let [before, few, many] = [&model, &few, &many].map(|model| distance(model, &truth));
        assert!(few < 0.8 * before && many < 0.4 * before, "{before} {few} {many}");
    }

    #[test]
    fn shots_of_the_model_itself_leave_it_nearly_as_it_was() {
        for set in golden::all() {
            let pairs = Pairs::new(&set.model);
            let mut counts = PairCounts::new(set.model.detectors, &pairs);
            set.detections.iter().for_each(|shot| counts.observe(&pairs, shot));
            let fitted = fitted(&set.model, &pairs, &counts).unwrap().model;
            assert!(distance(&fitted, &set.model) < 0.6, "{}", set.name);
        }
    }

    #[test]
    fn no_error_becomes_impossible_however_few_the_shots_are() {
        let model = bundled();
        let pairs = Pairs::new(&model);
        for shots in [1, 100, 2_000] {
            // None with a detection event, and the model's own.
            let quiet = PairCounts { shots, ..PairCounts::new(model.detectors, &pairs) };
            for counts in [quiet, counted(&model, &pairs, shots)] {
                let Ok(Fit { model: found, too_rare }) = fitted(&model, &pairs, &counts) else { continue };
                assert!(found.errors.iter().all(|error| error.probability > 0.0), "{shots}");
                assert!(shots < 2_000 || too_rare > 0, "{shots}");
            }
        }
        // Ten shots without it do not tell that an error of 1 in 100 is rarer; 2,000 do, and not how rare.
        let model = Model::parse(b"error(0.01) D0\n").unwrap();
        let pairs = Pairs::new(&model);
        for (shots, expected) in [(10, 0.01), (2_000, 0.5 / 2_000.0)] {
            let found = fitted(&model, &pairs, &PairCounts { shots, ..PairCounts::new(1, &pairs) }).unwrap();
            let probability = found.model.errors[0].probability;
            assert!((probability - expected).abs() < 1e-12 && found.too_rare == 1, "{shots}: {probability}");
        }
    }

    /// Its coincidences were taken for those of the others.
    #[test]
    fn an_error_of_many_detectors_leaves_those_of_two_of_them_as_they_were() {
        let text = "error(0.02) D0 D1\nerror(0.02) D0\nerror(0.02) D1\n\
                    error(0.02) D0 D1 D2 D3 D4 D5 D6 D7 D8 D9\n";
        let model = Model::parse(text.as_bytes()).unwrap();
        let pairs = Pairs::new(&model);
        let fitted = fitted(&model, &pairs, &counted(&model, &pairs, 100_000)).unwrap().model;
        assert!(fitted.errors.iter().all(|error| (error.probability - 0.02).abs() < 0.002), "{:?}", fitted.errors);
    }

    /// Detectors of a gauge were refused for firing in half of the shots, or gave their errors any rate.
    #[test]
    fn counts_near_one_half_say_nothing_of_their_errors_and_nothing_wrong_of_others() {
        let gauges = "error(0.5) D0 D1\nerror(0.5) D2 D3\nerror(0.5) D4 D5\nerror(0.05) D0\nerror(0.05) D1\n\
                      error(0.02) D5 D6\nerror(0.02) D6\n";
        let loud = "error(0.45) D0\nerror(0.45) D1\nerror(0.05) D0 D1\nerror(0.02) D1 D2\nerror(0.02) D2\n";
        for text in [gauges, loud] {
            let model = Model::parse(text.as_bytes()).unwrap();
            let pairs = Pairs::new(&model);
            let found = fitted(&model, &pairs, &counted(&model, &pairs, 100_000)).unwrap().model;
            for (before, after) in model.errors.iter().zip(&found.errors) {
                let (before, after) = (before.probability, after.probability);
                assert!((after / before - 1.0).abs() < 0.1, "{text}: {before} {after}");
            }
        }
    }

    #[test]
    fn counts_that_no_model_explains_are_refused() {
        let model = Model::parse(b"error(0.1) D0 D1\nerror(0.1) D1\n").unwrap();
        let pairs = Pairs::new(&model);
        let mut counts = PairCounts::new(2, &pairs);
        assert_eq!(fitted(&model, &pairs, &counts), Err(FitError::NoShots));
        counts.observe(&pairs, &[2]);
        assert_eq!(fitted(&model, &pairs, &counts), Err(FitError::Random { detector: 1, fraction: 1.0 }));
    }

    #[test]
    fn mechanisms_of_the_same_detectors_keep_their_proportion() {
        let text = "error(0.01) D0 D1\nerror(0.03) D0 D1 L0\nerror(0.02) D0\nerror(0.02) D1\nerror(0) D1 L0\n";
        let model = Model::parse(text.as_bytes()).unwrap();
        let mut truth = model.clone();
        truth.errors.iter_mut().for_each(|error| error.probability *= 2.0);
        let pairs = Pairs::new(&model);
        let fitted = fitted(&model, &pairs, &counted(&truth, &pairs, 400_000)).unwrap().model;
        let found: Vec<f64> = fitted.errors.iter().map(|error| error.probability).collect();
        assert!((found[0] - 0.02).abs() < 0.001 && (found[1] - 0.06).abs() < 0.003, "{found:?}");
        assert_eq!(found[4], 0.0);
        assert!((found[2] - 0.04).abs() < 0.004 && (found[3] - 0.04).abs() < 0.004, "{found:?}");
    }

    #[test]
    fn errors_likelier_than_not_keep_being_so_and_certain_ones_are_kept() {
        // D0 fires no more often with 0.1 for its two mechanisms, but the observable would flip seldom.
        let text = "error(0.9) D0 L0\nerror(0.9) D0\nerror(1) D1 L0\nerror(1) D1\nerror(0.1) D1 D0\n";
        let model = Model::parse(text.as_bytes()).unwrap();
        let pairs = Pairs::new(&model);
        let fitted = fitted(&model, &pairs, &counted(&model, &pairs, 100_000)).unwrap().model;
        let found: Vec<f64> = fitted.errors.iter().map(|error| error.probability).collect();
        assert!(found.iter().zip([0.9, 0.9, 1.0, 1.0, 0.1]).all(|(a, b)| (a - b).abs() < 0.01), "{found:?}");
    }
}
