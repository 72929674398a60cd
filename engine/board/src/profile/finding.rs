//! What is wrong with a profile, said so that it can be put right.
//!
//! Owns [`ProfileError`] and [`Finding`], and turns RON's errors into found, expected and remedy. Cold; bounded by
//! one finding per RON error and one per range; never reads a file.

use std::fmt;

use ron::error::{Error as Ron, SpannedError};
use serde::Serialize;

use super::check::RangeError;
use super::locate::{self, Located, Place};
use crate::quote::cut;

/// One thing that is wrong with a profile, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The file, or `embedded:NAME`.
    pub file: String,
    /// Line counted from 1; 0 where the trouble is with the file as a whole.
    pub line: u32,
    /// Column counted from 1 in characters; 0 where the trouble is with the file as a whole.
    pub column: u32,
    /// What was found.
    pub found: String,
    /// What was expected.
    pub expected: String,
    /// What to do.
    pub remedy: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, found, expected, remedy } = self;
        f.write_str(file)?;
        if *line > 0 {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": found {found}, expected {expected}; {remedy}")
    }
}

/// Why a profile was not loaded; one sentence, with the rest of what is wrong counted behind it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// No file and no embedded profile has this name.
    #[error("{0}")]
    Unknown(Finding),
    /// The file cannot be read.
    #[error("{0}")]
    Unreadable(Finding),
    /// It names a program, and other users may change the file.
    #[error("{0}")]
    Untrusted(Finding),
    /// The text is not a profile.
    #[error("{0}")]
    Malformed(Finding),
    /// The text is a profile with values out of range, in the order of the schema.
    #[error("{}", out_of_range(.0))]
    OutOfRange(Vec<Finding>),
}

fn out_of_range(findings: &[Finding]) -> String {
    match findings {
        [] => String::new(),
        [only] => only.to_string(),
        [first, rest @ ..] => format!("{first} (and {} more out of range)", rest.len()),
    }
}

impl ProfileError {
    /// Everything that is wrong, at least one.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        match self {
            Self::Unknown(finding)
            | Self::Unreadable(finding)
            | Self::Untrusted(finding)
            | Self::Malformed(finding) => std::slice::from_ref(finding),
            Self::OutOfRange(findings) => findings,
        }
    }
}

/// A range error with the place of its field in `text`.
pub(super) fn from_range(file: &str, fields: &[Located], error: RangeError) -> Finding {
    let Place { line, column } = locate::place_of(fields, &error.field);
    let found = format!("{} in {}", cut(&error.found), error.field);
    Finding { file: file.to_owned(), line, column, found, expected: error.expected, remedy: error.remedy }
}

/// A RON error with what was found at its place in `text`.
pub(super) fn from_ron(file: &str, text: &str, error: &SpannedError) -> Finding {
    // RON's cursor stands before the blanks that it would have skipped.
    let place = locate::past_blank(text, within(text, error.span.start.line, error.span.start.col));
    let fields = locate::fields(text);
    // A type of ours reads its value before it refuses it.
    let place = match locate::path_at(&fields, place) {
        Some(path) if matches!(error.code, Ron::Message(_)) => locate::place_of(&fields, path),
        _ => place,
    };
    let token = token_at(text, place);
    let Said { found, expected, remedy } = say(&error.code, &token);
    let found = cut(&found).into_owned();
    let found = match locate::path_at(&fields, place) {
        Some(path) if !names_a_field(&error.code) => format!("{found} in {path}"),
        _ => found,
    };
    Finding { file: file.to_owned(), line: place.line, column: place.column, found, expected, remedy }
}

/// RON counts past the end of a text that stops early; a place outside the file helps nobody.
fn within(text: &str, line: usize, column: usize) -> Place {
    let line = line.clamp(1, text.lines().count().max(1));
    let width = text.lines().nth(line - 1).map_or(0, |line| line.chars().count());
    let column = column.clamp(1, width + 1);
    Place { line: u32::try_from(line).unwrap_or(u32::MAX), column: u32::try_from(column).unwrap_or(u32::MAX) }
}

