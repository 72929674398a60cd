//! Pairs of detectors that a mechanism of the model flips together, and which of them fired in a shot.
//!
//! Cold code builds them once; then they are only read. Bounded by the model: mechanisms of more than
//! [`PAIRED_MAX`] detectors make no pairs, but count for the pairs that others have made among their detectors
//! ([`Pairs::among`]). Mechanisms of probability 0 make none either.

use std::collections::BTreeSet;

use super::{Model, ones, ones_of};

/// Mechanisms of more detectors than this make no pairs.
const PAIRED_MAX: usize = 8;

/// Partners of one detector whose bits are in one word of a shot.
#[derive(Debug, Clone, Copy)]
struct Partners {
    word: u32,
    /// Index of the first pair; the others follow in the order of the mask's bits.
    first: u32,
    mask: u64,
}

/// The pairs of a model, in ascending order.
#[derive(Debug, Clone)]
pub struct Pairs {
    ends: Vec<(u32, u32)>,
    /// Where each detector's partners begin in `partners`; one more entry at the end.
    partners_from: Vec<usize>,
    /// Partners of a higher index.
    partners: Vec<Partners>,
}

impl Pairs {
    /// The pairs of `model`.
    pub fn new(model: &Model) -> Self {
        let ends: BTreeSet<(u32, u32)> = model
            .errors
            .iter()
            .filter(|error| error.probability > 0.0)
            .flat_map(|error| pairs_of(&error.effect().detectors).collect::<Vec<_>>())
            .collect();
        let mut partners_from = vec![0; model.detectors as usize + 1];
        let mut partners: Vec<Partners> = Vec::new();
        for (first, &(a, b)) in (0..).zip(&ends) {
            let (word, mask) = (b / 64, 1 << (b % 64));
            let of_a = &mut partners_from[a as usize + 1];
            match partners.last_mut().filter(|last| *of_a > 0 && last.word == word) {
                Some(last) => last.mask |= mask,
                None => {
                    partners.push(Partners { word, first, mask });
                    *of_a += 1;
                }
            }
        }
        for index in 1..partners_from.len() {
            partners_from[index] += partners_from[index - 1];
        }
        Self { ends: ends.into_iter().collect(), partners_from, partners }
    }

    /// The lower and the higher detector of each pair.
    pub fn ends(&self) -> &[(u32, u32)] {
        &self.ends
    }

    /// Indices of the pairs among `detectors`, which ascend.
    pub(super) fn among<'a>(&'a self, detectors: &'a [u32]) -> impl Iterator<Item = usize> + 'a {
        detectors.iter().flat_map(move |&detector| {
            let first = self.ends.partition_point(|(a, _)| *a < detector);
            let of_it = self.ends[first..].iter().take_while(move |(a, _)| *a == detector);
            let among = move |(index, (_, b)): (usize, &(u32, u32))| detectors.binary_search(b).ok().map(|_| index);
            (first..).zip(of_it).filter_map(among)
        })
    }

    /// Indices of the pairs of which both fired in `shot`.
    ///
    /// # Why masks
    /// Few partners fire. A mask for each word finds them without a look at each partner.
    pub fn fired_in<'a>(&'a self, shot: &'a [u64]) -> impl Iterator<Item = usize> + 'a {
        ones(shot).flat_map(move |detector| {
            let index = detector as usize;
            let partners = &self.partners[self.partners_from[index]..self.partners_from[index + 1]];
            partners.iter().flat_map(move |&Partners { word, first, mask }| {
                let place = move |index: u32| (mask & ((1 << index) - 1)).count_ones();
                ones_of(shot[word as usize] & mask).map(move |index| (first + place(index)) as usize)
            })
        })
    }
}

/// Probability that two detectors both fire that fire with the probabilities `a` and `b`, when an odd number of
/// mechanisms that flip both happens with probability `shared`.
pub(super) fn both_fire(a: f64, b: f64, shared: f64) -> f64 {
    // Each alone, with the shared part divided out of its odd-parity probability; at one half that says nothing.
    let shared = if (shared - 0.5).abs() < 1e-9 { 0.5 - 1e-9 } else { shared };
    let alone = |fraction: f64| ((fraction - shared) / 2.0f64.mul_add(-shared, 1.0)).clamp(0.0, 1.0);
    let (a, b) = (alone(a), alone(b));
    shared.mul_add((1.0 - a) * (1.0 - b), (1.0 - shared) * a * b)
}

/// How often each detector of a stream fired, and both of each pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairCounts {
    /// Shots counted.
    pub shots: u64,
    /// By detector.
    pub fired: Vec<u64>,
    /// By pair.
    pub together: Vec<u64>,
}

impl PairCounts {
    /// Nothing counted yet of shots of `detectors` detectors.
    pub fn new(detectors: u32, pairs: &Pairs) -> Self {
        Self { shots: 0, fired: vec![0; detectors as usize], together: vec![0; pairs.ends.len()] }
    }

    /// Counts one packed shot.
    ///
    /// # Panics
    ///
    /// If a bit past the model's detectors is set.
    pub fn observe(&mut self, pairs: &Pairs, shot: &[u64]) {
        self.shots += 1;
        ones(shot).for_each(|detector| self.fired[detector as usize] += 1);
        pairs.fired_in(shot).for_each(|pair| self.together[pair] += 1);
    }

    /// Counts nothing any more.
    pub fn clear(&mut self) {
        self.shots = 0;
        self.fired.fill(0);
        self.together.fill(0);
    }

    /// Adds what `other` counted.
    pub fn add(&mut self, other: &Self) {
        self.shots += other.shots;
        self.fired.iter_mut().zip(&other.fired).for_each(|(sum, more)| *sum += more);
        self.together.iter_mut().zip(&other.together).for_each(|(sum, more)| *sum += more);
    }
}

/// The pairs of `detectors`, which ascend; none if there are too many.
fn pairs_of(detectors: &[u32]) -> impl Iterator<Item = (u32, u32)> {
    let few = if detectors.len() <= PAIRED_MAX { detectors } else { &[] };
    few.iter().enumerate().flat_map(|(index, &a)| few[index + 1..].iter().map(move |&b| (a, b)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::super::golden;
    use super::*;

    #[test]
    fn pairs_that_fired_are_those_of_the_detectors_that_did() {
        for set in golden::all() {
            let pairs = Pairs::new(&set.model);
            for shot in set.detections.iter().take(200) {
                let fired: Vec<u32> = ones(shot).collect();
                let is_fired = |(_, (a, b)): &(usize, &(u32, u32))| fired.contains(a) && fired.contains(b);
                let expected: Vec<usize> = pairs.ends().iter().enumerate().filter(is_fired).map(|(at, _)| at).collect();
                assert_eq!(pairs.fired_in(shot).collect::<Vec<_>>(), expected, "{}", set.name);
                assert_eq!(pairs.among(&fired).collect::<Vec<_>>(), expected, "{}", set.name);
            }
        }
    }

    #[test]
    fn large_and_impossible_mechanisms_make_no_pairs() {
        let text = "error(0.1) D0 D1 ^ D1 D70\nerror(0) D2 D3\nerror(0.1) D4 D5 D6 D7 D8 D9 D10 D11 D12\n";
        assert_eq!(Pairs::new(&Model::parse(text.as_bytes()).unwrap()).ends(), [(0, 70)]);
    }
}
