//! The one picture of the engine that console, `--json` and report are made from.
//!
//! Owns plain data only: a snapshot is a copy taken from the board's words at one moment by one reader. All times are
//! nanoseconds; ages are measured at the moment of the reading, so they never look fresher than they are.
//!
//! Longer than 500 lines, because it is the schema of `--json`'s live sections, read from top to bottom.

mod alarms;
mod arbiter;
mod control;
mod graph;
mod lives;
mod moves;
mod placement;
mod sources;
mod threads;

pub use alarms::AlarmView;
pub use arbiter::{ArbiterView, HintName, LeaseView, PageCause, PortView, TransferView, TransitionView};
pub use control::{ActionView, ControlView, HeldFeedView, RevertView};
pub use graph::{FlushesView, GraphView, GraphWorkerView, HeldView, OldestView, ReadyView, RunningView, WaitsOn};
pub use lives::{LifeView, SiloState};
pub use moves::{MoveFailure, MoveStage, MoveView, MovesView};
pub use placement::{
    CandidateView, CrossingView, DecisionView, OutcomeCount, OverflowOutcome, OverflowView, PlacementView, QueueView,
    SiloDepthView,
};
pub use sources::{SourceClient, SourceKind, SourcePeer, SourceState, SourceStream, SourceView};
pub use threads::{MemoryView, PriorityView, RivalView, RoleView, ThreadState, ThreadView};

use super::histogram::Histogram;
use pinwheel_edge::spin::{Phase, SpinPolicy};
use serde::Serialize;

/// The engine at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct Snapshot {
    /// Nanoseconds since the engine's start.
    pub at_ns: u64,
    /// Process, profile, input: what the header says.
    pub engine: EngineView,
    /// One entry per hot thread, in plan order.
    pub threads: Vec<ThreadView>,
    /// One entry per silo.
    pub silos: Vec<SiloView>,
    /// One entry per stream, by id.
    pub streams: Vec<StreamView>,
    /// Distinct faults, in order of first occurrence.
    pub faults: Vec<FaultView>,
    /// What tells the time, and how it agrees with the system's clocks.
    pub clock: ClockView,
    /// What became of the events.
    pub log: LogView,
    /// The alarms of this run: active ones first, then the worst, then the newest.
    pub alarms: Vec<AlarmView>,
    /// What the flight recorder does.
    pub recorder: RecorderView,
    /// Live sources of shots; none where they are drawn or come from a file.
    pub sources: Vec<SourceView>,
    /// Who may act on it, and what was done.
    pub control: ControlView,
    /// The director of placement; `None`: none runs.
    pub placement: Option<PlacementView>,
}

/// What runs, and on what.
#[derive(Clone, Debug, Serialize)]
pub struct EngineView {
    /// Process id.
    pub pid: u32,
    /// Version of this program.
    pub version: String,
    /// Phase that all threads read.
    pub phase: Phase,
    /// Start of the process's engine, seconds since 1970.
    pub started_utc_s: u64,
    /// Profile in force.
    pub profile: String,
    /// The operator's own words for this run; may be empty.
    pub label: String,
    /// Input in words ("sampler surface_d5", "shots.b8").
    pub input: String,
    /// Device in words ("sim").
    pub device: String,
    /// Matcher in words.
    pub decoder: String,
    /// Predecoder in words.
    pub predecoder: String,
    /// Width of a shot.
    pub detectors: u32,
    /// Observables of the model.
    pub observables: u32,
    /// Scheduled rate over all silos in shots per second; `None` is as fast as slots come free.
    pub rate_hz: Option<f64>,
    /// How the rate came about ("half of the 41 kHz measured in warm-up", "--rate", "profile").
    pub rate_origin: String,
    /// Answers after this long from their scheduled arrival are late.
    pub late_ns: u64,
    /// Heartbeat older than this is a stall.
    pub heartbeat_limit_ns: u64,
    /// Spin policy asked for by the profile in force.
    pub spin_requested: SpinPolicy,
    /// Epoch of that request.
    pub spin_epoch_requested: u64,
    /// Where the board lives; `None`: private memory, nobody else can attach.
    pub board_path: Option<String>,
    /// Bytes of the silos' memory (rings, slots, jobs), touched before Live.
    pub silo_memory_bytes: u64,
    /// Of these, locked in memory.
    pub silo_memory_locked_bytes: u64,
    /// Things said once at start (folded plan, no permission to pin, no `/dev/shm`).
    pub notes: Vec<String>,
}

