//! `pinwheel replay`: a recording in the same console, or one moment of it as JSON.
//!
//! Runs on the main thread; starts no engine and changes nothing. Bounded by the recording.

use super::looks::{LooksArgs, Scenery, tell_unkept};
use super::places::{self, Surroundings};
use super::refusal::Refusal;
use super::runs::{self, RunName, When};
use super::still::StillArgs;
use super::{say, written};
use crate::model::View;
use crate::report::{Alarm, Context, Report};
use crate::source::replay::Replay;
use crate::term;
use clap::Args as ClapArgs;
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::engine::{EndedBy, Outcome};
use pinwheel_engine::profile::OnHangup;
use serde_json::{Value, json};
use std::io;

#[derive(Debug, ClapArgs)]
pub struct ReplayArgs {
    #[command(flatten)]
    pub name: RunName,
    /// The moment: after the start (12.5s), before the end (-5s), or end [default: the first picture]
    #[arg(long, value_name = "TIME", value_parser = runs::when, allow_hyphen_values = true)]
    pub at: Option<When>,
    /// Print that moment as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub still: StillArgs,
    #[command(flatten)]
    pub looks: LooksArgs,
}

/// What a report holds of a run's end, which a moment has not.
const OF_THE_END: [&str; 7] =
    ["exit_status", "ended_by", "elapsed_live_ns", "throughput_per_s", "unanswered", "console_cost", "run_dir"];

pub fn replay(args: &ReplayArgs, around: &Surroundings) -> Result<u8, Refusal> {
    let dir = runs::find(&args.name.run, args.name.logs.as_deref(), around)?;
    let mut tape = runs::open(&dir)?;
    let at = runs::tick(&tape, args.at.unwrap_or(When::Since(pinwheel_engine::units::Nanos(0))));
    let at = at.ok_or_else(|| runs::empty(&dir))?;
    if let Some(said) = args.at.and_then(|when| runs::outside(&tape, when)) {
        say::people(&format!("pinwheel: {said}"));
    }
    if args.still.is_asked() {
        let notes = runs::notes(&dir, &tape);
        let at_ns = tape.since_start(at).0;
        return args.still.tell(Replay::new(tape, notes, at_ns).beside(&dir), at_ns, &args.looks);
    }
    let on_terminal = term::can_show();
    if !args.json && on_terminal {
        let notes = runs::notes(&dir, &tape);
        let at_ns = tape.since_start(at).0;
        return console(&mut Replay::new(tape, notes, at_ns).beside(&dir), &args.looks, around);
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

/// The console on a recording.
pub fn console(source: &mut Replay, looks: &LooksArgs, around: &Surroundings) -> Result<u8, Refusal> {
    let profiles = places::profiles(None, around)?;
    let scenery = Scenery::plain(OnHangup::Drain, View::Overview);
    tell_unkept(&term::run(source, looks.options(scenery, profiles.as_deref(), around)?)?);
    Ok(0)
}

/// A moment, as a run's report names things, with the whole picture.
pub fn moment(snapshot: &Snapshot, kind: &str, about: &Value) -> Value {
    let outcome = Outcome {
        snapshot: snapshot.clone(),
        ended_by: EndedBy::Drained,
        elapsed_live_ns: 0,
        unanswered: Vec::new(),
        sink: None,
        events: None,
        input_error: None,
        environment: None,
        task_times: Vec::new(),
    };
    let mut value = serde_json::to_value(Report::new(&outcome, &Context::default())).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        OF_THE_END.iter().for_each(|name| {
            fields.remove(*name);
        });
        // What is judged at the end alone is left out.
        let alarms: Vec<Alarm> = snapshot.alarms.iter().map(Alarm::logged).collect();
        fields.insert("alarms".to_owned(), serde_json::to_value(alarms).unwrap_or_default());
        fields.insert("board".to_owned(), serde_json::to_value(snapshot).unwrap_or_default());
        fields.insert(kind.to_owned(), about.clone());
    }
    value
}

pub fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// A moment for people without a terminal.
pub fn words(snapshot: &Snapshot, title: &str) -> String {
    let engine = &snapshot.engine;
    let total = crate::report::sum(&snapshot.silos);
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
    for alarm in &snapshot.alarms {
        text += &format!(
            "alarm {} {} at {:.1} s: {}\n",
            alarm.severity.name(),
            alarm.rule,
            seconds(alarm.onset_ns),
            alarm.sentence
        );
    }
    text
}
