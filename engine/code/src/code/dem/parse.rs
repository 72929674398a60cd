//! From text to instructions with positions. Recursion is at most [`NESTING_MAX`] repeat blocks
//! deep.

use super::cursor::{Cursor, Position, Target, quoted};
use super::{Component, DemError, NESTING_MAX, odd_ones};

/// One instruction. Its detector indices are relative to the shifts before it.
#[derive(Debug)]
pub(super) struct Instruction {
    pub(super) at: Position,
    pub(super) body: Body,
}

#[derive(Debug)]
pub(super) enum Body {
    /// With the highest detector and observable that it names, also those that cancel.
    Error {
        probability: f64,
        components: Vec<Component>,
        highest: [Option<u32>; 2],
    },
    Detector {
        coordinates: Vec<f64>,
        target: u32,
        is_herald: bool,
    },
    Observable {
        target: u32,
    },
    Shift {
        coordinates: Vec<f64>,
        detectors: u64,
    },
    Repeat {
        times: u64,
        body: Vec<Instruction>,
    },
}

const KNOWN: &str = "one of error, detector, logical_observable, shift_detectors, repeat";
const NOT_A_MODEL: &str = "check that the file is a detector error model (stim analyze_errors writes one)";

/// Parses a whole text.
pub(super) fn parse(text: &[u8]) -> Result<Vec<Instruction>, DemError> {
    Cursor::new(text).block(0)
}

impl Cursor<'_> {
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
        let tag = self.tag()?;
        let body = match name.as_slice() {
            b"error" => self.error()?,
            b"detector" => self.detector(tag == b"herald")?,
            b"logical_observable" => self.observable()?,
            b"shift_detectors" => self.shift()?,
            b"repeat" => return Ok(Instruction { at, body: self.repeat(at, depth)? }),
            other => return Err(at.refuse(format!("'{}'", other.escape_ascii()), KNOWN, NOT_A_MODEL)),
        };
        Ok(Instruction { at, body })
    }

    fn error(&mut self) -> Result<Body, DemError> {
        let at = self.at;
        let start = self.next;
        let arguments = self.arguments()?;
        let probability = match arguments[..] {
            [one] if (0.0..=1.0).contains(&one) => one,
            [_] => {
                let written = self.written_from(start).trim_matches(['(', ')', ' ', '\t', '\r']);
                return Err(at.refuse(format!("probability {}", quoted(written)), "0 to 1", "correct the probability"));
            }
            _ => {
                let found = format!("{} arguments", arguments.len());
                return Err(at.refuse(found, "one probability, as in error(0.01)", "give one"));
            }
        };
        let mut components = Vec::new();
        let (mut detectors, mut observables) = (Vec::new(), Vec::new());
        let (mut separator, mut highest) = (None, [None; 2]);
        let mut first = true;
        while let Some((at, target)) = self.target()? {
            match target {
                Target::Detector(index) => {
                    detectors.push(index);
                    highest[0] = highest[0].max(Some(index));
                }
                Target::Observable(index) => {
                    observables.push(index);
                    highest[1] = highest[1].max(Some(index));
                }
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
        // Parts whose targets cancel change nothing.
        let flips = |part: &Component| !(part.detectors.is_empty() && part.observables.is_empty());
        if components.iter().any(flips) {
            components.retain(flips);
        } else {
            components.truncate(1);
        }
        Ok(Body::Error { probability, components, highest })
    }

    fn detector(&mut self, is_herald: bool) -> Result<Body, DemError> {
        let coordinates = self.optional_arguments()?;
        let index = |target| if let Target::Detector(index) = target { Some(index) } else { None };
        let target = self.only_target("one detector, as in detector D5", index)?;
        Ok(Body::Detector { coordinates, target, is_herald })
    }

    fn observable(&mut self) -> Result<Body, DemError> {
        if self.peek() == Some(b'(') {
            return Err(self.at.refuse("arguments", "none", "remove the parentheses"));
        }
        let index = |target| if let Target::Observable(index) = target { Some(index) } else { None };
        let target = self.only_target("one observable, as in logical_observable L0", index)?;
        Ok(Body::Observable { target })
    }

    /// The one target of a line. Stim takes no more, although the page of its format shows two.
    fn only_target(&mut self, expected: &str, index: impl Fn(Target) -> Option<u32>) -> Result<u32, DemError> {
        let Some((at, target)) = self.target()? else {
            return Err(self.at.refuse(self.found(), expected, "name it"));
        };
        let Some(index) = index(target) else {
            return Err(at.refuse("another kind of target", expected, "name that"));
        };
        match self.target()? {
            None => Ok(index),
            Some((at, _)) => Err(at.refuse("a second target", expected, "write a line for each")),
        }
    }

    fn shift(&mut self) -> Result<Body, DemError> {
        let coordinates = self.optional_arguments()?;
        self.skip_blanks();
        let at = self.at;
        match (self.target()?, self.target()?) {
            (Some((_, Target::Number(detectors))), None) => Ok(Body::Shift { coordinates, detectors }),
            _ => Err(at.refuse("other targets", "one number of detectors, as in shift_detectors 8", "give one")),
        }
    }

    fn repeat(&mut self, at: Position, depth: usize) -> Result<Body, DemError> {
        self.skip_blanks();
        let number_at = self.at;
        let times = self.count(number_at)?.ok_or_else(|| {
            number_at.refuse(self.found(), "a number of repetitions, as in repeat 5 {", "give a whole number")
        })?;
        self.skip_blanks();
        if self.peek() != Some(b'{') {
            let expected = "'{' behind the number of repetitions, on the same line";
            return Err(self.at.refuse(self.found(), expected, "open the block there"));
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
}

fn component(detectors: &mut Vec<u32>, observables: &mut Vec<u32>) -> Component {
    Component { detectors: odd_ones(detectors.drain(..)), observables: odd_ones(observables.drain(..)) }
}

fn wrong_target(at: Position, number: u64) -> DemError {
    at.refuse(format!("the number {number}"), "D and L targets", "write an index as D5 or L0")
}
