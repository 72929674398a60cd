//! What an engine says of time: the pairs of its clocks.

use crate::rig::{alone, config, end, profile, sampler, until};
use pinwheel_engine::engine::Engine;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

#[test]
fn a_running_engine_follows_utc_and_counts_no_step() {
    let _alone = alone();
    let engine = Engine::start(config(&profile(), sampler(), None)).unwrap();
    let shown = until(&engine, "three pairs", |now| now.clock.pairs >= 3).clock;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    engine.request_drain();
    let outcome = end(engine);
    assert!(!shown.source.is_empty());
    let pair = shown.pair.unwrap();
    let age = now.checked_sub(Duration::from_nanos(pair.utc_ns)).expect("the pair was taken before");
    assert!(age < Duration::from_secs(60), "{age:?}");
    assert!(pair.width_ns > 0 && pair.at_ns > 0, "{pair:?}");
    assert!(outcome.snapshot.clock.pairs >= 3);
    assert_eq!((outcome.snapshot.clock.utc_steps, outcome.snapshot.clock.counter_steps), (0, 0));
}
