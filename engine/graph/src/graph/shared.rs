//! State that the submitter and the workers share: records, window, queues, gates.
//!
//! Built once when a graph is compiled; bounded by the configuration. `queue` contains all
//! orderings; the atomics here are flags that publish nothing.

use super::config::{Config, Issue, Overflow, POOLS, Placement, Pool, Ready};
use super::replay::Recording;
use super::task::{CANCELLED, Reason, Task, TaskId};
use crate::clock::Clock;
use pinwheel_edge::queue::deque::Thief;
use pinwheel_edge::queue::fanout::Fanout;
use pinwheel_edge::queue::fifo::Fifo;
use pinwheel_edge::queue::gate::Gate;
use pinwheel_edge::queue::window::Window;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Marks an item of a recording: bits 32 to 47 are the recording's number, the low bits the task's
/// index.
pub(super) const RECORDED: u64 = 1 << 63;
/// Set together with it: grants the right to start the recording's root tasks.
pub(super) const ROOTS: u64 = 1 << 62;
/// Set in an item whose task has its permit before a worker takes it up.
pub(super) const PERMIT: u64 = 1 << 61;

/// Counters of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Count {
    /// Tasks run or skipped.
    Ran,
    /// Of these, tasks that failed.
    Failed,
    /// Of these, tasks that were skipped because they were poisoned or cancelled.
    Skipped,
    /// Tasks stolen.
    Stolen,
    /// Searches that found nothing to steal.
    StealsEmpty,
    /// Attempts to steal that another thief won.
    StealsLost,
    /// Tasks moved to where thieves find them.
    Offered,
    /// Tasks that had to wait for a permit.
    GateWaits,
    /// Batches released because they were full.
    FlushesFull,
    /// Batches released because their first task had waited too long.
    FlushesLate,
    /// Batches released because there was nothing else to do.
    FlushesIdle,
    /// Batches released because the worker's turn ended.
    FlushesReturn,
    /// Trace events dropped for want of room.
    EventsDropped,
}

impl Count {
    /// All counters, in the order of their numbers.
    pub const ALL: [Count; COUNTS] = [
        Count::Ran,
        Count::Failed,
        Count::Skipped,
        Count::Stolen,
        Count::StealsEmpty,
        Count::StealsLost,
        Count::Offered,
        Count::GateWaits,
        Count::FlushesFull,
        Count::FlushesLate,
        Count::FlushesIdle,
        Count::FlushesReturn,
        Count::EventsDropped,
    ];
}

/// Number of counters.
pub const COUNTS: usize = 13;

/// Where a ready item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Routed {
    /// In a queue.
    Sent,
    /// With the worker that released it.
    Kept,
    /// Nowhere yet: its queue has no room.
    Full,
}

/// A task that failed, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The task.
    pub task: TaskId,
    /// The reason.
    pub reason: Reason,
}

pub(super) struct Shared<B> {
    pub(super) body: B,
    pub(super) clock: Clock,
    pub(super) config: Config,
    pub(super) ready: Ready,
    pub(super) fanout: Fanout,
    pub(super) window: Window,
    pub(super) thieves: Box<[Thief]>,
    /// For each worker, tasks that others send it.
    pub(super) inboxes: Box<[Fifo<u64>]>,
    /// Of each pool with workers, for each of `lanes`.
    queues: [Box<[Fifo<u64>]>; POOLS],
    pub(super) gates: Box<[Gate]>,
    /// For each gate, the tasks that wait for a permit, of all pools.
    parked: Box<[Fifo<u64>]>,
    /// For each record, whether its task is in `parked`; of no record if there is no gate.
    is_parked: Box<[AtomicBool]>,
    pub(super) recordings: Box<[OnceLock<Recording>]>,
    pub(super) failures: Fifo<Failure>,
    /// Not 0 once cancelled. A worker that sees it late runs a few tasks more.
    pub(super) cancelled: AtomicU32,
    pub(super) number_bits: u32,
    slot_mask: u32,
    /// A ready task always goes to the worker that released it.
    is_plain: bool,
    workers_of_pool: [Box<[u32]>; POOLS],
}

