//! Which alarms share a cause: for each alarm the root that explains it.
//!
//! Pure: the same alarms give the same incidents. Run by the watchdog. Bounded by the alarm table,
//! whose rows are compared in pairs.
//!
//! ```text
//!  clock ─▶ everything frozen ─▶ threads stand still ─▶ full ring ─▶ backlog ─▶ late answers ─▶ errors of time
//!  role died, affinity lost   ─────────┘                    │            │
//!  device lost ─▶ quarantine ─▶ errors of the device ───────┴────────────┘
//! ```
//!
//! # Why rules and not times alone
//! Two causes at once are two incidents, although their times are equal. So an alarm explains
//! another one only where there is a way from one to the other: the same thread, a thread that
//! serves the silo, the device of the silo. An alarm whose own verdict names another cause stays
//! its own.

use super::verdict::Cause;
use crate::board::alarms::Site;
use crate::board::snapshot::OWN;
use crate::profile::{RuleId, Severity};
use pinwheel_edge::slot::word::ErrorCode;

/// A sign may be noticed before its cause by so much: rules look at windows of half a second.
pub(super) const BEFORE_NS: u64 = 1_000_000_000;
/// A cause that is over explains signs that begin so much later.
const AFTER_NS: u64 = 2_500_000_000;
/// A thread that waits for its core for so long after a cause is over waits for another reason: twice
/// the time in which such an alarm ends.
const OUTLASTS_NS: u64 = 3_000_000_000;
/// Rules about rates look at this long.
const WINDOW_NS: u64 = 500_000_000;
/// A thread that waits for its core is an alarm from a fifth of the time on.
const SCHEDULER_PARTS: u64 = 5;
/// A backlog is an alarm only after it grew for two seconds.
const BACKLOG_NS: u64 = 2_000_000_000;

/// What the rules need of one alarm.
#[derive(Clone, Debug)]
pub(super) struct Sign {
    pub(super) rule: RuleId,
    pub(super) site: Site,
    pub(super) severity: Severity,
    /// `None`: no verdict yet.
    pub(super) cause: Option<Cause>,
    pub(super) who: String,
    /// Nanoseconds since the engine's start.
    pub(super) onset_ns: u64,
    /// Its end, or now.
    pub(super) until_ns: u64,
    /// The core of its thread, if it is pinned.
    pub(super) core: Option<u32>,
    /// The silos that it concerns, one bit each.
    pub(super) silos: u64,
}

/// For each sign the number of its root: its own if none explains it.
pub(super) fn roots(signs: &[Sign]) -> Vec<usize> {
    // Of two threads without their cores the one whose competitor is known, and is not of this
    // process, is the root.
    let names_nobody = |sign: &Sign| sign.who.is_empty() || sign.who.starts_with(OWN);
    let order = |at: usize| (rank(&signs[at]), names_nobody(&signs[at]), signs[at].onset_ns, at);
    let parent = |at: usize| {
        let before = (0..signs.len()).filter(|other| order(*other) < order(at));
        let explains = |other: &usize| explains(&signs[*other], &signs[at]);
        before.filter(explains).max_by_key(|other| weight(&signs[*other], &signs[at]))
    };
    let parents: Vec<Option<usize>> = (0..signs.len()).map(parent).collect();
    // A parent comes before its child in the order, so this ends.
    let root = |mut at: usize| {
        while let Some(parent) = parents[at] {
            at = parent;
        }
        at
    };
    (0..signs.len()).map(root).collect()
}

/// Of several that explain `sign` the one with most weight is its cause: a critical one, then the
/// one that took most of the half second before it, then the longest.
fn weight(root: &Sign, sign: &Sign) -> (bool, u64, u64) {
    let from_ns = sign.onset_ns.saturating_sub(WINDOW_NS);
    let within_ns = root.until_ns.min(sign.onset_ns).saturating_sub(root.onset_ns.max(from_ns));
    // A thread that waits for its core again and again stands still for a part of the time.
    let part = if root.rule == RuleId::Scheduler { SCHEDULER_PARTS } else { 1 };
    (root.severity == Severity::Critical, within_ns / part, root.until_ns - root.onset_ns)
}

