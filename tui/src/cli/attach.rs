//! `pinwheel attach`: the console on an engine in another process.
//!
//! Runs on the main thread; starts no engine, and leaving it ends none. Bounded by the board and one socket.

use super::args::duration;
use super::engines::{self, Found};
use super::looks::{LooksArgs, Scenery, tell_unkept};
use super::places::{self, Surroundings};
use super::refusal::Refusal;
use super::still::StillArgs;
use super::watch::{Form, LOOK, watch};
use super::{runs, say};
use crate::effect::ConsoleEnd;
use crate::model::View;
use crate::source::Source;
use crate::source::attach::line::{Line, Wire};
use crate::source::attach::{Attach, Attached, Succeeding, Successor};
use crate::term;
use clap::Args as ClapArgs;
use pinwheel_engine::engine::wire::{Ask, Outcome};
use pinwheel_engine::profile::OnHangup;
use pinwheel_engine::record::tape::Tape;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, ClapArgs)]
#[command(group = clap::ArgGroup::new("told").args(["json", "snapshot", "csv"]))]
pub struct AttachArgs {
    /// The engine's process, or its run: a name or a directory [default: the only one there is]
    #[arg(value_name = "PID|RUN")]
    pub engine: Option<String>,
    /// Act on it too: as its user, through its control socket
    #[arg(long)]
    pub control: bool,
    /// Directory of profiles to offer [default: the checkout's, else those built in]
    #[arg(long, value_name = "DIR")]
    pub profiles: Option<PathBuf>,
    /// Print the board as JSON, a line
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub still: StillArgs,
    /// Print it again so often, until the engine ends: 1s, 100ms and in steps of that [default: once]
    #[arg(long, value_name = "D", value_parser = every, allow_hyphen_values = true, requires = "told")]
    pub every: Option<Duration>,
    #[command(flatten)]
    pub looks: LooksArgs,
}

/// A time in which the board is looked at once at least.
fn every(text: &str) -> Result<Duration, String> {
    let every = duration(text)?;
    let least = format!("found {text}, expected 100ms or more: the board is looked at as often as that");
    if every < LOOK { Err(least) } else { Ok(every) }
}

/// What is said to an action without `--control`.
const READ_ONLY: &str = "read-only: found an attached console without --control, expected one with it; attach again with --control, as the engine's user";

pub fn attach(args: &AttachArgs, around: &Surroundings) -> Result<u8, Refusal> {
    if let Some(form) = args.form() {
        let found = engines::find(args.engine.as_deref())?;
        let pid = found.pid;
        let mut source = Attach::new(parts(found, None, Err(READ_ONLY.to_owned()), None));
        return watch(&mut source, pid, form, &args.still, args.every, &args.looks);
    }
    if !term::can_show() {
        let remedy = "run it on a terminal; scripts have --json, --csv and --snapshot, and pinwheel ctl status";
        return Err(Refusal::unusable("attach", term::NONE, "one for the console", remedy));
    }
    let profiles = places::profiles(args.profiles.as_deref(), around)?;
    let scenery = Scenery::plain(OnHangup::Detach, View::Overview);
    let options = args.looks.options(scenery, profiles.as_deref(), around)?;
    let found = engines::find(args.engine.as_deref())?;
    let line = reach(&found);
    let access = match (&line, args.control) {
        (_, false) => Err(READ_ONLY.to_owned()),
        (Ok(_), true) => Ok(()),
        (Err(refused), true) => return Err(Refusal::Usage(refused.clone())),
    };
    let mut source = Attach::new(parts(found, line.ok(), access, profiles));
    let shown = term::run(&mut source, options)?;
    tell_unkept(&shown);
    if let Some(said) = source.lost() {
        say::people(&format!("pinwheel: {said}"));
        return Ok(1);
    }
    Ok(match shown.end {
        ConsoleEnd::Terminated => 128 + SIGTERM as u8,
        ConsoleEnd::Interrupted => 128 + SIGINT as u8,
        ConsoleEnd::Finished | ConsoleEnd::Forced | ConsoleEnd::Killed | ConsoleEnd::HungUp => 0,
    })
}

impl AttachArgs {
    /// What is printed instead of a console.
    fn form(&self) -> Option<Form> {
        let json = self.json.then_some(Form::Json);
        json.or(self.still.csv.then_some(Form::Values)).or(self.still.snapshot.then_some(Form::Screen))
    }
}

/// Whether the engine's socket was reached.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HadLine {
    Yes,
    No,
}

/// What an attached console, or a look without one, is made of.
fn parts(found: Found, line: Option<Line>, access: Result<(), String>, profiles: Option<PathBuf>) -> Attached {
    let notes = found.run_dir.as_deref().and_then(|run| Some(runs::notes(run, &Tape::open(run).ok()?)));
    let had_line = if line.is_some() { HadLine::Yes } else { HadLine::No };
    let successor = successor(found.pid, access.clone(), had_line, profiles.clone());
    Attached {
        follow: found.follow,
        pid: found.pid,
        line,
        access,
        run_dir: found.run_dir,
        notes: notes.unwrap_or_default(),
        profiles,
        successor,
    }
}

/// Looks for the next run of process `pid`, to be attached to as the one before was.
fn successor(pid: u32, access: Result<(), String>, had_line: HadLine, profiles: Option<PathBuf>) -> Successor {
    Box::new(move |before| match engines::after(pid, before) {
        Some(found) => {
            // Of the same user, who was let in before: a connection is made at once, and asked nothing here.
            let wire = found
                .socket
                .as_deref()
                .filter(|_| had_line == HadLine::Yes)
                .map(|socket| Wire::connect(socket, found.uid));
            let line = wire.and_then(Result::ok).and_then(|wire| Line::of(wire).ok());
            Succeeding::Begun(Box::new(parts(found, line, access.clone(), profiles.clone())))
        }
        None if engines::is_there(pid) => Succeeding::Awaited,
        None => Succeeding::Gone,
    })
}

/// The line to its socket, asked one thing so that a refusal is known; else why there is none, in one sentence.
fn reach(found: &Found) -> Result<Line, String> {
    let about = format!("engine of process {}", found.pid);
    let socket = found.socket.as_deref().ok_or_else(|| {
        format!("{about}: found no control socket, expected one in its run directory; its notes say why it has none")
    })?;
    let remedy = "act as its user, or look without --control";
    let refused = |said: String| {
        format!("{about}: found its control socket closed to us ({said}), expected user {}'s; {remedy}", found.uid)
    };
    let mut wire = Wire::connect(socket, found.uid).map_err(|error| refused(error.to_string()))?;
    match wire.ask(Ask::Status, "") {
        Ok(Outcome::Done(_)) => Line::of(wire).map_err(|error| refused(error.to_string())),
        Ok(Outcome::Refused(said)) => Err(format!("{about}: {said}")),
        Err(error) => Err(refused(error.to_string())),
    }
}
