//! A recorded graph runs again in the same order, submitting nothing.

use super::super::shared::RECORDED;
use super::super::{
    Config, Count, Deps, Ended, Issue, Pool, Ready, RecordError, RecordingId, Shape, Status, Task, TaskId, Work,
    Worker, Workload,
};
use super::{Boxed, Log, Seeded, Submitter, clock, compile, drive, of_workload, small, task};
use crate::units::Ticks;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Every cell adds its neighbours' values of this round: a wrong order gives a wrong sum.
fn wavefront(ready: Ready, deps: Deps, rounds: u64) {
    const SIDE: u32 = 12;
    let cells: Arc<Vec<AtomicU64>> = Arc::new((0..SIDE * SIDE).map(|_| AtomicU64::new(0)).collect());
    let shared = Arc::clone(&cells);
    let body = move |work: &Work| {
        let at = work.task.args[0] as u32;
        let value = |at: u32| shared[at as usize].load(Ordering::Relaxed);
        let left = if at.is_multiple_of(SIDE) { 1 } else { value(at - 1) };
        let up = if at < SIDE { 1 } else { value(at - SIDE) };
        shared[at as usize].store((left + up) % 1_000_003, Ordering::Relaxed);
        Ended::Done
    };
    let mut workload = Workload::new(Config { deps, window_tasks: 16, ..small(2, ready) });
    let tensor = workload.tensor(Shape { rows: SIDE, columns: SIDE, element_bytes: 16, granule_bytes: 16 }).unwrap();
    let compiled = of_workload(workload, clock(), body);
    let expected = {
        let mut cells = vec![0u64; (SIDE * SIDE) as usize];
        for at in 0..(SIDE * SIDE) as usize {
            let left = if at.is_multiple_of(SIDE as usize) { 1 } else { cells[at - 1] };
            let up = if at < SIDE as usize { 1 } else { cells[at - SIDE as usize] };
            cells[at] = (left + up) % 1_000_003;
        }
        cells
    };
    let check = || {
        let found: Vec<u64> = cells.iter().map(|cell| cell.swap(0, Ordering::Relaxed)).collect();
        assert_eq!(found, expected, "{ready:?} {deps:?}");
    };
    drive(compiled, |graph| {
        graph.record().unwrap();
        for at in 0..SIDE * SIDE {
            let cell = |row: u32, column: u32| tensor.tile(row, column, 1, 1);
            let (row, column) = (at / SIDE, at % SIDE);
            let mut accesses = vec![cell(row, column).write()];
            accesses.extend((row > 0).then(|| cell(row - 1, column).read()));
            accesses.extend((column > 0).then(|| cell(row, column - 1).read()));
            graph.submit(&Task::new(0, [at.into(), 0, 0]), &accesses, &[]).unwrap();
        }
        let recording = graph.end_recording().unwrap();
        graph.wait();
        check();
        assert_eq!(graph.recorded(recording), Some((SIDE * SIDE, 2 * SIDE * (SIDE - 1))), "all edges, retired or not");
        let submitted = graph.next;
        for round in 0..rounds {
            graph.replay(recording).unwrap();
            assert_eq!(graph.next, submitted + round + 1, "one number for the round");
            graph.wait();
            check();
        }
        assert_eq!(graph.finish().failed, 0);
    });
}

#[test]
fn a_recorded_graph_runs_again_in_the_same_order() {
    for ready in [Ready::WorkSteal, Ready::Fifo, Ready::FifoPerStream] {
        for deps in [Deps::InferBytesOverlap, Deps::InferTensorMapExact] {
            wavefront(ready, deps, 50);
        }
    }
}

