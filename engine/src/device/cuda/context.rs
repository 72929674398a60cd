//! A context on one device: the owner of its memory, code and streams.
//!
//! Owns the handle; the end of a context frees everything created in it. Cold threads open
//! contexts, because the driver then starts threads of its own, which inherit the allowed cores.
//! The dispatcher's thread binds the context and launches. Bounded by the device's memory. Waits
//! for the device only in [`Context::synchronize`].

use super::driver::{Absent, Driver, Failure, done, driver};
use super::facts::{DeviceFacts, usable};
use cudarc::driver::sys::{CUcontext, CUdevice, CUfunction, CUmodule};
use std::cell::Cell;
use std::ffi::CStr;
use std::ptr::null_mut;

/// The kernels: PTX for 7.5 and later, machine code for 9.0, 10.0 and 12.0. Made by
/// `engine/kernels/build`.
const KERNELS: &[u8] = include_bytes!("../../../kernels/predecoder.fatbin");

/// `CU_CTX_SCHED_BLOCKING_SYNC`: a cold thread that waits yields its core.
const BLOCKING_SYNC: u32 = 4;

/// Why a device cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum OpenError {
    #[error(transparent)]
    Absent(#[from] Absent),
    #[error("device {index} ({device}): {failure} while {doing}; {}", remedy(failure.code))]
    Refused { index: u32, device: String, doing: &'static str, failure: Failure },
    #[error(
        "device {index} has no address for {bytes} bytes at {address:#x}, which should be registered \
         memory; please report this"
    )]
    Untranslated {
        index: u32,
        address: u64,
        /// Number of bytes.
        bytes: u64,
    },
}

/// Errors of kernels. The driver keeps them for the process: every later call of every context
/// answers them, and it opens no context any more (documented with these codes; measured for 700 with
/// driver 580 on an H100).
const PROCESS_ERRORS: [i32; 10] = [226, 700, 702, 714, 715, 716, 717, 718, 719, 721];

impl OpenError {
    /// The error of an earlier kernel for which the driver opens no context in this process any
    /// more.
    pub(super) fn process_error(&self) -> Option<i32> {
        match self {
            OpenError::Refused { failure, .. } => PROCESS_ERRORS.contains(&failure.code).then_some(failure.code),
            _ => None,
        }
    }
}

/// The remedy for an error code.
fn remedy(code: i32) -> &'static str {
    match code {
        2 => "free its memory (nvidia-smi lists the processes), or use fewer workers and slots",
        46 => "another process uses it exclusively; end that process, or allow sharing: nvidia-smi -c 0",
        101 | 100 => "see nvidia-smi and CUDA_VISIBLE_DEVICES",
        209 | 218 | 222 => "the kernels have no code for it; update the driver to 580 or later, or use another device",
        code if PROCESS_ERRORS.contains(&code) => {
            "after an error of a kernel the driver gives this process no device; start the engine again"
        }
        801 => "its memory cannot be shared with the host here; use another device",
        _ => "see nvidia-smi and the kernel's log (dmesg)",
    }
}

thread_local! {
    /// The context that this thread bound last. A thread whose context has been closed binds the
    /// next one before it launches.
    static BOUND: Cell<CUcontext> = const { Cell::new(null_mut()) };
}

/// A context.
pub struct Context {
    pub(super) driver: &'static Driver,
    handle: CUcontext,
    /// The device.
    pub facts: DeviceFacts,
}

// SAFETY: the handle is valid on every thread of the process, and the driver orders calls that use
// it.
unsafe impl Send for Context {}

impl Context {
    /// Opens a new context on device `index`. Cold; leaves the calling thread without a context.
    ///
    /// # Errors
    /// Why the device cannot be used.
    pub fn open(index: u32) -> Result<Context, OpenError> {
        let driver = driver()?;
        let facts = usable(driver, index)?;
        let (mut handle, mut device): (CUcontext, CUdevice) = (null_mut(), 0);
        // SAFETY: places for the handles; no parameters.
        let code = unsafe {
            match (driver.device_get)(&raw mut device, index.cast_signed()) {
                0 => (driver.context_create)(&raw mut handle, null_mut(), BLOCKING_SYNC, device),
                code => code,
            }
        };
        let refused = |failure| OpenError::Refused { index, device: facts.name.clone(), doing: "opening it", failure };
        done("cuCtxCreate", code).map_err(refused)?;
        let context = Context { driver, handle, facts: facts.clone() };
        context.unbind();
        Ok(context)
    }

