//! Runs a task graph on threads of its own and measures it.
//!
//! Cold code: allocates, starts threads in a scope, and returns when all have ended. There are two
//! runs. The first keeps every task's begin and end and checks them against dependencies found by
//! brute force; the second is timed.

use super::bundled;
use super::domain;
use super::graph_spec::{GraphSpec, Kernel, Row, Tile};
use crate::clock::Clock;
use crate::graph::{
    Access, Body, CompileError, Config, Count, Deps, Ended, Event, Mode, Pool, RecordError, Shape, SubmitError,
    Submitter, Task, TaskId, Tensor, Trace, Work, Worker, Workload,
};
use crate::host::pin;
use crate::units::Ticks;
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

/// Largest number of tasks for which dependencies are found by comparing all pairs of accesses.
const PAIRS_MAX: usize = 4_096;
/// Looks of a worker that find nothing, after which it sleeps for [`PAUSE`] before the next.
const LOOKS_MAX: u32 = 10_000;
const PAUSE: Duration = Duration::from_micros(50);

/// The result of a run: the JSON of `pinwheel graph`.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Name of the graph.
    pub name: String,
    /// Number of tasks.
    pub tasks: u64,
    /// Dependencies between tasks that were under way at the same time.
    pub edges: u64,
    /// The order in which ready tasks ran.
    pub policy: String,
    /// How dependencies were found.
    pub deps: String,
    /// Number of worker threads, including the submitter's.
    pub workers: u32,
    /// Time from the first submission to the last retirement, nanoseconds.
    pub elapsed_ns: u64,
    /// The same, for each task.
    pub ns_per_task: f64,
    /// Time until the last submission, for each task; a submitter that waits for room runs tasks
    /// meanwhile.
    pub submit_ns_per_task: f64,
    /// Time of the recorded graph's second run, for each task; none if the graph is too large to
    /// record.
    pub replay_ns_per_task: Option<f64>,
    /// Tasks per second.
    pub tasks_per_s: f64,
    /// Tasks that workers stole from each other.
    pub steals: u64,
    /// Searches that found nothing to steal.
    pub steals_empty: u64,
    /// Submissions that found the window full at first.
    pub window_stalls: u64,
    /// Tasks that had to wait for a permit.
    pub gate_waits: u64,
    /// Tasks of the longest chain of dependencies; none if the graph is too large for brute force.
    pub critical_path_tasks: Option<u32>,
    /// Dependencies that were violated; none if the graph is too large for brute force.
    pub order_violations: Option<u64>,
    /// Tasks that failed or were skipped.
    pub failed: u64,
}

/// Why a graph could not be run.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum RunError {
    #[error(transparent)]
    Compile(#[from] CompileError),
    #[error(
        "found {tasks} tasks that name none before them, expected at most {PAIRS_MAX} for --deps explicit to find those; \
         take --deps overlap or fewer tasks"
    )]
    Explicit { tasks: usize },
    #[error("task {task}: {error}")]
    Submit { task: usize, error: SubmitError },
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// Shared state of the bodies: graph, elements, times.
#[derive(Clone)]
struct Bodies {
    graph: Arc<GraphSpec>,
    clock: Clock,
    data: Arc<[Box<[AtomicU32]>]>,
    spans: Option<Arc<[[AtomicU64; 2]]>>,
}

impl Bodies {
    fn new(graph: &Arc<GraphSpec>, clock: &Clock, keeps_spans: bool) -> Bodies {
        let computes = graph.computes();
        let elements = |shape: &Shape| if computes { shape.rows as usize * shape.columns as usize } else { 0 };
        let one = || AtomicU32::new(1.0f32.to_bits());
        Bodies {
            data: graph.tensors.iter().map(|shape| (0..elements(shape)).map(|_| one()).collect()).collect(),
            spans: keeps_spans.then(|| graph.tasks.iter().map(|_| Default::default()).collect()),
            graph: Arc::clone(graph),
            clock: clock.clone(),
        }
    }

    fn at(&self, tile: Tile, row: u32, column: u32) -> &AtomicU32 {
        let columns = self.graph.tensors[tile.0 as usize].columns as usize;
        &self.data[tile.0 as usize][(tile.1 + row) as usize * columns + (tile.2 + column) as usize]
    }

