//! A control group of a drill, of either version.
//!
//! On the drill's thread. Owns the group. When it is dropped, this process returns to where it was, if
//! it has entered the group, and the group is removed.

use super::DrillError;
use std::fs;
use std::path::{Path, PathBuf};

/// Names of a file of a group: in version 1, and in version 2.
pub(super) type Names = (&'static str, &'static str);

/// Microseconds of each [`PERIOD_US`] that a group with a quota may use.
const SHARE_US: u32 = 20_000;
/// The quota's period, microseconds.
const PERIOD_US: u32 = 100_000;

pub(super) struct ControlGroup {
    directory: PathBuf,
    /// The group that this process is in otherwise.
    around: PathBuf,
    is_second: bool,
}

impl ControlGroup {
    /// Makes a group of `controller`, which gives it the file `limit`, without entering it: in version 1
    /// within this process's own group, in version 2, where only the root may have both, below the root.
    pub(super) fn make(controller: &str, limit: Names) -> Result<ControlGroup, DrillError> {
        let refused = |why: &dyn std::fmt::Display| {
            DrillError::NotPermitted(format!(
                "cannot make a control group for {controller}: {why}; run as root, or with a delegated group"
            ))
        };
        let text = fs::read_to_string("/proc/self/cgroup").map_err(|error| refused(&error))?;
        let groups = || text.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
        let mounted = Path::new("/sys/fs/cgroup");
        let place = |(mount, path): (&str, &str)| mounted.join(mount).join(path.trim_start_matches('/'));
        let first = groups().find(|(controllers, _)| controllers.split(',').any(|found| found == controller));
        let around = first.or_else(|| groups().find(|(controllers, _)| controllers.is_empty())).map(place);
        let around = around.ok_or_else(|| refused(&"this process is in none"))?;
        let (is_second, name) = (first.is_none(), format!("pinwheel-drill-{}", std::process::id()));
        let directory = if is_second { mounted.join(name) } else { around.join(name) };
        fs::create_dir(&directory).map_err(|error| refused(&error))?;
        let group = ControlGroup { directory, around, is_second };
        let has_limit = group.file(limit).exists();
        has_limit.then_some(group).ok_or_else(|| refused(&"the groups around it do not pass the controller on"))
    }

    fn file(&self, (first, second): Names) -> PathBuf {
        self.directory.join(if self.is_second { second } else { first })
    }

    /// Limits its processes to a fifth of a core.
    pub(super) fn set_quota(&self) -> Result<(), DrillError> {
        if self.is_second {
            return self.set(("", "cpu.max"), &format!("{SHARE_US} {PERIOD_US}"));
        }
        self.set(("cpu.cfs_period_us", ""), &PERIOD_US.to_string())?;
        self.set(("cpu.cfs_quota_us", ""), &SHARE_US.to_string())
    }

    /// Sets a limit: by the name of its file in version 1, and in version 2.
    pub(super) fn set(&self, names: Names, value: &str) -> Result<(), DrillError> {
        let file = self.file(names);
        fs::write(&file, value).map_err(|error| DrillError::NotPermitted(format!("{}: {error}", file.display())))
    }

    /// Contents of a file of the group.
    pub(super) fn read(&self, names: Names) -> String {
        fs::read_to_string(self.file(names)).unwrap_or_default().trim().to_owned()
    }

    /// Contents of a file of the group around it.
    pub(super) fn read_around(&self, names: Names) -> String {
        let around = self.directory.parent().unwrap_or(&self.around);
        let file = around.join(if self.is_second { names.1 } else { names.0 });
        fs::read_to_string(file).unwrap_or_default().trim().to_owned()
    }

    /// Moves process `pid` into the group.
    pub(super) fn take(&self, pid: u32) -> Result<(), DrillError> {
        let moved = fs::write(self.directory.join("cgroup.procs"), pid.to_string());
        moved.map_err(|error| DrillError::NotPermitted(format!("cannot enter a control group: {error}")))
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        let _ = fs::write(self.around.join("cgroup.procs"), std::process::id().to_string());
        // Other processes of it have ended by now; a group that is still in use is left to the system.
        let _ = fs::remove_dir(&self.directory);
    }
}
