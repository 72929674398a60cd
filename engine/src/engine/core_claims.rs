//! The claims of a running engine, which follow its cores: a core that goes offline or leaves the
//! process's cpuset is released, and claimed again before a thread is pinned to it again.
//!
//! Shared by the watchdog, which releases and claims, and the engine's control thread, which holds
//! them until the hot threads have ended. Cold. Bounded by the claims of the start.

use crate::host::HostFacts;
use crate::host::claims::{ClaimError, Claims};
use crate::plan::Plan;
use std::path::{Path, PathBuf};
#[expect(clippy::disallowed_types, reason = "cold: shared by the watchdog and the control thread")]
use std::sync::Mutex;
use std::sync::{MutexGuard, PoisonError};

/// The claims of one engine. Dropping it releases them.
#[derive(Debug)]
pub(super) struct CoreClaims {
    directory: PathBuf,
    /// Each claimed core with its SMT siblings. Read at the start: an offline core shows none.
    groups: Vec<Vec<u32>>,
    /// The claims of the start, and those of each core that was claimed again.
    #[expect(clippy::disallowed_types, reason = "cold: shared by the watchdog and the control thread")]
    held: Mutex<Vec<Claims>>,
}

impl CoreClaims {
    /// Those made at the start for `plan`, on the machine `host`.
    pub(super) fn new(claims: Claims, plan: &Plan, host: &HostFacts, directory: &Path) -> CoreClaims {
        let groups = plan.claims().iter().map(|core| host.with_siblings(&[*core])).collect();
        CoreClaims { directory: directory.to_owned(), groups, held: vec![claims].into() }
    }

    /// Releases `core` with its siblings. If its claim file cannot be written, it stays claimed.
    pub(super) fn release(&self, core: u32) {
        let Some(group) = self.group(core) else { return };
        let mut held = self.held();
        for claims in held.iter_mut() {
            let _ = claims.release(&self.directory, group);
        }
        held.retain(|claims| !claims.cores().is_empty());
    }

    /// Claims `core` with its siblings again, unless it is claimed.
    ///
    /// # Errors
    /// If another engine has claimed it meanwhile. Without claim files a core is used unclaimed, as
    /// at the start.
    pub(super) fn claim(&self, core: u32) -> Result<(), String> {
        let Some(group) = self.group(core) else { return Ok(()) };
        let mut held = self.held();
        if held.iter().any(|claims| claims.cores().contains(&core)) {
            return Ok(());
        }
        match Claims::take(&self.directory, group) {
            Ok(claims) => held.push(claims),
            Err(ClaimError::Conflict(conflict)) => return Err(conflict.to_string()),
            Err(ClaimError::Unavailable { .. }) => {}
        }
        Ok(())
    }

    fn group(&self, core: u32) -> Option<&[u32]> {
        self.groups.iter().find(|group| group.contains(&core)).map(Vec::as_slice)
    }

    /// No code panics while it holds the lock.
    fn held(&self) -> MutexGuard<'_, Vec<Claims>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
