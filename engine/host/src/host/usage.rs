//! Who uses which core of this machine: claims, pins and load.
//!
//! Owns the rows of `pinwheel cores`. Cold. Bounded by the online cores. The load is measured
//! between two [`Times`]. Reads only.

use std::path::Path;

use serde::Serialize;

use super::claims::{Conflict, Holder};
use super::pins::Pin;
use super::{HostFacts, read_text, topology};

/// One core and its users.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CoreUse {
    /// The system's number of the core.
    pub core: u32,
    /// Its NUMA node.
    pub node: u32,
    /// The other SMT thread of its physical core; the lowest if there are several.
    pub sibling: Option<u32>,
    /// Whether this process may use it.
    pub allowed: bool,
    /// The engine that has claimed it.
    pub claimed_by: Option<Holder>,
    /// The process that holds its lock but is no engine, which claims nothing.
    pub locked_by: Option<Holder>,
    /// Threads of other programs that may run on no other physical core.
    pub pinned_by: Vec<Pin>,
    /// The share of the measured time in which it was not idle, 0 to 1; `None` if it is not
    /// visible.
    pub busy: Option<f64>,
}

/// CPU time of each core so far, in the system's clock ticks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Times(Vec<(u32, CoreTime)>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CoreTime {
    idle: u64,
    all: u64,
}

impl Times {
    /// Reads `proc/stat` under `root`; empty if it is not visible.
    pub fn read(root: &Path) -> Times {
        let text = read_text(&root.join("proc/stat")).unwrap_or_default();
        Times(text.lines().filter_map(line).collect())
    }

    fn of(&self, core: u32) -> Option<CoreTime> {
        self.0.iter().find(|(number, _)| *number == core).map(|(_, time)| *time)
    }
}

/// `cpu3 user nice system idle iowait irq softirq steal guest guest_nice`; guest time is part of
/// user time.
fn line(line: &str) -> Option<(u32, CoreTime)> {
    let mut words = line.strip_prefix("cpu")?.split_whitespace();
    let core = words.next()?.parse().ok()?;
    let ticks: Vec<u64> = words.take(8).map_while(|word| word.parse().ok()).collect();
    let idle = ticks.get(3)? + ticks.get(4).copied().unwrap_or_default();
    Some((core, CoreTime { idle, all: ticks.iter().sum() }))
}

/// The share of the time between two samples in which a core was not idle.
fn busy(from: &Times, to: &Times, core: u32) -> Option<f64> {
    let (from, to) = (from.of(core)?, to.of(core)?);
    let all = to.all.checked_sub(from.all).filter(|&all| all > 0)?;
    let idle = to.idle.saturating_sub(from.idle).min(all);
    Some((all - idle) as f64 / all as f64)
}

/// Rows for all online cores of the machine under `root`.
pub fn rows(
    root: &Path,
    host: &HostFacts,
    (claimed, locked): (&[Conflict], &[Conflict]),
    pins: &[Pin],
    sample: (&Times, &Times),
) -> Vec<CoreUse> {
    let mut cores = topology::online(root);
    cores.extend(host.cores.iter().map(|facts| facts.core));
    cores.sort_unstable();
    cores.dedup();
    let row = |core: u32| {
        let facts = topology::core(root, core);
        CoreUse {
            core,
            node: facts.node,
            sibling: facts.siblings.first().copied(),
            allowed: host.core(core).is_some(),
            locked_by: locked.iter().find(|lock| lock.core == core).map(|lock| lock.holder.clone()),
            claimed_by: claimed.iter().find(|claim| claim.core == core).map(|claim| claim.holder.clone()),
            pinned_by: pins.iter().filter(|pin| pin.cores.contains(&core)).cloned().collect(),
            busy: busy(sample.0, sample.1, core),
        }
    };
    cores.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Times, busy, rows};
    use crate::host::HostFacts;
    use crate::host::claims::{Conflict, Holder};
    use crate::host::pins::Pin;
    use crate::host::trees::{machine, write};

    #[test]
    fn busy_is_the_share_that_was_not_idle() {
        let dir = machine("vm2");
        let sample = |text: &str| {
            write(dir.path(), "proc/stat", text);
            Times::read(dir.path())
        };
        let from = sample("cpu  9 9 9 9\ncpu0 10 0 10 100 0 0 0 0 7 0\ncpu1 5 0 5 50\nbtime 1\n");
        let to = sample("cpu  9 9 9 9\ncpu0 25 0 10 110 5 0 0 0 7 0\ncpu1 5 0 5 50\n");
        assert_eq!(busy(&from, &to, 0), Some(0.5));
        assert_eq!((busy(&from, &to, 1), busy(&from, &to, 2)), (None, None));
    }

    #[test]
    fn every_online_core_has_a_row_with_its_users() {
        let dir = machine("server64");
        let host = HostFacts::read_at(dir.path(), &[32, 33]);
        let holder = Holder { pid: Some(7), user: Some("ada".into()), profile: None, since: None };
        let claims = [Conflict { core: 33, holder: holder.clone() }];
        let pin = Pin { pid: 8, tid: 9, name: "x".into(), user: None, cores: vec![33], running: true };
        let rows = rows(dir.path(), &host, (&claims, &claims[..0]), &[pin], (&Times::default(), &Times::default()));
        assert_eq!(rows.len(), 128);
        let row = &rows[33];
        assert_eq!((row.core, row.node, row.sibling, row.allowed), (33, 1, Some(97), true));
        assert_eq!((row.claimed_by.as_ref(), row.pinned_by.len(), row.busy), (Some(&holder), 1, None));
        assert!(!rows[34].allowed && rows[34].claimed_by.is_none() && rows[34].pinned_by.is_empty());
    }
}
