//! Properties of a stream: its source, its input health, the outcome of a shot that finds no slot,
//! and the stage of a move.
//!
//! Plain enums, each with its name on screen and in JSON, and its number on the board: the path
//! sets them, the board shows them.

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
    /// Calls of CUDA-Q's decoding protocol, over UDP.
    Cudaq,
}

pinwheel_edge::names! { SourceKind: Udp "udp", Unix "unix", Shm "shm", Cudaq "cudaq" }

impl SourceKind {
    /// Number on the board.
    pub const fn code(self) -> u64 {
        self as u64 + 1
    }

    /// From the board; `None` where there is no live source.
    pub fn from_code(code: u64) -> Option<SourceKind> {
        SourceKind::ALL.into_iter().find(|kind| kind.code() == code)
    }
}

/// State of a decoder in CUDA-Q's decoding protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DecoderState {
    /// Its volume is not complete.
    Collecting,
    /// It computes.
    Decoding,
    /// Its corrections are there.
    Ready,
    /// It has failed, and stays so until it is reset.
    Failed,
}

pinwheel_edge::names! { DecoderState:
    Collecting "collecting", Decoding "decoding", Ready "ready", Failed "failed",
}

impl DecoderState {
    /// Number on the board.
    pub const fn code(self) -> u64 {
        self as u64 + 1
    }

    /// From the board; `None` where the stream is no such decoder.
    pub fn from_code(code: u64) -> Option<DecoderState> {
        DecoderState::ALL.into_iter().find(|state| state.code() == code)
    }
}

/// Verdict on an input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum HealthVerdict {
    /// Too few shots for a verdict.
    #[default]
    TooFew,
    /// As the model predicts.
    Good,
    /// Slightly different from the model.
    Suspect,
    /// Not this model's data: wrong model, noise, or bit order.
    Bad,
}

impl HealthVerdict {
    /// Number on the board.
    pub const fn code(self) -> u64 {
        self as u64
    }

    /// From the board; an unknown number reads as too few shots.
    pub const fn from_code(code: u64) -> HealthVerdict {
        match code {
            1 => HealthVerdict::Good,
            2 => HealthVerdict::Suspect,
            3 => HealthVerdict::Bad,
            _ => HealthVerdict::TooFew,
        }
    }
}

/// Outcome of a shot that arrived and found no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum OverflowOutcome {
    /// It waited, and got a slot.
    Waited,
    /// It waited for longer than the deadline: answered with an error.
    Expired,
    /// It was the oldest of too many: answered with an error.
    DroppedOldest,
    /// It arrived last: answered with an error.
    DroppedNew,
    /// It went past the device to the CPU predecoder.
    SentToCpu,
    /// It waited, and moved with its stream to another silo.
    SentElsewhere,
}

pinwheel_edge::names! { OverflowOutcome:
    Waited "waited", Expired "expired", DroppedOldest "dropped_oldest", DroppedNew "dropped_new",
    SentToCpu "sent_to_cpu", SentElsewhere "sent_elsewhere",
}

/// Stage of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum MoveStage {
    /// New shots are staged; the owner answers the earlier ones.
    Quiesce,
    /// The page is requested, or in transfer.
    Transfer,
    /// The move is abandoned; the owner takes the page back.
    Return,
    /// The route has changed; the staged shots are released.
    Resume,
}

pinwheel_edge::names! { MoveStage: Quiesce "quiesce", Transfer "transfer", Return "return", Resume "resume" }
