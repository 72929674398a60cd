//! The kernel's records of context switches: when a hot thread lost its core, to which thread, and
//! when it got it back.
//!
//! Owns the counters' descriptors and mapped rings. The watchdog's cold thread drains them at each
//! baseline and each alarm; hot threads do nothing. Bounds: [`RING_BYTES`] a thread in the kernel,
//! [`KEPT_MAX`] records a thread here. A lost record is detected and makes the result incomplete.
//! If the kernel refuses, [`Switches::hidden`] says what would permit it.
//!
//! ```text
//!  of the core    (perf_event_paranoid ≤ 0 or CAP_PERFMON)  which thread ran next
//!  of the thread  (perf_event_paranoid ≤ 2)                 when it was off its core, not who ran
//! ```
//!
//! # Why there is no polling
//! Records are read only for a verdict or a baseline. Until then they stay in memory that the
//! kernel writes.

mod names;
pub(crate) mod record;
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "opens a counter and maps its ring")]
pub(crate) mod ring;
#[cfg(not(target_os = "linux"))]
#[path = "switches/no_ring.rs"]
pub(crate) mod ring;

use super::account::{Hidden, OtherThread};
use crate::clock::{Clock, Correlation};
use crate::host::neighbours;
use names::Names;
use record::{Record, SAMPLE_BYTES, parse};
use ring::Ring;
use std::collections::{BTreeSet, VecDeque};
use std::path::Path;

/// Records kept of each thread.
const KEPT_MAX: usize = 8_192;
/// Bytes of a ring, a power of two.
const RING_BYTES: usize = 128 << 10;
/// Threads that are named.
const NAMED_MAX: usize = 512;
/// Processes without a name.
const ENDED: &str = "processes that have ended";
/// What is not visible without records of the core.
const OF_CORE: &str = "who had the core by record of each switch";
/// What is not visible without any record.
const OF_EACH: &str = "each switch of a core by record";

/// Which switches are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Every switch of its core.
    Core,
    /// Its own switches.
    Thread,
}

/// The records of one thread in a span of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Switched {
    /// Time without its core, nanoseconds.
    pub out_ns: u64,
    /// Of this: time after the core was taken while the thread wanted to run.
    pub taken_ns: u64,
    /// Number of times that the core was taken.
    pub taken: u64,
    /// Threads that ran there meanwhile (process, thread, nanoseconds), most first; empty if not
    /// visible.
    pub by: Vec<(u32, u32, u64)>,
    /// Whether who ran there was recorded.
    pub is_of_core: bool,
}

struct RecordedThread {
    tid: u32,
    scope: Scope,
    ring: Ring,
    kept: VecDeque<Record>,
    /// Records from before this moment may be missing.
    complete_from_ns: u64,
}

/// The context-switch records of an engine's hot threads.
#[derive(Default)]
pub struct Switches {
    threads: Vec<Option<RecordedThread>>,
    names: Names,
}

impl Switches {
    /// Opens what the kernel permits, for threads given as (thread, its core if pinned).
    pub fn open(threads: &[(u32, Option<u32>)], clock: &Clock) -> Switches {
        let online = crate::host::online_cores(Path::new("/"));
        let threads = threads.iter().map(|(tid, core)| RecordedThread::open(*tid, *core, clock)).collect();
        Switches { threads, names: Names::open(&online) }
    }

    /// Opens the records of thread number `index`, which is thread `tid`, anew: its core is lost
    /// (`None`), or it is pinned to it again. When a core goes offline, the kernel takes its
    /// counters away for good.
    pub fn reopen(&mut self, index: usize, tid: u32, core: Option<u32>, clock: &Clock) {
        if let Some(watched) = self.threads.get_mut(index) {
            *watched = RecordedThread::open(tid, core, clock);
        }
    }

    /// Opens the records of processes and their names anew, for a core that can be used again.
    pub fn reopen_names(&mut self) {
        self.names.reopen(&crate::host::online_cores(Path::new("/")));
    }

    /// Reads which processes began or took a name since the last call.
    pub fn learn_names(&mut self) {
        self.names.drain();
    }

    /// Reads the records of thread number `index` since the last call.
    pub fn drain(&mut self, index: usize) {
        let Some(watched) = self.threads.get_mut(index).and_then(Option::as_mut) else { return };
        let bytes = watched.ring.take();
        watched.keep(parse(&bytes));
    }

    /// The records of thread number `index` between two moments of the monotonic clock; `None` if
    /// there are none that far back.
    pub fn between(&self, index: usize, from_ns: u64, to_ns: u64) -> Option<Switched> {
        let watched = self.threads.get(index)?.as_ref()?;
        (watched.complete_from_ns <= from_ns).then(|| judged(watched.tid, watched.scope, &watched.kept, from_ns, to_ns))
    }

