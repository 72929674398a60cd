//! Matching of one shot in blocks of rounds, by several threads at once, with the weight of the whole.
//!
//! One [`BlockModel`] for each error model, shared. For each shot under way one [`BlockMatcher`] for each
//! block, all of which may run at the same time, and a [`BlockFusion`], which takes what they have found.
//! Memory is bounded by the model; a shot allocates nothing and never panics.
//!
//! # Why the answer is that of the whole shot
//!
//! The rounds beside a block count as a boundary half as far away as their edges are long. So the regions
//! of two blocks overlap nowhere, and together they are as good a begin as any: the fusion makes those
//! regions trees again that had met such a boundary, and grows them, over the whole edges, to the
//! lightest matching of the shot. All other regions stand still until they are met.
//!
//! # Work
//!
//! The fusion moves all regions to one search, and grows those at the seams. The longer the blocks are,
//! the fewer these are. Blocks shorter than the code's distance leave the fusion most of the work.

use super::{Arc, Form, Range, StreamModel, StreamModelError};
use crate::bits::ones;
use crate::graph::{Adjacency, Edge, Half, NONE};
use crate::matcher::{MatchError, Matched};
use crate::search::{Failure, Presence, Search};
use std::collections::BTreeMap;

/// A block and the rounds beside it.
#[derive(Debug)]
struct Block {
    rounds: Range<u32>,
    /// Its rounds and those that its edges reach.
    reach: Range<u32>,
    /// For each node of `reach` the first half-edge; see [`StreamModel::starts`].
    starts: Vec<u32>,
}

/// A model prepared for matching in blocks.
#[derive(Debug)]
pub struct BlockModel {
    whole: StreamModel,
    blocks: Vec<Block>,
    /// For each node of all rounds the first half-edge.
    starts: Vec<u32>,
}

impl BlockModel {
    /// The problem of [`MatchingModel::new`](crate::MatchingModel::new), with the round of each detector, in
    /// blocks of `block_rounds`; the last may have fewer.
    ///
    /// # Errors
    ///
    /// [`StreamModelError`].
    pub fn new<'a>(
        round_of: &[u32],
        observable_words: usize,
        edges: impl IntoIterator<Item = Edge<'a>>,
        block_rounds: u32,
    ) -> Result<Self, StreamModelError> {
        if block_rounds == 0 {
            return Err(StreamModelError::Size { what: "block" });
        }
        let rounds = round_of.iter().max().map_or(1, |last| last.saturating_add(1));
        let mut whole = StreamModel::new(round_of, observable_words, edges, rounds, rounds)?;
        let starts = (0..whole.rounds).flat_map(|round| whole.starts_of(round)).copied().collect();
        let mut cut_forms = BTreeMap::new();
        let mut blocks = Vec::new();
        for first in (0..whole.rounds).step_by(block_rounds as usize) {
            let end = first.saturating_add(block_rounds).min(whole.rounds);
            let reach = first.saturating_sub(whole.span)..(end + whole.span).min(whole.rounds);
            let mut starts = Vec::new();
            for round in reach.clone() {
                if (first..end).contains(&round) {
                    whole.cut_off(round, first..end, &mut cut_forms, &mut starts);
                } else {
                    starts.extend_from_slice(whole.starts_of(round));
                }
            }
            blocks.push(Block { rounds: first..end, reach, starts });
        }
        Ok(Self { whole, blocks, starts })
    }

    /// Number of blocks.
    pub const fn blocks(&self) -> u32 {
        self.blocks.len() as u32
    }

    /// The rounds of block `index`.
    ///
    /// # Panics
    ///
    /// If there is no such block.
    pub fn rounds_of(&self, index: u32) -> Range<u32> {
        self.blocks[index as usize].rounds.clone()
    }

    /// Bytes on the heap.
    pub fn bytes(&self) -> usize {
        let starts: usize = self.blocks.iter().map(|block| block.starts.capacity()).sum();
        self.whole.bytes() + 4 * (self.starts.capacity() + starts) + self.blocks.capacity() * size_of::<Block>()
    }
}

