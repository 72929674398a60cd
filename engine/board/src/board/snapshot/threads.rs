//! The hot threads' part of the picture.

use crate::board::histogram::Histogram;
use crate::profile::RoleKind;
use pinwheel_edge::spin::SpinPolicy;
use serde::Serialize;

/// One hot thread.
#[derive(Clone, Debug, Serialize)]
pub struct ThreadView {
    /// Name, also the operating system's.
    pub name: String,
    /// Operating system's thread id; 0 before it runs.
    pub tid: u32,
    /// Duties in call order.
    pub roles: Vec<RoleView>,
    /// Core it was planned on; `None`: unpinned.
    pub core: Option<u32>,
    /// Whether pinning was verified.
    pub pinned: bool,
    /// Whether the core is the thread's alone.
    pub exclusive: bool,
    /// Policy asked of this thread (after refusals).
    pub policy_requested: SpinPolicy,
    /// Policy that it runs.
    pub policy_acknowledged: SpinPolicy,
    /// Epoch of the policy that it runs; behind `spin_epoch_requested` until it has seen the switch.
    pub epoch_acknowledged: u64,
    /// Why it does not run the profile's policy, if so.
    pub policy_refusal: Option<String>,
    /// Its scheduling priority.
    pub priority: PriorityView,
    /// Who else wanted its core, last and most; `None`: nobody was seen.
    pub contended_by: Option<RivalView>,
    /// Age of the last heartbeat.
    pub heartbeat_age_ns: u64,
    /// Frames since start.
    pub frames: u64,
    /// Frames that did work.
    pub frames_busy: u64,
    /// Work items since start.
    pub items: u64,
    /// Nanoseconds spent in frames that did work, since start.
    pub busy_ns: u64,
    /// Times it yielded or slept by policy.
    pub yields: u64,
    /// Duty it is in; `None` between duties.
    pub stage: Option<RoleKind>,
    /// Gaps between frames.
    pub frame_gap: Histogram,
    /// Starting, running or finished.
    pub state: ThreadState,
    /// Where the last of its roles that died panicked ("file:line").
    pub panic_site: Option<String>,
    /// Memory it was given, and what it asked for beyond.
    pub memory: MemoryView,
    /// Frames that began on another core than the planned one.
    pub frames_elsewhere: u64,
    /// Events of it that found no room in the log.
    pub events_dropped: u64,
}

/// Memory of one hot thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MemoryView {
    /// Calls of the allocator in Live; `None`: not visible, the program's allocator does not count.
    pub allocations: Option<u64>,
    /// Calls in Live that the thread's own reserve served.
    pub lent: u64,
    /// Who made the first of the calls.
    pub first_site: Option<String>,
    /// Bytes of its arena, touched before Live.
    pub touched_bytes: u64,
    /// Of these, locked in memory.
    pub locked_bytes: u64,
}

/// A thread's scheduling priority.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PriorityView {
    /// By the profile, as in "normal", "nice -5", "fifo 10".
    pub asked: String,
    /// As the system shows it since it was last set; `None`: not visible.
    pub found: Option<String>,
    /// Why it is not what was asked for, if so.
    pub why_not: Option<String>,
}

/// A thread of another process that wanted a hot thread's core.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RivalView {
    /// Its process.
    pub pid: u32,
    /// Its user; empty: not visible.
    pub user: String,
    /// Its name.
    pub command: String,
    /// Time that it stood ready between two looks.
    pub waited_ns: u64,
    /// Time that it ran between them.
    pub ran_ns: u64,
    /// Time between them.
    pub span_ns: u64,
    /// Since the second of them.
    pub age_ns: u64,
    /// Looks so far that found anybody.
    pub looks: u64,
}

/// One duty of a thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RoleView {
    /// Which duty.
    pub kind: RoleKind,
    /// Of which silo.
    pub silo: u32,
    /// Which of several (decode workers).
    pub index: u32,
    /// Work items since start.
    pub items: u64,
    /// Frame in which it panicked, if it did: it is never called again.
    pub died_frame: Option<u64>,
}

/// Life of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum ThreadState {
    /// Planned, not yet started.
    Starting = 0,
    /// In its frame loop.
    Running = 1,
    /// Left its loop in order.
    Finished = 2,
    /// Panicked outside its roles: none of them is called again.
    Panicked = 3,
}
