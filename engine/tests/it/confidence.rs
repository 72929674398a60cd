//! Gaps of answers, and answers that are not to be trusted, through the engine.

use crate::rig::{assert_nothing_lost, beside_another, config, profile, run, sink, total};
use pinwheel_engine::code::{Format, Layout, Model, ShotSet};
use pinwheel_engine::decode::MatcherModel;
use pinwheel_engine::engine::{Engine, Input};
use pinwheel_engine::profile::{Decoder, Predecoder, StreamDecoder, Window};
use std::path::Path;
use std::sync::Arc;

const STREAMS: u64 = 3;
const BELOW_DB: u8 = 15;

#[test]
fn each_answer_tells_its_gap_and_those_below_the_bound_abstain() {
    let home = beside_another();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("code/src/code/data");
    let read = |extension: &str| std::fs::read(data.join(format!("surf_z_d5_r5_p0.005.{extension}"))).unwrap();
    let model = Arc::new(Model::parse(&read("dem")).unwrap());
    let set = |extension, layout| Arc::new(ShotSet::read(&read(extension)[..], Format::B8, layout).unwrap());
    let shots = set("dets.b8", Layout::detectors(model.detectors));
    let truth = set("obs.b8", Layout::observables(model.observables));
    let mut profile = profile();
    (profile.input.streams, profile.confidence, profile.abstain_below) = (STREAMS as u32, true, Some(BELOW_DB));
    profile.streams = vec![StreamDecoder { stream: 1, decoder: Decoder::UnionFind }];
    let observables = Some(Arc::clone(&truth));
    let input = Input::Replay { model: Arc::clone(&model), name: "set".into(), shots: Arc::clone(&shots), observables };
    let mut config = config(&profile, input, None);
    let path = home.file("answers");
    config.sink = Some(sink(&profile, model.observables, None, Some(&path)));
    let outcome = run(config);
    assert_nothing_lost(&outcome);
    for thread in &outcome.snapshot.threads {
        assert_eq!(thread.memory.allocations, Some(0), "{}: {:?}", thread.name, thread.memory.first_site);
    }
    let mut bare = [Decoder::Matching, Decoder::UnionFind].map(|decoder| {
        let plain = MatcherModel::of(&model, decoder, Predecoder::None, Window::None).unwrap();
        plain.with_confidence(&model).unwrap().matcher()
    });
    let (mut abstained, mut wrong, mut trusted_wrong) = (0, 0, 0);
    for line in std::fs::read_to_string(&path).unwrap().lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let stream = line["stream"].as_u64().unwrap();
        let index = (line["seq"].as_u64().unwrap() * STREAMS + stream) as usize;
        let mut found = [0];
        let gap = bare[usize::from(stream == 1)].decode(shots.shot(index), &mut found).unwrap().gap.unwrap();
        let gap_db = (gap * 10.0 / std::f64::consts::LN_10).clamp(0.0, 254.0) as u64;
        assert_eq!(line["gap_db"], gap_db, "{line}");
        let is_trusted = gap_db >= u64::from(BELOW_DB);
        assert_eq!(line["status"], if is_trusted { "ok" } else { "abstained" }, "{line}");
        assert_eq!(line["observables"].as_array().unwrap().is_empty(), found == [0], "an answer all the same: {line}");
        let is_wrong = found != *truth.shot(index);
        abstained += u64::from(!is_trusted);
        wrong += u64::from(is_wrong);
        trusted_wrong += u64::from(is_wrong && is_trusted);
    }
    let counted = |of: fn(&pinwheel_engine::board::snapshot::Counters) -> u64| total(&outcome.snapshot, of);
    assert_eq!((counted(|c| c.abstained), counted(|c| c.logical_errors)), (abstained, wrong));
    assert_eq!(counted(|c| c.abstained_logical_errors), wrong - trusted_wrong);
    assert_eq!(counted(|c| c.abstained_with_observables), abstained);
    assert_eq!(counted(|c| c.errored), 0, "an answer that is not to be trusted is no error");
    assert_eq!(outcome.snapshot.engine.abstain_below_db, u64::from(BELOW_DB));
    assert!(abstained > 0 && abstained * 4 < shots.len() as u64, "{abstained} abstained");
    assert!(trusted_wrong * 2 < wrong, "{trusted_wrong} of {wrong} errors are among the trusted");
}

#[test]
fn without_the_question_no_answer_has_a_gap() {
    let home = beside_another();
    let profile = profile();
    let mut config = config(&profile, crate::rig::sampler(), Some(500));
    let path = home.file("answers");
    config.sink = Some(sink(&profile, 1, None, Some(&path)));
    let outcome = run(config);
    assert_nothing_lost(&outcome);
    let answers = std::fs::read_to_string(&path).unwrap();
    assert!(answers.lines().all(|line| line.contains(r#""status":"ok""#) && !line.contains("gap_db")));
    assert_eq!(total(&outcome.snapshot, |c| c.abstained), 0);
}

#[test]
fn a_model_whose_observable_closes_a_cycle_is_refused_in_one_sentence() {
    let _home = beside_another();
    let torus = "error(0.1) D0 D1 L0\nerror(0.1) D1 D2\nerror(0.1) D2 D0\n";
    let model = Arc::new(Model::parse(torus.as_bytes()).unwrap());
    let mut profile = profile();
    profile.confidence = true;
    let refused = Engine::start(config(&profile, Input::Sampler { model, name: "torus".into(), seed: 1 }, Some(10)));
    let said = refused.err().unwrap().to_string();
    assert!(said.contains("closes a cycle") && said.ends_with("set confidence: false"), "{said}");
}
