//! The plan of threads: which roles share a thread, and which core it is pinned to.
//!
//! Owns [`Plan`] and the two ways to make one from a profile and a machine: [`Plan::auto`] by a
//! rule, [`Plan::explicit`] from the profile's list. Pure and cold: it runs before any thread
//! starts. Bounded by the cores, silos and roles. Never pins, claims, or reads the machine.
//!
//! # How cores are divided
//!
//! ```text
//! allowed cores = hot cores + SMT siblings of exclusive hot cores (unused) + cold cores
//! ```
//!
//! A thread is *exclusive* if it is pinned and no other thread of ours, hot or cold, runs on its
//! core or that core's SMT siblings. If every core is hot, cold threads share one with a hot
//! thread, which then is not exclusive.

mod auto;
mod explicit;
mod nodes;
mod row;
mod hot_core;
mod silos;

use std::collections::BTreeSet;

pub use crate::roles::RoleKind;
pub use explicit::PlanError;
pub use silos::PlannedSilos;

use crate::host::HostFacts;
use crate::profile::{Priority, Profile, Silos, SpinPolicy, THREAD_ROLES_MAX, Threads};

/// Which threads run which roles on which cores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// How many silos there are, and why.
    pub silos: PlannedSilos,
    /// The hot threads, in the order in which they start.
    pub threads: Vec<PlannedThread>,
    /// Cores of cold threads, ascending; empty only if no core is known.
    pub cold_cores: Vec<u32>,
    /// SMT siblings of exclusive hot cores, ascending. No thread of ours runs there.
    pub unused_cores: Vec<u32>,
    /// Notes for the operator, one sentence each.
    pub notes: Vec<String>,
    /// The spin policy of the threads, except those that refuse it.
    pub spin: SpinPolicy,
    /// The priority of the threads, except those that refuse it.
    pub priority: Priority,
}

/// One hot thread of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedThread {
    /// The thread's name, at most 15 bytes if the plan is automatic.
    pub name: String,
    /// The silo of its first role. A thread may serve several silos, see `roles`.
    pub silo: u32,
    /// Its roles, in the order in which a frame runs them.
    pub roles: Vec<PlannedRole>,
    /// The core it is pinned to; a thread without one runs on the cold cores.
    pub core: Option<u32>,
    /// The NUMA node of that core.
    pub node: Option<u32>,
    /// Whether no other thread of ours runs on its core or that core's SMT siblings.
    pub exclusive: bool,
    /// Whether another process has claimed its core.
    pub contested: bool,
}

/// One role of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlannedRole {
    /// What it does.
    pub kind: RoleKind,
    /// The silo it works for.
    pub silo: u32,
    /// The decode worker's number in its silo; 0 for other roles.
    pub index: u32,
}

impl PlannedThread {
    /// Whether it is pinned. An unpinned thread runs the same frames on any core.
    pub fn hot(&self) -> bool {
        self.core.is_some()
    }

    /// Why this thread may not run under `policy`; `None` if it may. A thread that refuses runs
    /// `Lab`.
    pub fn refuses(&self, policy: SpinPolicy) -> Option<&'static str> {
        match policy {
            SpinPolicy::Lab | SpinPolicy::Shared => None,
            SpinPolicy::Prod if self.core.is_none() => Some("it is not pinned, and would take a core from others"),
            SpinPolicy::Prod if self.contested => Some("another process has claimed its core"),
            SpinPolicy::Prod if !self.exclusive => Some("it shares its core, which a thread under Prod never yields"),
            SpinPolicy::Prod => None,
        }
    }

    /// Why this thread may not run at `priority` under `spin`; `None` if it may. A thread that
    /// refuses runs `Normal`.
    pub fn refuses_priority(&self, priority: Priority, spin: SpinPolicy) -> Option<&'static str> {
        match priority {
            Priority::Normal | Priority::Nice(_) => None,
            Priority::Fifo(_) if self.core.is_none() => Some("it is not pinned, and would take a core from others"),
            Priority::Fifo(_) if self.contested => Some("another process has claimed its core"),
            Priority::Fifo(_) if !self.exclusive => Some("it shares its core, where nothing else would ever run"),
            Priority::Fifo(_) if spin == SpinPolicy::Shared => Some("spin Shared makes way for others"),
            Priority::Fifo(_) => None,
        }
    }

    /// The policy that it runs if `spin` is asked for.
    pub fn spin(&self, spin: SpinPolicy) -> SpinPolicy {
        if self.refuses(spin).is_some() { SpinPolicy::Lab } else { spin }
    }
}

impl Plan {
    /// Makes the plan that the profile asks for.
    ///
    /// # Errors
    /// If the threads that the profile lists are not possible, or a thread would have more than
    /// [`THREAD_ROLES_MAX`] roles.
    pub fn make(profile: &Profile, host: &HostFacts) -> Result<Self, PlanError> {
        let plan = match &profile.threads {
            Threads::Auto | Threads::Balanced => Self::auto(profile, host),
            Threads::Explicit(specs) => Self::explicit(specs, profile, host)?,
        };
        match plan.overfull() {
            None => Ok(plan),
            Some(thread) => {
                let (silos, cores) = (plan.silos.count, plan.hot_cores().len());
                let fits = |silos: &u32| {
                    let fewer = Profile { silos: Silos::Count(*silos), ..profile.clone() };
                    Self::auto(&fewer, host).overfull().is_none()
                };
                let remedy = match (1..silos).rev().find(fits) {
                    Some(most) => format!("plan at most {most} silos, or fewer decoders"),
                    None => "plan fewer decoders".to_owned(),
                };
                Err(PlanError::TooManyRoles {
                    thread: thread.name.clone(),
                    found: thread.roles.len(),
                    silos,
                    cores,
                    remedy,
                })
            }
        }
    }

