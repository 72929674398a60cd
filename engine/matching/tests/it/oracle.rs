//! Oracle: every answer against all matchings of up to 12 defects, on random graphs.
//!
//! `PINWHEEL_GRAPHS` sets how many graphs, `PINWHEEL_GRAPHS_SEED` the first one's seed; a failure prints
//! the seed of its graph.
use std::sync::Arc;

use pinwheel_matching::{Edge, MatchError, Matched, Matcher, MatchingModel, TABLE_BYTES_MAX};

const DEFECTS_MAX: usize = 12;
const FAR: i64 = i64::MAX / 4;

/// Draws that a seed repeats.
pub(crate) struct Draws(pub(crate) u64);

impl Draws {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ (word >> 31)) % end
    }
}

#[derive(Debug, Clone)]
pub(crate) struct OwnEdge {
    pub(crate) a: u32,
    pub(crate) b: Option<u32>,
    pub(crate) weight: i64,
    pub(crate) observables: Vec<u64>,
}

#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) detectors: u32,
    pub(crate) words: usize,
    /// Weights are drawn up to this.
    pub(crate) heaviest: u64,
    pub(crate) edges: Vec<OwnEdge>,
}

/// A random graph: a grid with gaps, or edges anywhere; some without boundary, with parallel
/// edges, zero and negative weights, detectors without edges.
pub(crate) fn case(draws: &mut Draws) -> Case {
    let detectors = 1 + draws.below(24) as u32;
    let words = [1, 1, 0, 3][draws.below(4) as usize];
    // The last as large as weights of 1 in 1024 may be with units as fine as for others.
    let heaviest = [1, 2, 5, 40, 1_000_000][draws.below(5) as usize];
    let negative = draws.below(4) == 0;
    let boundary = draws.below(4);
    let grid = draws.below(2) == 0;
    let mut edges = Vec::new();
    for _ in 0..draws.below(4 * u64::from(detectors)) {
        let a = draws.below(u64::from(detectors)) as u32;
        let step = if grid { [1, 5][draws.below(2) as usize] } else { draws.below(u64::from(detectors)) as u32 };
        let b = if draws.below(8) < boundary { None } else { Some((a + step) % detectors) };
        if b == Some(a) {
            continue;
        }
        let sign = if negative && draws.below(4) == 0 { -1 } else { 1 };
        let weight = sign * draws.below(heaviest + 1) as i64;
        let observables = (0..words).map(|_| 1 << draws.below(64)).collect();
        edges.push(OwnEdge { a, b, weight, observables });
    }
    Case { detectors, words, heaviest, edges }
}

pub(crate) fn model(case: &Case, table_bytes_max: usize) -> MatchingModel {
    let edges = case.edges.iter().map(|edge| Edge {
        a: edge.a,
        b: edge.b,
        weight: edge.weight as f64 / 1024.0,
        observables: &edge.observables,
    });
    MatchingModel::with_tables(case.detectors, case.words, edges, table_bytes_max).unwrap()
}

/// The least weight that explains `fired`: negative edges used in advance, shortest paths between
/// all pairs, then all matchings of the subsets of the defects.
fn least(case: &Case, fired: u64) -> Option<i64> {
    let count = case.detectors as usize;
    let (mut fired, mut always) = (fired, 0);
    let mut distance = vec![vec![FAR; count + 1]; count + 1];
    for edge in &case.edges {
        let (a, b) = (edge.a as usize, edge.b.map_or(count, |b| b as usize));
        if edge.weight < 0 {
            always += edge.weight;
            fired ^= 1 << a | 1 << b;
        }
        let weight = distance[a][b].min(edge.weight.abs());
        (distance[a][b], distance[b][a]) = (weight, weight);
    }
    // Through detectors only: the boundary ends a path.
    for by in 0..count {
        for a in 0..=count {
            for b in 0..=count {
                let through = distance[a][by].saturating_add(distance[by][b]).min(FAR);
                distance[a][b] = distance[a][b].min(through);
            }
        }
    }
    let defects: Vec<usize> = (0..count).filter(|&at| fired >> at & 1 == 1).collect();
    let mut best = vec![FAR; 1 << defects.len()];
    best[0] = 0;
    for chosen in 1usize..1 << defects.len() {
        let first = chosen.trailing_zeros() as usize;
        let rest = chosen & (chosen - 1);
        let mut weight = best[rest].saturating_add(distance[defects[first]][count]);
        for other in (first + 1..defects.len()).filter(|&at| rest >> at & 1 == 1) {
            let pair = distance[defects[first]][defects[other]];
            weight = weight.min(best[rest & !(1 << other)].saturating_add(pair));
        }
        best[chosen] = weight.min(FAR);
    }
    best.last().copied().filter(|&weight| weight < FAR).map(|weight| weight + always)
}

/// The number of defects of `fired` once negative edges are used in advance.
fn defects(case: &Case, fired: u64) -> u32 {
    let flips = case.edges.iter().filter(|edge| edge.weight < 0);
    let flips = flips.fold(fired, |fired, edge| fired ^ 1 << edge.a ^ edge.b.map_or(0, |b| 1 << b));
    flips.count_ones()
}

