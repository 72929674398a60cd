//! Each limit of the watchdog at its value and one nanosecond beside it, on accounts and times made by hand.
#![allow(clippy::unwrap_used, reason = "harness")]

use super::tests::{MS, World, world};
use super::{AGAIN_NS, Baseline, ESCALATION_LIMITS, EXPLAINS_NS, HOLD_NS, START_NS};
use crate::board::alarms::{AlarmState, Confidence, Site};
use crate::board::gaps::Gap;
use crate::board::{self, Phase};
use crate::profile::{AlarmRule, RuleId, Severity};
use crate::stall::account::{CoreAccount, OtherThread, ThreadAccount};
use crate::stall::counter_rules::{Condition, condition, plain};
use crate::stall::procfs::{CoreTimes, Interrupts};
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
    let sentence = "hot-0: descheduled 1 % of the last 0.5 s: it stood ready for core 3 and did not run";
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
            board::set(&world.board.thread(thread).competitor_pid, competitor);
            world.board.thread(thread).competitor_command.write("cargo");
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
            let times = Some(CoreTimes { total: 100 + 10 * tenth, interrupts: 0, steal });
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
    let start = "hot-0: 5 frames elsewhere than on core 3; something changed its affinity: it may run on ";
    assert!(found.verdict.sentence.starts_with(start), "{}", found.verdict.sentence);
    assert_eq!(found.verdict.cause, Cause::Affinity);
    assert_eq!(elsewhere(&mut world, 5), []);
    assert_eq!(elsewhere(&mut world, 7)[0].value, 2.0);
    world.dog.threads[0].pinned = false;
    assert_eq!(elsewhere(&mut world, 9), []);
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
}

#[test]
fn a_stall_explains_other_alarms_for_two_and_a_half_seconds_and_is_at_most_likely_to() {
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
    world.dog.alarms.end(place, at(12 * MS), &board);
    let last = world.dog.alarms.record(place).last;
    let after = |ns: u64| world.dog.recent(last.plus(Ticks(ns)));
    assert_eq!(after(EXPLAINS_NS).unwrap().took_ns, 12 * MS);
    assert_eq!(after(EXPLAINS_NS + 1), None);
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
