//! Rings: bounded queues whose ends are owned, one thread each.
//!
//! | ring | writers | readers | when full |
//! |---|---|---|---|
//! | [`spsc`] | one | one | the item comes back |
//! | [`mod@line`] | one | one; an item and its turn share a cache line | the item comes back |
//! | [`mpsc`] | some, each with a lane of its own | one | the item comes back |
//! | [`broadcast`] | one | some, each sees every item | the item comes back and is counted |
//! | [`log`] | some | one | the record is dropped and counted |
//!
//! Nothing here waits, and nothing allocates after construction. Ends that must be single are not
//! `Clone`. A batch is at most [`BATCH`] items, whatever a caller asks for: a role's `work` stays
//! bounded. Items are `Copy`: what was read is never dropped, what was not read needs no care.

pub mod broadcast;
pub mod line;
pub mod log;
pub mod mpsc;
mod slots;
pub mod spsc;

/// Items of one batch, at most (seed 004 §4: bounded batches keep a frame's worst case bounded).
pub const BATCH: usize = 64;

/// The ring is full; the item comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full<T>(pub T);
