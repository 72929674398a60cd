//! The CUDA device: a captured graph for each group of workers, on the NVIDIA driver found at run time.
//!
//! Owns everything that speaks to the driver. Cold threads look for devices ([`probe`]), open contexts ([`Context`]),
//! bring them back and close them ([`keep`]); the dispatcher's thread captures and launches ([`CudaLauncher`]). Memory is
//! the engine's, registered with the device. Bounds: one launch for each worker; see the parts. Never queries a stream,
//! never fences: a completion is a ready word, stored by the device with release at system scope.
//!
//! ```text
//!  probe ─▶ Context::open ──▶ Rig::capture ──▶ CudaLauncher ══ launch ══▶ input, predecode, output ══ ready word ══▶ poll
//!   cold        cold         dispatcher at Init   dispatcher                    device
//!                 ▲                                   │ lost
//!                 └────────────── Keeper ◀────────────┘
//! ```
//!
//! Read: [`driver`] (entry points), [`facts`], [`context`], `mapped`, `layout`, [`rig`], [`launcher`], [`keeper`], `transit`.

pub mod check;
mod context;
mod driver;
mod facts;
mod keeper;
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
pub use facts::{DeviceFacts, Found, compiler_is_present, device_of, probe};
pub use keeper::{Introduce, Keeper, Lent, keep};
pub use launcher::CudaLauncher;
pub use rig::{Reports, Rig, Works};
pub use rows::rows;
pub use transit::{Tap, Transits, transits};
