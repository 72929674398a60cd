//! Spin policy and phase: the two words by which cold code steers hot threads.
//!
//! Owns the packing of policy and epoch into one atomic word per thread, and the engine-wide phase
//! word. Written by the control side, read by a hot thread when it is idle (policy) or once per
//! frame (phase). Nothing here waits.
//!
//! | edge | release site | acquire site | publishes |
//! |---|---|---|---|
//! | P1 | [`SpinWord::request`] | [`SpinWord::requested`] | budgets written before the request |
//! | P2 | [`SpinWord::acknowledge`] | [`SpinWord::acknowledged`] | that the thread runs that epoch |
//! | P3 | [`PhaseWord::advance`] | [`PhaseWord::current`] | everything built in the phase before |

use crate::sync::{AtomicU64, Ordering, edge};

/// How a hot thread waits when it has no work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum SpinPolicy {
    /// Pauses and never yields: for a core of its own.
    Prod,
    /// Spins for `lab_spin_us`, then yields in each idle frame.
    Lab,
    /// Spins for 10 µs, then sleeps `shared_sleep_us` at a time: leaves the core to other programs.
    #[default]
    Shared,
}

crate::names! { SpinPolicy: Prod "prod", Lab "lab", Shared "shared" }

impl SpinPolicy {
    const fn code(self) -> u64 {
        match self {
            SpinPolicy::Prod => 0,
            SpinPolicy::Lab => 1,
            SpinPolicy::Shared => 2,
        }
    }

    /// From a word's low bits; a code that no writer writes reads as the gentlest policy.
    #[must_use]
    pub const fn from_code(code: u64) -> SpinPolicy {
        match code {
            0 => SpinPolicy::Prod,
            1 => SpinPolicy::Lab,
            _ => SpinPolicy::Shared,
        }
    }
}

/// A policy with the epoch of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpinOrder {
    /// What to run.
    pub policy: SpinPolicy,
    /// Request number, from 1.
    pub epoch: u64,
}

impl SpinOrder {
    const POLICY_BITS: u32 = 8;

    /// One word: epoch above, policy in the low eight bits.
    #[must_use]
    pub const fn pack(self) -> u64 {
        self.epoch << Self::POLICY_BITS | self.policy.code()
    }

    /// Inverse of [`SpinOrder::pack`].
    #[must_use]
    pub const fn unpack(word: u64) -> SpinOrder {
        SpinOrder { policy: SpinPolicy::from_code(word & 0xff), epoch: word >> Self::POLICY_BITS }
    }
}

/// Request and acknowledgement of one thread's spin policy.
#[derive(Debug)]
pub struct SpinWord {
    requested: AtomicU64,
    acknowledged: AtomicU64,
    /// Budgets of the request, in ticks: spin before a yield (Lab), spin before a sleep (Shared),
    /// sleep (nanoseconds).
    lab_spin_ticks: AtomicU64,
    shared_spin_ticks: AtomicU64,
    shared_sleep_ns: AtomicU64,
}

/// Idle budgets that go with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpinBudgets {
    /// `Lab`: ticks spun idle before the thread yields in each idle frame.
    pub lab_spin_ticks: u64,
    /// `Shared`: ticks spun idle before the thread sleeps.
    pub shared_spin_ticks: u64,
    /// `Shared`: longest sleep, nanoseconds.
    pub shared_sleep_ns: u64,
}

impl SpinWord {
    /// A word whose first request is `policy` at epoch 1, not yet acknowledged (epoch 0).
    #[must_use]
    pub fn new(policy: SpinPolicy, budgets: SpinBudgets) -> SpinWord {
        SpinWord {
            requested: AtomicU64::new(SpinOrder { policy, epoch: 1 }.pack()),
            acknowledged: AtomicU64::new(SpinOrder { policy, epoch: 0 }.pack()),
            lab_spin_ticks: AtomicU64::new(budgets.lab_spin_ticks),
            shared_spin_ticks: AtomicU64::new(budgets.shared_spin_ticks),
            shared_sleep_ns: AtomicU64::new(budgets.shared_sleep_ns),
        }
    }

