//! The alarm log on the board: one record for each alarm, read as a whole.
//!
//! Owns the sequence number of each record. One cold thread (the watchdog) publishes and any thread
//! or process reads; neither waits for the other. Bounds: [`ALARMS_MAX`] records, the read attempts
//! of a [`Seqlock`]. A record that changes during every attempt is not shown. Texts are cut to
//! their size.
//!
//! # Why a row is reused
//! One row holds all episodes of a rule at a site: a new episode changes its onset and its count.
//! When all rows are taken, a new alarm replaces the alarm that ended longest ago, and its number.
//!
//! # Why an incident has no row of its own
//! An incident is a root alarm with the alarms that it explains. The root's row says all of it, so
//! that a reader needs no second table that may change meanwhile.

use super::{AlarmRow, get, set};
use crate::profile::{RuleId, Severity};
use crate::units::Ticks;
use pinwheel_edge::seqlock::Seqlock;
use serde::Serialize;

/// Alarms that the board holds.
pub const ALARMS_MAX: usize = 64;

/// Location of an alarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Site {
    /// The engine as a whole; the number distinguishes two conditions of one rule.
    Engine(u32),
    /// A hot thread, by its number on the board.
    Thread(u32),
    /// A silo, and a part of it (an error code, a ring).
    Silo(u32, u32),
    /// A stream.
    Stream(u32),
}

impl Site {
    fn pack(self) -> u64 {
        let (kind, number, part) = match self {
            Site::Engine(part) => (0, 0, part),
            Site::Thread(number) => (1, number, 0),
            Site::Silo(number, part) => (2, number, part),
            Site::Stream(number) => (3, number, 0),
        };
        kind << 56 | u64::from(part & 0xff_ffff) << 32 | u64::from(number)
    }

    fn unpack(word: u64) -> Site {
        let (number, part) = (word as u32, (word >> 32 & 0xff_ffff) as u32);
        match word >> 56 {
            1 => Site::Thread(number),
            2 => Site::Silo(number, part),
            3 => Site::Stream(number),
            _ => Site::Engine(part),
        }
    }
}

/// Whether an alarm is active.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AlarmState {
    /// Active.
    Active,
    /// Ended.
    Ended,
}

/// How sure a verdict is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// Nothing observed explains it; the raw evidence is shown.
    Unexplained,
    /// The evidence supports the cause and leaves others possible.
    Likely,
    /// The evidence excludes every other cause.
    Certain,
}

/// All fields of one alarm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlarmRecord {
    /// Its number in this run, from 1.
    pub number: u64,
    /// Its rule.
    pub rule: RuleId,
    /// Location.
    pub site: Site,
    /// Severity by the rule.
    pub severity: Severity,
    /// Whether it is active.
    pub state: AlarmState,
    /// Start of its first episode.
    pub first: Ticks,
    /// Start of its latest episode.
    pub onset: Ticks,
    /// Last time at which it was active.
    pub last: Ticks,
    /// End of its latest episode; 0: it is active.
    pub ended: Ticks,
    /// When its verdict was given; 0: none yet.
    pub judged: Ticks,
    /// Occurrences: the board's count where there is one, otherwise episodes.
    pub count: u64,
    /// When the operator acknowledged it; 0: not since its onset.
    pub acknowledged: Ticks,
    /// Until when it is snoozed; 0: it is not.
    pub snoozed_until: Ticks,
    /// How sure the verdict is.
    pub confidence: Confidence,
    /// Number of the alarm that is the root of its incident: its own number if none explains it; 0:
    /// not judged yet.
    pub incident: u64,
    /// Of a root: the first onset of its incident's latest episode.
    pub incident_onset: Ticks,
    /// Of a root: when the last alarm of its incident ended; 0: one is active.
    pub incident_ended: Ticks,
    /// Of a root: shots that were late or answered with an error in all episodes of its incident.
    pub shots_hit: u64,
    /// Of a root: the highest severity in its incident.
    pub incident_severity: Severity,
    /// Cause of the verdict, one word of the verdict's list; empty: none.
    pub cause: String,
    /// Who caused it, if that is somebody outside the engine: programs, their numbers and users;
    /// else empty.
    pub who: String,
    /// What is wrong, and why, in one sentence with numbers.
    pub sentence: String,
    /// Observations that support the verdict, one a line.
    pub evidence: String,
    /// The stalled thread's stack, innermost first, one frame a line; empty: none was taken.
    pub stack: String,
    /// Stack frame that caused the stall; empty: none.
    pub culprit: String,
    /// What to do.
    pub runbook: String,
    /// Of a root: the alarms that it explains, a line each: rule, tab, sentence.
    pub consequences: String,
}

impl AlarmRow {
    /// Writes `record`. Only the block's one writer may call this.
    pub fn publish(&self, record: &AlarmRecord) {
        self.lock().write(get(&self.versions) + 1, || self.store(record));
    }

