//! How far each stream has come at the ends of one silo: what its parts must know of each other when a stream moves.
//!
//! Owns three marks for each stream, each set by one role. Bounds: the streams. Never waits.

use pinwheel_edge::page::Marks;

/// The marks of one silo.
#[derive(Debug)]
pub struct Turns {
    /// Harvest: all numbers below have been taken out of the slots.
    pub answered: Marks,
    /// Graph: the first number that this silo takes since the stream came.
    pub begins: Marks,
    /// Graph: the epoch since which the stream's shots are taken here, + 1; 0: they are not.
    pub serves: Marks,
}

impl Turns {
    /// Marks of `streams` streams, of which `is_own` are this silo's.
    #[must_use]
    pub fn new(streams: u32, is_own: impl Fn(u32) -> bool) -> Turns {
        let none = || Marks::new(streams, |_| 0);
        Turns { answered: none(), begins: none(), serves: Marks::new(streams, |stream| is_own(stream).into()) }
    }
}
