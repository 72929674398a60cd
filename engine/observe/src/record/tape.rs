//! A recording: pictures of the board's words, as differences, in frames that each vouch for themselves.
//!
//! Owns the file's format. Written by the recorder, a cold thread; read by anyone, also while it is written. Bounds: each
//! frame says its length, at most [`FRAME_BYTES_MAX`]; a key picture comes every [`KEY_EVERY`] pictures.
//!
//! ```text
//! file    header (72 bytes): "PWTAPE01", layout version, layout hash, six sizes, ns per tick, start tick, checksum
//!         frame frame frame …
//! frame   "PWFR"  number u32  kind u8  packing u8 + 2 zero  tick u64  length unpacked u32  length u32  checksum u32  payload
//! kind 1  key picture: against a board of zeros        kind 2  picture: against the picture with the number before
//! kind 3  burst: up to a second of fast samples, on their own; number 0
//! ```
//!
//! Payloads are packed by Deflate (1: pictures, whose size counts every day) or as an LZ4 block (0: bursts, made each second and
//! mostly thrown away).
//!
//! # Why words and not values
//! The recorder knows no counter by name: whatever a later version publishes is recorded, and a replayed board is read
//! by the same code as a live one. The price is that a recording belongs to one board layout; its hash says which.
//!
//! # Why it opens after any cut
//! Nothing in a frame refers forwards, and a frame is one write. A reader takes frames for as long as they are whole,
//! looks for the next one behind damage, and takes no picture whose predecessor is missing.

mod burst;
mod delta;
mod frame;
mod read;
mod slots;
mod source;

pub use burst::FastSet;
pub use delta::{Detail, Encoder};
pub use frame::{FRAME_BYTES_MAX, Kind};
pub use read::{Moment, Tape, TapeError};

pub(super) use burst::Burst;
pub(super) use frame::{FileHead, Head, Packer, pack};
pub(super) use read::entry;

/// The recording's file in a run's directory.
pub const FILE: &str = "recording.pwt";
/// Where its key pictures are; made anew where it is missing.
pub const INDEX: &str = "recording.index";
/// Pictures from one key to the next: ten seconds.
pub const KEY_EVERY: u32 = 100;

/// Appends `value` in groups of seven bits, lowest first.
#[expect(clippy::cast_possible_truncation, reason = "seven bits at a time")]
fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Takes one such number from the front; `None` where there is none.
fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Small numbers of either sign as small numbers.
fn fold(difference: u64) -> u64 {
    let signed = difference.cast_signed();
    (signed << 1 ^ signed >> 63).cast_unsigned()
}

/// Inverse of [`fold`].
fn unfold(folded: u64) -> u64 {
    folded >> 1 ^ (folded & 1).wrapping_neg()
}

#[cfg(test)]
mod tests;