    fn run_kernel(&self, row: &Row) {
        match row.kernel {
            Kernel::Empty => {}
            Kernel::Spin(nanos) => {
                let from = self.clock.ticks();
                let span = self.clock.rate().ticks(crate::units::Nanos(nanos.into()));
                while self.clock.ticks().since(from) < span {
                    std::hint::spin_loop();
                }
            }
            Kernel::Copy => {
                let Some(to) = row.updates.first().or(row.writes.first()) else { return };
                let from = row.reads[0];
                for (row, column) in
                    (0..from.3.min(to.3)).flat_map(|row| (0..from.4.min(to.4)).map(move |at| (row, at)))
                {
                    let value = self.at(from, row, column).load(Ordering::Relaxed);
                    self.at(*to, row, column).store(value, Ordering::Relaxed);
                }
            }
            Kernel::MultiplyAdd => self.multiply_add(row.reads[0], row.reads[1], row.updates[0]),
        }
    }

    fn multiply_add(&self, a: Tile, b: Tile, c: Tile) {
        let value = |tile, row, column| f32::from_bits(self.at(tile, row, column).load(Ordering::Relaxed));
        for (row, column) in (0..c.3).flat_map(|row| (0..c.4).map(move |column| (row, column))) {
            let product: f32 = (0..a.4).map(|k| value(a, row, k) * value(b, k, column)).sum();
            let sum = value(c, row, column) + product;
            self.at(c, row, column).store(sum.to_bits(), Ordering::Relaxed);
        }
    }
}

impl Bodies {
    #[inline(always)]
    fn run_task(&self, index: usize, kernel: u16) {
        if let Some(spans) = &self.spans {
            spans[index][0].store(self.clock.ticks().0, Ordering::Relaxed);
        }
        if kernel != 0 {
            self.run_kernel(&self.graph.tasks[index]);
        }
        if let Some(spans) = &self.spans {
            spans[index][1].store(self.clock.ticks().0, Ordering::Relaxed);
        }
    }
}

impl Body for Bodies {
    #[inline(always)]
    fn run(&self, work: &Work) -> Ended {
        self.run_task(work.task.args[0] as usize, work.task.kernel);
        Ended::Done
    }
}

/// All tasks and their accesses, prepared before the measurement.
struct Prepared {
    tasks: Vec<(Task, Vec<Access>)>,
}

impl Prepared {
    fn new(graph: &GraphSpec, tensors: &[Tensor]) -> Prepared {
        let task = |(index, row): (usize, &Row)| {
            let region = |tile: Tile| tensors[tile.0 as usize].tile(tile.1, tile.2, tile.3, tile.4);
            let accesses = row.accesses().map(|(tile, mode)| Access { region: region(tile), mode }).collect();
            let (kernel, pool, stream) = (row.kernel.number(), row.pool(), row.stream);
            (Task { kernel, pool, stream, args: [index as u64, 0, 0] }, accesses)
        };
        Prepared { tasks: graph.tasks.iter().enumerate().map(task).collect() }
    }
}

type Moment = (Ticks, Ticks, Ticks);
/// The submitter, and the workers that need threads.
type Threads = (Submitter<Bodies>, Vec<Worker<Bodies>>);

fn submit_all(
    graph: &mut Submitter<Bodies>,
    spec: &GraphSpec,
    prepared: &Prepared,
    reference: Option<&[Vec<u32>]>,
) -> Result<(), RunError> {
    let mut first = 0;
    let mut after = Vec::new();
    for (index, (task, accesses)) in prepared.tasks.iter().enumerate() {
        let named = reference.map_or(&spec.tasks[index].after, |reference| &reference[index]);
        after.clear();
        after.extend(named.iter().map(|before| TaskId(first + u64::from(*before))));
        let accesses = if reference.is_some() { &[][..] } else { accesses };
        let number = graph.submit(task, accesses, &after).map_err(|error| RunError::Submit { task: index, error })?;
        if index == 0 {
            first = number.0;
        }
    }
    Ok(())
}

