//! Each limit of the watchdog at its value and one nanosecond beside it, on accounts and times made by hand.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "harness")]

use super::tests::{MS, World, world};
use super::{AGAIN_NS, Baseline, ESCALATION_LIMITS, EXPLAINS_NS, HOLD_NS, START_NS, Watchdog, WatchdogConfig};
use crate::board::alarms::{AlarmState, Confidence, Site};
use crate::board::gaps::Gap;
use crate::board::{self, Board, Phase, Place, Shape};
use crate::profile::{AlarmRule, OnAlarm, RuleId, Severity};
use crate::roles::RoleKind;
use crate::stall::account::{CoreAccount, OtherThread, ThreadAccount};
use crate::stall::counter_rules::{Condition, condition, plain};
use crate::stall::observe::Observations;
use crate::stall::procfs::{CoreTimes, Interrupts};
use crate::stall::switches::Switched;
use crate::stall::verdict::Cause;
use crate::units::Ticks;

const THREAD: Site = Site::Thread(0);

/// A world whose threads are open; the first is pinned to core 3.
fn opened() -> World {
    let mut world = world(Vec::new());
    world.run(MS, [true, true]);
    (world.dog.threads[0].pinned, world.dog.threads[0].core) = (true, 3);
    world
}

/// The accounts at `at_ms` of a thread that runs and has waited for `waited_ns`, on a core with that many shoot-downs,
/// in a process with that many faults.
fn base(at_ms: u64, waited_ns: u64, shootdowns: u64, faults: u64) -> Baseline {
    let at_ns = at_ms * MS;
    let thread = ThreadAccount {
        at_ns,
        ran_ns: Some(at_ns - waited_ns),
        waited_ns: Some(waited_ns),
        turns: Some(at_ms),
        ..ThreadAccount::default()
    };
    let interrupts = Some(Interrupts { shootdowns: Some(shootdowns), ..Interrupts::default() });
    (thread, CoreAccount { at_ns, interrupts, process_faults: Some(faults), ..CoreAccount::default() })
}

fn now(world: &World) -> Ticks {
    world.dog.config.clock.ticks()
}

/// The scan of a second saw `cargo`, process `pid`, on the core of `thread`, where it ran for
/// `ran_ns`.
fn seen_there(world: &World, thread: usize, pid: u64, ran_ns: u64) {
    let block = world.board.thread(thread);
    board::set(&block.competitor_pid, pid);
    board::set(&block.competitor_ran_ns, ran_ns);
    board::set(&block.competitor_span_ns, 1_000 * MS);
    board::set(&block.competitor_seen, now(world).0);
    block.competitor_command.write("cargo");
}

#[test]
fn shoot_downs_are_this_processes_if_its_thread_was_alone_or_the_process_has_faulted_in_half_as_many_pages() {
    let mut world = opened();
    let judged = |world: &World, waited_ns: u64, shootdowns: u64, faults: u64| {
        let (then, now) = (base(500, 0, 7, 5), base(1_000, waited_ns, 7 + shootdowns, 5 + faults));
        world.dog.interrupted(&world.dog.threads[0], THREAD, &then, &now)
    };
    let alone = judged(&world, 5 * MS, 1_000, 0).unwrap();
    assert_eq!((alone.rule, alone.site, alone.value, alone.count), (RuleId::Interrupts, THREAD, 2_000.0, None));
    assert_eq!((alone.verdict.cause, alone.verdict.confidence), (Cause::Interrupts, Confidence::Certain));
    let sentence =
        "hot-0: interrupts on core 3: 2000 shoot-downs a second: memory is unmapped by a thread of this process";
    assert_eq!(alone.verdict.sentence, sentence);
    assert_eq!(alone.verdict.evidence, "1000 shoot-downs (row TLB of /proc/interrupts) in 500 ms");
    let shared = judged(&world, 5 * MS + 1, 1_000, 500).unwrap();
    assert_eq!(shared.verdict.confidence, Confidence::Likely);
    assert_eq!(judged(&world, 5 * MS + 1, 1_000, 499), None, "another process may cause them");
    assert_eq!(judged(&world, 0, 0, 0), None);
    world.dog.threads[0].pinned = false;
    assert_eq!(judged(&world, 0, 1_000, 0), None, "it may have run on other cores");
}

#[test]
fn a_thread_that_waited_for_a_hundredth_of_the_last_half_second_is_said_to_wait() {
    let world = opened();
    let waits = |waited_ns| {
        super::judge::waits(&world.dog.threads[0], THREAD, &base(500, 0, 0, 0), &base(1_000, waited_ns, 0, 0))
    };
    let found = waits(5 * MS).unwrap();
    assert_eq!((found.rule, found.site, found.value), (RuleId::Scheduler, THREAD, 1.0));
    assert_eq!((found.verdict.cause, found.verdict.confidence), (Cause::Descheduled, Confidence::Certain));
    let sentence = "hot-0: descheduled 1 % of 0.5 s: it stood ready for core 3 and did not run";
    assert_eq!(found.verdict.sentence, sentence);
    assert_eq!(waits(5 * MS - 1), None);
}

#[test]
fn a_thread_without_a_core_of_its_own_is_not_judged_by_the_counters_of_one() {
    let mut world = opened();
    world.dog.threads[0].pinned = false;
    world.run(300 * MS, [true, true]);
    let (_, core) = world.dog.base(0, now(&world));
    assert_eq!((core.times, core.interrupts, core.frequency), (None, None, None));
    assert!(world.dog.threads[0].bases.iter().all(|(_, core)| (core.times, core.interrupts) == (None, None)));
    let (then, at) = (base(500, 0, 0, 0), now(&world));
    assert_eq!(world.dog.observe(0, &then, &then, at, at).core, None);
    let waits = super::judge::waits(&world.dog.threads[0], THREAD, &then, &base(1_000, 5 * MS, 0, 0)).unwrap();
    assert!(waits.verdict.sentence.ends_with("it stood ready for a core and did not run"));
}

#[test]
fn every_thread_has_an_account_and_the_limit_of_its_gaps_in_each_round() {
    let mut world = opened();
    world.dog.config.rules = vec![AlarmRule { limit: 0.5, ..RuleId::FrameGap.bundled() }];
    world.run(1_000 * MS, [true, true]);
    for thread in [0, 1] {
        assert_eq!(world.dog.threads[thread].bases.len(), super::BASELINES);
        // Half of the limit of a heartbeat, 10 ms.
        assert_eq!(board::get(&world.board.thread(thread).gap_limit_ticks), 5 * MS);
    }
}

