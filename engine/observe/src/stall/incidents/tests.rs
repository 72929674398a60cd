//! The table of which alarm explains which.

use super::{AFTER_NS, BEFORE_NS, OUTLASTS_NS, Sign, roots};
use crate::board::alarms::Site;
use crate::profile::{RuleId, Severity};
use crate::stall::verdict::Cause;
use pinwheel_edge::slot::word::ErrorCode;

const MS: u64 = 1_000_000;
const SILO: Site = Site::Silo(0, 0);
const HOT: Site = Site::Thread(0);
const WORK: Site = Site::Thread(1);

/// An alarm of 100 ms from `at_ms` on; thread 0 is on core 0 and thread 1 on core 1, both of silo
/// 0.
fn sign(rule: RuleId, site: Site, cause: Cause, at_ms: u64) -> Sign {
    let (core, silos) = match site {
        Site::Thread(index) => (Some(index), 1),
        Site::Silo(silo, _) => (None, 1 << silo),
        _ => (None, u64::MAX),
    };
    let (onset_ns, until_ns) = (at_ms * MS, (at_ms + 100) * MS);
    Sign {
        rule,
        site,
        severity: Severity::Warn,
        cause: Some(cause),
        who: String::new(),
        onset_ns,
        until_ns,
        core,
        silos,
    }
}

fn by(who: &str, sign: Sign) -> Sign {
    Sign { who: who.to_owned(), ..sign }
}

fn errors(code: ErrorCode, silo: u32, at_ms: u64) -> Sign {
    sign(RuleId::Errors, Site::Silo(silo, code as u32), Cause::Errors, at_ms)
}

fn late(cause: Cause, at_ms: u64) -> Sign {
    sign(RuleId::LateAnswers, SILO, cause, at_ms)
}

/// Whether the first explains the second, in either order of the table's rows.
fn explains(root: &Sign, sign: &Sign) -> bool {
    let (one, other) = (roots(&[root.clone(), sign.clone()]), roots(&[sign.clone(), root.clone()]));
    assert_eq!(one == [0, 0], other == [1, 1], "{root:?} {sign:?}");
    one == [0, 0]
}

