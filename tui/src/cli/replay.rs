//! `pinwheel replay`: shows a recording in the console, or prints one moment of it as JSON.
//!
//! Runs on the main thread; starts no engine and changes nothing.

use super::attach::show;
use super::console_options::{ConsoleArgs, FirstScreen};
use super::places::{self, UserPaths};
use super::refusal::Refusal;
use super::runs::{self, RunName, When};
use super::say::{self, written};
use super::screen_output::ScreenArgs;
use crate::model::View;
use crate::source::replay::Replay;
use crate::term;
use clap::Args as ClapArgs;
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::profile::OnHangup;
use pinwheel_engine::units::Nanos;
use pinwheel_report::moment::moment;
use serde_json::json;
use std::io;

#[derive(Debug, ClapArgs)]
pub struct ReplayArgs {
    #[command(flatten)]
    pub name: RunName,
    /// The moment: after the start (12.5s), before the end (-5s), or end [default: the console
    /// begins at the first snapshot; output that is printed shows the last one]
    #[arg(long, value_name = "TIME", value_parser = runs::when, allow_hyphen_values = true)]
    pub at: Option<When>,
    /// Print that moment as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub screen: ScreenArgs,
    #[command(flatten)]
    pub console: ConsoleArgs,
}

pub fn replay(args: &ReplayArgs, user_paths: &UserPaths) -> Result<u8, Refusal> {
    let dir = runs::find(&args.name.run, args.name.logs.as_deref(), user_paths)?;
    let mut tape = runs::open(&dir)?;
    let shows_console = !args.json && !args.screen.is_requested() && term::can_show();
    let wanted = args.at.unwrap_or_else(|| default_moment(shows_console));
    let at = runs::tick(&tape, wanted).ok_or_else(|| runs::empty(&dir))?;
    if let Some(said) = args.at.and_then(|when| runs::outside(&tape, when)) {
        say::people(&format!("pinwheel: {said}"));
    }
    if args.screen.is_requested() || shows_console {
        let (notes, at_ns) = (runs::notes(&dir, &tape), tape.since_start(at).0);
        let mut source = Replay::new(tape, notes, at_ns).beside(&dir);
        if shows_console {
            return console(&mut source, args.screen.first_view(), &args.console, user_paths);
        }
        return args.screen.print(source, at_ns, args.console.printed_theme(user_paths)?);
    }
    let snapshot = tape
        .at(at)?
        .map(|moment| moment.snapshot())
        .transpose()
        .map_err(pinwheel_engine::record::tape::TapeError::from)?;
    let snapshot = snapshot.flatten().ok_or_else(|| runs::empty(&dir))?;
    let span = tape.span().map(|(from, to)| (tape.since_start(from).0, tape.since_start(to).0)).unwrap_or_default();
    let about = json!({"run": dir.display().to_string(), "at_ns": snapshot.at_ns, "from_ns": span.0, "to_ns": span.1,
        "bytes": tape.bytes()});
    if args.json {
        return Ok(written(say::json(&mut io::stdout().lock(), &moment(&snapshot, "replay", &about)), 0));
    }
    let text =
        words(&snapshot, &format!("{}: {:.1} s of {:.1} s", dir.display(), seconds(snapshot.at_ns), seconds(span.1)));
    Ok(written(say::text(&mut io::stdout().lock(), &text), 0))
}

/// The moment without `--at`: a console begins at the start, and printed output shows the end, where
/// all counts and alarms are.
const fn default_moment(shows_console: bool) -> When {
    if shows_console { When::Since(Nanos(0)) } else { When::Before(Nanos(0)) }
}

/// Runs the console on a recording, with that view at first.
pub fn console(source: &mut Replay, view: View, console: &ConsoleArgs, user_paths: &UserPaths) -> Result<u8, Refusal> {
    let profiles = places::profiles(None, user_paths)?;
    let first = FirstScreen::plain(OnHangup::Drain, view);
    show(source, console.options(first, profiles.as_deref(), user_paths)?)
}

pub fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// A moment as text, for output without a terminal.
pub fn words(snapshot: &Snapshot, title: &str) -> String {
    let engine = &snapshot.engine;
    let total = snapshot.totals();
    let mut text = format!(
        "{title}\nprocess {} profile {} {} {}\nsubmitted {} answered {} errors {} late {}\n",
        engine.pid,
        engine.profile,
        engine.phase.name(),
        engine.input,
        total.submitted,
        total.answered,
        total.errored,
        total.late
    );
    for thread in &snapshot.threads {
        let stage = thread.stage.map_or("between roles", |role| role.name());
        let age_ms = thread.heartbeat_age_ns as f64 / 1e6;
        text += &format!("thread {}: {stage}, frame {}, heartbeat {age_ms:.1} ms old\n", thread.name, thread.frames);
    }
    for incident in &snapshot.incidents {
        text += &format!(
            "incident {} {} at {:.1} s: {}\n",
            incident.severity.name(),
            incident.root.rule,
            seconds(incident.onset_ns),
            incident.root.sentence
        );
        for consequence in &incident.consequences {
            text += &format!("  so {}: {}\n", consequence.rule, consequence.sentence);
        }
    }
    text
}