#[test]
fn half_a_second_of_accounts_is_kept() {
    let mut world = opened();
    world.dog.threads[0].bases.clear();
    let at_ms = |tenth: u64| 1_000 + 100 * tenth;
    for tenth in 0..9 {
        world.dog.keep_base(0, base(at_ms(tenth), 0, 0, 0), Ticks(at_ms(tenth) * MS));
    }
    let kept: Vec<u64> = world.dog.threads[0].bases.iter().map(|base| base.0.at_ns / MS).collect();
    assert_eq!(kept, (3..9).map(at_ms).collect::<Vec<_>>(), "half a second has six readings");
}

#[test]
fn the_thread_that_waited_most_explains_late_answers_from_a_tenth_of_half_a_second_on() {
    let mut world = opened();
    let mut lately = |first_ns: u64, second_ns: u64, competitor: u64| {
        for (thread, waited_ns) in [(0, first_ns), (1, second_ns)] {
            let bases = (0..6).map(|at| base(1_000 + 100 * at, if at == 5 { waited_ns } else { 0 }, 0, 0));
            world.dog.threads[thread].bases = bases.collect();
            seen_there(&world, thread, competitor, 100 * MS);
        }
        world.dog.taken_lately()
    };
    assert_eq!(lately(50 * MS - 1, 0, 0), None);
    let found = lately(50 * MS, 100 * MS, 0).unwrap();
    assert_eq!((found.cause, found.confidence), (Cause::Descheduled, Confidence::Likely));
    assert_eq!((found.took_ns, found.ended_ns), (100 * MS, 1_500 * MS));
    assert!(found.sentence.starts_with("work-0 was descheduled for 20 % of 0.5 s; by whom is not visible"));
    let named = lately(50 * MS, 0, 81).unwrap();
    assert_eq!(named.sentence, "hot-0 was descheduled for 10 % of 0.5 s on core 3; last seen there: cargo (81)");
    world.dog.threads[0].bases.pop_front();
    world.dog.threads[1].bases.pop_front();
    assert_eq!(world.dog.taken_lately(), None, "half a second has six readings");
}

#[test]
fn a_core_that_the_hypervisor_took_in_pieces_explains_late_answers_of_its_pinned_thread() {
    let mut world = opened();
    let mut lately = |waited_ns: u64, jiffies: u64, is_pinned: bool| {
        let at = |tenth: u64| {
            let (waited_ns, steal) = if tenth == 5 { (waited_ns, jiffies) } else { (0, 0) };
            let (thread, core) = base(1_000 + 100 * tenth, waited_ns, 0, 0);
            let times = Some(CoreTimes { interrupts: 0, steal });
            (thread, CoreAccount { times, ..core })
        };
        world.dog.threads[0].bases = (0..6).map(at).collect();
        world.dog.threads[0].pinned = is_pinned;
        world.dog.taken_lately()
    };
    assert_eq!(lately(0, 4, true), None);
    let found = lately(0, 5, true).unwrap();
    assert_eq!((found.cause, found.confidence, found.took_ns), (Cause::Steal, Confidence::Likely, 50 * MS));
    assert_eq!(found.sentence, "the hypervisor took core 3 of hot-0 for others for 10 % of 0.5 s");
    assert_eq!(lately(50 * MS, 5, true).unwrap().cause, Cause::Descheduled, "who is known to have had it");
    assert_eq!(lately(0, 5, false), None, "it may have run on another core");
}

#[test]
fn interrupts_of_one_interval_count_two_thirds_and_those_of_two_fully() {
    let mut world = opened();
    let mut value = |shootdowns: [u64; 6]| {
        let bases = shootdowns.iter().enumerate().map(|(at, count)| base(1_000 + 100 * at as u64, 0, *count, 0));
        world.dog.threads[0].bases = bases.collect();
        let found = world.dog.by_account(0, 1_500 * MS);
        found.iter().map(|condition| (condition.rule, condition.value)).collect::<Vec<_>>()
    };
    assert_eq!(value([0, 0, 0, 0, 0, 300]), [(RuleId::Interrupts, 2_000.0)]);
    assert_eq!(value([0, 0, 0, 0, 150, 300]), [(RuleId::Interrupts, 1_500.0)]);
    assert_eq!(value([0, 0, 0, 300, 300, 300]), [], "over");
    world.dog.threads[0].bases.pop_front();
    assert_eq!(world.dog.by_account(0, 1_500 * MS), [], "half a second has six readings");
}

#[test]
fn frames_on_another_core_are_counted_once_and_only_of_a_pinned_thread() {
    let mut world = opened();
    let elsewhere = |world: &mut World, frames: u64| {
        board::set(&world.board.thread(0).frames_elsewhere, frames);
        world.dog.by_account(0, 1_500 * MS)
    };
    let [found] = <[Condition; 1]>::try_from(elsewhere(&mut world, 5)).unwrap();
    assert_eq!((found.rule, found.site, found.value, found.count), (RuleId::Affinity, THREAD, 5.0, Some(5)));
    let start = "hot-0: 5 frames elsewhere than on core 3; something changed its affinity: ";
    assert!(found.verdict.sentence.starts_with(start), "{}", found.verdict.sentence);
    assert_eq!(found.verdict.cause, Cause::Affinity);
    assert_eq!(elsewhere(&mut world, 5), []);
    assert_eq!(elsewhere(&mut world, 7)[0].value, 2.0);
    world.dog.threads[0].pinned = false;
    assert_eq!(elsewhere(&mut world, 9), []);
}

#[test]
fn where_a_thread_may_run_is_said_only_if_it_is_visible() {
    let may_run = |allowed: &[u32]| super::judge::may_run(allowed, 3);
    assert_eq!(may_run(&[3]), "it is pinned to it again");
    assert_eq!((may_run(&[4]), may_run(&[3, 4])), ("it may run on 4".to_owned(), "it may run on 3-4".to_owned()));
    assert_eq!(may_run(&[]), "where it may run is not visible");
}

