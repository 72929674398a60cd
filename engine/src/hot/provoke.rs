//! Provoked faults: a role that misbehaves on command, so that a drill can see whether the engine says why.
//!
//! Owns the role it stands for and reads the command word of a [`Provocation`]. Runs in that role's place; costs nothing
//! where nobody asked for one, because it is not there. Bounds: a deed lasts as long as the command says, at most
//! [`DEED_MAX`]; pages are touched inside memory that the drill gave.
//!
//! # Why real deeds
//! A drill that fakes an observation tests the formatter. Here the thread really computes, sleeps, faults or panics.

use super::{Frame, Role, RoleError, Work};
use crate::profile::RoleKind;
use crate::units::Nanos;
#[expect(clippy::disallowed_types, reason = "a deed may do what no role may")]
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use zerocopy::FromZeros;

/// Longest single deed.
pub const DEED_MAX: Duration = Duration::from_secs(2);
/// Words between two touched pages.
const PAGE_WORDS: usize = 512;

/// What a provoked role does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Computes without end for the time given, once.
    Compute = 1,
    /// Sleeps for the time given, once.
    Sleep = 2,
    /// Touches fresh pages for the time given, once.
    TouchPages = 3,
    /// Panics, once.
    Panic = 4,
    /// Claims an item of work in each frame, for as long as it is told to.
    ClaimWork = 5,
    /// Does nothing, for as long as it is told to.
    StandStill = 6,
    /// Takes the time given for each call that did something, for as long as it is told to.
    Dawdle = 7,
}

impl Deed {
    const ALL: [Deed; 7] =
        [Deed::Compute, Deed::Sleep, Deed::TouchPages, Deed::Panic, Deed::ClaimWork, Deed::StandStill, Deed::Dawdle];

    fn is_once(self) -> bool {
        matches!(self, Deed::Compute | Deed::Sleep | Deed::TouchPages | Deed::Panic)
    }
}

/// The command: which deed by which role of silo 0, for how long. Relaxed: one word that stands alone, and memory that
/// was there before the engine.
#[derive(Debug)]
pub struct Provocation {
    /// deed | role << 8 | nanoseconds << 16; 0: none.
    command: AtomicU64,
    /// Taken by a role in a deed that touches it, which never waits for it, and by cold code between deeds.
    #[expect(clippy::disallowed_types, reason = "a deed may do what no role may")]
    pages: Mutex<Vec<AtomicU64>>,
}

impl Provocation {
    /// One without a command, with `bytes` of untouched memory for [`Deed::TouchPages`]; none where there is no room.
    #[must_use]
    pub fn new(bytes: usize) -> Arc<Provocation> {
        #[expect(clippy::disallowed_types, reason = "a deed may do what no role may")]
        let pages = Mutex::new(AtomicU64::new_vec_zeroed(bytes / 8).unwrap_or_default());
        Arc::new(Provocation { command: AtomicU64::new(0), pages })
    }

    /// Other memory for [`Deed::TouchPages`], untouched, in place of what there was; waits for the end of a deed that touches
    /// it. Cold.
    pub fn set_pages(&self, bytes: usize) {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        *pages = AtomicU64::new_vec_zeroed(bytes / 8).unwrap_or_default();
    }

    /// Orders `deed` of the first such role of silo 0.
    pub fn order(&self, role: RoleKind, deed: Deed, span: Duration) {
        let ns = span.min(DEED_MAX).as_nanos() as u64;
        self.command.store(deed as u64 | (role as u64) << 8 | ns << 16, Ordering::Relaxed);
    }

    /// Ends what lasts.
    pub fn cease(&self) {
        self.command.store(0, Ordering::Relaxed);
    }

