//! The available devices, and the device of each silo.
//!
//! Cold and read-only: queries the driver, creates no context. Bounded by the number of devices.
//! Does not panic without a driver.

use super::driver::{Absent, Driver, Failure, NO_DEVICE, done, driver};
use serde::Serialize;
use std::ffi::{CStr, c_char, c_int};

/// `CU_DEVICE_ATTRIBUTE_…` numbers.
const CAPABILITY_MAJOR: c_int = 75;
const CAPABILITY_MINOR: c_int = 76;
const CAN_MAP_HOST_MEMORY: c_int = 19;
const COMPUTE_MODE: c_int = 20;
const MULTIPROCESSORS: c_int = 16;
const PCI_BUS: c_int = 33;
const PCI_DEVICE: c_int = 34;
const PCI_DOMAIN: c_int = 50;
const HOST_NATIVE_ATOMICS: c_int = 86;

/// The lowest compute capability for which the kernels are compiled.
const CAPABILITY_MIN: (u32, u32) = (7, 5);

/// One device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceFacts {
    /// The device's number, in the driver's order.
    pub index: u32,
    /// The device's name.
    pub name: String,
    /// Compute capability.
    pub capability: (u32, u32),
    /// Device memory, bytes.
    pub memory_bytes: u64,
    /// Number of multiprocessors.
    pub multiprocessors: u32,
    /// PCI address: domain, bus, device.
    pub pci: String,
    /// Whether it can map host memory.
    pub maps_host_memory: bool,
    /// Whether host and device can change one word atomically. Few PCIe hosts can; the engine does
    /// not need it.
    pub host_native_atomics: bool,
    /// Which processes may use it: `shared`, `nobody` or `one process`.
    pub compute_mode: &'static str,
}

/// The driver and its devices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DriverFacts {
    /// The driver's API version: `13.0`.
    pub driver: String,
    /// Its devices.
    pub devices: Vec<DeviceFacts>,
    /// Whether the run-time compiler's library is present. The kernels are compiled, so it is
    /// optional.
    pub compiler: bool,
}

/// Looks for driver and devices.
///
/// # Errors
/// Why no device is available.
pub fn probe() -> Result<DriverFacts, Absent> {
    let driver = driver()?;
    let mut version = 0;
    // SAFETY: a place for the number.
    done("cuDriverGetVersion", unsafe { (driver.version)(&raw mut version) })?;
    let count = device_count(driver)?;
    let devices = (0..count).map(|index| facts(driver, index)).collect::<Result<Vec<_>, _>>()?;
    let driver = format!("{}.{}", version / 1000, version % 1000 / 10);
    Ok(DriverFacts { driver, devices, compiler: compiler_is_present() })
}

/// Whether the run-time compiler's library is present.
pub fn compiler_is_present() -> bool {
    // SAFETY: opens and closes the library.
    unsafe { cudarc::nvrtc::sys::is_culib_present() }
}

fn device_count(driver: &Driver) -> Result<u32, Absent> {
    let mut count = 0;
    // SAFETY: a place for the number.
    match unsafe { (driver.device_count)(&raw mut count) } {
        0 if count > 0 => Ok(count.unsigned_abs()),
        0 | NO_DEVICE => Err(Absent::NoDevice),
        // Without a device cuInit failed, and every later call returns this code.
        NOT_INITIALIZED => Err(Absent::NoDevice),
        code => Err(Failure { call: "cuDeviceGetCount", code }.into()),
    }
}

/// `CUDA_ERROR_NOT_INITIALIZED`.
const NOT_INITIALIZED: c_int = 3;

/// Facts of device `index`, if it can run the kernels.
pub(super) fn usable(driver: &Driver, index: u32) -> Result<DeviceFacts, Absent> {
    let count = device_count(driver)?;
    if index >= count {
        return Err(Absent::Number { index, count });
    }
    let facts = facts(driver, index)?;
    if facts.capability < CAPABILITY_MIN {
        let (major, minor) = facts.capability;
        return Err(Absent::Architecture { index, name: facts.name, major, minor });
    }
    Ok(facts)
}

fn facts(driver: &Driver, index: u32) -> Result<DeviceFacts, Failure> {
    let mut device = 0;
    // SAFETY: a place for the handle.
    done("cuDeviceGet", unsafe { (driver.device_get)(&raw mut device, index.cast_signed()) })?;
    let mut name: [c_char; 96] = [0; 96];
    // SAFETY: the call writes at most the given number of bytes, the last of them 0.
    done("cuDeviceGetName", unsafe { (driver.device_name)(name.as_mut_ptr(), name.len() as c_int, device) })?;
    // SAFETY: a terminated string, see above.
    let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned();
    let mut memory = 0;
    // SAFETY: a place for the number.
    done("cuDeviceTotalMem", unsafe { (driver.device_memory)(&raw mut memory, device) })?;
    let attribute = |which: c_int| -> Result<u32, Failure> {
        let mut value = 0;
        // SAFETY: a place for the number.
        let code = unsafe { (driver.device_attribute)(&raw mut value, which, device) };
        done("cuDeviceGetAttribute", code).map(|()| value.unsigned_abs())
    };
    let (domain, bus, place) = (attribute(PCI_DOMAIN)?, attribute(PCI_BUS)?, attribute(PCI_DEVICE)?);
    Ok(DeviceFacts {
        index,
        name,
        capability: (attribute(CAPABILITY_MAJOR)?, attribute(CAPABILITY_MINOR)?),
        memory_bytes: memory as u64,
        multiprocessors: attribute(MULTIPROCESSORS)?,
        pci: format!("{domain:04x}:{bus:02x}:{place:02x}"),
        maps_host_memory: attribute(CAN_MAP_HOST_MEMORY)? != 0,
        host_native_atomics: attribute(HOST_NATIVE_ATOMICS)? != 0,
        compute_mode: match attribute(COMPUTE_MODE)? {
            0 => "shared",
            2 => "nobody",
            _ => "one process",
        },
    })
}

/// The device of silo `silo`: `asked` if set; otherwise silos take the devices in turn.
pub fn device_of(silo: u32, asked: Option<u32>, devices: u32) -> u32 {
    asked.unwrap_or(silo % devices.max(1))
}

#[cfg(test)]
mod tests {
    use super::device_of;

    #[test]
    fn silos_get_a_device_each_unless_one_is_asked_for() {
        assert_eq!([0, 1, 2, 3].map(|silo| device_of(silo, None, 2)), [0, 1, 0, 1]);
        assert_eq!([0, 1].map(|silo| device_of(silo, Some(1), 4)), [1, 1]);
        assert_eq!(device_of(5, None, 1), 0);
    }
}
