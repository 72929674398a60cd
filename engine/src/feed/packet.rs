//! The datagrams of a socket source: shots in, answers out.
//!
//! Encodes and decodes datagrams; pure, and allocates only in the sender's own [`Part::encode`].
//! Called by the feed's thread for every datagram, and by `pinwheel send`. All numbers are
//! little-endian. Bounds: [`DATAGRAM_BYTES_MAX`]. A datagram that deviates from this page is
//! refused as a whole: a shot with an answer, any other without.
//!
//! | byte | shot (1), hello (2) | answer (3), welcome (4) |
//! |---|---|---|
//! | 0 | `PWL1` | `PWL1` |
//! | 4 | version, 1 | version, 1 |
//! | 5 | kind | kind |
//! | 6 | flags: 1 last part, 2 INT32 words, 4 soft bytes after the bits | status, 16 bits: 0 answered, else see [`Status`] |
//! | 7 | 0 | |
//! | 8 | the engine's epoch, or 0 for any | the engine's epoch |
//! | 16 | the sender's session, grows with each start | the same |
//! | 24 | sequence number of the shot in its stream | the same; welcome: the soft bytes that a shot may have |
//! | 32 | stream | stream; welcome: streams |
//! | 36 | round: number of this part in its shot, from 0 | observables |
//! | 40 | first bit of the part, 32 bits | from arrival to answer, ns, 64 bits; welcome: bits of a shot, then flags as above |
//! | 44 | bits in the part, 32 bits | |
//! | 48 | bits, eight to a byte, the lowest first, padded with zeros; or a 32-bit word of 0 or 1 for each; then, with flag 4, all soft bytes of the shot | observables, as bits |
//!
//! Soft bytes come with the last part of a shot, or not at all. They say how sure its readouts are; the engine's map
//! says what each is about (`crate::code::soft`). A shot without the flag is as it was before there were any.
//!
//! # Why bits carry their position
//! Rounds of a code differ in width. Since each part names its first bit, parts may overtake each
//! other and the receiver needs no table of rounds.

pub use crate::code::measure::Encoding;
use pinwheel_edge::slot::DETECTOR_WORDS_MAX;
use pinwheel_edge::slot::word::ErrorCode;

/// First four bytes of a datagram.
pub const MAGIC: [u8; 4] = *b"PWL1";
/// Fifth byte of a datagram.
pub const VERSION: u8 = 1;
/// Bytes of the header, before the bits.
pub const HEADER_BYTES: usize = 48;
/// Most bytes of bits or words in one datagram: the widest shot.
pub const PAYLOAD_BYTES_MAX: usize = DETECTOR_WORDS_MAX * 8;
/// Most bytes of a datagram.
pub const DATAGRAM_BYTES_MAX: usize = HEADER_BYTES + PAYLOAD_BYTES_MAX;
/// Most parts of one shot.
pub const ROUNDS_MAX: u32 = 1024;

const SHOT: u8 = 1;
const HELLO: u8 = 2;
const ANSWER: u8 = 3;
const WELCOME: u8 = 4;
const LAST: u8 = 1;
const INT32: u8 = 2;
const SOFT: u8 = 4;

/// Whether a part is the last of its shot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// Parts with higher numbers follow.
    Inner,
    /// It has the highest number.
    Last,
}

/// A part of a shot, or a complete shot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// The engine epoch it is addressed to; 0: any.
    pub epoch: u64,
    /// The sender's session.
    pub session: u64,
    /// Sequence number in the stream.
    pub sequence: u64,
    /// Stream.
    pub stream: u32,
    /// Number of the part, from 0.
    pub round: u32,
    /// Whether it is the last part.
    pub position: Position,
    /// Index of its first bit in the shot.
    pub first_bit: u32,
    /// Number of bits; 0: it is to be refused.
    pub bits: u32,
    /// Encoding of the bits.
    pub encoding: Encoding,
    /// The encoded bits, with exactly the bytes that they need.
    pub payload: &'a [u8],
    /// The soft bytes of the shot, in its last part; empty: none.
    pub soft: &'a [u8],
}

