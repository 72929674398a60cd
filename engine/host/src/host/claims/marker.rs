//! The file `claim-PID`, by which an engine lists the cores that it claims.
//!
//! Owns one file for each [`super::Claims`], which is locked as long as they are held and then
//! removed. Cold. Bounded by [`BYTES_MAX`] a file and by the entries of the directory. Written only
//! by its own process.
//!
//! # Why
//! Every user who may read `cpuN.lock` may lock it, so a lock alone claims nothing. An engine lists
//! its cores in this file before it takes their locks; at no moment does a true claim look like a
//! plain lock. The second line lists cores that the engine uses although another program has their
//! locks.
//!
//! ```text
//! cores 2 3 6
//! unlocked 3
//! ```

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{self, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::flock::{is_locked, is_named};
use crate::files;
use crate::files::shared;
use crate::host::CORES_MAX;

/// Most bytes of such a file: every core twice.
const BYTES_MAX: u64 = 1 << 16;
const PREFIX: &str = "claim-";
const READ_ALL: Mode = Mode::from_raw_mode(0o444);

/// The claim file of this process. Dropping it removes the file.
#[derive(Debug)]
pub(super) struct Marker {
    file: std::fs::File,
    path: PathBuf,
    inode: (u64, u64),
}

/// A claim file whose process is alive.
pub(super) struct ClaimFile {
    pub(super) file: OwnedFd,
    pub(super) cores: Vec<u32>,
    pub(super) unlocked: Vec<u32>,
    inode: (u64, u64),
}

impl Marker {
    /// Makes the file in `directory`, which is open as `lock_directory`. Removes the files of this
    /// user's dead processes.
    pub(super) fn make(directory: &Path, lock_directory: &OwnedFd, cores: &[u32]) -> io::Result<Marker> {
        remove_dead(directory, lock_directory);
        let name = format!("{PREFIX}{}", std::process::id());
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::RDWR | OFlags::CLOEXEC;
        for attempt in 0..CORES_MAX {
            let name = if attempt == 0 { name.clone() } else { format!("{name}.{attempt}") };
            // Nobody else may open it, and thus lock it, before it has its own lock.
            let file = match fs::openat(lock_directory, &name, flags, Mode::RUSR | Mode::WUSR) {
                Err(Errno::EXIST) => continue,
                other => other?,
            };
            // Another process of this user that removes dead files may have taken it for one.
            let is_ours = fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
            if !is_ours || !is_named(lock_directory, &file, &name) {
                continue;
            }
            let mut marker = Marker { inode: inode(&file)?, file: file.into(), path: directory.join(name) };
            marker.line("cores", cores)?;
            fs::fchmod(&marker.file, READ_ALL)?;
            return Ok(marker);
        }
        Err(Errno::EXIST.into())
    }

    /// Notes that `core` is used although another program has its lock.
    pub(super) fn use_unlocked(&mut self, core: u32) -> io::Result<()> {
        self.line("unlocked", &[core])
    }

    pub(super) fn is(&self, found: &ClaimFile) -> bool {
        self.inode == found.inode
    }

    fn line(&mut self, word: &str, cores: &[u32]) -> io::Result<()> {
        let cores: Vec<String> = cores.iter().map(u32::to_string).collect();
        self.file.write_all(format!("{word} {}\n", cores.join(" ")).as_bytes())
    }
}

impl Drop for Marker {
    fn drop(&mut self) {
        // If it cannot be removed, the next claim removes it as a dead process's file.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The claim files in `directory` whose processes are alive.
pub(super) fn live(directory: &Path) -> Vec<ClaimFile> {
    paths(directory).into_iter().filter_map(|path| read_claim_file(&path)).collect()
}

fn read_claim_file(path: &Path) -> Option<ClaimFile> {
    let file = OwnedFd::from(files::open(path).ok()?);
    if !is_locked(&file) || !shared::is_locked_by_owner(&file) {
        return None;
    }
    let inode = inode(&file).ok()?;
    let bytes = files::read_up_to(file.try_clone().ok()?.into(), BYTES_MAX).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let of = |word: &str| {
        let lines = text.lines().filter_map(|line| line.strip_prefix(word));
        lines.flat_map(str::split_whitespace).filter_map(|core| core.parse().ok()).collect()
    };
    Some(ClaimFile { cores: of("cores "), unlocked: of("unlocked "), file, inode })
}

fn remove_dead(directory: &Path, lock_directory: &OwnedFd) {
    for path in paths(directory) {
        if let Ok(file) = files::open_of(&path, files::our_uid()) {
            remove_if_dead(&path, &file.into(), lock_directory);
        }
    }
}

/// Removes the claim file at `path`, which was opened as `file`, if its process has ended. Another
/// process may have removed it meanwhile, and a third one with the same number (each container
/// counts from 1) may have made its own there: that one stays.
fn remove_if_dead(path: &Path, file: &OwnedFd, lock_directory: &OwnedFd) {
    let is_dead = fs::flock(file, FlockOperation::NonBlockingLockExclusive).is_ok();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if is_dead && is_named(lock_directory, file, &name) {
        let _ = std::fs::remove_file(path);
    }
}

fn paths(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX)).map(|entry| entry.path()).collect()
}

fn inode(file: &OwnedFd) -> Result<(u64, u64), Errno> {
    fs::fstat(file).map(|stat| (stat.st_dev, stat.st_ino))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Marker, remove_if_dead};
    use crate::files::{self, shared};

    #[test]
    fn a_file_made_in_place_of_a_dead_one_stays() {
        let folder = tempfile::tempdir().unwrap();
        let lock_directory = shared::open_directory(folder.path()).unwrap();
        let path = folder.path().join(format!("claim-{}", std::process::id()));
        std::fs::write(&path, "cores 1\n").unwrap();
        let dead = files::open_of(&path, files::our_uid()).unwrap().into();
        // Another process removes the dead one, and a process with its number makes its own.
        std::fs::remove_file(&path).unwrap();
        let marker = Marker::make(folder.path(), &lock_directory, &[2]).unwrap();
        remove_if_dead(&path, &dead, &lock_directory);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "cores 2\n");
        drop(marker);
        assert!(!path.exists());
    }
}
