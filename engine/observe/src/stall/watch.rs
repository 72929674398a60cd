//! The watchdog's loop: reads heartbeats every tick, takes readings of silent threads, judges, and
//! writes alarms.
//!
//! Owns the alarm table, the accounts and each thread's episode. A cold thread calls
//! [`Watchdog::tick`] every [`TICK`]. It blocks no other thread. A tick reads three words for each
//! thread; a round of baselines begins every [`LOOK_NS`]; a full scan only at an alarm, [`AGAIN_NS`]
//! later, and at recovery.
//!
//! # Why a round takes several ticks
//! The baselines of two threads and the rules take half a millisecond. A decode worker that shares
//! the core would stand still for as long. So a tick takes the account of a thread or of its core
//! (of several where there are more than half of [`TICKS_PER_ROUND`] threads), and the tick after the
//! last of them checks the rules.
//!
//! # Why its own lateness is checked first
//! A watchdog that was not run itself would blame all others. The time by which a tick is late
//! counts as nobody's silence, and the next tick checks whether everything stood still. After a
//! suspend, or on another host, the counter may go on from a lower value: all times count from then
//! on.
//!
//! # Why not every stall raises an alarm
//! On a shared machine a thread loses its core for some milliseconds many times an hour. A stall
//! that ends and has an outside cause is a note with its verdict. If it lasts five limits, it
//! raises an alarm whatever its cause.

mod episode;
mod gaps;
mod grouping;
mod judge;
mod noise;

use super::account::{Accounts, CoreAccount, Owner, ThreadAccount};
use super::alarm_table::{AlarmRequest, AlarmTable, Raised};
use super::core_availability::{CoreAvailability, CoreChange, predicate};
use super::counter_rules::{CounterRules, RecentStall};
use super::notify::AlarmNotifier;
use super::stack::{Sampler, Symbolizer};
use super::switches::Switches;
use super::verdict::{Cause, Verdict};
use crate::board::alarms::{ALARMS_MAX, AlarmRecord, AlarmState, Confidence, Site};
use crate::board::{self, Board, Phase};
use crate::clock::Clock;
use crate::host::usable::{CoreLoss, UsableCores};
use crate::profile::{AlarmAction, AlarmRule, OnAlarm, RuleId, Severity, rule};
use crate::units::{Nanos, Ticks};
use episode::Episode;
use grouping::Incidents;
use noise::NoiseAccount;
use pinwheel_edge::spin::SpinOrder;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Time between two ticks.
pub const TICK: Duration = Duration::from_micros(1_500);
/// Time between two baselines.
const LOOK_NS: u64 = 100_000_000;
/// A round of baselines takes at most so many ticks, and one more for the rules.
const TICKS_PER_ROUND: usize = 32;
/// Baselines kept for each thread.
const BASELINES: usize = 6;
/// Time from the first reading of an alarm to the second.
const AGAIN_NS: u64 = 25_000_000;
/// A tick later than this means that the watchdog was not run.
const LATE_NS: u64 = 5_000_000;
/// A thread may build or warm its roles for this long before that is a stall.
const START_NS: u64 = 5_000_000_000;
/// Heartbeat limits after which a stall raises an alarm whatever its cause.
const ESCALATION_LIMITS: u64 = 5;
/// A condition must be absent for this long before its alarm ends.
const HOLD_NS: u64 = 1_000_000_000;
/// A stall explains alarms for this long after its end.
const EXPLAINS_NS: u64 = 2_500_000_000;

/// What the watchdog does through the engine.
pub trait WatchdogActions {
    /// Runs the action of an alarm at `site`, once at its onset; `why` is the alarm's sentence.
    fn act(&mut self, action: &AlarmAction, site: Site, why: &str);

    /// Claims `core` again if it was released, and pins thread `tid` to it.
    ///
    /// # Errors
    /// The reason, in one sentence, if it cannot be claimed or pinned.
    fn pin(&mut self, tid: u32, core: u32) -> Result<(), String>;

    /// The cores that thread `tid` may use; `None` if the system does not tell.
    fn cores_of(&self, tid: u32) -> Option<Vec<u32>>;

    /// Releases the claim on `core`, which this process cannot use now.
    fn release(&mut self, core: u32);

    /// Confines the threads that are not hot to the cores planned for them.
    fn confine_cold_threads(&mut self);

    /// Notes an event of the run that is not an alarm.
    fn note(&mut self, text: &str);
}

