//! Control of the engine in a snapshot.

use serde::Serialize;

/// A held feed, which takes no shot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HeldFeedView {
    /// Time for which it has been held.
    pub for_ns: u64,
    /// Who holds it, and why.
    pub by: String,
}

/// A pending revert to an earlier profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RevertView {
    /// Name of the profile.
    pub to: String,
    /// Time until the revert.
    pub in_ns: u64,
}

/// An action on the engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ActionView {
    /// The action, and who took it.
    pub what: String,
    /// Time of the action, nanoseconds since the engine's start.
    pub at_ns: u64,
}
