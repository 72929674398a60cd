//! Shots that come round by round: the same answers as whole shots where the buffer covers the
//! shot, as few logical errors where it covers the code's distance, and what is refused.
use std::sync::Arc;

use pinwheel_code::code::graph::Graph;
use pinwheel_code::code::{Model, Rounds, Sampler, bundled_named, ones};
use pinwheel_matching::{
    BlockModel, Edge, MatchError, Matched, Matcher, MatchingModel, StreamError, StreamMatcher, StreamModel,
    StreamModelError,
};

use crate::oracle::Draws;

/// A shot in one go, by rounds, each followed by a call of `advance` where `eager` says so.
fn by_rounds(
    matcher: &mut StreamMatcher,
    rounds: &[Vec<u32>],
    observables: &mut [u64],
    mut eager: impl FnMut() -> bool,
) -> Result<Matched, StreamError> {
    matcher.begin();
    for (round, fired) in (0..).zip(rounds) {
        matcher.round(round, fired.iter().copied())?;
        if eager() {
            matcher.advance()?;
        }
    }
    matcher.finish(observables)
}

pub(crate) struct Layers {
    pub(crate) round_of: Vec<u32>,
    pub(crate) edges: Vec<(u32, Option<u32>, f64, u64)>,
}

/// Random layers of 1 to 4 detectors; edges within a layer, to the next ones, to a boundary.
pub(crate) fn layers(draws: &mut Draws) -> Layers {
    let rounds = 1 + draws.below(14) as u32;
    let width = 1 + draws.below(4);
    let is_even = draws.below(2) == 0;
    let mut round_of = Vec::new();
    for round in 0..rounds {
        let members = if is_even { width } else { 1 + draws.below(width) };
        round_of.extend((0..members).map(|_| round));
    }
    let detectors = round_of.len() as u64;
    let heaviest = [2, 40, 1_000_000][draws.below(3) as usize];
    let (negative, boundary) = (draws.below(4) == 0, draws.below(4));
    let reach = 1 + draws.below(3 * width);
    let mut edges = Vec::new();
    for _ in 0..draws.below(6 * detectors) {
        let a = draws.below(detectors) as u32;
        let b = a + draws.below(reach + 1) as u32;
        let b = if draws.below(8) < boundary { None } else { Some(b) };
        if b.is_some_and(|b| b == a || u64::from(b) >= detectors) {
            continue;
        }
        let sign = if negative && draws.below(4) == 0 { -1.0 } else { 1.0 };
        edges.push((a, b, sign * draws.below(heaviest + 1) as f64 / 1024.0, draws.below(16)));
    }
    // Detectors need not be numbered by their rounds.
    if draws.below(4) == 0 {
        let turned = |at: u32| detectors as u32 - 1 - at;
        round_of.reverse();
        edges.iter_mut().for_each(|edge| (edge.0, edge.1) = (turned(edge.0), edge.1.map(turned)));
    }
    Layers { round_of, edges }
}

impl Layers {
    pub(crate) fn edges(&self) -> impl Iterator<Item = Edge<'_>> {
        self.edges.iter().map(|edge| Edge {
            a: edge.0,
            b: edge.1,
            weight: edge.2,
            observables: std::slice::from_ref(&edge.3),
        })
    }

    fn stream(&self, commit: u32, buffer: u32) -> StreamMatcher {
        StreamMatcher::new(Arc::new(StreamModel::new(&self.round_of, 1, self.edges(), commit, buffer).unwrap()))
    }

    pub(crate) fn rounds(&self, fired: &[u32]) -> Vec<Vec<u32>> {
        let rounds = self.round_of.iter().max().map_or(0, |last| last + 1);
        let of = |round| fired.iter().copied().filter(move |&at| self.round_of[at as usize] == round).collect();
        (0..rounds).map(of).collect()
    }
}

