//! Planning on a shared machine: avoids cores that other programs use, and claims the engine's own
//! cores first.
//!
//! Runs once, on the caller's thread, before any hot thread. Bounded by [`CORES_MAX`] claims that
//! other engines win meanwhile. An automatic plan uses the free cores and is never refused; a
//! listed plan keeps its cores, and its threads on cores claimed by others run without `Prod`.

use std::path::Path;

use crate::host::claims::{
    ClaimError, Claims, Conflict, claimed, conflict_messages, foreign_lock_messages, foreign_locks,
};
use crate::host::{CORES_MAX, HostFacts};
use crate::plan::{Plan, PlanError};
use crate::profile::{Profile, Silos, SpinPolicy, Threads};

/// A plan, and the claims on its exclusive cores.
#[derive(Debug)]
pub(super) struct Placed {
    pub(super) plan: Plan,
    pub(super) claims: Option<Claims>,
    /// Notes for the operator.
    pub(super) notes: Vec<String>,
}

/// Plans on `host` and claims in `directory`. Settles the profile's number of silos; if no core is
/// left, sets its spin policy to `Shared`.
pub(super) fn place(profile: &mut Profile, host: HostFacts, directory: &Path) -> Result<Placed, PlanError> {
    let placed = match profile.threads {
        Threads::Auto | Threads::Balanced => auto(profile, host, directory),
        Threads::Explicit(_) => listed(profile, &host, directory),
    }?;
    profile.silos = Silos::Count(placed.plan.silos.count);
    Ok(placed)
}

fn auto(profile: &mut Profile, host: HostFacts, directory: &Path) -> Result<Placed, PlanError> {
    let known = !host.cores.is_empty();
    let (mut free, mut notes) = host.without_used_cores(directory);
    let (mut plan, claims) = loop {
        let plan = Plan::make(profile, &free)?;
        match Claims::take(directory, &free.with_siblings(&plan.claims())) {
            Ok(claims) => break (plan, Some(claims)),
            Err(ClaimError::Conflict(conflict)) => {
                notes.extend(conflict_messages(std::slice::from_ref(&conflict)));
                // Each retry removes at least one core, so the loop ends.
                free.cores.retain(|facts| facts.core != conflict.core && !facts.siblings.contains(&conflict.core));
            }
            Err(error @ ClaimError::Unavailable { .. }) => {
                notes.push(error.to_string());
                break (plan, None);
            }
        }
    };
    if known {
        notes.extend(share_if_no_core(profile, &mut plan));
    }
    notes.extend(plan.notes.iter().cloned());
    Ok(Placed { plan, claims, notes })
}

/// If no core is left for a hot thread, the engine runs on the cold cores with spin `Shared`.
fn share_if_no_core(profile: &mut Profile, plan: &mut Plan) -> Option<String> {
    let was = std::mem::replace(&mut profile.spin, SpinPolicy::Shared);
    if !plan.hot_cores().is_empty() || was == SpinPolicy::Shared {
        profile.spin = was;
        return None;
    }
    plan.spin = SpinPolicy::Shared;
    Some("other programs use all cores: running unpinned, with spin Shared".to_owned())
}

/// The plan that a start on `host` would make now, with its notes; claims nothing.
///
/// # Errors
/// If the profile lists its threads and the plan is impossible.
pub(super) fn preview_plan(mut profile: Profile, host: HostFacts, directory: &Path) -> Result<Plan, PlanError> {
    let mut plan = match profile.threads {
        Threads::Auto | Threads::Balanced => {
            let known = !host.cores.is_empty();
            let (free, mut notes) = host.without_used_cores(directory);
            let mut plan = Plan::make(&profile, &free)?;
            if known {
                notes.extend(share_if_no_core(&mut profile, &mut plan));
            }
            plan.notes.extend(notes);
            plan
        }
        Threads::Explicit(_) => {
            let mut plan = Plan::make(&profile, &host)?;
            let wanted = host.with_siblings(&plan.claims());
            for conflict in claimed(directory).into_iter().filter(|conflict| wanted.contains(&conflict.core)) {
                plan.contest(conflict.core, &host);
                plan.notes.push(contested(&conflict));
            }
            let others = foreign_locks(directory).into_iter().filter(|found| wanted.contains(&found.core));
            plan.notes.extend(foreign_lock_messages(&others.collect::<Vec<_>>()));
            plan
        }
    };
    let refusals = plan.refusals();
    plan.notes.extend(refusals);
    Ok(plan)
}

fn contested(conflict: &Conflict) -> String {
    format!("{conflict}: the thread planned there shares the core and runs without spin Prod")
}

