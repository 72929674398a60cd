//! A silo: one complete pipeline, with its parts connected.
//!
//! Owns nothing that runs: it creates the words, queues and buffers of one pipeline and hands each
//! end to the builder of the one role that owns it. Runs once, at Init, on a cold thread. The
//! simulation builds the same silos.
//!
//! Job buffers: slots + workers + decoders. A quarantined launch and an expired decode each keep
//! their buffer after their slot is reused; with fewer buffers a slow device could starve a healthy
//! one.

mod connect;
mod cuda;
mod supervisor;
mod path;
mod rebuild;
mod commands;

pub use commands::{SiloCommand, SiloCommands, SiloRefused};
pub use connect::{Connected, SiloNotifiers, connect};
pub use supervisor::{PathControl, SiloSupervisor, SupervisorParts};

use crate::arbiter::deadlines::Timebase;
use crate::arbiter::page::{Limits, PageTable, Silo as Owner};
use crate::arbiter::requests::ArbiterEndpoint;
use crate::board::Board;
use crate::board::layout::ANSWER_READERS_MAX;
use crate::clock::Clock;
use crate::code::Model;
use crate::commit::arbiter_driver::{Link, MembershipEndpoint};
use crate::commit::joint_readouts::{JointCells, Joints};
use crate::commit::state::StreamStates;
use crate::commit::{JointCheck, JointTally};
use crate::decode::changes::DecoderChanges;
use crate::decode::prepared::{Models, Prepared};
use crate::decode::{MatcherModel, ReadyError};
use crate::device::Recovery;
use crate::device::cuda::{Context, DeviceFacts};
use crate::dispatch::sampled::{AnswerSampleReader, answer_samples};
use crate::dispatch::{Harvester, HarvesterParts};
use crate::fault::Injector;
use crate::feed::cross_silo::CrossSiloParts;
use crate::feed::requests::MoveRequests;
use crate::feed::source::Source;
use crate::feed::{Cadence, Feed, FeedContext, Share, shot_samples};
use crate::graph::{CompileError, Event};
use crate::hot::memory::Arena;
use crate::hot::{FaultyRole, HotFault, Init, Role, RoleError, RoleSpec, Settings};
use crate::pipe::samples::SampleReader;
use crate::pipe::{Answer, AnswerDeadlines, Pipe, ToGraph, Watermarks, home};
use crate::predecode::{self, Local, Passthrough, Tables};
use crate::profile::{Decoder, Faults, Predecoder, Profile, RoleFault, TaskTrace, Window};
use crate::roles::RoleKind;
use crate::units::Nanos;
use path::{ArbiterParts, PathParts, job_bank, path};
use pinwheel_edge::ring::broadcast::{self, Reader, Writer};
use pinwheel_edge::slot::health::HealthWord;
use pinwheel_edge::slot::jobs::FreeJobs;
use pinwheel_edge::slot::table::{DispatchEnd, Geometry, table};
use pinwheel_edge::slot::workers::{DispatchWorkers, WorkerBank};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// A model, prepared for every role that needs it.
#[derive(Clone)]
pub struct Decoding {
    /// The detector error model.
    pub model: Arc<Model>,
    /// Its decoders, unless [`DecoderChanges`] alone has them.
    prepared: Option<Prepared>,
    has_windows: bool,
    local: Option<Local>,
}

impl Decoding {
    /// Prepares `model` for `decoder`, as a whole or by windows, and for `predecoder`.
    ///
    /// # Errors
    /// As [`Prepared::one`].
    pub fn new(
        model: Arc<Model>,
        decoder: Decoder,
        predecoder: Predecoder,
        window: Window,
    ) -> Result<Decoding, ReadyError> {
        let prepared = Prepared::one(&model, decoder, predecoder, window)?;
        Decoding::with(model, prepared, predecoder)
    }

    /// Prepares `model` for the decoders and the predecoder of `profile`.
    ///
    /// # Errors
    /// As [`Prepared::of`].
    pub fn of(model: Arc<Model>, profile: &Profile) -> Result<Decoding, ReadyError> {
        let prepared = Prepared::of(&Models::of(&model), profile, &[])?;
        Decoding::with(model, prepared, profile.predecoder)
    }

    fn with(model: Arc<Model>, prepared: Prepared, predecoder: Predecoder) -> Result<Decoding, ReadyError> {
        let local = match predecoder {
            Predecoder::None => None,
            Predecoder::Local => Some(Local::new(&model)?),
        };
        let has_windows = prepared.main().windows() > 1;
        Ok(Decoding { model, prepared: Some(prepared), has_windows, local })
    }

