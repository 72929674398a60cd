//! `pinwheel arbiter`: runs a contention load on the ownership arbiter alone, and reports the
//! result.
//!
//! Runs on the main thread until the load ends; on a terminal the console shows it. Exit status 1
//! if a guarantee was violated.

use super::console_options::{ConsoleArgs, FirstScreen, say_unsaved};
use super::pause;
use super::places::{self, UserPaths};
use super::refusal::{Refusal, require_threads};
use super::say::{self, Print, counted};
use super::signals::Signals;
use super::values::duration;
use crate::effect::ConsoleEnd;
use crate::model::View;
use crate::term::{self, Delivered};
use clap::Args as ClapArgs;
use pinwheel_engine::arbiter::page::{PAGES_MAX, SILOS_MAX};
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::board::{self, Place};
use pinwheel_engine::clock::Clock;
use pinwheel_engine::profile::OnHangup;
use pinwheel_engine::units::Nanos;
use pinwheel_lab::arbiter_load::{Load, LoadResult, Running, start};
use pinwheel_report::report::grouped;
use serde_json::{Value, json};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::fmt::Write;
use std::time::Duration;

/// Default duration without a terminal.
const DURATION: Duration = Duration::from_secs(2);
/// Interval between two polls of the load.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Default duration under the console: until the operator quits.
const DURATION_SHOWN: Duration = Duration::from_secs(24 * 3_600);

#[derive(Debug, ClapArgs)]
pub struct ArbiterArgs {
    /// Number of pages that all silos request
    #[arg(long, value_name = "N", default_value_t = 1_024, value_parser = clap::value_parser!(u32).range(1..=PAGES_MAX as i64), allow_negative_numbers = true)]
    pub pages: u32,
    /// Number of silos, one thread each
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(2..=SILOS_MAX as i64), allow_negative_numbers = true)]
    pub threads: u8,
    /// Duration: 10s, 500ms [default: 2s; under the console until you quit]
    #[arg(long, value_name = "D", value_parser = duration, allow_hyphen_values = true)]
    pub duration: Option<Duration>,
    /// Page whose history is shown [default: a page in doubt, else the last page that moved]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub page: Option<u32>,
    #[command(flatten)]
    pub print: Print,
    /// No console, even on a terminal
    #[arg(long)]
    pub headless: bool,
    #[command(flatten)]
    pub console: ConsoleArgs,
}

pub fn arbiter(args: &ArbiterArgs, user_paths: &UserPaths) -> Result<u8, Refusal> {
    let has_console = !args.print.json && !args.headless && term::can_show();
    let usual = if has_console { DURATION_SHOWN } else { DURATION };
    let duration = Nanos(u64::try_from(args.duration.unwrap_or(usual).as_nanos()).unwrap_or(u64::MAX));
    if let Some(page) = args.page.filter(|page| *page >= args.pages) {
        let expected = format!("a page below {}, the load's number of pages", args.pages);
        return Err(Refusal::unusable(
            format!("--page {page}"),
            "no such page",
            expected,
            "name one, or raise --pages",
        ));
    }
    let load = Load { pages: args.pages, silos: args.threads, duration, watched: args.page };
    let (ended, running) = if has_console {
        let profiles = places::profiles(None, user_paths)?;
        let first = FirstScreen::plain(OnHangup::Drain, View::Arbiter);
        watch_console(load, args.console.options(first, profiles.as_deref(), user_paths)?)?
    } else {
        watch(load)?
    };
    let (found, last) = end(running);
    let status = match ended {
        Ended::Alone => u8::from(!found.violations.is_empty()),
        Ended::BySignal(signal) => 128 + signal as u8,
        Ended::TerminalGone => return Ok(u8::from(!found.violations.is_empty())),
    };
    Ok(args.print.to_stdout(&as_json(&found, &last), || text(args, &found), status))
}

enum Ended {
    /// By its duration, or by the operator.
    Alone,
    BySignal(i32),
    /// The terminal closed, so nothing is printed.
    TerminalGone,
}

/// Runs the load without a console, until it ends or a signal arrives.
fn watch(load: Load) -> Result<(Ended, Running), Refusal> {
    let signals = Signals::install().map_err(|error| Refusal::signals(&error))?;
    let running = begin(load)?;
    let mut ended = Ended::Alone;
    while !running.is_finished() {
        if let (Ended::Alone, Some(signal)) = (&ended, signals.received().or_else(|| signals.hangup())) {
            running.request_end();
            ended = Ended::BySignal(signal);
        }
        pause(POLL_INTERVAL);
    }
    Ok((ended, running))
}