/// One silo.
#[derive(Clone, Debug, Serialize)]
pub struct SiloView {
    /// Number.
    pub id: u32,
    /// Device state.
    pub device: DeviceState,
    /// Counters of the path.
    pub counters: Counters,
    /// Errors answered, by code; only codes that occurred.
    pub errors: Vec<ErrorCount>,
    /// Named queues.
    pub rings: Vec<RingView>,
    /// Idle mask: bit set = worker free.
    pub idle_mask: u64,
    /// Workers by number.
    pub workers: Vec<WorkerView>,
    /// Slots by number.
    pub slots: Vec<SlotView>,
    /// Time in each stage, in path order; they add up to the latency.
    pub stages: Vec<StageView>,
    /// From scheduled arrival to harvest.
    pub latency: Histogram,
    /// From submission to harvest.
    pub latency_from_submit: Histogram,
    /// From the deadline of a timer to the frame that found it expired.
    pub timer_lateness: Histogram,
    /// The graph that decode workers run.
    pub graph: GraphView,
    /// Who may write which page; `None`: no arbiter runs here.
    pub arbiter: Option<ArbiterView>,
    /// Moves of the streams that come from its feed; `None`: there is one silo.
    pub moves: Option<MovesView>,
    /// Its GPU; `None` for the stand-in.
    pub gpu: Option<GpuView>,
    /// Shots that found no slot.
    pub overflow: OverflowView,
    /// How it lives.
    pub life: LifeView,
}

/// A silo's GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GpuView {
    /// Launch calls in Live.
    pub launches: u64,
    /// Of all launch calls: answered with an error.
    pub launch_errors: u64,
    /// The driver's code for the last error; 0: none.
    pub error_code: u64,
    /// What a launch call took.
    pub launch_ns: Histogram,
    /// From a graph's start to its end by the device's events, sampled ten times a second.
    pub graph_ns: Histogram,
    /// From a graph's end to poll's claim, sampled.
    pub completion_to_claim_ns: Histogram,
    /// What these times may all be wrong by: half of what the offset of the two clocks is known to.
    pub completion_to_claim_error_ns: u64,
    /// Contexts made anew after a loss.
    pub renewals: u64,
    /// Attempts at that which failed.
    pub renewals_failed: u64,
    /// Free memory of the device; `None`: not visible yet.
    pub memory_free_bytes: Option<u64>,
    /// All memory of the device; `None`: not visible yet.
    pub memory_total_bytes: Option<u64>,
    /// Clock of the multiprocessors; `None`: not visible.
    pub clock_sm_mhz: Option<u64>,
    /// Clock of the memory; `None`: not visible.
    pub clock_memory_mhz: Option<u64>,
}

/// Whether the device takes launches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum DeviceState {
    /// Taking launches.
    Online,
    /// All workers quarantined; shots go to the CPU predecoder.
    Lost,
    /// A cold thread is bringing it back.
    Recovering,
}

/// Monotonic counts of one silo.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Shots whose scheduled time has come (submitted + backlog).
    pub scheduled: u64,
    /// Shots taken from the source: into a slot, or on to the silo that decodes their stream.
    pub submitted: u64,
    /// Shots that dispatch took from slots.
    pub dispatched: u64,
    /// Launches that the device accepted.
    pub launched: u64,
    /// Completions that poll claimed.
    pub completed: u64,
    /// Shots whose decode began.
    pub decoding: u64,
    /// Answers harvested, errors included.
    pub answered: u64,
    /// Answers that carry an error word.
    pub errored: u64,
    /// Answers after their deadline.
    pub late: u64,
    /// Answers whose sequence number had been answered before.
    pub duplicated: u64,
    /// Answers that overtook an earlier shot of their stream.
    pub out_of_order: u64,
    /// Completions of jobs whose ticket was closed already.
    pub late_completions: u64,
    /// Answerers that lost the claim of a ticket.
    pub claims_lost: u64,
    /// Workers put into quarantine.
    pub quarantined: u64,
    /// Times the device was declared lost.
    pub device_losses: u64,
    /// Shots predecoded on the CPU because the device was lost.
    pub cpu_fallbacks: u64,
    /// Shots that came by rounds, and passed the device.
    pub by_rounds: u64,
    /// Dispatch attempts that found every worker busy.
    pub worker_waits: u64,
    /// Feed attempts that found the next slot taken.
    pub slot_waits: u64,
    /// Answers that could be judged against a true observable.
    pub shots_with_observables: u64,
    /// Of these, wrong ones.
    pub logical_errors: u64,
    /// Detection events removed by the predecoder.
    pub predecoded_events: u64,
    /// Ticks of work in dispatch per dispatched shot, summed, in nanoseconds.
    pub dispatch_ns: u64,
    /// Joint readouts of two streams.
    pub joint_read: u64,
    /// Of these: what the answers of both streams say.
    pub joint_consistent: u64,
    /// Joint readouts that were given up.
    pub joint_refused: u64,
}