#[test]
fn independent_tasks_beyond_any_queue_are_handed_out_in_pieces() {
    let count = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&count);
    let body = move |_: &Work| {
        counted.fetch_add(1, Ordering::Relaxed);
        Ended::Done
    };
    drive(compile(small(2, Ready::WorkSteal), body), |graph| {
        graph.record().unwrap();
        for number in 0..5_000 {
            graph.submit(&task(number), &[], &[]).unwrap();
        }
        let recording = graph.end_recording().unwrap();
        graph.wait();
        graph.replay(recording).unwrap();
        graph.wait();
    });
    assert_eq!(count.load(Ordering::Relaxed), 10_000);
}

#[test]
fn a_failure_in_a_round_fails_the_round_and_not_the_next() {
    let fails = Arc::new(AtomicU64::new(u64::MAX));
    let failing = Arc::clone(&fails);
    let body = move |work: &Work| {
        if work.task.args[0] == failing.load(Ordering::Relaxed) { Ended::Failed(5) } else { Ended::Done }
    };
    let (mut graph, _, _) = compile(small(1, Ready::WorkSteal), body);
    let mut seeded = Seeded(9);
    graph.record().unwrap();
    let mut ids: Vec<TaskId> = Vec::new();
    for number in 0..10 {
        let after: Vec<_> = ids.iter().filter(|_| seeded.below(2) == 0).copied().collect();
        ids.push(graph.submit(&task(number), &[], &after).unwrap());
    }
    let recording = graph.end_recording().unwrap();
    for victim in 0..10 {
        graph.wait();
        fails.store(victim, Ordering::Relaxed);
        let round = graph.replay(recording).unwrap();
        graph.wait();
        assert_eq!(graph.status(round), Status::Failed, "victim {victim}");
        fails.store(u64::MAX, Ordering::Relaxed);
        let ran = graph.worker().counted(Count::Ran);
        let round = graph.replay(recording).unwrap();
        graph.wait();
        assert_eq!((graph.status(round), graph.worker().counted(Count::Ran) - ran), (Status::Done, 10));
    }
    assert_eq!(graph.failures().len(), 10);
}

#[test]
fn recordings_are_refused_out_of_turn() {
    let config = Config { recordings: 1, recorded_tasks: 2, ..small(1, Ready::WorkSteal) };
    let (mut graph, _, _) = compile(config, |_: &Work| Ended::Done);
    assert_eq!(graph.end_recording(), Err(RecordError::OutOfTurn));
    graph.record().unwrap();
    assert_eq!(graph.record(), Err(RecordError::OutOfTurn));
    for number in 0..3 {
        graph.submit(&task(number), &[], &[]).unwrap();
    }
    let refused = RecordError::TooLarge { tasks: 3, limit: 2, knob: "recorded_tasks" };
    assert_eq!(graph.end_recording(), Err(refused));
    assert_eq!(graph.record(), Err(RecordError::Busy));
    graph.wait();
    graph.record().unwrap();
    graph.submit(&task(0), &[], &[]).unwrap();
    graph.end_recording().unwrap();
    graph.wait();
    assert_eq!(graph.record(), Err(RecordError::TooMany { limit: 1 }));
}

#[test]
fn a_failure_that_retired_during_the_recording_poisons_what_reads_its_result() {
    let body = |work: &Work| if work.task.args[0] == 0 { Ended::Failed(1) } else { Ended::Done };
    let (mut graph, _, _) = compile(small(1, Ready::Fifo), body);
    graph.record().unwrap();
    let failed = graph.submit(&task(0), &[], &[]).unwrap();
    graph.wait();
    let reads = graph.submit(&task(1), &[], &[failed]).unwrap();
    graph.wait();
    assert_eq!(graph.status(reads), Status::Poisoned(failed));
}

