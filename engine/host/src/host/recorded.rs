//! Other machines, from trees that were recorded on them.
//!
//! Cold; bounded by what the tree holds. Reads files only: nothing of a recorded machine is pinned to or claimed.

use std::path::{Path, PathBuf};

use super::{HostError, HostFacts, machine, topology};

impl HostFacts {
    /// The machine whose `sys`, and perhaps `proc` and `etc`, were copied to `dir`; `dir` may also be the `sys` itself.
    /// The allowed cores are those of the recorded process where one was recorded, else all that were online.
    ///
    /// # Errors
    /// When the tree shows no cores.
    pub fn read_recorded(dir: &Path) -> Result<Self, HostError> {
        let root = root_of(dir);
        let online = topology::online(&root);
        let mut cores = machine::allowed(&root).unwrap_or_else(|| online.clone());
        cores.retain(|core| online.contains(core));
        if cores.is_empty() {
            return Err(HostError::NoTree { path: dir.display().to_string() });
        }
        Ok(Self::read_at(&root, &cores))
    }
}

fn root_of(dir: &Path) -> PathBuf {
    let is_sys = dir.join("devices/system/cpu").is_dir() && dir.file_name().is_some_and(|name| name == "sys");
    if is_sys { dir.parent().unwrap_or(dir).to_owned() } else { dir.to_owned() }
}
