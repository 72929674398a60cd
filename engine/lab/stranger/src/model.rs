//! Error models in Stim's format: draws shots and says which predictions are right.
//!
//! Knows of the field what every decoder of minimum weight has to fulfil, and nothing of Pinwheel. A
//! prediction is right if a correction of least weight has these observables; where two classes have
//! the same least weight up to [`TOLERANCE`], both are right. Models of one observable and of at most
//! two detectors in each component of a mechanism.
//!
//! # How
//! The distances between all pairs of detectors, for each parity of the observable, come from Floyd
//! and Warshall. The lightest matching of the fired detectors comes from all subsets of them, so a
//! shot has at most [`FIRED_MAX`]; the sampler draws shots with more again.

use crate::draw::Draw;
use crate::soft::SoftMap;
use std::fs;
use std::path::Path;

/// Weights nearer than this are equal.
const TOLERANCE: f64 = 1e-3;
/// Most fired detectors of a drawn shot.
pub const FIRED_MAX: usize = 16;

/// A mechanism: its probability, its detectors, and whether it flips the observable.
#[derive(Debug)]
struct Mechanism {
    probability: f64,
    detectors: Vec<usize>,
    flips: bool,
}

/// All errors of the same detectors that flip the observable alike.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Edge {
    pub a: usize,
    /// Above `a`; the number of detectors is the boundary.
    pub b: usize,
    pub flips: bool,
    /// Of an odd number of these errors.
    pub probability: f64,
}

/// Shots, and what is right to answer.
#[derive(Debug, Default)]
pub struct Shots {
    /// Records in `b8`.
    pub bits: Vec<u8>,
    /// Soft bytes, a record for each shot; empty without a map.
    pub soft: Vec<u8>,
    pub right: Vec<Right>,
}

/// A model, prepared.
#[derive(Debug)]
pub struct Model {
    pub detectors: usize,
    mechanisms: Vec<Mechanism>,
    edges: Vec<Edge>,
    /// Of a shot without soft bytes, by [`distances`].
    distance: Vec<f64>,
    /// Right predictions of each syndrome, where there are at most 24 detectors: 0 not computed yet.
    known: Vec<u8>,
}

/// Right predictions of a shot: bit 0 for "not flipped", bit 1 for "flipped".
pub type Right = u8;

impl Model {
    /// Reads a model without repeat blocks.
    pub fn read(path: &Path) -> Result<Model, String> {
        let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut mechanisms = Vec::new();
        let mut edges: Vec<Edge> = Vec::new();
        let mut add = |a: usize, b: usize, flips: bool, probability: f64| match edges
            .iter_mut()
            .find(|edge| (edge.a, edge.b, edge.flips) == (a, b, flips))
        {
            Some(edge) => edge.probability = either(edge.probability, probability),
            None => edges.push(Edge { a, b, flips, probability }),
        };
        for line in text.lines().map(str::trim) {
            let Some(rest) = line.strip_prefix("error(") else {
                if line.starts_with("repeat") {
                    return Err(format!("{}: has a repeat block", path.display()));
                }
                continue;
            };
            let (probability, targets) = rest.split_once(')').ok_or("a line without a probability")?;
            let probability: f64 = probability.parse().map_err(|_| "a probability that is no number")?;
            let mut whole = Mechanism { probability, detectors: Vec::new(), flips: false };
            for component in targets.split('^') {
                let (mut detectors, mut flips) = (Vec::new(), false);
                for target in component.split_whitespace() {
                    match target.strip_prefix('D') {
                        Some(number) => detectors.push(number.parse().map_err(|_| "a detector without a number")?),
                        None => flips = !flips,
                    }
                }
                detectors.sort_unstable();
                match detectors[..] {
                    [a] => add(a, usize::MAX, flips, probability),
                    [a, b] => add(a, b, flips, probability),
                    _ => return Err(format!("{}: {line}: not one or two detectors", path.display())),
                }
                whole.flips ^= flips;
                for detector in detectors {
                    match whole.detectors.iter().position(|other| *other == detector) {
                        Some(at) => drop(whole.detectors.swap_remove(at)),
                        None => whole.detectors.push(detector),
                    }
                }
            }
            mechanisms.push(whole);
        }
        let detectors = edges.iter().map(|edge| if edge.b == usize::MAX { edge.a + 1 } else { edge.b + 1 }).max();
        let detectors = detectors.ok_or_else(|| format!("{}: no mechanism", path.display()))?;
        edges.iter_mut().for_each(|edge| edge.b = edge.b.min(detectors));
        let known = if detectors <= 24 { vec![0; 1 << detectors] } else { Vec::new() };
        Ok(Model { detectors, mechanisms, distance: distances(detectors, &edges), edges, known })
    }

