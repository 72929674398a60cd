//! Detector error models, shot files, a sampler, and a check that a stream's shots fit their model.
//!
//! Owns no thread. Cold code parses models and files. Feeds call the sampler, the streaming reader
//! and the health counters, which allocate only when they are built. Bounded by the limits named in
//! [`dem`] and [`shots`]. Never opens a file: callers pass bytes or readers, and add the file's
//! name to an error.
//!
//! # Words
//!
//! A shot is bit-packed: detector (or observable) `d` is bit `d % 64` of word `d / 64`. Bits past
//! the width are zero. Every size in words comes from [`words`].
#![warn(clippy::cast_possible_truncation, clippy::cast_sign_loss)]

pub mod measure;
pub mod soft;
pub mod dem;
#[cfg(test)]
#[allow(clippy::unwrap_used, dead_code, reason = "harness; each crate that has it uses its part")]
#[path = "../testing/golden.rs"]
pub(crate) mod golden;
pub mod graph;
pub mod correlations;
pub mod heralds;
pub mod soft_edges;
pub mod pairs;
pub mod health;
pub mod fit;
pub mod drift;
pub mod extend;
pub mod rounds;
pub mod sampler;
pub mod shots;

pub use dem::{Component, DemError, Mechanism, Model};
pub use extend::ExtendError;
pub use health::{HealthReport, InputHealth};
pub use measure::{Encoding, MapError, Measurements};
pub use rounds::{MissingTime, Rounds};
pub use sampler::Sampler;
pub use shots::{Format, Layout, SET_WORDS_MAX, ShotError, ShotReader, ShotSet, ShotWriter};
pub use soft::SoftMap;

/// A model that is part of the program.
struct Bundled {
    name: &'static str,
    /// Its text, as Stim's circuit generator makes it.
    text: &'static str,
    /// The text that models with more rounds are made from: that of the fewest rounds with a bulk
    /// to repeat.
    bulk: &'static str,
}

const BUNDLED: [Bundled; 2] = [
    Bundled {
        name: "surface_d5",
        text: include_str!("code/data/surf_z_d5_r5_p0.005.dem"),
        bulk: include_str!("code/data/surf_z_d5_r5_p0.005.dem"),
    },
    Bundled {
        name: "surface_d3",
        text: include_str!("code/data/surf_z_d3_r3_p0.005.dem"),
        bulk: include_str!("code/data/long/surf_z_d3_r5_p0.005.dem"),
    },
];

/// Why a name does not name a bundled model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum NameError {
    #[error("found model {0:?}, expected surface_d5 or surface_d3, or one of them with its rounds: surface_d5@r50")]
    Unknown(String),
    #[error("found {found:?} after the @ of {name}, expected its rounds; write it like {name}@r50")]
    Rounds { name: &'static str, found: String },
    #[error("{name}: {error}")]
    Extend { name: &'static str, error: ExtendError },
}

/// 64-bit words that hold `bits` bits.
#[inline]
pub const fn words(bits: u32) -> usize {
    bits.div_ceil(64) as usize
}

/// Whether bit `index` of a packed shot is set.
///
/// # Panics
///
/// If `index` lies past the last word.
#[inline]
pub const fn bit(shot: &[u64], index: u32) -> bool {
    shot[index as usize / 64] >> (index % 64) & 1 == 1
}

/// Flips bit `index` of a packed shot.
///
/// # Panics
///
/// If `index` lies past the last word.
#[inline]
pub const fn flip(shot: &mut [u64], index: u32) {
    shot[index as usize / 64] ^= 1 << (index % 64);
}

/// The indices of a packed shot's set bits, ascending.
pub fn ones(shot: &[u64]) -> impl Iterator<Item = u32> + Clone + '_ {
    (0u32..).step_by(64).zip(shot).flat_map(|(base, &word)| ones_of(word).map(move |index| base + index))
}

/// The bits that are set in one word, ascending.
pub fn ones_of(word: u64) -> impl Iterator<Item = u32> + Clone {
    let mut left = word;
    std::iter::from_fn(move || {
        let index = left.trailing_zeros();
        (left != 0).then(|| {
            left &= left - 1;
            index
        })
    })
}

/// Names that [`bundled_named`] knows; the first is the default.
pub fn bundled_names() -> impl Iterator<Item = &'static str> {
    BUNDLED.iter().map(|bundled| bundled.name)
}

/// The default model: a distance-5 rotated surface code, 5 rounds, all four noise parameters 0.005.
///
/// # Panics
///
/// Only if the bundled text does not parse, which a test excludes.
pub fn bundled() -> Model {
    bundled_named(BUNDLED[0].name).expect("the first bundled model exists")
}

/// A bundled model by name. `NAME@rR` is the model with R rounds of measurement: the bundled text
/// if it has that many rounds, else extended by [`extend::extended`].
///
/// # Errors
///
/// If [`bundled_names`] does not list the name, or the model cannot have that many rounds.
///
/// # Panics
///
/// Only if the bundled text does not parse, which a test excludes.
pub fn bundled_named(name: &str) -> Result<Model, NameError> {
    let (base, rounds) = name.split_once('@').map_or((name, None), |(base, rounds)| (base, Some(rounds)));
    let known =
        BUNDLED.iter().find(|bundled| bundled.name == base).ok_or_else(|| NameError::Unknown(name.to_owned()))?;
    let parsed = |text: &str| Model::parse(text.as_bytes()).expect("a bundled model parses");
    let Some(rounds) = rounds else { return Ok(parsed(known.text)) };
    let digits = rounds.strip_prefix('r').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    let refuse = || NameError::Rounds { name: known.name, found: rounds.to_owned() };
    let rounds: u32 = digits.and_then(|digits| digits.parse().ok()).ok_or_else(refuse)?;
    let own = parsed(known.text);
    extend::extended(&own, rounds)
        .or_else(|_| extend::extended(&parsed(known.bulk), rounds))
        .map_err(|error| NameError::Extend { name: known.name, error })
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
    }

    #[test]
    fn longer_models_have_names() {
        let detectors = |name| bundled_named(name).map(|model| model.detectors);
        assert_eq!([detectors("surface_d5@r5"), detectors("surface_d5@r50")], [Ok(120), Ok(1200)]);
        assert_eq!([detectors("surface_d3@r3"), detectors("surface_d3@r15")], [Ok(24), Ok(120)]);
        for (name, part) in [
            ("no-such-model", "surface_d5@r50"),
            ("surface_d7@r50", "surface_d7@r50"),
            ("surface_d5@50", "like surface_d5@r50"),
            ("surface_d5@r", "like surface_d5@r50"),
            ("surface_d5@r+9", "like surface_d5@r50"),
            ("surface_d5@r4", "found 4 rounds, expected 5..=10000"),
            ("surface_d3@r4", "found 4 rounds, expected 5..=10000"),
            ("surface_d5@r10001", "found 10001 rounds, expected 5..=10000"),
        ] {
            let said = bundled_named(name).unwrap_err().to_string();
            assert!(said.contains(part) && said.contains("expected"), "{name}: {said}");
        }
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
