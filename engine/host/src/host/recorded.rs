//! Facts of other machines, from copies of their files.
//!
//! Cold; bounded by the files. Never pins to or claims a core of a recorded machine.

use std::path::{Path, PathBuf};

use super::{HostError, HostFacts, machine, topology};

impl HostFacts {
    /// The machine whose `sys`, and perhaps `proc` and `etc`, were copied to `dir`; `dir` may also
    /// be the copied `sys` itself. The allowed cores are those of the recorded process if there is
    /// one, else all online cores.
    ///
    /// # Errors
    /// If the files show no cores.
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
