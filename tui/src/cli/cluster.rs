//! `pinwheel cluster up`: engines that share streams, each a process of its own on this machine, with
//! senders that count each answer.
//!
//! Runs on the main thread, which sends all shots. Everything it writes lies in one directory,
//! which it removes at the end; if something was wrong it says where the directory is instead. Exit
//! status 1 if a shot was lost, answered twice, out of order, or otherwise than the decoder alone
//! would, or if an engine did not drain at the end, which a message names; 128 plus the number of a
//! signal that came before all engines had joined. Bounds: [`HOSTS_MAX`] engines; [`START_LIMIT`],
//! [`LAST_ANSWER`] and [`END_LIMIT`] for their start, the last answer and their end.

mod faults;
mod links;
mod load;
mod moves;
mod processes;

use super::hosts;
use super::refusal::Refusal;
use super::say::{self, Print, counted};
use super::signals::Signals;
use super::values::duration;
use clap::{Args as ClapArgs, Subcommand};
use faults::Faults;
use load::{Load, Pauses, Spread, Totals};
use pinwheel_engine::clock::Clock;
use pinwheel_engine::code::Model;
use pinwheel_hosts::local_socket;
use pinwheel_hosts::status::Status;
use pinwheel_report::model_file::{self, Precedence};
use pinwheel_report::report::grouped;
use processes::Processes;
use serde::Serialize;
use std::path::Path;
use std::time::Duration;

/// Most engines.
const HOSTS_MAX: u32 = 16;
/// Longest time for an engine to start and see the others.
const START_LIMIT: Duration = Duration::from_secs(60);
/// Longest wait for the last answers.
const LAST_ANSWER: Duration = Duration::from_secs(20);
/// Longest wait for an engine's end.
const END_LIMIT: Duration = Duration::from_secs(30);
/// Time between two lines of progress.
const LINE_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug, ClapArgs)]
pub struct ClusterArgs {
    #[command(subcommand)]
    pub verb: Verb,
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Start N engines that share streams, send them shots, and count the answers
    Up(UpArgs),
}

#[derive(Debug, ClapArgs)]
pub struct UpArgs {
    /// Number of engines
    #[arg(value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(HOSTS_MAX)))]
    pub count: u32,
    /// Shots per second of all streams together
    #[arg(long, value_name = "HZ", default_value_t = 1_000.0, value_parser = hz)]
    pub rate: f64,
    /// End after this time [default: at an interrupt]
    #[arg(long, value_name = "D", value_parser = duration)]
    pub duration: Option<Duration>,
    /// Kill the last engine after this time; its senders go to another one
    #[arg(long, value_name = "D", value_parser = duration)]
    pub kill_one_after: Option<Duration>,
    /// Kill the next engine at this interval once all are there, and start it again half a second later
    #[arg(long, value_name = "D", value_parser = duration, conflicts_with = "kill_one_after")]
    pub kill_every: Option<Duration>,
    /// Cut the next link between two engines at this interval, for 1 ms to 10 s
    #[arg(long, value_name = "D", value_parser = duration)]
    pub cut_every: Option<Duration>,
    /// Move the next stream to the next host at this interval
    #[arg(long, value_name = "D", value_parser = duration)]
    pub move_every: Option<Duration>,
    /// Streams; stream n has its sender at engine n modulo N
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub streams: u32,
    /// Profile of the engines
    #[arg(long, value_name = "P", default_value = "shared")]
    pub profile: String,
    /// Error model: a bundled one, or a file
    #[arg(long, value_name = "F", default_value = "surface_d3")]
    pub dem: String,
    #[command(flatten)]
    pub print: Print,
}

impl UpArgs {
    /// Refuses options that need another engine if there is one only.
    fn require_several(&self) -> Result<(), Refusal> {
        let given = [
            ("--kill-one-after", self.kill_one_after),
            ("--kill-every", self.kill_every),
            ("--cut-every", self.cut_every),
            ("--move-every", self.move_every),
        ];
        let Some((option, _)) = given.into_iter().find(|(_, span)| span.is_some() && self.count == 1) else {
            return Ok(());
        };
        let remedy = format!("start more engines, or leave {option} out");
        Err(Refusal::unusable(format!("cluster up 1 {option}"), "one engine", "at least two", remedy))
    }
}

fn hz(text: &str) -> Result<f64, String> {
    let expected = || format!("found {text}, expected shots per second above 0 and at most 1000000");
    text.parse().ok().filter(|hz: &f64| *hz > 0.0 && *hz <= 1e6).ok_or_else(expected)
}

/// One host at the end.
#[derive(Debug, Serialize)]
struct HostReport {
    name: String,
    state: &'static str,
    streams: u32,
    link_ns: Option<pinwheel_hosts::status::Trip>,
    /// Shots that other hosts decoded for this one's senders.
    forwarded: u64,
    /// Shots that it decoded for others.
    taken_in: u64,
}

/// Result of a cluster.
#[derive(Debug, Serialize)]
struct Report {
    #[serde(flatten)]
    totals: Totals,
    moves: u64,
    kills: u64,
    cuts: u64,
    /// From a kill to the first answer to a sender of the killed engine; `null`: nothing was killed.
    takeover_ns: Option<Spread>,
    /// `null`: nothing was moved, or kills or cuts were asked for, whose waits these would be.
    move_pause_ns: Option<Pauses>,
    hosts: Vec<HostReport>,
}

