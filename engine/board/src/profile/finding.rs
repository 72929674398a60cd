//! Errors in a profile, each with its position and remedy.
//!
//! Owns [`ProfileError`] and [`Finding`], turns RON's errors into found, expected and remedy, and
//! lists the fields of earlier versions. Cold; bounded by one finding per RON error and one per
//! range; never reads a file.

use std::fmt;

use ron::error::{Error as Ron, SpannedError};
use serde::Serialize;

use super::check::RangeError;
use super::layer::{BASE, BASE_KEY};
use super::locate::{self, Positions, TextPosition};
use crate::quote::cut;

/// One error in a profile, and its position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The file, or `embedded:NAME`.
    pub file: String,
    /// Line counted from 1; 0 for an error of the file as a whole.
    pub line: u32,
    /// Column counted from 1 in characters; 0 for an error of the file as a whole.
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
        // A suggestion replaces the list of expected values.
        match is_suggestion(remedy) {
            true => write!(f, ": {found}; {remedy}"),
            false => write!(f, ": found {found}, expected {expected}; {remedy}"),
        }
    }
}

/// Fields of earlier versions, each with the rule that replaced it.
const REMOVED: [(&str, &str); 8] = [
    ("spin_budgets.shared_spin_us", "Shared spins for 10 µs in every profile"),
    ("graph.slab_tasks", "overflow: Benchmark admits 65536 tasks, or window_tasks if that is more"),
    ("graph.batch_deadline_us", "a completion waits for others of its batch for at most 2 µs in every profile"),
    ("graph.map_entries", "the map has 16384 entries in every profile"),
    ("graph.ready_tasks", "a queue holds 16384 tasks, or window_tasks if that is more"),
    ("placement.high_utilization", "the limit is 0.80 in every profile"),
    ("placement.critical_utilization", "the limit is 0.95 in every profile"),
    ("placement.preferred_max_utilization", "the limit is 0.7 in every profile"),
];

/// Why a profile was not loaded; one sentence, with the number of further errors.
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
    /// All errors, at least one.
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

/// A range error with the position of its field in `text`.
pub(super) fn from_range(file: &str, positions: &Positions<'_>, error: RangeError) -> Finding {
    let TextPosition { line, column } = locate::position_of(positions, &error.field);
    let found = format!("{} in {}", cut(&error.found), error.field);
    Finding { file: file.to_owned(), line, column, found, expected: error.expected, remedy: error.remedy }
}

/// A RON error with what was found at its position in `text`.
pub(super) fn from_ron(file: &str, text: &str, error: &SpannedError) -> Finding {
    // RON's cursor stands before blanks that it would have skipped.
    let position = locate::past_blank(text, within(text, error.span.start.line, error.span.start.col));
    let fields = locate::fields(text);
    // Deserializers of this crate read a value before they refuse it.
    let position = match locate::path_at(&fields, position) {
        Some(path) if matches!(error.code, Ron::Message(_)) => locate::position_of(&locate::positions(&fields), path),
        _ => position,
    };
    let position = match error.code {
        // RON has read the sign already.
        Ron::IntegerOutOfBounds | Ron::InvalidIntegerDigit { .. } => before_sign(text, position),
        _ => position,
    };
    let token = token_at(text, position);
    let removed = match error.code {
        Ron::NoSuchStructField { .. } => locate::named_at(&fields, position).and_then(removed),
        _ => None,
    };
    let Said { found, expected, remedy } = removed.unwrap_or_else(|| say(&error.code, &token));
    let found = cut(&found).into_owned();
    let found = match locate::path_at(&fields, position) {
        Some(path) if !names_a_field(&error.code) => format!("{found} in {path}"),
        _ => found,
    };
    Finding { file: file.to_owned(), line: position.line, column: position.column, found, expected, remedy }
}

fn removed(path: &str) -> Option<Said> {
    let (_, instead) = REMOVED.iter().find(|(removed, _)| *removed == path)?;
    Some(Said {
        found: format!("removed field \"{path}\""),
        expected: format!("none: {instead}"),
        remedy: "remove it".to_owned(),
    })
}

/// A `base` that names no embedded profile.
pub(super) fn unknown_base(file: &str, text: &str, name: &str, known: &[&str]) -> Finding {
    let TextPosition { line, column } = locate::position_of(&locate::positions(&locate::fields(text)), BASE_KEY);
    Finding {
        file: file.to_owned(),
        line,
        column,
        found: format!("unknown base {:?}", cut(name)),
        expected: one_of(known),
        remedy: meant(name, known),
    }
}

/// Clamps a position into the text: RON counts past the end of an incomplete text.
fn within(text: &str, line: usize, column: usize) -> TextPosition {
    let line = line.clamp(1, text.lines().count().max(1));
    let width = text.lines().nth(line - 1).map_or(0, |line| line.chars().count());
    let column = column.clamp(1, width + 1);
    TextPosition { line: u32::try_from(line).unwrap_or(u32::MAX), column: u32::try_from(column).unwrap_or(u32::MAX) }
}

/// The position of the sign before `position`; `position` itself if there is none.
fn before_sign(text: &str, position: TextPosition) -> TextPosition {
    let line = text.lines().nth(position.line as usize - 1).unwrap_or_default();
    let before = position.column.checked_sub(2).and_then(|at| line.chars().nth(at as usize));
    let signs = u32::from(matches!(before, Some('-' | '+')));
    TextPosition { column: position.column - signs, ..position }
}

