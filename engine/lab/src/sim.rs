//! Simulation: runs all roles of one or several silos on one thread, in seeded order, under virtual
//! time.
//!
//! Owns the scheduler and the checks. Roles, rings and words are the production code; only clock,
//! seed and order are simulated. Each seed draws its own fault probabilities, sizes and policies,
//! so that a range of seeds covers combinations that hand-written tests would miss. Bounds:
//! [`SHOTS`] shots and [`STEPS_MAX`] steps a seed.
//!
//! Checks after every step: no shot is in two slots; the slots hold exactly the shots submitted and
//! not yet harvested; every job buffer is in one place; no free worker is running; no page has two
//! owners; no silo commits to a page it does not have; no answer is of a shot that was not submitted.
//! In a quarter of the seeds a second silo's arbiter takes pages away and returns them, over links
//! that lose, duplicate and delay messages; in another quarter it only listens. In the other half
//! there are two or three complete silos, half of them with the same links: streams move
//! between them under load, silos are drained, stopped or lose a role, are taken over, and rejoin;
//! in half of these seeds pairs of their streams are read jointly. Where shots are decoded whole, the
//! decoder of all streams or of one changes now and then, and half of these seeds have deadlines and a rescue
//! decoder. A stream's answers without an error arrive
//! in sequence. Checks at the end: no page is lost, every shot was answered once, every answer
//! without an error is the decode of its own shot by the decoder that it names, and the board's
//! counts of answers and errors are those that arrived.

mod role_set;
mod checks;
mod network;
mod neighbour;
mod silo_events;
mod decoder_events;
mod inputs;
mod world;

use crate::decode::ReadyError;
use crate::hot::kept;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::Range;

/// Shots of one seed.
pub const SHOTS: u64 = 1_000;
/// Steps after which a seed counts as stuck.
pub const STEPS_MAX: u64 = 2_000_000;

/// The result of a simulation over several seeds.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SimulationResult {
    /// Number of seeds simulated.
    pub seeds: u64,
    /// Number of shots over all seeds.
    pub shots: u64,
    /// Role calls over all seeds.
    pub steps: u64,
    /// Number of injected and observed faults, by name.
    pub faults: BTreeMap<String, u64>,
    /// Invariants that were violated.
    pub violations: Vec<Violation>,
}

/// One violated invariant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// Seed that reproduces it.
    pub seed: u64,
    /// Step at which it was detected.
    pub step: u64,
    /// Description of the violation.
    pub what: String,
}

/// Why a simulation cannot be set up.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum SimulationError {
    #[error(transparent)]
    Model(#[from] ReadyError),
    #[error(transparent)]
    Board(#[from] crate::board::BoardError),
    #[error(transparent)]
    Graph(#[from] crate::graph::CompileError),
    #[error(transparent)]
    Role(#[from] crate::hot::RoleError),
}

/// Simulates every seed of `seeds`; a seed ends at its first violation.
///
/// # Errors
/// If a simulation cannot be set up.
pub fn simulate(seeds: Range<u64>) -> Result<SimulationResult, SimulationError> {
    let inputs = inputs::Inputs::new()?;
    let mut found = SimulationResult::default();
    for seed in seeds {
        let mut world = world::World::new(&inputs, seed)?;
        // A panic outside a decode is a violation too: a protocol assertion failed.
        let violation = kept(|| world.run_seed()).unwrap_or_else(|place| {
            Some(Violation { seed, step: world.steps(), what: format!("a role panicked at {place}") })
        });
        found.seeds += 1;
        found.shots += SHOTS;
        found.steps += world.steps();
        for (name, count) in world.faults() {
            *found.faults.entry(name).or_default() += count;
        }
        found.violations.extend(violation);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::simulate;

    #[test]
    fn every_shot_is_answered_once_in_a_hundred_seeds_of_faults() {
        let found = simulate(0..100).unwrap();
        assert!(found.violations.is_empty(), "{:?}", found.violations);
        for name in [
            "launch_failed",
            "launch_unknown",
            "launch_deadline",
            "shot_deadline",
            "device_lost",
            "bad_address",
            "decoder_panic",
        ] {
            assert!(
                found.faults.get(name).is_some_and(|count| *count > 0),
                "{name} never happened: {:?}",
                found.faults
            );
        }
        for name in [
            "page_away",
            "page_left",
            "page_back",
            "page_kept",
            "page_in_doubt",
            "joint_read",
            "joint_refused",
            "late_completion",
            "device_loss",
            "overflow_deadline",
            "dropped_oldest",
            "dropped_new",
            "waited",
            "sent_to_cpu",
            "rescued",
            "refused",
            "missed",
        ] {
            assert!(
                found.faults.get(name).is_some_and(|count| *count > 0),
                "{name} never happened: {:?}",
                found.faults
            );
        }
        for name in [
            "decoder_changed",
            "answered_by_correlated",
            "answered_by_union_find",
            "device_recovered",
            "cpu_fallback",
            "stream_moved",
            "move_given_up",
            "shot_staged",
            "shot_handed_on",
        ] {
            assert!(
                found.faults.get(name).is_some_and(|count| *count > 0),
                "{name} never happened: {:?}",
                found.faults
            );
        }
    }

    #[test]
    fn silos_that_die_and_rejoin_violate_no_invariant_in_fifty_seeds() {
        let found = simulate(100..200).unwrap();
        assert!(found.violations.is_empty(), "{:?}", found.violations);
        for name in ["silo_death", "silo_rejoin", "silo_drain", "stream_taken_over", "silo_died", "moving_joint_read"] {
            let times = found.faults.get(name);
            assert!(times.is_some_and(|count| *count > 0), "{name} never happened: {:?}", found.faults);
        }
    }

    /// A silo's graph role rests for long while dispatch and poll answer shots of four streams with errors, some of
    /// streams whose page is away.
    #[test]
    fn errors_that_one_ring_keeps_for_later_do_not_wait_for_those_that_fill_the_other() {
        let found = simulate(844_799..844_800).unwrap();
        assert!(found.violations.is_empty(), "{:?}", found.violations);
        assert!(found.faults["shot_deadline"] > 300, "{:?}", found.faults);
    }

    #[test]
    fn equal_seeds_take_equal_steps() {
        let (one, two) = (simulate(6..8).unwrap(), simulate(6..8).unwrap());
        assert_eq!((one.steps, one.faults), (two.steps, two.faults));
    }
}
