//! Clock rates of a device, from the management library if present.
//!
//! Cold, on the thread of the device's supervisor. Two calls a reading. Optional: without the library or an
//! entry point there are no clock rates.

use libloading::Library;
use std::ffi::{CString, c_char, c_int, c_uint, c_void};

const NAMES: [&str; 2] = ["libnvidia-ml.so.1", "nvml.dll"];
/// `NVML_CLOCK_SM`, `NVML_CLOCK_MEM`.
const SM: c_int = 1;
const MEMORY: c_int = 2;

type Init = unsafe extern "C" fn() -> c_int;
type ByPlace = unsafe extern "C" fn(*const c_char, *mut *mut c_void) -> c_int;
type ClockInfo = unsafe extern "C" fn(*mut c_void, c_int, *mut c_uint) -> c_int;

/// The clocks of one device.
pub(super) struct Clocks {
    clock: ClockInfo,
    device: *mut c_void,
    /// Last: the entry points belong to it and must be dropped first.
    _library: Library,
}

impl Clocks {
    /// Opens the library for the device at `pci` (domain:bus:device).
    pub(super) fn of(pci: &str) -> Option<Clocks> {
        // SAFETY: opens the library and runs its initialisers.
        let library = NAMES.iter().find_map(|name| unsafe { Library::new(*name) }.ok())?;
        let place = CString::new(format!("{pci}.0")).ok()?;
        let mut device = std::ptr::null_mut();
        // SAFETY: the types are those of the library's header; the place is terminated.
        unsafe {
            let init = *library.get::<Init>(b"nvmlInit_v2").ok()?;
            let by_place = *library.get::<ByPlace>(b"nvmlDeviceGetHandleByPciBusId_v2").ok()?;
            let clock = *library.get::<ClockInfo>(b"nvmlDeviceGetClockInfo").ok()?;
            let found = init() == 0 && by_place(place.as_ptr(), &raw mut device) == 0;
            found.then_some(Clocks { clock, device, _library: library })
        }
    }

    /// Clock rates of the multiprocessors and of the memory, MHz; 0 if unknown.
    pub(super) fn read_mhz(&self) -> (u64, u64) {
        let read = |which| {
            let mut mhz = 0;
            // SAFETY: a handle from the library, a place for the number.
            if unsafe { (self.clock)(self.device, which, &raw mut mhz) } == 0 { u64::from(mhz) } else { 0 }
        };
        (read(SM), read(MEMORY))
    }
}
