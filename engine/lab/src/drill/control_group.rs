//! A control group that this process enters for a drill, of either version.
//!
//! On the drill's thread. Owns the group. When it is dropped, the process returns to where it was
//! and the group is removed.

use super::DrillError;
use std::fs;
use std::path::PathBuf;

/// The entered group.
pub(super) struct ControlGroup {
    directory: PathBuf,
    around: PathBuf,
    is_second: bool,
}

impl ControlGroup {
    /// Makes a group under the one that this process is in for `controller`, without entering it.
    pub(super) fn make(controller: &str) -> Result<ControlGroup, DrillError> {
        let refused = |why: &dyn std::fmt::Display| {
            DrillError::NotPermitted(format!("cannot make a control group for {controller}: {why}"))
        };
        let text = fs::read_to_string("/proc/self/cgroup").map_err(|error| refused(&error))?;
        let own = |controllers: &str| {
            let lines = text.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
            lines.filter(|(found, _)| *found == controllers).map(|(_, path)| path.to_owned()).next()
        };
        let (around, is_second) = match own(controller) {
            Some(path) => (format!("/sys/fs/cgroup/{controller}{path}"), false),
            None => (format!("/sys/fs/cgroup{}", own("").unwrap_or_default()), true),
        };
        let around = PathBuf::from(around);
        let directory = around.join(format!("pinwheel-drill-{}", std::process::id()));
        fs::create_dir(&directory).map_err(|error| refused(&error))?;
        let group = ControlGroup { directory, around, is_second };
        let has_controller = fs::read_dir(&group.directory)
            .into_iter()
            .flatten()
            .flatten()
            .any(|entry| entry.file_name().to_string_lossy().starts_with(controller));
        if has_controller { Ok(group) } else { Err(refused(&"the group around it does not pass the controller on")) }
    }

    /// Sets a limit: by the name of its file in version 1, and in version 2.
    pub(super) fn set(&self, (first, second): (&str, &str), value: &str) -> Result<(), DrillError> {
        let file = self.directory.join(if self.is_second { second } else { first });
        fs::write(&file, value).map_err(|error| DrillError::NotPermitted(format!("{}: {error}", file.display())))
    }

    /// A file of the group, or of the one around it.
    pub(super) fn read(&self, (first, second): (&str, &str), is_around: bool) -> String {
        let directory = if is_around { &self.around } else { &self.directory };
        let text = fs::read_to_string(directory.join(if self.is_second { second } else { first }));
        text.unwrap_or_default().trim().to_owned()
    }

    /// Moves this process into the group.
    pub(super) fn enter(&self) -> Result<(), DrillError> {
        let moved = fs::write(self.directory.join("cgroup.procs"), std::process::id().to_string());
        moved.map_err(|error| DrillError::NotPermitted(format!("cannot enter a control group: {error}")))
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        let _ = fs::write(self.around.join("cgroup.procs"), std::process::id().to_string());
        let _ = fs::remove_dir(&self.directory);
    }
}
