//! The engine: silos and threads from a profile, from Init to Shutdown.
//!
//! Owns the handle that console and command line hold ([`Engine`]), and through it the control thread, which owns
//! everything that runs. `start` returns when every role is built; warm-up, Live, drain and the end happen behind it.
//! Bounds: Init and Warmup have deadlines, a drain has the profile's grace, and threads that do not leave are left.
//!
//! Longer than 500 lines, because it is one handle, half of it documentation of what may be asked of it.
//!
//! ```text
//!  INIT ─ roles built ─▶ WARMUP ─ warm shots, rate measured ─▶ LIVE ─ count, duration, input, operator, fault ─▶
//!  DRAIN ─ all answered, or grace over and the rest answered with an error ─▶ SHUTDOWN ─ threads joined ─▶ outcome
//! ```
//!
//! Longer than 500 lines, because the handle's methods and what they refuse are the library's front door and read as one list.

mod actor;
mod assemble;
mod blackbox;
mod cold;
mod control;
mod cores;
mod courtesy;
mod devices;
mod drilling;
mod environment;
mod header;
mod inputs;
mod limits;
mod lives;
mod logger;
mod neighbours;
mod orders;
mod placing;
#[cfg(target_os = "linux")]
mod remote;
#[cfg(not(target_os = "linux"))]
#[path = "engine/unreachable.rs"]
mod remote;
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
use crate::device::cuda::OpenError;
use crate::fault::EventCode;
use crate::graph::Event;
use crate::host::HostError;
use crate::hot::RoleError;
use crate::hot::provoke::Provocation;
use crate::plan::{Plan, PlanError};
use crate::profile::{OnHangup, Profile, Rate};
use crate::record::{AnswerSink, EventSink, LookBack};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

pub use crate::arbiter::page::Authority;
pub use crate::feed::place::{Network, Place as LivePlace};
pub use crate::feed::requests::{MoveRefused, MoveRequest, MoveRequests};
pub use crate::hot::memory::{Allocator, calls_of, set_before_abort};
pub use crate::silo::{SiloDeed, SiloRefused, SiloWishes};
pub use actor::Actor;
pub use cores::foresee;
pub use drilling::{DrillRefused, Drilled, LiveDrill, prepared as prepared_for_drills};
pub use environment::{Found, Keep};
pub use inputs::{InputWanted, check_input};
pub use steer::{ApplyError, LENT_MAX, Switched};

/// What an engine is started with.
pub struct Config {
    /// Name of the profile.
    pub profile_name: String,
    /// The profile, with the command line's overrides; it has been validated.
    pub profile: Profile,
    /// The operator's words for this run.
    pub label: String,
    /// Where shots come from.
    pub input: Input,
    /// Ends after so many shots of all streams together.
    pub count: Option<u64>,
    /// Ends after so long in Live.
    pub duration: Option<Duration>,
    /// Where answers go besides the board.
    pub sink: Option<AnswerSink>,
    /// Where events are written down, if anywhere.
    pub events: Option<EventSink>,
    /// The run's directory: the recorder writes there, unless the profile has no diagnostics, and other processes of the
    /// same user act on the engine through the socket there; `None`: there is neither.
    pub run_dir: Option<PathBuf>,
    /// Where profiles are looked for by name, before those built in.
    pub profiles: Option<PathBuf>,
    /// Where the environment report is kept; `None`: none is made, unless the profile is strict.
    pub environment: Option<Keep>,
    /// Things to say once.
    pub notes: Vec<String>,
    /// Faults on command, for drills; `None`: no role can be provoked. See [`prepared_for_drills`].
    pub provocation: Option<Arc<Provocation>>,
}

/// Writes the next shot of a stream into the given words; `false` at its end.
pub type ReadShot = Box<dyn FnMut(&mut [u64]) -> Result<bool, String> + Send>;

/// Where shots come from.
pub enum Input {
    /// Drawn from a model.
    Sampler {
        /// The model.
        model: Arc<Model>,
        /// Its name.
        name: String,
        /// Seed of the draws.
        seed: u64,
    },
    /// A file in memory.
    Replay {
        /// The model.
        model: Arc<Model>,
        /// The file's name.
        name: String,
        /// The shots.
        shots: Arc<ShotSet>,
        /// Their true observables.
        observables: Option<Arc<ShotSet>>,
    },
    /// A stream that a cold thread reads.
    Stream {
        /// The model.
        model: Arc<Model>,
        /// The stream's name.
        name: String,
        /// Gives one shot after another.
        reader: ReadShot,
    },
    /// Other processes send them while the engine runs.
    Live {
        /// The model.
        model: Arc<Model>,
        /// Where.
        place: LivePlace,
        /// From measurements, if they send those.
        measurements: Option<Arc<Measurements>>,
    },
}

