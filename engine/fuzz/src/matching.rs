//! Checks of the matching for inputs that are any bytes. Each panics if something does not hold. The tests of
//! `pinwheel-matching` compile this file, too.

use std::sync::Arc;

use pinwheel_matching::{
    BlockFusion, BlockMatcher, BlockModel, CorrelatedMatcher, CorrelatedModel, Correlation, Edge, GraphError,
    MatchError, Matched, Matcher, MatchingModel, StreamError, StreamMatcher, StreamModel, TABLE_BYTES_MAX, UnionFind,
};

/// Reads numbers from bytes; 0 behind their end.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    fn word(&mut self) -> u64 {
        (0..8).fold(0, |word, _| word << 8 | u64::from(self.byte()))
    }

    /// A weight as it is written, of any bits, or a small number.
    fn weight(&mut self) -> f64 {
        let byte = self.byte();
        if byte == 255 { f64::from_bits(self.word()) } else { (f64::from(byte) - 60.0) / 8.0 }
    }
}

/// An edge that the caller owns.
#[derive(Debug, Clone)]
struct OwnEdge {
    a: u32,
    b: Option<u32>,
    weight: f64,
    observables: Vec<u64>,
}

impl OwnEdge {
    fn read(bytes: &mut Bytes<'_>, detectors: u32, is_any: bool) -> Self {
        let mut end = || {
            let byte = u32::from(bytes.byte());
            if is_any { byte } else { byte % (detectors + 3) }
        };
        let (a, b) = (end(), end());
        let a = if is_any { a } else { a % detectors };
        let weight = bytes.weight();
        let weight = if is_any || weight.is_finite() { weight } else { 1.0 };
        Self { a, b: (b < detectors || is_any && b < 250).then_some(b), weight, observables: vec![bytes.word()] }
    }

    fn given(&self) -> Edge<'_> {
        Edge { a: self.a, b: self.b, weight: self.weight, observables: &self.observables }
    }
}

fn model(detectors: u32, edges: &[OwnEdge], bytes: usize) -> Result<MatchingModel, GraphError> {
    MatchingModel::with_tables(detectors, 1, edges.iter().map(OwnEdge::given), bytes)
}

/// A model that is one, with up to 40 detectors and 120 edges; a matcher with tables and one without.
fn good(bytes: &mut Bytes<'_>) -> (u32, Vec<OwnEdge>, [Matcher; 2]) {
    let detectors = 1 + u32::from(bytes.byte() % 40);
    let count = bytes.byte() % 120;
    let edges = (0..count).map(|_| OwnEdge::read(bytes, detectors, false));
    let edges: Vec<OwnEdge> = edges.filter(|edge| edge.b != Some(edge.a)).collect();
    let matchers =
        [TABLE_BYTES_MAX, 0].map(|bytes| model(detectors, &edges, bytes).expect("it joins its own detectors"));
    (detectors, edges, matchers.map(|model| Matcher::new(Arc::new(model))))
}

/// Detectors in any order, some beyond the last one, some listed again.
fn fired(bytes: &mut Bytes<'_>, detectors: u32) -> Vec<u32> {
    let count = bytes.byte() % 60;
    (0..count).map(|_| u32::from(bytes.byte())).map(|at| if at < 250 { at % detectors } else { at }).collect()
}

/// The edges of an answer, which `each_edge` lists, explain the shot.
fn check(
    each_edge: impl FnOnce(&mut dyn FnMut(u32)),
    edges: &[OwnEdge],
    detectors: u32,
    fired: &[u32],
    answer: Result<Matched, MatchError>,
    observables: u64,
) {
    let mut odd = vec![false; detectors as usize];
    // After an error they are of no answer in particular.
    each_edge(&mut |edge| {
        let edge = &edges[edge as usize];
        std::iter::once(edge.a).chain(edge.b).for_each(|end| odd[end as usize] ^= true);
    });
    match answer {
        Ok(_) => {
            fired.iter().for_each(|&at| odd[at as usize] ^= true);
            assert!(!odd.contains(&true), "detectors are left: {odd:?}");
        }
        Err(MatchError::Unmatchable { detector }) => {
            assert!(detector < detectors && observables == 0, "names detector {detector} of {detectors}");
        }
        Err(MatchError::Detector { .. }) => assert!(fired.iter().any(|&at| at >= detectors)),
        Err(said) => panic!("{said}"),
    }
}