/// The word, string or sign at a position, at most 40 characters of it.
fn token_at(text: &str, position: TextPosition) -> String {
    let line = text.lines().nth(position.line as usize - 1).unwrap_or_default();
    let rest: Vec<char> = line.chars().skip(position.column as usize - 1).take(40).collect();
    let part = |c: &char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '+' | '#');
    let length = match rest.first() {
        None => return "the end of the line".to_owned(),
        Some('"') => rest.iter().skip(1).position(|&c| c == '"').map_or(rest.len(), |end| end + 2),
        Some(c) if part(c) => rest.iter().take_while(|c| part(c)).count(),
        Some(_) => 1,
    };
    format!("`{}`", rest[..length].iter().collect::<String>())
}

/// Errors whose text already names the field.
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
        Ron::NoSuchStructField { expected, found, outer } => {
            let base = outer.as_deref().is_some_and(|outer| outer == "Profile").then_some(BASE_KEY);
            let unknown = format!("unknown field {:?}", cut(found));
            if let Some((record, nested)) = base.and_then(|_| record_of(found)) {
                return said(&unknown, &format!("it in {record}"), &format!("write {nested}"));
            }
            let known: Vec<&str> = base.into_iter().chain(expected.iter().copied()).collect();
            said(&unknown, &one_of(&known), &meant(found, &known))
        }
        Ron::NoSuchEnumVariant { expected, found, .. } => {
            said(&format!("unknown value {:?}", cut(found)), &one_of(expected), &meant(found, expected))
        }
        Ron::MissingStructField { field, .. } => {
            let remedy = "add it; `pinwheel profiles show --full lab` prints all fields";
            said(&format!("no field `{field}`"), &format!("`{field}: ..` before this position"), remedy)
        }
        Ron::DuplicateStructField { field, .. } => {
            said(&format!("`{field}` twice"), "each field at most once", "remove one of the two")
        }
        Ron::InvalidValueForType { expected, found } => said(found, expected, "change the value"),
        Ron::ExpectedDifferentLength { expected, found } => {
            said(&format!("{found} elements"), expected, "change the number of elements")
        }
        Ron::IntegerOutOfBounds if !token.starts_with("`-") => said(token, "a smaller number", "lower it"),
        Ron::ExpectedInteger | Ron::IntegerOutOfBounds | Ron::InvalidIntegerDigit { .. } => {
            said(token, "a whole number, 0 or more", "write it without sign, point or quotes")
        }
        Ron::ExpectedFloat => said(token, "a number", "write it without quotes, as in 0.5"),
        Ron::ExpectedString => said(token, "a text in double quotes", "quote it"),
        Ron::ExpectedBoolean => said(token, "true or false", "write one of these"),
        Ron::ExpectedIdentifier | Ron::InvalidIdentifier(_) | Ron::SuggestRawIdentifier(_) => {
            let remedy = "`pinwheel profiles show --full base` shows each field with its words";
            said(token, "one of the words that it takes, without quotes", remedy)
        }
        Ron::ExpectedNamedStructLike(_) | Ron::ExpectedStructLike | Ron::ExpectedDifferentStructName { .. } => {
            said(token, "fields in round brackets", "write them as (name: value, other: value)")
        }
        Ron::ExpectedOption => said(token, "None or Some(..)", "write Some(4) for a value of 4"),
        Ron::ExpectedComma => said(token, "a comma or a closing bracket", "put a comma between two fields"),
        Ron::ExpectedMapColon => said(token, "a colon", "write fields as `name: value`"),
        Ron::Eof => said("the end of the text", "the rest of the profile", "close all brackets, quotes and comments"),
        Ron::TrailingCharacters => said(token, "nothing after the closing bracket", "remove what follows"),
        other => {
            let expected = other.to_string();
            let expected = expected.strip_prefix("Expected ").unwrap_or(&expected);
            said(token, expected, "compare with `pinwheel profiles show --full lab`")
        }
    }
}

/// The only record that has the field `name`, and how a profile writes that field; `None` if there
/// are several.
fn record_of(name: &str) -> Option<(String, String)> {
    let fields = locate::fields(BASE);
    let is_record = |path: &str| {
        let mut named = fields.iter().filter(|field| field.path == path);
        named.any(|field| BASE[field.bytes.clone()].starts_with('('))
    };
    let paths = fields.iter().filter_map(|field| field.path.rsplit_once('.'));
    let mut records = paths.filter(|(record, last)| *last == name && is_record(record)).map(|(record, _)| record);
    let record = records.next().filter(|_| records.next().is_none())?;
    let nested = record.rsplit('.').fold(format!("{name}: .."), |inner, part| format!("{part}: ({inner})"));
    Some((record.to_owned(), nested))
}

fn one_of(names: &[&str]) -> String {
    match names {
        [] => "no field".to_owned(),
        [only] => format!("`{only}`"),
        _ => format!("one of {}", names.join(", ")),
    }
}

fn meant(found: &str, expected: &[&str]) -> String {
    match nearest_name(found, expected) {
        Some(name) => format!("did you mean {name:?}?"),
        None => "remove it or correct its name".to_owned(),
    }
}

/// The name among `expected` that `found` most likely means: at most three letters differ.
pub fn nearest_name<'a>(found: &str, expected: &[&'a str]) -> Option<&'a str> {
    let nearest = expected.iter().map(|name| (distance(found, name), *name)).min();
    nearest.filter(|(distance, name)| *distance <= 3 && *distance < name.len()).map(|(_, name)| name)
}

fn is_suggestion(remedy: &str) -> bool {
    remedy.starts_with("did you mean")
}

/// Levenshtein distance, by rows. Names are a few dozen bytes at most; a length difference above 3
/// excludes a match.
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
