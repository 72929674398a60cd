//! Streams at unequal rates over several silos: they come as often as they should, and where
//! placement may move them the silos become evenly loaded.

use crate::rig::{assert_nothing_lost, beside_another, config, end, sampler, until};
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::engine::Engine;
use pinwheel_engine::placement::depth::spread_points;
use pinwheel_engine::profile::{Device, Latency, Profile, Rate, Silos, TakesPart, Weights};

const SILOS: u32 = 4;
const STREAMS: u32 = 200;
const SHOTS: u64 = 20_000;
/// How much of what the silos can do comes.
const LOAD: f64 = 0.6;
/// Of the device's workers, on a device that takes so long: what one silo can do, whatever the machine can.
const WORKERS: u32 = 64;
const LATENCY_US: f64 = 100_000.0;

/// Zipf 1.1 over four silos at 60 %, of which the device is what is full; ten snapshots a second.
fn skewed() -> Profile {
    let mut profile = crate::rig::profile();
    (profile.silos, profile.input.streams, profile.workers, profile.slots) =
        (Silos::Count(SILOS), STREAMS, WORKERS, 512);
    profile.device = Device::Sim { latency: Latency::Fixed { us: LATENCY_US } };
    profile.input.weights = Weights::Zipf(1.1);
    profile.input.rate = Rate::Hz(LOAD * f64::from(SILOS) * f64::from(WORKERS) * 1e6 / LATENCY_US);
    profile.placement.refresh_ms = 200;
    profile
}

/// How far apart the silos are: what comes for each, by where each stream is decoded.
fn spread(at: impl Iterator<Item = u32>, weights: &[f64]) -> f64 {
    let sum: f64 = weights.iter().sum();
    let mut silos = [0.0; SILOS as usize];
    for (silo, weight) in at.zip(weights) {
        silos[silo as usize] += weight / sum * LOAD * f64::from(SILOS);
    }
    spread_points(silos.iter().map(|share| share.min(1.0))).unwrap()
}

#[test]
fn streams_at_unequal_rates_come_as_often_as_their_weights_say() {
    let _home = beside_another();
    let mut profile = skewed();
    (profile.device, profile.silos) = (Device::Sim { latency: Latency::None }, Silos::Count(2));
    // Far more than can be decoded: their order is what counts, not when they come.
    profile.input.rate = Rate::Hz(1e6);
    let outcome = end(Engine::start(config(&profile, sampler(), Some(SHOTS))).unwrap());
    assert_nothing_lost(&outcome);
    let weights = profile.input.weights.of(STREAMS).unwrap();
    let (sum, answered) = (weights.iter().sum::<f64>(), outcome.snapshot.streams.iter().map(|stream| stream.answered));
    assert_eq!(answered.clone().sum::<u64>(), SHOTS);
    for (weight, answered) in weights.iter().zip(answered) {
        let expected = weight / sum * SHOTS as f64;
        assert!((answered as f64 - expected).abs() < 4.0 + 0.15 * expected, "{answered} of {expected}");
    }
}

/// How soon, and against the seed's rule, is judged in virtual time
/// (`placement_simulation` of the benchmarks): what a silo is seen to be loaded with in the first
/// seconds depends on what else the machine does.
#[test]
fn a_skewed_load_becomes_even_in_the_engine() {
    let _home = beside_another();
    let mut profile = skewed();
    (profile.placement.streams, profile.placement.rebalance) = (TakesPart::All, true);
    let weights = profile.input.weights.of(STREAMS).unwrap();
    let engine = Engine::start(config(&profile, sampler(), None)).unwrap();
    let first = spread((0..STREAMS).map(|stream| stream % SILOS), &weights);
    assert!(first > 15.0, "{first} points before anything moves");
    let is_even = |now: &Snapshot| spread(now.streams.iter().map(|stream| stream.silo), &weights) < 5.0;
    let even = until(&engine, "an even load", is_even);
    // By placing, by moves afterwards, or by both: how full a silo looks when its streams are placed is the machine's.
    let moved: u64 = even.silos.iter().filter_map(|silo| silo.moves.as_ref()).map(|moves| moves.done).sum();
    assert!(moved > 0, "{moved} streams moved");
    engine.request_drain();
    assert_nothing_lost(&end(engine));
}