/// Starts the other workers, calls `drive` with the submitter, and returns all workers' counts and
/// events.
fn with_workers<R>(
    (mut graph, workers): Threads,
    drive: impl FnOnce(&mut Submitter<Bodies>) -> R,
) -> (R, Submitter<Bodies>, Vec<Worker<Bodies>>) {
    let is_over = AtomicBool::new(false);
    let cores = pin::allowed_cores().unwrap_or_default();
    let pins = cores.len() > workers.len();
    std::thread::scope(|scope| {
        let (is_over, cores) = (&is_over, &cores);
        let start = |(index, mut worker): (usize, Worker<Bodies>)| {
            if worker.pool() != Pool::Cpu {
                return launching(scope, worker, is_over);
            }
            scope.spawn(move || {
                if pins {
                    // An unpinned worker is slower, not wrong.
                    let _ = pin::pin_current_thread(cores[index + 1]);
                }
                let mut looks = 0;
                while !is_over.load(Ordering::Relaxed) {
                    looks = if worker.work(64) > 0 { 0 } else { LOOKS_MAX.min(looks + 1) };
                    if looks < LOOKS_MAX {
                        std::hint::spin_loop();
                    } else {
                        // Where there are more threads than cores, whoever has the work needs this one.
                        std::thread::park_timeout(PAUSE);
                    }
                }
                worker
            })
        };
        let threads: Vec<_> = workers.into_iter().enumerate().map(start).collect();
        let result = drive(&mut graph);
        is_over.store(true, Ordering::Relaxed);
        let back = threads.into_iter().filter_map(|thread| thread.join().ok()).collect();
        (result, graph, back)
    })
}

/// Starts a device's worker and the thread that stands for the device.
fn launching<'scope>(
    scope: &'scope Scope<'scope, '_>,
    mut worker: Worker<Bodies>,
    is_over: &'scope AtomicBool,
) -> ScopedJoinHandle<'scope, Worker<Bodies>> {
    let bodies = worker.body().clone();
    let (mut link, end) = domain::link(&bodies.clock);
    scope.spawn(move || {
        domain::serve(end, is_over, |place| {
            bodies.run_task(place as usize, bodies.graph.tasks[place as usize].kernel.number());
        });
    });
    scope.spawn(move || {
        while !is_over.load(Ordering::Relaxed) {
            let done = link.step(&mut worker).expect("nobody else ends a task of the device");
            if done == 0 {
                std::thread::yield_now();
            }
        }
        worker
    })
}

/// Compiles a graph and prepares its submission.
fn compile(
    spec: &Arc<GraphSpec>,
    config: &Config,
    clock: &Clock,
    keeps_spans: bool,
) -> Result<(Threads, Prepared), RunError> {
    let mut workload = Workload::new(config.clone());
    let tensors: Vec<Tensor> = spec.tensors.iter().map(|shape| workload.tensor(*shape)).collect::<Result<_, _>>()?;
    let prepared = Prepared::new(spec, &tensors);
    let (graph, workers, _) = workload.compile(Bodies::new(spec, clock, keeps_spans), clock.clone())?;
    Ok(((graph, workers), prepared))
}

/// Runs a graph under `config`. Returns the report, and the times of tasks if `config` asks for a
/// trace.
///
/// # Errors
/// If it cannot be compiled, submitted or recorded.
pub fn run_graph(spec: &GraphSpec, config: &Config, clock: &Clock) -> Result<(Report, Vec<Event>), RunError> {
    let spec = &Arc::new(spec.clone());
    let reference = reference_of(spec, config.deps);
    let named = reference.as_deref().filter(|_| config.deps == Deps::Explicit);
    if config.deps == Deps::Explicit && named.is_none() && spec.tasks.iter().all(|row| row.after.is_empty()) {
        return Err(RunError::Explicit { tasks: spec.tasks.len() });
    }
    let order_violations = match &reference {
        Some(reference) => Some(violations(spec, config, clock, reference)?),
        None => None,
    };
    let (threads, prepared) = compile(spec, config, clock, false)?;
    let (times, graph, workers) = with_workers(threads, |graph| {
        let from = clock.ticks();
        submit_all(graph, spec, &prepared, named)?;
        let submitted = clock.ticks();
        graph.wait();
        Ok::<Moment, RunError>((from, submitted, clock.ticks()))
    });
    let (from, submitted, to) = times?;
    let replay = replayed(spec, config, clock, named)?;
    let tasks = spec.tasks.len() as u64;
    let nanos = |from: Ticks, to: Ticks| clock.rate().nanos(to.since(from)).0;
    let per_task = |nanos: u64| nanos as f64 / tasks as f64;
    let summary = graph.summary();
    let all = || workers.iter().chain([graph.worker()]);
    let count = |what: Count| all().map(|worker| worker.counted(what)).sum();
    let elapsed_ns = nanos(from, to);
    let report = Report {
        name: spec.name.clone(),
        tasks,
        edges: summary.edges,
        policy: format!("{:?}", config.ready_policy()),
        deps: format!("{:?}", config.deps),
        workers: config.workers.len() as u32,
        elapsed_ns,
        ns_per_task: per_task(elapsed_ns),
        submit_ns_per_task: per_task(nanos(from, submitted)),
        replay_ns_per_task: replay.map(per_task),
        tasks_per_s: tasks as f64 * 1e9 / elapsed_ns.max(1) as f64,
        steals: count(Count::Stolen),
        steals_empty: count(Count::StealsEmpty),
        window_stalls: summary.stalls,
        gate_waits: count(Count::GateWaits),
        critical_path_tasks: reference.as_deref().map(critical_path),
        order_violations,
        failed: summary.failed + summary.poisoned + summary.cancelled,
    };
    let mut events: Vec<Event> = all().flat_map(|worker| worker.events().copied()).collect();
    events.sort_by_key(|event| event.start);
    Ok((report, events))
}