impl StreamModel {
    /// For each node of `round` the first half-edge.
    fn starts_of(&self, round: u32) -> &[u32] {
        let stride = self.stride() as usize;
        &self.starts[self.form_of[round as usize] as usize * stride..][..stride]
    }

    /// Adds to `starts` those of `round` with edges that leave `block` half as long; `known` has such forms
    /// with their first half-edges. The ring has a slot for each round.
    fn cut_off(&mut self, round: u32, block: Range<u32>, known: &mut BTreeMap<Form, u32>, starts: &mut Vec<u32>) {
        let (stride, own) = (self.stride(), self.starts_of(round).to_vec());
        let halves = own[0] as usize..own[own.len() - 1] as usize;
        let mut form = Form {
            starts: own.iter().map(|start| start - own[0]).collect(),
            halves: self.halves[halves.clone()].to_vec(),
            twins: self.twins[halves.clone()].to_vec(),
            observables: self.half_observables[halves].to_vec(),
        };
        let mut is_cut = false;
        for (member, ends) in (0..).zip(own.windows(2)) {
            for Half { to, weight } in &mut form.halves[(ends[0] - own[0]) as usize..(ends[1] - own[0]) as usize] {
                let to = (round * stride + member).wrapping_add(*to) / stride;
                if !block.contains(&to) {
                    // Even, as all weights are.
                    *weight = (*weight / 2) & !1;
                    is_cut = true;
                }
            }
        }
        if !is_cut {
            return starts.extend(own);
        }
        let first = *known.entry(form.clone()).or_insert_with(|| {
            let first = self.halves.len() as u32;
            self.halves.append(&mut form.halves);
            self.twins.append(&mut form.twins);
            self.half_observables.append(&mut form.observables);
            first
        });
        starts.extend(form.starts.iter().map(|start| first + start));
    }

    /// All edges, from these starts.
    fn adjacency<'a>(&'a self, starts: &'a [u32]) -> Adjacency<'a> {
        let Self { halves, twins, half_observables: observables, .. } = self;
        // Edges that leave a block are half as long.
        Adjacency { starts, halves, twins, observables, counts_from: u32::MAX, is_by_weight: false }
    }
}

/// The memory of one block of a shot.
#[derive(Debug)]
pub struct BlockMatcher {
    model: Arc<BlockModel>,
    index: u32,
    search: Search,
    /// One bit for each member: fired in this round an odd number of times. Clear between rounds.
    fired: Vec<u64>,
    error: Option<MatchError>,
}

impl BlockMatcher {
    /// A matcher for block `index` of `model`.
    ///
    /// # Panics
    ///
    /// If there is no such block.
    pub fn new(model: Arc<BlockModel>, index: u32) -> Self {
        let BlockModel { whole, blocks, .. } = &*model;
        let Block { rounds, reach, .. } = &blocks[index as usize];
        let stride = whole.stride();
        let mut search = Search::by_rounds(reach.len() * stride as usize);
        search.restart(stride as usize);
        for (slot, round) in (0..).zip(reach.clone()) {
            let presence = if rounds.contains(&round) { Presence::Open } else { Presence::Future };
            search.set_presence(slot * stride..slot * stride + whole.members, presence);
        }
        let fired = vec![0; whole.members.div_ceil(64) as usize];
        Self { index, search, fired, error: None, model }
    }

