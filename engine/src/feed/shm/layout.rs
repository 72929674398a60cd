//! Layout of a region of shared memory: all offsets in bytes.
//!
//! Pure. `engine/shm/pinwheel_shm.h` defines the same layout in C, `engine/shm/README.md` describes
//! it; a test compares all three.

use super::super::packet::Encoding;
use pinwheel_edge::slot::{DETECTOR_WORDS_MAX, OBSERVABLE_WORDS_MAX};

/// "PWSHM001" read as a little-endian word, in every layout.
pub const MAGIC: u64 = u64::from_le_bytes(*b"PWSHM001");
/// Version of the layout without soft bytes.
pub const VERSION: u64 = 2;
/// Version of the layout of a region whose shots may have soft bytes.
pub const VERSION_SOFT: u64 = 3;
/// In the upper half of a shot's head, beside the stream, in a region of [`VERSION_SOFT`]: the shot has soft bytes.
pub const SOFT: u32 = 1 << 31;
/// Bytes before the rings.
pub const HEADER_BYTES: usize = 4096;

/// Words that describe the region. The engine writes them before the magic.
pub mod header {
    /// The magic word, stored last.
    pub const MAGIC: usize = 0;
    /// [`VERSION`](super::VERSION) or [`VERSION_SOFT`](super::VERSION_SOFT).
    pub const VERSION: usize = 8;
    /// Bytes of the region.
    pub const REGION_BYTES: usize = 16;
    /// Slots, a power of two.
    pub const SLOTS: usize = 24;
    /// Where the shots are.
    pub const SHOTS_AT: usize = 32;
    /// Bytes from one shot's record to the next.
    pub const SHOT_STRIDE: usize = 40;
    /// Where the answers are.
    pub const ANSWERS_AT: usize = 48;
    /// Bytes from one answer's record to the next.
    pub const ANSWER_STRIDE: usize = 56;
    /// Bits of a shot.
    pub const BITS: usize = 64;
    /// Encoding: 0: eight bits to a byte; 1: one 32-bit word for each bit.
    pub const ENCODING: usize = 72;
    /// Number of streams.
    pub const STREAMS: usize = 80;
    /// Number of observables in an answer.
    pub const OBSERVABLES: usize = 88;
    /// Soft bytes that a shot may have; 0 in layout 2.
    pub const SOFT_BYTES: usize = 96;
}

/// Words that the engine writes while it runs.
pub mod engine {
    /// The engine's epoch, different at each start.
    pub const EPOCH: usize = 128;
    /// Grows each millisecond while the engine takes shots.
    pub const HEARTBEAT: usize = 136;
    /// 0: not live yet; 1: live; 2: takes no more shots.
    pub const STATE: usize = 144;
    /// Session of the client that has the ring.
    pub const GRANTED: usize = 152;
}

/// Words that the client writes.
pub mod client {
    /// The client's session, not 0, different at each start.
    pub const SESSION: usize = 256;
    /// The client's process id.
    pub const PID: usize = 264;
    /// Changes while the client is alive.
    pub const HEARTBEAT: usize = 272;
}

/// The engine is live.
pub const STATE_LIVE: u64 = 1;
/// The engine takes no more shots.
pub const STATE_CLOSED: u64 = 2;
/// Words of a shot's record before its bits: head (turn, stream), sequence.
pub const SHOT_HEAD_WORDS: usize = 2;
/// Words of an answer's record before its observables: head (turn, status), sequence, stream, latency
/// in ns.
pub const ANSWER_HEAD_WORDS: usize = 4;
/// A record starts a cache line.
const LINE_BYTES: usize = 64;

/// The sizes of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Slots, a power of two.
    pub slots: u32,
    /// Bits of a shot.
    pub bits: u32,
    /// Encoding of the bits.
    pub encoding: Encoding,
    /// Number of streams.
    pub streams: u32,
    /// Number of observables in an answer.
    pub observables: u32,
    /// Soft bytes that a shot may have; 0: none.
    pub soft_bytes: u32,
}

impl Shape {
    /// Whether a region may have this shape; checked before it is used in computations.
    pub fn is_sound(&self) -> bool {
        self.slots.is_power_of_two()
            && self.slots <= 65_536
            && (1..=DETECTOR_WORDS_MAX as u32 * 64).contains(&self.bits)
            && self.observables <= OBSERVABLE_WORDS_MAX as u32 * 64
            && (1..=65_536).contains(&self.streams)
            && self.soft_bytes <= DETECTOR_WORDS_MAX as u32 * 8
    }