/// Nanoseconds of the recorded graph's second round.
fn replayed(
    spec: &Arc<GraphSpec>,
    config: &Config,
    clock: &Clock,
    named: Option<&[Vec<u32>]>,
) -> Result<Option<u64>, RunError> {
    if spec.tasks.len() > config.recorded_tasks.min(config.ready_tasks) as usize {
        return Ok(None);
    }
    let needed = spec.tasks.iter().map(|row| 4 * row.accesses().count() as u32 + 8).sum::<u32>();
    let config = Config { trace: Trace::Off, map_entries: config.map_entries.max(needed), ..config.clone() };
    let (threads, prepared) = compile(spec, &config, clock, false)?;
    let (span, _, _) = with_workers(threads, |graph| {
        graph.record()?;
        submit_all(graph, spec, &prepared, named)?;
        let recording = graph.end_recording()?;
        graph.wait();
        let mut from = clock.ticks();
        for _ in 0..2 {
            from = clock.ticks();
            graph.replay(recording)?;
            graph.wait();
        }
        Ok::<u64, RunError>(clock.rate().nanos(clock.ticks().since(from)).0)
    });
    span.map(Some)
}

/// Number of dependencies that a run violated.
fn violations(spec: &Arc<GraphSpec>, config: &Config, clock: &Clock, reference: &[Vec<u32>]) -> Result<u64, RunError> {
    let (threads, prepared) = compile(spec, config, clock, true)?;
    let named = (config.deps == Deps::Explicit).then_some(reference);
    let (done, graph, _) = with_workers(threads, |graph| {
        submit_all(graph, spec, &prepared, named)?;
        graph.wait();
        Ok::<(), RunError>(())
    });
    done?;
    let Some(spans) = &graph.worker().body().spans else { return Ok(0) };
    let time = |task: usize, end: usize| spans[task][end].load(Ordering::Relaxed);
    let broken =
        |task: usize| reference[task].iter().filter(|before| time(**before as usize, 1) > time(task, 0)).count();
    Ok((0..reference.len()).map(|task| broken(task) as u64).sum())
}

/// Predecessors of each task: known for bundled graphs, found by brute force in small ones.
fn reference_of(spec: &GraphSpec, deps: Deps) -> Option<Vec<Vec<u32>>> {
    let count = spec.tasks.len();
    // A graph of a file may have the name of a bundled one.
    if let Some(known) = bundled::predecessors(&spec.name, count as u32)
        && bundled::bundled(&spec.name, count as u32).is_some_and(|bundled| bundled == *spec)
    {
        return Some(known);
    }
    if count > PAIRS_MAX {
        return None;
    }
    let conflicts = |before: &Row, row: &Row| {
        before.accesses().any(|(first, mode)| {
            row.accesses().any(|(second, other)| match deps {
                Deps::InferTensorMapExact => mode != Mode::In && other != Mode::Out && first == second,
                _ => (mode != Mode::In || other != Mode::In) && overlaps(first, second),
            })
        })
    };
    let before = |task: usize| {
        let row = &spec.tasks[task];
        let is_before = |before: &usize| row.after.contains(&(*before as u32)) || conflicts(&spec.tasks[*before], row);
        (0..task).filter(is_before).map(|before| before as u32).collect()
    };
    Some((0..count).map(before).collect())
}

