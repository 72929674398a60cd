//! Facts about the machine that need no privilege, and pinning of threads.
//!
//! Owns what is known of cores, nodes, SMT, quota and identity ([`HostFacts`]), read once on a cold
//! thread before threads start, and the calls by which each thread pins itself ([`pin`]). Bounded
//! by [`CORES_MAX`] and by [`FILE_BYTES_MAX`] for each file. Submodules tell which cores are
//! claimed by engines ([`claims`]), pinned to by other programs ([`pins`]) and in use ([`usage`]),
//! and whether the machine is set up for hot threads ([`check`]). Never changes a setting of the
//! machine. What is not visible is `None` or [`Quota::NotVisible`].
//!
//! # Why the cores come from the affinity mask
//!
//! The number of processors differs from the number that this process may use (containers,
//! `taskset`), and does not say which these are. Pinning to core 5 fails if the set is 8..=15, and
//! its fifth core is another one.

pub mod check;
pub mod claims;
pub mod limit;
mod machine;
pub mod memory;
pub mod neighbours;
pub mod pin;
pub mod pins;
#[cfg_attr(target_os = "linux", expect(unsafe_code, reason = "the scheduler's system calls"))]
pub mod priority;
mod recorded;
#[expect(unsafe_code, reason = "reads the word that the kernel keeps of a thread's core")]
pub mod current_core;
mod topology;
#[cfg(test)]
#[allow(dead_code, reason = "each crate that has it uses its part")]
#[path = "../testing/trees.rs"]
pub(crate) mod trees;
pub mod usable;
pub mod usage;

use std::path::Path;

use serde::Serialize;

use check::ranges;
pub use machine::{Quota, cpu_groups};
pub use topology::parse_cpu_list;

/// Most cores that are examined. Cores with this number or a higher one cannot be pinned to.
pub const CORES_MAX: u32 = 1024;
/// Most bytes read of any one file under `/proc` and `/sys`: `/proc/interrupts` of a thousand cores has some 20 MB.
pub const FILE_BYTES_MAX: u64 = 64 << 20;

/// What is known of the machine and of this process on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostFacts {
    /// The machine's name.
    pub hostname: Option<String>,
    /// The kernel's release.
    pub kernel_release: Option<String>,
    /// The id that changes with every boot.
    pub boot_id: Option<String>,
    /// The name of the user that runs this process, or `uid N` for one without a name.
    pub user: Option<String>,
    /// The processor's model.
    pub cpu_model: Option<String>,
    /// Whether the machine is virtual.
    pub hypervisor: Option<bool>,
    /// The machine's memory, bytes.
    pub memory_bytes: Option<u64>,
    /// The CPU time that the control group allows.
    pub cpu_quota: Quota,
    /// The cores that this process may use, ascending.
    pub cores: Vec<CoreFacts>,
    /// The NUMA nodes of the GPUs, ascending.
    pub gpu_nodes: Vec<u32>,
    /// Number of GPUs on the bus, or, if the driver was asked, of those that it has.
    pub gpus: u32,
}

/// One core that this process may use. "Core" means one SMT thread, the unit that the system
/// schedules on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CoreFacts {
    /// The system's number of the core.
    pub core: u32,
    /// Its NUMA node.
    pub node: u32,
    /// The other SMT threads of the same physical core, allowed or not, ascending.
    pub siblings: Vec<u32>,
}

/// Why the machine's facts cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum HostError {
    #[error(
        "found no affinity mask of this process ({reason}), expected the cores that it may use, at most {CORES_MAX}; \
         allow sched_getaffinity in the sandbox"
    )]
    NoMask { reason: String },
    #[error(
        "found no cores under {path}, expected a recorded tree with sys/devices/system/cpu; record one with cp -rL of \
         that directory and sys/devices/system/node, or name another"
    )]
    NoTree { path: String },
    #[error("core {} is not allowed to this process; name cores of {}", ranges(.found), ranges(.allowed))]
    NotAllowed { found: Vec<u32>, allowed: Vec<u32> },
}

