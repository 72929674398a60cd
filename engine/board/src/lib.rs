//! Shared parts of the engine: clock, timers, files, quotes, profiles, faults, and the board of
//! published counters.
//!
//! A module imports only modules declared before it; the order below is the order to read in.
#![warn(missing_docs, unreachable_pub)]

pub use pinwheel_edge::units;

#[expect(unsafe_code, reason = "reads the processor's counter")]
pub mod clock;
pub mod timer;
pub mod files;
pub mod quote;
pub mod roles;
pub mod streams;
pub mod profile;
pub mod fault;
#[expect(unsafe_code, reason = "maps the shared region")]
pub mod board;
