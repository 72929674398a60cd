//! Decoding: computes the observables flipped by a probable error that explains a syndrome; with
//! matching, by the most probable one.
//!
//! Owns the [`Matcher`] contract. Cold code builds a [`MatcherModel`] once; it is shared and cloned
//! freely. Each decode worker builds its own matcher from it, on its own thread, and is its only
//! caller. Bounded by the model; a shot allocates nothing. A syndrome without explanation never
//! panics: the shot is answered with an error word.
//!
//! # Why a trait
//!
//! Whole shots and windows are decoded behind one contract, by matching and by other decoders.

mod by_graph;
#[expect(unsafe_code, reason = "calls into shared libraries of others, and memory that their processes map, too")]
pub mod plugin;
mod rescue;
pub mod prepared;
pub mod changes;
pub mod run_models;
pub mod window;
pub mod stream;
pub mod blocks;
mod window_tasks;
pub mod worker;

use std::sync::Arc;

use crate::code::Model;
use crate::code::correlations::correlations;
use crate::code::graph::{Graph, GraphError};
use crate::code::heralds::heralds;
use crate::code::soft_edges::soft_edges;
use crate::pipe::Carries;
use crate::predecode::{Local, Predecoder as _};
use crate::profile::{Decoder, DecoderKind, Predecoder, Rescue, Window, WindowRounds};
use blocks::{BlockedMatcher, BlockedModel};
pub use pinwheel_matching::LookupError;
use plugin::{PluginFault, PluginModel, PluginRefused, PluginSettings};
use stream::{StreamedMatcher, StreamedModel};
use window::{WindowError, WindowMatcher, WindowModel};

/// The result of a decode, beside the observables it wrote.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decoded {
    /// Weight of the matching, `Σ ln((1-p)/p)` over its edges; `None` for shots of several windows,
    /// whose weights are not summed, and where nothing is matched.
    pub weight: Option<f64>,
    /// Weight of the best explanation with other observables less that of the best with these: the
    /// logarithm of how much likelier these are. `None`: not asked for, or not found within the
    /// matcher's bound on work.
    pub gap: Option<f64>,
}

/// Why a syndrome could not be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum DecodeError {
    #[error(
        "no set of mechanisms explains this syndrome; check that model and shots \
         belong together"
    )]
    Unmatchable,
    #[error("the syndrome exceeds the matcher's bound on work; check the input for too many fired detectors")]
    Declined,
    #[error(transparent)]
    Plugin(#[from] PluginFault),
}

/// Decodes one shot at a time. Used by one thread at a time.
pub trait Matcher: Send {
    /// Writes the predicted observables of `syndrome`; bits past the observables are zero.
    ///
    /// # Errors
    ///
    /// [`DecodeError`]; `observables` is then zero, and the matcher stays usable.
    ///
    /// # Panics
    ///
    /// If a slice differs in length from the model's words; by windows, also if a bit past the detectors is set.
    fn decode(&mut self, syndrome: &[u64], observables: &mut [u64]) -> Result<Decoded, DecodeError>;

    /// Bytes on the heap, without what is shared; a bound for every shot.
    fn bytes(&self) -> usize;

    /// Waits until it can decode: a plugin's process may have to be started again. Never called on a hot thread.
    ///
    /// # Errors
    ///
    /// Why it cannot decode, after a limit.
    fn wait(&mut self) -> Result<(), DecodeError> {
        Ok(())
    }

    /// Gets over a panic in [`Self::decode`] by itself, without building anything on the calling thread;
    /// `false` if it cannot, and must be built anew.
    fn recover(&mut self) -> bool {
        false
    }
}

