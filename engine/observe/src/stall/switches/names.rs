//! Names of processes that are gone by the time a verdict is made: from the kernel's records of
//! forks and new names.
//!
//! Owns one counter a core, whose records the watchdog's cold thread takes at each baseline and
//! each alarm. Bounded by [`KNOWN_MAX`] threads, the oldest of which goes first, and by
//! [`RING_BYTES`] a core in the kernel. Without permission it knows nothing, and names come from
//! `/proc` alone.

use super::record::{TaskRecord, parse_tasks};
use super::ring::Ring;
use std::collections::{BTreeMap, VecDeque};

/// Threads that are remembered.
const KNOWN_MAX: usize = 8_192;
/// Bytes of a ring, a power of two: a compiler starts hundreds of processes a second.
const RING_BYTES: usize = 128 << 10;

/// A thread that ran at some time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) command: String,
    /// The process that started its process; 0: not known.
    pub(super) parent: u32,
}

/// The threads that began or took a name while the watchdog ran.
#[derive(Default)]
pub(super) struct Names {
    rings: Vec<Ring>,
    known: BTreeMap<u32, Known>,
    /// Their numbers, oldest first.
    order: VecDeque<u32>,
}

impl Names {
    /// Opens a counter for each of `cores`, as far as the kernel permits.
    pub(super) fn open(cores: &[u32]) -> Names {
        let mut names = Names::default();
        names.reopen(cores);
        names
    }

    /// Opens a counter anew for each of `cores`: a core that was offline has lost its own. Keeps what is
    /// known.
    pub(super) fn reopen(&mut self, cores: &[u32]) {
        self.drain();
        self.rings = cores.iter().filter_map(|core| Ring::of_tasks(*core, RING_BYTES)).collect();
        if !self.rings.is_empty() {
            // Those that run now may be gone when they are asked for.
            running().for_each(|(pid, known)| self.remember(pid, known));
        }
    }

    /// Reads the records since the last call.
    pub(super) fn drain(&mut self) {
        let records = self.rings.iter_mut().flat_map(|ring| parse_tasks(&ring.take())).collect();
        self.learn_all(records);
    }

    /// Learns what records of all cores say.
    pub(super) fn learn_all(&mut self, mut records: Vec<TaskRecord>) {
        // A process may start on one core and take its name on another.
        records.sort_by_key(TaskRecord::at_ns);
        records.into_iter().for_each(|record| self.learn(record));
    }

    fn learn(&mut self, record: TaskRecord) {
        match record {
            TaskRecord::Fork { task: (pid, tid), parent: (parent_pid, parent_tid), .. } => {
                let by = self.known.get(&parent_tid).cloned();
                let by = by.unwrap_or_else(|| Known { command: command(parent_pid, parent_tid), parent: 0 });
                // A thread of the same process has its process's parent.
                let parent = if pid == parent_pid { by.parent } else { parent_pid };
                self.remember(tid, Known { command: by.command, parent });
            }
            TaskRecord::Name { task: (_, tid), command, .. } => {
                let parent = self.known.get(&tid).map_or(0, |known| known.parent);
                self.remember(tid, Known { command, parent });
            }
        }
    }

    fn remember(&mut self, tid: u32, known: Known) {
        if self.known.insert(tid, known).is_none() {
            self.order.push_back(tid);
        }
        if self.order.len() > KNOWN_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    /// What is known of thread `tid` of process `pid`; from `/proc` if no record names it and it
    /// runs.
    pub(super) fn of(&self, pid: u32, tid: u32) -> Option<Known> {
        self.known.get(&tid).cloned().or_else(|| {
            let command = command(pid, tid);
            (!command.is_empty()).then_some(Known { command, parent: 0 })
        })
    }
}

/// The processes that run now.
fn running() -> impl Iterator<Item = (u32, Known)> {
    let of = |entry: std::fs::DirEntry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = crate::files::read_lossy(entry.path().join("stat")).ok()?;
        // The name stands in brackets and may hold any; state and parent follow.
        let (name, rest) = stat.rsplit_once(')')?;
        let command = name.split_once('(')?.1.to_owned();
        let parent = rest.split_whitespace().nth(1)?.parse().ok()?;
        Some((pid, Known { command, parent }))
    };
    std::fs::read_dir("/proc").into_iter().flatten().flatten().take(KNOWN_MAX).filter_map(of)
}

/// The name of a thread that runs; empty: it does not.
fn command(pid: u32, tid: u32) -> String {
    let name = crate::files::read_lossy(format!("/proc/{pid}/task/{tid}/comm")).unwrap_or_default();
    name.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::{KNOWN_MAX, Known, Names};
    use crate::stall::switches::record::TaskRecord;

    /// Numbers above those that the kernel gives: no such process runs.
    const SHELL: u32 = 5_000_000;
    const CHILD: u32 = 5_000_001;

    fn fork(at_ns: u64, parent: (u32, u32), task: (u32, u32)) -> TaskRecord {
        TaskRecord::Fork { at_ns, task, parent }
    }

    fn name(at_ns: u64, tid: u32, command: &str) -> TaskRecord {
        TaskRecord::Name { at_ns, task: (tid, tid), command: command.to_owned() }
    }

    #[test]
    fn a_process_that_is_gone_has_the_name_that_it_took_and_before_that_its_parents() {
        let mut names = Names::default();
        names.learn(name(1, SHELL, "sh"));
        names.learn(fork(2, (SHELL, SHELL), (CHILD, CHILD)));
        let known = |command: &str, parent| Some(Known { command: command.to_owned(), parent });
        assert_eq!(names.of(CHILD, CHILD), known("sh", SHELL));
        names.learn(name(3, CHILD, "gzip"));
        names.learn(fork(4, (CHILD, CHILD), (CHILD, CHILD + 1)));
        assert_eq!(names.of(CHILD, CHILD), known("gzip", SHELL));
        assert_eq!(names.of(CHILD, CHILD + 1), known("gzip", SHELL), "a thread has its process's parent");
        assert_eq!(names.of(CHILD + 7, CHILD + 7), None);
        let own = std::process::id();
        assert!(names.of(own, own).is_some_and(|known| !known.command.is_empty()));
        let parent = super::running().find(|(pid, _)| *pid == own).map(|(_, known)| known.parent);
        assert_eq!(parent, Some(std::os::unix::process::parent_id()));
    }

    #[test]
    fn the_oldest_are_forgotten_first() {
        let mut names = Names::default();
        let last = SHELL + KNOWN_MAX as u32;
        (SHELL..=last).for_each(|tid| names.learn(name(1, tid, "cc")));
        assert_eq!((names.known.len(), names.order.len()), (KNOWN_MAX, KNOWN_MAX));
        assert!(names.of(SHELL, SHELL).is_none() && names.of(last, last).is_some());
        names.reopen(&[]);
        assert!(names.of(last, last).is_some());
    }
}
