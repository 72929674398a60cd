//! The task graph of one silo's decode pool in a snapshot.

use serde::Serialize;

/// Ready tasks of one pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReadyView {
    /// Name of the pool.
    pub pool: &'static str,
    /// Tasks in its queues.
    pub depth: u64,
    /// Tasks that one queue holds at most.
    pub capacity: u64,
}

/// Batches by the reason for resolving them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FlushesView {
    /// The batch was full.
    pub full: u64,
    /// Its first completion had waited too long.
    pub late: u64,
    /// The worker had no other work.
    pub idle: u64,
    /// The worker's turn ended.
    pub turn: u64,
}

/// A running task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunningView {
    /// Number of the task.
    pub id: u64,
    /// Name of its kernel.
    pub kernel: &'static str,
    /// Stream that it works for.
    pub stream: u32,
    /// Time since it began.
    pub age_ns: u64,
}

/// The oldest unfinished task, and what it waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OldestView {
    /// Number of the task.
    pub id: u64,
    /// Name of its kernel.
    pub kernel: &'static str,
    /// Stream that it works for.
    pub stream: u32,
    /// Time since it was first seen to be the oldest.
    pub age_ns: u64,
    /// What it waits for.
    pub waits_on: WaitsOn,
    /// The worker that runs it.
    pub worker: Option<u32>,
}

/// What a task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum WaitsOn {
    /// A worker to begin or to end it.
    Worker,
    /// Unfinished predecessors, by number.
    Predecessors(u64),
    /// A permit; all permits, by number, are in use.
    Permit(u64),
}

/// A stream whose next sequence number is missing while later shots wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HeldView {
    /// Number of the stream.
    pub stream: u32,
    /// The missing sequence number.
    pub sequence: u64,
    /// Time that it has waited.
    pub age_ns: u64,
}
