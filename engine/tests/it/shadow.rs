//! The shadow in a running engine: it answers as its decoder does by itself, disagreements are kept, every
//! chosen shot is counted, and no shot waits for it.

use crate::rig::{assert_nothing_lost, beside_another, config, end, execute, profile, run, sampler, total, until};
use pinwheel_engine::board::snapshot::ShadowView;
use pinwheel_engine::code::{Format, Layout, Model, ShotSet, bundled_named};
use pinwheel_engine::decode::MatcherModel;
use pinwheel_engine::dispatch::sampled::is_sampled;
use pinwheel_engine::engine::{Command, Engine, Input, Outcome};
use pinwheel_engine::profile::{Decoder, DecoderKind, Predecoder, Rate, Shadow, Silos, Window, WindowRounds};
use std::path::Path;
use std::sync::Arc;

const STREAMS: u64 = 3;

fn shadow(decoder: Decoder, one_in: u32) -> Option<Shadow> {
    Some(Shadow { decoder, one_in, model: None })
}

/// Every chosen shot is in one of the counts.
fn all_counted(shadow: &ShadowView) {
    let ShadowView { sampled, compared, path_errors, shadow_errors, other_model, .. } = shadow;
    assert_eq!(*sampled, compared + path_errors + shadow_errors + other_model);
    assert_eq!((shadow.path_latency.count(), shadow.decode.count()), (*compared, *compared));
}

fn no_allocations(outcome: &Outcome) {
    for thread in &outcome.snapshot.threads {
        assert_eq!(thread.memory.allocations, Some(0), "{}: {:?}", thread.name, thread.memory.first_site);
    }
}

/// What a decoder by itself answers.
fn bare(model: &Model, shots: &ShotSet, decoder: Decoder) -> Vec<Vec<u64>> {
    let mut matcher = MatcherModel::of(model, decoder, Predecoder::None, Window::None).unwrap().matcher();
    let decode = |shot: &[u64]| {
        let mut found = vec![0; model.observable_words()];
        matcher.decode(shot, &mut found).unwrap();
        found
    };
    shots.iter().map(decode).collect()
}

#[test]
fn the_shadow_gets_the_chosen_shots_answers_as_its_decoder_and_keeps_disagreements() {
    let home = beside_another();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("code/src/code/data");
    let read = |extension: &str| std::fs::read(data.join(format!("surf_z_d5_r5_p0.005.{extension}"))).unwrap();
    let model = Arc::new(Model::parse(&read("dem")).unwrap());
    let set = |extension, layout| Arc::new(ShotSet::read(&read(extension)[..], Format::B8, layout).unwrap());
    let shots = set("dets.b8", Layout::detectors(model.detectors));
    let truth = set("obs.b8", Layout::observables(model.observables));
    for silos in [1, 2] {
        let mut profile = profile();
        (profile.input.streams, profile.silos, profile.input.rate) =
            (STREAMS as u32, Silos::Count(silos), Rate::Hz(4_000.0));
        profile.shadow = shadow(Decoder::UnionFind, 2);
        let observables = Some(Arc::clone(&truth));
        let input =
            Input::Replay { model: Arc::clone(&model), name: "set".into(), shots: Arc::clone(&shots), observables };
        let mut config = config(&profile, input, None);
        let directory = home.file(&format!("run{silos}"));
        std::fs::create_dir(&directory).unwrap();
        config.run_dir = Some(directory.clone());
        let outcome = run(config);
        assert_nothing_lost(&outcome);
        no_allocations(&outcome);
        let found = outcome.snapshot.shadow.clone().unwrap();
        all_counted(&found);
        assert!(
            found.is_on
                && found.decoder == Some(DecoderKind::UnionFind)
                && found.one_in == 2
                && found.trouble.is_none()
        );
        // On a machine that stands still some may be left out; all others are the chosen ones.
        let chosen = |index: u64| is_sampled((index % STREAMS) as u32, index / STREAMS, u64::MAX / 2);
        let chosen: Vec<usize> = (0..shots.len()).filter(|index| chosen(*index as u64)).collect();
        assert_eq!(found.sampled + found.left_out, chosen.len() as u64);
        assert!(found.left_out < 100, "{}", found.left_out);
        let both = [Decoder::Matching, Decoder::UnionFind].map(|decoder| bare(&model, &shots, decoder));
        let differ: Vec<usize> = chosen.iter().copied().filter(|at| both[0][*at] != both[1][*at]).collect();
        assert!(differ.len() > 2, "the set tells the two apart: {}", differ.len());
        let answers = std::fs::read_to_string(directory.join("disagreements.jsonl")).unwrap();
        let kept = std::fs::read(directory.join("disagreements.b8")).unwrap();
        let kept = ShotSet::read(&kept[..], Format::B8, Layout::detectors(model.detectors)).unwrap();
        let mut indices = Vec::new();
        for (line, shot) in answers.lines().zip(kept.iter()) {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            let index = (line["seq"].as_u64().unwrap() * STREAMS + line["stream"].as_u64().unwrap()) as usize;
            assert_eq!(shot, shots.shot(index), "{line}");
            let flips = |words: &[u64]| serde_json::json!(if words[0] == 0 { vec![] } else { vec![0] });
            assert_eq!(line["observables"], flips(&both[0][index]), "{line}");
            assert_eq!(line["shadow"]["observables"], flips(&both[1][index]), "{line}");
            assert_eq!(line["true_observables"], flips(truth.shot(index)), "{line}");
            assert_eq!((&line["decoder"], &line["shadow"]["decoder"]), (&"matching".into(), &"union-find".into()));
            let hash = format!("{:016x}", model.hash());
            assert_eq!([&line["model"], &line["shadow"]["model"]], [&serde_json::json!(hash); 2]);
            indices.push(index);
        }
        indices.sort_unstable();
        assert_eq!(indices.len() as u64, found.disagreements);
        assert_eq!((found.disagreements_kept, found.disagreements_by[0].1), (found.disagreements, found.disagreements));
        if found.left_out == 0 {
            let wrong = |of: &[Vec<u64>]| chosen.iter().filter(|at| of[**at] != truth.shot(**at)).count() as u64;
            let expected = (chosen.len() as u64, wrong(&both[0]), wrong(&both[1]));
            let counted = (found.shots_with_observables, found.path_logical_errors, found.shadow_logical_errors);
            assert_eq!((counted, &indices), (expected, &differ));
        }
    }
}

