//! Placement: what a decision takes over 8, 64 and 1,024 silos, and how even a skewed load becomes, beside the seed's own rule.
//!
//! A decision is timed alone, with the clock's two readings in it; a hundred are made on each snapshot, so that charges crowd
//! the table. The spread is that of the engine's rehearsal of placement in virtual time (1,000 streams, Zipf 1.1, four
//! silos at 60 %, snapshots a second apart), in points after 10 and after 40 seconds, the mean of many draws.

use super::measure::{CLOCK, Placement, Suite};
use pinwheel_engine::placement::depth::{Reading, SiloDepth, Snapshot};
use pinwheel_engine::placement::director::{Director, Rules};
use pinwheel_engine::placement::rehearsal::{Rule, Setting, play};
use pinwheel_engine::profile::PlaceBy;
use pinwheel_engine::units::Ticks;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Placements on one snapshot.
const ON_ONE: usize = 100;

/// Registers the area `placement`.
pub fn register(suite: &mut Suite) {
    let decisions = suite.effort.scale(40_000) as usize;
    for silos in [8, 64, 1_024] {
        let timed = |by: PlaceBy| move || decide(by, silos, decisions);
        let (parts, one) = (["p99", "p50", "p999"], (Placement::OneCore, 7));
        let ours = suite.case(format!("decision, {silos} silos, best of two"), &parts, one, timed(PlaceBy::BestOfTwo));
        let seed =
            suite.case(format!("decision, {silos} silos, lowest average"), &parts, one, timed(PlaceBy::LowestAverage));
        for (part, name) in [(0, "p99"), (1, "p50"), (2, "p999")] {
            let peer = Some(("seed-lowest-average", seed.part(part)));
            suite.figure(format!("placement/decision {silos} silos {name}"), "ns", ours.part(part), peer);
        }
    }
    let draws = suite.effort.scale(200);
    let spread = |rule: Rule| move || spread(rule, draws);
    let parts = ["10 s", "40 s", "moves"];
    let ours = suite.case("spread, best of two and moves", &parts, (Placement::OneCore, 1), spread(Rule::Ours));
    let seed = suite.case("spread, the seed's rule", &parts, (Placement::OneCore, 1), spread(Rule::Seed));
    for (part, name) in [(0, "after 10 s"), (1, "after 40 s")] {
        let peer = Some(("seed-lowest-average", seed.part(part)));
        suite.figure(format!("placement/spread zipf 1.1 {name}"), "points", ours.part(part), peer);
    }
}

/// Nanoseconds of a decision: p99, p50, p99.9.
fn decide(by: PlaceBy, silos: usize, decisions: usize) -> Vec<f64> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(silos as u64);
    let mut director = Director::new(Rules { by, ..Rules::SEED }, 1);
    let mut took = Vec::with_capacity(decisions);
    while took.len() < decisions {
        let share = |_| Reading::Known(SiloDepth::even((random.next_u64() % 900) as f64 / 1_000.0));
        let silos = (0..silos).map(share).collect();
        director.refresh(&Snapshot { number: 1, taken: Ticks(0), silos }, 1_000);
        for stream in 0..ON_ONE {
            let from = CLOCK.ticks();
            std::hint::black_box(director.place(stream as u32, 0.7));
            took.push(CLOCK.rate().nanos(CLOCK.ticks().since(from)).0);
        }
    }
    took.sort_unstable();
    [0.99, 0.5, 0.999].map(|quantile| took[((took.len() - 1) as f64 * quantile) as usize] as f64).to_vec()
}

/// Points after 10 s, after 40 s, and moves: means over `draws`.
fn spread(rule: Rule, draws: u64) -> Vec<f64> {
    let mut sums = [0.0; 3];
    for seed in 0..draws {
        let setting = Setting { silos: 4, streams: 1_000, zipf: 1.1, load: 0.6, arrive_s: 5, seconds: 41, seed };
        let course = play(&setting, rule);
        let found = [course.spread_points[10], course.spread_points[40], course.moves as f64];
        sums.iter_mut().zip(found).for_each(|(sum, found)| *sum += found / draws as f64);
    }
    sums.to_vec()
}
