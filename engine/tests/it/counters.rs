//! Every counter of the board counts something: one that no run moves would be a number that means nothing.

use crate::faults::drill;
use crate::rig::{assert_nothing_lost, beside_another, config, end, sampler, until};
use pinwheel_engine::board::snapshot::Counters;
use pinwheel_engine::engine::Engine;
use pinwheel_engine::profile::{Deadlines, Decoder, FreeWorker, Rescue, ShotOrder, StreamDeadline};

/// Counters that are zero, by name.
fn still_zero(counters: &Counters) -> Vec<String> {
    let serde_json::Value::Object(fields) = serde_json::to_value(counters).unwrap() else { panic!("an object") };
    fields.into_iter().filter(|(_, value)| value.as_u64() == Some(0)).map(|(name, _)| name).collect()
}

#[test]
fn every_counter_is_moved_by_some_run() {
    let _home = beside_another();
    let mut profile = drill(FreeWorker::AfterCopy);
    profile.input.joint_every = Some(10);
    // A rescue that is faster than the decoder, and a stream whose shots nobody can answer in time.
    profile.decoder = Decoder::Correlated;
    profile.deadlines = Deadlines {
        order: ShotOrder::Deadline,
        rescue: Some(Rescue::UnionFind),
        answer_us: None,
        streams: vec![StreamDeadline { stream: 0, answer_us: 1 }],
    };
    let engine = Engine::start(config(&profile, sampler(), None)).unwrap();
    // `duplicated` counts what must not happen: `by_hand` moves it. Whole shots do not come by
    // rounds: `windows` moves that. A predecoder excludes gaps: `confidence` moves what counts them.
    let elsewhere = ["abstained", "abstained_logical_errors", "abstained_with_observables", "by_rounds", "duplicated"];
    until(&engine, "every counter", |now| still_zero(&now.silos[0].counters) == elsewhere);
    engine.request_drain();
    assert_nothing_lost(&end(engine));
}
