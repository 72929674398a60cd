//! Rings: bounded queues between exactly two threads.
//!
//! Owned, non-cloneable ends; a refused item comes back to its caller. Nothing here waits.

pub mod spsc;

/// The ring is full; the item comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full<T>(pub T);
