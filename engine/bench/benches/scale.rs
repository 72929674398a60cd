//! How the path scales: shots per second and latency by streams, distance, load, decode workers
//! and silos, each beside a `crossbeam` pool with the same decoder, arrivals and stamps.
//!
//! A case runs twice in a row: as fast as shots are taken, then at a share of the capacity that ours
//! had, half unless the load is what varies. The peer gets the arrivals of the last repetition of
//! ours. Latency counts from the scheduled arrival; beyond the capacity it grows with the duration
//! of the case. Beyond two cores the path is simulated with costs that are measured in the same
//! run ([`simulated`]). Bounds: [`Case::spans`], and the shots of each input.
//!
//! ```text
//! streams   a decoder that answers at once, all roles on one core
//! d, load   the engine's decoder on a core of its own
//! workers   1: on a core of its own; 2: a second one on the core of the path
//! silos     1: all roles on one core; 2: a core each
//! ```

mod codes;
mod course;
mod ours;
mod peer;
mod simulated;

use crate::input::{Input, parity};
use crate::measure::{Effort, Placement, Reading, Suite};
use crate::roles::ROLES;
use course::Plan;
use pinwheel_engine::decode::MatcherModel;
use pinwheel_engine::units::Nanos;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const PARTS: [&str; 4] = ["ns/shot", "p50", "p99", "p99.9"];
const PEER: &str = "crossbeam-channel+hdrhistogram";
const SIMULATED_PEER: &str = "crossbeam-channel, simulated";
/// Milliseconds of the unpaced and of the paced part at full effort.
const SPANS_MS: [u64; 2] = [150, 250];
/// Streams of a case whose streams do not vary.
const STREAMS: u32 = 4;
/// A profile accepts 1,024 at most; the roles take more.
const STREAM_COUNTS: [u32; 5] = [1, 10, 100, 1_000, 10_000];
/// Distances, each with its number of shots and of distinct ones.
const DISTANCES: [(u32, u64, u64); 6] = [
    (3, 800_000, 4_096),
    (5, 262_144, 4_096),
    (7, 131_072, 2_048),
    (9, 65_536, 1_024),
    (11, 32_768, 512),
    (13, 16_384, 512),
];
const LOADS_PERCENT: [u32; 11] = [10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110];
/// Shots of the decoder that answers at once.
const PARITY_SHOTS: u64 = 1_500_000;

/// Which threads run what.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// All roles of one silo on one core.
    OneCore,
    /// One decode worker on the other core.
    OneWorker,
    /// Two decode workers, one of them on the core of the path.
    TwoWorkers,
    /// Two silos as in `OneCore`, a core each, with half the streams each.
    TwoSilos,
}

/// One point of a curve.
#[derive(Clone)]
pub struct Case {
    form: Form,
    input: Input,
    /// `None`: the answer is the parity of the shot.
    matching: Option<MatcherModel>,
    streams: u32,
    slots: u32,
    /// Rate of the paced part, as a share of the capacity.
    load: f64,
    /// Shots of a window.
    window: u64,
    /// Duration of the unpaced and the paced part.
    spans: [Nanos; 2],
}

impl Case {
    /// The decoder that answers at once.
    fn parity(input: &Input, effort: Effort) -> Case {
        let (form, input, matching) = (Form::OneCore, input.clone(), None);
        let spans = SPANS_MS.map(|ms| Nanos(effort.scale(ms * 1_000_000)));
        Case { form, input, matching, streams: STREAMS, slots: 1_024, load: 0.5, window: 2_048, spans }
    }

    /// The engine's decoder.
    fn matched((input, matching): &(Input, MatcherModel), effort: Effort) -> Case {
        let (form, matching) = (Form::OneWorker, Some(matching.clone()));
        let parity = Case::parity(input, effort);
        Case { form, matching, slots: 256, window: 256, ..parity }
    }

    /// The plan of one silo's course; `rate_hz` is that of all silos.
    fn plan(&self, rate_hz: Option<f64>) -> Plan {
        let silos = if self.form == Form::TwoSilos { 2.0 } else { 1.0 };
        Plan {
            spans: self.spans,
            window: self.window,
            load: self.load,
            rate_hz: rate_hz.map(|hz| hz / silos),
            in_flight: u64::from(self.slots),
            shots: self.input.shots.len() as u64,
        }
    }
}

