//! Placement: time of a decision over 8, 64 and 1,024 silos, and the balance of a skewed load,
//! compared with the seed's rule.
//!
//! Each decision is timed alone, including two clock readings; a hundred are made on each snapshot,
//! so that charges fill the table. The spread comes from the engine's simulation of placement in
//! virtual time (1,000 streams that arrive within five seconds, snapshots a second apart), in
//! points, over many draws: first Zipf 1.1 on four silos at 60 %, then other silos, loads and
//! skews, also compared with the floor: the least spread of any placement of whole streams.

use super::measure::{CLOCK, Placement, Suite};
use crate::placement_simulation::{Rule, Setting, play};
use pinwheel_engine::placement::depth::{Reading, SiloDepth, Snapshot};
use pinwheel_engine::placement::director::{Director, Rules};
use pinwheel_engine::profile::PlaceBy;
use pinwheel_engine::units::Ticks;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Silos, load and skew of the setting that is told in full.
const SKEWED: (usize, f64, f64) = (4, 0.6, 1.1);
/// Placements on one snapshot.
const ON_ONE: usize = 100;

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
    spreads(suite, SKEWED);
    for silos in [2, 4, 8] {
        for load in [0.3, 0.6, 0.8] {
            let others = [0.8, 1.1, 1.4].map(|zipf| (silos, load, zipf));
            others.into_iter().filter(|setting| *setting != SKEWED).for_each(|setting| spreads(suite, setting));
        }
    }
}

fn spreads(suite: &mut Suite, (silos, load, zipf): (usize, f64, f64)) {
    let draws = suite.effort.scale(200);
    let setting = Setting { silos, streams: 1_000, zipf, load, arrive_s: 5, seconds: 41, seed: 0 };
    let spread = |rule: Rule| move || spread(&setting, rule, draws);
    let name = format!("{silos} silos at {:.0} %, zipf {zipf}", load * 100.0);
    let parts = ["10 s", "10 s worst", "40 s", "40 s worst", "moves", "floor"];
    let one = (Placement::OneCore, 1);
    let ours = suite.case(format!("spread, best of two and moves, {name}"), &parts, one, spread(Rule::Ours));
    let seed = suite.case(format!("spread, the seed's rule, {name}"), &parts, one, spread(Rule::Seed));
    // Of the others only the distance to the floor is stored.
    let told = [(0, "after 10 s"), (1, "after 10 s, worst"), (2, "after 40 s"), (3, "after 40 s, worst")];
    for (part, when) in told.into_iter().filter(|_| (silos, load, zipf) == SKEWED) {
        let peer = Some(("seed-lowest-average", seed.part(part)));
        suite.figure(format!("placement/spread {name} {when}"), "points", ours.part(part), peer);
    }
    let floor = Some(("floor", ours.part(5)));
    suite.figure(format!("placement/spread {name} after 10 s beside the floor"), "points", ours.part(0), floor);
}

/// Nanoseconds per decision: p99, p50, p99.9.
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

/// Points after 10 s, mean and worst of `draws`, after 40 s likewise, moves, and the least possible
/// points.
fn spread(setting: &Setting, rule: Rule, draws: u64) -> Vec<f64> {
    let mut found = [0.0f64; 6];
    for seed in 0..draws {
        let course = play(&Setting { seed, ..*setting }, rule);
        for (at, second) in [(0, 10), (2, 40)] {
            let points = course.spread_points[second];
            found[at] += points / draws as f64;
            found[at + 1] = found[at + 1].max(points);
        }
        found[4] += course.moves as f64 / draws as f64;
    }
    found[5] = setting.spread_floor_points();
    found.to_vec()
}
