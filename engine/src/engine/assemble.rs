//! From a configuration to running threads.
//!
//! Runs once, on the caller's thread. Order: first the checks that can refuse a start (host, plan,
//! model, limits), then memory, then threads. A failure stops the threads that already run. Bounds:
//! [`BUILD_LIMIT`] for all roles to be built.
//!
//! Longer than 500 lines, because each step of a start is a short function beside the list of
//! steps.

use super::blackbox::{Blackbox, Recording};
use super::cold::{self, ColdThreads, Reader as StreamReader, UntilEnded};
use super::command::Executor;
use super::control::{ColdSide, Control, End};
use super::core_claims::CoreClaims;
use super::devices::Devices;
use super::drift::DriftWatch;
use super::logger::{ENTRIES_MAX, LANE, LogEntry, Logger};
use super::neighbours::Watch;
use super::orders::{Orders, SharedOrders};
use super::placement_thread::{Directing, Mover};
use super::remote;
use super::shadow::{ReadyShadow, ShadowControl, ShadowParts};
use super::silo_threads::HotThreads;
use super::slow_commands::SlowCommands;
use super::steer::{ControlHandles, Pace, SharedSteering};
use super::wall::Wall;
use super::watchdog::{self, AlarmActions};
use super::{
    Config, Engine, Input, LivePlace, Requests, StartError, cores, devices, environment, header, limits, measured,
};
use crate::arbiter::page::Authority;
use crate::board::{self, Board, Place, Shape};
use crate::clock::Clock;
use crate::code::sampler::Sampler;
use crate::code::shots::ShotSet;
use crate::code::{Model, words};
use crate::decode::changes::DecoderChanges;
use crate::device::cuda::Context;
use crate::feed::bridge::BridgeEnd;
use crate::feed::lane::LaneOut;
use crate::feed::link::{Link, LinkParts, Linked};
use crate::feed::order::InputOrder;
use crate::feed::requests::{MoveRequest, MoveRequests};
use crate::feed::source::{LiveEnd, Source};
use crate::feed::stage::{StageFill, stage};
use crate::feed::{SLOTS_PER_STREAM, Share};
use crate::host::{HostFacts, pin};
use crate::hot::drill_role::{DrillCommand, DrilledRole};
use crate::hot::memory::Arena;
use crate::hot::{self, HotThread, Init, Placing, Role, RoleError, RoleSpec, Settings, Shared, ThreadReport};
use crate::pipe::Answer;
use crate::pipe::samples::{SampleReader, SampleWriter};
use crate::placement::decision::Decision;
use crate::plan::Plan;
use crate::profile::{Device, Diagnostics, Profile, Rate, Silos};
use crate::record::{AnswerSink, Disagreements, EventSink};
use crate::silo::{
    self, Answers, Attached, Common, Connected, Decoding, Gpu, Silo, SiloCommands, SiloNotifiers, SiloSupervisor,
    SupervisorParts,
};
use crate::units::Nanos;
use pinwheel_edge::ring::broadcast::Reader;
use pinwheel_edge::ring::log::{self, Writer};
use pinwheel_edge::ring::mpsc::PRODUCERS_MAX;
use pinwheel_edge::slot::{DETECTOR_WORDS_MAX, OBSERVABLE_WORDS_MAX};
use pinwheel_edge::spin::{Phase, PhaseWord, SpinWord};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longest time for all threads to build their roles.
pub(super) const BUILD_LIMIT: Duration = Duration::from_secs(30);
/// Longest wait for threads to leave when a start fails, and the time between two checks.
const DISMISS_LIMIT: Duration = Duration::from_secs(2);
const DISMISS_LOOK: Duration = Duration::from_millis(1);

/// What the operator should know where a plugin is trusted.
const TRUSTED_PLUGIN: &str = "a plugin decodes on the threads of the decode workers: what it allocates, locks or waits for \
                              delays shots, and no counter shows it";

