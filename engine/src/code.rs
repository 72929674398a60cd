//! What a shot is made of: detector error models, shot files, a sampler, and a judgement of the input's health.
//!
//! Owns no thread: cold code parses models and files; feeds call the sampler, the streaming reader and the health
//! counters, none of which allocates once built. Bounded by the limits named in [`dem`] and [`shots`]. Never opens a
//! file: callers bring bytes or readers, and add the file's name to an error.
//!
//! # Words
//!
//! A shot is bit-packed: detector (or observable) `d` is bit `d % 64` of word `d / 64`, bits past the width are zero.
//! Every size in words comes from [`words`], so that no two places can disagree about it.
#![warn(clippy::cast_possible_truncation, clippy::cast_sign_loss)]

pub mod dem;
#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "harness")]
pub(crate) mod golden;
pub mod graph;
pub mod health;
pub mod sampler;
pub mod shots;

pub use dem::{Component, DemError, Mechanism, Model};
pub use health::{HealthReport, InputHealth, Verdict};
pub use sampler::Sampler;
pub use shots::{Format, Layout, ShotError, ShotReader, ShotSet, ShotWriter};

/// The models a user runs without a file, by name: the text of each, as Stim's circuit generator makes it.
const BUNDLED: [(&str, &str); 2] = [
    ("surface_d5", include_str!("code/data/surf_z_d5_r5_p0.005.dem")),
    ("surface_d3", include_str!("code/data/surf_z_d3_r3_p0.005.dem")),
];

/// 64-bit words that hold `bits` bits.
#[must_use]
pub const fn words(bits: u32) -> usize {
    bits.div_ceil(64) as usize
}

/// Whether bit `index` of a packed shot is set.
///
/// # Panics
///
/// If `index` lies past the last word.
#[must_use]
pub const fn bit(shot: &[u64], index: u32) -> bool {
    shot[index as usize / 64] >> (index % 64) & 1 == 1
}

/// Flips bit `index` of a packed shot.
///
/// # Panics
///
/// If `index` lies past the last word.
pub const fn flip(shot: &mut [u64], index: u32) {
    shot[index as usize / 64] ^= 1 << (index % 64);
}

/// The indices of a packed shot's set bits, ascending.
pub fn ones(shot: &[u64]) -> impl Iterator<Item = u32> + '_ {
    (0u32..).step_by(64).zip(shot).flat_map(|(base, &word)| {
        let mut left = word;
        std::iter::from_fn(move || {
            let index = left.trailing_zeros();
            (left != 0).then(|| {
                left &= left - 1;
                base + index
            })
        })
    })
}

/// Names that [`bundled_named`] knows; the first is the default.
pub fn bundled_names() -> impl Iterator<Item = &'static str> {
    BUNDLED.iter().map(|&(name, _)| name)
}

/// The default model: a distance-5 rotated surface code, 5 rounds, all four noise knobs 0.005.
///
/// # Panics
///
/// Never in a build whose tests passed: the text is part of the program.
#[must_use]
pub fn bundled() -> Model {
    let (name, _) = BUNDLED[0];
    bundled_named(name).expect("the first bundled model exists")
}

/// A bundled model by name, or `None` for a name that [`bundled_names`] does not list.
///
/// # Panics
///
/// Never in a build whose tests passed: the text is part of the program.
#[must_use]
pub fn bundled_named(name: &str) -> Option<Model> {
    let (_, text) = BUNDLED.iter().find(|(known, _)| *known == name)?;
    Some(Model::parse(text.as_bytes()).expect("a bundled model parses"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::*;

    #[test]
    fn every_bundled_model_parses_and_names_are_distinct() {
        let names: Vec<_> = bundled_names().collect();
        for (index, name) in names.iter().enumerate() {
            assert!(bundled_named(name).unwrap().detectors > 0);
            assert!(!names[..index].contains(name));
        }
        assert_eq!(bundled().detectors, 120);
        assert_eq!(bundled_named("no-such-model").map(|model| model.detectors), None);
    }

    #[test]
    fn ones_lists_what_flip_set() {
        let mut shot = [0u64; 3];
        for index in [0, 63, 64, 127, 130] {
            flip(&mut shot, index);
        }
        assert!(bit(&shot, 127) && !bit(&shot, 126));
        flip(&mut shot, 64);
        assert_eq!(ones(&shot).collect::<Vec<_>>(), [0, 63, 127, 130]);
        assert_eq!((words(0), words(1), words(64), words(65)), (0, 1, 1, 2));
    }
}
