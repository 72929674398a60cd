//! A lock file, open, and what can be asked of it.
//!
//! Cold. Bounded by one system call each.

#[cfg(unix)]
use rustix::fs::{self, AtFlags, FlockOperation};
#[cfg(unix)]
use rustix::io::Errno;
#[cfg(unix)]
use std::os::fd::OwnedFd;

/// A lock file, open.
#[cfg(unix)]
pub(super) type LockFile = OwnedFd;
/// Nothing can be locked here.
#[cfg(not(unix))]
pub(super) type LockFile = std::convert::Infallible;

/// Whether `name` in `folder` leads to `file`.
#[cfg(unix)]
pub(super) fn is_named(lock_directory: &OwnedFd, file: &OwnedFd, name: &str) -> bool {
    let named = fs::statat(lock_directory, name, AtFlags::SYMLINK_NOFOLLOW);
    matches!((fs::fstat(file), named), (Ok(a), Ok(b)) if (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino))
}

/// Whether somebody has locked it.
#[cfg(unix)]
pub(super) fn is_locked(file: &OwnedFd) -> bool {
    match fs::flock(file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => {
            let _ = fs::flock(file, FlockOperation::Unlock);
            false
        }
        Err(error) => error == Errno::WOULDBLOCK,
    }
}
