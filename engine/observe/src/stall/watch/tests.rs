//! The watchdog under virtual time: what it raises, when, and whom it does not blame.
#![allow(clippy::unwrap_used, reason = "harness")]

use super::{ESCALATION_LIMITS, HOLD_NS, Watchdog, WatchdogActions, WatchdogConfig};
use crate::board::alarms::{AlarmState, Site};
use crate::board::snapshot::AlarmView;
use crate::board::{self, Board, Phase, Place, Shape};
use crate::clock::Clock;
use crate::profile::{AlarmAction, AlarmRule, OnAlarm, RuleId, Severity};
use crate::roles::RoleKind;
use crate::stall::AlarmRequest;
use crate::stall::counter_rules::{condition, plain};
use crate::stall::verdict::Cause;
use crate::trees;
use crate::units::Ticks;
use pinwheel_edge::spin::{SpinOrder, SpinPolicy};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tempfile::TempDir;

pub(super) const MS: u64 = 1_000_000;
const TICK_NS: u64 = 1_500_000;

#[derive(Default)]
pub(super) struct Done {
    actions: Vec<AlarmAction>,
    /// Threads and the cores that they were pinned to.
    pinned: Vec<(u32, u32)>,
    /// The cores that every thread may use.
    cores: Option<Vec<u32>>,
    /// Why no thread can be pinned.
    pin_refused: Option<String>,
    /// Cores whose claims were released.
    released: Vec<u32>,
    /// How often the cold threads were confined.
    confined: u32,
    notes: Vec<String>,
}

impl WatchdogActions for Done {
    fn act(&mut self, action: &AlarmAction, _: Site, why: &str) {
        assert!(!why.is_empty());
        self.actions.push(action.clone());
    }

    fn pin(&mut self, tid: u32, core: u32) -> Result<(), String> {
        if let Some(why) = &self.pin_refused {
            return Err(why.clone());
        }
        self.pinned.push((tid, core));
        self.cores = Some(vec![core]);
        Ok(())
    }

    fn cores_of(&self, _: u32) -> Option<Vec<u32>> {
        self.cores.clone()
    }

    fn release(&mut self, core: u32) {
        self.released.push(core);
    }

    fn confine_cold_threads(&mut self) {
        self.confined += 1;
    }

    fn note(&mut self, text: &str) {
        self.notes.push(text.to_owned());
    }
}

pub(super) struct World {
    pub(super) nanos: Arc<AtomicU64>,
    pub(super) board: Arc<Board>,
    clock: Clock,
    pub(super) dog: Watchdog,
    pub(super) done: Done,
    /// The machine's files.
    root: TempDir,
}

/// Two threads that run in Live, limit 10 ms.
pub(super) fn world(rules: Vec<AlarmRule>) -> World {
    let nanos = Arc::new(AtomicU64::new(1_000 * MS));
    let clock = Clock::virtual_time(Arc::clone(&nanos));
    let shape = Shape { threads: 2, silos: 1, slots: 8, workers: 2, decoders: 1, streams: 1 };
    let board = Arc::new(Board::create(shape, Place::Private).unwrap());
    board::set(&board.header().heartbeat_limit_ns, 10 * MS);
    board::set(&board.header().phase, Phase::Live as u64);
    for index in 0..2 {
        board.thread(index).name.write(["hot-0", "work-0"][index]);
        board::set(&board.thread(index).state, 1);
    }
    let root = tempfile::tempdir().unwrap();
    let (on_alarm, disk, files) = (OnAlarm::None, None, root.path().to_owned());
    let watched =
        WatchdogConfig { board: Arc::clone(&board), clock: clock.clone(), rules, on_alarm, disk, root: files };
    let dog = Watchdog::new(watched);
    World { nanos, board, clock, dog, done: Done::default(), root }
}

impl World {
    /// The clock goes on by `span_ns`; returns the time after it.
    pub(super) fn pass(&self, span_ns: u64) -> u64 {
        self.nanos.fetch_add(span_ns, Ordering::Relaxed) + span_ns
    }

