//! Moves of streams in a snapshot: what is under way between silos, and what came of it.

use crate::board::histogram::Histogram;
use serde::Serialize;

/// Moves of the streams whose shots come from one silo's feed.
#[derive(Clone, Debug, Serialize)]
pub struct MovesView {
    /// Moves asked for.
    pub asked: u64,
    /// Of these: to where the stream was, or of one that moved already.
    pub needless: u64,
    /// Moves made.
    pub done: u64,
    /// Moves given up: the stream stayed.
    pub failed: u64,
    /// The last of them.
    pub last_failure: Option<MoveFailure>,
    /// Under way.
    pub open: Vec<MoveView>,
    /// Shots that went through a stage.
    pub staged: u64,
    /// Times that a stage was full.
    pub stage_waits: u64,
    /// Shots handed to other silos.
    pub handed_on: u64,
    /// Times that a lane to another silo was full.
    pub lane_waits: u64,
    /// Shots of other silos' feeds put into slots here.
    pub taken_in: u64,
    /// Of those that came: sent back, for the stream's route was another one.
    pub sent_back: u64,
    /// How long streams that moved stood still.
    pub pause: Histogram,
    /// Of that: until the owner had answered all.
    pub quiesce: Histogram,
    /// Of that: until the page had come.
    pub transfer: Histogram,
}

/// One move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MoveView {
    /// The stream.
    pub stream: u32,
    /// Whose it was.
    pub from: u32,
    /// Whose it is to be.
    pub to: u32,
    /// How far it is.
    pub stage: MoveStage,
    /// Since when.
    pub age_ns: u64,
}

/// A move that was given up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MoveFailure {
    /// The stream.
    pub stream: u32,
    /// Whose it was, and is.
    pub from: u32,
    /// Whose it was to be.
    pub to: u32,
    /// At which stage it was given up.
    pub stage: MoveStage,
    /// How long ago.
    pub age_ns: u64,
    /// What was found, what was expected, what to do.
    pub why: String,
}

/// How far a move is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum MoveStage {
    /// Its shots are staged; the owner answers those before.
    Quiesce,
    /// The page is asked for, or on its way.
    Transfer,
    /// It is given up; the owner takes the page back.
    Return,
    /// The route has flipped; the staged shots go out.
    Resume,
}

impl MoveStage {
    /// All of them, in the order of their codes.
    pub const ALL: [MoveStage; 4] = [MoveStage::Quiesce, MoveStage::Transfer, MoveStage::Return, MoveStage::Resume];

    /// Name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            MoveStage::Quiesce => "quiesce",
            MoveStage::Transfer => "transfer",
            MoveStage::Return => "return",
            MoveStage::Resume => "resume",
        }
    }
}
