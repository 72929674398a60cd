//! The home silo of a stream, and its partner in joint readouts: computed from its number, alike in
//! every silo.

/// The silo whose feed has the source of `stream`, wherever its shots are decoded.
pub const fn home(stream: u32, silos: u32) -> usize {
    (stream % silos) as usize
}

/// The partner of `stream` in joint readouts. The streams of a feed form pairs, in order; the last
/// of an odd number has no partner.
pub const fn partner(stream: u32, streams: u32, silos: u32) -> Option<u32> {
    let other = ((stream / silos) ^ 1) * silos + stream % silos;
    if other < streams { Some(other) } else { None }
}
