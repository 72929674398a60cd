//! One stall of one thread, from suspicion to recovery.
//!
//! Run by the watchdog. One episode for each thread, three readings and one stack each.

use super::{AGAIN_NS, Baseline, ESCALATION_LIMITS, START_NS, Watchdog};
use crate::board::alarms::Site;
use crate::board::gaps::Gap;
use crate::board::{self, Phase};
use crate::host::neighbours::Scan;
use crate::profile::{RuleId, Severity};
use crate::stall::account::OtherThread;
use crate::stall::observe::{Observations, SignalState};
use crate::stall::stack::Symbolizer;
use crate::stall::watch::WatchdogActions;
use crate::stall::{competitors, verdict};
use crate::units::Ticks;
use std::sync::Arc;

/// Programs that a verdict may name.
const NAMED_MAX: usize = 4;

/// A stall that is not over.
pub(super) struct Episode {
    /// The last heartbeat before it.
    pub(super) heartbeat: u64,
    /// Row in the alarm table.
    pub(super) place: usize,
    before: Baseline,
    is_inside: bool,
    look: Option<Scan>,
    seen: Observations,
    pub(super) is_rejudged: bool,
    pub(super) asked: SignalState,
    pub(super) culprit: Option<String>,
}

/// Bits of a stack's ticket that name its thread.
const THREAD_BITS: u32 = 10;

/// Names the stack of thread `index` in the stall that began at `onset`.
pub(super) fn ticket(onset: Ticks, index: usize) -> u64 {
    onset.0 << THREAD_BITS | index as u64
}

pub(super) fn thread_of(ticket: u64) -> usize {
    (ticket & ((1 << THREAD_BITS) - 1)) as usize
}

/// The scan of a core in which a thread ran for longest, the earlier of two alike: the later does not see
/// a thread that has ended since.
pub(super) fn fuller(later: Vec<OtherThread>, earlier: &[OtherThread]) -> Vec<OtherThread> {
    let most = |others: &[OtherThread]| others.first().map(|other| other.ran_ns);
    if most(&later) > most(earlier) { later } else { earlier.to_vec() }
}

impl Watchdog {
    /// Puts threads that the kernel's records name before those that were only seen on the core. A
    /// thread that has ended gets its name from `earlier`.
    pub(super) fn name_recorded(&self, seen: &mut Observations, earlier: &[OtherThread]) {
        let Some(switched) = &seen.switched else {
            // Records were lost since: what an earlier reading recorded stays known.
            let recorded = earlier.iter().filter(|other| other.is_recorded).cloned();
            let others = std::mem::take(&mut seen.others);
            seen.others = recorded.chain(others).collect();
            return;
        };
        let known: Vec<OtherThread> = seen.others.iter().chain(earlier).cloned().collect();
        let mut named = self.switches.named(&switched.by, &known, NAMED_MAX);
        // What an earlier reading recorded is in these records too.
        seen.others.retain(|other| !other.is_recorded && switched.by.iter().all(|(pid, ..)| *pid != other.pid));
        named.append(&mut seen.others);
        seen.others = named;
    }

    /// Checks one thread's heartbeat, and begins, continues or ends its episode.
    pub(super) fn judge_silence(&mut self, index: usize, now: Ticks, limit_ns: u64, actions: &mut dyn WatchdogActions) {
        let board = Arc::clone(&self.config.board);
        let block = board.thread(index);
        let (state, heartbeat) = (board::get(&block.state), board::get(&block.heartbeat));
        if self.threads[index].episode.as_ref().is_some_and(|episode| episode.heartbeat != heartbeat || state >= 2) {
            self.recover(index, now);
        }
        let (since, limit_ns) = match state {
            1 if heartbeat > 0 => (Ticks(heartbeat), limit_ns),
            // It builds or warms its roles: allowed up to a limit of its own.
            0 if matches!(self.phase, Phase::Init | Phase::Warmup) => (self.phase_since, START_NS.max(limit_ns)),
            1 => (self.phase_since, START_NS.max(limit_ns)),
            _ => return,
        };
        // A heartbeat from before the counter went back says nothing: its silence counts from then
        // on.
        let outdated = self.threads[index].outdated.filter(|(heartbeat, _)| *heartbeat == since.0);
        let since = outdated.map_or(since, |(_, restart)| restart);
        let silent_ns = self.silent_ns(index, since, now);
        let rule = self.rule(RuleId::Heartbeat);
        let limit_ns = (limit_ns as f64 * rule.limit) as u64;
        match &self.threads[index].episode {
            Some(_) => self.go_on(index, now, since, limit_ns, actions),
            None if silent_ns > limit_ns => self.begin(index, now, (heartbeat, since), actions),
            None if silent_ns > limit_ns / 2
                && self.threads[index].suspicion.as_ref().is_none_or(|s| s.0 != heartbeat) =>
            {
                let base = self.base(index, now);
                self.threads[index].suspicion = Some((heartbeat, base));
            }
            None => {}
        }
    }

