//! A task: a model, its decoder, where its shots come from, and what identifies them.
//!
//! Immutable. Prepared for decoding by [`Task::prepare`], which costs what the decoder's preparation costs.

use crate::rows::json_text;
use pinwheel_engine::code::{Model, ShotSet};
use pinwheel_engine::decode::{MatcherModel, ReadyError};
use pinwheel_engine::profile::{Decoder, Predecoder, Window};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::path::Path;
use std::sync::Arc;

/// Shots of files, with their true observables.
#[derive(Debug)]
pub struct FileShots {
    /// Detection events.
    pub shots: ShotSet,
    /// True observables, as many.
    pub observables: ShotSet,
}

/// A task.
#[derive(Clone, Debug)]
pub struct Task {
    /// The model.
    pub model: Arc<Model>,
    /// The decoder.
    pub decoder: Decoder,
    /// Shots of files; `None`: they are drawn from the model.
    pub shots: Option<Arc<FileShots>>,
    /// What people say of it, as JSON.
    pub metadata: String,
    /// What identifies it: equal for equal models, decoders, shots and metadata.
    pub strong_id: String,
}

impl Task {
    /// A task whose shots are drawn from `model`, or are those of files.
    pub fn new(model: Arc<Model>, decoder: Decoder, shots: Option<Arc<FileShots>>, metadata: &Value) -> Task {
        let metadata = json_text(metadata);
        let of_files = shots.as_ref().map(|files| [digest(&files.shots), digest(&files.observables)]);
        let mut identity = json!({
            "decoder": decoder.kind().name(),
            "detector_error_model": model.to_string(),
            "json_metadata": metadata,
            "shots": of_files,
        });
        // Another build of a plugin is another decoder. A file that cannot be read is refused when it is prepared.
        if let Decoder::Plugin { path, config, .. } = &decoder {
            identity["plugin"] = json!([hex(&Sha256::digest(std::fs::read(path).unwrap_or_default())), config]);
        }
        let strong_id = hex(&Sha256::digest(json_text(&identity)));
        Task { model, decoder, shots, metadata, strong_id }
    }

    /// Name of the decoder, in rows and sentences; a plugin has that of its file.
    pub fn decoder_name(&self) -> String {
        match &self.decoder {
            Decoder::Plugin { path, .. } => {
                let file = Path::new(path).file_name().unwrap_or_default();
                format!("{}:{}", self.decoder.kind().name(), file.to_string_lossy())
            }
            decoder => decoder.kind().name().to_owned(),
        }
    }

    /// Prepares the model for the decoder.
    ///
    /// # Errors
    /// If the decoder cannot decode it.
    pub fn prepare(&self) -> Result<MatcherModel, ReadyError> {
        MatcherModel::of(&self.model, self.decoder.clone(), Predecoder::None, Window::None)
    }

    /// Shots of one block: some ten to a hundred milliseconds of one thread.
    pub fn block_shots(&self) -> u64 {
        (1 << 22) / u64::from(self.model.detectors.clamp(1 << 6, 1 << 14))
    }

    /// The seed of the block that begins with shot `from`.
    pub fn block_seed(&self, seed: u64, shard: u32, from: u64) -> u64 {
        let mut hash = Sha256::new();
        hash.update(&self.strong_id);
        hash.update(seed.to_le_bytes());
        hash.update(shard.to_le_bytes());
        hash.update(from.to_le_bytes());
        hash.finalize().iter().take(8).fold(0, |word, byte| word << 8 | u64::from(*byte))
    }
}

fn digest(set: &ShotSet) -> String {
    let mut hash = Sha256::new();
    set.iter().flatten().for_each(|word| hash.update(word.to_le_bytes()));
    hex(&hash.finalize())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What the name of a file says: `d=5,p=0.001,r=5.dem` is `{"d":5,"p":0.001,"r":5}`; a name without
/// `=` is `{"dem":name}`.
pub fn metadata_of_name(name: &str) -> Value {
    let stem = name.strip_suffix(".dem").unwrap_or(name);
    let pairs: Option<Vec<(&str, &str)>> = stem.split(',').map(|pair| pair.split_once('=')).collect();
    let value = |text: &str| match (text.parse::<i64>(), text.parse::<f64>()) {
        (Ok(whole), _) => json!(whole),
        (_, Ok(float)) if float.is_finite() => json!(float),
        _ => json!(text),
    };
    match pairs {
        Some(pairs) => Value::Object(pairs.into_iter().map(|(key, text)| (key.to_owned(), value(text))).collect()),
        None => json!({ "dem": name }),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Task, metadata_of_name};
    use pinwheel_engine::code::bundled_named;
    use pinwheel_engine::profile::Decoder;
    use serde_json::json;
    use std::sync::Arc;

    #[test]
    fn a_name_says_what_it_says() {
        assert_eq!(metadata_of_name("d=5,p=0.001,b=Z.dem"), json!({"d": 5, "p": 0.001, "b": "Z"}));
        assert_eq!(metadata_of_name("surface_d5@r50"), json!({"dem": "surface_d5@r50"}));
        assert_eq!(metadata_of_name("d=5,noise.dem"), json!({"dem": "d=5,noise.dem"}));
    }

    #[test]
    fn tasks_that_differ_have_other_identities_and_blocks_other_seeds() {
        let model = |name| Arc::new(bundled_named(name).unwrap());
        let task = |name, decoder, about: &str| Task::new(model(name), decoder, None, &json!({ "about": about }));
        let one = task("surface_d3", Decoder::Matching, "a");
        assert_eq!(one.strong_id, task("surface_d3", Decoder::Matching, "a").strong_id);
        for other in [
            task("surface_d5", Decoder::Matching, "a"),
            task("surface_d3", Decoder::UnionFind, "a"),
            task("surface_d3", Decoder::Matching, "b"),
        ] {
            assert_ne!(one.strong_id, other.strong_id);
        }
        let seeds =
            [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)].map(|(seed, shard, from)| one.block_seed(seed, shard, from));
        assert!((0..4).all(|at| !seeds[..at].contains(&seeds[at])), "{seeds:?}");
        assert!(one.prepare().is_ok());
    }
}
