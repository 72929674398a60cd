//! From a configuration to running threads.
//!
//! Runs once, on the caller's thread. Order: what can be refused first (host, plan, model), then memory, then threads;
//! a failure on the way stops the threads that run already. Bounds: [`BUILD_LIMIT`] for all roles to be built.
//!
//! Longer than 500 lines, because each step of a start is a short function beside the order that they are called in.

use super::blackbox::{Blackbox, Recording};
use super::cold::{self, Reader as StreamReader};
use super::control::{ColdSide, Control, End};
use super::devices::Devices;
use super::lives::HotThreads;
use super::logger::{LANE, Logger, SAID_MAX, Said};
use super::neighbours::{Watch, Watching};
use super::orders::{Orders, SharedOrders};
use super::placing::{Directing, Mover};
use super::remote;
use super::steer::{Pace, Reins, SharedSteering};
use super::wall::Wall;
use super::watchdog::{self, Hands};
use super::{Config, Engine, Input, Requests, StartError, cores, devices, environment, header};
use crate::arbiter::page::Authority;
use crate::board::{self, Board, Place, Shape};
use crate::clock::Clock;
use crate::code::Model;
use crate::code::sampler::Sampler;
use crate::code::shots::ShotSet;
use crate::device::cuda::Context;
use crate::feed::lane::LaneOut;
use crate::feed::link::{Link, LinkParts, Linked};
use crate::feed::order::InputOrder;
use crate::feed::requests::{MoveRequest, MoveRequests};
use crate::feed::source::{LiveEnd, Source};
use crate::feed::stage::{StageFill, stage};
use crate::feed::{Answer, SLOTS_PER_STREAM, Share};
use crate::host::{HostFacts, pin};
use crate::hot::memory::{Arena, OnCall};
use crate::hot::provoke::{Provocation, Provoked};
use crate::hot::{self, Init, Placing, Role, RoleError, RoleSpec, Settings, Shared, ThreadReport};
use crate::placement::decision::Decision;
use crate::plan::Plan;
use crate::profile::{Diagnostics, HotAllocations, Predecoder, Profile, Rate, Silos};
use crate::record::{AnswerSink, EventSink};
use crate::silo::{
    self, Answers, Attached, Common, Connected, Decoding, Gpu, Lives, LivesParts, Silo, SiloWishes, Told,
};
use crate::units::Nanos;
use pinwheel_edge::ring::broadcast::Reader;
use pinwheel_edge::ring::log::{self, Writer};
use pinwheel_edge::ring::mpsc::PRODUCERS_MAX;
use pinwheel_edge::slot::{DETECTOR_WORDS_MAX, OBSERVABLE_WORDS_MAX};
use pinwheel_edge::spin::{Phase, PhaseWord, SpinWord};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longest time for all threads to build their roles.
pub(super) const BUILD_LIMIT: Duration = Duration::from_secs(30);
/// Longest wait for threads to leave when a start fails, and the time between two looks at them.
const DISMISS_LIMIT: Duration = Duration::from_secs(2);
const DISMISS_LOOK: Duration = Duration::from_millis(1);

