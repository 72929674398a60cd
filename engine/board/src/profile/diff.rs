//! Differences between two profiles, and when each takes effect.
//!
//! Generic: both are serialized and walked together, so a new field cannot be forgotten; only
//! [`LIVE`] lists the fields that apply live. Values are shown as each profile's text has them.
//! Cold, pure, bounded by the profiles. Never applies anything.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::full::one_line;
use super::locate;
use super::schema::{Profile, Window};

/// When a changed field takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Applies {
    /// On a running engine.
    Live,
    /// When the engine is started with it.
    Restart,
}

/// One field that differs between two profiles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The dotted path; variants of enums are not part of it.
    pub field: String,
    /// The value before, as a profile has it, except that an optional value is bare.
    pub from: String,
    /// The value after, likewise.
    pub to: String,
    /// When it takes effect.
    pub applies: Applies,
}

/// The fields that apply live, each with all fields below it.
///
/// # Why these
///
/// They are read through one atomic word, at a frame's boundary, or by cold threads at each use.
/// All others size memory, build roles or start threads.
///
/// # Why windows keep their decoder
///
/// A shot of several windows is decoded by several workers, and its windows hand detectors on that
/// the next one needs: they belong to one decoder.
const LIVE: [&str; 12] = [
    "summary",
    "decoder",
    "streams",
    "spin",
    "spin_budgets",
    "limits",
    "input.rate",
    "courtesy",
    "alarms",
    "on_alarm",
    "on_hangup",
    "placement.overflow",
];

/// Every field in which `to` differs from `from`, ordered by path.
pub fn diff(from: &Profile, to: &Profile) -> Vec<Change> {
    // A profile has string keys and finite or infinite numbers only: both always serialize.
    let (Ok(one), Ok(other)) = (serde_json::to_value(from), serde_json::to_value(to)) else { return Vec::new() };
    let mut fields = Vec::new();
    walk("", &one, &other, &mut fields);
    if fields.is_empty() {
        return Vec::new();
    }
    let (from_text, to_text) = (one_line(from).unwrap_or_default(), one_line(to).unwrap_or_default());
    let (before, after) = (values(&from_text), values(&to_text));
    let has_windows = from.window != Window::None;
    let change = |(field, from, to): (String, &Value, &Value)| {
        let is_decoder = field == "decoder" || field.starts_with("streams");
        let applies = if has_windows && is_decoder { Applies::Restart } else { applies(&field) };
        Change { from: shown(&before, &field, from), to: shown(&after, &field, to), applies, field }
    };
    fields.into_iter().map(change).collect()
}

/// Each field and list element of a profile's text with its value.
fn values(text: &str) -> BTreeMap<String, &str> {
    locate::fields(text).into_iter().map(|field| (field.path, &text[field.bytes])).collect()
}

/// The text of a field, whose JSON is `json`.
fn shown(values: &BTreeMap<String, &str>, field: &str, json: &Value) -> String {
    let text = values.get(field).copied().unwrap_or("?");
    let inner = text.strip_prefix("Some(").and_then(|rest| rest.strip_suffix(')'));
    // A variant of that name keeps it, and in JSON, too.
    inner.filter(|_| json.get("Some").is_none()).unwrap_or(text).to_owned()
}

/// When a change of this field takes effect.
pub fn applies(field: &str) -> Applies {
    let below =
        |path: &str| field.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']));
    if LIVE.iter().any(|path| below(path)) { Applies::Live } else { Applies::Restart }
}