fn command(decoder: &str, one_in: u32, model: Option<&Path>) -> Command {
    Command::Shadow { decoder: decoder.to_owned(), one_in, model: model.map(|path| path.display().to_string()) }
}

#[test]
fn a_shadow_begins_follows_models_changes_and_ends_while_shots_are_decoded() {
    let home = beside_another();
    let model = Arc::new(bundled_named("surface_d5").unwrap());
    let mut other = Model::clone(&model);
    other.errors.iter_mut().for_each(|error| error.probability *= 3.0);
    let file = home.file("other.dem");
    std::fs::write(&file, other.to_string()).unwrap();
    let mut profile = profile();
    (profile.input.streams, profile.input.rate) = (2, Rate::Hz(5_000.0));
    let input = Input::Sampler { model, name: "surface_d5".into(), seed: 3 };
    let engine = Engine::start(config(&profile, input, None)).unwrap();
    until(&engine, "answers", |now| total(now, |counters| counters.answered) > 500);
    assert!(engine.snapshot().shadow.is_none(), "there has been none");
    // The same decoder by the same model always agrees, also after a change of models.
    execute(&engine, command("matching", 2, None)).unwrap();
    let compared = |by: u64| {
        move |now: &pinwheel_engine::board::snapshot::Snapshot| {
            now.shadow.as_ref().is_some_and(|shadow| shadow.compared >= by && shadow.shots_with_observables >= by)
        }
    };
    until(&engine, "comparisons", compared(500));
    let change = Command::Model { file: Some(file.display().to_string()), stream: Some(1) };
    execute(&engine, change).unwrap();
    let before = engine.snapshot().shadow.unwrap().compared;
    let now = until(&engine, "more of them", compared(before + 1_000)).shadow.unwrap();
    assert_eq!((now.disagreements, now.shadow_errors, now.model), (0, 0, None));
    assert!(now.other_model < 600 && now.path_logical_errors == now.shadow_logical_errors, "{}", now.other_model);
    // What is refused changes nothing.
    let narrow = home.file("narrow.dem");
    std::fs::write(&narrow, bundled_named("surface_d3").unwrap().to_string()).unwrap();
    let gone = home.file("gone.dem");
    for (refused, why) in [
        (command("best", 2, None), "there is no decoder \"best\""),
        (command("lookup", 2, None), "shadow: "),
        (command("matching", 0, None), "one shot in 0 is not possible; name a number from 1 to 1000000"),
        (command("matching", 2, Some(&gone)), "cannot be read"),
        (command("matching", 2, Some(&narrow)), "name a model of the same experiment"),
    ] {
        let said = execute(&engine, refused).unwrap_err().to_string();
        assert!(said.contains(why) && !said.contains('\n'), "{said}");
    }
    assert!(
        engine.snapshot().shadow.is_some_and(|shadow| shadow.is_on && shadow.decoder == Some(DecoderKind::Matching))
    );
    // By a model of its own, and another decoder: counted anew.
    execute(&engine, command("union-find", 1, Some(&file))).unwrap();
    let now = until(&engine, "the other shadow", |now| {
        let shadow = now.shadow.as_ref();
        shadow.is_some_and(|shadow| shadow.decoder == Some(DecoderKind::UnionFind) && shadow.disagreements > 20)
    });
    let now = now.shadow.unwrap();
    assert_eq!((now.one_in, now.other_model, now.model), (1, 0, Some(file.display().to_string())));
    execute(&engine, Command::ShadowOff).unwrap();
    let off = until(&engine, "its end", |now| now.shadow.as_ref().is_some_and(|shadow| !shadow.is_on));
    let from = total(&off, |counters| counters.answered);
    let later = until(&engine, "more answers", |now| total(now, |counters| counters.answered) > from + 2_000);
    let [off, later] = [off, later].map(|now| now.shadow.unwrap());
    assert_eq!((off.compared, off.disagreements), (later.compared, later.disagreements));
    assert!(later.core_share > 0.0 && later.core_share <= 1.0);
    engine.request_drain();
    let outcome = end(engine);
    assert_nothing_lost(&outcome);
    no_allocations(&outcome);
}

