//! The device's health word: who may touch the device after a loss.
//!
//! Owns one word. Each state names its one mover, so the word hands the device's memory from one
//! thread to the next.
//!
//! ```text
//! ONLINE ──dispatch──▶ LOST ──recovery──▶ RESETTING ──device──▶ RESET ──recovery──▶ RECOVERED ──dispatch──▶ ONLINE
//! ```
//!
//! | edge | release site | acquire site | publishes |
//! |---|---|---|---|
//! | H1 | [`HealthWord::advance`] | [`HealthWord::current`] | the mover's last access to workers, mail and jobs |

use crate::sync::{AtomicU64, Ordering, edge};

/// Health of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// The device takes launches.
    Online,
    /// Every worker is quarantined (declared by dispatch).
    Lost,
    /// Being reset: the device lets go of everything it was given.
    Resetting,
    /// Nothing of the past can write any more.
    Reset,
    /// Open again; dispatch takes its workers back.
    Recovered,
}

impl Health {
    const ALL: [Health; 5] = [Health::Online, Health::Lost, Health::Resetting, Health::Reset, Health::Recovered];

    const fn next(self) -> Health {
        match self {
            Health::Online => Health::Lost,
            Health::Lost => Health::Resetting,
            Health::Resetting => Health::Reset,
            Health::Reset => Health::Recovered,
            Health::Recovered => Health::Online,
        }
    }
}

/// The health of one device, moved on by one thread in each state.
#[derive(Debug)]
pub struct HealthWord(AtomicU64);

impl HealthWord {
    /// A word that says [`Health::Online`].
    #[must_use]
    #[expect(clippy::new_without_default, reason = "a health word is made once, on purpose")]
    pub fn new() -> HealthWord {
        HealthWord(AtomicU64::new(Health::Online as u64))
    }

    /// The state now.
    #[must_use]
    pub fn current(&self) -> Health {
        // ORDERING: acquire side of H1: whoever is next sees everything the mover before it wrote.
        // Relaxed could let dispatch refill a job that the device still writes. Model:
        // loom_health::a_reset_device_writes_no_more.
        Health::ALL[self.0.load(edge("H1.acquire", Ordering::Acquire)) as usize % Health::ALL.len()]
    }

    /// Moves on from `from`, by the one thread whose turn it is.
    ///
    /// # Panics
    /// If the word is not at `from`: two threads took the same turn.
    pub fn advance(&self, from: Health) {
        assert_eq!(self.0.load(Ordering::Relaxed), from as u64, "the device's health has one mover in each state");
        // ORDERING: release side of H1, see `current`.
        self.0.store(from.next() as u64, edge("H1.release", Ordering::Release));
    }
}
