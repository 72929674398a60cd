//! The arbiter in a snapshot: page grants, leases and transitions.

use pinwheel_edge::page::{Cause, Hint};
use serde::Serialize;

/// One port: a silo that sends requests to this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PortView {
    /// The requesting silo.
    pub silo: u8,
    /// Grants to this port.
    pub wins: u64,
    /// Refusals to this port.
    pub refusals: u64,
    /// Refusals since the last grant, by which its rank has grown.
    pub age: u64,
}

/// One open grant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TransferView {
    /// Number of the page.
    pub page: u32,
    /// Silo that it was granted to.
    pub receiver: u8,
    /// Epoch of the grant.
    pub epoch: u32,
    /// Time since the grant.
    pub age_ns: u64,
    /// CANCELs sent for it.
    pub cancels: u64,
    /// What to do, if it is in doubt.
    pub remedy: Option<String>,
}

/// One lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LeaseView {
    /// Number of the page.
    pub page: u32,
    /// Purpose of the lease.
    pub hint: Hint,
    /// Time left; 0: the lease has ended, and no silo has requested the page since.
    pub left_ns: u64,
}

/// One transition of a page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TransitionView {
    /// When, nanoseconds since start.
    pub at_ns: u64,
    /// Cause of the transition.
    pub cause: Cause,
    /// State after it.
    pub state: &'static str,
    /// Owner, receiver or last known owner after it.
    pub owner: u8,
    /// Epoch after it.
    pub epoch: u32,
}