#[test]
fn each_cause_explains_what_it_leads_to_and_nothing_else() {
    use Cause::{Affinity, Blocked, Clock, Descheduled, DeviceHung, Died, Frozen, LongHandler};
    let stall = |cause| sign(RuleId::Heartbeat, HOT, cause, 1_000);
    let gap = |site, cause| sign(RuleId::FrameGap, site, cause, 1_020);
    let device = sign(RuleId::DeviceLost, SILO, DeviceHung, 1_000);
    let quarantine = sign(RuleId::Quarantine, SILO, DeviceHung, 1_100);
    let died = sign(RuleId::RoleDied, HOT, Died, 1_000);
    let full = |part| sign(RuleId::RingFull, Site::Silo(0, part), Cause::RingFull, 1_200);
    let backlog = sign(RuleId::Backlog, SILO, Cause::Overload, 1_300);
    let jump = |part| sign(RuleId::Clock, Site::Engine(part), Clock, 1_000);
    let frozen = sign(RuleId::Frozen, Site::Engine(0), Frozen, 1_000);
    let lost = |part| sign(RuleId::Source, Site::Engine(part), Cause::Records, 1_300);
    let disk = sign(RuleId::Disk, Site::Engine(0), Cause::Records, 1_000);
    let events = sign(RuleId::Events, Site::Engine(0), Cause::Records, 1_100);
    let drift = |stream| sign(RuleId::ModelDrift, Site::Stream(stream), Cause::Input, 1_100);
    let input = sign(RuleId::InputHealth, Site::Stream(2), Cause::Input, 1_000);
    let overflow = errors(ErrorCode::OverflowDeadline, 0, 1_200);
    let panics = errors(ErrorCode::DecoderPanic, 0, 1_200);
    let moved = sign(RuleId::Affinity, HOT, Affinity, 1_000);
    let runs_out = |site| sign(RuleId::RunningOut, site, Cause::RunningOut, 1_400);
    let table = [
        // A thread that stands still makes its silo's shots late.
        (stall(Descheduled), late(Descheduled, 1_100), true),
        (stall(Descheduled), overflow.clone(), true),
        (stall(Descheduled), full(2), true),
        (stall(Descheduled), backlog.clone(), true),
        (stall(Descheduled), lost(1), true),
        // It is not why a stage is slow, why a decoder panics, or why nobody reads the answers or
        // sends shots.
        (stall(Descheduled), late(Cause::SlowStage, 1_100), false),
        (stall(Descheduled), late(Cause::RingFull, 1_100), false),
        (stall(Descheduled), panics.clone(), false),
        (stall(Descheduled), full(1), false),
        (stall(LongHandler), quarantine.clone(), false),
        (stall(Descheduled), lost(0), false),
        (stall(Descheduled), Sign { silos: 2, ..late(Descheduled, 1_100) }, false),
        // Slots fill over seconds: not because a thread stood still for a moment.
        (stall(Descheduled), runs_out(SILO), false),
        (device.clone(), runs_out(SILO), true),
        (full(2), runs_out(SILO), true),
        (late(Cause::SlowStage, 1_100), runs_out(SILO), true),
        (backlog.clone(), runs_out(SILO), true),
        (device.clone(), runs_out(Site::Engine(1)), false),
        (disk.clone(), runs_out(Site::Engine(0)), false),
        (disk.clone(), sign(RuleId::Disk, Site::Engine(1), Cause::Records, 1_100), true),
        // The same thread.
        (stall(Descheduled), gap(HOT, Descheduled), true),
        (stall(Descheduled), gap(HOT, Cause::Unexplained), true),
        (stall(LongHandler), gap(HOT, Descheduled), false),
        (moved.clone(), gap(HOT, Affinity), true),
        (moved.clone(), gap(WORK, Affinity), false),
        // Another thread.
        (by("sh (7)", stall(Descheduled)), by("sh (7)", gap(WORK, Descheduled)), true),
        (by("sh (7)", stall(Descheduled)), by("cargo (8)", gap(WORK, Descheduled)), false),
        (by("sh (7)", stall(Descheduled)), gap(WORK, Descheduled), true),
        (by("sh (7)", gap(WORK, Descheduled)), stall(Descheduled), true),
        (stall(LongHandler), gap(WORK, LongHandler), false),
        (stall(Cause::Quota), gap(WORK, Cause::Quota), true),
        (stall(Cause::Heat), gap(WORK, Cause::Heat), false),
        (stall(Cause::Heat), Sign { core: Some(0), ..gap(WORK, Cause::Heat) }, true),
        (
            stall(LongHandler),
            by("this process's own hot-0 (5)", Sign { core: Some(0), ..gap(WORK, Descheduled) }),
            true,
        ),
        (stall(LongHandler), by("this process's own hot-0 (5)", gap(WORK, Descheduled)), false),
        // The device.
        (device.clone(), quarantine.clone(), true),
        (device.clone(), late(Cause::Unexplained, 1_200), true),
        (device.clone(), errors(ErrorCode::DeviceLost, 0, 1_100), true),
        (device.clone(), overflow.clone(), true),
        (device.clone(), panics.clone(), false),
        (device.clone(), errors(ErrorCode::DeviceLost, 1, 1_100), false),
        (device.clone(), gap(HOT, Blocked), true),
        (device.clone(), gap(HOT, Descheduled), false),
        (quarantine.clone(), errors(ErrorCode::LaunchDeadline, 0, 1_200), true),
        (quarantine.clone(), errors(ErrorCode::LaunchFailed, 0, 1_200), false),
        // A death.
        (died.clone(), errors(ErrorCode::SiloDied, 0, 1_050), true),
        (died.clone(), late(Cause::Unexplained, 1_200), true),
        (died.clone(), sign(RuleId::RoleDied, WORK, Died, 1_010), true),
        (died.clone(), input.clone(), false),
        // Everything stood still.
        (frozen.clone(), gap(WORK, Descheduled), true),
        (frozen.clone(), by("sh (7)", gap(WORK, Descheduled)), false),
        (frozen.clone(), gap(WORK, LongHandler), false),
        (frozen.clone(), late(Cause::Unexplained, 1_200), true),
        (jump(2), frozen.clone(), true),
        (jump(1), frozen, false),
        // Shots that wait.
        (full(2), backlog.clone(), true),
        (backlog.clone(), late(Cause::Overload, 1_400), true),
        (late(Cause::SlowStage, 1_100), overflow, true),
        (late(Cause::SlowStage, 1_100), panics, false),
        (input.clone(), drift(2), true),
        (input, drift(1), false),
        (disk, events, true),
    ];
    for (root, sign, expected) in &table {
        assert_eq!(explains(root, sign), *expected, "{root:?}\n{sign:?}");
    }
}

#[test]
fn a_cause_explains_what_is_seen_a_second_before_it_until_two_and_a_half_seconds_after_it() {
    let stall = sign(RuleId::Heartbeat, HOT, Cause::Descheduled, 10_000);
    let (from, to) = (stall.onset_ns - BEFORE_NS, stall.until_ns + AFTER_NS);
    for (onset_ns, expected) in [(from - 1, false), (from, true), (to, true), (to + 1, false)] {
        let late = Sign { onset_ns, until_ns: onset_ns + MS, ..late(Cause::Unexplained, 0) };
        assert_eq!(explains(&stall, &late), expected, "{onset_ns}");
    }
    let backlog = |onset_ns| Sign { onset_ns, ..sign(RuleId::Backlog, SILO, Cause::Overload, 0) };
    assert!(
        explains(&stall, &backlog(to + super::BACKLOG_NS)) && !explains(&stall, &backlog(to + super::BACKLOG_NS + 1))
    );
}

