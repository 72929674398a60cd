//! Other threads that used a hot thread's core, by their CPU time between two scans of all
//! processes.
//!
//! Uses the scans of `host::neighbours`. On the watchdog's thread, only at an alarm. Its result is
//! *likely* at most: CPU time on the core does not prove the switch.

use super::account::OtherThread;
use crate::host::neighbours::{Scan, competitors, scan};
use std::path::Path;

/// Scans all threads whose last core is `core`, also those of this process.
pub(super) fn scan_core(core: u32, at_ns: u64) -> Scan {
    scan(Path::new("/"), 0, &[core], at_ns, &mut || {})
}

/// The threads that ran on the core of thread `tid` between the scans, most first. Without a first
/// scan, those that are ready there.
pub(super) fn others(before: Option<&Scan>, after: &Scan, tid: u32) -> Vec<OtherThread> {
    let own = std::process::id();
    let mut others: Vec<OtherThread> = match before {
        Some(before) => competitors(before, after)
            .into_iter()
            .filter(|competitor| competitor.tid != tid)
            .map(|competitor| {
                let is_own = competitor.pid == own;
                OtherThread::seen(competitor.pid, competitor.command, competitor.ran_ns, is_own)
            })
            .collect(),
        None => after
            .tasks
            .iter()
            .filter(|task| task.tid != tid && task.is_runnable)
            .map(|task| OtherThread::seen(task.pid, task.command.clone(), 0, task.pid == own))
            .collect(),
    };
    others.sort_by_key(|other| std::cmp::Reverse(other.ran_ns));
    others
}