impl Input {
    /// The model of the shots.
    #[must_use]
    pub fn model(&self) -> &Arc<Model> {
        match self {
            Input::Sampler { model, .. }
            | Input::Replay { model, .. }
            | Input::Stream { model, .. }
            | Input::Live { model, .. } => model,
        }
    }

    /// In words, as the board names it.
    #[must_use]
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
    /// The duration was over.
    Duration,
    /// The input had no more.
    Input,
    /// The operator asked for a drain.
    Drained,
    /// A signal asked for it.
    Signal(i32),
    /// A role died, or the input broke off.
    Fault,
}

/// What an engine leaves.
#[derive(Debug)]
pub struct Outcome {
    /// The board at the end.
    pub snapshot: Snapshot,
    /// Why it ended.
    pub ended_by: EndedBy,
    /// Time in Live, nanoseconds.
    pub elapsed_live_ns: u64,
    /// Stream and sequence of shots without an answer.
    pub unanswered: Vec<(u32, u64)>,
    /// How the answer sink ended, if there was one.
    pub sink: Option<Result<(), String>>,
    /// How the file of events ended, if there was one. It is never a cause to end the run.
    pub events: Option<Result<(), String>>,
    /// Why the input broke off, if it did.
    pub input_error: Option<String>,
    /// What the environment report said, if one was made.
    pub environment: Option<Found>,
    /// When tasks of the decode pools ran, by silo, as far as the profile's `graph.trace` asks for it.
    pub task_times: Vec<(u32, Event)>,
}

/// Why an engine does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The host could not be read.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The plan cannot be had on this machine.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The device cannot be had.
    #[error(transparent)]
    Device(#[from] OpenError),
    /// The model cannot be decoded.
    #[error(transparent)]
    Model(#[from] ReadyError),
    /// The model is wider than a slot.
    #[error("found a model with {found} {what}, expected at most {limit}; split the experiment")]
    Width {
        /// Detectors or observables.
        what: &'static str,
        /// How many.
        found: u32,
        /// Most that fit.
        limit: u32,
    },
    /// The profile wants the counter as its clock, and it cannot be.
    #[error("environment Strict: {0}")]
    Counter(#[from] CounterError),
    /// The profile wants a machine that is set up for hot threads, and it is not.
    #[error(
        "environment Strict: found {failed}, expected no failed row; set it right, or say environment: Advise in the profile"
    )]
    Environment {
        /// The rows that failed, each with what was found and its remedy.
        failed: String,
    },
    /// Predictions cannot be put into the input's order.
    #[error(
        "found predictions of {silos} silos with unequal weights as fast as slots come free, expected silos that stay within {window} shots of each other in the input: a silo with few of the turns runs ahead of one with many; set a rate, a count of at most {window}, or one silo"
    )]
    Apart {
        /// How many.
        silos: u32,
        /// How far they may lie apart.
        window: usize,
    },
    /// The live source cannot be opened.
    #[error(transparent)]
    Source(#[from] crate::feed::place::OpenError),
    /// A role could not be built or warmed.
    #[error(transparent)]
    Role(#[from] RoleError),
    /// The graph that decode workers run cannot be had.
    #[error("graph: {0}")]
    Graph(#[from] crate::graph::CompileError),
    /// No memory even for a private board.
    #[error(transparent)]
    Board(#[from] crate::board::BoardError),
    /// The system refused a thread.
    #[error(
        "found no room for thread {name} ({source}), expected {threads} threads; raise the process limit (ulimit -u) or plan fewer"
    )]
    Thread {
        /// Its name.
        name: String,
        /// How many the plan has.
        threads: usize,
        /// The system's word.
        source: std::io::Error,
    },
    /// The process may not have what a run needs.
    #[error(
        "found a limit of {found} bytes on {what}, expected at least {expected}; raise it (ulimit {option}, which counts in \
         units of 1024 bytes)"
    )]
    Limit {
        /// On what.
        what: &'static str,
        /// The limit.
        found: u64,
        /// What a run needs.
        expected: u64,
        /// The shell's option for it.
        option: &'static str,
    },
    /// A thread did not build its roles in time.
    #[error(
        "found {missing} of {threads} threads not ready after {limit_s} s, expected all; look for a stopped process or an overloaded machine"
    )]
    Slow {
        /// Threads not ready.
        missing: usize,
        /// Threads in all.
        threads: usize,
        /// The limit.
        limit_s: u64,
    },
}

