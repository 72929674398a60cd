//! `pinwheel run` without a console: starts the engine, tells its progress, reports its end.
//!
//! Runs on the main thread, a cold one. The only file of the command line that operates the engine. Bounded by the run:
//! it ends by its own count, duration or input, or by a signal, and the engine bounds its drain. Never leaves anything
//! behind when the start fails.

mod own;
mod sequel;
mod succession;

use super::args::RunArgs;
use super::input::{self, Loaded};
use super::looks::{Scenery, tell_unkept};
use super::metrics::Metrics;
use super::places::{self, Surroundings};
use super::refusal::Refusal;
use super::request::{Face, RunRequest, ShotSource};
use super::shuffle::{Reaper, Shuffle, movable};
use super::signals::Signals;
use super::{say, written};
use crate::effect::ConsoleEnd;
use crate::model::View;
use crate::report::{Context, Report, progress_line, sum};
use crate::source::News;
use crate::source::live::Live;
use crate::term::{self, Heard};
use pinwheel_edge::slot::word::ErrorCode;
use pinwheel_engine::board;
use pinwheel_engine::board::snapshot::{GraphView, Snapshot};
use pinwheel_engine::clock::{Clock, utc_now_s};
use pinwheel_engine::engine::{Config, EndedBy, Engine, Keep, Outcome, foresee};
use pinwheel_engine::graph;
use pinwheel_engine::host::HostFacts;
use pinwheel_engine::hot::install_hook;
use pinwheel_engine::profile::{DEFAULT_NAME, OnHangup, Profile, Severity, Silos};
use pinwheel_engine::record::runs::{Ended, MANIFEST, Manifest};
use pinwheel_engine::record::tape::Tape;
use pinwheel_engine::record::{self, AnswerSink, RunDir, SinkConfig, hlog};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use succession::{Places, Succession};

/// Between two looks at the engine.
const LOOK: Duration = Duration::from_millis(20);
/// Looks between two progress lines: one second.
const LOOKS_PER_LINE: u32 = 50;

/// Runs what the options ask for; returns the exit status.
pub fn run(args: &RunArgs, around: &Surroundings) -> Result<u8, Refusal> {
    let (request, logs) = settle(args, around)?;
    if request.face == Face::Console {
        return run_console(request, &logs, args, around);
    }
    let signals = Signals::install().map_err(|error| Refusal::signals(&error))?;
    let profiles = places::profiles(args.profiles.as_deref(), around)?;
    let run = Run::begin(request, &logs, profiles.as_deref(), around)?;
    let mut run = Succession::new(run, Places { args: args.clone(), logs, profiles, around: around.clone() });
    let received = |on_hangup| asked_for(&signals, on_hangup);
    let signal = watch(&mut run, &received, &mut |line| say::people(line), &mut pause);
    Ok(end(run, signal, None, Audience::Listens))
}

/// Ends the last of the runs; the worst exit status of them.
fn end(run: Succession, signal: Option<i32>, cost: Option<serde_json::Value>, audience: Audience) -> u8 {
    match run.last() {
        Ok((run, status)) => run.end(signal, cost, audience).max(status),
        Err(said) => {
            if audience == Audience::Listens {
                say::people(&format!("pinwheel: {said}"));
            }
            1
        }
    }
}

