//! `pinwheel run`: starts the engine, prints its progress or shows the console, and reports the
//! result.
//!
//! Runs on a thread of its own, which keeps to the cold cores as soon as the engine has planned
//! them. The only file of the command line that operates the engine. A run ends by its count, its
//! duration, the end of its input, or a signal; the engine bounds the drain. A failed start leaves
//! no files behind.

pub mod args;
mod aside;
mod hosts;
mod live;
mod next_request;
mod run_sequence;

use super::console_options::{FirstScreen, say_unsaved};
use super::cudaq;
use super::distinct_files::require_distinct;
use super::disturbances::{Repeating, movable};
use super::input::{self, Loaded};
use super::metrics::Metrics;
use super::pause;
use super::places::{self, UserPaths};
use super::refusal::Refusal;
use super::request::{ModelSource, OutputMode, RunRequest, ShotSource};
use super::say::{self, counted, written};
use super::signals::Signals;
use crate::effect::ConsoleEnd;
use crate::model::View;
use crate::source::Reply;
use crate::term::{self, Delivered};
use args::RunArgs;
use live::Live;
use pinwheel_edge::slot::word::ErrorCode;
use pinwheel_engine::board;
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::engine::{Config, Engine, preview_plan};
use pinwheel_engine::host::HostFacts;
use pinwheel_engine::hot::install_hook;
use pinwheel_engine::profile::{DEFAULT_NAME, OnHangup, Origin, Profile, Silos};
use pinwheel_engine::record::{self, AnswerSink, SinkConfig};
use pinwheel_report::model_file::file_name;
use pinwheel_report::recorded::{About, EndedRun, RecordedRun};
use pinwheel_report::report::{Context, Report, progress_line};
use run_sequence::{RunSequence, StartOptions};
use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Interval between two polls of the engine.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Polls between two progress lines: one second.
const POLLS_PER_LINE: u32 = 50;

/// Stack of the console's thread: what the system gives a main thread.
const STACK_BYTES: usize = 8 << 20;

/// Runs the engine as the options say; returns the exit status.
///
/// The affinity of the main thread says which cores the process may use, so it is left as it is. The
/// console has a thread of its own for that reason.
pub fn run(args: &RunArgs, user_paths: &UserPaths) -> Result<u8, Refusal> {
    args.ends_with.map_or(Ok(()), end_with)?;
    std::thread::scope(|scope| {
        let console = std::thread::Builder::new().name("console".to_owned()).stack_size(STACK_BYTES);
        match console.spawn_scoped(scope, || run_here(args, user_paths)) {
            Ok(console) => console.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            // The engine's threads will be refused, too, and that in words.
            Err(_) => run_here(args, user_paths),
        }
    })
}

/// Has the system end this process as by SIGTERM when the process `parent`, which started it, ends.
fn end_with(parent: i32) -> Result<(), Refusal> {
    // Before the check, so that a parent that ends between the two is noticed by one of them.
    let _ = set_parent_process_death_signal(Some(Signal::TERM));
    if getppid().map(|found| found.as_raw_nonzero().get()) == Some(parent) {
        return Ok(());
    }
    let found = format!("a process that {parent} did not start");
    Err(Refusal::unusable("--ends-with", found, "the number of the process that starts it", "leave the option out"))
}

fn run_here(args: &RunArgs, user_paths: &UserPaths) -> Result<u8, Refusal> {
    let (request, logs) = resolve(args, user_paths)?;
    require_distinct_files(&request, args)?;
    let profiles = places::profiles(args.profiles.as_deref(), user_paths)?;
    let start = StartOptions { args: args.clone(), logs, profiles, user_paths: user_paths.clone() };
    if request.output_mode == OutputMode::Console {
        return run_console(request, start);
    }
    let signals = Signals::install_ending().map_err(|error| Refusal::signals(&error))?;
    let run = Run::begin(request, &start, || signals.drain_from_now())?;
    run.say_ready(&|| signals.received().is_some());
    let mut run = RunSequence::new(run, start);
    let received = |on_hangup| asked_for(&signals, on_hangup);
    let signal = watch(&mut run, &received, &mut |line| say::people(line), &mut || pause(POLL_INTERVAL));
    Ok(end(run, signal, None, Reader::Present))
}