pub(super) fn start(mut config: Config) -> Result<Engine, StartError> {
    hot::install_hook();
    let host = HostFacts::read()?;
    let clock = environment::clock(config.profile.environment, Path::new("/"))?;
    let (asked, settled) = (config.profile.silos, devices::settle(&mut config.profile)?);
    let (placed, devices) = devices::place(settled, &mut config.profile, &host)?;
    let (model, is_live) = (Arc::clone(config.input.model()), matches!(config.input, Input::Live { .. }));
    check_width(&model)?;
    check_order(&config)?;
    let decoding = Decoding::new(model, config.profile.predecoder, config.profile.window)?;
    let disk = config.environment.as_ref().map(|keep| keep.directory.clone());
    let report = environment::look(&mut config, &host, &placed, &clock)?;
    let cores::Placed { plan, claims, notes } = placed;
    let Devices { contexts, name: device_name, notes: device_notes } = devices;
    let mut notes: Vec<String> = config.notes.iter().cloned().chain(device_notes).chain(notes).collect();
    let common = common(&config.profile, &plan, decoding, &clock, &mut notes)?;
    let Common { board, settings, moves, .. } = common.clone();
    let LaidOut { mut silos, fills, lives } = lay_out(&config, &plan, contexts, &device_name, &common)?;
    let (wall, wishes) = (Wall::new(&clock, &board), Arc::clone(lives.wishes()));
    let orders = SharedOrders::new(&config.profile_name, &config.profile, &plan, &clock);
    header::write_threads(&board, &plan, &orders.lock());
    let steering = steering(&config, asked, &orders, &common);
    let (phase, on_call) = (Arc::new(PhaseWord::new()), on_call(&config));
    let shared = Shared { clock: clock.clone(), board: Arc::clone(&board), phase, on_call };
    provoke(&mut silos, config.provocation.as_ref());
    let (stop, requests) = (cold::Stop::new(), Arc::new(Requests::default()));
    let hands = hands(&requests, &steering, &shared);
    let watchdog = watchdog::spawn(&config.profile, hands, (disk, plan.cold_cores.clone()), &mut notes);
    let (logs, logger) = wire_log(config.events.take(), &plan, &shared, &mut notes);
    let mut threads = Threads::new();
    let built = spawn_threads(&mut threads, &plan, &mut silos, &orders.lock(), logs, &shared)
        .and_then(|hot| Ok((wait_built(&hot.reports, threads.len())?, hot)));
    let call_off =
        |_: &_| call_off(&stop, watchdog.as_ref().map(|(watchdog, _)| watchdog), threads.as_slice(), &shared);
    let (unpinned, hot) = built.inspect_err(call_off)?;
    notes.extend(unpinned);
    let (remote, remote_orders) = reach(config.run_dir.as_deref(), &plan, &shared, &stop, &mut notes).unzip();
    header::write_notes(&board, &notes);
    board.publish();
    let sink = config.sink.take().map(|sink| tap(sink, &mut silos, order(&config), &stop));
    let (events, said) = logger.map(|(logger, said)| (logger.spawn(stop.clone()), said)).unzip();
    let recording = record(&mut config, &plan, &shared, said.as_ref(), &stop);
    let (recorder, look_back) = recording.map(|recording| (recording.ended, recording.look_back)).unzip();
    let reader = StreamReader::new(order(&config), config.input, fills);
    let input_error = reader.map(|reader| cold::spawn_reader(reader, stop.clone()));
    let environment = report.map(|report| environment::spawn(report, &shared, plan.cold_cores.clone()));
    let (watchdog, told) = watchdog.unzip();
    steering.lock().connect(said, told);
    let neighbours = watch_neighbours(orders, &plan, &shared);
    let placing = directing(&config.profile, &silos, &common, &plan).spawn();
    let cold =
        ColdSide { stop, sink, events, recorder, input_error, environment, neighbours, placing, watchdog, remote };
    let control = Control {
        shared,
        steering: steering.clone(),
        orders: remote_orders,
        requests: Arc::clone(&requests),
        silos,
        named: vec![false; threads.len()],
        threads,
        hot,
        lives,
        settings,
        end: End { count: config.count, duration: config.duration },
        wall,
        claims,
        is_live,
    };
    let control = control.spawn(cold, plan.cold_cores.clone());
    Ok(Engine { board, clock, steering, plan, requests, moves, wishes, look_back, control: Some(control) })
}

/// A start that is not going to be: everybody who runs already is told to leave.
fn call_off(stop: &cold::Stop, watchdog: Option<&watchdog::Running>, threads: &[JoinHandle<()>], shared: &Shared) {
    stop.stop();
    watchdog.into_iter().for_each(watchdog::Running::dismiss);
    dismiss(threads, shared);
}

