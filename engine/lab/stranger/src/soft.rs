//! Soft bytes: a map of them drawn for a model, and what the bytes of a shot make of its edges.
//!
//! By the page `guide/heralds.md`: in each shot the readouts' means are taken out of an edge, and what their bytes
//! say is put in. Byte 0 says nothing, 1 is as likely wrong as right, b is right with odds of b − 1 steps.

use crate::draw::Draw;
use crate::model::{Edge, either};
use std::fmt::Write;

/// A readout of an edge.
#[derive(Debug, Clone, Copy)]
struct Readout {
    /// The edge's place in the model.
    edge: usize,
    byte: usize,
    /// Mean probability to be wrong.
    wrong: f64,
}

/// A map.
#[derive(Debug)]
pub struct SoftMap {
    /// As `--soft-map` reads it.
    pub text: String,
    /// Soft bytes of a shot.
    pub bytes: usize,
    step_db: f64,
    /// Probability of each edge without its readouts.
    rest: Vec<f64>,
    readouts: Vec<Readout>,
}

impl SoftMap {
    /// Draws a map for some of the edges in `places`: bytes of one or of two edges, edges of one or of two bytes.
    pub fn new(draw: &mut Draw, detectors: usize, edges: &[Edge], places: &[usize]) -> SoftMap {
        let bytes = draw.between(1, places.len() as u64) as usize;
        let step_db = *draw.pick(&[0.25, 0.5]);
        let mut map = SoftMap {
            text: format!("soft {bytes} {step_db}\n"),
            bytes,
            step_db,
            rest: edges.iter().map(|edge| edge.probability).collect(),
            readouts: Vec::new(),
        };
        for byte in 0..bytes {
            let mut own = vec![places[byte]];
            if draw.one_in(3) {
                own.push(*draw.pick(places));
            }
            own.dedup();
            for edge in own {
                let wrong = map.rest[edge] * draw.between(1, 9) as f64 / 10.0;
                map.rest[edge] = (map.rest[edge] - wrong) / (1.0 - 2.0 * wrong);
                map.readouts.push(Readout { edge, byte, wrong });
                let Edge { a, b, .. } = edges[edge];
                let second = if b == detectors { String::new() } else { format!(" D{b}") };
                // The shortest text of a number that is read back as the same one.
                let _ = writeln!(map.text, "S{byte} {wrong:?} D{a}{second}");
            }
        }
        map
    }

    /// The bytes of a shot: one shot of four has none that says anything.
    pub fn draw(&self, draw: &mut Draw) -> Vec<u8> {
        if draw.one_in(4) {
            return vec![0; self.bytes];
        }
        (0..self.bytes).map(|_| if draw.one_in(3) { 0 } else { draw.between(1, 255) as u8 }).collect()
    }

    /// The model's edges in a shot with these bytes.
    pub fn edges(&self, edges: &[Edge], bytes: &[u8]) -> Vec<Edge> {
        let mut changed = edges.to_vec();
        if bytes.iter().all(|byte| *byte == 0) {
            return changed;
        }
        for readout in &self.readouts {
            changed[readout.edge].probability = self.rest[readout.edge];
        }
        for readout in &self.readouts {
            let wrong = match bytes[readout.byte] {
                0 => readout.wrong,
                byte => 1.0 / (1.0 + 10f64.powf(f64::from(byte - 1) * self.step_db / 10.0)),
            };
            let edge = &mut changed[readout.edge];
            edge.probability = either(edge.probability, wrong);
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::SoftMap;
    use crate::draw::Draw;
    use crate::model::Edge;

    #[test]
    fn bytes_that_say_nothing_keep_the_model_and_others_change_it_by_their_odds() {
        let edges =
            [Edge { a: 0, b: 1, flips: false, probability: 0.02 }, Edge { a: 1, b: 2, flips: true, probability: 0.01 }];
        let map = SoftMap {
            text: String::new(),
            bytes: 1,
            step_db: 0.25,
            rest: vec![0.01, 0.01],
            readouts: vec![super::Readout { edge: 0, byte: 0, wrong: 0.01 / 0.98 }],
        };
        assert_eq!(map.edges(&edges, &[0]), edges);
        assert!((map.edges(&edges, &[1])[0].probability - 0.5).abs() < 1e-12);
        // 40 steps of 0.25 dB: ten times as likely right as wrong.
        let expected = 0.01 * (10.0 / 11.0) + 0.99 / 11.0;
        assert!((map.edges(&edges, &[41])[0].probability - expected).abs() < 1e-12);
        assert_eq!(map.edges(&edges, &[41])[1], edges[1]);
    }

    #[test]
    fn a_drawn_map_takes_no_more_from_an_edge_than_it_has() {
        let edges: Vec<Edge> = (0..20).map(|a| Edge { a, b: a + 1, flips: false, probability: 0.01 }).collect();
        for seed in 0..100 {
            let map = SoftMap::new(&mut Draw::new(seed, 0), 20, &edges, &(0..20).collect::<Vec<_>>());
            assert!(map.rest.iter().all(|rest| (0.0..=0.01).contains(rest)), "{:?}", map.rest);
            let all_mean = vec![0; map.bytes];
            let mut some_mean = all_mean.clone();
            some_mean[0] = 1;
            let changed = map.edges(&edges, &some_mean);
            for (place, edge) in changed
                .iter()
                .enumerate()
                .filter(|(place, _)| map.readouts.iter().all(|readout| readout.edge != *place || readout.byte != 0))
            {
                assert!((edge.probability - 0.01).abs() < 1e-12, "{place}");
            }
        }
    }
}
