//! One stall for each cause, and what must not be blamed.
#![allow(clippy::unwrap_used, reason = "harness")]

use super::{Cause, Verdict, verdict};
use crate::board::alarms::Confidence;
use crate::host::usable::CoreLoss;
use crate::stall::account::{Hidden, OtherThread};
use crate::stall::account::{Pressure, ThreadAccount, ThreadDetail};
use crate::stall::observe::{Observations, SignalState};
use crate::stall::switches::Switched;

pub(super) const MS: u64 = 1_000_000;

/// 20 ms in poll, looked at for 10 ms inside.
pub(super) fn stall() -> Observations {
    Observations {
        thread: "hot-0".into(),
        role: Some("poll"),
        core: Some(1),
        found_core: Some(1),
        stall_ns: 20 * MS,
        span_ns: 10 * MS,
        is_inside: true,
        ran_ns: Some(0),
        waited_ns: Some(0),
        state: Some('R'),
        minor_faults: Some(0),
        major_faults: Some(0),
        steal_ns: Some(0),
        interrupts_ns: Some(0),
        shootdowns: Some(0),
        machine_ns: Some(10 * MS),
        still: (1, 2),
        ..Observations::default()
    }
}

fn of(seen: &Observations) -> (Cause, Confidence) {
    let Verdict { cause, confidence, sentence, evidence, .. } = verdict(seen);
    assert!(sentence.contains("20.0 ms") && !evidence.is_empty(), "{sentence}");
    (cause, confidence)
}

#[test]
fn a_handler_that_computes_is_named_with_its_line_and_without_one_is_only_likely() {
    let ran = Observations { ran_ns: Some(10 * MS), ..stall() };
    assert_eq!(of(&ran), (Cause::LongHandler, Confidence::Likely));
    let line = Observations { culprit: Some("decode.rs:7".into()), asked: SignalState::Answered, ..ran };
    assert_eq!(of(&line), (Cause::LongHandler, Confidence::Certain));
    assert!(verdict(&line).sentence.contains("poll computes, at decode.rs:7"));
}

#[test]
fn a_ready_thread_was_descheduled_and_its_likely_competitor_is_named() {
    let waited = Observations { waited_ns: Some(9 * MS), ..stall() };
    assert_eq!(of(&waited), (Cause::Descheduled, Confidence::Likely));
    assert!(verdict(&waited).sentence.ends_with("not in the records of switches"), "no advice that would not help");
    let hidden = vec![Hidden { what: "each switch of a core by record", how: "a permission" }];
    assert!(verdict(&Observations { hidden, ..waited.clone() }).sentence.contains("CAP_PERFMON"));
    let other = OtherThread::seen(8123, "cargo".into(), 9 * MS, false);
    let named = Observations { others: vec![other], ..waited };
    assert_eq!(of(&named), (Cause::Descheduled, Confidence::Likely));
    assert!(verdict(&named).sentence.contains("by cargo (8123), which ran 9.0 ms on core 1"));
    assert_eq!(verdict(&named).who, "cargo (8123)");
}

#[test]
fn a_quota_that_held_the_group_back_is_certain_when_its_time_explains_the_stall() {
    let held = Observations { throttled: Some((1, 15 * MS)), ..stall() };
    assert_eq!(of(&held), (Cause::Quota, Confidence::Certain));
    assert_eq!(of(&Observations { throttled: Some((1, 0)), ..stall() }), (Cause::Quota, Confidence::Likely));
    assert_ne!(of(&Observations { throttled: Some((0, 0)), ..stall() }).0, Cause::Quota);
}

#[test]
fn a_sleep_inside_a_role_is_blocked_with_its_call_and_one_between_roles_is_not() {
    let detail = ThreadDetail {
        call: Some((230, 1, 1)),
        sleeps_in: Some("hrtimer_nanosleep".into()),
        ..ThreadDetail::default()
    };
    let asleep = Observations { state: Some('S'), detail, ..stall() };
    assert_eq!(of(&asleep), (Cause::Blocked, Confidence::Certain));
    assert!(verdict(&asleep).sentence.contains("hrtimer_nanosleep"));
    assert_ne!(of(&Observations { role: None, ..asleep.clone() }).0, Cause::Blocked);
    let hidden = Observations { detail: ThreadDetail::default(), ..asleep };
    assert_eq!(of(&hidden).1, Confidence::Likely);
    assert!(verdict(&hidden).sentence.contains("CAP_SYS_PTRACE"), "says how to make it visible");
}