    /// The first thread with more roles than the board has room for.
    fn overfull(&self) -> Option<&PlannedThread> {
        self.threads.iter().find(|thread| thread.roles.len() > THREAD_ROLES_MAX)
    }

    /// The cores to claim before the threads start: those of exclusive threads, ascending.
    pub fn claims(&self) -> Vec<u32> {
        let mut cores: Vec<u32> = exclusive(&self.threads).collect();
        cores.sort_unstable();
        cores
    }

    /// What the threads refuse of the profile's spin policy and priority: one sentence each.
    pub fn refusals(&self) -> Vec<String> {
        let of = |thread: &PlannedThread| {
            let spin =
                thread.refuses(self.spin).map(|why| format!("{} runs spin Lab instead of Prod: {why}", thread.name));
            let priority = thread.refuses_priority(self.priority, thread.spin(self.spin));
            let asked = self.priority;
            [spin, priority.map(|why| format!("{} runs at priority normal instead of {asked}: {why}", thread.name))]
        };
        self.threads.iter().flat_map(of).flatten().collect()
    }

    /// The cores of all hot threads, ascending.
    pub fn hot_cores(&self) -> Vec<u32> {
        let mut cores: Vec<u32> = self.threads.iter().filter_map(|thread| thread.core).collect();
        cores.sort_unstable();
        cores.dedup();
        cores
    }

    /// Marks the threads on `core` or its SMT sibling as contested, because another process has
    /// claimed it.
    pub fn contest(&mut self, core: u32, host: &HostFacts) {
        for thread in &mut self.threads {
            if thread.core.is_some_and(|mine| host.with_siblings(&[mine]).contains(&core)) {
                thread.exclusive = false;
                thread.contested = true;
            }
        }
    }

    /// Every role of every thread.
    pub fn roles(&self) -> impl Iterator<Item = PlannedRole> {
        self.threads.iter().flat_map(|thread| thread.roles.iter().copied())
    }

    /// The decode workers of a silo.
    pub fn decoders(&self, silo: u32) -> u32 {
        let decode = self.roles().filter(|role| role.kind == RoleKind::Decode && role.silo == silo);
        decode.fold(0, |count, _| count + 1)
    }

    /// Decides which threads are exclusive, where cold threads run and which cores stay unused.
    ///
    /// Cold threads take the first of these that is not empty: cores without a hot thread that are
    /// not siblings of exclusive ones; cores of threads that are not exclusive anyway; the core of
    /// the last exclusive thread.
    fn settle(
        mut threads: Vec<PlannedThread>,
        silos: PlannedSilos,
        profile: &Profile,
        host: &HostFacts,
        mut notes: Vec<String>,
    ) -> Self {
        let streams = profile.input.streams;
        if silos.count > streams {
            let count = silos.count;
            notes.push(format!(
                "silos {count}, streams {streams}: a silo without a stream gets no shots; run fewer silos"
            ));
        }
        threads.iter_mut().for_each(|thread| thread.roles.retain(|role| profile.device.has_role(role.kind)));
        threads.retain(|thread| !thread.roles.is_empty());
        let hot: Vec<u32> = threads.iter().filter_map(|thread| thread.core).collect();
        for thread in &mut threads {
            let facts = thread.core.and_then(|core| host.core(core));
            thread.node = facts.map(|facts| facts.node);
            thread.exclusive &= facts.is_some_and(|facts| {
                hot.iter().filter(|&&core| core == facts.core).count() == 1
                    && !facts.siblings.iter().any(|sibling| hot.contains(sibling))
            });
        }
        let mut cold_cores = not_exclusive(&threads, host);
        if cold_cores.is_empty()
            && let Some(last) = threads.iter_mut().rfind(|thread| thread.exclusive)
        {
            last.exclusive = false;
            cold_cores = not_exclusive(&threads, host);
        }
        if cold_cores.iter().any(|core| !hot.contains(core)) {
            cold_cores.retain(|core| !hot.contains(core));
        }
        let unused_cores = unused(&threads, host).into_iter().collect();
        let (spin, priority) = (profile.spin, profile.priority);
        Self { silos, threads, cold_cores, unused_cores, notes, spin, priority }
    }
}

fn exclusive(threads: &[PlannedThread]) -> impl Iterator<Item = u32> {
    threads.iter().filter(|thread| thread.exclusive).filter_map(|thread| thread.core)
}

/// The allowed SMT siblings of exclusive hot cores.
fn unused(threads: &[PlannedThread], host: &HostFacts) -> BTreeSet<u32> {
    let siblings = exclusive(threads).filter_map(|core| host.core(core)).flat_map(|facts| &facts.siblings);
    siblings.copied().filter(|&core| host.core(core).is_some()).collect()
}

/// The allowed cores on which cold threads disturb no exclusive thread.
fn not_exclusive(threads: &[PlannedThread], host: &HostFacts) -> Vec<u32> {
    let mut taken = unused(threads, host);
    taken.extend(exclusive(threads));
    host.cores.iter().map(|facts| facts.core).filter(|core| !taken.contains(core)).collect()
}

#[cfg(test)]
mod tests;
