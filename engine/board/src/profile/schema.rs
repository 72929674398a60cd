//! The schema of a profile: every field with its unit and range.
//!
//! Plain data, read by any cold thread; `check` enforces the ranges written here. Bounded: no field
//! grows with use. The defaults are in `base.ron`.
//!
//! Longer than 500 lines, because it is one table of fields with their documentation.

use super::alarms::{AlarmRule, Diagnostics, OnAlarm};
use super::deadlines::{Deadlines, Rescue};
use super::placement::PlacementRules;
use super::silos::Silos;
use super::weights::Weights;
use crate::roles::{RoleKind, TaskKernel};
use pinwheel_edge::spin::SpinPolicy;
use serde::{Deserialize, Serialize};

/// One profile: spin policy, thread plan, sizes, limits, input and faults.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// One line for lists, 1..=120 characters.
    pub summary: String,
    /// How a hot thread waits when it has no work.
    pub spin: SpinPolicy,
    /// Spin and sleep times of `Lab` and `Shared`.
    pub spin_budgets: SpinBudgets,
    /// Most cores the hot threads may take together, 1..=1024; `None`: all cores of the plan.
    pub max_cores: Option<u32>,
    /// How roles are given to threads and threads to cores.
    pub threads: Threads,
    /// Decode workers of each silo.
    pub decoders: Decoders,
    /// Complete pipelines, 1..=64.
    pub silos: Silos,
    /// Entries of each silo's rx and tx ring, a power of two in 8..=65536.
    pub slots: u32,
    /// Device workers of each silo, 1..=64: one bit of the idle mask each.
    pub workers: u32,
    /// When a device worker is free for the next shot.
    pub free_worker: FreeWorker,
    /// Filter that reduces the syndrome before it is decoded.
    pub predecoder: Predecoder,
    /// How a syndrome is decoded.
    pub decoder: Decoder,
    /// Streams that another decoder decodes, each named at most once; whole shots only.
    pub streams: Vec<StreamDecoder>,
    /// Whether to tell the gap of each answer: how much likelier its observables are than any others, in
    /// decibels (10 dB: ten times). Costs a second search for each shot; whole shots only, without a
    /// predecoder.
    pub confidence: bool,
    /// Answers of a gap below this, in decibels, 1..=254, say that they are not to be trusted; needs
    /// `confidence`. `None`: all are.
    pub abstain_below: Option<u8>,
    /// A second decoder that gets some of the shots, on a thread that no shot waits for, to be compared
    /// with the first; `None`: none.
    pub shadow: Option<Shadow>,
    /// Deadlines of answers, and what keeps them.
    pub deadlines: Deadlines,
    /// The device that runs the predecode step.
    pub device: Device,
    /// Deadlines, and the times after which an answer is late or a thread stalled.
    pub limits: Limits,
    /// Source and rate of the shots.
    pub input: Input,
    /// Injected faults; all zero in ordinary use.
    pub faults: Faults,
    /// Reaction to a hot thread's call of the allocator in Live.
    pub hot_allocations: HotAllocations,
    /// Behaviour of a start on a machine that is not set up for hot threads.
    pub environment: Environment,
    /// The scheduling priority of hot threads.
    pub priority: Priority,
    /// When the engine yields its hot cores to other users' threads; `None`: never.
    pub courtesy: Option<Courtesy>,
    /// Decoding of long experiments.
    pub window: Window,
    /// Whether the engine watches itself.
    pub diagnostics: Diagnostics,
    /// Alarm rules other than the bundled ones, each identity at most once.
    pub alarms: Vec<AlarmRule>,
    /// Additional action of an alarm, once, at its onset.
    pub on_alarm: OnAlarm,
    /// Limits on the records of earlier runs.
    pub recorder: KeptRuns,
    /// The task graph that decode workers run.
    pub graph: Graph,
    /// Placement of streams on silos, and handling of a shot that finds no slot.
    pub placement: PlacementRules,
    /// Behaviour of the engine when its terminal is lost.
    pub on_hangup: OnHangup,
    /// The console's colours, unless its user selected others.
    pub theme: Theme,
}

