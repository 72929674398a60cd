//! The engine: silos and threads from a profile, from Init to Shutdown.
//!
//! Owns the handle of console and command line ([`Engine`]), and through it the control thread,
//! which owns everything that runs. `start` returns when every role is built; the control thread
//! then runs warm-up, Live, drain and the end. Bounds: Init and Warmup have deadlines, a drain has
//! the profile's grace, and threads that do not leave in time are not joined.
//!
//! ```text
//!  INIT ─ roles built ─▶ WARMUP ─ warm shots, rate measured ─▶ LIVE ─ count, duration, input, operator, fault ─▶
//!  DRAIN ─ all answered, or grace over and the rest answered with an error ─▶ SHUTDOWN ─ threads joined ─▶ outcome
//! ```
//!
//! Longer than 500 lines, because the methods of the handle and their errors are the library's API
//! and read as one list.

mod actor;
mod assemble;
mod blackbox;
mod cold;
pub mod command;
mod control;
mod core_claims;
mod cores;
mod yield_policy;
mod devices;
mod detections;
mod drift;
mod shadow;
mod drilling;
mod environment;
mod header;
mod inputs;
mod limits;
mod silo_threads;
mod slow_commands;
mod logger;
mod measured;
mod model_file;
mod neighbours;
mod orders;
mod placement_thread;
#[cfg(target_os = "linux")]
mod remote;
#[cfg(not(target_os = "linux"))]
#[path = "engine/unreachable.rs"]
mod remote;
mod reply;
mod steer;
mod wall;
mod watchdog;
pub mod wire;

use crate::board::Board;
use crate::board::snapshot::Snapshot;
use crate::clock::{Clock, CounterError};
use crate::code::shots::ShotSet;
use crate::code::{Measurements, Model};
use crate::decode::ReadyError;
use crate::decode::changes::KnownModel;
use crate::decode::run_models::RunModels;
use crate::device::cuda::OpenError;
use crate::feed::bridge::BridgeEnd;
use crate::graph::Event;
use crate::host::HostError;
use crate::hot::RoleError;
use crate::hot::drill_role::DrillCommand;
use crate::plan::{Plan, PlanError};
use crate::profile::{Profile, RangeError};
use crate::record::{AnswerSink, EventSink, RecentRecording, tape};
use command::Executor;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

pub use crate::arbiter::page::Authority;
pub use crate::feed::address::{Network, SourceAddress as LivePlace};
pub use crate::feed::requests::{MoveRefused, MoveRequest, MoveRequests};
pub use crate::hot::memory::{Allocator, calls_of, set_before_abort};
pub use crate::silo::{SiloCommand, SiloCommands, SiloRefused};
pub use actor::{Actor, BROWSER_VARIABLE};
pub use command::{Command, InputSpec, Refused};
pub use detections::{DETECTIONS, StreamCounts, StreamDetections, detection_files};
pub use devices::preview_plan;
pub use drilling::{DrillRefused, LiveDrill, prepared as prepared_for_drills};
pub use environment::{EnvironmentResult, ReportTarget};
pub use inputs::{InputWanted, check_input};
pub use model_file::DEM_BYTES_MAX;
pub use reply::{Accepted, Acknowledged, ChangeAcknowledged, Done, Status, WorkerAcknowledged};
pub use shadow::ShadowRefused;
pub use steer::{ApplyError, LENT_MAX, Switched};

/// Configuration of an engine.
pub struct Config {
    /// Name of the profile.
    pub profile_name: String,
    /// The profile, with the command line's overrides. A value outside its range is refused.
    pub profile: Profile,
    /// Label of this run, chosen by the operator.
    pub label: String,
    /// Where shots come from.
    pub input: Input,
    /// The run ends after this many shots, over all streams.
    pub count: Option<u64>,
    /// The run ends after this time in Live.
    pub duration: Option<Duration>,
    /// Receives the answers, in addition to the board.
    pub sink: Option<AnswerSink>,
    /// Receives the events; `None`: they are not recorded.
    pub events: Option<EventSink>,
    /// The run's directory. The recorder writes there, unless the profile has diagnostics off;
    /// other processes of the same user send commands over the socket there. `None`: neither.
    pub run_dir: Option<PathBuf>,
    /// Directory searched for profiles by name, before the built-in ones.
    pub profiles: Option<PathBuf>,
    /// Storage of the environment report; `None`: no report is made, unless the profile is strict.
    pub environment: Option<ReportTarget>,
    /// Notes shown once at the start.
    pub notes: Vec<String>,
    /// Injects faults for drills; `None`: no role can be disturbed. See [`prepared_for_drills`].
    pub drill_command: Option<Arc<DrillCommand>>,
    /// To engines of other hosts, for a live input of as many streams; `None`: all shots are decoded here.
    pub bridge: Option<BridgeEnd>,
    /// Directory of the boards, of claims on cores, and of the regions of inputs through shared memory; see
    /// [`directory`](crate::board::directory). Engines with one directory know of each other.
    pub boards: PathBuf,
    /// The owner takes requests for another input, by [`Engine::input_wanted`]; `false`: they are refused.
    pub takes_inputs: bool,
}

