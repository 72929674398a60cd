//! What was answered with an error before it was decoded: told, so that its stream goes on without it.
//!
//! Owns the writing end of a ring to the graph role; dispatch and poll have one each. Bounds: as many as there are slots.
//! Whoever may have to answer asks for room first, and comes back if there is none. Edges: the ring's, R1 and R2.

use pinwheel_edge::ring::spsc::{self, Consumer, Producer};

/// A sequence number that has its answer, an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tombstone {
    /// Stream.
    pub stream: u32,
    /// Sequence number within the stream.
    pub sequence: u64,
}

/// The end.
pub struct Tombstones(Producer<Tombstone>);

impl Tombstones {
    /// A ring for as many as there are slots.
    #[must_use]
    pub fn channel(slots: u32) -> (Tombstones, Consumer<Tombstone>) {
        let (producer, consumer) = spsc::channel(slots as usize);
        (Tombstones(producer), consumer)
    }

    /// Whether one more can be told.
    #[inline]
    pub fn has_room(&mut self) -> bool {
        self.0.room() > 0
    }

    /// Tells.
    ///
    /// # Panics
    /// If there is no room.
    pub(super) fn tell(&mut self, tombstone: Tombstone) {
        assert!(self.0.push(tombstone).is_ok(), "room was asked for before the answer");
    }
}
