//! `pinwheel compare`: compares two runs, with confidence intervals.
//!
//! Runs on the main thread; reads two run directories. Reports a difference only if the intervals
//! are disjoint: Wilson's for proportions, Byar's approximation of the Poisson interval for counts
//! over time.

use super::places::UserPaths;
use super::refusal::Refusal;
use super::runs;
use super::say::Print;
use crate::widgets::format::time;
use clap::Args as ClapArgs;
use pinwheel_engine::board::Phase;
use pinwheel_engine::board::deadlines::{WrongOrLate, wrong_or_late};
use pinwheel_engine::board::histogram::{DEADLINES_NS, Histogram};
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::files;
use pinwheel_engine::profile::{self, Change, Profile, diff};
use pinwheel_engine::record::REPORT;
use pinwheel_engine::record::tape::Tape;
use pinwheel_engine::units::Nanos;
use pinwheel_report::moment::report_of;
use pinwheel_report::report::{byar_95, interval_95, merged, short, sum};
use pinwheel_report::runs::json_of;
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Longest time before Live in which the begin of Live is looked for.
const START_LIMIT: Nanos = Nanos(60_000_000_000);

#[derive(Debug, ClapArgs)]
pub struct CompareArgs {
    /// A run: its directory, its name, or last
    #[arg(value_name = "RUN")]
    pub one: String,
    /// Another run
    #[arg(value_name = "RUN")]
    pub other: String,
    /// Directory of runs [default: the checkout's logs, else $XDG_STATE_HOME/pinwheel]
    #[arg(long, value_name = "DIR")]
    pub logs: Option<PathBuf>,
    #[command(flatten)]
    pub print: Print,
}

#[derive(Debug, Serialize)]
pub struct Comparison {
    pub runs: [String; 2],
    pub rates: Vec<Rate>,
    pub histograms: Vec<Distribution>,
    pub environment: Vec<Difference>,
    pub profile: Vec<Change>,
    pub inputs: Vec<Difference>,
    /// Parts that could not be compared, with the reason.
    pub missing: Vec<String>,
}

/// A rate in both runs.
#[derive(Debug, Serialize)]
pub struct Rate {
    pub name: Cow<'static, str>,
    pub unit: &'static str,
    pub rate: [Option<f64>; 2],
    pub ci95: [Option<[f64; 2]>; 2],
    /// Whether the intervals are disjoint.
    pub differs: bool,
}

impl Rate {
    /// What it is the rate of, and per what.
    pub fn words(&self) -> String {
        // Some rules count events, such as late answers.
        let name = if self.name == "alarms" { "occurrences of alarms".to_owned() } else { self.name.replace('_', " ") };
        format!("{name}, {}", self.unit)
    }

    /// The rate in one of the runs, with its interval.
    pub fn in_run(&self, run: usize) -> String {
        match (self.rate[run], self.ci95[run]) {
            (Some(rate), Some([low, high])) => format!("{} [{}, {}]", short(rate), short(low), short(high)),
            _ => "not known".to_owned(),
        }
    }

    /// What the intervals show.
    pub const fn verdict(&self) -> &'static str {
        if self.differs { "differs" } else { "no difference shown" }
    }
}

/// A distribution in both runs, nanoseconds.
#[derive(Debug, Serialize)]
pub struct Distribution {
    pub name: String,
    pub one: Histogram,
    pub other: Histogram,
    /// Kolmogorov–Smirnov distance, 0..=1.
    pub distance: Option<f64>,
}

/// A field with different values.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    pub what: String,
    pub one: String,
    pub other: String,
}

struct Side {
    dir: PathBuf,
    /// `None`: there is none; an error says why it cannot be used.
    report: Result<Option<Value>, String>,
    /// The last snapshot of its recording; else why there is none, in one sentence.
    last: Result<Snapshot, String>,
    /// Of a run without a report: time from its first picture in Live to the last one.
    live_ns: Option<u64>,
}

pub fn compare(args: &CompareArgs, user_paths: &UserPaths) -> Result<u8, Refusal> {
    let find = |run: &str| runs::find(run, args.logs.as_deref(), user_paths);
    let compared = of_runs(find(&args.one)?, find(&args.other)?)?;
    Ok(args.print.to_stdout(&compared, || compared.text(), 0))
}