/// Writes the next shot of a stream into the given words, which hold the one before; `false` at its end.
///
/// An error, a panic or a bit set beyond the model's ends the run as [`EndedBy::Fault`], after the shots
/// before it; [`Outcome::input_error`] says why.
pub type ReadShot = Box<dyn FnMut(&mut [u64]) -> Result<bool, String> + Send>;

/// Source of a run's shots.
pub enum Input {
    /// Shots are drawn from a model.
    Sampler {
        /// The model.
        model: Arc<Model>,
        /// Its name.
        name: String,
        /// Seed of the draws.
        seed: u64,
    },
    /// Shots are read from a file that is in memory.
    Replay {
        /// The model of the shots.
        model: Arc<Model>,
        /// The file's name.
        name: String,
        /// The shots.
        shots: Arc<ShotSet>,
        /// The true observables of the shots.
        observables: Option<Arc<ShotSet>>,
    },
    /// A cold thread reads the shots from a stream.
    Stream {
        /// The model of the shots.
        model: Arc<Model>,
        /// The stream's name.
        name: String,
        /// Reads one shot after another.
        reader: ReadShot,
    },
    /// Other processes send the shots while the engine runs.
    Live {
        /// The model of the shots.
        model: Arc<Model>,
        /// Address of the source.
        place: LivePlace,
        /// Converts measurements to detection events; `None`: senders send detection events.
        measurements: Option<Arc<Measurements>>,
    },
}

impl Input {
    /// The model of the shots.
    pub fn model(&self) -> &Arc<Model> {
        match self {
            Input::Sampler { model, .. }
            | Input::Replay { model, .. }
            | Input::Stream { model, .. }
            | Input::Live { model, .. } => model,
        }
    }

    /// Text for the board.
    pub fn words(&self) -> String {
        match self {
            Input::Sampler { name, .. } => format!("sampler {name}"),
            Input::Replay { name, .. } | Input::Stream { name, .. } => name.clone(),
            Input::Live { place, .. } => place.to_string(),
        }
    }
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndedBy {
    /// The count was reached.
    Count,
    /// The duration had elapsed.
    Duration,
    /// The input ended.
    Input,
    /// The operator asked for a drain.
    Drained,
    /// The owner asked for a drain because it received this signal; the owner notes that in the outcome.
    Signal(i32),
    /// A role died, or reading the input failed.
    Fault,
}

/// Result of a run.
#[derive(Debug)]
pub struct Outcome {
    /// The board at the end of the run.
    pub snapshot: Snapshot,
    /// Why the run ended.
    pub ended_by: EndedBy,
    /// Time in Live, nanoseconds.
    pub elapsed_live_ns: u64,
    /// Stream and sequence number of shots without an answer.
    pub unanswered: Vec<(u32, u64)>,
    /// Result of the answer sink, if there was one.
    pub sink: Option<Result<(), String>>,
    /// Result of the events file, if there was one. An error there never ends the run.
    pub events: Option<Result<(), String>>,
    /// Why reading the input failed, if it did.
    pub input_error: Option<String>,
    /// How often detectors fired, if the profile watches for drifts.
    pub counted: Vec<StreamCounts>,
    /// Result of the environment report, if one was made.
    pub environment: Option<EnvironmentResult>,
    /// Times at which tasks of the decode pools ran, by silo, as far as the profile's `graph.trace`
    /// records them.
    pub task_times: Vec<(u32, Event)>,
}

/// Why an engine does not start.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum StartError {
    #[error("profile: {0}")]
    Profile(RangeError),
    #[error(transparent)]
    Host(#[from] HostError),
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error("{0}; without a GPU: --device sim")]
    Device(#[from] OpenError),
    #[error(transparent)]
    Model(#[from] ReadyError),
    #[error(transparent)]
    Shadow(#[from] ShadowRefused),
    #[error("the model has {found} {what}, and at most {limit} fit; split the experiment")]
    Width { what: &'static str, found: u32, limit: u32 },
    #[error("{name}: found {found} {what}, expected {expected}; give shots and observables of this model")]
    Shots { name: String, what: &'static str, found: u64, expected: u64 },
    #[error("{name}: found a bit set in shot {shot} beyond its detectors, expected 0; clear it")]
    OtherBits {
        name: String,
        /// Index of the shot, from 0.
        shot: usize,
    },
    #[error("environment Strict: {0}")]
    Counter(#[from] CounterError),
    #[error(
        "environment Strict: the host check failed: {failed}; fix these rows, or set environment: Advise in the profile"
    )]
    Environment { failed: String },
    #[error(
        "predictions cannot be put into input order: at rate max, {silos} silos with unequal weights drift more than \
         {window} shots apart in the input; set a rate, a count of at most {window}, or one silo"
    )]
    Apart {
        silos: u32,
        /// Largest distance in the input that the sink can reorder, shots.
        window: usize,
    },
    #[error(
        "other hosts decode shots of live sources only; give a live input such as udp:127.0.0.1:5170, or leave the hosts out"
    )]
    BridgeInput,
    #[error("the bridge to other hosts has {found} streams, and the profile has {expected}; make it with as many")]
    BridgeStreams { found: u32, expected: u32 },
    #[error(transparent)]
    Source(#[from] crate::feed::address::OpenError),
    #[error(transparent)]
    Role(#[from] RoleError),
    #[error("graph: {0}")]
    Graph(#[from] crate::graph::CompileError),
    #[error(transparent)]
    Board(#[from] crate::board::BoardError),
    #[error(
        "thread {name} could not be started ({source}); the run needs {threads} threads: raise the process limit \
         (ulimit -u) or plan fewer"
    )]
    Thread { name: String, threads: usize, source: std::io::Error },
    #[error(
        "the limit on {what} is {found} bytes, and a run needs at least {expected}; raise it (ulimit {option}, in \
         units of 1024 bytes)"
    )]
    Limit {
        what: &'static str,
        /// The limit, bytes.
        found: u64,
        /// Need of a run, bytes.
        expected: u64,
        option: &'static str,
    },
    #[error(
        "{missing} of {threads} threads are not ready after {limit_s} s; look for a stopped process or an overloaded \
         machine"
    )]
    Slow { missing: usize, threads: usize, limit_s: u64 },
}

