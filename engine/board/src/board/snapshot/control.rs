//! How the engine is acted on, as a reader sees it.

use serde::Serialize;

/// Who may act, and what was done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ControlView {
    /// The socket through which the same user acts; `None`: there is none.
    pub socket: Option<String>,
    /// Clients connected to it.
    pub clients: u64,
    /// Requests answered.
    pub requests: u64,
    /// Of these: refused.
    pub refused: u64,
    /// Clients that were sent away.
    pub dropped: u64,
    /// The feed is held; `None`: it runs.
    pub held: Option<HeldFeedView>,
    /// The profile that comes back by itself; `None`: none does.
    pub revert: Option<RevertView>,
    /// Whether a lost terminal drains the engine; else it goes on without one.
    pub drains_on_hangup: bool,
    /// Things done to the engine from outside its threads.
    pub actions: u64,
    /// Of these: for which the log of events had no room.
    pub actions_unlogged: u64,
    /// The last of them.
    pub last: Option<ActionView>,
}

/// A feed that takes no shot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HeldFeedView {
    /// For how long by now.
    pub for_ns: u64,
    /// Who holds it, and why.
    pub by: String,
}

/// A profile that comes back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RevertView {
    /// Its name.
    pub to: String,
    /// Time until then.
    pub in_ns: u64,
}

/// Something that was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ActionView {
    /// What, and by whom.
    pub what: String,
    /// When, nanoseconds since the engine's start.
    pub at_ns: u64,
}