    /// What is not visible of these threads, and how to make it visible.
    pub fn hidden(&self) -> Option<Hidden> {
        let all = |is: fn(&RecordedThread) -> bool| self.threads.iter().all(|watched| watched.as_ref().is_some_and(is));
        if all(|watched| watched.scope == Scope::Core) {
            return None;
        }
        Some(if all(|_| true) {
            let how = "sysctl kernel.perf_event_paranoid=0, or CAP_PERFMON, and a pinned thread";
            Hidden { what: OF_CORE, how }
        } else {
            let how = "sysctl kernel.perf_event_paranoid=0 (2 for its own alone), or CAP_PERFMON; in a \
                container also a seccomp profile that permits perf_event_open";
            Hidden { what: OF_EACH, how }
        })
    }
}

impl Switches {
    /// The first `most` of those who ran there, as in [`Switched::by`], who ran most first: processes
    /// of one name and parent together. A thread that neither runs nor has a recorded name gets it
    /// from `known`.
    pub fn named(&self, by: &[(u32, u32, u64)], known: &[OtherThread], most: usize) -> Vec<OtherThread> {
        let own = std::process::id();
        let mut found: Vec<(u32, OtherThread)> = Vec::new();
        let mut counted = BTreeSet::new();
        for (pid, tid, ran_ns) in by.iter().take(NAMED_MAX) {
            let is_own = *pid == own;
            // Of other programs the process's name: each of a compiler's threads has one of its
            // own.
            let process = if is_own { None } else { self.names.of(*pid, *pid) };
            let (command, parent) = match process.or_else(|| self.names.of(*pid, *tid)) {
                Some(names::Known { command, parent }) => (command, parent),
                None => {
                    let known = known.iter().find(|known| known.pid == *pid);
                    (known.map_or_else(|| ENDED.to_owned(), |known| known.command.clone()), 0)
                }
            };
            let is_new = counted.insert(*pid);
            let alike = |(of, other): &&mut (u32, OtherThread)| {
                *of == parent && other.command == command && other.is_own == is_own && !is_own
            };
            match found.iter_mut().find(alike) {
                Some((_, other)) => {
                    other.ran_ns += ran_ns;
                    other.processes += usize::from(is_new);
                }
                None => {
                    let other = OtherThread { is_recorded: true, ..OtherThread::seen(*pid, command, *ran_ns, is_own) };
                    found.push((parent, other));
                }
            }
        }
        found.sort_by_key(|(_, other)| std::cmp::Reverse(other.ran_ns));
        found.truncate(most);
        found.into_iter().map(|(parent, other)| self.owned(parent, other, known)).collect()
    }

    /// Adds whose processes these are. One that has ended since keeps what was `known` of it.
    fn owned(&self, parent: u32, mut other: OtherThread, known: &[OtherThread]) -> OtherThread {
        if other.is_own {
            return other;
        }
        if let Some(known) = known.iter().find(|known| known.pid == other.pid && !known.whose.is_empty())
            && other.processes == known.processes
        {
            let (whose, control_group) = (known.whose.clone(), known.control_group.clone());
            return OtherThread { whose, control_group, ..other };
        }
        let (root, asked) = (Path::new("/"), [other.pid, parent]);
        if let Some(priority) = real_time(other.pid) {
            other.whose = format!(", real-time priority {priority}");
        }
        let user = asked.into_iter().filter(|pid| *pid != 0).find_map(|pid| neighbours::user(root, pid));
        let is_shown = other.processes > 1 || user != neighbours::user(root, std::process::id());
        if other.processes > 1
            && let Some(names::Known { command, .. }) = self.names.of(parent, parent)
        {
            other.whose += &format!(", children of {command} ({parent})");
        }
        if let Some(user) = user.filter(|_| is_shown) {
            other.whose += &format!(", user {user}");
        }
        other.control_group = asked.into_iter().find_map(control_group).unwrap_or_default();
        other
    }
}

/// The real-time priority of a process that runs; `None`: it has an ordinary one, or is gone.
fn real_time(pid: u32) -> Option<u32> {
    let stat = crate::files::read_lossy(format!("/proc/{pid}/stat")).ok()?;
    // Field 40 of proc_pid_stat(5); the state, field 3, follows the name's bracket.
    let priority = stat.rsplit_once(')')?.1.split_whitespace().nth(37)?.parse().ok()?;
    (priority > 0).then_some(priority)
}

/// The control group of a process, by the unified hierarchy; `None`: the root, or not visible.
fn control_group(pid: u32) -> Option<String> {
    let text = crate::files::read_lossy(format!("/proc/{pid}/cgroup")).ok()?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::"))?;
    (path != "/").then(|| path.to_owned())
}

