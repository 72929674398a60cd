//! Confidence in an answer: the lightest explanation that flips a chosen observable, and the
//! lightest that does not.
//!
//! Owned and called by one thread, beside its [`Matcher`]. The gap between the two weights is the
//! logarithm of how much likelier the better class is, as far as its lightest explanation stands for
//! all of it. Bounded as a matcher of one more detector; a shot allocates nothing.
//!
//! # How a class is forced
//!
//! Say each detector has a side, 0 or 1, and an edge between two detectors flips the observable
//! exactly if its ends are on different sides. Whether a set of edges flips the observable then
//! depends on the shot and on the edges to the boundary only: those are of two kinds, as if there
//! were two boundaries. One of these two becomes a detector of its own. Whether it fires says
//! whether an odd number of edges ends there, and so the class of every matching.
//!
//! Surface codes and repetition codes have such sides. Where edges away from the boundary form a
//! cycle that flips the observable (a torus), there are none.
//!
//! # Cost
//!
//! One more search for each class that is asked for, edge by edge: nearly all nodes are within a few
//! edges of that new detector, so tables do not help. The other class's matching crosses the code,
//! so its regions grow further than those of a usual shot.

use std::sync::Arc;

use crate::graph::{Edge, GraphError};
use crate::matcher::{MatchError, Matched, Matcher};
use crate::model::MatchingModel;

/// No side yet.
const UNKNOWN: u8 = 2;

/// Whether an explanation flips the observable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// It does not.
    Kept,
    /// It does.
    Flipped,
}

/// Why classes cannot be told apart.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ConfidenceError {
    #[error(transparent)]
    Graph(#[from] GraphError),
    #[error(
        "edge {edge} closes a cycle that flips observable {observable} without reaching the boundary; a confidence \
         needs an observable that only paths between boundaries flip"
    )]
    Cycle {
        /// Index of the edge, from 0.
        edge: usize,
        observable: u32,
    },
}

/// The two classes of one observable of a graph. Shared by those that weigh them.
#[derive(Debug)]
pub struct ConfidenceModel {
    matching: Arc<MatchingModel>,
    /// For each detector its side.
    sides: Vec<u8>,
    observable: u32,
}

/// Weighs the two classes of one observable.
#[derive(Debug)]
pub struct Confidence {
    matcher: Matcher,
    model: Arc<ConfidenceModel>,
}

impl ConfidenceModel {
    /// For `observable` of the graph of `detectors` detectors and `edges`; see
    /// [`MatchingModel::new`].
    ///
    /// # Errors
    ///
    /// [`ConfidenceError`]; it names the edge by its index.
    pub fn new<'a>(
        detectors: u32,
        edges: impl IntoIterator<Item = Edge<'a>>,
        observable: u32,
    ) -> Result<Self, ConfidenceError> {
        let edges: Vec<Edge<'a>> = edges.into_iter().collect();
        // Refuses what has no place in a graph.
        let words = edges.iter().map(|edge| edge.observables.len()).max().unwrap_or(0);
        MatchingModel::with_tables(detectors, words, edges.iter().copied(), 0)?;
        let sides = sides(detectors, &edges, observable)?;
        let beyond = detectors;
        let split = edges.iter().map(|edge| {
            let is_there = edge.b.is_none() && sides[edge.a as usize] != flips(edge, observable);
            Edge { b: if is_there { Some(beyond) } else { edge.b }, observables: &[], ..*edge }
        });
        let model = MatchingModel::with_tables(detectors.saturating_add(1), 0, split, 0)?;
        Ok(Self { matching: Arc::new(model), sides, observable })
    }

    /// The observable.
    pub fn observable(&self) -> u32 {
        self.observable
    }

    /// Bytes on the heap.
    pub fn bytes(&self) -> usize {
        self.matching.bytes() + self.sides.capacity()
    }
}

impl Confidence {
    /// With memory of its own.
    pub fn new(model: Arc<ConfidenceModel>) -> Self {
        Self { matcher: Matcher::new(Arc::clone(&model.matching)), model }
    }

    /// The lightest explanation of the fired `detectors` that is of `class`. The confidence in an
    /// answer is the weight of the other class less its own.
    ///
    /// # Errors
    ///
    /// [`MatchError`]. [`MatchError::Unmatchable`] if no explanation is of that class; the detector
    /// behind the last then stands for one of the two boundaries.
    pub fn weight(
        &mut self,
        detectors: impl IntoIterator<Item = u32> + Clone,
        class: Class,
    ) -> Result<Matched, MatchError> {
        let Self { matcher, model } = self;
        let sides = &model.sides;
        let beyond = sides.len() as u32;
        let mut odd = u8::from(class == Class::Flipped);
        for detector in detectors.clone() {
            match sides.get(detector as usize) {
                Some(side) => odd ^= side,
                None => return Err(MatchError::Detector { detector, detectors: beyond }),
            }
        }
        matcher.decode(detectors.into_iter().chain((odd == 1).then_some(beyond)), &mut [])
    }

    /// Bytes on the heap, without the model.
    pub fn bytes(&self) -> usize {
        self.matcher.bytes()
    }
}

/// 1 if `edge` flips `observable`.
fn flips(edge: &Edge<'_>, observable: u32) -> u8 {
    let word = edge.observables.get(observable as usize / 64).copied().unwrap_or(0);
    (word >> (observable % 64) & 1) as u8
}

fn sides(detectors: u32, edges: &[Edge<'_>], observable: u32) -> Result<Vec<u8>, ConfidenceError> {
    let mut of_detector = vec![Vec::new(); detectors as usize];
    for (index, edge) in edges.iter().enumerate() {
        for end in std::iter::once(edge.a).chain(edge.b) {
            of_detector[end as usize].push(index);
        }
    }
    let mut sides = vec![UNKNOWN; detectors as usize];
    let mut reached = Vec::new();
    for first in 0..detectors {
        if sides[first as usize] == UNKNOWN {
            sides[first as usize] = 0;
            reached.push(first);
        }
        while let Some(at) = reached.pop() {
            for &index in &of_detector[at as usize] {
                let edge = &edges[index];
                let Some(b) = edge.b else { continue };
                let other = if edge.a == at { b } else { edge.a };
                let side = sides[at as usize] ^ flips(edge, observable);
                if sides[other as usize] == UNKNOWN {
                    sides[other as usize] = side;
                    reached.push(other);
                } else if sides[other as usize] != side {
                    return Err(ConfidenceError::Cycle { edge: index, observable });
                }
            }
        }
    }
    Ok(sides)
}
