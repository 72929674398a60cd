//! Finds the run that an option names: a directory, a name in the directory of runs, or `last`.
//!
//! Only reads the directory of runs.

use super::places::{self, UserPaths};
use super::refusal::Refusal;
use super::say;
use super::values::time;
use clap::Args as ClapArgs;
use pinwheel_engine::files;
use pinwheel_engine::record::tape::{FILE, Tape};
use pinwheel_engine::units::{Nanos, Ticks};
use std::fs;
use std::path::{Path, PathBuf};

pub use pinwheel_report::runs::{empty, notes, open};
use pinwheel_report::runs::{list, of_name};

/// Options that name a run.
#[derive(Debug, Clone, ClapArgs)]
pub struct RunName {
    /// A run: its directory, its name in the directory of runs, or last
    #[arg(value_name = "RUN")]
    pub run: String,
    /// Directory of runs [default: the checkout's logs, else $XDG_STATE_HOME/pinwheel]
    #[arg(long, value_name = "DIR")]
    pub logs: Option<PathBuf>,
}

/// The directory of the named run; prints its owner if it is another user.
///
/// # Errors
/// If there is no such run.
pub fn find(run: &str, logs: Option<&Path>, user_paths: &UserPaths) -> Result<PathBuf, Refusal> {
    let found = named(run, logs, user_paths)?;
    if let Ok(metadata) = fs::metadata(&found) {
        report_owner(&format!("run {}", found.display()), files::owner(&metadata));
    }
    Ok(found)
}

/// Prints that something belongs to another user.
pub fn report_owner(what: &str, owner: u32) {
    if owner != files::our_uid() {
        say::people(&format!("pinwheel: {what} belongs to user {owner}"));
    }
}

fn named(run: &str, logs: Option<&Path>, user_paths: &UserPaths) -> Result<PathBuf, Refusal> {
    let given = user_paths.working_dir.join(run);
    if given.is_dir() || given.is_file() {
        // A recording that is named itself stands for its run.
        let run = given.parent().filter(|_| given.is_file() && given.ends_with(FILE));
        return Ok(run.map(Path::to_owned).unwrap_or(given));
    }
    let logs = places::logs(logs, user_paths)?;
    let runs = list(&logs);
    of_name(&runs, run).cloned().ok_or_else(|| {
        let newest = runs.last().and_then(|path| path.file_name()).map(|name| name.to_string_lossy().into_owned());
        let remedy = newest.map_or_else(
            || "make one with pinwheel run, or name a directory with --logs DIR".to_owned(),
            |newest| format!("the newest there is {newest}"),
        );
        let found = format!("none in {}", logs.display());
        Refusal::unusable(format!("run {run}"), found, "a run's directory, its name, or last", remedy)
    })
}

/// A moment of a recording, from `--at`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Time after the engine's start.
    Since(Nanos),
    /// Time before the end.
    Before(Nanos),
}

/// `12.5s`, `1m`: after the start; `-5s`: before the end; `end`.
pub fn when(text: &str) -> Result<When, String> {
    let span = |text: &str| {
        let found = if text == "0" { Ok(Nanos(0)) } else { time(text).map(|d| Nanos(d.as_nanos() as u64)) };
        found.map_err(|_| format!("found {text}, expected a time after the start like 12.5s or 2m, one before the end like -5s, or end; write it with its unit"))
    };
    match text.strip_prefix('-') {
        _ if text == "end" => Ok(When::Before(Nanos(0))),
        Some(before) => span(before).map(When::Before),
        None => span(text).map(When::Since),
    }
}

/// The tick of a moment; `None` if the recording holds no snapshot.
pub fn tick(tape: &Tape, when: When) -> Option<Ticks> {
    let (first, last) = tape.span()?;
    let at = match when {
        When::Since(since) => tape.tick_at(since),
        When::Before(before) => Ticks(last.0.saturating_sub(tape.rate().ticks(before).0)),
    };
    Some(at.clamp(first, last))
}

/// A message if the moment lies outside the recording; the nearest snapshot is then shown.
pub fn outside(tape: &Tape, when: When) -> Option<String> {
    let (first, last) = tape.span()?;
    let is_outside = match when {
        // The time between the engine's start and the first snapshot.
        When::Since(Nanos(0)) => false,
        When::Since(since) => !(first..=last).contains(&tape.tick_at(since)),
        When::Before(before) => tape.rate().ticks(before).0 > last.since(first).0,
    };
    let seconds = |at: Ticks| tape.since_start(at).0 as f64 / 1e9;
    is_outside.then(|| {
        let (first, last) = (seconds(first), seconds(last));
        format!("--at: the moment is outside the recording ({first:.1} s to {last:.1} s); showing the nearest")
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Nanos, When, list, when};
    use std::fs;
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn the_last_run_is_the_newest_although_older_ones_were_renamed() {
        let logs = tempfile::tempdir().unwrap();
        let names = ["before", "20260131T235959Z-lab", "20260201T000000Z-shared", "baseline"];
        for name in names {
            fs::create_dir(logs.path().join(name)).unwrap();
            fs::write(logs.path().join(name).join("profile.ron"), "()").unwrap();
        }
        let found = list(logs.path());
        let found: Vec<_> = found.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(found, ["baseline", "before", "20260131T235959Z-lab", "20260201T000000Z-shared"]);
    }

    #[test]
    fn of_runs_of_one_second_the_last_is_the_one_that_began_last_whatever_its_profile() {
        let logs = tempfile::tempdir().unwrap();
        let names = ["20260131T235959Z-shared", "20260131T235959Z-lab", "20260131T235959Z-lab-2"];
        let more = (3..=10).map(|number| format!("20260131T235959Z-lab-{number}"));
        let names: Vec<String> = names.map(str::to_owned).into_iter().chain(more).collect();
        for (began_ms, name) in (0..).zip(&names) {
            fs::create_dir(logs.path().join(name)).unwrap();
            let profile = fs::File::create(logs.path().join(name).join("profile.ron")).unwrap();
            profile.set_modified(UNIX_EPOCH + Duration::from_millis(began_ms)).unwrap();
        }
        let found = list(logs.path());
        let found: Vec<_> = found.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(found, names);
    }

    #[test]
    fn moments_are_after_the_start_or_before_the_end() {
        assert_eq!(when("12.5s"), Ok(When::Since(Nanos(12_500_000_000))));
        for start in ["0", "0s", "0.0ms"] {
            assert_eq!(when(start), Ok(When::Since(Nanos(0))), "{start}");
        }
        assert_eq!(when("-0s"), Ok(When::Before(Nanos(0))));
        assert_eq!(when("-5s"), Ok(When::Before(Nanos(5_000_000_000))));
        assert_eq!(when("end"), Ok(When::Before(Nanos(0))));
        for text in ["", "5", "-", "--5s", "noon", "s", "-1e9h", "0x", "nans"] {
            assert!(when(text).is_err_and(|said| said.contains("expected")), "{text}");
        }
    }
}
