//! The engine as this program operates it.
//!
//! Owns the shape of the engine's interface: what a start needs, what an end tells. Used by the command line and the
//! report. This build carries no engine: [`Engine`] has no values, and a start says so.
#![allow(dead_code, reason = "an interface whose other side is not in this build")]

use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::code::{Model, ShotSet};
use pinwheel_engine::profile::Profile;
use pinwheel_engine::record::AnswerSink;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// What an engine is started with.
pub struct Config {
    /// Name of the profile.
    pub profile_name: String,
    /// The profile, with the command line's overrides.
    pub profile: Profile,
    /// The operator's words.
    pub label: String,
    /// Where shots come from.
    pub input: Input,
    /// Ends after so many shots.
    pub count: Option<u64>,
    /// Ends after so long in Live.
    pub duration: Option<Duration>,
    /// Where answers go besides the board.
    pub sink: Option<AnswerSink>,
    /// Things to say once at start.
    pub notes: Vec<String>,
}

/// The next shot of a stream into the given words; `false` at its end.
pub type ReadShot = Box<dyn FnMut(&mut [u64]) -> Result<bool, String> + Send>;

/// Where shots come from.
pub enum Input {
    /// Drawn from a model.
    Sampler {
        /// The model.
        model: Arc<Model>,
        /// Its name.
        name: String,
        /// Seed of the draws.
        seed: u64,
    },
    /// A file in memory.
    Replay {
        /// The model.
        model: Arc<Model>,
        /// The file's name.
        name: String,
        /// The shots.
        shots: Arc<ShotSet>,
        /// Their true observables.
        observables: Option<Arc<ShotSet>>,
    },
    /// Standard input.
    Stream {
        /// The model.
        model: Arc<Model>,
        /// The stream's name.
        name: String,
        /// Gives one shot after another.
        reader: ReadShot,
    },
}

/// Why a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndedBy {
    /// `--count` was reached.
    Count,
    /// `--duration` was over.
    Duration,
    /// The input had no more.
    Input,
    /// The operator asked for a drain.
    Drained,
    /// A signal asked for it.
    Signal(i32),
    /// The engine could not go on.
    Fault,
}

/// What an engine leaves.
#[derive(Debug)]
pub struct Outcome {
    /// The board at the end.
    pub snapshot: Snapshot,
    /// Why it ended.
    pub ended_by: EndedBy,
    /// Time in Live, nanoseconds.
    pub elapsed_live_ns: u64,
    /// Stream and sequence of shots without an answer.
    pub unanswered: Vec<(u32, u64)>,
    /// How the answer sink ended, if there was one.
    pub sink: Option<Result<(), String>>,
}

/// Why an engine does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is none.
    #[error("found a build without an engine, expected one with it; build the whole workspace")]
    NoEngine,
}

/// A running engine.
pub enum Engine {}

impl Engine {
    pub fn start(_config: Config) -> Result<Engine, StartError> {
        Err(StartError::NoEngine)
    }

    pub fn snapshot(&self) -> Snapshot {
        match *self {}
    }

    pub fn request_drain(&self) {
        match *self {}
    }

    pub fn is_finished(&self) -> bool {
        match *self {}
    }

    pub fn finish(self) -> Outcome {
        match self {}
    }
}

/// What a rehearsal over seeds found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Rehearsal {
    /// Seeds rehearsed.
    pub seeds: u64,
    /// Shots over all seeds.
    pub shots: u64,
    /// Role calls over all seeds.
    pub steps: u64,
    /// Faults injected, by name.
    pub faults: BTreeMap<String, u64>,
    /// Promises that were broken.
    pub violations: Vec<Violation>,
}

/// One broken promise.
#[derive(Clone, Debug, Serialize)]
pub struct Violation {
    /// Seed that replays it.
    pub seed: u64,
    /// Step at which it was seen.
    pub step: u64,
    /// What was seen.
    pub what: String,
}

/// Rehearses every seed of a range.
pub fn rehearse(_seeds: Range<u64>) -> Result<Rehearsal, StartError> {
    Err(StartError::NoEngine)
}
