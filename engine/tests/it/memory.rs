//! Memory of hot threads: no calls of the allocator in Live; one that comes is counted, named, and in strict the end.

use crate::hot_thread::RunningThread;
use crate::rig::{alone, assert_nothing_lost, config, look_again, profile, run};
use pinwheel_edge::spin::Phase;
use pinwheel_engine::code::bundled_named;
use pinwheel_engine::engine::Input;
use pinwheel_engine::fault::FaultCode;
use pinwheel_engine::hot::{Frame, SCRATCH_BYTES, name_first_allocation};
use pinwheel_engine::profile::{Decoder, HotAllocations, Predecoder};
use std::process::Command;
use std::sync::Arc;

/// Says to the re-executed test that it is the child.
const CHILD: &str = "PINWHEEL_TEST_ABORTS";

fn surface_d5() -> Input {
    Input::Sampler { model: Arc::new(bundled_named("surface_d5").unwrap()), name: "surface_d5".into(), seed: 5 }
}

#[test]
fn forty_thousand_shots_of_d5_call_no_allocator_on_any_hot_thread() {
    let _home = alone();
    let (matching, none) = (Decoder::Matching, Predecoder::None);
    let others = [(Decoder::Correlated, none), (Decoder::UnionFind, none)];
    for (decoder, predecoder) in [(matching.clone(), none), (matching, Predecoder::Local)].into_iter().chain(others) {
        let mut profile = profile();
        (profile.decoder, profile.predecoder) = (decoder, predecoder);
        let outcome = run(config(&profile, surface_d5(), Some(40_000)));
        assert_nothing_lost(&outcome);
        for thread in &outcome.snapshot.threads {
            let memory = &thread.memory;
            assert_eq!(memory.allocations, Some(0), "{}: {:?}", thread.name, memory.first_site);
            assert!(memory.touched_bytes > 0);
        }
        let lent: u64 = outcome.snapshot.threads.iter().map(|thread| thread.memory.lent).sum();
        assert_eq!(lent, 0, "matching takes nothing from the reserve");
        assert!(outcome.snapshot.engine.silo_memory_bytes > 0);
    }
}

#[test]
fn injected_panics_and_faults_are_no_allocations_either() {
    let _home = alone();
    let mut profile = profile();
    profile.faults.decoder_panic = 0.01;
    profile.faults.not_started = 0.01;
    profile.faults.bad_address = 0.01;
    profile.faults.lose_device_every = Some(2_000);
    profile.faults.recover_after_ms = 1;
    profile.limits.launch_deadline_us = 20_000;
    profile.hot_allocations = HotAllocations::Abort;
    let outcome = run(config(&profile, surface_d5(), Some(10_000)));
    assert_nothing_lost(&outcome);
    for thread in &outcome.snapshot.threads {
        assert_eq!(thread.memory.allocations, Some(0), "{}: {:?}", thread.name, thread.memory.first_site);
    }
}

#[inline(never)]
fn offends(frame: &Frame<'_>) -> u32 {
    if frame.phase == Phase::Live {
        drop(std::hint::black_box(vec![1u8; 64]));
    }
    0
}

#[test]
fn an_allocation_on_a_hot_thread_in_live_is_counted_and_named() {
    let hot = RunningThread::start(None, HotAllocations::Count, |frame| offends(frame));
    let view = loop {
        let view = hot.view();
        if view.memory.allocations >= Some(10) {
            break view;
        }
        look_again();
    };
    // Frames as they are later: a look at the board takes its time, and frames go on.
    let frames = hot.view().frames;
    assert!(view.memory.allocations.is_some_and(|calls| calls <= 2 * frames + 2), "{view:?} and {frames} frames");
    assert!(name_first_allocation(hot.board().thread(0)));
    let said = hot.view().memory.first_site.unwrap();
    assert!(said.contains("offends") && said.contains("memory.rs:"), "{said}");
    let faults = hot.snapshot().faults;
    assert!(faults.iter().any(|fault| fault.code == FaultCode::HotAllocation.number()), "{faults:?}");
}

#[test]
fn in_strict_an_allocation_on_a_hot_thread_ends_the_process_and_names_its_place() {
    if std::env::var_os(CHILD).is_some() {
        let _hot = RunningThread::start(None, HotAllocations::Abort, |frame| offends(frame));
        std::thread::park_timeout(crate::rig::LIMIT);
        return;
    }
    let name = "memory::in_strict_an_allocation_on_a_hot_thread_ends_the_process_and_names_its_place";
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&output.status), Some(6), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    let told = said.lines().find(|line| line.starts_with("pinwheel: found an allocator call of 64 bytes")).unwrap();
    assert!(told.contains("on hot thread hot-test in Live") && told.contains("offends"), "{told}");
}

#[test]
fn the_frame_arena_is_empty_in_each_frame_and_never_grows() {
    let words = SCRATCH_BYTES / 8 / 4;
    let mut hot = RunningThread::start(None, HotAllocations::Abort, move |frame| {
        let mut got = 0;
        while let Some(block) = frame.words(words) {
            assert!(block.iter().all(|word| *word == 0));
            block.fill(u64::MAX);
            got += 1;
        }
        got
    });
    while hot.view().frames_busy < 20 {
        look_again();
    }
    // While it runs the two counters would be of two moments.
    hot.stop();
    let view = hot.view();
    assert!((3..=4).contains(&(view.items.div_ceil(view.frames_busy))), "{} in {}", view.items, view.frames_busy);
}
