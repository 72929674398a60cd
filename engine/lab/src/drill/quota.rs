//! A control group with a CPU quota, and a pipe that nobody reads.
//!
//! On the drill's thread. Owns the group, and removes it when dropped.

use std::fs::{self, File};
use std::io::{Error, Result};
use std::path::{Path, PathBuf};

/// Microseconds of each [`PERIOD_US`] that the group may use.
const SHARE_US: u32 = 20_000;
/// The group's period, microseconds.
const PERIOD_US: u32 = 100_000;

/// A control group of the drill's own.
pub(super) struct Group {
    directory: PathBuf,
    is_second: bool,
}

impl Group {
    /// Makes one without a limit.
    pub(super) fn make() -> Result<Group> {
        let name = format!("pinwheel-drill-{}", std::process::id());
        let mut refusal = Error::other("found no cpu control group, expected one mounted below /sys/fs/cgroup");
        let places = [("/sys/fs/cgroup/cpu", false), ("/sys/fs/cgroup/cpu,cpuacct", false), ("/sys/fs/cgroup", true)];
        for (base, is_second) in places {
            let limit = if is_second { "cpu.max" } else { "cpu.cfs_quota_us" };
            let directory = Path::new(base).join(&name);
            match fs::create_dir(&directory) {
                Ok(()) if directory.join(limit).exists() => return Ok(Group { directory, is_second }),
                Ok(()) => {
                    let _ = fs::remove_dir(&directory);
                }
                Err(error) => refusal = Error::new(error.kind(), format!("{}: {error}", directory.display())),
            }
        }
        Err(refusal)
    }

    /// Puts process `pid` into it.
    pub(super) fn take(&self, pid: u32) -> Result<()> {
        fs::write(self.directory.join("cgroup.procs"), pid.to_string())
    }

    /// Sets its limit.
    pub(super) fn limit(&self) -> Result<()> {
        if self.is_second {
            return fs::write(self.directory.join("cpu.max"), format!("{SHARE_US} {PERIOD_US}"));
        }
        fs::write(self.directory.join("cpu.cfs_period_us"), PERIOD_US.to_string())?;
        fs::write(self.directory.join("cpu.cfs_quota_us"), SHARE_US.to_string())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Its processes have ended by now. A group that is still in use is left to the system.
        let _ = fs::remove_dir(&self.directory);
    }
}

/// A pipe at `place` whose reader never reads.
#[cfg(all(unix, not(target_vendor = "apple")))]
pub(super) fn pipe(place: &Path) -> Result<File> {
    use rustix::fs::{FileType, Mode, OFlags};
    let _ = fs::remove_file(place);
    rustix::fs::mknodat(rustix::fs::CWD, place, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
    Ok(File::from(rustix::fs::open(place, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?))
}

#[cfg(not(all(unix, not(target_vendor = "apple"))))]
pub(super) fn pipe(_: &Path) -> Result<File> {
    Err(std::io::ErrorKind::Unsupported.into())
}
