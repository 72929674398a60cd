//! The snapshot of the engine, from which console, `--json` and report are made.
//!
//! Owns plain data only: one reader copies the board's words at one moment. All times are
//! nanoseconds. Ages are measured at the moment of reading. Views of a single block are declared
//! with it, in `layout`; this module has the views made of several blocks, and the rows within a
//! view.

mod alarms;
pub(in crate::board) mod arbiter;
pub(in crate::board) mod clock;
pub(in crate::board) mod control;
mod decoders;
mod drift;
pub(in crate::board) mod graph;
pub(in crate::board) mod moves;
pub(in crate::board) mod noise;
pub(in crate::board) mod placement;
pub(in crate::board) mod sources;
pub(in crate::board) mod threads;

pub use super::layout::{
    ArbiterView, ClockView, ControlView, Counters, EngineView, FaultView, GpuView, GraphView, GraphWorkerView,
    InputHealthView, LifecycleView, LogView, MovesView, OverflowView, PlacementView, RecorderView, RoleView,
    ShadowView, SiloDepthView, SourcePeer, SourceStream, SourceView, StreamView, ThreadView,
};
pub use alarms::{AlarmView, Consequence, IncidentRoot, IncidentView};
pub use arbiter::{LeaseView, PortView, TransferView, TransitionView};
pub use clock::{PairView, StepView};
pub use control::{ActionView, HeldFeedView, RevertView};
pub use decoders::DecoderShots;
pub use drift::{DriftView, drift_sentence};
pub use graph::{FlushesView, HeldView, OldestView, ReadyView, RunningView, WaitsOn};
pub use moves::{MoveFailure, MoveView};
pub use noise::{MEND_STEAL, NoiseShares, NoiseView, OWN, mend_tasks};
pub use pinwheel_edge::slot::workers::WorkerState;
pub use placement::{CandidateView, CrossingView, DecisionView, OutcomeCount, QueueView};
pub use sources::{SourceClient, SourceDecoder, SourceState};
pub use threads::{CompetitorView, MemoryView, PriorityView};

use super::histogram::Histogram;
use serde::Serialize;

/// The engine at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct Snapshot {
    /// Nanoseconds since the engine's start.
    pub at_ns: u64,
    /// Process, profile, input, from the board's header.
    pub engine: EngineView,
    /// One entry per hot thread, in plan order.
    pub threads: Vec<ThreadView>,
    /// One entry per silo.
    pub silos: Vec<SiloView>,
    /// One entry per stream, by id.
    pub streams: Vec<StreamView>,
    /// Distinct faults, in order of first occurrence.
    pub faults: Vec<FaultView>,
    /// Engine clock, and how it agrees with the system's clocks.
    pub clock: ClockView,
    /// Event counts of the log.
    pub log: LogView,
    /// Alarms of this run: active ones first, then by severity, then the newest first.
    pub alarms: Vec<AlarmView>,
    /// The alarms by their causes, in the same order.
    pub incidents: Vec<IncidentView>,
    /// State of the flight recorder.
    pub recorder: RecorderView,
    /// Live sources of shots; empty if shots come from a sampler or a file.
    pub sources: Vec<SourceView>,
    /// Control of the engine: held feed, actions, control socket.
    pub control: ControlView,
    /// The director of placement; `None`: none runs.
    pub placement: Option<PlacementView>,
    /// The shadow; `None`: there has been none.
    pub shadow: Option<ShadowView>,
}

impl SiloView {
    /// Whether shots pass a device before they are decoded.
    pub fn has_device(&self) -> bool {
        !self.workers.is_empty()
    }
}

impl Snapshot {
    /// The counters of all silos together.
    pub fn totals(&self) -> Counters {
        let mut totals = Counters::default();
        self.silos.iter().for_each(|silo| totals.add(&silo.counters));
        totals
    }
}

/// One silo.
#[derive(Clone, Debug, Serialize)]
pub struct SiloView {
    /// Number of the silo.
    pub id: u32,
    /// Whether its device takes launches.
    pub device: DeviceState,
    /// Counters of the path.
    pub counters: Counters,
    /// Errors answered, by code; only codes that occurred.
    pub errors: Vec<ErrorCount>,
    /// Its queues between stages.
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
    /// From a timer's deadline to the poll in which it expired.
    pub timer_lateness: Histogram,
    /// The graph that decode workers run.
    pub graph: GraphView,
    /// Page ownership and transfers; `None`: no arbiter runs here.
    pub arbiter: Option<ArbiterView>,
    /// Moves of the streams that come from its feed; `None`: there is one silo.
    pub moves: Option<MovesView>,
    /// Its GPU; `None` for the simulated device.
    pub gpu: Option<GpuView>,
    /// Shots that found no slot.
    pub overflow: OverflowView,
    /// State and restarts.
    pub lifecycle: LifecycleView,
}

/// Whether the device takes launches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum DeviceState {
    /// Taking launches.
    Online,
    /// All workers quarantined; shots go to the CPU predecoder.
    Lost,
    /// A cold thread is recovering the device.
    Recovering,
}

/// Answers with one error code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ErrorCount {
    /// Code in the error word.
    pub code: u16,
    /// Name of the error code.
    pub name: String,
    /// Answers with this code.
    pub count: u64,
}

/// One queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RingView {
    /// Name ("rx", "ready", "lanes", "tx", "answers").
    pub name: String,
    /// Entries it can hold.
    pub capacity: u64,
    /// Entries in it.
    pub depth: u64,
    /// Entries put in since the start.
    pub pushed: u64,
    /// Times it was full.
    pub refusals: u64,
    /// For a ring with several readers: entries that each has not read yet; `None` once it has
    /// detached.
    pub lags: Vec<Option<u64>>,
}

/// One device worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct WorkerView {
    /// State in the worker's word.
    pub state: WorkerState,
    /// Number of its last launch, in the worker's word.
    pub generation: u64,
    /// Time in this state.
    pub since_ns: u64,
    /// Slot whose shot it runs; meaningless when free.
    pub slot: u32,
    /// Launches of this worker since the start.
    pub launches: u64,
}

/// One slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SlotView {
    /// Progress of the shot in it.
    pub state: SlotState,
    /// Time in this state.
    pub since_ns: u64,
    /// Stream of the shot last written.
    pub stream: u32,
    /// Sequence number of that shot.
    pub sequence: u64,
    /// Worker that ran the shot; `None` before dispatch, or on the CPU path.
    pub worker: Option<u8>,
    /// Times of the steps of the shot last written, nanoseconds since start; 0 = not yet.
    pub times: SlotTimes,
}

/// Times of the steps of the shot last written into a slot, nanoseconds since start; 0 = not yet.
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
    /// When its decode began.
    pub decoding_ns: u64,
    /// When it was answered.
    pub answered_ns: u64,
    /// When its answer was harvested.
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
    /// Distribution of the time spent in it.
    pub time: Histogram,
}
