//! Placement: how full each silo is, where a new stream goes, and which stream should move.
//!
//! [`depth`] reads the queues of every silo from the board, [`director`] chooses a silo for a new
//! stream, [`rebalance`] a stream that should move, and [`relief`] the streams that leave an
//! overloaded silo at once. [`controller`] runs them and publishes their decisions. Placement only
//! decides: it passes a [`Decision`](decision::Decision) on, and the feed and the arbiters make the
//! move. Runs on one cold thread. The rules are functions of the readings, so tests, benchmarks and
//! the simulation use the same code. Bounds: 1,024 silos. Never touches a shot; never uses a failed
//! or outdated reading. Source: seed 003; DESIGN §9. What happens to a shot that finds no slot is
//! decided in [`crate::feed`].

pub mod decision;
pub mod depth;
pub mod controller;
pub mod director;
pub mod rebalance;
pub mod relief;
mod publish;
