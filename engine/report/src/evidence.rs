//! What a run left, read once: its report, manifest, recording, environment and notes.
//!
//! Only reads. Bounded by [`POINTS_MAX`] moments of the recording,
//! whatever its length. Never fails for one missing part: [`Evidence::missing`] names it.

use crate::moment::report_of;
use crate::report::{Alarm, merged};
use crate::runs::{self, RunError, json_of};
use crate::unusable::Unusable;
use pinwheel_engine::board::histogram::Histogram;
use pinwheel_engine::board::snapshot::{AlarmView, Snapshot};
use pinwheel_engine::record::REPORT;
use pinwheel_engine::record::runs::{Manifest, is_running};
use pinwheel_engine::record::tape::{FILE, Tape, TapeError};
use pinwheel_engine::units::Ticks;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Most moments that are taken from a recording. One of an hour has 360 key snapshots.
pub const POINTS_MAX: usize = 600;
/// Key snapshots up to which every snapshot is taken: a minute.
const SHORT_KEYS: usize = 6;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It left a report, or its manifest says how it ended.
    Known,
    /// It goes on.
    Running,
    /// Its manifest has no end, and its process does not exist.
    Killed,
    /// It has neither report nor manifest, or these are the copies of a dump, taken before its end.
    Unknown,
}

/// What happened between two moments of the recording.
#[derive(Clone, Debug)]
pub struct Interval {
    /// The later moment, nanoseconds since the engine's start.
    pub to_ns: u64,
    /// Answers per second.
    pub answered_per_s: f64,
    /// Shots at its end whose arrival was due and that had no slot yet.
    pub waiting: u64,
    /// Median and p99 of the latency, nanoseconds; `None` without answers.
    pub latency_ns: Option<[u64; 2]>,
}

/// All that is known of a run.
#[derive(Debug)]
pub struct Evidence {
    /// The run's directory.
    pub dir: PathBuf,
    /// `report.json`, or the same fields of the last snapshot; null without both.
    pub report: Value,
    /// `manifest.json`, if it can be read.
    pub manifest: Option<Manifest>,
    /// How it ended.
    pub end: End,
    /// The last snapshot of the recording, or the board of a killed engine.
    pub last: Option<Snapshot>,
    /// In order of time.
    pub history: Vec<Interval>,
    /// Alarms of the recording that the log no longer has, and those of the report.
    pub alarms: Vec<Value>,
    /// Incidents, as the alarms.
    pub incidents: Vec<Value>,
    /// Episodes of each incident at the moments taken of the recording, by its number: onset and end.
    pub episodes: BTreeMap<u64, BTreeMap<u64, u64>>,
    /// Notes of operators: nanoseconds since the engine's start, and text.
    pub notes: Vec<(u64, String)>,
    /// `environment.json`; null without one.
    pub environment: Value,
    /// Parts that the run lacks, each in a sentence.
    pub missing: Vec<String>,
}

