//! The report of a run: one structure, printed as JSON or as text.
//!
//! Pure: made from the outcome of a run. The command line prints the report, and the run directory
//! keeps it. Its size is bounded by the final snapshot. An unknown number is `null` in JSON and
//! absent from the text.

mod conditions;
mod lifecycle;
mod overflow;
mod shadow;
mod text;

pub use conditions::Alarm;
pub use lifecycle::LifecycleReport;
pub use overflow::OverflowReport;
pub use pinwheel_collect::intervals::{byar_95, interval_95};
pub use text::{duration_text, grouped, progress_line, rate_text, short};

use pinwheel_engine::board::deadlines::{WrongOrLate, wrong_or_late};
use pinwheel_engine::board::histogram::Histogram;
use pinwheel_engine::board::snapshot::{
    ClockView, CompetitorView, Counters, DecoderShots, ErrorCount, GpuView, IncidentView, InputHealthView, LogView,
    MoveFailure, MovesView, NoiseView, PlacementView, PriorityView, SiloView, Snapshot, SourceView, StreamView,
    ThreadView,
};
use pinwheel_engine::engine::{EndedBy, EnvironmentResult, Outcome};
use pinwheel_engine::profile::Faults;
use serde::{Serialize, Serializer};
use shadow::ShadowReport;
use std::collections::BTreeMap;

/// Facts that a report needs besides the outcome.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// Whether `--predictions` was given: an errored shot then leaves zeros in the file.
    pub predictions_asked: bool,
    /// The faults that the profile injects; `None` if not known, which counts as none.
    pub faults: Option<Faults>,
    /// The run's directory.
    pub run_dir: Option<String>,
    /// The profile's file; `None` if it is built in, or another profile has been applied.
    pub profile_file: Option<String>,
    /// Facts about the host machine.
    pub host: serde_json::Value,
    /// Cost of the console in time and output; `None` without a console.
    pub console_cost: Option<serde_json::Value>,
    /// Reason for the number of silos, if it was chosen automatically.
    pub silos_auto: Option<String>,
    /// Notes to print with the report.
    pub notes: Vec<String>,
}

/// Readouts of two streams at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct JointReport {
    /// Completed readouts.
    pub read: u64,
    /// Of these: readouts that agree with the answers of both streams.
    pub consistent: u64,
    /// Abandoned: a stream did not reach the sequence number, or its state was in another silo.
    pub refused: u64,
}

/// Moves of streams between silos. Times are nanoseconds.
#[derive(Clone, Debug, Serialize)]
pub struct MovesReport {
    /// Requested moves.
    pub asked: u64,
    /// Of these: no move needed, because the stream was there or was already moving.
    pub needless: u64,
    /// Moves after which the stream is decoded in the other silo.
    pub done: u64,
    /// Abandoned moves; the stream stayed in its silo.
    pub failed: u64,
    /// Shots that waited for the move of their stream.
    pub staged: u64,
    /// Shots decoded in another silo than the one whose feed took them.
    pub handed_on: u64,
    /// Shots whose route had changed on the way, and which were sent back.
    pub sent_back: u64,
    /// Pause of a stream during a move.
    pub pause_ns: Histogram,
    /// Part of the pause until the old owner had answered all its shots.
    pub quiesce_ns: Histogram,
    /// Part of the pause until the stream's page had arrived.
    pub transfer_ns: Histogram,
    /// The last abandoned move of each silo, with its reason.
    pub failures: Vec<MoveFailure>,
}

