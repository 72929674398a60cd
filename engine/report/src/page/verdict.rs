//! The page's first section: whether each shot was answered exactly once, what was wrong, how the
//! run ended, and its main figures.
//!
//! Pure.

use super::markup::{Column, Markup};
use crate::evidence::{End, Evidence};
use crate::report::{duration_text, grouped, rate_text, short, sum};
use serde_json::Value;

/// What is known of the run as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Sound,
    Wrong,
    /// It has no end.
    Open,
}

/// Writes the section.
pub fn write(run: &Evidence, page: &mut Markup) {
    let (verdict, headline) = verdict(run);
    let (class, sign) = match verdict {
        Verdict::Sound => ("verdict sound", "✓"),
        Verdict::Wrong => ("verdict wrong", "✗"),
        Verdict::Open => ("verdict open", "?"),
    };
    page.open("section", class);
    page.open("p", "headline");
    page.element("span", "sign", sign);
    page.text(&headline);
    page.close("p");
    let reasons = run.rows("alarms").iter().filter(|alarm| alarm.get("unsound") == Some(&Value::Bool(true)));
    page.list(&reasons.filter_map(|alarm| alarm.get("what")?.as_str()).map(sentence).collect::<Vec<_>>());
    page.paragraph(&ending(run));
    page.close("section");
    figures(run, page);
}

fn verdict(run: &Evidence) -> (Verdict, String) {
    let [submitted, answered, lost, twice] =
        ["submitted", "answered", "lost", "duplicated"].map(|name| run.count(name).unwrap_or(0));
    let is_reported = run.exit_status().is_some() && run.count("submitted").is_some();
    let shots = grouped(submitted);
    match run.end {
        End::Running | End::Killed if twice > 0 => {
            return (Verdict::Wrong, format!("{} shots were answered a second time.", grouped(twice)));
        }
        End::Running => {
            return (Verdict::Open, format!("The run goes on: {} shots answered so far.", grouped(answered)));
        }
        End::Killed => {
            let headline = "The run has no end: it was killed, or its machine stopped.".to_owned();
            return (Verdict::Open, headline);
        }
        _ if !is_reported => return (Verdict::Open, "Whether the run was sound is not known.".to_owned()),
        _ => {}
    }
    let wrong = match (lost, twice) {
        (0, 0) if submitted != answered => {
            Some(format!("{shots} shots were submitted and {} answered.", grouped(answered)))
        }
        (0, 0) => None,
        (lost, 0) => Some(format!("{} of {shots} shots were not answered.", grouped(lost))),
        (0, twice) => Some(format!("{} of {shots} shots were answered a second time.", grouped(twice))),
        (lost, twice) => Some(format!(
            "{} of {shots} shots were not answered, and {} were answered a second time.",
            grouped(lost),
            grouped(twice)
        )),
    };
    let is_unsound = run.exit_status() == Some(1);
    match wrong {
        Some(wrong) => (Verdict::Wrong, wrong),
        None if submitted == 0 && is_unsound => {
            (Verdict::Wrong, "No shot was submitted, and something is wrong.".to_owned())
        }
        None if submitted == 0 => (Verdict::Sound, "No shot was submitted, and nothing is wrong.".to_owned()),
        None if is_unsound => {
            (Verdict::Wrong, format!("Each of {shots} shots was answered exactly once, but something else is wrong."))
        }
        None => (Verdict::Sound, format!("Each of {shots} shots was answered exactly once.")),
    }
}

/// A finding as a sentence.
fn sentence(what: &str) -> String {
    let mut letters = what.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    let end = if what.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{first}{}{end}", letters.as_str())
}

