//! The directory of one run: `<logs>/<UTC time>-<profile>/` with `profile.ron`, `report.json`,
//! `faults.json` and `events.jsonl`.
//!
//! Made by the command line before the engine starts, completed by it after the engine has ended.
//! Bounded by [`RUNS_OF_ONE_NAME_MAX`] names. Never uses another run's directory: it is created
//! exclusively. Space for the report, [`RESERVED_BYTES`], is reserved at the start where the file
//! system can do so at once, so that a full disk does not cost the report.

use super::events::EventSink;
use crate::clock::utc_text;
use crate::profile::Profile;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Most runs of one profile that may start in one second in one logs directory.
pub const RUNS_OF_ONE_NAME_MAX: u32 = 1_000;
/// File name of a run's report.
pub const REPORT: &str = "report.json";
/// Space reserved for the report. A report of one stream and six threads has 11 KB; it grows with
/// both.
const RESERVED_BYTES: u64 = 256 << 10;

/// Why a run directory cannot be made.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum RunDirError {
    #[error("logs directory: cannot write {path} ({source}); name another with --logs DIR")]
    Unwritable { path: String, source: io::Error },
    #[error(
        "logs directory: it has {RUNS_OF_ONE_NAME_MAX} runs named {name}, the most possible; wait a second or \
        name another directory with --logs DIR"
    )]
    NamesExhausted { name: String },
}

/// Writes a complete file into the run directory `dir`, or none, for a cold thread that does not
/// hold its [`RunDir`].
///
/// # Errors
/// One sentence.
pub fn write_file(dir: &Path, name: &str, content: &[u8]) -> Result<(), String> {
    write_whole(dir, name, content).map_err(|error| {
        format!("run directory: cannot write {name} in {} ({error}); the run continued without it", dir.display())
    })
}

/// Files that the run directory lacks.
#[derive(Debug)]
struct MissingFiles {
    /// The error of the first of them.
    error: io::Error,
    /// Their names.
    files: Vec<String>,
}

/// An open run directory.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    /// Directories above `path` that were made for it, outermost first.
    made: Vec<PathBuf>,
    /// The report's file under its hidden name, with reserved space; `None` if none could be
    /// reserved.
    reserved: Option<fs::File>,
    unwritable_profile: Option<String>,
    lost: Option<MissingFiles>,
}

