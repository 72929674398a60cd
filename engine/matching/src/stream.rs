//! Matching of a shot whose rounds come one by one, for experiments of any length.
//!
//! One [`StreamModel`] for each error model, shared; one [`StreamMatcher`] for each shot that is
//! under way, called by one thread at a time. Memory is bounded by the rounds of one commit and two
//! buffers, not by the length of the experiment; a shot allocates nothing and never panics.
//!
//! ```text
//!   rounds   ··· forgotten │ committed │ open: commit + buffer │ next │ not yet in the ring ···
//!              past        │    ◀──── regions may grow here ────▶    │ future: growth stops, and
//!                          │                                         │ goes on when the round comes
//! ```
//!
//! # Each round's work is done once
//!
//! The search keeps its regions from round to round. Rounds that have not come count as a boundary
//! as far away as their edges are long. A region that reaches this boundary stands still until the
//! round comes, and then grows on from the radius that it has. So after each round the matching is
//! the lightest one of all rounds so far, and no round is matched anew.
//!
//! # When a pair is final
//!
//! Every `commit` rounds, pairs (and boundary matches) whose defects are all `buffer` rounds old or
//! more become final: their observables are added up, and their regions make room. Up to then a
//! later round may change them. With a buffer as long as the shot, the answer is the lightest
//! matching of the whole shot. With the code's distance, later rounds hardly ever matter.
//!
//! A region whose pair is not final when a round that it has reached is to be forgotten, `commit` and
//! two buffers later, is taken out with the partner it then has. If it waits for a round to come, it
//! is taken out but for the defect that waits. Only if that defect itself is to be forgotten has the
//! shot no answer: a defect from which no boundary and no other defect is in reach of all those
//! rounds.
//!
//! # The ring
//!
//! Nodes are numbered by slot of a ring of rounds, and member of the round. In a long experiment all
//! rounds but the first and the last have the same edges: such rounds share a *form*, whose half-edges
//! count nodes from their own. Where an edge crosses the ring's seam, it counts otherwise, so these
//! rounds have forms of their own. Each slot has a node for the boundary, so that it is as far away as
//! in other slots.

pub mod blocks;

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use crate::bits::ones_of;
use crate::graph::{Adjacency, Edge, Graph, GraphError, Half, NONE};
use crate::matcher::{MatchError, Matched};
use crate::search::{Failure, Pair, Presence, Search};

/// Why a model cannot be matched round by round.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum StreamModelError {
    #[error(transparent)]
    Graph(#[from] GraphError),
    #[error("{words} words of observables are too many; rounds are matched with up to 64 observables")]
    Observables { words: usize },
    #[error("{what} is 0 rounds; it takes one or more")]
    Size {
        /// `commit` or `buffer`.
        what: &'static str,
    },
    #[error(
        "{rounds} rounds of up to {members} detectors take too much memory, for each round takes that of the largest; \
         check the times of the detectors, or match whole shots"
    )]
    Uneven { rounds: u32, members: u32 },
}

/// Most rounds times detectors of the largest: 256 times as many as of a model of 2^18 detectors with equal rounds.
const PLACES_MAX: u64 = 1 << 26;

/// Detectors of the largest round.
fn most_of_a_round(round_of: &[u32]) -> u32 {
    let mut rounds = round_of.to_vec();
    rounds.sort_unstable();
    rounds.chunk_by(|a, b| a == b).map(|members| members.len() as u32).max().unwrap_or(0)
}

/// Why a round is refused, or a shot has no answer.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum StreamError {
    #[error("round {found} was given, but round {next} is next; give each round once, in order")]
    Order {
        found: u32,
        /// The next one; the number of rounds if all have come.
        next: u32,
    },
    #[error("detector {detector} is not of round {round}; check that model and shots belong together")]
    Detector { detector: u32, round: u32 },
    #[error("the shot ends after {found} of {rounds} rounds; give the other rounds, without detectors if need be")]
    Short { found: u32, rounds: u32 },
    #[error(transparent)]
    Match(#[from] MatchError),
}

