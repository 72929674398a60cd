//! The driver's entry points, looked up once, and its error codes.
//!
//! Owns the table of entry points and [`Failure`]. Cold code fills the table ([`driver`]); the
//! owner of a context makes the calls. Bounded by the table. Never panics: a missing library or
//! entry point yields [`Absent`].
//!
//! # Why a table of our own over cudarc's library
//! cudarc's bindings look a symbol up at its first call and panic if it is missing, possibly in the
//! middle of a shot; and they return an enum, which cannot represent a newer driver's error code.
//! Library and types are cudarc's; each entry point is looked up before anything runs, and codes
//! stay numbers.

use cudarc::driver::sys::{
    CUcontext, CUctxCreateParams, CUdevice, CUdeviceptr, CUevent, CUfunction, CUgraph, CUgraphExec, CUmodule, CUstream,
};
use std::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_void};
use std::sync::OnceLock;

/// The oldest driver that loads the kernels: CUDA 13.0, which is driver 580.
pub const DRIVER_API_MIN: i32 = 13_000;

macro_rules! driver {
    ($($name:ident = $symbol:literal ($($argument:ty),*);)*) => {
        /// The driver's entry points, all present.
        pub(super) struct Driver {
            $(pub(super) $name: unsafe extern "C" fn($($argument),*) -> c_int,)*
        }

        impl Driver {
            fn load(library: &impl Symbols) -> Result<Driver, Absent> {
                Ok(Driver { $($name: library.symbol($symbol)?,)* })
            }
        }

        /// Names of all required entry points.
        #[cfg(test)]
        pub(super) const SYMBOLS: &[&str] = &[$($symbol),*];
    };
}

driver! {
    init = "cuInit" (c_uint);
    version = "cuDriverGetVersion" (*mut c_int);
    error_name = "cuGetErrorName" (c_int, *mut *const c_char);
    device_count = "cuDeviceGetCount" (*mut c_int);
    device_get = "cuDeviceGet" (*mut CUdevice, c_int);
    device_name = "cuDeviceGetName" (*mut c_char, c_int, CUdevice);
    device_attribute = "cuDeviceGetAttribute" (*mut c_int, c_int, CUdevice);
    device_memory = "cuDeviceTotalMem_v2" (*mut usize, CUdevice);
    context_create = "cuCtxCreate_v4" (*mut CUcontext, *mut CUctxCreateParams, c_uint, CUdevice);
    context_destroy = "cuCtxDestroy_v2" (CUcontext);
    context_set = "cuCtxSetCurrent" (CUcontext);
    context_synchronize = "cuCtxSynchronize" ();
    module_load = "cuModuleLoadData" (*mut CUmodule, *const c_void);
    module_function = "cuModuleGetFunction" (*mut CUfunction, CUmodule, *const c_char);
    memory_info = "cuMemGetInfo_v2" (*mut usize, *mut usize);
    memory_allocate = "cuMemAlloc_v2" (*mut CUdeviceptr, usize);
    memory_upload = "cuMemcpyHtoD_v2" (CUdeviceptr, *const c_void, usize);
    memory_download = "cuMemcpyDtoH_v2" (*mut c_void, CUdeviceptr, usize);
    memory_fill = "cuMemsetD8_v2" (CUdeviceptr, u8, usize);
    host_register = "cuMemHostRegister_v2" (*mut c_void, usize, c_uint);
    host_unregister = "cuMemHostUnregister" (*mut c_void);
    host_address = "cuMemHostGetDevicePointer_v2" (*mut CUdeviceptr, *mut c_void, c_uint);
    stream_create = "cuStreamCreate" (*mut CUstream, c_uint);
    stream_query = "cuStreamQuery" (CUstream);
    capture_begin = "cuStreamBeginCapture_v2" (CUstream, c_int);
    capture_end = "cuStreamEndCapture" (CUstream, *mut CUgraph);
    kernel_launch = "cuLaunchKernel" (
        CUfunction, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, CUstream, *mut *mut c_void, *mut *mut c_void
    );
    graph_instantiate = "cuGraphInstantiateWithFlags" (*mut CUgraphExec, CUgraph, c_ulonglong);
    graph_upload = "cuGraphUpload" (CUgraphExec, CUstream);
    graph_launch = "cuGraphLaunch" (CUgraphExec, CUstream);
    graph_destroy = "cuGraphDestroy" (CUgraph);
    event_create = "cuEventCreate" (*mut CUevent, c_uint);
    event_record = "cuEventRecord" (CUevent, CUstream);
    event_query = "cuEventQuery" (CUevent);
    event_elapsed = "cuEventElapsedTime_v2" (*mut f32, CUevent, CUevent);
}

