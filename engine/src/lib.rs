//! Pinwheel's engine: pinned, spin-polling threads that carry syndrome shots from a feed to an answer.
//!
//! A module imports only modules declared before it; the order below is the order to read in.
#![warn(missing_docs, unreachable_pub)]

pub use pinwheel_board::{board, clock, fault, files, profile, timer};
pub use pinwheel_code::{code, predecode};
pub use pinwheel_edge::units;
pub use pinwheel_graph::graph;
pub use pinwheel_host::{host, plan};
pub use pinwheel_observe::{record, stall};

pub mod hot;
pub mod device;
pub mod arbiter;
pub mod feed;
pub mod dispatch;
pub mod decode;
pub mod placement;
pub mod silo;
pub mod engine;
