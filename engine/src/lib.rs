//! Pinwheel's engine: pinned, spin-polling threads that carry syndrome shots from a feed to an answer.
//!
//! What the roles are built on stands in crates of its own. They are re-exported here under the names of their modules:
//!
//! | crate | modules |
//! |---|---|
//! | `pinwheel_edge` | every memory ordering; [`units`] |
//! | `pinwheel_board` | [`clock`], [`timer`], [`files`], [`quote`], [`fault`], [`profile`], [`board`] |
//! | `pinwheel_code` | [`code`], [`predecode`] |
//! | `pinwheel_graph` | [`graph`]: the task graph that decode workers run |
//! | `pinwheel_host` | [`host`], [`plan`] |
//! | `pinwheel_observe` | [`stall`], [`record`] |
//! | this one | the roles, and the engine that starts them |
//! | `pinwheel_lab` | rehearsal, drills, loads: built on this crate, so not re-exported |
//!
//! A crate imports only crates before it in this table, and a module only modules declared before it; the order below is
//! the order to read in.
#![warn(missing_docs, unreachable_pub)]

pub use pinwheel_board::{board, clock, fault, files, profile, quote, timer};
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