/// A detector's place.
#[derive(Debug, Clone, Copy)]
struct Place {
    round: u32,
    member: u32,
}

/// Where each detector is.
#[derive(Debug)]
enum Numbers {
    /// Detectors are numbered by their rounds: the first detector of each round, and the end of the
    /// last. Of a long experiment these are read one after the other.
    ByRound(Vec<u32>),
    /// In any order: the place of each detector.
    Any(Vec<Place>),
}

impl Numbers {
    fn new(places: Vec<Place>) -> Self {
        if places.windows(2).any(|pair| pair[1].round < pair[0].round) {
            return Self::Any(places);
        }
        let rounds = places.last().map_or(0, |last| last.round + 1);
        let first = |round| places.partition_point(|place| place.round < round) as u32;
        Self::ByRound((0..=rounds).map(first).collect())
    }

    /// The member of `round` that `detector` is.
    #[inline]
    fn member(&self, round: u32, detector: u32) -> Option<u32> {
        match self {
            Self::ByRound(firsts) => {
                let members = firsts[round as usize]..firsts[round as usize + 1];
                members.contains(&detector).then(|| detector - members.start)
            }
            Self::Any(places) => {
                places.get(detector as usize).filter(|place| place.round == round).map(|place| place.member)
            }
        }
    }

    /// The detector that is `member` of `round`; cold.
    fn detector(&self, round: u32, member: u32) -> Option<u32> {
        match self {
            Self::ByRound(firsts) => firsts.get(round as usize).map(|first| first + member),
            Self::Any(places) => {
                places.iter().position(|place| place.round == round && place.member == member).map(|at| at as u32)
            }
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::ByRound(firsts) => 4 * firsts.capacity(),
            Self::Any(places) => places.capacity() * size_of::<Place>(),
        }
    }
}

/// The edges of a round, as its slot has them.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Form {
    /// For each member its first half-edge, and the end of the last.
    starts: Vec<u32>,
    halves: Vec<Half>,
    twins: Vec<u32>,
    observables: Vec<u64>,
}

/// A model prepared for matching round by round.
#[derive(Debug)]
pub struct StreamModel {
    commit: u32,
    buffer: u32,
    detectors: u32,
    rounds: u32,
    /// Most rounds between two ends of an edge, and at least 1.
    span: u32,
    /// Rounds of the ring.
    slots: u32,
    /// Most members of a round.
    members: u32,
    /// The half-edges of all forms, each counting from its own node; see [`Adjacency`].
    halves: Vec<Half>,
    twins: Vec<u32>,
    half_observables: Vec<u64>,
    /// For each form and member the first half-edge, and behind each form the end of its last.
    starts: Vec<u32>,
    /// The form of each round.
    form_of: Vec<u32>,
    numbers: Numbers,
    /// Detectors that edges of negative weight flip, by round.
    always: Vec<Place>,
    always_observables: u64,
    always_weight: i64,
    scale: f64,
}