    fn store(&self, record: &AlarmRecord) {
        let words = [
            record.number,
            record.rule.code(),
            record.site.pack(),
            record.severity.code(),
            record.state as u64,
            record.first.0,
            record.onset.0,
            record.last.0,
            record.ended.0,
            record.judged.0,
            record.count,
            record.acknowledged.0,
            record.snoozed_until.0,
            record.confidence as u64,
            record.incident,
            record.incident_onset.0,
            record.incident_ended.0,
            record.shots_hit,
            record.incident_severity.code(),
        ];
        for (word, value) in self.words.iter().zip(words) {
            set(word, value);
        }
        self.cause.write(&record.cause);
        self.who.write(&record.who);
        self.sentence.write(&record.sentence);
        self.evidence.write(&record.evidence);
        self.stack.write(&record.stack);
        self.culprit.write(&record.culprit);
        self.runbook.write(&record.runbook);
        self.consequences.write(&record.consequences);
    }

    /// The record; `None` before the first, or if the writer interfered with each attempt.
    pub fn read(&self) -> Option<AlarmRecord> {
        self.lock().read(|version| if version > 0 { self.record() } else { None })?
    }

    /// Sequence lock of the record.
    pub fn lock(&self) -> Seqlock<'_> {
        Seqlock::new(&self.begun, &self.versions)
    }

    fn record(&self) -> Option<AlarmRecord> {
        let word = |index: usize| get(&self.words[index]);
        Some(AlarmRecord {
            number: word(0),
            rule: RuleId::from_code(word(1))?,
            site: Site::unpack(word(2)),
            severity: Severity::from_code(word(3)),
            state: if word(4) == 0 { AlarmState::Active } else { AlarmState::Ended },
            first: Ticks(word(5)),
            onset: Ticks(word(6)),
            last: Ticks(word(7)),
            ended: Ticks(word(8)),
            judged: Ticks(word(9)),
            count: word(10),
            acknowledged: Ticks(word(11)),
            snoozed_until: Ticks(word(12)),
            confidence: match word(13) {
                2 => Confidence::Certain,
                1 => Confidence::Likely,
                _ => Confidence::Unexplained,
            },
            incident: word(14),
            incident_onset: Ticks(word(15)),
            incident_ended: Ticks(word(16)),
            shots_hit: word(17),
            incident_severity: Severity::from_code(word(18)),
            cause: self.cause.read(),
            who: self.who.read(),
            sentence: self.sentence.read(),
            evidence: self.evidence.read(),
            stack: self.stack.read(),
            culprit: self.culprit.read(),
            runbook: self.runbook.read(),
            consequences: self.consequences.read(),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "harness")]
    use super::{AlarmRecord, AlarmState, Confidence, Site};
    use crate::board::{self, Board, Shape};
    use crate::profile::{RuleId, Severity};
    use crate::units::Ticks;

    fn board() -> Board {
        let shape = Shape { threads: 1, silos: 1, slots: 1, workers: 1, decoders: 1, streams: 1 };
        Board::create(shape, board::Place::Private).unwrap()
    }

    fn record(number: u64) -> AlarmRecord {
        AlarmRecord {
            number,
            rule: RuleId::Heartbeat,
            site: Site::Silo(number as u32, 7),
            severity: Severity::Warn,
            state: AlarmState::Ended,
            first: Ticks(number),
            onset: Ticks(number),
            last: Ticks(number),
            ended: Ticks(number),
            judged: Ticks(number),
            count: number,
            acknowledged: Ticks(number),
            snoozed_until: Ticks(number),
            confidence: Confidence::Certain,
            incident: number,
            incident_onset: Ticks(number),
            incident_ended: Ticks(number),
            shots_hit: number,
            incident_severity: Severity::Critical,
            cause: "descheduled".into(),
            who: "sh (4711)".into(),
            sentence: format!("sentence {number}"),
            evidence: format!("evidence {number}\nmore of it"),
            stack: format!("frame {number}"),
            culprit: "role.rs:7".into(),
            runbook: "look".into(),
            consequences: format!("late_answers\tsentence {number}"),
        }
    }

    #[test]
    fn a_record_comes_back_as_it_was_written_and_none_before_the_first() {
        let board = board();
        assert_eq!(board.alarms()[3].read(), None);
        board.alarms()[3].publish(&record(5));
        assert_eq!(board.alarms()[3].read(), Some(record(5)));
        for site in [Site::Engine(9), Site::Thread(70_000), Site::Silo(3, 18), Site::Stream(1_023)] {
            assert_eq!(Site::unpack(site.pack()), site);
        }
    }

    #[test]
    fn a_record_is_seen_whole_or_not_at_all() {
        let board = board();
        let last = 20_000;
        let mut seen = 0;
        std::thread::scope(|scope| {
            scope.spawn(|| (1..=last).for_each(|number| board.alarms()[0].publish(&record(number))));
            while seen < last {
                if let Some(found) = board.alarms()[0].read() {
                    assert_eq!(found, record(found.number));
                    assert!(found.number >= seen);
                    seen = found.number;
                }
            }
        });
    }
}