    /// Time since `since`, less the time in which the watchdog was late: nobody knows what the
    /// thread did then. A watchdog that is late in each tick sees a thread that hangs all the same.
    fn silent_ns(&mut self, index: usize, since: Ticks, now: Ticks) -> u64 {
        let known = self.threads[index].unwatched;
        let late_ns = if known.0 == since { known.1 + self.late_ns } else { self.ns(self.woke.since(since)) };
        self.threads[index].unwatched = (since, late_ns);
        self.ns(now.since(since)).saturating_sub(late_ns)
    }

    fn begin(&mut self, index: usize, now: Ticks, (heartbeat, since): (u64, Ticks), actions: &mut dyn WatchdogActions) {
        let suspicion = self.threads[index].suspicion.take().filter(|(beat, _)| *beat == heartbeat);
        let is_inside = suspicion.is_some();
        let base = suspicion.map(|(_, base)| base).or_else(|| self.base_before(index, since));
        let Some(before) = base else { return };
        let (tid, top) = (self.threads[index].tid, self.threads[index].stack_top);
        let is_asked = self.asked.is_none() && top > 0 && self.sampler.as_mut().is_some_and(|s| s.ask(tid, top));
        if is_asked {
            self.asked = Some(index);
        }
        let (after, at_ns) = (self.base(index, now), self.at_ns(now));
        let look = self.threads[index].pinned.then(|| competitors::scan_core(self.threads[index].core, at_ns));
        let mut seen = self.observe(index, &before, &after, since, now);
        seen.is_inside = is_inside;
        seen.others = look.as_ref().map(|look| competitors::others(None, look, tid)).unwrap_or_default();
        self.name_recorded(&mut seen, &[]);
        let board = Arc::clone(&self.config.board);
        if board::get(&board.thread(index).heartbeat) != heartbeat {
            // The thread continued meanwhile. It notes the gap's length itself.
            self.forget_stack(index);
            return;
        }
        let found = verdict(&seen);
        let rule = self.rule(RuleId::Heartbeat);
        let severity = if found.cause.is_ours() { rule.severity } else { Severity::Note };
        let site = Site::Thread(index as u32);
        let Some(place) = self.raise(&rule, site, severity, since, (found, None), actions) else { return };
        let asked = if is_asked { SignalState::Unanswered } else { SignalState::NotSent };
        let (is_rejudged, culprit) = (false, None);
        self.threads[index].episode =
            Some(Episode { heartbeat, place, before, is_inside, look, seen, is_rejudged, asked, culprit });
    }

    /// Judges a stall that lasts once more, and escalates it when it is long.
    fn go_on(&mut self, index: usize, now: Ticks, since: Ticks, limit_ns: u64, actions: &mut dyn WatchdogActions) {
        let stall_ns = self.ns(now.since(since));
        let Some(episode) = &mut self.threads[index].episode else { return };
        let place = episode.place;
        if !episode.is_rejudged && stall_ns > limit_ns + AGAIN_NS {
            episode.is_rejudged = true;
            self.judge_again(index, now, since);
        }
        if stall_ns > ESCALATION_LIMITS * limit_ns {
            let (rule, board) = (self.rule(RuleId::Heartbeat), Arc::clone(&self.config.board));
            if self.alarms.escalate(place, rule.severity, &board) {
                self.announce(place, &rule, false, actions);
            }
        }
    }

    /// Judges by a second reading inside the stall.
    pub(super) fn judge_again(&mut self, index: usize, now: Ticks, since: Ticks) {
        let Some(mut episode) = self.threads[index].episode.take() else { return };
        let after = self.base(index, now);
        let mut seen = self.observe(index, &episode.before, &after, since, now);
        seen.is_inside = episode.is_inside;
        seen.asked = episode.asked;
        seen.culprit.clone_from(&episode.culprit);
        seen.others = self.others(index, &episode, now);
        self.name_recorded(&mut seen, &episode.seen.others);
        self.say(&mut episode, seen, now);
        self.threads[index].episode = Some(episode);
    }

    fn others(&self, index: usize, episode: &Episode, now: Ticks) -> Vec<OtherThread> {
        let (tid, core) = (self.threads[index].tid, self.threads[index].core);
        let Some(before) = &episode.look else { return Vec::new() };
        let others = competitors::others(Some(before), &competitors::scan_core(core, self.at_ns(now)), tid);
        fuller(others, &episode.seen.others)
    }

