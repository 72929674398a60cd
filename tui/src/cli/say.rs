//! The two outputs: results on standard output, everything said to people on standard error.
//!
//! Bounded by what is said. Never panics on a closed pipe: a reader that went away has read enough.
//!
//! # Why every text is filtered
//! Much of what is printed was written by others: texts on a board, names of processes, runs and files, reports. A control
//! character in it would be obeyed by the terminal. All that a command prints goes through here, where such characters are
//! written as escapes. The command line prints no control characters of its own but line ends and tabs; the console draws
//! by itself.

use serde::Serialize;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, ErrorKind, Write};

/// One JSON document on a line of its own.
pub fn json(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_string(value)?;
    tolerant(writeln!(out, "{}", visible(&text, Syntax::Json)).and_then(|()| out.flush()))
}

/// Text, its control characters made visible.
pub fn text(out: &mut dyn Write, text: &str) -> io::Result<()> {
    tolerant(out.write_all(visible(text, Syntax::Plain).as_bytes()).and_then(|()| out.flush()))
}

/// One line to people. Where nobody listens there is nobody to tell.
pub fn people(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", visible(line, Syntax::Plain));
}

/// How a control character is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// As in Rust: `\u{1b}`.
    Plain,
    /// As in a JSON string, which then means the same: `\u001b`.
    Json,
}

/// `text` with an escape for each character that a terminal would obey instead of showing it: control characters but line
/// ends (LF, and CR before it) and tabs, and those that turn the direction of what follows.
pub fn visible(text: &str, syntax: Syntax) -> Cow<'_, str> {
    if !text.chars().any(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut rest = text.chars();
    while let Some(found) = rest.next() {
        let ends_line = found == '\r' && rest.as_str().starts_with('\n');
        // Writing to a String cannot fail.
        let _ = match syntax {
            _ if !is_obeyed(found) || ends_line => shown.write_char(found),
            Syntax::Plain => write!(shown, "\\u{{{:x}}}", u32::from(found)),
            Syntax::Json => write!(shown, "\\u{:04x}", u32::from(found)),
        };
    }
    Cow::Owned(shown)
}

fn is_obeyed(found: char) -> bool {
    let turns = matches!(found,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || found.is_control() && !matches!(found, '\n' | '\t')
}

/// Passes on a stream of JSON as [`json`] does a document. What is no UTF-8 becomes replacement characters.
pub struct JsonStream<W: Write> {
    out: W,
    /// The first bytes of a character whose others have not come.
    begun: Vec<u8>,
}

impl<W: Write> JsonStream<W> {
    pub fn new(out: W) -> JsonStream<W> {
        JsonStream { out, begun: Vec::new() }
    }
}

impl<W: Write> Write for JsonStream<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.begun.extend_from_slice(bytes);
        let whole = match str::from_utf8(&self.begun) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => self.begun.len(),
        };
        let text = String::from_utf8_lossy(&self.begun[..whole]);
        self.out.write_all(visible(&text, Syntax::Json).as_bytes())?;
        self.begun.drain(..whole);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn tolerant(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{JsonStream, Syntax, json, text, visible};
    use std::io::{self, ErrorKind, Write};

    struct Refuses(ErrorKind);

    impl Write for Refuses {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_went_away_is_no_error_and_a_full_disk_is() {
        assert!(json(&mut Refuses(ErrorKind::BrokenPipe), &1).is_ok());
        assert!(text(&mut Refuses(ErrorKind::BrokenPipe), "x").is_ok());
        assert!(json(&mut Refuses(ErrorKind::StorageFull), &1).is_err());
    }

    /// C0, DEL, C1 as a character, a lone carriage return, and what turns the direction.
    const OBEYED: &str = "a\u{1b}[31mb\u{7f}\u{9b}2J\rc\u{202e}d\u{2066}\u{200f}\u{61c}";

    #[test]
    fn control_characters_of_others_are_printed_as_escapes() {
        let mut out = Vec::new();
        text(&mut out, OBEYED).unwrap();
        let expected = r"a\u{1b}[31mb\u{7f}\u{9b}2J\u{d}c\u{202e}d\u{2066}\u{200f}\u{61c}";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
        for harmless in ["", "plain", "a\tb\r\n\n", "µs ─ ▶ 見る e\u{301} \u{200d}"] {
            assert_eq!(visible(harmless, Syntax::Plain), harmless);
        }
    }

    #[test]
    fn control_characters_in_json_are_escaped_and_mean_the_same() {
        let value = serde_json::json!({ OBEYED: [OBEYED, "\\u001b", "line\nend"] });
        let mut out = Vec::new();
        json(&mut out, &value).unwrap();
        let told = String::from_utf8(out).unwrap();
        assert_eq!(serde_json::from_str::<serde_json::Value>(&told).unwrap(), value);
        assert_eq!(visible(&told, Syntax::Json), told, "nothing is left to escape");
    }

    #[test]
    fn a_stream_of_json_is_filtered_wherever_its_writes_are_cut() {
        let value = serde_json::json!({ "name": OBEYED, "sign": "見る" });
        let bytes = serde_json::to_vec(&value).unwrap();
        for length in 1..7 {
            let mut out = Vec::new();
            let mut stream = JsonStream::new(&mut out);
            bytes.chunks(length).for_each(|piece| stream.write_all(piece).unwrap());
            let told = String::from_utf8(out).unwrap();
            assert_eq!(serde_json::from_str::<serde_json::Value>(&told).unwrap(), value);
            assert_eq!(visible(&told, Syntax::Json), told);
        }
    }
}
