//! An error model for an engine: a file, a bundled model by its name, or a text.
//!
//! Runs before anything is started. Bounded by [`DEM_BYTES_MAX`] and the limits of the engine's `code`
//! module.

use crate::unusable::Unusable;
use pinwheel_edge::slot::OBSERVABLE_WORDS_MAX;
use pinwheel_engine::code::{Model, NameError, bundled_named, bundled_names};
use pinwheel_engine::engine::DEM_BYTES_MAX;
use pinwheel_engine::files;
use std::path::Path;

/// Why a model cannot be used.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ModelError {
    #[error(transparent)]
    Unusable(#[from] Unusable),
    #[error("{about}: {said}")]
    Content { about: String, said: String },
}

/// What a name means that is both that of a file and that of a bundled model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precedence {
    /// The file.
    File,
    /// The bundled model.
    Bundled,
}

/// Reads the model that `path` names, and returns it with its name for people. `about` begins each error.
///
/// # Errors
/// [`ModelError`], one sentence.
pub fn read(about: &str, path: &Path, precedence: Precedence) -> Result<(Model, String), ModelError> {
    let content = |said: String| ModelError::Content { about: about.to_owned(), said };
    let is_file = precedence == Precedence::File && path.exists();
    if let Some(name) = path.to_str().filter(|_| !is_file) {
        match bundled_named(name) {
            Ok(model) => return Ok((model, name.to_owned())),
            Err(NameError::Unknown(_)) => {}
            Err(error) => return Err(content(error.to_string())),
        }
    }
    let text = files::read_named(path, DEM_BYTES_MAX).map_err(|error| {
        let bundled: Vec<&str> = bundled_names().collect();
        let names = format!("{}, or one of these with its rounds: {}@r50", bundled.join(", "), bundled[0]);
        let expected = format!("a readable detector error model, one of {names}");
        Unusable::new(about, error.to_string(), expected, "check the path and its permissions")
    })?;
    Ok((parse(about, &text)?, file_name(path)))
}

/// Reads a model from its text. `about` begins each error.
///
/// # Errors
/// [`ModelError`], one sentence.
pub fn parse(about: &str, text: &[u8]) -> Result<Model, ModelError> {
    let content = |said: String| ModelError::Content { about: about.to_owned(), said };
    let model = Model::parse(text).map_err(|error| content(error.to_string()))?;
    let widest = u32::try_from(OBSERVABLE_WORDS_MAX * 64).unwrap_or(u32::MAX);
    if model.detectors == 0 {
        let expected = "a model with at least one detector";
        return Err(Unusable::new(about, "no detectors", expected, "check that the file is complete").into());
    }
    if model.observables > widest {
        let found = format!("{} observables", model.observables);
        return Err(Unusable::new(about, found, format!("at most {widest}"), "split the model").into());
    }
    Ok(model)
}

/// The last part of a path, for people.
pub fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}
