#![allow(clippy::unwrap_used, reason = "harness")]

use proptest::prelude::{Strategy, prop, proptest};

use super::*;
use crate::code::{bundled, flip, ones};
use crate::golden;

fn matcher(text: &str) -> Box<dyn Matcher> {
    MatcherModel::new(&Model::parse(text.as_bytes()).unwrap()).unwrap().matcher()
}

#[test]
fn golden_predictions_and_weights_are_pymatchings() {
    for set in golden::all() {
        let mut matcher = MatcherModel::new(&set.model).unwrap().matcher();
        let mut found = vec![0; set.model.observable_words()];
        let (mut ties, mut ours, mut theirs) = (0i32, 0i32, 0i32);
        for index in 0..set.detections.len() {
            let weight = matcher.decode(set.detections.shot(index), &mut found).unwrap().weight.unwrap();
            let expected = f64::from(set.weights[index]);
            let off = (weight - expected).abs();
            assert!(off <= 1e-4 * expected.max(1.0), "{} shot {index}: {weight}, {expected}", set.name);
            let (prediction, truth) = (set.predictions.shot(index), set.observables.shot(index));
            // The weights agree, so a prediction that differs is a tie.
            ties += i32::from(found != prediction);
            ours += i32::from(found != truth);
            theirs += i32::from(prediction != truth);
        }
        assert!(ties <= 2, "{}: {ties} ties in {} shots", set.name, set.detections.len());
        assert!((ours - theirs).abs() <= ties, "{}: {ours} logical errors, theirs {theirs}", set.name);
    }
}

#[test]
fn correlated_predictions_are_pymatchings_and_better() {
    let set = golden::committed("surf_z_d5_r5_p0.005");
    let expected = golden::correlated(&set);
    let model = MatcherModel::correlated(&set.model).unwrap();
    let mut matcher = model.matcher();
    assert_eq!(model.name(), "correlated sparse-blossom");
    let mut found = vec![0; set.model.observable_words()];
    let (mut differing, mut ours, mut plain) = (0, 0, 0);
    for index in 0..set.detections.len() {
        matcher.decode(set.detections.shot(index), &mut found).unwrap();
        let truth = set.observables.shot(index);
        differing += i32::from(found != expected.shot(index));
        ours += i32::from(found != truth);
        plain += i32::from(set.predictions.shot(index) != truth);
    }
    assert!(differing <= 1, "{differing} predictions differ");
    assert!(ours < plain, "{ours} logical errors, {plain} without correlations");
}

/// Logical errors of a decoder, and those of the golden predictions, on a committed set.
fn logical_errors(set: &golden::Golden, mut matcher: Box<dyn Matcher>) -> [usize; 2] {
    let mut found = vec![0; set.model.observable_words()];
    let mut errors = [0; 2];
    for index in 0..set.detections.len() {
        matcher.decode(set.detections.shot(index), &mut found).unwrap();
        let truth = set.observables.shot(index);
        errors[0] += usize::from(found != truth);
        errors[1] += usize::from(set.predictions.shot(index) != truth);
    }
    errors
}

#[test]
fn the_predecoder_alone_answers_what_errors_likelier_than_not_flip() {
    let model = Model::parse(b"error(0.9) D0 L0\nerror(0.1) D1 L1\nerror(0.9) D2 L2\n").unwrap();
    let (mut alone, mut found) = (MatcherModel::guess(&model).unwrap().matcher(), [0]);
    alone.decode(&[0b101], &mut found).unwrap();
    assert_eq!(found, [0b101]);
}

#[test]
fn union_find_errs_little_more_often_than_matching() {
    let set = golden::committed("surf_z_d5_r5_p0.005");
    let whole = MatcherModel::union_find(&set.model).unwrap();
    assert_eq!(whole.name(), "union-find");
    let size = WindowRounds { commit_rounds: 1, buffer_rounds: 4 };
    let windows = MatcherModel::of(&set.model, Decoder::UnionFind, Predecoder::None, Window::Some(size)).unwrap();
    assert_eq!(windows.name(), "union-find in windows");
    assert!(windows.windows() > 1);
    for model in [whole, windows] {
        let [ours, theirs] = logical_errors(&set, model.matcher());
        // 2,000 shots: three more are 13 %.
        assert!(ours <= theirs + theirs * 3 / 10 + 3, "{}: {ours} logical errors, {theirs}", model.name());
    }
}