/// That nobody knows who had a core. Advises a permission only where it would have shown that.
pub fn unknown(hidden: &[Hidden]) -> &'static str {
    if hidden.iter().any(|hidden| [OF_CORE, OF_EACH].contains(&hidden.what)) {
        "by whom is not visible (CAP_PERFMON would show each switch)"
    } else {
        "by whom is not in the records of switches"
    }
}

impl RecordedThread {
    fn open(tid: u32, core: Option<u32>, clock: &Clock) -> Option<RecordedThread> {
        if tid == 0 {
            return None;
        }
        let of_core = core.and_then(|core| Ring::of_core(core, RING_BYTES)).map(|ring| (Scope::Core, ring));
        let (scope, ring) = of_core.or_else(|| Some((Scope::Thread, Ring::of_thread(tid, RING_BYTES)?)))?;
        let complete_from_ns = Correlation::take(clock).monotonic.0;
        Some(RecordedThread { tid, scope, ring, kept: VecDeque::new(), complete_from_ns })
    }

    fn keep(&mut self, records: Vec<Record>) {
        for record in records {
            match record {
                // The lost record is older than the next one in the ring.
                Record::Lost => self.complete_from_ns = u64::MAX,
                Record::Switch { at_ns, .. } => {
                    if self.complete_from_ns == u64::MAX {
                        self.kept.clear();
                        self.complete_from_ns = at_ns;
                    }
                    self.kept.push_back(record);
                }
            }
        }
        while self.kept.len() > KEPT_MAX {
            if let Some(Record::Switch { at_ns, .. }) = self.kept.pop_front() {
                self.complete_from_ns = at_ns.saturating_add(1);
            }
        }
    }
}

/// The record from which on a span is judged: the last before it with which the thread got its core. Thousands of older
/// ones would say nothing of the span.
fn first_of(tid: u32, records: &VecDeque<Record>, from_ns: u64) -> usize {
    let is_before = |record: &Record| matches!(*record, Record::Switch { at_ns, .. } if at_ns <= from_ns);
    let has_got = |record: &Record| matches!(*record, Record::Switch { task, is_out: false, .. } if task.1 == tid);
    (0..records.partition_point(is_before)).rev().find(|at| has_got(&records[*at])).unwrap_or(0)
}

/// Sums up the records of a core or a thread between the two moments.
fn judged(tid: u32, scope: Scope, records: &VecDeque<Record>, from_ns: u64, to_ns: u64) -> Switched {
    let mut found = Switched { is_of_core: scope == Scope::Core, ..Switched::default() };
    // Since when the thread is off its core, and whether it was taken. Which thread runs there, and
    // since when.
    let mut out: Option<(u64, bool)> = None;
    let mut other: Option<(u32, u32, u64)> = None;
    let inside = |since: u64, until: u64| until.min(to_ns).saturating_sub(since.max(from_ns));
    let add = |found: &mut Switched, (pid, runs, since): (u32, u32, u64), until: u64| {
        let ns = inside(since, until);
        match found.by.iter_mut().find(|(_, known, _)| *known == runs) {
            _ if ns == 0 || runs == 0 || runs == tid => {}
            Some((_, _, sum)) => *sum += ns,
            None => found.by.push((pid, runs, ns)),
        }
    };
    let close = |found: &mut Switched, (since, is_taken): (u64, bool), until: u64| {
        let ns = inside(since, until);
        found.out_ns += ns;
        if is_taken && ns > 0 {
            found.taken_ns += ns;
            found.taken += 1;
        }
    };
    for record in records.range(first_of(tid, records, from_ns)..) {
        let Record::Switch { at_ns, task, is_out, is_taken, next } = *record else { continue };
        if at_ns > to_ns {
            break;
        }
        if is_out && task.1 == tid {
            out = Some((at_ns, is_taken));
            other = next.map(|(pid, runs)| (pid, runs, at_ns));
        } else if is_out {
            if let Some(runs) = other.take() {
                add(&mut found, runs, at_ns);
            }
            other = next.map(|(pid, runs)| (pid, runs, at_ns));
        } else if task.1 == tid {
            if let Some(runs) = other.take() {
                add(&mut found, runs, at_ns);
            }
            if let Some(out) = out.take() {
                close(&mut found, out, at_ns);
            }
        }
    }
    if let Some(out) = out {
        close(&mut found, out, to_ns);
        if let Some(runs) = other {
            add(&mut found, runs, to_ns);
        }
    }
    if scope == Scope::Thread {
        found.by.clear();
    }
    found.by.sort_by_key(|(_, _, ns)| std::cmp::Reverse(*ns));
    found
}

#[cfg(test)]
mod tests;
