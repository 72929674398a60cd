//! The plan of a profile that lists its threads.
//!
//! Cold and pure; bounded by the list. Accepts the list unchanged, or refuses it with a reason.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::host::HostFacts;
use crate::host::check::ranges;
use crate::plan::silos;
use crate::plan::{Plan, PlannedRole, PlannedThread, RoleKind};
use crate::profile::{Decoders, Profile, SpinPolicy, THREAD_ROLES_MAX, ThreadSpec};

/// Why the listed threads are not possible.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum PlanError {
    TooManyCores { found: usize, allowed: usize },
    AboveMaxCores { found: usize, max: u32 },
    CoreNotAllowed { thread: String, core: u32, allowed: Vec<u32> },
    NameTwice { name: String },
    NoRoles { thread: String },
    UnknownSilo { thread: String, silo: u32, silos: u32 },
    TooManyRoles { thread: String, found: usize, silos: u32, cores: usize, remedy: String },
    RoleMissing { silo: u32, role: RoleKind },
    RoleTwice { silo: u32, role: RoleKind, first: String, second: String },
    DecodersDiffer { silo: u32, found: u32, expected: u32 },
    ProdShared { core: u32, first: String, second: String },
}

impl PlanError {
    /// What was found, what was expected, and a remedy.
    pub fn parts(&self) -> (String, String, String) {
        let (found, expected, remedy) = match self {
            Self::TooManyCores { found, allowed } => (
                format!("threads on {found} cores"),
                format!("at most the {allowed} allowed"),
                "list fewer cores or say Auto",
            ),
            Self::AboveMaxCores { found, max } => (
                format!("threads on {found} cores"),
                format!("at most max_cores, {max}"),
                "raise it or list fewer cores",
            ),
            Self::CoreNotAllowed { thread, core, allowed } => (
                format!("thread {thread} on core {core}"),
                format!("one of {}", ranges(allowed)),
                "name one of these or say None",
            ),
            Self::NameTwice { name } => {
                (format!("two threads named {name}"), "each name once".to_owned(), "rename one of them")
            }
            Self::NoRoles { thread } => {
                (format!("thread {thread} without roles"), "at least one".to_owned(), "give it a role or remove it")
            }
            Self::UnknownSilo { thread, silo, silos } => (
                format!("thread {thread} in silo {silo}"),
                format!("a silo below {silos}"),
                "raise silos or move the thread",
            ),
            Self::TooManyRoles { thread, found, silos, cores, remedy } => {
                let found = format!("{found} roles on thread {thread} (silos {silos}, hot cores {cores})");
                let expected = format!("at most {THREAD_ROLES_MAX} on one thread");
                return (found, expected, format!("{remedy}, or give the engine more cores"));
            }
            Self::RoleMissing { silo, role } => (
                format!("no thread with role {role} in silo {silo}"),
                "one".to_owned(),
                "add the role to a thread of that silo",
            ),
            Self::RoleTwice { silo, role, first, second } => (
                format!("role {role} of silo {silo} on {first} and again on {second}"),
                "it once".to_owned(),
                "remove one",
            ),
            Self::DecodersDiffer { silo, found, expected } => (
                format!("{found} decode roles in silo {silo}"),
                format!("decoders, {expected}"),
                "list as many or say Auto",
            ),
            Self::ProdShared { core, first, second } => (
                format!("{first} and {second} both on core {core} under spin Prod"),
                "one thread a core".to_owned(),
                "move one or spin with Lab",
            ),
        };
        (found, expected, remedy.to_owned())
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (found, expected, remedy) = self.parts();
        write!(f, "found {found}, expected {expected}; {remedy}")
    }
}

impl std::error::Error for PlanError {}

impl Plan {
    /// Checks the listed threads and makes their plan.
    ///
    /// # Errors
    /// At the first rule that is broken: names, silos and roles first, then cores.
    pub fn explicit(specs: &[ThreadSpec], profile: &Profile, host: &HostFacts) -> Result<Self, PlanError> {
        let silos = silos::listed(profile, specs);
        check_threads(specs, silos.count)?;
        check_roles(specs, silos.count, profile)?;
        check_cores(specs, profile, host)?;
        let mut decoders = BTreeMap::new();
        let threads = specs.iter().map(|spec| thread(spec, &mut decoders)).collect();
        let mut notes: Vec<String> = silos.note().into_iter().collect();
        for spec in specs.iter().filter(|spec| spec.core.is_none()) {
            notes.push(format!("{} is not pinned", spec.name));
        }
        Ok(Self::settle(threads, silos, profile, host, notes))
    }
}

