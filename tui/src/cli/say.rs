//! The two outputs: results on standard output, messages on standard error.
//!
//! Never panics on a closed pipe: the reader has read what it needed.
//!
//! # Why every text is filtered
//! Much printed text comes from other users: texts on a board, names of processes, runs and files,
//! reports. A terminal would execute control characters in such text. All output of a command
//! therefore passes through this module, which writes control characters as escapes. The command
//! line itself prints only line ends and tabs; the console does not use this module.

use clap::Args as ClapArgs;
use pinwheel_report::format::{Syntax, visible};
use pinwheel_report::report::grouped;
use serde::Serialize;
use std::io::{self, ErrorKind, Write};

/// Writes one JSON document on its own line.
pub fn json(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_string(value)?;
    tolerant(writeln!(out, "{}", visible(&text, Syntax::Json)).and_then(|()| out.flush()))
}

/// Writes text with its control characters escaped.
pub fn text(out: &mut dyn Write, text: &str) -> io::Result<()> {
    tolerant(out.write_all(visible(text, Syntax::Plain).as_bytes()).and_then(|()| out.flush()))
}

/// Writes one line to standard error; ignores a closed output.
pub fn people(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", visible(line, Syntax::Plain));
}

/// A number with what it counts: 1 shot, 2,000 shots.
pub fn counted(count: u64, one: &str) -> String {
    format!("{} {one}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// How a command prints its result.
#[derive(Clone, Copy, Debug, Default, ClapArgs)]
pub struct Print {
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

impl Print {
    /// Writes `value` as JSON, or the result of `text`. Returns `status` if the output could be
    /// written.
    pub fn result(self, out: &mut dyn Write, value: &impl Serialize, text: impl FnOnce() -> String, status: u8) -> u8 {
        written(if self.json { json(out, value) } else { self::text(out, &text()) }, status)
    }

    /// As [`Print::result`], to standard output.
    pub fn to_stdout(self, value: &impl Serialize, text: impl FnOnce() -> String, status: u8) -> u8 {
        self.result(&mut io::stdout().lock(), value, text, status)
    }
}

/// The exit status of a command, given whether its result could be written.
pub fn written(result: io::Result<()>, status: u8) -> u8 {
    match result {
        Ok(()) => status,
        Err(error) => {
            people(&format!("pinwheel: cannot write the result to standard output ({error}); free space there"));
            1
        }
    }
}

/// Filters a stream of JSON as [`json`] does a document. Invalid UTF-8 becomes replacement
/// characters.
pub struct JsonStream<W: Write> {
    out: W,
    /// The first bytes of an incomplete character.
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
    use super::{JsonStream, Syntax, counted, json, text, visible};
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
    fn a_closed_reader_is_no_error_and_a_full_disk_is() {
        assert!(json(&mut Refuses(ErrorKind::BrokenPipe), &1).is_ok());
        assert!(text(&mut Refuses(ErrorKind::BrokenPipe), "x").is_ok());
        assert!(json(&mut Refuses(ErrorKind::StorageFull), &1).is_err());
    }

    #[test]
    fn one_is_singular() {
        let told = [0, 1, 2_000].map(|count| counted(count, "shot"));
        assert_eq!(told, ["0 shots", "1 shot", "2,000 shots"]);
    }

    /// C0, DEL, C1 as a character, a lone carriage return, and characters that change the
    /// direction.
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
