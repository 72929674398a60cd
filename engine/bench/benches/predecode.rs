//! Compares decoding with the predecoder `Local` and without it.

use super::input::{Input, surfaces};
use super::matching::each_window;
use super::measure::{Placement, Suite};
use pinwheel_engine::decode::MatcherModel;
use pinwheel_engine::predecode::{Local, Passthrough, Predecoder};

pub fn register(suite: &mut Suite) {
    for input in surfaces([8_000, 2_000]) {
        let (with, without) = (input.clone(), input.clone());
        let one = (Placement::OneCore, 7);
        let name = input.name;
        let local = suite.case(format!("decode {name}, local"), &["total"], one, move || {
            vec![decode(&with, &mut Local::new(&with.model).unwrap())]
        });
        let none = suite
            .case(format!("decode {name}, none"), &["total"], one, move || vec![decode(&without, &mut Passthrough)]);
        suite.figure(format!("predecode/{name}"), "ns/shot", local, Some(("none", none)));
    }
}

/// Time per shot in the median window.
fn decode(input: &Input, predecoder: &mut dyn Predecoder) -> f64 {
    let mut matcher = MatcherModel::new(&input.model).unwrap().matcher();
    let mut residual = vec![0; input.model.detector_words()];
    let mut observables = vec![0; input.model.observable_words()];
    let mut flips = observables.clone();
    each_window(input, |shot| {
        predecoder.predecode(shot, &mut residual, &mut flips);
        matcher.decode(&residual, &mut observables).expect("shots of the model can be matched");
    })
}