#[test]
fn a_buffer_that_covers_the_shot_gives_the_lightest_matching() {
    let (graphs, mut answered) = (crate::oracle::graphs(10_000), 0);
    for seed in 0..graphs {
        let mut draws = Draws(seed);
        let layers = layers(&mut draws);
        let detectors = layers.round_of.len() as u32;
        let whole = Arc::new(MatchingModel::with_tables(detectors, 1, layers.edges(), 0).unwrap());
        let mut whole = Matcher::new(whole);
        let mut stream = layers.stream(1 + draws.below(4) as u32, 14);
        for _ in 0..6 {
            let density = 1 + draws.below(8);
            let fired: Vec<u32> = (0..detectors).filter(|_| draws.below(8) < density).collect();
            let (mut expected, mut found) = ([0], [0]);
            let exact = whole.decode(fired.iter().copied(), &mut expected);
            let answer = by_rounds(&mut stream, &layers.rounds(&fired), &mut found, || draws.below(2) == 0);
            match (exact, answer) {
                (Ok(exact), Ok(answer)) => {
                    assert_eq!(answer.units, exact.units, "seed {seed}: fired {fired:?} of {:?}", layers.edges);
                    answered += 1;
                }
                (Err(MatchError::Unmatchable { .. }), Err(StreamError::Match(MatchError::Unmatchable { .. }))) => {}
                (exact, answer) => panic!("seed {seed}: {answer:?}, expected {exact:?}"),
            }
        }
    }
    assert!(answered > 2 * graphs, "too few shots can be matched: {answered}");
}

/// With a short buffer the answer is some matching: its edges explain the shot, weigh no more than
/// the answer says, and the answer is not lighter than the lightest one.
#[test]
fn with_short_buffers_each_answer_is_a_matching() {
    let graphs = crate::oracle::graphs(6_000);
    let (mut answered, mut heavier) = (0, 0);
    for seed in 0..graphs {
        let mut draws = Draws(seed);
        let mut layers = layers(&mut draws);
        // One observable for each edge: an answer says which edges it used an odd number of times.
        layers.edges.truncate(64);
        (0..).zip(&mut layers.edges).for_each(|(index, edge)| edge.3 = 1 << index);
        let detectors = layers.round_of.len() as u32;
        let whole = Arc::new(MatchingModel::with_tables(detectors, 1, layers.edges(), 0).unwrap());
        let mut whole = Matcher::new(whole);
        let mut stream = layers.stream(1 + draws.below(3) as u32, 1 + draws.below(2) as u32);
        for _ in 0..6 {
            let fired: Vec<u32> = (0..detectors).filter(|_| draws.below(4) == 0).collect();
            let mut found = [0];
            let exact = whole.decode(fired.iter().copied(), &mut [0]);
            let answer = by_rounds(&mut stream, &layers.rounds(&fired), &mut found, || draws.below(2) == 0);
            let (Ok(exact), Ok(answer)) = (exact, answer) else { continue };
            let mut explained = vec![false; detectors as usize];
            let mut weight = 0.0;
            for edge in ones(&found).map(|index| &layers.edges[index as usize]) {
                std::iter::once(edge.0).chain(edge.1).for_each(|end| explained[end as usize] ^= true);
                weight += edge.2;
            }
            let explained: Vec<u32> = (0..detectors).filter(|&at| explained[at as usize]).collect();
            assert_eq!(explained, fired, "seed {seed}: {:?}", layers.edges);
            assert!(answer.units >= exact.units, "seed {seed}: lighter than the lightest");
            assert!(weight <= answer.weight + 1e-9, "seed {seed}: its edges weigh {weight}, not {answer:?}");
            heavier += u64::from(answer.units > exact.units);
            answered += 1;
        }
    }
    assert!(
        answered > graphs * 5 / 6 && heavier > graphs / 120 && heavier < answered / 4,
        "{heavier} of {answered} are heavier"
    );
}

pub(crate) struct Prepared {
    pub(crate) model: Model,
    graph: Graph,
    pub(crate) rounds: Rounds,
}

pub(crate) fn prepared(name: &str) -> Prepared {
    let model = bundled_named(name).unwrap();
    Prepared { graph: Graph::new(&model).unwrap(), rounds: Rounds::new(&model).unwrap(), model }
}