#[test]
fn a_thread_stood_still_if_it_was_silent_for_half_of_the_time_or_notes_such_a_gap_in_it() {
    let world = opened();
    let (since, until) = (Ticks(1_100 * MS), Ticks(1_120 * MS));
    let still = |heartbeats: [u64; 2]| {
        for (index, heartbeat) in heartbeats.into_iter().enumerate() {
            board::set(&world.board.thread(index).heartbeat, heartbeat);
        }
        world.dog.still(since, until)
    };
    assert_eq!(still([1_110 * MS, 1_110 * MS + 1]), (1, 2));
    let with_gap = |start: u64, length: u64| {
        world.board.thread(1).note_gap(Ticks(start), Ticks(length), 0);
        let found = still([1_120 * MS; 2]).0;
        // Three more: the gap is not among the newest any longer.
        (0..3).for_each(|_| world.board.thread(1).note_gap(Ticks(1), Ticks(1), 0));
        assert_eq!(still([1_120 * MS; 2]).0, 0);
        found
    };
    assert_eq!(with_gap(1_105 * MS, 10 * MS), 1);
    assert_eq!(with_gap(1_105 * MS, 10 * MS - 1), 0, "shorter than half");
    assert_eq!([with_gap(1_085 * MS, 15 * MS), with_gap(1_085 * MS, 15 * MS + 1)], [0, 1], "it ends before or in it");
    assert_eq!([with_gap(1_120 * MS, 10 * MS), with_gap(1_120 * MS - 1, 10 * MS)], [0, 1], "it begins after or in it");
    board::set(&world.board.thread(1).state, 2);
    assert_eq!(still([0, 0]), (1, 1), "a thread that has ended is none of them");
}

#[test]
fn a_stack_ends_behind_the_last_word_that_its_thread_has_named() {
    let mut world = world(Vec::new());
    board::set(&world.board.thread(1).stack_anchor, 0x7000_0000);
    world.run(MS, [true, true]);
    assert_eq!(world.dog.threads.iter().map(|thread| thread.stack_top).collect::<Vec<_>>(), [0, 0x7000_0008]);
}

#[test]
fn a_thread_that_has_not_started_builds_its_roles_in_init_and_warms_them_in_warm_up() {
    let mut world = opened();
    let mut role = |phase: Phase, state: u64| {
        world.dog.phase = phase;
        board::set(&world.board.thread(0).state, state);
        let (then, at) = (base(500, 0, 0, 0), now(&world));
        world.dog.observe(0, &then, &then, at, at).role
    };
    assert_eq!(role(Phase::Init, 0), Some("building its roles"));
    assert_eq!(role(Phase::Warmup, 0), Some("warming its roles"));
    assert_eq!([role(Phase::Warmup, 1), role(Phase::Live, 0)], [None, None]);
}

#[test]
fn a_gap_that_an_alarm_of_silence_covers_is_not_told_again() {
    let mut world = world(Vec::new());
    world.run(300 * MS, [true, true]);
    world.run(30 * MS, [false, true]);
    world.run(3 * MS, [true, true]);
    let place = world.dog.alarms.find(RuleId::Heartbeat, THREAD).unwrap();
    let (onset, ended) = (world.dog.alarms.record(place).onset, world.dog.alarms.record(place).ended);
    assert!(ended > onset);
    let mut told = |start: u64, end: u64| {
        let now = now(&world);
        let before = world.dog.alarms.find(RuleId::FrameGap, THREAD).map(|at| world.dog.alarms.record(at).count);
        let gap = Gap { number: 1, start: Ticks(start), length: Ticks(end - start), stage: 0 };
        world.dog.note_gap(0, gap, now, &mut world.done);
        world.dog.alarms.find(RuleId::FrameGap, THREAD).map(|at| world.dog.alarms.record(at).count) != before
    };
    assert!(told(onset.0 - 20 * MS, onset.0), "before it");
    assert!(!told(onset.0 - 20 * MS, onset.0 + 1));
    assert!(!told(ended.0 - 1, ended.0 + 20 * MS));
    assert!(told(ended.0, ended.0 + 20 * MS), "after it");
}

/// A process that was stopped for seconds: its threads find many small gaps when they go on.
#[test]
fn a_short_stall_just_after_a_long_one_counts_and_does_not_take_its_place() {
    let mut world = world(Vec::new());
    world.run(300 * MS, [true, true]);
    let start = now(&world);
    let mut tell = |index: usize, start: Ticks, length_ns: u64| {
        let gap = Gap { number: 1, start, length: Ticks(length_ns), stage: 0 };
        let told_at = start.plus(Ticks(length_ns + MS));
        world.dog.note_gap(index, gap, told_at, &mut world.done);
        let alarm = world.alarm(RuleId::FrameGap, Site::Thread(index as u32)).unwrap();
        let reason = world.dog.recent(told_at).unwrap().sentence;
        (alarm.count, alarm.duration_ns / MS, reason.contains("stood still 2000.0 ms"))
    };
    let end = start.plus(Ticks(2_000 * MS));
    assert_eq!(tell(0, start, 2_000 * MS), (1, 2_000, true));
    assert_eq!(tell(0, end.plus(Ticks(200 * MS)), 20 * MS), (2, 2_000, true));
    assert_eq!(tell(1, end.plus(Ticks(300 * MS)), 20 * MS), (1, 20, true), "late answers are the long one's");
    assert_eq!(tell(0, end.plus(Ticks(400 * MS)), 3_000 * MS), (3, 3_000, false), "a longer one is told");
    assert_eq!(tell(1, end.plus(Ticks(9_000 * MS)), 20 * MS), (2, 20, false));
}

/// A thread that sleeps by its policy notes the gap when it wakes up, after the alarm.
#[test]
fn a_gap_in_which_everything_stood_still_for_most_of_it_is_not_told_again() {
    for (cause, of_freeze_ms, is_told) in
        [(Cause::Frozen, 15, false), (Cause::Frozen, 14, true), (Cause::Descheduled, 30, true)]
    {
        let mut world = world(Vec::new());
        world.run(300 * MS, [true, true]);
        let (onset, length) = (now(&world), Ticks(30 * MS));
        let verdict = plain(cause, "everything stood still".to_owned());
        let rule = RuleId::Frozen.bundled();
        let frozen = world.dog.raise(&rule, Site::Engine(0), rule.severity, onset, (verdict, None), &mut world.done);
        let (end, board) = (onset.plus(Ticks(of_freeze_ms * MS)), std::sync::Arc::clone(&world.board));
        world.dog.alarms.end(frozen.unwrap(), end, &board);
        let gap = Gap { number: 1, start: onset, length, stage: 0 };
        world.dog.note_gap(0, gap, onset.plus(length), &mut world.done);
        assert_eq!(world.alarm(RuleId::FrameGap, THREAD).is_some(), is_told, "{cause:?} {of_freeze_ms} ms");
    }
}

