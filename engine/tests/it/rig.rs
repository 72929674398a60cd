//! What every test here starts from: the lock, a quick profile, inputs, waiting with a limit.

use pinwheel_edge::slot::word::ErrorCode;
use pinwheel_engine::board::snapshot::{Counters, Snapshot};
use pinwheel_engine::code::{Format, Layout, Model, ShotSet, bundled_named};
use pinwheel_engine::engine::{Accepted, Actor, Command, Config, Engine, Input, Outcome, Refused};
use pinwheel_engine::profile::{Decoders, Device, Latency, Profile, Rate, SpinPolicy};
use pinwheel_engine::record::{AnswerSink, REORDER_SLACK, SinkConfig};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Longest wait for anything, on a machine as busy as may be.
pub(crate) const LIMIT: Duration = Duration::from_secs(300);

/// Tests that run engines at a time: each waits more than it computes, and each has boards and claims of its own.
const TESTS_MAX: usize = 2;

/// How many tests run engines, and whether somebody else may begin.
static TESTS: (Mutex<usize>, Condvar) = (Mutex::new(0), Condvar::new());

thread_local! {
    /// Where the engines of this thread's test have their boards.
    static BOARDS: RefCell<PathBuf> = RefCell::default();
}

/// The right to run engines, and the test's own directory.
pub(crate) struct Home {
    folder: TempDir,
    share: usize,
}

fn home(share: usize) -> Home {
    let (running, ended) = &TESTS;
    // A test that failed holds nothing that the next one needs.
    let running = running.lock().unwrap_or_else(PoisonError::into_inner);
    let has_no_room = |running: &mut usize| *running + share > TESTS_MAX;
    *ended.wait_while(running, has_no_room).unwrap_or_else(PoisonError::into_inner) += share;
    let home = Home { folder: tempfile::tempdir().unwrap(), share };
    BOARDS.set(home.boards());
    home
}

impl Drop for Home {
    fn drop(&mut self) {
        *TESTS.0.lock().unwrap_or_else(PoisonError::into_inner) -= self.share;
        TESTS.1.notify_all();
    }
}

/// For a test that runs engines beside another one's.
pub(crate) fn beside_another() -> Home {
    home(1)
}

/// For a test whose claim is about time or about the whole process: no other test runs an engine.
pub(crate) fn alone() -> Home {
    home(TESTS_MAX)
}

/// The directory of the boards of this thread's test; no other thread has one.
pub(crate) fn boards() -> PathBuf {
    let boards = BOARDS.with_borrow(PathBuf::clone);
    assert!(boards.is_absolute(), "the test has a home on this thread");
    boards
}

