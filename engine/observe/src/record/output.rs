//! One output of a command: a file that appears when it is complete, a device or FIFO, or standard
//! output.
//!
//! Every command writes files that the user named through this module. A regular file is written
//! under a hidden name beside its final one and then renamed. A link is resolved, and the file it
//! refers to is replaced. A device or FIFO is written directly.
//!
//! Runs on cold threads. Bounded by one buffer of [`BUFFER_BYTES`] and [`HIDDEN_NAMES_MAX`] names.
//! Never leaves a partial file that nobody asked for: dropping an output that was not committed removes it,
//! unless it is [kept](Output::kept).

use crate::files;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Bytes that are buffered before a write.
const BUFFER_BYTES: usize = 1 << 16;
/// Most hidden names that are tried; killed processes with the same number may have left some.
const HIDDEN_NAMES_MAX: u32 = 100;
/// Characters of the final name in a hidden name, because names have a maximal length.
const HIDDEN_NAME_CHARS: usize = 48;

/// Why an output cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("{purpose}: cannot write {path} ({source}); name another file")]
pub struct OutputError {
    purpose: &'static str,
    path: String,
    source: io::Error,
}

impl OutputError {
    /// The system's error.
    pub fn into_source(self) -> io::Error {
        self.source
    }
}

/// An open output; see the module's text.
#[derive(Debug)]
pub struct Output {
    writer: BufWriter<Sink>,
    /// Hidden name and final name; `None` if it is written directly.
    rename: Option<(PathBuf, PathBuf)>,
    /// What was written stays under the hidden name if it is not committed.
    is_kept: bool,
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
    pub fn stdout() -> Output {
        Output::direct(Sink::Stdout(io::stdout()))
    }

    fn direct(sink: Sink) -> Output {
        Output { writer: BufWriter::with_capacity(BUFFER_BYTES, sink), rename: None, is_kept: false }
    }

    /// A file. `purpose` names it in errors ("--predictions").
    ///
    /// # Errors
    /// If it cannot be written. No file is left behind.
    pub fn file(path: &Path, purpose: &'static str) -> Result<Output, OutputError> {
        Output::named(path).map_err(|source| OutputError { purpose, path: path.display().to_string(), source })
    }

    /// A file whose path the program chose, in a directory that may belong to another user.
    /// Replaces what is there and follows no link.
    ///
    /// # Errors
    /// If it cannot be written. No file is left behind.
    pub fn in_place(path: &Path, purpose: &'static str) -> Result<Output, OutputError> {
        Output::hidden(path.to_owned(), None).map_err(|source| OutputError {
            purpose,
            path: path.display().to_string(),
            source,
        })
    }

    fn named(path: &Path) -> io::Result<Output> {
        // Whoever writes this means standard output. A command that can write there does not call this.
        if path == Path::new("-") {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "standard output, where a file is expected"));
        }
        let place = files::destination(path)?;
        match fs::metadata(&place) {
            Ok(found) if found.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            // A rename would replace the device or FIFO itself.
            Ok(found) if !found.is_file() => {
                let file = OpenOptions::new().write(true).open(&place)?;
                Ok(Output::direct(Sink::File(file)))
            }
            // A private file stays private.
            Ok(found) => Output::hidden(place, Some(found.permissions())),
            Err(_) => Output::hidden(place, None),
        }
    }

    fn hidden(place: PathBuf, permissions: Option<fs::Permissions>) -> io::Result<Output> {
        let (file, hidden) = create_hidden(&place)?;
        let mut output = Output::direct(Sink::File(file));
        output.rename = Some((hidden.clone(), place));
        if let Some(permissions) = permissions {
            fs::set_permissions(&hidden, permissions)?;
        }
        Ok(output)
    }

    /// Whether the file appears under its name only at the end; otherwise it is written directly.
    pub fn appears_whole(path: &Path) -> bool {
        fs::metadata(path).map_or(true, |found| found.is_file())
    }

    /// The same output; what was written stays in the [partial](Output::partial) file if it is not committed,
    /// because hours of a run may be in it.
    #[must_use]
    pub fn kept(mut self) -> Output {
        self.is_kept = true;
        self
    }

    /// The file under its hidden name; `None` if it is written directly.
    pub fn partial(&self) -> Option<&Path> {
        self.rename.as_ref().map(|(hidden, _)| hidden.as_path())
    }

    /// Writes the rest and renames the file to its final name.
    ///
    /// # Errors
    /// If it cannot be written. No file is left behind, unless it is [kept](Output::kept).
    pub fn commit(mut self) -> io::Result<()> {
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
            // Errors are ignored: the run has reported its own by now.
            if self.is_kept {
                let _ = self.writer.flush();
            }
            if !self.is_kept || is_empty(hidden) {
                let _ = fs::remove_file(hidden);
            }
        }
    }
}

