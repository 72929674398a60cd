//! Pinwheel's engine: pinned, spin-polling threads that carry syndrome shots from a feed to an answer.
//!
//! A module imports only modules declared before it; the order below is the order to read in.
#![warn(missing_docs, unreachable_pub)]

pub use pinwheel_edge::units;

#[expect(unsafe_code, reason = "reads the processor's counter")]
pub mod clock;
pub mod timer;
pub mod files;
pub mod quote;
pub mod fault;
pub mod profile;
#[expect(unsafe_code, reason = "maps the shared region")]
pub mod board;
pub mod host;
pub mod plan;
pub mod hot;
pub mod code;
pub mod predecode;
pub mod device;
pub mod arbiter;
pub mod feed;
pub mod dispatch;
pub mod graph;
pub mod decode;
pub mod placement;
pub mod silo;
pub mod sim;
pub mod stall;
pub mod record;
pub mod engine;
pub mod drill;
