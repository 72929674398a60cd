//! Several hosts: time of a decision about streams among 3 and 64 hosts, and the course of many streams over 4 to 64
//! hosts in virtual time, compared with hosts that share nothing.
//!
//! Each decision is timed alone, including two clock readings. The simulated course is 10,000 streams
//! (Zipf 1.1, at most a quarter of a host each) for ten minutes, links of 20 to 500 µs, a host lost
//! each minute, at 70 % load.

use super::measure::{CLOCK, Placement, Suite};
use crate::host_simulation::{Course, Setting, play};
use pinwheel_hosts::description::Load;
use pinwheel_hosts::placing::{Candidacy, Placing, StreamLoad};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Streams with senders at the host that decides.
const OWN: u32 = 156;
const HOSTS: [usize; 5] = [4, 8, 16, 32, 64];
const ALONE: &str = "nothing-shared";

pub fn register(suite: &mut Suite) {
    let decisions = suite.effort.scale(40_000) as usize;
    for hosts in [3, 64] {
        let timed = move || decide(hosts, decisions);
        let case = suite.case(format!("decision, {hosts} hosts"), &["p50", "p99"], (Placement::OneCore, 7), timed);
        suite.figure(format!("hosts/decision {hosts} hosts p50"), "ns", case.part(0), None);
        suite.figure(format!("hosts/decision {hosts} hosts p99"), "ns", case.part(1), None);
    }
    let setting = Setting {
        hosts: 0,
        streams: 10_000,
        zipf: 1.1,
        load: 0.7,
        seconds: suite.effort.scale(600) as usize,
        seed: 1,
        shares: true,
    };
    for hosts in HOSTS {
        let parts = ["overloaded", "waited", "spread", "forwarded", "changes"];
        let course = move |shares: bool| move || parts_of(&play(&Setting { hosts, shares, ..setting }));
        let one = (Placement::OneCore, 1);
        let ours = suite.case(format!("simulated, {hosts} hosts"), &parts, one, course(true));
        let alone = suite.case(format!("simulated, {hosts} hosts, nothing shared"), &parts, one, course(false));
        for (part, name, unit) in
            [(0, "overloaded", "% of the time"), (1, "waited", "% of the shots"), (2, "spread", "points")]
        {
            let peer = Some((ALONE, alone.part(part)));
            suite.figure(format!("hosts/simulated {name} {hosts}"), unit, ours.part(part), peer);
        }
        for (part, name, unit) in [(3, "forwarded", "% of the shots"), (4, "changes", "a minute")] {
            suite.figure(format!("hosts/simulated {name} {hosts}"), unit, ours.part(part), None);
        }
    }
}

fn parts_of(course: &Course) -> Vec<f64> {
    let Course { overloaded, waited, spread_points, forwarded, changes_a_minute, .. } = *course;
    vec![overloaded * 100.0, waited * 100.0, spread_points, forwarded * 100.0, changes_a_minute]
}

/// Nanoseconds per decision of a host that is pressed: p50, p99.
fn decide(hosts: usize, decisions: usize) -> Vec<f64> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(hosts as u64);
    let mut placing = Placing::new(OWN, 1);
    let weights: Vec<f64> = (1..=OWN).map(|n| f64::from(n).powf(-1.1)).collect();
    let sum: f64 = weights.iter().sum();
    let stream = |(stream, weight): (usize, &f64)| StreamLoad {
        stream: stream as u32,
        share: weight / sum,
        is_away: false,
        at: None,
        is_placed: false,
    };
    let streams: Vec<StreamLoad> = weights.iter().enumerate().map(stream).collect();
    let mut took = Vec::with_capacity(decisions);
    while took.len() < decisions {
        let mut load = |least: f64| {
            let max = least + (random.next_u64() % 200) as f64 / 1_000.0;
            Load { average: max / 2.0, max, backlog_ns: 0 }
        };
        let own = load(0.8);
        let others: Vec<Candidacy> =
            (1..hosts).map(|_| Candidacy { load: load(0.3), trip_ns: 200_000, taken: 3 }).collect();
        // A stream that moved stays for five seconds.
        let now_ns = (took.len() as u64 + 1) * 10_000_000_000;
        let from = CLOCK.ticks();
        std::hint::black_box(placing.change(own, &others, &streams, now_ns));
        took.push(CLOCK.rate().nanos(CLOCK.ticks().since(from)).0);
    }
    took.sort_unstable();
    [0.5, 0.99].map(|quantile| took[((took.len() - 1) as f64 * quantile) as usize] as f64).to_vec()
}
