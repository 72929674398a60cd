//! Reads lines of `--answers`: one flat JSON object a line, keys in any order.
//!
//! A million lines a second pass here, so it parses the bytes in place and allocates nothing. A line that
//! it cannot read is an error, not skipped.

use crate::ledger::Answer;

/// One line, as far as the stranger needs it.
#[derive(Debug, PartialEq, Eq)]
pub struct Line<'a> {
    pub stream: u64,
    pub seq: u64,
    pub status: &'a [u8],
    pub decoder: &'a [u8],
    pub flips: bool,
}

impl Line<'_> {
    /// What the line says, where observables of these decoders are exact.
    pub fn answer(&self, is_exact: bool) -> Answer {
        match self.status {
            b"ok" if is_exact && matches!(self.decoder, b"matching" | b"lookup") => Answer::Exact(self.flips),
            b"ok" | b"rescued" | b"abstained" => Answer::Other(self.flips),
            _ => Answer::Error,
        }
    }
}

/// Parses one line without its line feed.
pub fn parse(line: &[u8]) -> Option<Line<'_>> {
    let mut found = Line { stream: u64::MAX, seq: u64::MAX, status: b"", decoder: b"", flips: false };
    let mut rest = line.strip_prefix(b"{")?;
    loop {
        let (key, after) = string(rest)?;
        let after = after.strip_prefix(b":")?;
        rest = match key {
            b"stream" => number(after, &mut found.stream)?,
            b"seq" => number(after, &mut found.seq)?,
            b"status" => text(after, &mut found.status)?,
            b"decoder" => text(after, &mut found.decoder)?,
            b"observables" => {
                let inner = after.strip_prefix(b"[")?;
                let end = inner.iter().position(|byte| *byte == b']')?;
                // The models have one observable, number 0.
                found.flips = match &inner[..end] {
                    b"" => false,
                    b"0" => true,
                    _ => return None,
                };
                &inner[end + 1..]
            }
            _ => value(after)?,
        };
        match rest {
            b"}" => break,
            [b',', others @ ..] => rest = others,
            _ => return None,
        }
    }
    (found.stream != u64::MAX && found.seq != u64::MAX && !found.status.is_empty()).then_some(found)
}

fn string(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let inner = bytes.strip_prefix(b"\"")?;
    let end = inner.iter().position(|byte| *byte == b'"')?;
    Some((&inner[..end], &inner[end + 1..]))
}

fn text<'a>(bytes: &'a [u8], into: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (found, rest) = string(bytes)?;
    *into = found;
    Some(rest)
}

fn number<'a>(bytes: &'a [u8], into: &mut u64) -> Option<&'a [u8]> {
    let end = bytes.iter().position(|byte| !byte.is_ascii_digit())?;
    *into =
        bytes[..end].iter().try_fold(0u64, |sum, digit| sum.checked_mul(10)?.checked_add(u64::from(digit - b'0')))?;
    (end > 0).then_some(&bytes[end..])
}

/// Skips a number, a string, true, false or null.
fn value(bytes: &[u8]) -> Option<&[u8]> {
    if bytes.first() == Some(&b'"') {
        return string(bytes).map(|(_, rest)| rest);
    }
    let end = bytes.iter().position(|byte| matches!(byte, b',' | b'}'))?;
    Some(&bytes[end..])
}

#[cfg(test)]
mod tests {
    use super::{Line, parse};

    #[test]
    fn lines_are_read_whatever_the_order_of_their_keys() {
        let line =
            br#"{"latency_ns":7,"observables":[0],"stream":3,"seq":12,"decoder":"matching","status":"ok","gap_db":4}"#;
        let expected = Line { stream: 3, seq: 12, status: b"ok", decoder: b"matching", flips: true };
        assert_eq!(parse(line), Some(expected));
    }

    #[test]
    fn a_line_that_is_cut_short_is_no_line() {
        let line = br#"{"stream":3,"seq":12,"status":"ok","observables":[]}"#;
        assert!(parse(line).is_some());
        for end in 0..line.len() {
            assert_eq!(parse(&line[..end]), None, "{end}");
        }
    }
}
