//! Numbers that cold code may change while roles run, read with Relaxed loads.
//!
//! Owns the live limits, the rate, whether the feed is held, and which shots the shadow gets. Written by the control thread; read
//! by feed, dispatch, poll and harvest. No word depends on another, so no order between them is
//! needed.

use crate::profile::{Limits, Overflow, OverflowStrategy};
use crate::units::Nanos;
use std::sync::atomic::{AtomicU64, Ordering};

/// Stream number of shots that only warm the path: answered like any other, counted nowhere.
pub const WARM_STREAM: u32 = u32::MAX;

/// Live limits and rate.
#[derive(Debug)]
pub struct Settings {
    launch_deadline_ns: AtomicU64,
    shot_deadline_ns: AtomicU64,
    late_ns: AtomicU64,
    /// Bits of an f64, shots per second over all silos; 0: as fast as slots come free.
    rate_hz_bits: AtomicU64,
    /// The feed takes no shot.
    held: AtomicU64,
    /// Warm-up shots are wanted.
    warming: AtomicU64,
    overflow_strategy: AtomicU64,
    overflow_deadline_ns: AtomicU64,
    overflow_keep_shots: AtomicU64,
    shadow_below: AtomicU64,
    abstain_below_db: AtomicU64,
}

impl Settings {
    /// From a profile's limits; no rate, not warming, and shots wait for slots without a deadline.
    pub fn new(limits: &Limits) -> Settings {
        let settings = Settings {
            launch_deadline_ns: AtomicU64::new(0),
            shot_deadline_ns: AtomicU64::new(0),
            late_ns: AtomicU64::new(0),
            rate_hz_bits: AtomicU64::new(0),
            held: AtomicU64::new(0),
            warming: AtomicU64::new(0),
            overflow_strategy: AtomicU64::new(0),
            overflow_deadline_ns: AtomicU64::new(u64::MAX >> 1),
            overflow_keep_shots: AtomicU64::new(1),
            shadow_below: AtomicU64::new(0),
            abstain_below_db: AtomicU64::new(0),
        };
        settings.set_limits(limits);
        settings
    }

    /// Takes over a profile's limits.
    pub fn set_limits(&self, limits: &Limits) {
        self.launch_deadline_ns.store(u64::from(limits.launch_deadline_us) * 1_000, Ordering::Relaxed);
        self.shot_deadline_ns.store(u64::from(limits.shot_deadline_us) * 1_000, Ordering::Relaxed);
        self.late_ns.store(u64::from(limits.late_us) * 1_000, Ordering::Relaxed);
    }

    /// Takes over what happens to shots that find no slot.
    pub fn set_overflow(&self, overflow: &Overflow) {
        let Overflow { strategy, deadline_ms, keep_shots } = *overflow;
        self.overflow_deadline_ns.store(u64::from(deadline_ms) * 1_000_000, Ordering::Relaxed);
        self.overflow_keep_shots.store(keep_shots.into(), Ordering::Relaxed);
        self.overflow_strategy.store(strategy as u64, Ordering::Relaxed);
    }

    /// What happens to a shot that finds no slot.
    pub fn overflow_strategy(&self) -> OverflowStrategy {
        let number = self.overflow_strategy.load(Ordering::Relaxed);
        OverflowStrategy::ALL[number as usize % OverflowStrategy::ALL.len()]
    }

    /// How long it may wait.
    pub fn overflow_deadline(&self) -> Nanos {
        Nanos(self.overflow_deadline_ns.load(Ordering::Relaxed))
    }

    /// How many wait on where the oldest are dropped.
    pub fn overflow_keep_shots(&self) -> u64 {
        self.overflow_keep_shots.load(Ordering::Relaxed)
    }

    /// Gives one shot in so many to the shadow; `None`: no shot.
    pub fn set_shadow(&self, one_in: Option<u32>) {
        self.shadow_below.store(one_in.map_or(0, |one_in| u64::MAX / u64::from(one_in.max(1))), Ordering::Relaxed);
    }

    /// Bound below which lie the hashes of the shots that the shadow gets; 0: no shot.
    pub fn shadow_below(&self) -> u64 {
        self.shadow_below.load(Ordering::Relaxed)
    }

    /// Answers of a gap below this are not to be trusted.
    pub fn set_abstain_below_db(&self, below: Option<u8>) {
        self.abstain_below_db.store(below.map_or(0, u64::from), Ordering::Relaxed);
    }

    /// Gap, decibels, below which an answer is not to be trusted; 0: all are.
    pub fn abstain_below_db(&self) -> u64 {
        self.abstain_below_db.load(Ordering::Relaxed)
    }

    /// From launch to quarantine, nanoseconds.
    pub fn launch_deadline_ns(&self) -> u64 {
        self.launch_deadline_ns.load(Ordering::Relaxed)
    }

    /// From submission to an error answer, nanoseconds.
    pub fn shot_deadline_ns(&self) -> u64 {
        self.shot_deadline_ns.load(Ordering::Relaxed)
    }

    /// From scheduled arrival to "late", nanoseconds.
    pub fn late_ns(&self) -> u64 {
        self.late_ns.load(Ordering::Relaxed)
    }

    /// Shots per second over all silos; `None`: as fast as slots come free.
    pub fn rate_hz(&self) -> Option<f64> {
        let rate = f64::from_bits(self.rate_hz_bits.load(Ordering::Relaxed));
        (rate > 0.0).then_some(rate)
    }

    /// Sets the rate.
    pub fn set_rate_hz(&self, rate_hz: Option<f64>) {
        self.rate_hz_bits.store(rate_hz.unwrap_or(0.0).to_bits(), Ordering::Relaxed);
    }

    /// Whether the feed runs.
    pub fn flow(&self) -> Flow {
        if self.held.load(Ordering::Relaxed) == 0 { Flow::Runs } else { Flow::Held }
    }

    /// Holds the feed, or lets it run.
    pub fn set_flow(&self, flow: Flow) {
        self.held.store(flow as u64, Ordering::Relaxed);
    }

    /// Whether warm-up shots are wanted.
    pub fn is_warming(&self) -> bool {
        self.warming.load(Ordering::Relaxed) != 0
    }

    /// Asks for warm-up shots, or no more of them.
    pub fn set_warming(&self, wanted: Warming) {
        self.warming.store(wanted as u64, Ordering::Relaxed);
    }
}

/// Whether warm-up shots flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Warming {
    /// No.
    Off = 0,
    /// As fast as slots come free.
    On = 1,
}

/// Whether the feed takes shots in Live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// As its schedule says.
    Runs = 0,
    /// Not until it is let go: what is under way finishes.
    Held = 1,
}
