//! Who else had a thread's core, by CPU time between two looks at all processes.
//!
//! Pure but for the looks, which `host::neighbours` takes. On the watchdog's thread, at an alarm only. What it names is at
//! most likely: time on the core is not the switch itself. Bounded as the looks are.

use super::observe::Other;
use crate::host::neighbours::{Look, look, rivals};
use std::path::Path;

/// A look at everybody whose last core is `core`, this process included.
pub(super) fn looked(core: u32, at_ns: u64) -> Look {
    look(Path::new("/"), 0, &[core], at_ns)
}

/// Who ran on the core of thread `tid` between the looks, most first; without a first look, who stands ready there.
pub(super) fn others(before: Option<&Look>, after: &Look, tid: u32) -> Vec<Other> {
    let own = std::process::id();
    let mut others: Vec<Other> = match before {
        Some(before) => rivals(before, after)
            .into_iter()
            .filter(|rival| rival.tid != tid)
            .map(|rival| Other {
                pid: rival.pid,
                command: rival.command,
                ran_ns: rival.ran_ns,
                is_own: rival.pid == own,
            })
            .collect(),
        None => after
            .tasks
            .iter()
            .filter(|task| task.tid != tid && task.is_runnable)
            .map(|task| Other { pid: task.pid, command: task.command.clone(), ran_ns: 0, is_own: task.pid == own })
            .collect(),
    };
    others.sort_by_key(|other| std::cmp::Reverse(other.ran_ns));
    others
}
