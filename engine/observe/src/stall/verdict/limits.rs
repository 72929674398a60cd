//! Each limit of a verdict, at its value and one nanosecond, fault or kilohertz beside it; the sentences word by word.

use super::tests::{MS, stall};
use super::{Cause, EVIDENCE_MAX, joined, verdict};
use crate::board::alarms::Confidence;
use crate::stall::account::{OtherThread, ThreadDetail};
use crate::stall::observe::{Observations, SignalState};
use crate::stall::switches::Switched;

/// A change of what was observed.
type Change = fn(&mut Observations);

/// The verdicts on the stall of [`stall`] after each of two changes.
fn causes(changes: [Change; 2]) -> [Cause; 2] {
    changes.map(|change| seen(change).0)
}

fn seen(change: Change) -> (Cause, Confidence, String) {
    let mut seen = stall();
    change(&mut seen);
    let found = verdict(&seen);
    (found.cause, found.confidence, found.sentence)
}

/// Two readings 100 ms apart around the stall, in which the machine ran.
fn around(seen: &mut Observations) {
    (seen.is_inside, seen.span_ns, seen.machine_ns) = (false, 100 * MS, Some(100 * MS));
}

/// All hot threads and the watchdog stood still.
fn frozen(seen: &mut Observations) {
    (seen.watcher_late_ns, seen.still) = (20 * MS, (2, 2));
    (seen.span_ns, seen.machine_ns) = (20 * MS, Some(20 * MS));
}

fn ran(seen: &mut Observations) {
    seen.ran_ns = Some(10 * MS);
}

fn taken_by(by: Vec<(u32, u32, u64)>, taken_ns: u64) -> Option<Switched> {
    Some(Switched { out_ns: taken_ns, taken_ns, taken: 3, by, is_of_core: true })
}

fn other(pid: u32, command: &str, is_own: bool) -> OtherThread {
    OtherThread::seen(pid, command.to_owned(), 0, is_own)
}

#[test]
fn a_share_of_time_counts_from_its_limit_on() {
    use Cause::{Descheduled, LongHandler, Unexplained};
    let waited = |seen: [Change; 2]| assert_eq!(causes(seen), [Descheduled, Unexplained]);
    waited([|seen| seen.waited_ns = Some(5 * MS), |seen| seen.waited_ns = Some(5 * MS - 1)]);
    // Around a stall the share is of the stall, inside of the time between the readings.
    waited([
        |seen| (around(seen), seen.waited_ns = Some(10 * MS)).1,
        |seen| (around(seen), seen.waited_ns = Some(10 * MS - 1)).1,
    ]);
    let computed = |seen: [Change; 2]| assert_eq!(causes(seen), [LongHandler, Unexplained]);
    computed([|seen| seen.ran_ns = Some(6 * MS), |seen| seen.ran_ns = Some(6 * MS - 1)]);
    computed([
        |seen| (around(seen), seen.ran_ns = Some(80 * MS)).1,
        |seen| (around(seen), seen.ran_ns = Some(80 * MS - 1)).1,
    ]);
    let nothing: [Change; 2] = [|seen| seen.span_ns = 0, |seen| (seen.span_ns, seen.steal_ns) = (0, None)];
    assert_eq!(causes(nothing), [Unexplained; 2], "no time has no shares");
    assert_eq!(seen(|seen| (seen.stall_ns, seen.span_ns) = (0, 99)).0, Unexplained, "nothing is no share");
}

#[test]
fn a_tracer_that_holds_nothing_explains_a_stall_only_of_a_thread_that_neither_ran_nor_waited() {
    fn traced(seen: &mut Observations, ran_ns: u64, waited_ns: u64) {
        seen.detail.tracer = Some(99);
        (seen.ran_ns, seen.waited_ns) = (Some(ran_ns), Some(waited_ns));
    }
    assert_eq!(
        causes([|seen| traced(seen, 5 * MS, 0), |seen| traced(seen, 5 * MS - 1, 0)]),
        [Cause::Unexplained, Cause::Stopped]
    );
    assert_eq!(
        causes([|seen| traced(seen, 0, 5 * MS), |seen| traced(seen, 0, 5 * MS - 1)]),
        [Cause::Descheduled, Cause::Stopped]
    );
    assert_eq!(
        seen(|seen| traced(seen, 0, 0)),
        (Cause::Stopped, Confidence::Likely, "hot-0 stood still 20.0 ms in poll: process 99 traces it".to_owned())
    );
}

