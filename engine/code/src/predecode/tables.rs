//! The tables of [`Local`](super::Local) as flat arrays, for a device kernel with the same rule.
//!
//! Plain data, built by cold code, bounded by the model. Row `d` of a table is `from[d]..from[d +
//! 1]`.

/// The partner that stands for the boundary.
pub const BOUNDARY: u32 = u32::MAX;

/// Neighbourhoods and resolutions of every detector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tables {
    /// Start of each detector's neighbourhood, and the end of the last.
    pub near_from: Vec<u32>,
    /// A word of the syndrome with detectors of the neighbourhood.
    pub near_word: Vec<u32>,
    /// Their bits in that word.
    pub near_mask: Vec<u64>,
    /// Start of each detector's resolutions, and the end of the last.
    pub way_from: Vec<u32>,
    /// The partner, or [`BOUNDARY`].
    pub way_partner: Vec<u32>,
    /// Observables that each resolution flips, in the number of words asked for.
    pub way_flips: Vec<u64>,
}

impl Tables {
    /// Tables without detectors, which resolve nothing.
    pub fn empty() -> Tables {
        let (near_word, near_mask, way_partner, way_flips) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Tables { near_from: vec![0], near_word, near_mask, way_from: vec![0], way_partner, way_flips }
    }

    /// Detectors that have a row.
    pub fn detectors(&self) -> u32 {
        self.near_from.len() as u32 - 1
    }

    /// Ends the row of a detector.
    pub(super) fn end_row(&mut self) {
        self.near_from.push(self.near_word.len() as u32);
        self.way_from.push(self.way_partner.len() as u32);
    }
}
