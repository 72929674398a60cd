//! A recording: snapshots of the board's words, stored as differences, in frames with a checksum
//! each.
//!
//! Owns the file's format. The recorder, a cold thread, writes it; it can be read while it is
//! written. Each frame has at most [`FRAME_BYTES_MAX`]; every [`KEY_EVERY`] snapshots there is a
//! key snapshot.
//!
//! ```text
//! file    header (72 bytes): "PWTAPE01", layout version, layout hash, six sizes, ns per tick,
//!         start tick, checksum
//!         frame frame frame …
//! frame   "PWFR"  number u32  kind u8  packing u8 + 2 zero  tick u64  length unpacked u32
//!         length u32  checksum u32  payload
//! kind 1  key snapshot: difference from a board of zeros
//! kind 2  snapshot: difference from the previous snapshot
//! kind 3  burst: up to a second of fast samples, independent of other frames; number 0
//! ```
//!
//! Snapshots are compressed by Deflate (packing 1), for a small file. Bursts are LZ4 blocks
//! (packing 0), because one is made each second and most are discarded.
//!
//! # Why words and not values
//! The recorder names no counter: whatever a later version publishes is recorded too, and the code
//! that reads a live board reads a replayed one. The price is that a recording belongs to one board
//! layout, identified by its hash.
//!
//! # Why a truncated recording opens
//! No frame refers to a later one, and each frame is one write. A reader takes frames as long as
//! they are complete, searches for the next one behind damage, and skips snapshots whose
//! predecessor is missing.

mod burst;
mod delta;
mod frame;
mod read;
mod slots;
mod source;

pub use burst::FastSet;
pub use delta::Encoder;
pub use frame::{FRAME_BYTES_MAX, Kind};
pub use read::{Moment, Tape, TapeError};
pub use slots::Detail;

pub(super) use burst::Burst;
pub(super) use frame::{FileHead, Head, Packer, pack};
pub(super) use read::entry;

use crate::board::snapshot::Snapshot;
use crate::board::{Board, get};
use crate::clock::Clock;
use crate::units::Ticks;

/// A recording of one snapshot: `board` now, for [`pictured`] in another process.
pub fn picture(board: &Board, clock: &Clock) -> Vec<u8> {
    let at = clock.ticks();
    let start = Ticks(get(&board.header().start_ticks));
    let mut bytes = FileHead::new(board.shape(), clock.rate(), start).bytes();
    let key = Encoder::new(board).key(board, at);
    bytes.extend(pack(Head { number: 0, kind: Kind::Key, at }, &key));
    bytes
}

/// The snapshot of a [`picture`]; `None`: it is damaged, or its engine had not set its clock.
///
/// # Errors
/// As [`Tape::from_bytes`], and if there is not enough memory.
pub fn pictured(bytes: Vec<u8>) -> Result<Option<Snapshot>, TapeError> {
    let mut tape = Tape::from_bytes(bytes)?;
    let Some((_, at)) = tape.span() else { return Ok(None) };
    let Some(moment) = tape.at(at)? else { return Ok(None) };
    Ok(moment.snapshot()?)
}

/// File name of a run's recording.
pub const FILE: &str = "recording.pwt";
/// File name of the index of its key snapshots. It is rebuilt if it is missing.
pub const INDEX: &str = "recording.index";
/// Snapshots from one key snapshot to the next: ten seconds.
pub const KEY_EVERY: u32 = 100;

/// Appends `value` as a variable-length number: groups of seven bits, lowest first.
#[expect(clippy::cast_possible_truncation, reason = "seven bits at a time")]
fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Removes a variable-length number from the front; `None` if there is none.
fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
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

/// Maps small numbers of either sign to small numbers (zigzag encoding).
fn zigzag(difference: u64) -> u64 {
    let signed = difference.cast_signed();
    (signed << 1 ^ signed >> 63).cast_unsigned()
}

/// Inverse of [`zigzag`].
fn unzigzag(folded: u64) -> u64 {
    folded >> 1 ^ (folded & 1).wrapping_neg()
}

#[cfg(test)]
mod tests;
