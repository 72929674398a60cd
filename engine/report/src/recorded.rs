//! A run with its directory: from the start of its engine to the report that it leaves.
//!
//! Owns the run's directory and its engine. Runs on a cold thread. A start that fails leaves no
//! directory. A full disk never fails a run: [`EndedRun::trouble`] says what could not be written.

use crate::report::{Context, Report};
use pinwheel_engine::board::snapshot::GraphView;
use pinwheel_engine::clock::{Clock, utc_now_s};
use pinwheel_engine::engine::{Config, EndedBy, Engine, Outcome, ReportTarget, StartError, detection_files};
use pinwheel_engine::graph;
use pinwheel_engine::host::{HostError, HostFacts, pin};
use pinwheel_engine::profile::{Faults, Severity};
use pinwheel_engine::record::runs::{Ended, MANIFEST, Manifest};
use pinwheel_engine::record::tape::Tape;
use pinwheel_engine::record::{REPORT, RunDir, RunDirError, hlog};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Why a run does not begin.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum BeginError {
    #[error(transparent)]
    Host(#[from] HostError),
    #[error(transparent)]
    RunDir(#[from] RunDirError),
    #[error(transparent)]
    Start(#[from] StartError),
}

/// The user's state directory, from `$XDG_STATE_HOME` and `$HOME`; `None` if neither is an absolute path.
pub fn state_directory(state_home: Option<&Path>, home: Option<&Path>) -> Option<PathBuf> {
    // The XDG base directory specification requires relative paths to be ignored.
    let state = state_home.filter(|dir| dir.is_absolute()).map(Path::to_owned);
    let home = home.filter(|dir| dir.is_absolute()).map(|home| home.join(".local/state"));
    Some(state.or(home)?.join("pinwheel"))
}

/// The file of this host's key in the user's state directory.
pub fn host_key(state: &Path) -> PathBuf {
    state.join("host.key")
}

/// What a run's manifest says besides what every run's says.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// Seed of a sampler.
    pub seed: Option<u64>,
    /// Whether the run was made with `--keep`.
    pub keep: bool,
}

/// A running engine with its run directory.
pub struct RecordedRun {
    host: HostFacts,
    run_dir: RunDir,
    manifest: Manifest,
    /// The profile's name at the start.
    profile: String,
    faults: Faults,
    engine: Engine,
}

/// A run that has ended.
#[derive(Debug)]
pub struct EndedRun {
    /// Its report, as written.
    pub report: Report,
    /// Its outcome.
    pub outcome: Outcome,
    /// What could not be written into its directory, in one sentence.
    pub trouble: Option<String>,
}

impl RecordedRun {
    /// Makes a run directory in `logs` and starts the engine of `config`, whose events, environment report
    /// and control socket go there. `key`: the file of this host's key.
    ///
    /// The calling thread keeps to the engine's cold cores from then on.
    ///
    /// # Errors
    /// [`BeginError`], one sentence; no directory and no thread is left.
    pub fn begin(
        host: HostFacts,
        logs: &Path,
        key: Option<PathBuf>,
        about: About,
        config: Config,
    ) -> Result<RecordedRun, BeginError> {
        let mut run_dir = RunDir::create(logs, &config.profile_name, utc_now_s())?;
        run_dir.write_profile(&config.profile);
        let mut manifest = manifest(&config, about);
        // Written before the engine starts, so that a run that hangs during its start has a
        // manifest.
        write_json(&mut run_dir, MANIFEST, &manifest);
        let (profile, faults) = (config.profile_name.clone(), config.profile.faults.clone());
        // Threads without a core of their own inherit this thread's cores, which were those of the
        // last plan if the run goes on with another input.
        let cores: Vec<u32> = host.cores.iter().map(|facts| facts.core).collect();
        let _ = pin::confine_current_thread(&cores);
        let started = Engine::start(Config {
            events: Some(run_dir.events()),
            run_dir: Some(run_dir.path().to_owned()),
            environment: Some(ReportTarget { directory: run_dir.path().to_owned(), key }),
            ..config
        });
        let engine = match started {
            Ok(engine) => engine,
            Err(refused) => {
                run_dir.abandon();
                return Err(refused.into());
            }
        };
        // If the system refuses, the scheduler decides.
        let _ = pin::confine_current_thread(&engine.plan().cold_cores);
        manifest.plan = serde_json::to_value(engine.plan()).unwrap_or_default();
        // The port of a socket is known by now.
        manifest.input = engine.viewer().snapshot().engine.input;
        write_json(&mut run_dir, MANIFEST, &manifest);
        Ok(RecordedRun { host, run_dir, manifest, profile, faults, engine })
    }

    /// Its engine.
    pub const fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        self.run_dir.path()
    }

    /// Drains the engine and removes the run's directory: the run was not to begin after all.
    pub fn abandon(self) {
        drop(self.engine);
        self.run_dir.abandon();
    }

    /// Leaves the engine running without a handle, and writes no report: the process ends next.
    pub fn leave(self) {
        std::mem::forget(self.engine);
    }

    /// Waits for the end of the engine and writes the run's report. `signal`: the signal that asked for the
    /// drain. Of `context` the caller gives what only it knows: the file of the profile, the console's cost,
    /// predictions and notes.
    #[must_use]
    pub fn end(self, signal: Option<i32>, context: Context) -> EndedRun {
        let RecordedRun { host, mut run_dir, mut manifest, profile, faults, engine } = self;
        let clock = engine.clock().clone();
        let silos = &engine.plan().silos;
        let silos_auto = silos.auto.then(|| silos.why.clone());
        let mut outcome = engine.finish();
        name_signal(&mut outcome, signal);
        let context = Context {
            faults: Some(faults),
            run_dir: Some(run_dir.path().display().to_string()),
            // Another profile may have been applied during the run.
            profile_file: context.profile_file.filter(|_| outcome.snapshot.engine.profile == profile),
            host: serde_json::to_value(host).unwrap_or_default(),
            silos_auto,
            ..context
        };
        let mut report = Report::new(&outcome, &context);
        // Written first: space is reserved for it, and the unused part is then free for the other
        // files.
        write_json(&mut run_dir, REPORT, &report);
        keep_end(&mut run_dir, &outcome);
        keep_task_times(&mut run_dir, &mut outcome, &clock);
        if let Some(said) = run_dir.trouble() {
            report.add_unsound("run_directory", said);
            write_json(&mut run_dir, REPORT, &report);
        }
        let critical = outcome.snapshot.alarms.iter().filter(|alarm| alarm.severity == Severity::Critical);
        let (by, exit_status) = (report.ended_by.clone(), report.exit_status);
        manifest.ended = Some(Ended { by, exit_status, critical_alarms: critical.count() as u64 });
        write_json(&mut run_dir, MANIFEST, &manifest);
        let trouble = run_dir.trouble();
        if let Some(said) = &trouble {
            report.add_unsound("run_directory", said.clone());
        }
        EndedRun { report, outcome, trouble }
    }
}

/// The manifest before the start: it holds only what was requested.
fn manifest(config: &Config, about: About) -> Manifest {
    Manifest {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        board_layout: Manifest::layout(),
        profile: config.profile_name.clone(),
        label: config.label.clone(),
        input: config.input.words(),
        seed: about.seed,
        command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        pid: std::process::id(),
        started_utc_s: utc_now_s(),
        keep: about.keep,
        plan: serde_json::Value::Null,
        ended: None,
    }
}

fn write_json(run_dir: &mut RunDir, name: &str, value: &impl Serialize) {
    if let Ok(mut text) = serde_json::to_vec_pretty(value) {
        text.push(b'\n');
        run_dir.write(name, &text);
    }
}

/// The engine records that a drain was requested, but not which signal requested it.
fn name_signal(outcome: &mut Outcome, signal: Option<i32>) {
    if let (EndedBy::Drained, Some(signal)) = (&outcome.ended_by, signal) {
        outcome.ended_by = EndedBy::Signal(signal);
    }
}

fn keep_end(run_dir: &mut RunDir, outcome: &Outcome) {
    write_json(run_dir, "faults.json", &outcome.snapshot.faults);
    // The models and the counts of a run that watched for drifts.
    for (name, content) in detection_files(&outcome.counted, &mut Vec::new()) {
        run_dir.write(&name, &content);
    }
    // Made from the recording; without one the quantiles are in the report only.
    let mut log = Vec::new();
    let written = Tape::open(run_dir.path()).ok().map(|mut tape| hlog::write(&mut tape, &mut log));
    if matches!(written, Some(Ok(()))) {
        run_dir.write("latency.hlog", &log);
    }
}

/// Writes task times for Perfetto, sorted by start: a process for each silo, a thread for each
/// worker of its pool.
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

#[cfg(test)]
mod tests {
    use super::{EndedBy, name_signal};
    use crate::sound::sound;

    #[test]
    fn only_a_drain_is_ascribed_to_the_signal() {
        for (ended_by, expected) in [(EndedBy::Drained, EndedBy::Signal(2)), (EndedBy::Count, EndedBy::Count)] {
            let mut outcome = sound();
            outcome.ended_by = ended_by;
            name_signal(&mut outcome, Some(2));
            assert_eq!(outcome.ended_by, expected);
        }
    }
}
