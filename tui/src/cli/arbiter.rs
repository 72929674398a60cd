//! `pinwheel arbiter`: a contention load on the ownership arbiter alone, and what came of it.
//!
//! Runs on the main thread until the load is over. Exit status 1 if a promise was broken.

use super::args::duration;
use super::refusal::Refusal;
use super::{say, written};
use crate::report::grouped;
use clap::Args as ClapArgs;
use pinwheel_engine::arbiter::load::{Found, Load, run};
use pinwheel_engine::arbiter::page::{PAGES_MAX, SILOS_MAX};
use pinwheel_engine::clock::Clock;
use pinwheel_engine::units::Nanos;
use serde_json::{Value, json};
use std::fmt::Write;
use std::io;
use std::time::Duration;

#[derive(Debug, ClapArgs)]
pub struct ArbiterArgs {
    /// Pages that all silos want
    #[arg(long, value_name = "N", default_value_t = 1_024, value_parser = clap::value_parser!(u32).range(1..=PAGES_MAX as i64), allow_negative_numbers = true)]
    pub pages: u32,
    /// Silos, a thread each
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(2..=SILOS_MAX as i64), allow_negative_numbers = true)]
    pub threads: u8,
    /// For how long: 10s, 500ms
    #[arg(long, value_name = "D", default_value = "2s", value_parser = duration, allow_hyphen_values = true)]
    pub duration: Duration,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

pub fn arbiter(args: &ArbiterArgs) -> Result<u8, Refusal> {
    let duration = Nanos(u64::try_from(args.duration.as_nanos()).unwrap_or(u64::MAX));
    let found = run(Load { pages: args.pages, silos: args.threads, duration }, &Clock::machine());
    let out = &mut io::stdout().lock();
    let told = if args.json { say::json(out, &as_json(&found)) } else { say::text(out, &text(args, &found)) };
    Ok(written(told, u8::from(!found.violations.is_empty())))
}

fn as_json(found: &Found) -> Value {
    json!({
        "decisions": found.decisions,
        "decision_ns": found.decision_ns,
        "responses": found.responses,
        "transfers": found.transfers,
        "transfer_ns": found.transfer_ns,
        "commits": found.commits,
        "in_doubt": found.in_doubt,
        "messages_lost": found.messages_lost,
        "violations": found.violations.len(),
        "violations_found": found.violations,
    })
}

fn text(args: &ArbiterArgs, found: &Found) -> String {
    let quantiles = |histogram: &pinwheel_engine::board::histogram::Histogram| {
        let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|q| grouped(histogram.quantile_ns(q)));
        format!("p50 {p50}, p99 {p99}, p99.9 {p999}, max {} ns", grouped(histogram.max_ns()))
    };
    let mut text = format!(
        "{} silos, {} pages: {} decisions ({}), {} transfers ({}), {} commits, {} in doubt, {} messages lost; {} promises broken\n",
        args.threads,
        grouped(u64::from(args.pages)),
        grouped(found.decisions),
        quantiles(&found.decision_ns),
        grouped(found.transfers),
        quantiles(&found.transfer_ns),
        grouped(found.commits),
        grouped(found.in_doubt),
        grouped(found.messages_lost),
        found.violations.len(),
    );
    // Writing to a String cannot fail.
    for (name, count) in &found.responses {
        let _ = writeln!(text, "  {name:<16} {:>13}", grouped(*count));
    }
    for violation in &found.violations {
        let _ = writeln!(text, "  broken: {violation}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{ArbiterArgs, as_json, text};
    use pinwheel_engine::arbiter::load::{Load, run};
    use pinwheel_engine::clock::Clock;
    use pinwheel_engine::units::Nanos;
    use std::time::Duration;

    #[test]
    fn the_report_has_what_the_contract_names_and_every_violation() {
        let mut found = run(Load { pages: 2, silos: 2, duration: Nanos::from_millis(20) }, &Clock::machine());
        found.violations.push("page 1 ends with 2 owners, expected 1".to_owned());
        let json = as_json(&found);
        for field in ["decisions", "decision_ns", "responses", "transfers", "transfer_ns", "violations"] {
            assert!(!json[field].is_null(), "{field}");
        }
        assert!(json["decision_ns"]["p999"].is_u64() && json["violations"].as_u64() >= Some(1));
        let args = ArbiterArgs { pages: 2, threads: 2, duration: Duration::from_millis(20), json: false };
        assert!(text(&args, &found).contains("broken: page 1 ends with 2 owners"));
    }
}
