//! Progress of each stream in one silo, for its roles when a stream moves.
//!
//! Owns three marks for each stream, each set by one role. Bounds: the streams. Never waits.

use pinwheel_edge::page::Marks;

/// The marks of one silo.
#[derive(Debug)]
pub struct Watermarks {
    /// Set by harvest: all lower numbers have been taken out of the slots.
    pub answered: Marks,
    /// Set by graph: the first number that this silo takes after the stream arrived.
    pub begins: Marks,
    /// Set by graph: the epoch since which this silo takes the stream's shots, + 1; 0: it takes
    /// none.
    pub serves: Marks,
}

impl Watermarks {
    /// Marks of `streams` streams; `is_own` says which belong to this silo.
    pub fn new(streams: u32, is_own: impl Fn(u32) -> bool) -> Watermarks {
        let none = || Marks::new(streams, |_| 0);
        Watermarks { answered: none(), begins: none(), serves: Marks::new(streams, |stream| is_own(stream).into()) }
    }
}
