//! The report of a run: one structure, as JSON for scripts and as text for people.
//!
//! Pure: an outcome in, a report out; the command line prints it and the run directory keeps it. Bounded by the final
//! snapshot. Never shows a number that was not measured: what is not known is `null`, and absent from the text.

mod judge;
mod lives;
mod overflow;
mod text;
mod wilson;

pub use judge::Alarm;
pub use lives::LifeReport;
pub use overflow::OverflowReport;
pub use text::{grouped, progress_line};
pub use wilson::{byar_95, interval_95};

use pinwheel_engine::board::histogram::Histogram;
use pinwheel_engine::board::snapshot::{
    ClockView, Counters, ErrorCount, GpuView, InputHealthView, LogView, MoveFailure, MovesView, PlacementView,
    PriorityView, RivalView, SiloView, Snapshot, SourceView, StreamView, ThreadView,
};
use pinwheel_engine::engine::{EndedBy, Found, Outcome};
use pinwheel_engine::profile::Faults;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// What a report needs besides the outcome.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// Whether `--predictions` was given: an errored shot is then a hole in a result.
    pub predictions_asked: bool,
    /// The faults that the profile injects; `None`: not known, so none.
    pub faults: Option<Faults>,
    /// Where the run is kept.
    pub run_dir: Option<String>,
    /// The profile's file; `None`: built in, or another profile is in force.
    pub profile_file: Option<String>,
    /// The machine.
    pub host: serde_json::Value,
    /// What the console cost; `None` without one.
    pub console_cost: Option<serde_json::Value>,
    /// Why there are so many silos, where the machine decided.
    pub silos_auto: Option<String>,
    /// Sentences to say with the report.
    pub notes: Vec<String>,
}

/// Readouts of two streams at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct JointReport {
    /// Readouts made.
    pub read: u64,
    /// Of these: what the answers of both streams say.
    pub consistent: u64,
    /// Given up: a stream did not come so far, or its state was away.
    pub refused: u64,
}

/// Moves of streams between silos. Times are nanoseconds.
#[derive(Clone, Debug, Serialize)]
pub struct MovesReport {
    /// Moves asked for.
    pub asked: u64,
    /// Of these: to where the stream was, or of one that moved already.
    pub needless: u64,
    /// Moves after which the stream is decoded in the other silo.
    pub done: u64,
    /// Given up: the stream stayed.
    pub failed: u64,
    /// Shots that waited in a stage.
    pub staged: u64,
    /// Shots that were decoded in another silo than their feed's.
    pub handed_on: u64,
    /// Shots that met another route than theirs, and went back.
    pub sent_back: u64,
    /// How long streams that moved stood still.
    pub pause_ns: Histogram,
    /// Of that: until the owner had answered all.
    pub quiesce_ns: Histogram,
    /// Of that: until the page had come.
    pub transfer_ns: Histogram,
    /// Why moves were given up: the last of each silo's.
    pub failures: Vec<MoveFailure>,
}

impl MovesReport {
    fn of(silos: &[SiloView]) -> Option<MovesReport> {
        let views = || silos.iter().filter_map(|silo| silo.moves.as_ref());
        let sum = |of: fn(&MovesView) -> u64| views().map(of).sum();
        views().next()?;
        Some(MovesReport {
            asked: sum(|moves| moves.asked),
            needless: sum(|moves| moves.needless),
            done: sum(|moves| moves.done),
            failed: sum(|moves| moves.failed),
            staged: sum(|moves| moves.staged),
            handed_on: sum(|moves| moves.handed_on),
            sent_back: sum(|moves| moves.sent_back),
            pause_ns: merged(views().map(|moves| &moves.pause)),
            quiesce_ns: merged(views().map(|moves| &moves.quiesce)),
            transfer_ns: merged(views().map(|moves| &moves.transfer)),
            failures: views().filter_map(|moves| moves.last_failure.clone()).collect(),
        })
    }
}