/// Longest note, characters.
pub const NOTE_CHARS_MAX: usize = 400;

/// Why a note is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoteError {
    /// Nobody keeps events.
    #[error(
        "found no log of events in this run, expected its events.jsonl; start runs with a directory that can be written"
    )]
    NoLog,
    /// The logger is behind.
    #[error(
        "found the log of events {} notes behind, expected it to keep up; try again, and see what holds its disk up",
        logger::SAID_MAX
    )]
    Full,
}

/// Requests to the control thread. Relaxed: each is a plain word that stands alone.
#[derive(Debug, Default)]
struct Requests {
    /// 0: none; else see [`Requests::drain`].
    drain: AtomicU64,
    /// 1: a drain waits for nothing.
    hurry: AtomicU64,
    /// Other inputs, asked for by other processes.
    inputs: inputs::InputDesk,
}

impl Requests {
    const DRAINED: u64 = 1;
    /// Likewise, and a run on another input follows.
    const INPUT: u64 = 2;
    const SIGNAL: u64 = 1 << 32;

    /// The first reason stands; whether this is it. But who asks for the end wants no other run after it.
    fn ask(&self, word: u64) -> bool {
        let replace = |old| self.drain.compare_exchange(old, word, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        let is_first = replace(0);
        if !is_first && word != Self::INPUT {
            replace(Self::INPUT);
        }
        is_first
    }

    /// What the run that follows takes, if one is to.
    fn follows(&self) -> Option<&str> {
        (self.drain.load(Ordering::Relaxed) == Self::INPUT).then(|| self.inputs.follows()).flatten()
    }

    /// A drain has no grace from now on.
    fn hurry(&self) {
        self.hurry.store(1, Ordering::Relaxed);
    }

    fn is_hurried(&self) -> bool {
        self.hurry.load(Ordering::Relaxed) != 0
    }

    fn drain(&self) -> Option<EndedBy> {
        match self.drain.load(Ordering::Relaxed) {
            0 => None,
            Self::DRAINED | Self::INPUT => Some(EndedBy::Drained),
            word => Some(EndedBy::Signal((word & 0xffff) as i32)),
        }
    }
}

/// A running engine.
pub struct Engine {
    board: Arc<Board>,
    clock: Clock,
    steering: steer::SharedSteering,
    plan: Plan,
    requests: Arc<Requests>,
    moves: Arc<MoveRequests>,
    wishes: Arc<SiloWishes>,
    look_back: Option<LookBack>,
    control: Option<JoinHandle<Outcome>>,
}

impl Engine {
    /// Builds everything and starts the threads. Returns in Warmup.
    ///
    /// # Errors
    /// [`StartError`], one sentence; nothing is left running or behind.
    pub fn start(config: Config) -> Result<Engine, StartError> {
        assemble::start(config)
    }

    /// The engine as it is now.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.board.snapshot(&self.clock)
    }

    /// Looks at the engine from another cold thread. The board lasts until the last viewer is gone.
    #[must_use]
    pub fn viewer(&self) -> Viewer {
        Viewer { board: Arc::clone(&self.board), clock: self.clock.clone() }
    }

    /// The profile in force, whoever put it there: this handle, another process, or an alarm.
    #[must_use]
    pub fn profile(&self) -> Arc<Profile> {
        self.steering.lock().profile()
    }

    /// What a lost terminal means by the profile in force.
    #[must_use]
    pub fn on_hangup(&self) -> OnHangup {
        self.profile().on_hangup
    }

    /// The thread plan.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Puts the fields of `next` that apply live into force, as profile `name`; `lent`: only for so long, then what was in
    /// force before comes back. What applies at restart stays as it is.
    ///
    /// # Errors
    /// If nothing could be applied: the engine is draining, or the time is out of range.
    pub fn switch(
        &self,
        name: &str,
        next: &Profile,
        lent: Option<Duration>,
        by: &Actor,
    ) -> Result<Switched, ApplyError> {
        self.steering.lock().switch(name, next, lent, by)
    }

