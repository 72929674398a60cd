//! Cores on which this process can run now: online, and in the process's cpuset.
//!
//! Cold. Reads at most 34 small files a call: the online cores, the process's groups, and a list for
//! each group around it. What cannot be read is not visible and takes no core away. A cpuset is a
//! control group's list of cores; whoever administers the machine may change it, or move the process
//! to another one, at any time.

use std::path::Path;

use super::machine::{ancestors, control_groups};
use super::{parse_cpu_list, read_text, topology};

/// The cores on which the process can run at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsableCores {
    /// Online cores, ascending; empty if they are not visible.
    online: Vec<u32>,
    /// Cores of the process's cpuset, ascending; empty if they are not visible.
    cpuset: Vec<u32>,
}

/// Why a core cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoreLoss {
    /// The core is offline.
    Offline,
    /// The core is not in the process's cpuset.
    OutsideCpuset,
}

impl UsableCores {
    /// Reads those of this process from the machine's files under `root`.
    pub fn read(root: &Path) -> UsableCores {
        UsableCores::of(root, "self")
    }

    /// As [`UsableCores::read`], of `process`: `self` or its number.
    pub fn of(root: &Path, process: &str) -> UsableCores {
        UsableCores { online: topology::online(root), cpuset: cpuset(root, process).unwrap_or_default() }
    }

    /// Why `core` cannot be used; `None` if it can.
    pub fn loss(&self, core: u32) -> Option<CoreLoss> {
        let is_missing = |cores: &[u32]| !cores.is_empty() && !cores.contains(&core);
        if is_missing(&self.online) {
            return Some(CoreLoss::Offline);
        }
        is_missing(&self.cpuset).then_some(CoreLoss::OutsideCpuset)
    }

    /// Whether `cores` are several and have every core that can be used: the mask that the kernel
    /// gives to a thread whose own cores cannot be used.
    pub fn are_all_in(&self, cores: &[u32]) -> bool {
        let mut usable = self.online.iter().filter(|core| self.loss(**core).is_none());
        cores.len() > 1 && !self.online.is_empty() && usable.all(|core| cores.contains(core))
    }

    /// Whether a core can be used that could not be used at the time of `before`.
    pub fn has_more_than(&self, before: &UsableCores) -> bool {
        let mut cores = self.online.iter().chain(&self.cpuset);
        cores.any(|&core| self.loss(core).is_none() && before.loss(core).is_some())
    }
}

/// The cores that the process's cpuset grants, of either version of control groups: of the innermost
/// group that has such a list.
fn cpuset(root: &Path, process: &str) -> Option<Vec<u32>> {
    let mounted = root.join("sys/fs/cgroup");
    control_groups(root, process).iter().find_map(|(controllers, group)| {
        let (mount, list) = match controllers.as_str() {
            "" => (mounted.clone(), "cpuset.cpus.effective"),
            "cpuset" => (mounted.join("cpuset"), "cpuset.effective_cpus"),
            _ => return None,
        };
        let text = ancestors(&mount, group).into_iter().find_map(|group| read_text(&group.join(list)))?;
        parse_cpu_list(text.trim()).filter(|cores| !cores.is_empty())
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]

    use super::{CoreLoss, UsableCores};
    use crate::host::trees;

    #[test]
    fn a_core_is_lost_when_it_is_offline_or_outside_the_cpuset_of_either_version() {
        for (groups, list) in [
            ("3:cpuset:/lab/a\n0::/\n", "sys/fs/cgroup/cpuset/lab/a/cpuset.effective_cpus"),
            ("0::/lab/a\n", "sys/fs/cgroup/lab/a/cpuset.cpus.effective"),
            // A container sees its own group as the root of the mount.
            ("0::/somewhere/else\n", "sys/fs/cgroup/cpuset.cpus.effective"),
        ] {
            let dir = tempfile::tempdir().unwrap();
            trees::write(dir.path(), "sys/devices/system/cpu/online", "0-3");
            let all = UsableCores::read(dir.path());
            assert_eq!((all.loss(3), all.loss(4)), (None, Some(CoreLoss::Offline)));
            trees::write(dir.path(), "proc/self/cgroup", groups);
            trees::write(dir.path(), list, "0-1,3\n");
            let three = UsableCores::read(dir.path());
            assert_eq!((three.loss(3), three.loss(2)), (None, Some(CoreLoss::OutsideCpuset)), "{groups}");
            trees::write(dir.path(), "sys/devices/system/cpu/online", "0-2");
            let two = UsableCores::read(dir.path());
            assert_eq!(two.loss(3), Some(CoreLoss::Offline));
            assert!(all.has_more_than(&three) && three.has_more_than(&two));
            assert!(!three.has_more_than(&all) && !two.has_more_than(&two));
            assert!(three.are_all_in(&[0, 1, 3]) && two.are_all_in(&[0, 1, 3]) && !all.are_all_in(&[0, 1, 3]));
            trees::write(dir.path(), "sys/devices/system/cpu/online", "0");
            assert!(!UsableCores::read(dir.path()).are_all_in(&[0]));
        }
    }

    #[test]
    fn what_is_not_visible_takes_no_core_away() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(UsableCores::read(dir.path()), UsableCores::default());
        trees::write(dir.path(), "proc/self/cgroup", "3:cpuset:/\nbroken\n0::\n");
        trees::write(dir.path(), "sys/fs/cgroup/cpuset/cpuset.effective_cpus", "\n");
        let nothing = UsableCores::read(dir.path());
        assert_eq!((nothing.loss(0), nothing.has_more_than(&nothing)), (None, false));
        assert!(!nothing.are_all_in(&[0, 1]));
    }
}
