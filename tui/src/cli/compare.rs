//! `pinwheel compare`: two runs side by side, with what is certain about their differences.
//!
//! Runs on the main thread; reads two run directories. Bounded by them. Never calls a difference one that the intervals do not bear
//! out: counts among trials by Wilson's, counts in a time by Byar's approximation of the Poisson interval.

use super::places::Surroundings;
use super::refusal::Refusal;
use super::runs;
use super::{say, written};
use crate::report::{byar_95, interval_95, merged};
use crate::widgets::format::time;
use clap::Args as ClapArgs;
use pinwheel_engine::board::histogram::Histogram;
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::files;
use pinwheel_engine::profile::{Change, Profile, diff};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, ClapArgs)]
pub struct CompareArgs {
    /// A run: its directory, its name, or last
    #[arg(value_name = "RUN")]
    pub one: String,
    /// Another
    #[arg(value_name = "RUN")]
    pub other: String,
    /// Directory of runs [default: the checkout's logs, else $XDG_STATE_HOME/pinwheel]
    #[arg(long, value_name = "DIR")]
    pub logs: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Two runs.
#[derive(Debug, Serialize)]
struct Comparison {
    runs: [String; 2],
    rates: Vec<Rate>,
    histograms: Vec<Distribution>,
    environment: Vec<Difference>,
    profile: Vec<Change>,
    inputs: Vec<Difference>,
    /// What could not be compared, and why.
    missing: Vec<String>,
}

/// A rate of both.
#[derive(Debug, Serialize)]
struct Rate {
    name: &'static str,
    unit: &'static str,
    rate: [Option<f64>; 2],
    ci95: [Option<[f64; 2]>; 2],
    /// Whether the intervals lie apart.
    differs: bool,
}

/// A distribution of both, nanoseconds.
#[derive(Debug, Serialize)]
struct Distribution {
    name: String,
    one: Histogram,
    other: Histogram,
    /// Kolmogorov and Smirnov's, 0..=1.
    distance: Option<f64>,
}

/// Something that both say differently.
#[derive(Debug, Serialize)]
struct Difference {
    what: String,
    one: String,
    other: String,
}

struct Side {
    dir: PathBuf,
    report: Option<Value>,
    last: Option<Snapshot>,
}

pub fn compare(args: &CompareArgs, around: &Surroundings) -> Result<u8, Refusal> {
    let side = |run: &str| -> Result<Side, Refusal> {
        let dir = runs::find(run, args.logs.as_deref(), around)?;
        let report = json_of(&dir, "report.json");
        let last = runs::open(&dir).ok().and_then(|mut tape| {
            let (_, last) = tape.span()?;
            tape.at(last).ok()??.snapshot().ok()?
        });
        if report.is_none() && last.is_none() {
            let about = format!("run {}", dir.display());
            let remedy = "name a run's directory; one that was killed before its first picture has nothing to compare";
            return Err(Refusal::unusable(about, "neither report.json nor a recording", "one of them", remedy));
        }
        Ok(Side { dir, report, last })
    };
    let compared = comparison(&[side(&args.one)?, side(&args.other)?]);
    let told = if args.json {
        say::json(&mut io::stdout().lock(), &compared)
    } else {
        say::text(&mut io::stdout().lock(), &compared.text())
    };
    Ok(written(told, 0))
}

/// Most bytes read of a run's JSON.
const JSON_BYTES_MAX: u64 = 1 << 26;

fn json_of(dir: &Path, name: &str) -> Option<Value> {
    let bytes = files::read_up_to(files::open_in(dir, name).ok()?, JSON_BYTES_MAX).ok()?;
    serde_json::from_slice(&bytes).ok()
}

fn comparison(sides: &[Side; 2]) -> Comparison {
    let [one, other] = sides;
    let mut missing = Vec::new();
    for side in sides {
        if side.report.is_none() {
            missing.push(format!("{}: no report.json; its last picture stands for its end", side.dir.display()));
        }
        if side.last.is_none() {
            missing.push(format!("{}: no recording; distributions are not compared", side.dir.display()));
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
    let read = files::open_in(dir, "profile.ron").and_then(|file| files::read_up_to(file, JSON_BYTES_MAX));
    let bytes = read.map_err(|error| format!("{path}: {error}"))?;
    Profile::parse(&String::from_utf8_lossy(&bytes), &path).map_err(|error| error.to_string())
}

impl Side {
    /// A count of the report, else of the last picture.
    fn count(&self, name: &str) -> Option<u64> {
        if let Some(value) = self.report.as_ref().and_then(|report| report.get(name)) {
            return match value {
                Value::Object(by_code) => Some(by_code.values().filter_map(Value::as_u64).sum()),
                value => value.as_u64(),
            };
        }
        let total = crate::report::sum(&self.last.as_ref()?.silos);
        Some(match name {
            "answered" => total.answered,
            "submitted" => total.submitted,
            "errors" => total.errored,
            "late" => total.late,
            "logical_errors" => total.logical_errors,
            "shots_with_observables" => total.shots_with_observables,
            "elapsed_live_ns" => self.last.as_ref()?.at_ns,
            _ => return None,
        })
    }

    fn alarms(&self) -> Option<u64> {
        Some(self.last.as_ref()?.alarms.iter().map(|alarm| alarm.count).sum())
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
            let of = |side: &Side| Some((side.count(events)?, side.count(trials)?)).filter(|(_, trials)| *trials > 0);
            rate(
                name,
                unit,
                sides.each_ref().map(|side| {
                    let (events, trials) = of(side)?;
                    Some((events as f64 / trials as f64, interval_95(events, trials)?))
                }),
            )
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
    rates
}

fn rate(name: &'static str, unit: &'static str, found: [Option<(f64, [f64; 2])>; 2]) -> Rate {
    let differs = match &found {
        [Some((_, one)), Some((_, other))] => one[1] < other[0] || other[1] < one[0],
        _ => false,
    };
    Rate {
        name,
        unit,
        rate: found.map(|side| side.map(|(rate, _)| rate)),
        ci95: found.map(|side| side.map(|(_, ci)| ci)),
        differs,
    }
}

fn histograms(sides: &[Side; 2]) -> Vec<Distribution> {
    let [Some(one), Some(other)] = sides.each_ref().map(|side| side.last.as_ref()) else { return Vec::new() };
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
        let report = json_of(&side.dir, "environment.json").unwrap_or_default();
        let rows = report.get("rows").and_then(Value::as_array).cloned().unwrap_or_default();
        let word = |row: &Value, key: &str| row.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        rows.iter().map(|row| (word(row, "id"), format!("{} ({})", word(row, "found"), word(row, "verdict")))).collect()
    };
    differences(&rows(one), &rows(other))
}

fn inputs(one: &Side, other: &Side) -> Vec<Difference> {
    let facts = |side: &Side| -> Vec<(String, String)> {
        let report = side.report.clone().unwrap_or_default();
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
        names.into_iter().map(|name| (name.to_owned(), report.get(name).map_or_else(String::new, plain))).collect()
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
            let side = |i: usize| match (rate.rate[i], rate.ci95[i]) {
                (Some(value), Some([low, high])) => format!("{value:.6} [{low:.6}, {high:.6}]"),
                _ => "not known".to_owned(),
            };
            let verdict = if rate.differs { "differs" } else { "no difference shown" };
            text += &format!("{} {}: {} | {} {verdict}\n", rate.name, rate.unit, side(0), side(1));
        }
        for row in &self.histograms {
            let side = |h: &Histogram| {
                format!(
                    "p50 {} p99 {} p99.9 {} max {}",
                    time(h.quantile_ns(0.5)),
                    time(h.quantile_ns(0.99)),
                    time(h.quantile_ns(0.999)),
                    time(h.max_ns())
                )
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