/// Configuration of a watchdog.
pub struct WatchdogConfig {
    /// The engine's board.
    pub board: Arc<Board>,
    /// The engine's clock.
    pub clock: Clock,
    /// The profile's alarm rules.
    pub rules: Vec<AlarmRule>,
    /// The profile's program to run at alarms.
    pub on_alarm: OnAlarm,
    /// The directory of the run, whose free space is checked.
    pub disk: Option<PathBuf>,
    /// Root of the machine's files: `/` except in tests.
    pub root: PathBuf,
}

/// A reading of a thread's account and its core's.
type Baseline = (ThreadAccount, CoreAccount);

struct Thread {
    name: String,
    tid: u32,
    core: u32,
    pinned: bool,
    /// First address above its stack; 0 if not known.
    stack_top: u64,
    bases: VecDeque<Baseline>,
    suspicion: Option<(u64, Baseline)>,
    episode: Option<Episode>,
    /// The heartbeat limit by which it is judged, nanoseconds: that of the spin policy that it has
    /// confirmed.
    limit_ns: u64,
    /// The start of its silence, and how much of the silence the watchdog was late.
    unwatched: (Ticks, u64),
    /// Its last heartbeat before the counter went back, and when that was.
    outdated: Option<(u64, Ticks)>,
    gaps_seen: u64,
    elsewhere_seen: u64,
    core_availability: CoreAvailability,
    noise: NoiseAccount,
}

impl Thread {
    /// The core that it is pinned to.
    fn own_core(&self) -> Option<u32> {
        self.pinned.then_some(self.core)
    }
}

/// Whether the alarm of `rule` says what is the case now (workers in quarantine, seconds left), not what
/// was seen at its onset.
const fn is_of_now(rule: RuleId) -> bool {
    matches!(rule, RuleId::Quarantine | RuleId::DeviceLost | RuleId::Disk | RuleId::Source | RuleId::RunningOut)
}

/// The watchdog of one engine.
pub struct Watchdog {
    config: WatchdogConfig,
    threads: Vec<Thread>,
    accounts: Accounts,
    switches: Switches,
    tids: Vec<u32>,
    alarms: AlarmTable,
    counter_rules: CounterRules,
    usable: UsableCores,
    sampler: Option<Sampler>,
    symbolizer: Option<Symbolizer>,
    notifier: Option<AlarmNotifier>,
    incidents: Incidents,
    /// When something explained the alarm of each row last.
    explained: [Ticks; ALARMS_MAX],
    /// Rules of which an alarm had no row.
    left_out: Vec<RuleId>,
    /// The pending request for a stack: (thread, ticket).
    asked: Option<usize>,
    ticked: Option<Ticks>,
    /// Silence counts from this moment.
    woke: Ticks,
    late_ns: u64,
    /// A late tick that the next tick judges: since when, how late.
    froze: Option<(Ticks, u64)>,
    /// Start of the last round of baselines.
    looked: Ticks,
    /// Accounts taken in this round, of each thread its own and its core's; `None` between rounds.
    round: Option<usize>,
    /// The account of the thread whose core is next.
    account: Option<ThreadAccount>,
    phase: Phase,
    phase_since: Ticks,
}

impl Watchdog {
    /// A watchdog of an engine whose threads need not run yet.
    pub fn new(config: WatchdogConfig) -> Watchdog {
        let now = config.clock.ticks();
        let silos = config.board.shape().silos as usize;
        let counter_rules = CounterRules::new(config.clock.rate(), silos, config.disk.clone(), &config.root);
        Watchdog {
            threads: Vec::new(),
            accounts: Accounts::open(Owner::Own, &[]),
            switches: Switches::default(),
            tids: Vec::new(),
            alarms: AlarmTable::default(),
            counter_rules,
            usable: UsableCores::default(),
            sampler: Sampler::install(),
            symbolizer: None,
            notifier: None,
            incidents: Incidents::default(),
            explained: [Ticks(0); ALARMS_MAX],
            left_out: Vec::new(),
            asked: None,
            ticked: None,
            woke: now,
            late_ns: 0,
            froze: None,
            looked: Ticks(0),
            round: None,
            account: None,
            phase: Phase::Init,
            phase_since: now,
            config,
        }
    }

    /// Sets the rules and the program of another profile.
    pub fn set_rules(&mut self, rules: Vec<AlarmRule>, on_alarm: OnAlarm) {
        self.config.rules = rules;
        self.config.on_alarm = on_alarm;
    }

