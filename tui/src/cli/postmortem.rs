//! `pinwheel postmortem`: the board that a killed process left.
//!
//! Runs on the main thread; reads, and leaves everything where it is. Bounded by the directory of boards.

use super::looks::LooksArgs;
use super::places::Surroundings;
use super::refusal::Refusal;
use super::replay::{moment, seconds, words};
use super::{say, written};
use crate::source::replay::Replay;
use clap::Args as ClapArgs;
use pinwheel_engine::board::image::{self, BoardFile, Image};
use pinwheel_engine::board::{self, Life};
use pinwheel_engine::record::tape::{Moment, Tape};
use serde_json::json;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

#[derive(Debug, ClapArgs)]
pub struct PostmortemArgs {
    /// Process that left it [default: the one that ended last]
    #[arg(value_name = "PID")]
    pub pid: Option<u32>,
    /// Print it as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub looks: LooksArgs,
}

/// A board without its process.
struct Left {
    file: BoardFile,
    moment: Moment,
}

pub fn postmortem(args: &PostmortemArgs, around: &Surroundings) -> Result<u8, Refusal> {
    let directory = board::directory();
    let Left { file, moment: last } = find(&directory, args.pid)?;
    let snapshot = last
        .snapshot()
        .ok()
        .flatten()
        .ok_or_else(|| nothing(&directory, args.pid, "a board whose clock was never set"))?;
    let run = snapshot.recorder.run_dir.clone().map(PathBuf::from).filter(|run| run.is_dir());
    let died_utc_s = snapshot.engine.started_utc_s + snapshot.at_ns / 1_000_000_000;
    if args.json {
        let about = json!({"board": file.path.display().to_string(), "pid": file.pid, "started_utc_s": snapshot.engine.started_utc_s,
            "last_sign_ns": snapshot.at_ns, "last_sign_utc_s": died_utc_s, "run_dir": run});
        return Ok(written(say::json(&mut io::stdout().lock(), &moment(&snapshot, "postmortem", &about)), 0));
    }
    if io::stdin().is_terminal() && io::stdout().is_terminal() {
        // With the run's recording, what led there can be looked at too; without, there is the one picture.
        let tape = run.as_deref().and_then(|run| Tape::open(run).ok());
        let notes = tape.as_ref().zip(run.as_deref()).map(|(tape, run)| super::runs::notes(run, tape));
        let mut source = Replay::postmortem(tape, notes.unwrap_or_default(), last);
        return super::replay::console(&mut source, &args.looks, around);
    }
    let kept = run.map_or_else(|| "no run directory".to_owned(), |run| format!("run {}", run.display()));
    let title = format!(
        "{} left by process {}, last sign of life {:.1} s after its start; {kept}",
        file.path.display(),
        file.pid,
        seconds(snapshot.at_ns)
    );
    Ok(written(say::text(&mut io::stdout().lock(), &words(&snapshot, &title)), 0))
}

fn find(directory: &Path, pid: Option<u32>) -> Result<Left, Refusal> {
    let mut refused = None;
    for file in image::files(directory).into_iter().filter(|file| pid.is_none_or(|pid| pid == file.pid)) {
        match Image::open(&file.path) {
            Ok((image, Life::Dead)) => {
                let at = image.last_sign().map_err(pinwheel_engine::record::tape::TapeError::from)?;
                return Ok(Left { file, moment: Moment { at, image } });
            }
            Ok((_, Life::Alive)) => {
                refused = Some(format!("process {} alive; see pinwheel dump {}", file.pid, file.pid))
            }
            Err(error) => refused = Some(error.to_string()),
        }
    }
    Err(nothing(directory, pid, refused.as_deref().unwrap_or("none")))
}

fn nothing(directory: &Path, pid: Option<u32>, found: &str) -> Refusal {
    let whose = pid.map_or_else(|| "a killed process".to_owned(), |pid| format!("process {pid}, killed"));
    let about = format!("boards in {}", directory.display());
    let remedy = "an engine that ended in order leaves none: look at its run with pinwheel replay last; boards of another machine or PINWHEEL_SHM lie elsewhere";
    Refusal::unusable(about, found, format!("the board of {whose}"), remedy)
}