pub fn cluster(args: &ClusterArgs) -> Result<u8, Refusal> {
    let Verb::Up(args) = &args.verb;
    hosts::require_build("cluster up")?;
    args.require_several()?;
    let signals = Signals::install().map_err(|error| Refusal::signals(&error))?;
    let about = format!("--dem {}", args.dem);
    let (model, _) = model_file::read(&about, Path::new(&args.dem), Precedence::File)?;
    let mut processes = Processes::new()?;
    let ended = up(args, &model, &signals, &mut processes);
    if matches!(ended, Ok(status) if status != 1) {
        processes.remove();
    } else {
        say::people(&format!("pinwheel: the engines' runs and messages are in {}", processes.directory().display()));
    }
    ended
}

/// Starts the engines, sends shots until the end, and prints the result; the exit status.
fn up(args: &UpArgs, model: &Model, signals: &Signals, processes: &mut Processes) -> Result<u8, Refusal> {
    let clock = Clock::machine();
    processes.start(args)?;
    let ended = || signals.received().is_some();
    if !processes.wait_until_joined(START_LIMIT, &ended)? {
        // No shot was sent: there is no result to print. An engine that has not started yet does
        // not drain, so how they end tells nothing.
        let _starting = processes.end(END_LIMIT);
        return Ok(signals.received().and_then(|signal| u8::try_from(128 + signal).ok()).unwrap_or(1));
    }
    let mut load = Load::new(model, args, &clock, processes)?;
    let (mut faults, mut next_line) = (Faults::new(args), LINE_EVERY);
    while !ended() && args.duration.is_none_or(|limit| load.elapsed() < limit) {
        load.step(processes)?;
        faults.step(processes, &mut load)?;
        if load.elapsed() >= next_line {
            next_line += LINE_EVERY;
            say::people(&load.line());
        }
    }
    load.finish(processes, LAST_ANSWER)?;
    faults.finish(processes, &mut load)?;
    let Faults { moves, kills, cuts, .. } = faults;
    let (totals, takeover_ns) = (load.totals(), load.takeover());
    let is_undisturbed = kills == 0 && cuts == 0;
    let move_pause_ns = load.pauses().filter(|_| is_undisturbed);
    let report = Report { totals, moves, kills, cuts, takeover_ns, move_pause_ns, hosts: report_of(processes) };
    let troubles = processes.end(END_LIMIT);
    troubles.iter().for_each(|said| say::people(&format!("pinwheel: {said}")));
    let is_sound = report.totals.is_sound() && troubles.is_empty();
    Ok(args.print.to_stdout(&report, || text(&report), u8::from(!is_sound)))
}

/// The hosts as the first living engine sees them, with each one's own counters.
fn report_of(processes: &Processes) -> Vec<HostReport> {
    let seen: Option<Status> = processes.living().find_map(|process| local_socket::list_own(&process.run_dir).ok());
    let rows = seen.map(|seen| seen.hosts).unwrap_or_default();
    let rows = rows.into_iter().map(|row| {
        let (forwarded, taken_in) = processes.counters(&row.name).unwrap_or_default();
        HostReport {
            state: row.state.word(),
            streams: row.streams,
            link_ns: row.link_ns,
            forwarded,
            taken_in,
            name: row.name,
        }
    });
    let mut rows: Vec<HostReport> = rows.collect();
    rows.sort_by(|one, other| one.name.cmp(&other.name));
    rows
}

fn text(report: &Report) -> String {
    let Totals { submitted, answered, lost, duplicated, out_of_order, wrong, errors, sent_again } = report.totals;
    let [answered, lost, duplicated, out_of_order] = [answered, lost, duplicated, out_of_order].map(grouped);
    let [wrong, errors, sent_again] = [wrong, errors, sent_again].map(grouped);
    let mut text = format!(
        "{} submitted, {answered} answered, {lost} lost, {duplicated} answered twice, {out_of_order} out of \
         order, {wrong} wrong, {errors} with an error; {sent_again} sent again to another engine; {}, {}, {}\n",
        counted(submitted, "shot"),
        counted(report.moves, "move"),
        counted(report.kills, "kill"),
        counted(report.cuts, "cut")
    );
    let mut line = |what: &str, Spread { p50, p99, max }: Spread| {
        let [p50, p99, max] = [p50, p99, max].map(|ns| ns as f64 / 1e6);
        text.push_str(&format!("{what}: p50 {p50:.1} ms, p99 {p99:.1} ms, at most {max:.1} ms\n"));
    };
    if let Some(takeover) = report.takeover_ns {
        line("from a kill to the next answer", takeover);
    }
    if let Some(Pauses { moved, stayed }) = report.move_pause_ns {
        line("longest wait for an answer around a move, the stream that moves", moved);
        line("the same of a stream that stays", stayed);
    }
    for host in &report.hosts {
        let link = host.link_ns.map_or_else(String::new, |trip| {
            format!(", link p50 {:.1} ms, p99 {:.1} ms", trip.p50 as f64 / 1e6, trip.p99 as f64 / 1e6)
        });
        text.push_str(&format!(
            "{}  {}: {}, {} decoded by others, {} decoded for others{link}\n",
            host.name,
            host.state,
            counted(host.streams.into(), "stream"),
            counted(host.forwarded, "shot"),
            grouped(host.taken_in)
        ));
    }
    text
}
