//! Text to instructions, positions kept. Recursion is as deep as repeat blocks, at most [`NESTING_MAX`].

use super::{Component, DemError, NESTING_MAX, odd_ones};

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

/// One instruction, its detector indices still relative to the shifts before it.
#[derive(Debug)]
pub(super) struct Instruction {
    pub(super) at: At,
    pub(super) body: Body,
}

#[derive(Debug)]
pub(super) enum Body {
    Error { probability: f64, components: Vec<Component> },
    Detectors { coordinates: Vec<f64>, targets: Vec<u32> },
    Observables { targets: Vec<u32> },
    Shift { coordinates: Vec<f64>, detectors: u64 },
    Repeat { times: u64, body: Vec<Instruction> },
}

/// The kinds of target an instruction may name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    Detector(u32),
    Observable(u32),
    Separator,
    Number(u64),
}

const KNOWN: &str = "one of error, detector, logical_observable, shift_detectors, repeat";
const NOT_A_MODEL: &str = "check that the file is a detector error model (stim analyze_errors writes one)";

struct Cursor<'a> {
    text: &'a [u8],
    next: usize,
    at: At,
}

/// Parses a whole text.
pub(super) fn parse(text: &[u8]) -> Result<Vec<Instruction>, DemError> {
    let mut cursor = Cursor { text, next: 0, at: At { line: 1, column: 1 } };
    cursor.block(0)
}

