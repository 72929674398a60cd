//! Datagrams of the protocol of CUDA-Q's decoding server: one call a datagram, one reply each.
//!
//! Decodes requests and encodes replies; pure, and allocates only in [`write_request`]. Called by
//! the feed's thread for every datagram, and by `pinwheel send --cudaq`. All numbers are
//! little-endian. Bounds: the slot, which both ends know. Every length is checked before a byte
//! behind it is read.
//!
//! | byte | request | reply |
//! |---|---|---|
//! | 0 | `52 51 55 43` | `53 51 55 43` |
//! | 4 | function: FNV-1a of its name | status, see [`Status`] |
//! | 8 | bytes of the payload | bytes of the result |
//! | 12 | number of the request | the same |
//! | 16 | a time, 64 bits, not used here | the same |
//! | 24 | payload | result |
//!
//! | function | payload | result |
//! |---|---|---|
//! | `enqueue_syndromes` | decoder, counter, mapping, number of measurements, 64 bits each; then the measurements, eight to a byte, the lowest first | none |
//! | `get_corrections` | decoder and number of corrections, 64 bits each; 1 byte: whether to clear | the corrections, eight to a byte |
//! | `reset_decoder` | decoder, 64 bits | none |
//!
//! Source: NVIDIA's cudaqx and cuda-quantum, as of August 2026. The counter is not read there, and
//! not here.

/// Default bytes of a datagram, as NVIDIA's ends have it.
pub const SLOT_BYTES: u32 = 256;
/// Most bytes of a datagram: what UDP over IPv4 carries.
pub const SLOT_BYTES_MAX: u32 = 65_507;
/// Bytes of a header.
pub const HEADER_BYTES: usize = 24;
/// Most measurements of one call.
pub const MEASUREMENTS_MAX: u64 = 1 << 20;

const REQUEST: u32 = 0x4355_5152;
const REPLY: u32 = 0x4355_5153;
/// Bytes before the measurements of a call.
const ENQUEUE_BYTES: usize = 32;
const CORRECTIONS_BYTES: usize = 17;
const RESET_BYTES: usize = 8;

/// Number of a function: FNV-1a of its name, 32 bits.
const fn number_of(name: &str) -> u32 {
    let (bytes, mut hash, mut at) = (name.as_bytes(), 0x811c_9dc5_u32, 0);
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u32).wrapping_mul(0x0100_0193);
        at += 1;
    }
    hash
}

/// The three functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// Adds measurements to a decoder's volume.
    Enqueue,
    /// Asks for a decoder's corrections.
    Corrections,
    /// Empties a decoder.
    Reset,
}

impl Function {
    const ENQUEUE: u32 = number_of("enqueue_syndromes");
    const CORRECTIONS: u32 = number_of("get_corrections");
    const RESET: u32 = number_of("reset_decoder");

    const fn number(self) -> u32 {
        match self {
            Function::Enqueue => Function::ENQUEUE,
            Function::Corrections => Function::CORRECTIONS,
            Function::Reset => Function::RESET,
        }
    }

    const fn of_number(number: u32) -> Option<Function> {
        match number {
            Function::ENQUEUE => Some(Function::Enqueue),
            Function::CORRECTIONS => Some(Function::Corrections),
            Function::RESET => Some(Function::Reset),
            _ => None,
        }
    }
}

/// Status of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Status {
    /// Done.
    Ok = 0,
    /// There is no decoder of this number.
    InvalidDecoder = 1,
    /// The call's sizes or values are not valid.
    BadRequest = 2,
    /// The decoder has failed, and stays so until it is reset.
    InternalError = 3,
    /// The volume is not complete.
    NotReady = 4,
}

/// A call and its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call<'a> {
    /// Adds measurements.
    Enqueue {
        /// Number of measurements.
        bits: u32,
        /// The measurements, eight to a byte; bits beyond the last one have any value.
        packed: &'a [u8],
    },
    /// Asks for the corrections.
    Corrections {
        /// Number of corrections that the caller expects.
        return_bits: i64,
        /// Whether they are cleared once they are returned.
        is_clearing: bool,
    },
    /// Empties the decoder.
    Reset,
    /// Sizes or values of the call are not valid.
    Malformed(Function),
}

impl Call<'_> {
    /// The function.
    pub const fn function(&self) -> Function {
        match self {
            Call::Enqueue { .. } => Function::Enqueue,
            Call::Corrections { .. } => Function::Corrections,
            Call::Reset => Function::Reset,
            Call::Malformed(function) => *function,
        }
    }
}

