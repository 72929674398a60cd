//! Gaps that the threads noted themselves, and moments in which everything stood still.
//!
//! Run by the watchdog. Bounds: the gaps that a thread keeps.

use super::{Deeds, Watchdog};
use crate::board::alarms::Site;
use crate::board::gaps::Gap;
use crate::board::{self, Phase};
use crate::profile::{RoleKind, RuleId};
use crate::stall::verdict;
use crate::units::Ticks;
use std::sync::Arc;

impl Watchdog {
    /// A tick that came late: did everything stand still, or only we?
    pub(super) fn judge_freeze(&mut self, now: Ticks, deeds: &mut dyn Deeds) {
        if self.late_ns > 0 {
            // At the next tick, when the threads have had a frame to say how long theirs was.
            return;
        }
        let frozen = self.froze.take();
        let limit_ns = board::get(&self.watched.board.header().heartbeat_limit_ns).max(1);
        if let Some((from, late_ns)) = frozen.filter(|(_, late_ns)| *late_ns >= limit_ns && self.phase >= Phase::Warmup)
        {
            self.note_freeze(from, late_ns, now, deeds);
        }
        for index in 0..self.threads.len() {
            self.take_gaps(index, now, deeds);
        }
    }

    fn note_freeze(&mut self, from: Ticks, late_ns: u64, now: Ticks, deeds: &mut dyn Deeds) {
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
        let board = Arc::clone(&self.watched.board);
        if let Some(place) = self.raise(&rule, Site::Engine(0), rule.severity, from, (found, None), deeds) {
            self.book.end(place, until, &board);
        }
        // One alarm, not one for each thread: their gaps are this one.
        for (index, thread) in self.threads.iter_mut().enumerate() {
            thread.gaps_seen = board::get(&board.thread(index).gaps_count);
        }
    }

    fn take_gaps(&mut self, index: usize, now: Ticks, deeds: &mut dyn Deeds) {
        let board = Arc::clone(&self.watched.board);
        let count = board::get(&board.thread(index).gaps_count);
        let first = (self.threads[index].gaps_seen + 1).max(count.saturating_sub(board::gaps::GAPS_MAX as u64 - 1));
        if first > count {
            return;
        }
        self.threads[index].gaps_seen = count;
        if !matches!(self.phase, Phase::Live | Phase::Drain) {
            return;
        }
        for gap in (first..=count).filter_map(|number| board.thread(index).gap(number)) {
            self.note_gap(index, gap, now, deeds);
        }
    }

    fn note_gap(&mut self, index: usize, gap: Gap, now: Ticks, deeds: &mut dyn Deeds) {
        // A gap that an alarm of this thread covers has been told.
        let (board, site) = (Arc::clone(&self.watched.board), Site::Thread(index as u32));
        let end = gap.start.plus(gap.length);
        if let Some(place) = self.book.find(RuleId::Heartbeat, site) {
            let told = self.book.record(place);
            if told.onset < end && (told.ended.0 == 0 || told.ended > gap.start) {
                return;
            }
        }
        let Some(before) = self.base_before(index, gap.start) else { return };
        let after = self.base(index, now);
        let mut seen = self.observe(index, &before, &after, gap.start, end);
        seen.role = gap.stage.checked_sub(1).and_then(|code| RoleKind::ALL.get(code as usize)).map(|kind| kind.name());
        seen.state = None;
        super::episode::name_recorded(&mut seen, &[]);
        let found = verdict(&seen);
        let rule = self.rule(RuleId::FrameGap);
        if let Some(place) = self.raise(&rule, site, rule.severity, gap.start, (found, None), deeds) {
            self.book.end(place, end, &board);
        }
    }
}
