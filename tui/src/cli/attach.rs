//! `pinwheel attach`: opens the console on an engine in another process.
//!
//! Runs on the main thread. Starts no engine, and ends none on exit. Uses the board and one socket.

mod ssh;

use super::console_options::{ConsoleArgs, FirstScreen, say_unsaved};
use super::engines::{self, RunningEngine};
use super::places::{self, UserPaths};
use super::refusal::Refusal;
use super::screen_output::ScreenArgs;
use super::values::duration;
use super::watch::{Form, POLL_INTERVAL, watch};
use super::{hosts, runs, say};
use crate::effect::ConsoleEnd;
use crate::source::Source;
use crate::source::attach::line::Line;
use crate::source::attach::{Attach, Attached, Succeeding, Successor};
use crate::source::other_host::OtherHost;
use crate::term::{self, Options};
use clap::Args as ClapArgs;
use pinwheel_engine::engine::Command;
use pinwheel_engine::profile::OnHangup;
use pinwheel_engine::record::tape::Tape;
use pinwheel_report::control::Wire;
use rustix::process::{ioctl_tiocsctty, setsid};
use signal_hook::consts::{SIGINT, SIGTERM};
use ssh::Remote;
use std::io::stdin;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, ClapArgs)]
#[command(group = clap::ArgGroup::new("output").args(["json", "snapshot", "svg", "csv"]))]
pub struct AttachArgs {
    /// The engine's process, or its run: a name or a directory [default: the only running engine]; with
    /// ssh:HOST before it, as in ssh:HOST or ssh:HOST:RUN, that of another machine; host:NAME is a host of
    /// the cluster, read-only, by the engine here that shares streams with it
    #[arg(value_name = "PID|RUN|ssh:HOST[:RUN]|host:NAME[:RUN]")]
    pub engine: Option<String>,
    /// With ssh:HOST: this program's name or path on that host [default: pinwheel]
    #[arg(long, value_name = "PATH")]
    pub program: Option<String>,
    /// Allow commands, through the engine's control socket and as its user
    #[arg(long)]
    pub control: bool,
    /// Directory of profiles to offer [default: the checkout's, else those built in]
    #[arg(long, value_name = "DIR")]
    pub profiles: Option<PathBuf>,
    /// Print the board as one line of JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub screen: ScreenArgs,
    /// Print again at this interval until the engine ends: a multiple of 100ms, such as 1s
    /// [default: once]
    #[arg(long, value_name = "D", value_parser = every, allow_hyphen_values = true, requires = "output", conflicts_with = "svg")]
    pub every: Option<Duration>,
    #[command(flatten)]
    pub console: ConsoleArgs,
    /// Make the terminal on standard input this process's own; `pinwheel serve` starts it so
    #[arg(long, hide = true)]
    pub own_terminal: bool,
}

/// Parses an interval of at least 100 ms, in which the board is read at least once.
fn every(text: &str) -> Result<Duration, String> {
    let every = duration(text)?;
    let least = format!("found {text}, expected 100ms or more, the interval at which the board is read");
    if every < POLL_INTERVAL { Err(least) } else { Ok(every) }
}

/// Begins the name of a host of the cluster.
const HOST: &str = "host:";
/// Refusal of a command without `--control`.
const READ_ONLY: &str = "this console is read-only; attach again with --control, as the engine's user";

pub fn attach(args: &AttachArgs, user_paths: &UserPaths) -> Result<u8, Refusal> {
    if let Some((engine, remote)) = args.engine.as_deref().and_then(|name| Some((name, Remote::parse(name)?))) {
        let has_console = args.form().is_none();
        if has_console {
            require_terminal()?;
        }
        return ssh::attach(&remote?, args.program.as_deref().unwrap_or("pinwheel"), engine, has_console);
    }
    if args.program.is_some() {
        return Err(Refusal::Usage("--program names the program on another host; write attach ssh:HOST".to_owned()));
    }
    if let Some(place) = args.engine.as_deref().and_then(|engine| engine.strip_prefix(HOST)) {
        return attach_host(args, place, user_paths);
    }
    if let Some(form) = args.form() {
        let found = engines::find(args.engine.as_deref())?;
        let mut source = Attach::new(parts(found, None, Err(READ_ONLY.to_owned()), None));
        return watch(&mut source, form, &args.screen, args.every, args.console.printed_theme(user_paths)?);
    }
    if args.own_terminal {
        own_terminal()?;
    }
    require_terminal()?;
    let profiles = places::profiles(args.profiles.as_deref(), user_paths)?;
    let first = FirstScreen::plain(OnHangup::Detach, args.screen.first_view());
    let options = args.console.options(first, profiles.as_deref(), user_paths)?;
    let options = Options { is_served: args.own_terminal, ..options };
    let found = engines::find(args.engine.as_deref())?;
    let (line, access) = if args.control {
        (Some(reach(&found).map_err(Refusal::Usage)?), Ok(()))
    } else {
        (line_of(&found), Err(READ_ONLY.to_owned()))
    };
    let mut source = Attach::new(parts(found, line, access, profiles));
    show(&mut source, options)
}

