//! Compares the task graph with other schedulers: empty tasks, two threads.
//!
//! *Inferred*: every task names one granule that it writes and up to two regions that it reads,
//! half of them only in part; dependencies are found during submission; measured from the first
//! submission to the last retirement. *Explicit*: every task names its predecessors. *Replay*: the
//! graph was recorded; nothing is submitted. The peers know all successors before they begin
//! (counters and successor lists prepared in advance), like a replay.

use super::measure::{CLOCK, CORES, Placement, Reading, Suite, ns_per, pin_to};
use crossbeam_deque::{Steal, Stealer, Worker as Deque};
use pinwheel_engine::graph::{
    Config, Deps, Ended, Pool, Ready, Shape, Start, Submitter, Task, TaskId, Tensor, Work, Workload,
};
use pinwheel_lab::graphs::bundled::predecessors;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

const SHAPES: [(&str, u32); 5] =
    [("chain", 100_000), ("independent", 400_000), ("tree", 131_071), ("wavefront", 512 * 512), ("random", 100_000)];
/// Bytes that a task writes.
const OWN: u32 = 64;

/// A graph with its successors.
struct Dag {
    before: Vec<Vec<u32>>,
    first: Vec<u32>,
    after: Vec<u32>,
}

impl Dag {
    fn new(name: &str, tasks: u32) -> Dag {
        let before = predecessors(name, tasks).unwrap();
        let mut first = vec![0u32; before.len() + 1];
        before.iter().flatten().for_each(|one| first[*one as usize + 1] += 1);
        for at in 0..before.len() {
            first[at + 1] += first[at];
        }
        let (mut free, mut after) = (first.clone(), vec![0; *first.last().unwrap() as usize]);
        for (task, befores) in before.iter().enumerate() {
            for one in befores {
                after[free[*one as usize] as usize] = task as u32;
                free[*one as usize] += 1;
            }
        }
        Dag { before, first, after }
    }

    fn tasks(&self) -> u64 {
        self.before.len() as u64
    }

    fn successors(&self, task: u32) -> &[u32] {
        &self.after[self.first[task as usize] as usize..self.first[task as usize + 1] as usize]
    }

    fn roots(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.before.len() as u32).filter(|task| self.before[*task as usize].is_empty())
    }

    fn counters(&self) -> Vec<AtomicU32> {
        self.before.iter().map(|before| AtomicU32::new(before.len() as u32)).collect()
    }
}

pub fn register(suite: &mut Suite) {
    for (name, tasks) in SHAPES {
        let tasks = if name == "wavefront" { tasks } else { suite.effort.scale(tasks.into()) as u32 };
        let dag = Arc::new(Dag::new(name, tasks));
        let mut case = |what: &str, run: fn(&Dag) -> f64| -> Reading {
            let dag = Arc::clone(&dag);
            suite.case(format!("graph {name}, {what}"), &["total"], (Placement::CrossCore, 9), move || vec![run(&dag)])
        };
        let overlap = case("inferred overlap", |dag| ours(dag, Deps::InferBytesOverlap));
        let exact = case("inferred exact", |dag| ours(dag, Deps::InferTensorMapExact));
        let explicit = case("explicit", |dag| ours(dag, Deps::Explicit));
        let replay = case("replay", replayed);
        let rayon = case("rayon scope", rayon_scope);
        let pool = case("crossbeam-deque pool", crossbeam_pool);
        for (what, ours) in
            [("inferred_overlap", overlap), ("inferred_exact", exact), ("explicit", explicit), ("replay", replay)]
        {
            suite.figure(format!("graph/{what}_{name}"), "ns/task", ours, Some(("rayon-scope", rayon)));
            suite.figure(format!("graph/{what}_{name}"), "ns/task", ours, Some(("crossbeam-pool", pool)));
        }
    }
}

type Body = fn(&Work) -> Ended;

/// Builds a graph of two workers, the second on the other core, and runs it.
fn with_graph(dag: &Dag, deps: Deps, drive: impl FnOnce(&mut Submitter<Body>, Tensor) -> f64) -> f64 {
    let config = Config {
        deps,
        ready: Ready::WorkSteal,
        start: Start::AfterOrchestration,
        workers: vec![Pool::Cpu; 2],
        ..Config::default()
    };
    let mut workload = Workload::new(config);
    let columns = dag.tasks() as u32 * OWN;
    let tensor = workload.tensor(Shape { rows: 1, columns, element_bytes: 1, granule_bytes: OWN }).unwrap();
    let (mut graph, workers, _) = workload.compile((|_| Ended::Done) as Body, CLOCK.clone()).unwrap();
    let (is_over, is_there) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for mut worker in workers {
            let (is_over, is_there) = (&is_over, &is_there);
            scope.spawn(move || {
                pin_to(CORES.there);
                is_there.store(true, Ordering::Relaxed);
                while !is_over.load(Ordering::Relaxed) {
                    if worker.work(64) == 0 {
                        std::hint::spin_loop();
                    }
                }
            });
        }
        while !is_there.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
        let found = drive(&mut graph, tensor);
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(graph.summary().failed, 0);
        found
    })
}