impl Home {
    /// The directory of this test's boards; the engine makes it.
    pub(crate) fn boards(&self) -> PathBuf {
        self.folder.path().join("boards")
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Lab, made quick and gentle: spins as Shared does (see [`look_again`] for why not Lab), as fast
/// as slots come free, no latency, no deadline and no grace that a busy machine could miss.
pub(crate) fn profile() -> Profile {
    let (mut profile, _) = Profile::load("lab", None).unwrap();
    profile.spin = SpinPolicy::Shared;
    profile.slots = 64;
    profile.device = Device::Sim { latency: Latency::None };
    profile.decoders = Decoders::Count(2);
    profile.input.rate = Rate::Max;
    profile.limits.launch_deadline_us = 60_000_000;
    profile.limits.shot_deadline_us = 60_000_000;
    profile.placement.overflow.deadline_ms = 60_000;
    profile.limits.drain_grace_s = 60;
    profile
}

/// Shots drawn from the small surface code.
pub(crate) fn sampler() -> Input {
    Input::Sampler { model: Arc::new(bundled_named("surface_d3").unwrap()), name: "surface_d3".into(), seed: 11 }
}

/// A set in memory, without truth.
pub(crate) fn replay(model: &Arc<Model>, shots: &Arc<ShotSet>) -> Input {
    Input::Replay { model: Arc::clone(model), name: "shots.b8".into(), shots: Arc::clone(shots), observables: None }
}

/// `bytes` as shots of `detectors` detectors.
pub(crate) fn shots(bytes: &[u8], detectors: u32) -> Arc<ShotSet> {
    Arc::new(ShotSet::read(bytes, Format::B8, Layout::detectors(detectors)).unwrap())
}

pub(crate) fn config(profile: &Profile, input: Input, count: Option<u64>) -> Config {
    let errors = profile.validate();
    assert!(errors.is_empty(), "{errors:?}");
    Config {
        profile_name: "test".into(),
        profile: profile.clone(),
        label: "it".into(),
        input,
        count,
        duration: None,
        sink: None,
        events: None,
        run_dir: None,
        profiles: None,
        environment: None,
        notes: Vec::new(),
        drill_command: None,
        bridge: None,
        boards: boards(),
        takes_inputs: false,
    }
}

/// A sink of `predictions` and `answers`.
pub(crate) fn sink(
    profile: &Profile,
    observables: u32,
    predictions: Option<&Path>,
    answers: Option<&Path>,
) -> AnswerSink {
    let window_shots = (profile.slots * profile.silos.settled()) as usize + REORDER_SLACK;
    let (predictions, answers) = (predictions.map(Path::to_path_buf), answers.map(Path::to_path_buf));
    let error_name = |code| ErrorCode::from_number(code).unwrap().name();
    let format = Format::B8;
    AnswerSink::new(&SinkConfig { predictions, format, answers, observables, window_shots, error_name }).unwrap()
}

/// Runs it to its end.
pub(crate) fn run(config: Config) -> Outcome {
    end(Engine::start(config).unwrap())
}

/// Waits for the end, however it comes; fails if it does not.
pub(crate) fn end(engine: Engine) -> Outcome {
    let (sender, outcome) = channel();
    std::thread::spawn(move || {
        let _ = sender.send(engine.finish());
    });
    outcome.recv_timeout(LIMIT).expect("the engine ends")
}

/// Waits until the board shows it.
pub(crate) fn until(engine: &Engine, what: &str, mut shows: impl FnMut(&Snapshot) -> bool) -> Snapshot {
    let from = Instant::now();
    loop {
        let snapshot = engine.snapshot();
        if shows(&snapshot) {
            return snapshot;
        }
        assert!(from.elapsed() < LIMIT && !engine.is_finished(), "{what} never came: {:?}", snapshot.silos[0].counters);
        look_again();
    }
}

/// Has the engine execute `command` in the name of whoever runs the tests.
pub(crate) fn execute(engine: &Engine, command: Command) -> Result<Accepted, Refused> {
    engine.execute(command, &Actor::this_process(""))
}

/// Puts `profile` into force under `name`.
pub(crate) fn switch(engine: &Engine, name: &str, profile: &Profile) {
    execute(engine, Command::profile(name, profile, None).unwrap()).unwrap();
}

/// Moves streams to `to` in an operator's name, as the console does. A move that takes too long on
/// a busy machine is given up, so each is asked for again until it is made.
pub(crate) fn brought(engine: &Engine, streams: &[u32], to: u32) -> Snapshot {
    let mut due_ns = vec![0; streams.len()];
    until(engine, "the moves", |now| {
        let is_there = |stream: u32| now.streams[stream as usize].silo == to;
        let moves = now.silos.iter().filter_map(|silo| silo.moves.as_ref()).flat_map(|moves| &moves.open);
        let open: Vec<u32> = moves.map(|one| one.stream).collect();
        for (stream, due_ns) in streams.iter().zip(&mut due_ns) {
            if !is_there(*stream) && !open.contains(stream) && now.at_ns >= *due_ns {
                execute(engine, Command::Move { stream: *stream, to }).unwrap();
                *due_ns = now.at_ns + 500_000_000;
            }
        }
        streams.iter().all(|stream| is_there(*stream))
    })
}

/// Between two looks at the board. Not a yield: on a contended core of a recent Linux a thread that yields often is set
/// back for seconds.
pub(crate) fn look_again() {
    std::thread::park_timeout(Duration::from_micros(200));
}

/// A counter over all silos.
pub(crate) fn total(snapshot: &Snapshot, counter: impl Fn(&Counters) -> u64) -> u64 {
    snapshot.silos.iter().map(|silo| counter(&silo.counters)).sum()
}

/// How often `code` was answered, over all silos.
pub(crate) fn errors(snapshot: &Snapshot, code: ErrorCode) -> u64 {
    let of_silo = |errors: &[pinwheel_engine::board::snapshot::ErrorCount]| {
        errors.iter().filter(|error| error.code == code as u16).map(|error| error.count).sum::<u64>()
    };
    snapshot.silos.iter().map(|silo| of_silo(&silo.errors)).sum()
}

/// Everything submitted was answered once.
pub(crate) fn assert_nothing_lost(outcome: &Outcome) {
    let snapshot = &outcome.snapshot;
    assert_eq!(outcome.unanswered, [], "unanswered");
    assert_eq!(total(snapshot, |c| c.answered), total(snapshot, |c| c.submitted), "{:?}", snapshot.silos[0].counters);
    assert_eq!(total(snapshot, |c| c.dispatched), total(snapshot, |c| c.submitted), "dispatched");
    assert_eq!(total(snapshot, |c| c.duplicated), 0, "duplicated");
    assert_eq!(total(snapshot, |c| c.scheduled), total(snapshot, |c| c.submitted), "backlog after the end");
    assert_eq!(snapshot.streams.iter().map(|stream| stream.answered).sum::<u64>(), total(snapshot, |c| c.submitted));
}