fn walk<'a>(path: &str, from: &'a Value, to: &'a Value, fields: &mut Vec<(String, &'a Value, &'a Value)>) {
    if from == to {
        return;
    }
    match (from, to) {
        (Value::Object(a), Value::Object(b)) if a.keys().eq(b.keys()) => {
            for ((name, from), to) in a.iter().zip(b.values()) {
                // Variants, which begin with a capital, are not part of a path.
                let is_variant = name.starts_with(|c: char| c.is_ascii_uppercase());
                walk(&if is_variant { path.to_owned() } else { join(path, name) }, from, to, fields);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (from, to)) in a.iter().zip(b).enumerate() {
                walk(&format!("{path}[{index}]"), from, to, fields);
            }
        }
        _ => fields.push((path.to_owned(), from, to)),
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]

    use serde_json::{Value, json};

    use super::{Applies, Change, LIVE, diff};
    use crate::profile::{
        Decoder, Decoders, Device, Input, Latency, OnHangup, Profile, Rate, Silos, Source, SpinPolicy, StreamDecoder,
        Window, WindowRounds,
    };

    fn embedded(name: &str) -> Profile {
        Profile::load(name, None).unwrap().0
    }

    fn exists(value: &Value, path: &str) -> bool {
        path.split('.').try_fold(value, |value, name| value.get(name)).is_some()
    }

    #[test]
    fn every_live_path_exists() {
        let value = serde_json::to_value(embedded("lab")).unwrap();
        for path in LIVE {
            assert!(exists(&value, path), "{path} is in the table but not in the schema");
        }
    }

    #[test]
    fn a_profile_does_not_differ_from_itself() {
        assert_eq!(diff(&embedded("drill"), &embedded("drill")), []);
    }

    #[test]
    fn a_change_names_its_field_values_and_when_it_applies() {
        // Texts that begin with a capital are no variants.
        let from = Profile { summary: "Of the Lab".to_owned(), ..embedded("lab") };
        let mut to = Profile { summary: "None".to_owned(), ..from.clone() };
        to.spin = SpinPolicy::Prod;
        to.limits.late_us = 7;
        to.input.rate = Rate::Hz(5.0);
        to.on_hangup = OnHangup::Drain;
        to.window = Window::Some(WindowRounds { commit_rounds: 5, buffer_rounds: 7 });
        to.max_cores = None;
        to.input.m2d = Some("map.m2d".to_owned());
        to.input.joint_every = Some(100);
        to.input.source = Source::Unix { path: "/run/shots".to_owned(), model: "surface_d5".to_owned() };
        to.decoders = Decoders::Count(3);
        to.device = Device::Sim { latency: Latency::LogNormal { median_us: 120.0, sigma: 0.5 } };
        let found = diff(&from, &to);
        let change = |field: &str, from: &str, to: &str, applies| Change {
            field: field.to_owned(),
            from: from.to_owned(),
            to: to.to_owned(),
            applies,
        };
        let expected = [
            change("decoders", "Auto", "Count(3)", Applies::Restart),
            change("device.latency.sigma", "0.4", "0.5", Applies::Restart),
            change("input.joint_every", "None", "100", Applies::Restart),
            change("input.m2d", "None", "\"map.m2d\"", Applies::Restart),
            change("input.rate", "Auto", "Hz(5.0)", Applies::Live),
            change(
                "input.source",
                "Sampler(model: \"surface_d5\", seed: 1)",
                "Unix(path: \"/run/shots\", model: \"surface_d5\")",
                Applies::Restart,
            ),
            change("limits.late_us", "2000", "7", Applies::Live),
            change("max_cores", "4", "None", Applies::Restart),
            change("on_hangup", "Detach", "Drain", Applies::Live),
            change("spin", "Lab", "Prod", Applies::Live),
            change("summary", "\"Of the Lab\"", "\"None\"", Applies::Live),
            change("window", "None", "Some((commit_rounds: 5, buffer_rounds: 7))", Applies::Restart),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn another_decoder_applies_live_to_whole_shots_and_at_a_restart_to_windows() {
        let from = embedded("lab");
        let mut to = Profile { decoder: Decoder::UnionFind, ..from.clone() };
        to.streams = vec![StreamDecoder { stream: 1, decoder: Decoder::Correlated }];
        let applied = |from: &Profile, to: &Profile| -> Vec<(String, Applies)> {
            diff(from, to).into_iter().map(|change| (change.field, change.applies)).collect()
        };
        let both = |applies| vec![("decoder".to_owned(), applies), ("streams".to_owned(), applies)];
        assert_eq!(applied(&from, &to), both(Applies::Live));
        let mut other = to.clone();
        other.streams[0].decoder = Decoder::Lookup;
        assert_eq!(applied(&to, &other), [("streams[0].decoder".to_owned(), Applies::Live)]);
        let window = Window::Some(WindowRounds { commit_rounds: 5, buffer_rounds: 5 });
        let windows = Profile { window, ..from };
        assert_eq!(applied(&windows, &Profile { window, ..to }), both(Applies::Restart));
    }

    #[test]
    fn another_variant_is_one_change_of_the_whole_value() {
        let from = embedded("lab");
        let mut to = from.clone();
        to.device = Device::Sim { latency: Latency::Uniform { min_us: 1.0, max_us: 2.0 } };
        let found = diff(&from, &to);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].field, "device.latency");
        assert_eq!(found[0].from, "LogNormal(median_us: 120.0, sigma: 0.4)");
        assert_eq!(found[0].to, "Uniform(min_us: 1.0, max_us: 2.0)");
    }

    #[test]
    fn a_value_inside_a_variant_is_shown_with_its_variant() {
        let from = Profile { input: Input { rate: Rate::Hz(500.0), ..embedded("lab").input }, ..embedded("lab") };
        let to = Profile { input: Input { rate: Rate::Hz(1000.0), ..from.input.clone() }, ..from.clone() };
        let found = diff(&from, &to);
        assert_eq!((found.len(), &*found[0].from, &*found[0].to), (1, "Hz(500.0)", "Hz(1000.0)"));
    }

    #[test]
    fn a_change_serializes_as_the_contract_says() {
        let from = embedded("lab");
        let to = Profile { silos: Silos::Count(2), ..from.clone() };
        let found = serde_json::to_value(diff(&from, &to)).unwrap();
        assert_eq!(found, json!([{"field": "silos", "from": "Auto", "to": "2", "applies": "restart"}]));
    }
}