    /// Bytes of a shot in `b8`.
    pub fn bytes(&self) -> usize {
        self.detectors.div_ceil(8)
    }

    /// Draws shots, with soft bytes if there is a map of them: then it takes 0.1 ms a shot at distance 3, 8 ms at 5.
    pub fn draw(&mut self, draw: &mut Draw, count: usize, map: Option<&SoftMap>) -> Shots {
        let stride = self.bytes();
        let mut shots = Shots { bits: self.sample(draw, count), ..Shots::default() };
        for at in 0..count {
            loop {
                let record = &shots.bits[at * stride..(at + 1) * stride];
                let fired: Vec<usize> =
                    (0..self.detectors).filter(|bit| record[bit / 8] >> (bit % 8) & 1 == 1).collect();
                if fired.len() <= FIRED_MAX {
                    let right = match map {
                        None => self.right(&fired),
                        Some(map) => {
                            let bytes = map.draw(draw);
                            let edges = map.edges(&self.edges, &bytes);
                            shots.soft.extend(bytes);
                            self.lightest(&distances(self.detectors, &edges), &fired)
                        }
                    };
                    shots.right.push(right);
                    break;
                }
                let again = self.sample(draw, 1);
                shots.bits[at * stride..(at + 1) * stride].copy_from_slice(&again);
            }
        }
        shots
    }

    /// A map of soft bytes for some edges of this model.
    pub fn soft_map(&self, draw: &mut Draw) -> SoftMap {
        // The map names detectors alone, so it is drawn for those that one edge has.
        let is_alone =
            |edge: &Edge| self.edges.iter().filter(|other| (other.a, other.b) == (edge.a, edge.b)).count() == 1;
        let places: Vec<usize> = (0..self.edges.len()).filter(|place| is_alone(&self.edges[*place])).collect();
        SoftMap::new(draw, self.detectors, &self.edges, &places)
    }

    /// Each mechanism in turn skips from shot to shot by its geometric distribution.
    fn sample(&self, draw: &mut Draw, count: usize) -> Vec<u8> {
        let stride = self.bytes();
        let mut bytes = vec![0; count * stride];
        for mechanism in &self.mechanisms {
            let scale = (1.0 - mechanism.probability).ln();
            let mut at = 0.0;
            loop {
                at += (draw.unit().ln() / scale).floor();
                if at >= count as f64 {
                    break;
                }
                for detector in &mechanism.detectors {
                    bytes[at as usize * stride + detector / 8] ^= 1 << (detector % 8);
                }
                at += 1.0;
            }
        }
        bytes
    }

    /// The right predictions for these fired detectors, in ascending order.
    pub fn right(&mut self, fired: &[usize]) -> Right {
        if self.known.is_empty() {
            return self.lightest(&self.distance, fired);
        }
        let syndrome = fired.iter().fold(0, |word, detector| word | 1 << detector);
        if self.known[syndrome] == 0 {
            self.known[syndrome] = self.lightest(&self.distance, fired);
        }
        self.known[syndrome]
    }