/// Ends the last run; returns the highest exit status of all runs.
fn end(run: RunSequence, signal: Option<i32>, cost: Option<serde_json::Value>, reader: Reader) -> u8 {
    match run.last() {
        Ok((run, status)) => run.end(signal, cost, reader).max(status),
        Err(said) => {
            if reader == Reader::Present {
                say::people(&format!("pinwheel: {said}"));
            }
            1
        }
    }
}

/// Runs the engine under a live console. When the terminal closes, the engine continues without a
/// console (`on_hangup: Detach`).
fn run_console(request: RunRequest, start: StartOptions) -> Result<u8, Refusal> {
    let profiles = start.profiles.clone();
    let (on_hangup, theme) = (request.profile.on_hangup, Some(request.profile.theme));
    let first = FirstScreen { on_hangup, view: View::Overview, theme };
    let options = start.args.console.options(first, profiles.as_deref(), &start.user_paths)?;
    // The engine's panic hook is installed first, because the console's hook calls it.
    install_hook();
    let run = Run::begin(request, &start, || ())?;
    let mut runs = RunSequence::new(run, start);
    let shown = match term::run(&mut Live::new(&mut runs, profiles), options) {
        Ok(shown) => shown,
        Err(refused) => {
            if let Ok((run, _)) = runs.last() {
                run.abandon();
            }
            return Err(refused.into());
        }
    };
    say_unsaved(&shown);
    let mut reader = if shown.delivered == Delivered::Yes { Reader::Present } else { Reader::Gone };
    let signal = match shown.end {
        ConsoleEnd::Finished => None,
        ConsoleEnd::Terminated => Some(SIGTERM),
        ConsoleEnd::Interrupted => Some(SIGINT),
        ConsoleEnd::Forced | ConsoleEnd::Killed => return Ok(leave(runs, reader)),
        ConsoleEnd::HungUp => {
            reader = Reader::Gone;
            let signals = Signals::install().map_err(|error| Refusal::signals(&error))?;
            // The console's handlers are there until now: a signal between the two is theirs.
            let earlier = shown.ending_signal();
            // The console reads the terminal's end perhaps before the signal of the same hang-up arrives. It has then
            // requested the drain, and the signal asks for nothing more.
            let is_draining = runs.on_hangup() == OnHangup::Drain;
            let wanted = |on_hangup| if is_draining { OnHangup::Detach } else { on_hangup };
            let received = |on_hangup| earlier.or_else(|| asked_for(&signals, wanted(on_hangup)));
            watch(&mut runs, &received, &mut |_| (), &mut || pause(POLL_INTERVAL))
        }
    };
    Ok(end(runs, signal, serde_json::to_value(shown.console_cost).ok(), reader))
}

fn leave(run: RunSequence, reader: Reader) -> u8 {
    match run.last() {
        Ok((run, _)) => run.leave(reader),
        Err(said) => {
            say::people(&format!("pinwheel: {said}"));
            1
        }
    }
}

/// The signal that requests a drain. SIGHUP counts only if the current profile says so.
fn asked_for(signals: &Signals, on_hangup: OnHangup) -> Option<i32> {
    signals.received().or_else(|| signals.hangup().filter(|_| on_hangup == OnHangup::Drain))
}

/// Whether the final report is printed. Writing to a lost terminal could block; the run directory
/// has the report in either case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reader {
    Present,
    Gone,
}

/// A running engine with its run directory, with or without a console.
struct Run {
    request: RunRequest,
    /// Declared before the engine, so that it is dropped first.
    metrics: Option<Metrics>,
    disturbances: Disturbances,
    recorded: RecordedRun,
    /// Other hosts. Declared after the engine: while it drains, its shots come back from them.
    joined: Option<hosts::Joined>,
}

