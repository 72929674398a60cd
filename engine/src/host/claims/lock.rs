//! The lock files themselves: opening, locking, comparing.
//!
//! Cold. Bounded by [`TRIES_MAX`] a lock and by the entries of the directory. A hostile file of the right name is an
//! error or a taken core, never a wait: everything is opened without blocking and without following links.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{self, AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::marker;
use super::{ClaimError, TRIES_MAX};
use crate::files;
use crate::files::shared::{self, Locks};
use crate::host::CORES_MAX;

pub(super) use super::marker::Marker;

/// A lock file, open.
pub(super) type LockFile = OwnedFd;

/// Between two attempts at a lock.
const PAUSE: Duration = Duration::from_millis(1);
const READ_ALL: Mode = Mode::from_raw_mode(0o444);

/// The directory, held open.
pub(super) struct Folder {
    path: PathBuf,
    folder: OwnedFd,
}

/// A lock file, with its lock or without.
pub(super) enum Locked {
    Held(OwnedFd),
    Taken(OwnedFd),
}

impl Folder {
    /// Opens the directory, making it if it is missing.
    pub(super) fn open(path: &Path) -> Result<Folder, ClaimError> {
        let folder = shared::directory(path).map_err(|source| unavailable("opening directory", path, source))?;
        Ok(Folder { path: path.to_owned(), folder })
    }

    /// Opens the directory if it is there.
    pub(super) fn look(path: &Path) -> Option<Folder> {
        Some(Folder { path: path.to_owned(), folder: shared::open_directory(path).ok()? })
    }

    /// Says that this process claims `cores`.
    pub(super) fn mark(&self, cores: &[u32]) -> Result<Marker, ClaimError> {
        Marker::make(&self.path, &self.folder, cores)
            .map_err(|source| unavailable("marking claims in", &self.path, source))
    }

    /// Says in `marker` that `core` is used although somebody else has its lock.
    pub(super) fn use_unlocked(&self, core: u32, marker: &mut Marker) -> Result<(), ClaimError> {
        marker.use_unlocked(core).map_err(|source| unavailable("marking claims in", &self.path, source))
    }

    /// The marker of another live engine that uses `core` although somebody else has its lock.
    pub(super) fn used_unlocked(&self, core: u32, own: Option<&Marker>) -> Option<LockFile> {
        let mut others = marker::live(&self.path).into_iter().filter(|found| own.is_none_or(|own| !own.is(found)));
        others.find(|found| found.unlocked.contains(&core)).map(|found| found.file)
    }

    /// Cores that live engines use although somebody else has their locks.
    pub(super) fn all_unlocked(&self) -> Vec<u32> {
        marker::live(&self.path).into_iter().flat_map(|found| found.unlocked).filter(|&core| core < CORES_MAX).collect()
    }

    /// Whether a live engine is behind the lock of `core`, which somebody holds on `file`: one that says that it claims
    /// the core, or one whose board the holder has.
    pub(super) fn has_engine(&self, core: u32, file: &LockFile, own: Option<&Marker>) -> bool {
        let mut others = marker::live(&self.path).into_iter().filter(|found| own.is_none_or(|own| !own.is(found)));
        let holder = || Locks::read(Path::new("/")).and_then(|locks| locks.holder_of(file));
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
    pub(super) fn lock(&self, core: u32) -> Result<Locked, ClaimError> {
        let name = name_of(core);
        let failed = |step, source: Errno| unavailable(step, &self.path.join(&name), source.into());
        let mut taken = None;
        for _ in 0..TRIES_MAX {
            let file = self.file(&name).map_err(|source| failed("opening", source))?;
            match fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) if self.is_named(&file, &name) => return Ok(Locked::Held(file)),
                // Replaced between opening and locking: this lock would guard nothing.
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => taken = Some(file),
                Err(source) => return Err(failed("locking", source)),
            }
            pause();
        }
        taken.map(Locked::Taken).ok_or_else(|| failed("holding", Errno::AGAIN))
    }

    /// The file of a core that somebody has locked; `None` if nobody has.
    pub(super) fn taken(&self, core: u32) -> Option<OwnedFd> {
        let file = self.existing(&name_of(core)).ok()?;
        if let Some(locks) = Locks::read(Path::new("/")) {
            let listed = locks.holder_of(&file).is_some();
            // A holder in another process namespace is not listed: the lock itself has to be asked.
            return (listed || is_locked(&file)).then_some(file);
        }
        is_locked(&file).then_some(file)
    }

    fn file(&self, name: &str) -> Result<OwnedFd, Errno> {
        // First without O_CREAT: a kernel that protects regular files in sticky directories refuses O_CREAT on another
        // user's file.
        match self.existing(name) {
            Err(Errno::NOENT) => {}
            other => return other,
        }
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
        match fs::openat(&self.folder, name, flags, READ_ALL) {
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
        is_named(&self.folder, file, name)
    }
}

/// Whether `name` in `folder` leads to `file`.
pub(super) fn is_named(folder: &OwnedFd, file: &OwnedFd, name: &str) -> bool {
    let named = fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
    matches!((fs::fstat(file), named), (Ok(a), Ok(b)) if (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino))
}

pub(super) fn is_locked(file: &OwnedFd) -> bool {
    match fs::flock(file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => {
            let _ = fs::flock(file, FlockOperation::Unlock);
            false
        }
        Err(error) => error == Errno::WOULDBLOCK,
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