/// A request. Each one gets one reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// Its number, chosen by the caller.
    pub id: u32,
    /// A time, which the reply repeats.
    pub timestamp: u64,
    /// The decoder; `None`: the payload is too short for it.
    pub decoder: Option<i64>,
    /// The call.
    pub call: Call<'a>,
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|four| u32::from_le_bytes(*four))
}

fn i64_at(bytes: &[u8], at: usize) -> Option<i64> {
    bytes.get(at..)?.first_chunk().map(|eight| i64::from_le_bytes(*eight))
}

/// Decodes a datagram; `None`: it is no call of a known function, and gets no reply.
pub fn request(datagram: &[u8], slot_bytes: u32) -> Option<Request<'_>> {
    let is_ours = u32_at(datagram, 0)? == REQUEST && datagram.len() <= slot_bytes as usize;
    if !is_ours || datagram.len() < HEADER_BYTES {
        return None;
    }
    let function = Function::of_number(u32_at(datagram, 4)?)?;
    let (bytes, id) = (u32_at(datagram, 8)? as usize, u32_at(datagram, 12)?);
    let timestamp = i64_at(datagram, 16)?.cast_unsigned();
    let sent = &datagram[HEADER_BYTES..];
    let is_past_the_slot = HEADER_BYTES + bytes > slot_bytes as usize;
    let payload = if is_past_the_slot { &[] } else { &sent[..bytes.min(sent.len())] };
    let decoder = i64_at(payload, 0);
    let call = match function {
        Function::Enqueue => enqueue(payload),
        Function::Corrections => corrections(payload),
        Function::Reset => (payload.len() >= RESET_BYTES).then_some(Call::Reset),
    };
    Some(Request { id, timestamp, decoder, call: call.unwrap_or(Call::Malformed(function)) })
}

fn enqueue(payload: &[u8]) -> Option<Call<'_>> {
    let (mapping, count) = (i64_at(payload, 16)?, i64_at(payload, 24)?);
    let count = u64::try_from(count).ok().filter(|count| (1..=MEASUREMENTS_MAX).contains(count))?;
    let packed = payload.get(ENQUEUE_BYTES..)?.get(..count.div_ceil(8) as usize)?;
    (mapping == 0).then_some(Call::Enqueue { bits: count as u32, packed })
}

fn corrections(payload: &[u8]) -> Option<Call<'_>> {
    let is_clearing = *payload.get(CORRECTIONS_BYTES - 1)? != 0;
    Some(Call::Corrections { return_bits: i64_at(payload, 8)?, is_clearing })
}

/// Encodes a call of `decoder` into `out`, replacing the contents; without padding.
///
/// # Panics
/// If the call is [`Call::Malformed`].
pub fn write_request(id: u32, decoder: i64, call: &Call<'_>, out: &mut Vec<u8>) {
    let mut payload = Vec::from(decoder.to_le_bytes());
    match call {
        Call::Enqueue { bits, packed } => {
            let counter_and_mapping = [0; 16];
            payload.extend_from_slice(&counter_and_mapping);
            payload.extend_from_slice(&u64::from(*bits).to_le_bytes());
            payload.extend_from_slice(packed);
        }
        Call::Corrections { return_bits, is_clearing } => {
            payload.extend_from_slice(&return_bits.to_le_bytes());
            payload.push(u8::from(*is_clearing));
        }
        Call::Reset => {}
        Call::Malformed(_) => panic!("a client sends valid calls"),
    }
    out.clear();
    let bytes = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    for word in [REQUEST, call.function().number(), bytes, id] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    let timestamp = [0; 8];
    out.extend_from_slice(&timestamp);
    out.extend_from_slice(&payload);
}

/// A reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    /// Number of the request.
    pub id: u32,
    /// Time of the request.
    pub timestamp: u64,
    /// Status; 0: done.
    pub status: i32,
    /// The result.
    pub result: &'a [u8],
}

/// Decodes a server's datagram; `None` if it is not one.
pub fn reply(datagram: &[u8]) -> Option<Reply<'_>> {
    if datagram.len() < HEADER_BYTES || u32_at(datagram, 0)? != REPLY {
        return None;
    }
    let (status, bytes) = (u32_at(datagram, 4)?.cast_signed(), u32_at(datagram, 8)? as usize);
    let result = datagram[HEADER_BYTES..].get(..bytes)?;
    let timestamp = i64_at(datagram, 16)?.cast_unsigned();
    Some(Reply { id: u32_at(datagram, 12)?, timestamp, status, result })
}

