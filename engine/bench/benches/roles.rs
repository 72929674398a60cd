//! One silo with a device that completes inside the launch and a decoder that answers at once.
//!
//! Everything else is what the engine runs: feed, dispatcher, poller, harvester, slots, jobs, board. What is left when
//! device and decoder cost next to nothing is the path itself.

use super::input::{Input, parity_of};
use super::measure::CLOCK;
use pinwheel_edge::queue::fifo::Fifo;
use pinwheel_edge::ring::broadcast::Writer;
use pinwheel_edge::slot::health::HealthWord;
use pinwheel_edge::slot::jobs::{Job, JobBank};
use pinwheel_edge::slot::table::{AnswerTimes, Geometry, SlotTable, table};
use pinwheel_edge::slot::workers::{Mail, WorkerBank, bank};
use pinwheel_edge::sync::read_words;
use pinwheel_engine::arbiter::deadlines::Timebase;
use pinwheel_engine::arbiter::page::{Limits, PageTable, Silo};
use pinwheel_engine::board::{self, Board, Place, Shape};
use pinwheel_engine::code::Model;
use pinwheel_engine::decode::orchestrator::{Orchestrator, OrchestratorParts};
use pinwheel_engine::decode::pool::{Kernel, Pool, kernel_of};
use pinwheel_engine::decode::state::StreamStates;
use pinwheel_engine::decode::steward::Steward;
use pinwheel_engine::device::{Launch, Launched};
use pinwheel_engine::dispatch::{Dispatcher, Harvester, HarvesterParts, Pipe, Poller, Tombstones};
use pinwheel_engine::fault::{Injections, Injector};
use pinwheel_engine::feed::source::Source;
use pinwheel_engine::feed::turns::Turns;
use pinwheel_engine::feed::{Answer, Feed, Outside, Share};
use pinwheel_engine::graph::{Brought, Config, Ended, Work as GraphTask, Worker};
use pinwheel_engine::hot::{BUDGET_ITEMS, Frame, Init, Role, RoleError, RoleSpec, Settings, Work};
use pinwheel_engine::profile::{FreeWorker, Profile, RoleKind};
use pinwheel_engine::units::Ticks;
use std::ops::ControlFlow;
use std::sync::Arc;

/// As in the default profile.
pub const STREAMS: u32 = 4;
const SLOTS: u32 = 1024;

/// Copies the shot into its job and is done before the launch returns.
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

/// Answers with the parity of the syndrome: a worker of the pool's graph with bodies that cost next to nothing.
struct NullDecoder {
    bench: NullBench,
    worker: Worker<Brought>,
}

struct NullBench {
    pipe: Pipe,
    states: Arc<StreamStates>,
    syndrome: Vec<u64>,
}

impl NullBench {
    fn run(&mut self, work: &GraphTask, now: Ticks) {
        let jobs = &self.pipe.jobs;
        let job = Job::from_number(work.task.args[0] as u32);
        match kernel_of(&work.task) {
            Kernel::Whole | Kernel::Commit => {
                let origin = jobs.origin(&job);
                let (stream, sequence) = jobs.shot(&job);
                read_words(jobs.detectors(&job), &mut self.syndrome);
                let claim = self.pipe.table.claim(origin.ticket).expect("nobody else answers");
                let times =
                    AnswerTimes { arrived: Ticks(0), completed: origin.completed, decoding: now, answered: now };
                let answer = [parity_of(&self.syndrome)];
                let state = self.states.begin_write(stream).expect("its page is here");
                claim.answer_after(&answer, times, || state.commit(sequence, &answer, now));
                jobs.give(job);
            }
            Kernel::Decode => {}
            Kernel::Bury | Kernel::Stray | Kernel::Window | Kernel::Joint => {
                unreachable!("every shot comes once, without an error")
            }
        }
    }
}

impl Role for NullDecoder {
    fn kind(&self) -> RoleKind {
        RoleKind::Decode
    }

    fn warm_up(&mut self, _frame: &mut Frame<'_>) -> Result<(), RoleError> {
        Ok(())
    }

    fn work(&mut self, frame: &mut Frame<'_>) -> Work {
        let bench = &mut self.bench;
        Work(self.worker.work_by(BUDGET_ITEMS, |work| {
            bench.run(work, frame.ticks());
            ControlFlow::Continue(Ended::Done)
        }))
    }

