//! Each way in which task graphs are known to break, by name.

use super::super::{Batch, BlockedBy, Ended, Pool, Ready, Region, Shape, Summary, TaskId, Work};
use super::super::{CompleteError, Config, Count, Deps, Issue, Overflow, Start, SubmitError, Submitter, Workload};
use super::{Log, Seeded, clock, compile, drive, of_workload, small, task};
use crate::clock::Clock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[test]
fn fifo_takes_tasks_in_the_order_in_which_they_became_ready() {
    let log = Log::new(10);
    let (mut graph, _, _) = compile(small(1, Ready::Fifo), log.body());
    // 0, then its successors in the order in which their last predecessor ends: 2 before 1, for
    // lists are newest first.
    let first = graph.submit(&task(0), &[], &[]).unwrap();
    let independent: Vec<_> = (1..4).map(|number| graph.submit(&task(number), &[], &[]).unwrap()).collect();
    graph.submit(&task(4), &[], &[independent[2]]).unwrap();
    graph.submit(&task(5), &[], &[first]).unwrap();
    graph.finish();
    let mut order: Vec<usize> = (0..6).collect();
    order.sort_by_key(|task| log.began(*task));
    assert_eq!(order, [0, 1, 2, 3, 5, 4]);
}

#[test]
fn a_task_retires_only_after_its_body_returned_and_after_all_before_it() {
    let (mut graph, _, mut completer) =
        compile(
            small(1, Ready::WorkSteal),
            |work: &Work| {
                if work.task.args[0] == 0 { Ended::Launched } else { Ended::Done }
            },
        );
    let launched = graph.submit(&task(0), &[], &[]).unwrap();
    graph.submit(&task(1), &[], &[]).unwrap();
    while graph.work(8) > 0 {}
    assert!(!graph.poll_done());
    assert_eq!(graph.summary().retired, 0, "the second has ended, the first has not");
    completer.complete(launched, None).unwrap();
    assert!(graph.poll_done());
    assert_eq!(graph.summary().retired, 2);
}

#[test]
fn a_completion_of_an_earlier_generation_or_a_second_one_is_refused() {
    let config = Config { window_tasks: 4, ..small(1, Ready::WorkSteal) };
    let (mut graph, _, mut completer) = compile(config, |_: &Work| Ended::Launched);
    let ids: Vec<TaskId> = (0..4).map(|number| graph.submit(&task(number), &[], &[]).unwrap()).collect();
    while graph.work(8) > 0 {}
    for id in &ids {
        completer.complete(*id, None).unwrap();
        assert_eq!(completer.complete(*id, None), Err(CompleteError::Stale { task: *id }));
    }
    let next: Vec<TaskId> = (0..4).map(|number| graph.submit(&task(number), &[], &[]).unwrap()).collect();
    assert_eq!(next[1].0 - ids[1].0, 4, "the same record");
    assert_eq!(completer.complete(ids[1], None), Err(CompleteError::Stale { task: ids[1] }));
    while graph.work(8) > 0 {}
    next.iter().for_each(|id| completer.complete(*id, None).unwrap());
    assert_eq!(graph.finish().retired, 8);
}

#[test]
fn a_task_waits_for_all_of_sixty_producers_and_for_sixty_readers() {
    let log = Log::new(122);
    let config = Config { deps: Deps::InferBytesOverlap, window_tasks: 128, ..small(2, Ready::WorkSteal) };
    let mut workload = Workload::new(config);
    let tensor = workload.tensor(Shape { rows: 1, columns: 60 * 16, element_bytes: 1, granule_bytes: 16 }).unwrap();
    let compiled = of_workload(workload, clock(), log.body());
    drive(compiled, |graph| {
        for number in 0..60 {
            graph.submit(&task(number), &[tensor.range(number as u32 * 16, 16).write()], &[]).unwrap();
        }
        graph.submit(&task(60), &[tensor.whole().read()], &[]).unwrap();
        for number in 61..121 {
            graph.submit(&task(number), &[tensor.range(5, 9).read()], &[]).unwrap();
        }
        graph.submit(&task(121), &[tensor.range(0, 16).update()], &[]).unwrap();
        assert_eq!(graph.finish().retired, 122);
    });
    assert!((0..60).all(|producer| log.is_before(producer, 60)));
    assert!((60..121).all(|reader| log.is_before(reader, 121)));
}

