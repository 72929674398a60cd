//! Reads a profile's text over the values of its base.
//!
//! Reads a RON text field by field. Present fields are read from the text; omitted fields are taken
//! from the base. A field that is itself a record (`limits`, `input`, ..) is merged in the same
//! way; every other value replaces the base's value as a whole. Cold; bounded by the text and the
//! schema. Never reads a file.
//!
//! # Why a deserializer
//! The records declare their own fields, and RON still reports the line and column of an error. The
//! schema thus stays one declaration, without a second one in which every field is optional.

use std::cell::RefCell;

use ron::error::SpannedError;
use serde::de::value::StrDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};
use serde_json::{Map, Value};

use super::schema::Profile;

/// The key that names a profile's base.
pub(super) const BASE_KEY: &str = "base";
/// The text of the base: every field with its default and what it means.
pub(super) const BASE: &str = include_str!("base.ron");

/// Reads `text` over `base`, a complete profile; returns also the name of the base that the text
/// requests.
pub(super) fn read(text: &str, base: &Profile) -> Result<(Profile, Option<String>), SpannedError> {
    let named = RefCell::new(None);
    // A profile has string keys and finite or infinite numbers only: it always serializes.
    let base = serde_json::to_value(base).unwrap_or_default();
    let whole = Over { reader: Whole, base: &base, named: &named };
    let profile = ron::Options::default().from_str_seed(text, whole)?;
    Ok((profile, named.into_inner()))
}

/// Reads a complete profile.
struct Whole;

impl<'de> DeserializeSeed<'de> for Whole {
    type Value = Profile;

    fn deserialize<D: Deserializer<'de>>(self, text: D) -> Result<Profile, D::Error> {
        Profile::deserialize(text)
    }
}

/// A reader or visitor of a value, with the base's value for the same field.
struct Over<'a, R> {
    reader: R,
    base: &'a Value,
    /// The base named in the text.
    named: &'a RefCell<Option<String>>,
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Over<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, text: D) -> Result<S::Value, D::Error> {
        let Over { reader, base, named } = self;
        reader.deserialize(Over { reader: text, base, named })
    }
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Over<'_, D> {
    type Error = D::Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let Over { reader, base, named } = self;
        let visitor = Record { over: Over { reader: visitor, base, named }, name, fields };
        reader.deserialize_struct(name, fields, visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.reader.deserialize_option(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.reader.deserialize_enum(name, variants, visitor)
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.reader.deserialize_any(visitor)
    }

    // Only JSON objects arrive here: records, optional records and variants with content.
    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map identifier ignored_any
    }
}

/// The visitor of a record.
struct Record<'a, V> {
    over: Over<'a, V>,
    name: &'static str,
    fields: &'static [&'static str],
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Record<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.over.reader.expecting(f)
    }

    fn visit_map<A: MapAccess<'de>>(self, text: A) -> Result<V::Value, A::Error> {
        let Record { over: Over { reader, base, named }, name, fields } = self;
        let empty = Map::new();
        let base = base.as_object().unwrap_or(&empty);
        let takes_base = name == "Profile";
        reader.visit_map(Merged {
            text,
            ended: false,
            base,
            named,
            takes_base,
            left: fields.to_vec(),
            next: Next::None,
        })
    }
}

/// The fields of the text, then those of the base that the text left out.
struct Merged<'a, A> {
    text: A,
    /// Whether the text's fields are exhausted.
    ended: bool,
    base: &'a Map<String, Value>,
    named: &'a RefCell<Option<String>>,
    /// Whether this is the complete profile, which may name its base.
    takes_base: bool,
    /// Fields not yet read from the text.
    left: Vec<&'static str>,
    next: Next<'a>,
}

/// Source of the next value.
#[derive(Clone, Copy)]
enum Next<'a> {
    /// The text.
    None,
    /// The text, over a record of the base.
    Over(&'a Value),
    /// The base.
    Base(&'a Value),
}

impl<'de, A: MapAccess<'de>> Merged<'_, A> {
    /// The name of the text's next field that is not the base's name.
    fn next_name(&mut self) -> Result<Option<String>, A::Error> {
        while !self.ended {
            match self.text.next_key_seed(Name)? {
                Some(name) if self.takes_base && name == BASE_KEY => {
                    if self.named.borrow().is_some() {
                        return Err(A::Error::duplicate_field(BASE_KEY));
                    }
                    *self.named.borrow_mut() = Some(self.text.next_value()?);
                }
                Some(name) => return Ok(Some(name)),
                None => self.ended = true,
            }
        }
        Ok(None)
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Merged<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        if let Some(name) = self.next_name()? {
            self.left.retain(|field| *field != name);
            self.next = match self.base.get(&name) {
                Some(value) if value.is_object() => Next::Over(value),
                _ => Next::None,
            };
            return seed.deserialize(StrDeserializer::new(&name)).map(Some);
        }
        let Some((name, value)) = self.left.pop().and_then(|name| Some((name, self.base.get(name)?))) else {
            return Ok(None);
        };
        self.next = Next::Base(value);
        seed.deserialize(StrDeserializer::new(name)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        match self.next {
            Next::None => self.text.next_value_seed(seed),
            Next::Over(base) => self.text.next_value_seed(Over { reader: seed, base, named: self.named }),
            Next::Base(value) => seed.deserialize(value.clone()).map_err(A::Error::custom),
        }
    }
}

/// Reads the name of a field.
struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, text: D) -> Result<String, D::Error> {
        text.deserialize_identifier(self)
    }
}

impl Visitor<'_> for Name {
    type Value = String;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<String, E> {
        Ok(name.to_owned())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]

    use super::read;
    use crate::profile::{Courtesy, Device, Latency, Profile, Silos, SpinPolicy};

    fn lab() -> Profile {
        Profile::load("lab", None).unwrap().0
    }

    #[test]
    fn records_merge_field_by_field_and_every_other_value_replaces_that_of_the_base() {
        let mut base = lab();
        base.limits.late_us = 77;
        base.device = Device::Sim { latency: Latency::LogNormal { median_us: 1.0, sigma: 1.0 } };
        let text = "(limits: (drain_grace_s: 3), placement: (overflow: (keep_shots: 5)), silos: 2, spin: Prod, \
                    device: Sim(latency: Fixed(us: 2.0)), courtesy: Some((wait_ms: 7, quiet_s: 8)))";
        let (found, named) = read(text, &base).unwrap();
        let mut expected = base.clone();
        expected.limits.drain_grace_s = 3;
        expected.placement.overflow.keep_shots = 5;
        (expected.silos, expected.spin) = (Silos::Count(2), SpinPolicy::Prod);
        expected.device = Device::Sim { latency: Latency::Fixed { us: 2.0 } };
        expected.courtesy = Some(Courtesy { wait_ms: 7, quiet_s: 8 });
        assert_eq!((found, named), (expected, None));
        // A value inside an option or a variant is whole, not merged.
        for part in ["courtesy: Some((wait_ms: 7))", "device: Sim()"] {
            assert!(read(&format!("({part})"), &base).is_err(), "{part}");
        }
    }

    #[test]
    fn the_base_is_named_once_anywhere_at_the_top_and_nowhere_else() {
        assert_eq!(read("(spin: Lab, base: \"prod\")", &lab()).unwrap().1.as_deref(), Some("prod"));
        assert!(read("(base: \"prod\", base: \"prod\")", &lab()).is_err());
        assert!(read("(limits: (base: \"prod\"))", &lab()).is_err());
        assert!(read("(base: prod)", &lab()).is_err());
    }
}
