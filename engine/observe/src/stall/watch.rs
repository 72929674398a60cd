//! The watchdog: reads heartbeats every tick, suspects, looks, judges, writes the alarm.
//!
//! Owns the book, the accounts and each thread's episode. Run by a cold thread that calls [`Watchdog::tick`] every [`TICK`];
//! it keeps no thread of the engine waiting and nothing waits for it. Bounds: a tick reads three words a thread; every
//! [`LOOK_NS`] a baseline; a full scan only at an alarm, once more [`AGAIN_NS`] later, and at recovery.
//!
//! # Why its own lateness comes first
//! A monitor that was not run blames everybody else. A tick that comes late moves the moment from which silence counts, and
//! asks whether everything stood still; only a silence that lasts on after that is a thread's own.
//!
//! # Why not every stall alarms
//! On a machine that others use a thread is taken off its core for some milliseconds many times an hour. What heals and is
//! not ours is a note with its verdict. Five limits long, it alarms whoever did it.

mod episode;
mod gaps;
mod judge;

use super::account::{Accounts, CoreAccount, Owner, ThreadAccount};
use super::book::{Book, Raised, Request};
use super::notify::Teller;
use super::offline::{Look, Presence};
use super::services::{Recent, Services};
use super::stack::{Maps, Namer, Sampler};
use super::switches::Switches;
use super::verdict::{Cause, Verdict};
use crate::board::alarms::{AlarmState, Confidence, Site};
use crate::board::{self, Board, Phase};
use crate::clock::Clock;
use crate::host;
use crate::profile::{AlarmAction, AlarmRule, OnAlarm, RuleId, Severity, rule};
use crate::units::{Nanos, Ticks};
use episode::Episode;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Between two ticks.
pub const TICK: Duration = Duration::from_micros(1_500);
/// Between two baselines.
const LOOK_NS: u64 = 100_000_000;
/// Baselines kept.
const BASES: usize = 6;
/// After the first look of an alarm: the second.
const AGAIN_NS: u64 = 25_000_000;
/// A tick that is later than this was not run.
const LATE_NS: u64 = 5_000_000;
/// Longest time for a thread to build or warm its roles before that is a stall.
const START_NS: u64 = 5_000_000_000;
/// Heartbeat limits after which a stall alarms whoever did it.
const LASTS: u64 = 5;
/// A condition is over when it was away for so long.
const HOLD_NS: u64 = 1_000_000_000;
/// A stall explains what comes so long after it.
const EXPLAINS_NS: u64 = 2_500_000_000;

/// What the watchdog does to the engine, through its owner.
pub trait Deeds {
    /// An alarm's action, once at its onset, with the alarm's sentence.
    fn act(&mut self, action: &AlarmAction, why: &str);

    /// Pins thread `tid` to `core`.
    ///
    /// # Errors
    /// Why it is not, in one sentence.
    fn pin(&mut self, tid: u32, core: u32) -> Result<(), String>;

    /// Something happened that is no alarm: an event of the run.
    fn note(&mut self, text: &str);
}

/// What is watched.
pub struct Watched {
    /// The engine's board.
    pub board: Arc<Board>,
    /// The engine's clock.
    pub clock: Clock,
    /// The profile's rules.
    pub rules: Vec<AlarmRule>,
    /// The profile's program.
    pub on_alarm: OnAlarm,
    /// Where the run is kept.
    pub disk: Option<PathBuf>,
    /// Where the machine's files lie: `/`, but in tests.
    pub root: PathBuf,
}

/// A look at a thread and its core.
type Base = (ThreadAccount, CoreAccount);

struct Thread {
    name: String,
    tid: u32,
    core: u32,
    pinned: bool,
    /// First address above its stack; 0: not known.
    stack_top: u64,
    bases: VecDeque<Base>,
    suspicion: Option<(u64, Base)>,
    episode: Option<Episode>,
    gaps_seen: u64,
    elsewhere_seen: u64,
    presence: Presence,
}

