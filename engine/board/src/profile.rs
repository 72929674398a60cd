//! Profiles: what an operator may set, in one RON file.
//!
//! Owns the schema, its ranges, the loader with its errors, and the difference of two profiles with what of it
//! applies to a running engine. Runs on cold threads only (command line, console, Init). Bounded by
//! [`FILE_BYTES_MAX`] for a file and [`ENTRIES_MAX`] for a directory. Never reads a clock, a core or the network, and
//! imports nothing of the engine: a profile can be read, checked and compared on a machine that could not run it.
//!
//! # Why every field is required
//!
//! A profile is shown, compared and kept with each run. A field that may be left out would make two files that
//! look different mean the same, and would let a new default change an old run silently.

#![warn(clippy::cast_possible_truncation, clippy::cast_sign_loss)]

mod alarms;
mod check;
mod diff;
mod finding;
mod load;
mod locate;
mod placement;
mod schema;
mod silos;
mod weights;

pub use alarms::{AlarmAction, AlarmRule, Diagnostics, OnAlarm, RuleId, Severity, rule};
pub use check::{
    DECODERS_AUTO_MAX, DECODERS_MAX, NAME_BYTES_MAX, RangeError, SILOS_MAX, STREAM_QUEUES_BYTES_MAX,
    THREAD_NAME_BYTES_MAX, THREAD_ROLES_MAX, THREADS_MAX, WINDOW_ROUNDS_MAX, WINDOW_TASKS_MAX, WORKERS_MAX,
    stream_queues_bytes,
};
pub use diff::{Applies, Change, applies, diff};
pub use finding::{Finding, ProfileError};
pub use load::{DEFAULT_NAME, ENTRIES_MAX, FILE_BYTES_MAX, Origin, ProfileEntry, check_name, list, text, usable_text};
pub use placement::{AllHigh, Overflow, OverflowStrategy, PlaceBy, PlacementRules, TakesPart};
pub use schema::{
    Courtesy, Decoders, Device, Environment, Faults, FreeWorker, Graph, HotAllocations, Input, IssueGate, KeptRuns,
    Latency, Limits, OnHangup, Placement, Predecoder, Priority, Profile, Rate, ReadyPolicy, RoleFault, RoleKind,
    Source, SpinBudgets, SpinPolicy, StartPolicy, TaskKernel, TaskTrace, Theme, ThreadSpec, Threads, WindowOverflow,
    WindowRounds,
};
pub use silos::Silos;
pub use weights::Weights;

#[cfg(test)]
mod tests;