/// Runs the load under a live console.
fn watch_console(load: Load, options: term::Options) -> Result<(Ended, Running), Refusal> {
    let running = begin(load)?;
    let shown = term::run(&mut &running, options);
    running.request_end();
    let shown = shown?;
    say_unsaved(&shown);
    let ended = match shown.end {
        _ if shown.delivered != Delivered::Yes => Ended::TerminalGone,
        ConsoleEnd::HungUp => Ended::TerminalGone,
        ConsoleEnd::Terminated => Ended::BySignal(SIGTERM),
        ConsoleEnd::Interrupted => Ended::BySignal(SIGINT),
        ConsoleEnd::Finished | ConsoleEnd::Forced | ConsoleEnd::Killed => Ended::Alone,
    };
    Ok((ended, running))
}

/// Starts the load with a shared board, or with a private one if there is no shared memory.
fn begin(load: Load) -> Result<Running, Refusal> {
    require_threads("arbiter", load.silos as usize + 2)?;
    let clock = Clock::machine();
    let directory = board::directory();
    match start(load, clock.clone(), Place::Shared(directory.clone())) {
        Ok(running) => {
            for said in board::remarks(&directory) {
                say::people(&format!("pinwheel: {said}"));
            }
            Ok(running)
        }
        Err(refused) => {
            say::people(&format!("pinwheel: {refused}"));
            Ok(start(load, clock, Place::Private)?)
        }
    }
}

/// The result of the load, and the last snapshot of the board.
fn end(running: Running) -> (LoadResult, Snapshot) {
    let board = running.board_handle();
    let clock = running.clock().clone();
    let found = running.finish();
    (found, board.snapshot(&clock))
}

fn as_json(found: &LoadResult, last: &Snapshot) -> Value {
    let silos: Vec<Value> = last.silos.iter().map(|silo| json!({ "id": silo.id, "arbiter": silo.arbiter })).collect();
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
        "silos": silos,
    })
}

fn text(args: &ArbiterArgs, found: &LoadResult) -> String {
    let quantiles = |histogram: &pinwheel_engine::board::histogram::Histogram| {
        let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|q| grouped(histogram.quantile_ns(q)));
        format!("p50 {p50}, p99 {p99}, p99.9 {p999}, max {} ns", grouped(histogram.max_ns()))
    };
    let mut text = format!(
        "{}, {}: {} ({}), {} ({}), {}, {} in doubt, {} lost; {} violated\n",
        counted(args.threads.into(), "silo"),
        counted(args.pages.into(), "page"),
        counted(found.decisions, "decision"),
        quantiles(&found.decision_ns),
        counted(found.transfers, "transfer"),
        quantiles(&found.transfer_ns),
        counted(found.commits, "commit"),
        grouped(found.in_doubt),
        counted(found.messages_lost, "message"),
        counted(found.violations.len() as u64, "guarantee"),
    );
    // Writing to a String cannot fail.
    for (name, count) in &found.responses {
        let _ = writeln!(text, "  {name:<16} {:>13}", grouped(*count));
    }
    for violation in &found.violations {
        let _ = writeln!(text, "  violated: {violation}");
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{ArbiterArgs, Print, as_json, end, text};
    use pinwheel_engine::board::Place;
    use pinwheel_engine::clock::Clock;
    use pinwheel_engine::units::Nanos;
    use pinwheel_lab::arbiter_load::{Load, start};

    #[test]
    fn the_report_has_what_the_contract_names_and_every_violation() {
        let load = Load { pages: 2, silos: 2, duration: Nanos::from_millis(20), watched: None };
        let (mut found, last) = end(start(load, Clock::machine(), Place::Private).unwrap());
        found.violations.push("page 1 ends with 2 owners, expected 1".to_owned());
        let json = as_json(&found, &last);
        for field in ["decisions", "decision_ns", "responses", "transfers", "transfer_ns", "violations"] {
            assert!(!json[field].is_null(), "{field}");
        }
        assert!(json["decision_ns"]["p999"].is_u64() && json["violations"].as_u64() >= Some(1));
        let arbiter = &json["silos"][1]["arbiter"];
        for field in ["states", "decisions", "ports", "transfers", "leases", "history", "decision", "transfer"] {
            assert!(!arbiter[field].is_null(), "{field}");
        }
        let args = ArbiterArgs {
            pages: 2,
            threads: 2,
            duration: None,
            page: None,
            print: Print::default(),
            headless: true,
            console: super::ConsoleArgs::default(),
        };
        assert!(text(&args, &found).contains("violated: page 1 ends with 2 owners"));
    }
}
