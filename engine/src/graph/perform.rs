//! Runs a described graph on threads of its own and says what that cost.
//!
//! Cold code: allocates, starts threads in a scope, returns when all is over. Two runs: one keeps every task's begin and
//! end and compares them with dependencies found by brute force, the other is timed. Bounds: the graph.

use super::bundled::NAMES;
use super::config::{Config, Deps, Pool, Trace};
use super::described::{Described, Kernel, Row, Tile};
use super::domain;
use super::region::{Access, Mode};
use super::shared::Count;
use super::submit::{SubmitError, Submitter};
use super::task::{Body, Ended, Task, TaskId, Work};
use super::trace::Event;
use super::worker::Worker;
use super::{CompileError, RecordError, Tensor, Workload};
use crate::clock::Clock;
use crate::host::pin;
use crate::units::Ticks;
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread::{Scope, ScopedJoinHandle};

/// Tasks up to which dependencies are compared by brute force with all pairs of accesses.
const PAIRS_MAX: usize = 4_096;

/// What came of it: the machine-readable result of `pinwheel graph`.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The graph.
    pub name: String,
    /// Its tasks.
    pub tasks: u64,
    /// Dependencies between tasks that were under way together.
    pub edges: u64,
    /// The order in which ready tasks were taken.
    pub policy: String,
    /// How dependencies were found.
    pub deps: String,
    /// Worker threads, the submitter's included.
    pub workers: u32,
    /// From the first submission to the last retirement.
    pub elapsed_ns: u64,
    /// The same for each task.
    pub ns_per_task: f64,
    /// Of it, until the last task was submitted (a submitter that waits for room runs tasks).
    pub submit_ns_per_task: f64,
    /// The same graph recorded and run again; none where it is too large for a recording.
    pub replay_ns_per_task: Option<f64>,
    /// Tasks a second.
    pub tasks_per_s: f64,
    /// Tasks that workers took from each other.
    pub steals: u64,
    /// Sweeps that found nothing to steal.
    pub steals_empty: u64,
    /// Submissions that found the window full.
    pub window_stalls: u64,
    /// Tasks set aside for want of a permit.
    pub gate_waits: u64,
    /// Tasks of the longest chain of dependencies; none where they are too many to be found by brute force.
    pub critical_path_tasks: Option<u32>,
    /// Dependencies that were not kept; none where they are too many to be found by brute force.
    pub order_violations: Option<u64>,
    /// Tasks that failed or were skipped.
    pub failed: u64,
}

