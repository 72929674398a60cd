//! One frame: its head, its checksum, its compression.
//!
//! Pure. Bounded by [`FRAME_BYTES_MAX`], compressed and not. Checks the checksum before it uses a
//! length.

use crate::board::Shape;
use crate::board::layout;
use crate::units::{TickRate, Ticks};

/// Most bytes of a frame's payload, compressed or not: all words of the largest board, as
/// differences.
pub const FRAME_BYTES_MAX: usize = 1 << 28;
/// Bytes of a frame's head.
pub(in crate::record) const HEAD_BYTES: usize = 32;
/// Bytes of a file's head.
pub(in crate::record) const FILE_HEAD_BYTES: usize = 72;
/// First bytes of a frame.
pub(in crate::record) const SYNC: [u8; 4] = *b"PWFR";
/// First bytes of a file.
const FILE_SYNC: [u8; 8] = *b"PWTAPE01";

/// What a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A snapshot as the difference from a board of zeros.
    Key,
    /// A snapshot as the difference from the previous one.
    Delta,
    /// Fast samples.
    Burst,
}

/// The head of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::record) struct Head {
    pub(in crate::record) number: u32,
    pub(in crate::record) kind: Kind,
    pub(in crate::record) at: Ticks,
}

/// A complete frame.
#[derive(Clone, Copy, Debug)]
pub(in crate::record) struct Framed {
    pub(in crate::record) head: Head,
    packing: Packing,
    /// Bytes that its payload is unpacked to.
    pub(in crate::record) raw_bytes: usize,
    /// Bytes of head and payload.
    pub(in crate::record) bytes: usize,
}

/// Why there is no frame at this position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::record) enum NoFrame {
    /// The bytes end before the frame does.
    Short {
        /// Bytes that the frame needs.
        wanted: usize,
    },
    /// The bytes are not a frame.
    Damaged,
}

/// How a payload is compressed: the second byte of a frame's kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    Lz4,
    Deflate,
}

/// Compresses snapshots well. Keeps its working memory: freeing some hundred kilobytes ten times a
/// second would unmap them, and each unmapping interrupts the hot cores.
pub(in crate::record) struct Packer {
    deflate: flate2::Compress,
    packed: Vec<u8>,
}

impl Packer {
    pub(in crate::record) fn new() -> Packer {
        Packer { deflate: flate2::Compress::new(flate2::Compression::new(6), false), packed: Vec::new() }
    }

    /// The bytes of a frame. Slower than [`pack`], and a fifth smaller.
    pub(in crate::record) fn pack(&mut self, head: Head, raw: &[u8]) -> Vec<u8> {
        self.deflate.reset();
        self.packed.clear();
        self.packed.reserve(raw.len() + raw.len() / 8 + 128);
        match self.deflate.compress_vec(raw, &mut self.packed, flate2::FlushCompress::Finish) {
            Ok(flate2::Status::StreamEnd) => frame(head, Packing::Deflate, raw.len(), &self.packed),
            _ => pack(head, raw),
        }
    }
}

/// The bytes of a frame, compressed fast.
pub(in crate::record) fn pack(head: Head, raw: &[u8]) -> Vec<u8> {
    frame(head, Packing::Lz4, raw.len(), &lz4_flex::block::compress(raw))
}

fn frame(head: Head, packing: Packing, raw_bytes: usize, packed: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEAD_BYTES + packed.len());
    out.extend_from_slice(&SYNC);
    out.extend_from_slice(&head.number.to_le_bytes());
    out.extend_from_slice(&[head.kind as u8 + 1, packing as u8, 0, 0]);
    out.extend_from_slice(&head.at.0.to_le_bytes());
    out.extend_from_slice(&length(raw_bytes).to_le_bytes());
    out.extend_from_slice(&length(packed.len()).to_le_bytes());
    let checksum = checksum(&out, packed);
    out.extend_from_slice(&checksum.to_le_bytes());
    out.extend_from_slice(packed);
    out
}

fn length(bytes: usize) -> u32 {
    u32::try_from(bytes)
        .ok()
        .filter(|_| bytes <= FRAME_BYTES_MAX)
        .expect("a board's differences are far below the limit")
}

