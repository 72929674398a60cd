//! The defects of a shot: what fired, XORed with what edges used in advance flip.
//!
//! Owned by one matcher or decoder; memory for each detector once, whatever a shot lists.

use crate::bits::{flip, ones_of};
use crate::graph::Graph;

/// The memory for it.
#[derive(Debug)]
pub(crate) struct Defects {
    /// The defects of the last shot; different nodes.
    pub(crate) nodes: Vec<u32>,
    /// One bit for each detector: fired an odd number of times. Scratch.
    fired: Vec<u64>,
}

impl Defects {
    /// For shots of up to `detectors` detectors.
    pub(crate) fn new(detectors: usize) -> Self {
        Self { nodes: Vec::with_capacity(detectors), fired: vec![0; detectors.div_ceil(64)] }
    }

    /// Bytes on the heap.
    pub(crate) const fn bytes(&self) -> usize {
        4 * self.nodes.capacity() + 8 * self.fired.capacity()
    }

    /// Collects what fired an odd number of times among `detectors`, the detectors that the graph's
    /// edges of negative weight flip, and the nodes `flipped`.
    ///
    /// # Errors
    ///
    /// A detector that the graph does not have.
    pub(crate) fn collect(
        &mut self,
        graph: &Graph,
        detectors: impl IntoIterator<Item = u32>,
        flipped: impl Iterator<Item = u32>,
    ) -> Result<(), u32> {
        let Self { nodes: defects, fired } = self;
        let mut flipped = flipped.peekable();
        defects.clear();
        let mut end = 0;
        let mut is_folded = false;
        let mut is_ascending = graph.always_detectors.is_empty() && flipped.peek().is_none();
        for detector in detectors {
            if detector >= graph.boundary() {
                return Err(detector);
            }
            is_ascending &= detector >= end;
            end = detector + 1;
            if defects.len() == defects.capacity() {
                // Listed twice, or there would not be so many.
                fold(fired, defects, &mut is_folded);
                is_ascending = false;
            }
            defects.push(detector);
        }
        if !is_ascending {
            fold(fired, defects, &mut is_folded);
            graph.always_detectors.iter().for_each(|&detector| flip(fired, detector));
            flipped.for_each(|node| flip(fired, graph.detector_of[node as usize]));
            for (word, &bits) in (0..).zip(fired.iter()) {
                defects.extend(ones_of(word, bits));
            }
        }
        for defect in defects.iter_mut() {
            *defect = graph.node_of[*defect as usize];
        }
        Ok(())
    }
}

/// Moves a list of detectors to their bits. The first list of a shot clears them: after an error, or when the caller
/// panicked, some are set.
fn fold(fired: &mut [u64], detectors: &mut Vec<u32>, is_folded: &mut bool) {
    if !std::mem::replace(is_folded, true) {
        fired.fill(0);
    }
    detectors.iter().for_each(|&detector| flip(fired, detector));
    detectors.clear();
}