/// A run, as scripts and people read it. Times are nanoseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Version of the program.
    pub version: String,
    /// The status that the command ends with.
    pub exit_status: u8,
    /// Shots whose arrival was due.
    pub scheduled: u64,
    /// Shots written into a slot.
    pub submitted: u64,
    /// Answers harvested, errors included.
    pub answered: u64,
    /// Submitted and not answered at the end.
    pub lost: u64,
    /// Answers of a shot that was answered before.
    pub duplicated: u64,
    /// Answers that came before that of an older shot of their stream.
    pub out_of_order: u64,
    /// Errors answered, by code.
    pub errors: BTreeMap<u16, u64>,
    /// What the codes mean.
    pub error_names: BTreeMap<u16, String>,
    /// Answers that came after their deadline.
    pub late: u64,
    /// Later than this from the scheduled arrival is late.
    pub deadline_ns: u64,
    /// Answers that differ from the true observables.
    pub logical_errors: u64,
    /// Logical errors over the shots with true observables; `null`: there were none.
    pub logical_error_rate: Option<f64>,
    /// The 95 % Wilson interval of that rate.
    pub logical_error_rate_ci95: Option<[f64; 2]>,
    /// Answers that could be compared with true observables.
    pub shots_with_observables: u64,
    /// Readouts of two streams at once.
    pub joint: JointReport,
    /// Moves of streams between silos; `null`: there was one silo.
    pub moves: Option<MovesReport>,
    /// How each silo lived; `null`: there was one silo.
    pub lives: Option<Vec<LifeReport>>,
    /// Shots that found no slot.
    pub overflow: OverflowReport,
    /// The director as it stood at the end; `null`: none ran.
    pub placement: Option<PlacementView>,
    /// What ended the run: its count, its duration, its input, an operator, a signal or a fault.
    pub ended_by: String,
    /// Time in the phases Live and Drain.
    pub elapsed_live_ns: u64,
    /// Answers a second of that time.
    pub throughput_per_s: Option<f64>,
    /// Scheduled arrivals a second; `null`: as fast as slots come free.
    pub rate_hz: Option<f64>,
    /// Where the rate comes from.
    pub rate_origin: String,
    /// From scheduled arrival to answer.
    pub latency_ns: Histogram,
    /// From the slot to the answer.
    pub latency_from_submit_ns: Histogram,
    /// Time in each stage of the path, by its name.
    #[serde(serialize_with = "as_map")]
    pub stages: Vec<(&'static str, Histogram)>,
    /// Work of dispatch per shot.
    pub dispatch_ns_per_shot: Option<f64>,
    /// Detection events that the predecoder resolved.
    pub predecoded_events: u64,
    /// What the console cost; `null` without one.
    pub console_cost: Option<serde_json::Value>,
    /// Where shots came from.
    pub input: String,
    /// Detectors of a shot.
    pub detectors: u32,
    /// Observables of an answer.
    pub observables: u32,
    /// The device that predecoded.
    pub device: String,
    /// The decoder.
    pub decoder: String,
    /// The predecoder.
    pub predecoder: String,
    /// Name of the profile in force at the end.
    pub profile: String,
    /// The profile's file; `null`: built in, or read by another process.
    pub profile_file: Option<String>,
    /// The words given by `--label`.
    pub label: String,
    /// Number of silos.
    pub silos: usize,
    /// Why so many, where the machine decided; `null`: they were asked for.
    pub silos_auto: Option<String>,
    /// One for each hot thread.
    pub threads: Vec<ThreadReport>,
    /// One for each stream.
    pub streams: Vec<StreamReport>,
    /// What is wrong at the end, and the alarms of the log.
    pub alarms: Vec<Alarm>,
    /// Live sources of shots; empty where they were drawn or read.
    pub sources: Vec<SourceView>,
    /// Stream and sequence of shots without an answer.
    pub unanswered: Vec<(u32, u64)>,
    /// From the deadline of a timer to the frame that found it expired.
    pub timer_lateness_ns: Histogram,
    /// One for each silo on a GPU.
    pub gpus: Vec<GpuReport>,
    /// What told the time.
    pub clock: ClockReport,
    /// Events of the hot threads.
    pub log: LogView,
    /// Sentences for people.
    pub notes: Vec<String>,
    /// The machine.
    pub host: serde_json::Value,
    /// What the environment report of this run said; `null` if none was made.
    pub environment: Option<Found>,
    /// The run's directory; `null`: it has none.
    pub run_dir: Option<String>,
}