impl RunDir {
    /// Makes the directory for a run of `profile` that starts at `started_utc_s`, and `logs` if it
    /// does not exist.
    ///
    /// # Errors
    ///
    /// [`RunDirError`]; no directory is left behind.
    pub fn create(logs: &Path, profile: &str, started_utc_s: i64) -> Result<RunDir, RunDirError> {
        let made = make_parents(logs)?;
        let name = format!("{}-{}", utc_name(started_utc_s), file_name_part(profile));
        for attempt in 1..=RUNS_OF_ONE_NAME_MAX {
            let path = if attempt == 1 { logs.join(&name) } else { logs.join(format!("{name}-{attempt}")) };
            match fs::create_dir(&path) {
                Ok(()) => {
                    let reserved = reserve(&hidden_name(&path, REPORT));
                    return Ok(RunDir { path, made, reserved, unwritable_profile: None, lost: None });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(source) => {
                    remove_empty(&made);
                    return Err(RunDirError::Unwritable { path: logs.display().to_string(), source });
                }
            }
        }
        remove_empty(&made);
        Err(RunDirError::NamesExhausted { name })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The run's event file, `events.jsonl`. It reports its own errors.
    pub fn events(&self) -> EventSink {
        EventSink::create(&self.path.join("events.jsonl"))
    }

    /// Writes the profile as it is run, including settings from the command line, so that it can be
    /// run again.
    pub fn write_profile(&mut self, profile: &Profile) {
        match profile.to_ron() {
            Ok(text) => self.write("profile.ron", text.as_bytes()),
            Err(error) => {
                self.unwritable_profile =
                    Some(format!("run directory: cannot write profile.ron ({error}); the run continued without it"));
            }
        }
    }

    /// Writes a complete file, or none. [`RunDir::trouble`] reports failures; the run goes on.
    pub fn write(&mut self, name: &str, content: &[u8]) {
        let reserved = if name == REPORT { self.reserved.take() } else { None };
        let written = match reserved {
            Some(file) => write_reserved(file, &self.path, content),
            None => write_whole(&self.path, name, content),
        };
        match (written, &mut self.lost) {
            (Ok(()), Some(lost)) => lost.files.retain(|file| file != name),
            (Ok(()), None) => {}
            (Err(error), None) => self.lost = Some(MissingFiles { error, files: vec![name.to_owned()] }),
            (Err(_), Some(lost)) if lost.files.iter().any(|file| file == name) => {}
            (Err(_), Some(lost)) => lost.files.push(name.to_owned()),
        }
    }

    /// The files that could not be written, in one sentence.
    pub fn trouble(&self) -> Option<String> {
        let lost = self.lost.as_ref().filter(|lost| !lost.files.is_empty()).map(|lost| {
            format!(
                "run directory: cannot write {} ({}), so the run lacks {}; free some space or name another \
                directory with --logs DIR",
                self.path.display(),
                lost.error,
                lost.files.join(", ")
            )
        });
        lost.or_else(|| self.unwritable_profile.clone())
    }

    /// Removes the directory and the ones made for it, because the run did not start.
    pub fn abandon(self) {
        // Errors are ignored: the start's own error is reported.
        let _ = fs::remove_dir_all(&self.path);
        remove_empty(&self.made);
    }
}

/// Makes `dir` and missing directories above it; returns those that it made.
fn make_parents(dir: &Path) -> Result<Vec<PathBuf>, RunDirError> {
    let missing: Vec<PathBuf> = dir
        .ancestors()
        .take_while(|above| !above.as_os_str().is_empty() && !above.exists())
        .map(Path::to_owned)
        .collect();
    let mut made = Vec::new();
    for path in missing.into_iter().rev() {
        match fs::create_dir(&path) {
            Ok(()) => made.push(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {}
            Err(source) => {
                remove_empty(&made);
                return Err(RunDirError::Unwritable { path: dir.display().to_string(), source });
            }
        }
    }
    Ok(made)
}

/// Removes those of the directories that are empty, innermost first.
fn remove_empty(made: &[PathBuf]) {
    for path in made.iter().rev() {
        // It stays if another run has put something there meanwhile.
        let _ = fs::remove_dir(path);
    }
}

fn write_whole(dir: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    let hidden = hidden_name(dir, name);
    let written = fs::File::create(&hidden).and_then(|mut file| file.write_all(content));
    rename_into_place(written, &hidden, &dir.join(name))
}

/// Writes into a file with reserved space; returns the space that is not needed.
fn write_reserved(mut file: fs::File, dir: &Path, content: &[u8]) -> io::Result<()> {
    let written = file.write_all(content).and_then(|()| file.set_len(content.len() as u64));
    rename_into_place(written, &hidden_name(dir, REPORT), &dir.join(REPORT))
}

/// Renames a file that was written to its final name; removes one that was not.
fn rename_into_place(written: io::Result<()>, hidden: &Path, place: &Path) -> io::Result<()> {
    let moved = written.and_then(|()| fs::rename(hidden, place));
    if moved.is_err() {
        let _ = fs::remove_file(hidden);
    }
    moved
}

fn hidden_name(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!(".{name}.partial"))
}

/// A file with space for the report and no content yet.
#[cfg(target_os = "linux")]
fn reserve(hidden: &Path) -> Option<fs::File> {
    let file = fs::File::create_new(hidden).ok()?;
    let reserved = rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::KEEP_SIZE, 0, RESERVED_BYTES);
    if reserved.is_err() {
        // The file system cannot reserve space: a later write reports it.
        let _ = fs::remove_file(hidden);
        return None;
    }
    Some(file)
}

#[cfg(not(target_os = "linux"))]
fn reserve(_: &Path) -> Option<fs::File> {
    None
}

/// `20260131T235959Z`; the raw seconds for a time outside the calendar.
fn utc_name(utc_s: i64) -> String {
    utc_text(utc_s).map_or_else(|| utc_s.to_string(), |text| text.replace(['-', ':'], ""))
}

/// A profile's name with only characters that are safe in a file name.
fn file_name_part(profile: &str) -> String {
    let kept = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' };
    profile.chars().take(64).map(kept).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{RunDir, file_name_part, utc_name};
    use crate::profile::Profile;
    use std::fs;

    #[test]
    fn two_runs_in_one_second_get_two_directories() {
        let logs = tempfile::tempdir().unwrap();
        let first = RunDir::create(logs.path(), "lab", 0).unwrap();
        let second = RunDir::create(logs.path(), "lab", 0).unwrap();
        assert_eq!(first.path(), logs.path().join("19700101T000000Z-lab"));
        assert_eq!(second.path(), logs.path().join("19700101T000000Z-lab-2"));
    }

    #[test]
    fn the_profile_that_is_kept_can_be_run_again() {
        let logs = tempfile::tempdir().unwrap();
        let (mut profile, _) = Profile::load("lab", None).unwrap();
        profile.limits.late_us = 77;
        let mut run = RunDir::create(logs.path(), "lab", 0).unwrap();
        run.write_profile(&profile);
        let kept = run.path().join("profile.ron");
        assert_eq!(Profile::load(kept.to_str().unwrap(), None).unwrap().0, profile);
        assert_eq!(run.trouble(), None);
    }

    #[test]
    fn an_abandoned_run_leaves_nothing_behind() {
        let root = tempfile::tempdir().unwrap();
        let mut run = RunDir::create(&root.path().join("state/pinwheel/logs"), "lab", 0).unwrap();
        run.write("profile.ron", b"()");
        run.abandon();
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    }

    #[test]
    fn an_abandoned_run_removes_no_other_run() {
        let root = tempfile::tempdir().unwrap();
        let logs = root.path().join("logs");
        let first = RunDir::create(&logs, "lab", 0).unwrap();
        let second = RunDir::create(&logs, "lab", 0).unwrap();
        first.abandon();
        assert!(second.path().is_dir());
    }

    #[test]
    fn logs_that_are_a_file_are_refused_in_one_sentence() {
        let root = tempfile::tempdir().unwrap();
        let logs = root.path().join("logs");
        fs::write(&logs, "").unwrap();
        for place in [logs.clone(), logs.join("deeper")] {
            let said = RunDir::create(&place, "lab", 0).unwrap_err().to_string();
            assert!(said.contains("--logs DIR") && !said.contains('\n'), "{said}");
        }
    }

    #[test]
    fn a_removed_directory_is_reported_in_one_sentence() {
        let logs = tempfile::tempdir().unwrap();
        let mut run = RunDir::create(logs.path(), "lab", 0).unwrap();
        run.write("profile.ron", b"()");
        assert_eq!(run.trouble(), None);
        fs::remove_dir_all(run.path()).unwrap();
        run.write("report.json", b"{}");
        run.write("faults.json", b"[]");
        let said = run.trouble().unwrap();
        assert!(said.contains("report.json, faults.json") && !said.contains("profile.ron"), "{said}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn space_for_the_report_is_reserved_at_the_start_and_freed_at_the_end() {
        use super::{REPORT, RESERVED_BYTES, hidden_name};
        use std::os::unix::fs::MetadataExt;
        let logs = tempfile::tempdir().unwrap();
        let mut run = RunDir::create(logs.path(), "lab", 0).unwrap();
        let hidden = hidden_name(run.path(), REPORT);
        match fs::metadata(&hidden) {
            Ok(found) => assert!(found.blocks() * 512 >= RESERVED_BYTES && found.len() == 0, "{found:?}"),
            Err(_) => eprintln!("skipped: the file system of {} reserves no space", logs.path().display()),
        }
        run.write(REPORT, b"{}");
        assert!(!hidden.exists() && run.trouble().is_none());
        let kept = fs::metadata(run.path().join(REPORT)).unwrap();
        assert!(kept.len() == 2 && kept.blocks() * 512 < RESERVED_BYTES, "{kept:?}");
        let longer = vec![b' '; 2 * usize::try_from(RESERVED_BYTES).unwrap()];
        let mut other = RunDir::create(logs.path(), "lab", 0).unwrap();
        other.write(REPORT, &longer);
        assert_eq!(fs::read(other.path().join(REPORT)).unwrap(), longer);
    }

    #[test]
    fn names_have_only_safe_characters() {
        assert_eq!(file_name_part("../a b/lab.ron"), ".._a_b_lab.ron");
        assert_eq!(utc_name(1_770_000_000), "20260202T024000Z");
    }
}