impl MovesReport {
    fn of(silos: &[SiloView]) -> Option<MovesReport> {
        let views = || silos.iter().filter_map(|silo| silo.moves.as_ref());
        let sum = |of: fn(&MovesView) -> u64| sum(views().map(of));
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

/// The report of one run. Times are nanoseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Version of the program.
    pub version: String,
    /// Exit status of the command.
    pub exit_status: u8,
    /// Shots whose arrival was due, without those that waited for a slot when the drain began.
    pub scheduled: u64,
    /// Shots written into a slot.
    pub submitted: u64,
    /// Answers harvested, errors included.
    pub answered: u64,
    /// Shots submitted but not answered at the end.
    pub lost: u64,
    /// Answers to a shot that had already been answered.
    pub duplicated: u64,
    /// Answers that overtook an older shot of their stream.
    pub out_of_order: u64,
    /// Shots answered with an error, by code.
    pub errors: BTreeMap<u16, u64>,
    /// Names of the error codes.
    pub error_names: BTreeMap<u16, String>,
    /// Answers after their deadline.
    pub late: u64,
    /// Deadline of an answer, from the scheduled arrival.
    pub deadline_ns: u64,
    /// Shots by what became of their deadlines (`deadlines` of the profile).
    pub deadlines: DeadlineReport,
    /// Answers that differ from the true observables.
    pub logical_errors: u64,
    /// Logical errors divided by shots with true observables; `null` without such shots.
    pub logical_error_rate: Option<f64>,
    /// The 95 % Wilson interval of that rate.
    pub logical_error_rate_ci95: Option<[f64; 2]>,
    /// Answers that could be compared with true observables.
    pub shots_with_observables: u64,
    /// For each of several deadlines the share of shots whose answer was wrong, an error, or not there
    /// by then; empty without true observables of every shot.
    pub ler_at: Vec<RateAt>,
    /// Readouts of two streams at once.
    pub joint: JointReport,
    /// Moves of streams between silos; `null` with one silo.
    pub moves: Option<MovesReport>,
    /// Failures, restarts and drains of each silo; `null` with one silo.
    pub lifecycles: Option<Vec<LifecycleReport>>,
    /// Shots for which no slot was free.
    pub overflow: OverflowReport,
    /// Placement at the end of the run; `null` without placement.
    pub placement: Option<PlacementView>,
    /// What ended the run: its count, its duration, its input, an operator, a signal or a fault.
    pub ended_by: String,
    /// Time in the phases Live and Drain.
    pub elapsed_live_ns: u64,
    /// Answers per second of that time.
    pub throughput_per_s: Option<f64>,
    /// Scheduled arrivals per second; `null` if unpaced (rate max).
    pub rate_hz: Option<f64>,
    /// Origin of the rate.
    pub rate_origin: String,
    /// From scheduled arrival to answer.
    pub latency_ns: Histogram,
    /// From submission (written into a slot) to answer.
    pub latency_from_submit_ns: Histogram,
    /// Time in each stage of the path, by its name.
    #[serde(serialize_with = "as_map")]
    pub stages: Vec<(&'static str, Histogram)>,
    /// Mean time that dispatch works on a shot.
    pub dispatch_ns_per_shot: Option<f64>,
    /// Detection events that the predecoder resolved.
    pub predecoded_events: u64,
    /// What the console cost; `null` without one.
    pub console_cost: Option<serde_json::Value>,
    /// Source of the shots.
    pub input: String,
    /// Detectors of a shot.
    pub detectors: u32,
    /// Observables of an answer.
    pub observables: u32,
    /// The device of the predecode step.
    pub device: String,
    /// Name of the decoder.
    pub decoder: String,
    /// The error model by which shots were decoded at the end.
    pub model: ModelReport,
    /// Answers without an error, by the decoder that gave them; only decoders that gave some.
    pub decoders: Vec<DecoderReport>,
    /// Answers that are not to be trusted, and what is left without them; `null` without `abstain_below`.
    pub abstention: Option<AbstentionReport>,
    /// The comparison with a second decoder; `null`: there was none.
    pub shadow: Option<ShadowReport>,
    /// Memory of the decoder that all workers share, bytes.
    pub decoder_shared_bytes: u64,
    /// Memory of the decoder for each worker, bytes; it does not grow.
    pub decoder_worker_bytes: u64,
    /// Name of the predecoder.
    pub predecoder: String,
    /// Name of the profile in force at the end.
    pub profile: String,
    /// The profile's file; `null` if built in, or read by another process.
    pub profile_file: Option<String>,
    /// The label given by `--label`.
    pub label: String,
    /// Number of silos.
    pub silos: usize,
    /// Reason for the number of silos; `null` if the number was requested.
    pub silos_auto: Option<String>,
    /// One for each hot thread.
    pub threads: Vec<ThreadReport>,
    /// One for each stream.
    pub streams: Vec<StreamReport>,
    /// Problems found at the end, and the alarms of the log.
    pub alarms: Vec<Alarm>,
    /// The alarms of the log by their causes: each with the alarms that it explains.
    pub incidents: Vec<IncidentView>,
    /// Live sources of shots; empty for sampled shots and files.
    pub sources: Vec<SourceView>,
    /// Stream and sequence of shots without an answer.
    pub unanswered: Vec<(u32, u64)>,
    /// From the deadline of a timer to the frame that detected its expiry.
    pub timer_lateness_ns: Histogram,
    /// One for each silo on a GPU.
    pub gpus: Vec<GpuReport>,
    /// The clock of the run.
    pub clock: ClockReport,
    /// Events of the hot threads.
    pub log: LogView,
    /// Sentences for people.
    pub notes: Vec<String>,
    /// Facts about the host machine.
    pub host: serde_json::Value,
    /// Result of the environment check of this run; `null` if none was made.
    pub environment: Option<EnvironmentResult>,
    /// The run's directory; `null` if it has none.
    pub run_dir: Option<String>,
}

/// One thread of the frame loop.
#[derive(Clone, Debug, Serialize)]
pub struct ThreadReport {
    /// Name of the thread.
    pub name: String,
    /// Roles of the thread, in the order in which a frame runs them.
    pub roles: Vec<&'static str>,
    /// The planned core; see `pinned`.
    pub core: Option<u32>,
    /// Whether the thread is pinned to `core`.
    pub pinned: bool,
    /// Whether the thread is a hot thread with a core of its own.
    pub hot: bool,
    /// Frames since the start of the thread.
    pub frames: u64,
    /// From the start of a frame to the start of the next.
    pub frame_gap_ns: Histogram,
    /// Scheduling priority of the thread.
    pub priority: PriorityView,
    /// The last and the most frequent competitor for the core; `null` if none was seen.
    pub contended_by: Option<CompetitorView>,
    /// Allocations in phase Live; `null` if not visible.
    pub allocations: Option<u64>,
    /// Allocations in phase Live that the thread's own reserve served.
    pub allocations_lent: u64,
    /// Frames that began on another core than `core`.
    pub frames_elsewhere: u64,
    /// What took the thread's core away.
    pub noise: NoiseView,
}

/// Report of one stream.
#[derive(Clone, Debug, Serialize)]
pub struct StreamReport {
    /// Number of the stream.
    pub id: u32,
    /// Answers of the stream, errors included.
    pub answered: u64,
    /// Answers after their deadline.
    pub late: u64,
    /// Answers with an error code.
    pub errors: u64,
    /// 99th percentile of the latency, nanoseconds; `null` before the first answer.
    pub p99: Option<u64>,
    /// Logical errors divided by compared shots; `null` without true observables.
    pub logical_error_rate: Option<f64>,
    /// For each of several deadlines the share of shots whose answer was wrong, an error, or not there
    /// by then; empty without true observables of every shot.
    pub ler_at: Vec<RateAt>,
    /// Hash of the error model by which its shots were decoded at the end.
    pub model_hash: String,
    /// Its shots by what became of their deadlines.
    pub deadlines: DeadlineReport,
    /// Its answers without an error, by the decoder that gave them; only decoders that gave some.
    pub decoders: Vec<DecoderReport>,
    /// Bit mask: parity of each of the first 64 observables over the stream's answers.
    pub frame: u64,
    /// Shots for which no slot was free, by outcome.
    pub overflow: BTreeMap<&'static str, u64>,
    /// Comparison of the detector firing rate with the model.
    pub input_health: InputHealthView,
}

/// The error model of all streams that have none of their own.
#[derive(Clone, Debug, Serialize)]
pub struct ModelReport {
    /// Its hash, 16 hexadecimal digits; lines of `--answers` name it, too.
    pub hash: String,
    /// Its file or the name of a bundled model; models of single streams follow.
    pub path: String,
}

/// What one decoder answered, without errors.
#[derive(Clone, Debug, Serialize)]
pub struct DecoderReport {
    /// Name of the decoder, as `--decoder` takes it.
    pub name: &'static str,
    /// Its answers.
    pub shots: u64,
    /// Share of all answers without an error.
    pub share: f64,
    /// Answers that could be compared with true observables.
    pub shots_with_observables: u64,
    /// Of these, answers that differ from the true observables.
    pub logical_errors: u64,
    /// Logical errors divided by compared shots; `null` without true observables.
    pub logical_error_rate: Option<f64>,
    /// The 95 % Wilson interval of that rate.
    pub logical_error_rate_ci95: Option<[f64; 2]>,
    /// Median of the latency of its answers, nanoseconds; `null` beside other decoders' answers or
    /// errors, because latencies of all answers are counted together.
    pub p50: Option<u64>,
    /// 99th percentile of that latency, likewise.
    pub p99: Option<u64>,
    /// Answers from which the shadow's differed; `null` without a shadow, and for single streams.
    pub disagreements: Option<u64>,
}

/// Answers whose gap was below the bound for trust, and the others.
#[derive(Clone, Debug, Serialize)]
pub struct AbstentionReport {
    /// The bound, decibels.
    pub below_db: u64,
    /// Answers below it.
    pub abstained: u64,
    /// Share of the answers without an error that these are; `null` before the first.
    pub share: Option<f64>,
    /// Other answers that could be compared with true observables.
    pub shots_with_observables: u64,
    /// Of these, answers that differ from the true observables.
    pub logical_errors: u64,
    /// Logical errors divided by these shots; `null` without true observables.
    pub logical_error_rate: Option<f64>,
    /// The 95 % Wilson interval of that rate.
    pub logical_error_rate_ci95: Option<[f64; 2]>,
}

impl AbstentionReport {
    fn of(below_db: u64, counters: &Counters) -> Option<AbstentionReport> {
        let judged = counters.shots_with_observables.saturating_sub(counters.abstained_with_observables);
        let wrong = counters.logical_errors.saturating_sub(counters.abstained_logical_errors);
        (below_db > 0).then(|| AbstentionReport {
            below_db,
            abstained: counters.abstained,
            share: ratio(counters.abstained, counters.answered.saturating_sub(counters.errored)),
            shots_with_observables: judged,
            logical_errors: wrong,
            logical_error_rate: ratio(wrong, judged),
            logical_error_rate_ci95: interval_95(wrong, judged),
        })
    }
}

/// Shots by what became of their deadlines.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct DeadlineReport {
    /// Shots without an answer by their deadline, errors included; 0 unless the profile sets `deadlines`.
    pub missed: u64,
    /// Shots refused, because no decoder could have answered them by their deadline.
    pub refused: u64,
    /// Shots that the rescue decoder answered.
    pub rescued: u64,
    /// Of these, answers that differ from the true observables.
    pub rescued_wrong: u64,
}

impl DeadlineReport {
    fn of(view: &StreamView) -> DeadlineReport {
        let StreamView { missed, refused, rescued, rescued_wrong, .. } = *view;
        DeadlineReport { missed, refused, rescued, rescued_wrong }
    }

