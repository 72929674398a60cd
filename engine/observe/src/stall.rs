//! The watchdog: explains which thread stalled, why, how certain that is, and what is not visible
//! on this machine.
//!
//! Owns the watchdog, its evidence, the verdicts and the rows of the alarm log. Runs on cold
//! threads only and reads heartbeats; hot threads only publish. Bounds: a tick of 1.5 ms, a
//! baseline from open descriptors every 100 ms, a full scan only at an alarm;
//! [`crate::board::alarms::ALARMS_MAX`] alarms. Never blocks a phase, never delays a shutdown. Its
//! own lateness is never reported as another thread's stall.
//!
//! ```text
//!   heartbeats ─▶ half the limit: first reading ─▶ limit: second reading, stack ─▶ verdict ─▶ row
//!   gaps that threads noted ─────────▶ baseline before and after ───────▶ verdict ─▶ row (a note)
//!   counters, every 100 ms ─▶ rules ─▶ verdict ─▶ row;   operator's acknowledgement, snooze ─▶ row
//! ```
//!
//! # Why two readings inside the stall
//! What a thread did in the 100 ms before a stall does not explain it. The watchdog reads the
//! thread's account at half the limit and again at the limit. The difference lies inside the stall,
//! so "it ran" and "it waited" are exact.

pub mod account;
pub mod alarm_table;
pub mod observe;
pub mod procfs;
mod core_availability;
mod notify;
#[expect(unsafe_code, reason = "holds a thread of another process by ptrace")]
pub mod ptrace;
pub mod outside;
mod competitors;
mod counter_rules;
mod incidents;
#[expect(unsafe_code, reason = "samples a thread's stack by signal")]
pub mod stack;
pub mod switches;
pub mod verdict;
mod watch;

pub use account::Hidden;
pub use alarm_table::AlarmRequest;
pub use observe::Observations;
pub use verdict::{Cause, Verdict, verdict};
pub use watch::{TICK, Watchdog, WatchdogActions, WatchdogConfig};
