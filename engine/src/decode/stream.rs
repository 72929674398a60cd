//! Long experiments as streams: each round is added to the matching of the rounds before it.
//!
//! Owns [`StreamedModel`], built once by cold code and shared: which bits of a packed shot belong to
//! each round, and the parts in which rounds are taken. The search is that of
//! [`pinwheel_matching::stream`]. Bounded by one commit and two buffers of rounds; the work of a
//! round does not depend on the experiment's length. A shot that arrives by rounds is decoded by
//! tasks, each of which takes one part; a shot that arrives whole is decoded in one go.

use std::ops::Range;
use std::sync::Arc;

use pinwheel_matching::{StreamError, StreamMatcher, StreamModel};

use super::by_graph::{edges, reason};
use super::window::{WindowError, WindowPlan, words_after_rounds};
use super::{DecodeError, Decoded, Matcher, ReadyError};
use crate::code::graph::Graph;
use crate::code::{Model, Rounds, ones_of};
use crate::pipe::Carries;
use crate::profile::WindowRounds;

/// The matcher's name in reports.
pub(super) const NAME: &str = "sparse-blossom as a stream";

/// Which bits of a packed shot belong to each round of a model, and what every shot flips.
pub(super) struct RoundBits {
    /// The detectors of the rounds in a packed shot, round after round: index of a word, and bits in
    /// it. In one array: a long experiment reads it from end to end.
    bits: Vec<(u32, u64)>,
    /// For each round its first entry of `bits`, and the end of the last.
    starts: Vec<u32>,
    words_after_rounds: Vec<u32>,
    detector_words: usize,
    observable_words: usize,
    always_detectors: Vec<u64>,
    always_observables: Vec<u64>,
    always_weight: f64,
}

impl RoundBits {
    pub(super) fn new(rounds: &Rounds, graph: &Graph) -> Self {
        let (mut bits, mut starts) = (Vec::<(u32, u64)>::new(), vec![0]);
        for round in 0..rounds.count() {
            let first = bits.len();
            for &detector in rounds.members(round) {
                match bits[first..].last_mut() {
                    Some((word, bits)) if *word == detector / 64 => *bits |= 1 << (detector % 64),
                    _ => bits.push((detector / 64, 1 << (detector % 64))),
                }
            }
            starts.push(bits.len() as u32);
        }
        Self {
            bits,
            starts,
            words_after_rounds: words_after_rounds(rounds, graph.detector_words),
            detector_words: graph.detector_words,
            observable_words: graph.observable_words,
            always_detectors: graph.always_detectors.clone(),
            always_observables: graph.always_observables.clone(),
            always_weight: graph.always_weight,
        }
    }

    fn of(&self, round: u32) -> &[(u32, u64)] {
        &self.bits[self.starts[round as usize] as usize..self.starts[round as usize + 1] as usize]
    }

    /// The detectors of `round` that fired; `word` reads a word of the packed shot.
    pub(super) fn fired(&self, round: u32, word: impl Fn(u32) -> u64) -> impl Iterator<Item = u32> {
        self.of(round).iter().flat_map(move |&(at, bits)| {
            let fired = (word(at) ^ self.always_detectors[at as usize]) & bits;
            ones_of(fired).map(move |bit| at * 64 + bit)
        })
    }

    /// Leading words of a packed shot that have all detectors of `rounds`.
    pub(super) fn words_of(&self, rounds: Range<u32>) -> u32 {
        rounds.flat_map(|round| self.of(round)).map(|&(word, _)| word + 1).max().unwrap_or(0)
    }

    /// For each round, the leading words of a packed shot that are complete once it has arrived.
    pub(super) fn words_after_rounds(&self) -> &[u32] {
        &self.words_after_rounds
    }

    /// Words of a packed shot.
    pub(super) const fn detector_words(&self) -> u32 {
        self.detector_words as u32
    }

    /// XORs what every shot flips into `observables`.
    pub(super) fn flip_always(&self, observables: &mut [u64]) {
        observables.iter_mut().zip(&self.always_observables).for_each(|(word, by)| *word ^= by);
    }

    /// Weight of what every shot flips.
    pub(super) const fn always_weight(&self) -> f64 {
        self.always_weight
    }

    /// # Panics
    ///
    /// If a slice is not as wide as the model.
    pub(super) fn check_widths(&self, syndrome: &[u64], observables: &[u64]) {
        assert_eq!(syndrome.len(), self.detector_words, "the syndrome must be as wide as the model");
        assert_eq!(observables.len(), self.observable_words, "observables must be as wide as the model");
    }

    /// Bytes on the heap.
    pub(super) fn bytes(&self) -> usize {
        self.bits.capacity() * size_of::<(u32, u64)>() + 4 * self.starts.capacity()
    }
}

/// A model prepared for decoding as a stream.
pub struct StreamedModel {
    matching: Arc<StreamModel>,
    /// Rounds of a part; the last part may have fewer.
    part_rounds: u32,
    bits: RoundBits,
}