/// The word, string or sign at a place, at most 40 characters of it.
fn token_at(text: &str, place: Place) -> String {
    let line = text.lines().nth(place.line as usize - 1).unwrap_or_default();
    let rest: Vec<char> = line.chars().skip(place.column as usize - 1).take(40).collect();
    let part = |c: &char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '+' | '#');
    let length = match rest.first() {
        None => return "the end of the line".to_owned(),
        Some('"') => rest.iter().skip(1).position(|&c| c == '"').map_or(rest.len(), |end| end + 2),
        Some(c) if part(c) => rest.iter().take_while(|c| part(c)).count(),
        Some(_) => 1,
    };
    format!("`{}`", rest[..length].iter().collect::<String>())
}

/// Errors whose text names the field already.
fn names_a_field(code: &Ron) -> bool {
    matches!(
        code,
        Ron::NoSuchStructField { .. } | Ron::MissingStructField { .. } | Ron::DuplicateStructField { .. } | Ron::Eof
    )
}

struct Said {
    found: String,
    expected: String,
    remedy: String,
}

fn say(code: &Ron, token: &str) -> Said {
    let said = |found: &str, expected: &str, remedy: &str| Said {
        found: found.to_owned(),
        expected: expected.to_owned(),
        remedy: remedy.to_owned(),
    };
    match code {
        Ron::NoSuchStructField { expected, found, .. } => {
            said(&format!("the unknown field `{found}`"), &one_of(expected), &meant(found, expected))
        }
        Ron::NoSuchEnumVariant { expected, found, .. } => {
            said(&format!("`{found}`"), &one_of(expected), &meant(found, expected))
        }
        Ron::MissingStructField { field, .. } => {
            let remedy = "add it; `pinwheel profiles show lab` prints a whole profile";
            said(&format!("no field `{field}`"), &format!("`{field}: ..` before this place"), remedy)
        }
        Ron::DuplicateStructField { field, .. } => {
            said(&format!("`{field}` a second time"), "each field once", "remove one of the two")
        }
        Ron::InvalidValueForType { expected, found } => said(found, expected, "change the value"),
        Ron::ExpectedDifferentLength { expected, found } => {
            said(&format!("{found} elements"), expected, "change the number of elements")
        }
        Ron::ExpectedInteger | Ron::IntegerOutOfBounds | Ron::InvalidIntegerDigit { .. } => {
            said(token, "a whole number, 0 or more", "write it without sign, point or quotes")
        }
        Ron::ExpectedFloat => said(token, "a number", "write it without quotes, as in 0.5"),
        Ron::ExpectedString => said(token, "a text in double quotes", "quote it"),
        Ron::ExpectedOption => said(token, "None or Some(..)", "write Some(4) for a value of 4"),
        Ron::ExpectedComma => said(token, "a comma or a closing bracket", "put a comma between two fields"),
        Ron::ExpectedMapColon => said(token, "a colon", "write fields as `name: value`"),
        Ron::Eof => said("the end of the text", "the rest of the profile", "close every bracket, quote and comment"),
        Ron::TrailingCharacters => said(token, "nothing after the closing bracket", "remove what follows"),
        other => {
            let expected = other.to_string();
            let expected = expected.strip_prefix("Expected ").unwrap_or(&expected);
            said(token, expected, "compare with `pinwheel profiles show lab`")
        }
    }
}

fn one_of(names: &[&str]) -> String {
    match names {
        [] => "no field at all".to_owned(),
        [only] => format!("`{only}`"),
        _ => format!("one of {}", names.join(", ")),
    }
}

fn meant(found: &str, expected: &[&str]) -> String {
    let nearest = expected.iter().map(|name| (distance(found, name), name)).min();
    match nearest {
        Some((distance, name)) if distance <= 3 && distance < name.len() => format!("did you mean `{name}`?"),
        _ => "remove it or correct its name".to_owned(),
    }
}

/// Levenshtein's distance, by rows; names are a few dozen bytes at most, longer ones are told apart by their length.
fn distance(a: &str, b: &str) -> usize {
    if a.len().abs_diff(b.len()) > 3 {
        return usize::MAX;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let replaced = diagonal + usize::from(!x.eq_ignore_ascii_case(&y));
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
