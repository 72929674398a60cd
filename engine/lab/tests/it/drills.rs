//! Drills in this process: each fault gets its verdict.

use pinwheel_lab::drill::{self, Drill, Program, Row};
use std::sync::{Mutex, PoisonError};

/// One engine at a time, with its boards in a directory of its own.
fn alone<R>(act: impl FnOnce() -> R) -> R {
    static ONE: Mutex<()> = Mutex::new(());
    let _lock = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    // SAFETY: the lock is held, so no engine runs; what else reads the environment here does so through std, which has
    // a lock of its own for that.
    unsafe { std::env::set_var("PINWHEEL_SHM", folder.path().join("boards")) };
    act()
}

/// No drill here starts a child.
fn run(drill: Drill) -> Row {
    let program = Program { path: "/nonexistent".into(), words: Vec::new() };
    let row = drill::run(drill, &program);
    eprintln!("{row:?}");
    row
}

/// Tries that a verdict has: on a busy machine a thread that waits for its core stalls too, and a
/// watchdog that waits for one comes too late to see what another does.
const TRIES: usize = 10;

/// The same until it is right; else the last one.
fn run_until_right(drill: Drill) -> Row {
    let mut row = run(drill);
    for _ in 1..TRIES {
        if row.is_right() {
            break;
        }
        row = run(drill);
    }
    row
}

fn assert_right(drill: Drill) {
    let row = alone(|| run_until_right(drill));
    assert!(row.is_right(), "{row:?}");
}

#[test]
fn a_role_that_claims_work_for_ever_gets_its_verdict() {
    assert_right(Drill::ClaimsWork);
}

#[test]
fn a_role_that_panics_is_in_the_alarm_log_with_its_place() {
    assert_right(Drill::RolePanic);
}

#[test]
fn a_device_that_hangs_gets_its_verdict() {
    assert_right(Drill::DeviceHang);
}

/// Unmapping memory in this process interrupts hot cores (TLB shoot-downs): that row is watched.
#[test]
fn memory_that_is_unmapped_all_the_time_is_seen_as_interrupts_of_a_hot_core() {
    let row = alone(|| run_until_right(Drill::AllocationStorm));
    let has_none = |reason: &String| reason.contains("no such alarm");
    if row.permitted && row.reason.as_ref().is_some_and(has_none) {
        return eprintln!("skipped: no shoot-downs are counted on this machine: {row:?}");
    }
    assert!(row.is_right(), "{row:?}");
}

#[test]
fn a_drill_that_is_not_permitted_says_why() {
    let row = run(Drill::LostAck);
    assert!(!row.permitted && row.is_right() && row.reason.unwrap().contains("arbiter"));
}