/// The task graph that decode workers run: policies and limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Graph {
    /// Order in which ready tasks are taken.
    pub ready: ReadyPolicy,
    /// Worker of a task that other tasks made ready, under `WorkSteal`.
    pub placement: Placement,
    /// When the first task may run.
    pub start: StartPolicy,
    /// Handling of a submission beyond the window.
    pub overflow: WindowOverflow,
    /// Tasks submitted and not retired, at least slots + workers + decoders, at most 524288.
    pub window_tasks: u32,
    /// Limit on tasks between dispatch and completion.
    pub issue: IssueGate,
    /// Completions that a worker resolves at once, 1..=4096; fewer before another task begins, if
    /// the first of them is 2 µs old.
    pub batch_tasks: u32,
    /// Tasks whose times are recorded, and written as `tasks.json` into the run's directory when it
    /// ends.
    pub trace: TaskTrace,
    /// Times recorded for each decode worker, the latest ones, 1..=16777216.
    pub trace_events: u32,
}

/// Tasks whose times are recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum TaskTrace {
    /// No tasks; the clock is not read for it.
    Off,
    /// When tasks began and ended, of these kernels and of these streams; an empty list takes all.
    Cycles {
        /// Kernels to record.
        kernels: Vec<TaskKernel>,
        /// Streams to record.
        streams: Vec<u32>,
    },
}

/// Order in which ready tasks are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReadyPolicy {
    /// `Fifo` with fewer than four decode workers, else `WorkSteal`.
    Auto,
    /// One queue, in the order in which tasks became ready.
    Fifo,
    /// One queue for each stream, served in turn.
    FifoPerStream,
    /// A queue for each worker, newest first; an idle worker steals the oldest task of another.
    WorkSteal,
}

/// Which worker a task goes to under `WorkSteal`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Placement {
    /// The worker that made it ready.
    Releaser,
    /// The worker of its stream.
    ByStream,
}

/// When the first task may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StartPolicy {
    /// When all are submitted: refused, because a stream of shots has no end.
    AfterOrchestration,
    /// At once.
    Immediate,
    /// When this many have been submitted, 1..=slots.
    Threshold(u32),
}

/// Handling of a submission beyond the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum WindowOverflow {
    /// It waits, and its submitter waits with it.
    Stall,
    /// Its shot is answered with an error.
    Abort,
    /// It is admitted and counted, up to 65536 tasks or the window if that is larger.
    Benchmark,
}

/// Tasks between dispatch and completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum IssueGate {
    /// Any number.
    Open,
    /// This many in all, 1..=1048576.
    Global(u32),
    /// This many of each stream, 1..=1048576.
    PerStream(u32),
    /// This many in each pool, 1..=1048576.
    PerPool(u32),
}

/// How the shots of a long experiment are decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Window {
    /// Each shot as a whole.
    None,
    /// By sliding windows: each is matched anew, by any worker.
    Some(WindowRounds),
    /// As a stream: each round is added to the matching of the rounds before it. Shots that arrive
    /// whole are decoded in one go.
    Stream(WindowRounds),
    /// In blocks of so many rounds, which several workers match at the same time. The answer has the weight of
    /// the whole shot.
    Blocks(u32),
}

impl Window {
    /// Commit and buffer; `None` for whole shots and blocks.
    pub const fn rounds(self) -> Option<WindowRounds> {
        match self {
            Self::None | Self::Blocks(_) => None,
            Self::Some(rounds) | Self::Stream(rounds) => Some(rounds),
        }
    }
}

/// The size of a window, in rounds of detectors: a memory experiment of R rounds of measurement has R + 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WindowRounds {
    /// Rounds whose corrections are committed, 1 or more, at most the model's.
    pub commit_rounds: u32,
    /// Rounds decoded after them without commit, 1 or more, at most the model's: as accurate as
    /// whole shots from the code's distance on.
    pub buffer_rounds: u32,
}

