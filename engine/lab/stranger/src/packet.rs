//! Datagrams of a socket source, by the page `reference/datagrams.md`.

/// Bytes before the bits.
pub const HEADER: usize = 48;

/// What an engine sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// An answer: session, sequence number, stream, status, and observable 0.
    Answer { session: u64, sequence: u64, stream: u32, status: u16, flips: bool },
    /// The engine's epoch, streams and bits of a shot.
    Welcome { session: u64, epoch: u64, streams: u32, bits: u32 },
}

/// A part of a shot.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    pub epoch: u64,
    pub session: u64,
    pub sequence: u64,
    pub stream: u32,
    pub round: u32,
    pub is_last: bool,
    pub first_bit: u32,
    pub bits: u32,
    pub payload: &'a [u8],
    /// All soft bytes of the shot, in its last part.
    pub soft: &'a [u8],
}

impl Part<'_> {
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(b"PWL1");
        out.extend_from_slice(&[1, 1, u8::from(self.is_last) | if self.soft.is_empty() { 0 } else { 4 }, 0]);
        for word in [self.epoch, self.session, self.sequence] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        for word in [self.stream, self.round, self.first_bit, self.bits] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.extend_from_slice(self.payload);
        out.extend_from_slice(self.soft);
    }
}

/// A hello of this session.
pub fn hello(session: u64) -> Vec<u8> {
    let mut out = b"PWL1\x01\x02\x00\x00".to_vec();
    for word in [0, session, 0, 0, 0] {
        out.extend_from_slice(&u64::to_le_bytes(word));
    }
    out
}

/// Reads what an engine has sent.
pub fn reply(bytes: &[u8]) -> Option<Reply> {
    if bytes.len() < HEADER || bytes[..5] != *b"PWL1\x01" {
        return None;
    }
    let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap_or_default());
    let short = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap_or_default());
    match bytes[5] {
        3 => Some(Reply::Answer {
            session: long(16),
            sequence: long(24),
            stream: short(32),
            status: u16::from_le_bytes([bytes[6], bytes[7]]),
            flips: bytes.get(HEADER).is_some_and(|byte| byte & 1 == 1),
        }),
        4 => Some(Reply::Welcome { session: long(16), epoch: long(8), streams: short(32), bits: short(40) }),
        _ => None,
    }
}
