//! Alarms into incidents: which alarm is the root, what it explains, how many shots were hit.
//!
//! Run by the watchdog after the rules. Owns the count of shots of each incident, and the alarms of
//! which the operator's program has not been told yet. Bounded by the alarm table.
//!
//! # Why the operator's program is told here
//! It is told of roots alone: one call for one cause. Whether an alarm is one is known only now.

use super::{Thread, Watchdog};
use crate::board::alarms::{AlarmRecord, AlarmState, Site};
use crate::profile::{OnAlarm, Severity};
use crate::stall::alarm_table::Incident;
use crate::stall::incidents::{BEFORE_NS, Sign, roots};
use crate::stall::notify::AlarmNotifier;
use crate::stall::verdict::{Cause, joined};
use crate::units::Ticks;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Alarms that ended so long ago are what they are.
const SETTLED_NS: u64 = 5_000_000_000;
/// Shots are hit by what ended so shortly before.
const LINGERS_NS: u64 = 500_000_000;

/// Incidents by the number of their root.
#[derive(Debug, Default)]
pub(super) struct Incidents {
    hits: BTreeMap<u64, Hits>,
    /// Numbers of alarms of which the operator's program has not been told.
    untold: Vec<u64>,
}

/// Shots hit by one incident.
#[derive(Debug)]
struct Hits {
    /// In earlier episodes.
    before: u64,
    /// The engine's count when this episode began, or the last one was closed.
    base: u64,
    is_open: bool,
}

impl Incidents {
    /// Alarm `number` has begun, or is worse than before, and is no note.
    pub(super) fn tell(&mut self, number: u64) {
        self.untold.push(number);
    }

    #[cfg(test)]
    pub(super) fn untold(&self) -> &[u64] {
        &self.untold
    }
}

impl Watchdog {
    /// Finds the roots of alarms that are active or have just ended, and writes their incidents.
    pub(super) fn group(&mut self, now: Ticks) {
        let is_settled = |record: &AlarmRecord| {
            record.incident != 0 && record.ended.0 != 0 && self.ns(now.since(record.ended)) > SETTLED_NS
        };
        let unsettled = self.alarms.records().filter(|record| !is_settled(record));
        let open: BTreeSet<u64> = unsettled.map(|record| record.incident).collect();
        // A consequence that has ended stays one, and its incident lists it as long as it is the
        // same episode.
        let (kept, judged): (Vec<_>, Vec<_>) = self
            .alarms
            .records()
            .enumerate()
            .filter(|(_, record)| !is_settled(record) || open.contains(&record.incident))
            .map(|(place, record)| (place, record.clone()))
            .partition(|(_, record)| is_settled(record) && record.incident != record.number);
        let signs: Vec<Sign> = judged.iter().map(|(_, record)| self.sign(record, now)).collect();
        let roots = roots(&signs);
        for (at, (place, record)) in judged.iter().enumerate() {
            if roots[at] != at {
                self.follow(*place, judged[roots[at]].1.number);
                continue;
            }
            // Told now, if it was taken for a consequence so far.
            let was_one = record.incident != 0 && record.incident != record.number;
            if was_one && record.state == AlarmState::Active && record.severity != Severity::Note {
                self.incidents.tell(record.number);
            }
            let of_judged = (0..judged.len()).filter(|other| roots[*other] == at).map(|other| &judged[other].1);
            let of_episode = |other: &&AlarmRecord| {
                other.incident == record.number && self.at_ns(other.onset) + BEFORE_NS >= self.at_ns(record.onset)
            };
            let of_kept = kept.iter().map(|(_, other)| other).filter(of_episode);
            let members: Vec<&AlarmRecord> = of_judged.chain(of_kept).collect();
            self.lead(*place, record, &members, now);
        }
        self.tell_roots();
        let alarms = &self.alarms;
        self.incidents.hits.retain(|number, _| alarms.records().any(|record| record.number == *number));
    }

    fn follow(&mut self, place: usize, root: u64) {
        let board = Arc::clone(&self.config.board);
        self.alarms.follow(place, root, &board);
    }