/// The watchdog of one engine.
pub struct Watchdog {
    watched: Watched,
    threads: Vec<Thread>,
    accounts: Accounts,
    switches: Switches,
    tids: Vec<u32>,
    book: Book,
    services: Services,
    sampler: Option<Sampler>,
    namer: Option<Namer>,
    teller: Option<Teller>,
    /// Of the last stack asked for: (thread, ticket).
    asked: Option<usize>,
    ticked: Option<Ticks>,
    /// Silence counts from here on.
    woke: Ticks,
    late_ns: u64,
    /// A late wake whose meaning is asked at the next tick: from, how late.
    froze: Option<(Ticks, u64)>,
    looked: Ticks,
    phase: Phase,
    phase_since: Ticks,
}

impl Watchdog {
    /// Of an engine whose threads may not run yet.
    #[must_use]
    pub fn new(watched: Watched) -> Watchdog {
        let now = watched.clock.ticks();
        let silos = watched.board.shape().silos as usize;
        let services = Services::new(watched.clock.rate(), silos, watched.disk.clone());
        Watchdog {
            threads: Vec::new(),
            accounts: Accounts::open(Owner::Own, &[]),
            switches: Switches::default(),
            tids: Vec::new(),
            book: Book::default(),
            services,
            sampler: Sampler::install(),
            namer: None,
            teller: None,
            asked: None,
            ticked: None,
            woke: now,
            late_ns: 0,
            froze: None,
            looked: Ticks(0),
            phase: Phase::Init,
            phase_since: now,
            watched,
        }
    }

    /// Rules and program of another profile.
    pub fn steer(&mut self, rules: Vec<AlarmRule>, on_alarm: OnAlarm) {
        self.watched.rules = rules;
        self.watched.on_alarm = on_alarm;
    }

    /// What the operator asks; returns how many alarms it was about.
    pub fn answer(&mut self, request: Request) -> usize {
        self.book.answer(request, self.watched.clock.ticks(), &self.watched.board)
    }

    /// One tick.
    pub fn tick(&mut self, deeds: &mut dyn Deeds) {
        let now = self.watched.clock.ticks();
        self.note_own_lateness(now);
        self.follow_phase(now);
        if self.phase == Phase::Shutdown {
            return;
        }
        self.meet_threads();
        self.take_stacks(now, deeds);
        let limit_ns = board::get(&self.watched.board.header().heartbeat_limit_ns).max(1);
        for index in 0..self.threads.len() {
            self.judge_silence(index, now, limit_ns, deeds);
        }
        self.judge_freeze(now, deeds);
        if self.ns(now.since(self.looked)) >= LOOK_NS {
            self.looked = now;
            self.look(now, limit_ns, deeds);
        }
    }

    /// The last look, when the hot threads have left: what they did since the last baseline, a death above all. Judges no
    /// silence, for nobody runs any more.
    pub fn last_look(&mut self, deeds: &mut dyn Deeds) {
        let now = self.watched.clock.ticks();
        self.meet_threads();
        let board = Arc::clone(&self.watched.board);
        let found = self.services.last(&board, self.at_ns(now));
        self.settle(found, now, deeds);
    }

    fn ns(&self, span: Ticks) -> u64 {
        self.watched.clock.rate().nanos(span).0
    }

    fn at_ns(&self, at: Ticks) -> u64 {
        self.watched.clock.since_start(at).0
    }

    fn rule(&self, id: RuleId) -> AlarmRule {
        rule(&self.watched.rules, id)
    }

    fn note_own_lateness(&mut self, now: Ticks) {
        let since = self.ticked.replace(now);
        let late_ns = since.map_or(0, |then| self.ns(now.since(then)).saturating_sub(TICK.as_nanos() as u64));
        self.late_ns = if late_ns > LATE_NS { late_ns } else { 0 };
        if self.late_ns > 0 {
            self.woke = now;
            self.froze = since.map(|then| (then, late_ns));
        }
    }

    fn follow_phase(&mut self, now: Ticks) {
        let phase = Phase::from_code(board::get(&self.watched.board.header().phase));
        if phase != self.phase {
            (self.phase, self.phase_since) = (phase, now);
            if phase == Phase::Drain {
                // Whatever ended the run should be in it: look now, not at the next baseline.
                self.looked = Ticks(0);
            }
        }
    }

