//! `pinwheel drill`: provokes real faults and compares the verdicts with the expected ones.
//!
//! Runs on the caller's thread, one drill after another. Bounds: those of the drills, times
//! `--repeat`. Exit status 1 if a verdict was wrong or missing; a drill that is not permitted here
//! gives its reason and does not count. A first signal ends the drill in progress, which undoes its
//! changes, and then the command; a second ends it at once.

use super::pause;
use super::refusal::{Refusal, require_threads};
use super::say::{self, Print, written};
use super::signals::Signals;
use clap::Args as ClapArgs;
use pinwheel_engine::board::alarms::Confidence;
use pinwheel_engine::profile::RuleId;
use pinwheel_lab::drill::{self, Drill, Program, Row};
use serde_json::{Value, json};
use std::fmt::Write;
use std::time::Duration;

#[derive(Debug, ClapArgs)]
pub struct DrillArgs {
    /// Drills by name, separated by commas or spaces, or all; none lists them
    #[arg(value_name = "LIST", value_delimiter = ',')]
    pub drills: Vec<String>,
    /// Number of runs of each drill
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    #[command(flatten)]
    pub print: Print,
    /// List the bundled alarm rules, as a profile writes them
    #[arg(long)]
    pub rules: bool,
    /// Run as the engine of a drill that stops or starves it
    #[arg(long, hide = true)]
    pub victim: bool,
}

/// Columns of the longest name of a drill, and a space.
const NAME_COLUMNS: usize = 19;
/// Most threads of a drill and its child processes.
const DRILL_THREADS: usize = 24;
/// Interval between two looks for a signal.
const LOOK: Duration = Duration::from_millis(10);

pub fn drill(args: &DrillArgs) -> Result<u8, Refusal> {
    if args.victim {
        return Ok(drill::run_as_child());
    }
    let mut out = std::io::stdout().lock();
    if args.rules {
        return Ok(written(say::text(&mut out, &rules()), 0));
    }
    if args.drills.is_empty() {
        return Ok(args.print.result(&mut out, &listed(), list, 0));
    }
    let drills = named(&args.drills)?;
    require_threads("drill", DRILL_THREADS)?;
    let path = std::env::current_exe().map_err(|error| {
        let found = format!("no path to this program's file ({error})");
        Refusal::unusable("drill", found, "a path to start a child process from", "mount /proc")
    })?;
    let program = Program { path, words: ["drill", "--victim"].map(Into::into).to_vec() };
    let signals = Signals::install().map_err(|error| Refusal::signals(&error))?;
    let (mut rows, mut signal) = (Vec::new(), None);
    'drills: for drill in drills {
        for turn in 1..=args.repeat {
            let row = run(drill, &program, &signals, &mut signal);
            if signal.is_some() {
                break 'drills;
            }
            say::people(&format!("pinwheel: drill {} {turn}/{}: {}", row.drill, args.repeat, outcome(&row)));
            let is_permitted = row.permitted;
            rows.push(row);
            if !is_permitted {
                break;
            }
        }
    }
    let status = signal.map_or_else(|| u8::from(!rows.iter().all(Row::is_right)), |signal| 128 + signal as u8);
    Ok(args.print.result(&mut out, &rows, || matrix(&rows), status))
}

