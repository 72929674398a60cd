//! Rows of decoders within a view.

use crate::profile::DecoderKind;
use serde::Serialize;

/// Answers that one decoder gave, without errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct DecoderShots {
    /// The decoder.
    pub decoder: DecoderKind,
    /// Its answers.
    pub shots: u64,
    /// Of these, answers that could be compared with a true observable.
    pub shots_with_observables: u64,
    /// Of these, answers with a wrong observable.
    pub logical_errors: u64,
}

impl DecoderShots {
    /// Sums by decoder, in the order of the decoders; only decoders that gave answers.
    pub fn sum<'a>(rows: impl IntoIterator<Item = &'a DecoderShots>) -> Vec<DecoderShots> {
        let none = |decoder| DecoderShots { decoder, shots: 0, shots_with_observables: 0, logical_errors: 0 };
        let mut sums = DecoderKind::ALL.map(none);
        for row in rows {
            let sum = &mut sums[row.decoder as usize];
            sum.shots = sum.shots.saturating_add(row.shots);
            sum.shots_with_observables = sum.shots_with_observables.saturating_add(row.shots_with_observables);
            sum.logical_errors = sum.logical_errors.saturating_add(row.logical_errors);
        }
        sums.into_iter().filter(|sum| sum.shots > 0).collect()
    }
}