    /// Ticks for `span_ns`; threads for which `beats` says so run on.
    pub(super) fn run(&mut self, span_ns: u64, beats: [bool; 2]) {
        for _ in 0..span_ns.div_ceil(TICK_NS) {
            let now = self.pass(TICK_NS);
            for (index, beats) in beats.into_iter().enumerate() {
                let block = self.board.thread(index);
                if beats {
                    board::set(&block.heartbeat, now);
                    board::add(&block.frames, 1);
                }
            }
            self.dog.tick(&mut self.done);
        }
    }

    pub(super) fn alarms(&self) -> Vec<AlarmView> {
        self.board.alarm_views(&self.clock)
    }

    pub(super) fn alarm(&self, rule: RuleId, site: Site) -> Option<AlarmView> {
        self.alarms().into_iter().find(|alarm| alarm.rule == rule.name() && alarm.site == site)
    }
}

#[test]
fn bad_input_of_many_streams_hides_no_role_that_died_and_what_is_not_listed_is_noted_once() {
    let mut world = world(Vec::new());
    let bad = |stream| {
        let verdict = plain(Cause::Input, format!("stream {stream}: input bad"));
        condition(RuleId::InputHealth, Site::Stream(stream), 2.0, None, verdict)
    };
    let died = condition(RuleId::RoleDied, Site::Thread(0), 1.0, None, plain(Cause::Died, "poll died".to_owned()));
    let now = world.clock.ticks();
    world.dog.settle((0..200).map(bad).chain([died]).collect(), now, &mut world.done);
    world.dog.settle((0..200).map(bad).collect(), now, &mut world.done);
    assert_eq!(world.alarm(RuleId::RoleDied, Site::Thread(0)).unwrap().state, AlarmState::Active);
    assert_eq!(world.done.notes, ["64 alarms are active: further ones of input_health are not listed"]);
}

#[test]
fn a_silent_thread_is_raised_while_it_is_silent_and_ends_with_its_duration() {
    let mut world = world(Vec::new());
    world.run(300 * MS, [true, true]);
    assert_eq!(world.alarms(), []);
    world.run(16 * MS, [false, true]);
    let raised = world.alarm(RuleId::Heartbeat, Site::Thread(0)).expect("a hang is reported while it lasts");
    assert_eq!((raised.state, raised.severity, raised.count), (AlarmState::Active, Severity::Note, 1));
    assert_eq!(raised.thread.as_deref(), Some("hot-0"));
    world.run(ESCALATION_LIMITS * 10 * MS, [false, true]);
    let worse = world.alarm(RuleId::Heartbeat, Site::Thread(0)).unwrap();
    assert_eq!(worse.severity, Severity::Warn, "five limits long it alarms whoever did it");
    world.run(3 * MS, [true, true]);
    let ended = world.alarm(RuleId::Heartbeat, Site::Thread(0)).unwrap();
    assert_eq!(ended.state, AlarmState::Ended);
    assert!(ended.duration_ns >= 60 * MS && ended.duration_ns <= 75 * MS, "{}", ended.duration_ns);
    assert_eq!(world.alarm(RuleId::Heartbeat, Site::Thread(1)), None, "the other is not blamed");
    world.run(20 * MS, [false, true]);
    let again = world.alarm(RuleId::Heartbeat, Site::Thread(0)).unwrap();
    assert_eq!((again.count, again.first_ns, again.number), (2, raised.first_ns, raised.number));
}

/// Chronicle suppresses what a late monitor would say; so do we.
#[test]
fn a_watchdog_that_was_late_itself_blames_no_thread() {
    let mut world = world(Vec::new());
    world.run(300 * MS, [true, true]);
    // Nobody ran for 80 ms, the watchdog neither; one thread runs on at once, the other after 8 ms
    // more.
    world.pass(80 * MS);
    world.run(8 * MS, [true, false]);
    world.run(100 * MS, [true, true]);
    let blamed: Vec<_> = world.alarms().into_iter().filter(|alarm| alarm.rule == "heartbeat").collect();
    assert_eq!(blamed, []);
}