/// Runs one drill; a signal meanwhile ends it, and its row says nothing.
fn run(drill: Drill, program: &Program, signals: &Signals, signal: &mut Option<i32>) -> Row {
    std::thread::scope(|scope| {
        let running = scope.spawn(|| drill::run(drill, program));
        while !running.is_finished() {
            *signal = signal.or(signals.received()).or_else(|| signals.hangup());
            if signal.is_some() {
                drill::end();
            }
            pause(LOOK);
        }
        running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn named(words: &[String]) -> Result<Vec<Drill>, Refusal> {
    let find = |word: &String| {
        Drill::from_name(word).ok_or_else(|| {
            let known: Vec<&str> = Drill::ALL.iter().map(|drill| drill.name()).collect();
            let expected = format!("all or some of {}", known.join(", "));
            Refusal::unusable("drill", format!("{word:?}"), expected, "name one of these")
        })
    };
    let drills = words.iter().filter(|word| *word != "all").map(find).collect::<Result<Vec<_>, _>>()?;
    Ok(if words.iter().any(|word| word == "all") { Drill::ALL.to_vec() } else { drills })
}

/// The list as JSON.
fn listed() -> Vec<Value> {
    let row =
        |drill: &Drill| json!({ "drill": drill.name(), "expected": drill.expected().name(), "what": drill.what() });
    Drill::ALL.iter().map(row).collect()
}

fn list() -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{:<NAME_COLUMNS$} {:<26} what it does", "drill", "expected verdict");
    for drill in Drill::ALL {
        let _ = writeln!(text, "{:<NAME_COLUMNS$} {:<26} {}", drill.name(), drill.expected().name(), drill.what());
    }
    text
}

fn rules() -> String {
    let mut text = String::new();
    for id in RuleId::ALL {
        let rule = id.bundled();
        let _ = writeln!(text, "// {id}: counts {}", id.unit());
        let _ = writeln!(
            text,
            "(id: {id:?}, severity: {:?}, limit: {:?}, hysteresis: {:?}, action: {:?}, runbook: {:?}),",
            rule.severity, rule.limit, rule.hysteresis, rule.action, rule.runbook
        );
    }
    text
}

fn outcome(row: &Row) -> String {
    match (&row.given, &row.reason, &row.sentence) {
        (Some(given), _, Some(sentence)) => {
            let also = if row.consequences.is_empty() {
                String::new()
            } else {
                format!("; so {}", row.consequences.join(", "))
            };
            let root = row
                .root
                .as_deref()
                .filter(|root| root != given)
                .map_or_else(String::new, |root| format!("; root {root}"));
            format!("{given} ({sentence}{root}{also})")
        }
        (_, Some(reason), _) if row.permitted => format!("no verdict: {reason}"),
        (_, Some(reason), _) => format!("not permitted here: {reason}"),
        _ => "no verdict".to_owned(),
    }
}

/// One line for each drill: expected and given verdict, share of correct ones, median and worst
/// time.
fn matrix(rows: &[Row]) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{:<NAME_COLUMNS$} {:<24} {:<24} {:>7} {:>10} {:>9} {:>9}",
        "drill", "expected", "given", "right", "sure", "median", "worst"
    );
    for (at, first) in rows.iter().enumerate() {
        let name = first.drill;
        if rows[..at].iter().any(|row| row.drill == name) {
            continue;
        }
        let (mine, refused): (Vec<&Row>, Vec<&Row>) =
            rows.iter().filter(|row| row.drill == name).partition(|row| row.permitted);
        if let Some(refused) = refused.first() {
            let reason = refused.reason.as_deref().unwrap_or("");
            let _ = writeln!(text, "{name:<NAME_COLUMNS$} {:<24} not permitted here: {reason}", first.expected);
        }
        let Some(first) = mine.first() else { continue };
        let right = mine.iter().filter(|row| row.is_right()).count();
        let shown = mine.iter().find(|row| !row.is_right()).unwrap_or(first);
        let given = shown.given.as_deref().or(shown.reason.as_deref()).unwrap_or("nothing");
        let mut times: Vec<f64> = mine.iter().filter_map(|row| row.time_to_verdict_ms).collect();
        times.sort_by(f64::total_cmp);
        let time = |at: usize| times.get(at).map_or_else(|| "-".to_owned(), |ms| format!("{ms:.0} ms"));
        let sure = match shown.confidence {
            Some(Confidence::Certain) => "certain",
            Some(Confidence::Likely) => "likely",
            _ => "-",
        };
        let (median, worst) = (time(times.len() / 2), time(times.len().saturating_sub(1)));
        let share = format!("{right}/{}", mine.len());
        let _ = writeln!(
            text,
            "{name:<NAME_COLUMNS$} {:<24} {given:<24} {share:>7} {sure:>10} {median:>9} {worst:>9}",
            first.expected
        );
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Drill, Row, list, matrix, named, rules};
    use pinwheel_engine::profile::RuleId;

    #[test]
    fn drills_are_taken_by_name_and_an_unknown_one_says_which_there_are() {
        assert_eq!(named(&["sleep".into(), "sigstop".into()]).unwrap(), [Drill::Sleep, Drill::Sigstop]);
        assert_eq!(named(&["all".into()]).unwrap().len(), Drill::ALL.len());
        assert!(named(&["all".into(), "nap".into()]).is_err());
        let refused = named(&["nap".into()]).unwrap_err().to_string();
        assert!(refused.contains("nap") && refused.contains("long-handler"), "{refused}");
        assert_eq!(list().lines().count(), Drill::ALL.len() + 1);
        assert_eq!(rules().lines().count(), 2 * RuleId::ALL.len());
    }

    #[test]
    fn the_matrix_counts_what_was_right_and_shows_what_was_not() {
        let row = |given: Option<&str>, ms| Row {
            drill: "sleep",
            permitted: true,
            reason: None,
            expected: "blocked in a system call",
            given: given.map(str::to_owned),
            confidence: None,
            time_to_verdict_ms: ms,
            root: given.map(str::to_owned),
            consequences: Vec::new(),
            sentence: None,
            culprit: None,
            stack: Vec::new(),
        };
        let rows = [row(Some("blocked in a system call"), Some(20.0)), row(Some("descheduled"), Some(40.0))];
        let shown = matrix(&rows);
        assert!(shown.contains("1/2") && shown.contains("descheduled") && shown.contains("40 ms"), "{shown}");
        let other_root = Row { root: Some("descheduled".into()), ..row(Some("blocked in a system call"), None) };
        assert!(!other_root.is_right(), "the incident has another root");
        let refused = Row { permitted: false, reason: Some("no".into()), ..row(None, None) };
        assert!(refused.is_right());
        // It could not be repeated, and another drill came between.
        let again = |row: &Row| Row { drill: "sigstop", ..row.clone() };
        let shown = matrix(&[rows[0].clone(), again(&rows[0]), refused.clone()]);
        assert_eq!(shown.lines().filter(|line| line.starts_with("sleep ")).count(), 2, "{shown}");
        assert!(shown.contains("1/1") && !shown.contains("2/2") && shown.contains("not permitted here: no"), "{shown}");
        assert!(matrix(&[refused]).contains("not permitted here: no"));
    }
}
