//! The task graph runtime. Decode workers use it, and `pinwheel graph` measures it.
//!
//! A module imports only modules declared before it; the order below is the order to read in.
#![warn(missing_docs, unreachable_pub)]

use pinwheel_board::{clock, profile, units};

pub mod graph;
