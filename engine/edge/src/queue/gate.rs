//! Permits: how many tasks may be between dispatch and completion at once.
//!
//! Owns one counter. Any thread asks; a refusal is an answer, nobody waits here: the caller sets
//! the task aside and asks again when a permit came back. A [`Permit`] gives itself back when it is
//! dropped, by unwinding too. Bounds: the permits.
//!
//! | edge | release site | acquire site | publishes |
//! |---|---|---|---|
//! | G1 | [`Permit`] given back | [`Gate::enter`] | what was done under the permit (a buffer of two is free again) |

use crate::sync::{AtomicU64, Ordering, Padded, edge};

/// A fixed number of permits; [`Gate::enter`] takes one.
pub struct Gate {
    free: Padded<AtomicU64>,
    permits: u64,
}

/// One of them, taken.
#[must_use = "a permit that is dropped at once limits nothing"]
pub struct Permit<'a>(&'a Gate);

impl Gate {
    /// A gate with `permits`.
    ///
    /// # Panics
    /// If there are none: what nobody may enter is a deadlock.
    #[must_use]
    pub fn new(permits: u64) -> Gate {
        assert!(permits > 0, "a gate without permits lets nothing through");
        Gate { free: Padded(AtomicU64::new(permits)), permits }
    }

    /// A permit, if one is free.
    #[inline]
    pub fn enter(&self) -> Option<Permit<'_>> {
        let mut free = self.free.0.load(Ordering::Relaxed);
        while free > 0 {
            // ORDERING: acquire side of G1: what its last holder did. Relaxed would show a buffer
            // still in use. Model: loom_gate::a_permit_carries_what_was_done_under_it.
            let acquire = edge("G1.acquire", Ordering::Acquire);
            match self.free.0.compare_exchange_weak(free, free - 1, acquire, Ordering::Relaxed) {
                Ok(_) => return Some(Permit(self)),
                Err(now) => free = now,
            }
        }
        None
    }

    /// Gives back a permit that was [kept](Permit::keep).
    ///
    /// # Panics
    /// If none was taken.
    #[inline]
    pub fn leave(&self) {
        // ORDERING: release side of G1, see `enter`; an exchange, so earlier holders' work is
        // carried on.
        let before = self.free.0.fetch_add(1, edge("G1.release", Ordering::Release));
        assert!(before < self.permits, "a permit came back that was never taken");
    }

    /// Permits that are taken now; other threads may change that at once.
    #[must_use]
    pub fn in_use(&self) -> u64 {
        self.permits - self.free.0.load(Ordering::Relaxed).min(self.permits)
    }

    /// Permits in all.
    #[must_use]
    pub fn permits(&self) -> u64 {
        self.permits
    }
}

impl Permit<'_> {
    /// Holds it past the end of the scope: whoever ends the work calls [`Gate::leave`].
    pub fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::Gate;

    #[test]
    fn a_permit_comes_back_when_its_holder_unwinds() {
        let gate = Gate::new(1);
        let held = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _permit = gate.enter();
            assert_eq!(gate.in_use(), 1);
            std::panic::resume_unwind(Box::new(()));
        }));
        assert!(held.is_err());
        assert_eq!(gate.in_use(), 0);
    }

    #[test]
    fn no_more_permits_than_there_are() {
        let gate = Gate::new(2);
        let (first, second) = (gate.enter(), gate.enter());
        assert!(first.is_some() && second.is_some() && gate.enter().is_none());
        drop(first);
        if let Some(permit) = gate.enter() {
            permit.keep();
        }
        assert_eq!(gate.in_use(), 2);
        gate.leave();
        assert_eq!(gate.in_use(), 1);
    }
}
