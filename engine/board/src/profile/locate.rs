//! Positions of the fields in a RON text.
//!
//! A cold, one-pass scanner that yields `(dotted path, line, column)` for every field and list
//! element. RON itself reports positions of malformed values only, not of well-formed values out of
//! range. Bounded by [`DEPTH_MAX`] and by the text; lenient, because it also scans texts that RON
//! refuses. Never checks a value.
//!
//! Paths name fields only: the variants of enums do not show, so `device: Sim(latency: Fixed(us: 1.0))` yields
//! `device`, `device.latency` and `device.latency.us`, the paths that checks and differences use.

use std::collections::BTreeMap;
use std::ops::Range;

/// Deepest nesting followed; RON's own limit is the same.
const DEPTH_MAX: usize = 128;

/// A position in a text, counted from 1, the column in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TextPosition {
    pub(super) line: u32,
    pub(super) column: u32,
}

/// A field's path and where its value stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Located {
    pub(super) path: String,
    /// Where the value begins.
    pub(super) position: TextPosition,
    /// The value's bytes in the text.
    pub(super) bytes: Range<usize>,
}

/// Every field and list element of `text`, in the order of the text.
pub(super) fn fields(text: &str) -> Vec<Located> {
    let mut scan = Scan { rest: text, length: text.len(), position: START, found: Vec::new() };
    scan.value("", 0);
    scan.found
}

/// The path of the field whose name begins at `position`.
pub(super) fn named_at(fields: &[Located], position: TextPosition) -> Option<&str> {
    fields.iter().find(|located| located.position > position).map(|located| located.path.as_str())
}

/// Positions by path; of a path that the text has twice, the first.
pub(super) type Positions<'a> = BTreeMap<&'a str, TextPosition>;

/// The positions of `fields`.
pub(super) fn positions(fields: &[Located]) -> Positions<'_> {
    fields.iter().rev().map(|located| (located.path.as_str(), located.position)).collect()
}

/// The position of `path`, or of its nearest parent that the text has, or the text's beginning.
pub(super) fn position_of(positions: &Positions<'_>, path: &str) -> TextPosition {
    let mut path = path;
    loop {
        if let Some(position) = positions.get(path) {
            return *position;
        }
        match path.rfind(['.', '[']) {
            Some(cut) => path = &path[..cut],
            None => return START,
        }
    }
}

/// The path whose value begins last at or before `position`.
pub(super) fn path_at(fields: &[Located], position: TextPosition) -> Option<&str> {
    fields.iter().rev().find(|located| located.position <= position).map(|located| located.path.as_str())
}

/// The first position at or after `position` that is neither white space nor comment; `position`
/// itself if nothing follows.
pub(super) fn past_blank(text: &str, position: TextPosition) -> TextPosition {
    let mut scan = Scan { rest: text, length: text.len(), position: START, found: Vec::new() };
    while scan.position < position && !scan.rest.is_empty() {
        scan.bump();
    }
    scan.blank();
    if scan.rest.is_empty() { position } else { scan.position }
}

const START: TextPosition = TextPosition { line: 1, column: 1 };

struct Scan<'a> {
    rest: &'a str,
    /// Bytes of the whole text.
    length: usize,
    position: TextPosition,
    found: Vec<Located>,
}