/// Answers with one error code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ErrorCount {
    /// Code in the error word.
    pub code: u16,
    /// Its name.
    pub name: String,
    /// How often.
    pub count: u64,
}

/// One queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RingView {
    /// Name ("rx", "ready", "tx", "answers").
    pub name: String,
    /// Entries it can hold.
    pub capacity: u64,
    /// Entries in it.
    pub depth: u64,
    /// Entries ever put in.
    pub pushed: u64,
    /// Times it was full.
    pub refusals: u64,
    /// Of a ring with several readers: how many entries each has not read yet; `None` once it has left.
    pub lags: Vec<Option<u64>>,
}

/// One device worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct WorkerView {
    /// State by its own word.
    pub state: WorkerState,
    /// Launch generation.
    pub generation: u64,
    /// Time in this state.
    pub since_ns: u64,
    /// Slot whose shot it runs; meaningless when free.
    pub slot: u32,
    /// Launches ever.
    pub launches: u64,
}

/// A worker's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum WorkerState {
    /// Takes the next launch.
    Free,
    /// On the device.
    Running,
    /// Finished, its output being taken (or, with `AfterDecode`, decoded).
    Claimed,
    /// Overdue or launched with an unknown result; not used until it returns.
    Quarantined,
}

/// One slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SlotView {
    /// Where the shot in it is.
    pub state: SlotState,
    /// Time in this state.
    pub since_ns: u64,
    /// Stream of the shot last written.
    pub stream: u32,
    /// Sequence number of that shot.
    pub sequence: u64,
    /// Worker that got it; `None` before dispatch, or on the CPU path.
    pub worker: Option<u8>,
    /// When each step of the shot last written happened, nanoseconds since start; 0 = not yet.
    pub times: SlotTimes,
}

/// Steps in the life of the shot last written into a slot, nanoseconds since start; 0 = not yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SlotTimes {
    /// Its scheduled arrival.
    pub scheduled_ns: u64,
    /// Written into the slot.
    pub submitted_ns: u64,
    /// Taken by dispatch.
    pub dispatched_ns: u64,
    /// Output claimed by poll.
    pub completed_ns: u64,
    /// Decode began.
    pub decoding_ns: u64,
    /// Answered.
    pub answered_ns: u64,
    /// Harvested.
    pub harvested_ns: u64,
}

/// A slot's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum SlotState {
    /// Free for the feed.
    Idle,
    /// Written, not yet dispatched.
    Written,
    /// Dispatched, not yet answered.
    InFlight,
    /// Answered, not yet harvested.
    Completed,
}

/// Time spent in one stage.
#[derive(Clone, Debug, Serialize)]
pub struct StageView {
    /// Name: `feed dispatch device queue decode harvest`.
    pub name: &'static str,
    /// Its distribution.
    pub time: Histogram,
}

/// One stream.
#[derive(Clone, Debug, Serialize)]
pub struct StreamView {
    /// Number.
    pub id: u32,
    /// Silo that owns it.
    pub silo: u32,
    /// Answers harvested.
    pub answered: u64,
    /// Of these, with an error word.
    pub errors: u64,
    /// Of these, late.
    pub late: u64,
    /// Judged answers.
    pub shots_with_observables: u64,
    /// Wrong ones.
    pub logical_errors: u64,
    /// Its Pauli frame: bit by bit the parity of the first 64 observables over its answers; errors leave it.
    pub frame: u64,
    /// From scheduled arrival to harvest.
    pub latency: Histogram,
    /// What its detection events look like against the model.
    pub input_health: InputHealthView,
    /// Its shots that found no slot, by outcome; only outcomes that occurred.
    pub overflow: Vec<OutcomeCount>,
}

