//! An injected fault in a role: it panics, to test that thread, engine and shots end in order, or
//! calls the allocator, to test that the guard detects the call.
//!
//! Wraps the role. A profile that injects no such fault builds no wrapper, so it costs nothing.

use super::{Frame, Role, RoleError, Work};
use crate::roles::RoleKind;
use pinwheel_edge::spin::Phase;

/// The injected fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HotFault {
    /// The role panics.
    Panic,
    /// The role calls the allocator, once.
    Allocate,
}

/// `role`, which fails after `items_left` more items in Live.
pub struct FaultyRole {
    role: Box<dyn Role>,
    items_left: u64,
    fault: HotFault,
}

impl FaultyRole {
    /// Makes `role` fail after `after_items` items.
    pub fn new(role: Box<dyn Role>, after_items: u64, fault: HotFault) -> FaultyRole {
        FaultyRole { role, items_left: after_items.max(1), fault }
    }
}

impl Role for FaultyRole {
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
            match self.fault {
                _ if self.items_left > 0 => {}
                HotFault::Panic => panic!("injected"),
                HotFault::Allocate => drop(std::hint::black_box(Box::new(work.0))),
            }
        }
        work
    }

    fn send_answers(&mut self, frame: &mut Frame<'_>) -> Work {
        self.role.send_answers(frame)
    }

    fn is_drained(&self) -> bool {
        self.role.is_drained()
    }
}