/// One thread of the frame loop; `hot`: it has a core.
#[derive(Clone, Debug, Serialize)]
pub struct ThreadReport {
    /// Its name.
    pub name: String,
    /// Its roles, in the order in which a frame runs them.
    pub roles: Vec<&'static str>,
    /// The core that it is pinned to.
    pub core: Option<u32>,
    /// Whether it is pinned.
    pub pinned: bool,
    /// Whether it has a core.
    pub hot: bool,
    /// Frames since its start.
    pub frames: u64,
    /// From the start of a frame to the start of the next.
    pub frame_gap_ns: Histogram,
    /// Its scheduling priority.
    pub priority: PriorityView,
    /// Who else wanted its core, last and most; `null`: nobody was seen.
    pub contended_by: Option<RivalView>,
    /// Allocations in Live; `null`: not visible.
    pub allocations: Option<u64>,
    /// Allocations in Live that the thread's own reserve served.
    pub allocations_lent: u64,
    /// Frames that began on another core than `core`.
    pub frames_elsewhere: u64,
}

/// One stream.
#[derive(Clone, Debug, Serialize)]
pub struct StreamReport {
    /// Its number.
    pub id: u32,
    /// Its answers, errors included.
    pub answered: u64,
    /// Of these: after their deadline.
    pub late: u64,
    /// Of these: error codes.
    pub errors: u64,
    /// Of the latency, nanoseconds; `null` before the first answer.
    pub p99: Option<u64>,
    /// Its rate of logical errors; `null`: no true observables.
    pub logical_error_rate: Option<f64>,
    /// Parity of each of the first 64 observables over its answers.
    pub frame: u64,
    /// Shots that found no slot, by outcome.
    pub overflow: BTreeMap<&'static str, u64>,
    /// How its detection events compare with the model.
    pub input_health: InputHealthView,
}

/// A silo's GPU.
#[derive(Clone, Debug, Serialize)]
pub struct GpuReport {
    /// The silo.
    pub silo: u32,
    /// What the board says of it.
    #[serde(flatten)]
    pub gpu: GpuView,
    /// Launches a second while live.
    pub launches_per_s: Option<f64>,
}

/// What told the time.
#[derive(Clone, Debug, Serialize)]
pub struct ClockReport {
    /// The clock.
    pub source: String,
    /// Why it is not the counter, if so.
    pub degraded: Option<String>,
    /// Times it was compared with the system's clocks.
    pub pairs: u64,
    /// Times that UTC was set.
    pub utc_steps: u64,
    /// Times that the counter jumped.
    pub counter_steps: u64,
    /// Of the last comparison: how long it took, so how exactly UTC is known.
    pub width_ns: Option<u64>,
}