/// Any edges: a model, or a sentence.
pub fn any_model(bytes: &[u8]) {
    let mut bytes = Bytes(bytes);
    let detectors = u32::from(bytes.byte());
    let mut edges = Vec::new();
    while !bytes.is_empty() && edges.len() < 200 {
        edges.push(OwnEdge::read(&mut bytes, detectors.max(1), true));
    }
    match model(detectors, &edges, TABLE_BYTES_MAX) {
        Err(said) => assert!(!said.to_string().is_empty()),
        Ok(model) => {
            let mut matcher = Matcher::new(Arc::new(model));
            let shot: Vec<u32> = (0..detectors).filter(|at| at % 3 == 0).collect();
            let mut observables = [0];
            let answer = matcher.decode(shot.iter().copied(), &mut observables);
            check(|take| matcher.edges(take), &edges, detectors, &shot, answer, observables[0]);
        }
    }
}

/// Any shots: a matcher with tables and one without agree, and each shot starts from nothing. Union-find
/// answers where they do, and is never lighter.
pub fn any_shots(bytes: &[u8]) {
    let mut bytes = Bytes(bytes);
    let (detectors, edges, mut matchers) = good(&mut bytes);
    let same = model(detectors, &edges, 0).expect("it joins its own detectors");
    let mut union_find = UnionFind::new(Arc::new(same));
    while !bytes.is_empty() {
        let shot = fired(&mut bytes, detectors);
        let answers = matchers.each_mut().map(|matcher| {
            let mut observables = [0];
            let answer = matcher.decode(shot.iter().copied(), &mut observables);
            check(|take| matcher.edges(take), &edges, detectors, &shot, answer, observables[0]);
            answer.ok().map(|answer| answer.units)
        });
        assert_eq!(answers[0], answers[1], "with and without tables");
        let mut observables = [0];
        let answer = union_find.decode(shot.iter().copied(), &mut observables);
        check(|take| union_find.edges(take), &edges, detectors, &shot, answer, observables[0]);
        let units = answer.ok().map(|answer| answer.units);
        assert!(units.is_some() == answers[0].is_some() && units >= answers[0], "{units:?}, least {answers:?}");
    }
}

/// Any weights for one shot, and correlations: both matchers agree, and the weights are undone.
pub fn any_weights(bytes: &[u8]) {
    let mut bytes = Bytes(bytes);
    let (detectors, edges, mut matchers) = good(&mut bytes);
    let count = bytes.byte();
    let correlation = |bytes: &mut Bytes<'_>| Correlation {
        edge: u32::from(bytes.byte()),
        other: u32::from(bytes.byte()),
        weight: bytes.weight().abs(),
    };
    let correlations: Vec<Correlation> = (0..count).map(|_| correlation(&mut bytes)).collect();
    let mut correlated = [TABLE_BYTES_MAX, 0].map(|tables| {
        let model = Arc::new(model(detectors, &edges, tables).expect("it joins its own detectors"));
        CorrelatedModel::new(model, correlations.iter().copied())
            .ok()
            .map(|model| CorrelatedMatcher::new(Arc::new(model)))
    });
    while !bytes.is_empty() {
        let shot = fired(&mut bytes, detectors);
        let count = bytes.byte() % 40;
        let weights: Vec<(u32, f64)> = (0..count).map(|_| (u32::from(bytes.byte()), bytes.weight())).collect();
        let answers = matchers.each_mut().map(|matcher| {
            let before = matcher.decode(shot.iter().copied(), &mut [0]).ok().map(|answer| answer.units);
            let mut observables = [0];
            let answer = matcher.decode_weighted(shot.iter().copied(), weights.iter().copied(), &mut observables);
            match answer {
                Err(MatchError::Edge { edge, edges }) => {
                    assert!(edge >= edges);
                    matcher.edges(|_| {});
                }
                Err(MatchError::Weight { weight, .. }) => {
                    assert!(!weight.is_finite());
                    matcher.edges(|_| {});
                }
                _ => check(|take| matcher.edges(take), &edges, detectors, &shot, answer, observables[0]),
            }
            let after = matcher.decode(shot.iter().copied(), &mut [0]).ok().map(|answer| answer.units);
            assert_eq!(before, after, "the weights are undone");
            answer.ok().map(|answer| answer.units)
        });
        assert_eq!(answers[0], answers[1], "with and without tables");
        // Which edges the first of two matchings has may differ: what must hold is that both answer.
        let answered = correlated
            .each_mut()
            .map(|matcher| matcher.as_mut().map(|matcher| matcher.decode(shot.iter().copied(), &mut [0]).is_ok()));
        assert_eq!(answered[0], answered[1], "with and without tables");
    }
}

