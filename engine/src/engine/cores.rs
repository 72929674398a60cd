//! The plan on a machine that others use, too: what they have is left to them, what we take is claimed first.
//!
//! Runs once, on the caller's thread, before any hot thread. Bounded by [`CORES_MAX`] claims lost to others meanwhile.
//! An automatic plan is made on what is free and never refused; a listed one keeps its cores and loses `Prod` on those
//! that others have claimed.

use std::path::Path;

use super::devices;
use crate::host::claims::{ClaimError, Claims, Conflict, claimed, foreign, told, told_foreign};
use crate::host::{CORES_MAX, HostFacts};
use crate::plan::{Plan, PlanError};
use crate::profile::{Profile, Silos, SpinPolicy, Threads};

/// A plan, and the claims on the cores that its threads have for themselves.
#[derive(Debug)]
pub(super) struct Placed {
    pub(super) plan: Plan,
    pub(super) claims: Option<Claims>,
    /// What to tell of it.
    pub(super) notes: Vec<String>,
}

/// Plans on `host` and claims in `directory`. Settles the profile's number of silos; where nothing is left, its spin policy
/// becomes `Shared`.
pub(super) fn place(profile: &mut Profile, host: HostFacts, directory: &Path) -> Result<Placed, PlanError> {
    let placed = match profile.threads {
        Threads::Auto => auto(profile, host, directory),
        Threads::Explicit(_) => listed(profile, &host, directory),
    }?;
    profile.silos = Silos::Count(placed.plan.silos.count);
    Ok(placed)
}

fn auto(profile: &mut Profile, host: HostFacts, directory: &Path) -> Result<Placed, PlanError> {
    let known = !host.cores.is_empty();
    let (mut free, mut notes) = host.without_taken(directory);
    let (mut plan, claims) = loop {
        let plan = Plan::make(profile, &free)?;
        match Claims::take(directory, &free.with_siblings(&plan.claims())) {
            Ok(claims) => break (plan, Some(claims)),
            Err(ClaimError::Conflict(conflict)) => {
                notes.extend(told(std::slice::from_ref(&conflict)));
                // Each turn leaves at least one core to others, so this ends.
                free.cores.retain(|facts| facts.core != conflict.core && !facts.siblings.contains(&conflict.core));
            }
            Err(error @ ClaimError::Unavailable { .. }) => {
                notes.push(error.to_string());
                break (plan, None);
            }
        }
    };
    if known {
        notes.extend(gentle(profile, &mut plan));
    }
    notes.extend(plan.notes.iter().cloned());
    Ok(Placed { plan, claims, notes })
}

/// Where no core is left for a hot thread, the engine runs where cold work runs, and makes way for it.
fn gentle(profile: &mut Profile, plan: &mut Plan) -> Option<String> {
    let was = std::mem::replace(&mut profile.spin, SpinPolicy::Shared);
    if !plan.hot_cores().is_empty() || was == SpinPolicy::Shared {
        profile.spin = was;
        return None;
    }
    plan.spin = SpinPolicy::Shared;
    Some("others have all cores: running unpinned, with spin Shared".to_owned())
}

/// The plan that a start would make on `host` now, with its notes; claims nothing.
///
/// # Errors
/// When the profile lists its threads and they cannot be had.
pub fn foresee(profile: &Profile, host: HostFacts, directory: &Path) -> Result<Plan, PlanError> {
    let mut profile = profile.clone();
    let host = devices::foresee(&mut profile, host);
    let mut plan = match profile.threads {
        Threads::Auto => {
            let known = !host.cores.is_empty();
            let (free, mut notes) = host.without_taken(directory);
            let mut plan = Plan::make(&profile, &free)?;
            if known {
                notes.extend(gentle(&mut profile, &mut plan));
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
            let others = foreign(directory).into_iter().filter(|found| wanted.contains(&found.core));
            plan.notes.extend(told_foreign(&others.collect::<Vec<_>>()));
            plan
        }
    };
    let refusals = plan.refusals();
    plan.notes.extend(refusals);
    Ok(plan)
}

fn contested(conflict: &Conflict) -> String {
    format!("{conflict}: its thread shares it, and refuses spin Prod")
}

fn listed(profile: &Profile, host: &HostFacts, directory: &Path) -> Result<Placed, PlanError> {
    let mut plan = Plan::make(profile, host)?;
    let wanted = host.with_siblings(&plan.claims());
    let others = foreign(directory).into_iter().filter(|found| wanted.contains(&found.core));
    let mut notes = told_foreign(&others.collect::<Vec<_>>());
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
    use super::{Placed, foresee, place};
    use crate::host::claims::{Claims, claimed};
    use crate::host::{CoreFacts, HostFacts};
    use crate::profile::{Priority, Profile, RoleKind, SpinPolicy, ThreadSpec, Threads};
    use std::path::Path;

    /// Cores far above those of the machine that runs this, so that no pinned thread of another program is on them.
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
    fn a_second_engine_folds_onto_what_the_first_left_and_says_who_has_the_rest() {
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
    fn with_no_core_left_the_engine_runs_unpinned_and_shared_and_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let _others = Claims::take(folder.path(), &[900, 901, 902, 903]).unwrap();
        let mut profile = profile();
        let placed = placed(&mut profile, 900..904, folder.path());
        assert_eq!((placed.plan.hot_cores(), profile.spin), (vec![], SpinPolicy::Shared));
        assert!(placed.notes.iter().any(|note| note == "others have all cores: running unpinned, with spin Shared"));
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
        assert!(placed.notes[0].starts_with("found core 903 claimed by process "), "{:?}", placed.notes);
    }

    #[test]
    fn what_is_foreseen_is_what_a_start_does_and_claims_nothing() {
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
                let told = foresee(&profile, host(900..904), folder.path()).unwrap();
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
    fn without_a_place_for_claims_the_plan_stands_and_the_reason_is_told() {
        let placed = placed(&mut profile(), 900..908, Path::new("/proc/pinwheel"));
        assert!(placed.claims.is_none() && placed.plan.claims().len() == 3);
        assert!(placed.notes[0].contains("PINWHEEL_SHM"), "{:?}", placed.notes);
    }
}