/// Source of entry points.
trait Symbols {
    fn symbol<F: Copy>(&self, name: &'static str) -> Result<F, Absent>;
}

/// The library opened by cudarc.
struct Opened;

impl Symbols for Opened {
    fn symbol<F: Copy>(&self, name: &'static str) -> Result<F, Absent> {
        // SAFETY: `driver` has checked that the library opens, so this does not panic. `F` is the
        // symbol's type in the driver's header, see the table above.
        let found = unsafe { cudarc::driver::sys::culib().get::<F>(name.as_bytes()) };
        found.map(|symbol| *symbol).map_err(|_| Absent::Symbol(name))
    }
}

/// Why no device is available.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Absent {
    #[error("no CUDA driver library (libcuda.so.1); install the NVIDIA driver 580 or later")]
    Library,
    #[error("the CUDA driver library lacks {0}; update the NVIDIA driver to 580 or later")]
    Symbol(&'static str),
    #[error("the driver supports CUDA {}.{}, older than 13.0; update the NVIDIA driver to 580 or later", .found / 1000, .found % 1000 / 10)]
    TooOld {
        /// Its API version, as the driver reports it.
        found: i32,
    },
    #[error("the CUDA driver finds no device; see nvidia-smi and CUDA_VISIBLE_DEVICES")]
    NoDevice,
    #[error("there is no device {index}, the driver has {count}; choose a number below {count}")]
    Number { index: u32, count: u32 },
    #[error("device {index} ({name}) has compute capability {major}.{minor}, older than 7.5; use another device")]
    Architecture { index: u32, name: String, major: u32, minor: u32 },
    #[error("the CUDA driver failed: {0}; see nvidia-smi and the kernel's log")]
    Failed(#[from] Failure),
}

/// A call that the driver refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} ({code}) from {call}", name(*code))]
pub struct Failure {
    /// The driver call.
    pub call: &'static str,
    /// The driver's code.
    pub code: i32,
}

/// `Ok` if `code` is the driver's success.
pub(super) fn done(call: &'static str, code: c_int) -> Result<(), Failure> {
    if code == 0 { Ok(()) } else { Err(Failure { call, code }) }
}

type ErrorName = unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int;

/// The driver's name for a code.
pub(super) fn name(code: i32) -> String {
    let mut text: *const c_char = std::ptr::null();
    let error_name: Option<ErrorName> = match driver() {
        Ok(driver) => Some(driver.error_name),
        // The library is open, but one of its first calls failed.
        Err(Absent::Failed(_)) => Opened.symbol("cuGetErrorName").ok(),
        Err(_) => None,
    };
    // SAFETY: `text` is a valid place for a pointer; the driver returns a constant string of its
    // own.
    let known = error_name.is_some_and(|error_name| unsafe { error_name(code, &raw mut text) == 0 });
    if !known || text.is_null() {
        return "an error without a name".to_owned();
    }
    // SAFETY: not null, and a constant string as above.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// The driver, looked up and initialised once per process. Cold.
///
/// # Errors
/// Why there is no driver.
pub(super) fn driver() -> Result<&'static Driver, Absent> {
    static DRIVER: OnceLock<Result<Driver, Absent>> = OnceLock::new();
    DRIVER.get_or_init(open).as_ref().map_err(Clone::clone)
}

fn open() -> Result<Driver, Absent> {
    // SAFETY: opens the library and runs its initialisers, like any program linked with it.
    if !unsafe { cudarc::driver::sys::is_culib_present() } {
        return Err(Absent::Library);
    }
    // The version first: an old driver lacks entry points, and its version is the clearer message.
    let version: unsafe extern "C" fn(*mut c_int) -> c_int = Opened.symbol("cuDriverGetVersion")?;
    let mut found = 0;
    // SAFETY: a place for the number; the call needs no initialisation.
    done("cuDriverGetVersion", unsafe { version(&raw mut found) })?;
    if found < DRIVER_API_MIN {
        return Err(Absent::TooOld { found });
    }
    let driver = Driver::load(&Opened)?;
    widen_connections();
    // SAFETY: no argument but the flags, which are 0.
    match unsafe { (driver.init)(0) } {
        // The count of devices reports "no device" later, with its own message.
        0 | NO_DEVICE => Ok(driver),
        code => Err(Failure { call: "cuInit", code }.into()),
    }
}

/// Streams share the device's hardware queues (8 by default), and streams in the same queue wait
/// for each other. Requests 32, the maximum, unless the environment sets a number.
#[cfg(target_os = "linux")]
fn widen_connections() {
    const CONNECTIONS: &str = "CUDA_DEVICE_MAX_CONNECTIONS";
    let threads = std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
    if threads == 1 && std::env::var_os(CONNECTIONS).is_none() {
        // SAFETY: this is the process's only thread, so no other thread reads the environment.
        unsafe { std::env::set_var(CONNECTIONS, "32") };
    }
}

#[cfg(not(target_os = "linux"))]
fn widen_connections() {}

/// `CUDA_ERROR_NO_DEVICE`.
pub(super) const NO_DEVICE: c_int = 100;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Absent, Driver, Failure, SYMBOLS, Symbols};

