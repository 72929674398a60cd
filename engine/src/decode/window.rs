//! Long experiments by sliding windows: matches a few rounds at a time and commits only the older
//! ones.
//!
//! Owns [`WindowModel`], built once by cold code and shared; [`WindowWorker`], one per thread,
//! which decodes one window per call; and [`WindowMatcher`], which decodes a whole shot window by
//! window. Bounded by the model: the work of a window depends on its own rounds, not on the
//! experiment's length. Never reads a round after the window's last one.
//!
//! # The rule (Dennis et al., quant-ph/0110143; Skoric et al., arXiv:2209.08552)
//!
//! ```text
//!   rounds   0 ───────────────────────────────────────────────▶
//!   window 0 [ commit | buffer )─ edges into the future end at a boundary, each at one of its own
//!   window 1          [ commit | buffer )─
//!   last                       [ all committed ]
//! ```
//!
//! A window's graph has the detectors of its rounds and the edges without an end in the past: those
//! belong to earlier commits. A window commits those edges of its matching that touch a commit
//! round: it adds up observables and weight, and flips both ends in the *carry*, the shot minus
//! everything explained so far. So the commit rounds of the carry become silent, an end in the
//! buffer or beyond is flipped for the next window, and no edge is committed twice. After the last
//! window every fired detector is explained.
//!
//! Each round of the carry begins a word (see [`Rounds`]): a window reads and writes
//! [`WindowModel::words`] only, which a task can declare as its region.
//!
//! # Why no edge is traced
//!
//! A matching yields its total of observables at once, but its edges only by one more search for
//! each pair: 0.84 µs a window instead of 0.58 at d = 3, 7.3 instead of 5.1 at d = 5 (the former
//! beside other work). Windows do not need the edges. The commit rounds are silent afterwards;
//! later windows need only the flipped detectors outside of them. These are few: the ends of edges
//! that leave the commit rounds, one round in a surface code. So each of these detectors gets a bit
//! behind the observables, an edge that would be committed flips its observables and the bits of
//! its outer ends, and the matching XORs them along its path. A shot of one window is decoded
//! exactly like a whole shot, ties included.
//!
//! # Why windows share graphs
//!
//! In the bulk of a long experiment all windows are identical, bit for bit. Stored once, with one
//! scratch, they stay in the cache, and a worker's memory does not grow with the experiment: 4
//! graphs at any length.
//!
//! # Cost in accuracy
//!
//! Surface codes, p = 0.005, commit and buffer as the distance, on the same shots: 0.14 % more
//! logical errors than whole shots at d = 3, 0.2 % (not resolved) at d = 5. A buffer of one round:
//! 4 % and 22 % more.
//!
//! # Predecoding a window
//!
//! A whole shot is predecoded before it is cut. A shot that arrives by rounds is predecoded window
//! by window, by the same rule on the window's own graph: an isolated pair or event that touches a
//! commit round is committed like a matched edge; one in the buffer is left out of this matching
//! and considered again by the next window. The rule reaches a little under three edges, so a
//! buffer of three rounds covers everything it needs for a commit round.
//!
//! # Limits
//!
//! A detector whose only path to the boundary or to its partner leads through the past is
//! unmatchable. Surface codes have no such detector.

mod cut;
mod matcher;
mod plan;

pub use matcher::{WindowMatcher, WindowWorker};
pub use plan::{Window, WindowPlan};

use pinwheel_matching::StreamModelError;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::ReadyError;
use super::by_graph::GraphModel;
use crate::code::graph::Graph;
use crate::code::{MissingTime, Model, Rounds};
use crate::pipe::{Carries, CarryWindow};
use crate::predecode::Local;
use crate::profile::{Predecoder, WindowRounds};
use cut::{Cut, Cutter};

/// The decoders' names in reports.
const NAME: &str = "sparse-blossom in windows";
const NAME_UNION_FIND: &str = "union-find in windows";

