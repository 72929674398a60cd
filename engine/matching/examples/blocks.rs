//! Time of a shot in blocks beside the whole shot, on the same shots in turns: one thread for all blocks,
//! and two threads that have every other block each.
//!
//! ```sh
//! blocks MODEL BLOCK_ROUNDS ...      # as in: blocks surface_d5@r500 126 251
//! ```
//!
//! Prints least and median of the laps in ns a shot, and of them the fusion.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a tool for tests"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Instant;

use pinwheel_code::code::graph::Graph;
use pinwheel_code::code::{Rounds, Sampler, bundled_named, ones};
use pinwheel_matching::{BlockFusion, BlockMatcher, BlockModel, Edge, Matcher, MatchingModel};

const ROUNDS: u32 = 20_000;
const LAPS: usize = 15;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let model = bundled_named(&arguments[0]).unwrap();
    let (graph, rounds) = (Graph::new(&model).unwrap(), Rounds::new(&model).unwrap());
    let edges = || {
        let edges = graph.edges.iter();
        edges.map(|edge| Edge { a: edge.a, b: edge.b, weight: edge.weight, observables: &edge.observables })
    };
    let round_of: Vec<u32> = (0..model.detectors).map(|detector| rounds.of(detector)).collect();
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
    let per_shot = |from: Instant| from.elapsed().as_nanos() as f64 / shots.len() as f64;
    let mut times = vec![(Vec::new(), Vec::new(), Vec::new(), Vec::new()); arguments.len()];
    for _ in 0..LAPS {
        let from = Instant::now();
        for (shot, _) in &shots {
            whole.decode(ones(shot), &mut [0]).unwrap();
        }
        times[0].0.push(per_shot(from));
        for (block_rounds, times) in arguments[1..].iter().zip(&mut times[1..]) {
            let model = BlockModel::new(&round_of, 1, edges(), block_rounds.parse().unwrap()).unwrap();
            let model = Arc::new(model);
            let mut blocks: Vec<_> =
                (0..model.blocks()).map(|index| BlockMatcher::new(Arc::clone(&model), index)).collect();
            let mut fusion = BlockFusion::new(model);
            let mut fused = 0;
            let from = Instant::now();
            for (_, fired) in &shots {
                let of = |round: u32| fired[round as usize].iter().copied();
                blocks.iter_mut().for_each(|block| block.decode(of));
                let from = Instant::now();
                blocks.iter_mut().for_each(|block| fusion.take(block));
                fusion.finish(&mut [0]).unwrap();
                fused += from.elapsed().as_nanos();
            }
            times.0.push(per_shot(from));
            times.1.push(fused as f64 / shots.len() as f64);
            // Two threads: the second has the odd blocks.
            let (mut even, mut odd) = (Vec::new(), Vec::new());
            for (index, block) in blocks.into_iter().enumerate() {
                if index % 2 == 0 { even.push(block) } else { odd.push(std::sync::Mutex::new(block)) }
            }
            let (asked, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let wait = |word: &AtomicUsize, until: usize| {
                while word.load(SeqCst) < until {
                    std::hint::spin_loop();
                }
            };
            let (mut total, mut alone) = (0, 0);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    for (index, (_, fired)) in shots.iter().enumerate() {
                        wait(&asked, index + 1);
                        for block in &odd {
                            block.lock().unwrap().decode(|round| fired[round as usize].iter().copied());
                        }
                        done.store(index + 1, SeqCst);
                    }
                });
                for (index, (_, fired)) in shots.iter().enumerate() {
                    let from = Instant::now();
                    asked.store(index + 1, SeqCst);
                    even.iter_mut().for_each(|block| block.decode(|round| fired[round as usize].iter().copied()));
                    even.iter_mut().for_each(|block| fusion.take(block));
                    wait(&done, index + 1);
                    let tail = Instant::now();
                    odd.iter().for_each(|block| fusion.take(&mut block.lock().unwrap()));
                    fusion.finish(&mut [0]).unwrap();
                    alone += tail.elapsed().as_nanos();
                    total += from.elapsed().as_nanos();
                }
            });
            times.2.push(total as f64 / shots.len() as f64);
            times.3.push(alone as f64 / shots.len() as f64);
        }
    }
    let print = |name: String, times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        println!("{name}: {:.0} {:.0} ns", times[0], times[times.len() / 2]);
    };
    print("whole".to_owned(), &mut times[0].0);
    for (block_rounds, (one, fusion, two, tail)) in arguments[1..].iter().zip(&mut times[1..]) {
        print(format!("blocks of {block_rounds}, one thread"), one);
        print(format!("blocks of {block_rounds}, of it fusion"), fusion);
        print(format!("blocks of {block_rounds}, two threads"), two);
        print(format!("blocks of {block_rounds}, of it after both"), tail);
    }
}
