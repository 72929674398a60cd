//! The CUDA device: one captured graph per group of workers, launched through the NVIDIA driver
//! found at run time.
//!
//! Owns every call of the driver. Cold threads look for devices ([`probe`]), open contexts
//! ([`Context`]), recover and close them ([`supervise`]); the dispatcher's thread captures and launches
//! ([`CudaLauncher`]). The engine owns the memory and registers it with the device. Bounds: one
//! launch for each worker; the submodules state theirs. Never queries a stream, never fences: a
//! completion is a ready word, stored by the device with release at system scope.
//!
//! ```text
//!  probe ─▶ Context::open ──▶ Rig::capture ──▶ CudaLauncher ══ launch ══▶ input, predecode, output ══ ready word ══▶ poll
//!   cold        cold         dispatcher at Init   dispatcher                    device
//!                 ▲                                   │ lost
//!                 └────────────── Supervisor ◀────────────┘
//! ```
//!
//! Reading order: [`driver`] (entry points), [`facts`], [`context`], `mapped`, `layout`, [`rig`],
//! [`launcher`], [`supervisor`], `transit`.

pub mod check;
mod context;
mod driver;
mod facts;
mod supervisor;
mod launcher;
mod layout;
mod mapped;
mod nvml;
mod rig;
mod rows;
mod transit;
#[cfg(test)]
mod tests;

pub use context::{Context, OpenError};
pub use driver::{Absent, DRIVER_API_MIN, Failure};
pub use facts::{DeviceFacts, DriverFacts, compiler_is_present, device_of, probe};
pub use launcher::CudaLauncher;
pub use rig::{Reports, Rig, Works};
pub use rows::rows;
pub use supervisor::{Introduce, RigLease, Supervisor, supervise};
pub use transit::{Tap, Transits, transits};
