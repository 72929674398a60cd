//! Systems without `flock`: nothing can be claimed.
//!
//! The same names as in `lock`.

use std::io;
use std::path::Path;

use super::ClaimError;
use super::flock::LockFile;

/// A claim file; there are none.
pub(super) type Marker = std::convert::Infallible;

/// The directory of locks, which cannot be opened.
pub(super) struct LockDirectory(LockFile);

/// The result of trying to lock a file.
#[expect(dead_code, reason = "the same names as the module that it stands for")]
pub(super) enum LockAttempt {
    Acquired(LockFile),
    HeldByOther(LockFile),
}

impl LockDirectory {
    pub(super) fn open(path: &Path) -> Result<LockDirectory, ClaimError> {
        let source = io::Error::from(io::ErrorKind::Unsupported);
        Err(ClaimError::Unavailable { step: "locking in", path: path.to_owned(), source })
    }

    pub(super) fn open_existing(_path: &Path) -> Option<LockDirectory> {
        None
    }

    pub(super) fn cores(&self) -> Vec<u32> {
        match self.0 {}
    }

    pub(super) fn lock(&self, _core: u32) -> Result<LockAttempt, ClaimError> {
        match self.0 {}
    }

    pub(super) fn held_by_other(&self, _core: u32) -> Option<LockFile> {
        match self.0 {}
    }

    pub(super) fn write_marker(&self, _cores: &[u32]) -> Result<Marker, ClaimError> {
        match self.0 {}
    }

    pub(super) fn use_unlocked(&self, _core: u32, marker: &mut Marker) -> Result<(), ClaimError> {
        match *marker {}
    }

    pub(super) fn used_unlocked(&self, _core: u32, _own: Option<&Marker>) -> Option<LockFile> {
        match self.0 {}
    }

    pub(super) fn all_unlocked(&self) -> Vec<u32> {
        match self.0 {}
    }

    pub(super) fn has_engine(&self, _core: u32, _file: &LockFile, _own: Option<&Marker>) -> bool {
        match self.0 {}
    }
}