#[test]
fn many_faults_are_page_faults_and_some_are_not() {
    let faults = |count| Observations { ran_ns: Some(10 * MS), minor_faults: Some(count), ..stall() };
    assert_eq!(of(&faults(5_000)), (Cause::PageFaults, Confidence::Certain));
    assert_eq!(of(&faults(50)).0, Cause::LongHandler);
    let disk = Observations { state: Some('D'), major_faults: Some(2), ..stall() };
    assert_eq!(of(&disk), (Cause::PageFaults, Confidence::Certain));
}

#[test]
fn interrupts_steal_and_heat_are_what_their_counters_say() {
    let ran = Observations { ran_ns: Some(10 * MS), ..stall() };
    assert_eq!(of(&Observations { shootdowns: Some(900), ..ran.clone() }), (Cause::Interrupts, Confidence::Likely));
    assert_eq!(of(&Observations { interrupts_ns: Some(10 * MS), ..ran.clone() }).0, Cause::Interrupts);
    assert_eq!(of(&Observations { thermal: Some(3), ..ran }), (Cause::Heat, Confidence::Likely));
    let stolen = Observations { span_ns: 18 * MS, steal_ns: Some(20 * MS), ..stall() };
    assert_eq!(of(&stolen), (Cause::Steal, Confidence::Certain), "one whole unit at least lies inside");
}

/// A unit of steal is 10 ms, and may have been full but for its last microsecond before the stall
/// began.
#[test]
fn one_unit_of_steal_is_at_most_likely_and_overrides_no_certain_cause() {
    let unit = Observations { steal_ns: Some(10 * MS), ..stall() };
    assert_eq!(of(&unit), (Cause::Steal, Confidence::Likely));
    let waited = Observations { waited_ns: Some(8 * MS), ..unit.clone() };
    assert_eq!(of(&waited).0, Cause::Descheduled);
    let line = Some("harvest.rs:7".to_owned());
    let ran = Observations { ran_ns: Some(9 * MS), culprit: line, asked: SignalState::Answered, ..unit.clone() };
    assert_eq!(of(&ran), (Cause::LongHandler, Confidence::Certain));
    let faults = Observations { ran_ns: Some(9 * MS), minor_faults: Some(5_000), ..unit.clone() };
    assert_eq!(of(&faults).0, Cause::PageFaults);
    let around = Observations { is_inside: false, span_ns: 100 * MS, steal_ns: Some(30 * MS), ..unit };
    assert_eq!(of(&around), (Cause::Steal, Confidence::Likely), "it may lie beside the stall");
}

#[test]
fn a_tracer_and_a_stop_signal_get_different_verdicts() {
    let held = Observations { state: Some('t'), ..stall() };
    let traced = Observations { detail: ThreadDetail { tracer: Some(99), ..ThreadDetail::default() }, ..held.clone() };
    assert!(verdict(&traced).sentence.contains("process 99 traces"));
    assert_eq!(of(&traced), (Cause::Stopped, Confidence::Certain));
    let stopped = Observations { state: Some('T'), ..stall() };
    assert_eq!(of(&stopped), (Cause::Stopped, Confidence::Certain));
    assert!(verdict(&stopped).sentence.contains("SIGCONT"));
}

#[test]
fn a_frozen_process_and_a_frozen_machine_get_different_verdicts() {
    let machine_ns = Some(20 * MS);
    let frozen = Observations { watcher_late_ns: 20 * MS, still: (2, 2), span_ns: 20 * MS, machine_ns, ..stall() };
    assert_eq!(of(&frozen).0, Cause::Frozen);
    assert!(verdict(&frozen).sentence.starts_with("everything") && verdict(&frozen).sentence.contains("whole process"));
    let machine = Observations { machine_ns: Some(0), ..frozen.clone() };
    assert!(verdict(&machine).sentence.contains("machine or its host"));
    let around = Observations { is_inside: false, span_ns: 120 * MS, machine_ns: Some(100 * MS), ..frozen.clone() };
    assert!(verdict(&around).sentence.contains("machine or its host"), "it ran beside the stall: {around:?}");
    let starved = Observations { waited_ns: Some(10 * MS), ..frozen };
    assert_eq!(of(&starved).0, Cause::Descheduled, "a late watchdog on a busy machine freezes nothing");
}

