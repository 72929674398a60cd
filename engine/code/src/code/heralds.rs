//! What heralds say of the edges of a matching graph: a detector that tells in which shots certain errors may
//! have happened.
//!
//! Built by cold code; read by matching. Bounded by the parts of the model.
//!
//! A herald is a detector with the tag `herald`, as Stim's circuits and models write it:
//!
//! ```text
//!   HERALDED_ERASE(0.01) 3                  detector[herald](1, 3, 0) D24
//!   DETECTOR[herald](1, 3, 0) rec[-1]       error(0.0025) D5 D6 ^ D24
//! ```
//!
//! # The rule
//!
//! Of the errors that flip a herald, one happened if it fires, and none if it does not. So without it an edge
//! has the probability of the errors that flip no herald; with it, also that of the herald's errors with this
//! edge over that of all of its errors. An erased qubit is thus wrong with one half. A readout that is only
//! doubtful is a herald, too: `error(0.02) D5 D9 D31` and `error(0.08) D31` for a bit that is set
//! in one shot of ten, and then wrong in one of five.
//!
//! Of several heralds that fire, each has an error of its own, and an edge is wrong if an odd number of these and of
//! the errors without a herald has it. Heralds that an error flips together have that error: of these the last one
//! counts.

use std::collections::{BTreeMap, BTreeSet};

use super::correlations::add;
use super::graph::{Graph, weight_of};
use super::{Model, bit};

/// A bias up to which a probability is one half: rounding of sums.
const HALF: f64 = 1e-9;

/// One herald.
#[derive(Debug, Clone, PartialEq)]
pub struct Herald {
    /// Its detector.
    pub detector: u32,
    /// Weights of edges if it fires: index in [`Graph::edges`], ascending, and `ln((1-p)/p)`.
    pub edges: Vec<(u32, f64)>,
}

/// An edge that several heralds are about.
#[derive(Debug, Clone, PartialEq)]
pub struct SharedEdge {
    /// Index in [`Graph::edges`].
    pub edge: u32,
    /// `1 - 2p` of its errors that no herald tells of.
    bias: f64,
    /// The heralds' detectors, ascending, and `1 - 2p` of the errors of each; those together that an error flips
    /// together.
    groups: Vec<Vec<(u32, f64)>>,
}

impl SharedEdge {
    /// The detectors of its heralds.
    pub fn heralds(&self) -> impl Iterator<Item = u32> {
        self.groups.iter().flatten().map(|(herald, _)| *herald)
    }

    /// Its weight, `ln((1-p)/p)`, in a shot in which heralds fired that no error flips together; otherwise `None`.
    ///
    /// # Panics
    ///
    /// If `syndrome` has fewer words than the model.
    pub fn weight(&self, syndrome: &[u64]) -> Option<f64> {
        let last = |group: &Vec<(u32, f64)>| group.iter().rfind(|(herald, _)| bit(syndrome, *herald)).copied();
        let fired = self.groups.iter().filter_map(last);
        let (count, bias) = fired.fold((0, self.bias), |(count, bias), (_, own)| (count + 1, bias * own));
        (count > 1).then(|| weight_of((1.0 - bias) / 2.0))
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        size_of_val(&*self.groups) + self.groups.iter().map(|group| size_of_val(&**group)).sum::<usize>()
    }
}

/// The heralds of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Heralds {
    /// The weight of each edge of the graph if none fires, `ln((1-p)/p)`.
    pub weights: Vec<f64>,
    /// By detector, ascending. The weights are those if no other herald fires.
    pub heralds: Vec<Herald>,
    /// Edges that several heralds are about, but for those of which each says one half, as of erasures: so do several.
    pub shared: Vec<SharedEdge>,
}

