//! NUMA nodes and SMT siblings of cores, from the system's files.
//!
//! Cold, before start; bounded by [`CORES_MAX`] a list. Reads `sys/devices/system/cpu` under a
//! root, so trees of other machines can be read. Never fails: a core without files is on node 0 and
//! has no siblings.

use std::path::Path;

use super::{CORES_MAX, CoreFacts, read_text};

pub(super) fn core(root: &Path, core: u32) -> CoreFacts {
    let dir = root.join(format!("sys/devices/system/cpu/cpu{core}"));
    // `core_cpus_list` is the newer name of the same list.
    let list = ["topology/thread_siblings_list", "topology/core_cpus_list"];
    let text = list.iter().find_map(|name| read_text(&dir.join(name))).unwrap_or_default();
    let mut siblings = parse_cpu_list(&text).unwrap_or_default();
    siblings.retain(|&sibling| sibling != core);
    let node = node(&dir).or_else(|| listed_node(root, core));
    CoreFacts { core, node: node.unwrap_or(0), siblings }
}

/// The online cores, ascending; from the cores' directories if the system has no list.
pub(super) fn online(root: &Path) -> Vec<u32> {
    let dir = root.join("sys/devices/system/cpu");
    let listed = read_text(&dir.join("online")).and_then(|text| parse_cpu_list(&text));
    let mut cores = listed.filter(|cores| !cores.is_empty()).unwrap_or_else(|| numbered(&dir, "cpu"));
    cores.retain(|&core| core < CORES_MAX);
    cores
}

/// The numbers of the entries of `dir` that are called `prefix` and a number, ascending.
fn numbered(dir: &Path, prefix: &str) -> Vec<u32> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok);
    let number = |entry: std::fs::DirEntry| entry.file_name().to_str()?.strip_prefix(prefix)?.parse().ok();
    let mut numbers: Vec<u32> = entries.filter_map(number).collect();
    numbers.sort_unstable();
    numbers
}

/// The node that lists a core. For copied trees that have lost their links.
fn listed_node(root: &Path, core: u32) -> Option<u32> {
    let dir = root.join("sys/devices/system/node");
    let cores = |node: &u32| parse_cpu_list(&read_text(&dir.join(format!("node{node}/cpulist")))?);
    numbered(&dir, "node").into_iter().find(|node| cores(node).is_some_and(|cores| cores.contains(&core)))
}

/// Number of nodes, with those that have memory alone; at least 1.
pub(super) fn nodes(root: &Path) -> usize {
    numbered(&root.join("sys/devices/system/node"), "node").len().max(1)
}

/// NVIDIA display or 3D controllers.
pub(super) struct Gpus {
    /// Their nodes, ascending.
    pub(super) nodes: Vec<u32>,
    pub(super) count: u32,
}

/// The GPUs on the bus; bounded by its devices.
pub(super) fn gpus(root: &Path) -> Gpus {
    let entries = std::fs::read_dir(root.join("sys/bus/pci/devices")).into_iter().flatten().filter_map(Result::ok);
    let node = |entry: std::fs::DirEntry| {
        let word = |name: &str| Some(read_text(&entry.path().join(name))?.trim().to_owned());
        let is_gpu = word("vendor")? == "0x10de" && word("class")?.starts_with("0x03");
        // A device without a node shows -1.
        is_gpu.then(|| word("numa_node").and_then(|node| node.parse().ok()))
    };
    let places: Vec<Option<u32>> = entries.filter_map(node).collect();
    let mut nodes: Vec<u32> = places.iter().copied().flatten().collect();
    nodes.sort_unstable();
    nodes.dedup();
    Gpus { nodes, count: u32::try_from(places.len()).unwrap_or(u32::MAX) }
}

/// The node by the link in a core's directory.
fn node(dir: &Path) -> Option<u32> {
    let entries = std::fs::read_dir(dir).ok()?.filter_map(Result::ok);
    entries.filter_map(|entry| entry.file_name().to_str()?.strip_prefix("node")?.parse().ok()).min()
}

/// Parses a list of cores such as `0-3,8,10-11`; ascending, each once. `None` if it is malformed or
/// has numbers of [`CORES_MAX`] or more. An empty text is an empty list.
pub fn parse_cpu_list(text: &str) -> Option<Vec<u32>> {
    let mut cores = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first > last || last >= CORES_MAX {
            return None;
        }
        cores.extend(first..=last);
        // Overlapping parts repeat cores. Removing them here bounds the memory that a malicious
        // list takes.
        cores.sort_unstable();
        cores.dedup();
    }
    Some(cores)
}
