//! Live sources, as the board shows them.

use serde::Serialize;

/// What carries the shots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SourceKind {
    /// UDP datagrams.
    Udp,
    /// Datagrams through the file system.
    Unix,
    /// A region of shared memory.
    Shm,
}

/// How a source is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SourceState {
    /// Before Live: what comes waits.
    Waiting,
    /// Nobody has sent anything yet.
    Unused,
    /// Parts came within the last second.
    Flowing,
    /// None came for longer, or its client's heartbeat stands still.
    Silent,
    /// The engine takes no more.
    Closed,
}

/// One live source.
#[derive(Clone, Debug, Serialize)]
pub struct SourceView {
    /// What carries the shots.
    pub kind: SourceKind,
    /// Where it is.
    pub name: String,
    /// How it is.
    pub state: SourceState,
    /// Since the last part; `None` before the first.
    pub silent_ns: Option<u64>,
    /// The engine's epoch at it.
    pub epoch: u64,
    /// Bits of a shot.
    pub width_bits: u64,
    /// Bytes of the socket's receive buffer; 0: it has none.
    pub buffer_bytes: u64,
    /// Datagrams or slots looked at.
    pub received: u64,
    /// Shots taken; each is answered.
    pub accepted: u64,
    /// Answers handed to their senders.
    pub answered: u64,
    /// Answers that their senders did not take.
    pub answers_dropped: u64,
    /// What was no shot, or none of this width.
    pub malformed: u64,
    /// From senders that are not allowed, or one too many.
    pub foreign: u64,
    /// For another epoch of the engine.
    pub other_epoch: u64,
    /// For streams that there are not.
    pub unknown_streams: u64,
    /// Datagrams that the system dropped for want of room.
    pub kernel_drops: u64,
    /// Refusals of the system.
    pub errors: u64,
    /// Frames in which there was no room for a shot.
    pub lane_waits: u64,
    /// Senders known, more than are listed in `peers`.
    pub peers_count: u64,
    /// The first of them.
    pub peers: Vec<SourcePeer>,
    /// Of shared memory: who has it.
    pub client: Option<SourceClient>,
    /// By stream.
    pub streams: Vec<SourceStream>,
}

/// One sender.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SourcePeer {
    /// Its address.
    pub address: String,
    /// Since its last datagram.
    pub silent_ns: u64,
    /// Shots taken from it.
    pub shots: u64,
    /// Answers sent to it.
    pub answers: u64,
    /// Answers that it did not take.
    pub dropped: u64,
}

/// Who has a region of shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SourceClient {
    /// Its process, as it says.
    pub pid: u64,
    /// Since its heartbeat moved.
    pub heartbeat_age_ns: u64,
    /// Clients that have had it.
    pub attached: u64,
}

/// One stream of a source. The sender's sequence numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SourceStream {
    /// Stream.
    pub id: u32,
    /// Shots taken.
    pub accepted: u64,
    /// Answers that came back, whether or not their sender took them.
    pub answered: u64,
    /// Taken and not answered yet.
    pub lag: u64,
    /// Last number taken.
    pub accepted_last: u64,
    /// Last number answered.
    pub answered_last: u64,
    /// Since the last part; `None` before the first.
    pub silent_ns: Option<u64>,
    /// Numbers skipped.
    pub gaps: u64,
    /// Came again.
    pub duplicates: u64,
    /// Came after a younger one.
    pub reordered: u64,
    /// Do not fit.
    pub malformed: u64,
    /// Given up with parts missing.
    pub incomplete: u64,
    /// Of older sessions, or too far behind.
    pub stale: u64,
    /// Times another session took over.
    pub restarts: u64,
}

impl SourceKind {
    /// Number on the board.
    #[must_use]
    pub const fn code(self) -> u64 {
        match self {
            SourceKind::Udp => 1,
            SourceKind::Unix => 2,
            SourceKind::Shm => 3,
        }
    }

    /// From the board; `None` where there is no live source.
    #[must_use]
    pub const fn from_code(code: u64) -> Option<SourceKind> {
        match code {
            1 => Some(SourceKind::Udp),
            2 => Some(SourceKind::Unix),
            3 => Some(SourceKind::Shm),
            _ => None,
        }
    }

    /// Name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            SourceKind::Udp => "udp",
            SourceKind::Unix => "unix",
            SourceKind::Shm => "shm",
        }
    }
}
