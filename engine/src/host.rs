//! The machine under the engine: facts that need no privilege, and pinning.
//!
//! Owns what is known of cores, nodes, SMT, quota and identity ([`HostFacts`]), read once on a cold thread before
//! threads are started, and the calls that bind a thread to cores ([`pin`]), made by each thread for itself. Bounded by
//! [`CORES_MAX`] and by [`FILE_BYTES_MAX`] for each file read. Beside them: which cores are claimed by which engine
//! ([`claims`]), pinned to by other programs ([`pins`]) and in use ([`usage`]), and whether the machine is set up for
//! hot threads at all ([`check`]). Never changes a setting of the machine; what cannot be
//! seen is `None` or [`Quota::NotVisible`], never a guess.
//!
//! # Why the cores come from the affinity mask
//!
//! The number of processors is neither the number that this process may use (containers, `taskset`) nor says which.
//! Pinning to core 5 of a set of 8..=15 fails; pinning to "the fifth" pins somewhere else.

pub mod check;
pub mod claims;
mod machine;
pub mod neighbours;
pub mod pin;
pub mod pins;
#[cfg_attr(target_os = "linux", expect(unsafe_code, reason = "the scheduler's system calls"))]
pub mod priority;
mod recorded;
#[expect(unsafe_code, reason = "reads the word that the kernel keeps of a thread's core")]
pub mod sense;
mod topology;
#[cfg(test)]
pub(crate) mod trees;
pub mod usage;

use std::path::Path;

use serde::Serialize;

pub use machine::Quota;
pub use topology::parse_cpu_list;

/// Most cores that are looked at, and above the highest core number that can be pinned to.
pub const CORES_MAX: u32 = 1024;
/// Most bytes read of any one file under `/proc` and `/sys`.
pub const FILE_BYTES_MAX: u64 = 4 << 20;

/// What is known of the machine and of this process's place on it.
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
    /// Whether a hypervisor is underneath.
    pub hypervisor: Option<bool>,
    /// The machine's memory, bytes.
    pub memory_bytes: Option<u64>,
    /// The CPU time that the control group allows.
    pub cpu_quota: Quota,
    /// The cores that this process may use, ascending.
    pub cores: Vec<CoreFacts>,
    /// The NUMA nodes that a GPU hangs on, ascending.
    pub gpu_nodes: Vec<u32>,
    /// GPUs on the bus; where the driver was asked, those that it has.
    pub gpus: u32,
}

/// One core that this process may use. A core here is what the system schedules on: one SMT thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CoreFacts {
    /// The system's number of it.
    pub core: u32,
    /// Its NUMA node.
    pub node: u32,
    /// The other SMT threads of the same physical core, allowed or not, ascending.
    pub siblings: Vec<u32>,
}

/// Why the machine could not be looked at.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// The affinity mask cannot be read.
    #[error(
        "found no affinity mask of this process ({reason}), expected the cores that it may use, at most {CORES_MAX}; \
         allow sched_getaffinity in the sandbox"
    )]
    NoMask {
        /// What the system said.
        reason: String,
    },
    /// A recorded tree without cores.
    #[error(
        "found no cores under {path}, expected a recorded tree with sys/devices/system/cpu; record one with cp -rL of \
         that directory and sys/devices/system/node, or name another"
    )]
    NoTree {
        /// The directory.
        path: String,
    },
    /// Cores asked for that the process may not use.
    #[error("found core {} asked for, expected some of {}; name cores of that list", list(.found), list(.allowed))]
    NotAllowed {
        /// The cores that may not be used.
        found: Vec<u32>,
        /// Those that may.
        allowed: Vec<u32>,
    },
}

/// Numbers with commas between them.
pub(crate) fn list(cores: &[u32]) -> String {
    cores.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

impl HostFacts {
    /// Looks at this machine. Call it before any thread is pinned: the allowed cores are those of the main thread.
    ///
    /// # Errors
    /// When the system does not say which cores this process may use.
    pub fn read() -> Result<Self, HostError> {
        Ok(Self::read_at(Path::new("/"), &pin::allowed_cores()?))
    }

    /// Looks at the tree under `root`, which holds `proc`, `sys` and `etc`, as a process that may use `allowed`.
    #[must_use]
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
            memory_bytes: machine::memory_bytes(root),
            cpu_quota: machine::quota(root),
            cores,
            gpu_nodes,
            gpus,
        }
    }

    /// Leaves only `cores` of those that this process may use.
    ///
    /// # Errors
    /// When one of them is not among them.
    pub fn restrict(&mut self, cores: &[u32]) -> Result<(), HostError> {
        let found: Vec<u32> = cores.iter().copied().filter(|&core| self.core(core).is_none()).collect();
        if !found.is_empty() || cores.is_empty() {
            return Err(HostError::NotAllowed { found, allowed: self.cores.iter().map(|facts| facts.core).collect() });
        }
        self.cores.retain(|facts| cores.contains(&facts.core));
        Ok(())
    }

    /// This machine without the cores that others have, and a sentence on each of those: cores that an engine has
    /// claimed in `directory` and cores that a running thread of another program is pinned to, with their SMT siblings.
    #[must_use]
    pub fn without_taken(mut self, directory: &Path) -> (Self, Vec<String>) {
        let claimed = claims::claimed(directory);
        let mut notes = claims::told(&claimed);
        let mut taken: Vec<u32> = claimed.iter().map(|conflict| conflict.core).collect();
        for pin in pins::pins(Path::new("/"), std::process::id()).into_iter().filter(|pin| pin.running) {
            let here: Vec<u32> = pin.cores.iter().copied().filter(|core| !taken.contains(core)).collect();
            if !here.is_empty() {
                let (cores, name, pid) = (list(&here), &pin.name, pin.pid);
                notes
                    .push(format!("core {cores} left to {name} (process {pid}), whose running thread is pinned there"));
                taken.extend(here);
            }
        }
        let taken = self.with_siblings(&taken);
        notes.retain(|_| self.cores.iter().any(|facts| taken.contains(&facts.core)));
        let foreign: Vec<_> =
            claims::foreign(directory).into_iter().filter(|found| self.core(found.core).is_some()).collect();
        notes.extend(claims::told_foreign(&foreign));
        self.cores.retain(|facts| !taken.contains(&facts.core));
        (self, notes)
    }

    /// These cores and all their SMT siblings, allowed or not, ascending: what a claim on them covers.
    #[must_use]
    pub fn with_siblings(&self, cores: &[u32]) -> Vec<u32> {
        let mut all = cores.to_vec();
        all.extend(cores.iter().filter_map(|&core| self.core(core)).flat_map(|facts| facts.siblings.iter().copied()));
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The facts of one allowed core.
    #[must_use]
    pub fn core(&self, core: u32) -> Option<&CoreFacts> {
        self.cores.iter().find(|facts| facts.core == core)
    }
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