/// Why it could not be run.
#[derive(Debug, thiserror::Error)]
pub enum PerformError {
    /// It cannot be compiled.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// A task cannot be submitted.
    #[error("task {task}: {error}")]
    Submit {
        /// Its place in the list.
        task: usize,
        /// Why.
        error: SubmitError,
    },
    /// It cannot be recorded.
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// What the bodies work on.
struct Bodies {
    graph: Arc<Described>,
    clock: Clock,
    data: Vec<Box<[AtomicU32]>>,
    spans: Option<Box<[[AtomicU64; 2]]>>,
}

impl Bodies {
    fn new(graph: &Arc<Described>, clock: &Clock, keeps_spans: bool) -> Bodies {
        let computes = graph.tasks.iter().any(|row| matches!(row.kernel, Kernel::Copy | Kernel::MultiplyAdd));
        let elements = |shape: &super::Shape| if computes { shape.rows as usize * shape.columns as usize } else { 0 };
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

    fn perform(&self, row: &Row) {
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
            self.perform(&self.graph.tasks[index]);
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

/// All tasks as they are submitted, made before anything is timed.
struct Prepared {
    tasks: Vec<(Task, Vec<Access>)>,
}

impl Prepared {
    fn new(graph: &Described, tensors: &[Tensor]) -> Prepared {
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
    described: &Described,
    prepared: &Prepared,
    truth: Option<&[Vec<u32>]>,
) -> Result<(), PerformError> {
    let first = graph.next;
    let mut after = Vec::new();
    for (index, (task, accesses)) in prepared.tasks.iter().enumerate() {
        let named = truth.map_or(&described.tasks[index].after, |truth| &truth[index]);
        after.clear();
        after.extend(named.iter().map(|before| TaskId(first + u64::from(*before))));
        let accesses = if truth.is_some() { &[][..] } else { accesses };
        graph.submit(task, accesses, &after).map_err(|error| PerformError::Submit { task: index, error })?;
    }
    Ok(())
}

/// Starts the other workers, hands the submitter to `drive`, and gives back all workers' counts and events.
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
                    // Not pinned is slower, not wrong.
                    let _ = pin::pin_current_thread(cores[index + 1]);
                }
                while !is_over.load(Ordering::Relaxed) {
                    if worker.work(64) == 0 {
                        std::hint::spin_loop();
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

/// Starts a device's worker, and behind it the thread that is the device.
fn launching<'scope>(
    scope: &'scope Scope<'scope, '_>,
    mut worker: Worker<Bodies>,
    is_over: &'scope AtomicBool,
) -> ScopedJoinHandle<'scope, Worker<Bodies>> {
    let shared = Arc::clone(&worker.shared);
    let (mut link, end) = domain::link(&shared.body.clock);
    scope.spawn(move || {
        let bodies = &shared.body;
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

/// Compiles `described` and makes what is submitted.
fn compile(
    described: &Arc<Described>,
    config: &Config,
    clock: &Clock,
    keeps_spans: bool,
) -> Result<(Threads, Prepared), PerformError> {
    let mut workload = Workload::new(config.clone());
    let tensors: Vec<Tensor> =
        described.tensors.iter().map(|shape| workload.tensor(*shape)).collect::<Result<_, _>>()?;
    let prepared = Prepared::new(described, &tensors);
    let (graph, workers, _) = workload.compile(Bodies::new(described, clock, keeps_spans), clock.clone())?;
    Ok(((graph, workers), prepared))
}

/// Runs `described` as `config` says; the report, and the times of its tasks where `config` asks for a trace.
///
/// # Errors
/// If it cannot be compiled, submitted or recorded.
pub fn perform(described: &Described, config: &Config, clock: &Clock) -> Result<(Report, Vec<Event>), PerformError> {
    let described = &Arc::new(described.clone());
    let truth = truth_of(described, config.deps);
    let named = truth.as_deref().filter(|_| config.deps == Deps::Explicit);
    let order_violations = match &truth {
        Some(truth) => Some(violations(described, config, clock, truth)?),
        None => None,
    };
    let (threads, prepared) = compile(described, config, clock, false)?;
    let (times, graph, workers) = with_workers(threads, |graph| {
        let from = clock.ticks();
        submit_all(graph, described, &prepared, named)?;
        let submitted = clock.ticks();
        graph.wait().map_err(|error| PerformError::Submit { task: 0, error })?;
        Ok::<Moment, PerformError>((from, submitted, clock.ticks()))
    });
    let (from, submitted, to) = times?;
    let replay = replayed(described, config, clock, named)?;
    let tasks = described.tasks.len() as u64;
    let nanos = |from: Ticks, to: Ticks| clock.rate().nanos(to.since(from)).0;
    let per_task = |nanos: u64| nanos as f64 / tasks as f64;
    let summary = graph.summary();
    let all = || workers.iter().chain([graph.worker()]);
    let count = |what: Count| all().map(|worker| worker.counted(what)).sum();
    let elapsed_ns = nanos(from, to);
    let report = Report {
        name: described.name.clone(),
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
        critical_path_tasks: truth.as_deref().map(critical_path),
        order_violations,
        failed: summary.failed + summary.poisoned + summary.cancelled,
    };
    let mut events: Vec<Event> = all().flat_map(|worker| worker.events().copied()).collect();
    events.sort_by_key(|event| event.start);
    Ok((report, events))
}

/// Nanoseconds of a second round of the recorded graph.
fn replayed(
    described: &Arc<Described>,
    config: &Config,
    clock: &Clock,
    named: Option<&[Vec<u32>]>,
) -> Result<Option<u64>, PerformError> {
    if described.tasks.len() > config.recorded_tasks.min(config.ready_tasks) as usize {
        return Ok(None);
    }
    let needed = described.tasks.iter().map(|row| 4 * row.accesses().count() as u32 + 8).sum::<u32>();
    let config = Config { trace: Trace::Off, map_entries: config.map_entries.max(needed), ..config.clone() };
    let (threads, prepared) = compile(described, &config, clock, false)?;
    let (span, _, _) = with_workers(threads, |graph| {
        graph.record()?;
        submit_all(graph, described, &prepared, named)?;
        let recording = graph.end_recording()?;
        let wait = |graph: &mut Submitter<Bodies>| {
            graph.wait().map(drop).map_err(|error| PerformError::Submit { task: 0, error })
        };
        wait(graph)?;
        let mut from = clock.ticks();
        for _ in 0..2 {
            from = clock.ticks();
            graph.replay(recording)?;
            wait(graph)?;
        }
        Ok::<u64, PerformError>(clock.rate().nanos(clock.ticks().since(from)).0)
    });
    span.map(Some)
}

/// Dependencies that a run with every task's times did not keep.
fn violations(
    described: &Arc<Described>,
    config: &Config,
    clock: &Clock,
    truth: &[Vec<u32>],
) -> Result<u64, PerformError> {
    let (threads, prepared) = compile(described, config, clock, true)?;
    let named = (config.deps == Deps::Explicit).then_some(truth);
    let (done, graph, _) = with_workers(threads, |graph| {
        submit_all(graph, described, &prepared, named)?;
        graph.wait().map(drop).map_err(|error| PerformError::Submit { task: 0, error })
    });
    done?;
    let Some(spans) = &graph.shared.body.spans else { return Ok(0) };
    let time = |task: usize, end: usize| spans[task][end].load(Ordering::Relaxed);
    let broken = |task: usize| truth[task].iter().filter(|before| time(**before as usize, 1) > time(task, 0)).count();
    Ok((0..truth.len()).map(|task| broken(task) as u64).sum())
}

/// Predecessors of each task: known for the bundled graphs, found among all pairs in small ones.
fn truth_of(described: &Described, deps: Deps) -> Option<Vec<Vec<u32>>> {
    let count = described.tasks.len();
    if NAMES.contains(&described.name.as_str())
        && let Some(known) = super::bundled::predecessors(&described.name, count as u32)
        && known.len() == count
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
        let row = &described.tasks[task];
        let is_before =
            |before: &usize| row.after.contains(&(*before as u32)) || conflicts(&described.tasks[*before], row);
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

/// A worker for each pool that the graph's tasks need, `processors` of them of the processor's.
#[must_use]
pub fn workers_for(described: &Described, processors: u32) -> Vec<Pool> {
    let mut workers = vec![Pool::Cpu; processors as usize];
    if described.tasks.iter().any(|row| row.on_device) {
        workers.push(Pool::Device);
    }
    workers
}

#[cfg(test)]
mod tests {
    use super::super::config::{Config, Deps, Ready};
    use super::{perform, workers_for};
    use crate::clock::Clock;
    use crate::graph::bundled;

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
                let (report, _) = perform(&graph, &config, &clock).unwrap_or_else(|error| panic!("{name}: {error}"));
                assert_eq!((report.order_violations, report.failed), (Some(0), 0), "{name} {ready:?} {deps:?}");
                assert!(report.replay_ns_per_task.is_some() && report.critical_path_tasks >= Some(1));
            }
        }
    }
}