/// An exact graph over four regions whose entries and records are reused again and again.
#[test]
fn retirement_of_old_tasks_leaves_the_entries_of_newer_ones() {
    let config = Config { deps: Deps::InferTensorMapExact, window_tasks: 4, map_entries: 16, ..small(1, Ready::Fifo) };
    let mut workload = Workload::new(config);
    let tensor = workload.tensor(Shape { rows: 4, columns: 1, element_bytes: 8, granule_bytes: 16 }).unwrap();
    let (mut graph, _, _) = of_workload(workload, clock(), |_: &Work| Ended::Done);
    let mut last = [0u64; 4];
    let mut seeded = Seeded(5);
    for round in 0..2_000 {
        let (read, write) = (seeded.below(4), seeded.below(4));
        let row = |row: u32| -> Region { tensor.tile(row, 0, 1, 1) };
        let id = graph.submit(&task(round), &[row(read).read(), row(write).write()], &[]).unwrap();
        let expected = (last[read as usize] >= graph.retired).then_some(last[read as usize]).filter(|last| *last > 0);
        let found = graph.predecessors.list().first().map(|one| u64::from(one.task));
        // The list may still name one that has ended and is not retired; it never misses one, and
        // never names another.
        assert!(found == expected || expected.is_none(), "{id}: found {found:?}, expected {expected:?}");
        last[write as usize] = id.0;
        if seeded.below(3) == 0 {
            graph.work(seeded.below(4));
        }
    }
    assert_eq!(graph.finish().retired, 2_000);
}

#[test]
fn a_map_with_removed_entries_takes_a_full_load() {
    let config = Config { deps: Deps::InferTensorMapExact, window_tasks: 32, map_entries: 16, ..small(1, Ready::Fifo) };
    let mut workload = Workload::new(config);
    let tensor = workload.tensor(Shape { rows: 64, columns: 1, element_bytes: 8, granule_bytes: 16 }).unwrap();
    let (mut graph, _, _) = of_workload(workload, clock(), |_: &Work| Ended::Done);
    let mut submit = |count: u32| {
        let fits =
            (0..count).take_while(|row| graph.try_submit(&task(0), &[tensor.tile(*row, 0, 1, 1).write()], &[]).is_ok());
        let fits = fits.count();
        graph.wait();
        fits
    };
    assert_eq!(submit(5), 5);
    for _ in 0..20 {
        assert_eq!(submit(20), 16, "all entries, wherever the last load ended");
    }
}

#[test]
fn links_beyond_the_pool_are_refused_and_none_is_lost() {
    let tasks = 400;
    let log = Log::new(tasks);
    let config = Config { window_tasks: 32, spill_links: 32, ..small(2, Ready::WorkSteal) };
    let compiled = compile(config, log.body());
    let mut edges = Vec::new();
    drive(compiled, |graph| {
        let mut ids: Vec<TaskId> = Vec::new();
        for number in 0..tasks {
            let after: Vec<TaskId> = ids.iter().rev().take(20).copied().collect();
            edges.extend((0..after.len()).map(|back| (number - 1 - back, number)));
            ids.push(graph.submit(&task(number as u64), &[], &after).unwrap());
        }
        assert_eq!(graph.finish().retired, tasks as u64);
    });
    assert!(edges.iter().all(|(first, second)| log.is_before(*first, *second)));
}

#[test]
fn a_batch_below_its_threshold_is_resolved_before_idling_and_when_late() {
    let config = Config { batch: Batch { threshold: 100, deadline_ns: 1_000 }, ..small(1, Ready::WorkSteal) };
    let nanos = Arc::new(AtomicU64::new(0));
    let ticking = Arc::clone(&nanos);
    let body = move |work: &Work| {
        ticking.fetch_add(work.task.args[0], Ordering::Relaxed);
        Ended::Done
    };
    let (mut graph, _, _) = of_workload(Workload::new(config), Clock::virtual_time(nanos), body);
    let first = graph.submit(&task(10), &[], &[]).unwrap();
    graph.submit(&task(10), &[], &[first]).unwrap();
    while graph.work(8) > 0 {}
    assert!(graph.poll_done(), "a chain below the threshold ends");
    assert!(graph.worker().counted(Count::FlushesIdle) > 0);
    for _ in 0..4 {
        graph.submit(&task(600), &[], &[]).unwrap();
    }
    assert_eq!(graph.wait().retired, 6);
    assert!(graph.worker().counted(Count::FlushesLate) > 0, "two bodies exceed the deadline");
}

#[test]
fn a_batch_is_resolved_when_its_worker_returns() {
    let config = Config { batch: Batch { threshold: 100, deadline_ns: u64::MAX >> 8 }, ..small(1, Ready::Fifo) };
    let (mut graph, _, _) = compile(config, |_: &Work| Ended::Done);
    for number in 0..3 {
        graph.submit(&task(number), &[], &[]).unwrap();
    }
    assert_eq!(graph.work(1), 1);
    graph.poll_done();
    assert_eq!(graph.summary().retired, 1);
    assert_eq!(graph.worker().counted(Count::FlushesReturn), 1);
}