/// A run under a live console. A terminal that goes away leaves the engine running without one (`on_hangup: Detach`).
fn run_console(request: RunRequest, logs: &Path, args: &RunArgs, around: &Surroundings) -> Result<u8, Refusal> {
    let profiles = places::profiles(args.profiles.as_deref(), around)?;
    let (on_hangup, theme) = (request.profile.on_hangup, Some(request.profile.theme));
    let scenery = Scenery { on_hangup, view: View::Overview, theme };
    let options = args.looks.options(scenery, profiles.as_deref(), around)?;
    // The engine's hook first: the console's chains to it.
    install_hook();
    let run = Run::begin(request, logs, profiles.as_deref(), around)?;
    let places =
        Places { args: args.clone(), logs: logs.to_owned(), profiles: profiles.clone(), around: around.clone() };
    let mut own = Succession::new(run, places);
    let shown = match term::run(&mut Live::new(&mut own, profiles), options) {
        Ok(shown) => shown,
        Err(refused) => {
            if let Ok((run, _)) = own.last() {
                run.abandon();
            }
            return Err(refused.into());
        }
    };
    tell_unkept(&shown);
    let mut audience = if shown.heard == Heard::Yes { Audience::Listens } else { Audience::Gone };
    let signal = match shown.end {
        ConsoleEnd::Finished => None,
        ConsoleEnd::Terminated => Some(SIGTERM),
        ConsoleEnd::Interrupted => Some(SIGINT),
        ConsoleEnd::Forced | ConsoleEnd::Killed => return Ok(leave(own, audience)),
        ConsoleEnd::HungUp => {
            audience = Audience::Gone;
            let signals = Signals::install().map_err(|error| Refusal::signals(&error))?;
            watch(&mut own, &|on_hangup| asked_for(&signals, on_hangup), &mut |_| (), &mut pause)
        }
    };
    Ok(end(own, signal, serde_json::to_value(shown.console_cost).ok(), audience))
}

fn leave(run: Succession, audience: Audience) -> u8 {
    match run.last() {
        Ok((run, _)) => run.leave(audience),
        Err(said) => {
            say::people(&format!("pinwheel: {said}"));
            1
        }
    }
}

/// The signal that asks for a drain. A lost terminal does where the profile in force says so.
fn asked_for(signals: &Signals, on_hangup: OnHangup) -> Option<i32> {
    let drains = || signals.has_hung_up() && on_hangup == OnHangup::Drain;
    signals.received().or_else(|| drains().then_some(SIGHUP))
}

/// Whether anybody reads what is printed at the end. To write to a terminal that nobody reads is to wait for its reader;
/// the report is in the run directory all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Audience {
    Listens,
    Gone,
}

/// A run under way: whoever watches it, it begins and ends the same.
struct Run {
    request: RunRequest,
    host: HostFacts,
    run_dir: RunDir,
    manifest: Manifest,
    /// Before the engine, so that it is gone when the engine ends.
    metrics: Option<Metrics>,
    /// Likewise.
    shuffle: (Option<Shuffle>, Option<Reaper>),
    engine: Engine,
}

impl Run {
    /// Loads, opens, and starts; makes nothing before all that can be refused without it has been looked at.
    fn begin(request: RunRequest, logs: &Path, profiles: Option<&Path>, around: &Surroundings) -> Result<Run, Refusal> {
        let loaded = input::load(&request)?;
        Run::begin_on(request, loaded, logs, profiles, around)
    }

    /// The same on an input that is loaded.
    fn begin_on(
        request: RunRequest,
        loaded: Loaded,
        logs: &Path,
        profiles: Option<&Path>,
        around: &Surroundings,
    ) -> Result<Run, Refusal> {
        let sink = open_sink(&request, loaded.observables)?;
        // Read before any thread is pinned.
        let host = HostFacts::read()?;
        have_silos(&request, &host)?;
        let mut run_dir = RunDir::create(logs, &request.profile_name, utc_now_s())?;
        run_dir.write_profile(&request.profile);
        let keep = Keep { directory: run_dir.path().to_owned(), key: places::host_key(around) };
        let mut manifest = manifest(&request);
        // Before the engine: a run that hangs in its start is a run all the same.
        write_manifest(&mut run_dir, &manifest);
        let (events, path) = (Some(run_dir.events()), Some(run_dir.path().to_owned()));
        let started = Engine::start(Config {
            events,
            run_dir: path,
            profiles: profiles.map(Path::to_owned),
            ..config(&request, loaded, sink, keep)
        })
        .map_err(Refusal::from)
        .and_then(|engine| {
            let (viewer, clock) = (engine.viewer(), engine.clock().clone());
            let body = move || record::metrics::text(&viewer.snapshot());
            let served = request.metrics.map(|address| Metrics::serve(address, clock, body));
            Ok((served.transpose()?, engine))
        });
        match started {
            Ok((metrics, engine)) => {
                manifest.plan = serde_json::to_value(engine.plan()).unwrap_or_default();
                write_manifest(&mut run_dir, &manifest);
                if let Some(metrics) = metrics.as_ref().filter(|_| request.face != Face::Console) {
                    say::people(&format!("pinwheel: metrics at http://{}/metrics", metrics.address()));
                }
                let silos = engine.plan().silos.count;
                let shuffle = |every| Shuffle::start(engine.moves(), movable(&request.profile), silos, every);
                let reaper = |every| Reaper::start(engine.wishes(), every);
                let shuffle = (request.move_every.map(shuffle), request.kill_every.map(reaper));
                Ok(Run { request, host, run_dir, manifest, metrics, shuffle, engine })
            }
            Err(refused) => {
                run_dir.abandon();
                Err(refused)
            }
        }
    }