impl<'a> Scan<'a> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn bump(&mut self) {
        let mut chars = self.rest.chars();
        match chars.next() {
            Some('\n') => self.position = TextPosition { line: self.position.line + 1, column: 1 },
            Some(_) => self.position.column += 1,
            None => {}
        }
        self.rest = chars.as_str();
    }

    fn bump_while(&mut self, keep: impl Fn(char) -> bool) {
        while self.peek().is_some_and(&keep) {
            self.bump();
        }
    }

    /// Skips up to and including `end`, or to the end of the text.
    fn bump_past(&mut self, end: &str) {
        while !self.rest.is_empty() && !self.rest.starts_with(end) {
            self.bump();
        }
        for _ in end.chars() {
            self.bump();
        }
    }

    /// Skips white space, comments and `#![enable(..)]`.
    fn blank(&mut self) {
        loop {
            if self.peek().is_some_and(char::is_whitespace) {
                self.bump();
            } else if self.rest.starts_with("//") {
                self.bump_past("\n");
            } else if self.rest.starts_with("/*") {
                self.block_comment();
            } else if self.rest.starts_with("#!") {
                self.bump_past("]");
            } else {
                return;
            }
        }
    }

    /// RON's block comments nest.
    fn block_comment(&mut self) {
        let mut depth = 0_usize;
        while !self.rest.is_empty() {
            if self.rest.starts_with("/*") {
                depth += 1;
                self.bump();
            } else if self.rest.starts_with("*/") {
                depth -= 1;
                self.bump();
            }
            self.bump();
            if depth == 0 {
                return;
            }
        }
    }

    fn identifier(&mut self) -> Option<&'a str> {
        if self.rest.starts_with("r#") {
            self.bump();
            self.bump();
        }
        let text = self.rest;
        if self.peek().is_some_and(|c| c.is_alphabetic() || c == '_') {
            self.bump_while(|c| c.is_alphanumeric() || c == '_');
        }
        let length = text.len() - self.rest.len();
        (length > 0).then(|| &text[..length])
    }

    fn value(&mut self, path: &str, depth: usize) {
        self.blank();
        if self.string() || depth > DEPTH_MAX {
            return;
        }
        if self.identifier().is_some() {
            let after = (self.rest, self.position);
            self.blank();
            if !matches!(self.peek(), Some('(' | '[' | '{')) {
                (self.rest, self.position) = after;
            }
        }
        match self.peek() {
            Some('(') => self.group(path, depth),
            Some('[' | '{') => self.list(path, depth),
            _ => self.bump_while(|c| !matches!(c, ',' | ')' | ']' | '}' | '(' | '[' | '{') && !c.is_whitespace()),
        }
    }

    /// Skips a string, raw or not; false if there is none here.
    fn string(&mut self) -> bool {
        if self.rest.starts_with('"') {
            self.bump();
            while self.peek().is_some_and(|c| c != '"') {
                if self.rest.starts_with('\\') {
                    self.bump();
                }
                self.bump();
            }
            self.bump();
            return true;
        }
        let Some(after) = self.rest.strip_prefix('r') else { return false };
        let hashes = after.len() - after.trim_start_matches('#').len();
        if !after[hashes..].starts_with('"') {
            return false;
        }
        for _ in 0..hashes + 2 {
            self.bump();
        }
        self.bump_past(&format!("\"{}", "#".repeat(hashes)));
        true
    }

    /// `( name: value, value, .. )`: an unnamed value keeps the path of what it is in.
    fn group(&mut self, path: &str, depth: usize) {
        self.bump();
        loop {
            self.blank();
            match self.peek() {
                None => return,
                Some(')' | ']' | '}') => return self.bump(),
                Some(',') => self.bump(),
                Some(_) => {
                    let before = (self.rest, self.position);
                    let name = self.identifier();
                    self.blank();
                    match name {
                        Some(name) if self.rest.starts_with(':') => {
                            self.bump();
                            let child = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
                            self.entry(&child, depth);
                        }
                        _ => {
                            (self.rest, self.position) = before;
                            self.progress(|scan| scan.value(path, depth + 1));
                        }
                    }
                }
            }
        }
    }

    /// `[ value, .. ]`, each with its index.
    fn list(&mut self, path: &str, depth: usize) {
        self.bump();
        let mut index = 0_usize;
        loop {
            self.blank();
            match self.peek() {
                None => return,
                Some(')' | ']' | '}') => return self.bump(),
                Some(',') => {
                    self.bump();
                    index += 1;
                }
                Some(_) => {
                    let child = format!("{path}[{index}]");
                    self.progress(|scan| scan.entry(&child, depth));
                }
            }
        }
    }

    fn entry(&mut self, path: &str, depth: usize) {
        self.blank();
        let (index, start) = (self.found.len(), self.length - self.rest.len());
        self.found.push(Located { path: path.to_owned(), position: self.position, bytes: start..start });
        self.value(path, depth + 1);
        self.found[index].bytes.end = self.length - self.rest.len();
    }

    /// Skips a character that no rule here consumes, as a text that RON refuses may have.
    fn progress(&mut self, step: impl FnOnce(&mut Self)) {
        let length = self.rest.len();
        step(self);
        if self.rest.len() == length {
            self.bump();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{TextPosition, fields, path_at, position_of, positions};

    const TEXT: &str = "#![enable(implicit_some)]\n// ( a: 1 )\n(\n  a: 1, /* b: ( /* */ */ b: Sim(c: \"x: (\\\"\", d: \
                        Fixed(us: 2.0)),\n  e: Some([(n: r#\"\"q: 1\"#, m: [A, B])]),\n)";

    fn position(line: u32, column: u32) -> TextPosition {
        TextPosition { line, column }
    }

    #[test]
    fn paths_name_fields_and_indices_but_no_variants() {
        let paths: Vec<String> = fields(TEXT).into_iter().map(|located| located.path).collect();
        let expected =
            ["a", "b", "b.c", "b.d", "b.d.us", "e", "e[0]", "e[0].n", "e[0].m", "e[0].m[0]", "e[0].m[1]"].to_vec();
        assert_eq!(paths, expected);
    }

    #[test]
    fn places_are_those_of_the_values() {
        let fields = fields(TEXT);
        let positions = positions(&fields);
        assert_eq!(position_of(&positions, "a"), position(4, 6));
        assert_eq!(position_of(&positions, "e"), position(5, 6));
        assert_eq!(position_of(&positions, "e[0].zz"), position_of(&positions, "e[0]"));
        assert_eq!(position_of(&positions, "none"), position(1, 1));
    }

    #[test]
    fn the_field_at_a_place_is_the_last_one_begun() {
        let fields = fields(TEXT);
        assert_eq!(path_at(&fields, position(4, 7)), Some("a"));
        assert_eq!(path_at(&fields, position(1, 1)), None);
        assert_eq!(path_at(&fields, position(99, 1)), Some("e[0].m[1]"));
    }
}