pub(super) fn start(mut config: Config) -> Result<Engine, StartError> {
    hot::install_hook();
    check_fit(&config.profile, &config.input)?;
    let host = HostFacts::read()?;
    let clock = environment::clock(config.profile.environment, Path::new("/"))?;
    let (asked, settled) = (of_machine(&config.profile), devices::settle(&mut config.profile)?);
    let (placed, devices) = devices::place(settled, &mut config.profile, &host, &config.boards)?;
    let (model, is_live) = (Arc::clone(config.input.model()), matches!(config.input, Input::Live { .. }));
    check_order(&config)?;
    let decoding = Decoding::of(model, &config.profile)?;
    let report = environment::look(&mut config, &host, &placed, &clock)?;
    let cores::Placed { plan, claims, notes } = placed;
    let cold_threads = ColdThreads::new(&plan.cold_cores);
    let claims = claims.map(|claims| Arc::new(CoreClaims::new(claims, &plan, &host, &config.boards)));
    let Devices { contexts, name: device_name, notes: device_notes } = devices;
    limits::check(&plan, Board::bytes_of(shape(&config.profile, &plan)) as u64)?;
    let mut notes: Vec<String> = config.notes.iter().cloned().chain(device_notes).chain(notes).collect();
    let common = common(&config, &plan, decoding, &clock, &mut notes)?;
    common.decoders.confine_plugins(&plan.cold_cores);
    notes.extend(common.decoders.in_force().has_trusted_plugin().then(|| TRUSTED_PLUGIN.to_owned()));
    let Common { board, settings, moves, .. } = common.clone();
    let shadow = config.profile.shadow.as_ref().map(|shadow| ReadyShadow::of(shadow, &common.decoders)).transpose()?;
    let LaidOut { mut silos, fills, supervisor, measured } =
        lay_out(&mut config, &plan, contexts, &device_name, &common)?;
    let (shadow, shadow_ended) = begin_shadow(shadow, &config, (&plan, &cold_threads), &mut silos, &common)?;
    let (wall, silo_commands) = (Wall::new(&clock, &board), Arc::clone(supervisor.commands()));
    let orders = SharedOrders::new(&config.profile_name, &config.profile, &plan, &clock);
    header::write_threads(&board, &plan, &orders.lock());
    let steering = steering(&config, asked, &orders, &common, &shadow);
    let (phase, on_allocation) = (Arc::new(PhaseWord::new()), config.profile.hot_allocations);
    let shared = Shared { clock: clock.clone(), board: Arc::clone(&board), phase, on_allocation };
    provoke(&mut silos, config.drill_command.as_ref());
    let (stop, requests) = (cold::Stop::new(), Arc::new(Requests::new(config.takes_inputs)));
    let executor = Executor { steering: steering.clone(), requests: Arc::clone(&requests), silo_commands, moves };
    let actions = AlarmActions::new(executor.clone(), &shared, claims.clone(), cold_threads.clone());
    let mut starting = Starting::new(&stop, &shared, &cold_threads, &shadow);
    let watchdog = watchdog::spawn(&config.profile, actions, config.run_dir.clone(), &mut notes);
    let (watchdog, to_watchdog) = watchdog.map_err(no_room("watchdog", &plan))?.unzip();
    starting.watchdog = watchdog.as_ref().map(watchdog::Running::stop);
    let (logs, logger) = wire_log(config.events.take(), &plan, &shared, &mut notes);
    let hot = spawn_threads(&mut starting.threads, &plan, &mut silos, &orders.lock(), logs, &shared)?;
    let (said, unpinned) = wait_built(&hot.reports, starting.threads.len())?;
    notes.extend(said);
    orders.lock().unpin(&unpinned, &board);
    let remote = reach(config.run_dir.as_deref(), &cold_threads, &shared, &executor, &stop, &mut notes);
    header::write_notes(&board, &notes);
    board.publish();
    let sink =
        config.sink.take().map(|sink| tap(&cold_threads, sink, &mut silos, order(&config), &common.decoders, &stop));
    let sink = sink.transpose().map_err(no_room("answers", &plan))?;
    let logging = logger.map(|(logger, log)| Ok((logger.spawn(&cold_threads, stop.clone())?, log))).transpose();
    let (events, log) = logging.map_err(no_room("events", &plan))?.unzip();
    let recording = record(&config, &cold_threads, &shared, log.as_ref(), &stop);
    let recording = recording.transpose().map_err(no_room("recorder", &plan))?;
    let (recorder, recent_recording) = recording.map(|recording| (recording.ended, recording.recent_recording)).unzip();
    let reader = StreamReader::new(order(&config), config.input, fills);
    let input_error = reader.map(|reader| cold::spawn_reader(&cold_threads, reader, stop.clone()));
    let input_error = input_error.transpose().map_err(no_room("reader", &plan))?;
    let measured = keep_measured(measured, config.run_dir.as_deref(), (&plan, &cold_threads), &stop)?;
    let watch = watch_drift(&mut silos, &cold_threads, &shared, &common, config.run_dir.clone());
    let counted = watch.map(|watch| watch.spawn(stop.clone())).transpose().map_err(no_room("drift", &plan))?;
    let environment = report.map(|report| environment::spawn(report, &shared, &cold_threads)).transpose();
    let environment = environment.map_err(no_room("environment", &plan))?;
    let neighbours = watch_neighbours(orders, &plan, &cold_threads, &shared).map_err(no_room("neighbours", &plan))?;
    let placing = directing(&config.profile, &silos, &common, &cold_threads).spawn();
    let placing = placing.map_err(no_room("placement", &plan))?;
    steering.lock().connect(log, to_watchdog);
    let cold = ColdSide {
        stop,
        sink,
        events,
        recorder,
        input_error,
        counted,
        measured,
        shadow: (shadow, shadow_ended),
        environment,
        neighbours,
        placing,
        watchdog,
        remote,
    };
    let control = Control {
        shared,
        steering: steering.clone(),
        requests: Arc::clone(&requests),
        silos,
        named: vec![false; starting.threads.len()],
        threads: std::mem::take(&mut starting.threads),
        hot,
        supervisor,
        settings,
        end: End { count: config.count, duration: config.duration },
        wall,
        slow: SlowCommands::new("profile-returns", executor.clone(), cold_threads.clone()),
        claims,
        is_live,
    };
    let control = control.spawn(cold, &cold_threads).map_err(no_room("control", &plan))?;
    starting.end();
    Ok(Engine { board, clock, executor, plan, recent_recording, control: Some(control) })
}

