//! What is built on the engine to try it: its roles in virtual time, loads, drills, graphs as text.
//!
//! A module imports only modules declared before it; the order below is the order to read in.
#![warn(missing_docs, unreachable_pub)]

use pinwheel_engine::{arbiter, board, clock, code, decode, dispatch, engine, fault, feed, graph, host, hot};
use pinwheel_engine::{placement, profile, quote, record, silo, stall, units};

pub mod graphs;
pub mod arbiter_load;
pub mod placement_rehearsal;
pub mod sim;
pub mod drill;