/// The times behind the spin policies `Lab` and `Shared`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpinBudgets {
    /// Idle time spun before yielding under `Lab`, µs, 0..=1000000.
    pub lab_spin_us: u32,
    /// One sleep under `Shared`, µs, 1..=100000 and below `limits.heartbeat_ms`: the bound on waking up.
    pub shared_sleep_us: u32,
}

/// How roles are given to threads and threads to cores.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Threads {
    /// Derived from the cores that this process may use; decode workers have threads of their own.
    Auto,
    /// As `Auto`, but the first decode worker of a silo shares a thread with the roles after it:
    /// for decodes of about the time that the other roles take.
    Balanced,
    /// Exactly these, 1..=1024 of them; refused with a reason if not available.
    Explicit(Vec<ThreadSpec>),
}

/// One thread of an explicit plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadSpec {
    /// The thread's name, 1..=15 bytes (the system's limit), given to one thread only.
    pub name: String,
    /// Its roles in the order in which a frame runs them, 1..=64; `Decode` may be named several times.
    pub roles: Vec<RoleKind>,
    /// The silo that the roles belong to, below `silos`.
    pub silo: u32,
    /// The core it is pinned to; `None` leaves it unpinned.
    pub core: Option<u32>,
}

/// Decode workers of each silo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Decoders {
    /// As many as there are cores left for them, 1..=8.
    Auto,
    /// This many, 1..=64; with too few cores several share a thread.
    Count(u32),
}

/// When a device worker is free for the next shot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FreeWorker {
    /// As soon as its output is copied into the job.
    AfterCopy,
    /// When the decode that used its output has ended.
    AfterDecode,
}

/// Filter that reduces the syndrome before it is decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Predecoder {
    /// Nothing: the decoder sees all detection events.
    None,
    /// Resolves isolated pairs of neighbouring detection events and hands the rest on.
    Local,
}

/// How a syndrome is decoded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Decoder {
    /// Exact minimum-weight perfect matching.
    Matching,
    /// Matching in two passes: the second weighs edges by what the first has found, so that an error
    /// that fires detectors of both bases counts once. Fewer logical errors from distance 5 on, for
    /// two to four times the time; whole shots only.
    Correlated,
    /// Union-find, whole shots or windows: explains every shot, but not always by the most probable error.
    /// About half of matching's time from distance 9 on, at an error rate of 0.5 %;
    /// 1.1 to 1.3 times its logical errors.
    UnionFind,
    /// A table of what matching says to each syndrome, whole shots only. For models whose connected parts
    /// have at most 22 detectors, as at distance 3; others are refused at the start.
    Lookup,
    /// A decoder from a shared library with the `deq` decoder interface, version 1; whole shots only. It
    /// runs in a process of its own, unless it is trusted.
    Plugin {
        /// The library, which you or root must own; a relative path counts from the directory of the start.
        path: String,
        /// The plugin's configuration, JSON that is passed on unread; empty if omitted.
        #[serde(default)]
        config: String,
        /// Runs it within the engine: faster, but if the plugin hangs or crashes, so does the engine.
        /// `false` if omitted.
        #[serde(default)]
        trusted: bool,
        /// Time that a plugin in a process of its own has for one shot, µs, 1..=10000000, as far as the
        /// decode worker runs meanwhile; then the shot is answered with an error and the process started again. `None`, or omitted:
        /// `limits.shot_deadline_us`, at most half of `limits.heartbeat_ms`, both as they are when the plugin starts.
        #[serde(default)]
        limit_us: Option<u32>,
    },
}

impl Decoder {
    /// Those that are built in, in the order of [`DecoderKind::ALL`].
    pub const BUILT_IN: [Self; 4] = [Self::Matching, Self::Correlated, Self::UnionFind, Self::Lookup];
    const PLUGIN: &str = "plugin:";
    const TRUSTED_PLUGIN: &str = "trusted-plugin:";