#[test]
fn everything_is_frozen_only_if_all_threads_and_the_watchdog_stood_still() {
    use Cause::{Frozen, Quota, Unexplained};
    let late: [Change; 2] = [
        |seen| (frozen(seen), seen.watcher_late_ns = 10 * MS).1,
        |seen| (frozen(seen), seen.watcher_late_ns = 10 * MS - 1).1,
    ];
    assert_eq!(causes(late), [Frozen, Unexplained]);
    let still: [Change; 2] =
        [|seen| (frozen(seen), seen.still = (1, 2)).1, |seen| (frozen(seen), seen.still = (0, 0)).1];
    assert_eq!(causes(still), [Unexplained; 2]);
    let held: [Change; 2] = [
        |seen| (frozen(seen), seen.throttled = Some((0, 0))).1,
        |seen| (frozen(seen), seen.throttled = Some((1, 0))).1,
    ];
    assert_eq!(causes(held), [Frozen, Quota]);
    let sentence = |change: Change| seen(change).2;
    assert_eq!(
        sentence(|seen| (frozen(seen), (seen.span_ns, seen.machine_ns) = (50 * MS, Some(30 * MS + 1))).1),
        "everything stood still 20.0 ms: the whole process, watchdog included (20.0 ms), while the machine ran on \
         (30.0 ms): a stop signal, a debugger or a freezer"
    );
    assert_eq!(
        sentence(|seen| (frozen(seen), (seen.span_ns, seen.machine_ns) = (50 * MS, Some(30 * MS))).1),
        "everything stood still 20.0 ms: the watchdog too, for 20.0 ms, and the machine accounts for only 30.0 ms of \
         50.0 ms: the machine or its host stood still"
    );
    assert_eq!(
        sentence(|seen| (frozen(seen), seen.machine_ns = None).1),
        "everything stood still 20.0 ms: the watchdog too, for 20.0 ms"
    );
}

#[test]
fn an_amount_above_the_stall_names_the_time_that_it_is_of() {
    let sentence = |ns: Change| seen(ns).2;
    let waited = sentence(|seen| (around(seen), seen.waited_ns = Some(72 * MS)).1);
    assert!(waited.contains("stood still 20.0 ms in poll: descheduled 72.0 ms of the 100.0 ms around it"), "{waited}");
    let longer = sentence(|seen| (around(seen), seen.waited_ns = Some(172 * MS)).1);
    assert!(longer.contains("descheduled 100.0 ms of the 100.0 ms around it"), "{longer}");
    let most = sentence(|seen| (around(seen), seen.waited_ns = Some(20 * MS)).1);
    assert!(most.contains("descheduled 20.0 ms on core 1; "), "{most}");
    let once = sentence(|seen| seen.throttled = Some((1, 10 * MS)));
    assert!(once.contains("held it back once, 10.0 ms"), "{once}");
}

#[test]
fn a_quota_explains_no_thread_that_ran_and_is_certain_from_half_of_the_stall_on() {
    let sure = |ns: Change| (seen(ns).0, seen(ns).1);
    assert_eq!(sure(|seen| seen.throttled = Some((1, 10 * MS))), (Cause::Quota, Confidence::Certain));
    assert_eq!(sure(|seen| seen.throttled = Some((1, 10 * MS - 1))), (Cause::Quota, Confidence::Likely));
    assert_eq!(
        causes([
            |seen| (seen.throttled, seen.ran_ns) = (Some((1, MS)), Some(6 * MS)),
            |seen| (around(seen), (seen.throttled, seen.ran_ns) = (Some((1, MS)), Some(80 * MS))).1,
        ]),
        [Cause::LongHandler, Cause::Quota]
    );
}