    fn lightest(&self, distance: &[f64], fired: &[usize]) -> Right {
        let nodes = self.detectors + 1;
        let between = |a: usize, b: usize, parity: usize| distance[(a * nodes + b) * 2 + parity];
        let mut least = vec![[f64::INFINITY; 2]; 1 << fired.len()];
        least[0] = [0.0, f64::INFINITY];
        for set in 1usize..1 << fired.len() {
            let first = set.trailing_zeros() as usize;
            let rest = set & (set - 1);
            let mut best = [f64::INFINITY; 2];
            let mut take = |left: usize, a: usize, b: usize| {
                for parity in 0..2 {
                    for before in 0..2 {
                        best[parity ^ before] = best[parity ^ before].min(least[left][before] + between(a, b, parity));
                    }
                }
            };
            take(rest, fired[first], self.detectors);
            for second in (first + 1..fired.len()).filter(|second| rest >> second & 1 == 1) {
                take(rest & !(1 << second), fired[first], fired[second]);
            }
            least[set] = best;
        }
        let [plain, flipped] = least[(1 << fired.len()) - 1];
        u8::from(plain <= flipped + TOLERANCE) | u8::from(flipped <= plain + TOLERANCE) << 1
    }
}

/// The probability that one of two independent events happens, and not both.
pub fn either(p: f64, q: f64) -> f64 {
    p * (1.0 - q) + q * (1.0 - p)
}

/// Least weights between all nodes for each parity: `[(a × nodes + b) × 2 + parity]`. No path leads through the
/// boundary: two detectors that both match to it are two pairs.
fn distances(detectors: usize, edges: &[Edge]) -> Vec<f64> {
    let nodes = detectors + 1;
    let mut distance = vec![f64::INFINITY; nodes * nodes * 2];
    for &Edge { a, b, flips, probability } in edges {
        for (from, to) in [(a, b), (b, a)] {
            distance[(from * nodes + to) * 2 + usize::from(flips)] = ((1.0 - probability) / probability).ln();
        }
    }
    for node in 0..nodes {
        distance[(node * nodes + node) * 2] = 0.0;
    }
    for middle in 0..detectors {
        for from in 0..nodes {
            for first in 0..2 {
                let head = distance[(from * nodes + middle) * 2 + first];
                if head.is_infinite() {
                    continue;
                }
                for to in 0..nodes {
                    for second in 0..2 {
                        let sum = head + distance[(middle * nodes + to) * 2 + second];
                        let least = &mut distance[(from * nodes + to) * 2 + (first ^ second)];
                        *least = least.min(sum);
                    }
                }
            }
        }
    }
    distance
}

#[cfg(test)]
mod tests {
    use super::{FIRED_MAX, Model};
    use std::fs;
    use std::path::Path;

    /// Every golden shot of a model, with PyMatching's prediction.
    fn agrees(name: &str) {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../code/src/code/data");
        let mut model = Model::read(&data.join(format!("{name}.dem"))).unwrap();
        let shots = fs::read(data.join(format!("{name}.dets.b8"))).unwrap();
        let predictions = fs::read(data.join(format!("{name}.pm.b8"))).unwrap();
        let mut decided = 0;
        for (record, prediction) in shots.chunks(model.bytes()).zip(&predictions) {
            let fired: Vec<usize> = (0..model.detectors).filter(|bit| record[bit / 8] >> (bit % 8) & 1 == 1).collect();
            if fired.len() > FIRED_MAX {
                continue;
            }
            let right = model.right(&fired);
            assert!(right >> prediction & 1 == 1, "{fired:?}: {prediction}, right {right:b}");
            decided += usize::from(right != 3);
        }
        assert!(decided > 1_500, "{decided} of 2,000 shots have one right prediction");
    }

    #[test]
    fn the_predictions_of_pymatching_are_right_at_distance_3() {
        agrees("surf_z_d3_r3_p0.005");
    }

    #[test]
    fn the_predictions_of_pymatching_are_right_at_distance_5() {
        agrees("surf_z_d5_r5_p0.005");
    }
}
