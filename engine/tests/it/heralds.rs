//! Shots whose heralds say where errors may have happened.

use crate::boards::boards;
use crate::rig::{assert_nothing_lost, beside_another, config, profile, replay, run, sink};
use pinwheel_engine::code::graph::Graph;
use pinwheel_engine::code::{Format, Layout, Model, Sampler, ShotSet, ShotWriter, bundled_named, ones};
use pinwheel_engine::decode::{Matcher, MatcherModel};
use pinwheel_engine::engine::Engine;
use pinwheel_engine::profile::{HotAllocations, Predecoder, Window, WindowRounds};
use std::fmt::Write;
use std::sync::Arc;

/// The distance 5 surface code at p = 0.001, whose data qubits are erased with 1 % before each round: each of
/// the two edges of an erased qubit is wrong with one half. With heralds, or for shots without them.
pub(crate) fn erased(has_heralds: bool) -> Model {
    let mut plain = bundled_named("surface_d5").unwrap();
    plain.errors.iter_mut().for_each(|error| error.probability /= 5.0);
    let time = |detector: u32| plain.coordinates[detector as usize].last().copied();
    let graph = Graph::new(&plain).unwrap();
    let of_data = graph.edges.iter().filter(|edge| edge.b.is_none_or(|b| time(edge.a) == time(b)));
    let mut text = plain.to_string();
    for (herald, edge) in (plain.detectors..).zip(of_data) {
        let other = edge.b.map_or(String::new(), |b| format!(" D{b}"));
        let flips = if edge.observables[0] == 1 { " L0" } else { "" };
        let herald_of_it = if has_heralds { format!(" D{herald}") } else { String::new() };
        writeln!(text, "error(0.005) D{}{other}{flips}{herald_of_it}", edge.a).unwrap();
        if has_heralds {
            writeln!(text, "error(0.005) D{herald}").unwrap();
        }
        writeln!(text, "detector{} D{herald}", if has_heralds { "[herald]" } else { "" }).unwrap();
    }
    Model::parse(text.as_bytes()).unwrap()
}

fn matcher(model: &Model) -> Box<dyn Matcher> {
    MatcherModel::new(model).unwrap().matcher()
}

#[test]
fn heralds_of_erasures_halve_the_logical_errors() {
    let (model, plain) = (erased(true), erased(false));
    let (with, without) = (MatcherModel::new(&model).unwrap(), MatcherModel::new(&plain).unwrap());
    let names = [&model, &plain].map(|model| MatcherModel::new(model).unwrap().name().to_owned());
    assert_eq!(names, ["sparse-blossom with heralds", "sparse-blossom"]);
    let (mut with, mut without) = (with.matcher(), without.matcher());
    let first = model.heralds[0];
    let mut sampler = Sampler::new(&model, 4);
    let (mut shot, mut truth, mut found) = (vec![0; model.detector_words()], [0], [0]);
    let mut errors = [0; 2];
    for _ in 0..60_000 {
        sampler.draw(&mut shot, &mut truth);
        with.decode(&shot, &mut found).unwrap();
        errors[0] += usize::from(found != truth);
        let heralds: Vec<u32> = ones(&shot).filter(|detector| *detector >= first).collect();
        heralds.into_iter().for_each(|herald| shot[herald as usize / 64] &= !(1 << (herald % 64)));
        without.decode(&shot, &mut found).unwrap();
        errors[1] += usize::from(found != truth);
    }
    assert!(errors[1] > 40 && 2 * errors[0] <= errors[1], "{errors:?} logical errors with and without heralds");
}

/// The weight of the last one counted.
#[test]
fn an_edge_has_the_probability_of_all_of_its_heralds_that_fire() {
    // D0 and the boundary, or by way of D1 with 0.1 twice. D2 says two of five, D3 one of a thousand.
    let text = "error(0.01) D0 L0\nerror(0.1) D0 D1\nerror(0.1) D1\n\
                error(0.004) D0 L0 D2\nerror(0.006) D2\nerror(0.00001) D0 L0 D3\nerror(0.00999) D3\n\
                detector[herald] D2\ndetector[herald] D3\n";
    let mut matcher = matcher(&Model::parse(text.as_bytes()).unwrap());
    for (shot, expected) in [(0b0001, 0), (0b1001, 0), (0b0101, 1), (0b1101, 1)] {
        let mut found = [0];
        matcher.decode(&[shot], &mut found).unwrap();
        assert_eq!(found, [expected], "{shot:b}");
    }
}

#[test]
fn the_engine_answers_shots_with_their_heralds() {
    let home = beside_another();
    let model = Arc::new(erased(true));
    let mut matcher = matcher(&model);
    let layout = Layout::detectors(model.detectors);
    let mut writer = ShotWriter::new(Vec::new(), Format::B8, layout);
    let mut sampler = Sampler::new(&model, 3);
    let (mut shot, mut found, mut expected) = (vec![0; model.detector_words()], [0], Vec::new());
    for _ in 0..3_000 {
        sampler.draw(&mut shot, &mut [0]);
        writer.write_shot(&shot).unwrap();
        matcher.decode(&shot, &mut found).unwrap();
        expected.push(found[0]);
    }
    let shots = Arc::new(ShotSet::read(&writer.finish().unwrap()[..], Format::B8, layout).unwrap());
    let mut profile = profile();
    profile.hot_allocations = HotAllocations::Count;
    let path = home.file("predictions.b8");
    let mut config = config(&profile, replay(&model, &shots), None);
    config.sink = Some(sink(&profile, model.observables, Some(&path), None));
    let outcome = run(config);
    assert_nothing_lost(&outcome);
    assert_eq!(outcome.snapshot.engine.decoder, "sparse-blossom with heralds");
    let predicted = ShotSet::read(&std::fs::read(&path).unwrap()[..], Format::B8, Layout::observables(1)).unwrap();
    assert!(predicted.iter().map(|word| word[0]).eq(expected));
    for thread in &outcome.snapshot.threads {
        assert_eq!(thread.memory.allocations, Some(0), "{}: {:?}", thread.name, thread.memory.first_site);
    }
}

#[test]
fn heralds_that_nothing_reads_are_refused_before_anything_starts() {
    let home = beside_another();
    let model = Arc::new(erased(true));
    let shots = Arc::new(ShotSet::read(&[][..], Format::B8, Layout::detectors(model.detectors)).unwrap());
    let window = Window::Some(WindowRounds { commit_rounds: 2, buffer_rounds: 2 });
    for (window, predecoder) in [(window, Predecoder::None), (Window::None, Predecoder::Local)] {
        let mut profile = profile();
        (profile.window, profile.predecoder) = (window, predecoder);
        let said = Engine::start(config(&profile, replay(&model, &shots), None)).err().unwrap().to_string();
        assert!(said.contains("the model has heralds, which windows"), "{said}");
    }
    let mut profile = profile();
    profile.confidence = true;
    let said = Engine::start(config(&profile, replay(&model, &shots), None)).err().unwrap().to_string();
    assert!(said.contains("found a model with heralds, expected one without"), "{said}");
    assert!(boards(&home.boards()).is_empty());
}