/// A sender's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// To decode and answer a shot, or a part of it.
    Shot(Part<'a>),
    /// To identify the engine.
    Hello {
        /// The sender's session.
        session: u64,
    },
}

impl Status {
    /// Whether an answer of this status has observables.
    pub const fn is_decoded(status: u16) -> bool {
        status == 0 || status == Status::Abstained as u16
    }
}

/// The name of the status of an answer that is an error: of the engine's code, or one of
/// [`Status`].
pub fn status_name(status: u16) -> Option<&'static str> {
    let code = ErrorCode::from_number(status).map(ErrorCode::name);
    code.or_else(|| Status::ALL.into_iter().find(|one| *one as u16 == status).map(Status::name))
}

/// Status of an answer beyond the engine's error codes, which are 255 at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Status {
    /// Invalid width, part or value.
    Malformed = 256,
    /// Its sequence number was taken before.
    Duplicate = 257,
    /// It belongs to an older session, or is too far behind.
    Stale = 258,
    /// It was addressed to an earlier start of the engine.
    OtherEpoch = 259,
    /// It was decoded, but its gap is below the run's bound: its observables are not to be trusted.
    Abstained = 260,
    /// It has soft bytes where the engine has no map of them, or another number of them.
    Soft = 261,
}

pinwheel_edge::names! { Status:
    Malformed "malformed",
    Duplicate "duplicate",
    Stale "stale",
    OtherEpoch "other_epoch",
    Abstained "abstained",
    Soft "soft",
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

pub(super) const fn payload_bytes(bits: u32, encoding: Encoding) -> u64 {
    match encoding {
        Encoding::Bits => bits.div_ceil(8) as u64,
        Encoding::Int32 => bits as u64 * 4,
    }
}

fn is_ours(datagram: &[u8]) -> bool {
    datagram.len() >= HEADER_BYTES && datagram[..4] == MAGIC && datagram[4] == VERSION
}

/// Decodes a sender's datagram; `None` if it is no shot or hello. A part whose length, flags or values
/// deviate from this page has no bits: it is refused by its number.
pub fn request(datagram: &[u8]) -> Option<Request<'_>> {
    if !is_ours(datagram) {
        return None;
    }
    match (datagram[5], &datagram[6..8]) {
        (HELLO, [0, 0]) if datagram.len() == HEADER_BYTES && datagram[24..].iter().all(|byte| *byte == 0) => {
            Some(Request::Hello { session: u64_at(datagram, 16) })
        }
        (SHOT, _) => Some(Request::Shot(part(datagram))),
        _ => None,
    }
}

fn part(datagram: &[u8]) -> Part<'_> {
    let (flags, is_known) = (datagram[6], datagram[7] == 0 && datagram[6] & !(LAST | INT32 | SOFT) == 0);
    let encoding = if flags & INT32 == 0 { Encoding::Bits } else { Encoding::Int32 };
    let (bits, rest) = (u32_at(datagram, 44), &datagram[HEADER_BYTES..]);
    let bytes = usize::try_from(payload_bytes(bits, encoding)).unwrap_or(usize::MAX);
    let (payload, soft) = rest.split_at_checked(bytes).unwrap_or_default();
    // Soft bytes come with the last part only.
    let is_soft_as_said = soft.is_empty() == (flags & SOFT == 0) && (soft.is_empty() || flags & LAST != 0);
    let part = Part {
        epoch: u64_at(datagram, 8),
        session: u64_at(datagram, 16),
        sequence: u64_at(datagram, 24),
        stream: u32_at(datagram, 32),
        round: u32_at(datagram, 36),
        position: if flags & LAST == 0 { Position::Inner } else { Position::Last },
        first_bit: u32_at(datagram, 40),
        bits,
        encoding,
        payload,
        soft,
    };
    let is_sound = is_known && is_soft_as_said && payload.len() == bytes && part.is_binary();
    if is_sound { part } else { Part { bits: 0, payload: &[], soft: &[], ..part } }
}