#[test]
fn a_table_says_what_matching_says_and_is_refused_where_it_is_too_large() {
    let set = golden::committed("surf_z_d3_r3_p0.005");
    let model = MatcherModel::lookup(&set.model).unwrap();
    let (mut table, mut matcher) = (model.matcher(), MatcherModel::new(&set.model).unwrap().matcher());
    assert_eq!(model.name(), "lookup");
    for index in 0..set.detections.len() {
        let (mut found, mut expected) = ([0], [0]);
        let shot = set.detections.shot(index);
        assert_eq!(table.decode(shot, &mut found), matcher.decode(shot, &mut expected));
        assert_eq!(found, expected);
    }
    let large = golden::committed("surf_z_d5_r5_p0.005").model;
    let said = MatcherModel::lookup(&large).err().unwrap().to_string();
    assert!(said.starts_with("a look-up table of this model takes 2^"), "{said}");
}

#[test]
fn decoders_without_windows_or_streams_refuse_them_in_a_sentence() {
    let size = WindowRounds { commit_rounds: 3, buffer_rounds: 3 };
    let refused = |decoder, window| {
        let model = golden::committed("surf_z_d3_r3_p0.005").model;
        MatcherModel::of(&model, decoder, Predecoder::None, window).err().unwrap()
    };
    for decoder in [Decoder::Correlated, Decoder::Lookup] {
        for window in [Window::Some(size), Window::Stream(size)] {
            let kind = decoder.kind();
            assert_eq!(refused(decoder.clone(), window), ReadyError::Windows { decoder: kind });
        }
    }
    assert_eq!(refused(Decoder::UnionFind, Window::Stream(size)), ReadyError::Stream);
    let said = ReadyError::Windows { decoder: DecoderKind::Lookup }.to_string();
    assert!(said.starts_with("found decoder Lookup with windows"), "{said}");
}

#[test]
fn a_matcher_goes_on_after_what_it_cannot_match() {
    // D2 and D3 form a component without a boundary; nothing flips D4.
    let mut matcher = matcher("error(0.1) D0 L0\nerror(0.1) D0 D1 L1\nerror(0.2) D2 D3 L2\ndetector D4\n");
    let mut found = [0];
    for syndrome in [0b00100, 0b10000, 0b11000, 0b01011] {
        found = [u64::MAX];
        assert_eq!(matcher.decode(&[syndrome], &mut found), Err(DecodeError::Unmatchable), "{syndrome:b}");
        assert_eq!(found, [0]);
        matcher.decode(&[0b1111], &mut found).unwrap();
        assert_eq!(found, [0b110]);
    }
    let silent = matcher.decode(&[0], &mut found).unwrap();
    assert_eq!((found, silent.weight), ([0], Some(0.0)));
}

#[test]
fn a_model_without_detectors_or_observables_decodes() {
    // Shots and answers have at least one word.
    assert_eq!(matcher("").decode(&[0], &mut [0]).unwrap().weight, Some(0.0));
    assert!(matcher("error(0.1) D0").decode(&[1], &mut [0]).unwrap().weight > Some(0.0));
}

#[test]
fn observables_past_the_first_word_are_predicted() {
    let mut matcher = matcher("error(0.1) D0 L0 L63 L64 L130\nerror(0.1) D0 D1 L64 L129\n");
    let mut found = [0; 3];
    matcher.decode(&[0b10], &mut found).unwrap();
    assert_eq!(found, [1 | 1 << 63, 0, 0b110]);
    matcher.decode(&[0], &mut found).unwrap();
    assert_eq!(found, [0; 3]);
}

