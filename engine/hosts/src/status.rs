//! The hosts as one of them sees them: for the command line and JSON.
//!
//! Plain data.

use crate::description::Load;
use crate::incoming::Counts;
use crate::membership::State;
use serde::{Deserialize, Serialize};

/// Round trip of a question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trip {
    /// Median, nanoseconds.
    pub p50: u64,
    /// 99th percentile, nanoseconds.
    pub p99: u64,
}

/// One host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostRow {
    /// Its name.
    pub name: String,
    /// Whether it is the host that says this.
    pub is_self: bool,
    /// Its state.
    pub state: State,
    /// Why it is given no shots; `None`: it may be. Of this host: what is wrong with it.
    pub why_not: Option<String>,
    /// Version of its program; empty before its first description.
    pub version: String,
    /// Streams with senders at it.
    pub own: u32,
    /// Streams that it decodes, own ones and others'.
    pub streams: u32,
    /// Its load, as it said it last.
    pub load: Load,
    /// Time since it was last heard of, nanoseconds.
    pub heard_ns: u64,
    /// Round trip of a question to it; `None`: to itself, or not measured yet.
    pub link_ns: Option<Trip>,
    /// Times that it was gone.
    pub losses: u64,
    /// Own streams that it decodes, by number.
    pub given: Vec<u32>,
    /// Shots that this host gave it and that it answered.
    pub answered: u64,
    /// Shots that this host gave it and took back.
    pub taken_back: u64,
    /// What it sent here.
    pub sent: Counts,
}

/// All hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Name of the cluster.
    pub cluster: String,
    /// This host first, then the others by name.
    pub hosts: Vec<HostRow>,
}