impl Part<'_> {
    /// Whether every value is 0 or 1, and all padding is 0.
    pub(super) fn is_binary(&self) -> bool {
        match self.encoding {
            Encoding::Bits => {
                let padding = self.bits % 8;
                padding == 0 || self.payload.last().is_none_or(|last| last >> padding == 0)
            }
            Encoding::Int32 => self.payload.chunks_exact(4).all(|word| word[0] <= 1 && word[1..] == [0; 3]),
        }
    }

    /// Whether it is a whole shot of `bits` bits.
    pub(super) fn is_whole(&self, bits: u32) -> bool {
        (self.round, self.position, self.first_bit, self.bits) == (0, Position::Last, 0, bits)
    }

    /// Passes its bits to `take` as words aligned to the shot: (word index, bits, mask).
    pub(super) fn each_word(&self, mut take: impl FnMut(usize, u64, u64)) {
        let (mut word, shift) = (self.first_bit as usize / 64, self.first_bit % 64);
        let mut left = self.bits;
        for chunk in 0.. {
            if left == 0 {
                return;
            }
            let count = left.min(64);
            let value = self.chunk(chunk, count);
            let mask = u64::MAX >> (64 - count);
            take(word, value << shift, mask << shift);
            if shift > 0 && count + shift > 64 {
                take(word + 1, value >> (64 - shift), mask >> (64 - shift));
            }
            (word, left) = (word + 1, left - count);
        }
    }

    /// The `count` bits from bit `64 × chunk` of the payload.
    fn chunk(&self, chunk: usize, count: u32) -> u64 {
        match self.encoding {
            Encoding::Bits => {
                let bytes = &self.payload[chunk * 8..];
                let few = || bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
                bytes.first_chunk().map_or_else(few, |eight| u64::from_le_bytes(*eight))
            }
            Encoding::Int32 => {
                let words = self.payload[chunk * 256..].chunks_exact(4).take(count as usize);
                words.rev().fold(0, |bits, word| bits << 1 | u64::from(word[0]))
            }
        }
    }

    /// Encodes it into `out`, replacing the contents.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.clear();
        let last = if self.position == Position::Last { LAST } else { 0 };
        let int32 = if self.encoding == Encoding::Int32 { INT32 } else { 0 };
        let soft = if self.soft.is_empty() { 0 } else { SOFT };
        head(out, SHOT, last | int32 | soft, [self.epoch, self.session, self.sequence]);
        for word in [self.stream, self.round, self.first_bit, self.bits] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.extend_from_slice(self.payload);
        out.extend_from_slice(self.soft);
    }
}

fn head(out: &mut Vec<u8>, kind: u8, flags: u8, words: [u64; 3]) {
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&[VERSION, kind, flags, 0]);
    words.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
}

/// Encodes a hello into `out`, replacing the contents.
pub fn encode_hello(session: u64, out: &mut Vec<u8>) {
    out.clear();
    head(out, HELLO, 0, [0, session, 0]);
    out.resize(HEADER_BYTES, 0);
}

/// An engine's datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply<'a> {
    /// An answer.
    Answer(Answered<'a>),
    /// Reply to a hello.
    Welcome(Welcome),
}

/// An answer to one shot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered<'a> {
    /// The engine's epoch.
    pub epoch: u64,
    /// The sender's session.
    pub session: u64,
    /// The shot's sequence number.
    pub sequence: u64,
    /// The shot's stream.
    pub stream: u32,
    /// 0: answered; otherwise the error code or [`Status`].
    pub status: u16,
    /// Number of observables.
    pub observables: u32,
    /// From arrival to answer, in nanoseconds.
    pub latency_ns: u64,
    /// Predicted observables as bits.
    pub flips: &'a [u8],
}

