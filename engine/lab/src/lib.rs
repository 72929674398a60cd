//! What is built on the engine to try it: graphs that are described and timed.
//!
//! A module imports only modules declared before it; the order below is the order to read in.
#![warn(missing_docs, unreachable_pub)]

use pinwheel_board::{clock, units};
use pinwheel_graph::graph;
use pinwheel_host::host;

pub mod graphs;
