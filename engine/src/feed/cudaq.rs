//! A source that speaks the protocol of CUDA-Q's decoding server: takes calls, and replies to each
//! datagram once.
//!
//! Each decoder is a stream, and each of its volumes of measurements is a shot. Runs on the first
//! silo's feed's thread, as the wire of its link.
//!
//! ```text
//! datagram ─▶ frame ─▶ session ─ part ─▶ intake … answer ─▶ session ─▶ queue ─▶ reply
//!                └ its decoder computes: waits in the queue ────┘
//! ```
//!
//! # What the engine's answers mean here
//! An answer with an error, or one that is not to be trusted, fails the decoder until it is reset,
//! as an error of the decoder does in NVIDIA's server. A late answer is an answer.

pub mod frame;
#[cfg(target_os = "linux")]
mod numbers;
#[cfg(target_os = "linux")]
mod queue;
pub mod session;
#[cfg(target_os = "linux")]
mod wire;

#[cfg(target_os = "linux")]
pub(super) use wire::CudaqWire;