/// Whether nothing of a file is on the disk.
pub(super) fn is_empty(path: &Path) -> bool {
    fs::metadata(path).map_or(true, |found| found.len() == 0)
}

/// `.NAME.PID.partial` in the same directory, so that the rename stays on one file system.
fn create_hidden(place: &Path) -> io::Result<(File, PathBuf)> {
    let name = place.file_name().ok_or(io::ErrorKind::InvalidFilename)?.to_string_lossy();
    let name: String = name.chars().take(HIDDEN_NAME_CHARS).collect();
    let pid = std::process::id();
    let mut refused = io::Error::from(io::ErrorKind::AlreadyExists);
    for attempt in 1..=HIDDEN_NAMES_MAX {
        let more = if attempt == 1 { String::new() } else { format!("-{attempt}") };
        let hidden = place.with_file_name(format!(".{name}.{pid}{more}.partial"));
        match OpenOptions::new().write(true).create_new(true).open(&hidden) {
            Ok(file) => return Ok((file, hidden)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => refused = error,
            Err(error) => return Err(error),
        }
    }
    Err(refused)
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
    fn a_kept_output_that_is_dropped_leaves_what_was_written_and_nothing_if_that_was_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        let mut output = Output::file(&path, "--answers").unwrap().kept();
        output.write_all(b"new").unwrap();
        let partial = output.partial().unwrap().to_owned();
        drop(output);
        assert!(!path.exists() && fs::read(partial).unwrap() == b"new");
        drop(Output::file(&path, "--answers").unwrap().kept());
        assert_eq!(names(dir.path()).len(), 1, "{:?}", names(dir.path()));
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
    fn a_link_to_no_file_yet_stays_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        std::os::unix::fs::symlink("real", &link).unwrap();
        let mut output = Output::file(&link, "--hlog").unwrap();
        output.write_all(b"new").unwrap();
        output.commit().unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read(&real).unwrap(), b"new");
    }

    #[test]
    fn a_link_in_a_place_that_the_program_chose_is_replaced_and_its_target_untouched() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        fs::write(&real, "old").unwrap();
        std::os::unix::fs::symlink("real", &link).unwrap();
        let mut output = Output::in_place(&link, "-o").unwrap();
        output.write_all(b"new").unwrap();
        output.commit().unwrap();
        assert!(!link.is_symlink());
        assert_eq!((fs::read(&real).unwrap(), fs::read(&link).unwrap()), (b"old".to_vec(), b"new".to_vec()));
    }

    #[test]
    fn a_private_file_stays_private_and_a_killed_process_is_not_in_the_way() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(dir.path().join(format!(".out.{}.partial", std::process::id())), "left").unwrap();
        Output::file(&path, "-o").unwrap().commit().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read(&path).unwrap(), b"");
        let long = dir.path().join("n".repeat(255));
        Output::file(&long, "-o").unwrap().commit().unwrap();
        assert!(long.is_file());
    }

    #[test]
    fn an_impossible_place_is_refused_in_one_sentence() {
        let dir = tempfile::tempdir().unwrap();
        for path in [dir.path().join("no/such/dir/f"), dir.path().to_owned()] {
            let said = Output::file(&path, "--predictions").unwrap_err().to_string();
            assert!(said.starts_with("--predictions: cannot write ") && !said.contains('\n'), "{said}");
        }
        assert_eq!(names(dir.path()), Vec::<String>::new());
    }

    /// It made a file of that name.
    #[test]
    fn what_means_standard_output_is_refused_and_a_file_of_that_name_has_a_path() {
        let said = Output::file(Path::new("-"), "-o").unwrap_err().to_string();
        assert_eq!(said, "-o: cannot write - (standard output, where a file is expected); name another file");
        let dir = tempfile::tempdir().unwrap();
        Output::file(&dir.path().join("-"), "-o").unwrap().commit().unwrap();
        assert_eq!(names(dir.path()), ["-"]);
    }

    #[test]
    fn a_device_is_written_through_and_its_refusal_is_seen() {
        let mut output = Output::file(Path::new("/dev/full"), "--answers").unwrap();
        output.write_all(b"x").unwrap();
        assert_eq!(output.commit().unwrap_err().kind(), std::io::ErrorKind::StorageFull);
        assert!(!fs::metadata("/dev/full").unwrap().is_file());
    }
}