impl<B> Shared<B> {
    pub(super) fn new(config: Config, body: B, clock: Clock, thieves: Box<[Thief]>) -> Shared<B> {
        let records = config.records();
        let ready = config.ready_policy();
        let lanes = if ready == Ready::FifoPerStream { config.streams } else { 1 };
        let depth = if ready == Ready::Fifo { config.ready_tasks.max(records) } else { records };
        let workers_of_pool: [Box<[u32]>; POOLS] = std::array::from_fn(|pool| {
            let is_its = |(index, of): (usize, &Pool)| (*of as usize == pool).then_some(index as u32);
            config.workers.iter().enumerate().filter_map(is_its).collect()
        });
        let queues = std::array::from_fn(|pool| {
            let lanes = if workers_of_pool[pool].is_empty() { 0 } else { lanes };
            (0..lanes).map(|_| Fifo::new(depth as usize)).collect()
        });
        let (gates, permits) = match config.issue {
            Issue::Open => (0, 1),
            Issue::Global(permits) => (1, permits),
            Issue::PerStream(permits) => (config.streams, permits),
            Issue::PerPool(permits) => (POOLS as u32, permits),
        };
        let window = match config.overflow {
            Overflow::Benchmark => config.slab_tasks.max(config.window_tasks),
            Overflow::Stall | Overflow::Abort => config.window_tasks,
        };
        let fifos = |count: u32| (0..count).map(|_| Fifo::new(records as usize)).collect();
        Shared {
            fanout: Fanout::new(records, config.spilled()),
            window: Window::new(window.into(), 1),
            inboxes: fifos(config.workers.len() as u32),
            queues,
            gates: (0..gates).map(|_| Gate::new(permits.into())).collect(),
            parked: fifos(gates),
            is_parked: (0..if gates == 0 { 0 } else { records }).map(|_| AtomicBool::new(false)).collect(),
            recordings: (0..config.recordings).map(|_| OnceLock::new()).collect(),
            failures: Fifo::new(config.failures as usize),
            cancelled: AtomicU32::new(0),
            number_bits: records.trailing_zeros(),
            slot_mask: records - 1,
            is_plain: ready == Ready::WorkSteal
                && config.placement == Placement::Releaser
                && config.workers.iter().all(|pool| *pool == config.workers[0]),
            workers_of_pool,
            body,
            clock,
            ready,
            thieves,
            config,
        }
    }

    /// The record of a task.
    #[inline(always)]
    pub(super) fn slot(&self, task: u64) -> u32 {
        task as u32 & self.slot_mask
    }

    /// Bits of an item that are its record.
    #[inline(always)]
    pub(super) fn fanout_mask(&self) -> u32 {
        self.slot_mask
    }

    /// The generation of its record that the task's number contains.
    #[inline(always)]
    pub(super) fn generation(&self, task: u64) -> u32 {
        (task >> self.number_bits) as u32
    }

    /// The number of the task that has this record now.
    #[inline(always)]
    pub(super) fn id(&self, slot: u32) -> TaskId {
        TaskId(u64::from(self.fanout.generation(slot)) << self.number_bits | u64::from(slot))
    }

