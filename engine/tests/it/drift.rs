//! The watch for drifts in a running engine: the error is named on the board, by an alarm and in the
//! counts, and no shot waits for the watch.

use crate::rig::{assert_nothing_lost, beside_another, config, end, execute, profile, run, sampler, until};
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::code::{Model, Sampler, bundled_named};
use pinwheel_engine::engine::{Command, DETECTIONS, Engine, Input, StreamDetections};
use pinwheel_engine::profile::{AlarmAction, AlarmRule, Rate, RuleId};
use pinwheel_engine::streams::HealthVerdict;
use std::sync::Arc;

/// Shots of `model` whose stream 1 has mechanism `changed` five times as often.
fn drifting(model: &Arc<Model>, changed: usize) -> Input {
    let mut other = Model::clone(model);
    other.errors[changed].probability *= 5.0;
    let (mut own, mut drifted) = (Sampler::new(model, 1), Sampler::new(&other, 2));
    let (mut next, mut flips) = (0u64, vec![0; model.observable_words()]);
    let reader = move |words: &mut [u64]| {
        let sampler = if next % 2 == 1 { &mut drifted } else { &mut own };
        sampler.draw(words, &mut flips);
        next += 1;
        Ok(true)
    };
    Input::Stream { model: Arc::clone(model), name: "drifting".into(), reader: Box::new(reader) }
}

#[test]
fn an_error_that_drifts_in_one_stream_is_named_until_the_stream_has_the_right_model() {
    let home = beside_another();
    let model = Arc::new(bundled_named("surface_d3").unwrap());
    let changed = model.errors.iter().position(|error| error.effect().detectors == [2, 10]).unwrap();
    let mut profile = profile();
    (profile.input.streams, profile.input.rate, profile.input.watch_drift) = (2, Rate::Hz(40_000.0), true);
    let mut config = config(&profile, drifting(&model, changed), None);
    config.run_dir = Some(home.file(""));
    let engine = Engine::start(config).unwrap();
    let shown = until(&engine, "the drift", |now| {
        let is_raised = now.alarms.iter().any(|alarm| alarm.rule == "model_drift");
        is_raised && now.streams[1].input_health.drift.is_some()
    });
    let drift = shown.streams[1].input_health.drift.unwrap();
    assert_eq!((drift.detector, drift.partner), (2, Some(10)));
    assert!((3.0..8.0).contains(&drift.ratio) && drift.since_ns < shown.at_ns && drift.shots > 8_000, "{drift:?}");
    assert_eq!(shown.streams[0].input_health.drift, None);
    let alarm = shown.alarms.iter().find(|alarm| alarm.rule == "model_drift").unwrap();
    assert!(alarm.sentence.contains("stream 1: edge D2–D10 happens"), "{}", alarm.sentence);
    // The counts are kept while the run goes on, so that a model can be fitted to them.
    let kept =
        || Some(serde_json::from_slice::<Vec<StreamDetections>>(&std::fs::read(home.file(DETECTIONS)).ok()?).unwrap());
    let has_both = |kept: Vec<StreamDetections>| kept.iter().any(|of| of.stream == 1 && of.shots >= 8_192);
    until(&engine, "the counts of stream 1", |_| kept().is_some_and(has_both));
    let name = &kept().unwrap()[0].model;
    assert!(*model == Model::parse(&std::fs::read(home.file(name)).unwrap()).unwrap());
    // The model that is right for the stream takes the drift away.
    let mut right = Model::clone(&model);
    right.errors[changed].probability *= 5.0;
    let file = home.file("right.dem");
    std::fs::write(&file, right.to_string()).unwrap();
    let path = file.display().to_string();
    execute(&engine, Command::Model { file: Some(path), stream: Some(1) }).unwrap();
    until(&engine, "the drift to end", |now| now.streams[1].input_health.drift.is_none());
    engine.request_drain();
    let outcome = end(engine);
    assert_nothing_lost(&outcome);
    assert!(*outcome.counted[0].model == *model && *outcome.counted[1].model == right);
    assert_eq!(
        outcome.counted.iter().map(|of| (of.stream, of.drifted.is_some())).collect::<Vec<_>>(),
        [(0, false), (1, false)]
    );
    for thread in &outcome.snapshot.threads {
        assert_eq!(thread.memory.allocations, Some(0), "{}: {:?}", thread.name, thread.memory.first_site);
    }
}

