//! Detector error models: the parsed form, and the sizes and rates that follow from it.
//!
//! Owns [`Model`], from which widths, words, sampler, graph and expected rates are computed. Cold
//! code builds it once; then it is only read. Bounded by the limits below; an error names the limit
//! that a model exceeds. Never reads a file. Text that it does not understand is refused with its
//! position.
//!
//! The parser lives in `cursor` and `parse`, the unrolling of repeat blocks in `expand`. Source of
//! the format: Stim's `doc/file_format_dem_detector_error_model.md`, and its parser where that takes less.

mod cursor;
mod expand;
mod parse;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::soft::SoftMap;
use super::words;

/// Most detectors a model may have.
pub const DETECTORS_MAX: u32 = 1 << 20;
/// Most observables a model may have.
pub const OBSERVABLES_MAX: u32 = 1 << 12;
/// Most instructions and arguments after repeat blocks are unrolled.
pub const EXPANDED_MAX: u64 = 1 << 24;
/// Deepest nesting of repeat blocks.
pub const NESTING_MAX: usize = 32;

/// Why a model was refused, and where. The caller adds the file's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: found {found}, expected {expected}; {remedy}")]
pub struct DemError {
    /// Line, from 1.
    pub line: u32,
    /// Column in bytes, from 1.
    pub column: u32,
    /// What the text has there.
    pub found: String,
    /// What the format allows there.
    pub expected: String,
    /// What to do.
    pub remedy: String,
}

/// Detectors and observables that flip together: one part of a decomposed mechanism, or all of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Component {
    /// Detectors, ascending, each once.
    pub detectors: Vec<u32>,
    /// Observables, ascending, each once.
    pub observables: Vec<u32>,
}

/// One independent error mechanism.
#[derive(Debug, Clone, PartialEq)]
pub struct Mechanism {
    /// Probability in one shot, 0 to 1.
    pub probability: f64,
    /// Its parts, separated by `^` in the model; one part if it is not decomposed.
    pub components: Vec<Component>,
}

impl Mechanism {
    /// What the mechanism flips as a whole: the parts' symmetric difference.
    pub fn effect(&self) -> Component {
        let gather = |pick: fn(&Component) -> &Vec<u32>| odd_ones(self.components.iter().flat_map(pick).copied());
        Component { detectors: gather(|part| &part.detectors), observables: gather(|part| &part.observables) }
    }
}

/// The indices that occur an odd number of times, ascending.
fn odd_ones(indices: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut sorted: Vec<u32> = indices.collect();
    sorted.sort_unstable();
    let mut odd: Vec<u32> = Vec::with_capacity(sorted.len());
    for index in sorted {
        if odd.last() == Some(&index) {
            odd.pop();
        } else {
            odd.push(index);
        }
    }
    odd
}

/// A detector error model with repeats unrolled and detector indices absolute. Made by
/// [`Model::parse`] only, which guarantees that every index is below its count.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Model {
    /// Number of detectors: the highest index mentioned, plus one.
    pub detectors: u32,
    /// Number of observables: the highest index mentioned, plus one.
    pub observables: u32,
    /// Mechanisms in the order of the text, those of probability 0 included.
    pub errors: Vec<Mechanism>,
    /// Coordinates per detector; empty where the model gives none.
    pub coordinates: Vec<Vec<f64>>,
    /// Detectors with the tag `herald`, ascending: each says in which shots the errors that flip it may have
    /// happened. See [`heralds`](super::heralds).
    pub heralds: Vec<u32>,
    /// What the soft bytes of its shots mean, if they may have some. Its text does not have them.
    pub soft: Option<Arc<SoftMap>>,
}

impl Model {
    /// A number that names the model: equal for texts that give the same mechanisms in the same order,
    /// whatever their white space, comments, repeat blocks and coordinates (FNV-1a, 64 bits).
    pub fn hash(&self) -> u64 {
        const PRIME: u64 = 0x0100_0000_01b3;
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let mut take = |word: u64| {
            for byte in word.to_le_bytes() {
                hash = (hash ^ u64::from(byte)).wrapping_mul(PRIME);
            }
        };
        take(u64::from(self.detectors) << 32 | u64::from(self.observables));
        for Mechanism { probability, components } in &self.errors {
            take(probability.to_bits());
            take(components.len() as u64);
            for Component { detectors, observables } in components {
                take((detectors.len() as u64) << 32 | observables.len() as u64);
                detectors.iter().chain(observables).for_each(|index| take(u64::from(*index)));
            }
        }
        self.heralds.iter().for_each(|herald| take(u64::from(*herald)));
        hash
    }

