//! What a model predicts of its shots: rates, variance, and which detectors fire together. Cold;
//! bounded by the model.

use std::collections::BTreeMap;

use super::super::{Model, ones_of};

/// The group of all pairs but those with the most frequent index differences, which have groups of their own.
const OTHERS: u8 = 7;
/// Groups of pairs.
pub(super) const GROUPS: usize = OTHERS as usize + 1;
/// Mechanisms of more detectors than this contribute no pairs.
const PAIRED_MAX: usize = 8;

/// Partners of one detector whose bits are in one word of a shot.
#[derive(Debug, Clone, Copy)]
pub(super) struct Partners {
    /// The word.
    word: u32,
    /// Where their groups begin in [`Expected::group_of`], in the order of the mask's bits.
    groups_from: u32,
    mask: u64,
}

/// What the model predicts, computed once.
#[derive(Debug, Clone)]
pub(super) struct Expected {
    pub(super) fractions: Vec<f64>,
    pub(super) total: f64,
    pub(super) total_variance: f64,
    /// Where each detector's partners begin in `partners`; one more entry at the end.
    partners_from: Vec<usize>,
    /// Partners of a higher index.
    partners: Vec<Partners>,
    /// The group of each pair.
    group_of: Vec<u8>,
    /// Expected pairs in a shot, per group: with the model's mechanisms, and by chance alone.
    pub(super) pairs: [(f64, f64); GROUPS],
}

impl Expected {
    pub(super) fn new(model: &Model) -> Self {
        let fractions = model.expected_detection_fractions();
        let mut total_variance = 0.0;
        let mut together: BTreeMap<(u32, u32), f64> = BTreeMap::new();
        for error in model.errors.iter().filter(|error| error.probability > 0.0) {
            let flipped = error.effect().detectors;
            total_variance += error.probability * (1.0 - error.probability) * (flipped.len() as f64).powi(2);
            if flipped.len() <= PAIRED_MAX {
                for (index, &a) in flipped.iter().enumerate() {
                    for &b in &flipped[index + 1..] {
                        *together.entry((a, b)).or_insert(0.0) += error.probability;
                    }
                }
            }
        }
        let groups = groups(&together);
        let group = |a: u32, b: u32| groups.get(&(b - a)).copied().unwrap_or(OTHERS);
        let mut pairs = [(0.0, 0.0); GROUPS];
        for (&(a, b), &probability) in &together {
            let (alone_a, alone_b) = (fractions[a as usize], fractions[b as usize]);
            let (together, chance) = &mut pairs[usize::from(group(a, b))];
            *together += both_fire(alone_a, alone_b, probability);
            *chance += alone_a * alone_b;
        }
        // In ascending order, so that the pairs of one detector and one word follow each other.
        let mut partners_from = vec![0; fractions.len() + 1];
        let mut partners: Vec<Partners> = Vec::new();
        for (groups_from, &(a, b)) in (0..).zip(together.keys()) {
            let (word, mask) = (b / 64, 1 << (b % 64));
            let has_partners = partners_from[a as usize + 1] > 0;
            match partners.last_mut().filter(|last| has_partners && last.word == word) {
                Some(last) => last.mask |= mask,
                None => {
                    partners.push(Partners { word, groups_from, mask });
                    partners_from[a as usize + 1] += 1;
                }
            }
        }
        for index in 1..partners_from.len() {
            partners_from[index] += partners_from[index - 1];
        }
        let group_of = together.keys().map(|&(a, b)| group(a, b)).collect();
        Self { total: fractions.iter().sum(), fractions, total_variance, partners_from, partners, group_of, pairs }
    }

    /// The groups of the pairs of `detector` and a partner of a higher index that fired in `shot`.
    ///
    /// # Why masks
    /// Few partners fire. A mask for each word finds them without a look at each partner.
    pub(super) fn pairs_in<'a>(&'a self, shot: &'a [u64], detector: u32) -> impl Iterator<Item = usize> + 'a {
        let index = detector as usize;
        let partners = &self.partners[self.partners_from[index]..self.partners_from[index + 1]];
        partners.iter().flat_map(move |&Partners { word, groups_from, mask }| {
            ones_of(shot[word as usize] & mask).map(move |index| {
                let place = (mask & ((1 << index) - 1)).count_ones();
                usize::from(self.group_of[(groups_from + place) as usize])
            })
        })
    }
}

/// The groups of the index differences that carry most probability; differences not listed share
/// the last group.
fn groups(together: &BTreeMap<(u32, u32), f64>) -> BTreeMap<u32, u8> {
    let mut by_difference: BTreeMap<u32, f64> = BTreeMap::new();
    for (&(a, b), &probability) in together {
        *by_difference.entry(b - a).or_insert(0.0) += probability;
    }
    let mut ranked: Vec<(u32, f64)> = by_difference.into_iter().collect();
    ranked.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    (0..OTHERS).zip(ranked).map(|(group, (difference, _))| (difference, group)).collect()
}

/// Probability that two detectors both fire, when mechanisms that flip both do so with `together`
/// in all.
fn both_fire(a: f64, b: f64, together: f64) -> f64 {
    // Each alone, with the shared part divided out of its odd-parity probability.
    let shared = (1.0 - (-2.0 * together).exp()) / 2.0;
    let alone = |fraction: f64| ((fraction - shared) / 2.0f64.mul_add(-shared, 1.0)).clamp(0.0, 1.0);
    let (a, b) = (alone(a), alone(b));
    shared.mul_add((1.0 - a) * (1.0 - b), (1.0 - shared) * a * b)
}