impl StreamModel {
    /// The problem of [`MatchingModel::new`](crate::MatchingModel::new), with the round of each
    /// detector. Pairs become final every `commit` rounds, once they are `buffer` rounds old.
    ///
    /// # Errors
    ///
    /// [`StreamModelError`].
    pub fn new<'a>(
        round_of: &[u32],
        observable_words: usize,
        edges: impl IntoIterator<Item = Edge<'a>>,
        commit: u32,
        buffer: u32,
    ) -> Result<Self, StreamModelError> {
        if observable_words > 1 {
            return Err(StreamModelError::Observables { words: observable_words });
        }
        for (what, size) in [("commit", commit), ("buffer", buffer)] {
            if size == 0 {
                return Err(StreamModelError::Size { what });
            }
        }
        let graph = Graph::new(u32::try_from(round_of.len()).unwrap_or(u32::MAX), observable_words, edges)?;
        let rounds = round_of.iter().max().map_or(0, |last| last.saturating_add(1));
        if u64::from(rounds) > PLACES_MAX {
            return Err(StreamModelError::Uneven { rounds, members: most_of_a_round(round_of) });
        }
        let mut sizes = vec![0u32; rounds as usize];
        let place = |&round: &u32| {
            sizes[round as usize] += 1;
            Place { round, member: sizes[round as usize] - 1 }
        };
        let places: Vec<Place> = round_of.iter().map(place).collect();
        let members = sizes.iter().copied().max().unwrap_or(0);
        if u64::from(rounds) * u64::from(members) > PLACES_MAX {
            return Err(StreamModelError::Uneven { rounds, members });
        }
        let place_of = |node: u32| places[graph.detector_of[node as usize] as usize];
        let distance = |edge: &crate::graph::Ends| {
            if edge.b == graph.boundary() { 0 } else { place_of(edge.a).round.abs_diff(place_of(edge.b).round) }
        };
        let span = graph.edges.iter().map(distance).max().unwrap_or(0).max(1);
        let ring = commit.saturating_add(buffer.saturating_mul(2)).saturating_add(span.saturating_mul(2));
        let mut always: Vec<Place> = graph.always_detectors.iter().map(|&at| places[at as usize]).collect();
        always.sort_unstable_by_key(|place| place.round);
        let mut model = Self {
            commit,
            buffer,
            rounds,
            span,
            slots: ring.min(rounds),
            members,
            halves: Vec::new(),
            twins: Vec::new(),
            half_observables: Vec::new(),
            starts: Vec::new(),
            form_of: Vec::new(),
            always,
            always_observables: graph.always_observables.first().copied().unwrap_or(0),
            always_weight: graph.always_weight,
            scale: graph.scale,
            detectors: round_of.len() as u32,
            numbers: Numbers::ByRound(Vec::new()),
        };
        model.cut(&graph, &places);
        model.numbers = Numbers::new(places);
        Ok(model)
    }

    /// Fills in the forms of the rounds.
    fn cut(&mut self, graph: &Graph, places: &[Place]) {
        let place_of = |node: u32| places[graph.detector_of[node as usize] as usize];
        // Sorted by weight, and such that equal rounds list their edges in the same order.
        let mut edges: Vec<_> = (0..graph.edges())
            .map(|index| {
                let ends = &graph.edges[index as usize];
                let a = place_of(ends.a);
                let b = (ends.b != graph.boundary()).then(|| place_of(ends.b));
                let (a, b) = match b {
                    Some(b) if (b.round, b.member) < (a.round, a.member) => (b, Some(a)),
                    _ => (a, b),
                };
                let observables = graph.observables_of(index).first().copied().unwrap_or(0);
                (a, b, ends.weight.unsigned_abs() as u32, observables)
            })
            .collect();
        edges.sort_by_key(|&(a, b, weight, observables)| {
            let other = b.map(|b| (b.round - a.round, b.member));
            (weight, a.round, a.member, other, observables)
        });
        // For each place the other end of each half-edge.
        let members = self.members as usize;
        let of = |place: Place| place.round as usize * members + place.member as usize;
        let mut degrees = vec![0u32; self.rounds as usize * members];
        let mut next = |end: Place| {
            degrees[of(end)] += 1;
            degrees[of(end)] - 1
        };
        let mut ends = Vec::with_capacity(2 * edges.len());
        for (a, b, weight, observables) in edges {
            let own = next(a);
            let twin = b.map_or(NONE, &mut next);
            ends.push((a, own, Half { to: self.node(a, b), weight }, twin, observables));
            if let Some(b) = b {
                ends.push((b, twin, Half { to: self.node(b, Some(a)), weight }, own, observables));
            }
        }
        ends.sort_by_key(|&(place, own, ..)| (place.round, place.member, own));
        let mut ends = ends.into_iter().peekable();
        let mut known = BTreeMap::new();
        for round in 0..self.rounds {
            let mut form = Form::default();
            for member in 0..self.members {
                form.starts.push(form.halves.len() as u32);
                while let Some((.., half, twin, observables)) =
                    ends.next_if(|(place, ..)| (place.round, place.member) == (round, member))
                {
                    form.halves.push(half);
                    form.twins.push(twin);
                    form.observables.push(observables);
                }
            }
            form.starts.push(form.halves.len() as u32);
            let count = known.len() as u32;
            let index = *known.entry(form.clone()).or_insert(count);
            self.form_of.push(index);
            if index == count {
                let first = self.halves.len() as u32;
                self.starts.extend(form.starts.iter().map(|start| first + start));
                self.halves.append(&mut form.halves);
                self.twins.append(&mut form.twins);
                self.half_observables.append(&mut form.observables);
            }
        }
    }

    /// The node at `to`, or the boundary's of the same slot, counted from the node at `from`.
    fn node(&self, from: Place, to: Option<Place>) -> u32 {
        let node = |round: u32, member: u32| round % self.slots * self.stride() + member;
        let to = to.map_or(node(from.round, self.members), |to| node(to.round, to.member));
        to.wrapping_sub(node(from.round, from.member))
    }

    /// Number of rounds.
    pub const fn rounds(&self) -> u32 {
        self.rounds
    }

    /// Rounds with the same edges count once; rounds at the ring's seam apart.
    pub const fn forms(&self) -> usize {
        self.starts.len() / self.stride() as usize
    }

    /// Integer units for each unit of weight: weights are rounded to even multiples of one unit.
    pub const fn scale(&self) -> f64 {
        self.scale
    }

    /// Bytes on the heap: 8 for each round, or for each detector if they are not numbered by their
    /// rounds; and the forms.
    pub fn bytes(&self) -> usize {
        self.halves.capacity() * size_of::<Half>()
            + 8 * self.half_observables.capacity()
            + 4 * (self.twins.capacity() + self.starts.capacity() + self.form_of.capacity())
            + self.numbers.bytes()
            + self.always.capacity() * size_of::<Place>()
    }

    /// The slot so many rounds behind `slot`; fewer than there are slots.
    const fn slot_after(&self, slot: u32, rounds: u32) -> u32 {
        let after = slot + rounds;
        if after < self.slots { after } else { after - self.slots }
    }

    /// Nodes of a slot: its members, and one for the boundary.
    const fn stride(&self) -> u32 {
        self.members + 1
    }
}