/// Why a model cannot be decoded by windows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum WindowError {
    #[error(transparent)]
    MissingTime(#[from] MissingTime),
    #[error(
        "{found} {what} rounds do not fit the model's {rounds} rounds of detectors; choose both sizes from \
         1..={rounds}, with a buffer of the code's distance"
    )]
    Size {
        /// `commit` or `buffer`.
        what: &'static str,
        found: u32,
        rounds: u32,
    },
    #[error(
        "blocks of {found} rounds do not fit the model's {rounds} rounds of detectors; choose from 1..={rounds}, \
         several times the code's distance"
    )]
    Block { found: u32, rounds: u32 },
    #[error("found {found} observables, expected at most 64 in a stream or in blocks; use window: Some(..) or None")]
    Observables { found: u32 },
    #[error(
        "found {rounds} rounds of up to {members} detectors, expected rounds of about one size in a stream or in \
         blocks; check the times of the detectors, or use window: Some(..) or None"
    )]
    Uneven { rounds: u32, members: u32 },
}

impl WindowError {
    /// Why the graph of `model`, with sizes that were checked, is refused by streams and blocks.
    pub(super) fn of_stream(error: &StreamModelError, model: &Model) -> Self {
        match error {
            StreamModelError::Observables { .. } => Self::Observables { found: model.observables },
            &StreamModelError::Uneven { rounds, members } => Self::Uneven { rounds, members },
            _ => unreachable!("a graph's edges join its own detectors, sizes are checked: {error}"),
        }
    }
}

/// Windows with equal graphs: the graph prepared for matching, and the effect of committing each
/// edge.
struct Form {
    cut: Cut,
    matching: Arc<GraphModel>,
    /// Removes isolated events of the window, where windows are predecoded.
    local: Option<Local>,
}

/// The position and form of one window.
struct WindowSpec {
    form: usize,
    words: Range<usize>,
    own_words: Range<usize>,
}

/// The words that a window needs of a packed shot that arrives by rounds.
struct Arrival {
    /// Number of leading words.
    words: u32,
    /// The detectors that this window is the first to read: index of a word, and bits in it.
    fresh: Vec<(u32, u64)>,
}

fn arrivals(plan: &WindowPlan, rounds: &Rounds, detector_words: usize) -> Vec<Arrival> {
    let (mut seen, mut words) = (0, 0);
    (0..plan.count())
        .map(|index| {
            let window = plan.window(index);
            let mut fresh = BTreeMap::<u32, u64>::new();
            for detector in (seen..window.rounds.end).flat_map(|round| rounds.members(round)) {
                *fresh.entry(detector / 64).or_default() |= 1 << (detector % 64);
                words = words.max(detector / 64 + 1);
            }
            seen = window.rounds.end;
            let words = if window.is_last() { detector_words as u32 } else { words };
            Arrival { words, fresh: fresh.into_iter().collect() }
        })
        .collect()
}

/// For each round, the leading words of a packed shot that are complete once it has arrived; a
/// partial word does not count.
pub(super) fn words_after_rounds(rounds: &Rounds, detector_words: usize) -> Vec<u32> {
    let first_of = |round: u32| rounds.members(round).first().copied().unwrap_or(u32::MAX);
    let mut missing = u32::MAX;
    let mut after: Vec<u32> = (0..rounds.count())
        .rev()
        .map(|round| {
            let words = if missing == u32::MAX { detector_words as u32 } else { missing / 64 };
            missing = missing.min(first_of(round));
            words
        })
        .collect();
    after.reverse();
    after
}

/// A model prepared for decoding by windows.
pub struct WindowModel {
    name: &'static str,
    plan: WindowPlan,
    rounds: Rounds,
    forms: Vec<Form>,
    windows: Vec<WindowSpec>,
    detector_words: usize,
    observables: u32,
    observable_words: usize,
    /// For each window: the words that it needs of a packed shot that arrives by rounds.
    arrivals: Vec<Arrival>,
    always_detectors: Vec<u64>,
    always_observables: Vec<u64>,
    always_weight: f64,
}

impl WindowModel {
    /// Cuts `model` into windows, which are matched.
    ///
    /// # Errors
    ///
    /// If it is not a matching problem, has no rounds, or is smaller than the windows.
    pub fn new(model: &Model, size: WindowRounds) -> Result<Self, ReadyError> {
        Self::cut(model, size, NAME, GraphModel::new)
    }

