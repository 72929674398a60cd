//! Time of a round in streams of several commits beside whole shots, on the same shots in turns.
//!
//! ```sh
//! rounds MODEL BUFFER [COMMIT ...]      # as in: rounds surface_d5@r500 5 1 5 10
//! ```
//!
//! Prints least and median of the laps in ns a round, and for streams the median and the 99 %
//! quantile of the time from the last round of a shot to its answer.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods, reason = "a tool for tests")]

use std::sync::Arc;
use std::time::Instant;

use pinwheel_code::code::graph::Graph;
use pinwheel_code::code::{Rounds, Sampler, bundled_named, ones};
use pinwheel_matching::{Edge, Matcher, MatchingModel, StreamMatcher, StreamModel};

const ROUNDS: u32 = 100_000;
const LAPS: usize = 15;

struct Lap {
    matcher: StreamMatcher,
    name: String,
    per_round: Vec<f64>,
    last: Vec<f64>,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let model = bundled_named(&arguments[0]).unwrap();
    let (graph, rounds) = (Graph::new(&model).unwrap(), Rounds::new(&model).unwrap());
    let edges = || {
        let edges = graph.edges.iter();
        edges.map(|edge| Edge { a: edge.a, b: edge.b, weight: edge.weight, observables: &edge.observables })
    };
    let round_of: Vec<u32> = (0..model.detectors).map(|detector| rounds.of(detector)).collect();
    let buffer = arguments[1].parse().unwrap();
    let stream = |commit: &String| Lap {
        matcher: {
            let model = StreamModel::new(&round_of, 1, edges(), commit.parse().unwrap(), buffer).unwrap();
            StreamMatcher::new(Arc::new(model))
        },
        name: format!("stream {commit},{buffer}"),
        per_round: Vec::new(),
        last: Vec::new(),
    };
    let mut streams: Vec<Lap> = arguments[2..].iter().map(stream).collect();
    let mut whole = Matcher::new(Arc::new(MatchingModel::new(model.detectors, 1, edges()).unwrap()));

    let mut sampler = Sampler::new(&model, 11);
    let mut draw = || {
        let mut shot = vec![0; model.detector_words()];
        sampler.draw(&mut shot, &mut [0]);
        let mut fired = vec![Vec::new(); rounds.count() as usize];
        ones(&shot).for_each(|detector| fired[rounds.of(detector) as usize].push(detector));
        (shot, fired)
    };
    let shots: Vec<_> = (0..(ROUNDS / rounds.count()).max(20)).map(|_| draw()).collect();
    let per_round = |from: Instant| from.elapsed().as_nanos() as f64 / shots.len() as f64 / f64::from(rounds.count());

    let mut whole_laps = Vec::new();
    for _ in 0..LAPS {
        let from = Instant::now();
        for (shot, _) in &shots {
            whole.decode(ones(shot), &mut [0]).unwrap();
        }
        whole_laps.push(per_round(from));
        for Lap { matcher, per_round: laps, last, .. } in &mut streams {
            let from = Instant::now();
            for (_, fired) in &shots {
                matcher.begin();
                let (end, before) = fired.split_last().unwrap();
                for (round, fired) in (0..).zip(before) {
                    matcher.round(round, fired.iter().copied()).unwrap();
                }
                matcher.advance().unwrap();
                let from = Instant::now();
                matcher.round(before.len() as u32, end.iter().copied()).unwrap();
                matcher.finish(&mut [0]).unwrap();
                last.push(from.elapsed().as_nanos() as f64);
            }
            laps.push(per_round(from));
        }
    }
    let print = |name: &str, times: &mut [f64], percents: [usize; 2]| {
        times.sort_by(f64::total_cmp);
        let [low, high] = percents.map(|percent| times[times.len() * percent / 100]);
        println!("{name}: {low:.0} {high:.0} ns");
    };
    print("whole, least and median", &mut whole_laps, [0, 50]);
    for Lap { name, per_round, last, .. } in &mut streams {
        print(&format!("{name}, least and median"), per_round, [0, 50]);
        print(&format!("{name}, after the last round, p50 and p99"), last, [50, 99]);
    }
}
