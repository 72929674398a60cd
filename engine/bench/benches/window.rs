//! Compares sliding windows and streams with whole shots on long experiments: time from the last
//! round to the answer; and for streams the work of a whole shot.
//!
//! A window is as large as the code's distance, and so is its buffer. By windows only the last
//! window remains when the last round arrives; a whole shot begins then. Each is shown at 5 d and
//! at 100 d rounds of measurement.

use super::input::drawn;
use super::measure::{CLOCK, Placement, Reading, Suite, median, ns_per};
use pinwheel_engine::code::{Model, bundled_named};
use pinwheel_engine::decode::MatcherModel;
use pinwheel_engine::decode::stream::StreamedModel;
use pinwheel_engine::decode::window::{WindowModel, WindowWorker};
use pinwheel_engine::profile::{Predecoder, WindowRounds};
use std::sync::Arc;

/// Rounds of a repetition, over all of its shots.
const ROUNDS: u64 = 100_000;
const REPETITIONS: (Placement, usize) = (Placement::OneCore, 5);

pub fn register(suite: &mut Suite) {
    for (code, distance) in [("d3", 3), ("d5", 5)] {
        let [short, long] = [5, 100].map(|times| lengths(suite, code, distance, times * distance));
        suite.figure(format!("window/{code}-last-100d"), "ns", long, Some(("5d", short)));
    }
}

/// Compares the last window with a whole shot, for one length of experiment. Returns the reading of
/// the last window.
fn lengths(suite: &mut Suite, code: &str, distance: u32, rounds: u32) -> Reading {
    let model = Arc::new(bundled_named(&format!("surface_{code}@r{rounds}")).unwrap());
    let shots = (suite.effort.scale(ROUNDS) / u64::from(rounds)).max(20);
    let name = format!("{code}-r{rounds}");
    let size = WindowRounds { commit_rounds: distance, buffer_rounds: distance };
    let cases = [("windows", Predecoder::None), ("predecoded windows", Predecoder::Local)];
    let [windows, predecoded] = cases.map(|(what, predecoder)| {
        let drawn = Arc::clone(&model);
        let ready = Arc::new(WindowModel::new(&model, size).unwrap().predecoding(predecoder));
        suite.case(format!("{what} {name}"), &["last", "middle"], REPETITIONS, move || windows(&drawn, &ready, shots))
    });
    let (drawn, streamed) = (Arc::clone(&model), Arc::new(StreamedModel::new(&model, size).unwrap()));
    let stream =
        suite.case(format!("stream {name}"), &["last", "shot"], REPETITIONS, move || stream(&drawn, &streamed, shots));
    let whole = suite.case(format!("whole shots {name}"), &["shot"], REPETITIONS, move || vec![whole(&model, shots)]);
    suite.figure(format!("window/{name}-stream"), "ns", stream, Some(("windows", windows)));
    suite.figure(format!("window/{name}-stream-shot"), "ns", stream.part(1), Some(("whole-shot", whole)));
    suite.figure(format!("window/{name}"), "ns", windows, Some(("whole-shot", whole)));
    suite.figure(format!("window/{name}-middle"), "ns", windows.part(1), None);
    suite.figure(format!("window/{name}-predecoded"), "ns", predecoded, Some(("not", windows)));
    suite.figure(format!("window/{name}-predecoded-middle"), "ns", predecoded.part(1), Some(("not", windows.part(1))));
    windows
}

/// Median time of the last window, and of the windows between the first and the last, decoded as a
/// worker decodes shots that arrive by rounds.
fn windows(model: &Model, ready: &Arc<WindowModel>, shots: u64) -> Vec<f64> {
    let mut worker = WindowWorker::new(Arc::clone(ready));
    let mut carry = vec![0; ready.carry_words()];
    let (mut last, mut middle) = (Vec::new(), Vec::new());
    each(model, shots, |shot, observables| {
        worker.begin(shot, &mut carry, observables);
        let end = ready.plan().count() - 1;
        for index in 0..=end {
            let from = CLOCK.ticks();
            worker.window_by_rounds(index, &mut carry, observables).expect("shots of the model can be matched");
            let spent = ns_per(from, 1);
            match index {
                0 => {}
                _ if index == end => last.push(spent),
                _ => middle.push(spent),
            }
        }
    });
    vec![median(&last), median(&middle)]
}

/// Median time of the last part of a stream, and of the whole shot as a stream.
fn stream(model: &Model, streamed: &StreamedModel, shots: u64) -> Vec<f64> {
    let mut matcher = streamed.matcher();
    let (mut last, mut shot) = (Vec::new(), Vec::new());
    each(model, shots, |words, observables| {
        let from = CLOCK.ticks();
        let mut part_from = from;
        for part in 0..streamed.parts() {
            if part + 1 == streamed.parts() {
                part_from = CLOCK.ticks();
            }
            let decoded = streamed.decode(&mut matcher, part, |word| words[word as usize], observables);
            decoded.expect("shots of the model can be matched");
        }
        last.push(ns_per(part_from, 1));
        shot.push(ns_per(from, 1));
    });
    vec![median(&last), median(&shot)]
}

/// Median time of a whole shot.
fn whole(model: &Model, shots: u64) -> f64 {
    let mut matcher = MatcherModel::new(model).unwrap().matcher();
    let mut spent = Vec::new();
    each(model, shots, |shot, observables| {
        let from = CLOCK.ticks();
        matcher.decode(shot, observables).expect("shots of the model can be matched");
        spent.push(ns_per(from, 1));
    });
    median(&spent)
}

/// Passes shots, the same for each caller, each with room for its observables. They are drawn in
/// advance: a sampler of a long model is tens of megabytes, and its effect on the caches would be
/// measured.
fn each(model: &Model, shots: u64, mut run: impl FnMut(&[u64], &mut [u64])) {
    let mut observables = vec![0; model.observable_words()];
    for shot in &drawn(model, 11, shots) {
        run(shot, &mut observables);
    }
}
