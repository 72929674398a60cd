//! Memory that the kernel maps: shared through a file of a memory file system, or private.
//!
//! Owns the mapping, and the lock on the file. Bounds: the size given, [`DEAD_BOARDS_MAX`] boards of ended processes.

use super::{BoardError, OwnerState};
use crate::board::HeaderBlock;
use crate::files::{self, shared};
use rustix::fs::{self, AtFlags, FallocateFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::mm::{self, MapFlags, ProtFlags};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;

/// Most dead boards kept in the directory for a post-mortem; older ones move into their runs'
/// directories.
pub(super) const DEAD_BOARDS_MAX: usize = 4;
/// Maps all pages at once, where the system supports it.
#[cfg(target_os = "linux")]
const POPULATE: MapFlags = MapFlags::POPULATE;
#[cfg(not(target_os = "linux"))]
const POPULATE: MapFlags = MapFlags::empty();

/// A mapping and its file.
pub(super) struct Memory {
    base: NonNull<u8>,
    bytes: usize,
    shared: Option<(PathBuf, OwnedFd)>,
    /// The file of another process.
    opened: Option<OwnedFd>,
}

impl Memory {
    pub(super) fn private(bytes: usize) -> Result<Memory, BoardError> {
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh anonymous mapping at an address of the kernel's choice aliases nothing.
        let base =
            unsafe { mm::mmap_anonymous(std::ptr::null_mut(), bytes, prot, MapFlags::PRIVATE | POPULATE) }.map_err(
                |error| BoardError { step: "mapping", path: PathBuf::from("private memory"), source: error.into() },
            )?;
        Ok(Memory { base: non_null(base), bytes, shared: None, opened: None })
    }

    pub(super) fn shared(bytes: usize, directory: &Path) -> Result<Memory, BoardError> {
        let failed = |step, error: Errno| BoardError { step, path: directory.to_path_buf(), source: error.into() };
        let folder = shared::directory(directory).map_err(|source| BoardError {
            step: "opening directory",
            path: directory.to_path_buf(),
            source,
        })?;
        remove_old_dead_boards(directory, &folder);
        let name = format!("board-{}", std::process::id());
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::RDWR | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
        let (name, file) = (0..64)
            .find_map(|attempt| {
                let name = if attempt == 0 { name.clone() } else { format!("{name}.{attempt}") };
                match fs::openat(&folder, &name, flags, mode) {
                    Err(Errno::EXIST) => None,
                    other => Some(other.map(|file| (name, file))),
                }
            })
            .unwrap_or(Err(Errno::EXIST))
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
        let base = unsafe { mm::mmap(std::ptr::null_mut(), bytes, prot, MapFlags::SHARED | POPULATE, &file, 0) }
            .map_err(|e| undo("mapping a board in", e))?;
        Ok(Memory { base: non_null(base), bytes, shared: Some((directory.join(&name), file)), opened: None })
    }

    /// Another process's board, for reading: a store through it would fault, and no code stores.
    pub(super) fn open(path: &Path) -> Result<(Memory, usize, OwnerState), BoardError> {
        let failed = |step, error: Errno| BoardError { step, path: path.to_path_buf(), source: error.into() };
        let file = files::open(path).map_err(|error| {
            let source = io::Error::from(error);
            BoardError { step: "opening", path: path.to_path_buf(), source }
        })?;
        let file = OwnedFd::from(file);
        let stat = fs::fstat(&file).map_err(|error| failed("measuring", error))?;
        let bytes = usize::try_from(stat.st_size).ok().filter(|bytes| *bytes >= size_of::<HeaderBlock>());
        let bytes = bytes.ok_or_else(|| failed("measuring", Errno::NODATA))?;
        let owner_state = owner_state(&file);
        // SAFETY: a fresh mapping at an address of the kernel's choice. Pinwheel never shrinks the
        // file; if its owner does, reading it raises SIGBUS, which ends the process: see
        // `board::fatal`.
        let base = unsafe { mm::mmap(std::ptr::null_mut(), bytes, ProtFlags::READ, MapFlags::SHARED, &file, 0) }
            .map_err(|error| failed("mapping", error))?;
        Ok((Memory { base: non_null(base), bytes, shared: None, opened: Some(file) }, bytes, owner_state))
    }

    /// Whether the process of the opened file is alive; always true for our own file.
    pub(super) fn owner_state(&self) -> OwnerState {
        self.opened.as_ref().map_or(OwnerState::Alive, owner_state)
    }

    pub(super) fn path(&self) -> Option<&Path> {
        self.shared.as_ref().map(|(path, _)| path.as_path())
    }

    pub(super) fn base(&self) -> NonNull<u8> {
        self.base
    }
}

/// Whether the owner of a board's file holds its lock. Whoever may read the file may lock it. Our
/// lock is shared, so that two readers do not take each other for the owner, and released at once,
/// so that it does not delay the removal of dead boards.
fn owner_state(file: &OwnedFd) -> OwnerState {
    match fs::flock(file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => {
            let _ = fs::flock(file, FlockOperation::Unlock);
            OwnerState::Dead
        }
        Err(_) if shared::is_locked_by_owner(file) => OwnerState::Alive,
        Err(_) => OwnerState::Dead,
    }
}

fn non_null(base: *mut std::ffi::c_void) -> NonNull<u8> {
    NonNull::new(base.cast()).expect("a successful mmap is never at address zero")
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Some((path, _)) = &self.shared {
            let _ = std::fs::remove_file(path);
        }
        // SAFETY: base and length are those of the mapping; no reference outlives `self`, by their lifetimes.
        let _ = unsafe { mm::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// Keeps the newest dead boards for a post-mortem and moves the rest. Skips boards that cannot be
/// read or removed.
fn remove_old_dead_boards(directory: &Path, folder: &OwnedFd) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    let mut dead: Vec<_> = entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("board-"))
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.file_name())))
        .filter(|(_, name)| {
            files::open(&directory.join(name))
                .is_ok_and(|file| fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok())
        })
        .collect();
    dead.sort();
    let surplus = dead.len().saturating_sub(DEAD_BOARDS_MAX);
    for (_, name) in dead.into_iter().take(surplus) {
        // A board whose run's directory no longer exists is removed.
        let _ = crate::board::dead::keep(&directory.join(&name));
        let _ = fs::unlinkat(folder, name.as_os_str(), AtFlags::empty());
    }
}
