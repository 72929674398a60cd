#![allow(clippy::unwrap_used, reason = "harness")]

use super::{FIRST, NOBODY, Search};
use crate::graph::{Adjacency, Edge, Graph, NONE};

/// Draws that a seed repeats.
struct Draws(u64);

impl Draws {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// A cube of `side`³ detectors with diagonals in one plane and a boundary on two sides.
fn cube(side: u32, draws: &mut Draws, heaviest: u64) -> Graph {
    let at = |x: u32, y: u32, z: u32| (z * side + y) * side + x;
    let mut edges = Vec::new();
    for index in 0..side * side * side {
        let (x, y, z) = (index % side, index / side % side, index / side / side);
        let inner = [(x + 1, y, z), (x, y + 1, z), (x, y, z + 1), (x + 1, y + 1, z)];
        let inner = inner.into_iter().filter(|&(x, y, z)| x < side && y < side && z < side);
        let ends = inner.map(|(x, y, z)| Some(at(x, y, z))).chain((x == 0 || x + 1 == side).then_some(None));
        for b in ends {
            let weight = (heaviest / 2 + draws.below(heaviest + 1)) as f64 / 1024.0;
            edges.push(Edge { a: index, b, weight, observables: &[] });
        }
    }
    Graph::new(side * side * side, 1, edges).unwrap()
}

/// The radii are feasible: regions do not overlap across an edge, and none is negative. Their sum is
/// then a lower bound for every matching; the search's own matching reaches it.
fn check_radii(search: &Search, graph: &Graph, seed: u64) {
    let now = search.queue.now();
    let reach = |node: u32| {
        let state = &search.nodes[node as usize];
        search.radii[search.tops[node as usize] as usize].at(now) + state.wrapped
    };
    assert!(search.radii[FIRST as usize..].iter().all(|radius| radius.at(now) >= 0), "seed {seed}: a negative radius");
    for edge in &graph.edges {
        let (a, b) = (search.tops[edge.a as usize], search.tops[edge.b as usize]);
        if a != b || b == NOBODY {
            let both = reach(edge.a) + reach(edge.b);
            assert!(both <= edge.weight, "seed {seed}: regions overlap on {edge:?}: {both}");
        }
    }
}

#[test]
fn the_radii_prove_each_matching_of_hundreds_of_defects() {
    let (mut at_once, mut all) = (0, 0);
    for seed in 0..60 {
        let mut draws = Draws(seed);
        let heaviest = [0, 2, 30, 4000][seed as usize % 4];
        let graph = cube(3 + draws.below(6) as u32, &mut draws, heaviest);
        let mut search = Search::new(graph.boundary() as usize);
        for density in [1, 4, 16, 40, 64] {
            search.reset();
            let mut count = 0;
            for node in (0..graph.boundary()).filter(|_| draws.below(64) < density) {
                search.add_defect(node);
                count += 1;
            }
            let over = Adjacency {
                starts: &graph.starts,
                halves: &graph.halves,
                twins: &graph.twins,
                observables: &[],
                counts_from: 0,
                is_by_weight: true,
            };
            search.start(over);
            check_radii(&search, &graph, seed);
            at_once += count - search.tree_count;
            search.grow(over).unwrap();
            check_radii(&search, &graph, seed);
            all += count;
            let mut matched = vec![0; graph.boundary() as usize];
            let mut paths = crate::paths::Paths::new(&graph);
            let mut weight = 0;
            search.pairs(|pair| {
                matched[pair.a as usize] += 1;
                let to = if pair.b == NONE { graph.boundary() } else { pair.b };
                if pair.b != NONE {
                    matched[pair.b as usize] += 1;
                }
                paths.search(&graph, &graph.halves, pair.a, to);
                weight += paths.distance[to as usize];
            });
            assert!(matched.iter().all(|&times| times <= 1), "seed {seed}: a defect with two partners");
            assert_eq!(matched.iter().sum::<u32>(), count, "seed {seed}: a defect without partner");
            assert_eq!(weight, search.weight(), "seed {seed}: the matching weighs more than the radii prove");
        }
    }
    assert!(at_once > all / 4 && at_once < all, "{at_once} of {all} defects were matched at the begin");
}
