//! Streams at unequal rates over several silos: they come as often as they should, and where placement may move them the silos
//! become evenly loaded.

use crate::rig::{alone, assert_nothing_lost, config, end, sampler, until};
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::engine::Engine;
use pinwheel_engine::placement::depth::spread_points;
use pinwheel_engine::profile::{Device, Latency, PlaceBy, Profile, Rate, Silos, TakesPart, Weights};

const SILOS: u32 = 4;
const STREAMS: u32 = 200;
/// How much of what the silos can do comes.
const LOAD: f64 = 0.6;
/// Of the device's workers, on a device that takes so long: what one silo can do, whatever the machine can.
const WORKERS: u32 = 64;
const LATENCY_US: f64 = 40_000.0;

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

/// How far apart the silos are: what comes for each, by where the streams are decoded.
fn spread(snapshot: &Snapshot, weights: &[f64]) -> f64 {
    let sum: f64 = weights.iter().sum();
    let mut silos = [0.0; SILOS as usize];
    for (stream, weight) in snapshot.streams.iter().zip(weights) {
        silos[stream.silo as usize] += weight / sum * LOAD * f64::from(SILOS);
    }
    spread_points(silos.iter().map(|share| share.min(1.0))).unwrap()
}

/// After fifty snapshots: how far apart the silos are by what comes, by how full they were seen, and how many moves were asked.
fn spread_of(profile: &Profile) -> (f64, f64, u64) {
    let weights = profile.input.weights.of(STREAMS).unwrap();
    let engine = Engine::start(config(profile, sampler(), None)).unwrap();
    let is_late = |snapshot: &Snapshot| snapshot.placement.as_ref().is_some_and(|placement| placement.snapshot >= 50);
    let snapshot = until(&engine, "fifty snapshots", is_late);
    let placement = snapshot.placement.as_ref().unwrap();
    let found = (spread(&snapshot, &weights), placement.spread_points.unwrap_or(f64::NAN), placement.moves_asked);
    engine.request_drain();
    let outcome = end(engine);
    assert_nothing_lost(&outcome);
    found
}

#[test]
fn streams_at_unequal_rates_come_as_often_as_their_weights_say() {
    let _alone = alone();
    let mut profile = skewed();
    (profile.device, profile.silos) = (Device::Sim { latency: Latency::None }, Silos::Count(2));
    let outcome = end(Engine::start(config(&profile, sampler(), Some(50_000))).unwrap());
    assert_nothing_lost(&outcome);
    let weights = profile.input.weights.of(STREAMS).unwrap();
    let (sum, answered) = (weights.iter().sum::<f64>(), outcome.snapshot.streams.iter().map(|stream| stream.answered));
    assert_eq!(answered.clone().sum::<u64>(), 50_000);
    for (weight, answered) in weights.iter().zip(answered) {
        let expected = weight / sum * 50_000.0;
        assert!((answered as f64 - expected).abs() < 4.0 + 0.15 * expected, "{answered} of {expected}");
    }
}

#[test]
fn a_skewed_load_becomes_even_in_the_engine_and_stays_skewed_by_the_seeds_rule() {
    let _alone = alone();
    let mut ours = skewed();
    (ours.placement.streams, ours.placement.rebalance) = (TakesPart::All, true);
    let mut seeds = ours.clone();
    (seeds.placement.by, seeds.placement.rebalance) = (PlaceBy::LowestAverage, false);
    let (even, seen, moves) = spread_of(&ours);
    let (skewed, seen_skewed, _) = spread_of(&seeds);
    eprintln!("ours {even:.1} points ({seen:.1} seen), {moves} moves; the seed's {skewed:.1} ({seen_skewed:.1} seen)");
    assert!(even < 5.0, "{even} points, {seen} as it was seen, {moves} moves");
    assert!(skewed > 2.0 * even, "{skewed} points by the seed's rule ({seen_skewed} as it was seen), {even} by ours");
}