impl StreamedModel {
    /// Prepares `model`; pairs become final every `commit_rounds`, once they are `buffer_rounds`
    /// old.
    ///
    /// # Errors
    ///
    /// If it is not a matching problem, has no rounds or more than 64 observables, or is smaller
    /// than one of the two sizes.
    pub fn new(model: &Model, size: WindowRounds) -> Result<Self, ReadyError> {
        let graph = Graph::new(model)?;
        let rounds = Rounds::new(model).map_err(WindowError::from)?;
        WindowPlan::new(rounds.count(), size)?;
        let round_of: Vec<u32> = (0..model.detectors).map(|detector| rounds.of(detector)).collect();
        let WindowRounds { commit_rounds, buffer_rounds } = size;
        let matching = StreamModel::new(&round_of, graph.observable_words, edges(&graph), commit_rounds, buffer_rounds);
        let matching = Arc::new(matching.map_err(|error| WindowError::of_stream(&error, model))?);
        Ok(Self { matching, part_rounds: commit_rounds, bits: RoundBits::new(&rounds, &graph) })
    }

    /// Number of parts of a shot.
    pub fn parts(&self) -> u32 {
        self.matching.rounds().div_ceil(self.part_rounds)
    }

    /// For each round, the leading words of a packed shot that are complete once it has arrived.
    pub fn words_after_rounds(&self) -> &[u32] {
        self.bits.words_after_rounds()
    }

    /// Matchers for shots of `streams` streams in `jobs` job buffers.
    pub fn carries(&self, jobs: u32, streams: u32) -> Carries {
        let last = self.parts() - 1;
        let mut words_so_far = 0;
        let words = |part| {
            words_so_far = self.bits.words_of(self.rounds_of(part)).max(words_so_far);
            if part == last { self.bits.detector_words() } else { words_so_far }
        };
        let needed: Vec<u32> = (0..=last).map(words).collect();
        Carries::of_streams(jobs, streams, &self.matching, &needed)
    }

    /// Bytes on the heap.
    pub fn bytes(&self) -> usize {
        self.matching.bytes() + self.bits.bytes()
    }

    /// A matcher for one shot at a time.
    pub fn matcher(&self) -> StreamMatcher {
        StreamMatcher::new(Arc::clone(&self.matching))
    }

    fn rounds_of(&self, part: u32) -> Range<u32> {
        let first = part * self.part_rounds;
        first..first.saturating_add(self.part_rounds).min(self.matching.rounds())
    }

    /// The bits that every shot flips: XORs them into `observables`.
    pub(super) fn begin(&self, observables: &mut [u64]) {
        self.bits.flip_always(observables);
    }

    /// Adds the rounds of `part` to the matching of a shot; `word` reads a word of the packed shot.
    /// The first part begins the shot, the last one XORs the flips of its matching into
    /// `observables` and returns its weight.
    ///
    /// # Errors
    ///
    /// [`DecodeError`]: the shot has no answer.
    ///
    /// # Panics
    ///
    /// If there is no such part, or `word` does for a word of the model's detectors.
    pub fn decode(
        &self,
        matcher: &mut StreamMatcher,
        part: u32,
        word: impl Fn(u32) -> u64 + Copy,
        observables: &mut [u64],
    ) -> Result<Option<f64>, DecodeError> {
        if part == 0 {
            matcher.begin();
        }
        for round in self.rounds_of(part) {
            matcher.round(round, self.bits.fired(round, word)).map_err(failed)?;
        }
        if part + 1 < self.parts() {
            matcher.advance().map_err(failed)?;
            return Ok(None);
        }
        let matched = matcher.finish(observables).map_err(failed)?;
        Ok(Some(matched.weight + self.bits.always_weight()))
    }
}

fn failed(error: StreamError) -> DecodeError {
    match error {
        StreamError::Match(error) => reason(error),
        _ => DecodeError::Unmatchable,
    }
}

/// Decodes a whole shot as a stream.
pub(super) struct StreamedMatcher {
    model: Arc<StreamedModel>,
    matcher: StreamMatcher,
}

impl StreamedMatcher {
    pub(super) fn new(model: Arc<StreamedModel>) -> Self {
        Self { matcher: model.matcher(), model }
    }
}

impl Matcher for StreamedMatcher {
    fn decode(&mut self, syndrome: &[u64], observables: &mut [u64]) -> Result<Decoded, DecodeError> {
        let Self { model, matcher } = self;
        model.bits.check_widths(syndrome, observables);
        observables.fill(0);
        model.begin(observables);
        let mut weight = None;
        for part in 0..model.parts() {
            let decoded = model.decode(matcher, part, |word| syndrome[word as usize], observables);
            weight = decoded.inspect_err(|_| observables.fill(0))?;
        }
        Ok(Decoded { weight, gap: None })
    }

    fn bytes(&self) -> usize {
        self.matcher.bytes()
    }
}
