//! A synthetic engine for tests: pictures computed without an engine, and what lies outside its board.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "harness")]

mod lookups;
#[path = "../../../engine/report/testing/synthetic.rs"]
mod snapshots;
mod source;

pub use lookups::looked_up;
pub use snapshots::{SyntheticFaults, arbiter, placement, snapshot};
pub use source::Synthetic;
