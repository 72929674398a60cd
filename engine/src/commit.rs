//! Commits: the order in which each stream's shots are answered, the stream's state, and which silo
//! may write it.
//!
//! Owns the graph role ([`orchestrator`]), which gives jobs to decode workers and commits their results
//! in each stream's order, and its parts: the reorder buffer, the streams' states ([`state`]), the silo's
//! arbiter ([`arbiter_driver`]), streams that move ([`moves`]) and joint readouts of two streams at
//! one sequence number ([`joint_readouts`]). It also holds the checks of harvest: [`Ledger`], and
//! [`JointTally`] with [`JointCheck`]. All of it runs on the graph role's thread, except that
//! harvest runs its ledger and checks. Bounds: the slots, the
//! streams and the graph's window. Never decodes, never waits.

pub mod arbiter_driver;
mod gauges;
mod joint_check;
pub mod joint_readouts;
mod ledger;
pub mod moves;
pub mod orchestrator;
mod reorder;
pub mod state;

pub use joint_check::{JointCheck, JointTally};
pub use ledger::{Ledger, Outcome};
