//! What is asked of a page and what is answered: values that cross from a driver to an arbiter and back.
//!
//! Owns no state. Source: seed 001 §4.2 and §5.

use crate::page::word::{Epoch, LEASE_US_MAX, Silo};

/// What the requester wants the page for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Hint {
    /// A write, nothing special.
    Default,
    /// A short lease, released explicitly.
    Lock,
    /// A lease.
    Lease,
    /// To keep it: heat does not protect the owner.
    Migrate,
}

impl Hint {
    /// All hints, in the order of their codes.
    pub const ALL: [Hint; 4] = [Hint::Default, Hint::Lock, Hint::Lease, Hint::Migrate];

    pub(crate) const fn of(code: u64) -> Hint {
        match code {
            0 => Hint::Default,
            1 => Hint::Lock,
            2 => Hint::Lease,
            _ => Hint::Migrate,
        }
    }

    /// Whether the new owner holds a lease.
    #[must_use]
    pub const fn is_lease(self) -> bool {
        matches!(self, Hint::Lock | Hint::Lease)
    }
}

/// In whose name a request is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Authority {
    /// A port: respects heat and leases.
    Port,
    /// The operator, by way of the console: a forced move, which may break a lease.
    Operator,
}

/// An OWNERSHIP_REQ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Request {
    /// Who asks.
    pub from: Silo,
    /// The owner's epoch as the requester knows it. A repeat that arrives after the page has moved has another one.
    pub epoch: Epoch,
    /// What for.
    pub hint: Hint,
    /// Lease asked for; [`Limits`] caps it.
    pub ttl_us: u32,
    /// How often this request was refused before: its age.
    pub refusals: u8,
    /// In whose name.
    pub authority: Authority,
}

/// Whether the stream has work that is not in the page yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WriteBuffer {
    /// Everything decoded is committed.
    Drained,
    /// Something decoded waits for its commit.
    Pending,
}

/// What a decision is told beside the word. The busy bit is in the word itself: outside it, a commit could slip in
/// between check and mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Signals {
    /// The stream's uncommitted work.
    pub write_buffer: WriteBuffer,
}

/// Spans and counts that bound waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// How long a committed write keeps its page hot.
    pub hot_us: u32,
    /// Longest lease by LEASE.
    pub lease_us_max: u32,
    /// Longest lease by LOCK.
    pub lock_us_max: u32,
    /// How long a grant waits for its acknowledgement.
    pub ack_us: u32,
    /// From one CANCEL to the next.
    pub resend_us: u32,
    /// Refusals after which a request drains its page.
    pub refusals_max: u8,
    /// The last epoch in which a page moves.
    pub epoch_last: Epoch,
}

impl Limits {
    /// Seed 001's: 10 µs for an acknowledgement, heat of the shortest span that a deadline can say (the seed's 500
    /// cycles are less than a microsecond).
    pub const SEED: Limits = Limits {
        hot_us: 1,
        lease_us_max: LEASE_US_MAX,
        lock_us_max: 100,
        ack_us: 10,
        resend_us: 10,
        refusals_max: 8,
        epoch_last: Epoch::MAX,
    };

    /// The lease that `hint` gets.
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

/// How a grant came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum How {
    /// The page goes to the requester: send PAGE_DATA and GRANT.
    Moves,
    /// It goes because an operator said so, and a lease was broken.
    Forced,
    /// It is on its way to this requester already: send the same again.
    Again,
    /// The requester has it.
    Here,
}

/// The answer to a request. A page being transferred answers TRY_LATER to all but its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[must_use]
pub enum Response {
    /// The page is the requester's, or on its way there.
    Granted {
        /// Epoch of the ownership.
        epoch: Epoch,
        /// How.
        how: How,
    },
    /// The requester holds a lease of the page.
    LeaseYours {
        /// What is left of it.
        left_us: u32,
    },
    /// Refused: somebody else holds a lease.
    LeaseActive {
        /// What is left of it.
        left_us: u32,
    },
    /// Refused: the owner writes it.
    Busy,
    /// Refused to a LOCK: the owner writes it, not for long.
    TryAgainSoon,
    /// Refused: uncommitted work, a transfer, or a drain that a local lease would outlast.
    TryLater,
    /// Refused: another request to this page was decided in this frame.
    Collision,
    /// Not here.
    NotOwner {
        /// Who has it, as far as known.
        owner: Silo,
        /// Newest epoch known.
        epoch: Epoch,
    },
    /// Refused: the request knows an older epoch than the owner's.
    Stale {
        /// The owner's.
        epoch: Epoch,
    },
    /// Refused: a transfer of this page was not acknowledged; it waits for the receiver's word or death.
    InDoubt,
    /// Refused for good: the page has changed owners as often as its word can count.
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

    /// Which of [`Response::NAMES`] it is.
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

    /// Whether the requester owns the page, or will.
    #[must_use]
    pub const fn is_granted(self) -> bool {
        matches!(self, Response::Granted { .. } | Response::LeaseYours { .. })
    }
}