/// Place in the order of causes: a sign is explained only by one of a lower rank, or an earlier one
/// of the same.
fn rank(sign: &Sign) -> u8 {
    match sign.rule {
        RuleId::Clock => 0,
        RuleId::Frozen => 1,
        RuleId::RoleDied | RuleId::DeviceLost | RuleId::Affinity | RuleId::Disk => 2,
        RuleId::HotAllocation | RuleId::NeverIdle | RuleId::Interrupts => 3,
        RuleId::Heartbeat | RuleId::FrameGap | RuleId::Scheduler => 4,
        RuleId::Quarantine | RuleId::InputHealth => 7,
        RuleId::Errors if !is_of_time(sign.site) => 8,
        RuleId::RingFull => 9,
        RuleId::Backlog => 10,
        RuleId::LateAnswers => 11,
        RuleId::RunningOut => 12,
        RuleId::Errors | RuleId::Source | RuleId::Events | RuleId::ModelDrift | RuleId::Duplicates => 13,
    }
}

/// The error code of an alarm about answers with errors.
fn code(site: Site) -> Option<ErrorCode> {
    let Site::Silo(_, part) = site else { return None };
    ErrorCode::ALL.into_iter().find(|code| *code as u32 == part)
}

/// Whether the shots got this error because something took too long.
fn is_of_time(site: Site) -> bool {
    code(site).is_some_and(|code| {
        matches!(
            code,
            ErrorCode::ShotDeadline
                | ErrorCode::Drained
                | ErrorCode::WindowFull
                | ErrorCode::PageAway
                | ErrorCode::OverflowDeadline
                | ErrorCode::DroppedOldest
                | ErrorCode::DroppedNew
                | ErrorCode::PluginLate
                | ErrorCode::DeadlineTooNear
        )
    })
}

/// Whether shots get this error when the device is lost or does not answer.
fn is_of_device(site: Site) -> bool {
    code(site).is_some_and(|code| {
        matches!(
            code,
            ErrorCode::LaunchFailed | ErrorCode::LaunchUnknown | ErrorCode::LaunchDeadline | ErrorCode::DeviceLost
        )
    })
}

/// Whether `root` can be the cause of `sign`.
fn explains(root: &Sign, sign: &Sign) -> bool {
    let slow_to_see = if sign.rule == RuleId::Backlog { BACKLOG_NS } else { 0 };
    let do_meet = sign.onset_ns + BEFORE_NS >= root.onset_ns
        && sign.onset_ns <= root.until_ns.saturating_add(AFTER_NS + slow_to_see);
    let is_of_same = root.cause == sign.cause && root.who == sign.who;
    let outlasts = sign.rule == RuleId::Scheduler && sign.until_ns > root.until_ns.saturating_add(OUTLASTS_NS);
    do_meet && (is_of_same || !outlasts) && leads_to(root, sign)
}