#[test]
fn lost_affinity_is_certain() {
    let detail = ThreadDetail { allowed: Some(vec![0]), ..ThreadDetail::default() };
    assert_eq!(of(&Observations { detail, ..stall() }), (Cause::Affinity, Confidence::Certain));
}

#[test]
fn a_core_taken_from_below_without_steal_is_invisible_to_the_kernel_by_exclusion() {
    let ran = Observations { ran_ns: Some(10 * MS), asked: SignalState::Unanswered, ..stall() };
    assert_eq!(of(&ran), (Cause::Invisible, Confidence::Likely));
    let between = Observations { asked: SignalState::NotSent, role: None, ..ran.clone() };
    assert_eq!(of(&between), (Cause::Invisible, Confidence::Likely));
    assert!(verdict(&ran).sentence.contains("without steal shown"));
}

#[test]
fn what_nothing_explains_is_unexplained_with_its_evidence_and_with_what_is_not_visible() {
    let hidden = vec![Hidden { what: "CPU quota", how: "mount the cpu control group" }];
    let bare = Observations { state: None, ran_ns: None, waited_ns: None, hidden, ..stall() };
    assert_eq!(of(&bare), (Cause::Unexplained, Confidence::Unexplained));
    let evidence = verdict(&bare).evidence;
    assert!(evidence.contains("ran not visible") && evidence.contains("mount the cpu control group"), "{evidence}");
}

/// Seastar #1521: steal went negative. CPU-time timers miss descheduling: the account does not.
#[test]
fn steal_that_goes_backwards_and_a_wait_that_is_not_yet_counted_are_read_right() {
    let account = |at_ns, ran, waited| ThreadAccount {
        at_ns,
        ran_ns: Some(ran),
        waited_ns: Some(waited),
        turns: Some(5),
        state: Some('R'),
        ..ThreadAccount::default()
    };
    let mut seen = stall();
    seen.between(&account(0, 100, 7), &account(10 * MS, 100, 7));
    assert_eq!((seen.ran_ns, seen.waited_ns), (Some(0), Some(10 * MS)), "it stood ready all the time");
    seen.between(&account(0, 0, 7), &account(10 * MS, 10 * MS, 7));
    assert_eq!((seen.ran_ns, seen.waited_ns), (Some(10 * MS), Some(0)));
    use crate::stall::account::CoreAccount;
    use crate::stall::procfs::CoreTimes;
    let core = |steal| CoreAccount { times: Some(CoreTimes { interrupts: 0, steal }), ..CoreAccount::default() };
    seen.on_core(&core(9), &core(4));
    assert_eq!(seen.steal_ns, Some(0));
}

#[test]
fn every_cause_has_a_name_of_its_own() {
    for cause in Cause::ALL {
        assert_eq!(Cause::ALL.iter().filter(|other| other.name() == cause.name()).count(), 1);
        assert!(cause.name().len() <= 32, "{}", cause.name());
    }
}

