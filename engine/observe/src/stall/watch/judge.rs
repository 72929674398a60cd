//! The observations of a thread at one moment, and the conditions that follow from its account.
//!
//! Run by the watchdog. Reads the board and the accounts; bounded by the threads.

use super::{Baseline, Thread, Watchdog};
use crate::board::alarms::{AlarmState, Confidence, Site};
use crate::board::{self, Phase};
use crate::clock::Correlation;
use crate::host::check::ranges;
use crate::host::usable::{CoreLoss, UsableCores};
use crate::profile::RuleId;
use crate::roles::RoleKind;
use crate::stall::account::OtherThread;
use crate::stall::core_availability::predicate;
use crate::stall::counter_rules::{Condition, RecentStall, condition, plain};
use crate::stall::observe::Observations;
use crate::stall::switches::{self, Switched};
use crate::stall::verdict::{Cause, Verdict, joined};
use crate::units::{Nanos, Ticks};
use pinwheel_edge::spin::SpinOrder;
use std::sync::Arc;

/// Baselines that cover half a second, fewer than are kept.
const HALF_SECOND: usize = 5;
/// The time that they cover.
const HALF_SECOND_NS: u64 = 500_000_000;
/// Share of half a second, in percent, from which waiting explains late answers.
const EXPLAINS_PERCENT: u64 = 10;
/// A thread that waited less than one part in this many had its core to itself.
const SHARED_SHARE: u64 = 100;
/// Baselines that give a rate.
const RECENT: usize = 2;

/// How much of half a second a thread's core was taken from it.
struct Taken {
    /// Percent.
    share: u64,
    /// The thread.
    index: usize,
    took_ns: u64,
    /// By the hypervisor; otherwise by other threads.
    is_stolen: bool,
}

impl Watchdog {
    /// The observations of a stall of thread `index` that began at `since`, from `before` to
    /// `after`.
    pub(super) fn observe(
        &self,
        index: usize,
        before: &Baseline,
        after: &Baseline,
        since: Ticks,
        now: Ticks,
    ) -> Observations {
        let board = &self.config.board;
        let block = board.thread(index);
        let thread = &self.threads[index];
        let stage = board::get(&block.stage).checked_sub(1).and_then(|code| RoleKind::ALL.get(code as usize).copied());
        let mut seen = Observations {
            thread: thread.name.clone(),
            role: stage.map(RoleKind::name),
            policy: Some(SpinOrder::unpack(board::get(&block.policy_acknowledged)).policy),
            core: thread.own_core(),
            core_loss: thread.pinned.then(|| self.core_loss(index, now)).flatten(),
            stall_ns: self.ns(now.since(since)),
            detail: self.accounts.detail(index),
            watcher_late_ns: self.late_ns,
            still: self.still(since, now),
            hidden: self.accounts.hidden().into_iter().chain(self.switches.hidden()).collect(),
            ..Observations::default()
        };
        seen.switched = self.switched(index, since, now);
        if matches!(self.phase, Phase::Init | Phase::Warmup) && board::get(&block.state) == 0 {
            seen.role = Some(if self.phase == Phase::Init { "building its roles" } else { "warming its roles" });
        }
        seen.between(&before.0, &after.0);
        seen.on_core(&before.1, &after.1);
        // The kernel counts a throttled period at its end, so a period from before the stall is
        // counted too.
        let early = thread.bases.front().and_then(|base| base.1.throttled).zip(after.1.throttled);
        seen.throttled = early.map(|(b, a)| (a.0.saturating_sub(b.0), a.1.saturating_sub(b.1)));
        seen
    }

    /// How the core of thread `index` is lost, or was just before.
    fn core_loss(&self, index: usize, now: Ticks) -> Option<CoreLoss> {
        let Thread { core, core_availability, .. } = &self.threads[index];
        let known = core_availability.explains(self.at_ns(now));
        known.or_else(|| UsableCores::read(&self.config.root).loss(*core))
    }

    /// The kernel's switch records of a thread from `since` to `now`.
    pub(super) fn switched(&self, index: usize, since: Ticks, now: Ticks) -> Option<Switched> {
        let (here, rate) = (Correlation::take(&self.config.clock), self.config.clock.rate());
        let at_ns = |at: Ticks| here.monotonic.0.saturating_sub(rate.nanos(here.ticks.since(at)).0);
        self.switches.between(index, at_ns(since), at_ns(now))
    }