/// Compares the runs in two directories.
///
/// # Errors
/// If one has neither a report nor a recording.
pub fn of_runs(one: PathBuf, other: PathBuf) -> Result<Comparison, Refusal> {
    let side = |dir: PathBuf| -> Result<Side, Refusal> {
        let report = json_of(&dir, REPORT);
        let mut tape = runs::open(&dir);
        let last = match &mut tape {
            Ok(tape) => last_of(tape).ok_or_else(|| runs::empty(&dir).to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let (Ok(None) | Err(_), Err(why)) = (&report, &last) {
            let about = format!("run {}", dir.display());
            let found = format!("neither report.json nor a recording that can be read ({why})");
            return Err(Refusal::unusable(about, found, "one of them", "name the directory of another run"));
        }
        let live_ns = match (&report, &mut tape, &last) {
            (Ok(None) | Err(_), Ok(tape), Ok(last)) => {
                live_from_ns(tape).map(|from_ns| last.at_ns.saturating_sub(from_ns))
            }
            _ => None,
        };
        Ok(Side { dir, report, last, live_ns })
    };
    Ok(comparison(&[side(one)?, side(other)?]))
}

fn last_of(tape: &mut Tape) -> Option<Snapshot> {
    let (_, last) = tape.span()?;
    tape.at(last).ok()??.snapshot().ok()?
}

/// When the run became live, nanoseconds after the engine's start; `None` if the recording does not
/// go back to before that.
fn live_from_ns(tape: &mut Tape) -> Option<u64> {
    let (first, last) = tape.span()?;
    let (mut was_early, mut live) = (false, None);
    let to = first.plus(tape.rate().ticks(START_LIMIT)).min(last);
    tape.play(first, to, |moment| {
        if live.is_none()
            && let Ok(Some(snapshot)) = moment.snapshot()
        {
            was_early |= snapshot.engine.phase < Phase::Live;
            live = Some(snapshot.at_ns).filter(|_| snapshot.engine.phase >= Phase::Live);
        }
    })
    .ok()?;
    live.filter(|_| was_early)
}

fn comparison(sides: &[Side; 2]) -> Comparison {
    let [one, other] = sides;
    let mut missing = Vec::new();
    for side in sides {
        if side.report().is_none() {
            let why = match &side.report {
                Err(why) => format!("{REPORT} cannot be used ({why})"),
                Ok(_) => format!("no {REPORT}"),
            };
            missing.push(format!("{}: {why}; its last snapshot is used instead", side.dir.display()));
            if side.live_ns.is_none() {
                let why = "when it became live is not recorded; rates over time are not known";
                missing.push(format!("{}: {why}", side.dir.display()));
            }
        }
        if let Err(why) = &side.last {
            missing.push(format!("{}: distributions are not compared: {why}", side.dir.display()));
        }
    }
    let profile = match (profile_of(&one.dir), profile_of(&other.dir)) {
        (Ok(one), Ok(other)) => diff(&one, &other),
        (one, other) => {
            missing.extend(one.err().into_iter().chain(other.err()));
            Vec::new()
        }
    };
    Comparison {
        runs: [&one.dir, &other.dir].map(|dir| dir.display().to_string()),
        rates: rates(sides),
        histograms: histograms(sides),
        environment: environment(one, other),
        profile,
        inputs: inputs(one, other),
        missing,
    }
}

fn profile_of(dir: &Path) -> Result<Profile, String> {
    let path = dir.join("profile.ron").display().to_string();
    // Parsed as text only: it is not run, so it may come from another user even if it names a
    // program.
    let read = files::read_in(dir, "profile.ron", profile::FILE_BYTES_MAX);
    let bytes = read.map_err(|error| format!("{path}: {error}"))?;
    Profile::parse(&String::from_utf8_lossy(&bytes), &path).map_err(|error| error.to_string())
}

impl Side {
    fn report(&self) -> Option<&Value> {
        self.report.as_ref().ok()?.as_ref()
    }

    /// A count of the report, else of the last snapshot.
    fn count(&self, name: &str) -> Option<u64> {
        if let Some(value) = self.report().and_then(|report| report.get(name)) {
            return match value {
                Value::Object(by_code) => Some(sum(by_code.values().filter_map(Value::as_u64))),
                value => value.as_u64(),
            };
        }
        let total = self.last.as_ref().ok()?.totals();
        Some(match name {
            "answered" => total.answered,
            "submitted" => total.submitted,
            "errors" => total.errored,
            "late" => total.late,
            "logical_errors" => total.logical_errors,
            "shots_with_observables" => total.shots_with_observables,
            "elapsed_live_ns" => self.live_ns?,
            _ => return None,
        })
    }

    fn alarms(&self) -> Option<u64> {
        Some(sum(self.last.as_ref().ok()?.alarms.iter().map(|alarm| alarm.count)))
    }
}

fn rates(sides: &[Side; 2]) -> Vec<Rate> {
    let shares = [
        ("logical_error_rate", "per judged shot", "logical_errors", "shots_with_observables"),
        ("errors", "per answer", "errors", "answered"),
        ("late", "per answer", "late", "answered"),
    ];
    let mut rates: Vec<Rate> = shares
        .into_iter()
        .map(|(name, unit, events, trials)| {
            let of = |side: &Side| {
                let (events, trials) = (side.count(events)?, side.count(trials).filter(|trials| *trials > 0)?);
                Some((events as f64 / trials as f64, interval_95(events, trials)?))
            };
            rate(name, unit, sides.each_ref().map(of))
        })
        .collect();
    let per_second = |name, unit, scale: f64, events: &dyn Fn(&Side) -> Option<u64>| {
        rate(
            name,
            unit,
            sides.each_ref().map(|side| {
                let seconds = side.count("elapsed_live_ns").filter(|ns| *ns > 0)? as f64 / 1e9;
                let events = events(side)?;
                let [low, high] = byar_95(events);
                Some((events as f64 * scale / seconds, [low * scale / seconds, high * scale / seconds]))
            }),
        )
    };
    rates.push(per_second("throughput", "answers per second", 1.0, &|side| side.count("answered")));
    rates.push(per_second("alarms", "per hour", 3_600.0, &Side::alarms));
    let at_deadlines =
        sides.each_ref().map(|side| side.last.as_ref().ok().and_then(|last| wrong_or_late(&last.streams)));
    for (index, deadline_ns) in DEADLINES_NS.into_iter().enumerate() {
        let of = |side: &Option<[WrongOrLate; DEADLINES_NS.len()]>| {
            let WrongOrLate { shots, of, .. } = side.as_ref()?[index];
            Some((shots as f64 / of as f64, interval_95(shots, of)?))
        };
        let found = at_deadlines.each_ref().map(of);
        if found.iter().any(Option::is_some) {
            let name = format!("wrong or late by {}", time(deadline_ns));
            rates.push(rate(name, "per answer", found));
        }
    }
    rates
}

fn rate(name: impl Into<Cow<'static, str>>, unit: &'static str, found: [Option<(f64, [f64; 2])>; 2]) -> Rate {
    let differs = match &found {
        [Some((_, one)), Some((_, other))] => one[1] < other[0] || other[1] < one[0],
        _ => false,
    };
    Rate {
        name: name.into(),
        unit,
        rate: found.map(|side| side.map(|(rate, _)| rate)),
        ci95: found.map(|side| side.map(|(_, ci)| ci)),
        differs,
    }
}

fn histograms(sides: &[Side; 2]) -> Vec<Distribution> {
    let [Ok(one), Ok(other)] = sides.each_ref().map(|side| side.last.as_ref()) else { return Vec::new() };
    let all = |snapshot: &Snapshot| {
        let silos = &snapshot.silos;
        let mut named = vec![
            ("latency".to_owned(), merged(silos.iter().map(|silo| &silo.latency))),
            ("latency_from_submit".to_owned(), merged(silos.iter().map(|silo| &silo.latency_from_submit))),
        ];
        for name in silos.iter().flat_map(|silo| &silo.stages).map(|stage| stage.name).collect::<BTreeSet<_>>() {
            let stages = silos.iter().flat_map(|silo| &silo.stages).filter(|stage| stage.name == name);
            named.push((name.to_owned(), merged(stages.map(|stage| &stage.time))));
        }
        named
    };
    let pairs = all(one).into_iter().zip(all(other));
    pairs.map(|((name, one), (_, other))| Distribution { distance: one.distance(&other), name, one, other }).collect()
}

fn environment(one: &Side, other: &Side) -> Vec<Difference> {
    let rows = |side: &Side| -> Vec<(String, String)> {
        let report = json_of(&side.dir, "environment.json").ok().flatten().unwrap_or_default();
        let rows = report.get("rows").and_then(Value::as_array).cloned().unwrap_or_default();
        let word = |row: &Value, key: &str| row.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let found = |row: &Value| match (word(row, "id").as_str(), word(row, "found")) {
            // It ends with the time of the report, which differs always.
            ("machine", found) => found.rsplit_once(", ").map_or(found.clone(), |(machine, _)| machine.to_owned()),
            (_, found) => found,
        };
        rows.iter().map(|row| (word(row, "id"), format!("{} ({})", found(row), word(row, "verdict")))).collect()
    };
    differences(&rows(one), &rows(other))
}

fn inputs(one: &Side, other: &Side) -> Vec<Difference> {
    let facts = |side: &Side| -> Vec<(String, String)> {
        let of_last = || side.last.as_ref().ok().map(report_of);
        let report = side.report().cloned().or_else(of_last).unwrap_or_default();
        let names = [
            "version",
            "input",
            "detectors",
            "device",
            "decoder",
            "predecoder",
            "rate_origin",
            "label",
            "silos",
            "ended_by",
        ];
        let named = |name: &str| Some((name.to_owned(), plain(report.get(name)?)));
        let model = report.get("model").map(|model| {
            let part = |name: &str| model.get(name).map_or_else(String::new, plain);
            ("model".to_owned(), format!("{} ({})", part("path"), part("hash")))
        });
        names.into_iter().filter_map(named).chain(model).collect()
    };
    differences(&facts(one), &facts(other))
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn differences(one: &[(String, String)], other: &[(String, String)]) -> Vec<Difference> {
    let of = |rows: &[(String, String)], name: &str| {
        rows.iter().find(|(known, _)| known == name).map_or_else(|| "absent".to_owned(), |(_, value)| value.clone())
    };
    let names: Vec<&String> = one
        .iter()
        .map(|(name, _)| name)
        .chain(other.iter().map(|(name, _)| name).filter(|name| !one.iter().any(|(known, _)| known == *name)))
        .collect();
    let rows =
        names.into_iter().map(|name| Difference { what: name.clone(), one: of(one, name), other: of(other, name) });
    rows.filter(|row| row.one != row.other).collect()
}

impl Comparison {
    fn text(&self) -> String {
        let mut text = format!("one    {}\nother  {}\n", self.runs[0], self.runs[1]);
        for rate in &self.rates {
            text += &format!("{}: {} | {} {}\n", rate.words(), rate.in_run(0), rate.in_run(1), rate.verdict());
        }
        for row in &self.histograms {
            let side = |h: &Histogram| match h.count() {
                0 => "none".to_owned(),
                _ => format!(
                    "p50 {} p99 {} p99.9 {} max {}",
                    time(h.quantile_ns(0.5)),
                    time(h.quantile_ns(0.99)),
                    time(h.quantile_ns(0.999)),
                    time(h.max_ns())
                ),
            };
            let distance =
                row.distance.map_or_else(|| "empty".to_owned(), |distance| format!("distance {distance:.3}"));
            text += &format!("{}: {} | {} {distance}\n", row.name, side(&row.one), side(&row.other));
        }
        for (title, rows) in [("environment", &self.environment), ("input", &self.inputs)] {
            for row in rows {
                text += &format!("{title} {}: {} | {}\n", row.what, row.one, row.other);
            }
        }
        for change in &self.profile {
            text += &format!("profile {}: {} | {}\n", change.field, change.from, change.to);
        }
        for said in &self.missing {
            text += &format!("missing {said}\n");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Distribution, Histogram, Side, comparison, environment, report_of};
    use crate::tests::synthetic::{SyntheticFaults, snapshot};

    #[test]
    fn the_input_of_a_run_without_a_report_is_that_of_its_last_snapshot() {
        let last = snapshot(100, SyntheticFaults::None);
        let mut report = report_of(&last);
        report["ended_by"] = "count".into();
        let side = |report| Side { dir: "run".into(), report: Ok(report), last: Ok(last.clone()), live_ns: None };
        let inputs = comparison(&[side(None), side(Some(report))]).inputs;
        let told: Vec<_> = inputs.iter().map(|row| [&row.what, &row.one, &row.other].map(String::as_str)).collect();
        assert_eq!(told, [["ended_by", "absent", "count"]]);
    }

    #[test]
    fn the_time_of_an_environment_report_is_no_difference() {
        let folder = tempfile::tempdir().unwrap();
        let side = |name: &str, boot: &str, time: &str| {
            let dir = folder.path().join(name);
            std::fs::create_dir(&dir).unwrap();
            let found = format!("lab-a, kernel 6.18, boot {boot}, 2026-11-29T06:07:{time}Z");
            let rows = serde_json::json!({ "rows": [{ "id": "machine", "found": found, "verdict": "pass" }] });
            std::fs::write(dir.join("environment.json"), rows.to_string()).unwrap();
            Side { dir, report: Ok(None), last: Err(String::new()), live_ns: None }
        };
        let [one, later, rebooted] = [side("one", "a", "27"), side("later", "a", "28"), side("rebooted", "b", "28")];
        assert_eq!(environment(&one, &later), []);
        let [machine] = environment(&later, &rebooted).try_into().unwrap();
        assert_eq!((machine.what.as_str(), machine.one.as_str()), ("machine", "lab-a, kernel 6.18, boot a (pass)"));
    }

    #[test]
    fn a_report_that_is_cut_is_not_called_absent() {
        let side = |report| {
            let last = Ok(snapshot(100, SyntheticFaults::None));
            Side { dir: "run".into(), report, last, live_ns: None }
        };
        let missing = comparison(&[side(Ok(None)), side(Err("EOF".to_owned()))]).missing;
        let expected = ["run: no report.json", "run: report.json cannot be used (EOF)"];
        for said in expected.map(|why| format!("{why}; its last snapshot is used instead")) {
            assert!(missing.contains(&said), "{said}: {missing:?}");
        }
    }

    #[test]
    fn a_small_rate_has_three_digits_like_any_other() {
        let report = serde_json::json!({ "logical_errors": 3, "shots_with_observables": 20_000_000,
            "answered": 20_000_000, "elapsed_live_ns": 1_000_000_000u64 });
        let last = || Err(String::new());
        let side = || Side { dir: "run".into(), report: Ok(Some(report.clone())), last: last(), live_ns: None };
        let text = comparison(&[side(), side()]).text();
        assert!(text.contains("logical error rate, per judged shot: 1.50e-7 [5.10e-8, 4.41e-7] | 1.50e-7 ["), "{text}");
        assert!(text.contains("throughput, answers per second: 20,000,000 [19,99"), "{text}");
    }

    #[test]
    fn times_of_no_shots_are_none() {
        let last = || Err(String::new());
        let side = || Side { dir: "run".into(), report: Ok(Some(serde_json::json!({}))), last: last(), live_ns: None };
        let mut compared = comparison(&[side(), side()]);
        let (name, one, other) = ("queue".to_owned(), Histogram::default(), Histogram::of(&[5_000]));
        compared.histograms = vec![Distribution { name, one, other, distance: None }];
        assert!(compared.text().contains("queue: none | p50 5.0µs "), "{}", compared.text());
    }

    #[test]
    fn rates_over_time_of_a_run_without_a_report_count_from_live_or_are_not_known() {
        let side = |live_ns| {
            let last = Ok(snapshot(100, SyntheticFaults::None));
            Side { dir: "run".into(), report: Ok(None), last, live_ns }
        };
        let compared = comparison(&[side(Some(5_000_000_000)), side(None)]);
        let rate = |name: &str| compared.rates.iter().find(|rate| rate.name == name).unwrap().rate;
        let answered = snapshot(100, SyntheticFaults::None).totals().answered as f64;
        assert_eq!((rate("throughput"), rate("alarms")[1]), ([Some(answered / 5.0), None], None));
        let said = |what: &str| compared.missing.iter().filter(|said| said.contains(what)).count();
        assert_eq!((said("no report.json"), said("when it became live")), (2, 1), "{:?}", compared.missing);
    }
}
