//! Failure, panic and cancellation at every point of a small graph, and what they do to the rest.

use super::super::predecessors::FAILURE_AGE_MAX;
use super::super::task::outcome_of;
use super::super::{
    Config, Deps, Ended, Pool, Ready, Reason, Shape, Status, SubmitError, Task, TaskId, Work, Workload,
};
use super::{Log, Seeded, clock, compile, drive, of_workload, small, task};
use std::sync::Arc;

const TASKS: usize = 10;

/// Predecessors of each task of a random graph.
fn random_graph(seed: u64) -> Vec<Vec<usize>> {
    let mut seeded = Seeded(seed);
    (0..TASKS).map(|task| (0..task).filter(|_| seeded.below(3) == 0).collect()).collect()
}

/// Whether each task depends on `from`, or is it.
fn reached(graph: &[Vec<usize>], from: usize) -> Vec<bool> {
    let mut reached = vec![false; TASKS];
    for task in 0..TASKS {
        reached[task] = task == from || graph[task].iter().any(|before| reached[*before]);
    }
    reached
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    Fails,
    Panics,
}

fn at_every_point(workers: usize, trouble: Trouble, window_tasks: u32) {
    for seed in 1..=20 {
        let edges = random_graph(seed);
        for victim in 0..TASKS {
            let log = Log::new(TASKS);
            let noted = Arc::clone(&log);
            let body = move |work: &Work| {
                let task = work.task.args[0];
                match trouble {
                    Trouble::Fails if task == victim as u64 => return Ended::Failed(77),
                    Trouble::Panics if task == victim as u64 => std::panic::resume_unwind(Box::new(())),
                    _ => noted.run(task),
                }
                Ended::Done
            };
            let config = Config { window_tasks, ..small(workers, Ready::WorkSteal) };
            let (summary, statuses, failures) = drive(compile(config, body), |graph| {
                let mut ids: Vec<TaskId> = Vec::new();
                for (number, before) in edges.iter().enumerate() {
                    let after: Vec<_> = before.iter().map(|before| ids[*before]).collect();
                    ids.push(graph.submit(&task(number as u64), &[], &after).unwrap());
                }
                let summary = graph.finish();
                let statuses: Vec<_> = ids.iter().map(|id| graph.status(*id)).collect();
                (summary, statuses, graph.failures().to_vec())
            });
            let reached = reached(&edges, victim);
            let poisoned = reached.iter().filter(|reached| **reached).count() as u64 - 1;
            assert_eq!((summary.retired, summary.failed, summary.poisoned), (TASKS as u64, 1, poisoned));
            let code = if trouble == Trouble::Fails { Reason::Failed(77) } else { Reason::Panicked };
            assert!(failures.len() == 1 && failures[0].reason == code && failures[0].task.0 == victim as u64 + 1);
            for number in 0..TASKS {
                let expected = match (number == victim, reached[number]) {
                    (true, _) => Status::Failed,
                    (false, true) => Status::Poisoned(TaskId(victim as u64 + 1)),
                    (false, false) => Status::Done,
                };
                assert_eq!(statuses[number], expected, "seed {seed}, victim {victim}, task {number}");
                assert_eq!(log.has_run(number), expected == Status::Done);
            }
        }
    }
}

#[test]
fn a_failure_at_any_point_poisons_exactly_what_depends_on_it() {
    at_every_point(1, Trouble::Fails, 64);
    at_every_point(2, Trouble::Fails, 64);
}

#[test]
fn a_failure_that_has_retired_still_poisons_what_comes_later() {
    at_every_point(1, Trouble::Fails, 4);
    at_every_point(2, Trouble::Fails, 4);
}

#[test]
fn a_panic_at_any_point_is_a_failure_of_that_task_alone() {
    at_every_point(1, Trouble::Panics, 64);
    at_every_point(2, Trouble::Panics, 4);
}

#[test]
fn cancellation_at_any_point_runs_nothing_more_and_ends() {
    for point in 0..=TASKS {
        let edges = random_graph(3);
        let log = Log::new(TASKS);
        let (mut graph, _, _) = compile(small(1, Ready::WorkSteal), log.body());
        let mut ids: Vec<TaskId> = Vec::new();
        for (number, before) in edges.iter().enumerate() {
            if number == point {
                while graph.work(8) > 0 {}
                graph.cancel();
            }
            let after: Vec<_> = before.iter().map(|before| ids[*before]).collect();
            ids.push(graph.submit(&task(number as u64), &[], &after).unwrap());
        }
        if point == TASKS {
            graph.cancel();
        }
        let summary = graph.finish();
        let ran = if point == TASKS { 0 } else { point };
        assert_eq!((summary.retired, summary.cancelled), (TASKS as u64, (TASKS - ran) as u64), "point {point}");
        assert!((0..TASKS).all(|task| log.has_run(task) == (task < ran)));
        assert_eq!(graph.submit(&task(0), &[], &[]), Err(SubmitError::Closed));
    }
}