    /// Number of hot threads that stood still from `since` to `now`, and of all that run.
    pub(super) fn still(&self, since: Ticks, now: Ticks) -> (usize, usize) {
        let board = &self.config.board;
        let running: Vec<usize> =
            (0..self.threads.len()).filter(|index| board::get(&board.thread(*index).state) == 1).collect();
        let half = Ticks(now.since(since).0 / 2);
        let is_still = |index: &&usize| {
            let block = board.thread(**index);
            let silent = now.since(Ticks(board::get(&block.heartbeat))) >= half;
            let gaps = board::get(&block.gaps_count);
            let recent = (gaps.saturating_sub(2)..=gaps).filter_map(|number| block.gap(number));
            let over =
                |gap: &board::gaps::Gap| gap.length >= half && gap.start < now && gap.start.plus(gap.length) > since;
            silent || recent.into_iter().any(|gap| over(&gap))
        };
        (running.iter().filter(is_still).count(), running.len())
    }

    /// The newest baseline from before `since`; the oldest one if there is none.
    pub(super) fn base_before(&self, index: usize, since: Ticks) -> Option<Baseline> {
        let at_ns = self.at_ns(since);
        let bases = &self.threads[index].bases;
        bases.iter().rev().find(|base| base.0.at_ns <= at_ns).or_else(|| bases.front()).cloned()
    }

    /// Conditions by account: waiting for its core, interrupts, running on another core.
    pub(super) fn by_account(&mut self, index: usize, now_ns: u64) -> Vec<Condition> {
        let mut found = Vec::new();
        let board = Arc::clone(&self.config.board);
        let thread = &mut self.threads[index];
        let site = Site::Thread(index as u32);
        let elsewhere = board::get(&board.thread(index).frames_elsewhere);
        let moved = elsewhere - thread.elsewhere_seen.min(elsewhere);
        thread.elsewhere_seen = elsewhere;
        let thread = &self.threads[index];
        if moved > 0 && thread.pinned {
            let loss = thread.core_availability.explains(now_ns);
            let allowed = self.accounts.detail(index).allowed.unwrap_or_default();
            let (name, core) = (&thread.name, thread.core);
            let (cause, sentence) = if let Some(loss) = loss {
                let (what, why) = (predicate(loss), "the thread is pinned to it again when it is back");
                (Cause::of_loss(loss), format!("{name}: core {core} {what}, {moved} frames elsewhere; {why}"))
            } else {
                let what = format!("{moved} frames elsewhere than on core {core}");
                let now = may_run(&allowed, core);
                (Cause::Affinity, format!("{name}: {what}; something changed its affinity: {now}"))
            };
            found.push(condition(RuleId::Affinity, site, moved as f64, Some(elsewhere), plain(cause, sentence)));
        }
        let Some(then) = thread.bases.len().checked_sub(1 + HALF_SECOND).map(|at| &thread.bases[at]) else {
            return found;
        };
        let Some(now) = thread.bases.back() else { return found };
        if let Some(mut waits) = waits(thread, site, then, now) {
            let (limit, waited_ns) = (self.rule(RuleId::Scheduler).limit, waited_ns(then, now).unwrap_or(0));
            let alarm = self.alarms.find(RuleId::Scheduler, site).map(|place| self.alarms.record(place).state);
            // Nobody reads it below the limit, nor while the alarm that it raised is active.
            let is_read = waits.value >= limit && alarm != Some(AlarmState::Active);
            let who = if is_read { self.competitor(index, waited_ns).0 } else { String::new() };
            if !who.is_empty() {
                waits.verdict.sentence += &format!(" because of {who}");
                waits.verdict.who = who;
            }
            found.push(waits);
        }
        let before = |looks: usize| thread.bases.len().checked_sub(1 + looks).map_or(then, |at| &thread.bases[at]);
        // A condition that has just begun fills one interval: 1.5 times the limit in one counts as
        // much as the limit over two.
        let within = |looks, share: f64| {
            let mut found = self.interrupted(thread, site, before(looks), now)?;
            found.value *= share;
            Some(found)
        };
        let (short, long) = (within(1, 1.0 / 1.5), within(RECENT, 1.0));
        found.extend(short.into_iter().chain(long).max_by(|one, other| one.value.total_cmp(&other.value)));
        found
    }

