//! The curves beyond two cores: the path simulated in virtual time with costs measured here.
//!
//! Each repetition measures the costs, then simulates every point with them; the printed readings
//! include both. Three points exist on two cores as well: for each a figure compares the measured
//! time with the simulated one, and the ratio should lie between 0.8 and 1.2. See
//! [`crate::path_simulation`] for what the simulation leaves out.
//!
//! # Where the costs come from
//! Roles: one silo on one core, time by role; assignment and commit are half each of the graph role.
//! Lines: items of a line through a ring between the two cores, less half of what the same costs on
//! one core. A shot of ours is one line each way; the peer's is two. The peer's own time is its
//! time on one core less its decodes.

use super::{Case, Form, SIMULATED_PEER, codes, figures, ours, peer};
use crate::input::parity;
use crate::measure::{CLOCK, CORES, Placement, Reading, Suite, median, ns_per, pin_to};
use crate::path_simulation::{Costs, Setting, play};
use pinwheel_edge::ring::line;
use pinwheel_edge::spin::Phase;
use pinwheel_engine::hot::{Frame, Scratch};

const WORKERS: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];
const SILOS: [usize; 5] = [1, 2, 4, 8, 16];
/// Shots of a simulation.
const SHOTS: usize = 50_000;
/// The measured costs, in the order of [`Measured::parts`].
const COSTS: [&str; 10] = [
    "frame",
    "front",
    "back",
    "null decode",
    "d=5 front",
    "d=5 back",
    "d=5 decode",
    "line",
    "peer path",
    "peer d=5 decode",
];

/// The costs of ours and of the peer, with the decoder that answers at once and that of d = 5.
struct Measured {
    null: Pair,
    five: Pair,
}

struct Pair {
    ours: Costs,
    peer: Costs,
}

/// Adds the simulated points, and compares `on_two_cores`: null decoder, one worker of d = 5, two
/// silos of d = 5.
pub fn register(suite: &mut Suite, on_two_cores: [Reading; 3], repetitions: usize) {
    let effort = suite.effort;
    let null = Case::parity(&codes::repeated(parity(4_096), effort.scale(200_000)), effort);
    let five = codes::matched(codes::model(5).expect("distance 5 is bundled"), 4_096, effort.scale(65_536));
    let five = Case { form: Form::OneCore, ..Case::matched(&five, effort) };
    let points = 4 * 2 * (WORKERS.len() + SILOS.len());
    let mut parts: Vec<String> = COSTS.map(|name| format!("cost: {name}")).to_vec();
    parts.extend((0..3 + points).map(|index| format!("simulated {index}")));
    let case = suite.case("scale, simulated", &parts, (Placement::OneCore, repetitions), move || {
        let measured = Measured::new(&null, &five);
        let mut found = measured.parts();
        let unpaced = |costs, workers| play(costs, Setting { workers, rate_hz: None, shots: SHOTS }).ns_per_shot;
        let Measured { null, five } = &measured;
        found.extend([unpaced(&null.ours, 1), unpaced(&five.ours, 1), unpaced(&five.ours, 0) / 2.0]);
        WORKERS.iter().for_each(|workers| found.extend(five.simulate(*workers, 1)));
        SILOS.iter().for_each(|silos| found.extend(five.simulate(0, *silos)));
        found
    });
    for (index, cost) in COSTS.iter().enumerate() {
        suite.figure(format!("scale/cost {cost}"), "ns", case.nth(index), None);
    }
    let names = ["null decoder, 1 worker", "d=5, 1 worker", "d=5, 2 silos"];
    for (index, (name, measured)) in names.iter().zip(on_two_cores).enumerate() {
        let simulated = Some(("simulated", case.nth(COSTS.len() + index)));
        suite.least_figure(format!("scale/prediction {name}"), "ns/shot", measured, simulated);
    }
    let workers = WORKERS.iter().map(|workers| format!("simulated_workers_{workers}"));
    let silos = SILOS.iter().map(|silos| format!("simulated_silos_{silos}"));
    for (index, name) in workers.chain(silos).enumerate() {
        let ours = COSTS.len() + 3 + 8 * index;
        figures(suite, &name, case.nth(ours), (SIMULATED_PEER, case.nth(ours + 4)));
    }
}

impl Pair {
    /// Time of a shot and quantiles of the latency at half of our capacity, of ours and then of the
    /// peer, for as many silos.
    fn simulate(&self, workers: usize, silos: usize) -> Vec<f64> {
        let mut rate_hz = None;
        let mut found = Vec::with_capacity(8);
        for costs in [&self.ours, &self.peer] {
            let ns_per_shot = play(costs, Setting { workers, rate_hz: None, shots: SHOTS }).ns_per_shot;
            let half = *rate_hz.get_or_insert(0.5e9 / ns_per_shot);
            let paced = play(costs, Setting { workers, rate_hz: Some(half), shots: SHOTS });
            found.push(ns_per_shot / silos as f64);
            found.extend(paced.latency_ns);
        }
        found
    }
}