/// A start in progress. Dropping it after a failure ends the threads that already run.
struct Starting {
    stop: cold::Stop,
    shared: Shared,
    threads: Threads,
    cold_threads: ColdThreads,
    shadow: ShadowControl,
    watchdog: Option<cold::Stop>,
    is_over: bool,
}

impl Starting {
    fn new(stop: &cold::Stop, shared: &Shared, cold_threads: &ColdThreads, shadow: &ShadowControl) -> Starting {
        let (stop, shared, cold_threads) = (stop.clone(), shared.clone(), cold_threads.clone());
        let (threads, shadow) = (Threads::new(), shadow.clone());
        Starting { stop, shared, threads, cold_threads, shadow, watchdog: None, is_over: false }
    }

    /// Ends a start that has succeeded.
    fn end(mut self) {
        self.is_over = true;
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        self.stop.stop();
        self.shadow.end();
        self.watchdog.iter().for_each(cold::Stop::stop);
        dismiss(&self.threads, &self.cold_threads, &self.shared);
    }
}

/// The error for a refused thread of this name.
fn no_room(name: &'static str, plan: &Plan) -> impl FnOnce(io::Error) -> StartError {
    let threads = plan.threads.len();
    move |source| StartError::Thread { name: name.to_owned(), threads, source }
}

/// Parts that all silos share.
fn common(
    config: &Config,
    plan: &Plan,
    decoding: Decoding,
    clock: &Clock,
    notes: &mut Vec<String>,
) -> Result<Common, StartError> {
    let profile = &config.profile;
    notes.extend(profile.without_effect().iter().map(|error| format!("without effect: {error}")));
    let moves = MoveRequests::new(profile.input.streams, profile.silos.settled(), profile.input.joint_every.is_some());
    let settings = Arc::new(Settings::new(&profile.limits));
    settings.set_overflow(&profile.placement.overflow);
    settings.set_abstain_below_db(profile.abstain_below);
    Ok(Common {
        board: Arc::new(make_board(shape(profile, plan), &config.boards, notes)?),
        settings,
        clock: clock.clone(),
        joints: silo::tally(profile, &decoding.model),
        moves: Arc::new(moves),
        decoders: decoding.changes(),
        decoding: decoding.without_decoders(),
    })
}

/// The supervisor that stops and restarts these silos.
fn supervisor(profile: &Profile, plan: &Plan, notifiers: Vec<SiloNotifiers>, common: &Common) -> SiloSupervisor {
    let silo_commands = Arc::new(SiloCommands::new(profile.silos.settled()));
    let decoders = (0..profile.silos.settled()).map(|silo| plan.decoders(silo)).collect();
    let (profile, common) = (profile.clone(), common.clone());
    SiloSupervisor::new(SupervisorParts { profile, common, decoders, notifiers, commands: silo_commands })
}

/// The placement thread's parts for these silos.
fn directing(profile: &Profile, silos: &[Silo], common: &Common, cold_threads: &ColdThreads) -> Directing {
    Directing {
        board: Arc::clone(&common.board),
        clock: common.clock.clone(),
        profile: profile.clone(),
        pages: silos.iter().map(|silo| Arc::clone(&silo.pipe.pages)).collect(),
        mover: mover(Arc::clone(&common.moves)),
        moves: Arc::clone(&common.moves),
        settings: Arc::clone(&common.settings),
        threads: cold_threads.clone(),
    }
}

/// Passes the decisions of placement to the feeds of the streams, which make the moves.
fn mover(moves: Arc<MoveRequests>) -> Mover {
    Box::new(move |decision| {
        let (stream, to, lease) = match *decision {
            Decision::Place { stream, silo, .. } => (stream, silo, Nanos(0)),
            Decision::Move { stream, to, lease, .. } => (stream, to, lease),
            Decision::Refuse { .. } => return Ok(()),
        };
        let lease_ms = u32::try_from(lease.0 / 1_000_000).unwrap_or(u32::MAX);
        moves.ask(MoveRequest { stream, to, lease_ms, by: Authority::Port }).map_err(|refused| refused.to_string())
    })
}

/// What a profile may leave to the machine.
fn of_machine(profile: &Profile) -> (Silos, Device) {
    (profile.silos, profile.device.clone())
}

