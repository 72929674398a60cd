//! The alarm table: which alarms are active, since when, how often, and whether the operator
//! acknowledged them.
//!
//! Owns the rows of the board's alarm log. Run by the watchdog. Bounded by [`ALARMS_MAX`] alarms.
//! When all rows are taken, a new alarm replaces the one that ended longest ago; if all are active, one
//! of the rule that has most of them, or it has no row.

use super::verdict::Verdict;
use crate::board::Board;
use crate::board::alarms::{ALARMS_MAX, AlarmRecord, AlarmState, Confidence, Site};
use crate::profile::{RuleId, Severity};
use crate::units::Ticks;

/// A request of the operator about an alarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlarmRequest {
    /// Acknowledge it. Number 0 means all active ones.
    Acknowledge(u64),
    /// Silence it for this many ticks. Number 0 means all active ones.
    Snooze(u64, Ticks),
}

/// An alarm to raise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raised {
    /// Its rule.
    pub rule: RuleId,
    /// Where it occurs.
    pub site: Site,
    /// Its severity.
    pub severity: Severity,
    /// Its onset.
    pub onset: Ticks,
    /// What is known about it now.
    pub sentence: String,
    /// What the operator should do.
    pub runbook: String,
    /// How often it occurred, if a counter tells; `None` counts episodes.
    pub count: Option<u64>,
}

/// What a root's row says of its incident.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incident {
    /// The first onset of its alarms.
    pub onset: Ticks,
    /// When its last alarm ended; 0: one is active.
    pub ended: Ticks,
    /// Shots that were late or answered with an error.
    pub shots_hit: u64,
    /// The highest severity of its alarms.
    pub severity: Severity,
    /// The alarms that the root explains, a line each: rule, tab, sentence.
    pub consequences: String,
}

/// All alarms of a run.
#[derive(Debug, Default)]
pub struct AlarmTable {
    records: Vec<AlarmRecord>,
    numbers: u64,
}

impl AlarmTable {
    /// Row of the alarm of `rule` at `site`.
    pub fn find(&self, rule: RuleId, site: Site) -> Option<usize> {
        self.records.iter().position(|record| (record.rule, record.site) == (rule, site))
    }

    /// The alarm in row `place`.
    pub fn record(&self, place: usize) -> &AlarmRecord {
        &self.records[place]
    }

    /// All alarms, in no order.
    pub fn records(&self) -> impl Iterator<Item = &AlarmRecord> {
        self.records.iter()
    }

    /// Begins an episode, or continues the current one. Returns its row, and whether the episode is
    /// new; `None` if there is no row for it.
    pub fn raise(&mut self, raised: Raised, now: Ticks, board: &Board) -> Option<(usize, bool)> {
        let place = match self.find(raised.rule, raised.site) {
            Some(place) => place,
            None => self.room(&raised)?,
        };
        let record = &mut self.records[place];
        let is_new = record.state == AlarmState::Ended || record.count == 0;
        if is_new {
            record.onset = raised.onset;
            record.state = AlarmState::Active;
            record.ended = Ticks(0);
            record.judged = Ticks(0);
            record.acknowledged = Ticks(0);
            if record.incident != record.number {
                // Of which incident this episode is a part is not known yet.
                record.incident = 0;
            }
            record.severity = raised.severity;
            record.confidence = Confidence::Unexplained;
            record.cause.clear();
            record.who.clear();
            record.evidence.clear();
            record.stack.clear();
            record.culprit.clear();
            record.sentence = raised.sentence;
            record.runbook = raised.runbook;
            record.count += 1;
        }
        record.severity = record.severity.max(raised.severity);
        record.count = raised.count.unwrap_or(record.count);
        record.last = now;
        if is_new {
            board.alarms()[place].publish(record);
        }
        Some((place, is_new))
    }

