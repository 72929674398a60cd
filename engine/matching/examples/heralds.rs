//! Time and logical errors of shots with 1 % heralded erasures, with and without the heralds, in
//! turns.
//!
//! ```sh
//! cargo run --release -p pinwheel-matching --example heralds
//! ```
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods, reason = "a tool for tests")]

use std::time::Instant;

use pinwheel_matching::Matcher;
use shots::Shot;

#[path = "../testing/heralds.rs"]
mod shots;

const SHOTS: usize = 200_000;
const TURNS: usize = 15;

/// The time of a shot in ns, and the logical errors.
fn lap(drawn: &[Shot], matcher: &mut Matcher, decode: fn(&mut Matcher, &Shot) -> u64) -> (f64, usize) {
    let start = Instant::now();
    let wrong = drawn.iter().filter(|shot| decode(matcher, shot) != shot.flipped).count();
    (start.elapsed().as_nanos() as f64 / drawn.len() as f64, wrong)
}

fn main() {
    let (model, graph) = shots::surface();
    let drawn = shots::draw(&model, &graph, SHOTS);
    let mut plain = shots::matcher(&graph, &shots::of_data(&model, &graph));
    let mut weighted = shots::matcher(&graph, &[]);
    let mut laps = Vec::new();
    for _ in 0..TURNS {
        let ignored = lap(&drawn, &mut plain, shots::without);
        laps.push((ignored, lap(&drawn, &mut weighted, shots::with_heralds)));
    }
    let (ignored, heeded) = (laps[0].0.1, laps[0].1.1);
    laps.sort_by(|a, b| (a.1.0 / a.0.0).total_cmp(&(b.1.0 / b.0.0)));
    let ((without, _), (with, _)) = laps[TURNS / 2];
    println!("{SHOTS} shots, logical errors without heralds {ignored}, with {heeded}");
    println!(
        "a shot without heralds {without:.0} ns, with {with:.0} ns: {:.2} times (median of {TURNS})",
        with / without
    );
}
