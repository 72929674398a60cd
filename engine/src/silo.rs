//! A silo: one complete pipeline, wired.
//!
//! Owns nothing that runs: it makes the words, queues and buffers of one pipeline and hands each end to the builder of
//! the one role that owns it. Runs once, at Init, on a cold thread. The rehearsal wires the same silos.
//!
//! Job buffers: slots + workers + decoders. A quarantined launch and an expired decode each keep theirs beyond the
//! reuse of their slot, so with fewer a slow device could starve a sound one.

mod connect;
mod cuda;
mod lives;
mod path;
mod rebuild;
mod wishes;

pub use connect::{Connected, Told, connect};
pub use lives::{HotSide, Lives, LivesParts};
pub use wishes::{SiloDeed, SiloRefused, SiloWishes};

use crate::arbiter::deadlines::Timebase;
use crate::arbiter::errand::ArbiterDesk;
use crate::arbiter::page::{Limits, PageTable, Silo as Owner};
use crate::board::Board;
use crate::board::layout::ANSWER_READERS_MAX;
use crate::clock::Clock;
use crate::code::Model;
use crate::decode::carries::Carries;
use crate::decode::joint::{JointCells, Joints};
use crate::decode::state::StreamStates;
use crate::decode::steward::{Link, Post};
use crate::decode::{MatcherModel, ReadyError};
use crate::device::Recovery;
use crate::device::cuda::{Context, DeviceFacts};
use crate::dispatch::{Answer, Harvester, HarvesterParts, JointCheck, JointTally, Pipe};
use crate::fault::{Injections, Injector};
use crate::feed::crossing::Crossing;
use crate::feed::requests::{MoveRequests, home};
use crate::feed::source::Source;
use crate::feed::turns::Turns;
use crate::feed::{Cadence, Feed, Outside, Share};
use crate::graph::{CompileError, Event};
use crate::hot::memory::Arena;
use crate::hot::{Deed, Doomed, Init, Role, RoleError, RoleSpec, Settings};
use crate::predecode::{self, Local, Passthrough, Tables};
use crate::profile::{Faults, Predecoder, Profile, RoleFault, RoleKind, TaskTrace, WindowRounds};
use crate::units::Nanos;
use path::{ArbiterParts, PathParts, job_bank, path};
use pinwheel_edge::ring::broadcast::{self, Reader, Writer};
use pinwheel_edge::slot::health::HealthWord;
use pinwheel_edge::slot::table::{Geometry, table};
use pinwheel_edge::slot::workers::WorkerBank;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// A model made ready for every role that needs it.
#[derive(Clone)]
pub struct Decoding {
    /// The model.
    pub model: Arc<Model>,
    matching: MatcherModel,
    local: Option<Local>,
}

impl Decoding {
    /// Makes `model` ready for matching, as a whole or by windows, and for `predecoder`.
    ///
    /// # Errors
    /// If the model is not a matching problem, or cannot be decoded by these windows.
    pub fn new(
        model: Arc<Model>,
        predecoder: Predecoder,
        window: Option<WindowRounds>,
    ) -> Result<Decoding, ReadyError> {
        let matching = match window {
            None => MatcherModel::new(&model)?,
            Some(size) => MatcherModel::windowed_predecoding(&model, size, predecoder)?,
        };
        let local = match predecoder {
            Predecoder::None => None,
            Predecoder::Local => Some(Local::new(&model)?),
        };
        Ok(Decoding { model, matching, local })
    }

    /// A predecoder of one thread's own.
    #[must_use]
    pub fn predecoder(&self) -> Box<dyn predecode::Predecoder> {
        match &self.local {
            Some(local) => Box::new(local.clone()),
            None => Box::new(Passthrough),
        }
    }

    /// The predecoder's tables, for a device that has its own program for the same rule.
    #[must_use]
    pub fn tables(&self) -> Tables {
        self.local.as_ref().map_or_else(Tables::empty, |local| local.tables(self.model.observable_words()))
    }

