//! The tables of [`Local`](super::Local) laid flat, for a device that has its own program for the same rule.
//!
//! Cold, plain data, bounded by the model. Row `d` of a table lies at `from[d]..from[d + 1]`.

/// The partner that stands for the boundary.
pub const BOUNDARY: u32 = u32::MAX;

/// Neighbourhoods and resolutions of every detector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tables {
    /// Where each detector's neighbourhood begins, and the end.
    pub near_from: Vec<u32>,
    /// Word of the syndrome that a neighbourhood touches.
    pub near_word: Vec<u32>,
    /// Its bits there.
    pub near_mask: Vec<u64>,
    /// Where each detector's resolutions begin, and the end.
    pub way_from: Vec<u32>,
    /// The partner, or [`BOUNDARY`].
    pub way_partner: Vec<u32>,
    /// Observables that the resolution flips: as many words each as were asked for.
    pub way_flips: Vec<u64>,
}

impl Tables {
    /// Tables of no detectors: nothing is ever resolved.
    #[must_use]
    pub fn empty() -> Tables {
        let (near_word, near_mask, way_partner, way_flips) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Tables { near_from: vec![0], near_word, near_mask, way_from: vec![0], way_partner, way_flips }
    }

    /// Detectors that have a row.
    #[must_use]
    pub fn detectors(&self) -> u32 {
        self.near_from.len() as u32 - 1
    }

    /// Ends the row of a detector.
    pub(super) fn end_row(&mut self) {
        self.near_from.push(self.near_word.len() as u32);
        self.way_from.push(self.way_partner.len() as u32);
    }
}
