//! Sizes at their limits: workers, observables, silos and streams.

use crate::rig::{assert_nothing_lost, beside_another, config, profile, replay, run, sampler, shots, sink};
use pinwheel_engine::code::{Format, Layout, Model, ShotSet};
use pinwheel_engine::engine::Input;
use pinwheel_engine::profile::{Device, Latency, Profile, Silos};
use std::sync::Arc;

#[test]
fn sixty_four_workers_all_serve() {
    let _home = beside_another();
    let mut profile = profile();
    profile.workers = 64;
    profile.slots = 256;
    // So long that also a slow thread launches on all before the first one is ready again.
    profile.device = Device::Sim { latency: Latency::Fixed { us: 10_000.0 } };
    let outcome = run(config(&profile, sampler(), Some(5_000)));
    assert_nothing_lost(&outcome);
    let silo = &outcome.snapshot.silos[0];
    assert_eq!((silo.workers.len(), silo.idle_mask), (64, u64::MAX));
    assert!(silo.workers.iter().all(|worker| worker.launches > 0), "{:?}", silo.workers);
}

#[test]
fn sixty_five_workers_are_refused_when_the_profile_is_read() {
    let text = Profile::load("lab", None).unwrap().0.to_full_text().unwrap();
    let with = |workers| text.replace("workers: 8,", &format!("workers: {workers},"));
    assert!(Profile::parse(&with(64), "lab.ron").is_ok());
    let refusal = Profile::parse(&with(65), "lab.ron").unwrap_err().to_string();
    for word in ["workers", "65", "1..=64", "lab.ron"] {
        assert!(refusal.contains(word), "{word}: {refusal}");
    }
}

/// `n` detectors, each with a boundary edge that flips its own observable and no other.
fn diagonal(n: u32) -> Arc<Model> {
    let text: String = (0..n).map(|k| format!("error(0.1) D{k} L{k}\n")).collect();
    Arc::new(Model::parse(text.as_bytes()).unwrap())
}

/// With `n` observables: what fired is what flips, through predictions and against the truth.
fn observables_come_out_right(n: u32) {
    let home = beside_another();
    let (model, profile) = (diagonal(n), profile());
    let outcome = run(config(
        &profile,
        Input::Sampler { model: Arc::clone(&model), name: "diagonal".into(), seed: 5 },
        Some(2_000),
    ));
    assert_nothing_lost(&outcome);
    let counters = &outcome.snapshot.silos[0].counters;
    assert_eq!((counters.shots_with_observables, counters.logical_errors, counters.errored), (2_000, 0, 0));

    // One shot for each observable alone, then all together.
    let bytes_per_shot = n.div_ceil(8) as usize;
    let mut bytes = vec![0u8; bytes_per_shot * (n as usize + 1)];
    for k in 0..n as usize {
        bytes[k * bytes_per_shot + k / 8] |= 1 << (k % 8);
        bytes[n as usize * bytes_per_shot + k / 8] |= 1 << (k % 8);
    }
    let path = home.file("predictions.b8");
    let mut config = config(&profile, replay(&model, &shots(&bytes, n)), None);
    config.sink = Some(sink(&profile, n, Some(&path), None));
    let outcome = run(config);
    assert_nothing_lost(&outcome);
    assert_eq!(outcome.sink, Some(Ok(())));
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    assert!(ShotSet::read(&bytes[..], Format::B8, Layout::observables(n)).is_ok());
}

#[test]
fn sixty_four_observables_are_predicted_right() {
    observables_come_out_right(64);
}

#[test]
fn seventy_observables_are_predicted_right() {
    observables_come_out_right(70);
}

#[test]
fn a_model_with_more_observables_than_an_answer_carries_is_refused() {
    let _home = beside_another();
    let input = Input::Sampler { model: diagonal(1_025), name: "wide".into(), seed: 1 };
    let refusal = pinwheel_engine::engine::Engine::start(config(&profile(), input, Some(1))).err().unwrap().to_string();
    assert!(refusal.contains("1025 observables") && refusal.contains("1024"), "{refusal}");
}

#[test]
fn more_silos_than_streams_still_answer_everything() {
    let _home = beside_another();
    let mut profile = profile();
    (profile.silos, profile.input.streams) = (Silos::Count(4), 2);
    let outcome = run(config(&profile, sampler(), Some(4_001)));
    assert_nothing_lost(&outcome);
    let answered: Vec<u64> = outcome.snapshot.streams.iter().map(|stream| stream.answered).collect();
    assert_eq!(answered, [2_001, 2_000]);
}
