//! Gaps that threads noted themselves, and times in which the whole process stood still.
//!
//! Run by the watchdog. Bounded by the gaps that a thread keeps.

use super::{Watchdog, WatchdogActions};
use crate::board::alarms::Site;
use crate::board::gaps::Gap;
use crate::board::{self, Phase};
use crate::profile::RuleId;
use crate::roles::RoleKind;
use crate::stall::{Cause, verdict};
use crate::units::Ticks;
use std::sync::Arc;

impl Watchdog {
    /// After a late tick: decides whether all threads stood still, or only the watchdog.
    pub(super) fn judge_freeze(&mut self, now: Ticks, actions: &mut dyn WatchdogActions) {
        if self.late_ns > 0 {
            // Judged at the next tick, when the threads have had a frame to note their gaps.
            return;
        }
        let frozen = self.froze.take();
        let limit_ns = board::get(&self.config.board.header().heartbeat_limit_ns).max(1);
        if let Some((from, late_ns)) = frozen.filter(|(_, late_ns)| *late_ns >= limit_ns && self.phase >= Phase::Warmup)
        {
            self.note_freeze(from, late_ns, now, actions);
        }
        for index in 0..self.threads.len() {
            self.take_gaps(index, now, actions);
        }
    }

    fn note_freeze(&mut self, from: Ticks, late_ns: u64, now: Ticks, actions: &mut dyn WatchdogActions) {
        let until = self.woke;
        let (still, running) = self.still(from, until);
        if still < running || running == 0 {
            return;
        }
        let Some(before) = self.base_before(0, from) else { return };
        let after = self.base(0, now);
        let mut seen = self.observe(0, &before, &after, from, until);
        seen.watcher_late_ns = late_ns;
        seen.still = (still, running);
        let found = verdict(&seen);
        let rule = self.rule(RuleId::Frozen);
        let board = Arc::clone(&self.config.board);
        let length_ns = self.ns(until.since(from));
        if !self.count_beside_longer(RuleId::Frozen, Site::Engine(0), length_ns, now)
            && let Some(place) = self.raise(&rule, Site::Engine(0), rule.severity, from, (found, None), actions)
        {
            self.alarms.end(place, until, &board);
        }
        // One alarm for the whole process, not one for each thread's gap.
        for (index, thread) in self.threads.iter_mut().enumerate() {
            thread.gaps_seen = board::get(&board.thread(index).gaps_count);
        }
    }

    /// Whether everything stood still for most of `gap`: a thread that sleeps by its policy notes it only when it wakes
    /// up, after the alarm.
    fn is_of_freeze(&self, gap: &Gap) -> bool {
        let Some(place) = self.alarms.find(RuleId::Frozen, Site::Engine(0)) else { return false };
        let told = self.alarms.record(place);
        let end = gap.start.plus(gap.length).min(told.ended);
        told.cause == Cause::Frozen.name() && 2 * end.since(gap.start.max(told.onset)).0 >= gap.length.0
    }

    fn take_gaps(&mut self, index: usize, now: Ticks, actions: &mut dyn WatchdogActions) {
        let board = Arc::clone(&self.config.board);
        let count = board::get(&board.thread(index).gaps_count);
        let first = (self.threads[index].gaps_seen + 1).max(count.saturating_sub(board::layout::GAPS_MAX as u64 - 1));
        if first > count {
            return;
        }
        self.threads[index].gaps_seen = count;
        if !matches!(self.phase, Phase::Live | Phase::Drain) {
            return;
        }
        for gap in (first..=count).filter_map(|number| board.thread(index).gap(number)) {
            self.note_gap(index, gap, now, actions);
        }
    }

    pub(super) fn note_gap(&mut self, index: usize, gap: Gap, now: Ticks, actions: &mut dyn WatchdogActions) {
        // An alarm of this thread already covers this gap.
        let (board, site) = (Arc::clone(&self.config.board), Site::Thread(index as u32));
        let end = gap.start.plus(gap.length);
        if let Some(place) = self.alarms.find(RuleId::Heartbeat, site) {
            let told = self.alarms.record(place);
            if told.onset < end && (told.ended.0 == 0 || told.ended > gap.start) {
                return;
            }
        }
        let length_ns = self.ns(gap.length);
        if self.is_of_freeze(&gap) || self.count_beside_longer(RuleId::FrameGap, site, length_ns, now) {
            return;
        }
        let Some(before) = self.base_before(index, gap.start) else { return };
        let after = self.base(index, now);
        let mut seen = self.observe(index, &before, &after, gap.start, end);
        seen.role = gap.stage.checked_sub(1).and_then(|code| RoleKind::ALL.get(code as usize)).map(|kind| kind.name());
        seen.state = None;
        self.name_recorded(&mut seen, &[]);
        let found = verdict(&seen);
        let rule = self.rule(RuleId::FrameGap);
        if let Some(place) = self.raise(&rule, site, rule.severity, gap.start, (found, None), actions) {
            self.alarms.end(place, end, &board);
        }
    }
}
