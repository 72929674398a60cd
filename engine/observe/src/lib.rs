//! The watchdog, which explains why a thread stalled, the account of what takes a core away, and the recorder of runs.
//!
//! A module imports only modules declared before it; the order below is the order to read in.
#![warn(missing_docs, unreachable_pub)]

use pinwheel_board::{board, clock, fault, files, profile, roles, streams, units};
use pinwheel_code::code;
use pinwheel_host::host;

#[cfg(test)]
#[allow(dead_code, reason = "each crate that has it uses its part")]
#[path = "../../host/testing/trees.rs"]
pub mod trees;
pub mod stall;
#[cfg(target_os = "linux")]
pub mod noise;
pub mod record;
