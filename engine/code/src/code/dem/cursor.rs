//! The lexer of `parse`: reads names, numbers and targets from bytes and keeps their positions.

use super::{DETECTORS_MAX, DemError, OBSERVABLES_MAX};
use std::borrow::Cow;

/// Most characters of a number that an error quotes.
const QUOTED_MAX: usize = 64;

/// A position in the text: line and column, both from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) line: u32,
    pub(super) column: u32,
}

impl Position {
    /// An error at this position.
    pub(super) fn refuse(self, found: impl Into<String>, expected: impl Into<String>, remedy: &str) -> DemError {
        let (found, expected, remedy) = (found.into(), expected.into(), remedy.to_owned());
        DemError { line: self.line, column: self.column, found, expected, remedy }
    }
}

/// The kinds of target an instruction may name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    Detector(u32),
    Observable(u32),
    Separator,
    Number(u64),
}

/// A text and the next byte to read.
pub(super) struct Cursor<'a> {
    pub(super) text: &'a [u8],
    pub(super) next: usize,
    pub(super) at: Position,
}

impl<'a> Cursor<'a> {
    /// A cursor at the start of `text`.
    pub(super) const fn new(text: &'a [u8]) -> Self {
        Self { text, next: 0, at: Position { line: 1, column: 1 } }
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.get(self.next).copied()
    }

    pub(super) fn bump(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.next += 1;
        if byte == b'\n' {
            self.at = Position { line: self.at.line.saturating_add(1), column: 1 };
        } else {
            self.at.column = self.at.column.saturating_add(1);
        }
        Some(byte)
    }

    /// Describes the next byte for an error.
    pub(super) fn found(&self) -> String {
        match self.peek() {
            None => "the end of the file".to_owned(),
            Some(b'\n') => "the end of the line".to_owned(),
            Some(byte) => format!("'{}'", byte.escape_ascii()),
        }
    }

    pub(super) fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r')) {
            self.bump();
        }
    }

    /// Skips blanks, line ends and comments.
    pub(super) fn skip_between(&mut self) {
        loop {
            self.skip_blanks();
            match self.peek() {
                Some(b'\n') => _ = self.bump(),
                Some(b'#') => {
                    while !matches!(self.peek(), None | Some(b'\n')) {
                        self.bump();
                    }
                }
                _ => return,
            }
        }
    }

    /// Reads a tag, `[…]`: what is between the brackets, nothing if there are none.
    pub(super) fn tag(&mut self) -> Result<&'a [u8], DemError> {
        if self.peek() != Some(b'[') {
            return Ok(&[]);
        }
        let (at, start) = (self.at, self.next + 1);
        loop {
            match self.bump() {
                Some(b']') => return Ok(&self.text[start..self.next - 1]),
                None | Some(b'\n') => {
                    return Err(at.refuse("a tag that is never closed", "']' on the same line", "close the tag"));
                }
                Some(_) => {}
            }
        }
    }

    pub(super) fn optional_arguments(&mut self) -> Result<Vec<f64>, DemError> {
        if self.peek() == Some(b'(') { self.arguments() } else { Ok(Vec::new()) }
    }

    /// Numbers in parentheses, at least one.
    pub(super) fn arguments(&mut self) -> Result<Vec<f64>, DemError> {
        if self.peek() != Some(b'(') {
            let remedy = "give the argument in parentheses, without a space before them";
            return Err(self.at.refuse(self.found(), "'('", remedy));
        }
        self.bump();
        let mut arguments = Vec::new();
        loop {
            arguments.push(self.number()?);
            self.skip_blanks();
            match self.peek() {
                Some(b',') => _ = self.bump(),
                Some(b')') => {
                    self.bump();
                    return Ok(arguments);
                }
                _ => return Err(self.at.refuse(self.found(), "',' or ')'", "close the parentheses")),
            }
        }
    }

    pub(super) fn number(&mut self) -> Result<f64, DemError> {
        self.skip_blanks();
        let (at, start) = (self.at, self.next);
        while matches!(self.peek(), Some(b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-')) {
            self.bump();
        }
        let text = self.written_from(start);
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(number),
            _ if text.is_empty() => Err(at.refuse(self.found(), "a number", "write a decimal number")),
            _ => Err(at.refuse(format!("'{}'", quoted(text)), "a finite number", "write a decimal number")),
        }
    }

    /// The text from `start` up to the cursor.
    pub(super) fn written_from(&self, start: usize) -> &'a str {
        str::from_utf8(&self.text[start..self.next]).unwrap_or_default()
    }

    /// A whole number: `None` without digits, its text if it exceeds 64 bits.
    fn digits(&mut self) -> Option<Result<u64, &'a str>> {
        let start = self.next;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.bump();
        }
        let text = self.written_from(start);
        (!text.is_empty()).then(|| text.parse().map_err(|_| text))
    }

    /// A whole number of at most 64 bits; `None` without digits.
    pub(super) fn count(&mut self, at: Position) -> Result<Option<u64>, DemError> {
        self.digits().transpose().map_err(|text| {
            let found = format!("the number {}", quoted(text));
            at.refuse(found, format!("at most {}", u64::MAX), "check the number, or use a smaller model")
        })
    }

    /// The next target on the line; `None` at the line's end.
    pub(super) fn target(&mut self) -> Result<Option<(Position, Target)>, DemError> {
        self.skip_blanks();
        let at = self.at;
        let Some(byte) = self.peek() else { return Ok(None) };
        if matches!(byte, b'\n' | b'#') {
            return Ok(None);
        }
        if byte == b'}' {
            return Err(at.refuse("'}' behind an instruction", "'}' on a line of its own", "begin a line before it"));
        }
        let expected = "a target such as D5, L0, ^ or a number";
        if !matches!(self.text.get(self.next.wrapping_sub(1)), Some(b' ' | b'\t' | b'\r')) {
            return Err(at.refuse(self.found(), "a space between targets", "separate the targets"));
        }
        let target = match byte {
            b'^' => {
                self.bump();
                Target::Separator
            }
            b'D' | b'd' => Target::Detector(self.index(at, "detector", DETECTORS_MAX)?),
            b'L' | b'l' => Target::Observable(self.index(at, "observable", OBSERVABLES_MAX)?),
            _ => {
                let number = self.count(at)?;
                let number = number.ok_or_else(|| at.refuse(self.found(), expected, "correct or remove the target"))?;
                Target::Number(number)
            }
        };
        Ok(Some((at, target)))
    }

    /// The index after a letter, below `most`. `kind` names the target in errors.
    fn index(&mut self, at: Position, kind: &str, most: u32) -> Result<u32, DemError> {
        let start = self.next;
        self.bump();
        let Some(index) = self.digits() else {
            return Err(self.at.refuse(self.found(), "an index", "write D0, L0, …"));
        };
        let index = index.ok().and_then(|index| u32::try_from(index).ok()).filter(|index| *index < most);
        index.ok_or_else(|| {
            let found = format!("{kind} {}", quoted(self.written_from(start)));
            at.refuse(found, format!("at most {most} {kind}s"), "check the index, or use a smaller model")
        })
    }
}

/// A number's text, cut after [`QUOTED_MAX`] characters.
pub(super) fn quoted(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(QUOTED_MAX) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}… ({} characters)", &text[..end], text.len())),
    }
}