/// Reply to a hello: identifies the engine and describes its shots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// The engine's epoch.
    pub epoch: u64,
    /// The sender's session.
    pub session: u64,
    /// Number of streams.
    pub streams: u32,
    /// Number of observables in an answer.
    pub observables: u32,
    /// Bits of a shot.
    pub bits: u32,
    /// Encoding of a shot's bits.
    pub encoding: Encoding,
    /// Soft bytes that a shot may have; 0: none.
    pub soft_bytes: u32,
}

/// Decodes an engine's datagram; `None` if it is not one.
pub fn reply(datagram: &[u8]) -> Option<Reply<'_>> {
    if !is_ours(datagram) {
        return None;
    }
    let (epoch, session) = (u64_at(datagram, 8), u64_at(datagram, 16));
    let (stream, observables) = (u32_at(datagram, 32), u32_at(datagram, 36));
    match datagram[5] {
        ANSWER => Some(Reply::Answer(Answered {
            epoch,
            session,
            sequence: u64_at(datagram, 24),
            stream,
            status: u16::from(datagram[6]) | u16::from(datagram[7]) << 8,
            observables,
            latency_ns: u64_at(datagram, 40),
            flips: datagram.get(HEADER_BYTES..HEADER_BYTES + observables.div_ceil(8) as usize)?,
        })),
        WELCOME => {
            let encoding = if u32_at(datagram, 44) & u32::from(INT32) == 0 { Encoding::Bits } else { Encoding::Int32 };
            let (bits, soft_bytes) = (u32_at(datagram, 40), u32_at(datagram, 24));
            Some(Reply::Welcome(Welcome { epoch, session, streams: stream, observables, bits, encoding, soft_bytes }))
        }
        _ => None,
    }
}

/// Encodes an answer into `out` and returns its length in bytes. `flips`: observables, 64 to a
/// word.
///
/// # Panics
/// If `out` is shorter than a header and the observables.
pub fn write_answer(out: &mut [u8], answer: &Answered<'_>, flips: &[u64]) -> usize {
    let [low, high] = answer.status.to_le_bytes();
    write_head(out, [ANSWER, low, high], [answer.epoch, answer.session, answer.sequence]);
    out[32..36].copy_from_slice(&answer.stream.to_le_bytes());
    out[36..40].copy_from_slice(&answer.observables.to_le_bytes());
    out[40..48].copy_from_slice(&answer.latency_ns.to_le_bytes());
    let bytes = answer.observables.div_ceil(8) as usize;
    for (place, byte) in out[HEADER_BYTES..HEADER_BYTES + bytes].iter_mut().enumerate() {
        *byte = flips.get(place / 8).map_or(0, |word| word.to_le_bytes()[place % 8]);
    }
    HEADER_BYTES + bytes
}

/// Encodes a welcome into `out` and returns its length in bytes.
///
/// # Panics
/// If `out` is shorter than a header.
pub fn write_welcome(out: &mut [u8], welcome: &Welcome) -> usize {
    write_head(out, [WELCOME, 0, 0], [welcome.epoch, welcome.session, u64::from(welcome.soft_bytes)]);
    let flags = if welcome.encoding == Encoding::Int32 { u32::from(INT32) } else { 0 };
    let words = [welcome.streams, welcome.observables, welcome.bits, flags];
    for (place, word) in words.iter().enumerate() {
        out[32 + place * 4..36 + place * 4].copy_from_slice(&word.to_le_bytes());
    }
    HEADER_BYTES
}

fn write_head(out: &mut [u8], [kind, low, high]: [u8; 3], words: [u64; 3]) {
    out[..4].copy_from_slice(&MAGIC);
    out[4..8].copy_from_slice(&[VERSION, kind, low, high]);
    for (place, word) in words.iter().enumerate() {
        out[8 + place * 8..16 + place * 8].copy_from_slice(&word.to_le_bytes());
    }
}

#[cfg(test)]
mod tests;