    /// Whether a shot is decoded by more windows than one.
    #[must_use]
    pub fn has_windows(&self) -> bool {
        self.matching.windows().is_some_and(|windows| windows.plan().count() > 1)
    }

    /// Whether something is done to a syndrome before it is matched.
    #[must_use]
    pub fn predecodes(&self) -> bool {
        self.local.is_some()
    }

    /// The matcher's name.
    #[must_use]
    pub fn matcher_name(&self) -> &'static str {
        self.matching.name()
    }
}

/// What all silos of an engine share.
#[derive(Clone)]
pub struct Common {
    /// The board.
    pub board: Arc<Board>,
    /// Live limits and rate.
    pub settings: Arc<Settings>,
    /// The engine's clock.
    pub clock: Clock,
    /// The model made ready.
    pub decoding: Decoding,
    /// Moves of streams that are asked for.
    pub moves: Arc<MoveRequests>,
    /// What is known of streams that are read jointly, if there are any.
    pub joints: Option<Arc<JointTally>>,
}

/// A wired silo.
pub struct Silo {
    /// Its shared words.
    pub pipe: Pipe,
    /// Its device workers' words.
    pub workers: Arc<WorkerBank>,
    /// What is known of each of its streams.
    pub states: Arc<StreamStates>,
    /// Its roles, to be built on their threads.
    pub specs: Vec<RoleSpec>,
    /// Brings its device back, on a cold thread.
    pub recovery: Recovery,
    /// Its GPU, to be opened again.
    gpu: Option<(DeviceFacts, Vec<u32>)>,
    /// Its answers: an end for each who wants them, each of which sees them all.
    pub answers: Vec<Reader<Answer>>,
    /// The memory of all of these, if they were wired in an arena.
    pub arena: Arena,
    /// Times of tasks, of one decode worker each, when its thread has ended; nothing unless the profile asks for them.
    pub task_times: Receiver<Vec<Event>>,
    /// The other end of it, for paths that are built anew.
    times: Option<Sender<Vec<Event>>>,
    /// The memory of a path that was built anew.
    pub path_arena: Arena,
}

/// Whether answers go further than the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// Counted only.
    Counted,
    /// Also passed on through a ring, whose slowest reader holds the silo up.
    PassedOn {
        /// Who wants them: at most [`ANSWER_READERS_MAX`].
        readers: usize,
    },
}

/// Room in the answer ring, beyond one per slot.
const ANSWERS_SLACK: usize = 1024;

/// A GPU for one silo.
pub struct Gpu {
    /// Opened on a cold thread; `None`: its keeper opens one.
    pub context: Option<Context>,
    /// Of which device.
    pub facts: DeviceFacts,
    /// Where its keeper runs.
    pub cold_cores: Vec<u32>,
}

/// What a silo has of its own beside its roles.
#[derive(Default)]
pub struct Attached {
    /// Its GPU; `None`: the stand-in.
    pub gpu: Option<Gpu>,
    /// To the silos that it exchanges pages with.
    pub links: Vec<Link>,
    /// Its feed's ends between silos, if there are several.
    pub crossing: Option<Crossing>,
    /// Its arbiter's desk to the feeds, likewise.
    pub desk: Option<ArbiterDesk>,
    /// Its arbiter's way to who knows which silos live, likewise.
    pub post: Option<Post>,
}

