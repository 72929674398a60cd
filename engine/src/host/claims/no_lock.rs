//! A system without `flock`: nothing can be claimed, and nothing is found claimed.
//!
//! Cold; touches no file. The same names as the module that it stands for.

use std::io;
use std::path::Path;

use super::ClaimError;

/// A lock file: there are none.
pub(super) type LockFile = std::convert::Infallible;

/// The file that says who claims what: there is none.
pub(super) type Marker = std::convert::Infallible;

/// The directory of locks, which cannot be had.
pub(super) struct Folder(LockFile);

/// A lock file, with its lock or without.
#[expect(dead_code, reason = "the same names as the module that it stands for")]
pub(super) enum Locked {
    Held(LockFile),
    Taken(LockFile),
}

impl Folder {
    pub(super) fn open(path: &Path) -> Result<Folder, ClaimError> {
        let source = io::Error::from(io::ErrorKind::Unsupported);
        Err(ClaimError::Unavailable { step: "locking in", path: path.to_owned(), source })
    }

    pub(super) fn look(_path: &Path) -> Option<Folder> {
        None
    }

    pub(super) fn cores(&self) -> Vec<u32> {
        match self.0 {}
    }

    pub(super) fn lock(&self, _core: u32) -> Result<Locked, ClaimError> {
        match self.0 {}
    }

    pub(super) fn taken(&self, _core: u32) -> Option<LockFile> {
        match self.0 {}
    }

    pub(super) fn mark(&self, _cores: &[u32]) -> Result<Marker, ClaimError> {
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