/// What all silos share.
fn common(
    profile: &Profile,
    plan: &Plan,
    decoding: Decoding,
    clock: &Clock,
    notes: &mut Vec<String>,
) -> Result<Common, StartError> {
    let moves = MoveRequests::new(profile.input.streams, profile.silos.settled(), profile.input.joint_every.is_some());
    let settings = Arc::new(Settings::new(&profile.limits));
    settings.set_overflow(&profile.placement.overflow);
    Ok(Common {
        board: Arc::new(make_board(profile, plan, notes)?),
        settings,
        clock: clock.clone(),
        joints: silo::tally(profile, &decoding.model),
        moves: Arc::new(moves),
        decoding,
    })
}

/// Who knows which of these silos live.
fn lives(profile: &Profile, plan: &Plan, told: Vec<Told>, common: &Common) -> Lives {
    let wishes = Arc::new(SiloWishes::new(profile.silos.settled()));
    let decoders = (0..profile.silos.settled()).map(|silo| plan.decoders(silo)).collect();
    let (profile, common) = (profile.clone(), common.clone());
    Lives::new(LivesParts { profile, common, decoders, told, wishes })
}

/// The director of these silos.
fn directing(profile: &Profile, silos: &[Silo], common: &Common, plan: &Plan) -> Directing {
    Directing {
        board: Arc::clone(&common.board),
        clock: common.clock.clone(),
        profile: profile.clone(),
        pages: silos.iter().map(|silo| Arc::clone(&silo.pipe.pages)).collect(),
        mover: mover(Arc::clone(&common.moves)),
        moves: Arc::clone(&common.moves),
        settings: Arc::clone(&common.settings),
        cold_cores: plan.cold_cores.clone(),
    }
}

/// Hands on what the director decides to the feeds of the streams, which make the moves.
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

/// What acts on the engine, with the profile that it starts with.
fn steering(config: &Config, silos: Silos, orders: &SharedOrders, common: &Common) -> SharedSteering {
    let is_live = matches!(config.input, Input::Live { .. });
    let reins = Reins {
        orders: orders.clone(),
        board: Arc::clone(&common.board),
        settings: Arc::clone(&common.settings),
        clock: common.clock.clone(),
        pace: if is_live { Pace::Senders } else { Pace::Ours },
        profiles: config.profiles.clone(),
        provocation: config.provocation.clone(),
    };
    // As it was asked for: to a profile that says Auto, too, it does not differ.
    let profile = Profile { silos, ..config.profile.clone() };
    SharedSteering::new(&config.profile_name, &profile, reins)
}

/// What an alarm may do to the engine.
fn hands(requests: &Arc<Requests>, steering: &SharedSteering, shared: &Shared) -> Hands {
    let profiles = steering.lock().profiles();
    let (board, clock) = (Arc::clone(&shared.board), shared.clock.clone());
    Hands { requests: Arc::clone(requests), steering: steering.clone(), board, clock, profiles }
}

/// The flight recorder of a run, unless its profile has no diagnostics.
fn record(
    config: &mut Config,
    plan: &Plan,
    shared: &Shared,
    said: Option<&SyncSender<Said>>,
    stop: &cold::Stop,
) -> Option<Recording> {
    let run = config.run_dir.take().filter(|_| config.profile.diagnostics == Diagnostics::On)?;
    let (board, clock, cold_cores) = (Arc::clone(&shared.board), shared.clock.clone(), plan.cold_cores.clone());
    let kept = config.profile.recorder;
    Some(Blackbox { board, clock, run, kept, cold_cores, said: said.cloned() }.spawn(stop.clone()))
}

/// The look at who else wants the hot cores.
fn watch_neighbours(orders: SharedOrders, plan: &Plan, shared: &Shared) -> Option<Watching> {
    let (cores, cold_cores) = (plan.threads.iter().map(|planned| planned.core).collect(), plan.cold_cores.clone());
    Watch { board: Arc::clone(&shared.board), clock: shared.clock.clone(), orders, cores, cold_cores }.spawn()
}