    /// Its kind.
    pub const fn kind(&self) -> DecoderKind {
        match self {
            Self::Matching => DecoderKind::Matching,
            Self::Correlated => DecoderKind::Correlated,
            Self::UnionFind => DecoderKind::UnionFind,
            Self::Lookup => DecoderKind::Lookup,
            Self::Plugin { .. } => DecoderKind::Plugin,
        }
    }

    /// The decoder on a command line and in commands: the name of a built-in one, or `plugin:PATH` or
    /// `trusted-plugin:PATH`. A plugin's configuration and time limit stand in profiles only.
    pub fn text(&self) -> String {
        match self {
            Self::Plugin { path, trusted: false, .. } => format!("{}{path}", Self::PLUGIN),
            Self::Plugin { path, trusted: true, .. } => format!("{}{path}", Self::TRUSTED_PLUGIN),
            built_in => built_in.kind().name().to_owned(),
        }
    }

    /// Inverse of [`Self::text`].
    pub fn from_text(text: &str) -> Option<Self> {
        let plugin = |path: &str, trusted| {
            (!path.is_empty()).then(|| {
                let (path, config) = (path.to_owned(), String::new());
                Self::Plugin { path, config, trusted, limit_us: None }
            })
        };
        if let Some(path) = text.strip_prefix(Self::PLUGIN) {
            return plugin(path, false);
        }
        if let Some(path) = text.strip_prefix(Self::TRUSTED_PLUGIN) {
            return plugin(path, true);
        }
        Self::BUILT_IN.into_iter().find(|decoder| decoder.kind().name() == text)
    }
}

/// Kind of a decoder: what answers, recordings and the board tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum DecoderKind {
    /// See [`Decoder::Matching`].
    Matching,
    /// See [`Decoder::Correlated`].
    Correlated,
    /// See [`Decoder::UnionFind`].
    UnionFind,
    /// See [`Decoder::Lookup`].
    Lookup,
    /// See [`Decoder::Plugin`].
    Plugin,
}

pinwheel_edge::names! { DecoderKind:
    Matching "matching", Correlated "correlated", UnionFind "union-find", Lookup "lookup", Plugin "plugin",
}

impl DecoderKind {
    /// The kind of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl Rescue {
    /// The decoder that gives the answer; `None`: the predecoder alone does.
    pub const fn decoder(self) -> Option<DecoderKind> {
        match self {
            Self::Matching => Some(DecoderKind::Matching),
            Self::UnionFind => Some(DecoderKind::UnionFind),
            Self::Lookup => Some(DecoderKind::Lookup),
            Self::Predecoder => None,
        }
    }
}

/// The decoder of one stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamDecoder {
    /// The stream, below `input.streams`.
    pub stream: u32,
    /// How its syndromes are decoded.
    pub decoder: Decoder,
}

/// A second decoder, to be compared with the first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shadow {
    /// How it decodes: whole shots, also where the first decodes by windows.
    pub decoder: Decoder,
    /// It gets one shot in so many, 1..=1000000.
    pub one_in: u32,
    /// Its error model: Stim's .dem, or a bundled one by name. `None`: that by which the first has decoded
    /// the shot.
    #[serde(default)]
    pub model: Option<String>,
}

/// The name of [`Device::None`] on boards and in reports.
pub const NO_DEVICE: &str = "none";

/// The device that runs the predecode step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Device {
    /// A CUDA device where there is one, otherwise `None`; with injected faults of launches the
    /// simulated device without latency.
    Auto,
    /// No device: dispatch hands each shot to the graph role, and the decode worker predecodes it. Has
    /// no role `Device` and no device workers.
    None,
    /// The CPU simulation: the same three steps as the device's graph, with a latency drawn per
    /// launch.
    Sim {
        /// Time from launch to the ready flag.
        latency: Latency,
    },
    /// NVIDIA devices, through the driver found at run time. Has no role `Device`.
    Cuda {
        /// The driver's number of the device for all silos; `None`: one silo each, in turn.
        index: Option<u32>,
        /// Most shots that one launch serves, 1..=64: more shots a second, at the latency of the last of them.
        batch_shots: u32,
    },
}