impl Prepared {
    pub(crate) fn edges(&self) -> impl Iterator<Item = Edge<'_>> {
        let edges = self.graph.edges.iter();
        edges.map(|edge| Edge { a: edge.a, b: edge.b, weight: edge.weight, observables: &edge.observables })
    }

    fn round_of(&self) -> Vec<u32> {
        (0..self.model.detectors).map(|detector| self.rounds.of(detector)).collect()
    }

    fn stream(&self, commit: u32, buffer: u32) -> StreamModel {
        StreamModel::new(&self.round_of(), 1, self.edges(), commit, buffer).unwrap()
    }

    pub(crate) fn blocks(&self, block_rounds: u32) -> BlockModel {
        BlockModel::new(&self.round_of(), 1, self.edges(), block_rounds).unwrap()
    }

    pub(crate) fn whole(&self) -> Matcher {
        Matcher::new(Arc::new(MatchingModel::new(self.model.detectors, 1, self.edges()).unwrap()))
    }
}

/// Logical errors by rounds and as a whole, and the shots that only one of them decoded wrongly.
fn logical_errors(name: &str, distance: u32, shots: u32, seed: u64) -> [u32; 4] {
    let prepared = prepared(name);
    let mut stream = StreamMatcher::new(Arc::new(prepared.stream(distance, distance)));
    let mut whole = prepared.whole();
    let mut sampler = Sampler::new(&prepared.model, seed);
    let mut syndrome = vec![0; prepared.model.detector_words()];
    let mut counts = [0; 4];
    let mut draws = Draws(seed);
    for _ in 0..shots {
        let (mut truth, mut expected, mut found) = ([0], [0], [0]);
        sampler.draw(&mut syndrome, &mut truth);
        let mut rounds = vec![Vec::new(); prepared.rounds.count() as usize];
        ones(&syndrome).for_each(|detector| rounds[prepared.rounds.of(detector) as usize].push(detector));
        by_rounds(&mut stream, &rounds, &mut found, || draws.below(2) == 0).unwrap();
        whole.decode(ones(&syndrome), &mut expected).unwrap();
        let (by_rounds, whole) = (found != truth, expected != truth);
        for (count, is) in counts.iter_mut().zip([by_rounds, whole, by_rounds && !whole, whole && !by_rounds]) {
            *count += u32::from(is);
        }
    }
    counts
}

/// Of the shots on which the two differ, as many are wrong by rounds as not: within four deviations.
fn assert_as_few(name: &str, distance: u32, shots: u32, seed: u64) -> String {
    let counts @ [_, whole, only_rounds, only_whole] = logical_errors(name, distance, shots, seed);
    let differ = f64::from(only_rounds + only_whole).max(1.0);
    let sigmas = (f64::from(only_rounds) - f64::from(only_whole)) / differ.sqrt();
    let summary = format!("{name}: {shots} shots, errors [by rounds, whole, only rounds, only whole] {counts:?}");
    assert!(sigmas <= 4.0 && whole > 50, "{summary}: {sigmas} deviations");
    summary
}

#[test]
fn with_commit_and_buffer_of_the_distance_shots_err_as_seldom_as_whole_ones() {
    assert_as_few("surface_d3@r30", 3, 8_000, 3);
    assert_as_few("surface_d5@r50", 5, 2_000, 3);
}

/// 10⁵ shots; the figures go to standard error.
#[test]
#[ignore = "minutes"]
fn a_campaign_of_rounds_errs_as_seldom_as_whole_shots() {
    for (name, distance, shots) in
        [("surface_d3@r50", 3, 100_000), ("surface_d5@r50", 5, 100_000), ("surface_d5@r500", 5, 100_000)]
    {
        let summary = assert_as_few(name, distance, shots, 11);
        let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("{summary}\n").as_bytes());
    }
}

#[test]
fn memory_does_not_grow_with_the_rounds() {
    let [short, long] = ["surface_d5@r50", "surface_d5@r500"].map(|name| prepared(name).stream(5, 5));
    assert_eq!(short.forms(), long.forms());
    let [short, long] = [short, long].map(|model| StreamMatcher::new(Arc::new(model)));
    assert_eq!(short.bytes(), long.bytes());
    assert!(long.bytes() < 140_000, "{} bytes", long.bytes());
}