#[test]
fn recorded_predecessors_that_have_retired_take_no_link_from_a_task_under_way() {
    let log = Log::new(24);
    let noted = Arc::clone(&log);
    let body = move |work: &Work| match work.task.args[0] {
        20 | 21 => Ended::Launched,
        number => {
            noted.run(number);
            Ended::Done
        }
    };
    let config = Config { window_tasks: 8, spill_links: 0, ..small(1, Ready::Fifo) };
    let (mut graph, _, mut completer) = compile(config, body);
    graph.record().unwrap();
    let retired: Vec<TaskId> = (0..20).map(|number| graph.submit(&task(number), &[], &[]).unwrap()).collect();
    graph.wait();
    let launched = [20, 21].map(|number| graph.submit(&task(number), &[], &[]).unwrap());
    let after =
        |count: usize, last: TaskId| -> Vec<TaskId> { retired[..count].iter().copied().chain([last]).collect() };
    // Of eight links beyond those in a record, the first task takes the second for its last predecessor; counting
    // retired predecessors, the other one takes it again, a lap later.
    graph.submit(&task(22), &[], &after(5, launched[0])).unwrap();
    graph.submit(&task(23), &[], &after(11, launched[1])).unwrap();
    while graph.work(8) > 0 {}
    completer.complete(launched[0], None).unwrap();
    while graph.work(8) > 0 {}
    assert_eq!((log.has_run(22), log.has_run(23)), (true, false));
    completer.complete(launched[1], None).unwrap();
    while graph.work(8) > 0 {}
    assert!(log.has_run(23) && graph.poll_done());
}

#[test]
fn a_recording_that_filled_the_map_leaves_it_free_at_its_end() {
    let config = Config { deps: Deps::InferTensorMapExact, map_entries: 16, ..small(1, Ready::Fifo) };
    let mut workload = Workload::new(config);
    let tensor = workload.tensor(Shape { rows: 16, columns: 1, element_bytes: 16, granule_bytes: 16 }).unwrap();
    let (mut graph, _, _) = of_workload(workload, clock(), |_: &Work| Ended::Done);
    let write = |row| [tensor.tile(row, 0, 1, 1).write()];
    graph.record().unwrap();
    for row in 0..16 {
        graph.try_submit(&task(0), &write(row), &[]).unwrap();
    }
    graph.wait();
    assert!(graph.try_submit(&task(0), &write(0), &[]).is_err(), "a recording keeps its entries");
    graph.end_recording().unwrap();
    assert!(graph.try_submit(&task(0), &write(0), &[]).is_ok());
    graph.finish();
}

#[test]
fn tasks_that_a_round_skips_count_as_those_of_a_graph() {
    let fails = Arc::new(AtomicU64::new(u64::MAX));
    let failing = Arc::clone(&fails);
    let body = move |work: &Work| {
        if work.task.args[0] == failing.load(Ordering::Relaxed) { Ended::Failed(5) } else { Ended::Done }
    };
    let (mut graph, _, _) = compile(small(1, Ready::Fifo), body);
    graph.record().unwrap();
    let first = graph.submit(&task(0), &[], &[]).unwrap();
    graph.submit(&task(1), &[], &[first]).unwrap();
    let recording = graph.end_recording().unwrap();
    graph.wait();
    fails.store(0, Ordering::Relaxed);
    graph.replay(recording).unwrap();
    graph.wait();
    let counted = [Count::Ran, Count::Failed, Count::Skipped].map(|what| graph.worker().counted(what));
    assert_eq!(counted, [4, 1, 1], "run or skipped, of these failed, of these skipped");
}

#[test]
fn a_round_with_more_tasks_that_wait_for_a_permit_than_the_window_holds_ends() {
    for ready in [Ready::WorkSteal, Ready::Fifo] {
        let is_launching = Arc::new(AtomicU64::new(0));
        let launches = Arc::clone(&is_launching);
        // The first task keeps its permit until its worker ends it.
        let body = move |work: &Work| {
            if launches.load(Ordering::Relaxed) == 1 && work.task.args[0] == 0 { Ended::Launched } else { Ended::Done }
        };
        let config = Config { issue: Issue::Global(1), window_tasks: 16, ..small(1, ready) };
        let (mut graph, _, _) = compile(config, body);
        graph.record().unwrap();
        for number in 0..200 {
            graph.submit(&task(number), &[], &[]).unwrap();
        }
        let recording = graph.end_recording().unwrap();
        graph.wait();
        is_launching.store(1, Ordering::Relaxed);
        graph.replay(recording).unwrap();
        for _ in 0..20 {
            graph.work(64);
        }
        assert!(!graph.poll_done() && graph.observed().permits_used == 1, "{ready:?}");
        let work = Work { id: TaskId(0), task: task(0), worker: 0, item: RECORDED };
        graph.worker.end_launched_work(&work, Ticks(0)).unwrap();
        assert_eq!(graph.wait().failed, 0, "{ready:?}");
    }
}