    /// Writes the verdict on `seen` into the alarm. What was known and is hidden now stays known.
    fn say(&mut self, episode: &mut Episode, seen: Observations, now: Ticks) {
        let found = verdict(&seen);
        let board = Arc::clone(&self.config.board);
        let known = self.alarms.record(episode.place).confidence;
        let was = self.alarms.record(episode.place).cause.clone();
        // A later reading includes the recovery, so it may improve a verdict, never weaken it.
        if found.confidence >= known || was == found.cause.name() {
            self.alarms.explain(episode.place, found, now, &board);
        }
        episode.seen = seen;
    }

    /// Ends the episode, with a last reading and the exact length.
    fn recover(&mut self, index: usize, now: Ticks) {
        let Some(mut episode) = self.threads[index].episode.take() else { return };
        let board = Arc::clone(&self.config.board);
        let onset = self.alarms.record(episode.place).onset;
        let block = board.thread(index);
        let (from, gaps) = (Ticks(episode.heartbeat), board::get(&block.gaps_count));
        let last = (self.threads[index].gaps_seen + 1..=gaps).filter_map(|number| block.gap(number));
        let off = |gap: &Gap| gap.start.0.abs_diff(from.0);
        let own = last.filter(|gap| off(gap) <= gap.length.0).min_by_key(off);
        let end = own.map_or(now, |gap| gap.start.plus(gap.length));
        if self.asked == Some(index) {
            self.forget_stack(index);
        }
        let after = self.base(index, now);
        let mut seen = self.observe(index, &episode.before, &after, onset, end);
        // The thread has run since. That time does not belong to the stall.
        let gone_on_ns = self.ns(now.since(end));
        seen.span_ns = seen.span_ns.saturating_sub(gone_on_ns);
        seen.ran_ns = seen.ran_ns.map(|ran| ran.saturating_sub(gone_on_ns));
        seen.is_inside = episode.is_inside;
        (seen.state, seen.detail) = (episode.seen.state, episode.seen.detail.clone());
        seen.role = episode.seen.role;
        seen.asked = episode.asked;
        seen.culprit.clone_from(&episode.culprit);
        seen.others = self.others(index, &episode, now);
        self.name_recorded(&mut seen, &episode.seen.others);
        self.say(&mut episode, seen, now);
        self.threads[index].gaps_seen = own.map_or(self.threads[index].gaps_seen, |gap| gap.number);
        self.alarms.end(episode.place, end, &board);
    }

    /// Takes stacks that have come, and discards late ones.
    pub(super) fn take_stacks(&mut self, now: Ticks) {
        if let Some(index) = self.asked
            && let Some(sample) = self.sampler.as_mut().and_then(super::Sampler::take)
        {
            self.asked = None;
            let board = Arc::clone(&self.config.board);
            let heartbeat = board::get(&board.thread(index).heartbeat);
            if let Some(episode) = self.threads[index].episode.as_mut().filter(|episode| episode.heartbeat == heartbeat)
            {
                episode.asked = SignalState::Answered;
                let ticket = ticket(self.alarms.record(episode.place).onset, index);
                if self.symbolizer.is_none() {
                    self.symbolizer = Symbolizer::start();
                }
                self.symbolizer.iter().for_each(|symbolizer| symbolizer.give(ticket, sample.clone()));
            }
        }
        while let Some((ticket, named)) = self.symbolizer.as_ref().and_then(Symbolizer::take) {
            let index = thread_of(ticket);
            let Some(place) = self.alarms.find(RuleId::Heartbeat, Site::Thread(index as u32)) else { continue };
            // A stack of an earlier stall of the thread comes too late.
            if ticket != self::ticket(self.alarms.record(place).onset, index) {
                continue;
            }
            let board = Arc::clone(&self.config.board);
            self.alarms.add_stack(place, &named.frames.join("\n"), named.culprit.as_deref(), &board);
            let onset = self.alarms.record(place).onset;
            match self.threads.get_mut(index).and_then(|thread| thread.episode.as_mut()) {
                Some(episode) => {
                    episode.culprit = named.culprit;
                    self.judge_again(index, now, onset);
                }
                None => self.name_culprit(place, named.culprit, now),
            }
        }
    }

    fn forget_stack(&mut self, index: usize) {
        if self.asked == Some(index) {
            self.asked = None;
            self.sampler.iter_mut().for_each(super::Sampler::withdraw);
        }
    }
}