/// The control socket of a run; where there can be none that is noted.
fn reach(
    run_dir: Option<&Path>,
    plan: &Plan,
    shared: &Shared,
    stop: &cold::Stop,
    notes: &mut Vec<String>,
) -> Option<(remote::Running, remote::Orders)> {
    let reached = remote::spawn(run_dir?, &shared.board, &shared.clock, plan.cold_cores.clone(), stop.clone());
    reached.map_err(|said| notes.push(said)).ok()
}

/// Silos, the cold ends of their streams, and what tells each of the others.
type Wired = (Vec<Silo>, Vec<StageFill>, Vec<Told>);

/// What is there before the first thread.
struct LaidOut {
    silos: Vec<Silo>,
    fills: Vec<StageFill>,
    lives: Lives,
}

/// The silos with their live source, if there is one, and what the board's header says of them.
fn lay_out(
    config: &Config,
    plan: &Plan,
    contexts: Vec<Context>,
    device_name: &str,
    common: &Common,
) -> Result<LaidOut, StartError> {
    let mut live = open_live(config, common, &common.clock)?;
    let readers = usize::from(config.sink.is_some()) + usize::from(live.is_some());
    let answers = if readers > 0 { Answers::PassedOn { readers } } else { Answers::Counted };
    let (mut silos, fills, told) = wire_silos(config, plan, answers, contexts, common, live.as_mut())?;
    header::write(&common.board, &common.clock, config, common);
    if !device_name.is_empty() {
        header::write_device(&common.board, device_name);
    }
    if let Some(live) = live {
        for tap in silos.iter_mut().filter_map(|silo| silo.answers.pop()) {
            // Its other end is in the first silo's feed, which has not started yet.
            let _ = live.taps.send(tap);
        }
        common.board.header().input.write(&live.name);
    }
    let lives = lives(&config.profile, plan, told, common);
    Ok(LaidOut { silos, fills, lives })
}

/// In which order the streams' shots come; those of a live source come as they are sent.
fn order(config: &Config) -> InputOrder {
    let input = &config.profile.input;
    let weights = if matches!(config.input, Input::Live { .. }) { None } else { input.weights.of(input.streams) };
    InputOrder::new(input.streams, weights.as_deref())
}

/// The thread of the answers' sink.
fn tap(sink: AnswerSink, silos: &mut [Silo], order: InputOrder, stop: &cold::Stop) -> Receiver<Result<(), String>> {
    let taps = silos.iter_mut().flat_map(|silo| silo.answers.drain(..)).collect();
    cold::spawn_sink(sink, taps, order, stop.clone())
}

fn on_call(config: &Config) -> OnCall {
    match config.profile.hot_allocations {
        HotAllocations::Count => OnCall::Count,
        HotAllocations::Abort => OnCall::Abort,
    }
}

/// Where each silo takes its turns as fast as it can, those with few of them are soon far ahead in the input: a turn in a hundred
/// is a hundred places a shot. No window holds that for long.
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

pub(super) fn check_width(model: &Model) -> Result<(), StartError> {
    if model.detector_words() > DETECTOR_WORDS_MAX {
        let (found, limit) = (model.detectors, DETECTOR_WORDS_MAX as u32 * 64);
        return Err(StartError::Width { what: "detectors", found, limit });
    }
    if model.observable_words() > OBSERVABLE_WORDS_MAX {
        let (found, limit) = (model.observables, OBSERVABLE_WORDS_MAX as u32 * 64);
        return Err(StartError::Width { what: "observables", found, limit });
    }
    Ok(())
}

