//! Pools, gates, streams, placement, traces.

use super::super::{
    Config, Count, Filter, Issue, Placement, Pool, Ready, Start, SubmitError, Task, Trace, write_trace,
};
use super::super::{Ended, Shape, Work, Workload};
use super::{Log, clock, compile, drive, of_workload, small, task};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

#[test]
fn a_task_runs_only_on_a_worker_of_its_pool() {
    for ready in [Ready::WorkSteal, Ready::Fifo] {
        let workers = vec![Pool::Cpu, Pool::Device, Pool::Device];
        let body = |work: &Work| {
            let is_device = work.task.pool == Pool::Device;
            if is_device == (work.worker > 0) { Ended::Done } else { Ended::Failed(1) }
        };
        let compiled = compile(Config { workers, ..small(1, ready) }, body);
        let summary = drive(compiled, |graph| {
            let mut last = Vec::new();
            for number in 0..200 {
                let pool = if number % 3 == 0 { Pool::Device } else { Pool::Cpu };
                last = vec![graph.submit(&Task { pool, ..task(number) }, &[], &last).unwrap()];
            }
            graph.finish()
        });
        assert_eq!((summary.retired, summary.failed), (200, 0), "{ready:?}");
    }
}

fn most_at_once(issue: Issue, key: fn(&Work) -> usize) -> u32 {
    let inside: Arc<[AtomicU32; 4]> = Arc::default();
    let most = Arc::new(AtomicU32::new(0));
    let (noted, found) = (Arc::clone(&inside), Arc::clone(&most));
    let body = move |work: &Work| {
        let inside = &noted[key(work)];
        found.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        std::thread::yield_now();
        inside.fetch_sub(1, Ordering::SeqCst);
        Ended::Done
    };
    let compiled = compile(Config { issue, ..small(3, Ready::WorkSteal) }, body);
    let summary = drive(compiled, |graph| {
        for number in 0..600u32 {
            graph.submit(&Task { stream: number % 3, ..task(number.into()) }, &[], &[]).unwrap();
        }
        graph.finish()
    });
    assert_eq!(summary.retired, 600);
    most.load(Ordering::SeqCst)
}

#[test]
fn a_gate_lets_no_more_in_than_it_has_permits() {
    assert!(most_at_once(Issue::Global(2), |_| 0) <= 2);
    assert_eq!(most_at_once(Issue::PerStream(1), |work| work.task.stream as usize), 1);
    assert_eq!(most_at_once(Issue::PerPool(1), |_| 0), 1);
}

#[test]
fn a_launch_holds_its_permit_until_it_is_complete() {
    let config = Config { issue: Issue::Global(1), ..small(1, Ready::Fifo) };
    let (mut graph, _, mut completer) = compile(config, |_: &Work| Ended::Launched);
    let ids = [0, 1].map(|number| graph.submit(&task(number), &[], &[]).unwrap());
    while graph.work(8) > 0 {}
    assert_eq!(graph.worker().counted(Count::Ran), 1);
    completer.complete(ids[0], None).unwrap();
    while graph.work(8) > 0 {}
    assert_eq!(graph.worker().counted(Count::Ran), 2, "the second had its permit after the first gave it back");
    completer.complete(ids[1], None).unwrap();
    assert_eq!(graph.finish().retired, 2);
}

#[test]
fn a_task_that_waited_for_a_permit_runs_only_on_a_worker_of_its_pool() {
    for ready in [Ready::WorkSteal, Ready::Fifo] {
        let workers = vec![Pool::Cpu, Pool::Device];
        let config = Config { workers, issue: Issue::Global(1), ..small(1, ready) };
        let (mut graph, mut workers, mut completer) = compile(config, |_: &Work| Ended::Launched);
        let device = |number| Task { pool: Pool::Device, ..task(number) };
        let ids = [0, 1].map(|number| graph.submit(&device(number), &[], &[]).unwrap());
        while workers[0].work(8) > 0 {}
        assert_eq!(graph.observed().parked, 1, "{ready:?}");
        completer.complete(ids[0], None).unwrap();
        assert_eq!(graph.work(8), 0, "{ready:?}: a task of the other pool");
        assert!(graph.worker().is_idle() && !workers[0].is_idle());
        assert_eq!(workers[0].work(8), 1, "{ready:?}");
        completer.complete(ids[1], None).unwrap();
        assert_eq!(graph.finish().retired, 2);
    }
}