    /// The thread whose core was taken for most of the last half second, by other threads or by the hypervisor. Many
    /// short waits explain late answers like one long stall.
    pub(super) fn taken_lately(&self) -> Option<RecentStall> {
        let taken = |(index, thread): (usize, &Thread)| {
            let then = thread.bases.len().checked_sub(1 + HALF_SECOND).map(|at| &thread.bases[at])?;
            let now = thread.bases.back()?;
            let mut seen = Observations::default();
            seen.between(&then.0, &now.0);
            seen.on_core(&then.1, &now.1);
            let stolen_ns = seen.steal_ns.filter(|_| thread.pinned).map_or(0, |ns| ns.min(seen.span_ns));
            let waited_ns = seen.waited_ns.unwrap_or(0);
            let took_ns = waited_ns.max(stolen_ns);
            let share = took_ns * 100 / seen.span_ns.max(1);
            Some(Taken { share, index, took_ns, is_stolen: stolen_ns > waited_ns })
        };
        let most = self.threads.iter().enumerate().filter_map(taken).max_by_key(|taken| taken.share)?;
        let Taken { share, index, took_ns, is_stolen } = Some(most).filter(|most| most.share >= EXPLAINS_PERCENT)?;
        let thread = &self.threads[index];
        let (name, core) = (&thread.name, thread.core);
        let on_core = thread.own_core().map_or_else(String::new, |core| format!(" on core {core}"));
        let (cause, who, sentence) = if is_stolen {
            let sentence = format!("the hypervisor took core {core} of {name} for others for {share} % of 0.5 s");
            (Cause::Steal, String::new(), sentence)
        } else {
            let (who, is_recorded) = self.competitor(index, took_ns);
            let by = if who.is_empty() {
                switches::unknown(&self.switches.hidden().into_iter().collect::<Vec<_>>()).to_owned()
            } else {
                by_whom(&who, is_recorded)
            };
            let sentence = format!("{name} was descheduled for {share} % of 0.5 s{on_core}; {by}");
            (Cause::Descheduled, who, sentence)
        };
        let ended_ns = thread.bases.back().map_or(0, |base| base.0.at_ns);
        let (confidence, silos) = (Confidence::Likely, self.silos_of(index));
        Some(RecentStall { cause, confidence, who, silos, sentence, took_ns, ended_ns })
    }

    /// The program that had the core of thread `index` for most of the last half second, if that is
    /// a quarter of `waited_ns` or more; without records the one that was last seen to run there
    /// for so much of the time. Empty: none. And whether it is recorded.
    fn competitor(&self, index: usize, waited_ns: u64) -> (String, bool) {
        let (now, block) = (self.config.clock.ticks(), self.config.board.thread(index));
        let since = Ticks(now.0.saturating_sub(self.config.clock.rate().ticks(Nanos(HALF_SECOND_NS)).0));
        if let Some(switched) = self.switched(index, since, now).filter(|switched| switched.is_of_core) {
            let named = self.switches.named(&switched.by, &[], 1);
            let most = named.first().filter(|other| other.ran_ns >= waited_ns / 4);
            return (most.map(OtherThread::who).unwrap_or_default(), true);
        }
        let pid = board::get(&block.competitor_pid);
        // The next scan comes after about the time that this one covered: what is older than two is
        // over. Who only waited for the core took nothing.
        let span_ns = board::get(&block.competitor_span_ns);
        let age_ns = self.ns(now.since(Ticks(board::get(&block.competitor_seen))));
        let ran_ns = u128::from(board::get(&block.competitor_ran_ns)) * u128::from(HALF_SECOND_NS);
        let had_much = ran_ns >= u128::from(waited_ns / 4) * u128::from(span_ns);
        if pid == 0 || ran_ns == 0 || age_ns > 2 * span_ns || !had_much {
            return (String::new(), false);
        }
        (format!("{} ({pid})", block.competitor_command.read()), false)
    }

