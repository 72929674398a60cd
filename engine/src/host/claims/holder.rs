//! Who holds a lock, as far as can be seen.
//!
//! Cold; reads only. Bounded by the files' limits and by the boards of one directory. What cannot be seen is `None`.

#[cfg(unix)]
mod seen;

#[cfg(unix)]
pub(super) use seen::has_board;

use std::fmt;
use std::path::Path;

use serde::Serialize;

use super::lock::LockFile;

/// A process that holds a claim, as far as can be seen from here.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Holder {
    /// Its process id; `None` if it runs where we cannot look.
    pub pid: Option<u32>,
    /// Its user.
    pub user: Option<String>,
    /// The profile that its board shows.
    pub profile: Option<String>,
    /// Since when: its board's start, else its process's; UTC, to the second.
    pub since: Option<String>,
}

impl Holder {
    /// The holder of the lock on `file`, with `proc` and `etc` under `root` and boards in `boards`.
    pub(super) fn of(root: &Path, boards: &Path, file: &LockFile) -> Holder {
        seen::holder(root, boards, file)
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

/// Where nothing can be locked, nobody holds a lock.
#[cfg(not(unix))]
mod seen {
    use super::{Holder, LockFile, Path};

    pub(super) fn holder(_root: &Path, _boards: &Path, file: &LockFile) -> Holder {
        match *file {}
    }
}