    /// Its name: that of its directory.
    fn name(&self) -> String {
        input::file_name(self.run_dir.path())
    }

    /// There is no console after all: the engine drains, and nothing is left behind.
    fn abandon(self) {
        drop(self.metrics);
        drop(self.shuffle);
        drop(self.engine);
        self.run_dir.abandon();
    }

    /// The operator would not wait for the drain: says what is lost and leaves the threads to the process's end.
    fn leave(self, audience: Audience) -> u8 {
        let total = sum(&self.engine.snapshot().silos);
        let left = total.submitted.saturating_sub(total.answered);
        if audience == Audience::Listens {
            say::people(&format!("pinwheel: left with {left} shots unanswered; no report was written"));
        }
        std::mem::forget(self.engine);
        1
    }

    /// Ends the engine, keeps and tells what came of it; returns the exit status.
    fn end(self, signal: Option<i32>, console_cost: Option<serde_json::Value>, audience: Audience) -> u8 {
        let Run { request, host, mut run_dir, mut manifest, metrics, shuffle, engine } = self;
        drop(metrics);
        drop(shuffle);
        let clock = engine.clock().clone();
        let silos = &engine.plan().silos;
        let silos_auto = silos.auto.then(|| silos.why.clone());
        let mut outcome = engine.finish();
        name_signal(&mut outcome, signal);
        let context = Context {
            predictions_asked: request.predictions.is_some(),
            run_dir: Some(run_dir.path().display().to_string()),
            host: serde_json::to_value(host).unwrap_or_default(),
            console_cost,
            silos_auto,
            notes: request.notes.clone(),
        };
        let report = Report::new(&outcome, &context);
        keep_end(&mut run_dir, &report, &outcome);
        keep_task_times(&mut run_dir, &mut outcome, &clock);
        let critical = outcome.snapshot.alarms.iter().filter(|alarm| alarm.severity == Severity::Critical);
        let (by, exit_status) = (report.ended_by.clone(), report.exit_status);
        manifest.ended = Some(Ended { by, exit_status, critical_alarms: critical.count() as u64 });
        write_manifest(&mut run_dir, &manifest);
        if audience == Audience::Gone {
            return report.exit_status;
        }
        if let Some(said) = run_dir.trouble() {
            say::people(&format!("pinwheel: {said}"));
        }
        if let Some(said) = outcome.environment.as_ref().and_then(|found| found.trouble.as_deref()) {
            say::people(&format!("pinwheel: {said}"));
        }
        tell(&request, &report)
    }
}