impl Report {
    /// Makes the report of an ended run.
    pub fn new(outcome: &Outcome, context: &Context) -> Report {
        let Snapshot { engine, threads, silos, streams, .. } = &outcome.snapshot;
        let counters = sum(silos);
        let alarms = judge::alarms(outcome, context);
        let elapsed_s = outcome.elapsed_live_ns as f64 / 1e9;
        let mut notes = engine.notes.clone();
        notes.extend(context.notes.iter().filter(|note| !engine.notes.contains(note)).cloned());
        notes.extend(outcome.events.iter().filter_map(|ended| ended.clone().err()));
        Report {
            version: engine.version.clone(),
            exit_status: judge::exit_status(&outcome.ended_by, &alarms),
            scheduled: counters.scheduled,
            submitted: counters.submitted,
            answered: counters.answered,
            lost: counters.submitted.saturating_sub(counters.answered),
            duplicated: counters.duplicated,
            out_of_order: counters.out_of_order,
            errors: by_code(silos, |error, entry: &mut u64| *entry += error.count),
            error_names: by_code(silos, |error, entry: &mut String| entry.clone_from(&error.name)),
            late: counters.late,
            deadline_ns: engine.late_ns,
            logical_errors: counters.logical_errors,
            logical_error_rate: ratio(counters.logical_errors, counters.shots_with_observables),
            logical_error_rate_ci95: wilson::interval_95(counters.logical_errors, counters.shots_with_observables),
            shots_with_observables: counters.shots_with_observables,
            joint: JointReport {
                read: counters.joint_read,
                consistent: counters.joint_consistent,
                refused: counters.joint_refused,
            },
            moves: MovesReport::of(silos),
            lives: lives::of(silos),
            overflow: OverflowReport::of(silos),
            placement: outcome.snapshot.placement.clone(),
            ended_by: ended_by_name(&outcome.ended_by),
            elapsed_live_ns: outcome.elapsed_live_ns,
            throughput_per_s: (elapsed_s > 0.0).then(|| counters.answered as f64 / elapsed_s),
            rate_hz: engine.rate_hz,
            rate_origin: engine.rate_origin.clone(),
            latency_ns: merged(silos.iter().map(|silo| &silo.latency)),
            latency_from_submit_ns: merged(silos.iter().map(|silo| &silo.latency_from_submit)),
            stages: stages(silos),
            dispatch_ns_per_shot: ratio(counters.dispatch_ns, counters.dispatched),
            predecoded_events: counters.predecoded_events,
            console_cost: context.console_cost.clone(),
            input: engine.input.clone(),
            detectors: engine.detectors,
            observables: engine.observables,
            device: engine.device.clone(),
            decoder: engine.decoder.clone(),
            predecoder: engine.predecoder.clone(),
            profile: engine.profile.clone(),
            label: engine.label.clone(),
            silos: silos.len(),
            silos_auto: context.silos_auto.clone(),
            threads: threads.iter().map(thread).collect(),
            streams: streams.iter().map(stream).collect(),
            alarms,
            sources: outcome.snapshot.sources.clone(),
            unanswered: outcome.unanswered.clone(),
            timer_lateness_ns: merged(silos.iter().map(|silo| &silo.timer_lateness)),
            gpus: gpus(silos, elapsed_s),
            clock: clock(&outcome.snapshot.clock),
            log: outcome.snapshot.log,
            notes,
            host: context.host.clone(),
            environment: outcome.environment.clone(),
            run_dir: context.run_dir.clone(),
            profile_file: context.profile_file.clone(),
        }
    }

    /// Adds what was found wrong after the run had ended, in the place of what was said of it before.
    pub fn add_unsound(&mut self, name: &'static str, what: String) {
        self.alarms.retain(|alarm| alarm.alarm != name);
        self.alarms.push(judge::unsound(name, what));
        self.exit_status = 1;
    }
}

fn gpus(silos: &[SiloView], elapsed_s: f64) -> Vec<GpuReport> {
    let of = |silo: &SiloView| {
        let gpu = silo.gpu.clone()?;
        let launches_per_s = (elapsed_s > 0.0).then(|| gpu.launches as f64 / elapsed_s);
        Some(GpuReport { silo: silo.id, gpu, launches_per_s })
    };
    silos.iter().filter_map(of).collect()
}