    /// Whether a pool has workers.
    pub(super) fn serves(&self, pool: Pool) -> bool {
        !self.workers_of_pool[pool as usize].is_empty()
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed) != 0
    }

    pub(super) fn queues(&self, pool: Pool) -> &[Fifo<u64>] {
        &self.queues[pool as usize]
    }

    /// The queues of the pool with this number.
    pub(super) fn queues_at(&self, pool: usize) -> &[Fifo<u64>] {
        &self.queues[pool]
    }

    /// Number of tasks that wait for a permit.
    pub(super) fn parked(&self) -> u64 {
        self.parked.iter().map(Fifo::depth).sum()
    }

    /// Whether the task of a record waits for a permit.
    pub(super) fn is_parked(&self, slot: u32) -> bool {
        self.is_parked.get(slot as usize).is_some_and(|is_parked| is_parked.load(Ordering::Relaxed))
    }

    fn note_parked(&self, item: u64, is_parked: bool) {
        if item & RECORDED == 0 {
            self.is_parked[item as u32 as usize].store(is_parked, Ordering::Relaxed);
        }
    }

    /// Sets a task aside until it gets a permit of `gate`. Returns false if there is no room.
    pub(super) fn park(&self, item: u64, gate: usize) -> bool {
        self.note_parked(item, true);
        let has_room = self.parked[gate].push(item).is_ok();
        if !has_room {
            self.note_parked(item, false);
        }
        has_room
    }

    /// The task that has waited longest for a permit of `gate`, which the caller has for it.
    fn unpark(&self, gate: usize) -> Option<u64> {
        let item = self.parked[gate].pop()?;
        self.note_parked(item, false);
        Some(item | PERMIT)
    }

    /// If a permit of `gate` is free, gives it to the task that has waited longest, which is ready then.
    pub(super) fn admit(&self, gate: usize) -> Option<u64> {
        if self.parked[gate].depth() == 0 {
            return None;
        }
        let permit = self.gates[gate].enter()?;
        let item = self.unpark(gate)?;
        permit.keep();
        Some(item)
    }

    /// Passes a permit on to the task that has waited longest, which is ready then; gives it back if none waits.
    ///
    /// # Why
    /// A permit that is free for a moment could be a newer task's, again and again.
    pub(super) fn pass_on_permit(&self, gate: usize) -> Option<u64> {
        self.unpark(gate).or_else(|| {
            self.gates[gate].leave();
            // A task may have been set aside before that.
            self.admit(gate)
        })
    }

    /// The gate that a task passes, if any.
    #[inline(always)]
    pub(super) fn gate_of(&self, task: &Task) -> Option<usize> {
        if self.gates.is_empty() {
            return None;
        }
        match self.config.issue {
            Issue::Open => None,
            Issue::Global(_) => Some(0),
            Issue::PerStream(_) => Some((task.stream % self.config.streams) as usize),
            Issue::PerPool(_) => Some(task.pool as usize),
        }
    }

    /// The task that an item stands for.
    #[inline]
    pub(super) fn task_of(&self, item: u64) -> Task {
        match self.recorded(item) {
            Some((recording, index)) => recording.task(index),
            None => Task::of_words(self.fanout.payload(item as u32)),
        }
    }

    /// The recording of an item, and the task's index in it.
    #[inline(always)]
    pub(super) fn recorded(&self, item: u64) -> Option<(&Recording, usize)> {
        if item & RECORDED == 0 {
            return None;
        }
        let recording = self.recordings[(item >> 32) as usize & 0xFFFF].get();
        recording.map(|recording| (recording, item as u32 as usize))
    }

    /// Sends a ready item to its queue, unless the releasing worker keeps it.
    #[inline(always)]
    pub(super) fn route(&self, item: u64, worker: Option<u32>) -> Routed {
        if self.is_plain && worker.is_some() {
            return Routed::Kept;
        }
        self.route_by_task(item, worker)
    }

    #[inline(never)]
    fn route_by_task(&self, item: u64, worker: Option<u32>) -> Routed {
        let task = self.task_of(item);
        let queues = self.queues(task.pool);
        if self.ready != Ready::WorkSteal {
            return send(&queues[task.stream as usize % queues.len()], item);
        }
        let its_workers = &self.workers_of_pool[task.pool as usize];
        let target = match self.config.placement {
            Placement::ByStream => Some(its_workers[task.stream as usize % its_workers.len()]),
            Placement::Releaser => worker.filter(|worker| its_workers.contains(worker)),
        };
        match target {
            Some(target) if Some(target) == worker => Routed::Kept,
            Some(target) => send(&self.inboxes[target as usize], item),
            None => send(&queues[0], item),
        }
    }

    /// Sends a ready item for a thread that can keep none.
    pub(super) fn route_all(&self, item: u64) {
        if self.route(item, None) == Routed::Sent {
            return;
        }
        // The tasks of a recording fill at most one kind of queue, and any worker of the pool may run the task.
        let pool = self.task_of(item).pool;
        let inboxes = self.workers_of_pool[pool as usize].iter().map(|worker| &self.inboxes[*worker as usize]);
        let is_sent = inboxes.chain(self.queues(pool)).any(|queue| queue.push(item).is_ok());
        assert!(is_sent, "all queues of ready tasks were full although each holds all tasks under way");
    }
}

/// Every queue can hold all tasks under way. Only a recording with more tasks can fill one.
fn send(queue: &Fifo<u64>, item: u64) -> Routed {
    if queue.push(item).is_ok() { Routed::Sent } else { Routed::Full }
}

/// Ends the task of a record; calls `ready` for each task that waited for nothing else.
#[inline(always)]
pub(super) fn resolve<B>(shared: &Shared<B>, slot: u32, outcome: u32, mut ready: impl FnMut(u64)) {
    if outcome != 0 {
        shared.fanout.spoil(slot, outcome);
    }
    for successor in shared.fanout.seal(slot) {
        if outcome != 0 && (successor.is_data || outcome == CANCELLED) {
            shared.fanout.spoil(successor.task, outcome);
        }
        if shared.fanout.release(successor.task) {
            ready(u64::from(successor.task));
        }
    }
}