    fn room(&mut self, raised: &Raised) -> Option<usize> {
        let is_full = self.records.len() == ALARMS_MAX;
        let place = if is_full { self.replaceable(raised.rule)? } else { self.records.len() };
        self.numbers += 1;
        let record = AlarmRecord {
            number: self.numbers,
            rule: raised.rule,
            site: raised.site,
            severity: raised.severity,
            state: AlarmState::Active,
            first: raised.onset,
            onset: raised.onset,
            last: raised.onset,
            ended: Ticks(0),
            judged: Ticks(0),
            count: 0,
            acknowledged: Ticks(0),
            snoozed_until: Ticks(0),
            confidence: Confidence::Unexplained,
            incident: 0,
            incident_onset: Ticks(0),
            incident_ended: Ticks(0),
            shots_hit: 0,
            incident_severity: Severity::Note,
            cause: String::new(),
            who: String::new(),
            sentence: String::new(),
            evidence: String::new(),
            stack: String::new(),
            culprit: String::new(),
            runbook: String::new(),
            consequences: String::new(),
        };
        if is_full {
            self.records[place] = record;
        } else {
            self.records.push(record);
        }
        Some(place)
    }

    /// The row that a new alarm of `rule` takes when none is free: that of the alarm that ended longest ago. If all are
    /// active, that of the newest alarm of the rule with the most, if these are at least two more than those of `rule`:
    /// input that is bad in each of a thousand streams hides no role that died. A stall keeps its row, into which its
    /// episode writes until it is over.
    fn replaceable(&self, rule: RuleId) -> Option<usize> {
        let records = || self.records.iter().enumerate();
        let ended = records().filter(|(_, record)| record.state == AlarmState::Ended);
        if let Some((place, _)) = ended.min_by_key(|(_, record)| record.ended) {
            return Some(place);
        }
        let mut rows = [0usize; RuleId::ALL.len() + 1];
        self.records.iter().for_each(|record| rows[record.rule.code() as usize] += 1);
        let rows_of = |rule: RuleId| rows[rule.code() as usize];
        let others = records().filter(|(_, record)| record.rule != RuleId::Heartbeat);
        let (place, newest) = others.max_by_key(|(_, record)| (rows_of(record.rule), record.number))?;
        (rows_of(newest.rule) > rows_of(rule) + 1).then_some(place)
    }

    /// Writes a verdict into the alarm in row `place`.
    pub fn explain(&mut self, place: usize, verdict: Verdict, now: Ticks, board: &Board) {
        let record = &mut self.records[place];
        record.cause = verdict.cause.name().to_owned();
        record.who = verdict.who;
        record.sentence = verdict.sentence;
        record.evidence = verdict.evidence;
        record.confidence = verdict.confidence;
        if record.judged.0 == 0 {
            record.judged = now;
        }
        board.alarms()[place].publish(record);
    }

    /// Makes the alarm in row `place` a root, with what is known of its incident.
    pub fn lead(&mut self, place: usize, incident: Incident, board: &Board) {
        let record = &mut self.records[place];
        let before = record.clone();
        record.incident = record.number;
        record.incident_onset = incident.onset;
        record.incident_ended = incident.ended;
        record.shots_hit = incident.shots_hit;
        record.incident_severity = incident.severity;
        record.consequences = incident.consequences;
        if *record != before {
            board.alarms()[place].publish(record);
        }
    }

    /// Makes the alarm in row `place` a consequence of alarm number `root`.
    pub fn follow(&mut self, place: usize, root: u64, board: &Board) {
        let record = &mut self.records[place];
        if record.incident != root {
            record.incident = root;
            record.consequences.clear();
            board.alarms()[place].publish(record);
        }
    }

    /// Writes the stack of the stalled thread into the alarm.
    pub fn add_stack(&mut self, place: usize, stack: &str, culprit: Option<&str>, board: &Board) {
        let record = &mut self.records[place];
        stack.clone_into(&mut record.stack);
        culprit.unwrap_or_default().clone_into(&mut record.culprit);
        board.alarms()[place].publish(record);
    }