/// Repeated moves of streams, and repeated kills of silos.
type Disturbances = (Option<Repeating>, Option<Repeating>);

impl Run {
    /// Loads the input, opens the outputs, and starts the engine. Creates nothing before all checks
    /// that need no files have passed. Calls `opened` once every file is loaded or open: from then
    /// on the run needs an orderly end.
    fn begin(request: RunRequest, start: &StartOptions, opened: impl FnOnce()) -> Result<Run, Refusal> {
        let loaded = input::load(&request)?;
        let sink = open_sink(&request, loaded.observables)?;
        opened();
        Run::begin_on(request, loaded, sink, start)
    }

    /// As [`Run::begin`], on an input that is already loaded.
    fn begin_on(
        request: RunRequest,
        loaded: Loaded,
        sink: Option<AnswerSink>,
        start: &StartOptions,
    ) -> Result<Run, Refusal> {
        // Read before any thread is pinned.
        let host = HostFacts::read()?;
        require_silos(&request, &host)?;
        let about = About {
            seed: match request.shots {
                ShotSource::Sampler { seed } => Some(seed),
                ShotSource::File { .. } | ShotSource::Stdin | ShotSource::Live(_) => None,
            },
            keep: request.keep,
        };
        let (end, bridge) = hosts::bridge(&request, &loaded.input).unzip();
        let config = Config { profiles: start.profiles.clone(), bridge: end, ..config(&request, loaded, sink) };
        let recorded = RecordedRun::begin(host, &start.logs, places::host_key(&start.user_paths), about, config)?;
        let accompanied = hosts::join(&request, bridge, &recorded)
            .and_then(|joined| Ok((joined, Run::accompany(&request, recorded.engine())?)));
        let (joined, (metrics, disturbances)) = match accompanied {
            Ok(accompanied) => accompanied,
            Err(refused) => {
                recorded.abandon();
                return Err(refused);
            }
        };
        if let Some(metrics) = metrics.as_ref().filter(|_| request.output_mode != OutputMode::Console) {
            say::people(&format!("pinwheel: metrics at http://{}/metrics", metrics.address()));
        }
        Ok(Run { request, metrics, disturbances, recorded, joined })
    }

    /// Starts what runs beside the engine: the server of metrics, and requested disturbances.
    fn accompany(request: &RunRequest, engine: &Engine) -> Result<(Option<Metrics>, Disturbances), Refusal> {
        let (viewer, clock) = (engine.viewer(), engine.clock().clone());
        let exposition = record::metrics::Exposition::default();
        let body = move || exposition.text(&viewer.snapshot());
        let served = request.metrics.map(|address| Metrics::serve(address, clock, body));
        let silos = engine.plan().silos.count;
        let moves = |every| Repeating::moves(engine.moves(), movable(&request.profile), silos, every);
        let kills = |every| Repeating::kills(engine.silo_commands(), every);
        let refused = |error: io::Error| {
            let remedy = "raise the process limit (ulimit -u)";
            Refusal::unusable("run", format!("no thread could be started ({error})"), "one more thread", remedy)
        };
        let moves = request.move_every.map(moves).transpose().map_err(refused)?;
        let kills = request.kill_every.map(kills).transpose().map_err(refused)?;
        Ok((served.transpose()?, (moves, kills)))
    }

    fn engine(&self) -> &Engine {
        self.recorded.engine()
    }

    /// Name of the run: the name of its directory.
    fn name(&self) -> String {
        file_name(self.recorded.path())
    }

    /// Prints the decoders' ports once they take calls, unless the run ends before.
    fn say_ready(&self, is_ending: &dyn Fn() -> bool) {
        while self.request.ready_line && !is_ending() && !self.engine().is_finished() {
            if let Some(line) = cudaq::ready_line(&self.engine().snapshot()) {
                // A reader that has gone does not stop the engine.
                let _ = say::text(&mut io::stdout().lock(), &format!("{line}\n"));
                return;
            }
            pause(POLL_INTERVAL);
        }
    }

