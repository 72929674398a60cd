//! The machine, and the plan of the engine's threads on its cores.
//!
//! A module imports only modules declared before it; the order below is the order to read in.
#![warn(missing_docs, unreachable_pub)]

use pinwheel_board::{board, clock, files, profile, roles, units};

pub mod host;
pub mod plan;
