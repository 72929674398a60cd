//! `pinwheel cores`: lists the users of each core of this machine.
//!
//! Reads claims, pinned threads and load; claims and changes nothing. Takes [`SAMPLE`], the time
//! over which the load is measured.

use super::pause;
use super::refusal::Refusal;
use super::say::Print;
use clap::Args as ClapArgs;
use pinwheel_engine::board;
use pinwheel_engine::host::usage::{CoreUse, Times, rows};
use pinwheel_engine::host::{HostFacts, claims, pins};
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

/// Time over which the load is measured.
const SAMPLE: Duration = Duration::from_millis(200);
/// Most pinned threads listed for a core.
const NAMED_MAX: usize = 3;

#[derive(Debug, ClapArgs)]
pub struct CoresArgs {
    #[command(flatten)]
    pub print: Print,
}

pub fn cores(args: &CoresArgs) -> Result<u8, Refusal> {
    let root = Path::new("/");
    let host = HostFacts::read()?;
    let from = Times::read(root);
    pause(SAMPLE);
    let to = Times::read(root);
    let directory = board::directory();
    let (claimed, locked) = (claims::claimed(&directory), claims::foreign_locks(&directory));
    let pinned = pins::pins(root, std::process::id());
    let rows = rows(root, &host, (&claimed, &locked), &pinned, (&from, &to));
    Ok(args.print.to_stdout(&rows, || text(&rows), 0))
}

fn text(rows: &[CoreUse]) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{:>4}  {:>4}  {:>7}  {:>6}  used by", "core", "node", "sibling", "busy");
    for row in rows {
        let sibling = row.sibling.map_or_else(|| "-".to_owned(), |core| core.to_string());
        let busy = row.busy.map_or_else(|| "-".to_owned(), |share| format!("{:.0} %", share * 100.0));
        let _ = writeln!(text, "{:>4}  {:>4}  {sibling:>7}  {busy:>6}  {}", row.core, row.node, users(row));
    }
    text
}

fn users(row: &CoreUse) -> String {
    let mut users: Vec<String> = row.claimed_by.iter().map(|holder| format!("claimed by {holder}")).collect();
    users.extend(row.locked_by.iter().map(|holder| format!("{holder} holds its lock but is no engine")));
    for pin in row.pinned_by.iter().take(NAMED_MAX) {
        let state = if pin.running { "running" } else { "waiting" };
        users.push(format!("{} (process {}, thread {}) pinned here, {state}", pin.name, pin.pid, pin.tid));
    }
    if row.pinned_by.len() > NAMED_MAX {
        users.push(format!("and {} more", row.pinned_by.len() - NAMED_MAX));
    }
    if !row.allowed {
        users.push("not allowed here".to_owned());
    }
    users.join("; ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::text;
    use pinwheel_engine::host::claims::Holder;
    use pinwheel_engine::host::pins::Pin;
    use pinwheel_engine::host::usage::CoreUse;

    #[test]
    fn a_core_shows_who_claimed_it_and_who_is_pinned_to_it() {
        let holder = Holder { pid: Some(7), user: Some("ada".into()), profile: Some("prod".into()), since: None };
        let pin = |tid| Pin { pid: 8, tid, name: "spin".into(), user: None, cores: vec![3], running: true };
        let row = CoreUse {
            core: 3,
            node: 1,
            sibling: Some(11),
            allowed: true,
            claimed_by: Some(holder),
            locked_by: None,
            pinned_by: (0..5).map(pin).collect(),
            busy: Some(0.254),
        };
        let said = text(std::slice::from_ref(&row));
        let line = said.lines().nth(1).unwrap();
        for part in [
            "25 %",
            "claimed by process 7 of ada with profile prod",
            "spin (process 8, thread 2) pinned here",
            "and 2 more",
        ] {
            assert!(line.contains(part), "{part}: {line}");
        }
        let json = serde_json::to_value([row]).unwrap();
        for key in ["core", "node", "sibling", "claimed_by", "pinned_by", "busy"] {
            assert!(json[0].get(key).is_some(), "{key}");
        }
        for key in ["pid", "user", "profile", "since"] {
            assert!(json[0]["claimed_by"].get(key).is_some(), "{key}");
        }
    }
}