/// Longest note, characters.
pub const NOTE_CHARS_MAX: usize = 400;

/// Why a note is not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoteError {
    /// The run has no log of events.
    #[error("this run has no events.jsonl for notes; start runs with a writable directory")]
    NoLog,
    /// The log's queue is full.
    #[error("the log of events is {} notes behind; try again, and check its disk", logger::ENTRIES_MAX)]
    Full,
}

/// Requests to the control thread. Relaxed: each is a plain word that stands alone.
#[derive(Debug)]
struct Requests {
    /// 0: none requested; else see [`Requests::drain`].
    drain: AtomicU64,
    /// 1: the drain has no grace.
    hurry: AtomicU64,
    /// Pending request for another input.
    inputs: inputs::InputQueue,
}

impl Requests {
    const DRAINED: u64 = 1;
    /// As `DRAINED`, and a run on another input follows.
    const INPUT: u64 = 2;

    fn new(takes_inputs: bool) -> Requests {
        let (drain, hurry) = (AtomicU64::new(0), AtomicU64::new(0));
        Requests { drain, hurry, inputs: inputs::InputQueue::new(takes_inputs) }
    }

    /// Stores the reason `word` for a drain; whether it is the first. The first reason stays,
    /// except that a plain drain replaces a drain for another input: then no run follows.
    fn ask(&self, word: u64) -> bool {
        let replace = |old| self.drain.compare_exchange(old, word, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        let is_first = replace(0);
        if !is_first && word != Self::INPUT {
            replace(Self::INPUT);
        }
        is_first
    }

    /// Name of the input of the run that follows, if one follows.
    fn follows(&self) -> Option<&str> {
        (self.drain.load(Ordering::Relaxed) == Self::INPUT).then(|| self.inputs.follows()).flatten()
    }

    /// Removes the grace of the drain.
    fn hurry(&self) {
        self.hurry.store(1, Ordering::Relaxed);
    }

    fn is_hurried(&self) -> bool {
        self.hurry.load(Ordering::Relaxed) != 0
    }

    fn drain(&self) -> Option<EndedBy> {
        (self.drain.load(Ordering::Relaxed) != 0).then_some(EndedBy::Drained)
    }
}

/// A running engine.
pub struct Engine {
    board: Arc<Board>,
    clock: Clock,
    executor: Executor,
    plan: Plan,
    recent_recording: Option<RecentRecording>,
    control: Option<JoinHandle<Outcome>>,
}

impl Engine {
    /// Builds everything and starts the threads. Returns in Warmup.
    ///
    /// # Errors
    /// [`StartError`], one sentence; no thread and no file is left.
    pub fn start(config: Config) -> Result<Engine, StartError> {
        assemble::start(config)
    }

    /// Reads the board.
    pub fn snapshot(&self) -> Snapshot {
        self.board.snapshot(&self.clock)
    }