/// A machine on which the watchdog shares its core: it is late in each tick.
#[test]
fn a_watchdog_that_is_late_in_each_tick_reports_a_thread_that_hangs() {
    let mut world = world(Vec::new());
    world.run(300 * MS, [true, true]);
    let mut ticks = 0;
    while world.alarm(RuleId::Heartbeat, Site::Thread(0)).is_none() {
        world.pass(20 * MS);
        world.run(TICK_NS, [false, true]);
        ticks += 1;
        assert!(ticks < 10, "each tick sees 1.5 of the 10 ms that it may be silent");
    }
    assert!(ticks > 5, "{ticks}");
    assert_eq!(world.alarm(RuleId::Heartbeat, Site::Thread(1)), None);
}

/// After a suspend, or on another host: the counter goes on from a lower value.
#[test]
fn a_counter_that_goes_back_leaves_a_watchdog_that_judges_on() {
    let mut world = world(Vec::new());
    let jump = |world: &World| world.nanos.store(700_000 * MS, Ordering::Relaxed);
    world.nanos.store(900_000 * MS, Ordering::Relaxed);
    world.run(300 * MS, [true, true]);
    board::set(&world.board.harvest(0).duplicated, 2);
    world.run(200 * MS, [true, true]);
    let looks = |world: &World| world.board.thread(0).noise_span_ns.load(Ordering::Relaxed);
    let before = looks(&world);
    jump(&world);
    world.run(8 * MS, [false, true]);
    assert_eq!(world.alarm(RuleId::Heartbeat, Site::Thread(0)), None, "its silence counts from the jump on");
    world.run(6 * MS, [false, true]);
    let raised = world.alarm(RuleId::Heartbeat, Site::Thread(0)).expect("a hang is reported after the jump, too");
    assert_eq!(raised.state, AlarmState::Active);
    assert_eq!(world.alarm(RuleId::Heartbeat, Site::Thread(1)), None);
    board::set(&world.board.harvest(0).duplicated, 0);
    world.run(2 * HOLD_NS, [true, true]);
    assert_eq!(world.alarm(RuleId::Heartbeat, Site::Thread(0)).unwrap().state, AlarmState::Ended);
    assert_eq!(world.alarm(RuleId::Duplicates, Site::Silo(0, 0)).unwrap().state, AlarmState::Ended);
    assert!(looks(&world) - before >= HOLD_NS, "accounts are taken");
}

#[test]
fn a_stall_of_all_threads_at_once_is_one_note() {
    let mut world = world(Vec::new());
    world.run(300 * MS, [true, true]);
    let from = world.clock.ticks();
    world.pass(80 * MS);
    for index in 0..2 {
        world.board.thread(index).note_gap(from, Ticks(80 * MS), 0);
    }
    world.run(20 * MS, [true, true]);
    let alarms = world.alarms();
    assert_eq!(alarms.iter().map(|alarm| alarm.rule).collect::<Vec<_>>(), ["frozen"]);
    assert_eq!((alarms[0].severity, alarms[0].state), (Severity::Note, AlarmState::Ended));
}

#[test]
fn a_gap_between_ticks_is_noted_by_its_thread_and_explained_afterwards() {
    let mut world = world(Vec::new());
    world.run(300 * MS, [true, true]);
    let start = Ticks(world.clock.ticks().0 - 14 * MS);
    world.board.thread(1).note_gap(start, Ticks(13 * MS), RoleKind::Decode as u64 + 1);
    world.run(3 * MS, [true, true]);
    let gap = world.alarm(RuleId::FrameGap, Site::Thread(1)).unwrap();
    assert_eq!((gap.severity, gap.state, gap.duration_ns), (Severity::Note, AlarmState::Ended, 13 * MS));
    // What the machine did meanwhile is the real one's: the cause is as it comes, the length is the
    // gap's.
    assert!(gap.sentence.contains("13.0 ms"), "{}", gap.sentence);
}

