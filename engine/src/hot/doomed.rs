//! A role that does on purpose what no role may do: panics, to show that its thread, its engine and its shots end in order,
//! or calls the allocator, to show that the guard finds it.
//!
//! Owns the role it stands for. Runs in that role's place; costs nothing where no profile asks for it, because it is
//! not there.

use super::{Frame, Role, RoleError, Work};
use crate::profile::RoleKind;
use pinwheel_edge::spin::Phase;

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// The role panics.
    Panic,
    /// The role calls the allocator, once.
    Allocate,
}

/// `role`, until it has handled `items_left` items in Live.
pub struct Doomed {
    role: Box<dyn Role>,
    items_left: u64,
    deed: Deed,
}

impl Doomed {
    /// Dooms `role` to do it after so many items.
    #[must_use]
    pub fn new(role: Box<dyn Role>, after_items: u64, deed: Deed) -> Doomed {
        Doomed { role, items_left: after_items.max(1), deed }
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
        if frame.phase == Phase::Live && self.items_left > 0 {
            self.items_left = self.items_left.saturating_sub(u64::from(work.0));
            match self.deed {
                _ if self.items_left > 0 => {}
                Deed::Panic => panic!("injected"),
                Deed::Allocate => drop(std::hint::black_box(Box::new(work.0))),
            }
        }
        work
    }

    fn is_drained(&self) -> bool {
        self.role.is_drained()
    }
}