#[test]
fn an_alarm_about_what_is_the_case_now_says_it_anew_and_one_about_its_onset_does_not() {
    for (rule, says) in
        [(RuleId::Quarantine, "7 of 8"), (RuleId::RunningOut, "7 of 8"), (RuleId::LateAnswers, "1 of 8")]
    {
        let mut world = world(Vec::new());
        for sentence in ["1 of 8", "7 of 8"] {
            let verdict = plain(Cause::Overload, sentence.to_owned());
            let (found, now) = (condition(rule, Site::Silo(0, 0), 50.0, None, verdict), now(&world));
            world.dog.settle(vec![found], now, &mut world.done);
        }
        assert_eq!(world.alarm(rule, Site::Silo(0, 0)).unwrap().sentence, says, "{rule}");
    }
}

#[test]
fn gaps_are_told_in_live_and_drain_once_each() {
    for (phase, told) in [(Phase::Warmup, 0), (Phase::Live, 2), (Phase::Drain, 2)] {
        let mut world = world(Vec::new());
        world.run(300 * MS, [true, true]);
        board::set(&world.board.header().phase, phase as u64);
        let end = now(&world).0;
        world.board.thread(1).note_gap(Ticks(end - 60 * MS), Ticks(12 * MS), 0);
        world.board.thread(1).note_gap(Ticks(end - 30 * MS), Ticks(12 * MS), 0);
        world.run(6 * MS, [true, true]);
        let found = world.alarm(RuleId::FrameGap, Site::Thread(1)).map_or(0, |alarm| alarm.count);
        assert_eq!(found, told, "{phase:?}");
    }
}

/// Judges the silence of thread 0, whose last heartbeat lies `silent_ns` back, with a limit of 10 ms.
fn silence(world: &mut World, silent_ns: u64) -> Option<Severity> {
    let now = now(world);
    board::set(&world.board.thread(0).heartbeat, now.0 - silent_ns);
    world.dog.judge_silence(0, now, 10 * MS, &mut world.done);
    world.dog.alarms.find(RuleId::Heartbeat, THREAD).map(|place| world.dog.alarms.record(place).severity)
}

#[test]
fn silence_is_suspected_after_half_of_its_limit_and_raised_after_all_of_it() {
    let quiet = || {
        let mut world = world(Vec::new());
        world.run(300 * MS, [true, true]);
        world
    };
    let mut world = quiet();
    assert_eq!(silence(&mut world, 5 * MS), None);
    assert!(world.dog.threads[0].suspicion.is_none());
    assert_eq!(silence(&mut world, 5 * MS + 1), None);
    assert!(world.dog.threads[0].suspicion.is_some());
    assert_eq!(silence(&mut world, 10 * MS), None);
    assert!(silence(&mut world, 10 * MS + 1).is_some());
    let mut doubled = quiet();
    doubled.dog.config.rules = vec![AlarmRule { limit: 2.0, ..RuleId::Heartbeat.bundled() }];
    assert_eq!(silence(&mut doubled, 20 * MS), None, "the rule's limit counts in limits of the heartbeat");
    assert!(silence(&mut doubled, 20 * MS + 1).is_some());
    let mut unborn = quiet();
    unborn.dog.phase_since = now(&unborn);
    board::set(&unborn.board.thread(0).heartbeat, 0);
    for (after_ns, raised) in [(START_NS, false), (START_NS + 1, true)] {
        let at = unborn.dog.phase_since.plus(Ticks(after_ns));
        unborn.dog.judge_silence(0, at, 10 * MS, &mut unborn.done);
        assert_eq!(unborn.dog.alarms.find(RuleId::Heartbeat, THREAD).is_some(), raised, "no heartbeat yet");
    }
}

#[test]
fn a_silence_is_judged_again_after_25_ms_and_escalates_after_five_limits() {
    let mut world = world(Vec::new());
    world.run(300 * MS, [true, true]);
    let since = now(&world).0 - 11 * MS;
    world.dog.threads[0].bases = [base(world.dog.at_ns(Ticks(since)) / MS - 5, 0, 0, 0)].into();
    let mut at = |silent_ns: u64| {
        let world = &mut world;
        board::set(&world.board.thread(0).heartbeat, since);
        world.dog.judge_silence(0, Ticks(since + silent_ns), 10 * MS, &mut world.done);
        let place = world.dog.alarms.find(RuleId::Heartbeat, THREAD).unwrap();
        let is_rejudged = world.dog.threads[0].episode.as_ref().unwrap().is_rejudged;
        (is_rejudged, world.dog.alarms.record(place).severity)
    };
    assert!(!at(11 * MS).0);
    assert!(!at(10 * MS + AGAIN_NS).0);
    assert!(at(10 * MS + AGAIN_NS + 1).0);
    assert_eq!(at(ESCALATION_LIMITS * 10 * MS).1, Severity::Note);
    assert_eq!(at(ESCALATION_LIMITS * 10 * MS + 1).1, Severity::Warn);
    let evidence = world.alarm(RuleId::Heartbeat, THREAD).unwrap().evidence;
    assert!(evidence[0].starts_with("stood still 35.0 ms; looked at for 40.0 ms"), "{evidence:?}");
}

#[test]
fn a_stall_explains_other_alarms_until_two_and_a_half_seconds_after_its_end_and_is_at_most_likely_to() {
    let mut world = world(Vec::new());
    let onset = now(&world);
    let verdict = plain(Cause::Steal, "hot-0 stood still".to_owned());
    let rule = RuleId::FrameGap.bundled();
    let place = world.dog.raise(&rule, THREAD, Severity::Note, onset, (verdict, None), &mut world.done).unwrap();
    let board = std::sync::Arc::clone(&world.board);
    let at = |ns: u64| onset.plus(Ticks(ns));
    let going_on = world.dog.recent(at(30 * MS)).unwrap();
    assert_eq!((going_on.cause, going_on.confidence), (Cause::Steal, Confidence::Likely));
    assert_eq!(going_on.took_ns, 30 * MS);
    let long_ns = EXPLAINS_NS + 12 * MS;
    assert_eq!(world.dog.recent(at(long_ns)).unwrap().took_ns, long_ns, "it still goes on");
    world.dog.alarms.end(place, at(long_ns), &board);
    let after = |ns: u64| world.dog.recent(at(long_ns + ns));
    assert_eq!(after(EXPLAINS_NS).unwrap().took_ns, long_ns);
    assert_eq!(after(EXPLAINS_NS + 1), None);
}

/// Raises an alarm of `rule` on thread 0 whose sentence is the rule's name.
fn raised(world: &mut World, rule: RuleId) -> usize {
    let verdict = plain(Cause::Steal, rule.name().to_owned());
    let onset = now(world);
    world.dog.raise(&rule.bundled(), THREAD, Severity::Note, onset, (verdict, None), &mut world.done).unwrap()
}