/// The state that commands act on, with the profile of the start.
fn steering(
    config: &Config,
    (silos, device): (Silos, Device),
    orders: &SharedOrders,
    common: &Common,
    shadow: &ShadowControl,
) -> SharedSteering {
    let is_live = matches!(config.input, Input::Live { .. });
    let handles = ControlHandles {
        orders: orders.clone(),
        board: Arc::clone(&common.board),
        settings: Arc::clone(&common.settings),
        clock: common.clock.clone(),
        decoders: common.decoders.clone(),
        shadow: shadow.clone(),
        pace: if is_live { Pace::Senders } else { Pace::Engine },
        profiles: config.profiles.clone(),
        drill_command: config.drill_command.clone(),
    };
    // Silos and device as requested, so that a profile with `Auto` does not show as different.
    let profile = Profile { silos, device, ..config.profile.clone() };
    SharedSteering::new(&config.profile_name, &profile, handles)
}

/// Starts the flight recorder of a run, unless the profile has diagnostics off.
fn record(
    config: &Config,
    cold_threads: &ColdThreads,
    shared: &Shared,
    log: Option<&SyncSender<LogEntry>>,
    stop: &cold::Stop,
) -> Option<io::Result<Recording>> {
    let run = config.run_dir.clone().filter(|_| config.profile.diagnostics == Diagnostics::On)?;
    let (board, clock, threads) = (Arc::clone(&shared.board), shared.clock.clone(), cold_threads.clone());
    let kept = config.profile.recorder;
    Some(Blackbox { board, clock, run, kept, threads, entries: log.cloned() }.spawn(stop.clone()))
}

/// Starts the thread that watches for competitors on the hot cores.
fn watch_neighbours(
    orders: SharedOrders,
    plan: &Plan,
    cold_threads: &ColdThreads,
    shared: &Shared,
) -> io::Result<Option<UntilEnded>> {
    let (cores, threads) = (plan.threads.iter().map(|planned| planned.core).collect(), cold_threads.clone());
    Watch { board: Arc::clone(&shared.board), clock: shared.clock.clone(), orders, cores, threads }.spawn()
}

/// Starts the thread that keeps measurements in the run's directory.
fn keep_measured(
    measured: Option<(u32, SampleReader)>,
    run: Option<&Path>,
    (plan, cold_threads): (&Plan, &ColdThreads),
    stop: &cold::Stop,
) -> Result<Option<Receiver<()>>, StartError> {
    let (Some((bits, copies)), Some(run)) = (measured, run) else { return Ok(None) };
    let ended = measured::spawn(cold_threads, run, bits, copies, stop.clone());
    Ok(Some(ended.map_err(no_room("measured", plan))?))
}

/// The watch for errors whose frequency drifts, if the profile asks for it.
fn watch_drift(
    silos: &mut [Silo],
    cold_threads: &ColdThreads,
    shared: &Shared,
    common: &Common,
    directory: Option<PathBuf>,
) -> Option<DriftWatch> {
    let samples: Vec<SampleReader> = silos.iter_mut().filter_map(|silo| silo.samples.take()).collect();
    let (board, clock, decoders) = (Arc::clone(&shared.board), shared.clock.clone(), common.decoders.clone());
    let threads = cold_threads.clone();
    (!samples.is_empty()).then(|| DriftWatch { board, clock, decoders, samples, threads, directory })
}

/// Starts the thread of the shadow, and the shadow of the profile, if there is one.
fn begin_shadow(
    shadow: Option<ReadyShadow>,
    config: &Config,
    (plan, cold_threads): (&Plan, &ColdThreads),
    silos: &mut [Silo],
    common: &Common,
) -> Result<(ShadowControl, Receiver<()>), StartError> {
    let detectors = config.input.model().detectors;
    let parts = ShadowParts {
        board: Arc::clone(&common.board),
        clock: common.clock.clone(),
        decoders: common.decoders.clone(),
        samples: silos.iter_mut().filter_map(|silo| silo.answered.take()).collect(),
        kept: config.run_dir.as_ref().map(|directory| Disagreements::new(directory, detectors)),
        threads: cold_threads.clone(),
    };
    let (control, ended) = parts.spawn().map_err(no_room("shadow", plan))?;
    if shadow.is_some() {
        control.set(shadow);
        common.settings.set_shadow(config.profile.shadow.as_ref().map(|shadow| shadow.one_in));
    }
    Ok((control, ended))
}

/// Opens the control socket of a run; a failure becomes a note.
fn reach(
    run_dir: Option<&Path>,
    cold_threads: &ColdThreads,
    shared: &Shared,
    executor: &Executor,
    stop: &cold::Stop,
    notes: &mut Vec<String>,
) -> Option<remote::Running> {
    let executor = executor.clone();
    let reached = remote::spawn(run_dir?, &shared.board, &shared.clock, executor, cold_threads, stop.clone());
    reached.map_err(|error| notes.push(error)).ok()
}

