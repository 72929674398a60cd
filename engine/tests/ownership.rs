//! The ownership protocol, every state of it: the production table and protocol under three silos and a bad channel.
//!
//! What the design replaces of the seed is kept as a variant that the model must refute, so that
//! the reason stays proven.
//!
//! | DESIGN §9, row 001 | refuted here, unless another place is named |
//! |---|---|
//! | §4.2 no guard | `without_a_guard_a_page_is_granted_twice` |
//! | §6 rollback; no epochs; late is not fenced | `a_rollback_after…`, `without_epochs…`, `a_late_receiver…`, `a_silent_owner…`, `a_dead_silos_grants…` |
//! | §4.1 check, then mark | `a_commit_slips_between_check_and_mark` |
//! | §2 one shared word; deadlines that wrap | `one_word_for_all_silos…`; `arbiter::deadlines`: `heat_that_nobody_asks_about…` shows the wrap |
//! | §7 LOCK holds nothing | `a_lock_that_holds_nothing_is_broken` |
//! | §4.2 lease at the old owner | `a_lease_at_the_old_owner_does_not_protect_the_new_owner` |
//! | §4.1 a write erases its lease; endless heat | `a_write_that_erases…`, `with_endless_heat…` |
//! | §5 LEASE_ACTIVE for two things | `a_refusal_with_the_bits_of_a_lease_is_read_as_a_lease` |
//! | §7 static priority | `arbiter::ports`: `static_priorities_alone_keep_a_port_out_for_ever` |
//!
//! A binary of its own: the models hold millions of states, and the other tests count what is allocated.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    unreachable_pub,
    reason = "harness"
)]

#[path = "ownership/fair.rs"]
mod fair;
#[path = "ownership/model.rs"]
mod model;

use model::{Rule, World};
use pinwheel_engine::arbiter::page::{Epoch, Hint, Limits};
use stateright::{Checker, HasDiscoveries, Model};

const ONE_OWNER: &str = "one silo may write";
const KEPT: &str = "the page is kept with its last value";
const UNBROKEN: &str = "no rule is broken";

/// All states; the number of them. The sound rules hold everywhere.
fn explore(name: &str, world: World) -> usize {
    let checker = world.checker().threads(2).spawn_bfs().join();
    eprintln!("{name}: {} states", checker.unique_state_count());
    checker.assert_properties();
    checker.unique_state_count()
}

/// The property that the model refutes, with the shortest way there.
fn refutes(world: World, property: &'static str) -> usize {
    let checker = world.checker().finish_when(HasDiscoveries::AnyFailures).threads(1).spawn_bfs().join();
    let path = checker.discovery(property).unwrap_or_else(|| panic!("nothing refutes: {property}"));
    let steps = path.into_actions();
    eprintln!("{property}: refuted in {} steps: {steps:?}", steps.len());
    steps.len()
}

#[test]
fn three_silos_and_a_bad_channel_keep_one_owner_and_the_page() {
    let states = explore("default", World::new(Rule::Ours));
    assert!(states > 100_000, "{states}");
}

#[test]
fn leases_and_locks_are_kept_under_loss_and_doubling() {
    let world = World {
        asks: [&[], &[Hint::Lease], &[Hint::Migrate]],
        writers: [false, true, false],
        ..World::new(Rule::Ours)
    };
    let states = explore("leases", world);
    assert!(states > 10_000, "{states}");
}