    /// Does what the operator asks. Returns how many alarms were concerned.
    pub fn answer(&mut self, request: AlarmRequest) -> usize {
        self.alarms.answer(request, self.config.clock.ticks(), &self.config.board)
    }

    /// Runs one tick.
    pub fn tick(&mut self, actions: &mut dyn WatchdogActions) {
        let now = self.config.clock.ticks();
        self.note_own_lateness(now);
        self.follow_phase(now);
        if self.phase == Phase::Shutdown {
            return;
        }
        self.open_new_threads();
        self.take_stacks(now);
        let limit_ns = board::get(&self.config.board.header().heartbeat_limit_ns).max(1);
        for index in 0..self.threads.len() {
            let limit_ns = self.limit_of(index, limit_ns);
            self.judge_silence(index, now, limit_ns, actions);
        }
        self.judge_freeze(now, actions);
        if self.round.is_none() && self.ns(now.since(self.looked)) >= LOOK_NS {
            (self.looked, self.round) = (now, Some(0));
            self.switches.learn_names();
        }
        if let Some(done) = self.round {
            self.go_on_with_round(done, now, actions);
        }
    }

    /// The last check, after the hot threads have ended: counters since the last baseline, above
    /// all panics. Ignores silence.
    pub fn final_check(&mut self, actions: &mut dyn WatchdogActions) {
        let now = self.config.clock.ticks();
        self.open_new_threads();
        let board = Arc::clone(&self.config.board);
        let found = self.counter_rules.last(&board, self.at_ns(now));
        self.settle(found, now, actions);
        self.group(now);
    }

    fn ns(&self, span: Ticks) -> u64 {
        self.config.clock.rate().nanos(span).0
    }

    fn at_ns(&self, at: Ticks) -> u64 {
        self.config.clock.since_start(at).0
    }

    fn rule(&self, id: RuleId) -> AlarmRule {
        rule(&self.config.rules, id)
    }

    /// The heartbeat limit of thread `index`; `limit_ns` is that of the profile in force. A thread
    /// that has not confirmed the profile may still sleep for as long as the one before says.
    fn limit_of(&mut self, index: usize, limit_ns: u64) -> u64 {
        let block = self.config.board.thread(index);
        let epoch = |word| SpinOrder::unpack(board::get(word)).epoch;
        let has_confirmed = epoch(&block.policy_acknowledged) >= epoch(&block.policy_requested);
        let thread = &mut self.threads[index];
        thread.limit_ns = if has_confirmed { limit_ns } else { thread.limit_ns.max(limit_ns) };
        thread.limit_ns
    }

    /// The counter went back: times from before say nothing of those that follow.
    fn restart(&mut self, then: Ticks, now: Ticks) {
        (self.woke, self.looked, self.phase_since) = (now, now, now);
        (self.ticked, self.froze, self.round, self.account) = (None, None, None, None);
        self.alarms.restart(then, now);
        let now_ns = self.at_ns(now);
        self.counter_rules.restart(now_ns);
        for (index, thread) in self.threads.iter_mut().enumerate() {
            thread.bases.clear();
            thread.suspicion = None;
            thread.core_availability.restart(now_ns);
            let heartbeat = board::get(&self.config.board.thread(index).heartbeat);
            thread.outdated = (heartbeat > now.0).then_some((heartbeat, now));
        }
    }

    fn note_own_lateness(&mut self, now: Ticks) {
        if let Some(then) = self.ticked.filter(|then| now < *then) {
            self.restart(then, now);
        }
        let since = self.ticked.replace(now);
        let late_ns = since.map_or(0, |then| self.ns(now.since(then)).saturating_sub(TICK.as_nanos() as u64));
        self.late_ns = if late_ns > LATE_NS { late_ns } else { 0 };
        if self.late_ns > 0 {
            self.woke = now;
            self.froze = since.map(|then| (then, late_ns));
        }
    }

    fn follow_phase(&mut self, now: Ticks) {
        let phase = Phase::from_code(board::get(&self.config.board.header().phase));
        if phase != self.phase {
            (self.phase, self.phase_since) = (phase, now);
            if phase == Phase::Drain {
                // The alarms that ended the run belong into it: check the rules now, by the
                // baselines at hand.
                self.round = Some(usize::MAX);
            }
        }
    }

