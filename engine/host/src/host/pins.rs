//! Threads of other programs that are bound to single cores.
//!
//! Reads `/proc` on a cold thread. Bounded by [`TASKS_MAX`] threads. Processes that are hidden from
//! this user are not in the list.
//!
//! # Why pinned threads and not load
//! The system moves an unpinned thread out of a pinned thread's way. Two threads that are pinned to
//! the same core both suffer. So only a pinned thread makes a core *in use* for a plan, and only
//! while it runs.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use crate::board::image::{self, Image};
use crate::board::{self, OwnerState};

use super::machine::{allowed, status_field, user_of};
use super::{parse_cpu_list, read_text, topology};

/// Most threads that are examined.
pub const TASKS_MAX: usize = 65_536;

/// One thread that may run on only one physical core.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pin {
    /// Its process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// The thread's name.
    pub name: String,
    /// Its user.
    pub user: Option<String>,
    /// The cores that it may use, ascending.
    pub cores: Vec<u32>,
    /// Whether it was running or ready when it was read.
    pub running: bool,
}

/// The pinned threads under `root`, except those of process `own` and of the kernel, sorted by
/// process and thread.
pub fn pins(root: &Path, own: u32) -> Vec<Pin> {
    // A mask that every process has pins nobody: a container or a machine with one core.
    let common = allowed(root).unwrap_or_else(|| topology::online(root));
    let mut found = Vec::new();
    let mut looked_at = 0;
    for pid in numbers(&root.join("proc")).into_iter().filter(|&pid| pid != own) {
        let dir = root.join(format!("proc/{pid}"));
        if is_kernel(&dir) {
            continue;
        }
        for tid in numbers(&dir.join("task")) {
            looked_at += 1;
            if looked_at > TASKS_MAX {
                return found;
            }
            let Some(status) = read_text(&dir.join(format!("task/{tid}/status"))) else { continue };
            let Some(cores) = status_field(&status, "Cpus_allowed_list").and_then(parse_cpu_list) else { continue };
            let (Some(&first), false) = (cores.first(), cores == common) else { continue };
            if cores.len() == 1 || is_one_core(root, first, &cores) {
                let name = status_field(&status, "Name").unwrap_or_default().to_owned();
                let running = status_field(&status, "State").is_some_and(|state| state.starts_with('R'));
                found.push(Pin { pid, tid, name, user: user_of(root, &pid.to_string()), cores, running });
            }
        }
    }
    found
}

/// Those of `pins` that keep their cores from a plan: threads that run, except cold threads of engines. `hot` has the
/// hot threads of each engine's process.
///
/// An engine with one cold core pins all its cold threads there. They make way for others, and whether one of them
/// runs at the moment of a look is chance: the next engine's plan must not depend on it.
pub(super) fn in_use(pins: Vec<Pin>, hot: &BTreeMap<u32, Vec<u32>>) -> impl Iterator<Item = Pin> {
    pins.into_iter().filter(|pin| pin.running && hot.get(&pin.pid).is_none_or(|tids| tids.contains(&pin.tid)))
}

/// The hot threads of the engines that have a board in `directory`, by process.
pub(super) fn hot_threads(directory: &Path) -> BTreeMap<u32, Vec<u32>> {
    let mut hot: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for file in image::files(directory) {
        let Ok((image, OwnerState::Alive)) = Image::open(&file.path) else { continue };
        let Ok(board) = image.board() else { continue };
        let tid = |thread| u32::try_from(board::get(&board.thread(thread).tid)).ok();
        hot.entry(image.pid()).or_default().extend((0..board.shape().threads as usize).filter_map(tid));
    }
    hot
}

/// Whether all of `cores` are SMT threads of one physical core, that of `first`.
fn is_one_core(root: &Path, first: u32, cores: &[u32]) -> bool {
    let siblings = topology::core(root, first).siblings;
    cores.iter().all(|core| *core == first || siblings.contains(core))
}

/// Whether it is one of the kernel's own threads, some of which are pinned to every core.
fn is_kernel(dir: &Path) -> bool {
    let status = read_text(&dir.join("status")).unwrap_or_default();
    status_field(&status, "PPid") == Some("2") || status_field(&status, "Kthread") == Some("1")
}

pub(super) fn numbers(dir: &Path) -> Vec<u32> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok);
    let mut numbers: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Pin, hot_threads, in_use, pins};
    use crate::board::{Board, Place, Shape, set};
    use crate::host::trees::{machine, write};
    use std::path::Path;

    fn task(root: &Path, pid: u32, tid: u32, ppid: u32, cores: &str, state: &str) {
        let status = format!("Name:\tt{tid}\nState:\t{state}\nPPid:\t{ppid}\nUid:\t0\nCpus_allowed_list:\t{cores}\n");
        write(root, &format!("proc/{pid}/task/{tid}/status"), &status);
        if pid == tid {
            write(root, &format!("proc/{pid}/status"), &status);
        }
    }

    #[test]
    fn threads_on_one_physical_core_are_pins_and_others_are_not() {
        let dir = machine("desktop8");
        let root = dir.path();
        task(root, 10, 10, 1, "0-15", "S (sleeping)");
        task(root, 10, 11, 1, "4", "R (running)");
        task(root, 10, 12, 1, "5,13", "S (sleeping)");
        task(root, 10, 13, 1, "5,6", "R (running)");
        task(root, 20, 20, 2, "3", "R (running)");
        task(root, 30, 30, 1, "3", "R (running)");
        let found: Vec<(u32, Vec<u32>, bool)> =
            pins(root, 30).into_iter().map(|pin| (pin.tid, pin.cores, pin.running)).collect();
        assert_eq!(found, [(11, vec![4], true), (12, vec![5, 13], false)]);
        assert_eq!(pins(root, 30)[0].name, "t11");
    }

    #[test]
    fn running_pins_are_in_use_except_those_of_an_engines_cold_threads() {
        let folder = tempfile::tempdir().unwrap();
        let shape = Shape { threads: 2, silos: 1, slots: 8, workers: 1, decoders: 1, streams: 1 };
        let board = Board::create(shape, Place::Shared(folder.path().into())).unwrap();
        let pid = std::process::id();
        set(&board.thread(0).tid, 71);
        set(&board.thread(1).tid, 72);
        assert!(hot_threads(folder.path()).is_empty(), "its board is not complete yet");
        board.publish();
        let hot = hot_threads(folder.path());
        let pin = |pid, tid, running| Pin { pid, tid, name: "x".into(), user: None, cores: vec![0], running };
        let pins = vec![pin(pid, 71, true), pin(pid, 72, false), pin(pid, 73, true), pin(pid + 1, 73, true)];
        let found: Vec<(u32, u32)> = in_use(pins, &hot).map(|pin| (pin.pid, pin.tid)).collect();
        assert_eq!(found, [(pid, 71), (pid + 1, 73)]);
        drop(board);
        assert!(hot_threads(folder.path()).is_empty());
    }

    #[test]
    fn an_affinity_mask_of_all_cores_counts_as_unpinned() {
        let dir = machine("container4");
        write(dir.path(), "proc/self/status", "Cpus_allowed_list:\t8\n");
        task(dir.path(), 10, 10, 1, "8", "R (running)");
        task(dir.path(), 11, 11, 1, "9", "R (running)");
        assert_eq!(pins(dir.path(), 0).iter().map(|pin| pin.pid).collect::<Vec<_>>(), [11]);
    }
}