impl Evidence {
    /// Reads the run in directory `found`, or of the recording `found`. `now`: its board, if it runs.
    ///
    /// # Errors
    /// [`RunError`], if nothing of it can be read.
    pub fn of(found: PathBuf, now: Option<Snapshot>) -> Result<Evidence, RunError> {
        // A recording that is named itself stands for its run.
        let dir = match found.parent() {
            Some(parent) if found.is_file() && found.ends_with(FILE) => parent.to_owned(),
            _ => found,
        };
        let mut missing = Vec::new();
        let tape = runs::open(&dir)
            .and_then(|tape| if tape.span().is_some() { Ok(tape) } else { Err(runs::empty(&dir).into()) });
        let mut recorded = match tape {
            Ok(mut tape) => Recorded::read(&dir, &mut tape)?,
            Err(refusal) => {
                missing.push(format!("No plots: {refusal}."));
                Recorded::default()
            }
        };
        let (read, manifest) = (json_of(&dir, REPORT), Manifest::read(&dir));
        let report = read.as_ref().ok().cloned().flatten();
        let end = match (&report, &manifest) {
            (Some(_), _) => End::Known,
            _ if is_running(&dir) => End::Running,
            _ if is_of_dump(&dir) => {
                missing.push("These are the copies of a dump, taken before the run had ended.".to_owned());
                End::Unknown
            }
            (None, Some(manifest)) => {
                if manifest.ended.is_some() {
                    End::Known
                } else {
                    End::Killed
                }
            }
            (None, None) => End::Unknown,
        };
        if end == End::Killed
            && let Some(left) = runs::last_state(&dir)
        {
            recorded.add_newer(left);
        }
        if let Some(now) = now {
            recorded.add_newer(now);
        }
        let last = recorded.last.take();
        if report.is_none() && last.is_none() && manifest.is_none() {
            let about = format!("run {}", dir.display());
            let expected = "at least one of them";
            let remedy = "name a run's directory, its name, or last";
            let found = "neither report.json nor manifest.json nor a recording that can be read";
            return Err(Unusable::new(about, found, expected, remedy).into());
        }
        if report.is_none() {
            let instead =
                if last.is_some() { "the figures are those of its last snapshot" } else { "no figures are known" };
            let why = match read {
                Err(why) => format!("The run's {REPORT} cannot be used ({why})"),
                Ok(_) => format!("The run has no {REPORT}"),
            };
            missing.push(format!("{why}: {instead}."));
        }
        let report = report.or_else(|| last.as_ref().map(report_of)).unwrap_or_default();
        let environment = json_of(&dir, "environment.json").ok().flatten().unwrap_or_default();
        let Recorded { history, notes, episodes, .. } = recorded;
        let alarms = by_number(recorded.alarms, &report, "alarms");
        let incidents = by_number(recorded.incidents, &report, "incidents");
        Ok(Evidence {
            dir,
            report,
            manifest,
            end,
            last,
            history,
            alarms,
            incidents,
            episodes,
            notes,
            environment,
            missing,
        })
    }

    /// A count of the report.
    pub fn count(&self, name: &str) -> Option<u64> {
        self.report.get(name)?.as_u64()
    }

    /// The exit status, by the report or the manifest.
    pub fn exit_status(&self) -> Option<u64> {
        let known = self.manifest.as_ref().and_then(|manifest| manifest.ended.as_ref());
        self.count("exit_status").or_else(|| known.map(|ended| u64::from(ended.exit_status)))
    }