    /// Version of the layout that it needs.
    pub const fn version(&self) -> u64 {
        if self.soft_bytes == 0 { VERSION } else { VERSION_SOFT }
    }

    /// Bytes of a shot's bits.
    pub const fn payload_bytes(&self) -> usize {
        match self.encoding {
            Encoding::Bits => self.bits.div_ceil(8) as usize,
            Encoding::Int32 => self.bits as usize * 4,
        }
    }

    /// Words that hold them.
    pub const fn payload_words(&self) -> usize {
        self.payload_bytes().div_ceil(8)
    }

    /// Words of a shot's record: its head, bits and soft bytes.
    pub const fn shot_words(&self) -> usize {
        SHOT_HEAD_WORDS + self.payload_words() + self.soft_bytes.div_ceil(8) as usize
    }

    /// Words of an answer's record.
    pub const fn answer_words(&self) -> usize {
        ANSWER_HEAD_WORDS + self.observables.div_ceil(64) as usize
    }

    /// Bytes from one shot's record to the next.
    pub const fn shot_stride(&self) -> usize {
        (self.shot_words() * 8).next_multiple_of(LINE_BYTES)
    }

    /// Bytes from one answer's record to the next.
    pub const fn answer_stride(&self) -> usize {
        (self.answer_words() * 8).next_multiple_of(LINE_BYTES)
    }

    /// Where the shots are.
    pub const fn shots_at(&self) -> usize {
        HEADER_BYTES
    }

    /// Where the answers are.
    pub const fn answers_at(&self) -> usize {
        self.shots_at() + self.slots as usize * self.shot_stride()
    }

    /// Total bytes of the region.
    pub const fn bytes(&self) -> usize {
        (self.answers_at() + self.slots as usize * self.answer_stride()).next_multiple_of(4096)
    }

    /// Where the shot of slot `slot` is.
    pub const fn shot_at(&self, slot: u32) -> usize {
        self.shots_at() + slot as usize * self.shot_stride()
    }

    /// Where the answer of slot `slot` is.
    pub const fn answer_at(&self, slot: u32) -> usize {
        self.answers_at() + slot as usize * self.answer_stride()
    }

    /// The words of the header that say so: (offset, value).
    pub fn words(&self) -> [(usize, u64); 12] {
        let encoding = u64::from(self.encoding == Encoding::Int32);
        [
            (header::VERSION, self.version()),
            (header::REGION_BYTES, self.bytes() as u64),
            (header::SLOTS, u64::from(self.slots)),
            (header::SHOTS_AT, self.shots_at() as u64),
            (header::SHOT_STRIDE, self.shot_stride() as u64),
            (header::ANSWERS_AT, self.answers_at() as u64),
            (header::ANSWER_STRIDE, self.answer_stride() as u64),
            (header::BITS, u64::from(self.bits)),
            (header::ENCODING, encoding),
            (header::STREAMS, u64::from(self.streams)),
            (header::OBSERVABLES, u64::from(self.observables)),
            (header::SOFT_BYTES, u64::from(self.soft_bytes)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::{Encoding, Shape};

    /// Distances 3, 5 and 7 with as many rounds: a shot is one line, and so is its answer.
    #[test]
    fn a_shot_of_distance_7_and_its_answer_are_a_cache_line_each() {
        for bits in [24, 120, 336] {
            let shape = Shape { slots: 8, bits, encoding: Encoding::Bits, streams: 4, observables: 1, soft_bytes: 0 };
            assert_eq!((shape.shot_stride(), shape.answer_stride()), (64, 64), "{bits} bits");
            assert!(shape.shot_at(3).is_multiple_of(64) && shape.answer_at(3).is_multiple_of(64));
        }
    }

    #[test]
    fn records_do_not_overlap_and_the_region_holds_them_all() {
        for (bits, encoding, observables, soft_bytes) in [
            (1, Encoding::Bits, 0, 0),
            (120, Encoding::Bits, 1, 145),
            (120, Encoding::Int32, 65, 1),
            (65_536, Encoding::Int32, 1_024, 0),
        ] {
            let shape = Shape { slots: 64, bits, encoding, streams: 1, observables, soft_bytes };
            assert!(shape.is_sound() && shape.bytes().is_multiple_of(4096));
            assert!(shape.shot_at(1) - shape.shot_at(0) >= shape.shot_words() * 8);
            assert!(shape.answer_at(63) + shape.answer_words() * 8 <= shape.bytes());
            assert!(shape.shot_at(63) + shape.shot_words() * 8 <= shape.answer_at(0));
        }
    }
}