#[test]
fn it_watches_in_warm_up_and_in_drain_and_is_silent_in_shutdown() {
    for phase in [Phase::Warmup, Phase::Drain] {
        let mut world = world(Vec::new());
        board::set(&world.board.header().phase, phase as u64);
        world.run(300 * MS, [true, true]);
        world.run(30 * MS, [false, true]);
        assert!(world.alarm(RuleId::Heartbeat, Site::Thread(0)).is_some(), "{phase:?}");
    }
    let mut hanging = world(Vec::new());
    board::set(&hanging.board.header().phase, Phase::Init as u64);
    board::set(&hanging.board.thread(0).state, 0);
    hanging.run(4_000 * MS, [false, true]);
    assert_eq!(hanging.alarms(), [], "building may take a while");
    hanging.run(2_000 * MS, [false, true]);
    assert!(hanging.alarm(RuleId::Heartbeat, Site::Thread(0)).is_some());
    let mut over = world(Vec::new());
    board::set(&over.board.header().phase, Phase::Shutdown as u64);
    over.run(200 * MS, [false, false]);
    assert_eq!(over.alarms(), []);
}

#[test]
fn a_condition_alarms_once_acts_once_and_ends_when_it_was_away_for_the_hold() {
    let drain = AlarmRule { action: AlarmAction::Drain, ..RuleId::Duplicates.bundled() };
    let mut world = world(vec![drain]);
    board::set(&world.board.harvest(0).duplicated, 2);
    world.run(500 * MS, [true, true]);
    let raised = world.alarm(RuleId::Duplicates, Site::Silo(0, 0)).unwrap();
    assert_eq!((raised.severity, raised.count, raised.cause.as_str()), (Severity::Critical, 2, "defect"));
    assert_eq!(world.done.actions, [AlarmAction::Drain]);
    assert_eq!(world.dog.answer(AlarmRequest::Acknowledge(raised.number)), 1);
    assert!(!world.alarm(RuleId::Duplicates, Site::Silo(0, 0)).unwrap().calls(0));
    board::set(&world.board.harvest(0).duplicated, 0);
    world.run(HOLD_NS / 2, [true, true]);
    assert_eq!(world.alarm(RuleId::Duplicates, Site::Silo(0, 0)).unwrap().state, AlarmState::Active);
    world.run(HOLD_NS, [true, true]);
    assert_eq!(world.alarm(RuleId::Duplicates, Site::Silo(0, 0)).unwrap().state, AlarmState::Ended);
}

/// The engine was through its drain between two ticks: what happened before it stopped is judged
/// all the same.
#[test]
fn a_panic_in_a_run_that_ends_before_the_next_tick_raises_an_alarm() {
    for last in [Phase::Drain, Phase::Shutdown] {
        let mut world = world(Vec::new());
        world.run(300 * MS, [true, true]);
        let block = world.board.thread(1);
        board::set(&block.roles_count, 1);
        board::set(&block.roles[0].identity, RoleKind::Poll as u64);
        block.panic_file.write("poller.rs");
        board::set(&block.roles[0].died, 77);
        board::set(&world.board.harvest(0).errors[1], 3);
        board::set(&world.board.header().phase, last as u64);
        (0..2).for_each(|thread| board::set(&world.board.thread(thread).state, 2));
        world.dog.final_check(&mut world.done);
        let died = world.alarm(RuleId::RoleDied, Site::Thread(1)).expect("a death is never forgotten");
        assert_eq!((died.severity, died.cause.as_str()), (Severity::Critical, "died"));
        assert!(died.sentence.contains("poll on work-0 died at poller.rs"), "{}", died.sentence);
        assert!(world.alarm(RuleId::Errors, Site::Silo(0, 1)).is_some(), "nor are the errors that came with it");
        assert_eq!(world.alarms().len(), 2, "and nobody is blamed for standing still: {:?}", world.alarms());
    }
}