#[test]
fn heat_explains_a_thread_that_ran_on_a_slow_core() {
    use Cause::{Heat, LongHandler, Unexplained};
    let hot: [Change; 2] = [
        |seen| (seen.thermal, seen.ran_ns) = (Some(1), Some(5 * MS)),
        |seen| (seen.thermal, seen.ran_ns) = (Some(1), Some(5 * MS - 1)),
    ];
    assert_eq!(causes(hot), [Heat, Unexplained]);
    assert_eq!(seen(|seen| (ran(seen), seen.thermal = Some(0)).1).0, LongHandler);
    let slow: [Change; 2] = [
        |seen| (ran(seen), seen.frequency = Some((1_699_999, 3_400_000))).1,
        |seen| (ran(seen), seen.frequency = Some((1_700_000, 3_400_000))).1,
    ];
    assert_eq!(causes(slow), [Heat, LongHandler]);
}

#[test]
fn a_sleeping_thread_is_blocked_unless_it_ran_inside_the_stall() {
    use Cause::{Blocked, LongHandler, PageFaults};
    let asleep: [Change; 2] = [
        |seen| (seen.state, seen.ran_ns) = (Some('S'), Some(6 * MS - 1)),
        |seen| (seen.state, seen.ran_ns) = (Some('S'), Some(6 * MS)),
    ];
    assert_eq!(causes(asleep), [Blocked, LongHandler]);
    let disk: [Change; 2] = [
        |seen| (seen.state, seen.major_faults) = (Some('D'), Some(1)),
        |seen| (seen.state, seen.major_faults) = (Some('D'), Some(0)),
    ];
    assert_eq!(causes(disk), [PageFaults, Blocked]);
    assert_eq!(seen(|seen| (seen.state, seen.major_faults) = (Some('S'), Some(1))).0, Blocked);
    fn in_a_call(seen: &mut Observations) {
        (seen.state, seen.detail.call) = (Some('S'), Some((230, 1, 1)));
        (seen.detail.sleeps_in, seen.culprit) = (Some("hrtimer_nanosleep".into()), Some("poll.rs:3".into()));
    }
    let (cause, confidence, sentence) = seen(in_a_call);
    assert_eq!((cause, confidence), (Blocked, Confidence::Certain));
    assert!(sentence.ends_with(" (kernel: hrtimer_nanosleep), at poll.rs:3"), "{sentence}");
    let (cause, confidence, _) = seen(|seen| (in_a_call(seen), around(seen), seen.ran_ns = Some(80 * MS)).2);
    assert_eq!((cause, confidence), (Blocked, Confidence::Likely), "it may have slept beside the stall");
}

#[test]
fn steal_counts_by_its_share_or_by_the_whole_stall_and_proves_a_unit_less_than_it_has() {
    use Cause::{LongHandler, Steal, Unexplained};
    let share: [Change; 2] = [|seen| seen.steal_ns = Some(5 * MS), |seen| seen.steal_ns = Some(5 * MS - 1)];
    assert_eq!(causes(share), [Steal, Unexplained]);
    fn long(seen: &mut Observations, steal_ns: u64) {
        (seen.span_ns, seen.machine_ns, seen.steal_ns) = (100 * MS, Some(100 * MS), Some(steal_ns));
    }
    assert_eq!(causes([|seen| long(seen, 20 * MS), |seen| long(seen, 20 * MS - 1)]), [Steal, Unexplained]);
    let proof = |steal: Change| seen(steal).1;
    assert_eq!(proof(|seen| (seen.span_ns, seen.steal_ns) = (18 * MS, Some(19 * MS))), Confidence::Certain);
    assert_eq!(proof(|seen| (seen.span_ns, seen.steal_ns) = (18 * MS, Some(19 * MS - 1))), Confidence::Likely);
    let worked: [Change; 2] = [
        |seen| (ran(seen), seen.steal_ns = Some(10 * MS), seen.culprit = Some("a.rs:1".into())).2,
        |seen| (ran(seen), seen.steal_ns = Some(10 * MS)).1,
    ];
    assert_eq!(causes(worked), [LongHandler, Steal]);
    let sentence = seen(|seen| seen.steal_ns = Some(12 * MS)).2;
    assert!(sentence.ends_with("the hypervisor took 12.0 ms of its core for others"), "{sentence}");
}

