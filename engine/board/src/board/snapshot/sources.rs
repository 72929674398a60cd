//! Live sources in a snapshot.

use crate::streams::DecoderState;
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

/// A decoder as the clients of CUDA-Q's protocol see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SourceDecoder {
    /// Its number there.
    pub number: i64,
    /// Its port.
    pub port: u16,
    /// Its state.
    pub state: DecoderState,
    /// Calls of enqueue_syndromes.
    pub enqueues: u64,
    /// Calls of get_corrections.
    pub gets: u64,
    /// Calls of reset_decoder.
    pub resets: u64,
    /// Replies with status OK.
    pub ok: u64,
    /// Replies with status BAD_REQUEST.
    pub bad_request: u64,
    /// Replies with status INTERNAL_ERROR.
    pub internal_error: u64,
    /// Replies with status NOT_READY.
    pub not_ready: u64,
    /// The last caller, by its place among the senders.
    pub caller: Option<u32>,
}