/// The memory of one shot that comes by rounds.
#[derive(Debug)]
pub struct StreamMatcher {
    model: Arc<StreamModel>,
    search: Search,
    /// For each slot the starts of its form.
    starts: Vec<u32>,
    /// The form of each slot's edges.
    form_of: Vec<u32>,
    /// Nodes of defects whose pairs are not final, in order of their rounds.
    defects: VecDeque<u32>,
    /// One bit for each member: fired in this round an odd number of times. Clear between rounds.
    fired: Vec<u64>,
    /// Rounds that have come, and those whose pairs have been looked through.
    next: u32,
    /// The slot of the next round.
    next_slot: u32,
    committed: u32,
    /// Rounds that have come since the search went on.
    unmatched: u32,
    /// Next of the model's `always`.
    always: usize,
    observables: u64,
    units: i64,
    error: Option<MatchError>,
}

impl StreamMatcher {
    /// A matcher for `model`, at the begin of a shot.
    pub fn new(model: Arc<StreamModel>) -> Self {
        let nodes = (model.slots * model.stride()) as usize;
        let mut matcher = Self {
            search: Search::by_rounds(nodes),
            starts: vec![0; nodes],
            form_of: vec![NONE; model.slots as usize],
            defects: VecDeque::with_capacity(nodes),
            fired: vec![0; model.members.div_ceil(64) as usize],
            next: 0,
            next_slot: 0,
            committed: 0,
            unmatched: 0,
            always: 0,
            observables: 0,
            units: 0,
            error: None,
            model,
        };
        matcher.begin();
        matcher
    }

    /// The model.
    pub fn model(&self) -> &StreamModel {
        &self.model
    }

    /// Bytes on the heap, without the shared model.
    pub fn bytes(&self) -> usize {
        self.search.bytes()
            + 8 * self.fired.capacity()
            + 4 * (self.starts.capacity() + self.form_of.capacity() + self.defects.capacity())
    }

