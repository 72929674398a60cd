#![allow(clippy::unwrap_used, reason = "harness")]

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::super::golden::{self, Golden};
use super::super::{Sampler, ShotSet, bundled, flip};
use super::*;

/// A set that yields the events a verdict needs in 1,000 shots.
fn telling(set: &Golden) -> bool {
    1000.0 * set.model.expected_detection_fractions().iter().sum::<f64>() > EVENTS_MIN
}

/// The report after 1,000 shots, each detector moved to another place.
fn after_moving(model: &Model, shots: &ShotSet, place: impl Fn(u32) -> u32) -> HealthReport {
    let mut health = InputHealth::new(model);
    for shot in shots.iter().take(1000) {
        let mut moved = vec![0; model.detector_words()];
        // What leaves the width is what a reader would have refused as padding.
        ones(shot).map(&place).filter(|&index| index < model.detectors).for_each(|index| flip(&mut moved, index));
        health.observe(&moved);
    }
    health.assess()
}

#[test]
fn golden_shots_are_never_called_anything_but_good() {
    for set in golden::all() {
        let mut health = InputHealth::new(&set.model);
        for shot in set.detections.iter() {
            health.observe(shot);
            if health.shots_seen.is_multiple_of(50) {
                let report = health.assess();
                assert!(
                    matches!(report.verdict, HealthVerdict::Good | HealthVerdict::TooFew),
                    "{}: {report:?}",
                    set.name
                );
            }
        }
        let report = health.assess();
        let enough = 2.0 * EVENTS_MIN < 2000.0 * health.expected.total;
        assert!(!enough || report.verdict == HealthVerdict::Good, "{}: {report:?}", set.name);
        assert!((report.fraction_found / report.fraction_expected - 1.0).abs() < 0.1);
        assert_eq!((report.shots_seen, report.shots_examined), (2000, 2000));
    }
}

#[test]
fn reversed_bits_in_each_byte_are_bad_within_a_thousand_shots() {
    for set in golden::all().iter().filter(|set| telling(set)) {
        let report = after_moving(&set.model, &set.detections, |index| index ^ 7);
        assert_eq!(report.verdict, HealthVerdict::Bad, "{}: {report:?}", set.name);
    }
}

#[test]
fn reversed_bytes_are_bad_within_a_thousand_shots() {
    for set in golden::all().iter().filter(|set| telling(set)) {
        let bytes = set.model.detectors.div_ceil(8);
        let report = after_moving(&set.model, &set.detections, |index| (bytes - 1 - index / 8) * 8 + index % 8);
        assert_eq!(report.verdict, HealthVerdict::Bad, "{}: {report:?}", set.name);
    }
}

#[test]
fn shuffled_detectors_are_bad_within_a_thousand_shots() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(21);
    for set in golden::all().iter().filter(|set| telling(set)) {
        let mut order: Vec<u32> = (0..set.model.detectors).collect();
        order.sort_by_cached_key(|_| random.next_u64());
        let report = after_moving(&set.model, &set.detections, |index| order[index as usize]);
        assert_eq!(report.verdict, HealthVerdict::Bad, "{}: {report:?}", set.name);
    }
}

#[test]
fn random_data_and_no_data_are_bad() {
    let model = bundled();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let (mut noise, mut silence) = (InputHealth::new(&model), InputHealth::new(&model));
    for _ in 0..1000 {
        noise.observe(&[random.next_u64(), random.next_u64() >> 8]);
        silence.observe(&[0, 0]);
    }
    assert_eq!(noise.assess().verdict, HealthVerdict::Bad);
    assert_eq!(silence.assess().verdict, HealthVerdict::Bad);
    assert_eq!(silence.assess().fraction_found, 0.0);
}

