//! Live sources in a snapshot.

use serde::Serialize;

/// Activity of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SourceState {
    /// Before Live: parts that arrive wait.
    Waiting,
    /// No part has arrived yet.
    Unused,
    /// A part arrived within the last second.
    Flowing,
    /// No part arrived within the last second, or the client's heartbeat has stopped.
    Silent,
    /// The engine accepts no more parts.
    Closed,
}

/// The client attached to a region of shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SourceClient {
    /// Its process, as the client reports it.
    pub pid: u64,
    /// Time since its heartbeat last changed.
    pub heartbeat_age_ns: u64,
    /// Clients attached since the start.
    pub attached: u64,
}
