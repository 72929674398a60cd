//! What a model predicts of its shots: rates, variance, and which detectors fire together. Cold;
//! bounded by the model.

use std::collections::BTreeMap;

use super::super::Model;
use super::super::correlations::add;
use super::super::pairs::{Pairs, both_fire};

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
        let mut together = vec![0.0; all.ends().len()];
        for error in model.errors.iter().filter(|error| error.probability > 0.0) {
            let flipped = error.effect().detectors;
            total_variance += error.probability * (1.0 - error.probability) * (flipped.len() as f64).powi(2);
            all.among(&flipped).for_each(|pair| add(&mut together[pair], error.probability));
        }
        let together = || all.ends().iter().zip(&together);
        let groups = groups(together());
        let group = |a: u32, b: u32| groups.get(&(b - a)).copied().unwrap_or(OTHERS);
        let mut pairs = [(0.0, 0.0); GROUPS];
        for (&(a, b), &probability) in together() {
            let (alone_a, alone_b) = (fractions[a as usize], fractions[b as usize]);
            let (together, chance) = &mut pairs[usize::from(group(a, b))];
            *together += both_fire(alone_a, alone_b, probability);
            *chance += alone_a * alone_b;
        }
        let group_of = all.ends().iter().map(|&(a, b)| group(a, b)).collect();
        Self { total: fractions.iter().sum(), fractions, total_variance, together: all, group_of, pairs }
    }
}

/// The groups of the index differences that carry most probability; differences not listed share
/// the last group.
fn groups<'a>(together: impl Iterator<Item = (&'a (u32, u32), &'a f64)>) -> BTreeMap<u32, u8> {
    let mut by_difference: BTreeMap<u32, f64> = BTreeMap::new();
    for (&(a, b), &probability) in together {
        *by_difference.entry(b - a).or_insert(0.0) += probability;
    }
    let mut ranked: Vec<(u32, f64)> = by_difference.into_iter().collect();
    ranked.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    (0..OTHERS).zip(ranked).map(|(group, (difference, _))| (difference, group)).collect()
}