#[test]
fn a_replay_that_is_flushed_or_closed_at_once_ends_under_any_policy() {
    for ready in [Ready::WorkSteal, Ready::Fifo, Ready::FifoPerStream] {
        drive(compile(small(2, ready), |_: &Work| Ended::Done), |graph| {
            graph.record().unwrap();
            for number in 0..200 {
                graph.submit(&task(number), &[], &[]).unwrap();
            }
            let recording = graph.end_recording().unwrap();
            graph.wait();
            graph.replay(recording).unwrap();
            graph.flush();
            // The other worker runs the round: the submitter runs nothing.
            while !graph.poll_done() {
                std::thread::yield_now();
            }
            graph.replay(recording).unwrap();
            assert_eq!(graph.finish().failed, 0, "{ready:?}");
        });
    }
}

#[test]
fn a_worker_that_ends_its_turns_early_hands_out_all_roots_of_a_round() {
    for ready in [Ready::WorkSteal, Ready::Fifo, Ready::FifoPerStream] {
        let config = Config { workers: vec![Pool::Device, Pool::Cpu, Pool::Cpu], ..small(1, ready) };
        let (mut graph, mut workers, _) = compile(config, |_: &Work| unreachable!("bodies are brought along"));
        let mut run = |graph: &mut Submitter<_>| {
            for _ in 0..2_000 {
                workers[0].work_by(1, |_| ControlFlow::Break(Ended::Done));
            }
            assert!(graph.poll_done(), "{ready:?}");
        };
        graph.record().unwrap();
        for number in 0..200 {
            if graph.try_submit(&task(number), &[], &[]).is_err() {
                run(&mut graph);
                graph.try_submit(&task(number), &[], &[]).unwrap();
            }
        }
        let recording = graph.end_recording().unwrap();
        run(&mut graph);
        graph.replay(recording).unwrap();
        run(&mut graph);
    }
}

/// Records a task of the processor and, after it, many of the device: more than each queue holds.
fn record_offload(graph: &mut Submitter<Boxed>, device: &mut Worker<Boxed>) -> RecordingId {
    graph.record().unwrap();
    let root = graph.try_submit(&task(0), &[], &[]).unwrap();
    for number in 1..100 {
        while graph.try_submit(&Task { pool: Pool::Device, ..task(number) }, &[], &[root]).is_err() {
            run_both(graph, device);
        }
    }
    run_both(graph, device);
    graph.end_recording().unwrap()
}

fn run_both(graph: &mut Submitter<Boxed>, device: &mut Worker<Boxed>) {
    while graph.work(8) + device.work(8) > 0 {}
}

#[test]
fn tasks_of_a_round_beyond_the_queue_of_their_pool_run_on_its_workers_all_the_same() {
    for ready in [Ready::WorkSteal, Ready::FifoPerStream] {
        let body = |work: &Work| {
            let is_device = work.task.pool == Pool::Device;
            if is_device == (work.worker == 1) { Ended::Done } else { Ended::Failed(1) }
        };
        let config = Config { workers: vec![Pool::Cpu, Pool::Device], window_tasks: 4, ..small(1, ready) };
        let (mut graph, mut workers, _) = compile(config, body);
        let recording = record_offload(&mut graph, &mut workers[0]);
        for _ in 0..3 {
            assert!(graph.poll_done());
            let round = graph.replay(recording).unwrap();
            run_both(&mut graph, &mut workers[0]);
            assert_eq!(graph.status(round), Status::Done, "{ready:?}");
        }
    }
}

