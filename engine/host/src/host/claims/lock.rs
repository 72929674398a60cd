//! The lock files themselves: opening, locking, comparing.
//!
//! Cold. Bounded by [`TRIES_MAX`] a lock and by the entries of the directory. A hostile file of the right name is an
//! error or a taken core, never a wait: everything is opened without blocking and without following links.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{self, AtFlags, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::{ClaimError, TRIES_MAX};
use crate::host::CORES_MAX;

/// A lock file, open.
pub(super) type LockFile = OwnedFd;

/// Between two attempts at a lock.
const PAUSE: Duration = Duration::from_millis(1);
const READ_ALL: Mode = Mode::from_raw_mode(0o444);
const OPEN_TO_ALL: Mode = Mode::from_raw_mode(0o1777);

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
        let failed = |source: Errno| unavailable("opening directory", path, source);
        match fs::mkdir(path, Mode::RWXU) {
            Ok(()) => {
                let made = open_directory(path).map_err(failed)?;
                // The mask of the process would have taken the others' right to write.
                fs::fchmod(&made, OPEN_TO_ALL).map_err(failed)?;
                Ok(Folder { path: path.to_owned(), folder: made })
            }
            // Whatever kept it from being made, what counts is whether it is there.
            Err(_) => Ok(Folder { path: path.to_owned(), folder: open_directory(path).map_err(failed)? }),
        }
    }

    /// Opens the directory if it is there.
    pub(super) fn look(path: &Path) -> Option<Folder> {
        Some(Folder { path: path.to_owned(), folder: open_directory(path).ok()? })
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
        let failed = |step, source| unavailable(step, &self.path.join(&name), source);
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
        if let Some(locks) = super::holder::Locks::read(Path::new("/")) {
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
        let flags = OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = fs::openat(&self.folder, name, flags, Mode::empty())?;
        let kind = FileType::from_raw_mode(fs::fstat(&file)?.st_mode);
        if kind == FileType::RegularFile { Ok(file) } else { Err(Errno::INVAL) }
    }

    fn is_named(&self, file: &OwnedFd, name: &str) -> bool {
        let named = fs::statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW);
        matches!((fs::fstat(file), named), (Ok(a), Ok(b)) if (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino))
    }
}

fn is_locked(file: &OwnedFd) -> bool {
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

fn open_directory(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
    fs::open(path, flags, Mode::empty())
}

fn unavailable(step: &'static str, path: &Path, source: Errno) -> ClaimError {
    ClaimError::Unavailable { step, path: path.to_owned(), source: io::Error::from(source) }
}

#[expect(clippy::disallowed_methods, reason = "cold, before any hot thread is started")]
fn pause() {
    std::thread::sleep(PAUSE);
}
