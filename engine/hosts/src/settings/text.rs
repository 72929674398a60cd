//! The text of a settings file, and what is wrong with one: place, mistake, remedy.
//!
//! Runs on the caller's thread. Bounded by the text. Never reads a file.

use super::HostSettings;
use ron::Error as Ron;

/// Largest number of edits that makes a word a likely meaning of another.
const EDITS_MAX: usize = 2;
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
    match known.iter().map(|name| (distance(found, name), name)).min() {
        Some((distance, name)) if distance <= EDITS_MAX => format!("did you mean {name:?}?"),
        _ => format!("known are {}", known.join(", ")),
    }
}

/// Levenshtein distance of two words, by rows; more than [`EDITS_MAX`] for words of different
/// lengths.
fn distance(a: &str, b: &str) -> usize {
    if a.len().abs_diff(b.len()) > EDITS_MAX {
        return usize::MAX;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
