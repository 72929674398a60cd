//! What is built on the engine to try it: its roles in virtual time, loads, drills, graphs as text.
//!
//! A module imports only modules declared before it; the order below is the order to read in.
#![warn(missing_docs, unreachable_pub)]

use pinwheel_engine::{arbiter, board, clock, code, commit, decode, engine, fault, feed, graph, host, hot};
use pinwheel_engine::{pipe, profile, quote, record, roles, silo, stall, streams, units};

pub mod graphs;
pub mod arbiter_load;
pub mod sim;
pub mod drill;
