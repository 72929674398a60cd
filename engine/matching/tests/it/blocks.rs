//! Shots in blocks of rounds that several threads match: the weight of the whole shot, whatever the
//! blocks, and what is refused.
use std::sync::Arc;

use pinwheel_code::code::{Sampler, ones};
use pinwheel_matching::{
    BlockFusion, BlockMatcher, BlockModel, Edge, MatchError, Matched, Matcher, MatchingModel, StreamModelError,
};

use crate::oracle::{Draws, graphs};
use crate::stream::{layers, prepared};

/// The memory of a shot.
struct Shot {
    blocks: Vec<BlockMatcher>,
    fusion: BlockFusion,
}

impl Shot {
    fn new(model: BlockModel) -> Shot {
        let model = Arc::new(model);
        let blocks = (0..model.blocks()).map(|index| BlockMatcher::new(Arc::clone(&model), index)).collect();
        Shot { blocks, fusion: BlockFusion::new(model) }
    }

    /// `rounds`: the fired detectors of each. The blocks come in an order that `order` turns.
    fn decode(&mut self, rounds: &[Vec<u32>], order: usize, found: &mut [u64]) -> Result<Matched, MatchError> {
        let Self { blocks, fusion } = self;
        let count = blocks.len();
        for at in 0..count {
            blocks[(at + order) % count].decode(|round| rounds[round as usize].iter().copied());
        }
        (0..count).for_each(|at| fusion.take(&mut blocks[(at * (count - 1) + order) % count]));
        fusion.finish(found)
    }
}

#[test]
fn a_shot_whose_caller_panicked_is_not_in_the_next_answer() {
    let edges = [Edge { a: 0, b: None, weight: 1.0, observables: &[1] }];
    let mut shot = Shot::new(BlockModel::new(&[0], 1, edges, 1).unwrap());
    let fired = |_| [0, 1].into_iter().inspect(|detector| assert!(*detector == 0, "the caller's"));
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| shot.blocks[0].decode(fired)));
    assert!(caught.is_err());
    let mut found = [0];
    assert_eq!((shot.decode(&[vec![]], 0, &mut found).unwrap().units, found), (0, [0]));
}

#[test]
fn blocks_have_the_weight_of_the_whole_shot() {
    let (graphs, mut answered) = (graphs(10_000), 0);
    for seed in 0..graphs {
        let mut draws = Draws(seed);
        let mut layers = layers(&mut draws);
        // One observable for each edge: an answer says which edges it used an odd number of times.
        layers.edges.truncate(64);
        (0..).zip(&mut layers.edges).for_each(|(index, edge)| edge.3 = 1 << index);
        let detectors = layers.round_of.len() as u32;
        let whole = Arc::new(MatchingModel::with_tables(detectors, 1, layers.edges(), 0).unwrap());
        let mut whole = Matcher::new(whole);
        let model = BlockModel::new(&layers.round_of, 1, layers.edges(), 1 + draws.below(6) as u32);
        let mut shot = Shot::new(model.unwrap());
        for order in 0..6 {
            let density = 1 + draws.below(8);
            let fired: Vec<u32> = (0..detectors).filter(|_| draws.below(8) < density).collect();
            let mut found = [0];
            let exact = whole.decode(fired.iter().copied(), &mut [0]);
            let answer = shot.decode(&layers.rounds(&fired), order, &mut found);
            let (exact, answer) = match (exact, answer) {
                (Ok(exact), Ok(answer)) => (exact, answer),
                (Err(MatchError::Unmatchable { .. }), Err(MatchError::Unmatchable { .. })) => continue,
                (exact, answer) => panic!("seed {seed}: {answer:?}, expected {exact:?}"),
            };
            assert_eq!(answer.units, exact.units, "seed {seed}: fired {fired:?} of {:?}", layers.edges);
            let mut explained = vec![false; detectors as usize];
            let mut weight = 0.0;
            for edge in ones(&found).map(|index| &layers.edges[index as usize]) {
                std::iter::once(edge.0).chain(edge.1).for_each(|end| explained[end as usize] ^= true);
                weight += edge.2;
            }
            let explained: Vec<u32> = (0..detectors).filter(|&at| explained[at as usize]).collect();
            assert_eq!(explained, fired, "seed {seed}: {:?}", layers.edges);
            assert!((weight - answer.weight).abs() < 1e-3, "seed {seed}: its edges weigh {weight}, not {answer:?}");
            answered += 1;
        }
    }
    assert!(answered > 2 * graphs, "too few shots can be matched: {answered}");
}

#[test]
fn blocks_of_surface_codes_have_the_weight_of_the_whole_shot() {
    for (name, block_rounds, shots) in
        [("surface_d3@r50", 10, 1_000), ("surface_d5@r50", 7, 400), ("surface_d5", 1, 400)]
    {
        let prepared = prepared(name);
        let (mut shot, mut whole) = (Shot::new(prepared.blocks(block_rounds)), prepared.whole());
        let mut sampler = Sampler::new(&prepared.model, 5);
        let mut syndrome = vec![0; prepared.model.detector_words()];
        let mut differ = 0;
        for index in 0..shots {
            sampler.draw(&mut syndrome, &mut [0]);
            let mut rounds = vec![Vec::new(); prepared.rounds.count() as usize];
            ones(&syndrome).for_each(|detector| rounds[prepared.rounds.of(detector) as usize].push(detector));
            let (mut expected, mut found) = ([0], [0]);
            let exact = whole.decode(ones(&syndrome), &mut expected).unwrap();
            assert_eq!(shot.decode(&rounds, index, &mut found).unwrap().units, exact.units, "{name}: shot {index}");
            differ += u32::from(found != expected);
        }
        // Matchings of equal weight.
        assert!(differ * 50 < shots as u32, "{name}: {differ} of {shots} answers differ");
    }
}

#[test]
fn a_block_without_a_partner_gives_its_error_and_the_next_shot_is_answered() {
    let edges = || [(0, 1), (1, 2)].map(|(a, b)| Edge { a, b: Some(b), weight: 1.0, observables: &[1] });
    let mut shot = Shot::new(BlockModel::new(&[0, 1, 2], 1, edges(), 2).unwrap());
    for order in 0..2 {
        let unmatchable = Err(MatchError::Unmatchable { detector: 1 });
        assert_eq!(shot.decode(&[vec![], vec![1], vec![]], order, &mut [7]).map(|_| ()), unmatchable);
        let strange = Err(MatchError::Detector { detector: 3, detectors: 3 });
        assert_eq!(shot.decode(&[vec![], vec![1], vec![3]], order, &mut [7]).map(|_| ()), strange);
        let mut found = [4];
        assert_eq!((shot.decode(&[vec![0], vec![], vec![2]], order, &mut found).unwrap().weight, found), (2.0, [4]));
        let mut found = [4];
        assert_eq!((shot.decode(&[vec![], vec![1], vec![2]], order, &mut found).unwrap().weight, found), (1.0, [5]));
    }
    let refused = |words, rounds| BlockModel::new(&[0, 1, 2], words, edges(), rounds).unwrap_err();
    assert_eq!(refused(2, 1), StreamModelError::Observables { words: 2 });
    assert_eq!(refused(1, 0).to_string(), "block is 0 rounds; it takes one or more");
}
