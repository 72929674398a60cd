//! What graphs promise: oracles, the known hazards, failures at every point.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, clippy::disallowed_types, reason = "harness")]

mod failures;
mod hazards;
mod oracle;
mod policies;
mod recordings;

use super::{Compiled, Config, Deps, Ended, Pool, Ready, Submitter, Summary, Task, TaskId, Work, Workload};
use crate::clock::Clock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// A small deterministic generator (xorshift64*).
pub(super) struct Seeded(pub(super) u64);

impl Seeded {
    pub(super) fn below(&mut self, bound: u32) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % u64::from(bound)) as u32
    }
}

/// Small explicit graphs.
pub(super) fn small(workers: usize, ready: Ready) -> Config {
    Config {
        deps: Deps::Explicit,
        ready,
        workers: vec![Pool::Cpu; workers],
        window_tasks: 64,
        map_entries: 256,
        spill_links: 64,
        ready_tasks: 1_024,
        granules: 1_024,
        streams: 4,
        ..Config::default()
    }
}

pub(super) fn clock() -> Clock {
    Clock::virtual_time(std::sync::Arc::new(AtomicU64::new(0)))
}

/// Any body: one type, so that the runtime is compiled once for all tests.
pub(super) type Boxed = Box<dyn Fn(&Work) -> Ended + Send + Sync>;

pub(super) fn compile(config: Config, body: impl Fn(&Work) -> Ended + Send + Sync + 'static) -> Compiled<Boxed> {
    of_workload(Workload::new(config), clock(), body)
}

pub(super) fn of_workload(
    workload: Workload,
    clock: Clock,
    body: impl Fn(&Work) -> Ended + Send + Sync + 'static,
) -> Compiled<Boxed> {
    workload.compile(Box::new(body) as Boxed, clock).unwrap()
}

/// A task whose only argument is `number`.
pub(super) fn task(number: u64) -> Task {
    Task::new(0, [number, 0, 0])
}

/// Drives the other workers on threads of their own while `drive` has the submitter.
pub(super) fn drive<R>(compiled: Compiled<Boxed>, drive: impl FnOnce(&mut Submitter<Boxed>) -> R) -> R {
    let (mut graph, workers, _completer) = compiled;
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for mut worker in workers {
            let is_over = &is_over;
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    if worker.work(16) == 0 {
                        std::thread::yield_now();
                    }
                }
            });
        }
        let result = drive(&mut graph);
        is_over.store(true, Ordering::Relaxed);
        result
    })
}

/// When each task of a graph began and ended, by a common counter.
#[derive(Default)]
pub(super) struct Log {
    turn: AtomicU32,
    spans: Vec<[AtomicU32; 2]>,
}

impl Log {
    pub(super) fn new(tasks: usize) -> std::sync::Arc<Log> {
        let spans = (0..tasks).map(|_| [AtomicU32::new(0), AtomicU32::new(0)]).collect();
        std::sync::Arc::new(Log { turn: AtomicU32::new(1), spans })
    }

    pub(super) fn run(&self, task: u64) {
        let span = &self.spans[task as usize];
        let before = span[0].swap(self.turn.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
        assert_eq!(before, 0, "task {task} ran twice");
        span[1].store(self.turn.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
    }

    pub(super) fn has_run(&self, task: usize) -> bool {
        self.spans[task][1].load(Ordering::SeqCst) > 0
    }

    pub(super) fn began(&self, task: usize) -> u32 {
        self.spans[task][0].load(Ordering::SeqCst)
    }

    pub(super) fn is_before(&self, first: usize, second: usize) -> bool {
        self.has_run(first) && self.spans[first][1].load(Ordering::SeqCst) < self.began(second)
    }

    pub(super) fn body(self: &std::sync::Arc<Log>) -> impl Fn(&Work) -> Ended + Send + Sync + 'static {
        let log = std::sync::Arc::clone(self);
        move |work: &Work| {
            log.run(work.task.args[0]);
            Ended::Done
        }
    }
}

#[test]
fn an_empty_graph_ends() {
    let (mut graph, _, _) = compile(small(1, Ready::WorkSteal), |_: &Work| Ended::Done);
    assert_eq!(graph.finish(), Summary::default());
    assert_eq!(graph.status(TaskId(1)), super::Status::UnderWay, "nobody has that number yet");
}
