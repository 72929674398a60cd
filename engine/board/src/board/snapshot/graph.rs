//! The task graph of one silo's decode pool in the picture.

use super::super::histogram::Histogram;
use serde::Serialize;

/// The graph.
#[derive(Clone, Debug, Default, Serialize)]
pub struct GraphView {
    /// The order in which ready tasks are taken.
    pub policy: String,
    /// Tasks submitted.
    pub submitted: u64,
    /// Tasks run: what tasks a second are counted from.
    pub ran: u64,
    /// Tasks retired.
    pub retired: u64,
    /// Tasks submitted and not retired, as of the last look.
    pub window_used: u64,
    /// Most of them.
    pub window_tasks: u64,
    /// Submissions that found the window full.
    pub window_stalls: u64,
    /// Ready tasks in the queue of each pool that has one.
    pub ready: Vec<ReadyView>,
    /// Permits in use.
    pub permits_used: u64,
    /// Permits; 0: there is no gate.
    pub permits: u64,
    /// Tasks set aside now for want of a permit.
    pub parked: u64,
    /// Tasks ever set aside.
    pub gate_waits: u64,
    /// Batches of completions resolved, by why.
    pub flushes: FlushesView,
    /// Sequence numbers committed.
    pub committed: u64,
    /// Of these: tombstones, for they were answered with an error.
    pub tombstones: u64,
    /// Shots under way whose rounds are still coming.
    pub arriving: u64,
    /// Shots refused for want of room in the window.
    pub refused: u64,
    /// Its workers.
    pub workers: Vec<GraphWorkerView>,
    /// What a submission cost, one in many.
    pub submit: Histogram,
    /// From submission to begin, of one task in many.
    pub wake: Histogram,
    /// What releasing those that waited cost, of one task in many.
    pub release: Histogram,
    /// Time in each window, where shots are decoded by windows.
    pub window: Histogram,
    /// The oldest task under way.
    pub oldest: Option<OldestView>,
    /// The stream that has waited longest for its turn.
    pub held: Option<HeldView>,
    /// Sequence numbers that came before their turn, of all streams.
    pub waiting: u64,
}

/// Ready tasks of one pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReadyView {
    /// Its name.
    pub pool: &'static str,
    /// Tasks in its queues.
    pub depth: u64,
    /// Most in one.
    pub capacity: u64,
}

/// Batches by why they were resolved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FlushesView {
    /// They were full.
    pub full: u64,
    /// The first of them was late.
    pub late: u64,
    /// There was nothing else to do.
    pub idle: u64,
    /// The worker's turn ended.
    pub turn: u64,
}

/// One worker of the graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GraphWorkerView {
    /// Tasks run.
    pub ran: u64,
    /// Of these, stolen.
    pub stolen: u64,
    /// Steals that found nothing, or that another thief won.
    pub steals_failed: u64,
    /// Tasks that are its own.
    pub depth: u64,
    /// What it runs now.
    pub task: Option<RunningView>,
}

/// A task that runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunningView {
    /// Its number.
    pub id: u64,
    /// What it does.
    pub kernel: &'static str,
    /// For which stream.
    pub stream: u32,
    /// For how long.
    pub age_ns: u64,
}

/// The oldest task under way, and on what it waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OldestView {
    /// Its number.
    pub id: u64,
    /// What it does.
    pub kernel: &'static str,
    /// For which stream.
    pub stream: u32,
    /// Since it was first seen to be the oldest.
    pub age_ns: u64,
    /// On what it waits.
    pub waits_on: WaitsOn,
    /// The worker that runs it.
    pub worker: Option<u32>,
}

/// On what a task waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum WaitsOn {
    /// To be taken up, or to end.
    Worker,
    /// So many tasks before it.
    Predecessors(u64),
    /// A permit, all of which are in use.
    Permit(u64),
}

/// A stream that waits for its turn: a shot of it that came before another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HeldView {
    /// The stream.
    pub stream: u32,
    /// The sequence number that it waits for.
    pub sequence: u64,
    /// Since when.
    pub age_ns: u64,
}

impl GraphView {
    /// The name of a pool's kernel, by its number.
    #[must_use]
    pub const fn kernel(number: u64) -> &'static str {
        match number & 0xffff {
            0 => "decode+commit",
            1 => "decode",
            2 => "commit",
            3 => "tombstone",
            4 => "stray",
            5 => "window",
            _ => "joint readout",
        }
    }
}