/// Why a model cannot be prepared for matching.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ReadyError {
    #[error(transparent)]
    Graph(#[from] GraphError),
    #[error(transparent)]
    Window(#[from] WindowError),
    #[error("found decoder {decoder:?} with windows, expected whole shots; set window: None, or decoder: Matching")]
    Windows { decoder: DecoderKind },
    #[error("found decoder UnionFind with a stream or blocks, expected Matching; set window: None or Some(..)")]
    Stream,
    #[error(
        "the model has heralds, which windows, streams, blocks and the predecoder cannot read; set window: None and \
         predecoder: None, or remove the tags [herald] of its detectors"
    )]
    Heralds,
    #[error(
        "the model has a map of soft bytes, which is for whole shots without a predecoder, plugins, deadlines and \
         confidence; set these to None, or leave out --soft-map"
    )]
    Soft,
    #[error("found a plugin as shadow, expected a built-in decoder: only decode workers start plugins again")]
    ShadowPlugin,
    #[error("confidence: {0}; set confidence: false")]
    Confidence(String),
    #[error(transparent)]
    Lookup(#[from] LookupError),
    #[error(transparent)]
    Plugin(#[from] PluginRefused),
}

#[cfg(test)]
type MakesMatcher = Arc<dyn Fn() -> Box<dyn Matcher> + Send + Sync>;

/// A model prepared for matching; every worker builds its matcher from it.
#[derive(Clone)]
pub struct MatcherModel(Ready);

#[derive(Clone)]
enum Ready {
    Whole(Arc<by_graph::GraphModel>),
    Windows(Arc<WindowModel>),
    Stream(Arc<StreamedModel>),
    Blocks(Arc<BlockedModel>),
    Plugin(Arc<PluginModel>),
    /// With the words of a syndrome, and what errors likelier than not flip in every shot.
    Guess(Local, usize, Arc<[u64]>),
    #[cfg(test)]
    Made(MakesMatcher),
}

impl MatcherModel {
    /// Prepares `model` for `decoder`, as a whole, by windows or as a stream, which are prepared for
    /// `predecoder`, too.
    ///
    /// # Errors
    ///
    /// If `model` is not a matching problem, is too large for a look-up table, cannot be decoded by these
    /// windows, or `decoder` has no windows or streams.
    pub fn of(model: &Model, decoder: Decoder, predecoder: Predecoder, window: Window) -> Result<Self, ReadyError> {
        if !model.heralds.is_empty() && (window != Window::None || predecoder != Predecoder::None) {
            return Err(ReadyError::Heralds);
        }
        let is_plain = window == Window::None && predecoder == Predecoder::None;
        if model.soft.is_some() && !(is_plain && decoder.kind() != DecoderKind::Plugin) {
            return Err(ReadyError::Soft);
        }
        match (&decoder, window) {
            (Decoder::Matching, Window::None) => Ok(Self::new(model)?),
            (Decoder::Matching, Window::Some(size)) => Self::windowed(model, size, predecoder),
            (Decoder::Matching, Window::Stream(size)) => Self::streamed(model, size),
            (Decoder::Matching, Window::Blocks(rounds)) => Self::in_blocks(model, rounds),
            (Decoder::Correlated, Window::None) => Ok(Self::correlated(model)?),
            (Decoder::UnionFind, Window::None) => Ok(Self::union_find(model)?),
            (Decoder::UnionFind, Window::Some(size)) => {
                let windows = WindowModel::union_find(model, size)?.predecoding(predecoder);
                Ok(Self(Ready::Windows(Arc::new(windows))))
            }
            (Decoder::UnionFind, Window::Stream(_) | Window::Blocks(_)) => Err(ReadyError::Stream),
            (Decoder::Lookup, Window::None) => Self::lookup(model),
            (Decoder::Plugin { path, config, trusted, limit_us }, Window::None) => {
                let (path, config) = (path.clone(), config.clone());
                let settings = PluginSettings { path, config, trusted: *trusted, limit_us: *limit_us };
                Ok(Self(Ready::Plugin(Arc::new(PluginModel::new(model, settings)?))))
            }
            (Decoder::Correlated | Decoder::Lookup | Decoder::Plugin { .. }, _) => {
                Err(ReadyError::Windows { decoder: decoder.kind() })
            }
        }
    }

    /// Prepares `model` for matching whole shots, with the weights of each shot's heralds or soft bytes if it has
    /// some.
    ///
    /// # Errors
    ///
    /// If `model` is not a matching problem, or its map of soft bytes is not its own; see [`GraphError`].
    pub fn new(model: &Model) -> Result<Self, GraphError> {
        let graph = Graph::new(model)?;
        let prepared = match (heralds(model, &graph), soft_edges(model, &graph)?) {
            (_, Some(soft)) => by_graph::GraphModel::soft(&graph, soft),
            (Some(heralds), None) => by_graph::GraphModel::heralded(&graph, &heralds),
            (None, None) => by_graph::GraphModel::new(&graph),
        };
        Ok(Self(Ready::Whole(Arc::new(prepared))))
    }

    /// Prepares `model` for decoding whole shots in two passes: the second has the weights that the
    /// edges of the first imply for those that share a decomposed mechanism with them.
    ///
    /// # Errors
    ///
    /// If `model` is not a matching problem; see [`GraphError`].
    pub fn correlated(model: &Model) -> Result<Self, GraphError> {
        let graph = Graph::new(model)?;
        let correlations = correlations(model, &graph);
        Ok(Self(Ready::Whole(Arc::new(by_graph::GraphModel::correlated(&graph, &correlations)))))
    }

    /// Prepares `model` for decoding whole shots by union-find.
    ///
    /// # Errors
    ///
    /// If `model` is not a matching problem; see [`GraphError`].
    pub fn union_find(model: &Model) -> Result<Self, GraphError> {
        let graph = Graph::new(model)?;
        Ok(Self(Ready::Whole(Arc::new(by_graph::GraphModel::union_find(&graph)))))
    }

    /// Prepares `model` for looking whole shots up in a table, which is built here.
    ///
    /// # Errors
    ///
    /// If `model` is not a matching problem, or its table is too large; see [`LookupError`].
    pub fn lookup(model: &Model) -> Result<Self, ReadyError> {
        let graph = Graph::new(model)?;
        Ok(Self(Ready::Whole(Arc::new(by_graph::GraphModel::lookup(&graph)?))))
    }

    /// The same, prepared for telling the gap of each answer; windows tell none.
    ///
    /// # Errors
    ///
    /// [`ReadyError::Confidence`] if a cycle away from the boundary flips an observable, or `model` has heralds;
    /// [`ReadyError::Soft`] if it has a map of soft bytes.
    pub fn with_confidence(self, model: &Model) -> Result<Self, ReadyError> {
        if model.soft.is_some() {
            return Err(ReadyError::Soft);
        }
        let Ready::Whole(whole) = &self.0 else { return Ok(self) };
        let confident = whole.with_confidence(&Graph::new(model)?).map_err(ReadyError::Confidence)?;
        Ok(Self(Ready::Whole(Arc::new(confident))))
    }

    /// Prepares `model` for answers by the local predecoder alone, which ignores the detection events that it
    /// does not explain.
    ///
    /// # Errors
    ///
    /// If `model` is not a matching problem; see [`GraphError`].
    pub fn guess(model: &Model) -> Result<Self, GraphError> {
        let graph = Graph::new(model)?;
        Ok(Self(Ready::Guess(Local::of(&graph), graph.detector_words, graph.always_observables.into())))
    }

    /// Whole shots by the matchers that `make` makes.
    #[cfg(test)]
    pub(crate) fn made_by(make: MakesMatcher) -> Self {
        Self(Ready::Made(make))
    }

    /// Prepares `model` for rescues of whole shots.
    ///
    /// # Errors
    ///
    /// As [`Self::of`].
    pub fn rescue(model: &Model, rescue: Rescue) -> Result<Self, ReadyError> {
        let decoder = match rescue {
            Rescue::Matching => Decoder::Matching,
            Rescue::UnionFind => Decoder::UnionFind,
            Rescue::Lookup => Decoder::Lookup,
            Rescue::Predecoder if model.heralds.is_empty() => return Ok(Self::guess(model)?),
            Rescue::Predecoder => return Err(ReadyError::Heralds),
        };
        Self::of(model, decoder, Predecoder::None, Window::None)
    }

    /// Prepares `model` for matching by windows, see [`window`], and the windows of shots that arrive by rounds for
    /// `predecoder`. Whole shots are predecoded before they are cut.
    ///
    /// # Errors
    ///
    /// If `model` is not a matching problem, has no rounds, or is smaller than the windows.
    pub fn windowed(model: &Model, size: WindowRounds, predecoder: Predecoder) -> Result<Self, ReadyError> {
        Ok(Self(Ready::Windows(Arc::new(WindowModel::new(model, size)?.predecoding(predecoder)))))
    }

    /// Prepares `model` for decoding as a stream; see [`stream`].
    ///
    /// # Errors
    ///
    /// As [`StreamedModel::new`].
    pub fn streamed(model: &Model, size: WindowRounds) -> Result<Self, ReadyError> {
        Ok(Self(Ready::Stream(Arc::new(StreamedModel::new(model, size)?))))
    }

    /// Prepares `model` for decoding in blocks of so many rounds; see [`blocks`].
    ///
    /// # Errors
    ///
    /// As [`BlockedModel::new`].
    pub fn in_blocks(model: &Model, block_rounds: u32) -> Result<Self, ReadyError> {
        Ok(Self(Ready::Blocks(Arc::new(BlockedModel::new(model, block_rounds)?))))
    }

    /// A matcher that answers like the windows of a shot that arrives by rounds; `None` for models
    /// that decode whole shots.
    pub fn matcher_by_rounds(&self) -> Option<Box<dyn Matcher>> {
        match &self.0 {
            Ready::Whole(_) | Ready::Plugin(_) | Ready::Guess(..) => None,
            #[cfg(test)]
            Ready::Made(_) => None,
            Ready::Windows(model) => Some(Box::new(WindowMatcher::by_rounds(Arc::clone(model)))),
            Ready::Stream(_) | Ready::Blocks(_) => Some(self.matcher()),
        }
    }

    /// Builds a matcher for the calling thread.
    pub fn matcher(&self) -> Box<dyn Matcher> {
        match &self.0 {
            Ready::Whole(model) => Box::new(by_graph::GraphMatcher::new(Arc::clone(model))),
            Ready::Windows(model) => Box::new(WindowMatcher::new(Arc::clone(model))),
            Ready::Stream(model) => Box::new(StreamedMatcher::new(Arc::clone(model))),
            Ready::Blocks(model) => Box::new(BlockedMatcher::new(Arc::clone(model))),
            Ready::Plugin(model) => Box::new(model.matcher()),
            #[cfg(test)]
            Ready::Made(make) => make(),
            Ready::Guess(local, words, always) => {
                Box::new(GuessMatcher { local: local.clone(), ignored: vec![0; *words], always: Arc::clone(always) })
            }
        }
    }

    /// Number of windows of a shot, of parts of a stream, or of tasks for blocks; 1 for whole shots.
    pub fn windows(&self) -> u32 {
        match &self.0 {
            Ready::Whole(_) | Ready::Plugin(_) | Ready::Guess(..) => 1,
            #[cfg(test)]
            Ready::Made(_) => 1,
            Ready::Windows(model) => model.plan().count(),
            Ready::Stream(model) => model.parts(),
            Ready::Blocks(model) => model.tasks(),
        }
    }

    /// For each round, the leading words of a packed shot that are complete once it has arrived;
    /// `None` if the model decodes whole shots.
    pub fn words_after_rounds(&self) -> Option<Vec<u32>> {
        match &self.0 {
            Ready::Whole(_) | Ready::Plugin(_) | Ready::Guess(..) => None,
            #[cfg(test)]
            Ready::Made(_) => None,
            Ready::Windows(model) => Some(model.words_after_rounds()),
            Ready::Stream(model) => Some(model.words_after_rounds().to_vec()),
            Ready::Blocks(model) => Some(model.words_after_rounds().to_vec()),
        }
    }

    /// Carries for shots of `streams` streams in `jobs` job buffers; `None` for whole shots, or for a
    /// single window if shots arrive whole.
    pub fn carries(&self, jobs: u32, streams: u32, by_rounds: bool) -> Option<Arc<Carries>> {
        let has_windows = self.windows() > 1 || by_rounds;
        match &self.0 {
            Ready::Windows(model) if has_windows => Some(Arc::new(model.carries(jobs))),
            Ready::Stream(model) if has_windows => Some(Arc::new(model.carries(jobs, streams))),
            Ready::Blocks(model) => Some(Arc::new(model.carries(jobs))),
            _ => None,
        }
    }

    /// Bytes on the heap that all matchers share.
    pub fn bytes(&self) -> usize {
        match &self.0 {
            Ready::Whole(model) => model.bytes(),
            Ready::Windows(model) => model.bytes(),
            Ready::Stream(model) => model.bytes(),
            Ready::Blocks(model) => model.bytes(),
            Ready::Plugin(model) => model.bytes(),
            Ready::Guess(..) => 0,
            #[cfg(test)]
            Ready::Made(_) => 0,
        }
    }

    /// The matcher's name in reports.
    pub fn name(&self) -> &str {
        match &self.0 {
            Ready::Whole(model) => model.name(),
            Ready::Windows(model) => model.name(),
            Ready::Stream(_) => stream::NAME,
            Ready::Blocks(_) => blocks::NAME,
            Ready::Plugin(model) => model.name(),
            Ready::Guess(..) => "predecoder alone",
            #[cfg(test)]
            Ready::Made(_) => "made by a test",
        }
    }

    /// Bytes on the heap of one matcher. Builds one to measure it, unless it is a plugin's.
    pub fn matcher_bytes(&self) -> usize {
        match &self.0 {
            Ready::Plugin(model) => model.matcher_bytes(),
            _ => self.matcher().bytes(),
        }
    }

    /// The plugin, if it is one's.
    pub(crate) fn plugin(&self) -> Option<&PluginModel> {
        match &self.0 {
            Ready::Plugin(model) => Some(model),
            _ => None,
        }
    }
}

/// Answers by the local predecoder alone.
struct GuessMatcher {
    local: Local,
    /// The detection events that it does not explain.
    ignored: Vec<u64>,
    /// What errors likelier than not flip in every shot.
    always: Arc<[u64]>,
}

impl Matcher for GuessMatcher {
    fn decode(&mut self, syndrome: &[u64], observables: &mut [u64]) -> Result<Decoded, DecodeError> {
        self.local.predecode(syndrome, &mut self.ignored, observables);
        observables.iter_mut().zip(&*self.always).for_each(|(word, by)| *word ^= by);
        Ok(Decoded { weight: None, gap: None })
    }

    fn bytes(&self) -> usize {
        8 * self.ignored.capacity()
    }
}

#[cfg(test)]
mod tests;
