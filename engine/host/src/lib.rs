//! The machine under the engine, and the plan of its threads on that machine's cores.
//!
//! A module imports only modules declared before it; the order below is the order to read in.
#![warn(missing_docs, unreachable_pub)]

use pinwheel_board::{board, clock, files, profile, units};

pub mod host;
pub mod plan;