/// The heralds of `model`, whose graph is `graph`; `None` if it has none.
pub fn heralds(model: &Model, graph: &Graph) -> Option<Heralds> {
    if model.heralds.is_empty() {
        return None;
    }
    let mut without = vec![0.0; graph.edges.len()];
    let mut with: BTreeMap<u32, (f64, BTreeMap<u32, f64>)> = BTreeMap::new();
    // For each detector itself, or a herald that an error flips together with it.
    let mut groups: Vec<u32> = (0..model.detectors).collect();
    for error in model.errors.iter().filter(|error| error.probability > 0.0) {
        let edges: Vec<u32> = error.components.iter().filter_map(|part| graph.edge_of(model, part)).collect();
        // Parts that differ in a herald may be one edge: an error with it twice does not flip it.
        let is_odd = |edge: &u32| edges.iter().filter(|other| *other == edge).count() % 2 == 1;
        let once: BTreeSet<u32> = edges.iter().copied().filter(is_odd).collect();
        let effect = error.effect().detectors;
        let mut flipped = effect.iter().filter(|detector| model.heralds.binary_search(detector).is_ok()).peekable();
        let first = flipped.peek().copied().copied();
        if first.is_none() {
            edges.iter().for_each(|&edge| add(&mut without[edge as usize], error.probability));
        }
        for &herald in flipped {
            let [a, b] = [herald, first.unwrap_or(herald)].map(|herald| group_of(&mut groups, herald));
            groups[a as usize] = b;
            let (all, by_edge) = with.entry(herald).or_default();
            *all += error.probability;
            once.iter().for_each(|&edge| *by_edge.entry(edge).or_default() += error.probability);
        }
    }
    let mut by_edge: BTreeMap<u32, BTreeMap<u32, Vec<(u32, f64)>>> = BTreeMap::new();
    for (&herald, (all, sums)) in &with {
        let group = group_of(&mut groups, herald);
        let bias = |sum: &f64| (herald, 1.0 - 2.0 * sum / all);
        sums.iter().for_each(|(e, sum)| by_edge.entry(*e).or_default().entry(group).or_default().push(bias(sum)));
    }
    let shared = |(edge, groups): (u32, BTreeMap<u32, Vec<(u32, f64)>>)| {
        let edge =
            SharedEdge { edge, bias: 1.0 - 2.0 * without[edge as usize], groups: groups.into_values().collect() };
        (edge.groups.len() > 1 && edge.groups.iter().flatten().any(|(_, bias)| bias.abs() > HALF)).then_some(edge)
    };
    let shared = by_edge.into_iter().filter_map(shared).collect();
    let of = |(detector, (all, by_edge)): (u32, (f64, BTreeMap<u32, f64>))| {
        let weight = |(edge, sum): (u32, f64)| {
            let mut probability = without[edge as usize];
            add(&mut probability, sum / all);
            (edge, weight_of(probability))
        };
        Herald { detector, edges: by_edge.into_iter().map(weight).collect() }
    };
    let heralds = with.into_iter().map(of).collect();
    Some(Heralds { weights: without.iter().copied().map(weight_of).collect(), heralds, shared })
}