/// Encodes a reply into `out`, padded with zeros to `padded_bytes` where it is shorter; returns its
/// length in bytes. `result`: the corrections, 64 to a word, of which `result_bytes` are sent.
///
/// # Panics
/// If `out` is shorter than that.
pub fn write_reply(
    out: &mut [u8],
    (id, timestamp, status): (u32, u64, Status),
    result: &[u64],
    result_bytes: usize,
    padded_bytes: usize,
) -> usize {
    let bytes = (HEADER_BYTES + result_bytes).max(padded_bytes);
    let words = [REPLY, status as u32, result_bytes as u32, id];
    for (place, word) in words.iter().enumerate() {
        out[place * 4..place * 4 + 4].copy_from_slice(&word.to_le_bytes());
    }
    out[16..HEADER_BYTES].copy_from_slice(&timestamp.to_le_bytes());
    for (place, byte) in out[HEADER_BYTES..HEADER_BYTES + result_bytes].iter_mut().enumerate() {
        *byte = result[place / 8].to_le_bytes()[place % 8];
    }
    out[HEADER_BYTES + result_bytes..bytes].fill(0);
    bytes
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Call, Function, Reply, SLOT_BYTES, Status, reply, request, write_reply, write_request};

    #[test]
    fn functions_have_the_numbers_of_the_protocol() {
        let numbers = [Function::Enqueue, Function::Corrections, Function::Reset].map(Function::number);
        assert_eq!(numbers, [0x7ed8_be82, 0x882d_5ba1, 0x977a_59cf]);
    }

    fn written(id: u32, decoder: i64, call: &Call<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        write_request(id, decoder, call, &mut out);
        out
    }

    #[test]
    fn requests_are_read_as_they_are_written_padded_or_not() {
        let calls = [
            Call::Enqueue { bits: 9, packed: &[0xa5, 1] },
            Call::Corrections { return_bits: 3, is_clearing: true },
            Call::Reset,
        ];
        for call in calls {
            let mut bytes = written(7, -2, &call);
            for length in [bytes.len(), SLOT_BYTES as usize] {
                bytes.resize(length, 0);
                let read = request(&bytes, SLOT_BYTES).unwrap();
                assert_eq!((read.id, read.decoder, read.call), (7, Some(-2), call));
            }
            bytes.push(0);
            assert_eq!(request(&bytes, SLOT_BYTES), None, "longer than the slot");
        }
    }

    #[test]
    fn strays_are_no_requests_and_wrong_sizes_are_malformed() {
        let sound = written(1, 0, &Call::Enqueue { bits: 16, packed: &[0, 0] });
        let with = |at: usize, value: u8| {
            let mut bytes = sound.clone();
            bytes[at] = value;
            bytes
        };
        for stray in [with(0, 0), with(4, 0), sound[..23].to_vec(), Vec::new()] {
            assert_eq!(request(&stray, SLOT_BYTES), None);
        }
        fn read(bytes: &[u8]) -> Option<(Option<i64>, Call<'_>)> {
            request(bytes, SLOT_BYTES).map(|read| (read.decoder, read.call))
        }
        let malformed = Some((Some(0), Call::Malformed(Function::Enqueue)));
        // One byte of measurements too few, another mapping, no measurements, more than there may be.
        for bytes in [with(8, 33), with(40, 1), with(48, 0), with(51, 1), with(55, 0x80)] {
            assert_eq!(read(&bytes), malformed);
        }
        // A payload that ends behind the slot, or within its decoder, has none.
        for bytes in [with(9, 1), with(8, 7)] {
            assert_eq!(read(&bytes), Some((None, Call::Malformed(Function::Enqueue))));
        }
        // More payload than the call needs is accepted, also where the datagram ends earlier.
        assert!(matches!(read(&with(8, 35)), Some((_, Call::Enqueue { bits: 16, .. }))));
        assert!(matches!(read(&with(48, 8)), Some((_, Call::Enqueue { bits: 8, packed: [0] }))));
        let short = written(1, 5, &Call::Corrections { return_bits: 1, is_clearing: false });
        let mut short = short[..40].to_vec();
        short[8] = 16;
        assert_eq!(read(&short), Some((Some(5), Call::Malformed(Function::Corrections))));
    }

    #[test]
    fn replies_are_padded_with_zeros_and_never_cut() {
        let mut out = [0xff; 40];
        let head = (9, 4, Status::NotReady);
        assert_eq!(write_reply(&mut out, head, &[0x1234], 2, 32), 32);
        assert_eq!(out[24..32], [0x34, 0x12, 0, 0, 0, 0, 0, 0]);
        assert_eq!(reply(&out[..32]), Some(Reply { id: 9, timestamp: 4, status: 4, result: &[0x34, 0x12] }));
        assert_eq!(write_reply(&mut out, head, &[0x1234], 2, 0), 26);
        assert_eq!(reply(&out[..25]), None);
    }
}