    /// A library with all symbols but one.
    struct Without(&'static str);

    impl Symbols for Without {
        fn symbol<F: Copy>(&self, name: &'static str) -> Result<F, Absent> {
            unsafe extern "C" fn nothing() -> i32 {
                0
            }
            if name == self.0 {
                return Err(Absent::Symbol(name));
            }
            let nothing = nothing as unsafe extern "C" fn() -> i32;
            assert_eq!(size_of::<F>(), size_of_val(&nothing));
            // SAFETY: both are pointers to functions; this one is never called.
            Ok(unsafe { std::mem::transmute_copy(&nothing) })
        }
    }

    #[test]
    fn a_symbol_that_is_missing_is_named() {
        for symbol in SYMBOLS {
            let Err(absent) = Driver::load(&Without(symbol)) else { panic!("{symbol} is not looked up") };
            assert!(absent.to_string().contains(symbol) && absent.to_string().contains("580"), "{absent}");
        }
        assert!(Driver::load(&Without("")).is_ok());
    }

    #[test]
    fn each_reason_for_a_missing_device_names_the_fact_and_the_remedy() {
        let failure = Failure { call: "cuInit", code: 999 };
        for absent in [
            Absent::Library,
            Absent::Symbol("cuInit"),
            Absent::TooOld { found: 12_080 },
            Absent::NoDevice,
            Absent::Number { index: 3, count: 1 },
            Absent::Architecture { index: 0, name: "old".into(), major: 7, minor: 0 },
            Absent::Failed(failure),
        ] {
            let said = absent.to_string();
            assert!(said.contains(';'), "{said}");
            assert!(!said.contains("--device"), "a command without that option says it too: {said}");
        }
        assert!(Absent::TooOld { found: 12_080 }.to_string().contains("12.8"));
    }
}
