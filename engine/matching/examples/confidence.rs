//! Time of a shot with and without its gap, in turns; and logical errors of the shots whose gap reaches a
//! bound.
//!
//! ```sh
//! cargo run --release -p pinwheel-matching --example confidence
//! ```
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods, reason = "a tool for tests")]

use std::sync::Arc;
use std::time::Instant;

use pinwheel_code::code::graph::Graph;
use pinwheel_code::code::{Sampler, bundled_named, ones};
use pinwheel_matching::{Class, Confidence, ConfidenceModel, Edge, Matcher, MatchingModel};

const SHOTS: usize = 200_000;
const TURNS: usize = 15;
/// Bounds, decibels.
const BOUNDS: [f64; 5] = [0.0, 5.0, 10.0, 20.0, 30.0];

/// Fired detectors, and the true flip of the observable.
type Shot = (Vec<u32>, u64);

/// The time of a shot in ns, and for each shot whether it is wrong, with its gap in decibels.
fn lap(drawn: &[Shot], matcher: &mut Matcher, mut confidence: Option<&mut Confidence>) -> (f64, Vec<(bool, f64)>) {
    let start = Instant::now();
    let decode = |(fired, flipped): &Shot| {
        let mut found = [0];
        let own = matcher.decode(fired.iter().copied(), &mut found).unwrap().weight;
        let other = if found == [0] { Class::Flipped } else { Class::Kept };
        let gap = confidence.as_mut().map_or(0.0, |of| of.weight(fired.iter().copied(), other).unwrap().weight - own);
        (found != [*flipped], gap * 10.0 / std::f64::consts::LN_10)
    };
    let found = drawn.iter().map(decode).collect();
    (start.elapsed().as_nanos() as f64 / drawn.len() as f64, found)
}

fn main() {
    let model = bundled_named("surface_d5").unwrap();
    let graph = Graph::new(&model).unwrap();
    let edges = || {
        let edges = graph.edges.iter();
        edges.map(|edge| Edge { a: edge.a, b: edge.b, weight: edge.weight, observables: &edge.observables })
    };
    let mut sampler = Sampler::new(&model, 5);
    let draw = |_| {
        let (mut fired, mut flipped) = (vec![0; model.detector_words()], vec![0; model.observable_words()]);
        sampler.draw(&mut fired, &mut flipped);
        (ones(&fired).collect(), flipped[0])
    };
    let drawn: Vec<Shot> = (0..SHOTS).map(draw).collect();
    let mut matcher = Matcher::new(Arc::new(MatchingModel::new(graph.detectors, 1, edges()).unwrap()));
    let mut confidence = Confidence::new(Arc::new(ConfidenceModel::new(graph.detectors, edges(), 0).unwrap()));
    let (mut laps, mut found) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        let without = lap(&drawn, &mut matcher, None).0;
        let (with, each) = lap(&drawn, &mut matcher, Some(&mut confidence));
        laps.push((without, with));
        found = each;
    }
    laps.sort_by(|a, b| (a.1 / a.0).total_cmp(&(b.1 / b.0)));
    let (without, with) = laps[TURNS / 2];
    println!("a shot {without:.0} ns, with its gap {with:.0} ns: {:.2} times (median of {TURNS})", with / without);
    for bound in BOUNDS {
        let kept: Vec<bool> = found.iter().filter(|(_, gap)| *gap >= bound).map(|(wrong, _)| *wrong).collect();
        let wrong = kept.iter().filter(|wrong| **wrong).count();
        let left = 100.0 * (SHOTS - kept.len()) as f64 / SHOTS as f64;
        println!(
            "gap of at least {bound} dB: {wrong} of {} wrong, {:.2e} a shot; {left:.2} % left out",
            kept.len(),
            wrong as f64 / kept.len() as f64
        );
    }
}
