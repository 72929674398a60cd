//! `pinwheel hosts`: the hosts that share streams with a running engine of the same user.
//!
//! Runs on the main thread and asks the engine once, by the socket in its run directory. Exit status 2
//! where the engine refuses, in one sentence.

use super::engines;
use super::refusal::Refusal;
use super::say::{Print, counted};
use clap::{Args as ClapArgs, Subcommand};
use pinwheel_engine::engine::wire::{Outcome, Request, read_reply};
use pinwheel_engine::engine::{Command, Done};
use pinwheel_engine::stall::verdict::times;
use pinwheel_hosts::local_socket::{self, Wanted};
use pinwheel_hosts::status::{HostRow, Status};
use pinwheel_report::report::grouped;
use std::fmt::Write;
use std::path::PathBuf;

#[derive(Debug, ClapArgs)]
pub struct HostsArgs {
    #[command(subcommand)]
    pub verb: Option<Verb>,
    /// The engine's process, or its run: a name or a directory [default: the only running engine]
    #[arg(long, value_name = "PID|RUN", global = true)]
    pub to: Option<String>,
    #[command(flatten)]
    pub print: Print,
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Let a host decode a stream from now on; it stays there until you release it
    Move {
        /// Number of the stream
        #[arg(value_name = "STREAM")]
        stream: u32,
        /// Name of the host; here: the engine's own
        #[arg(value_name = "HOST|here")]
        host: String,
    },
    /// Let the rules place a stream again
    Release {
        /// Number of the stream
        #[arg(value_name = "STREAM")]
        stream: u32,
    },
    /// Take no more shots of other hosts, as before maintenance; own streams go on
    Close,
    /// Take shots of other hosts again
    Open,
    /// Print the board of another host's engine as JSON
    Board {
        /// Name of the host
        #[arg(value_name = "HOST")]
        host: String,
    },
}

/// Refuses `about` in a build without links to other hosts.
pub fn require_build(about: &str) -> Result<(), Refusal> {
    if cfg!(feature = "hosts") {
        return Ok(());
    }
    let remedy = "build it with: cargo build --release --features hosts";
    Err(Refusal::unusable(about, "a build without links to other hosts", "one with them", remedy))
}

pub fn hosts(args: &HostsArgs) -> Result<u8, Refusal> {
    let (action, wanted) = match &args.verb {
        None => {
            let (run_dir, owner) = engine(args.to.as_deref())?;
            let status = local_socket::list(&run_dir, owner).map_err(refused)?;
            return Ok(args.print.to_stdout(&status, || text(&status), 0));
        }
        Some(Verb::Move { stream, host }) => {
            let host = Some(host.clone()).filter(|host| host != "here");
            ("move", Wanted::Move { stream: *stream, host })
        }
        Some(Verb::Release { stream }) => ("release", Wanted::Release { stream: *stream }),
        Some(Verb::Close) => ("close", Wanted::Close),
        Some(Verb::Open) => ("open", Wanted::Open),
        Some(Verb::Board { host }) => ("board", Wanted::Board { host: host.clone() }),
    };
    let said = ask(args.to.as_deref(), &wanted)?;
    // A board is JSON already.
    let print = if action == "board" { Print { json: false } } else { args.print };
    let done = serde_json::json!({"action": action, "said": said});
    Ok(print.to_stdout(&done, || format!("{said}\n"), 0))
}

fn refused(said: String) -> Refusal {
    Refusal::Content { about: "hosts".to_owned(), said }
}

/// The run directory of the engine that `to` names, and its user.
pub fn engine(to: Option<&str>) -> Result<(PathBuf, u32), Refusal> {
    let found = engines::find(to)?;
    let none = || refused("this engine has no run directory; a run has one unless --logs cannot be written".to_owned());
    Ok((found.run_dir.ok_or_else(none)?, found.uid))
}

/// Asks the engine that `to` names.
fn ask(to: Option<&str>, wanted: &Wanted) -> Result<String, Refusal> {
    let (run_dir, owner) = engine(to)?;
    local_socket::ask(&run_dir, owner, wanted).map_err(refused)
}

/// Has host `host` execute `command`, by way of the engine that `to` names.
pub fn execute_at(host: &str, to: Option<&str>, command: Command, why: &str) -> Result<Done, Refusal> {
    let line = serde_json::to_string(&Request::new(command, why)).unwrap_or_default();
    let said = ask(to, &Wanted::Command { host: host.to_owned(), line })?;
    let refused = |said| Refusal::Content { about: format!("host {host}"), said };
    match read_reply(said.as_bytes()).map_err(refused)? {
        Outcome::Done(done) => Ok(done),
        Outcome::Refused(said) => Err(refused(said)),
    }
}

fn text(status: &Status) -> String {
    let mut text = format!("cluster {}\n", status.cluster);
    let widest = status.hosts.iter().map(|row| row.name.len()).max().unwrap_or_default();
    // Writing to a String cannot fail.
    for row in &status.hosts {
        let HostRow { name, state, own, streams, load, losses, given, .. } = row;
        let link = row.link_ns.map_or_else(
            || if row.is_self { "this host".to_owned() } else { "not measured".to_owned() },
            |trip| format!("link p50 {:.1} ms, p99 {:.1} ms", trip.p50 as f64 / 1e6, trip.p99 as f64 / 1e6),
        );
        let _ = writeln!(
            text,
            "{name:widest$}  {:8}  {} decoded, {own} with senders there  fullest queue {:.0} %  {link}",
            state.word(),
            counted((*streams).into(), "stream"),
            load.max * 100.0
        );
        if let Some(why) = &row.why_not {
            let what = if row.is_self { "" } else { "is given no shots: " };
            let _ = writeln!(text, "{:widest$}  {what}{why}", "");
        }
        if !given.is_empty() || row.answered > 0 {
            let _ = writeln!(
                text,
                "{:widest$}  decodes streams {given:?} for this host: {} answered, {} taken back",
                "",
                counted(row.answered, "shot"),
                grouped(row.taken_back)
            );
        }
        if *losses > 0 {
            let _ = writeln!(text, "{:widest$}  was gone {}", "", times(*losses));
        }
        if row.sent.refused + row.sent.full > 0 {
            let _ = writeln!(
                text,
                "{:widest$}  messages refused: {} malformed, repeated or out of order, {} for lack of room",
                "", row.sent.refused, row.sent.full
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Status, text};
    use serde_json::json;

    #[test]
    fn a_host_was_gone_once_or_several_times_and_what_is_wrong_with_this_one_is_said() {
        let of = |is_self: bool, losses: u64| {
            let row = json!({
                "name": "lab-b", "is_self": is_self, "state": "gone", "why_not": "it is gone", "version": "0.2.0",
                "own": 0, "streams": 0, "load": {"average": 0.0, "max": 0.0, "backlog_ns": 0}, "heard_ns": 0,
                "link_ns": null, "losses": losses, "given": [], "answered": 0, "taken_back": 0,
                "sent": {"shots": 0, "refused": 0, "full": 0},
            });
            text(&serde_json::from_value::<Status>(json!({"cluster": "lab", "hosts": [row]})).unwrap())
        };
        let of_other = |losses| of(false, losses);
        assert!(of_other(1).ends_with("       was gone once\n"), "{}", of_other(1));
        assert!(of_other(2).ends_with("       was gone 2 times\n"), "{}", of_other(2));
        assert!(of_other(0).ends_with("       is given no shots: it is gone\n"), "{}", of_other(0));
        assert!(of(true, 0).ends_with("       it is gone\n"), "{}", of(true, 0));
    }
}
