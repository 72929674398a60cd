//! The lock files: opening, locking, comparing.
//!
//! Cold. Bounded by [`TRIES_MAX`] a lock and by the entries of the directory. Opens everything
//! without blocking and without following links, so a malicious file can cause an error or a
//! conflict, but never a wait.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{self, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::flock::{LockFile, is_locked, is_named};
use super::marker;
use super::{ClaimError, TRIES_MAX};
use crate::files;
use crate::files::shared::{self, Locks};
use crate::host::CORES_MAX;

pub(super) use super::marker::Marker;

/// Between two attempts at a lock.
const PAUSE: Duration = Duration::from_millis(1);
const READ_ALL: Mode = Mode::from_raw_mode(0o444);

/// The open directory.
pub(super) struct LockDirectory {
    path: PathBuf,
    lock_directory: OwnedFd,
}

/// The result of trying to lock a file.
pub(super) enum LockAttempt {
    Acquired(OwnedFd),
    HeldByOther(OwnedFd),
}

impl LockDirectory {
    /// Opens the directory, making it if it is missing.
    pub(super) fn open(path: &Path) -> Result<LockDirectory, ClaimError> {
        let lock_directory =
            shared::directory(path).map_err(|source| unavailable("opening directory", path, source))?;
        Ok(LockDirectory { path: path.to_owned(), lock_directory })
    }

    pub(super) fn open_existing(path: &Path) -> Option<LockDirectory> {
        Some(LockDirectory { path: path.to_owned(), lock_directory: shared::open_directory(path).ok()? })
    }

    /// Writes the claim file of this process for `cores`.
    pub(super) fn write_marker(&self, cores: &[u32]) -> Result<Marker, ClaimError> {
        Marker::make(&self.path, &self.lock_directory, cores)
            .map_err(|source| unavailable("marking claims in", &self.path, source))
    }

    /// Notes in `marker` that this engine uses `core` although another program has its lock.
    pub(super) fn use_unlocked(&self, core: u32, marker: &mut Marker) -> Result<(), ClaimError> {
        marker.use_unlocked(core).map_err(|source| unavailable("marking claims in", &self.path, source))
    }

    /// The claim file of another live engine that uses `core` although another program has its
    /// lock.
    pub(super) fn used_unlocked(&self, core: u32, own: Option<&Marker>) -> Option<LockFile> {
        let mut others = marker::live(&self.path).into_iter().filter(|found| own.is_none_or(|own| !own.is(found)));
        others.find(|found| found.unlocked.contains(&core)).map(|found| found.file)
    }

    /// Cores that live engines use although other programs have their locks.
    pub(super) fn all_unlocked(&self) -> Vec<u32> {
        marker::live(&self.path).into_iter().flat_map(|found| found.unlocked).filter(|&core| core < CORES_MAX).collect()
    }

    /// Whether the lock on `file` of `core` belongs to a live engine: one that lists the core in
    /// its claim file, or whose board the holder has. A shared lock is no claim: whoever looks at
    /// the claims takes one for a moment, an engine's console too.
    pub(super) fn has_engine(&self, core: u32, file: &LockFile, own: Option<&Marker>) -> bool {
        let mut others = marker::live(&self.path).into_iter().filter(|found| own.is_none_or(|own| !own.is(found)));
        let holder = || Locks::read(Path::new("/")).and_then(|locks| locks.exclusive_holder_of(file));
        others.any(|found| found.cores.contains(&core))
            || holder().is_some_and(|pid| super::holder::has_board(&self.path, pid))
    }

    /// The cores that have a lock file, ascending.
    pub(super) fn cores(&self) -> Vec<u32> {
        let entries = std::fs::read_dir(&self.path).into_iter().flatten().filter_map(Result::ok);
        let core = |entry: std::fs::DirEntry| {
            entry.file_name().to_str()?.strip_prefix("cpu")?.strip_suffix(".lock")?.parse::<u32>().ok()
        };
        let mut cores: Vec<u32> = entries.filter_map(core).filter(|&core| core < CORES_MAX).collect();
        cores.sort_unstable();
        cores.dedup();
        cores
    }

    /// Tries to lock a core's file, which is made if it is missing.
    pub(super) fn lock(&self, core: u32) -> Result<LockAttempt, ClaimError> {
        let name = name_of(core);
        let failed = |step, source: Errno| unavailable(step, &self.path.join(&name), source.into());
        let mut taken = None;
        for _ in 0..TRIES_MAX {
            let file = self.file(&name).map_err(|source| failed("opening", source))?;
            match fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) if self.is_named(&file, &name) => return Ok(LockAttempt::Acquired(file)),
                // The file was replaced between opening and locking, so this lock protects nothing.
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => taken = Some(file),
                Err(source) => return Err(failed("locking", source)),
            }
            pause();
        }
        taken.map(LockAttempt::HeldByOther).ok_or_else(|| failed("holding", Errno::AGAIN))
    }

    /// The locked file of a core; `None` if it is not locked.
    pub(super) fn held_by_other(&self, core: u32) -> Option<OwnedFd> {
        let file = self.existing(&name_of(core)).ok()?;
        if let Some(locks) = Locks::read(Path::new("/")) {
            let is_shared = locks.exclusive_holder_of(&file).is_none();
            let listed = locks.holder_of(&file).is_some() && (!is_shared || self.is_still_listed(&file));
            // A holder in another process namespace is not listed, so test the lock itself.
            return (listed || is_locked(&file)).then_some(file);
        }
        is_locked(&file).then_some(file)
    }

    /// Whether somebody has locked `file` for longer than a look at the claims takes.
    fn is_still_listed(&self, file: &OwnedFd) -> bool {
        pause();
        Locks::read(Path::new("/")).is_some_and(|locks| locks.holder_of(file).is_some())
    }

    fn file(&self, name: &str) -> Result<OwnedFd, Errno> {
        // First without O_CREAT: a kernel that protects regular files in sticky directories refuses
        // O_CREAT on another user's file.
        match self.existing(name) {
            Err(Errno::NOENT) => {}
            other => return other,
        }
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
        match fs::openat(&self.lock_directory, name, flags, READ_ALL) {
            Ok(file) => {
                fs::fchmod(&file, READ_ALL)?;
                Ok(file)
            }
            Err(Errno::EXIST) => self.existing(name),
            Err(error) => Err(error),
        }
    }

    fn existing(&self, name: &str) -> Result<OwnedFd, Errno> {
        match files::open(&self.path.join(name)) {
            Ok(file) => Ok(file.into()),
            Err(files::OpenError::System(error)) => Err(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
            Err(_) => Err(Errno::INVAL),
        }
    }

    fn is_named(&self, file: &OwnedFd, name: &str) -> bool {
        is_named(&self.lock_directory, file, name)
    }
}

fn name_of(core: u32) -> String {
    format!("cpu{core}.lock")
}

fn unavailable(step: &'static str, path: &Path, source: io::Error) -> ClaimError {
    ClaimError::Unavailable { step, path: path.to_owned(), source }
}

#[expect(clippy::disallowed_methods, reason = "cold, before any hot thread is started")]
fn pause() {
    std::thread::sleep(PAUSE);
}
