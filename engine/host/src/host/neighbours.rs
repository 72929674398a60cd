//! Who else wants the hot cores: threads of other processes that waited or ran there between two looks.
//!
//! Owns nothing; reads `/proc` on a cold thread ([`look`]), and judges two such readings ([`rivals`], pure). Bounded by
//! [`TASKS_MAX`] threads a look. A look reads one file of every process and some more of what was last on a hot core:
//! 20 µs a process, so whoever calls it sees to it that it is rare. Processes that are hidden from this user are not
//! seen, and threads that come and go between two looks neither: nobody is accused for them.
//!
//! # What a thread waited
//! The kernel counts the time that a thread stood ready and did not run, and adds it when the thread runs at last. One
//! that has not run between two looks and stood ready at both waited all the time, whatever the count says.

use std::path::Path;

use super::machine::{status_field, user_of};
use super::pins::{TASKS_MAX, numbers};
use super::read_text;

/// The kernel's own threads, by the flags of `stat`.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// A thread of another process whose last core is a hot one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Its process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// Its user's number; `None` if it cannot be seen.
    pub uid: Option<u32>,
    /// Its name.
    pub command: String,
    /// The core that it ran on last, or waits for.
    pub core: u32,
    /// Whether it ran or stood ready.
    pub is_runnable: bool,
    /// Time it has run, nanoseconds.
    pub ran_ns: u64,
    /// Time it has stood ready, nanoseconds, up to when it last ran.
    pub waited_ns: u64,
    /// How often it was given a core.
    pub turns: u64,
}

/// What one look saw.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Look {
    /// When, nanoseconds of the caller's clock.
    pub at_ns: u64,
    /// The threads on hot cores, by process and thread.
    pub tasks: Vec<Task>,
}

/// A thread that wanted a hot core between two looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rival {
    /// Its process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// Its user's number; `None` if it cannot be seen.
    pub uid: Option<u32>,
    /// Its name.
    pub command: String,
    /// The core.
    pub core: u32,
    /// Time it stood ready there, nanoseconds.
    pub waited_ns: u64,
    /// Time it ran, nanoseconds.
    pub ran_ns: u64,
    /// Time between the two looks, nanoseconds.
    pub span_ns: u64,
}

/// Looks at the threads of all processes but `own` and the kernel's whose last core is one of `cores`.
#[must_use]
pub fn look(root: &Path, own: u32, cores: &[u32], at_ns: u64) -> Look {
    let mut tasks = Vec::new();
    let mut looked_at = 0;
    for pid in numbers(&root.join("proc")).into_iter().filter(|&pid| pid != own) {
        let dir = root.join(format!("proc/{pid}"));
        // It has ended meanwhile, or is hidden.
        let Some(process) = read_text(&dir.join("stat")).as_deref().and_then(Stat::parse) else { continue };
        if process.flags & KERNEL_THREAD != 0 {
            continue;
        }
        let tids = if process.threads > 1 { numbers(&dir.join("task")) } else { vec![pid] };
        for tid in tids {
            looked_at += 1;
            if looked_at > TASKS_MAX {
                return Look { at_ns, tasks };
            }
            let stat = match tid == pid && process.threads == 1 {
                true => Some(process.clone()),
                false => read_text(&dir.join(format!("task/{tid}/stat"))).as_deref().and_then(Stat::parse),
            };
            let Some(stat) = stat.filter(|stat| cores.contains(&stat.core)) else { continue };
            tasks.extend(task(&dir, pid, tid, stat));
        }
    }
    Look { at_ns, tasks }
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

/// What is needed of a `stat` file: `pid (name) state ppid …`; the name may hold anything, brackets too.
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

/// Who wanted which core between two looks, and for how long. Threads that were not on the same core at both looks are
/// left out: what they waited, they may have waited elsewhere.
#[must_use]
pub fn rivals(before: &Look, after: &Look) -> Vec<Rival> {
    let span_ns = after.at_ns.saturating_sub(before.at_ns);
    let rival = |now: &Task| {
        let then = before.tasks.iter().find(|then| (then.pid, then.tid, then.core) == (now.pid, now.tid, now.core))?;
        let ran_ns = now.ran_ns.saturating_sub(then.ran_ns).min(span_ns);
        let has_stood = then.is_runnable && now.is_runnable && now.turns == then.turns && ran_ns == 0;
        let counted_ns = now.waited_ns.saturating_sub(then.waited_ns).min(span_ns);
        let waited_ns = if has_stood { span_ns } else { counted_ns };
        let Task { pid, tid, uid, core, .. } = *now;
        let rival = Rival { pid, tid, uid, command: now.command.clone(), core, waited_ns, ran_ns, span_ns };
        (waited_ns + ran_ns > 0).then_some(rival)
    };
    after.tasks.iter().filter_map(rival).collect()
}

/// The name of a process's user.
#[must_use]
pub fn user(root: &Path, pid: u32) -> Option<String> {
    user_of(root, &pid.to_string())
}

/// The number of this process's user, who is nobody's rival; `None` where users have none.
#[must_use]
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
    use super::{Look, Rival, Stat, look, rivals};
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

    fn seen(root: &Path, at_ns: u64) -> Look {
        look(root, 99, &[3], at_ns)
    }

    #[test]
    fn a_look_sees_other_processes_threads_on_hot_cores_and_nobody_else() {
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
        let found: Vec<Rival> = rivals(&first, &seen(dir.path(), 11_000));
        assert!(found.iter().all(|rival| rival.span_ns == 10_000 && rival.core == 3));
        found.first().map(|rival| (rival.waited_ns, rival.ran_ns))
    }

    #[test]
    fn what_the_kernel_counted_between_two_looks_was_waited_and_run() {
        assert_eq!(wait(MAKE, Process { times: "900 9500 6", ..MAKE }), Some((2_500, 400)));
        // A wait that began before the first look is counted when it ends.
        assert_eq!(wait(MAKE, Process { times: "900 99500 6", ..MAKE }), Some((10_000, 400)));
    }

    #[test]
    fn a_thread_that_stood_ready_at_both_looks_and_never_ran_waited_all_the_time() {
        assert_eq!(wait(MAKE, MAKE), Some((10_000, 0)));
        assert_eq!(wait(Process { state: "S", ..MAKE }, MAKE), None);
        assert_eq!(wait(MAKE, Process { state: "S", ..MAKE }), None);
        // It runs at the moment, and has all the time.
        assert_eq!(wait(MAKE, Process { times: "600 7000 4", ..MAKE }), Some((0, 100)));
    }

    #[test]
    fn a_thread_from_elsewhere_or_seen_for_the_first_time_accuses_nobody() {
        assert_eq!(wait(Process { core: 2, ..MAKE }, Process { times: "900 9500 6", ..MAKE }), None);
        assert_eq!(wait(Process { pid: 11, ..MAKE }, MAKE), Some((10_000, 0)), "11 is still there");
        let fresh = Look { at_ns: 5, tasks: Vec::new() };
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), &MAKE, &[10]);
        assert_eq!(rivals(&fresh, &seen(dir.path(), 10)), []);
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
        let seen = look(Path::new("/"), own, &all, 0);
        assert!(seen.tasks.iter().all(|task| task.pid != own && task.tid != 0));
    }
}