#[test]
fn workers_share_one_model_and_agree() {
    fn shared<T: Send + Sync + Clone>(value: &T) -> T {
        value.clone()
    }
    let model = MatcherModel::new(&bundled()).unwrap();
    let (mut one, mut other) = (model.matcher(), shared(&model).matcher());
    let (mut a, mut b) = ([0], [0]);
    let syndrome = [0b1001_0110, 0b11];
    assert_eq!(one.decode(&syndrome, &mut a), other.decode(&syndrome, &mut b));
    assert_eq!(a, b);
}

/// Detectors of the small models below, and the maximum of mechanisms in one model.
const DETECTORS: u32 = 6;
const MECHANISMS_MAX: usize = 11;

/// A small model: mechanisms of one or two detectors, likely and unlikely, each with two
/// observables far apart.
fn small_models() -> impl Strategy<Value = String> {
    let mechanism = (0..DETECTORS, 0..=DETECTORS, 1u32..100, 0u32..4);
    prop::collection::vec(mechanism, 1..=MECHANISMS_MAX).prop_map(|mechanisms| {
        let lines = mechanisms.into_iter().map(|(a, b, percent, observable)| {
            let second = if b == DETECTORS || b == a { String::new() } else { format!("D{b}") };
            let p = f64::from(percent) / 100.0;
            format!("error({p}) D{a} {second} L{observable} L{}\n", 70 + observable)
        });
        lines.collect::<String>() + &format!("detector D{}\nlogical_observable L80\n", DETECTORS - 1)
    })
}

/// By trying every set of edges: the least weight that explains `syndrome`, and the observables of
/// every set close to that weight.
fn exhaustive(graph: &Graph, weights: &[f64], syndrome: u64) -> Option<(f64, Vec<[u64; 2]>)> {
    let mut explanations = Vec::new();
    for chosen in 0u64..1 << graph.edges.len() {
        let (mut flipped, mut observables, mut weight) = ([0u64], [0u64; 2], 0.0);
        for index in crate::code::ones(&[chosen]) {
            let edge = &graph.edges[index as usize];
            flip(&mut flipped, edge.a);
            edge.b.into_iter().for_each(|b| flip(&mut flipped, b));
            observables.iter_mut().zip(&edge.observables).for_each(|(word, by)| *word ^= by);
            weight += weights[index as usize];
        }
        if flipped[0] == syndrome {
            explanations.push((weight, observables));
        }
    }
    let least = explanations.iter().map(|&(weight, _)| weight).reduce(f64::min)?;
    let near = explanations.into_iter().filter(|&(weight, _)| weight < least + 1e-4);
    Some((least, near.map(|(_, observables)| observables).collect()))
}

proptest! {
    #[test]
    fn every_answer_is_the_least_weight_of_all_explanations(text in small_models()) {
        let model = Model::parse(text.as_bytes()).unwrap();
        let graph = Graph::new(&model).unwrap();
        // The signed weight of an edge: the graph stores its magnitude; the always-flipped edges
        // carry the sign.
        let weights: Vec<f64> = signed_weights(&model, &graph);
        let mut matcher = MatcherModel::new(&model).unwrap().matcher();
        for syndrome in 0u64..1 << DETECTORS {
            let mut found = [0; 2];
            match (matcher.decode(&[syndrome], &mut found), exhaustive(&graph, &weights, syndrome)) {
                (Ok(decoded), Some((least, observables))) => {
                    let weight = decoded.weight.unwrap();
                    assert!((weight - least).abs() < 1e-4, "{syndrome:b}: {weight} {least}");
                    assert!(observables.contains(&found), "{syndrome:b}: {found:?} of {observables:?}");
                }
                (Err(DecodeError::Unmatchable), None) => {}
                (given, expected) => panic!("{syndrome:b}: {given:?}, expected {expected:?}"),
            }
        }
    }
}

/// Weights of the graph's edges with their sign, from the model itself.
fn signed_weights(model: &Model, graph: &Graph) -> Vec<f64> {
    let ends = |edge: &crate::code::graph::Edge| std::iter::once(edge.a).chain(edge.b).collect::<Vec<u32>>();
    let odd = |edge| {
        let same = model.errors.iter().filter(|error| error.components[0].detectors == ends(edge));
        (1.0 - same.map(|error| 1.0 - 2.0 * error.probability).product::<f64>()) / 2.0
    };
    graph.edges.iter().map(odd).map(|p: f64| ((1.0 - p) / p).ln()).collect()
}

