//! Core claims: which engine may run a hot thread on which core of this machine.
//!
//! Owns the lock files `cpuN.lock` in the directory of boards. A [`Claims`] holds locks on them and
//! the file `claim-PID`. Claims are made on cold threads before hot threads start, and released
//! after they end. Bounded by the cores asked for and [`TRIES_MAX`] attempts each. Never waits for
//! another process and never removes a lock file. Opens the directory and the files without
//! following links.
//!
//! ```text
//!  claim {3, 5} ─▶ list them in claim-PID ─▶ ascending: open cpuN.lock, flock ─┬▶ locked, and still
//!                                                                              │  the named file: held
//!                                  Conflict(core, holder) ◀─ release all ◀─────┼─ an engine holds it
//!                          use the core ◀─ note it in claim-PID ◀──────────────┴─ other program holds it
//! ```
//!
//! # Why a lock is not enough
//! Every user who may read a lock file may lock it. So a lock counts as a claim only if a live
//! engine lists the core in its `claim-PID` ([`mod@marker`]) or has a board. [`foreign_locks`]
//! lists other locks; the engine uses those cores.
//!
//! # Why locks, and why the files stay
//! The kernel releases a `flock` when its process ends, so no claim outlives its engine. If the
//! file were removed on release, two processes could lock "the same" core by the old and the new
//! file. So the files stay, and after locking, the file is compared with the one that its name
//! refers to now.
//!
//! # Limits
//! Other systems than Unix have no such locks: claims are *unavailable* there, which is reported
//! once. Engines in containers with their own `/dev/shm` claim the same cores in another directory;
//! they are *not visible* here.

mod flock;
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

/// Most attempts at one lock: the file may be replaced meanwhile, or be locked for microseconds by
/// a process that reads the claims.
pub const TRIES_MAX: usize = 8;

/// Cores claimed by this process. Dropping it releases them.
#[derive(Debug)]
pub struct Claims {
    /// Cores with their locks; `None` if a program that is no engine has the lock. Declared before
    /// `marker`, so released first.
    held: Vec<(u32, Option<flock::LockFile>)>,
    _marker: Option<lock::Marker>,
}

/// Why cores cannot be claimed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ClaimError {
    #[error(transparent)]
    Conflict(Conflict),
    #[error(
        "core claims not available: {step} {} failed ({source}); expected a directory in shared memory that all users \
         may write; make it with mkdir -m 1777, or set PINWHEEL_SHM to one", path.display()
    )]
    Unavailable { step: &'static str, path: PathBuf, source: io::Error },
}

/// A core that another process holds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("core {core} is claimed by {holder}; use other cores, or stop that engine")]
pub struct Conflict {
    /// The core.
    pub core: u32,
    /// The process that holds it, as far as it is visible.
    pub holder: Holder,
}

impl Claims {
    /// Claims `cores` in `directory`, all or none. Name the SMT siblings too: see
    /// `HostFacts::with_siblings`.
    ///
    /// # Errors
    /// [`ClaimError::Conflict`] for the lowest core that another engine has claimed. No core is
    /// claimed then.
    pub fn take(directory: &Path, cores: &[u32]) -> Result<Claims, ClaimError> {
        let mut ascending = cores.to_vec();
        ascending.sort_unstable();
        ascending.dedup();
        let mut claims = Claims { held: Vec::with_capacity(ascending.len()), _marker: None };
        if ascending.is_empty() {
            return Ok(claims);
        }
        let lock_directory = lock::LockDirectory::open(directory)?;
        let mut marker = lock_directory.write_marker(&ascending)?;
        for core in ascending {
            let mut locked = lock_directory.lock(core)?;
            if let lock::LockAttempt::HeldByOther(file) = &locked
                && !lock_directory.has_engine(core, file, Some(&marker))
            {
                lock_directory.use_unlocked(core, &mut marker)?;
                // An engine that locked it meanwhile may have missed our claim file: one of the two
                // has to see the other.
                locked = lock_directory.lock(core)?;
            }
            let other = match &locked {
                lock::LockAttempt::HeldByOther(file) if lock_directory.has_engine(core, file, Some(&marker)) => {
                    Some(file)
                }
                _ => None,
            };
            let user = lock_directory.used_unlocked(core, Some(&marker));
            if let Some(file) = other.or(user.as_ref()) {
                let holder = Holder::of(Path::new("/"), directory, file);
                return Err(ClaimError::Conflict(Conflict { core, holder }));
            }
            claims.held.push(match locked {
                lock::LockAttempt::Acquired(file) => (core, Some(file)),
                lock::LockAttempt::HeldByOther(_) => (core, None),
            });
        }
        claims._marker = Some(marker);
        Ok(claims)
    }