    fn sum(streams: &[StreamView]) -> DeadlineReport {
        streams.iter().map(DeadlineReport::of).fold(DeadlineReport::default(), |sum, of| DeadlineReport {
            missed: sum.missed.saturating_add(of.missed),
            refused: sum.refused.saturating_add(of.refused),
            rescued: sum.rescued.saturating_add(of.rescued),
            rescued_wrong: sum.rescued_wrong.saturating_add(of.rescued_wrong),
        })
    }
}

/// Error rate at a deadline.
#[derive(Clone, Debug, Serialize)]
pub struct RateAt {
    /// The deadline, from the scheduled arrival, nanoseconds.
    pub t_ns: u64,
    /// Share of shots without a right answer by then.
    pub rate: f64,
    /// The 95 % Wilson interval of that rate.
    pub ci95: [f64; 2],
}

/// The GPU of a silo.
#[derive(Clone, Debug, Serialize)]
pub struct GpuReport {
    /// Number of the silo.
    pub silo: u32,
    /// Counters and state from the board.
    #[serde(flatten)]
    pub gpu: GpuView,
    /// Launches per second of the live time.
    pub launches_per_s: Option<f64>,
}

/// The clock of the run.
#[derive(Clone, Debug, Serialize)]
pub struct ClockReport {
    /// Name of the clock source.
    pub source: String,
    /// Why the processor's counter is not used; `null` if it is.
    pub degraded: Option<String>,
    /// Comparisons with the system's clocks.
    pub pairs: u64,
    /// Number of times UTC was set.
    pub utc_steps: u64,
    /// Number of times the counter jumped.
    pub counter_steps: u64,
    /// Duration of the last comparison, which is the uncertainty of UTC.
    pub width_ns: Option<u64>,
}

impl Report {
    /// Makes the report of a finished run.
    pub fn new(outcome: &Outcome, context: &Context) -> Report {
        let Snapshot { engine, threads, silos, streams, .. } = &outcome.snapshot;
        let counters = outcome.snapshot.totals();
        let alarms = conditions::alarms(outcome, context);
        let elapsed_s = outcome.elapsed_live_ns as f64 / 1e9;
        let mut notes = engine.notes.clone();
        notes.extend(context.notes.iter().filter(|note| !engine.notes.contains(note)).cloned());
        notes.extend(outcome.events.iter().filter_map(|ended| ended.clone().err()));
        notes.extend(outcome.snapshot.recorder.trouble.clone());
        notes.extend(outcome.snapshot.shadow.as_ref().and_then(|shadow| shadow.trouble.clone()));
        Report {
            version: engine.version.clone(),
            exit_status: conditions::exit_status(&outcome.ended_by, &alarms),
            scheduled: counters.scheduled,
            submitted: counters.submitted,
            answered: counters.answered,
            lost: counters.submitted.saturating_sub(counters.answered),
            duplicated: counters.duplicated,
            out_of_order: counters.out_of_order,
            errors: errors(silos),
            error_names: by_code(silos, |error, entry: &mut String| entry.clone_from(&error.name)),
            late: counters.late,
            deadline_ns: engine.late_ns,
            deadlines: DeadlineReport::sum(streams),
            logical_errors: counters.logical_errors,
            logical_error_rate: ratio(counters.logical_errors, counters.shots_with_observables),
            logical_error_rate_ci95: interval_95(counters.logical_errors, counters.shots_with_observables),
            shots_with_observables: counters.shots_with_observables,
            ler_at: ler_at(streams),
            joint: JointReport {
                read: counters.joint_read,
                consistent: counters.joint_consistent,
                refused: counters.joint_refused,
            },
            moves: MovesReport::of(silos),
            lifecycles: lifecycle::of(silos),
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
            model: ModelReport { hash: hash_text(engine.model_hash), path: engine.model.clone() },
            decoders: all_decoders(&outcome.snapshot),
            abstention: AbstentionReport::of(engine.abstain_below_db, &counters),
            shadow: outcome.snapshot.shadow.as_ref().map(ShadowReport::of),
            decoder_shared_bytes: engine.decoder_shared_bytes,
            decoder_worker_bytes: engine.decoder_worker_bytes,
            predecoder: engine.predecoder.clone(),
            profile: engine.profile.clone(),
            label: engine.label.clone(),
            silos: silos.len(),
            silos_auto: context.silos_auto.clone(),
            threads: threads.iter().map(thread).collect(),
            streams: streams.iter().map(stream).collect(),
            alarms,
            incidents: outcome.snapshot.incidents.clone(),
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

    /// Adds a problem found after the end of the run; replaces an earlier one of the same name.
    pub fn add_unsound(&mut self, name: &'static str, what: String) {
        self.alarms.retain(|alarm| alarm.alarm != name);
        self.alarms.push(conditions::unsound(name, what));
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

/// Merges the distributions of all silos.
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

/// The sum of counters, or the largest number: a recording or a report that another program wrote
/// may have any counters.
pub fn sum(counters: impl IntoIterator<Item = u64>) -> u64 {
    counters.into_iter().fold(0, u64::saturating_add)
}

/// Answers with an error, by code.
fn errors(silos: &[SiloView]) -> BTreeMap<u16, u64> {
    by_code(silos, |error, count: &mut u64| *count = count.saturating_add(error.count))
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
        noise: view.noise.clone(),
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
        ler_at: ler_at([view]),
        model_hash: hash_text(view.model_hash),
        deadlines: DeadlineReport::of(view),
        decoders: decoders(&view.decoders, &view.latency),
        frame: view.frame,
        overflow: overflow::by_name(&view.overflow),
        input_health: view.input_health.clone(),
    }
}

fn ler_at<'a>(streams: impl IntoIterator<Item = &'a StreamView>) -> Vec<RateAt> {
    let rate = |at: WrongOrLate| {
        let rate = ratio(at.shots, at.of)?;
        Some(RateAt { t_ns: at.deadline_ns, rate, ci95: interval_95(at.shots, at.of)? })
    };
    wrong_or_late(streams).into_iter().flatten().filter_map(rate).collect()
}

fn hash_text(hash: u64) -> String {
    format!("{hash:016x}")
}

/// Each decoder's answers among those that took `latency`.
fn decoders(rows: &[DecoderShots], latency: &Histogram) -> Vec<DecoderReport> {
    let all = sum(rows.iter().map(|row| row.shots));
    let quantile = |row: &DecoderShots, q: f64| (row.shots == latency.count()).then(|| latency.quantile_ns(q));
    let report = |row: &DecoderShots| DecoderReport {
        name: row.decoder.name(),
        shots: row.shots,
        share: ratio(row.shots, all).unwrap_or(0.0),
        shots_with_observables: row.shots_with_observables,
        logical_errors: row.logical_errors,
        logical_error_rate: ratio(row.logical_errors, row.shots_with_observables),
        logical_error_rate_ci95: interval_95(row.logical_errors, row.shots_with_observables),
        p50: quantile(row, 0.5),
        p99: quantile(row, 0.99),
        disagreements: None,
    };
    rows.iter().map(report).collect()
}

/// The decoders of all streams together.
fn all_decoders(snapshot: &Snapshot) -> Vec<DecoderReport> {
    let rows = DecoderShots::sum(snapshot.streams.iter().flat_map(|stream| &stream.decoders));
    let mut all = decoders(&rows, &merged(snapshot.silos.iter().map(|silo| &silo.latency)));
    for (decoder, count) in snapshot.shadow.iter().flat_map(|shadow| &shadow.disagreements_by) {
        let its = all.iter_mut().find(|report| report.name == decoder.name());
        its.into_iter().for_each(|report| report.disagreements = Some(*count));
    }
    all
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
mod tests;