#[test]
fn a_completion_finds_room_for_what_it_releases_while_a_round_fills_the_queue() {
    for ready in [Ready::WorkSteal, Ready::FifoPerStream] {
        let config = Config { workers: vec![Pool::Cpu, Pool::Device], window_tasks: 4, ..small(1, ready) };
        let body = |work: &Work| if work.task.args[0] == 1_000 { Ended::Launched } else { Ended::Done };
        let (mut graph, mut workers, mut completer) = compile(config, body);
        let recording = record_offload(&mut graph, &mut workers[0]);
        graph.replay(recording).unwrap();
        while graph.work(8) > 0 {}
        assert_eq!(graph.observed().ready[Pool::Device as usize], 4, "the queue is full");
        let launched = graph.try_submit(&task(1_000), &[], &[]).unwrap();
        let after = graph.try_submit(&Task { pool: Pool::Device, ..task(1) }, &[], &[launched]).unwrap();
        while graph.work(8) > 0 {}
        completer.complete(launched, None).unwrap();
        run_both(&mut graph, &mut workers[0]);
        assert!(graph.poll_done(), "{ready:?}");
        assert_eq!(graph.status(after), Status::Done);
    }
}

#[test]
fn an_empty_recording_is_refused_with_what_was_expected() {
    let (mut graph, _, _) = compile(small(1, Ready::WorkSteal), |_: &Work| Ended::Done);
    graph.record().unwrap();
    let said = graph.end_recording().unwrap_err().to_string();
    assert!(said.contains("found 0 tasks, expected 1 to"), "{said}");
}

#[test]
fn a_failure_in_a_round_does_not_poison_what_only_follows_it() {
    let config = Config { deps: Deps::InferBytesOverlap, ..small(1, Ready::Fifo) };
    let mut workload = Workload::new(config);
    let tensor = workload.tensor(Shape { rows: 1, columns: 16, element_bytes: 1, granule_bytes: 16 }).unwrap();
    let body = |work: &Work| if work.task.args[0] == 0 { Ended::Failed(1) } else { Ended::Done };
    let (mut graph, _, _) = of_workload(workload, clock(), body);
    graph.record().unwrap();
    graph.submit(&task(0), &[tensor.whole().read()], &[]).unwrap();
    graph.submit(&task(1), &[tensor.whole().write()], &[]).unwrap();
    let recording = graph.end_recording().unwrap();
    assert_eq!(graph.recorded(recording), Some((2, 1)));
    graph.wait();
    graph.replay(recording).unwrap();
    graph.wait();
    let counted = [Count::Ran, Count::Failed, Count::Skipped].map(|what| graph.worker().counted(what));
    assert_eq!(counted, [4, 2, 0], "the second writes what the first has read");
}

#[test]
fn a_recorded_predecessor_that_had_the_same_record_is_not_the_task_itself() {
    let body = |work: &Work| if work.task.args[0] == 8 { Ended::Launched } else { Ended::Done };
    let (mut graph, _, mut completer) = compile(Config { window_tasks: 8, ..small(1, Ready::Fifo) }, body);
    graph.record().unwrap();
    let retired: Vec<TaskId> = (0..8).map(|number| graph.submit(&task(number), &[], &[]).unwrap()).collect();
    graph.wait();
    // The window is full of tasks that wait for the launched one, but for the last.
    let launched = graph.submit(&task(8), &[], &[]).unwrap();
    for number in 9..15 {
        graph.try_submit(&task(number), &[], &[launched]).unwrap();
    }
    let last = graph.try_submit(&task(15), &[], &[retired[7]]).unwrap();
    while graph.work(8) > 0 {}
    assert!(!graph.is_under_way(last));
    completer.complete(launched, None).unwrap();
    assert_eq!(graph.finish().retired, 16);
}