#[test]
fn windows_are_compared_with_a_decoder_of_whole_shots() {
    let _home = beside_another();
    let size = WindowRounds { commit_rounds: 5, buffer_rounds: 5 };
    for (window, round_ns) in
        [(Window::Some(size), None), (Window::Some(size), Some(1_000)), (Window::Stream(size), None)]
    {
        let mut profile = profile();
        (profile.window, profile.input.round_ns, profile.input.rate) = (window, round_ns, Rate::Hz(1_000.0));
        profile.shadow = shadow(Decoder::Matching, 1);
        let model = Arc::new(bundled_named("surface_d5@r25").unwrap());
        let outcome = run(config(&profile, Input::Sampler { model, name: "long".into(), seed: 5 }, Some(1_000)));
        assert_nothing_lost(&outcome);
        let found = outcome.snapshot.shadow.clone().unwrap();
        all_counted(&found);
        assert!(found.compared + found.left_out == 1_000 && found.compared > 500, "{}", found.compared);
        // Windows of five rounds and five more differ from the whole shot in few shots.
        assert!(found.disagreements * 50 < found.compared, "{} of {}", found.disagreements, found.compared);
    }
}

#[test]
fn at_the_highest_rate_every_shot_is_compared_or_left_out_and_none_is_lost() {
    let _home = beside_another();
    let mut profile = profile();
    (profile.input.streams, profile.decoder) = (2, Decoder::Lookup);
    profile.shadow = shadow(Decoder::Correlated, 1);
    let outcome = run(config(&profile, sampler(), Some(20_000)));
    assert_nothing_lost(&outcome);
    no_allocations(&outcome);
    let found = outcome.snapshot.shadow.clone().unwrap();
    all_counted(&found);
    assert_eq!(found.sampled + found.left_out, 20_000);
}

#[test]
fn errors_of_the_path_are_counted_and_not_compared() {
    let _home = beside_another();
    let mut profile = profile();
    (profile.input.rate, profile.faults.bad_address) = (Rate::Hz(5_000.0), 0.2);
    profile.shadow = shadow(Decoder::Lookup, 1);
    let outcome = run(config(&profile, sampler(), Some(3_000)));
    let found = outcome.snapshot.shadow.clone().unwrap();
    all_counted(&found);
    if found.left_out == 0 {
        assert_eq!(found.path_errors, total(&outcome.snapshot, |counters| counters.errored));
    }
    assert!(found.path_errors > 300 && found.disagreements * 50 < found.compared, "{} errors", found.path_errors);
}
