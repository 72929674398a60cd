//! Stalls explain themselves: who stood still, why, how sure that is, and what is not visible here.
//!
//! Owns the watchdog, the evidence it takes, the verdict and the alarm log's rows. Runs on cold threads only and reads
//! heartbeats; hot threads do nothing for it but publish. Bounds: a tick of 1.5 ms, a baseline from held descriptors every
//! 100 ms, a full scan only at an alarm; [`crate::board::alarms::ALARMS_MAX`] alarms. Never blocks a phase, never delays a
//! shutdown, never blames a thread for its own lateness.
//!
//! ```text
//!   heartbeats ─▶ suspicion (half the limit): first look ─▶ alarm (limit): second look, stack ─▶ verdict ─▶ row
//!   gaps that threads noted ─────────▶ baseline before and after ───────────────▶ verdict ─▶ row (a note)
//!   counters, every 100 ms ─▶ rules ─▶ verdict ─▶ row;   operator's acknowledgement, snooze ─▶ row
//! ```
//!
//! # Why two looks inside the stall
//! What a thread did in the 100 ms before it stood still says nothing. At half the limit the watchdog notes the thread's
//! account; at the limit it subtracts. Everything between lies inside the stall, so "it ran" and "it waited" are exact.

pub mod account;
pub mod book;
pub mod observe;
pub mod procfs;
mod notify;
mod offline;
#[expect(unsafe_code, reason = "holds a thread of another process by ptrace")]
pub mod hold;
pub mod outside;
mod rivals;
mod services;
#[expect(unsafe_code, reason = "samples a thread's stack by signal")]
pub mod stack;
pub mod switches;
pub mod verdict;
mod watch;

pub use book::Request;
pub use observe::{Hidden, Observations};
pub use verdict::{Cause, Verdict, verdict};
pub use watch::{Deeds, TICK, Watchdog, Watched};
