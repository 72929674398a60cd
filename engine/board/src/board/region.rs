//! The memory of a board: a file in shared memory, or private memory where there is none.
//!
//! Owns the mapping and the lock on the file. Created and dropped on a cold thread; read and
//! written by all. Bounds: the size given at creation. Never follows a link, never shrinks. A
//! directory on a disk is used and reported: see [`crate::files::shared::remarks`].
//!
//! # Why the lock
//! The system releases a `flock` when its process ends, in whatever way. A board with a free lock
//! therefore belongs to an ended process, without any clean-up code.

#[cfg(not(unix))]
mod heap;
#[cfg(unix)]
mod mapped;

#[cfg(not(unix))]
use heap::Memory;
#[cfg(unix)]
use mapped::Memory;
use std::path::{Path, PathBuf};
use zerocopy::FromBytes;

/// Where boards live unless `PINWHEEL_SHM` says otherwise.
const DEFAULT_DIRECTORY: &str = "/dev/shm/pinwheel";

/// Where a board is created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// As a file in this directory of a memory file system.
    Shared(PathBuf),
    /// In memory of this process alone.
    Private,
}

/// The directory of boards: `PINWHEEL_SHM`, or `/dev/shm/pinwheel`.
pub fn directory() -> PathBuf {
    std::env::var_os("PINWHEEL_SHM").map_or_else(|| PathBuf::from(DEFAULT_DIRECTORY), PathBuf::from)
}

/// Problems of a directory of boards that do not prevent its use, one sentence each.
pub fn remarks(directory: &Path) -> Vec<String> {
    #[cfg(unix)]
    return crate::files::shared::remarks(directory);
    #[cfg(not(unix))]
    return Vec::new();
}

/// Why a board could not be made in shared memory.
#[derive(Debug, thiserror::Error)]
#[error("board not shared: {step} {} failed ({source}); expected a writable memory file system there; mount one, or set PINWHEEL_SHM to one", path.display())]
pub struct BoardError {
    step: &'static str,
    path: PathBuf,
    source: std::io::Error,
}

impl BoardError {
    /// What failed, without the remedies for a board that is made.
    pub(super) fn cause(&self) -> String {
        format!("{} failed ({})", self.step, self.source)
    }
}

/// Whether a board's process is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OwnerState {
    /// The process holds the board's lock.
    Alive,
    /// No process holds it.
    Dead,
}

/// Memory and its size.
pub(super) struct Region {
    memory: Memory,
    bytes: usize,
}

// SAFETY: the memory is valid until drop, belongs to no thread, and is only ever seen as atomics.
unsafe impl Send for Region {}
// SAFETY: as above: every access goes through atomics.
unsafe impl Sync for Region {}

impl Region {
    pub(super) fn create(bytes: usize, place: Place) -> Result<Region, BoardError> {
        let memory = match place {
            Place::Private => Memory::private(bytes),
            Place::Shared(directory) => Memory::shared(bytes, &directory),
        };
        Ok(Region { memory: memory?, bytes })
    }

    /// Maps the file at `path` for reading only. The size is the file's.
    pub(super) fn open(path: &Path) -> Result<(Region, OwnerState), BoardError> {
        let (memory, bytes, owner_state) = Memory::open(path)?;
        Ok((Region { memory, bytes }, owner_state))
    }

    /// Whether the process that created the opened file is alive.
    pub(super) fn owner_state(&self) -> OwnerState {
        self.memory.owner_state()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn path(&self) -> Option<&Path> {
        self.memory.path()
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
        unsafe { std::slice::from_raw_parts(self.memory.base().as_ptr().add(offset).cast::<T>(), count) }
    }
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::mapped::DEAD_BOARDS_MAX;
    use super::{Place, Region};
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn a_board_file_exists_until_the_board_is_dropped() {
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
    fn a_directory_that_cannot_be_made_is_refused_with_its_path() {
        let error = Region::create(4096, Place::Shared("/proc/pinwheel".into())).err().unwrap().to_string();
        assert!(error.contains("/proc/pinwheel") && error.contains("PINWHEEL_SHM"), "{error}");
    }

    #[test]
    fn dead_boards_beyond_the_limit_are_removed_and_live_ones_kept() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("board-8")).unwrap();
        for i in 0..DEAD_BOARDS_MAX + 3 {
            std::fs::write(folder.path().join(format!("board-9{i}")), b"dead").unwrap();
        }
        let first = Region::create(4096, Place::Shared(folder.path().into())).unwrap();
        let second = Region::create(4096, Place::Shared(folder.path().into())).unwrap();
        assert_ne!(first.path(), second.path());
        assert!(first.path().unwrap().exists());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), DEAD_BOARDS_MAX + 3);
    }
}
