//! A role that panics on purpose, to show that its thread, its engine and its shots end in order.
//!
//! Owns the role it stands for. Runs in that role's place; costs nothing where no profile asks for it, because it is
//! not there.

use super::{Frame, Role, RoleError, Work};
use crate::profile::RoleKind;
use pinwheel_edge::spin::Phase;

/// `role`, until it has handled `items_left` items in Live.
pub struct Doomed {
    role: Box<dyn Role>,
    items_left: u64,
}

impl Doomed {
    /// Dooms `role`.
    #[must_use]
    pub fn new(role: Box<dyn Role>, after_items: u64) -> Doomed {
        Doomed { role, items_left: after_items }
    }
}

impl Role for Doomed {
    fn kind(&self) -> RoleKind {
        self.role.kind()
    }

    fn warm_up(&mut self, frame: &mut Frame<'_>) -> Result<(), RoleError> {
        self.role.warm_up(frame)
    }

    fn work(&mut self, frame: &mut Frame<'_>) -> Work {
        let work = self.role.work(frame);
        if frame.phase == Phase::Live {
            self.items_left = self.items_left.saturating_sub(u64::from(work.0));
            assert!(self.items_left > 0, "injected");
        }
        work
    }

    fn is_drained(&self) -> bool {
        self.role.is_drained()
    }
}
