//! Nodes and SMT siblings of cores, from the system's own tree.
//!
//! Cold, before start; bounded by [`CORES_MAX`] a list. Reads `sys/devices/system/cpu` under a root, so that trees of
//! other machines can be read. Never fails: a core without a tree is on node 0 and has no siblings.

use std::path::Path;

use super::{CORES_MAX, CoreFacts, read_text};

/// The facts of one core.
pub(super) fn core(root: &Path, core: u32) -> CoreFacts {
    let dir = root.join(format!("sys/devices/system/cpu/cpu{core}"));
    // `core_cpus_list` is the newer name of the same list.
    let list = ["topology/thread_siblings_list", "topology/core_cpus_list"];
    let text = list.iter().find_map(|name| read_text(&dir.join(name))).unwrap_or_default();
    let mut siblings = parse_cpu_list(&text).unwrap_or_default();
    siblings.retain(|&sibling| sibling != core);
    CoreFacts { core, node: node(&dir).unwrap_or(0), siblings }
}

/// The node whose link lies in a core's directory.
fn node(dir: &Path) -> Option<u32> {
    let entries = std::fs::read_dir(dir).ok()?.filter_map(Result::ok);
    entries.filter_map(|entry| entry.file_name().to_str()?.strip_prefix("node")?.parse().ok()).min()
}

/// Reads the system's list of cores, as in `0-3,8,10-11`; ascending, each once. `None` for anything else, and for
/// numbers of [`CORES_MAX`] and above. The empty list is empty.
#[must_use]
pub fn parse_cpu_list(text: &str) -> Option<Vec<u32>> {
    let mut cores = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first > last || last >= CORES_MAX {
            return None;
        }
        cores.extend(first..=last);
        // Overlapping parts repeat cores; dropping them here keeps a hostile list from growing.
        cores.sort_unstable();
        cores.dedup();
    }
    Some(cores)
}