#[test]
fn only_what_reads_a_failed_result_is_poisoned() {
    let mut workload = Workload::new(Config { deps: Deps::InferBytesOverlap, ..small(1, Ready::Fifo) });
    let tensor = workload.tensor(Shape { rows: 1, columns: 64, element_bytes: 1, granule_bytes: 16 }).unwrap();
    let body = |work: &Work| if work.task.args[0] == 0 { Ended::Failed(1) } else { Ended::Done };
    let (mut graph, _, _) = of_workload(workload, clock(), body);
    let failed = graph.submit(&task(0), &[tensor.range(0, 16).read(), tensor.range(16, 16).write()], &[]).unwrap();
    let mut status = |accesses: &[_]| {
        let id = graph.submit(&task(1), accesses, &[]).unwrap();
        graph.wait();
        graph.status(id)
    };
    assert_eq!(status(&[tensor.range(24, 16).read()]), Status::Poisoned(failed), "half of it");
    assert_eq!(status(&[tensor.range(0, 16).write()]), Status::Done, "what it read is another's to write");
    assert_eq!(status(&[tensor.range(20, 4).write()]), Status::Done, "written anew, not read");
    assert_eq!(status(&[tensor.range(20, 4).read()]), Status::Done, "written anew");
    assert_eq!(status(&[tensor.range(16, 4).read()]), Status::Poisoned(failed), "what is left of it");
}

#[test]
fn exact_regions_stay_poisoned_until_a_task_writes_them() {
    let config = Config { deps: Deps::InferTensorMapExact, window_tasks: 4, ..small(1, Ready::Fifo) };
    let mut workload = Workload::new(config);
    let tensor = workload.tensor(Shape { rows: 2, columns: 1, element_bytes: 8, granule_bytes: 16 }).unwrap();
    let body = |work: &Work| if work.task.args[0] == 0 { Ended::Failed(1) } else { Ended::Done };
    let (mut graph, _, _) = of_workload(workload, clock(), body);
    let row = |row| tensor.tile(row, 0, 1, 1);
    let failed = graph.submit(&task(0), &[row(0).write()], &[]).unwrap();
    for _ in 0..20 {
        graph.submit(&task(1), &[row(1).write()], &[]).unwrap();
    }
    let reads = graph.submit(&task(1), &[row(0).read()], &[]).unwrap();
    graph.wait();
    assert_eq!(graph.status(reads), Status::Poisoned(failed));
    graph.submit(&task(1), &[row(0).write()], &[]).unwrap();
    let reads = graph.submit(&task(1), &[row(0).read()], &[]).unwrap();
    graph.wait();
    assert_eq!(graph.status(reads), Status::Done);
}

#[test]
fn more_failures_than_are_remembered_cancel_the_graph() {
    let config = Config { failures: 3, ..small(1, Ready::Fifo) };
    let (mut graph, _, _) = compile(config, |_: &Work| Ended::Failed(1));
    for number in 0..4 {
        graph.submit(&task(number), &[], &[]).unwrap();
        graph.wait();
    }
    let after = graph.submit(&task(9), &[], &[]).unwrap();
    graph.wait();
    let summary = graph.summary();
    assert_eq!((summary.failed, summary.cancelled, graph.status(after)), (4, 1, Status::Forgotten));
}

#[test]
fn an_exact_graph_that_a_failure_has_cancelled_accepts_tasks_and_skips_them() {
    let config = Config { deps: Deps::InferTensorMapExact, failures: 2, map_entries: 16, ..small(1, Ready::Fifo) };
    let mut workload = Workload::new(config);
    let tensor = workload.tensor(Shape { rows: 120, columns: 1, element_bytes: 16, granule_bytes: 16 }).unwrap();
    let (mut graph, _, _) = of_workload(workload, clock(), |_: &Work| Ended::Failed(1));
    for number in 0..40 {
        // Three regions, of which two can be remembered.
        let written = [0, 40, 80].map(|row| tensor.tile(number + row, 0, 1, 1).write());
        let found = graph.try_submit(&task(0), &written, &[]);
        assert!(found.is_ok(), "task {number}: {found:?}");
        graph.wait();
    }
    let summary = graph.finish();
    assert_eq!((summary.failed, summary.cancelled), (1, 39));
}

#[test]
fn an_unknown_dependency_and_a_pool_without_a_worker_are_refused() {
    let (mut graph, _, _) = compile(small(1, Ready::WorkSteal), |_: &Work| Ended::Done);
    assert_eq!(graph.submit(&task(0), &[], &[TaskId(99)]), Err(SubmitError::Unknown { task: TaskId(99) }));
    let nobodys = graph.submit(&Task { pool: Pool::Device, ..task(0) }, &[], &[]);
    assert_eq!(nobodys, Err(SubmitError::NoWorker { pool: Pool::Device }));
    assert_eq!(graph.finish().retired, 0);
}

#[test]
fn a_task_that_retired_long_ago_has_no_status_whose_failure_would_be_forgotten() {
    let (mut graph, _, _) = compile(small(1, Ready::Fifo), |_: &Work| Ended::Failed(7));
    let old = graph.submit(&task(0), &[], &[]).unwrap();
    graph.wait();
    assert_eq!(graph.status(old), Status::Failed);
    // As after so many tasks more.
    for (more, expected) in [(FAILURE_AGE_MAX - 1, Status::Failed), (1, Status::Forgotten)] {
        (graph.next, graph.retired) = (graph.next + u64::from(more), graph.retired + u64::from(more));
        graph.retire_entries();
        assert_eq!(graph.status(old), expected);
    }
}

#[test]
fn an_old_failure_does_not_poison_what_reads_a_task_whose_number_ends_alike() {
    let (mut graph, _, _) = compile(small(1, Ready::Fifo), |_: &Work| Ended::Done);
    // What the failure of the task 2³² before the third leaves.
    graph.window_state.failed.push((3, outcome_of(3)));
    let mut after = Vec::new();
    for number in 0..4 {
        let id = graph.submit(&task(number), &[], &after).unwrap();
        graph.wait();
        assert_eq!(graph.status(id), Status::Done, "task {id}");
        after = vec![id];
    }
}
