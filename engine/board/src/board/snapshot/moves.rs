//! Moves of streams between silos in a snapshot.

use crate::streams::MoveStage;
use serde::Serialize;

/// One move of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MoveView {
    /// Stream that moves.
    pub stream: u32,
    /// Silo that owned it before the move.
    pub from: u32,
    /// Silo that is to own it.
    pub to: u32,
    /// Stage of the move.
    pub stage: MoveStage,
    /// Time at this stage.
    pub age_ns: u64,
}

/// An abandoned move.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MoveFailure {
    /// Stream that moves.
    pub stream: u32,
    /// Silo that owns it.
    pub from: u32,
    /// Silo that was to own it.
    pub to: u32,
    /// Stage at which the move was abandoned.
    pub stage: MoveStage,
    /// Time since then.
    pub age_ns: u64,
    /// Why, and what to do.
    pub why: String,
}
