//! The rehearsal over many seeds. Which mutations of the protocol it notices is listed in `HAZARDS` order beside it.

use pinwheel_engine::sim::{SHOTS, rehearse};

fn hold(seeds: std::ops::Range<u64>) {
    let found = rehearse(seeds.clone()).unwrap();
    assert!(found.violations.is_empty(), "{:?}", found.violations);
    assert_eq!((found.seeds, found.shots), (seeds.end - seeds.start, (seeds.end - seeds.start) * SHOTS));
    assert!(found.faults.values().all(|count| *count > 0), "{:?}", found.faults);
    println!("{} seeds, {} steps, {:?}", found.seeds, found.steps, found.faults);
}

#[test]
fn a_rehearsal_of_two_hundred_seeds_answers_every_shot_once() {
    hold(1_000..1_200);
}

#[test]
#[ignore = "a million shots, a minute"]
fn a_rehearsal_of_a_thousand_seeds_answers_every_shot_once() {
    hold(0..1_000);
}
