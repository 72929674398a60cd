//! The arbiter's part of a snapshot: who may write which page, and who waits.

use crate::board::histogram::Histogram;
use serde::Serialize;

/// One silo's arbiter.
#[derive(Clone, Debug, Serialize)]
pub struct ArbiterView {
    /// Pages of its table.
    pub pages: u64,
    /// Pages by state: (name, pages), as the last round of its sweep counted them.
    pub states: Vec<(&'static str, u64)>,
    /// How long ago that round ended.
    pub counted_age_ns: u64,
    /// Decisions by response: (name, times).
    pub decisions: Vec<(&'static str, u64)>,
    /// Of those granted: moves that broke a lease at the operator's word.
    pub forced: u64,
    /// Pages that left.
    pub left: u64,
    /// Pages that arrived.
    pub arrived: u64,
    /// Grants that were cancelled: the page stayed.
    pub kept: u64,
    /// Grants that came to be in doubt.
    pub doubted: u64,
    /// CANCELs sent.
    pub cancels: u64,
    /// Pages inherited from fenced silos.
    pub inherited: u64,
    /// Of these: with a write in progress, so that their bytes cannot be used as they are.
    pub torn: u64,
    /// Requests that met a full frame and went unanswered.
    pub unheard: u64,
    /// Ports that have asked, by silo.
    pub ports: Vec<PortView>,
    /// Grants that are out.
    pub transfers_open: u64,
    /// The first of them.
    pub transfers: Vec<TransferView>,
    /// Leases that the last round of the sweep found, the first of them.
    pub leases: Vec<LeaseView>,
    /// Page whose history is shown: the one asked for, or the one in doubt for longest, or the last that moved.
    pub history_page: Option<u32>,
    /// Its last transitions, oldest first.
    pub history: Vec<TransitionView>,
    /// Time of one decision.
    pub decision: Histogram,
    /// From a grant to its acknowledgement.
    pub transfer: Histogram,
}

/// One port: a silo that asks this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PortView {
    /// The silo that asks.
    pub silo: u8,
    /// Grants.
    pub wins: u64,
    /// Refusals.
    pub refusals: u64,
    /// Refusals since the last grant: its rank has grown by so much.
    pub age: u64,
}

/// One grant that is out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TransferView {
    /// Page.
    pub page: u32,
    /// To whom.
    pub receiver: u8,
    /// In which epoch.
    pub epoch: u32,
    /// Since when.
    pub age_ns: u64,
    /// CANCELs sent.
    pub cancels: u64,
    /// What to do, if it is in doubt.
    pub remedy: Option<String>,
}

/// One lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LeaseView {
    /// Page.
    pub page: u32,
    /// What for.
    pub hint: HintName,
    /// What is left of it; 0: it is over, and nobody has asked since.
    pub left_ns: u64,
}

/// A hint in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum HintName {
    /// A write.
    Default,
    /// A short lease.
    Lock,
    /// A lease.
    Lease,
    /// To keep it.
    Migrate,
}

/// One transition of a page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TransitionView {
    /// When, nanoseconds since start.
    pub at_ns: u64,
    /// Why.
    pub cause: PageCause,
    /// State after it.
    pub state: &'static str,
    /// Owner, receiver or last known owner after it.
    pub owner: u8,
    /// Epoch after it.
    pub epoch: u32,
}

/// Why a page's word changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum PageCause {
    /// Granted to another silo.
    Granted,
    /// Granted against a lease, at the operator's word.
    Forced,
    /// Acknowledged: it has left.
    Left,
    /// It arrived here.
    Arrived,
    /// No acknowledgement in time.
    Doubted,
    /// The receiver fenced the grant: it stays.
    Kept,
    /// A grant to this silo was fenced.
    Fenced,
    /// A lease of this silo began.
    LeaseBegan,
    /// Heat or a lease ended by its time.
    Cooled,
    /// A lease was given back.
    Released,
    /// Taken over from a fenced silo.
    Inherited,
    /// Its receiver is dead: settled by that silo's last word.
    Bereaved,
}

impl PageCause {
    /// All of them, in the order of their codes.
    pub const ALL: [PageCause; 12] = [
        PageCause::Granted,
        PageCause::Forced,
        PageCause::Left,
        PageCause::Arrived,
        PageCause::Doubted,
        PageCause::Kept,
        PageCause::Fenced,
        PageCause::LeaseBegan,
        PageCause::Cooled,
        PageCause::Released,
        PageCause::Inherited,
        PageCause::Bereaved,
    ];

    /// In words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            PageCause::Granted => "granted",
            PageCause::Forced => "forced away",
            PageCause::Left => "acknowledged",
            PageCause::Arrived => "arrived",
            PageCause::Doubted => "no ACK in time",
            PageCause::Kept => "grant cancelled",
            PageCause::Fenced => "grant refused",
            PageCause::LeaseBegan => "lease began",
            PageCause::Cooled => "time over",
            PageCause::Released => "lease given back",
            PageCause::Inherited => "inherited",
            PageCause::Bereaved => "receiver is dead",
        }
    }
}