/// Rounds in any order, with any detectors: refused or taken. Shots whose rounds all came in order
/// weigh no less than as a whole, and the same if the buffer covers the shot.
pub fn any_rounds(bytes: &[u8]) {
    let mut bytes = Bytes(bytes);
    let (detectors, edges, [mut whole, _]) = good(&mut bytes);
    let rounds = u32::from(bytes.byte() % 12) + 1;
    let round_of: Vec<u32> = (0..detectors).map(|_| u32::from(bytes.byte()) % rounds).collect();
    let (commit, buffer) = (u32::from(bytes.byte() % 4), u32::from(bytes.byte() % 16));
    let model = StreamModel::new(&round_of, 1, edges.iter().map(OwnEdge::given), commit, buffer);
    let Ok(model) = model else {
        assert!(commit == 0 || buffer == 0);
        return;
    };
    let mut stream = StreamMatcher::new(Arc::new(model));
    let rounds = stream.model().rounds();
    let model =
        BlockModel::new(&round_of, 1, edges.iter().map(OwnEdge::given), commit + buffer).expect("as the stream");
    let model = Arc::new(model);
    let block = |index| BlockMatcher::new(Arc::clone(&model), index);
    let mut blocks: Vec<BlockMatcher> = (0..model.blocks()).map(block).collect();
    let mut fusion = BlockFusion::new(Arc::clone(&model));
    while !bytes.is_empty() {
        let shot = fired(&mut bytes, detectors);
        stream.begin();
        let mut is_refused = false;
        for round in 0..rounds {
            let of_round = |at: &&u32| round_of.get(**at as usize).is_none_or(|of| *of == round);
            let given = if bytes.byte() == 255 { u32::from(bytes.byte()) } else { round };
            let answer = stream.round(given, shot.iter().filter(of_round).copied());
            match answer {
                Err(StreamError::Order { found, next }) => {
                    assert!((found, next) == (given, round) && given != round);
                    is_refused = true;
                    break;
                }
                Err(StreamError::Detector { detector, .. }) => assert!(detector >= detectors),
                _ => {}
            }
            if bytes.byte() % 2 == 0 {
                let _ = stream.advance();
            }
        }
        let mut observables = [0];
        let answer = stream.finish(&mut observables);
        let exact = whole.decode(shot.iter().copied(), &mut [0]);
        for block in &mut blocks {
            let (round_of, shot) = (&round_of, &shot);
            block.decode(|round| {
                let of_round = move |at: &u32| round_of.get(*at as usize).map_or(round == 0, |of| *of == round);
                shot.iter().copied().filter(of_round)
            });
            fusion.take(block);
        }
        let fused = fusion.finish(&mut [0]);
        assert_eq!(fused.ok().map(|fused| fused.units), exact.as_ref().ok().map(|exact| exact.units), "in blocks");
        match (answer, exact) {
            (Err(StreamError::Short { .. }), _) => assert!(is_refused),
            (Ok(answer), Ok(exact)) => {
                assert!(answer.units >= exact.units, "lighter than the lightest");
                assert!(buffer < rounds || answer.units == exact.units, "the buffer covers the shot");
            }
            (Ok(_), Err(said)) => panic!("answered, but {said}"),
            (Err(said), exact) => assert!(buffer < rounds || exact.is_err(), "{said}"),
        }
    }
}