#[test]
fn stalls_dead_roles_and_lost_devices_explain_other_alarms_and_of_several_alike_the_last() {
    let explains = [RuleId::Heartbeat, RuleId::FrameGap, RuleId::Frozen, RuleId::RoleDied, RuleId::DeviceLost];
    for rule in RuleId::ALL {
        let mut world = world(Vec::new());
        raised(&mut world, rule);
        let found = world.dog.recent(now(&world)).map(|recent| recent.sentence);
        assert_eq!(found, explains.contains(&rule).then(|| rule.name().to_owned()));
    }
    let mut world = world(Vec::new());
    let board = std::sync::Arc::clone(&world.board);
    let [early, late] = [RuleId::FrameGap, RuleId::Frozen].map(|rule| raised(&mut world, rule));
    let ends = now(&world);
    world.dog.alarms.end(late, ends, &board);
    world.dog.alarms.end(early, ends.plus(Ticks(1)), &board);
    assert_eq!(world.dog.recent(ends.plus(Ticks(2))).unwrap().sentence, RuleId::FrameGap.name());
}

#[test]
fn a_stall_is_not_ended_as_a_condition_that_is_away() {
    for rule in [RuleId::Heartbeat, RuleId::FrameGap, RuleId::Frozen] {
        let mut world = world(Vec::new());
        let place = raised(&mut world, rule);
        let later = now(&world).plus(Ticks(2 * HOLD_NS));
        world.dog.settle(Vec::new(), later, &mut world.done);
        assert_eq!(world.dog.alarms.record(place).state, AlarmState::Active, "{rule:?}");
    }
}

#[test]
fn a_condition_is_raised_from_its_limit_on_kept_above_its_hysteresis_and_ends_after_the_hold() {
    let rule = AlarmRule { limit: 10.0, hysteresis: 0.5, ..RuleId::Backlog.bundled() };
    let zero = AlarmRule { limit: 0.0, ..RuleId::Clock.bundled() };
    let mut world = world(vec![rule, zero]);
    let settle = |world: &mut World, value: f64, after_ns: u64| {
        let at = Ticks(now(world).0 + after_ns);
        let found =
            |rule, value| condition(rule, Site::Silo(0, 0), value, None, plain(Cause::Overload, "why".to_owned()));
        world.dog.settle(vec![found(RuleId::Backlog, value), found(RuleId::Clock, 0.0)], at, &mut world.done);
        world.dog.alarms.find(RuleId::Backlog, Site::Silo(0, 0)).map(|place| world.dog.alarms.record(place).state)
    };
    assert_eq!(settle(&mut world, 9.99, 0), None);
    assert_eq!(settle(&mut world, 10.0, 0), Some(AlarmState::Active));
    assert_eq!(settle(&mut world, 5.0, HOLD_NS), Some(AlarmState::Active), "kept: the hold begins anew");
    assert_eq!(settle(&mut world, 4.99, 2 * HOLD_NS), Some(AlarmState::Active));
    assert_eq!(settle(&mut world, 4.99, 2 * HOLD_NS + 1), Some(AlarmState::Ended));
    assert_eq!(world.dog.alarms.find(RuleId::Clock, Site::Silo(0, 0)), None, "nothing is no alarm, whatever the limit");
    // Nor does nothing keep one.
    let clock = |world: &mut World, value: f64, after_ns: u64| {
        let at = Ticks(now(world).0 + after_ns);
        let found = condition(RuleId::Clock, Site::Silo(0, 0), value, None, plain(Cause::Overload, "why".to_owned()));
        world.dog.settle(vec![found], at, &mut world.done);
        world.dog.alarms.find(RuleId::Clock, Site::Silo(0, 0)).map(|place| world.dog.alarms.record(place).state)
    };
    assert_eq!(clock(&mut world, 1.0, 0), Some(AlarmState::Active));
    assert_eq!(clock(&mut world, 0.0, 2 * HOLD_NS), Some(AlarmState::Ended));
}

#[test]
fn a_tick_that_comes_late_by_more_than_five_milliseconds_is_the_watchdogs_own() {
    let late = |span_ns: u64| {
        let mut world = opened();
        let at = world.dog.ticked.unwrap();
        world.dog.note_own_lateness(at.plus(Ticks(span_ns)));
        (world.dog.late_ns, world.dog.froze.is_some())
    };
    let tick_ns = super::TICK.as_nanos() as u64;
    assert_eq!(late(tick_ns + 5 * MS), (0, false));
    assert_eq!(late(tick_ns + 5 * MS + 1), (5 * MS + 1, true));
}

#[test]
fn the_scan_in_which_a_thread_ran_for_longest_is_kept_and_the_earlier_of_two_alike() {
    let scan = |name: &str, ran_ns| vec![OtherThread::seen(9, name.to_owned(), ran_ns, false)];
    let kept = |later: Vec<OtherThread>, earlier: Vec<OtherThread>| {
        super::episode::fuller(later, &earlier).first().map(|other| other.command.clone())
    };
    assert_eq!(kept(scan("later", 6), scan("earlier", 5)).unwrap(), "later");
    assert_eq!(kept(scan("later", 5), scan("earlier", 5)).unwrap(), "earlier");
    assert_eq!(kept(Vec::new(), scan("earlier", 0)).unwrap(), "earlier");
    assert_eq!(kept(scan("later", 0), Vec::new()).unwrap(), "later");
}

#[test]
fn who_had_a_core_is_said_as_recorded_or_as_seen_there() {
    let said = [true, false].map(|is_recorded| super::judge::by_whom("cargo (81)", is_recorded));
    assert_eq!(said, ["by cargo (81)", "last seen there: cargo (81)"]);
}

#[test]
fn a_stacks_ticket_names_its_thread_and_its_stall() {
    let ticket = |onset, index| super::episode::ticket(Ticks(onset), index);
    for index in [0, 5, 1_023] {
        assert_eq!(super::episode::thread_of(ticket(7 * MS, index)), index);
    }
    assert!(ticket(7 * MS, 5) != ticket(8 * MS, 5) && ticket(7 * MS, 5) != ticket(7 * MS, 4));
}

