//! The memory of a board: a file in shared memory, or private memory where there is none.
//!
//! Owns the mapping and the lock on the file. Made and dropped on a cold thread; read and written by all. Bounds: the
//! size given at creation. Never maps a disk file, never follows a link, never shrinks.
//!
//! # Why the lock
//! `flock` is held for as long as the process lives, however it ends: a board whose lock is free is a dead one, and no
//! clean-up code has to run for that to be known.

use rustix::fs::{self, AtFlags, FallocateFlags, FlockOperation, Mode, OFlags};
use rustix::mm::{self, MapFlags, ProtFlags};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use zerocopy::FromBytes;

/// Most dead boards that are left for a post-mortem; the oldest beyond are removed.
pub(super) const DEAD_BOARDS_MAX: usize = 4;
/// Where boards live unless `PINWHEEL_SHM` says otherwise.
const DEFAULT_DIRECTORY: &str = "/dev/shm/pinwheel";

/// Where a board is to live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// As a file in this directory of a memory file system.
    Shared(PathBuf),
    /// In memory of this process alone.
    Private,
}

/// The directory of boards: `PINWHEEL_SHM`, or `/dev/shm/pinwheel`.
#[must_use]
pub fn directory() -> PathBuf {
    std::env::var_os("PINWHEEL_SHM").map_or_else(|| PathBuf::from(DEFAULT_DIRECTORY), PathBuf::from)
}

/// Why a board could not be made in shared memory.
#[derive(Debug, thiserror::Error)]
#[error("board not shared: {step} {} failed ({source}); expected a writable memory file system there; mount one, or set PINWHEEL_SHM to one", path.display())]
pub struct BoardError {
    step: &'static str,
    path: PathBuf,
    source: rustix::io::Errno,
}

/// A mapping and what keeps it.
pub(super) struct Region {
    base: NonNull<u8>,
    bytes: usize,
    shared: Option<(PathBuf, OwnedFd)>,
}

// SAFETY: the mapping is valid until drop, belongs to no thread, and is only ever seen as atomics.
unsafe impl Send for Region {}
// SAFETY: as above: every access goes through atomics.
unsafe impl Sync for Region {}

impl Region {
    pub(super) fn create(bytes: usize, place: Place) -> Result<Region, BoardError> {
        match place {
            Place::Private => Region::private(bytes),
            Place::Shared(directory) => Region::shared(bytes, &directory),
        }
    }

    fn private(bytes: usize) -> Result<Region, BoardError> {
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh anonymous mapping at an address of the kernel's choice aliases nothing.
        let base =
            unsafe { mm::mmap_anonymous(std::ptr::null_mut(), bytes, prot, MapFlags::PRIVATE | MapFlags::POPULATE) }
                .map_err(|source| BoardError { step: "mapping", path: PathBuf::from("private memory"), source })?;
        Ok(Region { base: non_null(base), bytes, shared: None })
    }

    fn shared(bytes: usize, directory: &Path) -> Result<Region, BoardError> {
        let failed = |step, source| BoardError { step, path: directory.to_path_buf(), source };
        let folder = open_directory(directory).map_err(|source| failed("opening directory", source))?;
        remove_old_dead_boards(directory, &folder);
        let name = format!("board-{}", std::process::id());
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::RDWR | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
        let (name, file) = (0..64)
            .find_map(|attempt| {
                let name = if attempt == 0 { name.clone() } else { format!("{name}.{attempt}") };
                match fs::openat(&folder, &name, flags, mode) {
                    Err(rustix::io::Errno::EXIST) => None,
                    other => Some(other.map(|file| (name, file))),
                }
            })
            .unwrap_or(Err(rustix::io::Errno::EXIST))
            .map_err(|source| failed("creating a board in", source))?;
        let undo = |step, source| {
            let _ = fs::unlinkat(&folder, &name, AtFlags::empty());
            failed(step, source)
        };
        fs::flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|e| undo("locking a board in", e))?;
        // A full memory file system must be an error here, not a fault signal at a later store.
        fs::fallocate(&file, FallocateFlags::empty(), 0, bytes as u64).map_err(|e| undo("reserving memory in", e))?;
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh mapping of a file that only this process writes, at an address of the kernel's choice; the
        // file is never shrunk while it is mapped.
        let base =
            unsafe { mm::mmap(std::ptr::null_mut(), bytes, prot, MapFlags::SHARED | MapFlags::POPULATE, &file, 0) }
                .map_err(|e| undo("mapping a board in", e))?;
        Ok(Region { base: non_null(base), bytes, shared: Some((directory.join(&name), file)) })
    }

    pub(super) fn path(&self) -> Option<&Path> {
        self.shared.as_ref().map(|(path, _)| path.as_path())
    }

    /// `count` blocks of type `T` at byte `offset`.
    ///
    /// # Panics
    /// If they do not lie inside the region or are misaligned: the layout is wrong.
    pub(super) fn section<T: FromBytes>(&self, offset: usize, count: usize) -> &[T] {
        let end = offset + count * size_of::<T>();
        assert!(
            end <= self.bytes && offset.is_multiple_of(align_of::<T>()),
            "section {offset}..{end} of {}",
            self.bytes
        );
        // SAFETY: in bounds and aligned by the assertion (the base is a page). Any bytes are a valid `T` by
        // `FromBytes`. `T` is made of atomics only, so shared references may be written through by others.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(offset).cast::<T>(), count) }
    }
}

