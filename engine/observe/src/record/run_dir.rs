//! The directory of one run: `<logs>/<UTC time>-<profile>/` with `profile.ron`, `report.json`, `faults.json` and `events.jsonl`.
//!
//! Made by the command line before the engine starts, sealed by it after the engine has ended. Bounded by
//! [`RUNS_OF_ONE_NAME_MAX`] names. Never takes another run's directory: it is created exclusively. Room for the report,
//! [`RESERVED_BYTES`], is taken at the start where the file system does so at once: a disk that fills up during the run
//! does not cost the report.

use super::events::EventSink;
use crate::profile::Profile;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Most runs of one profile that may start in one second in one logs directory.
pub const RUNS_OF_ONE_NAME_MAX: u32 = 1_000;
/// The report of a run.
pub const REPORT: &str = "report.json";
/// Room taken for the report at the start. That of one stream and six threads has 11 KB; its lists grow with both.
const RESERVED_BYTES: u64 = 256 << 10;

/// Why a run directory cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum RunDirError {
    /// The logs directory cannot be made or written.
    #[error(
        "logs directory: found {path} not writable ({source}), expected a directory to write runs into; name one with --logs DIR"
    )]
    Unwritable {
        /// What could not be made.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// Every name is taken.
    #[error(
        "logs directory: found {RUNS_OF_ONE_NAME_MAX} runs named {name}, expected fewer; wait a second or name another directory with --logs DIR"
    )]
    NamesExhausted {
        /// The name without its suffix.
        name: String,
    },
}

/// Writes one file of the run directory `dir` whole or not at all, for a cold thread that does not hold its [`RunDir`].
///
/// # Errors
/// One sentence.
pub fn keep(dir: &Path, name: &str, content: &[u8]) -> Result<(), String> {
    write_whole(dir, name, content).map_err(|error| {
        format!(
            "run directory: found {} not writable ({error}), expected room for {name}; the run went on without it",
            dir.display()
        )
    })
}

/// What a run directory lacks.
#[derive(Debug)]
struct Lost {
    /// Why the first of them could not be written.
    error: io::Error,
    /// Their names.
    files: Vec<String>,
}

/// An open run directory.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    /// Directories above `path` that did not exist before, outermost first.
    made: Vec<PathBuf>,
    /// The report's file under its hidden name, with room for it; `None` where there is no such room.
    reserved: Option<fs::File>,
    unwritable_profile: Option<String>,
    lost: Option<Lost>,
}

impl RunDir {
    /// Makes the directory of a run of `profile` that starts at `started_utc_s`, and `logs` if it does not exist.
    ///
    /// # Errors
    ///
    /// [`RunDirError`]; nothing is left behind then.
    pub fn create(logs: &Path, profile: &str, started_utc_s: i64) -> Result<RunDir, RunDirError> {
        let made = make_parents(logs)?;
        let name = format!("{}-{}", utc_name(started_utc_s), plain(profile));
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

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file of the run's events, `events.jsonl`. It says its own trouble.
    #[must_use]
    pub fn events(&self) -> EventSink {
        EventSink::create(&self.path.join("events.jsonl"))
    }

    /// Writes the profile as it is run, with what the command line laid over it, so that it can be run again.
    pub fn write_profile(&mut self, profile: &Profile) {
        match profile.to_ron() {
            Ok(text) => self.write("profile.ron", text.as_bytes()),
            Err(error) => {
                self.unwritable_profile = Some(format!(
                    "run directory: found a profile that cannot be written ({error}), expected a valid one; the run went on without it"
                ));
            }
        }
    }

    /// Writes one file whole or not at all. What could not be written is told by [`RunDir::trouble`]; the run goes on.
    pub fn write(&mut self, name: &str, content: &[u8]) {
        let reserved = if name == REPORT { self.reserved.take() } else { None };
        let written = match reserved {
            Some(file) => write_reserved(file, &self.path, content),
            None => write_whole(&self.path, name, content),
        };
        match (written, &mut self.lost) {
            (Ok(()), Some(lost)) => lost.files.retain(|file| file != name),
            (Ok(()), None) => {}
            (Err(error), None) => self.lost = Some(Lost { error, files: vec![name.to_owned()] }),
            (Err(_), Some(lost)) if lost.files.iter().any(|file| file == name) => {}
            (Err(_), Some(lost)) => lost.files.push(name.to_owned()),
        }
    }

    /// What the directory lacks, in one sentence.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        let lost = self.lost.as_ref().filter(|lost| !lost.files.is_empty()).map(|lost| {
            format!(
                "run directory: found {} not writable ({}), expected room for {}; free some or name another place with --logs DIR; the run has no such file",
                self.path.display(),
                lost.error,
                lost.files.join(", ")
            )
        });
        lost.or_else(|| self.unwritable_profile.clone())
    }

    /// Removes the directory and all that was made for it: the run did not start.
    pub fn abandon(self) {
        // Nothing can be done about a directory that will not go; the start's own error is what is said.
        let _ = fs::remove_dir_all(&self.path);
        remove_empty(&self.made);
    }
}