    /// Asks for `order`. One requester at a time (the engine's control side).
    pub fn request(&self, order: SpinOrder, budgets: SpinBudgets) {
        self.lab_spin_ticks.store(budgets.lab_spin_ticks, Ordering::Relaxed);
        self.shared_spin_ticks.store(budgets.shared_spin_ticks, Ordering::Relaxed);
        self.shared_sleep_ns.store(budgets.shared_sleep_ns, Ordering::Relaxed);
        // ORDERING: release side of P1: whoever sees the epoch sees the budgets above. Relaxed
        // could pair a new policy with old budgets; SeqCst adds nothing, one location decides.
        // Model: loom_spin::order_carries_its_budgets.
        self.requested.store(order.pack(), edge("P1.release", Ordering::Release));
    }

    /// What is asked for now, and its budgets; or newer budgets, if a request comes in between: the
    /// next look finds its epoch too.
    #[must_use]
    pub fn requested(&self) -> (SpinOrder, SpinBudgets) {
        // ORDERING: acquire side of P1, see `request`.
        let order = SpinOrder::unpack(self.requested.load(edge("P1.acquire", Ordering::Acquire)));
        let budgets = SpinBudgets {
            lab_spin_ticks: self.lab_spin_ticks.load(Ordering::Relaxed),
            shared_spin_ticks: self.shared_spin_ticks.load(Ordering::Relaxed),
            shared_sleep_ns: self.shared_sleep_ns.load(Ordering::Relaxed),
        };
        (order, budgets)
    }

    /// The requested word alone, to notice a change at the cost of one load.
    #[must_use]
    pub fn requested_raw(&self) -> u64 {
        self.requested.load(Ordering::Relaxed)
    }

    /// Called by the thread: it runs `order` from this frame on.
    pub fn acknowledge(&self, order: SpinOrder) {
        // ORDERING: release side of P2: what the thread did under the old policy happened before.
        // Relaxed could let a judge hold work done under the old policy against the new one. Model:
        // loom_spin::acknowledgement_is_last.
        self.acknowledged.store(order.pack(), edge("P2.release", Ordering::Release));
    }

    /// What the thread runs; epoch 0 before its first frame.
    #[must_use]
    pub fn acknowledged(&self) -> SpinOrder {
        // ORDERING: acquire side of P2, see `acknowledge`.
        SpinOrder::unpack(self.acknowledged.load(edge("P2.acquire", Ordering::Acquire)))
    }
}

/// Phases of the engine, in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum Phase {
    /// Memory and threads are made.
    #[default]
    Init,
    /// Paths are warmed, the rate is measured.
    Warmup,
    /// Shots are fed, decoded and answered.
    Live,
    /// The feed is stopped; what is accepted is finished.
    Drain,
    /// Hot threads end.
    Shutdown,
}

crate::names! { Phase: Init "INIT", Warmup "WARMUP", Live "LIVE", Drain "DRAIN", Shutdown "SHUTDOWN" }

impl Phase {
    /// From a word; an unknown code reads as `Shutdown`, the phase in which nothing is started.
    #[must_use]
    pub const fn from_code(code: u64) -> Phase {
        match code {
            0 => Phase::Init,
            1 => Phase::Warmup,
            2 => Phase::Live,
            3 => Phase::Drain,
            _ => Phase::Shutdown,
        }
    }
}

/// The engine's phase; only goes forward.
#[derive(Debug)]
pub struct PhaseWord(AtomicU64);

impl PhaseWord {
    /// A word that says [`Phase::Init`].
    #[must_use]
    #[expect(clippy::new_without_default, reason = "a phase word is made once, on purpose")]
    pub fn new() -> PhaseWord {
        PhaseWord(AtomicU64::new(Phase::Init as u64))
    }

    /// Moves to `phase` unless a later one is in force. Returns whether this call moved it.
    pub fn advance(&self, phase: Phase) -> bool {
        // ORDERING: release side of P3: a thread that sees Live sees all that Init built. AcqRel is
        // not needed: a mover reads nothing that another mover wrote. Model:
        // loom_spin::live_sees_what_init_built.
        self.0.fetch_max(phase as u64, edge("P3.release", Ordering::Release)) < phase as u64
    }

    /// The phase in force.
    #[must_use]
    pub fn current(&self) -> Phase {
        // ORDERING: acquire side of P3, see `advance`.
        Phase::from_code(self.0.load(edge("P3.acquire", Ordering::Acquire)))
    }
}
