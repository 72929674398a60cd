//! The runs in a logs directory: their manifests, and which runs are kept.
//!
//! On cold threads. Bounded by the profile's [`KeptRuns`]. Removes only directories that are named
//! and filled like a run, never the run that starts, never one that still runs. Follows no link.

use super::tape;
use crate::files;
use crate::profile::KeptRuns;
use serde::{Deserialize, Serialize};
use std::fs::{self, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// File name of a run's manifest.
pub const MANIFEST: &str = "manifest.json";
/// Largest manifest that is read: a command line, and a plan of a few hundred threads.
const MANIFEST_BYTES_MAX: u64 = 4 << 20;

/// Describes a run. Written at its start and again at its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the program.
    pub version: String,
    /// Hash of the board's layout: a program with the same hash can replay the recording.
    pub board_layout: String,
    /// Name of its profile at the start; the profile itself is in the run's directory.
    pub profile: String,
    /// Label given by the operator.
    pub label: String,
    /// Source of its shots.
    pub input: String,
    /// Seed of the sampler; `None` if shots were not drawn.
    pub seed: Option<u64>,
    /// Arguments of the command line.
    pub command: Vec<String>,
    /// Its process id.
    pub pid: u32,
    /// When it started, seconds since 1970.
    pub started_utc_s: i64,
    /// Whether it was made with `--keep`.
    pub keep: bool,
    /// Its threads, with roles and cores.
    pub plan: serde_json::Value,
    /// How it ended; `None` if it still runs or was killed.
    pub ended: Option<Ended>,
}

/// How a run ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// What ended it.
    pub by: String,
    /// The program's exit status.
    pub exit_status: u8,
    /// Number of critical alarms.
    pub critical_alarms: u64,
}

impl Manifest {
    /// The manifest of the run in `dir`; `None` if there is none that can be read.
    pub fn read(dir: &Path) -> Option<Manifest> {
        serde_json::from_slice(&files::read_in(dir, MANIFEST, MANIFEST_BYTES_MAX).ok()?).ok()
    }

    /// Hash of this program's board layout, as manifests give it.
    pub fn layout() -> String {
        format!("{:#x}", crate::board::layout::hash())
    }
}

/// A run in the logs directory.
#[derive(Clone, Debug)]
struct Run {
    path: PathBuf,
    bytes: u64,
    is_protected: bool,
}

/// Result of removing old runs.
#[derive(Debug, Default)]
pub struct Retained {
    /// Runs that were removed.
    pub removed: Vec<PathBuf>,
    /// Runs that could not be removed, with the error.
    pub refused: Vec<(PathBuf, io::Error)>,
}

/// Removes runs in `logs` until the rest is within `kept`. `this` is the run that starts.
pub fn retain(logs: &Path, kept: KeptRuns, this: &Path) -> Retained {
    let mut runs = other_runs(logs, this);
    let bytes_max = u64::from(kept.kept_mb) * 1_000_000;
    let mut bytes: u64 = runs.iter().map(|run| run.bytes).sum();
    // The run that starts is not in the list, but counts.
    let mut count = runs.len() as u64 + 1;
    // Protected runs last; among equals the oldest first, by the time in their names.
    runs.sort_by(|one, other| (one.is_protected, &one.path).cmp(&(other.is_protected, &other.path)));
    let mut retained = Retained::default();
    for run in runs {
        if bytes <= bytes_max && count <= u64::from(kept.kept_runs) {
            break;
        }
        if is_running(&run.path) {
            continue;
        }
        match fs::remove_dir_all(&run.path) {
            Ok(()) => {
                bytes -= run.bytes;
                count -= 1;
                retained.removed.push(run.path);
            }
            Err(error) => retained.refused.push((run.path, error)),
        }
    }
    retained
}

fn other_runs(logs: &Path, this: &Path) -> Vec<Run> {
    let Ok(entries) = fs::read_dir(logs) else { return Vec::new() };
    let this_name = this.file_name();
    entries
        .flatten()
        .filter(|entry| Some(entry.file_name().as_os_str()) != this_name)
        .filter(|entry| is_run_name(&entry.file_name().to_string_lossy()))
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .filter(|path| path.join("profile.ron").is_file())
        .map(|path| {
            let manifest = Manifest::read(&path);
            let is_protected = manifest
                .is_some_and(|manifest| manifest.keep || manifest.ended.is_some_and(|ended| ended.critical_alarms > 0));
            Run { bytes: bytes_of(&path), is_protected, path }
        })
        .collect()
}

/// Whether `name` is that of a run as it was made, which begins with its time: `20260131T235959Z-`…
pub fn is_run_name(name: &str) -> bool {
    let shape = b"dddddddd?dddddd?";
    let bytes = name.as_bytes();
    bytes.len() > 17
        && bytes[8] == b'T'
        && &bytes[15..17] == b"Z-"
        && bytes.iter().zip(shape).all(|(byte, kind)| *kind != b'd' || byte.is_ascii_digit())
}

/// Total size of the files in a run directory, without subdirectories.
fn bytes_of(dir: &Path) -> u64 {
    let files = fs::read_dir(dir).into_iter().flatten().flatten();
    files.filter_map(|file| file.metadata().ok()).map(|found| found.len()).sum()
}