/// Checks that `answer` is the least, and that the edges of the matching are that answer: they
/// explain `fired`, weigh `units` and flip the observables.
fn check_answer(
    case: &Case,
    fired: u64,
    matcher: &mut Matcher,
    answer: Result<Matched, MatchError>,
    observables: &[u64],
    has_ties: bool,
) -> Result<(), String> {
    match (answer, least(case, fired)) {
        (Ok(answer), Some(least)) => {
            let (mut flipped, mut weight, mut explained) = (vec![0; case.words], 0, 0u64);
            matcher.edges(|edge| {
                let edge = &case.edges[edge as usize];
                weight += edge.weight;
                explained ^= 1 << edge.a ^ edge.b.map_or(0, |b| 1 << b);
                flipped.iter_mut().zip(&edge.observables).for_each(|(word, by)| *word ^= by);
            });
            // The search adds up one word of observables as it grows; its edges are then those of
            // some shortest path, perhaps another one of the same weight.
            if has_ties && case.words == 1 {
                flipped.copy_from_slice(observables);
            }
            let given = (answer.units, weight, explained, &flipped[..]);
            let expected = (least * UNITS, least, fired, observables);
            (given == expected).then_some(()).ok_or_else(|| format!("{given:?}, expected {expected:?}"))
        }
        (Err(MatchError::Unmatchable { detector }), None) if detector < case.detectors => Ok(()),
        (answer, least) => Err(format!("{answer:?}, expected {least:?}")),
    }
}

/// Integer units for a weight of 1 in 1024.
const UNITS: i64 = 512;

/// Other weights for some edges in one shot: any, or lighter ones of either sign.
fn changes(draws: &mut Draws, case: &Case) -> Vec<(u32, i64)> {
    let most = [6, 24][draws.below(2) as usize];
    let count = if case.edges.is_empty() { 0 } else { draws.below(most) };
    let lighter = draws.below(2) == 0;
    let change = |_| {
        let edge = draws.below(case.edges.len() as u64) as u32;
        let own = case.edges[edge as usize].weight;
        let weight = match draws.below(4) {
            _ if !lighter => draws.below(50) as i64 - [0, 25][draws.below(2) as usize],
            0 => 0,
            1 => -own,
            _ => draws.below(own.unsigned_abs() + 1) as i64 * own.signum(),
        };
        (edge, weight)
    };
    (0..count).map(change).collect()
}

/// Checks the graph of `seed`; returns the shots that had few enough defects.
fn check(seed: u64) -> u64 {
    let mut draws = Draws(seed);
    let case = case(&mut draws);
    let models = [TABLE_BYTES_MAX, 0].map(|bytes| Arc::new(model(&case, bytes)));
    let mut matchers = models.map(Matcher::new);
    // With weights this large two paths hardly ever weigh the same: with a tenth, on one of 450,000
    // graphs.
    let has_ties = case.heaviest < 1_000_000;
    let mut checked = 0;
    for _ in 0..6 {
        let density = 1 + draws.below(8);
        let fired = (0..case.detectors).fold(0u64, |bits, at| bits | u64::from(draws.below(8) < density) << at);
        let listed = || (0..case.detectors).filter(|&at| fired >> at & 1 == 1);
        let changes = changes(&mut draws, &case);
        let mut changed = Case { edges: case.edges.clone(), ..case };
        for &(edge, weight) in &changes {
            changed.edges[edge as usize].weight = weight;
        }
        if defects(&case, fired).max(defects(&changed, fired)) as usize > DEFECTS_MAX {
            continue;
        }
        for matcher in &mut matchers {
            let mut found = vec![0; case.words];
            let answer = matcher.decode(listed(), &mut found);
            if let Err(said) = check_answer(&case, fired, matcher, answer, &found, has_ties) {
                panic!("seed {seed}: fired {fired:b}: {said}; {case:?}");
            }
            let mut found = vec![0; case.words];
            let weights = changes.iter().map(|&(edge, weight)| (edge, weight as f64 / 1024.0));
            let answer = matcher.decode_weighted(listed(), weights, &mut found);
            if let Err(said) = check_answer(&changed, fired, matcher, answer, &found, true) {
                panic!("seed {seed}: fired {fired:b}, weights {changes:?}: {said}; {case:?}");
            }
        }
        checked += 1;
    }
    checked
}

pub(crate) fn graphs(normal: u64) -> u64 {
    number("PINWHEEL_GRAPHS", normal)
}

fn number(variable: &str, normal: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(normal)
}

#[test]
fn every_answer_is_the_least_of_all_matchings() {
    let (first, graphs) = (number("PINWHEEL_GRAPHS_SEED", 0), graphs(10_000));
    let checked: u64 = (first..first + graphs).map(check).sum();
    assert!(checked > 4 * graphs, "{checked} shots of {graphs} graphs");
}