/// Those counters that a report shows, of all silos together; the others stay zero.
pub fn sum(silos: &[SiloView]) -> Counters {
    let mut total = Counters::default();
    for counters in silos.iter().map(|silo| &silo.counters) {
        total.scheduled += counters.scheduled;
        total.submitted += counters.submitted;
        total.dispatched += counters.dispatched;
        total.answered += counters.answered;
        total.errored += counters.errored;
        total.late += counters.late;
        total.duplicated += counters.duplicated;
        total.out_of_order += counters.out_of_order;
        total.shots_with_observables += counters.shots_with_observables;
        total.logical_errors += counters.logical_errors;
        total.predecoded_events += counters.predecoded_events;
        total.dispatch_ns += counters.dispatch_ns;
        total.joint_read += counters.joint_read;
        total.joint_consistent += counters.joint_consistent;
        total.joint_refused += counters.joint_refused;
    }
    total
}

/// Distributions of all silos together.
pub fn merged<'a>(parts: impl Iterator<Item = &'a Histogram>) -> Histogram {
    let mut whole = Histogram::default();
    parts.for_each(|part| whole.merge(part));
    whole
}

fn stages(silos: &[SiloView]) -> Vec<(&'static str, Histogram)> {
    let mut stages: Vec<(&'static str, Histogram)> = Vec::new();
    for stage in silos.iter().flat_map(|silo| &silo.stages) {
        match stages.iter_mut().find(|(name, _)| *name == stage.name) {
            Some((_, time)) => time.merge(&stage.time),
            None => stages.push((stage.name, stage.time.clone())),
        }
    }
    stages
}

fn by_code<T: Default>(silos: &[SiloView], mut add: impl FnMut(&ErrorCount, &mut T)) -> BTreeMap<u16, T> {
    let mut codes = BTreeMap::new();
    for error in silos.iter().flat_map(|silo| &silo.errors) {
        add(error, codes.entry(error.code).or_default());
    }
    codes
}

fn thread(view: &ThreadView) -> ThreadReport {
    ThreadReport {
        name: view.name.clone(),
        roles: view.roles.iter().map(|role| role.kind.name()).collect(),
        core: view.core,
        pinned: view.pinned,
        hot: view.core.is_some(),
        frames: view.frames,
        frame_gap_ns: view.frame_gap.clone(),
        priority: view.priority.clone(),
        contended_by: view.contended_by.clone(),
        allocations: view.memory.allocations,
        allocations_lent: view.memory.lent,
        frames_elsewhere: view.frames_elsewhere,
    }
}

fn clock(view: &ClockView) -> ClockReport {
    ClockReport {
        source: view.source.clone(),
        degraded: view.degraded.clone(),
        pairs: view.pairs,
        utc_steps: view.utc_steps,
        counter_steps: view.counter_steps,
        width_ns: view.pair.map(|pair| pair.width_ns),
    }
}

fn stream(view: &StreamView) -> StreamReport {
    StreamReport {
        id: view.id,
        answered: view.answered,
        late: view.late,
        errors: view.errors,
        p99: (view.latency.count() > 0).then(|| view.latency.quantile_ns(0.99)),
        logical_error_rate: ratio(view.logical_errors, view.shots_with_observables),
        frame: view.frame,
        overflow: overflow::by_name(&view.overflow),
        input_health: view.input_health.clone(),
    }
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn ended_by_name(ended_by: &EndedBy) -> String {
    match ended_by {
        EndedBy::Count => "count".to_owned(),
        EndedBy::Duration => "duration".to_owned(),
        EndedBy::Input => "input".to_owned(),
        EndedBy::Drained => "drained".to_owned(),
        EndedBy::Signal(2) => "sigint".to_owned(),
        EndedBy::Signal(15) => "sigterm".to_owned(),
        EndedBy::Signal(other) => format!("signal {other}"),
        EndedBy::Fault => "fault".to_owned(),
    }
}

fn as_map<S: Serializer>(stages: &[(&'static str, Histogram)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(stages.iter().map(|(name, time)| (name, time)))
}

#[cfg(test)]
pub mod tests;