/// How the run ended, and after how long.
fn ending(run: &Evidence) -> String {
    let known = run.manifest.as_ref().and_then(|manifest| manifest.ended.as_ref());
    let by = Some(run.text("ended_by")).filter(|by| !by.is_empty()).or_else(|| known.map(|ended| ended.by.clone()));
    if let Some((by, status)) = by.zip(run.exit_status()) {
        let after = run.count("elapsed_live_ns").map(|ns| format!(" after {}", duration_text(ns))).unwrap_or_default();
        return format!("It was ended by {}{after}. Exit status {status}.", ended_by(&by));
    }
    let Some(last) = &run.last else { return "Nothing of it was recorded.".to_owned() };
    let totals = last.totals();
    let sign = match run.end {
        End::Running => "The figures are",
        _ => "The last sign of it is",
    };
    format!(
        "{sign} from {} after its start: {} shots were submitted, {} answered, {} answered a second time; {} were under \
         way.",
        duration_text(last.at_ns),
        grouped(totals.submitted),
        grouped(totals.answered),
        grouped(totals.duplicated),
        grouped(totals.submitted.saturating_sub(totals.answered))
    )
}

fn ended_by(by: &str) -> &str {
    match by {
        "count" => "its number of shots",
        "duration" => "its duration",
        "input" => "the end of its input",
        "drained" => "its operator",
        "sigint" => "SIGINT",
        "sigterm" => "SIGTERM",
        "fault" => "a fault",
        other => other,
    }
}

/// The main figures, each with what it means.
fn figures(run: &Evidence, page: &mut Markup) {
    let Some(answered) = run.count("answered") else { return };
    let share = |count: u64| if answered > 0 { count as f64 * 100.0 / answered as f64 } else { 0.0 };
    let by_code = run.report.get("errors").and_then(Value::as_object);
    let errors = sum(by_code.into_iter().flat_map(|codes| codes.values()).filter_map(Value::as_u64));
    let late = run.count("late").unwrap_or(0);
    let deadline = duration_text(run.count("deadline_ns").unwrap_or(0));
    let mut rows = vec![("answers", grouped(answered), throughput(run))];
    rows.push(("with an error", grouped(errors), format!("{:.2} % of the answers", share(errors))));
    rows.push(("late", grouped(late), format!("{:.2} %, more than {deadline} after arrival", share(late))));
    let deadlines = run.report.get("deadlines");
    let of_deadlines = |key: &str| deadlines.and_then(|counts| counts.get(key)?.as_u64()).unwrap_or(0);
    let [missed, rescued] = ["missed", "rescued"].map(of_deadlines);
    if missed.max(rescued) > 0 {
        let refused = grouped(of_deadlines("refused"));
        rows.push(("past their deadline", grouped(missed), format!("errors included; of these {refused} refused")));
        let wrong = grouped(of_deadlines("rescued_wrong"));
        rows.push(("rescued", grouped(rescued), format!("by the rescue decoder; {wrong} of them wrong")));
    }
    // Of no answers the quantiles are 0.
    let latencies = run.report.get("latency_ns").filter(|times| times.get("count").and_then(Value::as_u64) > Some(0));
    let latency = |quantile: &str| latencies?.get(quantile)?.as_u64();
    if let Some((half, [tail, farther])) = latency("p50").zip(latency("p99").zip(latency("p999")).map(<[u64; 2]>::from))
    {
        let tails = format!("p99 {}, p99.9 {}", duration_text(tail), duration_text(farther));
        rows.push(("latency, p50", duration_text(half), tails));
    }
    if let Some(rate) = run.report.get("logical_error_rate").and_then(Value::as_f64) {
        let interval = super::accuracy::interval(&run.report, "logical_error_rate_ci95");
        rows.push(("logical error rate", rate_text(rate), format!("95 %: {interval}")));
    }
    page.open("div", "figures");
    for (name, value, meaning) in rows {
        page.open("div", "figure");
        page.element("span", "name", name);
        page.element("span", "value", &value);
        // A number and its unit stay on one line.
        page.element("span", "meaning", &meaning.replace(" ms", "\u{a0}ms").replace(" µs", "\u{a0}µs"));
        page.close("div");
    }
    page.close("div");
    self::errors(run, page);
}

fn throughput(run: &Evidence) -> String {
    let rate = run.report.get("throughput_per_s").and_then(Value::as_f64);
    rate.map(|rate| format!("{} per second", short(rate))).unwrap_or_default()
}

