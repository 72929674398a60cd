//! `pinwheel postmortem`: shows the board that a killed process left.
//!
//! Runs on the main thread; only reads. Bounded by the directory of boards.

use super::console_options::ConsoleArgs;
use super::places::UserPaths;
use super::refusal::Refusal;
use super::replay::{seconds, words};
use super::say::{self, written};
use super::{engines, runs};
use crate::model::View;
use crate::model::derived::utc_ns;
use crate::source::replay::Replay;
use crate::term;
use clap::Args as ClapArgs;
use pinwheel_engine::board::image::{self, BoardFile, Image};
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::board::{self, OwnerState};
use pinwheel_engine::record::tape::{Moment, Tape, TapeError};
use pinwheel_report::moment::moment;
use pinwheel_report::runs::{LeftBoard, left_by, left_of};
use serde_json::{Value, json};
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, ClapArgs)]
pub struct PostmortemArgs {
    /// The killed process or its run; the run's directory holds the board once newer boards exist
    /// [default: the process that ended last]
    #[arg(value_name = "PID|RUN")]
    pub whose: Option<String>,
    /// Directory of runs [default: the checkout's logs, else $XDG_STATE_HOME/pinwheel]
    #[arg(long, value_name = "DIR")]
    pub logs: Option<PathBuf>,
    /// Print the board as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub console: ConsoleArgs,
}

pub fn postmortem(args: &PostmortemArgs, user_paths: &UserPaths) -> Result<u8, Refusal> {
    let directory = board::directory();
    let pid = args.whose.as_deref().and_then(|whose| whose.parse().ok());
    engines::report_invalid_boards(&directory);
    let LeftBoard { file, moment: last } = match args.whose.as_deref().filter(|_| pid.is_none()) {
        Some(run) => match left_by(&directory, run) {
            Some(left) => left,
            None => left_of(&runs::find(run, args.logs.as_deref(), user_paths)?)?,
        },
        None => find(&directory, pid)?,
    };
    runs::report_owner(&format!("board {}", file.path.display()), file.owner);
    let snapshot =
        last.snapshot().ok().flatten().ok_or_else(|| nothing(&directory, pid, "a board whose clock was never set"))?;
    let run = snapshot.recorder.run_dir.clone().map(PathBuf::from).filter(|run| run.is_dir());
    if args.json {
        let about = about(&file, &snapshot, run.as_deref());
        return Ok(written(say::json(&mut io::stdout().lock(), &moment(&snapshot, "postmortem", &about)), 0));
    }
    if term::can_show() {
        // With the run's recording the console can also show the time before; otherwise only the
        // last snapshot.
        let tape = run.as_deref().and_then(|run| Tape::open(run).ok());
        let notes = tape.as_ref().zip(run.as_deref()).map(|(tape, run)| runs::notes(run, tape));
        let mut source = Replay::postmortem(tape, notes.unwrap_or_default(), last);
        return super::replay::console(&mut source, View::Overview, &args.console, user_paths);
    }
    let kept = run.map_or_else(|| "no run directory".to_owned(), |run| format!("run {}", run.display()));
    let title = format!(
        "{} left by process {}, last update {:.1} s after its start; {kept}",
        file.path.display(),
        file.pid,
        seconds(snapshot.at_ns)
    );
    Ok(written(say::text(&mut io::stdout().lock(), &words(&snapshot, &title)), 0))
}

/// Whose board it is, and when its process was last alive.
fn about(file: &BoardFile, snapshot: &Snapshot, run: Option<&Path>) -> Value {
    json!({"board": file.path.display().to_string(), "pid": file.pid,
        "started_utc_s": snapshot.engine.started_utc_s, "last_sign_ns": snapshot.at_ns,
        "last_sign_utc_s": utc_ns(snapshot, snapshot.at_ns) / 1_000_000_000, "run_dir": run})
}