/// Feeds `shots` shots of `source`, changed by `change`, and returns every 500th verdict.
fn verdicts(health: &mut InputHealth, source: &Model, shots: u64, change: impl Fn(&mut [u64])) -> Vec<HealthVerdict> {
    let mut sampler = Sampler::new(source, 8);
    let mut shot = vec![0; source.detector_words()];
    let mut verdicts = Vec::new();
    for index in 1..=shots {
        sampler.draw(&mut shot, &mut vec![0; source.observable_words()]);
        change(&mut shot);
        health.observe(&shot);
        if index.is_multiple_of(500) {
            verdicts.push(health.assess().verdict);
        }
    }
    verdicts
}

#[test]
fn noise_ten_per_cent_off_stays_good_for_many_windows() {
    let model = bundled();
    for factor in [0.9, 1.0, 1.1] {
        let mut other = model.clone();
        other.errors.iter_mut().for_each(|error| error.probability *= factor);
        let mut health = InputHealth::new(&model);
        let seen = verdicts(&mut health, &other, 300_000, |_| {});
        assert!(seen.iter().all(|&verdict| verdict == HealthVerdict::Good), "{factor}");
    }
}

#[test]
fn a_stream_that_goes_bad_late_is_found_within_two_windows() {
    let model = bundled();
    let mut health = InputHealth::new(&model);
    let good = verdicts(&mut health, &model, 100_000, |_| {});
    assert_eq!(good.last(), Some(&HealthVerdict::Good));
    let reversed = |shot: &mut [u64]| shot.iter_mut().for_each(|word| *word = word.reverse_bits().swap_bytes());
    let bad = verdicts(&mut health, &model, 2 * u64::from(WINDOW_MIN) * SAMPLE, reversed);
    assert_eq!(bad.last(), Some(&HealthVerdict::Bad));
}

#[test]
fn a_detector_that_always_fires_is_suspect_and_hottest() {
    let model = bundled();
    let mut health = InputHealth::new(&model);
    let seen = verdicts(&mut health, &model, 4000, |shot| shot[1] |= 1 << 6);
    assert!(seen.last().is_some_and(|verdict| matches!(verdict, HealthVerdict::Suspect | HealthVerdict::Bad)));
    assert_eq!(health.assess().hottest[0], Some((70, 1.0)));
    let hottest: Vec<f64> = health.assess().hottest.iter().flatten().map(|&(_, fraction)| fraction).collect();
    assert!(hottest.len() == HOTTEST && hottest.is_sorted_by(|a, b| a >= b));
}

#[test]
fn twice_the_noise_is_suspect() {
    let model = bundled();
    let mut louder = model.clone();
    louder.errors.iter_mut().for_each(|error| error.probability *= 2.0);
    let seen = verdicts(&mut InputHealth::new(&model), &louder, 4000, |_| {});
    assert_eq!(seen.last(), Some(&HealthVerdict::Suspect));
}

#[test]
fn nothing_is_said_of_a_few_shots_or_of_no_detectors() {
    let report = InputHealth::new(&bundled()).assess();
    assert_eq!((report.verdict, report.shots_examined, report.fraction_found), (HealthVerdict::TooFew, 0, 0.0));
    let mut empty = InputHealth::new(&Model::parse(b"").unwrap());
    (0..1000).for_each(|_| empty.observe(&[]));
    assert_eq!((empty.assess().verdict, empty.assess().hottest), (HealthVerdict::TooFew, [None; HOTTEST]));
}

#[test]
fn an_impossible_detector_firing_once_is_not_bad() {
    let mut model = bundled();
    model.errors.iter_mut().for_each(|error| {
        if error.effect().detectors.contains(&7) {
            error.probability = 0.0;
        }
    });
    let mut health = InputHealth::new(&model);
    let seen = verdicts(&mut health, &model, 3000, |_| {});
    health.observe(&[1 << 7, 0]);
    assert_eq!((seen.last(), health.assess().verdict), (Some(&HealthVerdict::Good), HealthVerdict::Good));
}