#[test]
fn a_stall_ends_with_its_thread_though_another_thread_started_meanwhile() {
    let mut world = world(Vec::new());
    world.run(300 * MS, [true, true]);
    world.run(16 * MS, [false, true]);
    let state = |world: &World| world.alarm(RuleId::Heartbeat, THREAD).map(|alarm| (alarm.state, alarm.count));
    assert_eq!(state(&world), Some((AlarmState::Active, 1)));
    board::set(&world.board.thread(1).tid, 1);
    world.run(3 * MS, [false, true]);
    assert_eq!(state(&world), Some((AlarmState::Active, 1)));
    world.run(3 * MS, [true, true]);
    assert_eq!(state(&world), Some((AlarmState::Ended, 1)));
}

#[test]
fn a_stall_ends_with_the_gap_of_its_thread_that_is_nearest_to_its_last_heartbeat() {
    // How long it took, in microseconds, if the thread has noted gaps that begin so long after its last heartbeat, and
    // how many milliseconds were looked at.
    let took = |gaps: &[(i64, u64)]| {
        let mut world = world(Vec::new());
        world.run(300 * MS, [true, true]);
        let beat = now(&world).0;
        let before = world.dog.at_ns(Ticks(beat)) / MS - 5;
        world.dog.threads[0].bases = [base(before, 0, 0, 0)].into();
        world.dog.judge_silence(0, Ticks(beat + 11 * MS), 10 * MS, &mut world.done);
        for (start_us, length_us) in gaps {
            let start = beat.saturating_add_signed(start_us * 1_000);
            world.board.thread(0).note_gap(Ticks(start), Ticks(length_us * 1_000), 0);
        }
        board::set(&world.board.thread(0).heartbeat, beat + 41 * MS);
        world.dog.judge_silence(0, Ticks(beat + 42 * MS), 10 * MS, &mut world.done);
        let alarm = world.alarm(RuleId::Heartbeat, THREAD).unwrap();
        assert_eq!(alarm.state, AlarmState::Ended);
        let looked_at = alarm.evidence[0].split_once(" around the stall").unwrap().0.rsplit_once(' ').unwrap().0;
        (alarm.duration_ns / 1_000, looked_at.rsplit_once(' ').unwrap().1.to_owned())
    };
    // The readings lie 47 ms apart, of which the last two do not belong to the stall.
    assert_eq!(took(&[(1_000, 39_000)]), (40_000, "45.0".to_owned()));
    assert_eq!(took(&[]).0, 42_000);
    assert_eq!(took(&[(20_000, 20_000)]).0, 40_000);
    assert_eq!(took(&[(20_001, 20_000)]).0, 42_000, "not its own");
    assert_eq!(took(&[(-12_000, 12_000), (0, 40_000)]).0, 40_000, "the gap before ended when it began");
}

#[test]
fn a_thread_that_ends_ends_its_stall_and_one_that_has_not_started_is_judged_before_live_alone() {
    let mut world = world(Vec::new());
    world.run(300 * MS, [true, true]);
    assert!(silence(&mut world, 11 * MS).is_some());
    board::set(&world.board.thread(0).state, 2);
    silence(&mut world, 12 * MS);
    assert_eq!(world.alarm(RuleId::Heartbeat, THREAD).unwrap().state, AlarmState::Ended);
    for (phase, is_judged) in [(Phase::Init, true), (Phase::Warmup, true), (Phase::Live, false), (Phase::Drain, false)]
    {
        let mut world = opened();
        world.run(300 * MS, [true, true]);
        board::set(&world.board.thread(0).state, 0);
        (world.dog.phase, world.dog.phase_since) = (phase, now(&world));
        let at = now(&world).plus(Ticks(START_NS + 1));
        world.dog.judge_silence(0, at, 10 * MS, &mut world.done);
        assert_eq!(world.dog.alarms.find(RuleId::Heartbeat, THREAD).is_some(), is_judged, "{phase:?}");
    }
}

#[test]
fn a_silence_is_judged_from_its_own_first_reading() {
    let mut world = world(Vec::new());
    world.run(300 * MS, [true, true]);
    let first = now(&world).0;
    let mut at = |beat: u64, silent_ns: u64| {
        board::set(&world.board.thread(0).heartbeat, beat);
        world.dog.judge_silence(0, Ticks(beat + silent_ns), 10 * MS, &mut world.done);
        let read = world.dog.threads[0].suspicion.as_ref();
        let read = read.map(|(beat, base)| (*beat, base.0.at_ns - world.dog.at_ns(Ticks(*beat))));
        let alarm = world.alarm(RuleId::Heartbeat, THREAD);
        (read, alarm.map(|alarm| (alarm.state, alarm.evidence[0].contains(" inside the stall"))))
    };
    assert_eq!(at(first, 6 * MS), (Some((first, 6 * MS)), None));
    assert_eq!(at(first, 8 * MS), (Some((first, 6 * MS)), None));
    let second = first + 9 * MS;
    assert_eq!(at(second, 7 * MS), (Some((second, 7 * MS)), None));
    assert_eq!(at(second, 11 * MS), (None, Some((AlarmState::Active, true))));
    let third = second + 20 * MS;
    assert_eq!(at(third, 6 * MS), (Some((third, 6 * MS)), Some((AlarmState::Ended, true))));
    assert_eq!(at(third + 7 * MS, 11 * MS).1, Some((AlarmState::Active, false)), "the reading was of another silence");
}

/// The thread that sleeps is this test's own.
#[cfg(target_os = "linux")]
#[test]
fn a_thread_that_sleeps_in_its_role_is_an_alarm_at_once() {
    use crate::stall::account::{Accounts, Owner};
    let mut world = world(Vec::new());
    let ((tell, told), (wake, woken)) = (std::sync::mpsc::channel(), std::sync::mpsc::channel::<()>());
    let sleeper = std::thread::spawn(move || {
        tell.send(rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned()).unwrap();
        let _ = woken.recv();
    });
    let tid = told.recv().unwrap();
    while Accounts::open(Owner::Own, &[tid]).thread(0, 0).state != Some('S') {
        std::thread::yield_now();
    }
    let block = world.board.thread(0);
    board::set(&block.tid, u64::from(tid));
    board::set(&block.stage, RoleKind::Decode as u64 + 1);
    world.run(300 * MS, [true, true]);
    let at_ms = world.dog.at_ns(now(&world)) / MS;
    world.dog.threads[0].bases = [base(at_ms - 20, 0, 0, 0)].into();
    assert_eq!(silence(&mut world, 11 * MS), Some(Severity::Warn));
    let alarm = world.alarm(RuleId::Heartbeat, THREAD).unwrap();
    assert!(alarm.sentence.contains("ms in decode: it sleeps in "), "{}", alarm.sentence);
    drop(wake);
    sleeper.join().unwrap();
}