/// Whether the run in `dir` still runs: its recording is locked, or, where no lock tells, its
/// manifest has no end and its process exists.
pub fn is_running(dir: &Path) -> bool {
    if let Ok(file) = files::open_in(dir, tape::FILE) {
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => return true,
            // Nobody has it. Another process may have got the number of the one that wrote it.
            Ok(()) => return false,
            // The file system has no locks.
            Err(TryLockError::Error(_)) => {}
        }
    }
    let unfinished = Manifest::read(dir).filter(|manifest| manifest.ended.is_none());
    unfinished.is_some_and(|manifest| Path::new("/proc").join(manifest.pid.to_string()).exists())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Ended, KeptRuns, MANIFEST, Manifest, is_run_name, is_running, retain};
    use crate::record::tape;
    use std::fs;
    use std::path::{Path, PathBuf};

    fn run(logs: &Path, second: u32, bytes: usize, manifest: &Manifest) -> PathBuf {
        let dir = logs.join(format!("202601010000{second:02}Z-lab").replacen("20260101", "20260101T", 1));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("profile.ron"), "()").unwrap();
        fs::write(dir.join(tape::FILE), vec![0; bytes]).unwrap();
        fs::write(dir.join(MANIFEST), serde_json::to_vec(manifest).unwrap()).unwrap();
        dir
    }

    fn plain() -> Manifest {
        Manifest { ended: Some(Ended::default()), ..Manifest::default() }
    }

    fn critical() -> Manifest {
        Manifest { ended: Some(Ended { critical_alarms: 1, ..Ended::default() }), ..Manifest::default() }
    }

    fn left(logs: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(logs).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn the_oldest_go_first_and_critical_and_kept_runs_last() {
        let logs = tempfile::tempdir().unwrap();
        run(logs.path(), 1, 10, &critical());
        run(logs.path(), 2, 10, &Manifest { keep: true, ..plain() });
        run(logs.path(), 3, 10, &plain());
        run(logs.path(), 4, 10, &plain());
        let this = run(logs.path(), 5, 10, &plain());
        let seconds = |kept_runs| {
            retain(logs.path(), KeptRuns { kept_mb: 10, kept_runs }, &this);
            left(logs.path()).iter().map(|name| name[13..15].to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(seconds(9), ["01", "02", "03", "04", "05"]);
        assert_eq!(seconds(4), ["01", "02", "04", "05"]);
        assert_eq!(seconds(3), ["01", "02", "05"]);
        assert_eq!(seconds(2), ["02", "05"]);
        assert_eq!(seconds(1), ["05"]);
    }

    #[test]
    fn bytes_bound_what_is_kept_too() {
        let logs = tempfile::tempdir().unwrap();
        for second in 1..=4 {
            run(logs.path(), second, 4_000_000, &plain());
        }
        let retained = retain(logs.path(), KeptRuns { kept_mb: 10, kept_runs: 100 }, Path::new("none"));
        assert_eq!((retained.removed.len(), left(logs.path()).len()), (2, 2));
    }

    #[test]
    fn what_still_runs_and_what_is_no_run_is_left_alone() {
        let logs = tempfile::tempdir().unwrap();
        let live = run(logs.path(), 1, 10, &plain());
        let lock = fs::File::open(live.join(tape::FILE)).unwrap();
        lock.try_lock().unwrap();
        assert!(is_running(&live));
        let unrecorded = run(logs.path(), 2, 10, &Manifest { pid: std::process::id(), ..Manifest::default() });
        fs::remove_file(unrecorded.join(tape::FILE)).unwrap();
        fs::create_dir(logs.path().join("20260101T000000Z-other")).unwrap();
        fs::create_dir(logs.path().join("mine")).unwrap();
        fs::write(logs.path().join("mine/profile.ron"), "()").unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let target = run(elsewhere.path(), 1, 10, &plain());
        std::os::unix::fs::symlink(&target, logs.path().join("20260101T000003Z-link")).unwrap();
        let before = left(logs.path());
        retain(logs.path(), KeptRuns { kept_mb: 10, kept_runs: 1 }, Path::new("none"));
        assert_eq!(left(logs.path()), before);
        drop(lock);
        assert!(!is_running(&live));
    }

    #[cfg(unix)]
    #[test]
    fn a_manifest_or_a_recording_that_is_a_link_or_a_fifo_is_not_read_and_not_waited_for() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let logs = tempfile::tempdir().unwrap();
        let dir = run(logs.path(), 1, 10, &Manifest::default());
        assert!(Manifest::read(&dir).is_some());
        fs::rename(dir.join(MANIFEST), logs.path().join("elsewhere")).unwrap();
        std::os::unix::fs::symlink(logs.path().join("elsewhere"), dir.join(MANIFEST)).unwrap();
        assert!(Manifest::read(&dir).is_none());
        for name in [MANIFEST, tape::FILE] {
            fs::remove_file(dir.join(name)).unwrap();
            mknodat(CWD, dir.join(name), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        }
        assert!(Manifest::read(&dir).is_none() && !is_running(&dir));
        assert!(tape::Tape::open(&dir).unwrap_err().to_string().contains("it is a FIFO"));
    }

    #[test]
    fn only_names_of_runs_are_names_of_runs() {
        assert!(is_run_name("20260131T235959Z-lab-2"));
        for name in ["20260131T235959Z-", "20260131T235959-lab", "2026013xT235959Z-lab", "lab", ""] {
            assert!(!is_run_name(name), "{name}");
        }
    }
}