#[test]
fn a_root_task_runs_on_another_worker_without_any_other_submission() {
    for ready in [Ready::WorkSteal, Ready::Fifo] {
        let log = Log::new(1);
        let compiled = compile(small(2, ready), log.body());
        drive(compiled, |graph| {
            graph.submit(&task(0), &[], &[]).unwrap();
            graph.flush();
            while !graph.poll_done() {
                std::thread::yield_now();
            }
        });
        assert!(log.has_run(0), "{ready:?}");
    }
}

#[test]
fn a_full_window_refuses_without_running_anything_and_opens_with_a_quarter() {
    let log = Log::new(20);
    let (mut graph, _, _) = compile(Config { window_tasks: 8, ..small(1, Ready::Fifo) }, log.body());
    for number in 0..8 {
        graph.try_submit(&task(number), &[], &[]).unwrap();
    }
    let full = |graph: &mut super::Submitter<super::Boxed>| graph.try_submit(&task(9), &[], &[]).is_err();
    assert!(full(&mut graph) && !log.has_run(0));
    graph.work(1);
    assert!(full(&mut graph), "one of eight is less than a quarter");
    graph.work(1);
    assert!(!full(&mut graph));
}

#[test]
fn an_aborting_window_says_so_and_a_benchmarking_one_admits_and_counts() {
    let config = |overflow| Config { window_tasks: 4, slab_tasks: 16, overflow, ..small(1, Ready::Fifo) };
    let (mut graph, _, _) = compile(config(Overflow::Abort), |_: &Work| Ended::Done);
    for number in 0..4 {
        graph.submit(&task(number), &[], &[]).unwrap();
    }
    assert_eq!(graph.submit(&task(4), &[], &[]), Err(SubmitError::Overflow { tasks: 4 }));
    let (mut graph, _, _) = compile(config(Overflow::Benchmark), |_: &Work| Ended::Done);
    for number in 0..16 {
        graph.try_submit(&task(number), &[], &[]).unwrap();
    }
    assert_eq!(graph.finish(), Summary { retired: 16, overflows: 12, ..Summary::default() });
}

#[test]
fn a_policy_that_waits_for_more_tasks_than_there_are_starts_all_the_same() {
    for start in [Start::AfterOrchestration, Start::Threshold(1_000)] {
        let log = Log::new(40);
        let (mut graph, _, _) = compile(Config { start, window_tasks: 8, ..small(1, Ready::Fifo) }, log.body());
        graph.submit(&task(0), &[], &[]).unwrap();
        assert_eq!(graph.work(8), 0, "not started");
        for number in 1..40 {
            graph.submit(&task(number), &[], &[]).unwrap();
        }
        assert_eq!(graph.finish().retired, 40, "{start:?}");
    }
}

#[test]
fn the_oldest_task_and_what_holds_it_up_are_observed() {
    let body = |work: &Work| if work.task.args[0] == 7 { Ended::Launched } else { Ended::Done };
    let (mut graph, _, mut completer) = compile(small(1, Ready::WorkSteal), body);
    let slow = graph.submit(&task(7), &[], &[]).unwrap();
    let waits = graph.submit(&task(1), &[], &[slow]).unwrap();
    while graph.work(8) > 0 {}
    let oldest = |graph: &mut Submitter<_>| graph.observed().oldest.map(|(task, _, holdup)| (task, holdup));
    assert_eq!(oldest(&mut graph), Some((slow, BlockedBy::Worker)));
    completer.complete(slow, None).unwrap();
    graph.observed();
    assert_eq!(graph.finish().retired, 2, "{waits}");
    assert_eq!(oldest(&mut graph), None);
}

#[test]
fn the_oldest_task_does_not_wait_for_the_permit_that_it_has() {
    let config = Config { issue: Issue::Global(1), ..small(1, Ready::Fifo) };
    let (mut graph, _, mut completer) = compile(config, |_: &Work| Ended::Launched);
    let launched = graph.submit(&task(0), &[], &[]).unwrap();
    while graph.work(8) > 0 {}
    let observed = graph.observed();
    assert_eq!((observed.permits_used, observed.parked), (1, 0));
    assert_eq!(observed.oldest.map(|(_, _, holdup)| holdup), Some(BlockedBy::Worker));
    completer.complete(launched, None).unwrap();
    graph.finish();
}

