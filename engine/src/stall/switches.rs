//! Each switch of a hot core, as the kernel records it: when a thread lost its core, to whom, and when it got it back.
//!
//! Owns the counters' descriptors and their mapped rings. On the watchdog's cold thread, which drains them at each baseline and at
//! each alarm; a hot thread does nothing for it. Bounds: [`RING_PAGES`] a thread in the kernel, [`KEPT_MAX`] records a thread here,
//! a record lost in between is known and makes the account incomplete. Where the kernel refuses, says what would permit it.
//!
//! ```text
//!  of the core    (perf_event_paranoid ≤ 0 or CAP_PERFMON)  who came after whom: by whom is certain
//!  of the thread  (perf_event_paranoid ≤ 2)                 when it was out and whether it was taken or gave: by whom is not visible
//! ```
//!
//! # Why no polling
//! Records are looked at when somebody asks why. Between two looks they lie in memory that the kernel writes.

mod record;
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "opens a counter and maps its ring")]
mod ring;
#[cfg(not(target_os = "linux"))]
#[path = "switches/no_ring.rs"]
mod ring;

use super::observe::{Hidden, Other};
use record::{Record, SAMPLE_BYTES, parse};
use ring::Ring;
use std::collections::VecDeque;

/// Records kept of each thread.
const KEPT_MAX: usize = 8_192;
/// Pages of a ring, a power of two.
const RING_PAGES: usize = 8;

/// What is recorded of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Every switch of its core.
    Core,
    /// Its own switches.
    Thread,
}

/// What the records say of one thread in a span of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Switched {
    /// Time it did not have its core.
    pub out_ns: u64,
    /// Of this: the core was taken from it while it wanted to run.
    pub taken_ns: u64,
    /// Times it was taken.
    pub taken: u64,
    /// Who ran there meanwhile (process, thread, nanoseconds), most first; empty where that is not visible.
    pub by: Vec<(u32, u32, u64)>,
}

struct Watched {
    tid: u32,
    scope: Scope,
    ring: Ring,
    kept: VecDeque<Record>,
    /// Records of before this moment may be missing.
    complete_from_ns: u64,
}

/// The switch records of an engine's hot threads.
#[derive(Default)]
pub struct Switches(Vec<Option<Watched>>);

impl Switches {
    /// Opens what the kernel permits for threads given as (thread, its core if it is pinned).
    #[must_use]
    pub fn open(threads: &[(u32, Option<u32>)]) -> Switches {
        let watched = |(tid, core): &(u32, Option<u32>)| {
            if *tid == 0 {
                return None;
            }
            let of_core = core.and_then(|core| Ring::of_core(core, RING_PAGES)).map(|ring| (Scope::Core, ring));
            let (scope, ring) = of_core.or_else(|| Some((Scope::Thread, Ring::of_thread(*tid, RING_PAGES)?)))?;
            Some(Watched { tid: *tid, scope, ring, kept: VecDeque::new(), complete_from_ns: 0 })
        };
        Switches(threads.iter().map(watched).collect())
    }

    /// Takes in what was recorded of thread number `index` since the last time.
    pub fn drain(&mut self, index: usize) {
        let Some(watched) = self.0.get_mut(index).and_then(Option::as_mut) else { return };
        let bytes = watched.ring.take();
        watched.keep(parse(&bytes));
    }

    /// What the records say of thread number `index` between two moments of the monotonic clock; `None`: they do not reach back
    /// so far, or there are none.
    #[must_use]
    pub fn between(&self, index: usize, from_ns: u64, to_ns: u64) -> Option<Switched> {
        let watched = self.0.get(index)?.as_ref()?;
        (watched.complete_from_ns <= from_ns).then(|| judged(watched.tid, watched.scope, &watched.kept, from_ns, to_ns))
    }

    /// What cannot be seen of the threads here, and what would show it.
    #[must_use]
    pub fn hidden(&self) -> Option<Hidden> {
        let all = |is: fn(&Watched) -> bool| self.0.iter().all(|watched| watched.as_ref().is_some_and(is));
        if all(|watched| watched.scope == Scope::Core) {
            return None;
        }
        Some(if all(|_| true) {
            let how = "sysctl kernel.perf_event_paranoid=0, or CAP_PERFMON, and a pinned thread";
            Hidden { what: "who had the core by record of each switch", how }
        } else {
            let how = "sysctl kernel.perf_event_paranoid=0 (2 for its own alone), or CAP_PERFMON; in a container also a seccomp profile that permits perf_event_open";
            Hidden { what: "each switch of a core by record", how }
        })
    }
}

impl Watched {
    fn keep(&mut self, records: Vec<Record>) {
        for record in records {
            match record {
                // What is missing lies before the next record that came through.
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

/// Goes through the records of a core, or of a thread, and adds up what lies between the two moments.
fn judged(tid: u32, scope: Scope, records: &VecDeque<Record>, from_ns: u64, to_ns: u64) -> Switched {
    let mut found = Switched::default();
    // Since when it is out, and whether it was taken; who runs there since when.
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
    for record in records {
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

/// Those who ran there, by their names; one that is gone by the name that it had among `known`.
#[must_use]
pub fn named(switched: &Switched, known: &[Other]) -> Vec<Other> {
    let own = std::process::id();
    let name = |pid: u32, tid: u32| match crate::files::read_lossy(format!("/proc/{pid}/task/{tid}/comm")) {
        Ok(name) => name.trim().to_owned(),
        Err(_) => {
            let known = known.iter().find(|known| known.pid == pid);
            known.map_or_else(|| "a thread that is gone".to_owned(), |known| known.command.clone())
        }
    };
    let other = |(pid, tid, ran_ns): &(u32, u32, u64)| Other {
        pid: *pid,
        command: name(*pid, *tid),
        ran_ns: *ran_ns,
        is_own: *pid == own,
    };
    switched.by.iter().take(4).map(other).collect()
}

#[cfg(test)]
mod tests;
