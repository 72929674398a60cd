//! The engine against the golden sets: what bare decoding says, in input order, whatever the plan.

use crate::rig::{assert_nothing_lost, beside_another, config, profile, run, sink, total};
use pinwheel_engine::board::snapshot::{Counters, DeviceState};
use pinwheel_engine::code::{Format, Layout, Model, ShotSet};
use pinwheel_engine::decode::{Matcher, MatcherModel};
use pinwheel_engine::engine::{EndedBy, Input, Outcome};
use pinwheel_engine::profile::{Decoder, Decoders, Device, Latency, Predecoder, Profile, Silos, Window};
use pinwheel_engine::roles::RoleKind;
use pinwheel_engine::silo::Decoding;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Shots of equal weight in 2,000, at most, on which two exact matchers may differ.
const TIES_MAX: usize = 2;

struct Golden {
    model: Arc<Model>,
    shots: Arc<ShotSet>,
    truth: Arc<ShotSet>,
    theirs: ShotSet,
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("code/src/code/data")
}

fn golden(name: &str) -> Golden {
    golden_by(name, "pm.b8")
}

fn golden_by(name: &str, predictions: &str) -> Golden {
    let read = |extension: &str| std::fs::read(directory().join(format!("{name}.{extension}"))).unwrap();
    let model = Arc::new(Model::parse(&read("dem")).unwrap());
    let observables = Layout::observables(model.observables);
    let set = |extension, layout| ShotSet::read(&read(extension)[..], Format::B8, layout).unwrap();
    Golden {
        shots: Arc::new(set("dets.b8", Layout::detectors(model.detectors))),
        truth: Arc::new(set("obs.b8", observables)),
        theirs: set(predictions, observables),
        model,
    }
}

/// What the matcher alone answers, shot for shot.
fn bare(golden: &Golden, mut matcher: Box<dyn Matcher>) -> Vec<Vec<u64>> {
    let decode = |shot: &[u64]| {
        let mut found = vec![0; golden.model.observable_words()];
        matcher.decode(shot, &mut found).unwrap();
        found
    };
    golden.shots.iter().map(decode).collect()
}

fn agrees(name: &str, pm_logical_errors: usize) {
    let golden = golden(name);
    let bare = bare(&golden, MatcherModel::new(&golden.model).unwrap().matcher());
    let ties = bare.iter().zip(golden.theirs.iter()).filter(|(ours, theirs)| ours != theirs).count();
    assert!(ties <= TIES_MAX, "{ties} ties");
    for silos in [1, 2, 3] {
        for streams in [1, 4, 7] {
            let mut profile = profile();
            (profile.silos, profile.input.streams, profile.decoders) =
                (Silos::Count(silos), streams, Decoders::Count(3));
            // A latency that makes answers overtake each other.
            profile.device = Device::Sim { latency: Latency::Uniform { min_us: 0.0, max_us: 50.0 } };
            through(&golden, &profile, &bare, (pm_logical_errors, ties));
        }
    }
}

fn through(golden: &Golden, profile: &Profile, bare: &[Vec<u64>], (theirs, ties): (usize, usize)) -> Outcome {
    let home = beside_another();
    let path = home.file("predictions.b8");
    let input = Input::Replay {
        model: Arc::clone(&golden.model),
        name: "golden".into(),
        shots: Arc::clone(&golden.shots),
        observables: Some(Arc::clone(&golden.truth)),
    };
    let mut config = config(profile, input, None);
    config.sink = Some(sink(profile, golden.model.observables, Some(&path), None));
    let outcome = run(config);
    let plan = (profile.silos, profile.input.streams);
    assert_nothing_lost(&outcome);
    assert_eq!((outcome.ended_by, outcome.sink.as_ref()), (EndedBy::Input, Some(&Ok(()))), "{plan:?}");
    let layout = Layout::observables(golden.model.observables);
    let predicted = ShotSet::read(&std::fs::read(&path).unwrap()[..], Format::B8, layout).unwrap();
    assert_eq!(predicted.len(), bare.len(), "{plan:?}");
    for (index, (predicted, bare)) in predicted.iter().zip(bare).enumerate() {
        assert_eq!(predicted, bare, "shot {index} of {plan:?}");
    }
    let counted = total(&outcome.snapshot, |c| c.logical_errors) as usize;
    let wrong = predicted.iter().zip(golden.truth.iter()).filter(|(found, truth)| found != truth).count();
    assert_eq!(counted, wrong, "{plan:?}");
    assert!(counted.abs_diff(theirs) <= ties, "{counted} logical errors, theirs {theirs}, {ties} ties");
    assert_eq!(total(&outcome.snapshot, |c| c.shots_with_observables) as usize, bare.len());
    let of_streams: u64 = outcome.snapshot.streams.iter().map(|stream| stream.logical_errors).sum();
    assert_eq!(of_streams as usize, counted);
    outcome
}

