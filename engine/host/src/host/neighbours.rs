//! Threads of other processes that waited for hot cores, or ran there, between two scans of
//! `/proc`.
//!
//! Reads `/proc` on a cold thread ([`scan`]), and compares two scans ([`competitors`], pure).
//! Bounded by [`TASKS_MAX`] threads a scan. A scan reads one file of every process, and more of the
//! threads that ran on a hot core last: 20 µs a process, so callers scan rarely. Processes that are
//! hidden from this user do not appear, nor do threads that live shorter than the time between two
//! scans.
//!
//! # How waiting is measured
//! The kernel counts the time in which a thread was ready and did not run, and adds it when the
//! thread runs again. A thread that was ready at both scans and has not run in between waited all
//! the time, whatever its count says.

use std::path::Path;

use super::machine::{status_field, user_of};
use super::pins::{TASKS_MAX, numbers};
use super::read_text;

/// Flag of the kernel's own threads in `stat`.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// A thread of another process that ran on a hot core last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Its process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// Its user's number; `None` if it is not visible.
    pub uid: Option<u32>,
    /// Its name.
    pub command: String,
    /// The core that it ran on last, or waits for.
    pub core: u32,
    /// Whether it was running or ready.
    pub is_runnable: bool,
    /// Time it has run, nanoseconds.
    pub ran_ns: u64,
    /// Time it was ready without running, nanoseconds, up to its last run.
    pub waited_ns: u64,
    /// Number of times it was given a core.
    pub turns: u64,
}

/// The result of one scan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scan {
    /// The moment, nanoseconds of the caller's clock.
    pub at_ns: u64,
    /// The threads on hot cores, sorted by process and thread.
    pub tasks: Vec<Task>,
}

/// A thread that competed for a hot core between two scans.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Competitor {
    /// Its process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// Its user's number; `None` if it is not visible.
    pub uid: Option<u32>,
    /// Its name.
    pub command: String,
    /// The core.
    pub core: u32,
    /// Time it was ready there, nanoseconds.
    pub waited_ns: u64,
    /// Time it ran, nanoseconds.
    pub ran_ns: u64,
    /// Time between the two scans, nanoseconds.
    pub span_ns: u64,
}

/// Scans the threads whose last core is one of `cores`, except those of process `own` and of the
/// kernel. Calls `between` before each process, so that the caller can give its core up for a while.
#[must_use]
pub fn scan(root: &Path, own: u32, cores: &[u32], at_ns: u64, between: &mut dyn FnMut()) -> Scan {
    let mut tasks = Vec::new();
    let mut looked_at = 0;
    for pid in numbers(&root.join("proc")).into_iter().filter(|&pid| pid != own) {
        between();
        let dir = root.join(format!("proc/{pid}"));
        // The process has ended meanwhile, or is hidden.
        let Some(process) = read_text(&dir.join("stat")).as_deref().and_then(Stat::parse) else { continue };
        if process.flags & KERNEL_THREAD != 0 {
            continue;
        }
        let tids = if process.threads > 1 { numbers(&dir.join("task")) } else { vec![pid] };
        for tid in tids {
            looked_at += 1;
            if looked_at > TASKS_MAX {
                return Scan { at_ns, tasks };
            }
            let stat = match tid == pid && process.threads == 1 {
                true => Some(process.clone()),
                false => read_text(&dir.join(format!("task/{tid}/stat"))).as_deref().and_then(Stat::parse),
            };
            let Some(stat) = stat.filter(|stat| cores.contains(&stat.core)) else { continue };
            tasks.extend(task(&dir, pid, tid, stat));
        }
    }
    Scan { at_ns, tasks }
}