/// Answers with an error, by their code; none, if there were no errors.
fn errors(run: &Evidence, page: &mut Markup) {
    let Some(counts) = run.report.get("errors").and_then(Value::as_object) else { return };
    let name = |code: &str| run.report.get("error_names")?.get(code)?.as_str().map(|name| name.replace('_', " "));
    let row = |(code, count): (&String, &Value)| {
        vec![name(code).unwrap_or_default(), code.clone(), grouped(count.as_u64().unwrap_or(0))]
    };
    let columns = [Column::Text("error"), Column::Number("code"), Column::Number("answers")];
    page.table(&columns, &counts.iter().map(row).collect::<Vec<_>>());
}

#[cfg(test)]
mod tests {
    use super::{End, Evidence, Markup, Verdict, figures, sentence, verdict};
    use pinwheel_engine::record::runs::{Ended, Manifest};
    use serde_json::json;

    #[test]
    fn lost_and_repeated_answers_and_other_trouble_are_told_apart() {
        let run = |answered: u64, lost: u64, duplicated: u64, exit_status: u64| {
            Evidence::of_report(
                json!({"submitted": 1_000, "answered": answered, "lost": lost, "duplicated": duplicated,
                "exit_status": exit_status}),
            )
        };
        for (run, expected, headline) in [
            (run(1_000, 0, 0, 0), Verdict::Sound, "Each of 1,000 shots was answered exactly once."),
            (run(1_000, 0, 0, 143), Verdict::Sound, "Each of 1,000 shots was answered exactly once."),
            (
                run(1_000, 0, 0, 1),
                Verdict::Wrong,
                "Each of 1,000 shots was answered exactly once, but something else is wrong.",
            ),
            (run(997, 3, 0, 1), Verdict::Wrong, "3 of 1,000 shots were not answered."),
            (run(1_000, 0, 2, 1), Verdict::Wrong, "2 of 1,000 shots were answered a second time."),
            (run(1_001, 0, 0, 1), Verdict::Wrong, "1,000 shots were submitted and 1,001 answered."),
            (
                Evidence { end: End::Killed, ..run(990, 10, 0, 0) },
                Verdict::Open,
                "The run has no end: it was killed, or its machine stopped.",
            ),
            (
                Evidence { end: End::Running, ..run(990, 10, 1, 0) },
                Verdict::Wrong,
                "1 shots were answered a second time.",
            ),
        ] {
            assert_eq!(verdict(&run), (expected, headline.to_owned()));
        }
    }

    #[test]
    fn a_run_whose_report_is_gone_is_judged_by_its_recording_and_its_manifest() {
        let ended = |exit_status| Some(Ended { exit_status, ..Ended::default() });
        let run = |recorded, exit_status| Evidence {
            manifest: Some(Manifest { ended: ended(exit_status), ..Manifest::default() }),
            ..Evidence::of_report(recorded)
        };
        let counts = json!({"submitted": 10, "answered": 10});
        for (run, expected, headline) in [
            (run(counts.clone(), 0), Verdict::Sound, "Each of 10 shots was answered exactly once."),
            (
                run(counts, 1),
                Verdict::Wrong,
                "Each of 10 shots was answered exactly once, but something else is wrong.",
            ),
            (run(json!({}), 0), Verdict::Open, "Whether the run was sound is not known."),
        ] {
            assert_eq!(verdict(&run), (expected, headline.to_owned()));
        }
    }

    #[test]
    fn a_run_without_an_answer_has_no_latency() {
        let has_latency = |answered: u64| {
            let times = json!({"p50": 5, "p99": 5, "p999": 5, "max": 5, "count": answered});
            let (run, mut page) = (json!({"answered": answered, "latency_ns": times}), Markup::default());
            figures(&Evidence::of_report(run), &mut page);
            page.into_text().contains("latency, p50")
        };
        assert_eq!([has_latency(0), has_latency(7)], [false, true]);
    }

    #[test]
    fn a_finding_becomes_a_sentence() {
        assert_eq!(sentence("a fault forced the engine to drain"), "A fault forced the engine to drain.");
        assert_eq!([sentence("It ended."), sentence("")], ["It ended.", "."]);
    }
}
