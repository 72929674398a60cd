//! Which edges of a matching graph fail together: those that are parts of one decomposed mechanism.
//!
//! Built by cold code; read by correlated matching. Bounded by the pairs of parts in the model.
//!
//! # The rule
//!
//! If edge `e` is known to be wrong, another edge is so with the probability that both are, over
//! the probability of `e`. Mechanisms are independent, so both probabilities are those of an odd
//! number of mechanisms, as for edges (see [`graph`](super::graph)). No conditional probability
//! counts as more than one half, so no weight is negative; an edge that is wrong more often than not
//! neither implies anything nor is implied. These are `PyMatching`'s rules (its
//! `enable_correlations`), after Fowler, arXiv:1310.0863.

use std::collections::BTreeMap;

use super::Model;
use super::graph::Graph;

/// The weight of an edge once another is known to be wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Correlation {
    /// Index in [`Graph::edges`] of the edge that is wrong.
    pub edge: u32,
    /// Index of the edge whose weight it changes.
    pub other: u32,
    /// `ln((1-p)/p)` with the conditional probability `p`, 0 or more.
    pub weight: f64,
}

/// The correlations of `model`, whose graph is `graph`, sorted by their edges.
pub fn correlations(model: &Model, graph: &Graph) -> Vec<Correlation> {
    let mut own = vec![0.0; graph.edges.len()];
    let mut both: BTreeMap<(u32, u32), f64> = BTreeMap::new();
    for error in model.errors.iter().filter(|error| error.probability > 0.0) {
        let parts: Vec<u32> = error.components.iter().filter_map(|part| graph.edge_of(model, part)).collect();
        for (place, &edge) in parts.iter().enumerate() {
            add(&mut own[edge as usize], error.probability);
            for &other in parts[..place].iter().filter(|&&other| other != edge) {
                add(both.entry((edge, other)).or_default(), error.probability);
                add(both.entry((other, edge)).or_default(), error.probability);
            }
        }
    }
    let weigh = |((edge, other), both): ((u32, u32), f64)| {
        if own[edge as usize].max(own[other as usize]) > 0.5 {
            return None;
        }
        // Of two mechanisms of probability 1, an even number happens: an edge of no others is never
        // wrong.
        let conditional = if own[edge as usize] > 0.0 { (both / own[edge as usize]).min(0.5) } else { 0.0 };
        let weight = (conditional > 0.0).then(|| ((1.0 - conditional) / conditional).ln())?;
        Some(Correlation { edge, other, weight })
    };
    both.into_iter().filter_map(weigh).collect()
}

/// Makes `sum` the probability that an odd number happens of what it stands for and of one more.
pub(super) fn add(sum: &mut f64, probability: f64) {
    *sum = *sum * (1.0 - probability) + probability * (1.0 - *sum);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::*;

    fn found(text: &str) -> Vec<(u32, u32, f64)> {
        let model = Model::parse(text.as_bytes()).unwrap();
        let graph = Graph::new(&model).unwrap();
        let rounded = |by: Correlation| (by.edge, by.other, (1e6 / (1.0 + by.weight.exp())).round() / 1e6);
        correlations(&model, &graph).into_iter().map(rounded).collect()
    }

    #[test]
    fn parts_of_one_mechanism_are_likelier_together() {
        // Edges in their order: D0 D1, D0 and the boundary, D2 D3.
        let text = "error(0.1) D0 ^ D2 D3\nerror(0.2) D0\nerror(0.3) D0 D1\nerror(0.05) D2 D3 ^ D0\n";
        let (both, first, last) = (0.1 * 0.95 + 0.05 * 0.9, 0.26 * 0.95 + 0.05 * 0.74, 0.14);
        let rounded = |p: f64| (p * 1e6).round() / 1e6;
        assert_eq!(found(text), [(1, 2, rounded(both / first)), (2, 1, 0.5)]);
        assert!(both / last > 0.5);
    }

    #[test]
    fn parts_without_an_edge_and_mechanisms_that_cannot_happen_correlate_nothing() {
        assert_eq!(found("error(0.1) D0 ^ L0\nerror(0) D0 ^ D1\nerror(0.1) D0 D1\nerror(0.1) D0 ^ D0\n"), []);
        assert_eq!(found("error(0.6) D0 ^ D1\n"), []);
        assert_eq!(found("error(1) D0 ^ D1\nerror(1) D0 ^ D1\nerror(0.1) D0\nerror(0.1) D1\n"), []);
        assert_eq!(found("error(1) D0 ^ D1\nerror(1) D0 ^ D1\n"), [], "both edges are never wrong");
        let three = found("error(0.1) D0 ^ D1 D2 ^ D3\n");
        assert_eq!(three, [(0, 1, 0.5), (0, 2, 0.5), (1, 0, 0.5), (1, 2, 0.5), (2, 0, 0.5), (2, 1, 0.5)]);
    }
}
