//! One silo with a device that completes inside the launch and a decoder that answers at once.
//!
//! Everything else is the engine's: feed, dispatcher, poller, harvester, slots, jobs, board. Device
//! and decoder cost next to nothing, so the path itself is measured. A [`Setup`] may ask for the
//! engine's decode workers instead of the one that answers at once.

use super::input::{Input, parity_of};
use super::measure::CLOCK;
use pinwheel_edge::ring::broadcast::Writer;
use pinwheel_edge::slot::health::HealthWord;
use pinwheel_edge::slot::jobs::{FreeJobs, Job, JobBank};
use pinwheel_edge::slot::table::{Geometry, SlotTable, table};
use pinwheel_edge::slot::workers::{Mail, WorkerBank, WorkerEnds, bank};
use pinwheel_edge::sync::read_words;
use pinwheel_engine::arbiter::deadlines::Timebase;
use pinwheel_engine::arbiter::page::{Limits, PageTable, Silo};
use pinwheel_engine::board::{self, Board, Place, Shape};
use pinwheel_engine::code::Model;
use pinwheel_engine::commit::arbiter_driver::ArbiterDriver;
use pinwheel_engine::commit::orchestrator::{Orchestrator, OrchestratorParts};
use pinwheel_engine::commit::state::StreamStates;
use pinwheel_engine::decode::MatcherModel;
use pinwheel_engine::decode::changes::DecoderChanges;
use pinwheel_engine::decode::prepared::Prepared;
use pinwheel_engine::decode::worker::{Decoder, DecoderParts};
use pinwheel_engine::device::{Launch, Launched, NoDevice};
use pinwheel_engine::dispatch::sampled::answer_samples;
use pinwheel_engine::dispatch::{Dispatcher, Harvester, HarvesterParts, Poller};
use pinwheel_engine::fault::Injector;
use pinwheel_engine::feed::source::Source;
use pinwheel_engine::feed::{Feed, FeedContext, Share};
use pinwheel_engine::graph::Config;
use pinwheel_engine::hot::{BUDGET_ITEMS, Frame, Init, Role, RoleSpec, Settings, Work};
use pinwheel_engine::pipe::lanes::{DecodeLanes, LINE_WORDS, ResultLine, WorkerLane, fits_line};
use pinwheel_engine::pipe::pool::Pool;
use pinwheel_engine::pipe::{Answer, AnsweredBy, Pipe, ToGraph, Watermarks};
use pinwheel_engine::predecode::Passthrough;
use pinwheel_engine::profile::{self, Faults, FreeWorker, Profile, ShotOrder};
use pinwheel_engine::roles::RoleKind;
use std::sync::Arc;

/// Number of streams, as in the default profile.
pub const STREAMS: u32 = 4;
const SLOTS: u32 = 1024;

/// Streams that a task graph tells apart; whole shots are not its tasks.
const GRAPH_STREAMS_MAX: u32 = 4_096;

/// Copies the shot into its job, with no observable flipped, and completes before the launch returns.
struct NullDevice {
    table: Arc<SlotTable>,
    jobs: Arc<JobBank>,
    bank: Arc<WorkerBank>,
}

impl Launch for NullDevice {
    fn launch(&mut self, worker: usize, mail: Mail, _frame: &Frame<'_>) -> Launched {
        let job = Job::from_number(mail.job);
        let payload = self.table.payload_at(mail.address).expect("dispatch validated it");
        for (to, from) in self.jobs.detectors(&job).iter().zip(payload) {
            to.store(from.load());
        }
        self.jobs.observables(&job).iter().for_each(|flips| flips.store(0));
        self.bank.complete(worker, mail.generation);
        Launched::Started
    }
}

/// The only silo.
const OWNER: Silo = Silo::new(0);

/// Results that are the parity of the syndrome: a decode worker with a nearly free decode.
struct NullDecoder {
    pipe: Pipe,
    lane: WorkerLane,
    syndrome: Vec<u64>,
    fits_line: bool,
}

impl Role for NullDecoder {
    fn kind(&self) -> RoleKind {
        RoleKind::Decode
    }

    fn work(&mut self, frame: &mut Frame<'_>) -> Work {
        let (mut items, mut began) = (0, None);
        while items < BUDGET_ITEMS
            && self.lane.results.room() > 0
            && let Some(shot) = self.lane.shots.pop()
        {
            let since = *began.get_or_insert_with(|| frame.ticks());
            let words = self.syndrome.len();
            if self.fits_line {
                self.syndrome.copy_from_slice(&shot.words[..words]);
            } else {
                read_words(self.pipe.jobs.detectors(&Job::from_number(shot.job)), &mut self.syndrome);
            }
            let mut observables = [0; LINE_WORDS];
            observables[0] = parity_of(&self.syndrome);
            let ended = frame.ticks();
            let result = ResultLine::new(shot.job, Ok(AnsweredBy::default()), (since, ended), observables);
            assert!(self.lane.results.push(result).is_ok(), "the room was checked");
            began = Some(ended);
            items += 1;
        }
        Work(items)
    }

