//! Bytes to names, numbers and targets, positions kept: the words that `parse` builds instructions from.

use super::DemError;

/// Where something stands in the text, both from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct At {
    pub(super) line: u32,
    pub(super) column: u32,
}

impl At {
    /// The refusal of what stands here.
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

/// A text and a place in it.
pub(super) struct Cursor<'a> {
    pub(super) text: &'a [u8],
    pub(super) next: usize,
    pub(super) at: At,
}

impl<'a> Cursor<'a> {
    /// A cursor at the start of `text`.
    pub(super) const fn new(text: &'a [u8]) -> Self {
        Self { text, next: 0, at: At { line: 1, column: 1 } }
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.get(self.next).copied()
    }

    pub(super) fn bump(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.next += 1;
        if byte == b'\n' {
            self.at = At { line: self.at.line.saturating_add(1), column: 1 };
        } else {
            self.at.column = self.at.column.saturating_add(1);
        }
        Some(byte)
    }

    /// What stands at the cursor, for an error.
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

    /// A tag, `[…]`, says something to people and tools, nothing to a decoder.
    pub(super) fn skip_tag(&mut self) -> Result<(), DemError> {
        if self.peek() != Some(b'[') {
            return Ok(());
        }
        let at = self.at;
        loop {
            match self.bump() {
                Some(b']') => return Ok(()),
                None | Some(b'\n') => {
                    return Err(at.refuse("a tag that is never closed", "']' on the same line", "close the tag"));
                }
                Some(_) => {}
            }
        }
    }

    pub(super) fn optional_arguments(&mut self) -> Result<Vec<f64>, DemError> {
        self.skip_blanks();
        if self.peek() == Some(b'(') { self.arguments() } else { Ok(Vec::new()) }
    }

    /// Numbers in parentheses; at least one pair of parentheses must be there.
    pub(super) fn arguments(&mut self) -> Result<Vec<f64>, DemError> {
        if self.peek() != Some(b'(') {
            return Err(self.at.refuse(self.found(), "'('", "give the argument in parentheses"));
        }
        self.bump();
        self.skip_blanks();
        let mut arguments = Vec::new();
        if self.peek() == Some(b')') {
            self.bump();
            return Ok(arguments);
        }
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
        let text = str::from_utf8(&self.text[start..self.next]).unwrap_or_default();
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(number),
            _ if text.is_empty() => Err(at.refuse(self.found(), "a number", "write a decimal number")),
            _ => Err(at.refuse(format!("'{text}'"), "a finite number", "write a decimal number")),
        }
    }

    /// A whole number; `None` without digits. What passes 64 bits saturates, and passes every limit.
    pub(super) fn digits(&mut self) -> Option<u64> {
        let mut number: Option<u64> = None;
        while let Some(byte @ b'0'..=b'9') = self.peek() {
            self.bump();
            number = Some(number.unwrap_or(0).saturating_mul(10).saturating_add(u64::from(byte - b'0')));
        }
        number
    }

    /// The next target on the line; `None` at the line's end.
    pub(super) fn target(&mut self) -> Result<Option<(At, Target)>, DemError> {
        self.skip_blanks();
        let at = self.at;
        let Some(byte) = self.peek() else { return Ok(None) };
        if matches!(byte, b'\n' | b'#' | b'}') {
            return Ok(None);
        }
        let expected = "a target such as D5, L0, ^ or a number";
        if !matches!(self.text.get(self.next.wrapping_sub(1)), Some(b' ' | b'\t' | b'\r' | b')' | b']')) {
            return Err(at.refuse(self.found(), "a space between targets", "separate the targets"));
        }
        let target = match byte {
            b'^' => {
                self.bump();
                Target::Separator
            }
            b'D' | b'd' | b'L' | b'l' => {
                self.bump();
                let index = self.digits().ok_or_else(|| self.at.refuse(self.found(), "an index", "write D0, L0, …"))?;
                let index = u32::try_from(index).unwrap_or(u32::MAX);
                if byte.eq_ignore_ascii_case(&b'D') { Target::Detector(index) } else { Target::Observable(index) }
            }
            _ => Target::Number(
                self.digits().ok_or_else(|| at.refuse(self.found(), expected, "correct or remove the target"))?,
            ),
        };
        Ok(Some((at, target)))
    }
}
