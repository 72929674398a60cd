//! Priority: asked for, refused where it would take a core from others, read back, dropped under `Shared`.

use crate::rig::{alone, assert_nothing_lost, config, end, profile, sampler, switch, until};
use pinwheel_engine::board::snapshot::{Snapshot, ThreadView};
use pinwheel_engine::engine::Engine;
use pinwheel_engine::profile::{Priority, Rate, SpinPolicy};
use pinwheel_engine::roles::ThreadState;

fn running(snapshot: &Snapshot) -> bool {
    snapshot.threads.iter().all(|thread| thread.state == ThreadState::Running)
}

/// Whether the system let the thread have what it was not refused by the plan.
fn granted(thread: &ThreadView) -> bool {
    let found = thread.priority.found.as_deref();
    match &thread.priority.why_not {
        None => {
            assert_eq!(found, Some(thread.priority.asked.as_str()), "{}", thread.name);
            true
        }
        Some(why) => {
            assert_ne!(found, Some(thread.priority.asked.as_str()), "{why}");
            assert!(!why.is_empty());
            false
        }
    }
}

#[test]
fn fifo_is_for_cores_of_their_own_goes_under_shared_and_comes_back() {
    let _home = alone();
    let mut wanted = profile();
    (wanted.spin, wanted.priority) = (SpinPolicy::Lab, Priority::Fifo(1));
    wanted.input.rate = Rate::Hz(1_000.0);
    let engine = Engine::start(config(&wanted, sampler(), None)).unwrap();
    let first = until(&engine, "threads", running);
    let first_granted: Vec<bool> = first.threads.iter().map(granted).collect();
    for (planned, thread) in engine.plan().threads.iter().zip(&first.threads) {
        if let Some(why) = planned.refuses_priority(Priority::Fifo(1), SpinPolicy::Lab) {
            assert_eq!(thread.priority.why_not.as_deref(), Some(why), "{}", thread.name);
        }
    }
    // Where the system refuses, it says so once for all threads.
    let told = first.engine.notes.iter().filter(|note| note.contains("priority fifo 1 refused")).count();
    let permitted =
        first.threads.iter().all(|thread| thread.priority.why_not.as_ref().is_none_or(|why| !why.contains("refused")));
    assert_eq!(told, usize::from(!permitted), "{:?}", first.engine.notes);

    wanted.spin = SpinPolicy::Shared;
    switch(&engine, "shared", &wanted);
    for thread in &engine.snapshot().threads {
        assert!(!granted(thread) && thread.priority.found.as_deref() != Some("fifo 1"), "{thread:?}");
    }
    wanted.spin = SpinPolicy::Lab;
    switch(&engine, "lab", &wanted);
    let again: Vec<bool> = engine.snapshot().threads.iter().map(granted).collect();
    assert_eq!(again, first_granted);
    engine.request_drain();
    assert_nothing_lost(&end(engine));
}

#[test]
fn a_profile_without_a_priority_leaves_all_threads_unchanged() {
    let _home = alone();
    let own = pinwheel_engine::host::priority::found(None).map(|priority| priority.to_string());
    let engine = Engine::start(config(&profile(), sampler(), Some(100))).unwrap();
    let outcome = end(engine);
    for thread in &outcome.snapshot.threads {
        assert_eq!((&thread.priority.found, &thread.priority.why_not), (&own, &None), "{}", thread.name);
    }
}