    /// Rounds that have come.
    pub const fn rounds(&self) -> u32 {
        self.next
    }

    /// Begins a shot; what was left of the one before is forgotten.
    pub fn begin(&mut self) {
        let Self { model, search, .. } = self;
        search.restart(model.stride() as usize);
        self.observables = model.always_observables;
        self.units = model.always_weight;
        (self.next, self.next_slot, self.committed, self.unmatched, self.always) = (0, 0, 0, 0, 0);
        self.error = None;
        self.fired.fill(0);
        self.defects.clear();
        for round in 0..self.model.span.min(self.model.rounds) {
            self.await_round(round, round);
        }
    }

    /// Takes the fired detectors of `round` (one that is listed twice has not fired). Matches them
    /// with the rounds before if `commit` rounds have come since the last time, else leaves that to
    /// [`Self::advance`] or [`Self::finish`].
    ///
    /// # Errors
    ///
    /// [`StreamError`]. A round out of order changes nothing. Otherwise the shot has no answer:
    /// later rounds are counted only.
    pub fn round(&mut self, round: u32, fired: impl IntoIterator<Item = u32>) -> Result<(), StreamError> {
        if round != self.next || round == self.model.rounds {
            return Err(StreamError::Order { found: round, next: self.next });
        }
        self.next += 1;
        if let Some(error) = self.error {
            return Err(error.into());
        }
        if let Err(detector) = self.collect(round, fired) {
            self.error = Some(MatchError::Detector { detector, detectors: self.model.detectors });
            return Err(StreamError::Detector { detector, round });
        }
        self.open_round(round)?;
        self.unmatched += 1;
        if self.unmatched >= self.model.commit { self.advance() } else { Ok(()) }
    }

    /// Matches the rounds that have come since the last time: for when the next one is not there
    /// yet. Less is left to do after the last round then.
    ///
    /// # Errors
    ///
    /// [`StreamError::Match`]: the shot has no answer.
    pub fn advance(&mut self) -> Result<(), StreamError> {
        if let Some(error) = self.error {
            return Err(error.into());
        }
        if self.unmatched == 0 {
            return Ok(());
        }
        self.unmatched = 0;
        let Self { model, search, starts, .. } = self;
        let StreamModel { halves, twins, half_observables: observables, .. } = &**model;
        let over = Adjacency { starts, halves, twins, observables, counts_from: u32::MAX, is_by_weight: true };
        if let Err(failure) = search.resume(over) {
            return self.fail(failure);
        }
        if self.next - self.committed >= self.model.commit {
            self.committed = self.next;
            self.commit();
        }
        Ok(())
    }

    /// Ends the shot: XORs the observables of its matching into the first of `observables` and
    /// returns its weight. The next shot needs [`Self::begin`].
    ///
    /// # Errors
    ///
    /// [`StreamError`]; `observables` is then unchanged.
    pub fn finish(&mut self, observables: &mut [u64]) -> Result<Matched, StreamError> {
        if self.next < self.model.rounds {
            return Err(StreamError::Short { found: self.next, rounds: self.model.rounds });
        }
        self.advance()?;
        let mut flipped = self.observables;
        self.search.pairs(|pair| flipped ^= pair.observables);
        let units = self.units + self.search.weight();
        if let Some(word) = observables.first_mut() {
            *word ^= flipped;
        }
        Ok(Matched { weight: units as f64 / self.model.scale, units })
    }

    fn fail(&mut self, failure: Failure) -> Result<(), StreamError> {
        let error = match failure {
            Failure::Unmatched(node) => MatchError::Unmatchable { detector: self.detector(node) },
            Failure::Declined => MatchError::Declined,
        };
        self.error = Some(error);
        Err(error.into())
    }

    /// The detector at `node` of an open round; cold.
    fn detector(&self, node: u32) -> u32 {
        let Self { model, next, next_slot, .. } = self;
        let behind = (next_slot + model.slots - 1).saturating_sub(node / model.stride()) % model.slots;
        let round = next.saturating_sub(1 + behind);
        model.numbers.detector(round, node % model.stride()).unwrap_or(NONE)
    }

