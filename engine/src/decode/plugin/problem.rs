//! The problem that a plugin solves: the model's mechanisms as a hypergraph, and the check of each answer.
//!
//! Pure. Made by cold code and shared by all matchers of a plugin; a check allocates nothing. Bounded by
//! the model.
//!
//! # What is checked
//! A plugin answers with mechanisms. Each must exist, and together they must fire exactly the detectors of
//! the syndrome. The observables of the answer are those that these mechanisms flip by the model. So a
//! plugin can choose an improbable explanation, which is its business, but never one that explains another
//! shot.

use super::PluginFault;
use crate::code::{Model, flip};

/// The hypergraph of a model. Mechanisms of probability 0 and those without a detector are left out, as they
/// are for matching.
#[derive(Debug, PartialEq)]
pub(super) struct Problem {
    pub(super) detectors: u32,
    pub(super) probabilities: Vec<f64>,
    /// Where each mechanism's detectors begin in `vertices`, and the end of the last.
    pub(super) offsets: Vec<u64>,
    pub(super) vertices: Vec<u64>,
    /// Packed observables of each mechanism; empty in a process that only decodes.
    flips: Vec<u64>,
    detector_words: usize,
    observable_words: usize,
}

impl Problem {
    /// The problem of `model`; `Err` with the number of a mechanism that always happens, which the interface
    /// excludes.
    pub(super) fn new(model: &Model) -> Result<Problem, usize> {
        let mut problem = Problem {
            detectors: model.detectors,
            probabilities: Vec::new(),
            offsets: vec![0],
            vertices: Vec::new(),
            flips: Vec::new(),
            detector_words: model.detector_words(),
            observable_words: model.observable_words(),
        };
        for (number, mechanism) in model.errors.iter().enumerate() {
            let effect = mechanism.effect();
            if mechanism.probability == 0.0 || effect.detectors.is_empty() {
                continue;
            }
            if mechanism.probability >= 1.0 {
                return Err(number);
            }
            problem.probabilities.push(mechanism.probability);
            problem.vertices.extend(effect.detectors.iter().map(|detector| u64::from(*detector)));
            problem.offsets.push(problem.vertices.len() as u64);
            let first = problem.flips.len();
            problem.flips.resize(first + problem.observable_words, 0);
            effect.observables.iter().for_each(|index| flip(&mut problem.flips[first..], *index));
        }
        Ok(problem)
    }

    /// A problem that another process has described, without its observables.
    pub(super) fn of_parts(detectors: u32, probabilities: Vec<f64>, offsets: Vec<u64>, vertices: Vec<u64>) -> Problem {
        let (flips, observable_words) = (Vec::new(), 0);
        let detector_words = detectors.div_ceil(64).max(1) as usize;
        Problem { detectors, probabilities, offsets, vertices, flips, detector_words, observable_words }
    }

    /// Number of mechanisms.
    pub(super) fn edges(&self) -> usize {
        self.probabilities.len()
    }

    /// 64-bit words of a syndrome.
    pub(super) fn detector_words(&self) -> usize {
        self.detector_words
    }

    /// 64-bit words of the observables.
    pub(super) fn observable_words(&self) -> usize {
        self.observable_words
    }

    /// Bytes of a syndrome as plugins get it.
    pub(super) fn syndrome_bytes(&self) -> usize {
        self.detectors.div_ceil(8) as usize
    }

    /// Bytes on the heap.
    pub(super) fn bytes(&self) -> usize {
        8 * (self.probabilities.capacity() + self.offsets.capacity() + self.vertices.capacity() + self.flips.capacity())
    }

    /// Projects the mechanisms `chosen` to `observables`. `syndrome` is what they must fire; it is used up.
    pub(super) fn explain(
        &self,
        chosen: impl IntoIterator<Item = u64>,
        syndrome: &mut [u64],
        observables: &mut [u64],
    ) -> Result<f64, PluginFault> {
        let mut weight = 0.0;
        for edge in chosen {
            let edge =
                usize::try_from(edge).ok().filter(|edge| *edge < self.edges()).ok_or(PluginFault::NoMechanism)?;
            let detectors = &self.vertices[self.offsets[edge] as usize..self.offsets[edge + 1] as usize];
            detectors.iter().for_each(|detector| flip(syndrome, *detector as u32));
            let flips = &self.flips[edge * self.observable_words..][..self.observable_words];
            observables.iter_mut().zip(flips).for_each(|(word, by)| *word ^= by);
            let probability = self.probabilities[edge];
            weight += (1.0 - probability).ln() - probability.ln();
        }
        if syndrome.iter().any(|word| *word != 0) {
            return Err(PluginFault::Unexplained);
        }
        Ok(weight)
    }
}

/// Packs a syndrome as plugins get it: the first detector is the most significant bit of the first byte.
pub(super) fn pack(syndrome: &[u64], bytes: &mut [u8]) {
    for (to, word) in bytes.chunks_mut(8).zip(syndrome) {
        let all = word.reverse_bits().to_be_bytes();
        to.copy_from_slice(&all[..to.len()]);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{PluginFault, Problem, pack};
    use crate::code::Model;

    fn problem() -> Problem {
        let text = "error(0.1) D0 L0\nerror(0) D1\nerror(0.2) D0 D1 ^ D1 D2 L1\nerror(0.25) L0\nerror(0.3) D2 L0 L1\n";
        Problem::new(&Model::parse(text.as_bytes()).unwrap()).unwrap()
    }

    #[test]
    fn a_mechanism_is_an_edge_with_all_its_detectors_and_what_cannot_be_seen_is_left_out() {
        let problem = problem();
        assert_eq!((problem.detectors, problem.edges()), (3, 3));
        assert_eq!((&problem.offsets[..], &problem.vertices[..]), (&[0, 1, 3, 4][..], &[0, 0, 2, 2][..]));
        assert_eq!(problem.probabilities, [0.1, 0.2, 0.3]);
        let certain = Model::parse(b"error(0.1) D0\nerror(1) D1\n").unwrap();
        assert_eq!(Problem::new(&certain), Err(1));
    }

    #[test]
    fn an_answer_that_does_not_explain_its_shot_is_refused() {
        let problem = problem();
        let explained = |chosen: &[u64], syndrome: u64| {
            let (mut syndrome, mut observables) = ([syndrome], [0]);
            let found = problem.explain(chosen.iter().copied(), &mut syndrome, &mut observables);
            found.map(|_| observables[0])
        };
        assert_eq!(explained(&[], 0), Ok(0));
        assert_eq!(explained(&[0], 0b001), Ok(0b01));
        assert_eq!(explained(&[1], 0b101), Ok(0b10));
        assert_eq!(explained(&[0, 2], 0b101), Ok(0b10));
        assert_eq!(explained(&[1, 1], 0), Ok(0), "twice is not at all");
        assert_eq!(explained(&[0], 0b101), Err(PluginFault::Unexplained));
        assert_eq!(explained(&[], 0b010), Err(PluginFault::Unexplained));
        for edge in [3, u64::MAX] {
            assert_eq!(explained(&[edge], 0), Err(PluginFault::NoMechanism));
        }
    }

    #[test]
    fn the_first_detector_is_the_most_significant_bit() {
        let mut bytes = [0; 9];
        pack(&[1 | 1 << 9 | 1 << 63, 1 << 1], &mut bytes);
        assert_eq!(bytes, [0x80, 0x40, 0, 0, 0, 0, 0, 0x01, 0x40]);
    }
}