#[test]
fn faults_and_shoot_downs_count_from_their_rate_on() {
    use Cause::{Interrupts, LongHandler, PageFaults};
    let faults: [Change; 2] =
        [|seen| (ran(seen), seen.minor_faults = Some(1_000)).1, |seen| (ran(seen), seen.minor_faults = Some(999)).1];
    assert_eq!(causes(faults), [PageFaults, LongHandler]);
    let brief: Change = |seen| (seen.span_ns, seen.ran_ns, seen.minor_faults) = (MS, Some(MS - 1), Some(5_000));
    assert_eq!(seen(brief).0, LongHandler, "less than a millisecond has no rate");
    let shot: [Change; 2] =
        [|seen| (ran(seen), seen.shootdowns = Some(500)).1, |seen| (ran(seen), seen.shootdowns = Some(499)).1];
    assert_eq!(causes(shot), [Interrupts, LongHandler]);
    let time: [Change; 2] = [
        |seen| (ran(seen), seen.interrupts_ns = Some(5 * MS)).1,
        |seen| (ran(seen), seen.interrupts_ns = Some(5 * MS - 1)).1,
    ];
    assert_eq!(causes(time), [Interrupts, LongHandler]);
    let sentence = |change: Change| seen(change).2;
    assert_eq!(
        sentence(|seen| (ran(seen), (seen.interrupts_ns, seen.shootdowns) = (Some(6 * MS), Some(7))).1),
        "hot-0 stood still 20.0 ms in poll: interrupts on its core: 6.0 ms of time, 7 shoot-downs"
    );
    assert_eq!(
        sentence(|seen| (ran(seen), (seen.minor_faults, seen.culprit) = (Some(2_000), Some("a.rs:1".into()))).1),
        "hot-0 stood still 20.0 ms in poll: 2000 page faults in 10 ms, at a.rs:1"
    );
}

#[test]
fn a_signal_has_five_milliseconds_to_be_answered() {
    let late: [Change; 2] = [
        |seen| (seen.asked, seen.span_ns, seen.ran_ns) = (SignalState::Unanswered, 5 * MS + 1, Some(5 * MS)),
        |seen| (seen.asked, seen.span_ns, seen.ran_ns) = (SignalState::Unanswered, 5 * MS, Some(5 * MS)),
    ];
    assert_eq!(causes(late), [Cause::Invisible, Cause::LongHandler]);
    let sentence = seen(|seen| (ran(seen), seen.culprit = Some("a.rs:1".into())).1).2;
    assert_eq!(sentence, "hot-0 stood still 20.0 ms in poll: long handler: poll computes, at a.rs:1 (ran 10.0 ms)");
}

#[test]
fn records_of_switches_explain_from_half_of_the_stall_on_and_name_who_had_a_quarter() {
    use Cause::{Descheduled, Unexplained};
    let half: [Change; 2] = [
        |seen| seen.switched = taken_by(Vec::new(), 10 * MS),
        |seen| seen.switched = taken_by(Vec::new(), 10 * MS - 1),
    ];
    assert_eq!(causes(half), [Descheduled, Unexplained]);
    let none: Change = |seen| (seen.stall_ns, seen.switched) = (0, taken_by(Vec::new(), 0));
    assert_eq!(seen(none).0, Unexplained);
    let named: Change = |seen| {
        seen.switched = taken_by(vec![(7, 7, 8 * MS), (8, 8, 4 * MS), (9, 9, 4 * MS - 1)], 16 * MS);
        let recorded = |ran_ns, other| OtherThread { ran_ns, is_recorded: true, ..other };
        seen.others = vec![
            recorded(8 * MS, other(7, "most", false)),
            recorded(4 * MS, other(8, "own", true)),
            recorded(4 * MS - 1, other(9, "least", false)),
            OtherThread { ran_ns: 9 * MS, ..other(10, "seen", false) },
        ];
    };
    assert_eq!(
        seen(named).2,
        "hot-0 stood still 20.0 ms in poll: descheduled 16.0 ms by most (7), which ran 8.0 ms and this process's own \
         thread own (8), which ran 4.0 ms on core 1; its core was taken 3 times, by record"
    );
    let waited: Change = |seen| (seen.waited_ns, seen.others) = (Some(9 * MS), vec![other(8, "helper", true)]);
    assert_eq!(
        seen(waited).2,
        "hot-0 stood still 20.0 ms in poll: descheduled 9.0 ms by this process's own thread helper (8) on core 1"
    );
    let how_long: Change = |seen| {
        (seen.waited_ns, seen.others) = (Some(9 * MS), vec![OtherThread { ran_ns: MS, ..other(8, "cargo", false) }]);
    };
    assert!(seen(how_long).2.ends_with("by cargo (8), which ran 1.0 ms on core 1"));
}