#[test]
fn everything_stood_still_if_the_watchdog_was_late_by_a_limit_with_all_threads() {
    let is_told = |late_ns: u64, phase: Phase, beats: [bool; 2]| {
        let mut world = world(Vec::new());
        world.run(300 * MS, [true, true]);
        board::set(&world.board.header().phase, phase as u64);
        board::add(&world.nanos, late_ns);
        (0..2).for_each(|_| world.run(MS, beats));
        world.alarm(RuleId::Frozen, Site::Engine(0)).is_some()
    };
    assert!(is_told(10 * MS, Phase::Live, [false, false]));
    assert!(!is_told(10 * MS - 1, Phase::Live, [false, false]));
    assert!(!is_told(10 * MS, Phase::Live, [false, true]));
    assert!(is_told(10 * MS, Phase::Warmup, [false, false]));
    assert!(!is_told(10 * MS, Phase::Init, [false, false]), "roles are being built");
}

#[test]
fn a_gap_says_in_which_role_it_was_and_how_long() {
    let mut world = opened();
    let start = now(&world);
    for (stage, place) in [(0, ""), (RoleKind::Decode as u64 + 1, " in decode")] {
        world.dog.threads[0].bases = [base(world.dog.at_ns(start) / MS, 0, 0, 0)].into();
        world.dog.threads[0].pinned = false;
        let gap = Gap { number: 1, start, length: Ticks(13 * MS), stage };
        world.dog.note_gap(0, gap, start.plus(Ticks(14 * MS)), &mut world.done);
        let sentence = world.alarm(RuleId::FrameGap, THREAD).unwrap().sentence;
        assert!(sentence.starts_with(&format!("hot-0 stood still 13.0 ms{place}: ")), "{sentence}");
    }
}

#[test]
fn threads_by_record_come_before_those_that_were_only_seen_and_keep_their_names() {
    let world = opened();
    let gone = u32::MAX - 1;
    let other = |pid, name: &str| OtherThread::seen(pid, name.to_owned(), 7, false);
    let recorded = |pid, name: &str| OtherThread { is_recorded: true, ..other(pid, name) };
    let named = |switched: Option<Switched>, earlier: &[OtherThread]| {
        let others = vec![other(gone, "gone"), other(gone - 1, "seen")];
        let mut seen = Observations { switched, others, ..Observations::default() };
        world.dog.name_recorded(&mut seen, earlier);
        seen.others.into_iter().map(|other| (other.command, other.is_recorded)).collect::<Vec<_>>()
    };
    let expected =
        |named: &[(&str, bool)]| named.iter().map(|(name, is)| ((*name).to_owned(), *is)).collect::<Vec<_>>();
    let by = vec![(gone, gone, 5 * MS)];
    let found = named(Some(Switched { by, ..Switched::default() }), &[]);
    assert_eq!(found, expected(&[("gone", true), ("seen", false)]));
    let by = vec![(gone - 2, gone - 2, 5 * MS)];
    let found = named(Some(Switched { by, ..Switched::default() }), &[other(gone - 2, "earlier")]);
    assert_eq!(found, expected(&[("earlier", true), ("gone", false), ("seen", false)]));
    let found = named(None, &[other(5, "was seen"), recorded(6, "was recorded")]);
    assert_eq!(found, expected(&[("was recorded", true), ("gone", false), ("seen", false)]), "records were lost");
    // Of processes with one name the one that ran most stands for all, which may be another one in each reading.
    let by = vec![(gone, gone, 5 * MS), (gone - 1, gone - 1, 4 * MS)];
    let others = vec![OtherThread { processes: 2, ..recorded(gone - 2, "cc") }, other(gone - 1, "cc")];
    let switched = Some(Switched { by, ..Switched::default() });
    let mut seen = Observations { switched, others, ..Observations::default() };
    world.dog.name_recorded(&mut seen, &[other(gone, "cc")]);
    let found: Vec<_> = seen.others.iter().map(|other| (other.processes, other.ran_ns)).collect();
    assert_eq!(found, [(2, 9 * MS)], "{:?}", seen.others);
}

#[test]
fn an_alarm_concerns_the_silos_whose_roles_its_thread_runs_or_all_of_them() {
    let world = opened();
    let block = world.board.thread(0);
    assert_eq!(world.dog.silos_of(0), u64::MAX, "before its roles are built");
    board::set(&block.roles_count, 2);
    board::set(&block.roles[0].identity, 3 << 8 | RoleKind::Poll as u64);
    board::set(&block.roles[1].identity, 7 << 40 | 5 << 8 | RoleKind::Decode as u64);
    assert_eq!((world.dog.silos_of(0), world.dog.silos_at(THREAD)), (1 << 3 | 1 << 5, 1 << 3 | 1 << 5));
    assert_eq!(world.dog.silos_at(Site::Silo(2, 7)), 1 << 2);
    for site in [Site::Engine(0), Site::Stream(3), Site::Thread(2)] {
        assert_eq!(world.dog.silos_at(site), u64::MAX, "{site:?}");
    }
}

#[test]
fn shots_that_two_episodes_shortly_after_each_other_hit_count_once() {
    let mut world = opened();
    let place = raised(&mut world, RuleId::DeviceLost);
    let mut root = world.dog.alarms.record(place).clone();
    let look = |world: &mut World, late: u64| {
        board::add(&world.board.harvest(0).late, late);
        let at_ns = world.dog.at_ns(now(world));
        world.dog.counter_rules.look(&world.board, at_ns, None);
    };
    (0..6).for_each(|_| look(&mut world, 0));
    look(&mut world, 4);
    assert_eq!(world.dog.hit(&root, false), 0, "it is not known to be open yet");
    assert_eq!(world.dog.hit(&root, true), 4, "the half second before it belongs to it");
    look(&mut world, 5);
    assert_eq!(world.dog.hit(&root, true), 9);
    look(&mut world, 1);
    root.shots_hit = world.dog.hit(&root, false);
    assert_eq!(root.shots_hit, 10);
    look(&mut world, 3);
    assert_eq!(world.dog.hit(&root, false), 10, "closed");
    assert_eq!(world.dog.hit(&root, true), 13);
    (0..8).for_each(|_| look(&mut world, 2));
    assert_eq!([true, false].map(|is_open| world.dog.hit(&root, is_open)), [29, 29]);
    (0..8).for_each(|_| look(&mut world, 2));
    assert_eq!(world.dog.hit(&root, true), 39, "only the half second before counts");
}

