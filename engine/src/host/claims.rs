//! Core claims: who may run a hot thread on which core of this machine.
//!
//! Owns the lock files `cpuN.lock` in the directory of boards and, for the life of a [`Claims`], the locks on them and
//! the file `claim-PID`.
//! Taken and released on cold threads, before hot threads start and after they left. Bounded by the cores asked for and
//! [`TRIES_MAX`] attempts each. Never waits for another process, never removes a lock file, never trusts a name: the
//! directory and the files are opened without following links.
//!
//! ```text
//!  ask for {3, 5} ─▶ say so in claim-PID ─▶ ascending: open cpuN.lock ─▶ flock ─▶ still the file of that name? ─▶ held
//!                                                       │ an engine holds it ─▶ release all ─▶ Conflict(core, holder)
//!                                                       │ somebody else holds it ─▶ say so in claim-PID, go on without
//! ```
//!
//! # Why a lock is not enough
//! Whoever may read a lock file may lock it. A lock counts as a claim only if a live engine says that it has it, in its
//! own `claim-PID` ([`mod@marker`]) or by its board. What else is locked is told by [`foreign`], and the core is used.
//!
//! # Why locks, and why the files stay
//! The kernel frees a `flock` when its process ends, however it ends: no claim outlives its engine, and nothing has to
//! be cleaned up. A file that is removed when it is released can be locked by two processes, one by the old file and one
//! by the new; so the files stay, and after each lock the file is compared with what its name leads to now.
//!
//! # What is not seen
//! Systems other than Unix have no such locks: there every claim is *unavailable*, and said so once.
//! Engines in containers with a `/dev/shm` of their own claim cores of the same machine elsewhere: *not visible* here.

mod holder;
#[cfg(unix)]
mod lock;
#[cfg(not(unix))]
#[path = "claims/no_lock.rs"]
mod lock;
#[cfg(unix)]
mod marker;

use std::io;
use std::path::{Path, PathBuf};

pub use holder::Holder;

use super::list;

/// Most attempts at one lock: a file replaced meanwhile, or a look at it by another process, which takes microseconds.
pub const TRIES_MAX: usize = 8;

/// Cores held by this process; dropping it releases them.
#[derive(Debug)]
pub struct Claims {
    /// Cores with their locks; `None`: somebody who is no engine has the lock. Before `marker`: released in this order.
    held: Vec<(u32, Option<lock::LockFile>)>,
    _marker: Option<lock::Marker>,
}

/// Why cores could not be claimed.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// Somebody else has one of them.
    #[error(transparent)]
    Conflict(Conflict),
    /// The locks cannot be had at all.
    #[error(
        "core claims not available: {step} {} failed ({source}); expected a directory in shared memory that all users \
         may write; make it with mkdir -m 1777, or set PINWHEEL_SHM to one", path.display()
    )]
    Unavailable {
        /// What was tried.
        step: &'static str,
        /// With what.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
}

/// A core that another process holds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("found core {core} claimed by {holder}, expected it free; leave it to them, or ask them to stop")]
pub struct Conflict {
    /// The core.
    pub core: u32,
    /// Who has it, as far as can be seen.
    pub holder: Holder,
}

impl Claims {
    /// Claims `cores` in `directory`, all or none. Name the SMT siblings too: see `HostFacts::with_siblings`.
    ///
    /// # Errors
    /// [`ClaimError::Conflict`] for the lowest core that another engine has, with its holder; nothing is held then.
    pub fn take(directory: &Path, cores: &[u32]) -> Result<Claims, ClaimError> {
        let mut ascending = cores.to_vec();
        ascending.sort_unstable();
        ascending.dedup();
        let mut claims = Claims { held: Vec::with_capacity(ascending.len()), _marker: None };
        if ascending.is_empty() {
            return Ok(claims);
        }
        let folder = lock::Folder::open(directory)?;
        let mut marker = folder.mark(&ascending)?;
        for core in ascending {
            let mut locked = folder.lock(core)?;
            if let lock::Locked::Taken(file) = &locked
                && !folder.has_engine(core, file, Some(&marker))
            {
                folder.use_unlocked(core, &mut marker)?;
                // An engine that had the lock meanwhile did not see the line above: one of us has to see the other.
                locked = folder.lock(core)?;
            }
            let other = match &locked {
                lock::Locked::Taken(file) if folder.has_engine(core, file, Some(&marker)) => Some(file),
                _ => None,
            };
            let user = folder.used_unlocked(core, Some(&marker));
            if let Some(file) = other.or(user.as_ref()) {
                let holder = Holder::of(Path::new("/"), directory, file);
                return Err(ClaimError::Conflict(Conflict { core, holder }));
            }
            claims.held.push(match locked {
                lock::Locked::Held(file) => (core, Some(file)),
                lock::Locked::Taken(_) => (core, None),
            });
        }
        claims._marker = Some(marker);
        Ok(claims)
    }

    /// The cores held, ascending.
    #[must_use]
    pub fn cores(&self) -> Vec<u32> {
        self.held.iter().map(|(core, _)| *core).collect()
    }
}

/// Which cores are claimed in `directory`, by this process or another, ascending. Where the system names no holders of
/// locks, looking takes each lock for an instant, shared; a claim made in that instant tries again.
#[must_use]
pub fn claimed(directory: &Path) -> Vec<Conflict> {
    let Some(folder) = lock::Folder::look(directory) else { return Vec::new() };
    let mut cores = folder.cores();
    cores.extend(folder.all_unlocked());
    cores.sort_unstable();
    cores.dedup();
    let mut taken = Vec::new();
    for core in cores {
        let locked = folder.taken(core).filter(|file| folder.has_engine(core, file, None));
        if let Some(file) = locked.or_else(|| folder.used_unlocked(core, None)) {
            taken.push(Conflict { core, holder: Holder::of(Path::new("/"), directory, &file) });
        }
    }
    taken
}

/// Cores in `directory` whose lock somebody holds who is no engine, ascending: they claim nothing by it.
#[must_use]
pub fn foreign(directory: &Path) -> Vec<Conflict> {
    let Some(folder) = lock::Folder::look(directory) else { return Vec::new() };
    let mut found = Vec::new();
    for core in folder.cores() {
        if let Some(file) = folder.taken(core).filter(|file| !folder.has_engine(core, file, None)) {
            found.push(Conflict { core, holder: Holder::of(Path::new("/"), directory, &file) });
        }
    }
    found
}

/// What to tell of cores whose lock somebody holds who is no engine: one sentence a core.
#[must_use]
pub fn told_foreign(foreign: &[Conflict]) -> Vec<String> {
    let sentence = |found: &Conflict| {
        format!(
            "core {}: {} holds its lock and is no engine; that claims nothing, so the core is used",
            found.core, found.holder
        )
    };
    foreign.iter().map(sentence).collect()
}

/// What to tell of cores that others hold: one sentence a holder.
#[must_use]
pub fn told(conflicts: &[Conflict]) -> Vec<String> {
    let mut told: Vec<(Holder, Vec<u32>)> = Vec::new();
    for conflict in conflicts {
        match told.iter_mut().find(|(holder, _)| *holder == conflict.holder) {
            Some((_, cores)) => cores.push(conflict.core),
            None => told.push((conflict.holder.clone(), vec![conflict.core])),
        }
    }
    told.into_iter().map(|(holder, cores)| format!("core {} left to {holder}", list(&cores))).collect()
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