/// A shared board, or a private one and a note.
fn make_board(profile: &Profile, plan: &Plan, notes: &mut Vec<String>) -> Result<Board, StartError> {
    let decoders = (0..profile.silos.settled()).map(|silo| plan.decoders(silo)).max().unwrap_or(1);
    let shape = Shape {
        threads: plan.threads.len() as u32,
        silos: profile.silos.settled(),
        slots: profile.slots,
        workers: profile.workers,
        decoders,
        streams: profile.input.streams,
    };
    let directory = board::directory();
    match Board::create(shape, Place::Shared(directory.clone())) {
        Ok(board) => {
            notes.extend(board::remarks(&directory));
            Ok(board)
        }
        Err(error) => {
            notes.push(error.to_string());
            Ok(Board::create(shape, Place::Private)?)
        }
    }
}

/// Where a silo's shots come from: what its wiring needs of the input.
#[derive(Clone, Copy)]
enum Origin<'a> {
    Sampler { model: &'a Arc<Model>, seed: u64 },
    Replay { shots: &'a Arc<ShotSet>, observables: &'a Option<Arc<ShotSet>> },
    Stream { model: &'a Arc<Model> },
    Live,
}

/// The live source, if that is where shots come from.
fn open_live(config: &Config, common: &Common, clock: &Clock) -> Result<Option<LiveSource>, StartError> {
    let Input::Live { model, place, measurements } = &config.input else { return Ok(None) };
    let (silos, slots) = (config.profile.silos.settled(), config.profile.slots);
    let streams = config.profile.input.streams;
    // Measurements make detection events of rounds that are further apart than a part; a stream that moves between silos
    // takes whole shots along.
    let by_rounds =
        silos == 1 && common.decoding.has_windows() && measurements.is_none() && streams * SLOTS_PER_STREAM <= slots;
    let linked = Link::open(LinkParts {
        by_rounds,
        place,
        model,
        measurements: measurements.clone(),
        silos,
        streams,
        count: config.count,
        epoch: clock.started_utc().as_nanos() as u64 | 1,
        rate: clock.rate(),
        board: Arc::clone(&common.board),
    })?;
    let Linked { link, lanes, taps, name } = linked;
    Ok(Some(LiveSource { link: Some(Box::new(link)), lanes: lanes.into_iter(), taps, name }))
}

/// A live source on its way to the feeds.
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
    let Connected { pieces, told } = silo::connect(profile.silos.settled(), &common.decoding.model, &common.moves);
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
        });
        let mut made = made?;
        let usage = arena.usage();
        board::add(&header.arenas_touched_bytes, usage.touched_bytes as u64);
        board::add(&header.arenas_locked_bytes, usage.locked_bytes as u64);
        made.arena = arena;
        wired.push(made);
        fills.extend(fill);
    }
    Ok((wired, fills, told))
}

/// Runs `body` where silo `silo` will run, so that the pages it touches first lie on that node. Where the silo has no
/// core of its own, or may not be confined to it, they lie wherever the scheduler has the thread.
fn on_cores_of<R: Send>(silo: u32, plan: &Plan, body: impl FnOnce() -> R + Send) -> R {
    let cores: Vec<u32> =
        plan.threads.iter().filter(|thread| thread.silo == silo).filter_map(|thread| thread.core).collect();
    std::thread::scope(|scope| {
        let wiring = scope.spawn(|| {
            let _ = pin::confine_current_thread(&cores);
            body()
        });
        wiring.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

impl Origin<'_> {
    /// The hot end of a silo's source, and the cold one of a stream's.
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
                let (fill, end) = stage(model.detector_words());
                (Source::Stage(end), Some(fill))
            }
        }
    }
}

/// Puts the roles of silo 0 under command, the first of each kind.
fn provoke(silos: &mut [Silo], provocation: Option<&Arc<Provocation>>) {
    let (Some(silo), Some(provocation)) = (silos.first_mut(), provocation) else { return };
    let under_command = |spec: RoleSpec| {
        if spec.index != 0 {
            return spec;
        }
        let (build, provocation) = (spec.build, Arc::clone(provocation));
        let provoked = move |init: &mut Init<'_>| -> Result<Box<dyn Role>, RoleError> {
            Ok(Box::new(Provoked::new(build(init)?, provocation)))
        };
        RoleSpec { build: Box::new(provoked), ..spec }
    };
    silo.specs = silo.specs.drain(..).map(under_command).collect();
}

