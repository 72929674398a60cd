//! Shots of surface codes of any distance, with the answers of the engine's own matcher.
//!
//! Rotated memory in the Z basis, as many rounds as the distance, all four noise parameters 0.005.
//! Distances 3 and 5 are bundled. The generator of `stabilizer_qec` makes the others, where the
//! feature `peers` builds it. Bounds: a set of distinct shots, repeated to the wanted number.

use crate::input::{Input, drawn, set};
use pinwheel_engine::code::{Format, Layout, Model, ShotSet, ShotWriter, bundled_named};
use pinwheel_engine::decode::MatcherModel;
use std::sync::Arc;

/// The model of distance `d`, if it is bundled or can be made.
pub fn model(d: u32) -> Option<Model> {
    bundled_named(&format!("surface_d{d}")).ok().or_else(|| generated(d))
}

#[cfg(not(feature = "peers"))]
const fn generated(_: u32) -> Option<Model> {
    None
}

#[cfg(feature = "peers")]
fn generated(d: u32) -> Option<Model> {
    use stabilizer_qec::circuit::Circuit;
    use stabilizer_qec::dem::Dem;
    use stabilizer_qec::generated::{Noise, generate};

    const P: f64 = 0.005;
    let noise = Noise {
        after_clifford_depolarization: P,
        before_round_data_depolarization: P,
        before_measure_flip_probability: P,
        after_reset_flip_probability: P,
        ..Noise::default()
    };
    let text = generate("surface_code:rotated_memory_z", d, u64::from(d), &noise).unwrap();
    let model = Dem::from_circuit(&Circuit::parse(&text).unwrap()).unwrap();
    Some(Model::parse(model.to_stim(true).as_bytes()).unwrap())
}

/// `distinct` shots of `model`, repeated to at least `count`; the expected answers are those of the
/// matcher.
pub fn matched(model: Model, distinct: u64, count: u64) -> (Input, MatcherModel) {
    let matching = MatcherModel::new(&model).unwrap();
    let mut matcher = matching.matcher();
    let shots = drawn(&model, 11, distinct);
    let answers = shots.iter().map(|shot| {
        let mut observables = vec![0; model.observable_words()];
        matcher.decode(shot, &mut observables).expect("shots of the model can be matched");
        observables
    });
    let truth = set(answers, Layout::observables(model.observables));
    let shots = set(shots.into_iter(), Layout::detectors(model.detectors));
    let input = Input { name: "surface", model: Arc::new(model), shots, truth: Some(truth) };
    (repeated(input, count), matching)
}

/// The same shots, repeated to at least `count`.
pub fn repeated(input: Input, count: u64) -> Input {
    let laps = count.div_ceil(input.shots.len() as u64) as usize;
    let again = |shots: &ShotSet, layout| {
        let mut writer = ShotWriter::new(Vec::new(), Format::B8, layout);
        for shot in shots.iter() {
            writer.write_shot(shot).unwrap();
        }
        let bytes = writer.finish().unwrap().repeat(laps);
        Arc::new(ShotSet::read(bytes.as_slice(), Format::B8, layout).unwrap())
    };
    let shots = again(&input.shots, Layout::detectors(input.model.detectors));
    let truth = input.truth.as_ref().map(|truth| again(truth, Layout::observables(input.model.observables)));
    Input { shots, truth, ..input }
}