/// Makes `dir` and what is missing above it; returns what was made.
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

/// Removes directories that are empty, innermost first.
fn remove_empty(made: &[PathBuf]) {
    for path in made.iter().rev() {
        // Another run may have put something there meanwhile; then it stays.
        let _ = fs::remove_dir(path);
    }
}

fn write_whole(dir: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    let hidden = hidden_name(dir, name);
    let written = fs::File::create(&hidden).and_then(|mut file| file.write_all(content));
    appear(written, &hidden, &dir.join(name))
}

/// The same into a file that has room already; what it does not need of that is given back.
fn write_reserved(mut file: fs::File, dir: &Path, content: &[u8]) -> io::Result<()> {
    let written = file.write_all(content).and_then(|()| file.set_len(content.len() as u64));
    appear(written, &hidden_name(dir, REPORT), &dir.join(REPORT))
}

/// Lets a file that was written appear under its name, and removes one that was not.
fn appear(written: io::Result<()>, hidden: &Path, place: &Path) -> io::Result<()> {
    let moved = written.and_then(|()| fs::rename(hidden, place));
    if moved.is_err() {
        let _ = fs::remove_file(hidden);
    }
    moved
}

fn hidden_name(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!(".{name}.partial"))
}

/// A file with room for the report and no bytes yet.
#[cfg(target_os = "linux")]
fn reserve(hidden: &Path) -> Option<fs::File> {
    let file = fs::File::create_new(hidden).ok()?;
    let reserved = rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::KEEP_SIZE, 0, RESERVED_BYTES);
    if reserved.is_err() {
        // The file system cannot, or has no room even now: what is written later says so.
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
    jiff::Timestamp::from_second(utc_s)
        .map_or_else(|_| utc_s.to_string(), |time| time.strftime("%Y%m%dT%H%M%SZ").to_string())
}

/// A profile's name as part of a file name.
fn plain(profile: &str) -> String {
    let kept = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' };
    profile.chars().take(64).map(kept).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{RunDir, plain, utc_name};
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
    fn an_abandoned_run_spares_its_neighbours() {
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
    fn a_directory_that_went_away_degrades_with_one_sentence() {
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
    fn room_for_the_report_is_taken_at_the_start_and_given_back_at_the_end() {
        use super::{REPORT, RESERVED_BYTES, hidden_name};
        use std::os::unix::fs::MetadataExt;
        let logs = tempfile::tempdir().unwrap();
        let mut run = RunDir::create(logs.path(), "lab", 0).unwrap();
        let hidden = hidden_name(run.path(), REPORT);
        match fs::metadata(&hidden) {
            Ok(found) => assert!(found.blocks() * 512 >= RESERVED_BYTES && found.len() == 0, "{found:?}"),
            Err(_) => eprintln!("skipped: the file system of {} reserves no room", logs.path().display()),
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
    fn names_are_plain() {
        assert_eq!(plain("../a b/lab.ron"), ".._a_b_lab.ron");
        assert_eq!(utc_name(1_770_000_000), "20260202T024000Z");
    }
}