    /// A reader of the board for another cold thread. The board exists until its last viewer is
    /// dropped.
    pub fn viewer(&self) -> Viewer {
        Viewer { board: Arc::clone(&self.board), clock: self.clock.clone() }
    }

    /// The profile in force, set by this handle, another process or an alarm.
    pub fn profile(&self) -> Arc<Profile> {
        self.executor.steering.lock().profile()
    }

    /// A model by which shots are decoded instead of the model of the start, if there is one.
    pub fn other_model(&self) -> Option<KnownModel> {
        self.executor.steering.lock().decoders().1.other_than_first()
    }

    /// The models of this run by number, for another cold thread.
    pub fn models(&self) -> RunModels {
        RunModels::new(self.executor.steering.lock().decoders().1)
    }

    /// Name and profile that are in force without a limited switch: those that return, if one is under way.
    pub fn lasting_profile(&self) -> (String, Arc<Profile>) {
        self.executor.steering.lock().lasting()
    }

    /// The thread plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Checks whether `by` may execute `command` now, executes it, and records it in the actions
    /// log. The board shows the acknowledgements of the hot threads.
    ///
    /// # Errors
    /// [`Refused`], one sentence; nothing was changed.
    pub fn execute(&self, command: Command, by: &Actor) -> Result<Accepted, Refused> {
        self.executor.execute(command, by)
    }

    /// Executes commands as [`Engine::execute`] does, on another cold thread: one that reads a file or
    /// prepares decoders takes as long as that takes.
    pub fn commands(&self) -> impl Fn(Command, &Actor) -> Result<Accepted, Refused> + Send + use<> {
        let executor = self.executor.clone();
        move |command, by| executor.execute(command, by)
    }

    /// Queue of move requests, for another cold thread.
    pub fn moves(&self) -> Arc<MoveRequests> {
        Arc::clone(&self.executor.moves)
    }

    /// The engine's clock.
    pub const fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Queue of silo commands, for another cold thread.
    pub fn silo_commands(&self) -> Arc<SiloCommands> {
        Arc::clone(&self.executor.silo_commands)
    }

    /// Requests a drain for the owner of the handle: not a command, and not recorded in the actions
    /// log.
    pub fn request_drain(&self) {
        self.executor.requests.ask(Requests::DRAINED);
    }

    /// Records an action on the whole run: on the board, and as an event.
    pub fn note_action(&self, by: &Actor, text: &str) {
        self.executor.steering.lock().note_action(by, text);
    }

    /// Takes a pending request for another input. The caller reads and checks the input, then ends
    /// this engine by [`Engine::drain_for_input`] and starts the next.
    pub fn input_wanted(&self) -> Option<InputWanted> {
        self.executor.requests.inputs.take()
    }

    /// Requests a drain after which a run on `to` follows in this process. Records it as an event;
    /// at the end a note on the board announces the next run to viewers. `false`: an end had been
    /// requested before, and no run is to follow.
    #[must_use]
    pub fn drain_for_input(&self, by: &Actor, from: &str, to: &str) -> bool {
        // Stored before the request word: a reader of the word finds the name.
        self.executor.requests.inputs.follow(to);
        let is_first = self.executor.requests.ask(Requests::INPUT);
        if is_first {
            self.note_action(by, &format!("input {from} to {to} asked for by {}", by.words()));
        }
        is_first
    }

    /// Whether a run on another input is to follow: no end has been requested since.
    pub fn goes_on(&self) -> bool {
        self.executor.requests.follows().is_some()
    }

    /// Access to the last minutes of the recording; `None`: no recorder runs.
    pub fn recent_recording(&self) -> Option<&RecentRecording> {
        self.recent_recording.as_ref()
    }

    /// Whether the run has ended; [`Engine::finish`] then returns at once.
    pub fn is_finished(&self) -> bool {
        self.control.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for the end of the run, for whatever reason it ends.
    ///
    /// # Panics
    /// If the control thread panicked, with the same panic.
    #[must_use]
    pub fn finish(mut self) -> Outcome {
        let control = self.control.take().expect("taken only here and in drop");
        match control.join() {
            Ok(outcome) => outcome,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

/// Read-only access to the board of a running engine.
#[derive(Clone)]
pub struct Viewer {
    board: Arc<Board>,
    clock: Clock,
}

impl Viewer {
    /// Reads the board.
    pub fn snapshot(&self) -> Snapshot {
        self.board.snapshot(&self.clock)
    }

    /// The board as a recording of one snapshot, for another process.
    pub fn picture(&self) -> Vec<u8> {
        tape::picture(&self.board, &self.clock)
    }
}

impl Drop for Engine {
    /// Drains a dropped engine and waits for its end.
    fn drop(&mut self) {
        if let Some(control) = self.control.take() {
            self.request_drain();
            let _ = control.join();
        }
    }
}
