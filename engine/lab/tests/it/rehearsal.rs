//! The rehearsal over many seeds, of which the unit tests hold the first hundred.

use pinwheel_lab::sim::{SHOTS, rehearse};
use std::ops::Range;

fn holds(seeds: Range<u64>) {
    let count = seeds.end - seeds.start;
    let found = rehearse(seeds).unwrap();
    assert!(found.violations.is_empty(), "{:?}", found.violations);
    assert_eq!((found.seeds, found.shots), (count, count * SHOTS));
    assert!(found.faults.values().all(|count| *count > 0), "{:?}", found.faults);
    eprintln!("{} steps, {:?}", found.steps, found.faults);
}

#[test]
fn a_rehearsal_of_two_hundred_seeds_answers_every_shot_once() {
    holds(1_000..1_200);
}

#[test]
#[ignore = "a million shots, ten seconds of a core"]
fn a_rehearsal_of_a_thousand_seeds_answers_every_shot_once() {
    holds(0..1_000);
}
