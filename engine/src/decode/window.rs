//! Long experiments by sliding windows: a few rounds are matched at a time, and only what is old enough is committed.
//!
//! Owns [`WindowModel`], built once by cold code and shared; [`WindowWorker`], one per thread, which decodes one window at
//! a call; and [`WindowMatcher`], which decodes a whole shot window by window. Bounded by the model: a window's work is
//! that of its own rounds, however long the experiment is. Never looks at a round after the window's last one.
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
//! A window's graph has the detectors of its rounds and the edges that have none in the past: those belong to earlier
//! commits. Of its matching, the edges that touch a commit round are committed: observables and weight are added up, both
//! ends are flipped in the *carry*, the shot with what is explained so far taken away. So the commit rounds of the carry
//! become silent, an end in the buffer or beyond is flipped for the next window, and no edge is committed twice. After
//! the last window nothing fired is left unexplained.
//!
//! The carry's rounds begin words (see [`Rounds`]): a window reads and writes
//! [`WindowModel::words`] and nothing else, which is what may be declared as a task's region.
//!
//! # Why no edge is traced
//!
//! A matching tells which observables it flips in all, and its edges only for one more search for each pair: 0.84 µs a window
//! instead of 0.58 at d = 3, 7.3 instead of 5.1 at d = 5 (the former beside other work). But nobody needs the edges. The commit rounds
//! are silent afterwards, whatever they were; what the later windows must know is which detectors outside of them are
//! flipped, and those are few: the ends of edges that leave the commit rounds, a surface code's one round. So each of
//! these detectors is given a bit behind the observables, an edge that would be committed flips its observables and the
//! bits of its outer ends, and the matching adds them up along its way. A shot of one window is decoded exactly as a
//! whole shot is, ties included.
//!
//! # Why windows share graphs
//!
//! In the bulk of a long experiment all windows are alike, bit for bit. Kept once, with one scratch, they stay in the
//! cache, and a worker's memory does not grow with the experiment: 4 graphs at any length.
//!
//! # What it costs
//!
//! Surface codes, p = 0.005, commit and buffer as the distance, on the same shots: 0.14 % more logical errors than whole
//! shots at d = 3, 0.2 % (not resolved) at d = 5. A buffer of one round: 4 % and 22 % more.
//!
//! # Predecoding a window
//!
//! A shot that comes whole is predecoded whole before it is cut. One that comes by rounds is predecoded window by window,
//! by the same rule on the window's own graph: what stands alone and touches a commit round is committed as a matched edge
//! would be; what stands alone in the buffer is left out of this matching and seen anew by the next window. The rule
//! looks a little under three edges far, so that a buffer of three rounds shows it all that it asks about a commit round.
//!
//! # What a window cannot do
//!
//! A detector whose only way to the boundary or to its partner leads through the past is unmatchable. Surface codes have
//! none.

mod cut;
mod matcher;
mod plan;

pub use matcher::{WindowMatcher, WindowWorker};
pub use plan::{Window, WindowPlan};

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::ReadyError;
use super::sparse::SparseModel;
use crate::code::graph::Graph;
use crate::code::{Model, NoTime, Rounds};
use crate::predecode::Local;
use crate::profile::{Predecoder, WindowRounds};
use cut::{Cut, Cutter};

/// The matcher's name.
pub(super) const NAME: &str = "sparse-blossom in windows";

/// Why a model cannot be decoded by windows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WindowError {
    /// It does not say when its detectors are.
    #[error(transparent)]
    NoTime(#[from] NoTime),
    /// One of the two sizes is 0 or larger than the model.
    #[error(
        "found windows of {found} {what} rounds, expected 1..={rounds}, the model's rounds of detectors; give both sizes \
         in this range, best a buffer of the code's distance"
    )]
    Size {
        /// `commit` or `buffer`.
        what: &'static str,
        /// The size asked for.
        found: u32,
        /// The model's rounds.
        rounds: u32,
    },
}

/// Windows of one form: their graph, ready for matching, and what committing an edge of it means.
struct Form {
    cut: Cut,
    matching: Arc<SparseModel>,
    /// Takes away what stands alone in the window, where windows are predecoded.
    local: Option<Local>,
}

/// Where one window is, and its form.
struct Place {
    form: usize,
    words: Range<usize>,
    own_words: Range<usize>,
}

/// What a window needs of a packed shot that comes by rounds.
struct Arrival {
    /// Leading words.
    words: u32,
    /// The detectors that no window before it has seen: of which word, which bits.
    fresh: Vec<(u32, u64)>,
}