    /// Notes the members of `round` that fired.
    fn collect(&mut self, round: u32, fired: impl IntoIterator<Item = u32>) -> Result<(), u32> {
        let Self { model, fired: bits, always, .. } = self;
        let mut flip = |member: u32| bits[member as usize / 64] ^= 1 << (member % 64);
        for detector in fired {
            flip(model.numbers.member(round, detector).ok_or(detector)?);
        }
        while let Some(place) = model.always.get(*always).filter(|place| place.round == round) {
            flip(place.member);
            *always += 1;
        }
        Ok(())
    }

    /// Opens `round`, adds its defects, and makes room for the rounds after it.
    fn open_round(&mut self, round: u32) -> Result<(), StreamError> {
        let (span, rounds) = (self.model.span, self.model.rounds);
        let slot = self.next_slot;
        self.next_slot = self.model.slot_after(slot, 1);
        let nodes = self.nodes(slot);
        let first = nodes.start;
        let Self { search, fired, defects, .. } = self;
        search.set_presence(nodes, Presence::Open);
        for (word, bits) in (0..).zip(fired.iter_mut()) {
            for member in ones_of(word, std::mem::take(bits)) {
                search.add_defect(first + member);
                defects.push_back(first + member);
            }
        }
        if rounds - round <= span {
            return Ok(());
        }
        self.await_round(round + span, self.model.slot_after(slot, span));
        // Between the oldest open round and the next one lie as many forgotten rounds as an edge
        // may span.
        if self.model.slots < rounds { self.forget(self.model.slot_after(slot, 2 * span)) } else { Ok(()) }
    }

    fn nodes(&self, slot: u32) -> Range<u32> {
        let first = slot * self.model.stride();
        first..first + self.model.members
    }

    /// Lets regions grow up to `round`, which has not come, and notes in `slot` where its edges are.
    fn await_round(&mut self, round: u32, slot: u32) {
        let form = self.model.form_of[round as usize];
        if std::mem::replace(&mut self.form_of[slot as usize], form) != form {
            let stride = self.model.stride() as usize;
            let [slot, form] = [slot, form].map(|index| index as usize * stride..(index as usize + 1) * stride);
            self.starts[slot].copy_from_slice(&self.model.starts[form]);
        }
        self.search.set_presence(self.nodes(slot), Presence::Future);
    }

    /// Takes what is left of the round in `slot` out.
    fn forget(&mut self, slot: u32) -> Result<(), StreamError> {
        let nodes = self.nodes(slot);
        let Self { model, search, observables, units, unmatched, .. } = self;
        while let Some((node, region)) = search.first_reached(nodes.clone()) {
            let mut take = |pair: Pair| *observables ^= pair.observables;
            if let Some(weight) = search.take_pair(region, &mut take) {
                *units += weight;
            } else if let Some(weight) = search.take_waiting(region, &nodes, &mut take) {
                *units += weight;
                // The defect that began anew has a partner before the next round is forgotten.
                *unmatched = model.commit;
            } else {
                return self.fail(Failure::Unmatched(node));
            }
        }
        search.set_presence(nodes, Presence::Past);
        Ok(())
    }

    /// Makes the pairs final whose defects are all old enough. Each is found by its newest defect.
    fn commit(&mut self) {
        let Self { model, search, defects, observables, units, next, next_slot, .. } = self;
        if *next <= model.buffer {
            return;
        }
        // On the ring, the nodes of the last `buffer` rounds lie from `first` on.
        let (young, nodes) = (model.buffer * model.stride(), model.slots * model.stride());
        let first = (*next_slot * model.stride() + nodes - young) % nodes;
        let is_old = |node: u32| (if node < first { node + nodes - first } else { node - first }) >= young;
        while let Some(node) = defects.pop_front_if(|&mut node| is_old(node)) {
            if let Some(region) = search.region_of_defect(node)
                && search.all_defects(region, is_old)
            {
                let weight = search.take_pair(region, &mut |pair| *observables ^= pair.observables);
                *units += weight.unwrap_or(0);
            }
        }
    }
}