    /// As [`Self::new`], with windows that are decoded by union-find.
    ///
    /// # Errors
    ///
    /// As [`Self::new`].
    pub fn union_find(model: &Model, size: WindowRounds) -> Result<Self, ReadyError> {
        Self::cut(model, size, NAME_UNION_FIND, GraphModel::union_find)
    }

    fn cut(
        model: &Model,
        size: WindowRounds,
        name: &'static str,
        prepared: fn(&Graph) -> GraphModel,
    ) -> Result<Self, ReadyError> {
        let graph = Graph::new(model)?;
        let rounds = Rounds::new(model).map_err(WindowError::from)?;
        let plan = WindowPlan::new(rounds.count(), size)?;
        let cutter = Cutter::new(&graph, &rounds);
        let (mut forms, mut windows) = (Vec::<Form>::new(), Vec::new());
        for index in 0..plan.count() {
            let window = plan.window(index);
            let (cut, touched) = cutter.cut(&window);
            let own_words = rounds.words(window.rounds.clone());
            let words = rounds.words(window.rounds.start..touched.max(window.rounds.end));
            let known = forms.iter().position(|form| form.cut == cut);
            let form = known.unwrap_or_else(|| {
                let matching = Arc::new(prepared(&cut.matching_graph(model.observables)));
                forms.push(Form { cut, matching, local: None });
                forms.len() - 1
            });
            windows.push(WindowSpec { form, words, own_words });
        }
        let arrivals = arrivals(&plan, &rounds, graph.detector_words);
        Ok(Self {
            name,
            plan,
            arrivals,
            forms,
            windows,
            detector_words: graph.detector_words,
            observables: model.observables,
            observable_words: graph.observable_words,
            always_detectors: graph.always_detectors,
            always_observables: graph.always_observables,
            always_weight: graph.always_weight,
            rounds,
        })
    }

    /// The decoder's name in reports.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Prepares each window for `predecoder` too; see [`WindowWorker::window_predecoded`].
    #[must_use]
    pub fn predecoding(mut self, predecoder: Predecoder) -> Self {
        // With an edge of negative weight, silent detectors are the unlikely ones: the rule does
        // not apply.
        if predecoder == Predecoder::Local && self.always_weight >= 0.0 {
            self.forms.iter_mut().for_each(|form| form.local = Some(Local::of(&form.cut.graph)));
        }
        self
    }

    /// The positions of the windows.
    pub const fn plan(&self) -> &WindowPlan {
        &self.plan
    }

    /// 64-bit words of a carry.
    pub fn carry_words(&self) -> usize {
        self.rounds.words(0..self.rounds.count()).end
    }

    /// The words of the carry that window `index` reads and writes.
    ///
    /// # Panics
    ///
    /// If there is no such window.
    pub fn words(&self, index: u32) -> Range<usize> {
        self.windows[index as usize].words.clone()
    }

    /// Leading words of a packed shot that must have arrived before window `index` is decoded.
    ///
    /// # Panics
    ///
    /// If there is no such window.
    pub fn needed_words(&self, index: u32) -> u32 {
        self.arrivals[index as usize].words
    }

    /// For each round, the leading words of a packed shot that are complete once it has arrived.
    pub fn words_after_rounds(&self) -> Vec<u32> {
        words_after_rounds(&self.rounds, self.detector_words)
    }

    /// Carries for `jobs` job buffers.
    pub fn carries(&self, jobs: u32) -> Carries {
        let window = |index| {
            let words = self.words(index);
            CarryWindow { words: words.start as u32..words.end as u32, needed_words: self.needed_words(index) }
        };
        Carries::new(jobs, self.carry_words(), (0..self.plan.count()).map(window).collect())
    }

    /// Bytes of the graphs on the heap.
    pub fn bytes(&self) -> usize {
        self.forms.iter().map(|form| form.matching.bytes()).sum()
    }
}

#[cfg(test)]
mod tests;