    /// Ends the run when the console could not start: drains the engine and removes the run
    /// directory.
    fn abandon(self) {
        drop(self.metrics);
        drop(self.disturbances);
        self.recorded.abandon();
    }

    /// Ends without waiting for the drain: prints the number of unanswered shots. The threads end
    /// with the process.
    fn leave(self, reader: Reader) -> u8 {
        let total = self.engine().snapshot().totals();
        let left = total.submitted.saturating_sub(total.answered);
        if reader == Reader::Present {
            let left = counted(left, "shot");
            say::people(&format!("pinwheel: left with {left} unanswered; no report was written"));
        }
        self.recorded.leave();
        1
    }

    /// Ends the engine, writes and prints its report; returns the exit status.
    fn end(self, signal: Option<i32>, console_cost: Option<serde_json::Value>, reader: Reader) -> u8 {
        let Run { request, metrics, disturbances, recorded, joined } = self;
        drop(metrics);
        drop(disturbances);
        let context = Context {
            predictions_asked: request.predictions.is_some(),
            profile_file: request.profile_file.as_ref().map(|path| path.display().to_string()),
            console_cost,
            notes: request.notes.clone(),
            ..Context::default()
        };
        let EndedRun { report, outcome, trouble } = recorded.end(signal, context);
        hosts::leave(joined);
        if reader == Reader::Gone {
            return report.exit_status;
        }
        if let Some(said) = trouble {
            say::people(&format!("pinwheel: {said}"));
        }
        if let Some(said) = outcome.environment.as_ref().and_then(|found| found.trouble.as_deref()) {
            say::people(&format!("pinwheel: {said}"));
        }
        if request.ready_line {
            let counters = cudaq::counters(&outcome.snapshot);
            let _ = say::text(&mut io::stdout().lock(), &counters);
        }
        print_report(&request, &report)
    }
}

/// Refuses options that need several silos where `silos: auto` resolves to one.
fn require_silos(request: &RunRequest, host: &HostFacts) -> Result<(), Refusal> {
    let option = match (request.move_every, request.kill_every) {
        (Some(_), _) => "--move-every",
        (None, Some(_)) => "--kill-every",
        (None, None) => return Ok(()),
    };
    if request.profile.silos != Silos::Auto {
        return Ok(());
    }
    // The start refuses a list of threads that this machine cannot provide.
    let Ok(plan) = preview_plan(&request.profile, host.clone(), &board::directory()) else { return Ok(()) };
    if plan.silos.count > 1 {
        return Ok(());
    }
    let found = format!("one silo ({})", plan.silos.why);
    Err(Refusal::unusable(option, found, "at least two", "add --silos 2, or omit the option"))
}

fn resolve(args: &RunArgs, user_paths: &UserPaths) -> Result<(RunRequest, PathBuf), Refusal> {
    let dir = places::profiles(args.profiles.as_deref(), user_paths)?;
    let (mut profile, origin) = Profile::load(args.profile.as_deref().unwrap_or(DEFAULT_NAME), dir.as_deref())?;
    let on_terminal = term::can_show();
    let decoders = cudaq::apply(args, &mut profile)?;
    let mut request = RunRequest::resolve(args, origin.name(), profile, on_terminal)?.serving(decoders);
    request.hosts = args.hosts.as_deref().map(|path| hosts::settings(path, &request)).transpose()?;
    if let Origin::File(path) = origin {
        request.profile_file = Some(std::path::absolute(&path).unwrap_or(path));
    }
    Ok((request, places::logs(args.logs.as_deref(), user_paths)?))
}

