//! What the soft bytes of a shot say of the edges of a matching graph.
//!
//! Cold code finds the edges; [`SoftEdges::weights`] runs for each shot, allocates nothing, and costs one step for
//! each edge of the map. Bounded by the map.
//!
//! # The rule
//!
//! An edge has the probability that an odd number of these happened: its errors other than readouts, and each of
//! its readouts, by its byte or else by its mean. So a shot without soft bytes has the model's weights. See
//! Pattison, Beverland, da Silva, Delfosse, arXiv:2107.13589.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::correlations::add;
use super::graph::{Graph, GraphError, weight_of};
use super::soft::{Line, SoftMap, refused};
use super::{Component, Model};

/// The share of an edge's probability by which a model's text may round it.
const ROUNDING: f64 = 1e-6;

impl Model {
    /// This model for shots that may have the soft bytes of `map`.
    ///
    /// # Errors
    /// If the model is no matching problem or has heralds, no error has the detectors of a line, or the readouts of
    /// an edge are wrong more often than its probability in the model allows.
    pub fn with_soft(self, map: Arc<SoftMap>) -> Result<Model, GraphError> {
        let model = Model { soft: Some(map), ..self };
        soft_edges(&model, &Graph::new(&model)?)?;
        Ok(model)
    }
}

/// A readout of an edge: its byte, and its mean probability to be wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Readout {
    byte: u32,
    wrong: f64,
}

/// An edge with readouts.
#[derive(Clone, Copy, Debug, PartialEq)]
struct SoftEdge {
    edge: u32,
    /// Probability of its errors other than readouts.
    rest: f64,
    /// The end of its readouts, which begin where those of the edge before end.
    end: u32,
}

/// What the soft bytes of a model say of the edges of its graph.
#[derive(Clone, Debug, PartialEq)]
pub struct SoftEdges {
    /// The weight of each edge of the graph in a shot without soft bytes, `ln((1-p)/p)`.
    pub base: Vec<f64>,
    edges: Box<[SoftEdge]>,
    readouts: Box<[Readout]>,
    /// Probability that a readout is wrong, by its byte.
    wrong: Box<[f64]>,
}

/// The edges of `model`'s soft bytes; `graph` is the model's. `None` if it has no map.
///
/// # Errors
/// As [`Model::with_soft`].
#[expect(clippy::cast_possible_truncation, reason = "a map has fewer than 2^32 lines")]
pub fn soft_edges(model: &Model, graph: &Graph) -> Result<Option<SoftEdges>, GraphError> {
    let Some(map) = &model.soft else { return Ok(None) };
    if !model.heralds.is_empty() {
        let remedy = "remove the tags [herald] of its detectors, and give heralds as bytes: 1 if one fires, 255 if not";
        return Ok(refused(0, "a model with heralds", "heralds or soft bytes, not both", remedy)?);
    }
    let mut all = vec![0.0; graph.edges.len()];
    for error in model.errors.iter().filter(|error| error.probability > 0.0) {
        let edges = error.components.iter().filter_map(|part| graph.edge_of(model, part));
        edges.for_each(|edge| add(&mut all[edge as usize], error.probability));
    }
    let mut by_edge: BTreeMap<u32, Vec<&Line>> = BTreeMap::new();
    for line in &map.lines {
        match graph.edge_of(model, &Component { detectors: line.detectors.clone(), observables: Vec::new() }) {
            Some(edge) => by_edge.entry(edge).or_default().push(line),
            None => {
                let expected = "the detectors of an error of the model, or of a part of one";
                return Ok(refused(line.number, named(line), expected, "make map and model from one circuit")?);
            }
        }
    }
    let (mut edges, mut readouts) = (Vec::new(), Vec::new());
    for (edge, lines) in by_edge {
        let mut of_readouts = 0.0;
        lines.iter().for_each(|line| add(&mut of_readouts, line.wrong));
        let known = all[edge as usize];
        // Whatever else happens, an edge is as likely as its readouts at least, and as their opposite at most.
        let most = known.min(1.0 - known);
        if of_readouts > most * (1.0 + ROUNDING) {
            let line = lines[lines.len() - 1];
            let found = format!("readouts of {} that are wrong with probability {of_readouts:.3e}", named(line));
            let expected = format!("at most {most:.3e}: the model's errors of these detectors have {known:.3e}");
            return Ok(refused(line.number, found, expected, "make map and model from one circuit")?);
        }
        readouts.extend(lines.iter().map(|line| Readout { byte: line.byte, wrong: line.wrong }));
        // Readouts that are wrong half of the time, but for rounding, leave the rest open.
        let apart = 2.0f64.mul_add(-of_readouts, 1.0);
        let rest = if apart > 0.0 { ((known - of_readouts) / apart).clamp(0.0, 1.0) } else { 0.0 };
        edges.push(SoftEdge { edge, rest, end: readouts.len() as u32 });
    }
    let wrong = std::iter::once(0.0).chain((1..=255).map(|byte| map.wrong(byte))).collect();
    let base = all.into_iter().map(weight_of).collect();
    Ok(Some(SoftEdges { base, edges: edges.into(), readouts: readouts.into(), wrong }))
}

impl SoftEdges {
    /// The edges whose weights a shot with these soft bytes changes, and these weights, `ln((1-p)/p)`.
    ///
    /// # Panics
    /// If `soft` has fewer words than the map.
    pub fn weights<'a>(&'a self, soft: &'a [u64]) -> impl Iterator<Item = (u32, f64)> + 'a {
        let is_given = soft.iter().any(|word| *word != 0);
        let edges = if is_given { &self.edges[..] } else { &[] };
        let byte_of = |of: &Readout| usize::from(soft[of.byte as usize / 8].to_le_bytes()[of.byte as usize % 8]);
        let mut from = 0;
        edges.iter().filter_map(move |edge| {
            let readouts = &self.readouts[from..edge.end as usize];
            from = edge.end as usize;
            let (mut probability, mut is_known) = (edge.rest, false);
            for readout in readouts {
                let byte = byte_of(readout);
                is_known |= byte != 0;
                add(&mut probability, if byte == 0 { readout.wrong } else { self.wrong[byte] });
            }
            is_known.then(|| (edge.edge, weight_of(probability)))
        })
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        8 * (self.base.len() + self.wrong.len()) + size_of_val(&*self.edges) + size_of_val(&*self.readouts)
    }
}

fn named(line: &Line) -> String {
    line.detectors.iter().map(|detector| format!("D{detector}")).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
