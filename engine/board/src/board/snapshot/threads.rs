//! Hot threads in a snapshot.

use serde::Serialize;

/// Memory of one hot thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MemoryView {
    /// Calls of the allocator in Live; `None`: not visible, the program's allocator does not count.
    pub allocations: Option<u64>,
    /// Calls in Live that the thread's own reserve served.
    pub lent: u64,
    /// Caller of the first of these calls.
    pub first_site: Option<String>,
    /// Bytes of its arena, touched before Live.
    pub touched_bytes: u64,
    /// Of these, locked in memory.
    pub locked_bytes: u64,
}

/// A thread's scheduling priority.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PriorityView {
    /// Priority by the profile, as in "normal", "nice -5", "fifo 10".
    pub asked: String,
    /// Priority read back since it was last set; `None`: not visible.
    pub found: Option<String>,
    /// Why it differs from the requested one, if so.
    pub why_not: Option<String>,
}

/// A foreign thread that competed for a hot thread's core.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CompetitorView {
    /// Process that the thread belongs to.
    pub pid: u32,
    /// User of the process; empty: not visible.
    pub user: String,
    /// Name of the thread.
    pub command: String,
    /// Time that it was ready but did not run, between two samples.
    pub waited_ns: u64,
    /// Time that it ran between them.
    pub ran_ns: u64,
    /// Time between the two samples.
    pub span_ns: u64,
    /// Time since the second sample.
    pub age_ns: u64,
    /// Samples so far that found a competitor.
    pub samples: u64,
}