    /// Opens the accounts of threads that have started.
    fn open_new_threads(&mut self) {
        let board = Arc::clone(&self.config.board);
        let count = board.shape().threads as usize;
        let tids: Vec<u32> = (0..count).map(|index| board::get_first(&board.thread(index).tid) as u32).collect();
        if tids == self.tids {
            return;
        }
        self.accounts = Accounts::open(Owner::Own, &tids);
        let mut episodes: Vec<_> = self.threads.iter_mut().map(|thread| thread.episode.take()).collect();
        episodes.resize_with(count, || None);
        let met = |(index, episode): (usize, Option<Episode>)| {
            let block = board.thread(index);
            let core = board::get(&block.planned_core);
            Thread {
                name: block.name.read(),
                tid: tids[index],
                core: core.saturating_sub(1) as u32,
                pinned: core > 0 && board::get(&block.pinned) != 0,
                stack_top: match board::get(&block.stack_anchor) {
                    0 => 0,
                    last => last + size_of::<u64>() as u64,
                },
                bases: VecDeque::new(),
                suspicion: None,
                // A stall goes on although another thread has started.
                episode,
                limit_ns: 0,
                unwatched: (Ticks(0), 0),
                outdated: None,
                gaps_seen: board::get(&block.gaps_count),
                elsewhere_seen: board::get(&block.frames_elsewhere),
                core_availability: CoreAvailability::default(),
                noise: NoiseAccount::default(),
            }
        };
        self.threads = episodes.into_iter().enumerate().map(met).collect();
        self.account = None;
        let of_core = |thread: &Thread| (thread.tid, thread.own_core());
        let threads: Vec<_> = self.threads.iter().map(of_core).collect();
        self.switches = Switches::open(&threads, &self.config.clock);
        self.tids = tids;
    }

    /// Takes the next accounts, or checks the rules if all are taken.
    fn go_on_with_round(&mut self, done: usize, now: Ticks, actions: &mut dyn WatchdogActions) {
        let accounts = 2 * self.threads.len();
        if done >= accounts {
            self.round = None;
            return self.check_rules(now, actions);
        }
        let limits = self.rule(RuleId::FrameGap).limit;
        let until = accounts.min(done + accounts.div_ceil(TICKS_PER_ROUND));
        for step in done..until {
            let (index, at_ns) = (step / 2, self.at_ns(now));
            if step % 2 == 0 {
                let gap_limit_ns = (limits * self.threads[index].limit_ns as f64) as u64;
                let gap_limit = self.config.clock.rate().ticks(Nanos(gap_limit_ns));
                board::set(&self.config.board.thread(index).gap_limit_ticks, gap_limit.0);
                self.switches.drain(index);
                self.account = Some(self.accounts.thread(index, at_ns));
            } else if let Some(account) = self.account.take() {
                let core = self.accounts.core(self.threads[index].own_core(), at_ns);
                self.keep_base(index, (account, core), now);
            }
        }
        self.round = Some(until);
    }

    /// Keeps a baseline of thread `index`, and accounts for its noise since the one before.
    fn keep_base(&mut self, index: usize, base: Baseline, now: Ticks) {
        if let Some(span_ns) =
            self.threads[index].bases.back().map(|before| base.0.at_ns.saturating_sub(before.0.at_ns))
        {
            let since = Ticks(now.0.saturating_sub(self.config.clock.rate().ticks(Nanos(span_ns)).0));
            let switched = self.switched(index, since, now).filter(|switched| switched.is_of_core);
            let Thread { bases, noise, .. } = &mut self.threads[index];
            if let Some(before) = bases.back() {
                noise.add(before, &base, switched);
            }
            noise.publish(&self.switches, self.config.board.thread(index));
        }
        let bases = &mut self.threads[index].bases;
        bases.push_back(base);
        if bases.len() > BASELINES {
            bases.pop_front();
        }
    }

    /// Checks the cores and the counters' rules, ends alarms that are over.
    fn check_rules(&mut self, now: Ticks, actions: &mut dyn WatchdogActions) {
        let board = Arc::clone(&self.config.board);
        self.look_at_cores(now, actions);
        if !matches!(self.phase, Phase::Live | Phase::Drain) {
            return self.group(now);
        }
        let recent = self.recent(now).or_else(|| self.taken_lately());
        let mut found = self.counter_rules.look(&board, self.at_ns(now), recent.as_ref());
        for index in 0..self.threads.len() {
            found.extend(self.by_account(index, self.at_ns(now)));
        }
        self.settle(found, now, actions);
        self.group(now);
    }