/// What a case found.
pub struct Found {
    /// Nanoseconds per shot of the unpaced part.
    pub ns_per_shot: f64,
    /// Rate of the paced part.
    pub rate_hz: f64,
    /// p50, p99 and p99.9 of the paced part.
    pub latency_ns: [f64; 3],
}

impl Found {
    fn parts(&self) -> Vec<f64> {
        [self.ns_per_shot].into_iter().chain(self.latency_ns).collect()
    }
}

/// Adds the figures of a point: `ours` and `theirs` have the parts of [`PARTS`].
fn figures(suite: &mut Suite, name: &str, ours: Reading, (peer, theirs): (&'static str, Reading)) {
    for (part, (tail, unit)) in [("", "ns/shot"), ("_p50", "ns"), ("_p99", "ns"), ("_p999", "ns")].iter().enumerate() {
        suite.figure(format!("scale/{name}{tail}"), unit, ours.nth(part), Some((peer, theirs.nth(part))));
    }
}

/// Adds a point's two cases and its figures; returns ours.
fn point(suite: &mut Suite, name: &str, case: Case) -> Reading {
    // The rate of the last repetition of ours, bits of an f64; 0 before the first.
    let rate = Arc::new(AtomicU64::new(0));
    let own = (Placement::Own, repetitions(suite.effort));
    let (set, theirs) = (Arc::clone(&rate), case.clone());
    let ours = suite.case(format!("scale {name}"), &PARTS, own, move || {
        let found = ours::run(&case, None);
        // Relaxed: the next case runs after this one.
        set.store(found.rate_hz.to_bits(), Ordering::Relaxed);
        found.parts()
    });
    let peer = suite.case(format!("scale {name}, peer"), &PARTS, own, move || {
        peer::run(&theirs, Some(f64::from_bits(rate.load(Ordering::Relaxed)))).parts()
    });
    figures(suite, name, ours, (PEER, peer));
    ours
}

const fn repetitions(effort: Effort) -> usize {
    match effort {
        Effort::Quick => 1,
        Effort::Full => 5,
    }
}

pub fn register(suite: &mut Suite) {
    let effort = suite.effort;
    let null = codes::repeated(parity(4_096), effort.scale(PARITY_SHOTS));
    for streams in STREAM_COUNTS {
        point(suite, &format!("streams_{streams}"), Case { streams, ..Case::parity(&null, effort) });
    }
    // Printed, not stored: which role takes longer with more streams.
    let short = codes::repeated(parity(4_096), effort.scale(400_000));
    let parts: Vec<&str> = ["total"].into_iter().chain(ROLES).collect();
    for streams in STREAM_COUNTS {
        let case = Case { streams, ..Case::parity(&short, effort) };
        let own = (Placement::OneCore, repetitions(effort));
        suite.case(format!("scale, roles, {streams} streams"), &parts, own, move || ours::by_role(&case));
    }
    let few = effort == Effort::Quick;
    let mut five = None;
    for (d, shots, distinct) in DISTANCES.into_iter().take(if few { 3 } else { DISTANCES.len() }) {
        let Some(model) = codes::model(d) else { continue };
        let input = codes::matched(model, distinct, effort.scale(shots));
        point(suite, &format!("d_{d}"), Case::matched(&input, effort));
        if d == 5 {
            five = Some(input);
        }
    }
    let five = five.expect("one distance is 5");
    let matched = Case::matched(&five, effort);
    for percent in LOADS_PERCENT.into_iter().step_by(if few { 5 } else { 1 }) {
        let load = f64::from(percent) / 100.0;
        point(suite, &format!("load_{percent}"), Case { load, ..matched.clone() });
    }
    let one_worker = point(suite, "workers_1", matched.clone());
    point(suite, "workers_2", Case { form: Form::TwoWorkers, ..matched.clone() });
    point(suite, "silos_1", Case { form: Form::OneCore, ..matched.clone() });
    let two_silos = point(suite, "silos_2", Case { form: Form::TwoSilos, ..matched });
    let two_threads = point(suite, "null_workers_1", Case { form: Form::OneWorker, ..Case::parity(&null, effort) });
    simulated::register(suite, [two_threads, one_worker, two_silos], repetitions(effort));
}
