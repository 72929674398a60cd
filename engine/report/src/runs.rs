//! What a run left in its directory: its recording, its notes, and the board of a killed engine.
//!
//! Only reads. Follows no link in a run's directory, and opens no file that is not its owner's.

use crate::unusable::Unusable;
use pinwheel_engine::board::image::{self, BoardFile, Image};
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::board::{self, OwnerState, dead};
use pinwheel_engine::files::{self, OpenError};
use pinwheel_engine::record::EVENTS_BYTES_MAX;
use pinwheel_engine::record::runs::{Manifest, is_run_name};
use pinwheel_engine::record::tape::{Moment, Tape, TapeError};
use pinwheel_engine::units::Ticks;
use serde_json::Value;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Largest JSON file of a run; its lists grow with streams and threads.
const JSON_BYTES_MAX: u64 = 16 << 20;

/// Length of the time in a run's name.
const UTC_BYTES: usize = "20260131T235959Z".len();

/// Why a run, or its recording, cannot be read.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum RunError {
    #[error(transparent)]
    Tape(#[from] TapeError),
    #[error("{error} (it was made by version {version})")]
    Version { error: TapeError, version: String },
    #[error(transparent)]
    Unusable(#[from] Unusable),
}

/// Opens a run's recording; an error names the version that made it, if it differs from this one.
///
/// # Errors
/// [`RunError`], one sentence.
pub fn open(dir: &Path) -> Result<Tape, RunError> {
    Tape::open(dir).map_err(|error| match Manifest::read(dir).map(|manifest| manifest.version) {
        Some(version) if version != env!("CARGO_PKG_VERSION") => RunError::Version { error, version },
        _ => error.into(),
    })
}

/// The runs in `logs`, oldest first, after those that were renamed: their names do not say when
/// they were. Runs of one second are in the order in which their profiles were written.
pub fn list(logs: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(logs).into_iter().flatten().flatten();
    let run = |path: PathBuf| {
        let profile = fs::metadata(path.join("profile.ron")).ok().filter(fs::Metadata::is_file)?;
        let name = path.file_name()?.to_string_lossy().into_owned();
        let began = is_run_name(&name).then(|| (name[..UTC_BYTES].to_owned(), profile.modified().ok()));
        Some((began, path))
    };
    let mut runs: Vec<_> = entries.filter_map(|entry| run(entry.path())).collect();
    runs.sort();
    runs.into_iter().map(|(_, path)| path).collect()
}

/// The run of this name among `runs`; the last of them by the name `last`.
pub fn of_name<'a>(runs: &'a [PathBuf], name: &str) -> Option<&'a PathBuf> {
    let is_its = |path: &&PathBuf| path.file_name().is_some_and(|found| found.to_string_lossy() == name);
    if name == "last" { runs.last() } else { runs.iter().find(is_its) }
}

/// The refusal of a recording without a snapshot.
pub fn empty(dir: &Path) -> Unusable {
    let remedy = "the run ended within its first tenth of a second; see its report.json";
    Unusable::new(format!("recording of {}", dir.display()), "no complete snapshot", "at least one", remedy)
}