/// Numbers with commas between them.
pub(crate) fn list(cores: &[u32]) -> String {
    cores.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

/// The online cores of the machine whose files are under `root`, ascending; empty if they are not
/// visible.
pub fn online_cores(root: &Path) -> Vec<u32> {
    topology::online(root)
}

impl HostFacts {
    /// Reads this machine's facts. Call it before any thread is pinned: it reads the main thread's
    /// allowed cores.
    ///
    /// # Errors
    /// If the system does not tell which cores this process may use.
    pub fn read() -> Result<Self, HostError> {
        Ok(Self::read_at(Path::new("/"), &pin::allowed_cores()?))
    }

    /// Reads the tree under `root`, which has `proc`, `sys` and `etc`, for a process that may use
    /// the cores `allowed`.
    pub fn read_at(root: &Path, allowed: &[u32]) -> Self {
        let mut cores: Vec<CoreFacts> = allowed.iter().map(|&core| topology::core(root, core)).collect();
        cores.sort_unstable_by_key(|core| core.core);
        cores.dedup_by_key(|core| core.core);
        let cpu = machine::cpu(root);
        let topology::Gpus { nodes: gpu_nodes, count: gpus } = topology::gpus(root);
        Self {
            hostname: machine::word(root, "proc/sys/kernel/hostname"),
            kernel_release: machine::word(root, "proc/sys/kernel/osrelease"),
            boot_id: machine::word(root, "proc/sys/kernel/random/boot_id"),
            user: machine::user(root),
            cpu_model: cpu.model,
            hypervisor: cpu.hypervisor,
            memory_bytes: machine::memory_bytes(root, "MemTotal"),
            cpu_quota: machine::quota(root),
            cores,
            gpu_nodes,
            gpus,
        }
    }

    /// Keeps only these cores.
    ///
    /// # Errors
    /// If this process may not use one of them.
    pub fn restrict(&mut self, cores: &[u32]) -> Result<(), HostError> {
        let found: Vec<u32> = cores.iter().copied().filter(|&core| self.core(core).is_none()).collect();
        if !found.is_empty() || cores.is_empty() {
            return Err(HostError::NotAllowed { found, allowed: self.cores.iter().map(|facts| facts.core).collect() });
        }
        self.cores.retain(|facts| cores.contains(&facts.core));
        Ok(())
    }

    /// Removes the cores that others use, with their SMT siblings, and returns a sentence on each:
    /// cores that an engine has claimed in `directory`, and cores that a running thread of another
    /// program is pinned to, unless it is a cold thread of an engine.
    #[must_use]
    pub fn without_used_cores(mut self, directory: &Path) -> (Self, Vec<String>) {
        let own: Vec<u32> = self.cores.iter().map(|facts| facts.core).collect();
        let near = self.with_siblings(&own);
        let mut claimed = claims::claimed(directory);
        claimed.retain(|conflict| near.contains(&conflict.core));
        let mut notes = claims::conflict_messages(&claimed);
        let mut taken: Vec<u32> = claimed.iter().map(|conflict| conflict.core).collect();
        let pinned = pins::pins(Path::new("/"), std::process::id());
        for pin in pins::in_use(pinned, &pins::hot_threads(directory)) {
            let is_new = |core: &u32| near.contains(core) && !taken.contains(core);
            let here: Vec<u32> = pin.cores.iter().copied().filter(is_new).collect();
            if !here.is_empty() {
                let (cores, name, pid) = (list(&here), &pin.name, pin.pid);
                notes
                    .push(format!("core {cores} left to {name} (process {pid}), whose running thread is pinned there"));
                taken.extend(here);
            }
        }
        let taken = self.with_siblings(&taken);
        let foreign: Vec<_> =
            claims::foreign_locks(directory).into_iter().filter(|found| self.core(found.core).is_some()).collect();
        notes.extend(claims::foreign_lock_messages(&foreign));
        notes.extend(self.isolated_left_out(Path::new("/")));
        self.cores.retain(|facts| !taken.contains(&facts.core));
        (self, notes)
    }

    /// Says how to use the isolated cores of the machine whose files are under `root`, if
    /// [`isolated_outside`] finds some.
    fn isolated_left_out(&self, root: &Path) -> Option<String> {
        let isolated = read_text(&root.join("sys/devices/system/cpu/isolated"))?;
        let allowed: Vec<u32> = self.cores.iter().map(|facts| facts.core).collect();
        let (outside, all) = isolated_outside(&parse_cpu_list(&isolated)?, &topology::online(root), &allowed)?;
        let (isolated, all) = (ranges(&outside), ranges(&all));
        Some(format!("isolated core {isolated} left out; start with taskset -c {all} to use it"))
    }

    /// These cores and all their SMT siblings, allowed or not, ascending. A claim covers all of
    /// them.
    pub fn with_siblings(&self, cores: &[u32]) -> Vec<u32> {
        let mut all = cores.to_vec();
        all.extend(cores.iter().filter_map(|&core| self.core(core)).flat_map(|facts| facts.siblings.iter().copied()));
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The facts of one allowed core.
    pub fn core(&self, core: u32) -> Option<&CoreFacts> {
        self.cores.iter().find(|facts| facts.core == core)
    }
}

/// The isolated cores that a process with the cores `allowed` may not use, and the `allowed` ones
/// with them; `None` if there are none, or if it may not use others either. The kernel starts no
/// program on isolated cores by itself, whatever the machine was set up for.
fn isolated_outside(isolated: &[u32], online: &[u32], allowed: &[u32]) -> Option<(Vec<u32>, Vec<u32>)> {
    let outside: Vec<u32> = online.iter().copied().filter(|core| !allowed.contains(core)).collect();
    if outside.is_empty() || !outside.iter().all(|core| isolated.contains(core)) {
        return None;
    }
    let mut all = [allowed, &outside].concat();
    all.sort_unstable();
    Some((outside, all))
}

/// Reads at most [`FILE_BYTES_MAX`] of a file as text; `None` if it cannot be read.
fn read_text(path: &Path) -> Option<String> {
    use std::io::Read;
    let mut bytes = Vec::new();
    std::fs::File::open(path).ok()?.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests;