    /// Checks whether the threads' cores can be used. Pins a thread again when its core is back, and
    /// confines the cold threads again when any core is: the kernel has widened their affinity, too.
    fn look_at_cores(&mut self, now: Ticks, actions: &mut dyn WatchdogActions) {
        let (usable, now_ns) = (UsableCores::read(&self.config.root), self.at_ns(now));
        let clock = &self.config.clock;
        let mut is_one_back = usable.has_more_than(&self.usable);
        for (index, thread) in self.threads.iter_mut().enumerate().filter(|(_, thread)| thread.pinned) {
            let Thread { name, core, tid, core_availability, .. } = thread;
            let cores = actions.cores_of(*tid);
            let (was, is_first_try) = match core_availability.look(*core, &usable, cores.as_deref(), now_ns) {
                CoreChange::Same => continue,
                CoreChange::Lost(loss) => {
                    actions.release(*core);
                    self.switches.reopen(index, *tid, None, clock);
                    let what = predicate(loss);
                    actions.note(&format!("core {core} {what}: {name} runs on other cores until it is back"));
                    continue;
                }
                CoreChange::IsBack { loss, away_ns, is_first_try } => {
                    let away_ms = away_ns / 1_000_000;
                    let was = match loss {
                        CoreLoss::Offline => format!("was offline for {away_ms} ms"),
                        CoreLoss::OutsideCpuset => format!("was outside the cpuset for {away_ms} ms"),
                    };
                    (was, is_first_try)
                }
                CoreChange::Widened { is_first_try } => {
                    is_one_back = true;
                    ("was away for a moment, or something changed the thread's affinity".to_owned(), is_first_try)
                }
            };
            match actions.pin(*tid, *core) {
                Ok(()) => {
                    core_availability.end(now_ns);
                    self.switches.reopen(index, *tid, Some(*core), clock);
                    actions.note(&format!("core {core} {was}: {name} is pinned to it again"));
                }
                Err(why) => {
                    core_availability.refuse(now_ns);
                    if is_first_try {
                        actions.note(&format!("core {core} {was}, and {name} stays on other cores: {why}"));
                    }
                }
            }
        }
        self.usable = usable;
        if is_one_back {
            self.switches.reopen_names();
            actions.confine_cold_threads();
        }
    }

    fn base(&mut self, index: usize, now: Ticks) -> Baseline {
        let at_ns = self.at_ns(now);
        let core = self.threads[index].own_core();
        self.switches.learn_names();
        self.switches.drain(index);
        (self.accounts.thread(index, at_ns), self.accounts.core(core, at_ns))
    }

    /// The stall, dead role or lost device that explains other alarms: the one with most weight, of several alike the
    /// last.
    fn recent(&self, now: Ticks) -> Option<RecentStall> {
        let is_stall = |rule| {
            matches!(
                rule,
                RuleId::Heartbeat | RuleId::FrameGap | RuleId::Frozen | RuleId::RoleDied | RuleId::DeviceLost
            )
        };
        let until = |record: &AlarmRecord| if record.ended.0 == 0 { now } else { record.ended };
        let explains =
            |record: &&AlarmRecord| is_stall(record.rule) && self.ns(now.since(until(record))) <= EXPLAINS_NS;
        let stalls = self.alarms.records().filter(explains);
        let last = stalls.max_by_key(|record| (self.weight_ns(record, now), until(record), record.last))?;
        let until = until(last);
        let cause = Cause::from_name(&last.cause)?;
        Some(RecentStall {
            cause,
            confidence: last.confidence.min(Confidence::Likely),
            who: last.who.clone(),
            silos: self.silos_at(last.site),
            sentence: last.sentence.clone(),
            took_ns: self.ns(until.since(last.onset)),
            ended_ns: self.at_ns(until),
        })
    }

    /// How much longer a stall lasted than it is over: shots that piled up in it are answered late for a while.
    fn weight_ns(&self, record: &AlarmRecord, now: Ticks) -> u64 {
        let until = if record.ended.0 == 0 { now } else { record.ended };
        self.ns(until.since(record.onset)).saturating_sub(self.ns(now.since(until)))
    }

    /// Counts a stall of `length_ns` that is over, where the row of its alarm has one that weighs more: what the short
    /// one says must not take the place of what the long one does. False: it is to be raised.
    fn count_beside_longer(&mut self, rule: RuleId, site: Site, length_ns: u64, now: Ticks) -> bool {
        let Some(place) = self.alarms.find(rule, site) else { return false };
        let record = self.alarms.record(place);
        let is_explained = self.ns(now.since(record.ended)) <= EXPLAINS_NS;
        let is_longer = record.ended.0 > 0 && is_explained && self.weight_ns(record, now) > length_ns;
        if is_longer {
            let (count, board) = (record.count + 1, Arc::clone(&self.config.board));
            self.alarms.keep(place, now, Some(count), &board);
        }
        is_longer
    }