/// The board of the killed process that ended last: a file's own time is that of its engine's start.
fn find(directory: &Path, pid: Option<u32>) -> Result<LeftBoard, Refusal> {
    let (mut last, mut refused) = (None, None);
    for file in image::files(directory).into_iter().filter(|file| pid.is_none_or(|pid| pid == file.pid)) {
        match Image::open(&file.path) {
            Ok((image, OwnerState::Dead)) => {
                let at = image.last_sign().map_err(TapeError::from)?;
                let moment = Moment::new(at, image);
                let ended_ns =
                    moment.snapshot().map_err(TapeError::from)?.map_or(0, |snapshot| utc_ns(&snapshot, snapshot.at_ns));
                if last.as_ref().is_none_or(|(before_ns, _)| ended_ns > *before_ns) {
                    last = Some((ended_ns, LeftBoard { file, moment }));
                }
            }
            Ok((_, OwnerState::Alive)) => {
                refused = Some(format!("process {} still running; see pinwheel dump {}", file.pid, file.pid))
            }
            Err(error) => refused = Some(error.to_string()),
        }
    }
    last.map(|(_, left)| left).ok_or_else(|| nothing(directory, pid, refused.as_deref().unwrap_or("none")))
}

fn nothing(directory: &Path, pid: Option<u32>, found: &str) -> Refusal {
    let whose = pid.map_or_else(|| "a killed process".to_owned(), |pid| format!("process {pid}, killed"));
    let about = format!("boards in {}", directory.display());
    let remedy = "an engine that ended normally leaves none: open its run with pinwheel replay last; boards under \
                  another PINWHEEL_SHM are not searched";
    Refusal::unusable(about, found, format!("the board of {whose}"), remedy)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{about, find, left_of};
    use crate::tests::synthetic::{SyntheticFaults, snapshot};
    use pinwheel_engine::board::image::BoardFile;
    use pinwheel_engine::board::{Board, Place, Shape, set};
    use serde_json::json;
    use std::fs::{self, File};
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn the_board_of_the_process_that_ended_last_is_found_although_another_one_started_later() {
        let folder = tempfile::tempdir().unwrap();
        let shape = Shape { threads: 1, silos: 1, slots: 8, workers: 1, decoders: 1, streams: 1 };
        let board = Board::create(shape, Place::Shared(folder.path().into())).unwrap();
        set(&board.header().nanos_per_tick_q32, 1 << 32);
        board.publish();
        // By process: its start, and its last sign of life after that.
        for (pid, start_s, lived_ns) in [(1u32, 100, 90_000_000_000), (2, 150, 5_000_000_000)] {
            set(&board.header().started_utc_s, start_s);
            set(&board.thread(0).heartbeat, lived_ns);
            let left = folder.path().join(format!("board-{pid}"));
            fs::copy(board.path().unwrap(), &left).unwrap();
            let made = UNIX_EPOCH + Duration::from_secs(start_s);
            File::options().write(true).open(&left).unwrap().set_modified(made).unwrap();
        }
        let found = |pid| find(folder.path(), pid).unwrap().file.pid;
        assert_eq!((found(None), found(Some(2))), (1, 2));
    }

    #[test]
    fn a_board_that_cannot_be_read_and_one_that_is_not_there_are_refused_without_the_remedies_of_an_engine() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("board-1"), "torn").unwrap();
        let torn = find(folder.path(), None).err().unwrap().to_string();
        let none = left_of(&folder.path().join("run")).err().unwrap().to_string();
        for (said, found) in [(torn, "board-1: measuring failed (No data"), (none, "found none, expected the board")] {
            assert!(said.contains(found) && !said.contains("not shared") && !said.contains("mount"), "{said}");
        }
    }

    #[test]
    fn a_start_at_the_end_of_time_that_another_program_wrote_is_printed() {
        let file = BoardFile { path: "board-1".into(), pid: 1, owner: 0 };
        let mut snapshot = snapshot(100, SyntheticFaults::None);
        snapshot.engine.started_utc_s = u64::MAX;
        let told = about(&file, &snapshot, None);
        assert_eq!((&told["last_sign_utc_s"], &told["started_utc_s"]), (&json!(18_446_744_073u64), &json!(u64::MAX)));
    }
}