#[test]
fn an_operator_breaks_a_lease_and_nothing_else() {
    let asks: [&'static [Hint]; 3] = [&[], &[Hint::Lock], &[Hint::Migrate]];
    let world = World { asks, has_operator: true, writers: [false, true, false], ..World::new(Rule::Ours) };
    explore("operator", world);
}

#[test]
fn a_crash_at_any_step_leaves_one_owner_and_the_page_intact() {
    let world = World { has_crash: true, writers: [true, false, false], ..World::new(Rule::Ours) };
    let states = explore("crash", world);
    assert!(states > 100_000, "{states}");
}

/// Silo 0 takes over whatever silo 1 leaves when it crashes; silo 2 asks, and may have been granted what was lost.
fn unassigned(rule: Rule) -> World {
    let asks: [&'static [Hint]; 3] = [&[], &[Hint::Default], &[Hint::Default]];
    World { asks, has_crash: true, successor: Some(0), writers: [true, true, false], ..World::new(rule) }
}

#[test]
fn a_successor_takes_over_each_page_of_a_crashed_silo_once() {
    let states = explore("successor", unassigned(Rule::Ours));
    assert!(states > 10_000, "{states}");
}

/// With a third message on the way each silo's doubled GRANT meets its CANCEL and a newer REQ at
/// once. Three silos that ask in such a world are more states than a test can visit; two are enough
/// for a page to go and to come back.
#[test]
fn a_third_message_on_the_way_changes_nothing() {
    let asks: [&'static [Hint]; 3] = [&[Hint::Default], &[Hint::Default], &[]];
    explore("wide", World { net_max: 3, asks, writers: [true, false, false], ..World::new(Rule::Ours) });
}

#[test]
fn a_late_receiver_treated_as_dead_makes_two_owners() {
    refutes(World::new(Rule::LateIsDead), ONE_OWNER);
}

#[test]
fn a_silent_owner_treated_as_dead_makes_two_owners() {
    refutes(unassigned(Rule::SilentIsDead), ONE_OWNER);
}

#[test]
fn discarding_the_open_grants_of_a_dead_silo_makes_two_owners() {
    refutes(unassigned(Rule::GrantsDieToo), ONE_OWNER);
}

#[test]
fn one_word_for_all_silos_moves_a_page_without_its_bytes() {
    refutes(World::new(Rule::SharedWord), KEPT);
}

#[test]
fn a_lock_that_holds_nothing_is_broken() {
    let asks: [&'static [Hint]; 3] = [&[], &[Hint::Lock], &[Hint::Default]];
    refutes(World { asks, ..World::new(Rule::LockHoldsNothing) }, UNBROKEN);
}

#[test]
fn a_refusal_with_the_bits_of_a_lease_is_read_as_a_lease() {
    let asks: [&'static [Hint]; 3] = [&[Hint::Lease], &[Hint::Default], &[]];
    refutes(World { asks, ..World::new(Rule::LeaseActiveIsYours) }, UNBROKEN);
}

#[test]
fn without_a_guard_a_page_is_granted_twice() {
    refutes(World::new(Rule::NoGuard), ONE_OWNER);
}

#[test]
fn a_rollback_after_the_data_has_left_makes_two_owners() {
    refutes(World::new(Rule::Rollback), ONE_OWNER);
}

#[test]
fn a_commit_slips_between_check_and_mark() {
    refutes(World::new(Rule::CheckThenMark), UNBROKEN);
}

#[test]
fn without_epochs_an_old_ack_loses_the_page() {
    refutes(World::new(Rule::NoEpochs), KEPT);
}

#[test]
fn a_lease_at_the_old_owner_does_not_protect_the_new_owner() {
    let world = World { asks: [&[], &[Hint::Lease], &[Hint::Default]], ..World::new(Rule::LeaseAtOldOwner) };
    refutes(world, UNBROKEN);
}

#[test]
fn a_write_that_erases_its_lease_lets_it_be_broken() {
    let asks: [&'static [Hint]; 3] = [&[Hint::Lease], &[], &[Hint::Migrate]];
    refutes(World { asks, ..World::new(Rule::WriteErasesLease) }, UNBROKEN);
}

/// Silo 1 asks, silo 0 writes as it likes, silo 2 is idle.
fn waiting(rule: Rule) -> World {
    let (asks, writers): ([&'static [Hint]; 3], _) = ([&[], &[Hint::Default], &[]], [true, false, false]);
    let limits = Limits { epoch_last: Epoch::new(3), ..World::LIMITS };
    World { asks, writers, limits, values_max: 0, ..World::new(rule) }
}

#[test]
fn whoever_asks_fairly_owns_the_page_in_the_end() {
    let (states, cycle) = fair::waiting_for_ever(&waiting(Rule::Ours));
    eprintln!("fairness: {states} states");
    assert!(states > 100);
    assert_eq!(cycle, None, "a fair cycle without ownership, of so many states");
}

#[test]
fn with_endless_heat_a_fair_request_waits_for_ever() {
    let (_, cycle) = fair::waiting_for_ever(&waiting(Rule::EndlessHeat));
    assert!(cycle.is_some(), "nothing refutes endless heat");
}