/// The detector that stands for all heralds of a group.
fn group_of(groups: &mut [u32], mut herald: u32) -> u32 {
    while groups[herald as usize] != herald {
        groups[herald as usize] = groups[groups[herald as usize] as usize];
        herald = groups[herald as usize];
    }
    herald
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::*;
    use crate::code::graph::GraphError;

    /// Probabilities without heralds, by edge, and with one: herald, edge, probability.
    type Found = (Vec<f64>, Vec<(u32, u32, f64)>);

    fn found(text: &str) -> Result<Option<Found>, GraphError> {
        let model = Model::parse(text.as_bytes()).unwrap();
        assert_eq!(Model::parse(model.to_string().as_bytes()).unwrap(), model);
        let rounded = |weight: f64| (1e6 / (1.0 + weight.exp())).round() / 1e6;
        let Some(found) = heralds(&model, &Graph::new(&model)?) else { return Ok(None) };
        let all =
            found.heralds.iter().flat_map(|of| of.edges.iter().map(|(edge, weight)| (of.detector, *edge, *weight)));
        let all = all.map(|(detector, edge, weight)| (detector, edge, rounded(weight))).collect();
        Ok(Some((found.weights.into_iter().map(rounded).collect(), all)))
    }

    #[test]
    fn an_edge_has_the_probability_of_the_errors_that_its_herald_leaves() {
        // Edges in their order: D0 D1; D1 and the boundary. Erased by D2; doubtful by D3.
        let erased = "error(0.1) D0 D1\nerror(0.01) D2\nerror(0.01) D0 D1 ^ D2\nerror(0.01) D1 L0 ^ D2\n\
                      error(0.01) D0 D1 ^ D1 L0 ^ D2\ndetector[herald] D2\n";
        assert_eq!(found(erased).unwrap(), Some((vec![0.1, 0.0], vec![(2, 0, 0.5), (2, 1, 0.5)])));
        let doubtful = "error(0.1) D0 D1\nerror(0.02) D0 D1 D3\nerror(0.08) D3\ndetector[herald](1, 2) D3\n";
        assert_eq!(found(doubtful).unwrap(), Some((vec![0.1], vec![(3, 0, 0.1 * 0.8 + 0.2 * 0.9)])));
        // A herald whose errors all have the edge leaves no doubt that it is wrong, but by the others.
        assert_eq!(found("error(0.1) D0\nerror(0.02) D0 D3\ndetector[herald] D3\n").unwrap().unwrap().1, [(3, 0, 0.9)]);
        // D1 and the boundary comes twice: D0 D1 is left.
        let twice = "error(0.2) D1 D2 ^ D1 ^ D0 D1\nerror(0.2) D2\ndetector[herald] D2\n";
        assert_eq!(found(twice).unwrap().unwrap().1, [(2, 0, 0.5)]);
        assert_eq!(found("error(0.1) D0 D1\ndetector[other] D1\n").unwrap(), None);
        let said = found("error(0.1) D0\ndetector[herald] D1\n").unwrap_err().to_string();
        assert!(said.starts_with("detector D1 is tagged as a herald, but no error flips it"), "{said}");
    }

    #[test]
    fn an_edge_has_the_errors_of_all_of_its_heralds_that_fire() {
        let shared = |text: &str| {
            let model = Model::parse(text.as_bytes()).unwrap();
            heralds(&model, &Graph::new(&model).unwrap()).unwrap().shared
        };
        // Of D0, beside others of its own: D1 says two of five, D2 one of ten, D3 that it is wrong.
        let of_three = "error(0.01) D0\nerror(0.04) D0 D1\nerror(0.06) D1\nerror(0.01) D0 D2\nerror(0.09) D2\n\
                        error(0.01) D0 D3\ndetector[herald] D1\ndetector[herald] D2\ndetector[herald] D3\n";
        let [edge] = &shared(of_three)[..] else { panic!() };
        for (fired, expected) in [
            (0b0000, None),
            (0b0101, None),
            (0b0110, Some((0.01, [0.4, 0.1, 0.0]))),
            (0b1010, Some((0.01, [0.4, 0.0, 1.0]))),
            (0b1111, Some((0.01, [0.4, 0.1, 1.0]))),
        ] {
            let odd = expected.map(|(own, each)| each.into_iter().fold(own, |a, b| a * (1.0 - b) + b * (1.0 - a)));
            let found = edge.weight(&[fired]).map(|weight| 1.0 / (1.0 + weight.exp()));
            assert!(found.zip(odd).is_none_or(|(a, b)| (a - b).abs() < 1e-12), "{fired:b}: {found:?}, not {odd:?}");
            assert_eq!(found.is_some(), odd.is_some(), "{fired:b}");
        }
        let erasures = "error(0.1) D0 D1\nerror(0.1) D1\nerror(0.1) D0 D2\nerror(0.1) D2\n\
                        detector[herald] D1\ndetector[herald] D2\n";
        assert_eq!(shared(erasures), []);
        // D1 and D2 are two levels of one readout, D3 another: D2 counts, and D3.
        let levels = "error(0.02) D0 D1\nerror(0.08) D1\nerror(0.03) D0 D1 D2\nerror(0.07) D1 D2\n\
                      error(0.01) D0 D3\nerror(0.09) D3\n\
                      detector[herald] D1\ndetector[herald] D2\ndetector[herald] D3\n";
        let [edge] = &shared(levels)[..] else { panic!() };
        assert_eq!(edge.weight(&[0b0110]), None);
        assert!((edge.weight(&[0b1110]).unwrap() - weight_of(0.3 * 0.9 + 0.7 * 0.1)).abs() < 1e-12);
    }
}