/// Decode workers are numbered in list order, from 0 in each silo.
fn thread(spec: &ThreadSpec, decoders: &mut BTreeMap<u32, u32>) -> PlannedThread {
    let silo = spec.silo;
    let mut role = |&kind: &RoleKind| {
        let mut index = 0;
        if kind == RoleKind::Decode {
            let next = decoders.entry(silo).or_default();
            index = *next;
            *next += 1;
        }
        PlannedRole { kind, silo, index }
    };
    let roles = spec.roles.iter().map(&mut role).collect();
    PlannedThread {
        name: spec.name.clone(),
        silo,
        roles,
        core: spec.core,
        node: None,
        exclusive: true,
        contested: false,
    }
}

fn check_threads(specs: &[ThreadSpec], silos: u32) -> Result<(), PlanError> {
    let mut names = BTreeSet::new();
    for spec in specs {
        let thread = spec.name.clone();
        if !names.insert(&spec.name) {
            return Err(PlanError::NameTwice { name: thread });
        }
        if spec.roles.is_empty() {
            return Err(PlanError::NoRoles { thread });
        }
        if spec.silo >= silos {
            return Err(PlanError::UnknownSilo { thread, silo: spec.silo, silos });
        }
    }
    Ok(())
}

fn check_roles(specs: &[ThreadSpec], silos: u32, profile: &Profile) -> Result<(), PlanError> {
    let mut owners: BTreeMap<(u32, RoleKind), &str> = BTreeMap::new();
    let mut decoders: BTreeMap<u32, u32> = BTreeMap::new();
    for spec in specs {
        for &role in &spec.roles {
            if role == RoleKind::Decode {
                *decoders.entry(spec.silo).or_default() += 1;
            }
            if let Some(first) = owners.insert((spec.silo, role), &spec.name)
                && role != RoleKind::Decode
            {
                let (first, second) = (first.to_owned(), spec.name.clone());
                return Err(PlanError::RoleTwice { silo: spec.silo, role, first, second });
            }
        }
    }
    for silo in 0..silos {
        let mut needed = RoleKind::ALL.into_iter().filter(|&role| profile.device.has_role(role));
        if let Some(role) = needed.find(|&role| !owners.contains_key(&(silo, role))) {
            return Err(PlanError::RoleMissing { silo, role });
        }
        let found = decoders.get(&silo).copied().unwrap_or_default();
        match profile.decoders {
            Decoders::Count(expected) if expected != found => {
                return Err(PlanError::DecodersDiffer { silo, found, expected });
            }
            _ => {}
        }
    }
    Ok(())
}

fn check_cores(specs: &[ThreadSpec], profile: &Profile, host: &HostFacts) -> Result<(), PlanError> {
    let mut owners: BTreeMap<u32, &str> = BTreeMap::new();
    let cores: BTreeSet<u32> = specs.iter().filter_map(|spec| spec.core).collect();
    let (found, allowed) = (cores.len(), host.cores.len());
    if found > allowed {
        return Err(PlanError::TooManyCores { found, allowed });
    }
    match profile.max_cores {
        Some(max) if found > max as usize => return Err(PlanError::AboveMaxCores { found, max }),
        _ => {}
    }
    for spec in specs {
        let Some(core) = spec.core else { continue };
        if host.core(core).is_none() {
            let allowed = host.cores.iter().map(|facts| facts.core).collect();
            return Err(PlanError::CoreNotAllowed { thread: spec.name.clone(), core, allowed });
        }
        if let Some(first) = owners.insert(core, &spec.name)
            && profile.spin == SpinPolicy::Prod
        {
            return Err(PlanError::ProdShared { core, first: first.to_owned(), second: spec.name.clone() });
        }
    }
    Ok(())
}
