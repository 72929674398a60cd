//! A role that misbehaves on command, so that a drill can test whether the engine explains the stall correctly.
//!
//! Wraps the role and reads the command word of a [`DrillCommand`]. An engine without drills builds
//! no wrapper. Bounds: a misbehaviour lasts as long as the command says, at most
//! [`MISBEHAVIOUR_MAX`]; it touches only pages of the drill's memory.
//!
//! # Why the misbehaviour is real
//! A drill that fakes an observation only tests how the verdict is formatted. Here the thread really computes, sleeps,
//! faults pages in or panics.

use super::{Frame, Role, RoleError, Work};
use crate::roles::RoleKind;
use crate::units::Nanos;
#[expect(clippy::disallowed_types, reason = "a misbehaviour may do what no role may")]
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use zerocopy::FromZeros;

/// Longest time of one misbehaviour.
pub const MISBEHAVIOUR_MAX: Duration = Duration::from_secs(2);
/// Words between two touched pages.
const PAGE_WORDS: usize = 512;

/// What a provoked role does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misbehaviour {
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
    SlowDown = 7,
}

impl Misbehaviour {
    const ALL: [Misbehaviour; 7] = [
        Misbehaviour::Compute,
        Misbehaviour::Sleep,
        Misbehaviour::TouchPages,
        Misbehaviour::Panic,
        Misbehaviour::ClaimWork,
        Misbehaviour::StandStill,
        Misbehaviour::SlowDown,
    ];

    fn is_once(self) -> bool {
        matches!(self, Misbehaviour::Compute | Misbehaviour::Sleep | Misbehaviour::TouchPages | Misbehaviour::Panic)
    }
}

/// The command: which misbehaviour of which role of silo 0, for how long. Relaxed: a single word
/// that orders nothing else.
#[derive(Debug)]
pub struct DrillCommand {
    /// misbehaviour | role << 8 | nanoseconds << 16; 0: none.
    command: AtomicU64,
    /// Locked by the role while it touches pages (it tries once and never waits), and by cold code between drills.
    #[expect(clippy::disallowed_types, reason = "a misbehaviour may do what no role may")]
    pages: Mutex<Vec<AtomicU64>>,
}

impl DrillCommand {
    /// One without a command, with `bytes` of untouched memory for [`Misbehaviour::TouchPages`];
    /// none where there is no room.
    pub fn new(bytes: usize) -> Arc<DrillCommand> {
        #[expect(clippy::disallowed_types, reason = "a misbehaviour may do what no role may")]
        let pages = Mutex::new(AtomicU64::new_vec_zeroed(bytes / 8).unwrap_or_default());
        Arc::new(DrillCommand { command: AtomicU64::new(0), pages })
    }

    /// Other memory for [`Misbehaviour::TouchPages`], untouched, in place of what there was; waits
    /// for the end of a misbehaviour that touches it. Cold.
    pub fn set_pages(&self, bytes: usize) {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        *pages = AtomicU64::new_vec_zeroed(bytes / 8).unwrap_or_default();
    }

    /// Requests `misbehaviour` of the first such role of silo 0, for `span`.
    pub fn request(&self, role: RoleKind, misbehaviour: Misbehaviour, span: Duration) {
        let ns = span.min(MISBEHAVIOUR_MAX).as_nanos() as u64;
        self.command.store(misbehaviour as u64 | (role as u64) << 8 | ns << 16, Ordering::Relaxed);
    }

    /// Ends a lasting misbehaviour.
    pub fn end(&self) {
        self.command.store(0, Ordering::Relaxed);
    }

    /// Whether the role has begun a misbehaviour that happens once.
    pub fn is_taken(&self) -> bool {
        self.command.load(Ordering::Relaxed) == 0
    }

    /// The command for `role`. Reading a command that happens once also clears it.
    fn take(&self, role: RoleKind) -> Option<(Misbehaviour, Nanos)> {
        let word = self.command.load(Ordering::Relaxed);
        if word == 0 || word >> 8 & 0xff != role as u64 {
            return None;
        }
        let misbehaviour = Misbehaviour::ALL.into_iter().find(|misbehaviour| *misbehaviour as u64 == word & 0xff)?;
        let mine = !misbehaviour.is_once()
            || self.command.compare_exchange(word, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        mine.then_some((misbehaviour, Nanos(word >> 16)))
    }
}

/// `role`, which misbehaves when it is told to.
pub struct DrilledRole {
    role: Box<dyn Role>,
    drill_command: Arc<DrillCommand>,
}

impl DrilledRole {
    /// Puts `role` under command.
    pub fn new(role: Box<dyn Role>, drill_command: Arc<DrillCommand>) -> DrilledRole {
        DrilledRole { role, drill_command }
    }
}

impl Role for DrilledRole {
    fn kind(&self) -> RoleKind {
        self.role.kind()
    }

    fn warm_up(&mut self, frame: &mut Frame<'_>) -> Result<(), RoleError> {
        self.role.warm_up(frame)
    }

    fn work(&mut self, frame: &mut Frame<'_>) -> Work {
        let Some((misbehaviour, span)) = self.drill_command.take(self.role.kind()) else {
            return self.role.work(frame);
        };
        match misbehaviour {
            Misbehaviour::Compute => compute_too_long(frame, span),
            Misbehaviour::Sleep => sleep_in_a_role(span),
            Misbehaviour::TouchPages => {
                if let Ok(pages) = self.drill_command.pages.try_lock() {
                    touch_fresh_pages(frame, span, &pages);
                }
            }
            Misbehaviour::Panic => panic!("provoked"),
            Misbehaviour::ClaimWork => return Work(self.role.work(frame).0 + 1),
            Misbehaviour::StandStill => return Work(0),
            Misbehaviour::SlowDown => {
                let work = self.role.work(frame);
                if work.0 > 0 {
                    compute_too_long(frame, span);
                }
                return work;
            }
        }
        self.role.work(frame)
    }

    fn send_answers(&mut self, frame: &mut Frame<'_>) -> Work {
        self.role.send_answers(frame)
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
#[expect(clippy::disallowed_methods, reason = "the misbehaviour is to sleep where no role may")]
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
    use super::{DrillCommand, Misbehaviour};
    use crate::roles::RoleKind;
    use crate::units::Nanos;
    use std::time::Duration;

    #[test]
    fn a_single_fault_is_taken_by_its_role_once_and_a_lasting_one_until_it_ends() {
        let drill_command = DrillCommand::new(4096);
        drill_command.request(RoleKind::Poll, Misbehaviour::Sleep, Duration::from_millis(60));
        assert_eq!(drill_command.take(RoleKind::Feed), None);
        assert_eq!(drill_command.take(RoleKind::Poll), Some((Misbehaviour::Sleep, Nanos(60_000_000))));
        assert!(drill_command.is_taken() && drill_command.take(RoleKind::Poll).is_none());
        drill_command.request(RoleKind::Feed, Misbehaviour::ClaimWork, Duration::ZERO);
        assert!((0..3).all(|_| drill_command.take(RoleKind::Feed) == Some((Misbehaviour::ClaimWork, Nanos(0)))));
        drill_command.end();
        assert_eq!(drill_command.take(RoleKind::Feed), None);
    }
}