#[test]
fn an_alarm_that_becomes_critical_is_explained_and_told_again_and_acts_once() {
    let drain = AlarmRule { action: AlarmAction::Drain, ..RuleId::InputHealth.bundled() };
    let mut world = world(Vec::new());
    world.run(10 * MS, [true, true]);
    let raise = |world: &mut World, rule: &AlarmRule, severity, sentence: &str| {
        let verdict = crate::stall::counter_rules::plain(crate::stall::Cause::Input, sentence.to_owned());
        let (site, now) = (Site::Stream(0), world.clock.ticks());
        world.dog.raise(rule, site, severity, now, (verdict, None), &mut world.done);
        world.alarm(RuleId::InputHealth, site).unwrap()
    };
    let silent = AlarmRule { severity: Severity::Note, ..drain.clone() };
    assert_eq!(raise(&mut world, &silent, Severity::Note, "suspect").sentence, "suspect");
    assert_eq!(world.done.actions, []);
    let warned = raise(&mut world, &drain, Severity::Warn, "worse");
    assert_eq!((warned.severity, warned.sentence.as_str()), (Severity::Warn, "worse"));
    assert_eq!(world.done.actions, [AlarmAction::Drain]);
    assert_eq!(raise(&mut world, &drain, Severity::Warn, "as bad").sentence, "worse");
    assert_eq!(world.dog.incidents.untold().len(), 1);
    let bad = raise(&mut world, &drain, Severity::Critical, "bad");
    assert_eq!((bad.severity, bad.sentence.as_str(), bad.count), (Severity::Critical, "bad", 1));
    assert_eq!(world.dog.incidents.untold().len(), 2, "the operator's program is told once more");
    assert_eq!(world.done.actions, [AlarmAction::Drain], "the action ran already");
}

/// It may die before the first baseline of Live, too.
#[test]
fn a_death_in_warm_up_is_an_alarm() {
    let mut world = world(Vec::new());
    board::set(&world.board.header().phase, Phase::Warmup as u64);
    world.run(10 * MS, [true, true]);
    let block = world.board.thread(0);
    board::set(&block.roles_count, 1);
    board::set(&block.roles[0].died, 1);
    board::set(&world.board.header().phase, Phase::Shutdown as u64);
    world.dog.final_check(&mut world.done);
    assert!(world.alarm(RuleId::RoleDied, Site::Thread(0)).is_some());
}

/// Aeron #2092: zero events, zero idle.
#[test]
fn a_role_that_always_reports_work_and_moves_nothing_is_alarmed() {
    let mut world = world(Vec::new());
    let block = world.board.thread(0);
    board::set(&block.roles_count, 1);
    board::set(&block.roles[0].identity, RoleKind::Poll as u64);
    for _ in 0..400 {
        let block = world.board.thread(0);
        board::add(&block.frames, 99);
        board::add(&block.frames_busy, 100);
        board::add(&block.roles[0].items, 100);
        world.run(TICK_NS, [true, true]);
    }
    let alarm = world.alarm(RuleId::NeverIdle, Site::Thread(0)).unwrap();
    assert!(alarm.sentence.contains("poll claimed"), "{}", alarm.sentence);
    assert_eq!(world.alarm(RuleId::NeverIdle, Site::Thread(1)), None);
}

/// Plans and pins the first thread, which is this process, to core 7; returns its number.
fn pin_to_core_7(world: &World) -> u32 {
    let (block, tid) = (world.board.thread(0), std::process::id());
    board::set(&block.tid, u64::from(tid));
    board::set(&block.planned_core, 8);
    board::set(&block.pinned, 1);
    tid
}