#[test]
fn a_chain_has_one_root_and_two_causes_at_once_have_two() {
    let hog = by("sh (25821)", sign(RuleId::Heartbeat, HOT, Cause::Descheduled, 1_000));
    let chain = [
        errors(ErrorCode::OverflowDeadline, 0, 1_300),
        late(Cause::Overload, 1_200),
        sign(RuleId::Backlog, SILO, Cause::Overload, 1_150),
        hog.clone(),
        sign(RuleId::RingFull, Site::Silo(0, 2), Cause::RingFull, 1_100),
    ];
    assert_eq!(roots(&chain), [3, 3, 3, 3, 3]);
    let other = Site::Thread(2);
    let two = [
        hog.clone(),
        Sign { silos: 2, ..sign(RuleId::Heartbeat, other, Cause::LongHandler, 1_000) },
        late(Cause::Descheduled, 1_100),
        Sign { silos: 2, ..late(Cause::LongHandler, 1_100) },
    ];
    assert_eq!(roots(&two), [0, 1, 0, 1]);
    // Both may have done it: the one that took more of the half second before it has, if neither is
    // critical.
    let short = Sign { until_ns: 1_020 * MS, ..sign(RuleId::FrameGap, WORK, Cause::LongHandler, 1_000) };
    let waits = Sign { until_ns: 2_000 * MS, ..by("cc (9)", sign(RuleId::Scheduler, WORK, Cause::Descheduled, 700)) };
    let late = late(Cause::Unexplained, 1_100);
    assert_eq!(roots(&[short.clone(), hog.clone(), late.clone()]), [0, 1, 1]);
    assert_eq!(roots(&[waits.clone(), hog, late.clone()]), [0, 1, 1], "400 ms of which a fifth, beside 100 ms");
    assert_eq!(roots(&[waits.clone(), short.clone(), late.clone()]), [0, 1, 0], "and beside 20 ms");
    let lost = Sign { severity: Severity::Critical, ..sign(RuleId::DeviceLost, SILO, Cause::DeviceHung, 1_090) };
    assert_eq!(roots(&[waits.clone(), short, lost, late]), [0, 1, 2, 2]);
    // Who takes a core again and again makes its thread stand still for long, too.
    let stall = by("cc (9)", sign(RuleId::Heartbeat, WORK, Cause::Descheduled, 1_500));
    let other = by("sh (7)", sign(RuleId::Heartbeat, WORK, Cause::Descheduled, 1_500));
    assert_eq!(roots(&[stall, waits.clone()]), [1, 1]);
    assert_eq!(roots(&[other, waits]), [0, 1]);
    assert!(roots(&[]).is_empty());
}

#[test]
fn whatever_the_alarms_each_has_a_root_that_is_its_own() {
    let sites =
        [HOT, WORK, SILO, Site::Silo(0, 2), Site::Silo(1, 14), Site::Engine(1), Site::Engine(2), Site::Stream(3)];
    let all: Vec<Sign> = RuleId::ALL
        .into_iter()
        .flat_map(|rule| sites.iter().map(move |site| (rule, site)))
        .enumerate()
        .map(|(at, (rule, site))| sign(rule, *site, Cause::ALL[at % Cause::ALL.len()], 1_000 + at as u64 * 7 % 400))
        .collect();
    let found = roots(&all);
    assert!(found.iter().all(|root| found[*root] == *root));
    assert!(found.iter().enumerate().any(|(at, root)| at != *root));
}

/// A process that was stopped for a moment, on a machine that is busy for much longer.
#[test]
fn a_thread_that_waits_long_after_a_cause_is_over_waits_for_another_reason() {
    let frozen = Sign { until_ns: 3_000 * MS, ..sign(RuleId::Frozen, Site::Engine(0), Cause::Frozen, 1_000) };
    let waits = |until_ns| Sign { until_ns, ..sign(RuleId::Scheduler, HOT, Cause::Unexplained, 2_900) };
    let late = late(Cause::Unexplained, 40_000);
    let (shortly, long) = (waits(3_000 * MS + OUTLASTS_NS), waits(41_000 * MS));
    assert_eq!(roots(&[frozen.clone(), shortly, late.clone()]), [0, 0, 2]);
    assert_eq!(roots(&[frozen, long.clone(), late]), [0, 1, 1]);
    // One program that takes the core again and again stays one cause.
    let stall = by("cc (9)", sign(RuleId::Heartbeat, HOT, Cause::Descheduled, 2_000));
    assert_eq!(roots(&[stall, by("cc (9)", Sign { cause: Some(Cause::Descheduled), ..long })]), [0, 0]);
}
