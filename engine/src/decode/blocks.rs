//! Shots that arrive whole, in blocks of rounds that several workers match at the same time.
//!
//! Owns [`BlockedModel`], built once by cold code and shared: which bits of a packed shot belong to each
//! round, and the model in blocks. The search is that of [`pinwheel_matching::BlockModel`]: the answer has the
//! weight of the whole shot. Each block is a task; the task after them fuses what they have found. A worker
//! that has a shot for itself, as before the first shot, takes the blocks one after the other. Blocks are not
//! predecoded where rounds come one by one: a detector's neighbours may not have come.

use std::ops::Range;
use std::sync::Arc;

use pinwheel_matching::{BlockFusion, BlockMatcher, BlockModel};

use super::by_graph::{edges, reason};
use super::stream::RoundBits;
use super::window::WindowError;
use super::{DecodeError, Decoded, Matcher, ReadyError};
use crate::code::graph::Graph;
use crate::code::{Model, Rounds};
use crate::pipe::Carries;

/// The matcher's name in reports.
pub(super) const NAME: &str = "sparse-blossom in blocks";

/// A model prepared for decoding in blocks.
pub struct BlockedModel {
    matching: Arc<BlockModel>,
    bits: RoundBits,
}

impl BlockedModel {
    /// Prepares `model`, in blocks of `block_rounds`.
    ///
    /// # Errors
    ///
    /// If it is not a matching problem, has no rounds, fewer than a block, or more than 64 observables.
    pub fn new(model: &Model, block_rounds: u32) -> Result<Self, ReadyError> {
        let graph = Graph::new(model)?;
        let rounds = Rounds::new(model).map_err(WindowError::from)?;
        if !(1..=rounds.count()).contains(&block_rounds) {
            return Err(WindowError::Block { found: block_rounds, rounds: rounds.count() }.into());
        }
        let round_of: Vec<u32> = (0..model.detectors).map(|detector| rounds.of(detector)).collect();
        let matching = BlockModel::new(&round_of, graph.observable_words, edges(&graph), block_rounds);
        let matching = matching.map_err(|error| WindowError::of_stream(&error, model))?;
        Ok(Self { matching: Arc::new(matching), bits: RoundBits::new(&rounds, &graph) })
    }

    /// Number of tasks of a shot: one for each block, and one that fuses them.
    pub fn tasks(&self) -> u32 {
        self.matching.blocks() + 1
    }

    /// For each round, the leading words of a packed shot that are complete once it has arrived.
    pub fn words_after_rounds(&self) -> &[u32] {
        self.bits.words_after_rounds()
    }

    /// Memory for shots in `jobs` job buffers.
    pub fn carries(&self, jobs: u32) -> Carries {
        let of_block = |block| self.bits.words_of(self.matching.rounds_of(block));
        let needed: Vec<u32> = (0..self.matching.blocks()).map(of_block).chain([self.bits.detector_words()]).collect();
        Carries::of_blocks(jobs, &self.matching, &needed)
    }

    /// Bytes on the heap.
    pub fn bytes(&self) -> usize {
        self.matching.bytes() + self.bits.bytes()
    }

    /// Matches the block of `matcher`; `word` reads a word of the packed shot.
    pub(super) fn decode(&self, matcher: &mut BlockMatcher, word: impl Fn(u32) -> u64 + Copy) {
        matcher.decode(|round| self.bits.fired(round, word));
    }

    /// Ends the shot whose blocks `fusion` has taken: XORs the flips of its matching into `observables` and
    /// returns its weight.
    ///
    /// # Errors
    ///
    /// [`DecodeError`]: the shot has no answer.
    pub(super) fn finish(&self, fusion: &mut BlockFusion, observables: &mut [u64]) -> Result<f64, DecodeError> {
        let matched = fusion.finish(observables).map_err(reason)?;
        self.bits.flip_always(observables);
        Ok(matched.weight + self.bits.always_weight())
    }

    pub(super) fn blocks(&self) -> Range<u32> {
        0..self.matching.blocks()
    }
}

/// Decodes a whole shot block by block.
pub(super) struct BlockedMatcher {
    model: Arc<BlockedModel>,
    blocks: Box<[BlockMatcher]>,
    fusion: BlockFusion,
}

impl BlockedMatcher {
    pub(super) fn new(model: Arc<BlockedModel>) -> Self {
        let block = |index| BlockMatcher::new(Arc::clone(&model.matching), index);
        let (blocks, fusion) = (model.blocks().map(block).collect(), BlockFusion::new(Arc::clone(&model.matching)));
        Self { blocks, fusion, model }
    }
}

impl Matcher for BlockedMatcher {
    fn decode(&mut self, syndrome: &[u64], observables: &mut [u64]) -> Result<Decoded, DecodeError> {
        let Self { model, blocks, fusion } = self;
        model.bits.check_widths(syndrome, observables);
        observables.fill(0);
        for block in blocks {
            model.decode(block, |word| syndrome[word as usize]);
            fusion.take(block);
        }
        let weight = model.finish(fusion, observables).inspect_err(|_| observables.fill(0))?;
        Ok(Decoded { weight: Some(weight), gap: None })
    }

    fn bytes(&self) -> usize {
        self.fusion.bytes() + self.blocks.iter().map(BlockMatcher::bytes).sum::<usize>()
    }
}
