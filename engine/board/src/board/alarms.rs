//! The alarm log on the board: one record for each alarm, which means something only whole.
//!
//! Owns the number under which a record is written. One cold thread (the watchdog) publishes, any thread or process
//! reads; neither waits for the other. Bounds: [`ALARMS_MAX`] records, [`TRIES`] readings of each; a record that stays torn
//! is not shown. Texts are cut to their room.
//!
//! | edge | release site | acquire site | publishes |
//! |---|---|---|---|
//! | A1 | [`AlarmRow::publish`], fence after `begun` | [`AlarmRow::read`], fence before `begun` | that the words may be the next version's |
//! | A2 | [`AlarmRow::publish`], `versions` | [`AlarmRow::read`], `versions` | the words |
//!
//! # Why a row is reused
//! A rule at a place has one row for the run: a second episode moves its onset and its count. Only when all rows are
//! taken does the alarm that ended longest ago give its row up, with its number.

use super::{AlarmRow, get, set};
use crate::profile::{RuleId, Severity};
use crate::units::Ticks;
use serde::Serialize;
use std::sync::atomic::{Ordering, fence};

/// Alarms that the board holds.
pub const ALARMS_MAX: usize = 64;
/// Readings before a reader goes without.
const TRIES: usize = 4;

/// Where an alarm is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Site {
    /// The engine as a whole; the number tells two conditions of one rule apart.
    Engine(u32),
    /// A hot thread, by its number on the board.
    Thread(u32),
    /// A silo, and what of it (an error code, a ring).
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

/// Where an alarm is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AlarmState {
    /// Holds.
    Active,
    /// Is over.
    Ended,
}

/// How sure a verdict is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// Nothing observed explains it; the raw evidence is shown.
    Unexplained,
    /// The evidence points there, and could point elsewhere.
    Likely,
    /// The evidence excludes everything else.
    Certain,
}

/// One alarm, whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlarmRecord {
    /// Its number in this run, from 1.
    pub number: u64,
    /// Its rule.
    pub rule: RuleId,
    /// Where.
    pub site: Site,
    /// How bad.
    pub severity: Severity,
    /// Whether it holds.
    pub state: AlarmState,
    /// Start of its first episode.
    pub first: Ticks,
    /// Start of its latest episode.
    pub onset: Ticks,
    /// When it was last seen to hold.
    pub last: Ticks,
    /// End of its latest episode; 0: it lasts.
    pub ended: Ticks,
    /// When its verdict was given; 0: none yet.
    pub judged: Ticks,
    /// How often: the board's count where there is one, else episodes.
    pub count: u64,
    /// When the operator acknowledged it; 0: not since its onset.
    pub acknowledged: Ticks,
    /// Until when it is snoozed; 0: it is not.
    pub snoozed_until: Ticks,
    /// How sure the verdict is.
    pub confidence: Confidence,
    /// The cause in one word of the verdict's list; empty: none.
    pub cause: String,
    /// What is wrong, and why, in one sentence with numbers.
    pub sentence: String,
    /// What the verdict rests on, one observation a line.
    pub evidence: String,
    /// The stalled thread's stack, innermost first, one frame a line; empty: none was taken.
    pub stack: String,
    /// The line of it that is to blame; empty: none.
    pub culprit: String,
    /// What to do.
    pub runbook: String,
}

impl AlarmRow {
    /// Writes `record`. Call from the block's one writer only.
    pub fn publish(&self, record: &AlarmRecord) {
        let version = get(&self.versions) + 1;
        set(&self.begun, version);
        // ORDERING: release side of A1: whoever sees a word stored below sees `begun` moved. Without it a reader could
        // take new words for the old version's.
        fence(Ordering::Release);
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
        ];
        for (word, value) in self.words.iter().zip(words) {
            set(word, value);
        }
        self.cause.write(&record.cause);
        self.sentence.write(&record.sentence);
        self.evidence.write(&record.evidence);
        self.stack.write(&record.stack);
        self.culprit.write(&record.culprit);
        self.runbook.write(&record.runbook);
        // ORDERING: release side of A2, publishing the words above. Relaxed could show the version before them.
        self.versions.store(version, Ordering::Release);
    }

    /// The record; `None` before the first, or if each reading met the writer.
    #[must_use]
    pub fn read(&self) -> Option<AlarmRecord> {
        (0..TRIES).find_map(|_| {
            // ORDERING: acquire side of A2, see `publish`.
            let version = self.versions.load(Ordering::Acquire);
            if version == 0 {
                return None;
            }
            let record = self.record();
            // ORDERING: acquire side of A1, see `publish`: a word of the next version above shows its number below.
            fence(Ordering::Acquire);
            record.filter(|_| get(&self.begun) == version)
        })
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
            cause: self.cause.read(),
            sentence: self.sentence.read(),
            evidence: self.evidence.read(),
            stack: self.stack.read(),
            culprit: self.culprit.read(),
            runbook: self.runbook.read(),
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
            cause: "descheduled".into(),
            sentence: format!("sentence {number}"),
            evidence: format!("evidence {number}\nmore of it"),
            stack: format!("frame {number}"),
            culprit: "role.rs:7".into(),
            runbook: "look".into(),
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
