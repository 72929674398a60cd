//! Hot threads: the Role contract and the one loop that runs it.
//!
//! Owns the frame loop, pinning, waiting by spin policy, the catching of panics. Each hot thread holds its roles and
//! runs them in turn; one pass is a frame. Bounds: [`BUDGET_ITEMS`] items and [`BUDGET_NANOS`] per role and frame; a
//! sleep by policy is bounded by the profile. A role never blocks, locks, formats, allocates (once warm) or reads a
//! clock other than its [`Frame`]'s.
//!
//! ```text
//!   frame: phase? → now → for each role { stage = role; work(frame) } → heartbeat → idle by policy, or note work
//!                                      after a harvest with work: send_answers(frame) of the feeds
//! ```

mod path_change;
mod faulty;
mod frame;
mod batch_clock;
mod call_gaps;
pub mod idle;
#[expect(unsafe_code, reason = "the counting allocator and its arenas")]
pub mod memory;
mod self_check;
mod log;
mod panics;
mod polling;
pub mod mailbox;
pub mod drill_role;
mod settings;
mod thread;

pub(crate) use batch_clock::BatchClock;
pub(crate) use call_gaps::CallGaps;
pub use faulty::{FaultyRole, HotFault};
pub use frame::{Frame, Init, SCRATCH_BYTES, Scratch, Work};
pub use panics::{install_hook, kept};
pub use path_change::{PathChange, PathChangeReceiver, PathChangeSender, path_changes};
pub use self_check::name_first_allocation;
pub use settings::{Flow, Settings, WARM_STREAM, Warming};
pub use thread::{HotThread, Placing, Shared, ThreadReport, spawn};

use crate::roles::RoleKind;

/// Most items a role handles in one frame.
pub const BUDGET_ITEMS: u32 = 64;
/// Time after which a role stops taking further items in one frame, nanoseconds.
pub const BUDGET_NANOS: u64 = 50_000;

/// Whether a role keeps running when its silo's path stops: the feed (ingress) and harvest (egress).
pub const fn outlives_path(kind: RoleKind) -> bool {
    matches!(kind, RoleKind::Feed | RoleKind::Harvest)
}

/// One pollable duty. Not `Send`: it is built on the thread that runs it (a captured graph cannot move).
pub trait Role {
    /// Which duty.
    fn kind(&self) -> RoleKind;

    /// Touches memory and walks the paths once, before Live.
    ///
    /// # Errors
    /// If the role cannot work; the engine then does not start.
    fn warm_up(&mut self, _frame: &mut Frame<'_>) -> Result<(), RoleError> {
        Ok(())
    }

    /// Does the work that is ready, within the frame's budget. Called in Warmup, Live and Drain.
    fn work(&mut self, frame: &mut Frame<'_>) -> Work;

    /// Sends answers that harvest has just taken on the same thread, so that they need not wait for
    /// the next frame. Called on a feed after a harvest that had work.
    fn send_answers(&mut self, _frame: &mut Frame<'_>) -> Work {
        Work(0)
    }

    /// Whether the role holds no more work. Called in Drain only.
    fn is_drained(&self) -> bool;
}

/// A role could not be built or warmed.
#[derive(Debug, thiserror::Error)]
#[error("{role} of silo {silo} cannot start: {reason}")]
pub struct RoleError {
    /// Which duty.
    pub role: RoleKind,
    /// Of which silo.
    pub silo: u32,
    /// Found, expected, remedy.
    pub reason: String,
}

/// Builds a role on its thread.
pub type Build = Box<dyn FnOnce(&mut Init<'_>) -> Result<Box<dyn Role>, RoleError> + Send>;

/// A role to be built.
pub struct RoleSpec {
    /// Which duty.
    pub kind: RoleKind,
    /// Of which silo.
    pub silo: u32,
    /// Which of several.
    pub index: u32,
    /// How.
    pub build: Build,
}