/// What is asked of several silos is refused where `auto` would be one.
fn have_silos(request: &RunRequest, host: &HostFacts) -> Result<(), Refusal> {
    let option = match (request.move_every, request.kill_every) {
        (Some(_), _) => "--move-every",
        (None, Some(_)) => "--kill-every",
        (None, None) => return Ok(()),
    };
    if request.profile.silos != Silos::Auto {
        return Ok(());
    }
    // Listed threads that cannot be had are the start's to refuse.
    let Ok(plan) = foresee(&request.profile, host.clone(), &board::directory()) else { return Ok(()) };
    if plan.silos.count > 1 {
        return Ok(());
    }
    let found = format!("one silo ({})", plan.silos.why);
    Err(Refusal::unusable(option, found, "two at least", "add --silos 2, or leave it out"))
}

/// What this run is, before anything of it is known but what was asked for.
fn manifest(request: &RunRequest) -> Manifest {
    Manifest {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        board_layout: Manifest::layout(),
        profile: request.profile_name.clone(),
        label: request.label.clone(),
        input: format!("{:?}", request.model),
        seed: match request.shots {
            ShotSource::Sampler { seed } => Some(seed),
            ShotSource::File { .. } | ShotSource::Stdin | ShotSource::Live(_) => None,
        },
        command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        pid: std::process::id(),
        started_utc_s: utc_now_s(),
        keep: request.keep,
        plan: serde_json::Value::Null,
        ended: None,
    }
}

fn write_manifest(run_dir: &mut RunDir, manifest: &Manifest) {
    if let Ok(mut text) = serde_json::to_vec_pretty(manifest) {
        text.push(b'\n');
        run_dir.write(MANIFEST, &text);
    }
}

fn settle(args: &RunArgs, around: &Surroundings) -> Result<(RunRequest, PathBuf), Refusal> {
    let dir = places::profiles(args.profiles.as_deref(), around)?;
    let (profile, origin) = Profile::load(args.profile.as_deref().unwrap_or(DEFAULT_NAME), dir.as_deref())?;
    let on_terminal = term::can_show();
    let request = RunRequest::settle(args, origin.name(), profile, on_terminal)?;
    Ok((request, places::logs(args.logs.as_deref(), around)?))
}

fn open_sink(request: &RunRequest, observables: u32) -> Result<Option<AnswerSink>, Refusal> {
    if request.predictions.is_none() && request.answers.is_none() {
        return Ok(None);
    }
    let config = SinkConfig {
        predictions: request.predictions.clone(),
        format: request.format,
        answers: request.answers.clone(),
        observables,
        window_shots: request.window_shots(),
        error_name,
    };
    Ok(Some(AnswerSink::new(&config)?))
}

fn error_name(code: u16) -> &'static str {
    ErrorCode::from_number(code).map_or("unknown", ErrorCode::name)
}

fn config(request: &RunRequest, loaded: Loaded, sink: Option<AnswerSink>, keep: Keep) -> Config {
    Config {
        profile_name: request.profile_name.clone(),
        profile: request.profile.clone(),
        label: request.label.clone(),
        input: loaded.input,
        count: request.count,
        duration: request.duration,
        sink,
        events: None,
        run_dir: None,
        environment: Some(keep),
        notes: request.notes.clone(),
        provocation: pinwheel_engine::engine::prepared_for_drills(&request.profile),
        profiles: None,
    }
}

/// What the watching loop needs of the runs.
trait Operated {
    /// `None`: there is no run at this moment.
    fn snapshot(&self) -> Option<Snapshot>;
    fn on_hangup(&self) -> OnHangup;
    fn request_drain(&mut self);
    fn is_finished(&self) -> bool;
    /// Goes on with whatever is under way, and says what there is to say.
    fn step(&mut self) -> Vec<News>;
}

impl Operated for Succession {
    fn snapshot(&self) -> Option<Snapshot> {
        Succession::snapshot(self)
    }

    fn on_hangup(&self) -> OnHangup {
        self.profile().map_or(OnHangup::Detach, |profile| profile.on_hangup)
    }

    fn request_drain(&mut self) {
        Succession::request_drain(self, None);
    }

    fn is_finished(&self) -> bool {
        Succession::is_finished(self)
    }

    fn step(&mut self) -> Vec<News> {
        Succession::step(self)
    }
}