    /// Matches the block; `fired` gives the fired detectors of each of its rounds (one that is listed
    /// twice has not fired). What [`BlockFusion::take`] has not taken is forgotten. An error is told
    /// by [`BlockFusion::finish`].
    pub fn decode<I: IntoIterator<Item = u32>>(&mut self, mut fired: impl FnMut(u32) -> I) {
        let Self { model, index, search, fired: bits, error } = self;
        let BlockModel { whole, blocks, .. } = &**model;
        let Block { rounds, reach, starts } = &blocks[*index as usize];
        search.forget_regions();
        *error = None;
        // The caller's iterator may have panicked in the last shot.
        bits.fill(0);
        for round in rounds.clone() {
            for detector in fired(round) {
                match whole.numbers.member(round, detector) {
                    Some(member) => bits[member as usize / 64] ^= 1 << (member % 64),
                    None => *error = Some(MatchError::Detector { detector, detectors: whole.detectors }),
                }
            }
            let always = whole.always.partition_point(|place| place.round < round);
            for place in whole.always[always..].iter().take_while(|place| place.round == round) {
                bits[place.member as usize / 64] ^= 1 << (place.member % 64);
            }
            let first = (round - reach.start) * whole.stride();
            ones(bits).for_each(|member| search.add_defect(first + member));
            bits.fill(0);
        }
        if error.is_none()
            && let Err(failure) = search.resume(whole.adjacency(starts))
        {
            *error = Some(whole.reason(failure, reach.start));
        }
    }

    /// Bytes on the heap, without the shared model.
    pub fn bytes(&self) -> usize {
        self.search.bytes() + 8 * self.fired.capacity()
    }
}

impl StreamModel {
    /// Why a search failed whose node 0 is of round `first`.
    fn reason(&self, failure: Failure, first: u32) -> MatchError {
        match failure {
            Failure::Unmatched(node) => {
                let (round, member) = (first + node / self.stride(), node % self.stride());
                MatchError::Unmatchable { detector: self.numbers.detector(round, member).unwrap_or(NONE) }
            }
            Failure::Declined => MatchError::Declined,
        }
    }
}

/// The memory in which the blocks of a shot become one matching.
#[derive(Debug)]
pub struct BlockFusion {
    model: Arc<BlockModel>,
    search: Search,
    error: Option<MatchError>,
}

impl BlockFusion {
    /// Memory for shots of `model`.
    pub fn new(model: Arc<BlockModel>) -> Self {
        let stride = model.whole.stride();
        let mut search = Search::by_rounds((model.whole.rounds * stride) as usize);
        search.restart(stride as usize);
        for round in 0..model.whole.rounds {
            search.set_presence(round * stride..round * stride + model.whole.members, Presence::Open);
        }
        Self { search, error: None, model }
    }

    /// Takes what `block` has found, which is empty then. Each block of a shot once, in any order.
    pub fn take(&mut self, block: &mut BlockMatcher) {
        let BlockModel { whole, blocks, .. } = &*self.model;
        match block.error.take() {
            Some(error) => self.error = Some(error),
            None => {
                self.search.take_over(&mut block.search, blocks[block.index as usize].reach.start * whole.stride());
            }
        }
    }

    /// Ends the shot: XORs the observables of its matching into the first of `observables` and returns
    /// its weight.
    ///
    /// # Errors
    ///
    /// [`MatchError`]: the shot has no answer; `observables` is then unchanged.
    pub fn finish(&mut self, observables: &mut [u64]) -> Result<Matched, MatchError> {
        let Self { model, search, error } = self;
        let BlockModel { whole, starts, .. } = &**model;
        let mut ended = error.take().map_or(Ok(()), Err);
        if ended.is_ok() {
            ended = search.resume(whole.adjacency(starts)).map_err(|failure| whole.reason(failure, 0));
        }
        let (mut flipped, mut units) = (whole.always_observables, whole.always_weight);
        if ended.is_ok() {
            search.pairs(|pair| flipped ^= pair.observables);
            units += search.weight();
            if let Some(word) = observables.first_mut() {
                *word ^= flipped;
            }
        }
        search.forget_regions();
        ended.map(|()| Matched { weight: units as f64 / whole.scale, units })
    }

    /// Bytes on the heap, without the shared model.
    pub fn bytes(&self) -> usize {
        self.search.bytes()
    }
}