    /// Raises the severity. It never falls before the episode ends.
    pub fn escalate(&mut self, place: usize, severity: Severity, board: &Board) -> bool {
        let record = &mut self.records[place];
        let worse = severity > record.severity;
        if worse {
            record.severity = severity;
            board.alarms()[place].publish(record);
        }
        worse
    }

    /// Ends the episode at `at`.
    pub fn end(&mut self, place: usize, at: Ticks, board: &Board) {
        let record = &mut self.records[place];
        if record.state == AlarmState::Active {
            record.state = AlarmState::Ended;
            record.ended = at;
            board.alarms()[place].publish(record);
        }
    }

    /// The clock goes on from `now`, which is earlier than `then`, its last value: alarms count from then on, and are
    /// silenced for what is left of their time.
    pub fn restart(&mut self, then: Ticks, now: Ticks) {
        for record in &mut self.records {
            record.last = record.last.min(now);
            record.ended = record.ended.min(now);
            let left = record.snoozed_until.since(then);
            record.snoozed_until = if left.0 > 0 { now.plus(left) } else { Ticks(0) };
        }
    }

    /// Notes that the episode continues. Publishes its count.
    pub fn keep(&mut self, place: usize, now: Ticks, count: Option<u64>, board: &Board) {
        let record = &mut self.records[place];
        record.last = now;
        record.count = count.unwrap_or(record.count);
        board.alarms()[place].publish(record);
    }