    /// Releases some of the cores. The claim file is written anew for the others before their old one
    /// goes, so that no core that stays looks unclaimed.
    ///
    /// # Errors
    /// [`ClaimError::Unavailable`] if the new claim file cannot be written: all cores stay claimed.
    pub fn release(&mut self, directory: &Path, cores: &[u32]) -> Result<(), ClaimError> {
        let (released, kept): (Vec<_>, Vec<_>) = self.held.iter().partition(|(core, _)| cores.contains(core));
        if released.is_empty() {
            return Ok(());
        }
        let lock_directory = lock::LockDirectory::open(directory)?;
        let mut marker = lock_directory.write_marker(&kept.iter().map(|(core, _)| *core).collect::<Vec<_>>())?;
        for (core, _) in kept.iter().filter(|(_, file)| file.is_none()) {
            lock_directory.use_unlocked(*core, &mut marker)?;
        }
        self.held.retain(|(core, _)| !cores.contains(core));
        self._marker = Some(marker);
        Ok(())
    }

    /// The cores held, ascending.
    pub fn cores(&self) -> Vec<u32> {
        self.held.iter().map(|(core, _)| *core).collect()
    }
}

/// The cores claimed in `directory` by this or another process, ascending. On systems that do not
/// list the holders of locks, this takes each lock for a moment, shared; a claim made in that
/// moment tries again.
pub fn claimed(directory: &Path) -> Vec<Conflict> {
    let Some(lock_directory) = lock::LockDirectory::open_existing(directory) else { return Vec::new() };
    let mut cores = lock_directory.cores();
    cores.extend(lock_directory.all_unlocked());
    cores.sort_unstable();
    cores.dedup();
    let mut taken = Vec::new();
    for core in cores {
        let locked = lock_directory.held_by_other(core).filter(|file| lock_directory.has_engine(core, file, None));
        if let Some(file) = locked.or_else(|| lock_directory.used_unlocked(core, None)) {
            taken.push(Conflict { core, holder: Holder::of(Path::new("/"), directory, &file) });
        }
    }
    taken
}

/// Cores in `directory` whose lock a program holds that is no engine, ascending. Such a lock claims
/// nothing.
pub fn foreign_locks(directory: &Path) -> Vec<Conflict> {
    let Some(lock_directory) = lock::LockDirectory::open_existing(directory) else { return Vec::new() };
    let mut found = Vec::new();
    for core in lock_directory.cores() {
        if let Some(file) =
            lock_directory.held_by_other(core).filter(|file| !lock_directory.has_engine(core, file, None))
        {
            found.push(Conflict { core, holder: Holder::of(Path::new("/"), directory, &file) });
        }
    }
    found
}

/// Messages for the operator on locks that claim nothing, one for each core.
pub fn foreign_lock_messages(foreign: &[Conflict]) -> Vec<String> {
    let sentence = |found: &Conflict| {
        format!("core {}: {} holds its lock but is no engine; the core is used all the same", found.core, found.holder)
    };
    foreign.iter().map(sentence).collect()
}

/// Messages for the operator on cores that others have claimed, one for each holder.
pub fn conflict_messages(conflicts: &[Conflict]) -> Vec<String> {
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