    fn is_drained(&self) -> bool {
        true
    }
}

/// The size of a silo, and its decode workers.
pub struct Setup {
    /// Workers of the device; 0: there is none.
    pub workers: u32,
    pub slots: u32,
    pub streams: u32,
    /// Decode workers.
    pub decoders: u32,
    /// Model of the engine's decode workers; `None`: the answer is the parity of the syndrome.
    pub matching: Option<MatcherModel>,
}

impl Setup {
    /// As in the default profile, with one decode worker that answers at once.
    pub fn of(workers: u32) -> Setup {
        Setup { workers, slots: SLOTS, streams: STREAMS, decoders: 1, matching: None }
    }

    /// A board for the silo.
    pub fn board(&self) -> Arc<Board> {
        let Setup { workers, slots, streams, decoders, .. } = *self;
        let shape = Shape { threads: 2, silos: 1, slots, workers, decoders, streams };
        Arc::new(Board::create(shape, Place::Private).unwrap())
    }
}

/// A silo with all its roles.
pub struct NullSilo {
    pub board: Arc<Board>,
    /// Its limits and its rate.
    pub settings: Arc<Settings>,
    /// The specs of its roles in path order: feed, dispatch, poll, graph, decode workers, harvest.
    pub specs: Vec<RoleSpec>,
}

impl NullSilo {
    /// Builds the roles on the calling thread.
    pub fn build(&mut self) -> Vec<Box<dyn Role>> {
        let mut init = Init { clock: &CLOCK, board: &self.board };
        self.specs.drain(..).map(|spec| (spec.build)(&mut init).expect("null roles build")).collect()
    }
}

fn spec(kind: RoleKind, role: impl Role + Send + 'static) -> RoleSpec {
    RoleSpec { kind, silo: 0, index: 0, build: Box::new(move |_| Ok(Box::new(role))) }
}

/// Names of the roles of [`NullSilo`], in its order.
pub const ROLES: [&str; 6] = ["feed", "dispatch", "poll", "graph", "decode", "harvest"];

/// Connects a silo of `workers` workers to `input`'s shots, fed as fast as slots come free.
pub fn null_silo(input: &Input, workers: u32) -> NullSilo {
    silo_of(input, &Setup::of(workers))
}

/// As [`null_silo`], of any setup.
pub fn silo_of(input: &Input, setup: &Setup) -> NullSilo {
    let source = Source::Replay { shots: Arc::clone(&input.shots), observables: input.truth.clone() };
    wired(&input.model, setup, (setup.board(), source), None)
}

