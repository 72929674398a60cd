//! The two outputs: results on standard output, everything said to people on standard error.
//!
//! Bounded by what is said. Never panics on a closed pipe: a reader that went away has read enough.

use serde::Serialize;
use std::io::{self, ErrorKind, Write};

/// One JSON document on a line of its own.
pub fn json(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_string(value)?;
    tolerant(writeln!(out, "{text}").and_then(|()| out.flush()))
}

/// Text as it is.
pub fn text(out: &mut dyn Write, text: &str) -> io::Result<()> {
    tolerant(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// One line to people. Where nobody listens there is nobody to tell.
pub fn people(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

fn tolerant(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::{json, text};
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
}
