//! The error models of a run by number, for a thread that passes answers on.
//!
//! Answers name their model by a number of their own run. What another run is told is the model's hash.
//! Whoever has this reads models and cannot change them: changes go through the engine's commands.

use super::changes::DecoderChanges;

/// The models of a run.
#[derive(Clone)]
pub struct RunModels(DecoderChanges);

impl RunModels {
    /// Those that `changes` has and will have.
    pub fn new(changes: DecoderChanges) -> RunModels {
        RunModels(changes)
    }

    /// Hash of the model of this number; `None`: the run has had none.
    pub fn hash(&self, number: u16) -> Option<u64> {
        self.0.model_hash(number)
    }

    /// Number and hash of the model by which shots of `stream` are decoded.
    pub fn in_force(&self, stream: u32) -> (u16, u64) {
        self.0.in_force_at(stream)
    }
}
