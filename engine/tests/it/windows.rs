//! Long experiments through the engine, decoded by sliding windows.

use crate::boards::boards;
use crate::rig::{Home, assert_nothing_lost, beside_another, config, end, profile, run, sink, total, until};
use pinwheel_engine::code::{Format, Layout, Sampler, ShotSet, ShotWriter, bundled_named};
use pinwheel_engine::decode::{Matcher, MatcherModel};
use pinwheel_engine::engine::{Engine, Input, Outcome};
use pinwheel_engine::profile::{Decoders, HotAllocations, Predecoder, TaskTrace, Window, WindowRounds};
use pinwheel_engine::roles::TaskKernel;
use std::sync::Arc;

const SIZE: WindowRounds = WindowRounds { commit_rounds: 5, buffer_rounds: 5 };
const SHOTS: usize = 2_000;

#[test]
fn predictions_of_a_long_experiment_are_those_of_its_windows() {
    let home = beside_another();
    predictions(&home, Window::Some(SIZE), None);
    predictions(&home, Window::Stream(SIZE), None);
    predictions(&home, Window::Blocks(7), None);
}

#[test]
fn predictions_of_shots_that_come_by_rounds_are_those_of_their_windows() {
    let home = beside_another();
    for window in [Window::Some(SIZE), Window::Stream(SIZE), Window::Blocks(7)] {
        let outcome = predictions(&home, window, Some(1_000));
        assert_eq!(total(&outcome.snapshot, |counters| counters.by_rounds), SHOTS as u64);
        for thread in &outcome.snapshot.threads {
            assert_eq!(thread.memory.allocations, Some(0), "{}: {:?}", thread.name, thread.memory.first_site);
        }
    }
}

#[test]
fn shots_that_expire_while_their_rounds_come_are_answered_so_and_nothing_is_lost() {
    let _home = beside_another();
    let mut profile = profile();
    (profile.window, profile.input.round_ns, profile.slots) = (Window::Some(SIZE), Some(20_000_000), 8);
    (profile.limits.launch_deadline_us, profile.limits.shot_deadline_us) = (5_000, 5_000);
    let model = Arc::new(bundled_named("surface_d5@r25").unwrap());
    let input = Input::Sampler { model, name: "slow".into(), seed: 5 };
    let engine = Engine::start(config(&profile, input, None)).unwrap();
    // While the machine stands still rounds come and deadlines do not: shots that it held back may be whole in time.
    until(&engine, "expired shots", |now| total(now, |counters| counters.errored) >= 40);
    engine.request_drain();
    let outcome = end(engine);
    assert_nothing_lost(&outcome);
    let [errored, answered] = [total(&outcome.snapshot, |c| c.errored), total(&outcome.snapshot, |c| c.answered)];
    assert!(2 * errored > answered, "{errored} of {answered} expired");
    let errors = &outcome.snapshot.silos[0].errors;
    assert!(errors.len() == 1 && errors[0].name == "shot_deadline", "{errors:?}");
}

#[test]
fn windows_of_shots_that_come_by_rounds_are_predecoded_without_an_allocator() {
    let home = beside_another();
    let model = Arc::new(bundled_named("surface_d5@r25").unwrap());
    let local = MatcherModel::windowed(&model, SIZE, Predecoder::Local).unwrap();
    let how = (Window::Some(SIZE), Some(1_000), Predecoder::Local);
    let outcome = predictions_by(&home, how, local.name(), &mut *local.matcher_by_rounds().unwrap());
    assert!(total(&outcome.snapshot, |counters| counters.predecoded_events) > 10_000, "no window was predecoded");
    for thread in &outcome.snapshot.threads {
        assert_eq!(thread.memory.allocations, Some(0), "{}: {:?}", thread.name, thread.memory.first_site);
    }
}

/// What `graph.trace` of a profile asks for, and nothing else, is there at the end.
#[test]
fn times_are_kept_of_the_tasks_that_the_profile_names() {
    let _home = beside_another();
    let mut profile = profile();
    (profile.window, profile.input.streams, profile.decoders) = (Window::Some(SIZE), 3, Decoders::Count(1));
    profile.graph.trace = TaskTrace::Cycles { kernels: vec![TaskKernel::Window], streams: vec![1] };
    profile.graph.trace_events = 100;
    let model = Arc::new(bundled_named("surface_d5@r25").unwrap());
    let outcome = run(config(&profile, Input::Sampler { model, name: "long".into(), seed: 5 }, Some(300)));
    assert_nothing_lost(&outcome);
    let times = &outcome.task_times;
    // Of five hundred windows of that stream the latest.
    assert_eq!(times.len(), 100);
    for (silo, event) in times {
        let found = (*silo, event.kernel, event.stream, event.start <= event.end);
        assert_eq!(found, (0, TaskKernel::Window as u16, 1, true));
    }
}

