//! Reads files of shots and of observables into memory.
//!
//! Bounded by the limits of the engine's `code` module: a file that is too long is refused before
//! it is read.

use super::refusal::Refusal;
use pinwheel_engine::code::{Format, Layout, Model, SET_WORDS_MAX, ShotSet};
use pinwheel_engine::files;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

/// Most bytes of text for one bit: " D1048575".
const TEXT_BYTES_PER_BIT: u64 = 9;
/// Longest text file.
const TEXT_BYTES_MAX: u64 = 1 << 28;
/// What to do with a file that does not fit.
const TOO_LONG: &str = "split it, or decode its shots one by one from standard input: pinwheel run --shots -";
/// Bytes read from a file of shots at a time.
pub const BUFFER_BYTES: usize = 1 << 16;

/// Reads the true observables of `shots` shots.
pub fn read_truth(path: &Path, model: &Model, shots: usize, format: Format) -> Result<Arc<ShotSet>, Refusal> {
    let about = format!("--observables {}", path.display());
    let truth = read_set(&about, path, format, Layout::observables(model.observables))?;
    truth.check_len(shots).map_err(|error| Refusal::Content { about, said: error.to_string() })?;
    Ok(Arc::new(truth))
}

/// Reads a file of shots.
pub fn read_set(about: &str, path: &Path, format: Format, layout: Layout) -> Result<ShotSet, Refusal> {
    let (shots_max, bits) = ((SET_WORDS_MAX / layout.words().max(1)) as u64, u64::from(layout.bits()));
    let bytes_max = match format {
        Format::B8 => shots_max * bits.div_ceil(8),
        // The longest line is "shot" followed by the names of all bits.
        Format::Text01 | Format::Dets => shots_max * (bits + 1) * TEXT_BYTES_PER_BIT,
    };
    let file = open_shots(about, path, "a readable file of shots", bytes_max)?;
    ShotSet::read(BufReader::with_capacity(BUFFER_BYTES, file), format, layout)
        .map_err(|error| Refusal::Content { about: about.to_owned(), said: error.to_string() })
}

/// Refuses a file without a shot.
pub fn require_shots(about: &str, shots: &ShotSet) -> Result<(), Refusal> {
    if shots.is_empty() {
        return Err(Refusal::unusable(about, "no shots", "at least one", "check that the file is complete"));
    }
    Ok(())
}

/// Reads a text file that belongs to the shots or the model: `expected` says what it is.
pub fn read_text(about: &str, path: &Path, expected: &str) -> Result<String, Refusal> {
    files::read_named_text(path, TEXT_BYTES_MAX)
        .map_err(|error| Refusal::unusable(about, error.to_string(), expected, "check the path and its permissions"))
}

/// Opens a file of shots; refuses a file longer than `bytes_max` before reading it.
pub fn open_shots(about: &str, path: &Path, expected: &str, bytes_max: u64) -> Result<File, Refusal> {
    let refused = |found: String, remedy: &str| Refusal::unusable(about, found, expected, remedy);
    let unreadable = |error: std::io::Error| refused(error.to_string(), "check the path and its permissions");
    let file = files::open_named(path).map_err(unreadable)?;
    if file.metadata().map_err(unreadable)?.len() > bytes_max {
        let found = format!("more than {bytes_max} bytes");
        return Err(refused(found, TOO_LONG));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Format, Layout, SET_WORDS_MAX, read_set};

    /// `collect`, `fit` and `send` read no shots from standard input.
    #[test]
    fn a_file_that_is_too_long_is_refused_with_a_command_that_takes_its_shots() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("long.b8");
        let file = std::fs::File::create(&path).unwrap();
        file.set_len(SET_WORDS_MAX as u64 + 1).unwrap();
        let said = read_set("shots", &path, Format::B8, Layout::detectors(2)).unwrap_err().to_string();
        assert!(said.contains("more than 268435456 bytes") && said.contains("pinwheel run --shots -"), "{said}");
    }
}
