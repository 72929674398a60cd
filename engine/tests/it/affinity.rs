//! A pinned thread stays where it was pinned, judged by itself in every frame.

use crate::hot_thread::RunningThread;
use crate::rig::look_again;
use pinwheel_engine::host::pin::allowed_cores;
use pinwheel_engine::profile::HotAllocations;

/// Frames of a pinned thread that began on another core, of `frames` or more.
fn frames_elsewhere(frames: u64) -> u64 {
    let core = *allowed_cores().unwrap().last().unwrap();
    let hot = RunningThread::start(Some(core), HotAllocations::Count, |_| 1);
    loop {
        let view = hot.view();
        if view.frames >= frames {
            return view.frames_elsewhere;
        }
        look_again();
    }
}

#[test]
fn a_pinned_thread_is_on_its_core_in_each_of_a_million_frames() {
    assert_eq!(frames_elsewhere(1_000_000), 0);
}

#[test]
#[ignore = "10^8 frames: some 10 s of a core"]
fn a_pinned_thread_is_on_its_core_in_each_of_a_hundred_million_frames() {
    assert_eq!(frames_elsewhere(100_000_000), 0);
}

#[test]
fn whoever_sees_a_threads_number_sees_whether_it_is_pinned() {
    let Ok(cores) = allowed_cores() else { return };
    for _ in 0..50 {
        drop(RunningThread::start(cores.last().copied(), HotAllocations::Count, |_| 1));
    }
}

#[test]
fn a_thread_that_is_moved_notices_in_its_next_frames() {
    let Ok(cores) = allowed_cores() else { return };
    let (Some(&first), Some(&last)) = (cores.first(), cores.last()) else { return };
    if first == last {
        return;
    }
    let hot = RunningThread::start(Some(first), HotAllocations::Count, |_| 1);
    let tid = rustix::thread::Pid::from_raw(hot.view().tid as i32).unwrap();
    let mut elsewhere = rustix::thread::CpuSet::new();
    elsewhere.set(last as usize);
    rustix::thread::sched_setaffinity(Some(tid), &elsewhere).unwrap();
    while hot.view().frames_elsewhere == 0 {
        look_again();
    }
    let faults = hot.snapshot().faults;
    assert!(faults.iter().any(|fault| fault.code == 41 && fault.detail == u64::from(last)), "{faults:?}");
}