#[test]
fn an_alarm_switches_its_stream_to_the_model_of_its_rule_or_says_why_not() {
    let home = beside_another();
    let model = Arc::new(bundled_named("surface_d3").unwrap());
    let changed = model.errors.iter().position(|error| error.effect().detectors == [2, 10]).unwrap();
    let mut right = Model::clone(&model);
    right.errors[changed].probability *= 5.0;
    let file = home.file("right.dem");
    std::fs::write(&file, right.to_string()).unwrap();
    for (file, is_right) in [(file.display().to_string(), true), ("surface_d5".to_owned(), false)] {
        let mut profile = profile();
        (profile.input.streams, profile.input.rate, profile.input.watch_drift) = (2, Rate::Hz(40_000.0), true);
        let rule = AlarmRule { action: AlarmAction::SwitchModel(file), ..RuleId::ModelDrift.bundled() };
        profile.alarms.push(rule);
        let engine = Engine::start(config(&profile, drifting(&model, changed), None)).unwrap();
        let is_alarms = |what: &str| what.contains("model ") && what.contains("an alarm");
        let shown =
            until(&engine, "the action", |now| now.control.last.as_ref().is_some_and(|last| is_alarms(&last.what)));
        let what = shown.control.last.unwrap().what;
        let why = "of this run: detectors 120 instead of 24";
        assert_eq!((what.contains("refused"), what.contains(why)), (!is_right, !is_right), "{what}");
        if is_right {
            until(&engine, "the model", |now| now.streams[1].model_hash == right.hash());
        }
        assert_eq!(engine.snapshot().streams[0].model_hash, model.hash());
        engine.request_drain();
        let outcome = end(engine);
        assert_nothing_lost(&outcome);
        assert_eq!(outcome.snapshot.streams[1].model_hash, if is_right { right.hash() } else { model.hash() });
    }
}

#[test]
fn every_shot_of_a_slow_input_is_counted_and_none_without_the_watch() {
    let _home = beside_another();
    for watches in [true, false] {
        let mut profile = profile();
        (profile.input.streams, profile.input.rate, profile.input.watch_drift) = (3, Rate::Hz(20_000.0), watches);
        let outcome = run(config(&profile, sampler(), Some(5_000)));
        assert_nothing_lost(&outcome);
        let shots: u64 = outcome.counted.iter().map(|of| of.counts.shots).sum();
        assert_eq!(shots, if watches { 5_000 } else { 0 });
    }
}

#[test]
fn the_health_of_the_input_is_judged_by_the_model_in_force() {
    let home = beside_another();
    let model = Arc::new(bundled_named("surface_d3").unwrap());
    let mut noisy = Model::clone(&model);
    noisy.errors.iter_mut().for_each(|error| error.probability *= 2.0);
    let (mut sampler, mut flips) = (Sampler::new(&noisy, 4), vec![0; model.observable_words()]);
    let reader = move |words: &mut [u64]| {
        sampler.draw(words, &mut flips);
        Ok(true)
    };
    let input = Input::Stream { model: Arc::clone(&model), name: "noisy".into(), reader: Box::new(reader) };
    let mut profile = profile();
    (profile.input.streams, profile.input.rate) = (3, Rate::Hz(40_000.0));
    let engine = Engine::start(config(&profile, input, None)).unwrap();
    let verdict = |now: &Snapshot, stream: usize| now.streams[stream].input_health.verdict;
    until(&engine, "suspicion", |now| (0..3).all(|stream| verdict(now, stream) == HealthVerdict::Suspect));
    let file = home.file("noisy.dem");
    std::fs::write(&file, noisy.to_string()).unwrap();
    let model = |stream| Command::Model { file: Some(file.display().to_string()), stream };
    execute(&engine, model(Some(1))).unwrap();
    until(&engine, "stream 1 to be good", |now| verdict(now, 1) == HealthVerdict::Good);
    assert_eq!([0, 2].map(|stream| verdict(&engine.snapshot(), stream)), [HealthVerdict::Suspect; 2]);
    execute(&engine, model(None)).unwrap();
    until(&engine, "all to be good", |now| (0..3).all(|stream| verdict(now, stream) == HealthVerdict::Good));
    execute(&engine, Command::Model { file: None, stream: None }).unwrap();
    until(&engine, "the models before", |now| verdict(now, 0) == HealthVerdict::Suspect);
    engine.request_drain();
    let outcome = end(engine);
    assert_nothing_lost(&outcome);
    assert_eq!(verdict(&outcome.snapshot, 1), HealthVerdict::Good);
    for thread in &outcome.snapshot.threads {
        assert_eq!(thread.memory.allocations, Some(0), "{}: {:?}", thread.name, thread.memory.first_site);
    }
}
