//! The checks that the fuzzer runs, on bytes drawn from a seed.
use crate::oracle::Draws;

#[path = "../../../fuzz/src/matching.rs"]
mod checks;

#[test]
fn models_shots_weights_and_rounds_of_any_bytes_are_refused_or_matched() {
    for seed in 0..3_000 {
        let mut draws = Draws(seed);
        let count = draws.below(600);
        // Few different bytes make parallel edges and equal weights.
        let different = [4, 64, 256][draws.below(3) as usize];
        let bytes: Vec<u8> = (0..count).map(|_| draws.below(different) as u8).collect();
        checks::any_model(&bytes);
        checks::any_shots(&bytes);
        checks::any_weights(&bytes);
        checks::any_rounds(&bytes);
    }
}