/// Silos, the cold ends of their streams, and the notifiers of each silo.
type Wired = (Vec<Silo>, Vec<StageFill>, Vec<SiloNotifiers>);

/// State before the first thread starts.
struct LaidOut {
    silos: Vec<Silo>,
    fills: Vec<StageFill>,
    supervisor: SiloSupervisor,
    /// Measurements of a volume, and copies of the volumes, if the run keeps them.
    measured: Option<(u32, SampleReader)>,
}

/// Assembles the silos and their live source, if any, and writes the board's header.
fn lay_out(
    config: &mut Config,
    plan: &Plan,
    contexts: Vec<Context>,
    device_name: &str,
    common: &Common,
) -> Result<LaidOut, StartError> {
    let bridge = config.bridge.take();
    let (measured_in, measured) = copies_of_measured(config).unzip();
    let mut live = open_live(config, common, measured_in, bridge)?;
    let readers = usize::from(config.sink.is_some()) + usize::from(live.is_some());
    let answers = if readers > 0 { Answers::PassedOn { readers } } else { Answers::Counted };
    let (mut silos, fills, notifiers) = wire_silos(config, plan, answers, contexts, common, live.as_mut())?;
    header::write(&common.board, &common.clock, config, common);
    // Shots in streams and blocks keep their matchers, whatever worker runs them.
    let matcher_bytes: usize = silos.iter().map(|silo| silo.matcher_bytes).sum();
    board::add(&common.board.header().decoder_shared_bytes, matcher_bytes as u64);
    if !device_name.is_empty() {
        header::write_device(&common.board, device_name);
    }
    if let Some(live) = live {
        for tap in silos.iter_mut().filter_map(|silo| silo.answers.pop()) {
            // The receiver is in the first silo's feed, which has not started yet.
            let _ = live.taps.send(tap);
        }
        common.board.header().input.write(&live.name);
    }
    let supervisor = supervisor(&config.profile, plan, notifiers, common);
    Ok(LaidOut { silos, fills, supervisor, measured })
}

/// Both ends of the copies of measurements, and the measurements of a volume, if the source has
/// CUDA-Q's protocol and the run keeps what it takes.
fn copies_of_measured(config: &Config) -> Option<(SampleWriter, (u32, SampleReader))> {
    let Input::Live { model, place: LivePlace::Cudaq { .. }, measurements } = &config.input else { return None };
    let keeps = config.run_dir.is_some() && config.profile.diagnostics == Diagnostics::On;
    let bits = measurements.as_ref().map_or(model.detectors, |map| map.count());
    let (writer, reader) = keeps.then(|| measured::copies(bits))?;
    Some((writer, (bits, reader)))
}

/// Order of the streams' shots in the input; a live source has none.
fn order(config: &Config) -> InputOrder {
    let input = &config.profile.input;
    let weights = if matches!(config.input, Input::Live { .. }) { None } else { input.weights.of(input.streams) };
    InputOrder::new(input.streams, weights.as_deref())
}

/// Starts the thread of the answer sink.
fn tap(
    cold_threads: &ColdThreads,
    sink: AnswerSink,
    silos: &mut [Silo],
    order: InputOrder,
    decoders: &DecoderChanges,
    stop: &cold::Stop,
) -> io::Result<Receiver<Result<(), String>>> {
    let taps = silos.iter_mut().flat_map(|silo| silo.answers.drain(..)).collect();
    cold::spawn_sink(cold_threads, sink, taps, order, decoders.clone(), stop.clone())
}

/// At rate max, each silo submits its shots as fast as it can, and a silo with few turns gets far
/// ahead in the input: with one turn in a hundred, each of its shots advances a hundred places. No
/// bounded window holds that for long.
fn check_order(config: &Config) -> Result<(), StartError> {
    let (silos, input) = (config.profile.silos.settled(), &config.profile.input);
    let Some(window) = config.sink.as_ref().and_then(AnswerSink::window_shots) else { return Ok(()) };
    let is_skewed = silos > 1 && matches!(order(config), InputOrder::Skewed(_));
    let is_long = config.count.is_none_or(|count| count > window as u64);
    if is_skewed && is_long && input.rate == Rate::Max {
        return Err(StartError::Apart { silos, window });
    }
    Ok(())
}

/// A bridge serves the senders of a live source, stream by stream.
fn check_bridge(config: &Config, bridge: Option<&BridgeEnd>) -> Result<(), StartError> {
    let Some(bridge) = bridge else { return Ok(()) };
    let (found, expected) = (bridge.streams(), config.profile.input.streams);
    match config.input {
        Input::Live { .. } if found == expected => Ok(()),
        Input::Live { .. } => Err(StartError::BridgeStreams { found, expected }),
        Input::Sampler { .. } | Input::Replay { .. } | Input::Stream { .. } => Err(StartError::BridgeInput),
    }
}

