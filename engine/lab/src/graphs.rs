//! `pinwheel graph`: task graphs from text, the bundled ones, and the measurement of a run.
//!
//! Cold code; each file names its threads and its bounds.

pub mod bundled;
pub mod graph_spec;
mod domain;
pub mod run;