    /// Opens the accounts of threads that have come.
    fn meet_threads(&mut self) {
        let board = Arc::clone(&self.watched.board);
        let count = board.shape().threads as usize;
        let tids: Vec<u32> = (0..count).map(|index| board::get(&board.thread(index).tid) as u32).collect();
        if tids == self.tids {
            return;
        }
        self.accounts = Accounts::open(Owner::Own, &tids);
        let maps = Maps::own().unwrap_or_default();
        let met = |index: usize| {
            let block = board.thread(index);
            let core = board::get(&block.planned_core);
            Thread {
                name: block.name.read(),
                tid: tids[index],
                core: core.saturating_sub(1) as u32,
                pinned: core > 0 && board::get(&block.pinned) != 0,
                stack_top: maps.end_of(board::get(&block.stack_anchor)).unwrap_or(0),
                bases: VecDeque::new(),
                suspicion: None,
                episode: None,
                gaps_seen: board::get(&block.gaps_count),
                elsewhere_seen: board::get(&block.frames_elsewhere),
                presence: Presence::default(),
            }
        };
        self.threads = (0..count).map(met).collect();
        let of_core = |thread: &Thread| (thread.tid, thread.pinned.then_some(thread.core));
        self.switches = Switches::open(&self.threads.iter().map(of_core).collect::<Vec<_>>());
        self.tids = tids;
    }

    /// A baseline of every thread, the counters' rules, what is over.
    fn look(&mut self, now: Ticks, limit_ns: u64, deeds: &mut dyn Deeds) {
        let board = Arc::clone(&self.watched.board);
        let gap_limit_ns = (self.rule(RuleId::FrameGap).limit * limit_ns as f64) as u64;
        let gap_limit = self.watched.clock.rate().ticks(Nanos(gap_limit_ns));
        for index in 0..self.threads.len() {
            board::set(&board.thread(index).gap_limit_ticks, gap_limit.0);
            let base = self.base(index, now);
            let bases = &mut self.threads[index].bases;
            bases.push_back(base);
            if bases.len() > BASES {
                bases.pop_front();
            }
        }
        self.look_at_cores(now, deeds);
        if !matches!(self.phase, Phase::Live | Phase::Drain) {
            return;
        }
        let recent = self.recent(now).or_else(|| self.waited_lately());
        let mut found = self.services.look(&board, self.at_ns(now), recent.as_ref());
        for index in 0..self.threads.len() {
            found.extend(self.by_account(index, self.at_ns(now)));
        }
        self.settle(found, now, deeds);
    }

    /// Whether the threads' cores are online. A thread is pinned again when its core is back.
    fn look_at_cores(&mut self, now: Ticks, deeds: &mut dyn Deeds) {
        let (online, now_ns) = (host::online_cores(&self.watched.root), self.at_ns(now));
        for thread in self.threads.iter_mut().filter(|thread| thread.pinned) {
            let Thread { name, core, tid, presence, .. } = thread;
            match presence.look(*core, &online, now_ns) {
                Look::Same => {}
                Look::WentOffline => {
                    deeds.note(&format!("core {core} went offline: {name} runs on other cores until it is back"));
                }
                // Where the system refuses it, it is tried again at the next look.
                Look::IsBack { offline_ns } => {
                    if deeds.pin(*tid, *core).is_ok() {
                        presence.end(now_ns);
                        let offline_ms = offline_ns / 1_000_000;
                        deeds.note(&format!(
                            "core {core} was offline for {offline_ms} ms: {name} is pinned to it again"
                        ));
                    }
                }
            }
        }
    }

    fn base(&mut self, index: usize, now: Ticks) -> Base {
        let at_ns = self.at_ns(now);
        let core = self.threads[index].core;
        self.switches.drain(index);
        (self.accounts.thread(index, at_ns), self.accounts.core(core, at_ns))
    }

