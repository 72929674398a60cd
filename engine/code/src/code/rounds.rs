//! The rounds of a model: which detectors have the same time, and the shot layout in which each
//! round begins a new word.
//!
//! Cold code builds one per model; window decoding reads it. Bounded by the model. A model with a
//! detector without a time is refused.
//!
//! # Words
//!
//! A *round* here is a round of detectors: all detectors with the same time, which is the last of
//! their coordinates. A memory experiment of R rounds of measurement has R + 1 of them; the last
//! comes from the readout of the data qubits.
//!
//! # Why rounds begin words
//!
//! Detector numbers have no gaps, so in a packed shot two rounds may share a word. Then a thread
//! that changes one round touches the other. In this layout every round has whole words of its own
//! ([`Rounds::words`]). Rounds are disjoint byte ranges, so byte ranges express the dependencies
//! between windows. The cost is padding: 16 of 64 bits at distance 7.

use std::ops::Range;

use super::Model;

/// The model has no rounds because a detector has no time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "found detector D{detector} without a time (the last of its coordinates), expected one on each detector; take a \
     model whose detectors have coordinates (stim: DETECTOR(x, y, t)), or decode whole shots (window: None)"
)]
pub struct MissingTime {
    /// The first detector without a time.
    pub detector: u32,
}

/// The rounds of a model's detectors.
#[derive(Debug, Clone, PartialEq)]
pub struct Rounds {
    /// The round of each detector.
    of: Vec<u32>,
    /// The detectors of each round, ascending.
    members: Vec<Vec<u32>>,
    /// The first word of each round, and the word after the last round.
    first_word: Vec<u32>,
    /// The bit of each detector in this layout.
    position: Vec<u32>,
}

impl Rounds {
    /// Groups the detectors of `model` by time.
    ///
    /// # Errors
    ///
    /// If a detector has no time.
    pub fn new(model: &Model) -> Result<Self, MissingTime> {
        let time = |detector: u32| {
            let last = model.coordinates[detector as usize].last().copied();
            last.filter(|time| time.is_finite()).ok_or(MissingTime { detector })
        };
        let times = (0..model.detectors).map(time).collect::<Result<Vec<f64>, _>>()?;
        let mut distinct = times.clone();
        distinct.sort_by(f64::total_cmp);
        distinct.dedup();
        let mut members = vec![Vec::new(); distinct.len()];
        let mut of = Vec::with_capacity(times.len());
        for (detector, time) in (0u32..).zip(&times) {
            let round = distinct.partition_point(|known| known < time);
            members[round].push(detector);
            of.push(u32::try_from(round).unwrap_or(u32::MAX));
        }
        let mut position = vec![0; times.len()];
        let mut first_word = vec![0];
        let mut next = 0u32;
        for round in &members {
            for (bit, &detector) in (next * 64..).zip(round) {
                position[detector as usize] = bit;
            }
            next += u32::try_from(round.len().div_ceil(64)).unwrap_or(u32::MAX);
            first_word.push(next);
        }
        Ok(Self { of, members, first_word, position })
    }

    /// Number of rounds.
    #[inline]
    pub fn count(&self) -> u32 {
        u32::try_from(self.members.len()).unwrap_or(u32::MAX)
    }

    /// The round of a detector.
    ///
    /// # Panics
    ///
    /// If the model has no such detector.
    #[inline]
    pub fn of(&self, detector: u32) -> u32 {
        self.of[detector as usize]
    }

    /// The detectors of a round, ascending.
    ///
    /// # Panics
    ///
    /// If there is no such round.
    #[inline]
    pub fn members(&self, round: u32) -> &[u32] {
        &self.members[round as usize]
    }

    /// The words of these rounds in a shot of this layout.
    ///
    /// # Panics
    ///
    /// If there are no such rounds.
    #[inline]
    pub fn words(&self, rounds: Range<u32>) -> Range<usize> {
        self.first_word[rounds.start as usize] as usize..self.first_word[rounds.end as usize] as usize
    }

    /// The bit of a detector in a shot of this layout.
    ///
    /// # Panics
    ///
    /// If the model has no such detector.
    #[inline]
    pub fn position(&self, detector: u32) -> u32 {
        self.position[detector as usize]
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::*;
    use crate::code::bundled;

    #[test]
    fn rounds_are_the_distinct_times_and_each_begins_a_word() {
        let text = "error(0.1) D0\ndetector(5, 2) D0\ndetector(1, 0.5) D1\ndetector(0, 2) D2\n";
        let rounds = Rounds::new(&Model::parse(text.as_bytes()).unwrap()).unwrap();
        assert_eq!((rounds.count(), rounds.words(0..1), rounds.words(1..2)), (2, 0..1, 1..2));
        assert_eq!((rounds.of(0), rounds.of(1), rounds.members(1)), (1, 0, &[0, 2][..]));
        assert_eq!([0, 1, 2].map(|detector| rounds.position(detector)), [64, 0, 65]);
        let wide: String = (0..65).map(|d| format!("detector({d}, 0) D{d}\n")).collect();
        let rounds = Rounds::new(&Model::parse(format!("{wide}detector(0, 1) D65").as_bytes()).unwrap()).unwrap();
        assert_eq!((rounds.words(0..2), rounds.position(64), rounds.position(65)), (0..3, 64, 128));
    }

    #[test]
    fn the_bundled_surface_code_has_half_a_round_first_and_last() {
        let rounds = Rounds::new(&bundled()).unwrap();
        let sizes: Vec<usize> = (0..rounds.count()).map(|round| rounds.members(round).len()).collect();
        assert_eq!(sizes, [12, 24, 24, 24, 24, 12]);
    }

    #[test]
    fn a_detector_without_a_time_is_named() {
        for text in ["detector(1) D0\nerror(0.1) D0 D2\n", "error(0.1) D0\n"] {
            let model = Model::parse(text.as_bytes()).unwrap();
            let error = Rounds::new(&model).unwrap_err();
            assert_eq!(error.detector, u32::from(model.detectors > 1));
            for part in [format!("D{}", error.detector).as_str(), "expected", "window: None"] {
                assert!(error.to_string().contains(part), "{error}");
            }
        }
        assert_eq!(Rounds::new(&Model::parse(b"").unwrap()).unwrap().count(), 0);
    }
}