#[test]
fn accounts_are_taken_every_tenth_of_a_second_of_every_thread() {
    let mut world = opened();
    world.run(1_000 * MS, [true, true]);
    let at: Vec<u64> = world.dog.threads[0].bases.iter().map(|base| base.0.at_ns).collect();
    assert!(at.windows(2).all(|two| (100 * MS..102 * MS).contains(&(two[1] - two[0]))), "{at:?}");
    let shape = Shape { threads: 3, silos: 1, slots: 1, workers: 1, decoders: 1, streams: 1 };
    let board = std::sync::Arc::new(Board::create(shape, Place::Private).unwrap());
    board::set(&board.header().phase, Phase::Live as u64);
    let (clock, rules, on_alarm) = (world.dog.config.clock.clone(), Vec::new(), OnAlarm::None);
    let (disk, root) = (None, "/no/such".into());
    world.dog = Watchdog::new(WatchdogConfig { board, clock, rules, on_alarm, disk, root });
    // A world's board has two threads; these have none that beat.
    (0..200).for_each(|_| world.run(MS, [false, false]));
    assert!(world.dog.threads.iter().all(|thread| thread.bases.len() > 1));
}

#[test]
fn a_drain_checks_the_rules_at_once() {
    let told = |phase: Phase| {
        let mut world = world(Vec::new());
        world.run(350 * MS, [true, true]);
        board::set(&world.board.harvest(0).duplicated, 1);
        board::set(&world.board.header().phase, phase as u64);
        world.run(MS, [true, true]);
        world.alarm(RuleId::Duplicates, Site::Silo(0, 0)).is_some()
    };
    assert_eq!([told(Phase::Drain), told(Phase::Live)], [true, false]);
}

#[test]
fn a_thread_is_pinned_if_it_says_so_and_a_core_was_planned() {
    let pinned = |planned: u64, pinned: u64| {
        let mut world = world(Vec::new());
        board::set(&world.board.thread(0).planned_core, planned);
        board::set(&world.board.thread(0).pinned, pinned);
        world.run(MS, [true, true]);
        world.dog.threads[0].own_core()
    };
    assert_eq!([pinned(8, 1), pinned(8, 0), pinned(0, 1), pinned(1, 1)], [Some(7), None, None, Some(0)]);
}

#[test]
fn two_ticks_at_one_moment_are_no_counter_that_goes_back() {
    let mut world = world(Vec::new());
    world.run(300 * MS, [true, true]);
    let at = world.dog.ticked.unwrap();
    world.dog.note_own_lateness(at);
    assert!(!world.dog.threads[0].bases.is_empty());
    world.dog.note_own_lateness(Ticks(at.0 - 1));
    assert!(world.dog.threads[0].bases.is_empty());
}

#[test]
fn who_has_a_threads_core_is_looked_up_from_the_limit_on_until_the_alarm_says_it() {
    let mut world = opened();
    world.dog.config.rules = vec![AlarmRule { limit: 20.0, ..RuleId::Scheduler.bundled() }];
    seen_there(&world, 0, 81, 100 * MS);
    let waits = |world: &mut World, waited_ns: u64| {
        let bases = (0..6).map(|at| base(1_000 + 100 * at, if at == 5 { waited_ns } else { 0 }, 0, 0));
        world.dog.threads[0].bases = bases.collect();
        let [found] = <[Condition; 1]>::try_from(world.dog.by_account(0, 1_500 * MS)).unwrap();
        (found.rule, found.verdict.who, found.verdict.sentence.ends_with(" because of cargo (81)"))
    };
    assert_eq!(waits(&mut world, 100 * MS - 1), (RuleId::Scheduler, String::new(), false));
    assert_eq!(waits(&mut world, 100 * MS), (RuleId::Scheduler, "cargo (81)".to_owned(), true));
    let place = raised(&mut world, RuleId::Scheduler);
    assert_eq!(waits(&mut world, 100 * MS), (RuleId::Scheduler, String::new(), false));
    let (board, end) = (std::sync::Arc::clone(&world.board), now(&world));
    world.dog.alarms.end(place, end, &board);
    assert_eq!(waits(&mut world, 100 * MS), (RuleId::Scheduler, "cargo (81)".to_owned(), true));
}

/// Without records of switches. The scan keeps the last one that it saw on the board.
#[test]
fn a_program_that_was_seen_long_ago_or_ran_too_little_is_not_said_to_have_a_core() {
    let mut world = opened();
    let named = |world: &mut World| {
        let bases = (0..6).map(|at| base(1_000 + 100 * at, if at == 5 { 200 * MS } else { 0 }, 0, 0));
        world.dog.threads[0].bases = bases.collect();
        let [found] = <[Condition; 1]>::try_from(world.dog.by_account(0, 1_500 * MS)).unwrap();
        found.verdict.who
    };
    // A quarter of what the thread waited, in the scan's second twice as much.
    seen_there(&world, 0, 81, 100 * MS);
    assert_eq!(named(&mut world), "cargo (81)");
    seen_there(&world, 0, 81, 100 * MS - 1);
    assert_eq!(named(&mut world), "");
    seen_there(&world, 0, 81, 0);
    assert_eq!(named(&mut world), "", "it waited, too");
    seen_there(&world, 0, 81, 500 * MS);
    world.pass(2_000 * MS);
    assert_eq!(named(&mut world), "cargo (81)");
    world.pass(1);
    assert_eq!(named(&mut world), "", "no scan has seen it since");
}

#[test]
fn an_alarm_that_was_just_explained_is_not_unexplained_at_once() {
    let mut world = world(Vec::new());
    let mut told = |after_ns: u64, cause: Cause| {
        world.pass(after_ns);
        let verdict = plain(cause, format!("late: {}", cause.name()));
        let late = condition(RuleId::LateAnswers, Site::Silo(0, 0), 50.0, None, verdict);
        let now = now(&world);
        world.dog.settle(vec![late], now, &mut world.done);
        world.alarm(RuleId::LateAnswers, Site::Silo(0, 0)).unwrap().cause
    };
    assert_eq!(told(0, Cause::Unexplained), "unexplained");
    assert_eq!(told(MS, Cause::Steal), "hypervisor steal");
    assert_eq!(told(EXPLAINS_NS, Cause::Unexplained), "hypervisor steal");
    assert_eq!(told(1, Cause::Unexplained), "unexplained");
    assert_eq!((told(MS, Cause::Steal), told(MS, Cause::SlowStage)), ("hypervisor steal".into(), "slow stage".into()));
}