#[test]
fn a_permit_comes_back_when_a_body_panics() {
    let config = Config { issue: Issue::Global(1), ..small(1, Ready::WorkSteal) };
    let (mut graph, _, _) = compile(config, |_: &Work| std::panic::resume_unwind(Box::new(())));
    for number in 0..3 {
        graph.submit(&task(number), &[], &[]).unwrap();
    }
    assert_eq!(graph.finish().failed, 3);
}

#[test]
fn each_stream_keeps_its_order() {
    let log = Log::new(300);
    let config = Config { start: Start::AfterOrchestration, window_tasks: 512, ..small(1, Ready::FifoPerStream) };
    let (mut graph, _, _) = compile(config, log.body());
    for number in 0..300u32 {
        graph.submit(&Task { stream: number % 4, ..task(number.into()) }, &[], &[]).unwrap();
    }
    assert_eq!(graph.finish().retired, 300);
    assert!((4..300).all(|number| log.is_before(number - 4, number)));
}

#[test]
fn placement_by_stream_sends_a_task_to_its_streams_worker() {
    let config = Config { placement: Placement::ByStream, ..small(2, Ready::WorkSteal) };
    let (mut graph, mut workers, _) = compile(config, |_: &Work| Ended::Done);
    for number in 0..20u32 {
        graph.submit(&Task { stream: number % 2, ..task(number.into()) }, &[], &[]).unwrap();
    }
    graph.flush();
    // Time stands still, so the thief spares its victim after tasks that took none; but not for
    // ever.
    let turns = (0..).map(|_| workers[0].work(64)).scan(0, |ran, more| {
        *ran += more;
        Some(*ran)
    });
    let turns = turns.take_while(|ran| *ran < 20).count();
    assert!((1..5_000).contains(&turns), "{turns} turns for its own ten and the idle submitter's");
    assert!(graph.poll_done());
}

#[test]
fn times_are_kept_of_the_tasks_asked_for_and_written_as_a_trace() {
    let wanted = Filter::new([1], [0]);
    assert!(wanted.takes(1, 0) && !wanted.takes(0, 0) && !wanted.takes(1, 1) && Filter::default().takes(9, 9));
    let config = Config { trace: Trace::Cycles(wanted), trace_events: 2, ..small(1, Ready::Fifo) };
    let (mut graph, _, _) = compile(config, |_: &Work| Ended::Done);
    for number in 0..6 {
        graph.submit(&Task { kernel: (number % 2) as u16, ..task(number) }, &[], &[]).unwrap();
    }
    graph.finish();
    let events = graph.worker().events();
    // The latest ones.
    assert_eq!(events.map(|event| event.task.0).collect::<Vec<_>>(), [4, 6]);
    assert_eq!(graph.worker().counted(Count::EventsDropped), 1);
    let mut out = Vec::new();
    write_trace(&mut out, &clock(), graph.worker().events().map(|event| (3, event)), |_| "copy").unwrap();
    let trace: serde_json::Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(trace["traceEvents"][1]["args"]["task"], 6);
    assert_eq!(trace["traceEvents"][0]["pid"], 3);
    assert_eq!(trace["traceEvents"][0]["ph"], "X");
}

