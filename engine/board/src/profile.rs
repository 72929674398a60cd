//! Profiles: the operator's settings, in one RON file.
//!
//! Owns the schema, its ranges, the loader with its errors, and the difference of two profiles,
//! with the changes that apply to a running engine. Runs on cold threads only (command line,
//! console, Init). Bounded by [`FILE_BYTES_MAX`] for a file and [`ENTRIES_MAX`] for a directory.
//! Never reads a clock, a core or the network, and imports nothing of the engine: a profile can be
//! read, checked and compared on a machine that could not run it.
//!
//! # The value of an omitted field
//! The value in the profile's base. `base: "prod"` names an embedded profile; without `base` it is
//! `base.ron`, the one declaration of all defaults. A base is never a file: the meaning of a
//! profile depends only on its own file and on the version of the program. A run keeps its profile
//! with all fields, so a new default changes no old run.

#![warn(clippy::cast_possible_truncation, clippy::cast_sign_loss)]

mod alarms;
mod check;
mod deadlines;
mod diff;
mod finding;
mod full;
mod layer;
mod load;
mod locate;
mod placement;
mod schema;
mod silos;
mod weights;

pub use alarms::{AlarmAction, AlarmRule, Diagnostics, OnAlarm, RuleId, Severity, rule};
pub use check::{
    DECODERS_AUTO_MAX, DECODERS_MAX, NAME_BYTES_MAX, RangeError, SHADOW_ONE_IN, SHADOW_ONE_IN_DEFAULT, SLAB_TASKS,
    STREAM_QUEUES_BYTES_MAX, THREAD_NAME_BYTES_MAX, THREAD_ROLES_MAX, THREADS_MAX, WINDOW_ROUNDS_MAX, WINDOW_TASKS_MAX,
    WORKERS_MAX, stream_queues_bytes,
};
pub use deadlines::{Deadlines, Rescue, ShotOrder, StreamDeadline};
pub use diff::{Applies, Change, applies, diff};
pub use finding::{Finding, ProfileError, nearest_name};
pub use load::{
    DEFAULT_NAME, ENTRIES_MAX, FILE_BYTES_MAX, Origin, ProfileEntry, check_name, list, names, text, usable_text,
};
pub use placement::{AllHigh, Overflow, OverflowStrategy, PlaceBy, PlacementRules, TakesPart};
pub use schema::{
    Courtesy, Decoder, DecoderKind, Decoders, Device, Environment, Faults, FreeWorker, Graph, HotAllocations, Input,
    IssueGate, KeptRuns, Latency, Limits, NO_DEVICE, OnHangup, Placement, Predecoder, Priority, Profile, Rate,
    ReadyPolicy, RoleFault, Shadow, Source, SpinBudgets, StartPolicy, StreamDecoder, TaskTrace, Theme, ThreadSpec,
    Threads, Window, WindowOverflow, WindowRounds,
};
pub use silos::{SILOS_MAX, Silos};
pub use weights::Weights;

pub use pinwheel_edge::spin::SpinPolicy;

#[cfg(test)]
mod tests;