impl Profile {
    /// Device workers of each silo: none without a device.
    pub fn device_workers(&self) -> u32 {
        if self.device == Device::None { 0 } else { self.workers }
    }

    /// The device of a machine without a GPU: none, or a simulated one where the faults need one.
    pub fn device_without_gpu(&self) -> Device {
        if self.faults.need_device() { Device::Sim { latency: Latency::None } } else { Device::None }
    }
}

impl Faults {
    /// Whether it has faults of launches, or of the role that runs them.
    pub fn need_device(&self) -> bool {
        let per_launch = [self.not_started, self.unknown, self.never_ready, self.late_ready, self.inside_launch];
        let mut of_role = [self.role_panic, self.role_allocation].into_iter().flatten();
        per_launch.iter().any(|probability| *probability > 0.0)
            || self.lose_device_every.is_some()
            || of_role.any(|fault| fault.role == RoleKind::Device)
    }
}

impl Device {
    /// Whether a silo with this device has a thread's role `kind`.
    pub const fn has_role(&self, kind: RoleKind) -> bool {
        !matches!((self, kind), (Self::None | Self::Cuda { .. }, RoleKind::Device))
    }
}

/// A distribution of times, µs; every time in it is at most one second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Latency {
    /// Ready at the device's next frame.
    None,
    /// Always the same.
    Fixed {
        /// The time, µs, 0..=1000000.
        us: f64,
    },
    /// Evenly between two times.
    Uniform {
        /// The least, µs, 0..=1000000.
        min_us: f64,
        /// The greatest, µs, `min_us`..=1000000.
        max_us: f64,
    },
    /// A long tail: the exponential of a normal.
    LogNormal {
        /// The median, µs, above 0, at most 1000000.
        median_us: f64,
        /// The standard deviation of the logarithm, 0..=3.
        sigma: f64,
    },
}

/// Deadlines, and the times after which an answer is late or a thread stalled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// From launch until a worker is quarantined, µs, 1..=60000000.
    pub launch_deadline_us: u32,
    /// From write until a shot is answered with an error, µs, `launch_deadline_us`..=60000000.
    pub shot_deadline_us: u32,
    /// From scheduled arrival until an answer counts as late, µs, 1..=60000000.
    pub late_us: u32,
    /// Longest drain before the unanswered shots are answered with an error, s, 1..=3600.
    pub drain_grace_s: u32,
    /// A heartbeat older than this is a stall, ms, 1..=10000.
    pub heartbeat_ms: u32,
}

/// Source and rate of the shots.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Source of the shots, unless the command line names files.
    pub source: Source,
    /// Logical qubits, 1..=1024, divided among the silos.
    pub streams: u32,
    /// Arrivals of all streams together; with a live source the senders determine them.
    pub rate: Rate,
    /// Relative rate of each stream's shots. With a live source the senders determine the rates,
    /// and placement uses these weights for streams that have not sent yet.
    pub weights: Weights,
    /// A map from measurements to detectors and observables, for shots that come as measurements; `None`: they come as
    /// detection events.
    pub m2d: Option<String>,
    /// Each silo's streams, two and two, are measured together after every so many shots, 10..=1000000; `None`: never.
    pub joint_every: Option<u32>,
    /// From one round of a shot to the next, ns, 100..=1000000000; needs `window`. `None`: shots
    /// arrive whole. With a live source, rounds arrive when its senders send them, and windows
    /// start then.
    pub round_ns: Option<u32>,
    /// Whether to watch for single errors that become more or less frequent than the model says, on a
    /// thread that no shot waits for. It counts at most about 100,000 shots a second.
    pub watch_drift: bool,
}

