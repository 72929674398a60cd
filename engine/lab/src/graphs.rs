//! Task graphs as text, the bundled ones, and what running one costs: `pinwheel graph`.
//!
//! Cold code; each file names its threads and its bounds.

pub mod bundled;
pub mod described;
mod domain;
pub mod perform;