    /// TLB shootdowns go to the cores that use an address space. If no other thread ran on the
    /// core, they are caused by this process. Otherwise another process may cause them, unless this
    /// process has faulted in memory that it unmapped.
    pub(super) fn interrupted(
        &self,
        thread: &Thread,
        site: Site,
        then: &Baseline,
        now: &Baseline,
    ) -> Option<Condition> {
        let span_ns = now.1.at_ns.saturating_sub(then.1.at_ns).max(1);
        let (old, new) = (then.1.interrupts?, now.1.interrupts?);
        let count = new.shootdowns?.saturating_sub(old.shootdowns?);
        let a_second = count as f64 * 1e9 / span_ns as f64;
        if !thread.pinned || count == 0 {
            return None;
        }
        let waited_ns = waited_ns(then, now);
        let faults = now.1.process_faults.zip(then.1.process_faults).map(|(new, old)| new.saturating_sub(old));
        let is_alone = waited_ns.is_some_and(|ns| ns * SHARED_SHARE <= span_ns);
        let confidence = match faults {
            _ if is_alone => Confidence::Certain,
            Some(faults) if 2 * faults >= count => Confidence::Likely,
            _ => return None,
        };
        let sentence = format!(
            "{}: interrupts on core {}: {a_second:.0} shoot-downs a second: memory is unmapped by a thread \
            of this process",
            thread.name, thread.core
        );
        let verdict = Verdict {
            cause: Cause::Interrupts,
            evidence: format!("{count} shoot-downs (row TLB of /proc/interrupts) in {:.0} ms", span_ns as f64 / 1e6),
            sentence,
            confidence,
            who: String::new(),
        };
        Some(condition(RuleId::Interrupts, site, a_second, None, verdict))
    }
}

/// Where a thread may run whose core is `core`, and which may use the cores `allowed`: none, if that is not visible.
pub(super) fn may_run(allowed: &[u32], core: u32) -> String {
    match allowed {
        [] => "where it may run is not visible".to_owned(),
        [only] if *only == core => "it is pinned to it again".to_owned(),
        _ => format!("it may run on {}", ranges(allowed)),
    }
}

/// Who had a core, as the records of switches or a look at the core say.
pub(super) fn by_whom(who: &str, is_recorded: bool) -> String {
    if is_recorded { format!("by {who}") } else { format!("last seen there: {who}") }
}

/// How long the thread stood ready and did not run between two accounts.
fn waited_ns(then: &Baseline, now: &Baseline) -> Option<u64> {
    now.0.waited_ns.zip(then.0.waited_ns).map(|(new, old)| new.saturating_sub(old))
}

pub(super) fn waits(thread: &Thread, site: Site, then: &Baseline, now: &Baseline) -> Option<Condition> {
    let mut seen = Observations { thread: thread.name.clone(), ..Observations::default() };
    seen.between(&then.0, &now.0);
    seen.on_core(&then.1, &now.1);
    seen.stall_ns = seen.waited_ns?;
    let share = seen.waited_ns? as f64 * 100.0 / seen.span_ns.max(1) as f64;
    let core = thread.own_core().map_or_else(|| "a core".to_owned(), |core| format!("core {core}"));
    let sentence = format!(
        "{}: descheduled {share:.0} % of {:.1} s: it stood ready for {core} and did not run",
        thread.name,
        seen.span_ns as f64 / 1e9
    );
    let evidence = joined(&seen.lines());
    let (cause, confidence, who) = (Cause::Descheduled, Confidence::Certain, String::new());
    let verdict = Verdict { cause, sentence, confidence, who, evidence };
    (share >= 1.0).then(|| condition(RuleId::Scheduler, site, share, None, verdict))
}

impl Watchdog {
    /// Adds the line of a stack that was taken during a stall and named after it.
    pub(super) fn name_culprit(&mut self, place: usize, culprit: Option<String>, now: Ticks) {
        let Some(line) = culprit else { return };
        let record = self.alarms.record(place);
        let Some(cause) = Cause::from_name(&record.cause) else { return };
        if !matches!(cause, Cause::LongHandler | Cause::PageFaults | Cause::Blocked) || record.sentence.contains(" at ")
        {
            return;
        }
        let verdict = Verdict {
            cause,
            sentence: format!("{}, at {line}", record.sentence),
            confidence: Confidence::Certain,
            who: record.who.clone(),
            evidence: record.evidence.clone(),
        };
        let board = Arc::clone(&self.config.board);
        self.alarms.explain(place, verdict, now, &board);
    }
}