/// Refuses a run whose output files are among its input files.
fn require_distinct_files(request: &RunRequest, args: &RunArgs) -> Result<(), Refusal> {
    let (model_option, model) = match (&args.cudaq_config, &request.model) {
        (Some(path), _) => ("--cudaq-config", path.as_path()),
        (None, ModelSource::Option(path)) => ("--dem", path.as_path()),
        (None, ModelSource::Profile(name)) => ("the profile's model", Path::new(name)),
    };
    let (shots, observables) = match &request.shots {
        ShotSource::File { shots, observables } => (Some(shots.as_path()), observables.as_deref()),
        ShotSource::Stdin => (Some(Path::new("-")), None),
        ShotSource::Sampler { .. } | ShotSource::Live(_) => (None, None),
    };
    let inputs = [
        (model_option, Some(model)),
        ("--shots", shots),
        ("--observables", observables),
        ("--m2d", request.m2d.as_deref()),
        ("--soft", request.soft.as_deref()),
        ("--soft-map", request.soft_map.as_deref()),
        ("the profile", request.profile_file.as_deref()),
        ("--keys", args.console.keys.as_deref()),
        ("--hosts", args.hosts.as_deref()),
    ];
    let outputs = [("--predictions", request.predictions.as_deref()), ("--answers", request.answers.as_deref())];
    let inputs: Vec<_> = inputs.into_iter().filter_map(|(option, path)| Some((option, path?))).collect();
    let outputs: Vec<_> = outputs.into_iter().filter_map(|(option, path)| Some((option, path?))).collect();
    require_distinct(&inputs, &outputs)
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

fn config(request: &RunRequest, loaded: Loaded, sink: Option<AnswerSink>) -> Config {
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
        environment: None,
        notes: request.notes.clone(),
        drill_command: pinwheel_engine::engine::prepared_for_drills(&request.profile),
        profiles: None,
        bridge: None,
        boards: board::directory(),
        takes_inputs: true,
    }
}

/// What [`watch`] needs of the current run.
trait WatchedRun {
    /// `None` if no run is active.
    fn snapshot(&self) -> Option<Snapshot>;
    fn on_hangup(&self) -> OnHangup;
    fn request_drain(&mut self);
    fn is_finished(&self) -> bool;
    /// Advances a change of input, and returns the messages for the user.
    fn step(&mut self) -> Vec<Reply>;
}

/// Polls until the last run has ended; returns the signal that requested its drain.
fn watch(
    run: &mut impl WatchedRun,
    received: &dyn Fn(OnHangup) -> Option<i32>,
    line: &mut dyn FnMut(&str),
    pause: &mut dyn FnMut(),
) -> Option<i32> {
    let mut previous = run.snapshot();
    let mut signal = None;
    let mut polls = 0;
    loop {
        let replies = run.step();
        if run.is_finished() {
            // The end of the program prints why no run follows. A signal since the last poll, or one
            // that the console took before the terminal closed, counts too.
            return signal.or_else(|| received(run.on_hangup()));
        }
        for reply in replies {
            let (Reply::Done(said) | Reply::Refused(said)) = reply else { continue };
            line(&format!("pinwheel: {said}"));
        }
        if signal.is_none()
            && let Some(number) = received(run.on_hangup())
        {
            signal = Some(number);
            line("pinwheel: draining; a second signal ends at once and loses the shots in flight");
            run.request_drain();
        }
        if polls == POLLS_PER_LINE {
            let now = run.snapshot();
            // A progress line compares two snapshots of the same run.
            if let (Some(previous), Some(now)) = (&previous, &now)
                && previous.at_ns < now.at_ns
                && previous.engine.started_utc_s == now.engine.started_utc_s
            {
                line(&progress_line(previous, now));
            }
            (previous, polls) = (now, 0);
        }
        polls += 1;
        pause();
    }
}

/// Prints the report. When `--answers -` uses standard output, a text report goes to standard
/// error; a JSON report is the last line of standard output.
fn print_report(request: &RunRequest, report: &Report) -> u8 {
    let answers_on_stdout = request.answers.as_deref() == Some(Path::new("-"));
    let printed = match request.output_mode {
        OutputMode::Scripts => say::json(&mut io::stdout().lock(), report),
        _ if answers_on_stdout => say::text(&mut io::stderr().lock(), &report.to_string()),
        _ => say::text(&mut io::stdout().lock(), &report.to_string()),
    };
    written(printed, report.exit_status)
}

#[cfg(test)]
mod tests;
