//! The number of silos of a profile: a given number, or one chosen for the machine.
//!
//! Plain data; the plan settles `Auto`. Reads and writes as one value, `Auto` or `2`, in RON and in JSON.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Most silos of one engine.
pub const SILOS_MAX: u32 = 64;

/// Complete pipelines, 1..=64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Silos {
    /// One for each NUMA node or GPU: the plan decides, once, at the start.
    Auto,
    /// This many: written as the number alone, `silos: 2`.
    Count(u32),
}

impl Silos {
    /// The number decided by the plan; an undecided `Auto` counts as one.
    pub const fn settled(self) -> u32 {
        match self {
            Silos::Auto => 1,
            Silos::Count(count) => count,
        }
    }

    /// The most silos that a plan may choose: `Auto` gives each silo at least one stream.
    pub const fn most(self, streams: u32) -> u32 {
        match self {
            Silos::Auto if streams < SILOS_MAX => streams,
            Silos::Auto => SILOS_MAX,
            Silos::Count(count) => count,
        }
    }
}

impl std::fmt::Display for Silos {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Silos::Auto => f.write_str("auto"),
            Silos::Count(count) => write!(f, "{count}"),
        }
    }
}

impl Serialize for Silos {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Silos::Auto => serializer.serialize_unit_variant("Silos", 0, "Auto"),
            Silos::Count(count) => serializer.serialize_u32(*count),
        }
    }
}

/// The written value. RON keeps a bare word only for an untagged enum.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Number(i64),
    Word(String),
}

impl<'de> Deserialize<'de> for Silos {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Silos, D::Error> {
        match Written::deserialize(deserializer) {
            Ok(Written::Number(count)) if let Ok(count) = u32::try_from(count) => Ok(Silos::Count(count)),
            Ok(Written::Word(word)) if word == "Auto" => Ok(Silos::Auto),
            _ => Err(D::Error::custom("Auto or a whole number, 1 or more")),
        }
    }
}
