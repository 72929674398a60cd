//! The device of each silo: what `Auto` becomes, and the contexts of a GPU.
//!
//! Runs once, on the caller's thread, but for the contexts: a driver starts threads of its own in each, and they inherit
//! the cores of who opens it, so a thread confined to the cold ones does. Bounded by the silos. Never falls back where a
//! device was asked for by name: that is refused with a sentence. With the devices the number of silos is settled.

use super::StartError;
use super::cores::{self, Placed};
use crate::board;
use crate::device::cuda::{Context, Found, OpenError, device_of, probe};
use crate::host::{HostFacts, pin};
use crate::profile::{Device, Latency, Profile};

/// What the silos run on.
#[derive(Default)]
pub(super) struct Devices {
    /// A context for each silo; none for the stand-in.
    pub(super) contexts: Vec<Context>,
    /// In words; empty: as the profile's device is called.
    pub(super) name: String,
    /// Things to say once.
    pub(super) notes: Vec<String>,
}

/// Whether the profile leaves it to the machine, and what was found there.
pub(super) struct Settled {
    by_itself: bool,
    found: Option<Found>,
    notes: Vec<String>,
}

/// Settles `profile.device`: `Auto` becomes what there is.
pub(super) fn settle(profile: &mut Profile) -> Result<Settled, OpenError> {
    let by_itself = match profile.device {
        Device::Sim { .. } => return Ok(Settled { by_itself: false, found: None, notes: Vec::new() }),
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
        Err(absent) if by_itself => Ok(Settled { by_itself, found: None, notes: vec![stand_in(profile, &absent)] }),
        Err(absent) => Err(absent.into()),
    }
}

/// What a start would find, for who only wants to know: `Auto` and the driver's devices. Where there is no driver that is
/// said at the start.
pub(super) fn foresee(profile: &mut Profile, host: HostFacts) -> HostFacts {
    if matches!(profile.device, Device::Sim { .. }) {
        return host;
    }
    match settle(profile) {
        Ok(Settled { found, .. }) => with_devices(host, found.as_ref()),
        Err(_) => host,
    }
}

/// The driver knows better than the bus which devices there are for us.
fn with_devices(mut host: HostFacts, found: Option<&Found>) -> HostFacts {
    if let Some(found) = found {
        host.gpus = found.devices.len() as u32;
    }
    host
}

/// The stand-in takes the device's place; what to say of it.
fn stand_in(profile: &mut Profile, why: &impl std::fmt::Display) -> String {
    profile.device = Device::Sim { latency: Latency::None };
    format!("device auto: the stand-in; {why}")
}

/// Plans the cores and opens the contexts from the cold ones.
pub(super) fn place(
    settled: Settled,
    profile: &mut Profile,
    host: &HostFacts,
) -> Result<(Placed, Devices), StartError> {
    let Settled { by_itself, found, mut notes } = settled;
    let silos = profile.silos;
    let host = &with_devices(host.clone(), found.as_ref());
    let placed = cores::place(profile, host.clone(), &board::directory())?;
    let Some(found) = found else { return Ok((placed, Devices { notes, ..Devices::default() })) };
    match open(profile, &found, &placed.plan.cold_cores) {
        Ok(devices) => Ok((placed, devices)),
        Err(error) if by_itself => {
            notes.push(stand_in(profile, &error));
            // Its roles and perhaps its silos are others, and the cores are claimed anew.
            drop(placed);
            profile.silos = silos;
            let placed = cores::place(profile, host.clone(), &board::directory())?;
            Ok((placed, Devices { notes, ..Devices::default() }))
        }
        Err(error) => Err(error.into()),
    }
}

fn open(profile: &Profile, found: &Found, cold_cores: &[u32]) -> Result<Devices, OpenError> {
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
            "{silos} silos share {} device(s) and their graphs take turns; give each silo a device, or run fewer silos",
            used.len()
        ));
    }
    let name = format!("{}; CUDA {}", named.join(", "), found.driver);
    Ok(Devices { contexts, name, notes })
}