fn non_null(base: *mut std::ffi::c_void) -> NonNull<u8> {
    NonNull::new(base.cast()).expect("a successful mmap is never at address zero")
}

impl Drop for Region {
    fn drop(&mut self) {
        if let Some((path, _)) = &self.shared {
            let _ = std::fs::remove_file(path);
        }
        // SAFETY: base and length are those of the mapping; no reference outlives `self`, by their lifetimes.
        let _ = unsafe { mm::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// Opens the directory of boards, making it (for all users, sticky) if it is missing.
fn open_directory(directory: &Path) -> Result<OwnedFd, rustix::io::Errno> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
    match fs::open(directory, flags, Mode::empty()) {
        Err(rustix::io::Errno::NOENT) => {
            fs::mkdir(directory, Mode::RWXU)?;
            let folder = fs::open(directory, flags, Mode::empty())?;
            fs::fchmod(&folder, Mode::RWXU | Mode::RWXG | Mode::RWXO | Mode::SVTX)?;
            Ok(folder)
        }
        other => other,
    }
}

/// Keeps the newest dead boards for a post-mortem and removes the rest. What cannot be read or removed is left alone.
fn remove_old_dead_boards(directory: &Path, folder: &OwnedFd) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    let mut dead: Vec<_> = entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("board-"))
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.file_name())))
        .filter(|(_, name)| {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            fs::openat(folder, name.as_os_str(), flags, Mode::empty())
                .is_ok_and(|file| fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok())
        })
        .collect();
    dead.sort();
    let surplus = dead.len().saturating_sub(DEAD_BOARDS_MAX);
    for (_, name) in dead.into_iter().take(surplus) {
        let _ = fs::unlinkat(folder, name.as_os_str(), AtFlags::empty());
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{DEAD_BOARDS_MAX, Place, Region};
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn a_board_is_found_while_it_lives_and_gone_when_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let region = Region::create(8192, Place::Shared(folder.path().join("shm"))).unwrap();
        let path = region.path().unwrap().to_path_buf();
        region.section::<AtomicU64>(64, 2)[1].store(7, Ordering::Relaxed);
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 8192);
        assert_eq!(std::fs::read(&path).unwrap()[72], 7);
        drop(region);
        assert!(!path.exists());
    }

    #[test]
    fn a_place_that_cannot_be_made_is_refused_with_its_path() {
        let error = Region::create(4096, Place::Shared("/proc/pinwheel".into())).err().unwrap().to_string();
        assert!(error.contains("/proc/pinwheel") && error.contains("PINWHEEL_SHM"), "{error}");
    }

    #[test]
    fn dead_boards_beyond_the_limit_are_removed_and_live_ones_kept() {
        let folder = tempfile::tempdir().unwrap();
        for i in 0..DEAD_BOARDS_MAX + 3 {
            std::fs::write(folder.path().join(format!("board-9{i}")), b"dead").unwrap();
        }
        let first = Region::create(4096, Place::Shared(folder.path().into())).unwrap();
        let second = Region::create(4096, Place::Shared(folder.path().into())).unwrap();
        assert_ne!(first.path(), second.path());
        assert!(first.path().unwrap().exists());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), DEAD_BOARDS_MAX + 2);
    }
}