    /// Changes of these decoders in one engine.
    ///
    /// # Panics
    /// After [`Decoding::without_decoders`].
    pub fn changes(&self) -> DecoderChanges {
        DecoderChanges::new(&self.model, self.prepared.clone().expect("it has its decoders"))
    }

    /// The same without its decoders, so that their memory is freed when others take their place.
    #[must_use]
    pub fn without_decoders(self) -> Decoding {
        Decoding { prepared: None, ..self }
    }

    /// A new predecoder, for one thread.
    pub fn predecoder(&self) -> Box<dyn predecode::Predecoder> {
        match &self.local {
            Some(local) => Box::new(local.clone()),
            None => Box::new(Passthrough),
        }
    }

    /// The predecoder's tables, for a device that runs the same rule by a program of its own.
    pub fn tables(&self) -> Tables {
        self.local.as_ref().map_or_else(Tables::empty, |local| local.tables(self.model.observable_words()))
    }

    /// Whether a shot is decoded by more windows than one.
    pub fn has_windows(&self) -> bool {
        self.has_windows
    }
}

/// Parts that all silos of an engine share.
#[derive(Clone)]
pub struct Common {
    /// The board.
    pub board: Arc<Board>,
    /// Live limits and rate.
    pub settings: Arc<Settings>,
    /// The engine's clock.
    pub clock: Clock,
    /// The prepared model.
    pub decoding: Decoding,
    /// Changes of decoders.
    pub decoders: DecoderChanges,
    /// Requested moves of streams.
    pub moves: Arc<MoveRequests>,
    /// Answers and readouts of streams that are read jointly, if any.
    pub joints: Option<Arc<JointTally>>,
}

/// Dispatch's ends: slots, device workers, free job buffers, and the rings to the graph role.
type DispatchEnds = (DispatchEnd, DispatchWorkers, FreeJobs, ToGraph);

/// A built silo.
pub struct Silo {
    /// Its shared words, queues and buffers.
    pub pipe: Pipe,
    /// The words of its device workers.
    pub workers: Arc<WorkerBank>,
    /// The committed state of each stream.
    pub states: Arc<StreamStates>,
    /// Its roles, to be built on their threads.
    pub specs: Vec<RoleSpec>,
    /// Recovers its device, on a cold thread.
    pub recovery: Recovery,
    /// Its GPU, for reopening after a restart.
    gpu: Option<(DeviceFacts, Vec<u32>)>,
    /// Readers of its answers; each reader receives every answer.
    pub answers: Vec<Reader<Answer>>,
    /// The memory of these parts, if they were built in an arena.
    pub arena: Arena,
    /// Task times of each decode worker, sent when its thread ends; empty unless the profile asks
    /// for a trace.
    pub task_times: Receiver<Vec<Event>>,
    /// The sending end of `task_times`, for rebuilt paths.
    times: Option<Sender<Vec<Event>>>,
    /// The memory of a rebuilt path.
    pub path_arena: Arena,
    /// Copies of its feed's shots, if the profile watches for drifts.
    pub samples: Option<SampleReader>,
    /// Bytes of the matchers that shots in streams or blocks have for themselves.
    pub matcher_bytes: usize,
    /// Copies of answered shots, until the shadow's thread takes the reader.
    pub answered: Option<AnswerSampleReader>,
}

/// Whether answers leave the silo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// Answers are only counted.
    Counted,
    /// Answers also go through a ring; its slowest reader holds the silo up.
    PassedOn {
        /// Number of readers: at most [`ANSWER_READERS_MAX`].
        readers: usize,
    },
}

/// Slots of the answer ring beyond one per slot of the silo.
const ANSWERS_SLACK: usize = 1024;

/// A GPU for one silo.
pub struct Gpu {
    /// Opened on a cold thread; `None`: the supervisor opens one.
    pub context: Option<Context>,
    /// Properties of the device.
    pub facts: DeviceFacts,
    /// Cores of the supervisor's thread.
    pub cold_cores: Vec<u32>,
}

/// Parts of one silo that connect it to its surroundings.
#[derive(Default)]
pub struct Attached {
    /// Its GPU, if it has one.
    pub gpu: Option<Gpu>,
    /// Links to the silos that it exchanges pages with.
    pub links: Vec<Link>,
    /// Its feed's ends of the lanes between silos, if there are several silos.
    pub cross_silo: Option<CrossSiloParts>,
    /// Its arbiter's endpoint to the feeds, if there are several silos.
    pub endpoint: Option<ArbiterEndpoint>,
    /// Its arbiter's endpoint to the supervisor of the silos, if there are several.
    pub membership: Option<MembershipEndpoint>,
}