type Threads = Vec<JoinHandle<()>>;

/// A lane of the log for each thread, and who reads them; nothing where nobody wants events.
fn wire_log(
    events: Option<EventSink>,
    plan: &Plan,
    shared: &Shared,
    notes: &mut Vec<String>,
) -> (Vec<Writer>, Option<(Logger, SyncSender<Said>)>) {
    let Some(sink) = events else { return (Vec::new(), None) };
    let threads = plan.threads.len();
    let lanes = threads.clamp(1, PRODUCERS_MAX);
    if threads > lanes {
        notes.push(format!(
            "found {threads} threads, expected at most {lanes} for the log: those beyond write no events"
        ));
    }
    let (first, reader) = log::channel(lanes, LANE, 0);
    let others: Vec<Writer> = (1..lanes).filter_map(|thread| first.try_clone(thread as u16)).collect();
    let names = plan.threads.iter().map(|planned| planned.name.clone()).collect();
    let (say, said) = sync_channel(SAID_MAX);
    let logger = Logger::new((reader, said), sink, names, Arc::clone(&shared.board), shared.clock.clone());
    (std::iter::once(first).chain(others).collect(), Some((logger, say)))
}

/// Sends the threads of a start that failed away and waits for them: the board is gone only when the last has let go of
/// it. One that hangs in building is not waited for longer than [`DISMISS_LIMIT`].
fn dismiss(threads: &[JoinHandle<()>], shared: &Shared) {
    shared.phase.advance(Phase::Shutdown);
    let from = shared.clock.ticks();
    let waited = || Duration::from_nanos(shared.clock.rate().nanos(shared.clock.ticks().since(from)).0);
    while threads.iter().any(|thread| !thread.is_finished()) && waited() < DISMISS_LIMIT {
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
    let mut callers = Vec::with_capacity(plan.threads.len());
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
        let (caller, calls) = hot::calls();
        let calls = (silos.len() > 1).then_some(calls);
        callers.push(caller);
        let own = (spin, logs.next(), calls);
        match hot::spawn(index, &planned.name, placing, mine, own, shared.clone(), sender.clone()) {
            Ok(thread) => threads.push(thread),
            Err(source) => {
                let (name, threads) = (planned.name.clone(), plan.threads.len());
                return Err(StartError::Thread { name, threads, source });
            }
        }
    }
    assert!(specs.is_empty(), "the plan gives every role a thread");
    let (board, roles) = (Arc::clone(&shared.board), HotThreads::roles_of(plan));
    Ok(HotThreads { board, callers, reports, roles, building: 0 })
}

/// Waits until every thread has built its roles; returns what could not be pinned.
fn wait_built(reports: &Receiver<ThreadReport>, threads: usize) -> Result<Vec<String>, StartError> {
    let mut notes = Vec::new();
    for built in 0..threads {
        let report = match reports.recv_timeout(BUILD_LIMIT) {
            Ok(report) => report,
            Err(_) => {
                let (missing, limit_s) = (threads - built, BUILD_LIMIT.as_secs());
                return Err(StartError::Slow { missing, threads, limit_s });
            }
        };
        report.result?;
        notes.extend(report.unpinned);
        // The same for every thread: said once.
        notes.extend(report.unprivileged.filter(|said| !notes.contains(said)));
    }
    Ok(notes)
}

/// The predecoder's name as profiles spell it.
pub(super) fn predecoder_name(predecoder: Predecoder) -> &'static str {
    match predecoder {
        Predecoder::None => "none",
        Predecoder::Local => "local",
    }
}