/// A core of the machine that is switched off for half a second, and on again.
#[test]
fn a_core_that_goes_offline_is_named_and_its_thread_is_pinned_again_when_it_is_back() {
    let mut world = world(Vec::new());
    let tid = pin_to_core_7(&world);
    let online = |world: &World, cores: &str| trees::write(world.root.path(), "sys/devices/system/cpu/online", cores);
    online(&world, "0-7");
    world.run(300 * MS, [true, true]);
    assert_eq!((world.alarms(), world.done.notes.len()), (Vec::new(), 0));
    // Not every machine permits records.
    let recorded_from = |world: &World, at: Ticks| world.dog.switches.between(0, at.0, u64::MAX).is_some();
    let start = world.clock.ticks();
    let is_recorded = recorded_from(&world, start);
    online(&world, "0-6");
    for turn in 0..5 {
        board::add(&world.board.thread(0).frames_elsewhere, 1_000);
        world.run(100 * MS, [true, true]);
        assert_eq!((world.done.notes.len(), world.done.released.as_slice()), (1, &[7][..]), "{turn}: within 100 ms");
    }
    let alarm = world.alarm(RuleId::Affinity, Site::Thread(0)).unwrap();
    assert_eq!((alarm.cause.as_str(), alarm.state), ("core offline", AlarmState::Active));
    assert!(alarm.sentence.contains("core 7 went offline"), "{}", alarm.sentence);
    assert_eq!(world.done.pinned, []);
    let lost = world.clock.ticks();
    assert_eq!((recorded_from(&world, start), recorded_from(&world, lost)), (false, is_recorded));
    online(&world, "0-7");
    world.run(300 * MS, [true, true]);
    assert_eq!((recorded_from(&world, lost), recorded_from(&world, world.clock.ticks())), (false, is_recorded));
    assert_eq!((world.done.pinned.as_slice(), world.done.released.as_slice()), (&[(tid, 7)][..], &[7][..]));
    assert_eq!(world.done.confined, 1);
    let [gone, back] = &world.done.notes[..] else { panic!("{:?}", world.done.notes) };
    assert!(gone.contains("core 7 went offline: hot-0"), "{gone}");
    let away_ms = back.strip_prefix("core 7 was offline for ").unwrap().split_once(" ms: hot-0 is pinned to it again");
    assert!((400..700).contains(&away_ms.unwrap().0.parse::<u64>().unwrap()), "{back}");
    // Whoever changes an affinity by hand is told of it, and not set right.
    world.run(1_000 * MS, [true, true]);
    board::add(&world.board.thread(0).frames_elsewhere, 1_000);
    world.run(200 * MS, [true, true]);
    let alarm = world.alarm(RuleId::Affinity, Site::Thread(0)).unwrap();
    assert!(alarm.sentence.contains("something changed its affinity"), "{}", alarm.sentence);
    assert_eq!(world.done.pinned.len(), 1);
}

/// A core that was off and on again between two looks: only the affinity that the kernel widened tells of it.
#[test]
fn a_thread_that_may_run_on_every_core_is_pinned_to_its_own_again() {
    let mut world = world(Vec::new());
    let tid = pin_to_core_7(&world);
    trees::write(world.root.path(), "sys/devices/system/cpu/online", "0-7");
    // Somebody's decision: told, and left.
    for cores in [vec![7], vec![3], vec![6, 7]] {
        world.done.cores = Some(cores);
        world.run(300 * MS, [true, true]);
    }
    assert_eq!((world.done.pinned.as_slice(), world.done.confined), (&[][..], 0));
    world.done.cores = Some((0..8).collect());
    board::add(&world.board.thread(0).frames_elsewhere, 1_000);
    world.run(300 * MS, [true, true]);
    assert_eq!((world.done.pinned.as_slice(), world.done.confined), (&[(tid, 7)][..], 1));
    let [note] = &world.done.notes[..] else { panic!("{:?}", world.done.notes) };
    assert!(
        note.starts_with("core 7 was away for a moment") && note.ends_with("hot-0 is pinned to it again"),
        "{note}"
    );
    world.done.pin_refused = Some("refused".to_owned());
    world.done.cores = Some((0..8).collect());
    world.run(3_000 * MS, [true, true]);
    assert_eq!(world.done.notes.len(), 2, "{:?}", world.done.notes);
}