    /// Raises conditions that exceed their limits, keeps those near them, ends those that were
    /// absent.
    fn settle(&mut self, found: Vec<super::counter_rules::Condition>, now: Ticks, actions: &mut dyn WatchdogActions) {
        let board = Arc::clone(&self.config.board);
        for condition in found {
            let rule = self.rule(condition.rule);
            let place = self.alarms.find(condition.rule, condition.site);
            let holds = place.is_some_and(|place| self.alarms.record(place).state == AlarmState::Active);
            // Nothing is no alarm, whatever the limit.
            if condition.value <= 0.0 {
                continue;
            }
            if condition.value >= rule.limit {
                let severity = if condition.is_worse { Severity::Critical } else { rule.severity };
                self.raise(&rule, condition.site, severity, now, (condition.verdict, condition.count), actions);
            } else if holds && condition.value >= rule.limit * rule.hysteresis {
                place.into_iter().for_each(|place| self.alarms.keep(place, now, condition.count, &board));
            }
        }
        let away = |record: &AlarmRecord| {
            let is_stall = matches!(record.rule, RuleId::Heartbeat | RuleId::FrameGap | RuleId::Frozen);
            !is_stall && record.state == AlarmState::Active && self.ns(now.since(record.last)) > HOLD_NS
        };
        let over: Vec<(RuleId, Site, Ticks)> =
            self.alarms.records().filter(|r| away(r)).map(|r| (r.rule, r.site, r.last)).collect();
        for (rule, site, last) in over {
            if let Some(place) = self.alarms.find(rule, site) {
                self.alarms.end(place, last, &board);
            }
        }
    }

    /// Raises an alarm with its verdict. Announces it if it is new or worse than before, and not a
    /// note.
    fn raise(
        &mut self,
        rule: &AlarmRule,
        site: Site,
        severity: Severity,
        onset: Ticks,
        (verdict, count): (Verdict, Option<u64>),
        actions: &mut dyn WatchdogActions,
    ) -> Option<usize> {
        let board = Arc::clone(&self.config.board);
        let raised = Raised {
            rule: rule.id,
            site,
            severity,
            onset,
            sentence: verdict.sentence.clone(),
            runbook: rule.runbook.clone(),
            count,
        };
        let now = self.config.clock.ticks();
        let before = self.alarms.find(rule.id, site).map(|place| self.alarms.record(place).severity);
        let Some((place, is_new)) = self.alarms.raise(raised, now, &board) else {
            if !self.left_out.contains(&rule.id) {
                self.left_out.push(rule.id);
                actions.note(&format!("{ALARMS_MAX} alarms are active: further ones of {} are not listed", rule.id));
            }
            return None;
        };
        let before = before.filter(|_| !is_new);
        let is_worse = before.is_none_or(|before| severity > before);
        let told = self.alarms.record(place);
        let is_outdated = is_of_now(rule.id) && told.sentence != verdict.sentence;
        let is_other = is_outdated || told.cause != verdict.cause.name();
        // Else a cause near its limit would come and go ten times a second.
        let is_explained = verdict.cause != Cause::Unexplained;
        let was_just_explained = self.ns(now.since(self.explained[place])) <= EXPLAINS_NS;
        if is_explained {
            self.explained[place] = now;
        }
        if is_worse || is_other && (is_explained || !was_just_explained) {
            self.alarms.explain(place, verdict, now, &board);
        } else {
            self.alarms.keep(place, now, count, &board);
        }
        if is_worse && severity > Severity::Note {
            let was_announced = before.is_some_and(|before| before > Severity::Note);
            self.announce(place, rule, was_announced, actions);
        }
        Some(place)
    }

    /// Runs the rule's action, once in an episode. The operator's program follows once it is known
    /// whether the alarm is a root.
    fn announce(&mut self, place: usize, rule: &AlarmRule, again: bool, actions: &mut dyn WatchdogActions) {
        self.incidents.tell(self.alarms.record(place).number);
        if !again && rule.action != AlarmAction::None {
            let record = self.alarms.record(place);
            actions.act(&rule.action, record.site, &record.sentence);
        }
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod limits;
