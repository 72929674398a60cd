//! How many tasks are under way: positions are reserved in front and retire behind, in order.
//!
//! Owns two cursors. Any submitter reserves by exchange, so that no two get the same position and
//! none gets one that is not free (a check and a later count would let both through); whoever finds
//! the oldest done retires it. Bounds: the capacity. Once full it opens again only when a quarter
//! is free, so that a submitter is not woken for each task. Never waits: a submitter that gets
//! nothing helps, or comes back.
//!
//! | edge | release site | acquire site | publishes |
//! |---|---|---|---|
//! | V1 | [`Window::retire_to`] | [`Window::reserve`] | that the positions' last users are done with them |

use crate::sync::{AtomicU32, AtomicU64, Ordering, Padded, edge};
use std::ops::Range;

/// Positions of the tasks under way: reserved and not yet retired.
pub struct Window {
    capacity: u64,
    reserved: Padded<AtomicU64>,
    retired: Padded<AtomicU64>,
    is_shut: AtomicU32,
}

impl Window {
    /// A window of `capacity` positions, the first of which is `first`.
    ///
    /// # Panics
    /// If `capacity` is 0.
    #[must_use]
    pub fn new(capacity: u64, first: u64) -> Window {
        assert!(capacity > 0, "a window without room lets nothing through");
        let cursor = || Padded(AtomicU64::new(first));
        Window { capacity, reserved: cursor(), retired: cursor(), is_shut: AtomicU32::new(0) }
    }

    /// The next positions, `wanted` or what is free; nothing while it is full or, once it was,
    /// until a quarter is free.
    #[inline]
    pub fn reserve(&self, wanted: u64) -> Option<Range<u64>> {
        let mut from = self.reserved.0.load(Ordering::Relaxed);
        loop {
            // ORDERING: acquire side of V1: the last users of these positions are done. Relaxed
            // would let us rewrite what they still read. Model:
            // loom_window::a_position_is_given_again_only_after_its_user_is_done.
            let retired = self.retired.0.load(edge("V1.acquire", Ordering::Acquire));
            let free = self.capacity.saturating_sub(from.saturating_sub(retired));
            let is_shut = self.is_shut.load(Ordering::Relaxed) != 0;
            if free == 0 || (is_shut && free < self.reopens_at()) {
                self.is_shut.store(1, Ordering::Relaxed);
                return None;
            }
            let to = from + wanted.min(free);
            // The exchange alone decides who gets them; nothing is published by it.
            match self.reserved.0.compare_exchange_weak(from, to, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => {
                    if is_shut {
                        self.is_shut.store(0, Ordering::Relaxed);
                    }
                    return Some(from..to);
                }
                Err(now) => from = now,
            }
        }
    }

    /// All positions before `position` are done with. Repeats and stragglers do no harm: it never
    /// goes back.
    #[inline]
    pub fn retire_to(&self, position: u64) {
        // ORDERING: release side of V1, see `reserve`. A later retirement carries this one on,
        // being an exchange too.
        self.retired.0.fetch_max(position, edge("V1.release", Ordering::Release));
    }

    /// Positions that must be free before a full window opens again.
    #[must_use]
    pub fn reopens_at(&self) -> u64 {
        (self.capacity / 4).max(1)
    }

    /// Positions reserved and not retired, at most: two loads, the older cursor first.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        let retired = self.retired.0.load(Ordering::Relaxed);
        self.reserved.0.load(Ordering::Relaxed).saturating_sub(retired)
    }

    /// Positions retired, ever.
    #[must_use]
    pub fn retired(&self) -> u64 {
        self.retired.0.load(Ordering::Relaxed)
    }

    /// Positions at once.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.capacity
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::Window;

    #[test]
    fn a_full_window_opens_again_when_a_quarter_is_free() {
        let window = Window::new(8, 1);
        assert_eq!(window.reserve(5), Some(1..6));
        assert_eq!(window.reserve(5), Some(6..9));
        assert_eq!((window.reserve(1), window.in_flight()), (None, 8));
        window.retire_to(2);
        assert_eq!(window.reserve(1), None, "one of eight is less than a quarter");
        window.retire_to(3);
        assert_eq!(window.reserve(5), Some(9..11));
    }

    #[test]
    fn retirement_never_goes_back() {
        let window = Window::new(4, 0);
        assert_eq!(window.reserve(4), Some(0..4));
        window.retire_to(3);
        window.retire_to(1);
        assert_eq!((window.retired(), window.in_flight()), (3, 1));
    }
}