/// An administrator takes a core out of the process's cpuset, and gives it to another engine before it is back.
#[test]
fn a_core_that_leaves_the_cpuset_is_named_and_its_thread_is_pinned_again_once_it_is_free() {
    let mut world = world(Vec::new());
    pin_to_core_7(&world);
    trees::write(world.root.path(), "sys/devices/system/cpu/online", "0-7");
    trees::write(world.root.path(), "proc/self/cgroup", "3:cpuset:/lab\n");
    let cpuset = |world: &World, cores: &str| {
        trees::write(world.root.path(), "sys/fs/cgroup/cpuset/lab/cpuset.effective_cpus", cores);
    };
    cpuset(&world, "0-7");
    world.run(300 * MS, [true, true]);
    cpuset(&world, "0-6");
    for turn in 0..5 {
        board::add(&world.board.thread(0).frames_elsewhere, 1_000);
        world.run(100 * MS, [true, true]);
        assert_eq!((world.done.notes.len(), world.done.released.as_slice()), (1, &[7][..]), "{turn}: within 100 ms");
    }
    let alarm = world.alarm(RuleId::Affinity, Site::Thread(0)).unwrap();
    assert_eq!((alarm.cause.as_str(), world.done.released.as_slice()), ("core outside cpuset", &[7][..]));
    assert!(alarm.sentence.contains("core 7 left the cpuset of this process"), "{}", alarm.sentence);
    world.done.pin_refused = Some("core 7 is claimed by pinwheel, process 4711".to_owned());
    cpuset(&world, "0-7");
    world.run(3_000 * MS, [true, true]);
    let [left, refused] = &world.done.notes[..] else { panic!("{:?}", world.done.notes) };
    assert!(left.contains("core 7 left the cpuset"), "{left}");
    assert!(refused.contains("hot-0 stays on other cores: core 7 is claimed by pinwheel"), "{refused}");
    world.done.pin_refused = None;
    world.run(1_200 * MS, [true, true]);
    assert_eq!((world.done.pinned.len(), world.done.confined), (1, 1));
    assert!(world.done.notes[2].contains("was outside the cpuset for"), "{:?}", world.done.notes);
}

/// Late answers while a device is lost are its consequence, and what follows later is another incident.
#[test]
fn alarms_of_one_cause_are_one_incident_with_the_shots_that_it_hit() {
    let mut world = world(Vec::new());
    let incidents = |world: &World| world.board.snapshot(&world.clock).incidents;
    let answers = |world: &mut World, late: u64| {
        for _ in 0..5 {
            board::add(&world.board.harvest(0).answered, 100);
            board::add(&world.board.harvest(0).late, late);
            world.run(100 * MS, [true, true]);
        }
    };
    answers(&mut world, 0);
    assert_eq!(incidents(&world), []);
    let onset_ns = world.board.snapshot(&world.clock).at_ns;
    board::set(&world.board.dispatch(0).device_losses, 1);
    board::set(&world.board.dispatch(0).device_state, 1);
    answers(&mut world, 40);
    let found = incidents(&world);
    let [incident] = &found[..] else { panic!("{found:?}") };
    let (root, consequences) = (&incident.root, &incident.consequences);
    assert_eq!((root.rule, root.cause.as_str(), root.who.as_str()), ("device_lost", "device hung", ""));
    assert_eq!(consequences.iter().map(|alarm| alarm.rule.as_str()).collect::<Vec<_>>(), ["late_answers"]);
    assert!(consequences[0].sentence.contains("late") && consequences[0].sentence.contains("device lost"));
    assert_eq!((incident.state, incident.severity, incident.ended_ns), (AlarmState::Active, Severity::Critical, None));
    assert!(incident.onset_ns.abs_diff(onset_ns) < 300 * MS, "{}", incident.onset_ns);
    let late = world.alarm(RuleId::LateAnswers, Site::Silo(0, 0)).unwrap();
    assert_eq!((late.incident, late.cause.as_str()), (incident.number, "device hung"));
    board::set(&world.board.dispatch(0).device_state, 0);
    answers(&mut world, 0);
    world.run(3 * HOLD_NS, [true, true]);
    let ended = incidents(&world);
    assert_eq!((ended.len(), ended[0].state, ended[0].shots_hit), (1, AlarmState::Ended, 200));
    assert!(ended[0].ended_ns.unwrap() > late.onset_ns && ended[0].consequences == incident.consequences);
    // Late again, and the device is there: that has nothing to do with it.
    world.run(5 * HOLD_NS, [true, true]);
    answers(&mut world, 40);
    let found = incidents(&world);
    assert_eq!(found.iter().map(|incident| incident.root.rule).collect::<Vec<_>>(), ["late_answers", "device_lost"]);
    assert_eq!((found[1].shots_hit, &found[1].consequences), (200, &incident.consequences));
    // And lost again: one more episode, whose shots count on.
    let block = world.board.dispatch(0);
    board::set(&block.device_losses, 2);
    board::set(&block.device_state, 1);
    answers(&mut world, 40);
    let again = incidents(&world).into_iter().find(|incident| incident.root.rule == "device_lost").unwrap();
    assert_eq!((again.number, again.count, again.state), (incident.number, 2, AlarmState::Active));
    assert!(again.shots_hit > 200 && again.onset_ns > late.onset_ns, "{again:?}");
}