fn check_width(model: &Model) -> Result<(), StartError> {
    if model.shot_words() > DETECTOR_WORDS_MAX {
        let soft_bits = model.soft.as_ref().map_or(0, |map| 8 * map.bytes());
        let what = if soft_bits == 0 { "detectors" } else { "detectors and bits of soft bytes" };
        let (found, limit) = (model.detectors + soft_bits, DETECTOR_WORDS_MAX as u32 * 64);
        return Err(StartError::Width { what, found, limit });
    }
    if model.observable_words() > OBSERVABLE_WORDS_MAX {
        let (found, limit) = (model.observables, OBSERVABLE_WORDS_MAX as u32 * 64);
        return Err(StartError::Width { what: "observables", found, limit });
    }
    Ok(())
}

/// Checks that the profile is valid, that the model fits the slots, and that the shots of a file are of the model: hot
/// threads copy their words and index by their bits.
pub(super) fn check_fit(profile: &Profile, input: &Input) -> Result<(), StartError> {
    // Lists of profiles show the summary; one made in code may lack it.
    if let Some(error) = profile.validate().into_iter().find(|error| error.field != "summary") {
        return Err(StartError::Profile(error));
    }
    check_width(input.model())?;
    let Input::Replay { model, name, shots, observables } = input else { return Ok(()) };
    let soft_bits = model.soft.as_ref().map(|map| 8 * map.bytes());
    let bits = soft_bits.map_or(model.detectors, |soft_bits| 64 * model.detector_words() as u32 + soft_bits);
    let refused = |what, found, expected| StartError::Shots { name: name.clone(), what, found, expected };
    let check_words = |what, found, expected| {
        if words(found) == words(expected) { Ok(()) } else { Err(refused(what, found.into(), expected.into())) }
    };
    check_words("bits in a shot", shots.width_bits, bits)?;
    if let Some(shot) = shots.iter().position(|shot| model.has_other_bits(shot)) {
        return Err(StartError::OtherBits { name: name.clone(), shot });
    }
    let Some(truths) = observables else { return Ok(()) };
    check_words("true observables of a shot", truths.width_bits, model.observables)?;
    if truths.len() != shots.len() {
        return Err(refused("shots with true observables", truths.len() as u64, shots.len() as u64));
    }
    Ok(())
}

/// Dimensions of the board.
fn shape(profile: &Profile, plan: &Plan) -> Shape {
    let decoders = (0..profile.silos.settled()).map(|silo| plan.decoders(silo)).max().unwrap_or(1);
    Shape {
        threads: plan.threads.len() as u32,
        silos: profile.silos.settled(),
        slots: profile.slots,
        workers: profile.device_workers(),
        decoders,
        streams: profile.input.streams,
    }
}

/// A shared board, or a private one and a note.
fn make_board(shape: Shape, directory: &Path, notes: &mut Vec<String>) -> Result<Board, StartError> {
    match Board::create(shape, Place::Shared(directory.to_owned())) {
        Ok(board) => {
            notes.extend(board::remarks(directory));
            Ok(board)
        }
        Err(error) => {
            notes.push(error.to_string());
            Ok(Board::create(shape, Place::Private)?)
        }
    }
}