#[test]
fn the_local_predecoder_costs_no_more_than_one_logical_error_in_two_thousand_shots() {
    use crate::predecode::{Local, Predecoder as _};
    for set in golden::all() {
        let mut matcher = MatcherModel::new(&set.model).unwrap().matcher();
        let mut local = Local::new(&set.model).unwrap();
        let mut residual = vec![0; set.model.detector_words()];
        let (mut resolved, mut found) = (vec![0; set.model.observable_words()], vec![0; set.model.observable_words()]);
        let (mut ours, mut theirs, mut differing) = (0i32, 0i32, 0i32);
        for index in 0..set.detections.len() {
            local.predecode(set.detections.shot(index), &mut residual, &mut resolved);
            matcher.decode(&residual, &mut found).unwrap();
            found.iter_mut().zip(&resolved).for_each(|(word, by)| *word ^= by);
            let (prediction, truth) = (set.predictions.shot(index), set.observables.shot(index));
            differing += i32::from(found != prediction);
            ours += i32::from(found != truth);
            theirs += i32::from(prediction != truth);
        }
        let (name, shots) = (&set.name, set.detections.len());
        assert!(differing <= 2, "{name}: {differing} of {shots} predictions differ");
        assert!(ours <= theirs + 1, "{name}: {ours} logical errors, {theirs} without the predecoder");
    }
}

/// Mechanisms between boundaries that flip different observables; one is likelier than not.
const CHAIN: [(f64, u64, u64); 8] = [
    (0.1, 0b0001, 0b01),
    (0.05, 0b0011, 0b00),
    (0.08, 0b0110, 0b00),
    (0.09, 0b1100, 0b00),
    (0.02, 0b1000, 0b10),
    (0.03, 0b0010, 0b00),
    (0.04, 0b0100, 0b01),
    (0.6, 0b1010, 0b00),
];

#[test]
fn the_gap_is_the_weight_of_the_best_explanation_with_other_observables_less_that_of_the_answer() {
    let targets = |bits: u64, letter: char| ones(&[bits]).map(|bit| format!(" {letter}{bit}")).collect::<String>();
    let line =
        |(p, fires, flips): &(f64, u64, u64)| format!("error({p}){}{}\n", targets(*fires, 'D'), targets(*flips, 'L'));
    let model = Model::parse(CHAIN.iter().map(line).collect::<String>().as_bytes()).unwrap();
    let least = |syndrome: u64, is_meant: &dyn Fn(u64) -> bool| {
        let mut least = f64::INFINITY;
        for chosen in 0u32..1 << CHAIN.len() {
            let (mut fires, mut flips, mut weight) = (0, 0, 0.0);
            for (_, (p, fired, flipped)) in CHAIN.iter().enumerate().filter(|(at, _)| chosen >> at & 1 == 1) {
                (fires, flips, weight) = (fires ^ fired, flips ^ flipped, weight + ((1.0 - p) / p).ln());
            }
            if fires == syndrome && is_meant(flips) {
                least = least.min(weight);
            }
        }
        least
    };
    for decoder in [Decoder::Matching, Decoder::Lookup, Decoder::Correlated] {
        let plain = MatcherModel::of(&model, decoder.clone(), Predecoder::None, Window::None).unwrap();
        assert_eq!(plain.matcher().decode(&[0], &mut [0]).unwrap().gap, None, "not asked for");
        let mut matcher = plain.with_confidence(&model).unwrap().matcher();
        for syndrome in 0..16 {
            let mut found = [0];
            let gap = matcher.decode(&[syndrome], &mut found).unwrap().gap.unwrap();
            let expected = least(syndrome, &|flips| flips != found[0]) - least(syndrome, &|flips| flips == found[0]);
            assert!(
                (gap - expected).abs() < 1e-4 * expected.abs().max(1.0),
                "{decoder:?} {syndrome:#b}: {gap}, {expected}"
            );
        }
    }
}