    fn lead(&mut self, place: usize, root: &AlarmRecord, members: &[&AlarmRecord], now: Ticks) {
        let is_active = members.iter().any(|member| member.state == AlarmState::Active);
        let last = members.iter().map(|member| member.ended).max().unwrap_or_default();
        let shots_hit = self.hit(root, is_active || self.ns(now.since(last)) <= LINGERS_NS);
        let mut consequences: Vec<&AlarmRecord> =
            members.iter().copied().filter(|member| member.number != root.number).collect();
        consequences.sort_by_key(|member| (member.onset, member.number));
        let incident = Incident {
            onset: members.iter().map(|member| member.onset).min().unwrap_or_default(),
            ended: if is_active { Ticks(0) } else { last },
            shots_hit,
            severity: members.iter().map(|member| member.severity).max().unwrap_or(root.severity),
            consequences: lines(&consequences),
        };
        let board = Arc::clone(&self.config.board);
        self.alarms.lead(place, incident, &board);
    }

    /// Shots that the incident of `root` hit; counts on while it `is_open`.
    pub(super) fn hit(&mut self, root: &AlarmRecord, is_open: bool) -> u64 {
        let (all, until_window) = self.counter_rules.shots_hit();
        let none = Hits { before: root.shots_hit, base: until_window, is_open: false };
        let hits = self.incidents.hits.entry(root.number).or_insert(none);
        if is_open && !hits.is_open {
            // What the last episode counted is not counted once more.
            hits.base = hits.base.max(until_window);
        }
        if is_open || hits.is_open {
            *hits = Hits { before: hits.before + (all - hits.base), base: all, is_open };
        }
        hits.before
    }

    /// What the rules need of an alarm.
    fn sign(&self, record: &AlarmRecord, now: Ticks) -> Sign {
        let thread = if let Site::Thread(index) = record.site { self.threads.get(index as usize) } else { None };
        Sign {
            rule: record.rule,
            site: record.site,
            severity: record.severity,
            cause: Cause::from_name(&record.cause),
            who: record.who.clone(),
            onset_ns: self.at_ns(record.onset),
            until_ns: self.at_ns(if record.ended.0 == 0 { now } else { record.ended }),
            core: thread.filter(|thread| thread.pinned).map(|Thread { core, .. }| *core),
            silos: self.silos_at(record.site),
        }
    }

    /// The silos that an alarm at `site` concerns, one bit each.
    pub(super) fn silos_at(&self, site: Site) -> u64 {
        match site {
            Site::Thread(index) => self.silos_of(index as usize),
            Site::Silo(silo, _) => 1 << (silo & 63),
            Site::Engine(_) | Site::Stream(_) => u64::MAX,
        }
    }

    /// The silos whose roles thread `index` runs, one bit each.
    pub(super) fn silos_of(&self, index: usize) -> u64 {
        if index >= self.config.board.shape().threads as usize {
            return u64::MAX;
        }
        let roles = self.config.board.thread(index).own_roles();
        // Before its roles are built it may be any.
        if roles.is_empty() { u64::MAX } else { roles.iter().fold(0, |mask, role| mask | 1 << (role.silo() & 63)) }
    }

    /// Runs the operator's program for new alarms that are roots.
    fn tell_roots(&mut self) {
        let untold = std::mem::take(&mut self.incidents.untold);
        let OnAlarm::Exec(program) = &self.config.on_alarm else { return };
        if untold.is_empty() {
            return;
        }
        if self.notifier.is_none() {
            self.notifier = AlarmNotifier::start();
        }
        let Some(notifier) = &mut self.notifier else { return };
        for alarm in self.config.board.alarm_views(&self.config.clock) {
            if alarm.incident == alarm.number && untold.contains(&alarm.number) {
                notifier.notify(program, &alarm);
            }
        }
    }
}

/// The consequences' lines that fit, each complete.
fn lines(consequences: &[&AlarmRecord]) -> String {
    let line = |record: &&AlarmRecord| format!("{}\t{}", record.rule, record.sentence.replace(['\t', '\n'], " "));
    joined(&consequences.iter().map(line).collect::<Vec<_>>())
}