    /// The last stall, while it explains what comes after it.
    fn recent(&self, now: Ticks) -> Option<Recent> {
        let is_stall = |rule| matches!(rule, RuleId::Heartbeat | RuleId::FrameGap | RuleId::Frozen);
        let stalls = self.book.records().filter(|record| is_stall(record.rule) && !record.cause.is_empty());
        let last = stalls.max_by_key(|record| record.last)?;
        if self.ns(now.since(last.last)) > EXPLAINS_NS {
            return None;
        }
        let cause = Cause::ALL.iter().copied().find(|cause| cause.name() == last.cause)?;
        let until = if last.ended.0 == 0 { now } else { last.ended };
        Some(Recent {
            cause,
            confidence: last.confidence.min(Confidence::Likely),
            sentence: last.sentence.clone(),
            took_ns: self.ns(until.since(last.onset)),
            ended_ns: self.at_ns(until),
        })
    }

    /// Raises what fires, keeps what is near, ends what was away.
    fn settle(&mut self, found: Vec<super::services::Condition>, now: Ticks, deeds: &mut dyn Deeds) {
        let board = Arc::clone(&self.watched.board);
        for condition in found {
            let rule = self.rule(condition.rule);
            let place = self.book.find(condition.rule, condition.site);
            let holds = place.is_some_and(|place| self.book.record(place).state == AlarmState::Active);
            if condition.value >= rule.limit && condition.value > 0.0 {
                let severity = if condition.is_worse { Severity::Critical } else { rule.severity };
                self.raise(&rule, condition.site, severity, now, (condition.verdict, condition.count), deeds);
            } else if holds && condition.value >= rule.limit * rule.hysteresis {
                place.into_iter().for_each(|place| self.book.keep(place, now, condition.count, &board));
            }
        }
        let away = |record: &crate::board::alarms::AlarmRecord| {
            let is_stall = matches!(record.rule, RuleId::Heartbeat | RuleId::FrameGap | RuleId::Frozen);
            !is_stall && record.state == AlarmState::Active && self.ns(now.since(record.last)) > HOLD_NS
        };
        let over: Vec<(RuleId, Site, Ticks)> =
            self.book.records().filter(|r| away(r)).map(|r| (r.rule, r.site, r.last)).collect();
        for (rule, site, last) in over {
            if let Some(place) = self.book.find(rule, site) {
                self.book.end(place, last, &board);
            }
        }
    }

    /// Raises an alarm with its verdict; tells and acts when it is new and no note.
    fn raise(
        &mut self,
        rule: &AlarmRule,
        site: Site,
        severity: Severity,
        onset: Ticks,
        (verdict, count): (Verdict, Option<u64>),
        deeds: &mut dyn Deeds,
    ) -> Option<usize> {
        let board = Arc::clone(&self.watched.board);
        let raised = Raised {
            rule: rule.id,
            site,
            severity,
            onset,
            sentence: verdict.sentence.clone(),
            runbook: rule.runbook.clone(),
            count,
        };
        let now = self.watched.clock.ticks();
        let (place, is_new) = self.book.raise(raised, now, &board)?;
        if is_new || self.book.record(place).cause != verdict.cause.name() {
            self.book.explain(place, verdict, now, &board);
        } else {
            self.book.keep(place, now, count, &board);
        }
        if is_new && severity > Severity::Note {
            self.announce(place, rule, deeds);
        }
        Some(place)
    }

    /// Tells the operator's program and does what the rule says.
    fn announce(&mut self, place: usize, rule: &AlarmRule, deeds: &mut dyn Deeds) {
        if let OnAlarm::Exec(program) = &self.watched.on_alarm {
            if self.teller.is_none() {
                self.teller = Teller::start();
            }
            let number = self.book.record(place).number;
            let snapshot = self.watched.board.alarm_views(&self.watched.clock);
            if let (Some(teller), Some(view)) = (&mut self.teller, snapshot.iter().find(|view| view.number == number)) {
                teller.tell(program, view);
            }
        }
        if rule.action != AlarmAction::None {
            deeds.act(&rule.action, &self.book.record(place).sentence);
        }
    }
}

#[cfg(test)]
mod tests;