/// Lines of the run's event log, one JSON object each; empty without one.
pub fn events(dir: &Path) -> String {
    let bytes = files::read_in(dir, "events.jsonl", EVENTS_BYTES_MAX).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Notes of the run's event log: nanoseconds since the engine's start, and text.
pub fn notes(dir: &Path, tape: &Tape) -> Vec<(u64, String)> {
    let text = events(dir);
    let lines = text.lines().filter(|line| line.contains("\"event\":\"note\""));
    lines
        .filter_map(|line| {
            let line: Value = serde_json::from_str(line).ok()?;
            let at = tape.since_start(Ticks(line.get("ticks")?.as_u64()?));
            Some((at.0, line.get("text")?.as_str()?.to_owned()))
        })
        .collect()
}

/// A JSON file of a run; `None` if there is none.
///
/// # Errors
/// Why it cannot be used: it cannot be read, or it is damaged.
pub fn json_of(dir: &Path, name: &str) -> Result<Option<Value>, String> {
    match files::read_in(dir, name, JSON_BYTES_MAX) {
        Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| error.to_string()),
        Err(OpenError::System(error)) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

/// A board whose process has ended.
pub struct LeftBoard {
    /// Its file.
    pub file: BoardFile,
    /// Its last sign of life.
    pub moment: Moment,
}

/// The last state of the killed engine of the run in `dir`, from the board that it left; `None` if it left none.
pub fn last_state(dir: &Path) -> Option<Snapshot> {
    left_of(dir).ok()?.moment.snapshot().ok()?
}

/// Finds the board of the killed engine of the run in `run`: among the newest ones, or in the run's directory, into
/// which older ones are moved.
///
/// # Errors
/// [`RunError`], one sentence.
pub fn left_of(run: &Path) -> Result<LeftBoard, RunError> {
    left_by(&board::directory(), &run.display().to_string()).map_or_else(|| left_in(run), Ok)
}

fn left_in(run: &Path) -> Result<LeftBoard, RunError> {
    let path = run.join(dead::FILE);
    let refused = |found: String| {
        let remedy = "the four newest boards are found by process; an engine that ended normally leaves none, use \
                      pinwheel replay";
        Unusable::new(format!("run {}", run.display()), found, "the board of its killed engine", remedy)
    };
    if fs::symlink_metadata(&path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        return Err(refused("none".to_owned()).into());
    }
    let (image, _) = Image::open(&path).map_err(|error| refused(error.to_string()))?;
    let at = image.last_sign().map_err(TapeError::from)?;
    let pid = image.pid();
    let owner = fs::symlink_metadata(&path).map_or_else(|_| files::our_uid(), |metadata| files::owner(&metadata));
    Ok(LeftBoard { file: BoardFile { path, pid, owner }, moment: Moment::new(at, image) })
}

/// The board of an ended process in `directory` whose run has this name or directory. A board of a
/// user who is neither the owner of that directory nor ours nor root is not of that run, whatever
/// it says.
pub fn left_by(directory: &Path, run: &str) -> Option<LeftBoard> {
    let wanted = Path::new(run).canonicalize().ok();
    image::files(directory).into_iter().find_map(|file| {
        let (image, owner_state) = Image::open(&file.path).ok()?;
        let dir = PathBuf::from(image.board().ok()?.recorder().run_dir.read());
        // Where the system maps root to nobody, root's own directory is nobody's.
        let is_owners = [0, files::our_uid()].contains(&file.owner)
            || fs::metadata(&dir).map_or(true, |found| files::owner(&found) == file.owner);
        let is_named =
            dir.file_name().is_some_and(|name| name == run) || (wanted.is_some() && dir.canonicalize().ok() == wanted);
        let at = image.last_sign().ok()?;
        (owner_state == OwnerState::Dead && is_named && is_owners)
            .then_some(LeftBoard { file, moment: Moment::new(at, image) })
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::left_by;
    use pinwheel_engine::board::{Board, Place, Shape, set};
    use std::fs;
    use std::os::unix::fs::chown;

    #[test]
    fn a_board_of_another_user_is_not_of_our_run_whatever_it_says() {
        let (boards, run) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let shape = Shape { threads: 1, silos: 1, slots: 8, workers: 1, decoders: 1, streams: 1 };
        let board = Board::create(shape, Place::Shared(boards.path().into())).unwrap();
        set(&board.header().nanos_per_tick_q32, 1 << 32);
        board.recorder().run_dir.write(&run.path().display().to_string());
        board.publish();
        // No process has its lock.
        let left = boards.path().join("board-1");
        fs::copy(board.path().unwrap(), &left).unwrap();
        let found = || left_by(boards.path(), &run.path().display().to_string()).map(|left| left.file.pid);
        assert_eq!(found(), Some(1));
        match chown(&left, Some(1), None) {
            Ok(()) => assert_eq!(found(), None),
            Err(_) => eprintln!("skipped: only root gives a file away"),
        }
    }
}