/// Connects a silo to any source; its answers also go to `sink`.
pub fn wired(
    model: &Arc<Model>,
    setup: &Setup,
    (board, source): (Arc<Board>, Source),
    sink: Option<Writer<Answer>>,
) -> NullSilo {
    let Setup { workers, slots, streams, decoders, .. } = *setup;
    let geometry = Geometry {
        slots,
        detector_words: model.detector_words() as u32,
        observable_words: model.observable_words() as u32,
    };
    let (feed_end, dispatch_end, harvest_end, table) = table(geometry);
    let WorkerEnds { dispatch: dispatch_workers, poll: poll_workers, release, words, .. } = bank(workers as usize);
    let count = (slots + workers + 1) as usize;
    let (detectors, observables) = (geometry.detector_words as usize, geometry.observable_words as usize);
    let jobs = Arc::new(JobBank::new(count, detectors, observables));
    let mut limits = Profile::load("lab", None).unwrap().0.limits;
    limits.shot_deadline_us = 10_000_000;
    limits.launch_deadline_us = 10_000_000;
    let settings = Arc::new(Settings::new(&limits));
    settings.set_rate_hz(None);
    let pipe = Pipe {
        silo: 0,
        streams,
        table: Arc::clone(&table),
        jobs: Arc::clone(&jobs),
        pages: Arc::new(PageTable::new(OWNER, streams, Limits::SEED, |_| OWNER)),
        pressure: Arc::default(),
        watermarks: Arc::new(Watermarks::new(streams, |_| true)),
        health: Arc::new(HealthWord::new()),
        settings: Arc::clone(&settings),
        deadlines: None,
        board: Arc::clone(&board),
    };
    let rate = CLOCK.rate();
    let injector = Injector::new(&Faults::default(), 0);
    let (outside_board, pressure) = (Arc::clone(&board), Arc::clone(&pipe.pressure));
    let context = FeedContext { settings: Arc::clone(&settings), board: outside_board, pressure, rate };
    let feed = Feed::new(Share::of(0, 1, streams, None), feed_end, source, model, context, injector, None);
    let (from_dispatch, dispatch_input) = ToGraph::channel(count, slots);
    let (from_poll, poll_input) = ToGraph::channel(count, slots);
    let (free, [polls_return, returns]) = FreeJobs::new(count);
    let graph = Profile::load("lab", None).unwrap().0.graph;
    let config = Config { streams: streams.min(GRAPH_STREAMS_MAX), ..Config::from(&graph) };
    let pool = Pool::new(config, decoders, count as u32, streams, None, &CLOCK).unwrap();
    let base = Timebase { rate, start: CLOCK.start() };
    let states = Arc::new(StreamStates::new(Arc::clone(&pipe.pages), base, observables));
    let (lanes, ends) = DecodeLanes::new(decoders, ShotOrder::Fifo, rate);
    let orchestrator = Orchestrator::new(OrchestratorParts {
        pipe: pipe.clone(),
        release,
        lanes,
        submitter: pool.submitter,
        regions: pool.regions,
        inputs: [dispatch_input, poll_input],
        returns,
        carries: None,
        arbiter: ArbiterDriver::new(Arc::clone(&states), base, Vec::new(), None),
        joints: None,
        moves: None,
        states: Arc::clone(&states),
        has_rescue: false,
    });
    let decoders = ends.into_iter().zip(pool.workers).enumerate().map(|(index, (lane, worker))| {
        let Some(matching) = setup.matching.clone() else {
            let (syndrome, fits_line) = (vec![0; detectors], fits_line(geometry));
            let decoder = NullDecoder { pipe: pipe.clone(), lane, syndrome, fits_line };
            return RoleSpec { index: index as u32, ..spec(RoleKind::Decode, decoder) };
        };
        let changes = DecoderChanges::new(model, Prepared::just(profile::Decoder::Matching, matching)).join(0, index);
        let parts = DecoderParts {
            pipe: pipe.clone(),
            index,
            lane,
            changes,
            predecoder: Box::new(Passthrough),
            injector: Injector::new(&Faults::default(), index as u64),
            states: Arc::clone(&states),
            carries: None,
            joints: None,
            times: None,
        };
        let build = Box::new(move |_: &mut Init<'_>| Ok(Box::new(Decoder::new(parts, worker)) as Box<dyn Role>));
        RoleSpec { kind: RoleKind::Decode, silo: 0, index: index as u32, build }
    });
    let decoders: Vec<RoleSpec> = decoders.collect();
    let dispatch = if workers == 0 {
        let dispatcher =
            Dispatcher::new(pipe.clone(), dispatch_end, dispatch_workers, NoDevice, free, from_dispatch, rate);
        spec(RoleKind::Dispatch, dispatcher)
    } else {
        let device = NullDevice { table, jobs, bank: words };
        let dispatcher =
            Dispatcher::new(pipe.clone(), dispatch_end, dispatch_workers, device, free, from_dispatch, rate);
        spec(RoleKind::Dispatch, dispatcher)
    };
    let poller = Poller::new(pipe.clone(), poll_workers, polls_return, from_poll, FreeWorker::AfterCopy, rate);
    let mut specs =
        vec![spec(RoleKind::Feed, feed), dispatch, spec(RoleKind::Poll, poller), spec(RoleKind::Graph, orchestrator)];
    specs.extend(decoders);
    let (samples, _) = answer_samples(detectors, observables);
    let parts = HarvesterParts { pipe, end: harvest_end, sink, joints: None, samples };
    specs.push(spec(RoleKind::Harvest, Harvester::new(parts)));
    NullSilo { board, settings, specs }
}

/// Panics unless the silo answered each of `shots` shots once and correctly.
pub fn check(board: &Board, shots: u64) {
    assert_eq!(checked(board), shots, "answered");
}

/// The number of shots that the silo has answered; panics unless each was answered once and
/// correctly.
pub fn checked(board: &Board) -> u64 {
    let block = board.harvest(0);
    let shots = board::get(&block.answered);
    let found = [&block.judged, &block.errored, &block.duplicated, &block.logical_errors];
    assert_eq!(found.map(board::get), [shots, 0, 0, 0], "judged, errors, duplicates, wrong, of {shots}");
    shots
}