/// Source of a silo's shots, as far as its assembly needs it.
#[derive(Clone, Copy)]
enum Origin<'a> {
    Sampler { model: &'a Arc<Model>, seed: u64 },
    Replay { shots: &'a Arc<ShotSet>, observables: &'a Option<Arc<ShotSet>> },
    Stream { model: &'a Arc<Model> },
    Live,
}

/// Opens the live source, if shots come from one.
fn open_live(
    config: &Config,
    common: &Common,
    measured: Option<SampleWriter>,
    bridge: Option<BridgeEnd>,
) -> Result<Option<LiveSource>, StartError> {
    check_bridge(config, bridge.as_ref())?;
    let clock = &common.clock;
    let Input::Live { model, place, measurements } = &config.input else { return Ok(None) };
    let (silos, slots) = (config.profile.silos.settled(), config.profile.slots);
    let streams = config.profile.input.streams;
    // A stream that moves between silos takes whole shots along, and true observables come with the
    // last measurement: both exclude submission by rounds.
    let has_truth = measurements.as_ref().is_some_and(|map| map.truth_known());
    // So does a bridge: whole shots go to other hosts.
    let by_rounds = silos == 1
        && common.decoding.has_windows()
        && !has_truth
        && streams * SLOTS_PER_STREAM <= slots
        && bridge.is_none();
    let linked = Link::open(LinkParts {
        by_rounds,
        place,
        model,
        measurements: measurements.clone(),
        silos,
        streams,
        count: config.count,
        measured,
        bridge,
        epoch: clock.started_utc().as_nanos() as u64 | 1,
        rate: clock.rate(),
        board: Arc::clone(&common.board),
        boards: &config.boards,
    })?;
    let Linked { link, lanes, taps, name } = linked;
    Ok(Some(LiveSource { link: Some(Box::new(link)), lanes: lanes.into_iter(), taps, name }))
}

/// A live source that is not yet connected to the feeds.
struct LiveSource {
    link: Option<Box<Link>>,
    lanes: std::vec::IntoIter<LaneOut>,
    taps: Sender<Reader<Answer>>,
    name: String,
}

fn wire_silos(
    config: &Config,
    plan: &Plan,
    answers: Answers,
    contexts: Vec<Context>,
    common: &Common,
    mut live: Option<&mut LiveSource>,
) -> Result<Wired, StartError> {
    let mut contexts = contexts.into_iter();
    let origin = match &config.input {
        Input::Sampler { model, seed, .. } => Origin::Sampler { model, seed: *seed },
        Input::Replay { shots, observables, .. } => Origin::Replay { shots, observables },
        Input::Stream { model, .. } => Origin::Stream { model },
        Input::Live { .. } => Origin::Live,
    };
    let (profile, header) = (&config.profile, common.board.header());
    let order = order(config);
    let (mut wired, mut fills) = (Vec::new(), Vec::new());
    let Connected { pieces, notifiers } = silo::connect(profile.silos.settled(), &common.decoding.model, &common.moves);
    for (silo, connected) in (0..).zip(pieces) {
        let mut arena = Arena::new();
        let share = Share::of(silo as usize, profile.silos.settled(), profile.input.streams, config.count);
        let share = if let InputOrder::Skewed(order) = &order { share.in_order(order) } else { share };
        let end = live.as_mut().and_then(|live| Some(LiveEnd { lane: live.lanes.next()?, link: live.link.take() }));
        let gpu = contexts.next().map(|context| {
            let (facts, cold_cores) = (context.facts.clone(), plan.cold_cores.clone());
            Gpu { context: Some(context), facts, cold_cores }
        });
        let attached = Attached { gpu, ..connected };
        let (made, fill) = on_cores_of(silo, plan, || {
            arena.within(|| {
                let (source, fill) = origin.source(silo, end);
                (silo::wire(profile, share, plan.decoders(silo), source, answers, attached, common), fill)
            })
        })
        .map_err(no_room("wiring", plan))?;
        let mut made = made?;
        let usage = arena.usage();
        board::add(&header.arenas_touched_bytes, usage.touched_bytes as u64);
        board::add(&header.arenas_locked_bytes, usage.locked_bytes as u64);
        made.arena = arena;
        wired.push(made);
        fills.extend(fill);
    }
    Ok((wired, fills, notifiers))
}

/// Runs `body` on the cores of silo `silo`, so that the pages it touches first lie on that node. If
/// the silo has no core of its own, or the system refuses the confinement, the scheduler chooses.
fn on_cores_of<R: Send>(silo: u32, plan: &Plan, body: impl FnOnce() -> R + Send) -> io::Result<R> {
    let cores: Vec<u32> =
        plan.threads.iter().filter(|thread| thread.silo == silo).filter_map(|thread| thread.core).collect();
    std::thread::scope(|scope| {
        let wiring = std::thread::Builder::new().spawn_scoped(scope, || {
            let _ = pin::confine_current_thread(&cores);
            body()
        });
        Ok(wiring?.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

impl Origin<'_> {
    /// The hot end of a silo's source, and the cold end of a stream.
    fn source(self, silo: u32, live: Option<LiveEnd>) -> (Source, Option<StageFill>) {
        match self {
            Origin::Live => (Source::Live(live.expect("a live source has a lane to each silo")), None),
            Origin::Sampler { model, seed } => {
                (Source::Sampler(Box::new(Sampler::new(model, seed.wrapping_add(u64::from(silo))))), None)
            }
            Origin::Replay { shots, observables } => {
                (Source::Replay { shots: Arc::clone(shots), observables: observables.clone() }, None)
            }
            Origin::Stream { model } => {
                let (fill, end) = stage(model.shot_words());
                (Source::Stage(end), Some(fill))
            }
        }
    }
}

/// Makes the first role of each kind in silo 0 obey drill commands.
fn provoke(silos: &mut [Silo], drill_command: Option<&Arc<DrillCommand>>) {
    let (Some(silo), Some(drill_command)) = (silos.first_mut(), drill_command) else { return };
    let under_command = |spec: RoleSpec| {
        if spec.index != 0 {
            return spec;
        }
        let (build, drill_command) = (spec.build, Arc::clone(drill_command));
        let provoked = move |init: &mut Init<'_>| -> Result<Box<dyn Role>, RoleError> {
            Ok(Box::new(DrilledRole::new(build(init)?, drill_command)))
        };
        RoleSpec { build: Box::new(provoked), ..spec }
    };
    silo.specs = silo.specs.drain(..).map(under_command).collect();
}

type Threads = Vec<JoinHandle<()>>;

/// A lane of the log for each thread, and the logger that reads them; empty without an event sink.
fn wire_log(
    events: Option<EventSink>,
    plan: &Plan,
    shared: &Shared,
    notes: &mut Vec<String>,
) -> (Vec<Writer>, Option<(Logger, SyncSender<LogEntry>)>) {
    let Some(sink) = events else { return (Vec::new(), None) };
    let threads = plan.threads.len();
    let lanes = threads.clamp(1, PRODUCERS_MAX);
    if threads > lanes {
        notes.push(format!("the log has {lanes} lanes for {threads} threads: the other threads write no events"));
    }
    let (first, reader) = log::channel(lanes, LANE, 0);
    let others: Vec<Writer> = (1..lanes).filter_map(|thread| first.try_clone(thread as u16)).collect();
    let names = plan.threads.iter().map(|planned| planned.name.clone()).collect();
    let (log, entries) = sync_channel(ENTRIES_MAX);
    let logger = Logger::new((reader, entries), sink, names, Arc::clone(&shared.board), shared.clock.clone());
    (std::iter::once(first).chain(others).collect(), Some((logger, log)))
}

/// Ends the threads of a failed start and waits for them, because the last of them releases the
/// board: a process that ended before would leave its file. Waits at most [`DISMISS_LIMIT`] for a
/// thread that hangs.
fn dismiss(threads: &[JoinHandle<()>], cold_threads: &ColdThreads, shared: &Shared) {
    shared.phase.advance(Phase::Shutdown);
    let from = shared.clock.ticks();
    let waited = || Duration::from_nanos(shared.clock.rate().nanos(shared.clock.ticks().since(from)).0);
    let are_running = || cold_threads.are_running() || threads.iter().any(|thread| !thread.is_finished());
    while are_running() && waited() < DISMISS_LIMIT {
        cold::sleep(DISMISS_LOOK);
    }
}

fn spawn_threads(
    threads: &mut Threads,
    plan: &Plan,
    silos: &mut [Silo],
    orders: &Orders,
    logs: Vec<Writer>,
    shared: &Shared,
) -> Result<HotThreads, StartError> {
    let mut path_changes = Vec::with_capacity(plan.threads.len());
    let mut specs: Vec<RoleSpec> = silos.iter_mut().flat_map(|silo| std::mem::take(&mut silo.specs)).collect();
    let (sender, reports) = channel();
    let mut logs = logs.into_iter();
    for (index, planned) in plan.threads.iter().enumerate() {
        let mine = planned
            .roles
            .iter()
            .filter_map(|role| {
                let is_it = |spec: &RoleSpec| (spec.kind, spec.silo, spec.index) == (role.kind, role.silo, role.index);
                specs.iter().position(is_it).map(|at| specs.swap_remove(at))
            })
            .collect();
        let (core, elsewhere) = (planned.core, plan.cold_cores.clone());
        let placing = Placing { core, elsewhere, priority: orders.priority(index) };
        let spin: Arc<SpinWord> = orders.word(index);
        let (path_sender, receiver) = hot::path_changes();
        let receiver = (silos.len() > 1).then_some(receiver);
        path_changes.push(path_sender);
        let (log, shared) = (logs.next(), shared.clone());
        let thread = HotThread { index, placing, specs: mine, spin, log, path_changes: receiver, shared };
        match hot::spawn(&planned.name, thread, sender.clone()) {
            Ok(thread) => threads.push(thread),
            Err(source) => {
                let (name, threads) = (planned.name.clone(), plan.threads.len());
                return Err(StartError::Thread { name, threads, source });
            }
        }
    }
    assert!(specs.is_empty(), "the plan gives every role a thread");
    let (board, roles) = (Arc::clone(&shared.board), HotThreads::roles_of(plan));
    Ok(HotThreads { board, path_changes, reports, roles, building: 0, unbuilt: None })
}

/// Waits until every thread has built its roles; returns what the operator should know, and the
/// threads that could not be pinned.
fn wait_built(reports: &Receiver<ThreadReport>, threads: usize) -> Result<(Vec<String>, Vec<usize>), StartError> {
    let (mut notes, mut unpinned) = (Vec::new(), Vec::new());
    for built in 0..threads {
        let report = match reports.recv_timeout(BUILD_LIMIT) {
            Ok(report) => report,
            Err(_) => {
                let (missing, limit_s) = (threads - built, BUILD_LIMIT.as_secs());
                return Err(StartError::Slow { missing, threads, limit_s });
            }
        };
        report.result?;
        unpinned.extend(report.unpinned.is_some().then_some(report.thread));
        notes.extend(report.unpinned);
        // Each thread reports the same text; one note is enough.
        notes.extend(report.unprivileged.filter(|text| !notes.contains(text)));
    }
    Ok((notes, unpinned))
}