#[test]
fn a_region_outside_its_tensor_is_refused_and_leaves_nothing_behind() {
    let mut workload = Workload::new(Config { deps: super::Deps::InferBytesOverlap, ..small(1, Ready::Fifo) });
    let tensor = workload.tensor(Shape { rows: 2, columns: 4, element_bytes: 4, granule_bytes: 16 }).unwrap();
    let (mut graph, _, _) = of_workload(workload, clock(), |_: &Work| Ended::Done);
    for region in [tensor.tile(1, 0, 2, 1), tensor.tile(0, 4, 1, 1), tensor.tile(0, 0, 0, 1)] {
        let access = region.write();
        let refused = graph.submit(&task(0), &[tensor.whole().write(), access], &[]);
        assert_eq!(refused, Err(SubmitError::Outside { access }));
    }
    graph.submit(&task(0), &[tensor.whole().read()], &[]).unwrap();
    assert_eq!(graph.finish().edges, 0);
}

#[test]
fn a_launched_task_whose_predecessors_had_all_ended_can_be_completed() {
    let body = |work: &Work| if work.task.args[0] == 2 { Ended::Launched } else { Ended::Done };
    let (mut graph, _, mut completer) = compile(small(1, Ready::Fifo), body);
    let before = [0, 1].map(|number| graph.submit(&task(number), &[], &[]).unwrap());
    while graph.work(8) > 0 {}
    let launched = graph.submit(&task(2), &[], &before).unwrap();
    let after = graph.submit(&task(3), &[], &[launched]).unwrap();
    while graph.work(8) > 0 {}
    assert!(graph.is_under_way(launched) && graph.is_under_way(after));
    assert_eq!(completer.complete(launched, None), Ok(()));
    while graph.work(8) > 0 {}
    assert_eq!((graph.finish().retired, graph.is_under_way(after)), (4, false));
}

#[test]
fn a_threshold_starts_with_exactly_so_many_tasks_whatever_the_pool_of_worker_0() {
    for (ready, first) in [(Ready::WorkSteal, Pool::Device), (Ready::Fifo, Pool::Device), (Ready::Fifo, Pool::Cpu)] {
        let config = Config { start: Start::Threshold(3), workers: vec![first, Pool::Cpu], ..small(1, ready) };
        let (mut graph, mut workers, _) = compile(config, |_: &Work| Ended::Done);
        for number in 0..3 {
            assert_eq!(workers[0].work(8), 0, "{ready:?}: not before the third");
            graph.try_submit(&task(number), &[], &[]).unwrap();
        }
        assert_eq!(workers[0].work(8), 3, "{ready:?} {first:?}");
        assert!(graph.poll_done());
    }
}

#[test]
fn a_worker_that_ends_its_turn_leaves_what_it_released_to_the_others() {
    let config = Config { workers: vec![Pool::Device, Pool::Cpu, Pool::Cpu], ..small(1, Ready::WorkSteal) };
    let (mut graph, mut workers, _) = compile(config, |_: &Work| unreachable!("bodies are brought along"));
    let root = graph.try_submit(&task(0), &[], &[]).unwrap();
    for number in 1..5 {
        graph.try_submit(&task(number), &[], &[root]).unwrap();
    }
    assert_eq!(workers[0].work_by(8, |_| ControlFlow::Break(Ended::Done)), 1);
    assert!(!workers[0].is_idle());
    // A thief takes half, and then has patience for a while: with time standing still, for some
    // sweeps.
    let taken: u32 = (0..5_000).map(|_| workers[1].work_by(8, |_| ControlFlow::Continue(Ended::Done))).sum();
    assert_eq!(taken, 4);
    assert!(graph.poll_done() && workers[0].is_idle());
}