fn arrivals(plan: &WindowPlan, rounds: &Rounds, detector_words: usize) -> Vec<Arrival> {
    let last_word = |rounds_end: u32| {
        let members = (0..rounds_end).flat_map(|round| rounds.members(round).last());
        members.map(|detector| detector / 64 + 1).max().unwrap_or(0)
    };
    let mut seen = 0;
    (0..plan.count())
        .map(|index| {
            let window = plan.window(index);
            let mut fresh = BTreeMap::<u32, u64>::new();
            for detector in (seen..window.rounds.end).flat_map(|round| rounds.members(round)) {
                *fresh.entry(detector / 64).or_default() |= 1 << (detector % 64);
            }
            seen = window.rounds.end;
            let words = if window.is_last() { detector_words as u32 } else { last_word(window.rounds.end) };
            Arrival { words, fresh: fresh.into_iter().collect() }
        })
        .collect()
}

fn words_after_rounds(rounds: &Rounds, detector_words: usize) -> Vec<u32> {
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

/// A model made ready for decoding by windows.
pub struct WindowModel {
    plan: WindowPlan,
    rounds: Rounds,
    forms: Vec<Form>,
    places: Vec<Place>,
    detector_words: usize,
    observables: u32,
    observable_words: usize,
    /// Of each window: what it needs of a packed shot that comes by rounds.
    arrivals: Vec<Arrival>,
    always_detectors: Vec<u64>,
    always_observables: Vec<u64>,
    always_weight: f64,
}

impl WindowModel {
    /// Cuts `model` into windows.
    ///
    /// # Errors
    ///
    /// If it is not a matching problem, has no rounds, or windows of that size do not fit it.
    pub fn new(model: &Model, size: WindowRounds) -> Result<Self, ReadyError> {
        let graph = Graph::new(model)?;
        let rounds = Rounds::new(model).map_err(WindowError::from)?;
        let plan = WindowPlan::new(rounds.count(), size)?;
        let cutter = Cutter::new(&graph, &rounds);
        let (mut forms, mut places) = (Vec::<Form>::new(), Vec::new());
        for index in 0..plan.count() {
            let window = plan.window(index);
            let (cut, touched) = cutter.cut(&window);
            let own_words = rounds.words(window.rounds.clone());
            let words = rounds.words(window.rounds.start..touched.max(window.rounds.end));
            let known = forms.iter().position(|form| form.cut == cut);
            let form = known.unwrap_or_else(|| {
                let matching = Arc::new(SparseModel::new(&cut.matching_graph(model.observables)));
                forms.push(Form { cut, matching, local: None });
                forms.len() - 1
            });
            places.push(Place { form, words, own_words });
        }
        let arrivals = arrivals(&plan, &rounds, graph.detector_words);
        Ok(Self {
            plan,
            arrivals,
            forms,
            places,
            detector_words: graph.detector_words,
            observables: model.observables,
            observable_words: graph.observable_words,
            always_detectors: graph.always_detectors,
            always_observables: graph.always_observables,
            always_weight: graph.always_weight,
            rounds,
        })
    }

    /// Makes each window ready for `predecoder` too; see [`WindowWorker::window_predecoded`].
    #[must_use]
    pub fn predecoding(mut self, predecoder: Predecoder) -> Self {
        // Edges of negative weight make silent detectors the unlikely ones: the rule means nothing there.
        if predecoder == Predecoder::Local && self.always_weight >= 0.0 {
            self.forms.iter_mut().for_each(|form| form.local = Some(Local::of(&form.cut.graph)));
        }
        self
    }

    /// Where the windows are.
    #[must_use]
    pub const fn plan(&self) -> &WindowPlan {
        &self.plan
    }

    /// 64-bit words of a carry.
    #[must_use]
    pub fn carry_words(&self) -> usize {
        self.rounds.words(0..self.rounds.count()).end
    }

    /// The words of the carry that window `index` reads and writes.
    ///
    /// # Panics
    ///
    /// If there is no such window.
    #[must_use]
    pub fn words(&self, index: u32) -> Range<usize> {
        self.places[index as usize].words.clone()
    }

    /// Leading words of a packed shot that must be there before window `index` is decoded.
    ///
    /// # Panics
    ///
    /// If there is no such window.
    #[must_use]
    pub fn needed_words(&self, index: u32) -> u32 {
        self.arrivals[index as usize].words
    }

    /// Leading whole words of a packed shot that are there after each round: what has come of the words after them does
    /// not count.
    #[must_use]
    pub fn words_after_rounds(&self) -> Vec<u32> {
        words_after_rounds(&self.rounds, self.detector_words)
    }

    /// Detectors and edges of the graph of window `index`: what its work is bounded by.
    ///
    /// # Panics
    ///
    /// If there is no such window.
    #[must_use]
    pub fn size(&self, index: u32) -> (usize, usize) {
        let graph = &self.forms[self.places[index as usize].form].cut.graph;
        (graph.detectors as usize, graph.edges.len())
    }

    /// Graphs that all windows share.
    #[must_use]
    pub fn graphs(&self) -> usize {
        self.forms.len()
    }
}

#[cfg(test)]
mod tests;