fn leads_to(root: &Sign, sign: &Sign) -> bool {
    let is_stall = matches!(sign.rule, RuleId::Heartbeat | RuleId::FrameGap | RuleId::Scheduler);
    let has_silo = root.silos & sign.silos != 0;
    let is_thread = root.site == sign.site;
    match root.rule {
        // The counter jumped: a suspend, or another host. A clock that was set changes no latency.
        RuleId::Clock => {
            let stops = is_stall && !is_known(sign);
            root.site == Site::Engine(2) && (sign.rule == RuleId::Frozen || stops || is_slow(sign))
        }
        RuleId::Frozen => is_stall && !is_known(sign) || is_slow(sign),
        RuleId::RoleDied => {
            let with_its_silo = matches!(sign.rule, RuleId::RoleDied | RuleId::Errors);
            has_silo && (is_slow(sign) || with_its_silo) || is_thread && is_stall
        }
        RuleId::DeviceLost => {
            let is_call = is_stall && sign.cause == Some(Cause::Blocked);
            let of_device = sign.rule == RuleId::Quarantine || sign.rule == RuleId::Errors && is_of_device(sign.site);
            has_silo && (of_device || is_slow(sign) || is_call)
        }
        RuleId::Affinity | RuleId::HotAllocation | RuleId::NeverIdle | RuleId::Interrupts => {
            is_thread && is_stall || has_silo && is_slow(sign) && !has_own_reason(sign)
        }
        RuleId::Heartbeat | RuleId::FrameGap | RuleId::Scheduler if is_stall => {
            let is_same = root.cause == sign.cause && root.cause.is_some();
            let is_again = is_thread && root.cause != Some(Cause::Descheduled);
            let is_unknown = sign.cause.is_none_or(|cause| cause == Cause::Unexplained);
            is_same && (is_again || share(root, sign)) || is_thread && is_unknown || holds_core_of(root, sign)
        }
        RuleId::Heartbeat | RuleId::FrameGap | RuleId::Scheduler => has_silo && is_slow(sign) && !has_own_reason(sign),
        RuleId::Quarantine => {
            let came_back_late = sign.rule == RuleId::Errors && code(sign.site) == Some(ErrorCode::LaunchDeadline);
            has_silo && (is_slow(sign) || came_back_late) && !has_own_reason(sign)
        }
        RuleId::Errors if !is_of_time(root.site) => has_silo && is_slow(sign) && sign.cause == root.cause,
        RuleId::RingFull | RuleId::Backlog => has_silo && is_slow(sign),
        RuleId::LateAnswers => has_silo && matches!(sign.rule, RuleId::Errors | RuleId::RunningOut) && is_slow(sign),
        RuleId::InputHealth => sign.rule == RuleId::ModelDrift && is_thread,
        RuleId::Disk => matches!(sign.rule, RuleId::Disk | RuleId::Events),
        RuleId::Errors
        | RuleId::Source
        | RuleId::Events
        | RuleId::ModelDrift
        | RuleId::Duplicates
        | RuleId::RunningOut => false,
    }
}

/// Whether it says that shots wait: late, piled up, without a slot, or answered with an error
/// because of time.
fn is_slow(sign: &Sign) -> bool {
    match sign.rule {
        RuleId::RingFull | RuleId::Backlog | RuleId::LateAnswers => true,
        // Slots fill because shots wait.
        RuleId::RunningOut => matches!(sign.site, Site::Silo(..)),
        RuleId::Errors => is_of_time(sign.site),
        // Shots that a socket's senders lost because nobody read it.
        RuleId::Source => sign.site == Site::Engine(1),
        _ => false,
    }
}

/// Whether it has a cause that no thread that stood still explains: a stage that is slow by itself,
/// a reader of answers that does not read, or a trend of ten seconds.
fn has_own_reason(sign: &Sign) -> bool {
    let is_reader = sign.rule == RuleId::RingFull && matches!(sign.site, Site::Silo(_, 1));
    let is_unread = sign.rule != RuleId::RingFull && sign.cause == Some(Cause::RingFull);
    sign.cause == Some(Cause::SlowStage) || is_reader || is_unread || sign.rule == RuleId::RunningOut
}

/// Whether it is known who, or which part of the engine, made its thread stand still: that is no
/// standstill of everything, though there may be one meanwhile.
fn is_known(sign: &Sign) -> bool {
    !sign.who.is_empty() || sign.cause.is_some_and(Cause::is_ours)
}

/// Whether two threads that stand still for the same cause do so for the same reason.
fn share(one: &Sign, other: &Sign) -> bool {
    match one.cause {
        Some(Cause::Quota | Cause::Steal | Cause::Stopped | Cause::Frozen | Cause::Invisible) => true,
        Some(Cause::Descheduled) => one.who == other.who || one.who.is_empty() || other.who.is_empty(),
        Some(Cause::Offline | Cause::OutsideCpuset | Cause::Affinity | Cause::Heat | Cause::Interrupts) => {
            has_same_core(one, other)
        }
        _ => false,
    }
}

fn has_same_core(one: &Sign, other: &Sign) -> bool {
    one.core.is_some() && one.core == other.core
}

/// Whether a thread of the engine that computes too long keeps another one from their core.
fn holds_core_of(root: &Sign, sign: &Sign) -> bool {
    let computes = root.cause.is_some_and(Cause::is_ours);
    let is_ours = sign.cause == Some(Cause::Descheduled) && sign.who.starts_with(OWN);
    computes && is_ours && has_same_core(root, sign)
}

#[cfg(test)]
mod tests;