#[test]
fn a_worker_ends_what_it_began_in_an_earlier_turn_once() {
    let (mut graph, mut workers, _) = compile(
        Config { workers: vec![Pool::Device, Pool::Cpu], issue: Issue::Global(1), ..small(1, Ready::Fifo) },
        |_: &Work| unreachable!("bodies are brought along"),
    );
    let first = graph.try_submit(&task(0), &[], &[]).unwrap();
    let second = graph.try_submit(&task(1), &[], &[]).unwrap();
    workers[0].work_by(8, |_| ControlFlow::Break(Ended::Launched));
    assert_eq!(workers[0].work_by(8, |_| ControlFlow::Continue(Ended::Done)), 1, "set aside: the permit is taken");
    assert_eq!(workers[0].end_launched(first), Ok(()));
    assert!(workers[0].end_launched(first).is_err());
    assert_eq!(workers[0].work_by(8, |_| ControlFlow::Continue(Ended::Done)), 1);
    assert!(graph.poll_done() && !graph.is_under_way(second));
}

/// The order in which the bodies of a graph with one permit begin. Each launch ends only when its completion comes, and
/// with each completion a newer task is submitted.
fn order_of_launches(ready: Ready) -> Vec<u64> {
    let began = Arc::new(Started::default());
    let noted = Arc::clone(&began);
    let body = move |work: &Work| {
        noted.note(work.task.args[0]);
        Ended::Launched
    };
    let (mut graph, _, mut completer) = compile(Config { issue: Issue::Global(1), ..small(1, ready) }, body);
    let mut ids = Vec::new();
    let mut submit = |graph: &mut super::Submitter<super::Boxed>| {
        let number = ids.len() as u64;
        ids.push(graph.try_submit(&task(number), &[], &[]).unwrap());
        ids[number as usize]
    };
    let mut launched = submit(&mut graph);
    for _ in 0..3 {
        while graph.work(8) > 0 {}
        submit(&mut graph);
    }
    for _ in 0..20 {
        while graph.work(8) > 0 {}
        submit(&mut graph);
        completer.complete(launched, None).unwrap();
        while graph.work(8) > 0 {}
        launched = super::super::TaskId(began.last() + 1);
    }
    began.all()
}

/// The numbers of the tasks that began, in order.
#[derive(Default)]
struct Started {
    count: AtomicU32,
    tasks: [AtomicU32; 32],
}

impl Started {
    fn note(&self, number: u64) {
        self.tasks[self.count.fetch_add(1, Ordering::SeqCst) as usize].store(number as u32, Ordering::SeqCst);
    }

    fn all(&self) -> Vec<u64> {
        let count = self.count.load(Ordering::SeqCst) as usize;
        self.tasks[..count].iter().map(|task| task.load(Ordering::SeqCst).into()).collect()
    }

    fn last(&self) -> u64 {
        *self.all().last().unwrap()
    }
}

#[test]
fn tasks_that_wait_for_a_permit_get_it_in_order_and_before_newer_tasks() {
    for ready in [Ready::Fifo, Ready::FifoPerStream, Ready::WorkSteal] {
        assert_eq!(order_of_launches(ready), (0..21).collect::<Vec<_>>(), "{ready:?}");
    }
}

#[test]
fn a_permit_goes_to_the_task_that_has_waited_longest_whatever_its_pool() {
    for ready in [Ready::WorkSteal, Ready::Fifo] {
        let workers = vec![Pool::Cpu, Pool::Device];
        let config = Config { workers, issue: Issue::Global(1), ..small(1, ready) };
        let (mut graph, mut workers, mut completer) = compile(config, |_: &Work| Ended::Launched);
        let device = Task { pool: Pool::Device, ..task(1) };
        let ids = [task(0), device, task(2)].map(|one| {
            let id = graph.try_submit(&one, &[], &[]).unwrap();
            while graph.work(8) + workers[0].work(8) > 0 {}
            id
        });
        assert_eq!(graph.observed().parked, 2);
        completer.complete(ids[0], None).unwrap();
        assert_eq!(graph.work(8), 0, "{ready:?}: the device's task has waited longer");
        assert_eq!(workers[0].work(8), 1, "{ready:?}");
        completer.complete(ids[1], None).unwrap();
        assert_eq!(graph.work(8), 1, "{ready:?}");
        completer.complete(ids[2], None).unwrap();
        assert_eq!((graph.finish().retired, graph.observed().permits_used), (3, 0));
    }
}

