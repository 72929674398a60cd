//! What cold code may change while roles run: plain numbers, read with Relaxed loads.
//!
//! Owns the live limits, the rate and whether the feed is held. Written by the control side, read by feed, dispatch, poll and harvest. Each word
//! stands alone, so no order between them is needed.

use crate::profile::Limits;
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
}

impl Settings {
    /// From a profile's limits; no rate, not warming.
    #[must_use]
    pub fn new(limits: &Limits) -> Settings {
        let settings = Settings {
            launch_deadline_ns: AtomicU64::new(0),
            shot_deadline_ns: AtomicU64::new(0),
            late_ns: AtomicU64::new(0),
            rate_hz_bits: AtomicU64::new(0),
            held: AtomicU64::new(0),
            warming: AtomicU64::new(0),
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

    /// From launch to quarantine, nanoseconds.
    #[must_use]
    pub fn launch_deadline_ns(&self) -> u64 {
        self.launch_deadline_ns.load(Ordering::Relaxed)
    }

    /// From submission to an error answer, nanoseconds.
    #[must_use]
    pub fn shot_deadline_ns(&self) -> u64 {
        self.shot_deadline_ns.load(Ordering::Relaxed)
    }

    /// From scheduled arrival to "late", nanoseconds.
    #[must_use]
    pub fn late_ns(&self) -> u64 {
        self.late_ns.load(Ordering::Relaxed)
    }

    /// Shots per second over all silos; `None`: as fast as slots come free.
    #[must_use]
    pub fn rate_hz(&self) -> Option<f64> {
        let rate = f64::from_bits(self.rate_hz_bits.load(Ordering::Relaxed));
        (rate > 0.0).then_some(rate)
    }

    /// Sets the rate.
    pub fn set_rate_hz(&self, rate_hz: Option<f64>) {
        self.rate_hz_bits.store(rate_hz.unwrap_or(0.0).to_bits(), Ordering::Relaxed);
    }

    /// Whether the feed runs.
    #[must_use]
    pub fn flow(&self) -> Flow {
        if self.held.load(Ordering::Relaxed) == 0 { Flow::Runs } else { Flow::Held }
    }

    /// Holds the feed, or lets it run.
    pub fn set_flow(&self, flow: Flow) {
        self.held.store(flow as u64, Ordering::Relaxed);
    }

    /// Whether warm-up shots are wanted.
    #[must_use]
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