fn task(dir: &Path, pid: u32, tid: u32, stat: Stat) -> Option<Task> {
    let times = read_text(&dir.join(format!("task/{tid}/schedstat")))?;
    let mut times = times.split_whitespace().map(|word| word.parse::<u64>().ok());
    let (ran_ns, waited_ns, turns) = (times.next()??, times.next()??, times.next()??);
    let status = read_text(&dir.join("status")).unwrap_or_default();
    let uid = status_field(&status, "Uid").and_then(|uids| uids.split_whitespace().next()?.parse().ok());
    let Stat { command, is_runnable, core, .. } = stat;
    Some(Task { pid, tid, uid, command, core, is_runnable, ran_ns, waited_ns, turns })
}

/// The fields of a `stat` file that are used: `pid (name) state ppid …`. The name may contain
/// brackets.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stat {
    command: String,
    is_runnable: bool,
    flags: u64,
    threads: u64,
    core: u32,
}

impl Stat {
    fn parse(text: &str) -> Option<Stat> {
        let (head, tail) = text.rsplit_once(')')?;
        let command = head.split_once('(')?.1.to_owned();
        // Fields are numbered from 1 by proc(5); the third is the first after the name.
        let words: Vec<&str> = tail.split_whitespace().collect();
        let field = |number: usize| words.get(number - 3).copied();
        Some(Stat {
            command,
            is_runnable: field(3)? == "R",
            flags: field(9)?.parse().ok()?,
            threads: field(20)?.parse().ok()?,
            core: field(39)?.parse().ok()?,
        })
    }
}

/// The threads that competed for a core between two scans, and for how long. A thread that was not
/// on the same core at both scans is left out, because it may have waited elsewhere.
pub fn competitors(before: &Scan, after: &Scan) -> Vec<Competitor> {
    let span_ns = after.at_ns.saturating_sub(before.at_ns);
    let competitor = |now: &Task| {
        let then = before.tasks.iter().find(|then| (then.pid, then.tid, then.core) == (now.pid, now.tid, now.core))?;
        let ran_ns = now.ran_ns.saturating_sub(then.ran_ns).min(span_ns);
        let has_stood = then.is_runnable && now.is_runnable && now.turns == then.turns && ran_ns == 0;
        let counted_ns = now.waited_ns.saturating_sub(then.waited_ns).min(span_ns);
        let waited_ns = if has_stood { span_ns } else { counted_ns };
        let Task { pid, tid, uid, core, .. } = *now;
        let competitor = Competitor { pid, tid, uid, command: now.command.clone(), core, waited_ns, ran_ns, span_ns };
        (waited_ns + ran_ns > 0).then_some(competitor)
    };
    after.tasks.iter().filter_map(competitor).collect()
}

/// The name of a process's user.
pub fn user(root: &Path, pid: u32) -> Option<String> {
    user_of(root, &pid.to_string())
}

/// This process's user number; its threads are not competitors. `None` if the system has no users.
pub fn own_uid() -> Option<u32> {
    imp::own_uid()
}

#[cfg(unix)]
mod imp {
    pub(super) fn own_uid() -> Option<u32> {
        Some(rustix::process::getuid().as_raw())
    }
}

#[cfg(not(unix))]
mod imp {
    pub(super) fn own_uid() -> Option<u32> {
        None
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Competitor, Scan, Stat, competitors, scan};
    use crate::host::trees::write;
    use std::path::Path;

    struct Process {
        pid: u32,
        state: &'static str,
        core: u32,
        flags: u64,
        times: &'static str,
    }

    const MAKE: Process = Process { pid: 10, state: "R", core: 3, flags: 0, times: "500 7000 4" };

    fn put(root: &Path, process: &Process, tids: &[u32]) {
        let Process { pid, state, core, flags, times } = process;
        for tid in tids {
            let zeros = |count: usize| vec!["0"; count].join(" ");
            let threads = tids.len();
            let stat = format!(
                "{tid} (a) b {tid}) {state} 1 {} {flags} {} {threads} {} {core} 0 0\n",
                zeros(4),
                zeros(10),
                zeros(18)
            );
            write(root, &format!("proc/{pid}/task/{tid}/stat"), &stat);
            write(root, &format!("proc/{pid}/task/{tid}/schedstat"), times);
            if tid == pid {
                write(root, &format!("proc/{pid}/stat"), &stat);
            }
        }
        write(root, &format!("proc/{pid}/status"), "Name:\tx\nUid:\t1001\t1001\t1001\t1001\n");
    }

