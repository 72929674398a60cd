//! Tells a frame without work that lost its core from one that polls for as long.
//!
//! Owns the usual length of a thread's frames without work. On the thread itself, in frames without work only.
//!
//! # Why 5 µs alone do not tell
//! A frame that polls sockets of several silos, or one of a build without optimization, takes longer each time.

use crate::host::check::probe::GAP_NS;
use crate::units::{Nanos, TickRate, Ticks};

/// A frame of so many usual lengths has lost its core.
const USUAL_LENGTHS: u64 = 4;
/// A frame moves the usual length by this part of its difference, as a power of two.
const WEIGHT_BITS: u32 = 6;

/// The frames of one thread.
#[derive(Debug)]
pub(super) struct Polling {
    /// No shorter frame counts.
    gap: u64,
    /// The usual length, in parts of a tick.
    usual: u64,
}

impl Polling {
    pub(super) fn new(rate: TickRate) -> Polling {
        Polling { gap: rate.ticks(Nanos(GAP_NS)).0, usual: 0 }
    }

    /// Whether a frame of this `length` lost its core.
    #[inline]
    pub(super) fn has_lost_core(&mut self, length: Ticks) -> bool {
        let limit = self.gap.max(USUAL_LENGTHS * (self.usual >> WEIGHT_BITS));
        // A frame that lost its core says little about the others.
        self.usual = self.usual - (self.usual >> WEIGHT_BITS) + length.0.min(limit);
        length.0 > limit
    }
}

#[cfg(test)]
mod tests {
    use super::Polling;
    use crate::units::{TickRate, Ticks};

    fn lost(polling: &mut Polling, length: u64, frames: usize) -> usize {
        (0..frames).filter(|_| polling.has_lost_core(Ticks(length))).count()
    }

    #[test]
    fn a_long_frame_among_short_ones_lost_its_core() {
        let mut polling = Polling::new(TickRate::NANOS);
        assert_eq!(lost(&mut polling, 200, 1_000), 0);
        assert_eq!((lost(&mut polling, 5_000, 1), lost(&mut polling, 5_001, 1)), (0, 1));
        assert_eq!(lost(&mut polling, 200, 100), 0);
        assert_eq!(lost(&mut polling, 4_000_000, 3), 3);
    }

    #[test]
    fn frames_that_always_take_long_have_lost_nothing_once_that_is_known() {
        let mut polling = Polling::new(TickRate::NANOS);
        lost(&mut polling, 8_000, 200);
        assert_eq!(lost(&mut polling, 8_000, 1_000), 0);
        assert_eq!((lost(&mut polling, 30_000, 1), lost(&mut polling, 40_000, 1)), (0, 1));
    }
}
