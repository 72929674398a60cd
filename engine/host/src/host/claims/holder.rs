//! The process that holds a lock, as far as it is visible.
//!
//! Cold; reads only. Bounded by the files' limits and by the boards of one directory.

#[cfg(unix)]
mod lookup;

#[cfg(unix)]
pub(super) use lookup::has_board;

use std::fmt;
use std::path::Path;

use serde::Serialize;

use super::flock::LockFile;

/// A process that holds a claim. What is not visible is `None`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Holder {
    /// Its process id; `None` if it is not visible, as in another container.
    pub pid: Option<u32>,
    /// Its user.
    pub user: Option<String>,
    /// The profile on its board.
    pub profile: Option<String>,
    /// When its board, or else its process, was started: UTC, to the second.
    pub since: Option<String>,
}

impl Holder {
    /// The holder of the lock on `file`, with `proc` and `etc` under `root` and boards in `boards`.
    pub(super) fn of(root: &Path, boards: &Path, file: &LockFile) -> Holder {
        lookup::holder(root, boards, file)
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pid {
            None => write!(f, "a process that is not visible from here"),
            Some(pid) => write!(f, "process {pid}"),
        }?;
        for (word, value) in [("of", &self.user), ("with profile", &self.profile), ("since", &self.since)] {
            if let Some(value) = value {
                write!(f, " {word} {value}")?;
            }
        }
        Ok(())
    }
}

/// On systems without locks nobody holds one.
#[cfg(not(unix))]
mod lookup {
    use super::{Holder, LockFile, Path};

    pub(super) fn holder(_root: &Path, _boards: &Path, file: &LockFile) -> Holder {
        match *file {}
    }
}