/// A long experiment from a file, each round `round_ns` after the one before.
fn predictions(home: &Home, window: Window, round_ns: Option<u32>) -> Outcome {
    let model = bundled_named("surface_d5@r25").unwrap();
    let matching = match window {
        Window::Stream(size) => MatcherModel::streamed(&model, size),
        Window::Blocks(rounds) => MatcherModel::in_blocks(&model, rounds),
        _ => MatcherModel::windowed(&model, SIZE, Predecoder::None),
    };
    let matching = matching.unwrap();
    predictions_by(home, (window, round_ns, Predecoder::None), matching.name(), &mut *matching.matcher())
}

fn predictions_by(
    home: &Home,
    (window, round_ns, predecoder): (Window, Option<u32>, Predecoder),
    name: &str,
    matcher: &mut dyn Matcher,
) -> Outcome {
    let model = Arc::new(bundled_named("surface_d5@r25").unwrap());
    let layout = Layout::detectors(model.detectors);
    let mut writer = ShotWriter::new(Vec::new(), Format::B8, layout);
    let mut sampler = Sampler::new(&model, 3);
    let (mut shot, mut truth, mut found) = (vec![0; model.detector_words()], [0], [0]);
    let (mut expected, mut wrong) = (Vec::new(), 0);
    for _ in 0..SHOTS {
        sampler.draw(&mut shot, &mut truth);
        writer.write_shot(&shot).unwrap();
        matcher.decode(&shot, &mut found).unwrap();
        wrong += usize::from(found != truth);
        expected.push(found[0]);
    }
    assert!((1..SHOTS / 10).contains(&wrong), "{wrong} logical errors");
    let shots = Arc::new(ShotSet::read(&writer.finish().unwrap()[..], Format::B8, layout).unwrap());
    let mut profile = profile();
    (profile.window, profile.input.round_ns, profile.predecoder) = (window, round_ns, predecoder);
    let path = home.file("predictions.b8");
    let input = Input::Replay { model: Arc::clone(&model), name: "long".into(), shots, observables: None };
    let mut config = config(&profile, input, None);
    config.sink = Some(sink(&profile, model.observables, Some(&path), None));
    let outcome = run(config);
    assert_nothing_lost(&outcome);
    assert_eq!(outcome.snapshot.engine.decoder, name);
    let layout = Layout::observables(model.observables);
    let predicted = ShotSet::read(&std::fs::read(&path).unwrap()[..], Format::B8, layout).unwrap();
    assert!(predicted.iter().map(|word| word[0]).eq(expected.iter().copied()));
    let mut frames = vec![0; profile.input.streams as usize];
    expected.iter().enumerate().for_each(|(index, found)| frames[index % profile.input.streams as usize] ^= found);
    assert!(outcome.snapshot.streams.iter().map(|stream| stream.frame).eq(frames), "a frame is its answers' parity");
    outcome
}

#[test]
fn windows_call_no_allocator_on_any_hot_thread() {
    let _home = beside_another();
    let (none, local) = (Predecoder::None, Predecoder::Local);
    let windows = [(none, Window::Some(SIZE)), (local, Window::Some(SIZE)), (none, Window::Blocks(7))];
    for (predecoder, window) in windows {
        let mut profile = profile();
        (profile.predecoder, profile.window) = (predecoder, window);
        profile.hot_allocations = HotAllocations::Count;
        let model = Arc::new(bundled_named("surface_d5@r25").unwrap());
        let outcome = run(config(&profile, Input::Sampler { model, name: "long".into(), seed: 5 }, Some(10_000)));
        assert_nothing_lost(&outcome);
        for thread in &outcome.snapshot.threads {
            let memory = &thread.memory;
            assert_eq!(memory.allocations, Some(0), "{}: {:?}", thread.name, memory.first_site);
        }
        if let Window::Blocks(_) = window {
            // Each of 8 shots has the search of the whole shot twice.
            let bytes = outcome.snapshot.engine.decoder_shared_bytes;
            assert!((8 * 400_000..8 * 500_000).contains(&bytes), "{bytes} bytes");
        }
        let errors = total(&outcome.snapshot, |counters| counters.logical_errors);
        assert!((1..1_000).contains(&errors), "{errors} logical errors");
    }
}

#[test]
fn windows_that_do_not_fit_the_model_are_refused_before_anything_starts() {
    let home = beside_another();
    let model = Arc::new(bundled_named("surface_d3").unwrap());
    let mut profile = profile();
    profile.window = Window::Some(SIZE);
    let input = Input::Sampler { model, name: "short".into(), seed: 5 };
    let said = Engine::start(config(&profile, input, Some(10))).err().unwrap().to_string();
    assert!(said.contains("5 commit rounds do not fit the model's 4"), "{said}");
    profile.window = Window::Blocks(5);
    let model = Arc::new(bundled_named("surface_d3").unwrap());
    let input = Input::Sampler { model, name: "short".into(), seed: 5 };
    let said = Engine::start(config(&profile, input, Some(10))).err().unwrap().to_string();
    assert!(said.contains("blocks of 5 rounds do not fit the model's 4"), "{said}");
    assert!(boards(&home.boards()).is_empty());
}