#[test]
fn a_machine_that_accounts_for_less_than_half_of_a_long_time_stood_still() {
    use Cause::{Frozen, Unexplained};
    let long: [Change; 2] = [
        |seen| (seen.span_ns, seen.machine_ns) = (50 * MS + 1, Some(0)),
        |seen| (seen.span_ns, seen.machine_ns) = (50 * MS, Some(0)),
    ];
    assert_eq!(causes(long), [Frozen, Unexplained]);
    let half: [Change; 2] = [
        |seen| (seen.span_ns, seen.machine_ns) = (100 * MS, Some(50 * MS - 1)),
        |seen| (seen.span_ns, seen.machine_ns) = (100 * MS, Some(50 * MS)),
    ];
    assert_eq!(causes(half), [Frozen, Unexplained]);
    assert_eq!(
        seen(|seen| (seen.span_ns, seen.machine_ns) = (100 * MS, Some(20 * MS))).2,
        "everything stood still 20.0 ms: the machine accounts for 20.0 ms of 100.0 ms: it or its host stood still"
    );
}

#[test]
fn the_engine_is_the_cause_of_six_causes() {
    let ours = Cause::ALL.iter().filter(|cause| cause.is_ours()).map(|cause| cause.name()).collect::<Vec<_>>();
    assert_eq!(
        ours,
        ["long handler", "blocked in a system call", "page faults", "affinity lost", "died", "claims work for ever"]
    );
}

#[test]
fn evidence_has_each_line_that_fits_whole_and_none_after_the_first_that_does_not() {
    let line = |bytes: usize| "x".repeat(bytes);
    assert_eq!(joined(&[line(EVIDENCE_MAX - 1)]).len(), EVIDENCE_MAX - 1);
    assert_eq!(joined(&[line(EVIDENCE_MAX)]), "");
    assert_eq!(joined(&[line(1_000), line(EVIDENCE_MAX - 1_001)]).len(), EVIDENCE_MAX);
    assert_eq!(joined(&[line(1_000), line(EVIDENCE_MAX - 1_000), line(1)]), line(1_000));
    assert_eq!(joined(&["a".to_owned(), "b".to_owned(), "c".to_owned()]), "a\nb\nc");
}

/// What a stopped or a moved thread says of itself.
#[test]
fn a_thread_without_a_plan_is_not_moved_and_one_that_was_moved_names_both_cores() {
    let allowed = |core: Option<u32>| {
        let detail = ThreadDetail { allowed: Some(vec![0, 3]), ..ThreadDetail::default() };
        verdict(&Observations { core, detail, ..stall() })
    };
    assert_eq!(allowed(None).cause, Cause::Unexplained);
    assert_eq!(allowed(Some(3)).cause, Cause::Unexplained);
    assert!(allowed(Some(1)).sentence.contains("it may run on core 0,3 only, its plan says core 1"));
    // As many cores as a sentence could not list.
    let many = (0..512).filter(|core| *core != 7).collect();
    let detail = ThreadDetail { allowed: Some(many), ..ThreadDetail::default() };
    let sentence = verdict(&Observations { core: Some(7), detail, ..stall() }).sentence;
    assert!(sentence.contains("it may run on core 0-6,8-511 only, its plan says core 7: "), "{sentence}");
}
