//! Whether shots wait for a slot because the silo's ring is full: set by the feed, read by dispatch
//! of the same silo.

use std::sync::atomic::{AtomicU64, Ordering};

/// The flag of one silo. Relaxed: it stands alone and is advisory.
#[derive(Debug, Default)]
pub struct Pressure(AtomicU64);

impl Pressure {
    /// Whether shots wait for a slot.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// Sets the flag. Called by the feed only.
    pub(crate) fn set(&self, is_on: bool) {
        self.0.store(u64::from(is_on), Ordering::Relaxed);
    }
}
