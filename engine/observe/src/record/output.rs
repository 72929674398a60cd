//! One output of a run: a file that appears whole at its end, a device, or standard output.
//!
//! Used by the sink's owner, a cold thread. Bounded by one buffer of [`BUFFER_BYTES`]. Never leaves a partial file: what
//! is not committed is removed when it is dropped.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Bytes collected before the system is asked to write.
const BUFFER_BYTES: usize = 1 << 16;

/// Why an output cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("{purpose}: found {path} not writable ({source}), expected a file that can be made; name another place")]
pub struct OutputError {
    purpose: &'static str,
    path: String,
    source: io::Error,
}

/// An open output; see the module's header.
#[derive(Debug)]
pub(super) struct Output {
    writer: BufWriter<Sink>,
    /// Hidden name and final name; `None` for what is written through.
    rename: Option<(PathBuf, PathBuf)>,
}

#[derive(Debug)]
enum Sink {
    File(File),
    Stdout(io::Stdout),
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Sink::File(file) => file.write(bytes),
            Sink::Stdout(stdout) => stdout.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Sink::File(file) => file.flush(),
            Sink::Stdout(stdout) => stdout.flush(),
        }
    }
}

impl Output {
    /// Standard output.
    pub(super) fn stdout() -> Output {
        Output { writer: BufWriter::with_capacity(BUFFER_BYTES, Sink::Stdout(io::stdout())), rename: None }
    }

    /// A file; `purpose` names it in errors ("--predictions").
    pub(super) fn file(path: &Path, purpose: &'static str) -> Result<Output, OutputError> {
        let refuse = |source| OutputError { purpose, path: path.display().to_string(), source };
        // A link is followed, so that the file it names is replaced and not the link.
        let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        match fs::metadata(&place) {
            Ok(found) if found.is_dir() => Err(refuse(io::Error::from(io::ErrorKind::IsADirectory))),
            // A device or a pipe is written through: renaming onto it would replace it.
            Ok(found) if !found.is_file() => {
                let file = OpenOptions::new().write(true).open(&place).map_err(refuse)?;
                Ok(Output { writer: BufWriter::with_capacity(BUFFER_BYTES, Sink::File(file)), rename: None })
            }
            _ => {
                let hidden = hidden_beside(&place).ok_or_else(|| refuse(io::ErrorKind::InvalidFilename.into()))?;
                let file = OpenOptions::new().write(true).create_new(true).open(&hidden).map_err(refuse)?;
                let writer = BufWriter::with_capacity(BUFFER_BYTES, Sink::File(file));
                Ok(Output { writer, rename: Some((hidden, place)) })
            }
        }
    }

    /// Writes the rest and lets the file appear under its name.
    pub(super) fn commit(mut self) -> io::Result<()> {
        self.writer.flush()?;
        if let Some((hidden, place)) = &self.rename {
            fs::rename(hidden, place)?;
            self.rename = None;
        }
        Ok(())
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some((hidden, _)) = &self.rename {
            // Nothing is left to tell: the run has its own sentence by now.
            let _ = fs::remove_file(hidden);
        }
    }
}

/// `.NAME.PID.partial` in the same directory, so that the rename stays on one file system.
fn hidden_beside(place: &Path) -> Option<PathBuf> {
    let name = place.file_name()?.to_string_lossy().into_owned();
    Some(place.with_file_name(format!(".{name}.{}.partial", std::process::id())))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::Output;
    use std::fs;
    use std::io::Write;
    use std::path::Path;

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_appears_at_commit_and_not_before() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out.b8");
        let mut output = Output::file(&path, "--predictions").unwrap();
        output.write_all(b"ab").unwrap();
        output.flush().unwrap();
        assert!(!path.exists());
        output.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"ab");
        assert_eq!(names(dir.path()), ["out.b8"]);
    }

    #[test]
    fn a_dropped_output_leaves_nothing_and_keeps_what_was_there() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        fs::write(&path, "old").unwrap();
        let mut output = Output::file(&path, "--answers").unwrap();
        output.write_all(b"new").unwrap();
        drop(output);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(dir.path()), ["out"]);
    }

    #[test]
    fn a_link_stays_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        fs::write(&real, "old").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let mut output = Output::file(&link, "--answers").unwrap();
        output.write_all(b"new").unwrap();
        output.commit().unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read(&real).unwrap(), b"new");
    }

    #[test]
    fn an_impossible_place_is_refused_in_one_sentence() {
        let dir = tempfile::tempdir().unwrap();
        for path in [dir.path().join("no/such/dir/f"), dir.path().to_owned()] {
            let said = Output::file(&path, "--predictions").unwrap_err().to_string();
            assert!(said.starts_with("--predictions: found ") && !said.contains('\n'), "{said}");
        }
        assert_eq!(names(dir.path()), Vec::<String>::new());
    }

    #[test]
    fn a_device_is_written_through_and_its_refusal_is_seen() {
        let mut output = Output::file(Path::new("/dev/full"), "--answers").unwrap();
        output.write_all(b"x").unwrap();
        assert_eq!(output.commit().unwrap_err().kind(), std::io::ErrorKind::StorageFull);
        assert!(!fs::metadata("/dev/full").unwrap().is_file());
    }
}