    /// A text of the report; empty if there is none.
    pub fn text(&self, name: &str) -> String {
        self.report.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    /// The objects of a list of the report.
    pub fn rows(&self, name: &str) -> &[Value] {
        self.report.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// End of the time lines, nanoseconds since the engine's start.
    pub fn to_ns(&self) -> u64 {
        let alarms = self.alarms.iter().filter_map(|alarm| alarm.get("last_ns")?.as_u64());
        let last = self.last.as_ref().map(|last| last.at_ns);
        alarms.chain(last).chain(self.count("elapsed_live_ns")).max().unwrap_or(0)
    }
}

#[cfg(test)]
impl Evidence {
    /// A run of which only this report is known.
    pub fn of_report(report: Value) -> Evidence {
        Evidence {
            dir: PathBuf::from("run"),
            end: if report.is_null() { End::Unknown } else { End::Known },
            report,
            manifest: None,
            last: None,
            history: Vec::new(),
            alarms: Vec::new(),
            incidents: Vec::new(),
            episodes: BTreeMap::new(),
            notes: Vec::new(),
            environment: Value::Null,
            missing: Vec::new(),
        }
    }
}

/// Whether `dir` holds the copies that `pinwheel dump` took of a run.
fn is_of_dump(dir: &Path) -> bool {
    dir.parent().is_some_and(|parent| parent.join("dump.json").is_file())
}

/// Name of the run in a directory.
pub fn name_of(dir: &Path) -> String {
    // A relative path such as `.` has no name of its own.
    let whole = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    whole.file_name().map_or_else(|| whole.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// What a recording tells.
#[derive(Default)]
struct Recorded {
    last: Option<Snapshot>,
    history: Vec<Interval>,
    /// The newest state of each alarm and incident, by its number.
    alarms: BTreeMap<u64, Value>,
    incidents: BTreeMap<u64, Value>,
    episodes: BTreeMap<u64, BTreeMap<u64, u64>>,
    notes: Vec<(u64, String)>,
}

impl Recorded {
    fn read(dir: &Path, tape: &mut Tape) -> Result<Recorded, TapeError> {
        let mut recorded = Recorded { notes: runs::notes(dir, tape), ..Recorded::default() };
        let (keys, board) = (tape.keys().len(), tape.board()?);
        if keys <= SHORT_KEYS {
            tape.play(Ticks(0), Ticks(u64::MAX), |moment| recorded.add(moment.snapshot_on(&board)))?;
        } else {
            tape.play_keys(keys.div_ceil(POINTS_MAX), |moment| recorded.add(moment.snapshot_on(&board)))?;
        }
        if let Some((_, end)) = tape.span() {
            recorded.add(tape.at(end)?.and_then(|moment| moment.snapshot_on(&board)));
        }
        Ok(recorded)
    }

    /// Adds a state that is newer than the recording.
    fn add_newer(&mut self, state: Snapshot) {
        if self.last.as_ref().is_none_or(|last| last.at_ns < state.at_ns) {
            self.add(Some(state));
        }
    }

    fn add(&mut self, snapshot: Option<Snapshot>) {
        let Some(snapshot) = snapshot else { return };
        let value = |alarm: &AlarmView| serde_json::to_value(Alarm::logged(alarm)).unwrap_or_default();
        self.alarms.extend(snapshot.alarms.iter().map(|alarm| (alarm.number, value(alarm))));
        for incident in &snapshot.incidents {
            let end_ns = incident.ended_ns.unwrap_or(snapshot.at_ns);
            self.episodes.entry(incident.number).or_default().insert(incident.onset_ns, end_ns);
            self.incidents.insert(incident.number, serde_json::to_value(incident).unwrap_or_default());
        }
        if let Some(before) = self.last.as_ref().filter(|before| before.at_ns < snapshot.at_ns) {
            self.history.push(interval(before, &snapshot));
        }
        self.last = Some(snapshot);
    }
}

fn interval(before: &Snapshot, now: &Snapshot) -> Interval {
    let (earlier, later) = (before.totals(), now.totals());
    let answered = later.answered.saturating_sub(earlier.answered);
    let latency = latency(now).since(&latency(before));
    Interval {
        to_ns: now.at_ns,
        answered_per_s: answered as f64 * 1e9 / (now.at_ns - before.at_ns) as f64,
        waiting: later.scheduled.saturating_sub(later.submitted),
        latency_ns: (latency.count() > 0).then(|| [0.5, 0.99].map(|q| latency.quantile_ns(q))),
    }
}

/// The latency of all silos.
pub fn latency(snapshot: &Snapshot) -> Histogram {
    merged(snapshot.silos.iter().map(|silo| &silo.latency))
}

/// A list by number, each with the report's state of it. What was found at the end of the run has no
/// number and is left out.
fn by_number(mut recorded: BTreeMap<u64, Value>, report: &Value, list: &str) -> Vec<Value> {
    let reported = report.get(list).and_then(Value::as_array).into_iter().flatten();
    recorded.extend(reported.filter_map(|row| Some((row.get("number")?.as_u64()?, row.clone()))));
    recorded.into_values().collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{End, Evidence};
    use pinwheel_engine::record::runs::Manifest;

    #[test]
    fn a_report_that_is_cut_is_not_called_absent() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path();
        std::fs::write(run.join("manifest.json"), serde_json::to_vec(&Manifest::default()).unwrap()).unwrap();
        let said = || Evidence::of(run.to_owned(), None).unwrap().missing.pop().unwrap();
        assert_eq!(said(), "The run has no report.json: no figures are known.");
        std::fs::write(run.join("report.json"), "{\"submitted\": 1").unwrap();
        assert!(said().starts_with("The run's report.json cannot be used (EOF while parsing"), "{}", said());
    }

    #[test]
    fn a_dumps_copies_of_a_run_are_not_those_of_a_killed_one() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("run");
        std::fs::create_dir(&run).unwrap();
        std::fs::write(run.join("manifest.json"), serde_json::to_vec(&Manifest::default()).unwrap()).unwrap();
        assert_eq!(Evidence::of(run.clone(), None).unwrap().end, End::Killed);
        std::fs::write(folder.path().join("dump.json"), "{}").unwrap();
        let copies = Evidence::of(run, None).unwrap();
        assert_eq!(copies.end, End::Unknown);
        assert!(copies.missing.iter().any(|said| said.contains("copies of a dump")), "{:?}", copies.missing);
    }
}
