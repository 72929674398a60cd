//! Matching: from a syndrome to the observables that its most probable explanation flips.
//!
//! Owns the [`Matcher`] contract. A [`MatcherModel`] is built once by cold code, shared and cloned freely; each decode
//! worker builds its own matcher from it, on its own thread, and is its only caller. Bounded by the model. Once warm a
//! matcher's memory no longer grows (where the library behind it still allocates, `sparse` says). Never panics on a syndrome that cannot be explained: that is an error word's business.
//!
//! # Why a trait
//!
//! The library behind it is young. Everything of it stays inside `sparse`; what the engine knows is this file.

pub mod carries;
pub mod joint;
pub mod moves;
mod order;
pub mod orchestrator;
pub mod pool;
mod shown;
mod sparse;
pub mod state;
pub mod steward;
pub mod window;
pub mod worker;

use std::sync::Arc;

use crate::code::Model;
use crate::code::graph::{Graph, GraphError};
use crate::profile::{Predecoder, WindowRounds};
use window::{WindowError, WindowMatcher, WindowModel};

/// What a decode found, beside the observables it wrote.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decoded {
    /// Weight of the matching, `Σ ln((1-p)/p)` over its edges; `None`: of several windows, whose commits are not summed up.
    pub weight: Option<f64>,
}

/// Why a syndrome has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// Detectors fired that no set of the model's mechanisms explains.
    #[error(
        "found a syndrome that no set of mechanisms explains, expected shots of this model; check that model and shots \
         belong together"
    )]
    Unmatchable,
    /// The matcher gave up at its own bound on work.
    #[error(
        "found a syndrome past the matcher's bound on work, expected fewer fired detectors; check the input's health"
    )]
    Declined,
}

/// Decodes one shot at a time; neither shared nor sent.
pub trait Matcher {
    /// Writes the predicted observables of `syndrome`; bits past the observables are zero.
    ///
    /// # Errors
    ///
    /// [`DecodeError`]; `observables` is then zero, and the matcher can go on.
    ///
    /// # Panics
    ///
    /// If a slice is not as long as the model's words.
    fn decode(&mut self, syndrome: &[u64], observables: &mut [u64]) -> Result<Decoded, DecodeError>;

    /// The matcher's name, as reports show it.
    fn name(&self) -> &'static str;
}

/// Why a model cannot be made ready.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadyError {
    /// It is not a matching problem.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// It cannot be decoded by the windows asked for.
    #[error(transparent)]
    Window(#[from] WindowError),
}

/// A model made ready for matching; what every worker builds its matcher from.
#[derive(Clone)]
pub struct MatcherModel(Ready);

#[derive(Clone)]
enum Ready {
    Whole(Arc<sparse::SparseModel>),
    Windows(Arc<WindowModel>),
}

impl MatcherModel {
    /// Makes `model` ready for whole shots.
    ///
    /// # Errors
    ///
    /// If it is not a matching problem; see [`GraphError`].
    pub fn new(model: &Model) -> Result<Self, GraphError> {
        let graph = Graph::new(model)?;
        Ok(Self(Ready::Whole(Arc::new(sparse::SparseModel::new(&graph)))))
    }

    /// Makes `model` ready for decoding by windows; see [`window`].
    ///
    /// # Errors
    ///
    /// If it is not a matching problem, has no rounds, or windows of that size do not fit it.
    pub fn windowed(model: &Model, size: WindowRounds) -> Result<Self, ReadyError> {
        Ok(Self(Ready::Windows(Arc::new(WindowModel::new(model, size)?))))
    }

    /// Makes the windows of shots that come by rounds ready for `predecoder` too. Whole shots are predecoded whole, before.
    ///
    /// # Errors
    ///
    /// As [`Self::windowed`].
    pub fn windowed_predecoding(model: &Model, size: WindowRounds, predecoder: Predecoder) -> Result<Self, ReadyError> {
        Ok(Self(Ready::Windows(Arc::new(WindowModel::new(model, size)?.predecoding(predecoder)))))
    }

    /// A matcher that answers as the windows of a shot that comes by rounds do; `None`: whole shots only.
    #[must_use]
    pub fn matcher_by_rounds(&self) -> Option<Box<dyn Matcher>> {
        let model = Arc::clone(self.windows()?);
        Some(Box::new(WindowMatcher::by_rounds(model)))
    }

    /// A matcher of its own for the calling thread.
    #[must_use]
    pub fn matcher(&self) -> Box<dyn Matcher> {
        match &self.0 {
            Ready::Whole(model) => Box::new(sparse::SparseMatcher::new(Arc::clone(model))),
            Ready::Windows(model) => Box::new(WindowMatcher::new(Arc::clone(model))),
        }
    }

    /// The windows that it decodes by; `None`: whole shots.
    #[must_use]
    pub fn windows(&self) -> Option<&Arc<WindowModel>> {
        match &self.0 {
            Ready::Whole(_) => None,
            Ready::Windows(model) => Some(model),
        }
    }

    /// The matcher's name, as reports show it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match &self.0 {
            Ready::Whole(_) => sparse::NAME,
            Ready::Windows(_) => window::NAME,
        }
    }
}

#[cfg(test)]
mod tests;
