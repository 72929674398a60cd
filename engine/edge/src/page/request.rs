//! Requests for a page and their responses: values that pass between a driver and an arbiter.
//!
//! Owns no state. Source: seed 001 §4.2 and §5.

use crate::page::hint::Hint;
use crate::page::word::{Epoch, LEASE_US_MAX, Silo};

/// On whose behalf a request is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Authority {
    /// A port: respects heat and leases.
    Port,
    /// The operator, through the console: a forced move, which may break a lease.
    Operator,
}

/// A silo's request for a page: the message OWNERSHIP_REQ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Request {
    /// The requesting silo.
    pub from: Silo,
    /// The owner's epoch as the requester knows it. A repeated request that arrives after the page
    /// has moved has an outdated epoch.
    pub epoch: Epoch,
    /// Purpose of the request.
    pub hint: Hint,
    /// Requested lease, in microseconds; [`Limits`] caps it.
    pub ttl_us: u32,
    /// Number of earlier refusals of this request: its age.
    pub refusals: u8,
    /// On whose behalf the request is made.
    pub authority: Authority,
}

/// Whether the stream has work that is not committed to the page yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WriteBuffer {
    /// Everything decoded is committed.
    Drained,
    /// Decoded shots wait for their commit.
    Pending,
}

/// Inputs of a decision besides the word. The busy bit is in the word itself: outside it, a commit
/// could happen between check and mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Signals {
    /// Whether the stream has uncommitted work.
    pub write_buffer: WriteBuffer,
}

/// Durations and counts that bound waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// How long a committed write keeps its page hot.
    pub hot_us: u32,
    /// Longest lease of a LEASE request.
    pub lease_us_max: u32,
    /// Longest lease of a LOCK request.
    pub lock_us_max: u32,
    /// How long a grant waits for its acknowledgement until it is in doubt.
    pub ack_us: u32,
    /// Interval between two CANCELs.
    pub resend_us: u32,
    /// Refusals after which a request drains its page.
    pub refusals_max: u8,
    /// The last epoch from which a page moves.
    pub epoch_last: Epoch,
}

impl Limits {
    /// Values of seed 001: 10 µs for an acknowledgement, and heat of the shortest span that a
    /// deadline can express (the seed's 500 cycles are less than a microsecond).
    pub const SEED: Limits = Limits {
        hot_us: 1,
        lease_us_max: LEASE_US_MAX,
        lock_us_max: 100,
        ack_us: 10,
        resend_us: 10,
        refusals_max: 8,
        epoch_last: Epoch::MAX,
    };

    /// The lease granted for `hint`, in microseconds.
    #[must_use]
    pub const fn lease_us(&self, hint: Hint, asked_us: u32) -> u32 {
        let most = match hint {
            Hint::Lock => self.lock_us_max,
            Hint::Lease => self.lease_us_max,
            Hint::Default | Hint::Migrate => 0,
        };
        if asked_us < most { asked_us } else { most }
    }
}

/// Effect of a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum How {
    /// The page goes to the requester: send PAGE_DATA and GRANT.
    Moves,
    /// The page goes by an operator's order, and a lease is broken.
    Forced,
    /// The page is already in transfer to this requester: send the same again.
    Again,
    /// The requester has the page.
    Here,
}

/// The answer to a request. A page being transferred answers TRY_LATER to all but its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[must_use]
pub enum Response {
    /// The page is the requester's, or in transfer to it.
    Granted {
        /// Epoch of the ownership.
        epoch: Epoch,
        /// Effect on the page.
        how: How,
    },
    /// The requester holds a lease of the page.
    LeaseYours {
        /// Remaining time of the lease.
        left_us: u32,
    },
    /// Refused: another silo holds a lease.
    LeaseActive {
        /// Remaining time of the lease.
        left_us: u32,
    },
    /// Refused: the owner writes it.
    Busy,
    /// Refused to a LOCK: the owner writes the page, but not for long.
    TryAgainSoon,
    /// Refused: uncommitted work, a transfer, or a drain that a local lease would outlast.
    TryLater,
    /// Refused: another request for this page was decided in this frame.
    Collision,
    /// Refused: the silo does not own the page.
    NotOwner {
        /// Last known owner.
        owner: Silo,
        /// Newest epoch known.
        epoch: Epoch,
    },
    /// Refused: the request carries an older epoch than the owner's.
    Stale {
        /// Epoch according to the owner.
        epoch: Epoch,
    },
    /// Refused: a transfer of this page was not acknowledged; it ends with the receiver's answer or
    /// death.
    InDoubt,
    /// Refused for good: the epoch counter of the page's word is exhausted.
    EpochsSpent,
}

impl Response {
    /// Names in reports, in the order of [`Response::number`].
    pub const NAMES: [&str; 11] = [
        "granted",
        "lease_yours",
        "lease_active",
        "busy",
        "try_again_soon",
        "try_later",
        "collision",
        "not_owner",
        "stale",
        "in_doubt",
        "epochs_spent",
    ];

    /// Index into [`Response::NAMES`].
    #[must_use]
    pub const fn number(self) -> usize {
        match self {
            Response::Granted { .. } => 0,
            Response::LeaseYours { .. } => 1,
            Response::LeaseActive { .. } => 2,
            Response::Busy => 3,
            Response::TryAgainSoon => 4,
            Response::TryLater => 5,
            Response::Collision => 6,
            Response::NotOwner { .. } => 7,
            Response::Stale { .. } => 8,
            Response::InDoubt => 9,
            Response::EpochsSpent => 10,
        }
    }

    /// Whether the requester owns the page or will own it.
    #[must_use]
    pub const fn is_granted(self) -> bool {
        matches!(self, Response::Granted { .. } | Response::LeaseYours { .. })
    }
}