#[test]
fn rounds_out_of_order_and_strange_detectors_are_refused() {
    let edges = || [(0, Some(1)), (1, Some(2)), (0, None)].map(|(a, b)| Edge { a, b, weight: 1.0, observables: &[1] });
    let model = StreamModel::new(&[0, 1, 2], 1, edges(), 1, 1).unwrap();
    let mut matcher = StreamMatcher::new(Arc::new(model));
    matcher.round(0, [0]).unwrap();
    assert_eq!(matcher.round(0, [0]), Err(StreamError::Order { found: 0, next: 1 }));
    assert_eq!(matcher.round(2, []), Err(StreamError::Order { found: 2, next: 1 }));
    assert_eq!(matcher.finish(&mut [0]), Err(StreamError::Short { found: 1, rounds: 3 }));
    // Refused rounds change nothing.
    matcher.round(1, [1]).unwrap();
    matcher.round(2, []).unwrap();
    let mut found = [0];
    assert_eq!((matcher.finish(&mut found).unwrap().weight, found), (1.0, [1]));
    assert_eq!(matcher.round(3, []), Err(StreamError::Order { found: 3, next: 3 }));
    // A strange detector ends the shot, and only that.
    matcher.begin();
    assert_eq!(matcher.round(0, [2]), Err(StreamError::Detector { detector: 2, round: 0 }));
    assert!(matches!(matcher.round(1, []), Err(StreamError::Match(_))));
    matcher.begin();
    for (round, fired) in [(0, 0), (1, 1), (2, 2)] {
        matcher.round(round, [fired]).unwrap();
    }
    assert_eq!(matcher.finish(&mut [0]).unwrap().weight, 2.0);
    let refused = |words, commit, buffer| StreamModel::new(&[0, 1, 2], words, edges(), commit, buffer).unwrap_err();
    assert_eq!(refused(2, 1, 1), StreamModelError::Observables { words: 2 });
    assert_eq!(refused(1, 0, 1), StreamModelError::Size { what: "commit" });
    assert_eq!(refused(1, 1, 0), StreamModelError::Size { what: "buffer" });
    // A hundred thousand detectors at one time, and as many at other times.
    let round_of: Vec<u32> = (0..100_000).chain([0; 100_000]).collect();
    let uneven = |said: StreamModelError| said == StreamModelError::Uneven { rounds: 100_000, members: 100_001 };
    assert!(uneven(StreamModel::new(&round_of, 1, [], 1, 1).map(drop).unwrap_err()));
    assert!(uneven(BlockModel::new(&round_of, 1, [], 1).map(drop).unwrap_err()));
    // So many rounds are refused before anything is made for them.
    for last in [1 << 31, u32::MAX] {
        let many = StreamModelError::Uneven { rounds: last.saturating_add(1), members: 2 };
        assert_eq!(StreamModel::new(&[3, last, 3], 1, [], 1, 1).map(drop).unwrap_err(), many);
        assert_eq!(BlockModel::new(&[3, last, 3], 1, [], 1).map(drop).unwrap_err(), many);
    }
    let said = matcher.round(5, []).unwrap_err().to_string();
    assert_eq!(said, "round 5 was given, but round 3 is next; give each round once, in order");
}

#[test]
fn a_shot_without_a_partner_gives_its_error_and_the_next_is_answered() {
    let edges = [Edge { a: 0, b: Some(1), weight: 1.0, observables: &[] }];
    let mut matcher = StreamMatcher::new(Arc::new(StreamModel::new(&[0, 1], 1, edges, 1, 1).unwrap()));
    matcher.round(0, [0]).unwrap();
    let unmatchable = Err(StreamError::Match(MatchError::Unmatchable { detector: 0 }));
    assert_eq!(matcher.round(1, []), unmatchable);
    assert_eq!(matcher.finish(&mut [0]).map(|_| ()), unmatchable);
    matcher.begin();
    matcher.round(0, [0]).unwrap();
    matcher.round(1, [1]).unwrap();
    assert_eq!(matcher.finish(&mut [0]).unwrap().units, (matcher.model().scale() as i64));
}