    /// The same for good, in the name of whoever runs this process.
    ///
    /// # Errors
    /// As [`Engine::switch`].
    pub fn apply(&mut self, name: &str, next: &Profile) -> Result<(), ApplyError> {
        self.switch(name, next, None, &Actor::this_process()).map(drop)
    }

    /// Holds the feed: what is under way finishes, nothing more is taken.
    ///
    /// # Errors
    /// If the engine is draining.
    pub fn pause(&self, by: &Actor) -> Result<(), ApplyError> {
        self.steering.lock().pause(by)
    }

    /// Lets the feed run again.
    ///
    /// # Errors
    /// If the engine is draining.
    pub fn resume(&self, by: &Actor) -> Result<(), ApplyError> {
        self.steering.lock().resume(by)
    }

    /// Another rate, until a profile says another; the one before.
    ///
    /// # Errors
    /// If it is out of range, not the engine's to set, or comes too late.
    pub fn set_rate(&self, rate: Rate, by: &Actor) -> Result<Rate, ApplyError> {
        self.steering.lock().set_rate(rate, by)
    }

    /// Acknowledges alarm `number`; 0: all that hold. Seen on the board when the watchdog has taken it in.
    ///
    /// # Errors
    /// If there is none of that number, or nobody who keeps alarms.
    pub fn acknowledge(&self, number: u64) -> Result<(), ApplyError> {
        self.steering.lock().acknowledge(number, &Actor::this_process())
    }

    /// Lets alarm `number` not call for `span`; 0: all that hold.
    ///
    /// # Errors
    /// As [`Engine::acknowledge`].
    pub fn snooze(&self, number: u64, span: Duration) -> Result<(), ApplyError> {
        self.steering.lock().snooze(number, span, &Actor::this_process())
    }

    /// Whether a drill may be started in this engine now.
    ///
    /// # Errors
    /// Why not, in a sentence.
    pub fn may_drill(&self) -> Result<(), DrillRefused> {
        self.steering.lock().may_drill()
    }

    /// Starts the deed of `drill` in this engine, for `span` or the drill's own time. It ends by itself; what it gets for a
    /// verdict is an alarm on the board.
    ///
    /// # Errors
    /// If the profile in force is for work, nobody gives verdicts, or one runs already.
    pub fn drill(&self, drill: LiveDrill, span: Option<Duration>, by: &Actor) -> Result<Drilled, DrillRefused> {
        self.steering.lock().drill(drill, span, by)
    }

    /// Asks for a move of a stream to another silo. It is made under load: what becomes of it is on the board.
    ///
    /// # Errors
    /// If it cannot be made, or too many wait.
    pub fn move_stream(&self, request: MoveRequest) -> Result<(), MoveRefused> {
        self.moves.ask(request)
    }

    /// The same in an operator's name, as an event of the run.
    ///
    /// # Errors
    /// As [`Engine::move_stream`].
    pub fn move_stream_by(&self, stream: u32, to: u32, by: &Actor) -> Result<(), MoveRefused> {
        self.moves.ask(MoveRequest { stream, to, lease_ms: 0, by: Authority::Operator })?;
        let text = format!("move of stream {stream} to silo {to} asked for by {}", by.words());
        self.steering.lock().note_action(by, &text);
        Ok(())
    }

    /// Where moves are asked for, for another cold thread.
    #[must_use]
    pub fn moves(&self) -> Arc<MoveRequests> {
        Arc::clone(&self.moves)
    }

    /// The time that it lives by.
    #[must_use]
    pub const fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Empties silo `silo`: its streams move to others, and no stream is placed there. Its state is on the board.
    ///
    /// # Errors
    /// If it cannot be done now.
    pub fn drain_silo(&self, silo: u32, by: &Actor) -> Result<(), SiloRefused> {
        self.act_on_silo(silo, SiloDeed::Drain, by)
    }

    /// Has the path of silo `silo` die: its roles from dispatch to decode are called never again, its open shots are answered
    /// with an error, its streams are decoded by an heir.
    ///
    /// # Errors
    /// As [`Engine::drain_silo`].
    pub fn kill_silo(&self, silo: u32, by: &Actor) -> Result<(), SiloRefused> {
        self.act_on_silo(silo, SiloDeed::Kill, by)
    }