fn submit(graph: &mut Submitter<Body>, dag: &Dag, deps: Deps, tensor: Tensor, first: u64) {
    let mut accesses = [tensor.range(0, 1).read(); 3];
    let mut ids = [TaskId(0); 2];
    for (number, before) in dag.before.iter().enumerate() {
        let task = Task::new(0, [number as u64, 0, 0]);
        if deps == Deps::Explicit {
            for (id, before) in ids.iter_mut().zip(before) {
                *id = TaskId(first + u64::from(*before));
            }
            graph.submit(&task, &[], &ids[..before.len()]).unwrap();
        } else {
            accesses[0] = tensor.range(number as u32 * OWN, OWN).write();
            for (place, before) in accesses[1..].iter_mut().zip(before) {
                let is_part = deps == Deps::InferBytesOverlap && before % 2 == 0;
                *place = if is_part {
                    tensor.range(before * OWN + OWN / 4, OWN / 2)
                } else {
                    tensor.range(before * OWN, OWN)
                }
                .read();
            }
            graph.submit(&task, &accesses[..=before.len()], &[]).unwrap();
        }
    }
}

/// Time from submission to retirement in the second run.
fn ours(dag: &Dag, deps: Deps) -> f64 {
    with_graph(dag, deps, |graph, tensor| {
        submit(graph, dag, deps, tensor, 1);
        graph.wait();
        let from = CLOCK.ticks();
        submit(graph, dag, deps, tensor, dag.tasks() + 1);
        graph.wait();
        ns_per(from, dag.tasks())
    })
}

fn replayed(dag: &Dag) -> f64 {
    with_graph(dag, Deps::Explicit, |graph, tensor| {
        graph.record().unwrap();
        submit(graph, dag, Deps::Explicit, tensor, 1);
        let recording = graph.end_recording().unwrap();
        graph.wait();
        let mut found = 0.0;
        for _ in 0..2 {
            let from = CLOCK.ticks();
            graph.replay(recording).unwrap();
            graph.wait();
            found = ns_per(from, dag.tasks());
        }
        found
    })
}

fn rayon_scope(dag: &Dag) -> f64 {
    fn task<'s>(scope: &rayon::Scope<'s>, dag: &'s Dag, waits: &'s [AtomicU32], ran: &'s AtomicU64, from: u32) {
        let (mut next, mut count) = (Some(from), 0);
        while let Some(now) = next.take() {
            count += 1;
            for successor in dag.successors(now) {
                if waits[*successor as usize].fetch_sub(1, Ordering::AcqRel) == 1 {
                    match next {
                        None => next = Some(*successor),
                        Some(_) => scope.spawn(move |scope| task(scope, dag, waits, ran, *successor)),
                    }
                }
            }
        }
        ran.fetch_add(count, Ordering::Relaxed);
    }
    let pin = |index: usize| pin_to(if index == 0 { CORES.here } else { CORES.there });
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).start_handler(pin).build().unwrap();
    pool.broadcast(|_| ());
    let (waits, ran) = (dag.counters(), AtomicU64::new(0));
    let from = CLOCK.ticks();
    pool.scope(|scope| {
        for root in dag.roots() {
            let (waits, ran) = (&waits, &ran);
            scope.spawn(move |scope| task(scope, dag, waits, ran, root));
        }
    });
    let found = ns_per(from, dag.tasks());
    assert_eq!(ran.load(Ordering::Relaxed), dag.tasks());
    found
}

/// Two workers over `crossbeam-deque`, each continuing with the first ready successor.
fn crossbeam_pool(dag: &Dag) -> f64 {
    let (mine, other) = (Deque::new_lifo(), Deque::new_lifo());
    let (my_stealer, other_stealer) = (mine.stealer(), other.stealer());
    let (waits, left, is_there) = (dag.counters(), AtomicU64::new(dag.tasks()), AtomicBool::new(false));
    let work = |deque: &Deque<u32>, victim: &Stealer<u32>| {
        let mut ended = 0;
        loop {
            let found = deque.pop().or_else(|| {
                left.fetch_sub(std::mem::take(&mut ended), Ordering::AcqRel);
                match victim.steal_batch_and_pop(deque) {
                    Steal::Success(task) => Some(task),
                    Steal::Empty | Steal::Retry => None,
                }
            });
            let mut next = found;
            if next.is_none() {
                if left.load(Ordering::Acquire) == 0 {
                    return;
                }
                std::hint::spin_loop();
            }
            while let Some(now) = next.take() {
                ended += 1;
                for successor in dag.successors(now) {
                    if waits[*successor as usize].fetch_sub(1, Ordering::AcqRel) == 1 {
                        match next {
                            None => next = Some(*successor),
                            Some(_) => deque.push(*successor),
                        }
                    }
                }
            }
        }
    };
    std::thread::scope(|scope| {
        let (is_there, work) = (&is_there, &work);
        scope.spawn(move || {
            pin_to(CORES.there);
            is_there.store(true, Ordering::Relaxed);
            work(&other, &my_stealer);
        });
        while !is_there.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
        let from = CLOCK.ticks();
        dag.roots().for_each(|root| mine.push(root));
        work(&mine, &other_stealer);
        ns_per(from, dag.tasks())
    })
}