/// Health of one stream's input.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InputHealthView {
    /// Judgement.
    pub verdict: HealthVerdict,
    /// Shots examined.
    pub shots_examined: u64,
    /// Fraction of detectors that fired.
    pub fraction_found: f64,
    /// The model's fraction.
    pub fraction_expected: f64,
    /// Detectors that fire most above the model: (detector, fraction).
    pub hottest: Vec<(u32, f64)>,
}

/// Judgement of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum HealthVerdict {
    /// Too few shots to tell.
    TooFew,
    /// As the model says.
    Good,
    /// Off, but not by much.
    Suspect,
    /// Not this model's data: wrong model, noise, or bit order.
    Bad,
}

/// One distinct fault: a code at a place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FaultView {
    /// Code.
    pub code: u16,
    /// Its name and meaning.
    pub name: String,
    /// Silo, if it belongs to one.
    pub silo: Option<u32>,
    /// How often.
    pub count: u64,
    /// First time, nanoseconds since start.
    pub first_ns: u64,
    /// Last time, nanoseconds since start.
    pub last_ns: u64,
    /// A number that goes with the last one (worker, slot, role …; its meaning is in the name).
    pub detail: u64,
}

/// What tells the time, and how it agrees with the system's clocks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClockView {
    /// What the ticks are.
    pub source: String,
    /// Why they are not the counter's, if so.
    pub degraded: Option<String>,
    /// Pairs of (ticks, monotonic, UTC) taken.
    pub pairs: u64,
    /// The newest of them; `None` before the first.
    pub pair: Option<PairView>,
    /// Times that UTC was set or took a leap second in.
    pub utc_steps: u64,
    /// The last of them.
    pub utc_step_last: Option<StepView>,
    /// Times that the counter jumped against monotonic time.
    pub counter_steps: u64,
    /// The last of them.
    pub counter_step_last: Option<StepView>,
}

/// What became of the events of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LogView {
    /// Written down.
    pub written: u64,
    /// Found no room in their thread's lane.
    pub dropped: u64,
    /// Taken and not written down: the file is full, or cannot be written.
    pub unkept: u64,
}

/// What the flight recorder does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RecorderView {
    /// Where it writes.
    pub state: RecorderState,
    /// Pictures of the whole board.
    pub frames: u64,
    /// Bytes of the recording.
    pub bytes: u64,
    /// Fast samples taken.
    pub samples: u64,
    /// Times that fast samples were kept.
    pub bursts: u64,
    /// Its longest step.
    pub step_ns_max: u64,
    /// All its steps together.
    pub step_ns: u64,
    /// Why it does not write to disk.
    pub trouble: Option<String>,
    /// The run's directory.
    pub run_dir: Option<String>,
}

/// Where the flight recorder writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RecorderState {
    /// None runs.
    #[default]
    Off,
    /// To disk.
    Disk,
    /// It keeps the last minutes in memory only.
    Memory,
    /// It has ended.
    Ended,
}

impl RecorderState {
    /// Number on the board.
    #[must_use]
    pub const fn code(self) -> u64 {
        self as u64
    }

    /// From the board; an unknown number claims nothing.
    #[must_use]
    pub const fn from_code(code: u64) -> RecorderState {
        match code {
            1 => RecorderState::Disk,
            2 => RecorderState::Memory,
            3 => RecorderState::Ended,
            _ => RecorderState::Off,
        }
    }
}

/// The same moment on three clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PairView {
    /// By the ticks, nanoseconds since start.
    pub at_ns: u64,
    /// The system's monotonic clock.
    pub monotonic_ns: u64,
    /// Since 1970.
    pub utc_ns: u64,
    /// The moment is known to half of this.
    pub width_ns: u64,
}

/// A clock that did not go on as before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StepView {
    /// Forwards if positive.
    pub by_ns: i64,
    /// When it was seen, nanoseconds since start.
    pub at_ns: u64,
}

impl HealthVerdict {
    /// Number on the board.
    #[must_use]
    pub const fn code(self) -> u64 {
        match self {
            HealthVerdict::TooFew => 0,
            HealthVerdict::Good => 1,
            HealthVerdict::Suspect => 2,
            HealthVerdict::Bad => 3,
        }
    }

    /// From the board; an unknown number claims nothing.
    #[must_use]
    pub const fn from_code(code: u64) -> HealthVerdict {
        match code {
            1 => HealthVerdict::Good,
            2 => HealthVerdict::Suspect,
            3 => HealthVerdict::Bad,
            _ => HealthVerdict::TooFew,
        }
    }
}