#[test]
fn a_submission_that_is_repeated_until_the_window_has_room_is_one_stall() {
    let (mut graph, _, _) = compile(Config { window_tasks: 4, ..small(1, Ready::Fifo) }, |_: &Work| Ended::Done);
    for number in 0..4 {
        graph.try_submit(&task(number), &[], &[]).unwrap();
    }
    assert_eq!(graph.summary().stalls, 0);
    for _ in 0..5 {
        assert!(graph.try_submit(&task(4), &[], &[]).is_err());
    }
    while graph.work(8) > 0 {}
    graph.try_submit(&task(4), &[], &[]).unwrap();
    assert_eq!(graph.finish().stalls, 1);
}

#[test]
fn only_tasks_beyond_the_window_count_as_overflows() {
    let config = Config { window_tasks: 16, slab_tasks: 1_024, overflow: Overflow::Benchmark, ..small(1, Ready::Fifo) };
    let (mut graph, _, _) = compile(config, |_: &Work| Ended::Done);
    for number in 0..10 {
        for _ in 0..10 {
            graph.try_submit(&task(number), &[], &[]).unwrap();
        }
        assert_eq!(graph.wait().overflows, 0, "ten of sixteen under way");
    }
    for number in 0..20 {
        graph.try_submit(&task(number), &[], &[]).unwrap();
    }
    assert_eq!(graph.finish().overflows, 4);
}

/// [`Submitter::submit`] waits only as long as there is something to wait for.
#[test]
fn a_task_that_never_has_room_in_the_map_is_refused_and_not_waited_for() {
    for deps in [Deps::InferBytesOverlap, Deps::InferTensorMapExact] {
        let config = Config { deps, map_entries: 16, ..small(1, Ready::Fifo) };
        let mut workload = Workload::new(config);
        let tensor = workload.tensor(Shape { rows: 1, columns: 1_024, element_bytes: 1, granule_bytes: 16 }).unwrap();
        let (mut graph, _, _) = of_workload(workload, clock(), |_: &Work| Ended::Done);
        let parts: Vec<_> = (0..32).map(|part| tensor.range(part * 32, 32).write()).collect();
        graph.submit(&task(0), &parts[..2], &[]).unwrap();
        let refused = graph.submit(&task(1), &parts, &[]);
        assert!(matches!(refused, Err(SubmitError::Full { knob: "map_entries", .. })), "{deps:?}: {refused:?}");
        graph.submit(&task(2), &parts[..2], &[]).unwrap();
        assert_eq!(graph.finish().retired, 2, "{deps:?}");
    }
}

fn run_empty(tasks: u64) -> Summary {
    let config = Config { workers: vec![Pool::Cpu; 2], window_tasks: 1_024, ..small(2, Ready::WorkSteal) };
    let config = Config { deps: Deps::InferBytesOverlap, ..config };
    let mut workload = Workload::new(config);
    let tensor = workload.tensor(Shape { rows: 1, columns: 8_192, element_bytes: 1, granule_bytes: 16 }).unwrap();
    let compiled = of_workload(workload, clock(), |_: &Work| Ended::Done);
    drive(compiled, |graph| {
        let capacity = graph.worker.local.capacity();
        for number in 0..tasks {
            let at = (number % 500) as u32 * 16;
            graph.submit(&task(number), &[tensor.range(at + 8, 16).read(), tensor.range(at, 16).write()], &[]).unwrap();
        }
        let summary = graph.finish();
        assert_eq!(graph.worker.local.capacity(), capacity, "the worker's list grew");
        summary
    })
}

fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 4_096
}

#[test]
fn a_million_tasks_run_in_a_small_window() {
    assert_eq!(run_empty(1_000_000).retired, 1_000_000);
}

#[test]
#[ignore = "10^8 tasks: some seconds when optimised"]
fn a_hundred_million_tasks_run_without_growth_of_memory() {
    assert_eq!(run_empty(1_000_000).retired, 1_000_000);
    let before = resident_bytes();
    assert_eq!(run_empty(100_000_000).retired, 100_000_000);
    let growth = resident_bytes().saturating_sub(before);
    assert!(growth < 8 << 20, "{growth} bytes");
}

