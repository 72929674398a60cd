//! The number of silos that a profile asks for: one that it names, or what the machine is worth.
//!
//! Plain data; the plan settles `Auto`. Reads and writes as one value, `Auto` or `2`, in RON and in JSON.

use super::check::SILOS_MAX;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Complete pipelines, 1..=64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Silos {
    /// One for each NUMA node or GPU: a plan settles it, once, at the start.
    Auto,
    /// So many.
    Count(u32),
}

impl Silos {
    /// The number, where a plan has settled it; an `Auto` that is not settled is one.
    #[must_use]
    pub const fn settled(self) -> u32 {
        match self {
            Silos::Auto => 1,
            Silos::Count(count) => count,
        }
    }

    /// The most that a plan may make of it: `Auto` gives each silo a stream at least.
    #[must_use]
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

/// What stands there. RON keeps a bare word only for an untagged enum.
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
