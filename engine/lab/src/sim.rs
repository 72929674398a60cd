//! The rehearsal: all roles of one silo or several on one thread, in seeded order, under virtual time.
//!
//! Owns the scheduler and the checks. The roles, rings and words are the real ones; only clock, seed and order are the
//! rehearsal's. Each seed draws its own fault probabilities, sizes and policies, so that a range of seeds covers
//! combinations nobody would write down. Bounds: [`SHOTS`] shots and [`STEPS_MAX`] steps a seed.
//!
//! After every step: no shot is in two slots, the slots hold exactly what was submitted and not yet harvested, every job
//! buffer is in one place, no free worker is running, no page has two owners, nothing is committed to a page that is away. A
//! second silo's arbiter takes the pages away and gives them back, by mail that loses, doubles and delays; in every other seed
//! there are two or three whole silos, half of them with that same mail, and streams move between them under load; silos are
//! drained, killed or struck by a role's death, inherited, and come back, pairs of their streams read jointly in half of them. Answers of a stream without an error come in
//! sequence. At the end: no page is lost, every shot was answered once, and every answer that is no error is the decode of its own shot.

mod cast;
mod checks;
mod mail;
mod moving;
mod neighbour;
mod world;

use crate::decode::ReadyError;
use crate::hot::kept;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::Range;

/// Shots of one seed.
pub const SHOTS: u64 = 1_000;
/// Steps after which a seed counts as wedged.
pub const STEPS_MAX: u64 = 2_000_000;

/// What a rehearsal over seeds found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Rehearsal {
    /// Seeds rehearsed.
    pub seeds: u64,
    /// Shots over all seeds.
    pub shots: u64,
    /// Role calls over all seeds.
    pub steps: u64,
    /// Faults met, by name.
    pub faults: BTreeMap<String, u64>,
    /// Promises that were broken.
    pub violations: Vec<Violation>,
}

/// One broken promise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// Seed that replays it.
    pub seed: u64,
    /// Step at which it was seen.
    pub step: u64,
    /// What was seen.
    pub what: String,
}

/// Why a rehearsal cannot be held.
#[derive(Debug, thiserror::Error)]
pub enum RehearsalError {
    /// The bundled model cannot be decoded.
    #[error(transparent)]
    Model(#[from] ReadyError),
    /// No memory for a board.
    #[error(transparent)]
    Board(#[from] crate::board::BoardError),
    /// A graph cannot be had.
    #[error(transparent)]
    Graph(#[from] crate::graph::CompileError),
    /// A role could not be built.
    #[error(transparent)]
    Role(#[from] crate::hot::RoleError),
}

/// One seed's world.
trait Rehearsed {
    /// Plays to the end; the first broken promise, if there is one.
    fn play(&mut self) -> Option<Violation>;
    /// Role calls so far.
    fn steps(&self) -> u64;
    /// Faults of this seed, by name.
    fn faults(&self) -> Vec<(String, u64)>;
}

/// Rehearses every seed of `seeds`; a seed ends at its first violation.
///
/// # Errors
/// If a rehearsal cannot be set up at all.
pub fn rehearse(seeds: Range<u64>) -> Result<Rehearsal, RehearsalError> {
    let script = world::Script::new()?;
    let mut found = Rehearsal::default();
    for seed in seeds {
        // In turn: one silo with a bad neighbour, and several between which streams move.
        let mut world: Box<dyn Rehearsed> = if seed.is_multiple_of(2) {
            Box::new(world::World::new(&script, seed)?)
        } else {
            Box::new(moving::Moving::new(&script, seed)?)
        };
        // A panic outside a decode is a broken promise too: an assertion of the protocol.
        let violation = kept(|| world.play()).unwrap_or_else(|place| {
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
    use super::rehearse;

    #[test]
    fn every_shot_is_answered_once_in_a_hundred_seeds_of_faults() {
        let found = rehearse(0..100).unwrap();
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
        ] {
            assert!(
                found.faults.get(name).is_some_and(|count| *count > 0),
                "{name} never happened: {:?}",
                found.faults
            );
        }
        for name in
            ["device_recovered", "cpu_fallback", "stream_moved", "move_given_up", "shot_staged", "shot_handed_on"]
        {
            assert!(
                found.faults.get(name).is_some_and(|count| *count > 0),
                "{name} never happened: {:?}",
                found.faults
            );
        }
    }

    #[test]
    fn silos_that_die_and_come_back_break_no_promise_in_fifty_seeds() {
        let found = rehearse(100..200).unwrap();
        assert!(found.violations.is_empty(), "{:?}", found.violations);
        for name in ["silo_death", "silo_rejoin", "silo_drain", "stream_inherited", "silo_died", "moving_joint_read"] {
            let times = found.faults.get(name);
            assert!(times.is_some_and(|count| *count > 0), "{name} never happened: {:?}", found.faults);
        }
    }

    #[test]
    fn equal_seeds_take_equal_steps() {
        let (one, two) = (rehearse(6..8).unwrap(), rehearse(6..8).unwrap());
        assert_eq!((one.steps, one.faults), (two.steps, two.faults));
    }
}
