//! The device of each silo: resolves `Auto`, and opens the contexts of a GPU.
//!
//! Runs once, on the caller's thread. Contexts are opened on a thread confined to the cold cores,
//! because a driver starts threads in each context, which inherit the cores of the opening thread.
//! Bounded by the silos. A device requested by name is never replaced: an error refuses the start.
//! The devices also determine the number of silos.

use super::StartError;
use super::cores::{self, Placed};
use crate::device::cuda::{Context, DriverFacts, OpenError, device_of, probe};
use crate::host::{HostFacts, pin};
use crate::plan::{Plan, PlanError};
use crate::profile::{Device, Profile};
use std::path::Path;

/// Devices of the silos.
#[derive(Default)]
pub(super) struct Devices {
    /// A context for each silo; none without a GPU.
    pub(super) contexts: Vec<Context>,
    /// Their names; empty: use the name of the profile's device.
    pub(super) name: String,
    /// Notes shown once at the start.
    pub(super) notes: Vec<String>,
}

/// The resolved device: whether the profile says `Auto`, and the driver's devices.
pub(super) struct Settled {
    by_itself: bool,
    found: Option<DriverFacts>,
    notes: Vec<String>,
}

/// Resolves `profile.device`: `Auto` becomes the available device.
pub(super) fn settle(profile: &mut Profile) -> Result<Settled, OpenError> {
    let by_itself = match profile.device {
        Device::None | Device::Sim { .. } => return Ok(Settled { by_itself: false, found: None, notes: Vec::new() }),
        Device::Auto => true,
        Device::Cuda { .. } => false,
    };
    match probe() {
        Ok(found) => {
            if by_itself {
                profile.device = Device::Cuda { index: None, batch_shots: 1 };
            }
            Ok(Settled { by_itself, found: Some(found), notes: Vec::new() })
        }
        Err(absent) if by_itself => Ok(Settled { by_itself, found: None, notes: vec![without_gpu(profile, &absent)] }),
        Err(absent) => Err(absent.into()),
    }
}

/// The plan that a start on `host` would make now, with its notes and the driver's devices; claims
/// nothing. Only a start reports a missing driver.
///
/// # Errors
/// If the profile lists its threads and the plan is impossible.
pub fn preview_plan(profile: &Profile, mut host: HostFacts, directory: &Path) -> Result<Plan, PlanError> {
    let mut profile = profile.clone();
    if let Ok(Settled { found, .. }) = settle(&mut profile) {
        host = with_devices(host, found.as_ref());
    }
    cores::preview_plan(profile, host, directory)
}

/// Uses the number of devices that the driver permits, rather than that on the bus.
fn with_devices(mut host: HostFacts, found: Option<&DriverFacts>) -> HostFacts {
    if let Some(found) = found {
        host.gpus = found.devices.len() as u32;
    }
    host
}

/// Sets the device that `Auto` is without a GPU; returns the note about it.
fn without_gpu(profile: &mut Profile, why: &impl std::fmt::Display) -> String {
    profile.device = profile.device_without_gpu();
    let found = if profile.device == Device::None { "none" } else { "a simulated one, for the profile's faults" };
    format!("device auto: {found}; {why}")
}

/// Plans the cores, and opens the contexts from the cold cores.
pub(super) fn place(
    settled: Settled,
    profile: &mut Profile,
    host: &HostFacts,
    boards: &Path,
) -> Result<(Placed, Devices), StartError> {
    let Settled { by_itself, found, mut notes } = settled;
    let silos = profile.silos;
    let host = &with_devices(host.clone(), found.as_ref());
    let placed = cores::place(profile, host.clone(), boards)?;
    let Some(found) = found else { return Ok((placed, Devices { notes, ..Devices::default() })) };
    match open(profile, &found, &placed.plan.cold_cores) {
        Ok(devices) => Ok((placed, devices)),
        Err(error) if by_itself => {
            notes.push(without_gpu(profile, &error));
            // The roles are others, and perhaps the number of silos, so the cores are planned and
            // claimed again.
            drop(placed);
            profile.silos = silos;
            let placed = cores::place(profile, host.clone(), boards)?;
            Ok((placed, Devices { notes, ..Devices::default() }))
        }
        Err(error) => Err(error.into()),
    }
}

fn open(profile: &Profile, found: &DriverFacts, cold_cores: &[u32]) -> Result<Devices, OpenError> {
    let Device::Cuda { index, .. } = profile.device else { return Ok(Devices::default()) };
    let (silos, count) = (profile.silos.settled(), found.devices.len() as u32);
    let contexts = std::thread::scope(|scope| {
        let opening = scope.spawn(|| {
            let _ = pin::confine_current_thread(cold_cores);
            (0..silos).map(|silo| Context::open(device_of(silo, index, count))).collect::<Result<Vec<_>, _>>()
        });
        opening.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    let mut used: Vec<_> = contexts.iter().map(|context| (context.facts.index, &*context.facts.name)).collect();
    used.sort_unstable();
    used.dedup();
    let named: Vec<String> = used.iter().map(|(index, name)| format!("cuda:{index} {name}")).collect();
    let mut notes = Vec::new();
    if used.len() < silos as usize {
        notes.push(format!(
            "silos {silos}, devices {}: several silos run their graphs on one device in turn; give each silo a \
             device, or run fewer silos",
            used.len()
        ));
    }
    let name = format!("{}; CUDA {}", named.join(", "), found.driver);
    Ok(Devices { contexts, name, notes })
}
