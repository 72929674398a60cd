//! Placement: how full each silo is, where a new stream goes, and which stream should move.
//!
//! Owns the deciding half: [`depth`] reads the queues of every silo from the board, [`director`] chooses a silo for a new
//! stream, [`rebalance`] a stream that should move, [`relief`] those that leave a full silo at once; [`desk`] puts them together, and shows what they say. A decision is
//! never an act: it is handed on as a [`Decision`](decision::Decision), and whoever makes the move answers for it. Runs on one
//! cold thread; the rules are functions of what was read, so that a test, a bench and the rehearsal in virtual time use
//! the same ones. Bounds: 1,024 silos. Never touches a shot, never takes a reading that failed or is old for a good one.
//! Source: seed 003; DESIGN §9. What a shot does that finds no slot is the feed's, see [`crate::feed`].

pub mod decision;
pub mod depth;
pub mod desk;
pub mod director;
pub mod rebalance;
pub mod relief;
mod show;