/// Source of the shots, unless the command line names files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Source {
    /// Shots drawn from a detector error model.
    Sampler {
        /// The name of a bundled model (`surface_d5`, `surface_d3`), also with its rounds of
        /// measurement (`surface_d5@r50`), or the path of a `.dem` file.
        model: String,
        /// The seed of the draws.
        seed: u64,
    },
    /// Datagrams over UDP.
    Udp {
        /// Address and port to listen on: `127.0.0.1:7000`. An address other than loopback needs
        /// `allow`.
        address: String,
        /// Addresses or networks whose datagrams are accepted, at most 64; empty: this machine's.
        allow: Vec<String>,
        /// The model of the shots, as for the sampler.
        model: String,
    },
    /// The protocol of CUDA-Q's decoding server, over UDP. Each stream is a decoder.
    Cudaq {
        /// Address and port to listen on: `127.0.0.1:7000`. With port 0 each decoder has a port of
        /// its own, which the system chooses. An address other than loopback needs `allow`.
        address: String,
        /// Addresses or networks whose calls are accepted, at most 64; empty: this machine's.
        allow: Vec<String>,
        /// CUDA-Q's configuration of the decoders, a path that ends in `.yaml` or `.yml`. Or a
        /// model, as for the sampler: then decoders have the numbers of the streams, and measurements
        /// are detection events, or what `m2d` maps to them.
        config: String,
        /// Most bytes of a datagram, 57..=65507; CUDA-Q's ends have 256.
        slot_size: u32,
    },
    /// Datagrams through a socket in the file system, of this user only.
    Unix {
        /// Its path.
        path: String,
        /// The model of the shots, as for the sampler.
        model: String,
    },
    /// A region of shared memory that another process writes shots into and reads answers from.
    Shm {
        /// Its name, 1..=32 letters, digits, `-` and `_`.
        name: String,
        /// The group whose users may map it beside the engine's own; `None`: no other user.
        group: Option<String>,
        /// The model of the shots, as for the sampler.
        model: String,
    },
}

impl Source {
    /// The model of the shots: a bundled one's name or a path.
    pub fn model(&self) -> &str {
        match self {
            Self::Sampler { model, .. }
            | Self::Udp { model, .. }
            | Self::Cudaq { config: model, .. }
            | Self::Unix { model, .. }
            | Self::Shm { model, .. } => model,
        }
    }

    /// The model's name or path, for changing it.
    pub fn model_mut(&mut self) -> &mut String {
        match self {
            Self::Sampler { model, .. }
            | Self::Udp { model, .. }
            | Self::Cudaq { config: model, .. }
            | Self::Unix { model, .. }
            | Self::Shm { model, .. } => model,
        }
    }

    /// Whether shots come from other processes while the engine runs.
    pub const fn is_live(&self) -> bool {
        !matches!(self, Self::Sampler { .. })
    }
}

/// Arrivals of all streams together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Rate {
    /// Half the capacity measured in Warmup.
    Auto,
    /// As fast as the rx ring takes them.
    Max,
    /// Shots per second, above 0, at most 1e9.
    Hz(f64),
}

impl std::fmt::Display for Rate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Rate::Auto => f.write_str("auto"),
            Rate::Max => f.write_str("max"),
            Rate::Hz(hz) => write!(f, "{hz}/s"),
        }
    }
}

/// Injected faults, drawn from one seed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Faults {
    /// The seed of the draws.
    pub seed: u64,
    /// Probability per launch that it fails and the worker did not start, 0..=1.
    pub not_started: f64,
    /// Probability per launch that it fails with an unknown result, 0..=1.
    pub unknown: f64,
    /// Probability per launch that the ready flag never comes, 0..=1.
    pub never_ready: f64,
    /// Probability per launch that the ready flag comes `late_by_us` after its time, 0..=1.
    pub late_ready: f64,
    /// Probability per launch that it completes before the launch call returns, 0..=1. The five are exclusive: their
    /// sum is at most 1.
    pub inside_launch: f64,
    /// How much later a late ready flag comes, µs, 0..=60000000.
    pub late_by_us: u32,
    /// The device is lost at every this many launches, 1 or more; `None`: never.
    pub lose_device_every: Option<u64>,
    /// From losing the device until it can be opened again, ms, 0..=60000.
    pub recover_after_ms: u32,
    /// Probability per decode that it panics, 0..=1.
    pub decoder_panic: f64,
    /// Probability per shot that its payload address is bad, 0..=1.
    pub bad_address: f64,
    /// A role of silo 0 that panics, to test the engine's orderly end; `None`: none.
    pub role_panic: Option<RoleFault>,
    /// A role of silo 0 that calls the allocator once, to test the allocation guard; `None`: none.
    pub role_allocation: Option<RoleFault>,
}