impl Cursor<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.next).copied()
    }

    fn bump(&mut self) -> Option<u8> {
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
    fn found(&self) -> String {
        match self.peek() {
            None => "the end of the file".to_owned(),
            Some(b'\n') => "the end of the line".to_owned(),
            Some(byte) => format!("'{}'", byte.escape_ascii()),
        }
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r')) {
            self.bump();
        }
    }

    /// Skips blanks, line ends and comments.
    fn skip_between(&mut self) {
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

    /// Instructions up to the end of the text, or, inside a repeat block, up to its brace.
    fn block(&mut self, depth: usize) -> Result<Vec<Instruction>, DemError> {
        let opened = self.at;
        let mut instructions = Vec::new();
        loop {
            self.skip_between();
            match self.peek() {
                None if depth == 0 => return Ok(instructions),
                None => {
                    return Err(opened.refuse(
                        "a repeat block that is never closed",
                        "'}'",
                        "close it, or get the whole file: it may be truncated",
                    ));
                }
                Some(b'}') if depth == 0 => {
                    return Err(self.at.refuse("'}' without a repeat block", "an instruction", "remove it"));
                }
                Some(b'}') => {
                    self.bump();
                    return Ok(instructions);
                }
                Some(_) => instructions.push(self.instruction(depth)?),
            }
        }
    }

    fn instruction(&mut self, depth: usize) -> Result<Instruction, DemError> {
        let at = self.at;
        let start = self.next;
        while matches!(self.peek(), Some(byte) if byte.is_ascii_alphanumeric() || byte == b'_') {
            self.bump();
        }
        let name = self.text[start..self.next].to_ascii_lowercase();
        if name.is_empty() {
            return Err(at.refuse(self.found(), KNOWN, NOT_A_MODEL));
        }
        self.skip_tag()?;
        let body = match name.as_slice() {
            b"error" => self.error()?,
            b"detector" => self.detector()?,
            b"logical_observable" => self.observable()?,
            b"shift_detectors" => self.shift()?,
            b"repeat" => return Ok(Instruction { at, body: self.repeat(at, depth)? }),
            other => return Err(at.refuse(format!("'{}'", other.escape_ascii()), KNOWN, NOT_A_MODEL)),
        };
        Ok(Instruction { at, body })
    }

    /// A tag, `[…]`, says something to people and tools, nothing to a decoder.
    fn skip_tag(&mut self) -> Result<(), DemError> {
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

    fn error(&mut self) -> Result<Body, DemError> {
        self.skip_blanks();
        let at = self.at;
        let arguments = self.arguments()?;
        let probability = match arguments[..] {
            [one] if (0.0..=1.0).contains(&one) => one,
            [one] => return Err(at.refuse(format!("probability {one}"), "0 to 1", "correct the probability")),
            _ => {
                let found = format!("{} arguments", arguments.len());
                return Err(at.refuse(found, "one probability, as in error(0.01)", "give one"));
            }
        };
        let mut components = Vec::new();
        let (mut detectors, mut observables) = (Vec::new(), Vec::new());
        let mut separator = None;
        let mut first = true;
        while let Some((at, target)) = self.target()? {
            match target {
                Target::Detector(index) => detectors.push(index),
                Target::Observable(index) => observables.push(index),
                Target::Separator if first || separator.is_some() => {
                    return Err(at.refuse("'^'", "a target before each '^'", "remove the separator"));
                }
                Target::Separator => components.push(component(&mut detectors, &mut observables)),
                Target::Number(number) => return Err(wrong_target(at, number)),
            }
            first = false;
            separator = (target == Target::Separator).then_some(at);
        }
        if let Some(at) = separator {
            return Err(at.refuse("'^' as the last target", "a target after each '^'", "remove the separator"));
        }
        components.push(component(&mut detectors, &mut observables));
        Ok(Body::Error { probability, components })
    }

    fn detector(&mut self) -> Result<Body, DemError> {
        let coordinates = self.optional_arguments()?;
        let mut targets = Vec::new();
        while let Some((at, target)) = self.target()? {
            let Target::Detector(index) = target else {
                return Err(at.refuse("another kind of target", "detectors, as in D5", "name detectors only"));
            };
            targets.push(index);
        }
        Ok(Body::Detectors { coordinates, targets })
    }

    fn observable(&mut self) -> Result<Body, DemError> {
        let at = self.at;
        if !self.optional_arguments()?.is_empty() {
            return Err(at.refuse("arguments", "none", "remove the parentheses"));
        }
        let mut targets = Vec::new();
        while let Some((at, target)) = self.target()? {
            let Target::Observable(index) = target else {
                return Err(at.refuse("another kind of target", "observables, as in L0", "name observables only"));
            };
            targets.push(index);
        }
        Ok(Body::Observables { targets })
    }

    fn shift(&mut self) -> Result<Body, DemError> {
        let coordinates = self.optional_arguments()?;
        let at = self.at;
        match (self.target()?, self.target()?) {
            (Some((_, Target::Number(detectors))), None) => Ok(Body::Shift { coordinates, detectors }),
            _ => Err(at.refuse("other targets", "one number of detectors, as in shift_detectors 8", "give one")),
        }
    }

    fn repeat(&mut self, at: At, depth: usize) -> Result<Body, DemError> {
        self.skip_blanks();
        let number_at = self.at;
        let times = self.digits().ok_or_else(|| {
            number_at.refuse(self.found(), "a number of repetitions, as in repeat 5 {", "give a whole number")
        })?;
        self.skip_between();
        if self.peek() != Some(b'{') {
            return Err(self.at.refuse(self.found(), "'{' after the number of repetitions", "open the block"));
        }
        self.bump();
        if depth >= NESTING_MAX {
            let expected = format!("at most {NESTING_MAX} levels");
            return Err(at.refuse(
                "repeat blocks nested too deeply",
                expected,
                "flatten the model (stim's flattened())",
            ));
        }
        Ok(Body::Repeat { times, body: self.block(depth + 1)? })
    }

    fn optional_arguments(&mut self) -> Result<Vec<f64>, DemError> {
        self.skip_blanks();
        if self.peek() == Some(b'(') { self.arguments() } else { Ok(Vec::new()) }
    }

    /// Numbers in parentheses; at least one pair of parentheses must be there.
    fn arguments(&mut self) -> Result<Vec<f64>, DemError> {
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

    fn number(&mut self) -> Result<f64, DemError> {
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
    fn digits(&mut self) -> Option<u64> {
        let mut number: Option<u64> = None;
        while let Some(byte @ b'0'..=b'9') = self.peek() {
            self.bump();
            number = Some(number.unwrap_or(0).saturating_mul(10).saturating_add(u64::from(byte - b'0')));
        }
        number
    }

    /// The next target on the line; `None` at the line's end.
    fn target(&mut self) -> Result<Option<(At, Target)>, DemError> {
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

fn component(detectors: &mut Vec<u32>, observables: &mut Vec<u32>) -> Component {
    Component { detectors: odd_ones(detectors.drain(..)), observables: odd_ones(observables.drain(..)) }
}

fn wrong_target(at: At, number: u64) -> DemError {
    at.refuse(format!("the number {number}"), "D and L targets", "write an index as D5 or L0")
}