    /// Has silo `silo` come back: a dead one with a path that is built anew, a drained one as it is.
    ///
    /// # Errors
    /// As [`Engine::drain_silo`].
    pub fn rejoin_silo(&self, silo: u32, by: &Actor) -> Result<(), SiloRefused> {
        self.act_on_silo(silo, SiloDeed::Rejoin, by)
    }

    /// One of the three.
    ///
    /// # Errors
    /// As [`Engine::drain_silo`].
    pub fn act_on_silo(&self, silo: u32, deed: SiloDeed, by: &Actor) -> Result<(), SiloRefused> {
        self.wishes.ask(silo, deed)?;
        let text = format!("{} of silo {silo} asked for by {}", deed.name(), by.words());
        self.steering.lock().note_action(by, &text);
        Ok(())
    }

    /// Where deeds on silos are wished for, for another cold thread.
    #[must_use]
    pub fn wishes(&self) -> Arc<SiloWishes> {
        Arc::clone(&self.wishes)
    }

    /// Asks for a drain in the operator's name.
    pub fn request_drain(&self) {
        self.requests.ask(Requests::DRAINED);
    }

    /// Keeps that somebody did something to the run as a whole: on the board, and as an event.
    pub fn note_action(&self, by: &Actor, text: &str) {
        self.steering.lock().note_action(by, text);
    }

    /// Asks for a drain, as an event of the run.
    pub fn drain_by(&self, by: &Actor) {
        self.steering.lock().note_action(by, &format!("drain asked for by {}", by.words()));
        self.request_drain();
    }

    /// Another input that another process asks for. Whoever calls this now and then answers what comes: it reads and
    /// checks the input, then ends this engine by [`Engine::drain_for_input`] and starts the next. Until the first call
    /// such requests are refused.
    #[must_use]
    pub fn input_wanted(&self) -> Option<InputWanted> {
        self.requests.inputs.take()
    }

    /// Asks for a drain after which a run on `to` follows in this process: an event of the run, and a note on its board
    /// once it has ended, for those who look at it. Whether nobody had asked for its end before; else none is to follow.
    #[must_use]
    pub fn drain_for_input(&self, by: &Actor, from: &str, to: &str) -> bool {
        // Before the word: whoever reads that finds this.
        self.requests.inputs.follow(to);
        let is_first = self.requests.ask(Requests::INPUT);
        if is_first {
            self.note_action(by, &format!("input {from} to {to} asked for by {}", by.words()));
        }
        is_first
    }

    /// Whether a run on another input is to follow this one: nobody has asked for the end since.
    #[must_use]
    pub fn goes_on(&self) -> bool {
        self.requests.follows().is_some()
    }

    /// Asks for a drain because of signal `number`.
    pub fn request_drain_by_signal(&self, number: i32) {
        self.requests.ask(Requests::SIGNAL | u64::from(number.unsigned_abs()));
    }

    /// What looks back at the last minutes; `None`: no recorder runs.
    #[must_use]
    pub fn look_back(&self) -> Option<&LookBack> {
        self.look_back.as_ref()
    }

    /// Writes a note of the operator into the log of events, at this moment.
    ///
    /// # Errors
    /// [`NoteError`]: it is not kept.
    pub fn note(&self, text: &str) -> Result<(), NoteError> {
        let (text, numbers) = (logger::plain(text), Vec::new());
        let note = logger::Said { at: self.clock.ticks(), who: "operator", code: EventCode::Note, text, numbers };
        self.steering.lock().say(note)
    }

    /// Whether everything has ended; [`Engine::finish`] then returns at once.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.control.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for the end, however it comes.
    ///
    /// # Panics
    /// If the control thread panicked, with its panic.
    #[must_use]
    pub fn finish(mut self) -> Outcome {
        let control = self.control.take().expect("taken only here and in drop");
        match control.join() {
            Ok(outcome) => outcome,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

/// A look at a running engine's board, and no more.
#[derive(Clone)]
pub struct Viewer {
    board: Arc<Board>,
    clock: Clock,
}

impl Viewer {
    /// The engine as it is now.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.board.snapshot(&self.clock)
    }
}

impl Drop for Engine {
    /// An engine that is let go drains, and is waited for.
    fn drop(&mut self) {
        if let Some(control) = self.control.take() {
            self.request_drain();
            let _ = control.join();
        }
    }
}