    fn is_drained(&self) -> bool {
        self.worker.is_idle()
    }
}

/// A silo ready to run.
pub struct NullSilo {
    /// Its board.
    pub board: Arc<Board>,
    /// Its roles in path order: feed, dispatch, poll, graph, decode, harvest.
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

/// The roles of [`NullSilo`], in its order.
pub const ROLES: [&str; 6] = ["feed", "dispatch", "poll", "graph", "decode", "harvest"];

/// Wires a silo of `workers` workers over `input`'s shots, as fast as slots come free.
pub fn null_silo(input: &Input, workers: u32) -> NullSilo {
    let source = Source::Replay { shots: Arc::clone(&input.shots), observables: input.truth.clone() };
    wired(&input.model, workers, (null_board(workers), source), None)
}

/// A board for a null silo.
pub fn null_board(workers: u32) -> Arc<Board> {
    let shape = Shape { threads: 2, silos: 1, slots: SLOTS, workers, decoders: 1, streams: STREAMS };
    Arc::new(Board::create(shape, Place::Private).unwrap())
}

/// Wires a silo over any source; its answers go to `sink` too.
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
    let (dispatch_workers, _, poll_workers, words) = bank(workers as usize);
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
        ready: Arc::new(Fifo::new(count)),
        pages: Arc::new(PageTable::new(OWNER, STREAMS, Limits::SEED, |_| OWNER)),
        pressure: Arc::default(),
        turns: Arc::new(Turns::new(STREAMS, |_| true)),
        health: Arc::new(HealthWord::new()),
        settings: Arc::clone(&settings),
        board: Arc::clone(&board),
    };
    let rate = CLOCK.rate();
    let injector = Injector::new(Injections::default(), 0, 0);
    let (outside_board, pressure) = (Arc::clone(&board), Arc::clone(&pipe.pressure));
    let outside = Outside { settings, board: outside_board, pressure, rate };
    let feed = Feed::new(Share::of(0, 1, STREAMS, None), feed_end, source, model, outside, injector, None);
    let (refused, refused_end) = Tombstones::channel(SLOTS);
    let (expired, expired_end) = Tombstones::channel(SLOTS);
    let graph = Profile::load("lab", None).unwrap().0.graph;
    let config = Config { streams: STREAMS, ..Config::from(&graph) };
    let mut pool = Pool::new(config, 1, count as u32, STREAMS, None, &CLOCK).unwrap();
    let base = Timebase { rate, start: CLOCK.start() };
    let states = Arc::new(StreamStates::new(Arc::clone(&pipe.pages), base, observables));
    let orchestrator = Orchestrator::new(OrchestratorParts {
        pipe: pipe.clone(),
        bank: Arc::clone(&words),
        submitter: pool.submitter,
        regions: pool.regions,
        tombstones: vec![refused_end, expired_end],
        decoders: 1,
        carries: None,
        steward: Steward::new(Arc::clone(&states), base, Vec::new(), None),
        joints: None,
        moves: None,
        states: Arc::clone(&states),
    });
    let bench = NullBench { pipe: pipe.clone(), states, syndrome: vec![0; detectors] };
    let decoder = NullDecoder { bench, worker: pool.workers.remove(0) };
    let device = NullDevice { table, jobs, bank: words };
    let specs = vec![
        spec(RoleKind::Feed, feed),
        spec(RoleKind::Dispatch, Dispatcher::new(pipe.clone(), dispatch_end, dispatch_workers, device, refused, rate)),
        spec(RoleKind::Poll, Poller::new(pipe.clone(), poll_workers, expired, FreeWorker::AfterCopy, rate)),
        spec(RoleKind::Graph, orchestrator),
        spec(RoleKind::Decode, decoder),
        spec(RoleKind::Harvest, Harvester::new(HarvesterParts { pipe, end: harvest_end, sink, joints: None })),
    ];
    NullSilo { board, specs }
}

/// Stops the run if the silo did not answer each of `shots` shots once, and rightly.
pub fn check(board: &Board, shots: u64) {
    let block = board.harvest(0);
    let found = [&block.answered, &block.judged, &block.errored, &block.duplicated, &block.logical_errors];
    assert_eq!(found.map(board::get), [shots, shots, 0, 0, 0], "answered, judged, errors, duplicates, wrong");
}