#[test]
fn of_many_streams_each_counts_its_first_shots_and_then_samples() {
    let model = bundled();
    let shot = vec![0; model.detector_words()];
    let mut many = vec![InputHealth::one_of(&model, 1_000); 1_000];
    assert_eq!(many.len(), 1_000);
    let shots = FIRST_OF_MANY + 10 * SAMPLE;
    (0..shots).for_each(|_| many[999].observe(&shot));
    assert_eq!(many[999].assess().shots_examined, FIRST_OF_MANY + 10);
    assert_eq!(many[0].assess().shots_examined, 0);
    let mut few = vec![InputHealth::one_of(&model, 4); 4];
    (0..shots).for_each(|_| few[0].observe(&shot));
    assert_eq!(few[0].assess().shots_examined, shots);
}

#[test]
fn shots_of_a_model_with_errors_likelier_than_not_are_good() {
    let text = "error(0.9) D0 D1\nerror(0.9) D0\nerror(0.9) D1\nerror(0.9) D2 D3\nerror(0.9) D2 D3\n";
    let model = Model::parse(text.as_bytes()).unwrap();
    let (mut health, mut sampler) = (InputHealth::new(&model), Sampler::new(&model, 22));
    let (mut shot, mut flips) = ([0], [0]);
    for _ in 0..WINDOW_MIN {
        sampler.draw(&mut shot, &mut flips);
        health.observe(&shot);
    }
    let report = health.assess();
    assert_eq!(report.verdict, HealthVerdict::Good, "{report:?}");
}

/// Of a pair that a mechanism of one half flips, what else flips one of them alone was not known
/// from how often each fires: both were expected in a quarter of the shots.
#[test]
fn shots_of_a_model_with_mechanisms_of_one_half_are_good() {
    for lone in
        ["0.9) D0\nerror(0.1) D1", "0.9) D0\nerror(0.9) D1", "0.02) D0\nerror(0.98) D1", "0.5) D0\nerror(0.1) D1"]
    {
        let text = format!("error(0.5) D0 D1\nerror({lone}\nerror(0.05) D2 D3\nerror(0.02) D3\n");
        let model = Model::parse(text.as_bytes()).unwrap();
        let (mut health, mut sampler) = (InputHealth::new(&model), Sampler::new(&model, 22));
        let (mut shot, mut flips, mut both) = ([0], [0], 0);
        for _ in 0..WINDOW_MIN {
            sampler.draw(&mut shot, &mut flips);
            both += u32::from(shot[0] & 3 == 3);
            health.observe(&shot);
        }
        let report = health.assess();
        assert_eq!(report.verdict, HealthVerdict::Good, "{text}: {report:?}");
        let group = usize::from(health.expected.group_of[0]);
        let expected = health.expected.pairs[group].0 * f64::from(WINDOW_MIN);
        let found = health.now.pairs[group] as f64;
        assert!(
            (found - expected).abs() < 5.0 * expected.sqrt(),
            "{text}: {found}, not {expected}; {both} of D0 and D1"
        );
    }
}

#[test]
fn a_window_of_nothing_but_ones_has_more_pairs_than_32_bits_hold() {
    let text: String = (0..300).map(|at| format!("error(0.0000001) D{at} D{}\n", at + 1)).collect();
    let mut health = InputHealth::new(&Model::parse(text.as_bytes()).unwrap());
    // As after so many shots of ones, which fit one window.
    let shots = u32::MAX / 300;
    assert!(shots < health.window_shots);
    health.now = Window { shots, pairs: [0; GROUPS], counts: vec![shots; 301] };
    health.now.pairs[0] = 300 * u64::from(shots);
    health.observe(&[u64::MAX, u64::MAX, u64::MAX, u64::MAX, (1 << 45) - 1]);
    assert_eq!(health.now.pairs[0], 300 * u64::from(shots + 1));
    assert_eq!(health.assess().verdict, HealthVerdict::Bad);
}