/// Shows the board of a host, by the engine here that shares streams with it: `place` is its name, and that engine's
/// run after a colon.
fn attach_host(args: &AttachArgs, place: &str, user_paths: &UserPaths) -> Result<u8, Refusal> {
    hosts::require_build("attach host:")?;
    if args.control {
        let said = "attach host: is read-only; pinwheel ctl --host commands another host".to_owned();
        return Err(Refusal::Usage(said));
    }
    let (name, run) = place.split_once(':').map_or((place, None), |(name, run)| (name, Some(run)));
    let (run_dir, owner) = hosts::engine(run)?;
    let opened = OtherHost::open(run_dir, owner, name);
    let mut source = opened.map_err(|said| Refusal::Content { about: "attach".to_owned(), said })?;
    if let Some(form) = args.form() {
        return watch(&mut source, form, &args.screen, args.every, args.console.printed_theme(user_paths)?);
    }
    require_terminal()?;
    let first = FirstScreen::plain(OnHangup::Detach, args.screen.first_view());
    show(&mut source, args.console.options(first, None, user_paths)?)
}

/// The console until it ends; its exit status.
pub(super) fn show(source: &mut dyn Source, options: Options) -> Result<u8, Refusal> {
    let shown = term::run(source, options)?;
    say_unsaved(&shown);
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

/// Refuses a console without a terminal.
fn require_terminal() -> Result<(), Refusal> {
    if term::can_show() {
        return Ok(());
    }
    let remedy = "run it on a terminal; scripts have --json, --csv and --snapshot, and pinwheel ctl status";
    Err(Refusal::unusable("attach", term::NONE, "a terminal for the console", remedy))
}

/// Begins a session with the terminal on standard input, whose hang-up and new sizes then reach this process as
/// signals.
fn own_terminal() -> Result<(), Refusal> {
    setsid().and_then(|_| ioctl_tiocsctty(stdin())).map_err(|error| {
        Refusal::unusable("attach --own-terminal", error.to_string(), "a new terminal", "leave it to pinwheel serve")
    })
}

impl AttachArgs {
    /// The output that replaces a console, if any.
    fn form(&self) -> Option<Form> {
        let json = self.json.then_some(Form::Json);
        let values = self.screen.csv.then_some(Form::Values);
        json.or(values).or(self.screen.svg.then_some(Form::Picture)).or(self.screen.snapshot.then_some(Form::Screen))
    }
}

/// Whether the previous run's control socket was connected.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WasConnected {
    Yes,
    No,
}

/// The parts of an attachment, with or without a console.
fn parts(found: RunningEngine, line: Option<Line>, access: Result<(), String>, profiles: Option<PathBuf>) -> Attached {
    let notes = found.run_dir.as_deref().and_then(|run| Some(runs::notes(run, &Tape::open(run).ok()?)));
    let had_line = if line.is_some() { WasConnected::Yes } else { WasConnected::No };
    let successor = successor(found.pid, access.clone(), had_line, profiles.clone());
    Attached {
        follow: found.follow,
        pid: found.pid,
        uid: found.uid,
        line,
        access,
        run_dir: found.run_dir,
        notes: notes.unwrap_or_default(),
        profiles,
        successor,
    }
}

/// Searches for the next run of process `pid`, and attaches to it with the same access.
fn successor(pid: u32, access: Result<(), String>, had_line: WasConnected, profiles: Option<PathBuf>) -> Successor {
    Box::new(move |before| match engines::after(pid, before) {
        Some(found) => {
            // The engine accepted this user before, so the connection is not tested here.
            let line = Some(&found).filter(|_| had_line == WasConnected::Yes).and_then(line_of);
            Succeeding::Begun(Box::new(parts(found, line, access.clone(), profiles.clone())))
        }
        None if engines::is_there(pid) => Succeeding::Awaited,
        None => Succeeding::Gone,
    })
}

/// A line that connects to the engine's control socket on its own thread: a frozen engine delays no
/// console.
fn line_of(found: &RunningEngine) -> Option<Line> {
    let (socket, uid) = (found.socket.clone()?, found.uid);
    Line::to(move || Wire::connect(&socket, uid).ok()).ok()
}

/// Connects to the engine's control socket and sends one request to detect a refusal; else one
/// sentence why.
pub(super) fn reach(found: &RunningEngine) -> Result<Line, String> {
    let connected = found.control_socket().open(Command::Status, "");
    let (wire, _) = connected.map_err(|error| format!("{error}, or leave --control out"))?;
    Line::to(|| Some(wire)).map_err(|error| {
        let remedy = "raise the process limit (ulimit -u), or leave --control out";
        format!("engine of process {}: found no thread for its connection ({error}), expected one; {remedy}", found.pid)
    })
}