/// An injected fault of a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoleFault {
    /// The role; of several decode workers, the first.
    pub role: RoleKind,
    /// Number of items in Live after which the fault occurs.
    pub after_items: u64,
}

/// Reaction to a hot thread's call of the allocator in Live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum HotAllocations {
    /// The call is counted, and the place of the first one is shown.
    Count,
    /// The call ends the process and its place is reported: for finding such calls, not for
    /// production runs.
    Abort,
}

/// Behaviour of a start on a machine that is not set up for hot threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Environment {
    /// Reports deviations, and starts.
    Advise,
    /// Refuses the start if a row of the environment check fails, or if the processor's counter cannot be the clock.
    Strict,
}

/// The scheduling priority of hot threads. A priority that is not permitted is reported, and the
/// run continues without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Priority {
    /// The priority of the process.
    Normal,
    /// A nice value, -20..=19: below 0 before other programs, above it behind them.
    Nice(i32),
    /// Real time, 1..=50, for threads on cores of their own: no other thread runs there while they
    /// spin. Never under `Shared`.
    Fifo(u32),
}

impl Priority {
    /// One word, never 0.
    pub const fn pack(self) -> u64 {
        let (kind, level) = match self {
            Self::Normal => (1, 0),
            Self::Nice(nice) => (2, nice.cast_unsigned()),
            Self::Fifo(level) => (3, level),
        };
        (level as u64) << 8 | kind
    }

    /// Inverse of [`Priority::pack`]; `None` for a word that it does not write.
    pub const fn unpack(word: u64) -> Option<Self> {
        #[expect(clippy::cast_possible_truncation, reason = "the level has the 32 bits above the kind")]
        let level = (word >> 8) as u32;
        match word & 0xff {
            1 => Some(Self::Normal),
            2 => Some(Self::Nice(level.cast_signed())),
            3 => Some(Self::Fifo(level)),
            _ => None,
        }
    }
}

impl std::fmt::Display for Priority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Normal => f.write_str("normal"),
            Self::Nice(nice) => write!(f, "nice {nice}"),
            Self::Fifo(level) => write!(f, "fifo {level}"),
        }
    }
}

/// When the engine yields its cores: it then runs `Lab` instead of `Prod`, at normal priority,
/// reports for whom, and returns when no other thread waits any more; at most one change a minute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Courtesy {
    /// Wait of another user's thread for a hot core that triggers it, ms in each second, 1..=1000.
    pub wait_ms: u32,
    /// Time without a longer wait after which the engine returns, s, 1..=3600.
    pub quiet_s: u32,
}

/// Limits on the records of earlier runs, in the directory of runs: the oldest are removed first;
/// runs with critical alarms and runs made with `--keep` last; a run in progress never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptRuns {
    /// Most megabytes (of 10⁶ bytes) of all runs together, 10..=1000000.
    pub kept_mb: u32,
    /// Most runs, the one that starts included, 1..=10000.
    pub kept_runs: u32,
}

/// Colours of the console.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Theme {
    /// For a dark background.
    Dark,
    /// For a light background.
    Light,
    /// Distinguishable without telling red from green.
    ColourBlind,
    /// No colours: bold, dim, reverse.
    Mono,
}

/// Behaviour of the engine when its terminal is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnHangup {
    /// Continues without a console; one can be attached later.
    Detach,
    /// Drains and ends.
    Drain,
}