#[test]
fn what_the_kernel_recorded_of_a_switch_is_certain_and_names_who_took_the_core() {
    let by = vec![(8123, 8125, 15 * MS), (9, 9, MS)];
    let other = OtherThread { is_recorded: true, ..OtherThread::seen(8123, "cargo".into(), 15 * MS, false) };
    let switched = Some(Switched { out_ns: 18 * MS, taken_ns: 17 * MS, taken: 3, by, is_of_core: true });
    let taken = Observations { switched, others: vec![other], ..stall() };
    assert_eq!(of(&taken), (Cause::Descheduled, Confidence::Certain));
    let sentence = verdict(&taken).sentence;
    assert!(sentence.contains("17.0 ms by cargo (8123), which ran 15.0 ms on core 1"), "{sentence}");
    assert!(verdict(&taken).evidence.contains("8123/8125 15.0 ms"));
    let unnamed = Some(Switched { out_ns: 18 * MS, taken_ns: 17 * MS, taken: 1, by: Vec::new(), is_of_core: false });
    let unnamed = Observations { switched: unnamed, ..stall() };
    assert_eq!(of(&unnamed), (Cause::Descheduled, Confidence::Certain), "that it was is certain");
    assert!(verdict(&unnamed).sentence.contains("by whom is not visible (sysctl"), "{}", verdict(&unnamed).sentence);
    let anywhere = Observations { core: None, found_core: None, ..unnamed.clone() };
    let sentence = verdict(&anywhere).sentence;
    assert!(
        sentence.contains("17.0 ms; by whom is not visible (who has a core is recorded only for a pinned"),
        "{sentence}"
    );
    let mut many = unnamed.clone();
    many.switched.as_mut().unwrap().is_of_core = true;
    assert!(verdict(&many).sentence.contains("none had a quarter"), "no advice that would not help");
    let short = Some(Switched { out_ns: 9 * MS, taken_ns: 9 * MS, taken: 1, by: Vec::new(), is_of_core: false });
    let ran = Observations { switched: short, ran_ns: Some(10 * MS), ..stall() };
    assert_eq!(of(&ran).0, Cause::LongHandler, "less than half of the stall explains nothing");
}

#[test]
fn a_thread_that_yielded_and_got_its_core_back_late_names_each_who_had_it_meanwhile() {
    let ran = |pid, command: &str, ms| OtherThread {
        is_recorded: true,
        ..OtherThread::seen(pid, command.to_owned(), ms * MS, false)
    };
    let switched = Some(Switched { out_ns: 19 * MS, is_of_core: true, ..Switched::default() });
    let others = vec![ran(81, "cargo", 9), ran(82, "rustc", 6), ran(83, "grep", 3)];
    let (waited_ns, span_ns) = (Some(70 * MS), 90 * MS);
    let yielded = Observations { switched, others, waited_ns, span_ns, is_inside: false, ..stall() };
    assert_eq!(of(&yielded), (Cause::Descheduled, Confidence::Likely));
    assert!(
        verdict(&yielded).sentence.ends_with(
            "descheduled 19.0 ms by cargo (81), which ran 9.0 ms and rustc (82), which ran 6.0 ms on core 1; it had \
             yielded its core, by record"
        ),
        "{}",
        verdict(&yielded).sentence
    );
}

#[test]
fn a_core_far_below_its_frequency_is_likely_the_cause_and_pressure_is_evidence() {
    let pressure = Some(Pressure { cpu: 479, memory: 0, io: 12 });
    let slow = Observations { ran_ns: Some(10 * MS), frequency: Some((800_000, 3_400_000)), pressure, ..stall() };
    assert_eq!(of(&slow), (Cause::Heat, Confidence::Likely));
    assert!(verdict(&slow).sentence.contains("0.80 of its 3.40 GHz"), "{}", verdict(&slow).sentence);
    assert!(verdict(&slow).evidence.contains("for a core 4.8 %, for memory 0.0 %, for a disk 0.1 %"));
    let fast = Observations { frequency: Some((3_200_000, 3_400_000)), ..slow };
    assert_eq!(of(&fast).0, Cause::LongHandler);
    let bare = Observations { frequency: None, pressure: None, ..fast };
    assert!(!verdict(&bare).evidence.contains("pressure"), "what is not visible is not said to be nothing");
}

#[test]
fn a_stall_while_the_core_was_lost_says_how() {
    let mut seen = Observations { core: Some(1), stall_ns: 20_000_000, ..Observations::default() };
    seen.detail.allowed = Some(vec![0]);
    for (loss, cause, sentence, evidence) in [
        (CoreLoss::Offline, Cause::Offline, "core 1 went offline", "core 1 was offline"),
        (CoreLoss::OutsideCpuset, Cause::OutsideCpuset, "core 1 left the cpuset", "core 1 was outside the cpuset"),
    ] {
        seen.core_loss = Some(loss);
        let found = verdict(&seen);
        assert_eq!((found.cause, found.confidence), (cause, Confidence::Certain));
        assert!(found.sentence.contains(sentence), "{}", found.sentence);
        assert!(found.evidence.contains(evidence), "{}", found.evidence);
    }
}