    /// The detectors of a part of a mechanism without heralds, ascending.
    pub(super) fn without_heralds<'a>(&self, part: &'a Component) -> Cow<'a, [u32]> {
        if self.heralds.is_empty() {
            return Cow::Borrowed(&part.detectors);
        }
        let is_other = |detector: &&u32| self.heralds.binary_search(detector).is_err();
        part.detectors.iter().filter(is_other).copied().collect()
    }

    /// Parses a model's text.
    ///
    /// # Errors
    ///
    /// At the first text that is not a detector error model, or that exceeds a limit of this
    /// module.
    pub fn parse(text: &[u8]) -> Result<Self, DemError> {
        expand::expand(&parse::parse(text)?)
    }

    /// 64-bit words of a shot's detectors; at least one, also in a model without detectors: slots,
    /// job buffers, matchers and predecoders all have this width.
    #[inline]
    pub const fn detector_words(&self) -> usize {
        width(self.detectors)
    }

    /// 64-bit words of a shot's observables; at least one, also in a model without observables.
    #[inline]
    pub const fn observable_words(&self) -> usize {
        width(self.observables)
    }

    /// 64-bit words of a shot: its detectors, then the soft bytes that it may have.
    #[inline]
    pub fn shot_words(&self) -> usize {
        self.detector_words() + self.soft_words()
    }

    /// 64-bit words of a shot's soft bytes.
    pub fn soft_words(&self) -> usize {
        self.soft.as_ref().map_or(0, |map| map.words())
    }

    /// Whether a packed shot has bits set beyond its detectors and its soft bytes.
    pub fn has_other_bits(&self, shot: &[u64]) -> bool {
        let beyond =
            |words: &[u64], bits: u32| words.get(bits as usize / 64).is_some_and(|word| word >> (bits % 64) > 0);
        let (detectors, soft) = shot.split_at(self.detector_words().min(shot.len()));
        beyond(detectors, self.detectors) || beyond(soft, self.soft.as_ref().map_or(0, |map| 8 * map.bytes()))
    }

    /// Probability of each detector to fire in one shot: `(1 - Π(1 - 2p)) / 2` over the mechanisms
    /// that flip it.
    pub fn expected_detection_fractions(&self) -> Vec<f64> {
        let mut even_bias = vec![1.0f64; self.detectors as usize];
        for error in &self.errors {
            for detector in error.effect().detectors {
                even_bias[detector as usize] *= 2.0f64.mul_add(-error.probability, 1.0);
            }
        }
        even_bias.into_iter().map(|bias| (1.0 - bias) / 2.0).collect()
    }
}

/// The text of a model that parses to this one: repeat blocks are unrolled, remarks gone, and tags but those of
/// heralds.
impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Mechanism { probability, components } in &self.errors {
            write!(f, "error({})", number(*probability))?;
            let is_empty = |part: &&Component| part.detectors.is_empty() && part.observables.is_empty();
            for (index, part) in components.iter().filter(|part| !is_empty(part)).enumerate() {
                f.write_str(if index > 0 { " ^" } else { "" })?;
                part.detectors.iter().try_for_each(|detector| write!(f, " D{detector}"))?;
                part.observables.iter().try_for_each(|observable| write!(f, " L{observable}"))?;
            }
            writeln!(f)?;
        }
        for (detector, coordinates) in (0u32..).zip(&self.coordinates) {
            let is_herald = self.heralds.binary_search(&detector).is_ok();
            if !coordinates.is_empty() || is_herald {
                let numbers: Vec<String> = coordinates.iter().copied().map(number).collect();
                let tag = if is_herald { "[herald]" } else { "" };
                // Stim reads empty parentheses as one coordinate, 0.
                let arguments = if numbers.is_empty() { String::new() } else { format!("({})", numbers.join(", ")) };
                writeln!(f, "detector{tag}{arguments} D{detector}")?;
            }
        }
        // The highest indices, which no mechanism may name.
        if self.coordinates.last().is_some_and(Vec::is_empty) {
            writeln!(f, "detector D{}", self.detectors - 1)?;
        }
        self.observables.checked_sub(1).into_iter().try_for_each(|last| writeln!(f, "logical_observable L{last}"))
    }
}

/// A number as Stim reads it: it takes no more than 63 characters.
fn number(value: f64) -> String {
    let text = value.to_string();
    if text.len() > 63 { format!("{value:e}") } else { text }
}

const fn width(bits: u32) -> usize {
    if bits == 0 { 1 } else { words(bits) }
}

#[cfg(test)]
mod tests;
