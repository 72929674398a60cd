//! Loads the map of soft bytes, and the soft bytes of a file of shots.
//!
//! Runs before anything is started, as `input` does. Bounds: the limits of [`super::shots`].

use super::refusal::Refusal;
use super::shots::{read_set, read_text};
use pinwheel_engine::code::{Format, Layout, Model, ShotSet, SoftMap};
use std::path::Path;
use std::sync::Arc;

/// Reads a map, and gives it to the model.
pub fn with_map(model: Model, path: &Path) -> Result<Model, Refusal> {
    let about = format!("--soft-map {}", path.display());
    let text = read_text(&about, path, "a readable map of soft bytes")?;
    let content = |said: String| Refusal::Content { about: about.clone(), said };
    let map = SoftMap::parse(&text).map_err(|error| content(error.to_string()))?;
    model.with_soft(Arc::new(map)).map_err(|error| content(error.to_string()))
}

/// Shots of a model with a map, each with its soft bytes: those of the file, or none.
pub fn with_bytes(shots: &ShotSet, model: &Model, path: Option<&Path>, format: Format) -> Result<ShotSet, Refusal> {
    let layout = Layout::detectors(8 * model.soft.as_ref().map_or(0, |map| map.bytes()));
    let (about, soft) = match path {
        Some(path) => {
            let about = format!("--soft {}", path.display());
            let soft = read_set(&about, path, format, layout)?;
            (about, soft)
        }
        None => ("--shots".to_owned(), ShotSet::zeros(layout, shots.len())),
    };
    shots.with_soft(&soft).map_err(|error| Refusal::Content { about, said: error.to_string() })
}
