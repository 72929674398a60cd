//! The rehearsal over many seeds. What it notices, tried by hand: a claim that everybody wins, a worker that is freed
//! while it runs, an expired worker that is freed, a job that is not given back, a late completion that answers, an
//! error answered without an error word, a CPU shot whose predecoded flips are forgotten.

use pinwheel_engine::sim::{SHOTS, rehearse};

#[test]
fn a_rehearsal_of_a_thousand_seeds_answers_every_shot_once() {
    let found = rehearse(0..1_000).unwrap();
    assert!(found.violations.is_empty(), "{:?}", found.violations);
    assert_eq!((found.seeds, found.shots), (1_000, 1_000 * SHOTS));
    assert!(found.faults.values().all(|count| *count > 0), "{:?}", found.faults);
    eprintln!("{} steps, {:?}", found.steps, found.faults);
}