    /// Makes it the calling thread's current context.
    pub(super) fn bind(&self) -> Result<(), Failure> {
        // SAFETY: the handle is alive.
        let bound = done("cuCtxSetCurrent", unsafe { (self.driver.context_set)(self.handle) });
        BOUND.set(if bound.is_ok() { self.handle } else { null_mut() });
        bound
    }

    /// As [`Context::bind`], but skips the call if this thread bound it last: two silos whose
    /// dispatchers share a thread launch in turn.
    #[inline]
    pub(super) fn ensure_bound(&self) -> Result<(), Failure> {
        if BOUND.get() == self.handle { Ok(()) } else { self.bind() }
    }

    /// Leaves the calling thread without a context.
    pub(super) fn unbind(&self) {
        BOUND.set(null_mut());
        // SAFETY: null means none. A failure leaves the context current, which is harmless.
        let _ = unsafe { (self.driver.context_set)(null_mut()) };
    }

    /// The handle, for a thread that watches the device: valid as long as the context.
    pub(super) fn handle(&self) -> CUcontext {
        self.handle
    }

    /// Adds the device and the failed step to a failure.
    pub(super) fn refused(&self, doing: &'static str) -> impl Fn(Failure) -> OpenError + '_ {
        move |failure| OpenError::Refused { index: self.facts.index, device: self.facts.name.clone(), doing, failure }
    }

    /// Loads the kernels. The context must be bound.
    pub(super) fn load(&self) -> Result<Kernels, Failure> {
        let mut module: CUmodule = null_mut();
        // SAFETY: the image is a fatbin as `engine/kernels/build` makes it, and outlives the call.
        done("cuModuleLoadData", unsafe { (self.driver.module_load)(&raw mut module, KERNELS.as_ptr().cast()) })?;
        Ok(Kernels { driver: self.driver, module })
    }

    /// Allocates `bytes` of zeroed device memory. The end of the context frees it.
    pub(super) fn zeroed(&self, bytes: u64) -> Result<u64, Failure> {
        let (mut address, bytes) = (0, bytes.max(8) as usize);
        // SAFETY: a place for the address.
        done("cuMemAlloc", unsafe { (self.driver.memory_allocate)(&raw mut address, bytes) })?;
        // SAFETY: memory of this context and of this length.
        done("cuMemsetD8", unsafe { (self.driver.memory_fill)(address, 0, bytes) })?;
        Ok(address)
    }

    /// Copies `items` to device memory. The end of the context frees it.
    pub(super) fn uploaded<T: Copy>(&self, items: &[T]) -> Result<u64, Failure> {
        let bytes = size_of_val(items);
        let address = self.zeroed(bytes as u64)?;
        if bytes > 0 {
            // SAFETY: `bytes` bytes lie at both addresses.
            let code = unsafe { (self.driver.memory_upload)(address, items.as_ptr().cast(), bytes) };
            done("cuMemcpyHtoD", code)?;
        }
        Ok(address)
    }

    /// Copies device memory to `items`.
    pub(super) fn download(&self, address: u64, items: &mut [u64]) -> Result<(), Failure> {
        // SAFETY: `items` has room, and every allocation that is asked for is as long as what is
        // read of it.
        let code = unsafe { (self.driver.memory_download)(items.as_mut_ptr().cast(), address, size_of_val(items)) };
        done("cuMemcpyDtoH", code)
    }

    /// Free memory of the device, bytes. The context must be bound.
    pub(super) fn free_bytes(&self) -> Result<u64, Failure> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: places for the numbers.
        done("cuMemGetInfo", unsafe { (self.driver.memory_info)(&raw mut free, &raw mut total) })?;
        Ok(free as u64)
    }

    /// Waits until the device has finished all work of this context.
    pub(super) fn synchronize(&self) -> Result<(), Failure> {
        // SAFETY: no arguments; the context is bound.
        done("cuCtxSynchronize", unsafe { (self.driver.context_synchronize)() })
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: alive until now, and unused after this. A context with a sticky error answers
        // with that error and is destroyed nevertheless.
        let _ = unsafe { (self.driver.context_destroy)(self.handle) };
    }
}

/// The loaded kernels.
pub(super) struct Kernels {
    driver: &'static Driver,
    module: CUmodule,
}

impl Kernels {
    /// Looks up one kernel by name.
    pub(super) fn function(&self, name: &CStr) -> Result<CUfunction, Failure> {
        let mut function: CUfunction = null_mut();
        // SAFETY: a place for the handle; the name is terminated; the module is alive with its
        // context.
        let code = unsafe { (self.driver.module_function)(&raw mut function, self.module, name.as_ptr()) };
        done("cuModuleGetFunction", code)?;
        Ok(function)
    }
}
