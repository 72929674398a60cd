//! A pipe that nobody reads.
//!
//! On the drill's thread.

use std::fs::{self, File};
use std::io::Result;
use std::path::Path;

/// A pipe at `place` whose reader never reads.
#[cfg(all(unix, not(target_vendor = "apple")))]
pub(super) fn unread(place: &Path) -> Result<File> {
    use rustix::fs::{FileType, Mode, OFlags};
    let _ = fs::remove_file(place);
    rustix::fs::mknodat(rustix::fs::CWD, place, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
    Ok(File::from(rustix::fs::open(place, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?))
}

#[cfg(not(all(unix, not(target_vendor = "apple"))))]
pub(super) fn unread(_: &Path) -> Result<File> {
    Err(std::io::ErrorKind::Unsupported.into())
}