    /// Whether a deed that is done once has been taken up.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        self.command.load(Ordering::Relaxed) == 0
    }

    /// The command for `role`; one that is done once is taken.
    fn take(&self, role: RoleKind) -> Option<(Deed, Nanos)> {
        let word = self.command.load(Ordering::Relaxed);
        if word == 0 || word >> 8 & 0xff != role as u64 {
            return None;
        }
        let deed = Deed::ALL.into_iter().find(|deed| *deed as u64 == word & 0xff)?;
        let mine =
            !deed.is_once() || self.command.compare_exchange(word, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        mine.then_some((deed, Nanos(word >> 16)))
    }
}

/// `role`, doing what it is told between its own calls.
pub struct Provoked {
    role: Box<dyn Role>,
    provocation: Arc<Provocation>,
}

impl Provoked {
    /// Puts `role` under command.
    #[must_use]
    pub fn new(role: Box<dyn Role>, provocation: Arc<Provocation>) -> Provoked {
        Provoked { role, provocation }
    }
}

impl Role for Provoked {
    fn kind(&self) -> RoleKind {
        self.role.kind()
    }

    fn warm_up(&mut self, frame: &mut Frame<'_>) -> Result<(), RoleError> {
        self.role.warm_up(frame)
    }

    fn work(&mut self, frame: &mut Frame<'_>) -> Work {
        let Some((deed, span)) = self.provocation.take(self.role.kind()) else { return self.role.work(frame) };
        match deed {
            Deed::Compute => compute_too_long(frame, span),
            Deed::Sleep => sleep_in_a_role(span),
            Deed::TouchPages => {
                if let Ok(pages) = self.provocation.pages.try_lock() {
                    touch_fresh_pages(frame, span, &pages);
                }
            }
            Deed::Panic => panic!("provoked"),
            Deed::ClaimWork => return Work(self.role.work(frame).0 + 1),
            Deed::StandStill => return Work(0),
            Deed::Dawdle => {
                let work = self.role.work(frame);
                if work.0 > 0 {
                    compute_too_long(frame, span);
                }
                return work;
            }
        }
        self.role.work(frame)
    }

    fn is_drained(&self) -> bool {
        self.role.is_drained()
    }
}

#[inline(never)]
fn compute_too_long(frame: &Frame<'_>, span: Nanos) {
    let (from, until) = (frame.ticks(), frame.clock().rate().ticks(span));
    let mut sum = 0u64;
    while frame.ticks().since(from) < until {
        for step in 0..64u64 {
            sum = std::hint::black_box(sum.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(step));
        }
    }
}

#[inline(never)]
#[expect(clippy::disallowed_methods, reason = "the deed is to sleep where no role may")]
fn sleep_in_a_role(span: Nanos) {
    std::thread::sleep(Duration::from_nanos(span.0));
}

#[inline(never)]
fn touch_fresh_pages(frame: &Frame<'_>, span: Nanos, pages: &[AtomicU64]) {
    let (from, until) = (frame.ticks(), frame.clock().rate().ticks(span));
    for word in pages.iter().step_by(PAGE_WORDS) {
        word.store(1, Ordering::Relaxed);
        if frame.ticks().since(from) >= until {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Deed, Provocation};
    use crate::profile::RoleKind;
    use crate::units::Nanos;
    use std::time::Duration;

    #[test]
    fn a_deed_done_once_is_taken_by_its_role_alone_and_one_that_lasts_until_it_is_ended() {
        let provocation = Provocation::new(4096);
        provocation.order(RoleKind::Poll, Deed::Sleep, Duration::from_millis(60));
        assert_eq!(provocation.take(RoleKind::Feed), None);
        assert_eq!(provocation.take(RoleKind::Poll), Some((Deed::Sleep, Nanos(60_000_000))));
        assert!(provocation.is_taken() && provocation.take(RoleKind::Poll).is_none());
        provocation.order(RoleKind::Feed, Deed::ClaimWork, Duration::ZERO);
        assert!((0..3).all(|_| provocation.take(RoleKind::Feed) == Some((Deed::ClaimWork, Nanos(0)))));
        provocation.cease();
        assert_eq!(provocation.take(RoleKind::Feed), None);
    }
}