    /// Does what the operator asks. Returns how many alarms were concerned.
    pub fn answer(&mut self, request: AlarmRequest, now: Ticks, board: &Board) -> usize {
        let (AlarmRequest::Acknowledge(wanted) | AlarmRequest::Snooze(wanted, _)) = request;
        let mut about = 0;
        for (place, record) in self.records.iter_mut().enumerate() {
            let is_meant = record.number == wanted || wanted == 0 && record.state == AlarmState::Active;
            if !is_meant {
                continue;
            }
            match request {
                AlarmRequest::Acknowledge(_) => record.acknowledged = now,
                AlarmRequest::Snooze(_, span) => record.snoozed_until = now.plus(span),
            }
            board.alarms()[place].publish(record);
            about += 1;
        }
        about
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{AlarmRequest, AlarmTable, Raised};
    use crate::board::alarms::{ALARMS_MAX, AlarmState, Site};
    use crate::board::{Board, Place, Shape};
    use crate::profile::{RuleId, Severity};
    use crate::units::Ticks;

    fn board() -> Board {
        let shape = Shape { threads: 1, silos: 1, slots: 1, workers: 1, decoders: 1, streams: 1 };
        Board::create(shape, Place::Private).unwrap()
    }

    fn raised(site: Site, onset: u64) -> Raised {
        Raised {
            rule: RuleId::Errors,
            site,
            severity: Severity::Warn,
            onset: Ticks(onset),
            sentence: "s".into(),
            runbook: "r".into(),
            count: None,
        }
    }

    #[test]
    fn a_second_episode_moves_the_onset_counts_and_wants_to_be_acknowledged_again() {
        let (board, mut table) = (board(), AlarmTable::default());
        let site = Site::Silo(0, 3);
        let (place, new) = table.raise(raised(site, 10), Ticks(11), &board).unwrap();
        assert!(new && !table.raise(raised(site, 12), Ticks(12), &board).unwrap().1, "one episode");
        assert_eq!(table.answer(AlarmRequest::Acknowledge(1), Ticks(13), &board), 1);
        assert_eq!(table.answer(AlarmRequest::Acknowledge(7), Ticks(13), &board), 0);
        table.end(place, Ticks(20), &board);
        let ended = board.alarms()[place].read().unwrap();
        assert_eq!(
            (ended.state, ended.onset, ended.ended, ended.acknowledged),
            (AlarmState::Ended, Ticks(10), Ticks(20), Ticks(13))
        );
        table.raise(raised(site, 30), Ticks(31), &board).unwrap();
        let again = board.alarms()[place].read().unwrap();
        assert_eq!((again.number, again.count, again.first, again.onset), (1, 2, Ticks(10), Ticks(30)));
        assert_eq!((again.acknowledged, again.ended), (Ticks(0), Ticks(0)));
        assert_eq!(table.answer(AlarmRequest::Snooze(0, Ticks(100)), Ticks(32), &board), 1);
        assert_eq!(board.alarms()[place].read().unwrap().snoozed_until, Ticks(132));
    }

    #[test]
    fn a_clock_that_goes_back_makes_no_silence_longer() {
        let (board, mut table) = (board(), AlarmTable::default());
        for (part, span) in [(0, 100), (1, 20)] {
            table.raise(raised(Site::Engine(part), 1_000), Ticks(1_000), &board).unwrap();
            table.answer(AlarmRequest::Snooze(u64::from(part) + 1, Ticks(span)), Ticks(1_000), &board);
        }
        table.restart(Ticks(1_040), Ticks(7));
        assert_eq!(table.records().map(|record| record.snoozed_until).collect::<Vec<_>>(), [Ticks(67), Ticks(0)]);
    }

    #[test]
    fn a_full_alarm_table_drops_the_oldest_ended_alarm_and_no_active_one() {
        let (board, mut table) = (board(), AlarmTable::default());
        for part in 0..ALARMS_MAX as u32 {
            table.raise(raised(Site::Engine(part), 1), Ticks(2), &board).unwrap();
        }
        assert_eq!(table.raise(raised(Site::Stream(1), 3), Ticks(3), &board), None);
        table.end(5, Ticks(9), &board);
        table.end(4, Ticks(8), &board);
        let (place, _) = table.raise(raised(Site::Stream(1), 10), Ticks(10), &board).unwrap();
        assert_eq!(place, 4);
        assert_eq!(table.records().filter(|record| record.state == AlarmState::Active).count(), ALARMS_MAX - 1);
    }

    #[test]
    fn where_all_are_active_a_rule_with_many_alarms_gives_rows_to_others_and_a_stall_keeps_its_own() {
        let of = |rule, site| Raised { rule, ..raised(site, 1) };
        let (board, mut table) = (board(), AlarmTable::default());
        for stream in 0..ALARMS_MAX as u32 {
            table.raise(of(RuleId::InputHealth, Site::Stream(stream)), Ticks(2), &board).unwrap();
        }
        assert_eq!(table.raise(of(RuleId::InputHealth, Site::Stream(999)), Ticks(2), &board), None);
        let (place, _) = table.raise(of(RuleId::RoleDied, Site::Thread(0)), Ticks(3), &board).unwrap();
        let shown = board.alarms()[place].read().unwrap();
        assert_eq!((shown.rule, shown.number, shown.state), (RuleId::RoleDied, 65, AlarmState::Active));
        assert_eq!(table.find(RuleId::InputHealth, Site::Stream(63)), None, "the newest gave way");
        // As many of each in the end, and then none gives way to the other.
        let drifts = |table: &mut AlarmTable| {
            let mut raise =
                |stream| table.raise(of(RuleId::ModelDrift, Site::Stream(stream)), Ticks(4), &board).is_some();
            (0..ALARMS_MAX as u32).filter(|stream| raise(*stream)).count()
        };
        assert_eq!(drifts(&mut table), 31);
        assert_eq!(table.raise(of(RuleId::InputHealth, Site::Stream(63)), Ticks(5), &board), None);
        let mut stalls = AlarmTable::default();
        for thread in 0..ALARMS_MAX as u32 {
            stalls.raise(of(RuleId::Heartbeat, Site::Thread(thread)), Ticks(2), &board).unwrap();
        }
        assert_eq!(stalls.raise(of(RuleId::RoleDied, Site::Thread(0)), Ticks(3), &board), None);
    }
}