/// Builds one silo and connects its parts.
///
/// # Errors
/// If its graph cannot be created.
///
/// # Panics
/// If `answers` has more than [`ANSWER_READERS_MAX`] readers.
pub fn wire(
    profile: &Profile,
    share: Share,
    decoders: u32,
    source: Source,
    answers: Answers,
    attached: Attached,
    common: &Common,
) -> Result<Silo, CompileError> {
    let model = &common.decoding.model;
    let geometry = geometry(profile.slots, model);
    let (feed_end, dispatch_end, harvest_end, table) = table(geometry);
    let jobs = job_bank(profile, decoders, geometry);
    let pipe = Pipe {
        silo: share.silo,
        streams: share.streams,
        table,
        jobs,
        pages: pages(&share, profile.silos.settled()),
        pressure: Arc::default(),
        watermarks: Arc::new(Watermarks::new(share.streams, |stream| share.own.binary_search(&stream).is_ok())),
        health: Arc::new(HealthWord::new()),
        settings: Arc::clone(&common.settings),
        deadlines: AnswerDeadlines::of(profile, common.clock.rate()),
        board: Arc::clone(&common.board),
    };
    let (sink, answers) = answer_ring(answers, profile.slots);
    let (silo, base) = (share.silo, timebase(common));
    let joints = joints_of(common, &share.own, share.streams);
    let check = common.joints.clone().map(|tally| JointCheck::new(tally, share.silo, share.streams));
    let draws = Draws { faults: &profile.faults, silo, epoch: 0 };
    let cross_silo = attached.cross_silo.map(|cross_silo| (cross_silo, Arc::clone(&pipe.watermarks)));
    let in_force = common.decoders.in_force();
    let matching = in_force.main();
    let carries = matching.carries(pipe.jobs.len() as u32, pipe.streams, profile.input.round_ns.is_some());
    let matcher_bytes = carries.as_ref().map_or(0, |carries| carries.matcher_bytes());
    let cadence = cadence(profile, matching, base);
    let health_changes = common.decoders.join_feed(&share.own);
    let (samples, reader) = profile.input.watch_drift.then(|| shot_samples(model.detector_words())).unzip();
    let feed = Feed::new(share, feed_end, source, model, context(common, &pipe), draws.of(3), cross_silo);
    let feed = feed.at(cadence).sampled(samples).following(health_changes);
    let states = Arc::new(StreamStates::new(Arc::clone(&pipe.pages), base, geometry.observable_words as usize));
    let arbiter = ArbiterParts {
        links: attached.links,
        endpoint: attached.endpoint,
        membership: attached.membership,
        successors: Vec::new(),
    };
    let (times, task_times) = times_asked(profile);
    let (end, gpu) = (dispatch_end, attached.gpu);
    let seat = gpu.as_ref().map(|gpu| (gpu.facts.clone(), gpu.cold_cores.clone()));
    let parts = PathParts { pipe: &pipe, states: &states, end, arbiter, joints, gpu, draws, times: times.clone() };
    let path = path(profile, decoders, parts, carries, common)?;
    let (samples, answered) = answer_samples(model.shot_words(), model.observable_words());
    let parts = HarvesterParts { pipe: pipe.clone(), end: harvest_end, sink, joints: check, samples };
    let harvester = Harvester::new(parts);
    // In the order of the path: the simulation draws random numbers in this order.
    let mut specs = vec![spec(RoleKind::Feed, silo, 0, move |_| Ok(Box::new(feed)))];
    let mut of_path = path.specs;
    let decode = of_path.split_off(of_path.len() - decoders as usize);
    specs.extend(of_path);
    specs.push(spec(RoleKind::Harvest, silo, 0, move |_| Ok(Box::new(harvester))));
    specs.extend(decode);
    let specs = with_injected_faults(specs, profile, silo);
    let (workers, recovery) = (path.workers, path.recovery);
    let [arena, path_arena] = [Arena::none(), Arena::none()];
    Ok(Silo {
        pipe,
        workers,
        states,
        specs,
        recovery,
        gpu: seat,
        answers,
        arena,
        path_arena,
        samples: reader,
        answered: Some(answered),
        task_times,
        times,
        matcher_bytes,
    })
}

fn geometry(slots: u32, model: &Model) -> Geometry {
    let (detector_words, observable_words) = (model.shot_words() as u32, model.observable_words() as u32);
    Geometry { slots, detector_words, observable_words }
}

/// The channel for the decode workers' task times, if the profile asks for a trace.
fn times_asked(profile: &Profile) -> (Option<Sender<Vec<Event>>>, Receiver<Vec<Event>>) {
    let (sender, times) = channel();
    ((profile.graph.trace != TaskTrace::Off).then_some(sender), times)
}

