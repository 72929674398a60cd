//! What a model predicts of its shots: rates, variance, and which detectors fire together. Cold;
//! bounded by the model.

use std::collections::BTreeMap;

use super::super::Model;
use super::super::pairs::Pairs;

/// The group of all pairs but those with the most frequent index differences, which have groups of their own.
const OTHERS: u8 = 7;
/// Groups of pairs.
pub(super) const GROUPS: usize = OTHERS as usize + 1;

/// What the model predicts, computed once.
#[derive(Debug, Clone)]
pub(super) struct Expected {
    pub(super) fractions: Vec<f64>,
    pub(super) total: f64,
    pub(super) total_variance: f64,
    /// Pairs of detectors that share a mechanism.
    pub(super) together: Pairs,
    pub(super) group_of: Vec<u8>,
    /// Expected pairs in a shot, per group: with the model's mechanisms, and by chance alone.
    pub(super) pairs: [(f64, f64); GROUPS],
}

impl Expected {
    pub(super) fn new(model: &Model) -> Self {
        let fractions = model.expected_detection_fractions();
        let mut total_variance = 0.0;
        let all = Pairs::new(model);
        for error in model.errors.iter().filter(|error| error.probability > 0.0) {
            let flipped = error.effect().detectors.len() as f64;
            total_variance += error.probability * (1.0 - error.probability) * flipped.powi(2);
        }
        let biases = PairBiases::new(model, &all);
        let groups = groups(all.ends().iter().zip(&biases.both));
        let group = |a: u32, b: u32| groups.get(&(b - a)).copied().unwrap_or(OTHERS);
        let mut pairs = [(0.0, 0.0); GROUPS];
        for (&(a, b), one) in all.ends().iter().zip(&biases.one) {
            let (alone_a, alone_b) = (fractions[a as usize], fractions[b as usize]);
            let (together, chance) = &mut pairs[usize::from(group(a, b))];
            // Of the four cases: both, one of them, none.
            *together += (2.0 * (alone_a + alone_b) - 1.0 + one).max(0.0) / 4.0;
            *chance += alone_a * alone_b;
        }
        let group_of = all.ends().iter().map(|&(a, b)| group(a, b)).collect();
        Self { total: fractions.iter().sum(), fractions, total_variance, together: all, group_of, pairs }
    }
}

/// `1 - 2p` of each pair, by mechanisms.
struct PairBiases {
    /// Of an odd number of mechanisms that flip both.
    both: Vec<f64>,
    /// Of an odd number of mechanisms that flip one of the two: then just one of them fires.
    one: Vec<f64>,
}

impl PairBiases {
    fn new(model: &Model, pairs: &Pairs) -> Self {
        let bias = |probability: f64| 2.0f64.mul_add(-probability, 1.0);
        let mechanisms = || {
            let possible = model.errors.iter().filter(|error| error.probability > 0.0);
            possible.map(|error| (error.effect().detectors, bias(error.probability)))
        };
        let (mut single, mut both) = (vec![1.0; model.detectors as usize], vec![1.0; pairs.ends().len()]);
        for (flipped, bias) in mechanisms() {
            flipped.iter().for_each(|&detector| single[detector as usize] *= bias);
            pairs.among(&flipped).for_each(|pair| both[pair] *= bias);
        }
        // What flips both is divided out of each; where that is 0, as of a mechanism of one half,
        // it cannot be.
        let mut undivided: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        let divided = |(pair, (&(a, b), both)): (usize, (&(u32, u32), &f64))| {
            if both.is_normal() {
                return single[a as usize] / both * (single[b as usize] / both);
            }
            for detector in [a, b] {
                undivided.entry(detector).or_default().push(pair);
            }
            1.0
        };
        let mut one: Vec<f64> = pairs.ends().iter().zip(&both).enumerate().map(divided).collect();
        if undivided.is_empty() {
            return Self { both, one };
        }
        for (flipped, bias) in mechanisms() {
            for pair in flipped.iter().filter_map(|detector| undivided.get(detector)).flatten() {
                let (a, b) = pairs.ends()[*pair];
                let flips = |detector: u32| flipped.binary_search(&detector).is_ok();
                one[*pair] *= if flips(a) && flips(b) { 1.0 } else { bias };
            }
        }
        Self { both, one }
    }
}

/// The groups of the index differences that carry most probability; differences not listed share
/// the last group.
fn groups<'a>(biases: impl Iterator<Item = (&'a (u32, u32), &'a f64)>) -> BTreeMap<u32, u8> {
    let mut by_difference: BTreeMap<u32, f64> = BTreeMap::new();
    for (&(a, b), bias) in biases {
        *by_difference.entry(b - a).or_insert(0.0) += (1.0 - bias) / 2.0;
    }
    let mut ranked: Vec<(u32, f64)> = by_difference.into_iter().collect();
    ranked.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    (0..OTHERS).zip(ranked).map(|(group, (difference, _))| (difference, group)).collect()
}