/// Wires one silo.
///
/// # Errors
/// If its graph cannot be had.
///
/// # Panics
/// If more than [`ANSWER_READERS_MAX`] want its answers.
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
    let (jobs, ready) = job_bank(profile, decoders, geometry);
    let pipe = Pipe {
        silo: share.silo,
        streams: share.streams,
        table,
        jobs,
        ready,
        pages: pages(&share, profile.silos.settled()),
        pressure: Arc::default(),
        turns: Arc::new(Turns::new(share.streams, |stream| share.own.binary_search(&stream).is_ok())),
        health: Arc::new(HealthWord::new()),
        settings: Arc::clone(&common.settings),
        board: Arc::clone(&common.board),
    };
    let (sink, readers) = answer_ring(answers, profile.slots);
    let (silo, base) = (share.silo, timebase(common));
    let joints = joints_of(common, &share.own, share.streams);
    let check = common.joints.clone().map(|tally| JointCheck::new(tally, share.silo, share.streams));
    let draws = Draws { faults: &profile.faults, silo, life: 0 };
    let crossing = attached.crossing.map(|crossing| (crossing, Arc::clone(&pipe.turns)));
    let carries = Carries::of(&common.decoding.matching, pipe.jobs.len() as u32, profile.input.round_ns.is_some());
    let cadence = cadence(profile, carries.as_deref(), base);
    let feed = Feed::new(share, feed_end, source, model, outside(common, &pipe), draws.of(3), crossing).at(cadence);
    let states = Arc::new(StreamStates::new(Arc::clone(&pipe.pages), base, geometry.observable_words as usize));
    let arbiter = ArbiterParts { links: attached.links, desk: attached.desk, post: attached.post, heirs: Vec::new() };
    let (times, task_times) = times_asked(profile);
    let (end, gpu) = (dispatch_end, attached.gpu);
    let seat = gpu.as_ref().map(|gpu| (gpu.facts.clone(), gpu.cold_cores.clone()));
    let parts = PathParts { pipe: &pipe, states: &states, end, arbiter, joints, gpu, draws, times: times.clone() };
    let path = path(profile, decoders, parts, carries, common)?;
    let harvester = Harvester::new(HarvesterParts { pipe: pipe.clone(), end: harvest_end, sink, joints: check });
    // In the order of the path: the rehearsal draws by it.
    let mut specs = vec![spec(RoleKind::Feed, silo, 0, move |_| Ok(Box::new(feed)))];
    let mut of_path = path.specs;
    let decode = of_path.split_off(of_path.len() - decoders as usize);
    specs.extend(of_path);
    specs.push(spec(RoleKind::Harvest, silo, 0, move |_| Ok(Box::new(harvester))));
    specs.extend(decode);
    let specs = doomed(specs, profile, silo);
    let (workers, recovery) = (path.workers, path.recovery);
    let [arena, path_arena] = [Arena::none(), Arena::none()];
    Ok(Silo {
        pipe,
        workers,
        states,
        specs,
        recovery,
        gpu: seat,
        answers: readers,
        arena,
        path_arena,
        task_times,
        times,
    })
}

fn geometry(slots: u32, model: &Model) -> Geometry {
    let (detector_words, observable_words) = (model.detector_words() as u32, model.observable_words() as u32);
    Geometry { slots, detector_words, observable_words }
}

/// Where decode workers leave the times of their tasks, if somebody asks for them.
fn times_asked(profile: &Profile) -> (Option<Sender<Vec<Event>>>, Receiver<Vec<Event>>) {
    let (sender, times) = channel();
    ((profile.graph.trace != TaskTrace::Off).then_some(sender), times)
}

fn timebase(common: &Common) -> Timebase {
    Timebase { rate: common.clock.rate(), start: common.clock.start() }
}

fn outside(common: &Common, pipe: &Pipe) -> Outside {
    let (settings, board) = (Arc::clone(&common.settings), Arc::clone(&common.board));
    Outside { settings, board, pressure: Arc::clone(&pipe.pressure), rate: common.clock.rate() }
}

/// How the rounds of a shot come, where they come one by one.
fn cadence(profile: &Profile, carries: Option<&Carries>, base: Timebase) -> Option<Cadence> {
    let (carries, period) = carries.zip(profile.input.round_ns)?;
    Some(Cadence { words_after: carries.words_after_rounds(), period: base.rate.ticks(Nanos(u64::from(period))) })
}

