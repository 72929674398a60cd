//! How much memory is left before the kernel ends processes: of the machine, and of each control
//! group around this process that has a limit.
//!
//! Cold. Reads at most three small files for each of at most 33 groups. What cannot be read
//! limits nothing. Swap is not counted: a hot thread whose pages are swapped out misses its deadlines
//! long before memory ends.

use std::path::Path;

use super::machine::{ancestors, control_groups, memory_bytes};
use super::read_text;

/// A control group of version 1 without a limit shows a number from here on.
const UNLIMITED: u64 = 1 << 62;

/// Memory that can still be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryLeft {
    /// Bytes.
    pub bytes: u64,
    /// The control group whose limit this is; `None`: the machine.
    pub group: Option<String>,
}

/// The least that is left, of the machine whose files are under `root` and of this process's control
/// groups; `None` if nothing is visible.
pub fn memory_left(root: &Path) -> Option<MemoryLeft> {
    let machine = memory_bytes(root, "MemAvailable").map(|bytes| MemoryLeft { bytes, group: None });
    of_groups(root).into_iter().chain(machine).min_by_key(|left| left.bytes)
}

/// MiB of [`memory_left`].
pub fn mib_left(root: &Path) -> Option<u64> {
    memory_left(root).map(|left| left.bytes >> 20)
}

fn of_groups(root: &Path) -> Vec<MemoryLeft> {
    let mounted = root.join("sys/fs/cgroup");
    let mut found = Vec::new();
    for (controllers, group) in &control_groups(root, "self") {
        let (mount, names) = match controllers.as_str() {
            "" => (mounted.clone(), ["memory.max", "memory.current", "inactive_file"]),
            "memory" => {
                let names = ["memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"];
                (mounted.join("memory"), names)
            }
            _ => continue,
        };
        for directory in ancestors(&mount, group) {
            if let Some(bytes) = of_group(&directory, names) {
                let name = directory.strip_prefix(&mount).unwrap_or(&directory).display();
                found.push(MemoryLeft { bytes, group: Some(format!("/{name}")) });
            }
        }
    }
    found
}

/// Limit less use; pages of files that were not used lately count as free.
fn of_group(directory: &Path, [limit, used, inactive]: [&str; 3]) -> Option<u64> {
    let number = |name: &str| read_text(&directory.join(name))?.trim().parse::<u64>().ok();
    let limit = number(limit).filter(|limit| *limit < UNLIMITED)?;
    let stat = read_text(&directory.join("memory.stat")).unwrap_or_default();
    let inactive = stat.lines().find_map(|line| line.strip_prefix(inactive)?.trim().parse::<u64>().ok());
    Some((limit + inactive.unwrap_or(0)).saturating_sub(number(used)?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]

    use super::{MemoryLeft, memory_left, mib_left};
    use crate::host::trees;

    #[test]
    fn the_least_of_machine_and_groups_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| trees::write(dir.path(), path, text);
        assert_eq!(memory_left(dir.path()), None);
        write("proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:    4000 kB\n");
        let machine = MemoryLeft { bytes: 4000 << 10, group: None };
        assert_eq!((memory_left(dir.path()), mib_left(dir.path())), (Some(machine.clone()), Some(3)));
        write("proc/self/cgroup", "4:memory:/lab/a\n0::/lab/b\n");
        let first = "sys/fs/cgroup/memory/lab/a/memory";
        write(&format!("{first}.limit_in_bytes"), "9223372036854771712\n");
        write(&format!("{first}.usage_in_bytes"), "1000\n");
        assert_eq!(memory_left(dir.path()), Some(machine.clone()), "a group without a limit");
        write("sys/fs/cgroup/memory/lab/memory.limit_in_bytes", "100000\n");
        write("sys/fs/cgroup/memory/lab/memory.usage_in_bytes", "90000\n");
        write("sys/fs/cgroup/memory/lab/memory.stat", "inactive_file 1\ntotal_inactive_file 20000\n");
        assert_eq!(memory_left(dir.path()), Some(MemoryLeft { bytes: 30_000, group: Some("/lab".into()) }));
        write("sys/fs/cgroup/lab/b/memory.max", "50000\n");
        write("sys/fs/cgroup/lab/b/memory.current", "60000\n");
        assert_eq!(memory_left(dir.path()), Some(MemoryLeft { bytes: 0, group: Some("/lab/b".into()) }));
        write("sys/fs/cgroup/lab/b/memory.max", "max\n");
        assert_eq!(memory_left(dir.path()), Some(MemoryLeft { bytes: 30_000, group: Some("/lab".into()) }));
    }
}
