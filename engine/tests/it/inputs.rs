//! Inputs as they come: wrong bit order, shots nobody can match, streams that end and streams that break off.

use crate::rig::{assert_nothing_lost, beside_another, config, errors, profile, replay, run, shots, sink, total};
use pinwheel_edge::slot::word::ErrorCode;
use pinwheel_engine::code::{Model, bundled_named};
use pinwheel_engine::engine::{EndedBy, Input, ReadShot};
use pinwheel_engine::fault::FaultCode;
use pinwheel_engine::profile::Silos;
use pinwheel_engine::streams::HealthVerdict;
use std::path::Path;
use std::sync::Arc;

fn d5() -> (Arc<Model>, Vec<u8>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("code/src/code/data/surf_z_d5_r5_p0.005.dets.b8");
    (Arc::new(bundled_named("surface_d5").unwrap()), std::fs::read(path).unwrap())
}

fn verdict_of(bytes: &[u8]) -> HealthVerdict {
    let _home = beside_another();
    let (model, _) = d5();
    let mut profile = profile();
    profile.input.streams = 1;
    let outcome = run(config(&profile, replay(&model, &shots(bytes, model.detectors)), None));
    assert_nothing_lost(&outcome);
    let health = &outcome.snapshot.streams[0].input_health;
    assert_eq!(health.shots_examined, 2_000);
    health.verdict
}

#[test]
fn a_stream_in_the_models_bit_order_is_good_and_one_with_reversed_bits_is_bad() {
    let (_, bytes) = d5();
    assert_eq!(verdict_of(&bytes), HealthVerdict::Good);
    let reversed: Vec<u8> = bytes.iter().map(|byte| byte.reverse_bits()).collect();
    assert_eq!(verdict_of(&reversed), HealthVerdict::Bad);
}

#[test]
fn a_shot_without_a_matching_is_answered_with_an_error_and_the_next_is_decoded() {
    let home = beside_another();
    // Nothing flips D1.
    let model = Arc::new(Model::parse(b"error(0.1) D0 L0\ndetector D1\n").unwrap());
    let profile = profile();
    let path = home.file("answers");
    let mut config = config(&profile, replay(&model, &shots(&[1, 2, 0, 3, 1], 2)), None);
    config.sink = Some(sink(&profile, 1, None, Some(&path)));
    let outcome = run(config);
    assert_nothing_lost(&outcome);
    assert_eq!(errors(&outcome.snapshot, ErrorCode::Unmatchable), 2);
    let said = std::fs::read_to_string(&path).unwrap();
    let ok = |flips: &str| said.matches(&format!("\"status\":\"ok\",\"observables\":[{flips}]")).count();
    assert_eq!((ok("0"), ok(""), said.matches("\"status\":\"unmatchable\"").count()), (2, 1, 2), "{said}");
}

/// A stream that gives `n` empty shots and then `last`.
fn stream(n: u64, last: Result<bool, String>) -> Input {
    let mut left = n;
    let reader: ReadShot = Box::new(move |shot| {
        shot.fill(0);
        if left == 0 {
            return last.clone();
        }
        left -= 1;
        Ok(true)
    });
    Input::Stream { model: Arc::new(bundled_named("surface_d3").unwrap()), name: "stdin".into(), reader }
}

#[test]
fn a_stream_that_ends_drains() {
    for (silos, streams) in [(1, 1), (2, 3)] {
        let _home = beside_another();
        let mut profile = profile();
        (profile.silos, profile.input.streams) = (Silos::Count(silos), streams);
        let outcome = run(config(&profile, stream(10_000, Ok(false)), None));
        assert_nothing_lost(&outcome);
        assert_eq!((outcome.ended_by, outcome.input_error.as_ref()), (EndedBy::Input, None));
        assert_eq!(total(&outcome.snapshot, |c| c.submitted), 10_000);
        // Nobody told the truth about these, so nobody is judged by it.
        assert_eq!(total(&outcome.snapshot, |c| c.shots_with_observables), 0);
    }
}

#[test]
fn a_stream_that_breaks_off_ends_by_fault_after_its_last_shot_and_says_why() {
    for silos in [1, 2] {
        let _home = beside_another();
        let mut profile = profile();
        profile.silos = Silos::Count(silos);
        let why = "shot 5000: found 2 bytes, expected 3".to_string();
        let outcome = run(config(&profile, stream(5_000, Err(why.clone())), None));
        assert_nothing_lost(&outcome);
        assert_eq!(outcome.ended_by, EndedBy::Fault);
        assert_eq!(outcome.input_error, Some(why));
        assert_eq!(total(&outcome.snapshot, |c| c.submitted), 5_000);
        let broken = outcome.snapshot.faults.iter().filter(|fault| fault.code == FaultCode::InputBroken.number());
        assert_eq!(broken.map(|fault| fault.count).sum::<u64>(), u64::from(silos));
    }
}

#[test]
fn a_stream_shorter_than_the_count_ends_by_its_input() {
    let _home = beside_another();
    let outcome = run(config(&profile(), stream(99, Ok(false)), Some(100)));
    assert_nothing_lost(&outcome);
    assert_eq!((outcome.ended_by, total(&outcome.snapshot, |c| c.submitted)), (EndedBy::Input, 99));
}