#[expect(clippy::disallowed_methods, reason = "the main thread of a run without a console; it is on a cold core")]
fn pause() {
    std::thread::sleep(LOOK);
}

/// Looks at the runs until the last has ended; returns the signal that asked for its drain.
fn watch(
    run: &mut impl Operated,
    received: &dyn Fn(OnHangup) -> Option<i32>,
    line: &mut dyn FnMut(&str),
    pause: &mut dyn FnMut(),
) -> Option<i32> {
    let mut told = run.snapshot();
    let mut signal = None;
    let mut looks = 0;
    loop {
        let news = run.step();
        if run.is_finished() {
            // Why no run follows is told at the end.
            return signal;
        }
        for news in news {
            let (News::Done(said) | News::Refused(said)) = news;
            line(&format!("pinwheel: {said}"));
        }
        if signal.is_none()
            && let Some(number) = received(run.on_hangup())
        {
            signal = Some(number);
            line("pinwheel: draining; a second signal ends at once and loses what is under way");
            run.request_drain();
        }
        if looks == LOOKS_PER_LINE {
            let now = run.snapshot();
            // Of a run that has just begun there is nothing to compare with.
            if let (Some(told), Some(now)) = (&told, &now)
                && told.at_ns < now.at_ns
                && told.engine.started_utc_s == now.engine.started_utc_s
            {
                line(&progress_line(told, now));
            }
            (told, looks) = (now, 0);
        }
        looks += 1;
        pause();
    }
}

/// The engine knows that a drain was asked for, and not by whom.
fn name_signal(outcome: &mut Outcome, signal: Option<i32>) {
    if let (EndedBy::Drained, Some(signal)) = (&outcome.ended_by, signal) {
        outcome.ended_by = EndedBy::Signal(signal);
    }
}

fn keep_end(run_dir: &mut RunDir, report: &Report, outcome: &Outcome) {
    let lines = |json: serde_json::Result<Vec<u8>>| {
        json.map(|mut bytes| {
            bytes.push(b'\n');
            bytes
        })
    };
    if let Ok(bytes) = lines(serde_json::to_vec_pretty(report)) {
        run_dir.write("report.json", &bytes);
    }
    if let Ok(bytes) = lines(serde_json::to_vec_pretty(&outcome.snapshot.faults)) {
        run_dir.write("faults.json", &bytes);
    }
    // From the recording: a run without one has none, and its report has the quantiles.
    let mut log = Vec::new();
    let written = Tape::open(run_dir.path()).ok().map(|mut tape| hlog::write(&mut tape, &mut log));
    if matches!(written, Some(Ok(()))) {
        run_dir.write("latency.hlog", &log);
    }
}

/// Tasks in the order in which they began, for Perfetto: a process for each silo, a thread for each worker of its pool.
fn keep_task_times(run_dir: &mut RunDir, outcome: &mut Outcome, clock: &Clock) {
    if outcome.task_times.is_empty() {
        return;
    }
    outcome.task_times.sort_by_key(|(_, event)| event.start);
    let mut trace = Vec::new();
    let events = outcome.task_times.iter().map(|(silo, event)| (*silo, event));
    let written = graph::write_trace(&mut trace, clock, events, |kernel| GraphView::kernel(kernel.into()));
    if written.is_ok() {
        run_dir.write("tasks.json", &trace);
    }
}

/// Prints the report where its reader looks for it. Answers on standard output keep it for themselves, and a report
/// for scripts is then its last line.
fn tell(request: &RunRequest, report: &Report) -> u8 {
    let answers_on_stdout = request.answers.as_deref() == Some(Path::new("-"));
    let told = match request.face {
        Face::Scripts => say::json(&mut io::stdout().lock(), report),
        _ if answers_on_stdout => say::text(&mut io::stderr().lock(), &report.to_string()),
        _ => say::text(&mut io::stdout().lock(), &report.to_string()),
    };
    written(told, report.exit_status)
}

#[cfg(test)]
mod tests;
