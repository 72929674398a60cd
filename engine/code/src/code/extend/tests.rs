#![allow(clippy::unwrap_used, reason = "harness")]

use std::collections::BTreeMap;

use super::*;
use crate::code::bundled_named;
use crate::code::graph::Graph;

fn made(text: &str) -> Model {
    Model::parse(text.as_bytes()).unwrap()
}

/// What a mechanism does: detectors and observables of its parts.
type Effect<'a> = Vec<(&'a [u32], &'a [u32])>;
/// An edge: its ends, its weight, its observables.
type Linked = (u32, Option<u32>, f64, Vec<u64>);

/// Mechanisms by what they do, with their probabilities.
fn mechanisms(model: &Model) -> BTreeMap<Effect<'_>, f64> {
    let all: BTreeMap<_, _> = model.errors.iter().map(|error| (key(&error.components), error.probability)).collect();
    assert_eq!(all.len(), model.errors.len());
    all
}

fn agree(long: &Model, made: &Model) {
    assert_eq!((long.detectors, long.observables), (made.detectors, made.observables));
    assert_eq!(long.coordinates, made.coordinates);
    let (ours, theirs) = (mechanisms(long), mechanisms(made));
    assert!(ours.keys().eq(theirs.keys()), "{} mechanisms, {}", ours.len(), theirs.len());
    for ((what, our), their) in ours.iter().zip(theirs.values()) {
        assert!((our - their).abs() <= 1e-12 * their, "{what:?}: {our}, {their}");
    }
}

#[test]
fn a_longer_surface_code_is_the_one_made_for_as_many_rounds() {
    agree(&bundled_named("surface_d3@r9").unwrap(), &made(include_str!("../data/long/surf_z_d3_r9_p0.005.dem")));
    agree(&bundled_named("surface_d5@r8").unwrap(), &made(include_str!("../data/long/surf_z_d5_r8_p0.005.dem")));
}

#[test]
fn as_many_rounds_as_the_model_has_give_it_back() {
    for name in ["surface_d3", "surface_d5"] {
        let model = bundled_named(name).unwrap();
        let rounds = Rounds::new(&model).unwrap().count() - 1;
        assert_eq!(extended(&model, rounds), Ok(model));
    }
}

/// The edges of each round but for the time: ends relative to the round's first detector, weight,
/// observables.
fn by_round(model: &Model) -> Vec<Vec<Linked>> {
    let (rounds, graph) = (Rounds::new(model).unwrap(), Graph::new(model).unwrap());
    let mut all = vec![Vec::new(); rounds.count() as usize];
    for edge in graph.edges {
        let round = edge.b.map_or(rounds.of(edge.a), |b| rounds.of(edge.a).min(rounds.of(b)));
        let first = rounds.members(round)[0];
        let b = edge.b.map(|b| b - first);
        all[round as usize].push((edge.a - first, b, edge.weight, edge.observables));
    }
    all
}

#[test]
fn counts_degrees_and_weights_of_the_bulk_are_periodic() {
    for (name, width) in [("surface_d3", 8), ("surface_d5", 24)] {
        let long = |rounds: u32| bundled_named(&format!("{name}@r{rounds}")).unwrap();
        let (short, longer) = (long(5), long(105));
        assert_eq!(longer.detectors, short.detectors + 100 * width);
        let (short, longer) = (by_round(&short), by_round(&longer));
        assert_eq!(longer.len(), 106);
        // Bit for bit, so that windows over it are one and the same graph.
        assert!(longer[3..102].iter().all(|round| *round == longer[3]));
        let counts = |rounds: &[Vec<_>]| rounds.iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(counts(&longer[..3]), counts(&short[..3]));
        assert_eq!(counts(&longer[103..]), counts(&short[3..]));
    }
}

#[test]
fn what_cannot_be_made_longer_is_refused_with_a_reason() {
    let short = bundled_named("surface_d3").unwrap();
    let said = extended(&short, 9).unwrap_err().to_string();
    assert!(said.contains("4 rounds") && said.contains("at least 5 rounds"), "{said}");
    let said = extended(&short, 2).unwrap_err().to_string();
    assert!(said.contains("found 2 rounds, expected 3..=10000"), "{said}");
    let error = extended(&made("error(0.1) D0"), 9).unwrap_err();
    assert_eq!(error, ExtendError::MissingTime(MissingTime { detector: 0 }));
    // The rate drifts: no round repeats.
    let drift: String = (0..9).map(|t| format!("error(0.{}) D{t} L0\ndetector({t}) D{t}\n", t + 1)).collect();
    assert_eq!(extended(&made(&drift), 20), Err(ExtendError::NoBulk { rounds: 9 }));
    // Numbered against the time.
    let back: String = (0..9).map(|t| format!("error(0.1) D{t} L0\ndetector({}) D{t}\n", 9 - t)).collect();
    assert_eq!(extended(&made(&back), 20), Err(ExtendError::NoBulk { rounds: 9 }));
}

#[test]
fn too_many_detectors_are_refused_with_the_most_that_go() {
    let line = |t: u32| (0..1 << 13).map(move |d| format!("error(0.1) D{0}\ndetector({d}, {t}) D{0}\n", d + (t << 13)));
    let model = made(&(0..4).flat_map(line).collect::<String>());
    let Err(ExtendError::Rounds { most, .. }) = extended(&model, 128) else { panic!("made") };
    assert_eq!((most, extended(&model, most).unwrap().detectors), (127, DETECTORS_MAX));
}