#[test]
fn a_task_that_waits_for_a_permit_is_not_overtaken_by_newer_tasks_of_other_gates() {
    for ready in [Ready::Fifo, Ready::FifoPerStream] {
        let began = Arc::new(Started::default());
        let noted = Arc::clone(&began);
        let body = move |work: &Work| {
            noted.note(work.task.args[0]);
            if work.task.stream == 0 { Ended::Launched } else { Ended::Done }
        };
        let (mut graph, _, mut completer) = compile(Config { issue: Issue::PerStream(1), ..small(1, ready) }, body);
        let [first, second] = [0, 1].map(|number| graph.try_submit(&task(number), &[], &[]).unwrap());
        while graph.work(8) > 0 {}
        completer.complete(first, None).unwrap();
        for number in 2..10 {
            graph.try_submit(&Task { stream: 1, ..task(number) }, &[], &[]).unwrap();
        }
        // Lanes take turns.
        graph.work(2);
        assert!(began.all().contains(&1), "{ready:?}: {:?}", began.all());
        completer.complete(second, None).unwrap();
        assert_eq!(graph.finish().retired, 10);
    }
}

#[test]
fn each_wait_for_a_permit_counts_once() {
    let (mut graph, _, mut completer) =
        compile(Config { issue: Issue::Global(1), ..small(1, Ready::Fifo) }, |_: &Work| Ended::Launched);
    let ids = [0, 1, 2].map(|number| graph.try_submit(&task(number), &[], &[]).unwrap());
    for id in ids {
        while graph.work(8) > 0 {}
        completer.complete(id, None).unwrap();
    }
    assert_eq!(graph.finish().retired, 3);
    assert_eq!(graph.worker().counted(Count::GateWaits), 2);
}

#[test]
fn a_skipped_task_and_one_that_panics_pass_on_the_permit_that_they_waited_for() {
    for cancels in [false, true] {
        let body = |work: &Work| match work.task.args[0] {
            0 => Ended::Launched,
            1 => std::panic::resume_unwind(Box::new(())),
            _ => Ended::Done,
        };
        let (mut graph, _, mut completer) = compile(Config { issue: Issue::Global(1), ..small(1, Ready::Fifo) }, body);
        let ids = [0, 1, 2].map(|number| graph.try_submit(&task(number), &[], &[]).unwrap());
        while graph.work(8) > 0 {}
        assert_eq!(graph.observed().parked, 2);
        if cancels {
            graph.cancel();
        }
        completer.complete(ids[0], None).unwrap();
        let summary = graph.finish();
        assert_eq!((summary.failed, summary.cancelled), if cancels { (0, 2) } else { (1, 0) });
        assert_eq!(graph.observed().permits_used, 0);
    }
}

#[test]
fn a_launched_task_leaves_one_event() {
    let config = Config { trace: Trace::Cycles(Filter::default()), ..small(1, Ready::Fifo) };
    let ticks = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let clock = crate::clock::Clock::virtual_time(Arc::clone(&ticks));
    let (mut graph, _, _) = of_workload(Workload::new(config), clock.clone(), |_: &Work| unreachable!("brought along"));
    graph.try_submit(&task(0), &[], &[]).unwrap();
    let mut launched = None;
    graph.worker.work_by(8, |work| {
        launched = Some(*work);
        ControlFlow::Break(Ended::Launched)
    });
    let began = clock.ticks();
    ticks.store(500, Ordering::Relaxed);
    graph.worker.end_launched_work(&launched.unwrap(), began).unwrap();
    let events: Vec<_> = graph.worker().events().map(|event| (event.task.0, event.start, event.end)).collect();
    assert_eq!(events, [(1, began, clock.ticks())]);
    assert_eq!(graph.finish().retired, 1);
}