fn recovery(profile: &Profile, pipe: &Pipe) -> Recovery {
    let wait = Nanos::from_millis(u64::from(profile.faults.recover_after_ms));
    Recovery::new(Arc::clone(&pipe.health), wait)
}

/// The page words of a silo: a page for each stream of the engine, its own at rest, the others those of their silos.
fn pages(share: &Share, silos: u32) -> Arc<PageTable> {
    let me = Owner::new(share.silo as u8);
    let owner = |stream: u32| if share.own.contains(&stream) { me } else { Owner::new(home(stream, silos) as u8) };
    Arc::new(PageTable::new(me, share.streams, Limits::SEED, owner))
}

/// The ring of answers, with an end for each who wants them.
fn answer_ring(answers: Answers, slots: u32) -> (Option<Writer<Answer>>, Vec<Reader<Answer>>) {
    let Answers::PassedOn { readers } = answers else { return (None, Vec::new()) };
    assert!(readers <= ANSWER_READERS_MAX, "{readers} readers of answers, not 1..={ANSWER_READERS_MAX}");
    let (sink, readers) = broadcast::channel(slots as usize + ANSWERS_SLACK, readers);
    (Some(sink), readers)
}

/// What a run's joint readouts are checked by, if there are any.
#[must_use]
pub fn tally(profile: &Profile, model: &Model) -> Option<Arc<JointTally>> {
    let of = (profile.input.streams, profile.silos.settled(), profile.slots);
    let words = geometry(profile.slots, model).observable_words as usize;
    profile.input.joint_every.map(|every| Arc::new(JointTally::new(every, of, words)))
}

/// A path's joint readouts, of which `own` are there to begin with, and where they are written to.
fn joints_of(common: &Common, own: &[u32], streams: u32) -> (Option<Joints>, Option<Arc<JointCells>>) {
    let Some(tally) = &common.joints else { return (None, None) };
    let cells = Arc::new(JointCells::new(streams, tally.words()));
    (Some(Joints::new(Arc::clone(tally), own, streams, Arc::clone(&cells))), Some(cells))
}

/// Draws of one silo's roles, each of its own.
struct Draws<'a> {
    faults: &'a Faults,
    silo: usize,
    /// Times that the silo came back.
    life: u64,
}

impl Draws<'_> {
    fn of(&self, role: u64) -> Injector {
        let place = self.life << 32 | role << 8 | self.silo as u64;
        Injector::new(injections(self.faults), self.faults.seed, place)
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

/// With the roles in it that the profile dooms.
fn doomed(mut specs: Vec<RoleSpec>, profile: &Profile, silo: usize) -> Vec<RoleSpec> {
    for (fault, deed) in [(profile.faults.role_panic, Deed::Panic), (profile.faults.role_allocation, Deed::Allocate)] {
        if let Some(fault) = fault.filter(|_| silo == 0) {
            specs = specs.into_iter().map(|spec| doom(spec, fault, deed)).collect();
        }
    }
    specs
}

/// Puts a doomed role in the place of the one that the profile names.
fn doom(spec: RoleSpec, fault: RoleFault, deed: Deed) -> RoleSpec {
    if spec.kind != fault.role || spec.index != 0 {
        return spec;
    }
    let build = spec.build;
    let doomed = move |init: &mut Init<'_>| -> Result<Box<dyn Role>, RoleError> {
        Ok(Box::new(Doomed::new(build(init)?, fault.after_items, deed)))
    };
    RoleSpec { build: Box::new(doomed), ..spec }
}

fn injections(faults: &Faults) -> Injections {
    Injections {
        not_started: faults.not_started,
        unknown: faults.unknown,
        never_ready: faults.never_ready,
        late_ready: faults.late_ready,
        inside_launch: faults.inside_launch,
        lose_device_every: faults.lose_device_every.unwrap_or(0),
        decoder_panic: faults.decoder_panic,
        bad_address: faults.bad_address,
    }
}