fn listed(profile: &Profile, host: &HostFacts, directory: &Path) -> Result<Placed, PlanError> {
    let mut plan = Plan::make(profile, host)?;
    let wanted = host.with_siblings(&plan.claims());
    let others = foreign_locks(directory).into_iter().filter(|found| wanted.contains(&found.core));
    let mut notes = foreign_lock_messages(&others.collect::<Vec<_>>());
    let mut claims = None;
    for _ in 0..CORES_MAX {
        match Claims::take(directory, &host.with_siblings(&plan.claims())) {
            Ok(taken) => {
                claims = Some(taken);
                break;
            }
            Err(ClaimError::Conflict(conflict)) => {
                plan.contest(conflict.core, host);
                notes.push(contested(&conflict));
            }
            Err(error @ ClaimError::Unavailable { .. }) => {
                notes.push(error.to_string());
                break;
            }
        }
    }
    notes.extend(plan.notes.iter().cloned());
    Ok(Placed { plan, claims, notes })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Placed, place, preview_plan};
    use crate::host::claims::{Claims, claimed};
    use crate::host::{CoreFacts, HostFacts};
    use crate::profile::{Priority, Profile, SpinPolicy, ThreadSpec, Threads};
    use crate::roles::RoleKind;
    use std::path::Path;

    /// Cores with numbers far above the host's, so that no other program has a thread pinned there.
    fn host(cores: std::ops::Range<u32>) -> HostFacts {
        let mut host = HostFacts::read_at(Path::new("/no/such"), &[]);
        host.cores = cores.map(|core| CoreFacts { core, node: 0, siblings: vec![core ^ 1] }).collect();
        host
    }

    fn placed(profile: &mut Profile, cores: std::ops::Range<u32>, directory: &Path) -> Placed {
        place(profile, host(cores), directory).unwrap()
    }

    fn profile() -> Profile {
        Profile::load("prod", None).unwrap().0
    }

    #[test]
    fn exclusive_cores_are_claimed_with_their_siblings_until_the_claims_are_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let first = placed(&mut profile(), 900..908, folder.path());
        assert_eq!(first.plan.claims(), [902, 904, 906]);
        assert_eq!(first.claims.as_ref().unwrap().cores(), [902, 903, 904, 905, 906, 907]);
        assert_eq!(claimed(folder.path()).len(), 6);
        drop(first);
        assert_eq!(claimed(folder.path()), []);
    }

    #[test]
    fn a_second_engine_uses_the_free_cores_and_names_the_owner_of_the_others() {
        let folder = tempfile::tempdir().unwrap();
        let first = placed(&mut Profile { max_cores: Some(2), ..profile() }, 900..908, folder.path());
        assert_eq!(first.plan.hot_cores(), [902, 904]);
        let second = placed(&mut profile(), 900..908, folder.path());
        assert_eq!(second.plan.hot_cores(), [900, 906]);
        assert_eq!(second.claims.as_ref().unwrap().cores(), [906, 907]);
        let pid = std::process::id();
        let said = &second.notes[0];
        assert!(said.starts_with(&format!("core 902,903,904,905 left to process {pid} ")), "{said}");
    }

    #[test]
    fn without_a_free_core_the_engine_runs_unpinned_and_shared_with_a_note() {
        let folder = tempfile::tempdir().unwrap();
        let _others = Claims::take(folder.path(), &[900, 901, 902, 903]).unwrap();
        let mut profile = profile();
        let placed = placed(&mut profile, 900..904, folder.path());
        assert_eq!((placed.plan.hot_cores(), profile.spin), (vec![], SpinPolicy::Shared));
        assert!(
            placed.notes.iter().any(|note| note == "other programs use all cores: running unpinned, with spin Shared")
        );
        assert_eq!(claimed(folder.path()).len(), 4);
    }

    #[test]
    fn a_listed_thread_on_a_claimed_core_stays_there_and_refuses_prod() {
        let folder = tempfile::tempdir().unwrap();
        let _others = Claims::take(folder.path(), &[903]).unwrap();
        let spec = |name: &str, roles: &[RoleKind], core| ThreadSpec {
            name: name.to_owned(),
            roles: roles.to_vec(),
            silo: 0,
            core: Some(core),
        };
        let threads = vec![spec("ring", &RoleKind::RING, 902), spec("work", &[RoleKind::Decode], 904)];
        let mut profile = Profile { threads: Threads::Explicit(threads), ..profile() };
        let placed = placed(&mut profile, 900..906, folder.path());
        let refused: Vec<bool> =
            placed.plan.threads.iter().map(|thread| thread.refuses(SpinPolicy::Prod).is_some()).collect();
        assert_eq!((refused, placed.claims.unwrap().cores()), (vec![true, false], vec![904, 905]));
        assert!(placed.notes[0].starts_with("core 903 is claimed by process "), "{:?}", placed.notes);
    }

    #[test]
    fn a_previewed_plan_equals_that_of_the_start_and_claims_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let spec = |name: &str, roles: &[RoleKind], core| ThreadSpec {
            name: name.to_owned(),
            roles: roles.to_vec(),
            silo: 0,
            core: Some(core),
        };
        let listed = vec![spec("ring", &RoleKind::RING, 902), spec("work", &[RoleKind::Decode], 900)];
        for taken in [&[][..], &[902, 903], &[900, 901, 902, 903]] {
            let _others = Claims::take(folder.path(), taken).unwrap();
            for threads in [Threads::Auto, Threads::Explicit(listed.clone())] {
                let profile = Profile { threads, priority: Priority::Fifo(5), ..profile() };
                let told = preview_plan(profile.clone(), host(900..904), folder.path()).unwrap();
                assert_eq!(claimed(folder.path()).len(), taken.len());
                let mut started = profile.clone();
                let placed = placed(&mut started, 900..904, folder.path());
                assert_eq!((&told.threads, told.spin), (&placed.plan.threads, started.spin), "{taken:?}");
                assert!(placed.plan.refusals().iter().all(|said| told.notes.contains(said)), "{:?}", told.notes);
                let unpinned = told.notes.iter().any(|note| note.contains("running unpinned, with spin Shared"));
                assert_eq!(unpinned, told.hot_cores().is_empty(), "{:?}", told.notes);
            }
        }
    }

    #[test]
    fn without_a_directory_for_claims_the_plan_is_kept_and_the_reason_noted() {
        let placed = placed(&mut profile(), 900..908, Path::new("/proc/pinwheel"));
        assert!(placed.claims.is_none() && placed.plan.claims().len() == 3);
        assert!(placed.notes[0].contains("PINWHEEL_SHM"), "{:?}", placed.notes);
    }
}
