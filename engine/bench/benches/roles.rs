//! One silo with a device that completes inside the launch and a decoder that answers at once.
//!
//! Everything else is the engine's: feed, dispatcher, poller, harvester, slots, jobs, board. Device
//! and decoder cost next to nothing, so the path itself is measured.

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
use pinwheel_engine::device::{Launch, Launched};
use pinwheel_engine::dispatch::{Dispatcher, Harvester, HarvesterParts, Poller};
use pinwheel_engine::fault::{Injections, Injector};
use pinwheel_engine::feed::source::Source;
use pinwheel_engine::feed::{Feed, FeedContext, Share};
use pinwheel_engine::graph::Config;
use pinwheel_engine::hot::{BUDGET_ITEMS, Frame, Init, Role, RoleError, RoleSpec, Settings, Work};
use pinwheel_engine::pipe::lanes::{DecodeLanes, LINE_WORDS, ResultLine, WorkerLane, fits_line};
use pinwheel_engine::pipe::pool::Pool;
use pinwheel_engine::pipe::{Answer, Pipe, ToGraph, Watermarks};
use pinwheel_engine::profile::{FreeWorker, Profile};
use pinwheel_engine::roles::RoleKind;
use std::sync::Arc;

/// Number of streams, as in the default profile.
pub const STREAMS: u32 = 4;
const SLOTS: u32 = 1024;

/// Copies the shot into its job and completes before the launch returns.
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

    fn warm_up(&mut self, _frame: &mut Frame<'_>) -> Result<(), RoleError> {
        Ok(())
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
            let result = ResultLine { job: shot.job, error: None, began: since, ended, observables };
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

/// A silo with all its roles.
pub struct NullSilo {
    /// Its board.
    pub board: Arc<Board>,
    /// The specs of its roles in path order: feed, dispatch, poll, graph, decode, harvest.
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
    let source = Source::Replay { shots: Arc::clone(&input.shots), observables: input.truth.clone() };
    wired(&input.model, workers, (null_board(workers), source), None)
}

/// A board for a null silo.
pub fn null_board(workers: u32) -> Arc<Board> {
    let shape = Shape { threads: 2, silos: 1, slots: SLOTS, workers, decoders: 1, streams: STREAMS };
    Arc::new(Board::create(shape, Place::Private).unwrap())
}

/// Connects a silo to any source; its answers also go to `sink`.
pub fn wired(
    model: &Model,
    workers: u32,
    (board, source): (Arc<Board>, Source),
    sink: Option<Writer<Answer>>,
) -> NullSilo {
    let geometry = Geometry {
        slots: SLOTS,
        detector_words: model.detector_words() as u32,
        observable_words: model.observable_words() as u32,
    };
    let (feed_end, dispatch_end, harvest_end, table) = table(geometry);
    let WorkerEnds { dispatch: dispatch_workers, poll: poll_workers, release, words, .. } = bank(workers as usize);
    let count = (SLOTS + workers + 1) as usize;
    let (detectors, observables) = (geometry.detector_words as usize, geometry.observable_words as usize);
    let jobs = Arc::new(JobBank::new(count, detectors, observables));
    let mut limits = Profile::load("lab", None).unwrap().0.limits;
    limits.shot_deadline_us = 10_000_000;
    limits.launch_deadline_us = 10_000_000;
    let settings = Arc::new(Settings::new(&limits));
    settings.set_rate_hz(None);
    let pipe = Pipe {
        silo: 0,
        streams: STREAMS,
        table: Arc::clone(&table),
        jobs: Arc::clone(&jobs),
        pages: Arc::new(PageTable::new(OWNER, STREAMS, Limits::SEED, |_| OWNER)),
        pressure: Arc::default(),
        watermarks: Arc::new(Watermarks::new(STREAMS, |_| true)),
        health: Arc::new(HealthWord::new()),
        settings: Arc::clone(&settings),
        board: Arc::clone(&board),
    };
    let rate = CLOCK.rate();
    let injector = Injector::new(Injections::default(), 0, 0);
    let (outside_board, pressure) = (Arc::clone(&board), Arc::clone(&pipe.pressure));
    let context = FeedContext { settings, board: outside_board, pressure, rate };
    let feed = Feed::new(Share::of(0, 1, STREAMS, None), feed_end, source, model, context, injector, None);
    let (from_dispatch, dispatch_input) = ToGraph::channel(count, SLOTS);
    let (from_poll, poll_input) = ToGraph::channel(count, SLOTS);
    let (free, [polls_return, returns]) = FreeJobs::new(count);
    let graph = Profile::load("lab", None).unwrap().0.graph;
    let config = Config { streams: STREAMS, ..Config::from(&graph) };
    let pool = Pool::new(config, 1, count as u32, STREAMS, None, &CLOCK).unwrap();
    let base = Timebase { rate, start: CLOCK.start() };
    let states = Arc::new(StreamStates::new(Arc::clone(&pipe.pages), base, observables));
    let (lanes, mut ends) = DecodeLanes::new(1, rate);
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
    });
    let (lane, fits_line) = (ends.remove(0), fits_line(geometry));
    let decoder = NullDecoder { pipe: pipe.clone(), lane, syndrome: vec![0; detectors], fits_line };
    let device = NullDevice { table, jobs, bank: words };
    let (workers, to_graph) = (dispatch_workers, from_dispatch);
    let dispatcher = Dispatcher::new(pipe.clone(), dispatch_end, workers, device, free, to_graph, rate);
    let poller = Poller::new(pipe.clone(), poll_workers, polls_return, from_poll, FreeWorker::AfterCopy, rate);
    let specs = vec![
        spec(RoleKind::Feed, feed),
        spec(RoleKind::Dispatch, dispatcher),
        spec(RoleKind::Poll, poller),
        spec(RoleKind::Graph, orchestrator),
        spec(RoleKind::Decode, decoder),
        spec(RoleKind::Harvest, Harvester::new(HarvesterParts { pipe, end: harvest_end, sink, joints: None })),
    ];
    NullSilo { board, specs }
}

/// Panics unless the silo answered each of `shots` shots once and correctly.
pub fn check(board: &Board, shots: u64) {
    let block = board.harvest(0);
    let found = [&block.answered, &block.judged, &block.errored, &block.duplicated, &block.logical_errors];
    assert_eq!(found.map(board::get), [shots, shots, 0, 0, 0], "answered, judged, errors, duplicates, wrong");
}