fn timebase(common: &Common) -> Timebase {
    Timebase { rate: common.clock.rate(), start: common.clock.start() }
}

fn context(common: &Common, pipe: &Pipe) -> FeedContext {
    let (settings, board) = (Arc::clone(&common.settings), Arc::clone(&common.board));
    FeedContext { settings, board, pressure: Arc::clone(&pipe.pressure), rate: common.clock.rate() }
}

/// The cadence of a shot's rounds, if shots arrive by rounds.
fn cadence(profile: &Profile, matching: &MatcherModel, base: Timebase) -> Option<Cadence> {
    let (words_after, period) = matching.words_after_rounds().zip(profile.input.round_ns)?;
    Some(Cadence { words_after, period: base.rate.ticks(Nanos(u64::from(period))) })
}

fn recovery(profile: &Profile, pipe: &Pipe) -> Recovery {
    let wait = Nanos::from_millis(u64::from(profile.faults.recover_after_ms));
    Recovery::new(Arc::clone(&pipe.health), wait)
}

/// The page words of a silo, one for each stream of the engine: its own pages at rest, the others
/// owned by their home silos.
fn pages(share: &Share, silos: u32) -> Arc<PageTable> {
    let me = Owner::new(share.silo as u8);
    let owner = |stream: u32| if share.own.contains(&stream) { me } else { Owner::new(home(stream, silos) as u8) };
    Arc::new(PageTable::new(me, share.streams, Limits::SEED, owner))
}

/// The ring of answers, with its readers.
fn answer_ring(answers: Answers, slots: u32) -> (Option<Writer<Answer>>, Vec<Reader<Answer>>) {
    let Answers::PassedOn { readers } = answers else { return (None, Vec::new()) };
    assert!(readers <= ANSWER_READERS_MAX, "{readers} readers of answers, not 1..={ANSWER_READERS_MAX}");
    let (sink, readers) = broadcast::channel(slots as usize + ANSWERS_SLACK, readers);
    (Some(sink), readers)
}

/// The tally that checks a run's joint readouts, if there are any.
pub fn tally(profile: &Profile, model: &Model) -> Option<Arc<JointTally>> {
    let of = (profile.input.streams, profile.silos.settled(), profile.slots);
    let words = geometry(profile.slots, model).observable_words as usize;
    profile.input.joint_every.map(|every| Arc::new(JointTally::new(every, of, words)))
}

/// A path's joint readouts, which begins with the streams of `own`, and the cells that readouts are
/// written to.
fn joints_of(common: &Common, own: &[u32], streams: u32) -> (Option<Joints>, Option<Arc<JointCells>>) {
    let Some(tally) = &common.joints else { return (None, None) };
    let cells = Arc::new(JointCells::new(streams, tally.words()));
    (Some(Joints::new(Arc::clone(tally), own, streams, Arc::clone(&cells))), Some(cells))
}

/// Random draws of one silo's roles; each role has its own sequence.
struct Draws<'a> {
    faults: &'a Faults,
    silo: usize,
    /// Number of restarts of the silo.
    epoch: u64,
}

impl Draws<'_> {
    fn of(&self, role: u64) -> Injector {
        let place = self.epoch << 32 | role << 8 | self.silo as u64;
        Injector::new(self.faults, place)
    }
}

fn spec(
    kind: RoleKind,
    silo: usize,
    index: u32,
    build: impl FnOnce(&mut Init<'_>) -> Result<Box<dyn Role>, RoleError> + Send + 'static,
) -> RoleSpec {
    RoleSpec { kind, silo: silo as u32, index, build: Box::new(build) }
}

/// The specs, with the roles made faulty that the profile names.
fn with_injected_faults(mut specs: Vec<RoleSpec>, profile: &Profile, silo: usize) -> Vec<RoleSpec> {
    for (fault, kind) in
        [(profile.faults.role_panic, HotFault::Panic), (profile.faults.role_allocation, HotFault::Allocate)]
    {
        if let Some(fault) = fault.filter(|_| silo == 0) {
            specs = specs.into_iter().map(|spec| make_faulty(spec, fault, kind)).collect();
        }
    }
    specs
}

/// Wraps the role that the profile names in a faulty one.
fn make_faulty(spec: RoleSpec, fault: RoleFault, kind: HotFault) -> RoleSpec {
    if spec.kind != fault.role || spec.index != 0 {
        return spec;
    }
    let build = spec.build;
    let faulty = move |init: &mut Init<'_>| -> Result<Box<dyn Role>, RoleError> {
        Ok(Box::new(FaultyRole::new(build(init)?, fault.after_items, kind)))
    };
    RoleSpec { build: Box::new(faulty), ..spec }
}

#[cfg(test)]
mod tests;
