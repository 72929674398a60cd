//! The page: its head, and its sections in the order in which a reader asks.
//!
//! Pure. One file without a script, another file, a font or an address of a network.

mod accuracy;
mod facts;
mod incidents;
mod latency;
mod markup;
mod plot;
mod rates;
mod verdict;

pub use markup::{Column, Markup};

use crate::evidence::{Evidence, name_of};
use markup::escaped;

/// The page of a run; `further` writes sections behind all others.
pub fn page(run: &Evidence, further: impl FnOnce(&mut Markup)) -> String {
    let name = name_of(&run.dir);
    let mut page = Markup::default();
    page.made("<header>");
    page.element("p", "caption", "Report of a run of Pinwheel");
    page.element("h1", "", &name);
    page.made("</header>\n<main>\n");
    let incidents = incidents::of(run);
    verdict::write(run, &mut page);
    facts::what_ran(run, &mut page);
    incidents::write(run, &incidents, &mut page);
    latency::write(run, &mut page);
    accuracy::write(run, &mut page);
    rates::write(run, &incidents, &mut page);
    facts::noise(run, &mut page);
    facts::environment(run, &mut page);
    facts::warnings(run, &mut page);
    further(&mut page);
    page.made("</main>\n");
    // The policy forbids scripts and every load, whatever a text of the page might try.
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{} – Pinwheel</title>\n<style>\n{}</style>\n\
         </head>\n<body>\n{}</body>\n</html>\n",
        escaped(&name),
        include_str!("page/page.css"),
        page.into_text()
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::incidents::SHOWN_MAX;
    use super::{Evidence, page};
    use crate::evidence::{Interval, POINTS_MAX};
    use crate::moment::report_of;
    use crate::synthetic::{SyntheticFaults, snapshot};
    use serde_json::{Value, json};

    /// Most bytes of a page.
    const PAGE_BYTES_MAX: usize = 2_000_000;

    /// A run that has the most of everything that the page shows.
    fn longest() -> Evidence {
        let mut last = snapshot(36_000, SyntheticFaults::All);
        let stream = last.streams[0].clone();
        last.streams =
            (0..4_096).map(|id| pinwheel_engine::board::snapshot::StreamView { id, ..stream.clone() }).collect();
        let mut report = report_of(&last);
        report["incidents"] = json!([]);
        report["logical_error_rate"] = json!(1e-3);
        let incident = |number: usize| {
            let sentence = "hot-0 stood still: ".repeat(20);
            let root = json!({"rule": "heartbeat", "cause": "descheduled", "who": "cargo", "sentence": sentence});
            let follows = json!({"rule": "late_answers", "sentence": sentence});
            json!({"number": number, "root": root, "consequences": [follows, follows], "severity": "warn",
                "onset_ns": number, "ended_ns": null, "shots_hit": 1})
        };
        // As many as there are moments.
        let episodes = |number: usize| (number as u64, (0..POINTS_MAX as u64).map(|n| (n * 7, n * 7 + 1)).collect());
        let interval = |n: usize| Interval {
            to_ns: n as u64 * 6_000_000_000,
            answered_per_s: 20_000.0 + n as f64,
            waiting: n as u64,
            latency_ns: Some([20_000 + n as u64, 9_000_000]),
        };
        Evidence {
            last: Some(last),
            history: (0..POINTS_MAX).map(interval).collect(),
            incidents: (0..3 * SHOWN_MAX).map(incident).collect(),
            episodes: (0..8).map(episodes).collect(),
            notes: (0..3 * SHOWN_MAX).map(|n| (n as u64, "a note ".repeat(100))).collect(),
            ..Evidence::of_report(report)
        }
    }

    #[test]
    fn the_page_of_the_longest_run_is_below_two_megabytes() {
        let text = page(&longest(), |_| ());
        assert!(text.len() < PAGE_BYTES_MAX, "{} bytes", text.len());
        assert!(text.contains("400 later ones are not shown.") && text.contains("further streams are in report.json"));
    }

    /// As the report of another program may have them.
    #[test]
    fn a_report_of_the_largest_numbers_has_a_page() {
        let most = json!(u64::MAX);
        let decoder = json!({"shots": most, "logical_errors": most, "shots_with_observables": most});
        let stream = json!({"id": most, "answered": most, "decoders": [decoder, decoder]});
        let report = json!({"exit_status": 0, "submitted": most, "answered": most, "errors": {"1": most, "2": most},
            "log": {"dropped": most, "unkept": most}, "logical_error_rate": 1, "streams": [stream, stream]});
        let text = page(&Evidence::of_report(report), |_| ());
        assert!(text.matches("18,446,744,073,709,551,615").count() >= 8, "{text}");
    }

    #[test]
    fn the_page_says_which_answers_are_not_to_be_trusted_and_which_came_past_their_deadlines() {
        let abstention = json!({"below_db": 10, "abstained": 1_234, "share": 0.1234, "logical_error_rate": 1e-3,
            "logical_error_rate_ci95": [9e-4, 1.1e-3]});
        let deadlines = json!({"missed": 7, "refused": 5, "rescued": 3, "rescued_wrong": 2});
        let rated =
            json!({"answered": 10_000, "abstention": abstention, "deadlines": deadlines, "logical_error_rate": 0.1});
        let mut unrated = rated.clone();
        (unrated["logical_error_rate"], unrated["abstention"]["logical_error_rate"]) = (Value::Null, Value::Null);
        let [rated, unrated] = [rated, unrated].map(|report| page(&Evidence::of_report(report), |_| ()));
        let told = "1,234 answers (12.34 %) have a gap below 10 dB and are not to be trusted.";
        let others = "The others: 1.00e-3 per shot, 95 % between 9.00e-4 and 1.10e-3.";
        assert!(
            rated.contains(&format!("{told} {others}")) && unrated.contains(&format!("{told}<")),
            "{rated}{unrated}"
        );
        for part in ["of these 5 refused", "by the rescue decoder; 2 of them wrong"] {
            assert!(rated.contains(part), "{part}: {rated}");
        }
        let none = page(&Evidence::of_report(json!({"answered": 10_000, "abstention": null})), |_| ());
        assert!(!none.contains("trusted") && !none.contains("rescue"), "{none}");
    }

    #[test]
    fn the_page_of_a_run_of_which_nothing_but_its_directory_is_known_is_whole() {
        let text = page(&Evidence::of_report(Value::Null), |_| ());
        for part in ["Nothing of it was recorded.", "No alarm was raised.", "No latency is known.", "</html>"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