/// The frame at the start of `bytes`.
pub(in crate::record) fn find(bytes: &[u8]) -> Result<Framed, NoFrame> {
    let Some(head) = bytes.get(..HEAD_BYTES) else { return Err(NoFrame::Short { wanted: HEAD_BYTES }) };
    let (raw_bytes, packed_bytes) = (number(head, 20) as usize, number(head, 24) as usize);
    let kind = match head[8] {
        1 => Kind::Key,
        2 => Kind::Delta,
        3 => Kind::Burst,
        _ => return Err(NoFrame::Damaged),
    };
    let packing = match head[9..12] {
        [0, 0, 0] => Packing::Lz4,
        [1, 0, 0] => Packing::Deflate,
        _ => return Err(NoFrame::Damaged),
    };
    if head[..4] != SYNC || raw_bytes > FRAME_BYTES_MAX || packed_bytes > FRAME_BYTES_MAX {
        return Err(NoFrame::Damaged);
    }
    let wanted = HEAD_BYTES + packed_bytes;
    let Some(payload) = bytes.get(HEAD_BYTES..wanted) else { return Err(NoFrame::Short { wanted }) };
    if checksum(&head[..28], payload) != number(head, 28) {
        return Err(NoFrame::Damaged);
    }
    let at = Ticks(u64::from_le_bytes(std::array::from_fn(|i| head[12 + i])));
    Ok(Framed { head: Head { number: number(head, 4), kind, at }, packing, raw_bytes, bytes: wanted })
}

impl Framed {
    /// The payload of this frame, which starts `bytes`; `None` if it cannot be decompressed.
    pub(in crate::record) fn unpack(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let packed = bytes.get(HEAD_BYTES..self.bytes)?;
        match self.packing {
            Packing::Lz4 => lz4_flex::block::decompress(packed, self.raw_bytes).ok(),
            Packing::Deflate => inflate(packed, self.raw_bytes),
        }
    }
}

/// Decompresses to at most `raw_bytes + 1` bytes.
fn inflate(packed: &[u8], raw_bytes: usize) -> Option<Vec<u8>> {
    let mut raw = Vec::new();
    raw.try_reserve_exact(raw_bytes + 1).ok()?;
    let done = flate2::Decompress::new(false).decompress_vec(packed, &mut raw, flate2::FlushDecompress::Finish);
    (done.ok()? == flate2::Status::StreamEnd && raw.len() == raw_bytes).then_some(raw)
}

/// Offset in `bytes` of the next possible frame, after the first byte.
pub(in crate::record) fn next_sync(bytes: &[u8]) -> Option<usize> {
    bytes.get(1..)?.windows(SYNC.len()).position(|window| window == SYNC).map(|at| at + 1)
}

fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

fn checksum(head: &[u8], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(head);
    hasher.update(payload);
    hasher.finalize()
}

/// Version of the encoding of payloads.
const FORMAT: u64 = 2;

/// Hash of what this program reads: its board layout and its encoding.
pub(in crate::record) fn format_hash() -> u64 {
    layout::hash() ^ FORMAT
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::record) struct FileHead {
    pub(in crate::record) version: u64,
    pub(in crate::record) hash: u64,
    pub(in crate::record) shape: Shape,
    pub(in crate::record) rate: TickRate,
    pub(in crate::record) start: Ticks,
}

impl FileHead {
    /// The head for a board of this program.
    pub(in crate::record) fn new(shape: Shape, rate: TickRate, start: Ticks) -> FileHead {
        FileHead { version: layout::VERSION, hash: format_hash(), shape, rate, start }
    }

    /// Whether this program can read the file.
    pub(in crate::record) fn is_readable(&self) -> bool {
        (self.version, self.hash) == (layout::VERSION, format_hash())
    }

    pub(in crate::record) fn bytes(&self) -> Vec<u8> {
        let mut out = FILE_SYNC.to_vec();
        out.extend_from_slice(&self.version.to_le_bytes());
        out.extend_from_slice(&self.hash.to_le_bytes());
        for size in self.shape.words() {
            out.extend_from_slice(&size.to_le_bytes()[..4]);
        }
        out.extend_from_slice(&self.rate.nanos_per_tick_q32().to_le_bytes());
        out.extend_from_slice(&self.start.0.to_le_bytes());
        let checksum = checksum(&out, &[]);
        out.extend_from_slice(&checksum.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        debug_assert_eq!(out.len(), FILE_HEAD_BYTES);
        out
    }

    /// `None` if there is no complete head.
    pub(in crate::record) fn read(bytes: &[u8]) -> Option<FileHead> {
        let bytes = bytes.get(..FILE_HEAD_BYTES)?;
        if bytes[..8] != FILE_SYNC || checksum(&bytes[..64], &[]) != number(bytes, 64) {
            return None;
        }
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let sizes = std::array::from_fn(|i| u64::from(number(bytes, 24 + 4 * i)));
        Some(FileHead {
            version: word(8),
            hash: word(16),
            shape: Shape::from_words(sizes)?,
            rate: TickRate::from_q32(word(48))?,
            start: Ticks(word(56)),
        })
    }
}