impl Measured {
    fn new(null: &Case, five: &Case) -> Measured {
        let peer_ns = (peer::run(null, None).ns_per_shot - mean(&decodes(null))).max(1.0);
        let costs = (idle_frame(null), line_ns(), peer_ns);
        Measured { null: pair(null, costs), five: pair(five, costs) }
    }

    /// As [`COSTS`].
    fn parts(&self) -> Vec<f64> {
        let Measured { null, five } = self;
        let decode = |costs: &Costs| mean(&costs.decode_ns);
        let Costs { frame_ns, front_ns, back_ns, line_ns, .. } = null.ours;
        let five_costs = [five.ours.front_ns, five.ours.back_ns, decode(&five.ours)];
        let own = [frame_ns, front_ns, back_ns, decode(&null.ours)];
        let peer = [null.peer.front_ns + null.peer.back_ns, decode(&five.peer)];
        own.into_iter().chain(five_costs).chain([line_ns]).chain(peer).collect()
    }
}

/// The costs of `case`, whose roles share a core; `peer_ns` is the peer's time of a shot without its
/// decode.
fn pair(case: &Case, (frame_ns, line_ns, peer_ns): (f64, f64, f64)) -> Pair {
    let [_, feed, dispatch, poll, graph, decode, harvest] = ours::by_role(case)[..] else {
        unreachable!("a time for each role")
    };
    let slots = case.slots as usize;
    let times = decodes(case);
    let mean = mean(&times);
    let ours = Costs {
        frame_ns,
        front_ns: feed + dispatch + poll + graph / 2.0,
        back_ns: graph / 2.0 + harvest,
        decode_ns: times.iter().map(|ns| ns * decode / mean).collect(),
        line_ns,
        lines: 1.0,
        is_one_queue: false,
        slots,
    };
    let peer = Costs {
        frame_ns: 0.0,
        front_ns: peer_ns / 2.0,
        back_ns: peer_ns / 2.0,
        decode_ns: times,
        lines: 2.0,
        is_one_queue: true,
        ..ours.clone()
    };
    Pair { ours, peer }
}

fn decodes(case: &Case) -> Vec<f64> {
    let times = peer::decodes(case, 4_096);
    // A preempted decode is not a long one.
    let limit = 50.0 * median(&times);
    times.into_iter().filter(|ns| *ns < limit).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// A frame in which no role of a silo has work, nanoseconds.
fn idle_frame(case: &Case) -> f64 {
    const FRAMES: u64 = 512;
    let mut silo = ours::silo(case);
    // The first shot arrives at once, the next one much later.
    silo.settings.set_rate_hz(Some(1e-3));
    let mut roles = silo.build();
    let mut scratch = Scratch::new();
    let mut windows = Vec::new();
    for _ in 0..64 {
        let from = CLOCK.ticks();
        for _ in 0..FRAMES {
            let mut frame = Frame::new(&CLOCK, CLOCK.ticks(), Phase::Live, &mut scratch);
            for role in &mut roles {
                let _ = role.work(&mut frame);
            }
        }
        windows.push(ns_per(from, FRAMES));
    }
    median(&windows)
}

/// What a thread pays for a line that another core wrote, nanoseconds.
fn line_ns() -> f64 {
    const ITEMS: u64 = 4_096;
    const WINDOWS: usize = 64;
    const DEPTH: usize = 64;
    let (mut out, mut into) = line::channel::<[u64; 6]>(DEPTH);
    let mut alone = Vec::new();
    for _ in 0..WINDOWS {
        let from = CLOCK.ticks();
        for _ in 0..ITEMS / DEPTH as u64 {
            (0..DEPTH as u64).for_each(|item| assert!(out.push([item; 6]).is_ok(), "the ring is empty"));
            while into.pop().is_some() {}
        }
        alone.push(ns_per(from, ITEMS));
    }
    let (mut out, mut into) = line::channel::<[u64; 6]>(DEPTH);
    let mut across = std::thread::scope(|scope| {
        scope.spawn(move || {
            pin_to(CORES.there);
            for item in 0..ITEMS * WINDOWS as u64 {
                while out.push([item; 6]).is_err() {
                    std::hint::spin_loop();
                }
            }
        });
        let mut across = Vec::new();
        for _ in 0..WINDOWS {
            let from = CLOCK.ticks();
            let mut taken = 0;
            while taken < ITEMS {
                taken += u64::from(into.pop().is_some());
            }
            across.push(ns_per(from, ITEMS));
        }
        across
    });
    // The lower quartile: the other thread is preempted now and then.
    across.sort_by(f64::total_cmp);
    (across[WINDOWS / 4] - median(&alone) / 2.0).max(0.0)
}