#[test]
fn the_oldest_task_waits_for_a_permit_only_if_it_was_set_aside() {
    let config = Config { issue: Issue::Global(1), ..small(1, Ready::Fifo) };
    let (mut graph, _, mut completer) = compile(config, |_: &Work| Ended::Launched);
    let first = graph.submit(&task(0), &[], &[]).unwrap();
    let waits = graph.submit(&task(1), &[], &[first]).unwrap();
    let other = graph.submit(&task(2), &[], &[]).unwrap();
    while graph.work(8) > 0 {}
    let oldest = |graph: &mut Submitter<_>| graph.observed().oldest.map(|(task, _, holdup)| (task, holdup));
    assert_eq!(graph.observed().parked, 1);
    assert_eq!(oldest(&mut graph), Some((first, BlockedBy::Worker)), "it has the permit that another waits for");
    completer.complete(first, None).unwrap();
    while graph.work(8) > 0 {}
    assert_eq!(oldest(&mut graph), Some((waits, BlockedBy::Gate { in_use: 1 })));
    completer.complete(other, None).unwrap();
    assert_eq!(oldest(&mut graph), Some((waits, BlockedBy::Worker)), "it has the permit and is not taken up");
    while graph.work(8) > 0 {}
    completer.complete(waits, None).unwrap();
    assert_eq!(graph.finish().retired, 3);
}

#[test]
fn a_submission_without_room_starts_a_graph_that_waits_for_more_tasks() {
    let full_window = Config { window_tasks: 4, overflow: Overflow::Abort, ..small(1, Ready::Fifo) };
    let full_map = Config { deps: Deps::InferTensorMapExact, map_entries: 16, ..small(1, Ready::Fifo) };
    for config in [full_window, full_map] {
        let mut workload = Workload::new(Config { start: Start::AfterOrchestration, ..config });
        let tensor = workload.tensor(Shape { rows: 64, columns: 1, element_bytes: 8, granule_bytes: 16 }).unwrap();
        let (mut graph, _, _) = of_workload(workload, clock(), |_: &Work| Ended::Done);
        let submit =
            |graph: &mut Submitter<_>, row| graph.try_submit(&task(0), &[tensor.tile(row, 0, 1, 1).write()], &[]);
        let submitted = (0..64).take_while(|row| submit(&mut graph, *row).is_ok()).count();
        assert!([4, 16].contains(&submitted), "{submitted}");
        assert!(graph.work(8) > 0, "after {submitted} tasks");
        while graph.work(8) > 0 {}
        assert!(graph.poll_done() && submit(&mut graph, 0).is_ok());
        graph.finish();
    }
}

#[test]
fn a_full_slab_holds_what_it_says_and_names_its_field() {
    let config = Config { window_tasks: 4, slab_tasks: 10, overflow: Overflow::Benchmark, ..small(1, Ready::Fifo) };
    let (mut graph, _, _) = compile(config, |_: &Work| Ended::Done);
    for number in 0..10 {
        graph.try_submit(&task(number), &[], &[]).unwrap();
    }
    let expected = SubmitError::Full { what: "window", in_use: 10, limit: 10, knob: "slab_tasks" };
    assert_eq!(graph.try_submit(&task(10), &[], &[]), Err(expected));
    assert_eq!(graph.finish().retired, 10);
}

#[test]
fn reads_need_no_entry_of_the_exact_map() {
    let config = Config { deps: Deps::InferTensorMapExact, map_entries: 16, ..small(1, Ready::Fifo) };
    let mut workload = Workload::new(config);
    let tensor = workload.tensor(Shape { rows: 64, columns: 1, element_bytes: 8, granule_bytes: 16 }).unwrap();
    let (mut graph, _, _) = of_workload(workload, clock(), |_: &Work| Ended::Done);
    let mut accesses: Vec<_> = (0..40).map(|row| tensor.tile(row, 0, 1, 1).read()).collect();
    accesses.extend((0..16).map(|row| tensor.tile(row, 0, 1, 1).write()));
    graph.try_submit(&task(0), &accesses, &[]).unwrap();
    assert!(graph.try_submit(&task(1), &[tensor.tile(0, 0, 1, 1).write()], &[]).is_err(), "all entries are taken");
    assert_eq!(graph.finish().retired, 1);
}

#[test]
fn a_task_with_half_as_many_accesses_as_the_map_has_pieces_finds_room() {
    let config = Config { deps: Deps::InferBytesOverlap, map_entries: 16, ..small(1, Ready::Fifo) };
    let mut workload = Workload::new(config);
    let tensor = workload.tensor(Shape { rows: 1, columns: 160, element_bytes: 1, granule_bytes: 16 }).unwrap();
    let (mut graph, _, _) = of_workload(workload, clock(), |_: &Work| Ended::Done);
    let writes = |count: u32| (0..count).map(|part| tensor.range(part * 16, 8).write()).collect::<Vec<_>>();
    assert!(graph.try_submit(&task(0), &writes(9), &[]).is_err());
    graph.try_submit(&task(0), &writes(8), &[]).unwrap();
    assert_eq!(graph.finish().retired, 1);
}