#[test]
fn predictions_of_the_small_set_are_bare_decodings_in_input_order() {
    agrees("surf_z_d3_r3_p0.005", 33);
}

#[test]
fn predictions_of_the_larger_set_are_bare_decodings_and_its_logical_errors_are_the_golden_ones() {
    agrees("surf_z_d5_r5_p0.005", PM_LOGICAL_ERRORS_D5);
}

#[test]
fn without_a_device_the_decode_workers_predecode_and_nothing_is_launched() {
    let golden = golden("surf_z_d5_r5_p0.005");
    let model = &golden.model;
    for predecoder in [Predecoder::None, Predecoder::Local] {
        for silos in [1, 2] {
            let mut profile = Profile { device: Device::None, predecoder, ..profile() };
            (profile.silos, profile.input.streams) = (Silos::Count(silos), 4);
            let mut predecode =
                Decoding::new(Arc::clone(model), Decoder::Matching, predecoder, Window::None).unwrap().predecoder();
            let mut matcher = MatcherModel::new(model).unwrap().matcher();
            let mut removed = 0;
            let expected: Vec<Vec<u64>> = golden
                .shots
                .iter()
                .map(|shot| {
                    let (mut left, mut flips, mut found) = (vec![0; shot.len()], vec![0; 1], vec![0; 1]);
                    removed += u64::from(predecode.predecode(shot, &mut left, &mut flips).resolved);
                    matcher.decode(&left, &mut found).unwrap();
                    vec![found[0] ^ flips[0]]
                })
                .collect();
            let wrong = expected.iter().zip(golden.truth.iter()).filter(|(found, truth)| found != truth).count();
            let outcome = through(&golden, &profile, &expected, (wrong, 0));
            assert!(
                outcome.snapshot.silos.iter().all(|silo| silo.workers.is_empty() && silo.device == DeviceState::Online)
            );
            let counted = |count: fn(&Counters) -> u64| total(&outcome.snapshot, count);
            let launched = counted(|c| c.launched + c.completed + c.cpu_fallbacks);
            assert_eq!((launched, counted(|c| c.predecoded_events)), (0, removed));
            let roles = outcome.snapshot.threads.iter().flat_map(|thread| &thread.roles);
            assert!(roles.clone().count() > 0 && roles.clone().all(|role| role.kind != RoleKind::Device));
        }
    }
}

#[test]
fn a_profile_that_says_so_decodes_in_two_passes() {
    let golden = golden_by("surf_z_d5_r5_p0.005", "pm_correlated.b8");
    let bare = bare(&golden, MatcherModel::correlated(&golden.model).unwrap().matcher());
    let ties = bare.iter().zip(golden.theirs.iter()).filter(|(ours, theirs)| ours != theirs).count();
    assert!(ties <= TIES_MAX, "{ties} ties");
    let mut profile = profile();
    (profile.decoder, profile.input.streams, profile.decoders) = (Decoder::Correlated, 4, Decoders::Count(2));
    through(&golden, &profile, &bare, (PM_LOGICAL_ERRORS_D5_CORRELATED, ties));
}

/// The answers of a decoder and its logical errors, through the engine as by itself.
fn a_profile_decodes_as_its_decoder(name: &str, decoder: Decoder, model: &MatcherModel) {
    let golden = golden(name);
    let bare = bare(&golden, model.matcher());
    let errors = bare.iter().zip(golden.truth.iter()).filter(|(ours, truth)| ours != truth).count();
    let mut profile = profile();
    (profile.decoder, profile.input.streams, profile.decoders) = (decoder, 4, Decoders::Count(2));
    through(&golden, &profile, &bare, (errors, 0));
}

#[test]
fn a_profile_that_says_so_decodes_by_union_find() {
    let name = "surf_z_d5_r5_p0.005";
    let model = MatcherModel::union_find(&golden(name).model).unwrap();
    a_profile_decodes_as_its_decoder(name, Decoder::UnionFind, &model);
}

#[test]
fn a_profile_that_says_so_looks_its_answers_up() {
    let name = "surf_z_d3_r3_p0.005";
    let model = MatcherModel::lookup(&golden(name).model).unwrap();
    a_profile_decodes_as_its_decoder(name, Decoder::Lookup, &model);
}

/// Logical errors of `PyMatching` with `enable_correlations`.
const PM_LOGICAL_ERRORS_D5_CORRELATED: usize = 18;

/// `pm_logical_errors` of `golden.json`.
const PM_LOGICAL_ERRORS_D5: usize = 23;