    fn seen(root: &Path, at_ns: u64) -> Scan {
        scan(root, 99, &[3], at_ns, &mut || {})
    }

    #[test]
    fn a_sample_finds_only_threads_of_other_processes_on_hot_cores() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        put(root, &MAKE, &[10]);
        put(root, &Process { pid: 20, core: 2, ..MAKE }, &[20]);
        put(root, &Process { pid: 30, flags: 0x0020_8040, ..MAKE }, &[30]);
        put(root, &Process { pid: 40, state: "S", ..MAKE }, &[40, 41]);
        put(root, &Process { pid: 99, ..MAKE }, &[99]);
        write(root, "proc/50/status", "gone");
        let found: Vec<(u32, u32, bool)> =
            seen(root, 0).tasks.iter().map(|task| (task.pid, task.tid, task.is_runnable)).collect();
        assert_eq!(found, [(10, 10, true), (40, 40, false), (40, 41, false)]);
        let make = &seen(root, 0).tasks[0];
        assert_eq!((make.command.as_str(), make.uid), ("a) b 10", Some(1001)));
        assert_eq!((make.ran_ns, make.waited_ns, make.turns), (500, 7000, 4));
    }

    fn wait(before: Process, after: Process) -> Option<(u64, u64)> {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), &before, &[before.pid]);
        let first = seen(dir.path(), 1_000);
        put(dir.path(), &after, &[after.pid]);
        let found: Vec<Competitor> = competitors(&first, &seen(dir.path(), 11_000));
        assert!(found.iter().all(|competitor| competitor.span_ns == 10_000 && competitor.core == 3));
        found.first().map(|competitor| (competitor.waited_ns, competitor.ran_ns))
    }

    #[test]
    fn kernel_counters_of_two_samples_give_waited_and_run_time() {
        assert_eq!(wait(MAKE, Process { times: "900 9500 6", ..MAKE }), Some((2_500, 400)));
        // A wait that began before the first look is counted when it ends.
        assert_eq!(wait(MAKE, Process { times: "900 99500 6", ..MAKE }), Some((10_000, 400)));
    }

    #[test]
    fn a_thread_ready_in_two_samples_that_did_not_run_waited_all_the_time() {
        assert_eq!(wait(MAKE, MAKE), Some((10_000, 0)));
        assert_eq!(wait(Process { state: "S", ..MAKE }, MAKE), None);
        assert_eq!(wait(MAKE, Process { state: "S", ..MAKE }), None);
        // It runs at the moment, and has all the time.
        assert_eq!(wait(MAKE, Process { times: "600 7000 4", ..MAKE }), Some((0, 100)));
    }

    #[test]
    fn a_thread_in_its_first_sample_is_no_competitor() {
        assert_eq!(wait(Process { core: 2, ..MAKE }, Process { times: "900 9500 6", ..MAKE }), None);
        assert_eq!(wait(Process { pid: 11, ..MAKE }, MAKE), Some((10_000, 0)), "11 is still there");
        let fresh = Scan { at_ns: 5, tasks: Vec::new() };
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), &MAKE, &[10]);
        assert_eq!(competitors(&fresh, &seen(dir.path(), 10)), []);
    }

    #[test]
    fn a_stat_that_is_cut_short_is_no_thread() {
        for text in ["", "1 (x", "1 (x) R 1", "1 x) R 1"] {
            assert_eq!(Stat::parse(text), None, "{text}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_machine_is_looked_at_without_our_own_process() {
        let all: Vec<u32> = (0..crate::host::CORES_MAX).collect();
        let own = std::process::id();
        let seen = scan(Path::new("/"), own, &all, 0, &mut || {});
        assert!(seen.tasks.iter().all(|task| task.pid != own && task.tid != 0));
    }
}
