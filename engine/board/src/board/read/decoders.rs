//! Computed fields of a stream's view: its answers by decoder.

use crate::board::get;
use crate::board::layout::StreamHarvestBlock;
use crate::board::snapshot::DecoderShots;
use crate::profile::DecoderKind;

impl StreamHarvestBlock {
    pub(in crate::board) fn decoders(&self) -> Vec<DecoderShots> {
        let row = |decoder: DecoderKind| DecoderShots {
            decoder,
            shots: get(&self.decoded_by[decoder as usize]),
            shots_with_observables: get(&self.judged_by[decoder as usize]),
            logical_errors: get(&self.wrong_by[decoder as usize]),
        };
        DecoderKind::ALL.into_iter().map(row).filter(|row| row.shots > 0).collect()
    }
}
