//! The map of soft bytes: beside its detectors a shot may have a byte for each readout that says how sure it is,
//! and the map says which errors that is about.
//!
//! Owns the map's format. Cold code parses it. Bounds: [`SOFT_BYTES_MAX`], [`READOUTS_MAX`]. Never opens a file. What
//! it says of a model's edges is found by [`soft_edges`](super::soft_edges).
//!
//! ```text
//! # a comment
//! soft 24             the bytes of a shot; "soft 24 0.5": in steps of 0.5 dB, otherwise 0.25
//! S0 0.01 D0 D8       byte 0 is about a readout that flips D0 and D8 if it is wrong; in the mean of all shots
//!                     it is wrong with probability 0.01, which the model's errors of D0 and D8 include
//! S1 0.01 D1          one that flips D1 alone; a byte has a line for each edge that it is about
//! ```
//!
//! A byte of 0 says nothing of its readout. Byte `b` says that it is right with odds of `(b - 1)` steps: with
//! steps of 0.25 dB 1 means as likely wrong as right, 41 ten times as likely right, 255 two million times.

use std::collections::BTreeSet;

use super::measure::MapError;
use crate::quote::cut;

/// Most soft bytes of a shot.
pub const SOFT_BYTES_MAX: u32 = 32_768;
/// Most lines of a map.
pub const READOUTS_MAX: usize = 1 << 20;
/// A step of a byte, in decibels, unless the map says otherwise.
const STEP_DB: f64 = 0.25;
/// Largest step in decibels.
const STEP_DB_MAX: f64 = 10.0;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Line {
    /// Its number in the text, from 1.
    pub(super) number: usize,
    pub(super) byte: u32,
    /// Mean probability that the readout is wrong.
    pub(super) wrong: f64,
    /// What it flips if it is wrong: one or two, ascending.
    pub(super) detectors: Vec<u32>,
}

/// A map of soft bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct SoftMap {
    bytes: u32,
    step_db: f64,
    pub(super) lines: Vec<Line>,
}

pub(super) fn refused<T>(
    line: usize,
    found: impl Into<String>,
    expected: impl Into<String>,
    remedy: &str,
) -> Result<T, MapError> {
    Err(MapError { line, found: found.into(), expected: expected.into(), remedy: remedy.to_owned() })
}

impl SoftMap {
    /// Parses a map.
    ///
    /// # Errors
    /// [`MapError`] at the first wrong line, or for a byte without a line.
    pub fn parse(text: &str) -> Result<SoftMap, MapError> {
        let mut lines = text.lines().enumerate().filter_map(|(number, line)| {
            let said = line.split('#').next().unwrap_or_default().trim();
            (!said.is_empty()).then_some((number + 1, said))
        });
        let (bytes, step_db) = head(lines.next())?;
        let mut map = SoftMap { bytes, step_db, lines: Vec::new() };
        let mut known = BTreeSet::new();
        for (number, line) in lines {
            let line = readout(number, line, bytes)?;
            if !known.insert((line.byte, line.detectors.clone())) {
                return refused(
                    number,
                    "the same readout and detectors again",
                    "each once",
                    "remove one of the two lines",
                );
            }
            if map.lines.len() == READOUTS_MAX {
                return refused(number, "more lines", format!("at most {READOUTS_MAX}"), "split the experiment");
            }
            map.lines.push(line);
        }
        let governed: BTreeSet<u32> = map.lines.iter().map(|line| line.byte).collect();
        match (0..bytes).find(|byte| !governed.contains(byte)) {
            None => Ok(map),
            Some(byte) => {
                let expected = format!("a line for each of a shot's {bytes} soft bytes");
                refused(0, format!("no line for S{byte}"), expected, "send no byte that says nothing of an error")
            }
        }
    }

    /// Soft bytes of a shot.
    pub const fn bytes(&self) -> u32 {
        self.bytes
    }

    /// 64-bit words that hold them, the first byte lowest.
    pub const fn words(&self) -> usize {
        self.bytes.div_ceil(8) as usize
    }

    /// The probability that a readout with this byte, which is not 0, is wrong.
    pub(super) fn wrong(&self, byte: u8) -> f64 {
        let odds = 10f64.powf(f64::from(byte - 1) * self.step_db / 10.0);
        1.0 / (1.0 + odds)
    }
}

fn head(line: Option<(usize, &str)>) -> Result<(u32, f64), MapError> {
    let expected =
        format!("soft N, with N in 1..={SOFT_BYTES_MAX}, or soft N STEP, with STEP in dB up to {STEP_DB_MAX}");
    let remedy = "begin with how many soft bytes a shot has";
    let Some((number, line)) = line else { return refused(0, "an empty map", expected, remedy) };
    let words: Vec<&str> = line.split_whitespace().collect();
    let (count, step) = match words[..] {
        ["soft", count] => (count.parse().ok(), Some(STEP_DB)),
        ["soft", count, step] => (count.parse().ok(), step.parse().ok()),
        _ => (None, None),
    };
    let count = count.filter(|count| (1..=SOFT_BYTES_MAX).contains(count));
    match (count, step.filter(|step: &f64| *step > 0.0 && *step <= STEP_DB_MAX)) {
        (Some(count), Some(step)) => Ok((count, step)),
        _ => refused(number, format!("{:?}", cut(line)), expected, remedy),
    }
}

fn readout(number: usize, line: &str, bytes: u32) -> Result<Line, MapError> {
    let mut words = line.split_whitespace();
    let name = words.next().unwrap_or_default();
    let byte = name.strip_prefix('S').and_then(|digits| digits.parse().ok()).filter(|byte| *byte < bytes);
    let Some(byte) = byte else {
        let expected = format!("S below {bytes}, the soft bytes of a shot");
        return refused(number, format!("{:?}", cut(name)), expected, "count the bytes from 0");
    };
    let given = words.next().unwrap_or_default();
    let wrong = given.parse().ok().filter(|wrong: &f64| *wrong > 0.0 && *wrong < 0.5);
    let Some(wrong) = wrong else {
        let expected = "how often the readout is wrong in the mean, above 0 and below 0.5";
        return refused(number, format!("{:?}", cut(given)), expected, "write it after the byte: S0 0.01 D0 D8");
    };
    let mut detectors = Vec::new();
    for word in words {
        match word.strip_prefix('D').and_then(|digits| digits.parse::<u32>().ok()) {
            Some(detector) => detectors.push(detector),
            None => {
                return refused(number, format!("{:?}", cut(word)), "a detector, such as D8", "name detectors only");
            }
        }
    }
    detectors.sort_unstable();
    detectors.dedup();
    if !(1..=2).contains(&detectors.len()) {
        let found = format!("{} detectors", detectors.len());
        return refused(number, found, "one or two, the ends of an edge", "write a line for each edge");
    }
    Ok(Line { number, byte, wrong, detectors })
}

#[cfg(test)]
mod tests;