fn overlaps(a: Tile, b: Tile) -> bool {
    let meet = |first: u32, count: u32, other: u32, others: u32| first < other + others && other < first + count;
    a.0 == b.0 && meet(a.1, a.3, b.1, b.3) && meet(a.2, a.4, b.2, b.4)
}

fn critical_path(predecessors: &[Vec<u32>]) -> u32 {
    let mut depth = vec![1u32; predecessors.len()];
    for (task, before) in predecessors.iter().enumerate() {
        depth[task] = 1 + before.iter().map(|before| depth[*before as usize]).max().unwrap_or(0);
    }
    depth.into_iter().max().unwrap_or(0)
}

/// A worker for each pool that the graph needs, `processors` of them for the processor's pool.
pub fn workers_for(spec: &GraphSpec, processors: u32) -> Vec<Pool> {
    let mut workers = vec![Pool::Cpu; processors as usize];
    if spec.tasks.iter().any(|row| row.on_device) {
        workers.push(Pool::Device);
    }
    workers
}

#[cfg(test)]
mod tests {
    use super::super::bundled;
    use super::super::graph_spec::GraphSpec;
    use super::{run_graph, workers_for};
    use crate::clock::Clock;
    use crate::graph::{Config, Deps, Ready};

    /// It was judged by the dependencies of the bundled graph, and run by them where they are explicit.
    #[test]
    fn a_graph_with_the_name_of_a_bundled_one_has_its_own_dependencies() {
        let tasks = "(kernel: Spin(1000), writes: [(0, 0, 0, 1, 64)]),".repeat(2)
            + "(kernel: Spin(1000), writes: [(0, 0, 64, 1, 64)]),";
        let text = format!(r#"(name: "chain", tensors: [(1, 128, 1, 64)], tasks: [{tasks}])"#);
        let graph = GraphSpec::parse(&text).unwrap_or_else(|error| panic!("{error}"));
        for deps in [Deps::InferBytesOverlap, Deps::Explicit] {
            let config = Config { deps, workers: workers_for(&graph, 1), ..Config::default() };
            let (report, _) =
                run_graph(&graph, &config, &Clock::machine()).unwrap_or_else(|error| panic!("{deps:?}: {error}"));
            assert_eq!((report.critical_path_tasks, report.order_violations), (Some(2), Some(0)), "{deps:?}");
        }
    }

    #[test]
    fn a_graph_without_known_dependencies_is_not_run_in_any_order() {
        let graph = bundled::bundled("matmul", 6_000).unwrap_or_else(|| panic!("it is bundled"));
        let config = Config { deps: Deps::Explicit, workers: workers_for(&graph, 1), ..Config::default() };
        let said = run_graph(&graph, &config, &Clock::machine()).map_err(|error| error.to_string());
        assert!(said.is_err_and(|said| said.contains("found 5832 tasks that name none before them")));
    }

    #[test]
    fn bundled_graphs_run_in_order_under_every_policy() {
        let clock = Clock::machine();
        for name in bundled::NAMES {
            for (ready, deps) in [
                (Ready::WorkSteal, Deps::InferBytesOverlap),
                (Ready::Fifo, Deps::InferBytesOverlap),
                (Ready::FifoPerStream, Deps::Explicit),
                (Ready::WorkSteal, Deps::Explicit),
            ] {
                let graph = bundled::bundled(name, 300).unwrap_or_else(|| panic!("{name} is bundled"));
                let workers = workers_for(&graph, 2);
                let config = Config { ready, deps, workers, window_tasks: 64, ready_tasks: 4_096, ..Config::default() };
                let (report, _) = run_graph(&graph, &config, &clock).unwrap_or_else(|error| panic!("{name}: {error}"));
                assert_eq!((report.order_violations, report.failed), (Some(0), 0), "{name} {ready:?} {deps:?}");
                assert!(report.replay_ns_per_task.is_some() && report.critical_path_tasks >= Some(1));
            }
        }
    }
}