/// An incident is over with its last alarm, and keeps its consequences while its root goes on.
#[test]
fn an_incident_lasts_as_long_as_its_alarms_and_keeps_those_that_have_ended() {
    let answers = |world: &mut World, late: u64, tenths: u64| {
        for _ in 0..tenths {
            board::add(&world.board.harvest(0).answered, 100);
            board::add(&world.board.harvest(0).late, late);
            world.run(100 * MS, [true, true]);
        }
    };
    for root_is_longer in [true, false] {
        let mut world = world(Vec::new());
        answers(&mut world, 0, 6);
        board::set(&world.board.dispatch(0).device_losses, 1);
        board::set(&world.board.dispatch(0).device_state, 1);
        answers(&mut world, 60, 10);
        if !root_is_longer {
            board::set(&world.board.dispatch(0).device_state, 0);
        }
        answers(&mut world, if root_is_longer { 0 } else { 60 }, 120);
        let found = world.board.snapshot(&world.clock).incidents;
        let [incident] = &found[..] else { panic!("{found:?}") };
        assert_eq!((incident.root.rule, incident.state), ("device_lost", AlarmState::Active), "{root_is_longer}");
        assert_eq!(incident.consequences.len(), 1, "{root_is_longer}");
        board::set(&world.board.dispatch(0).device_state, 0);
        answers(&mut world, 0, 120);
        let found = world.board.snapshot(&world.clock).incidents;
        assert_eq!((found.len(), found[0].state, found[0].consequences.len()), (1, AlarmState::Ended, 1));
    }
}

/// A profile with long sleeps is left for one with a shorter limit: the thread still sleeps by the
/// one before.
#[test]
fn the_limit_of_a_new_profile_applies_to_a_thread_once_it_has_confirmed_it() {
    let mut world = world(Vec::new());
    let board = Arc::clone(&world.board);
    let (block, header) = (board.thread(0), board.header());
    let order = |policy, epoch| SpinOrder { policy, epoch }.pack();
    for word in [&block.policy_requested, &block.policy_acknowledged] {
        board::set(word, order(SpinPolicy::Shared, 1));
    }
    board::set(&header.heartbeat_limit_ns, 100 * MS);
    world.run(300 * MS, [true, true]);
    board::set(&board.thread(0).policy_requested, order(SpinPolicy::Lab, 2));
    board::set(&board.header().heartbeat_limit_ns, 10 * MS);
    world.run(60 * MS, [false, true]);
    assert_eq!(world.alarms(), [], "it sleeps");
    world.run(200 * MS, [true, true]);
    let gap_limit = |thread: usize| board::get(&board.thread(thread).gap_limit_ticks);
    assert_eq!([gap_limit(0), gap_limit(1)], [100 * MS, 10 * MS]);
    board::set(&board.thread(0).policy_acknowledged, order(SpinPolicy::Lab, 2));
    world.run(200 * MS, [true, true]);
    assert_eq!(gap_limit(0), 10 * MS);
    world.run(16 * MS, [false, true]);
    assert!(world.alarm(RuleId::Heartbeat, Site::Thread(0)).is_some());
}
