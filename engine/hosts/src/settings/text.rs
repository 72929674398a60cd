//! The text of a settings file, and what is wrong with one: place, mistake, remedy.
//!
//! Runs on the caller's thread. Bounded by the text. Never reads a file.

use super::HostSettings;
use pinwheel_engine::profile::nearest_name;
use ron::Error as Ron;

/// Most characters of a word from the file that an error repeats.
const WORD_CHARS_MAX: usize = 40;

/// A mistake in a text, with its place.
#[derive(Debug)]
pub(super) struct TextError {
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) what: String,
}

/// Reads settings from RON.
pub(super) fn parse(text: &str) -> Result<HostSettings, TextError> {
    ron::from_str(text).map_err(|error| {
        let code = &error.code;
        // The span of an unknown field begins at the field and ends after it.
        let at = error.span.start;
        TextError { line: at.line, column: at.col, what: say(code) }
    })
}

fn say(code: &Ron) -> String {
    match code {
        Ron::NoSuchStructField { expected, found, .. } => {
            format!("unknown field {:?}; {}", cut(found), meant(found, expected))
        }
        Ron::MissingStructField { field, .. } => format!("field {field:?} is missing; add it"),
        Ron::DuplicateStructField { field, .. } => format!("field {field:?} is given twice; remove one of them"),
        Ron::InvalidValueForType { expected, found } => format!("found {found}, expected {expected}; change the value"),
        Ron::ExpectedString => "a text is expected here; put it in double quotes".to_owned(),
        Ron::ExpectedComma => "a comma or a closing bracket is expected here; put a comma between fields".to_owned(),
        Ron::ExpectedOption => "certificates are None or Some((authority: .., certificate: .., key: ..))".to_owned(),
        Ron::ExpectedNamedStructLike(_) | Ron::ExpectedStructLike | Ron::ExpectedDifferentStructName { .. } => {
            "fields are in round brackets: (name: \"lab-a\", ..)".to_owned()
        }
        Ron::Eof => "the text ends too early; close all brackets and quotes".to_owned(),
        Ron::TrailingCharacters => "there is text after the closing bracket; remove it".to_owned(),
        other => other.to_string(),
    }
}

fn cut(word: &str) -> String {
    word.chars().take(WORD_CHARS_MAX).collect()
}

fn meant(found: &str, known: &[&str]) -> String {
    match nearest_name(found, known) {
        Some(name) => format!("did you mean {name:?}?"),
        None => format!("known are {}", known.join(", ")),
    }
}
