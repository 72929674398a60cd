//! The submitter: numbers tasks, finds their dependencies, retires them in order.
//!
//! Owned by one thread, together with worker 0, whose tasks it runs while it waits. Bounded by the
//! window. Each refusal is typed and leaves no trace. [`Submitter::try_submit`] never waits and
//! never runs a task; [`Submitter::submit`] runs tasks until there is room.
//!
//! # Why
//! With one owner, numbers, maps, link positions and retirement need no atomics. Only the list of a
//! running task does, because that task may seal it at any moment. The low bits of a task's number
//! are its record, the others the record's generation. A record is free once the window has passed
//! its previous task.

use super::config::{Overflow, Pool, Start};
use super::exact::Exact;
use super::overlap::{InferError, Overlap};
use super::predecessors::{FAILURE_AGE_MAX, Predecessors, WindowState};
use super::region::Access;
use super::replay::Recorder;
use super::shared::{Failure, Shared};
use super::task::{Body, Task, TaskId};
use super::worker::Worker;
use pinwheel_edge::queue::fanout::{INLINE, LinkSlot, PAYLOAD};
use std::sync::Arc;

/// Window positions reserved at once.
const BLOCK: u64 = 64;
/// Submissions after which ready tasks are offered to other workers, if there is more than one.
const OFFER_EVERY: u64 = 16;
/// Submissions after which a single ready task is offered too.
const OFFER_ALL_EVERY: u64 = 64;
/// Tasks that a waiting submitter runs at once.
pub(super) const HELP_TASKS: u32 = 64;

/// How dependencies are found, with the state that this needs.
#[repr(u8)]
pub(super) enum DependencyMap {
    Exact(Exact),
    Overlap(Overlap),
    Explicit,
}

/// Why a task was not submitted. A refusal changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum SubmitError {
    #[error(
        "{what} full: found {in_use} of {limit} in use, expected room for one task more; come back, or raise {knob}"
    )]
    Full { what: &'static str, in_use: u64, limit: u64, knob: &'static str },
    #[error("window full: {tasks} tasks are under way; raise window_tasks, or set overflow to Stall")]
    Overflow { tasks: u64 },
    #[error("the graph is closed and accepts no task; compile a new graph")]
    Closed,
    #[error("region: found {access:?}, which is empty or leaves its tensor; expected one within")]
    Outside { access: Access },
    #[error("pool {pool:?}: found no worker, expected at least one; add it to workers")]
    NoWorker { pool: Pool },
    #[error("dependency on task {task}, which does not exist; submit it first")]
    Unknown { task: TaskId },
}

/// Counts of the tasks that are retired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Tasks retired.
    pub retired: u64,
    /// Of these, failed.
    pub failed: u64,
    /// Of these, skipped because a predecessor failed.
    pub poisoned: u64,
    /// Of these, skipped because the graph was cancelled.
    pub cancelled: u64,
    /// Dependencies on tasks that were under way.
    pub edges: u64,
    /// Submissions that found the window full at first; one that is repeated until there is room counts once.
    pub stalls: u64,
    /// Submissions admitted beyond the window.
    pub overflows: u64,
}

/// The submitter, and worker 0.
pub struct Submitter<B> {
    pub(super) worker: Worker<B>,
    pub(super) shared: Arc<Shared<B>>,
    pub(super) dependencies: DependencyMap,
    pub(super) window_state: WindowState,
    pub(super) predecessors: Predecessors,
    /// The next task number, and the first one that is not reserved yet.
    pub(super) next: u64,
    pub(super) reserved: u64,
    pub(super) retired: u64,
    /// The first task that can be found as a predecessor: not retired, or of the recording.
    pub(super) found_from: u64,
    /// A power of two, so that positions may wrap.
    pub(super) spill_links: u32,
    pub(super) spill_next: u32,
    pub(super) spill_retired: u32,
    /// For each record, the spill position after its task's links; of tasks from `spill_from` on.
    pub(super) spill_after: Box<[u32]>,
    /// The first task that was submitted while spilled links were in use.
    pub(super) spill_from: u64,
    pub(super) is_started: bool,
    pub(super) is_closed: bool,
    pub(super) summary: Summary,
    /// The first task that retired after more tasks had failed than are remembered.
    pub(super) forgotten_from: u64,
    pub(super) failures: Vec<Failure>,
    pub(super) recorder: Option<Box<Recorder>>,
    /// The first task that is not yet compared with the window, to count overflows.
    pub(super) counted: u64,
    /// The submission before found the window full.
    is_stalled: bool,
}

impl<B: Body> Submitter<B> {
    pub(super) fn new(worker: Worker<B>, dependencies: DependencyMap) -> Submitter<B> {
        let shared = Arc::clone(&worker.shared);
        let records = shared.config.records();
        let failures = shared.config.failures as usize;
        Submitter {
            window_state: WindowState { now: 1, under_way: 0, failed: Vec::with_capacity(failures) },
            predecessors: Predecessors::new(records),
            next: 1,
            reserved: 1,
            retired: 1,
            found_from: 1,
            spill_links: shared.config.spilled(),
            spill_next: 0,
            spill_retired: 0,
            spill_from: u64::MAX,
            spill_after: vec![0; records as usize].into_boxed_slice(),
            is_started: shared.config.start == Start::Immediate,
            is_closed: false,
            summary: Summary::default(),
            forgotten_from: u64::MAX,
            failures: Vec::with_capacity(failures),
            recorder: None,
            counted: 1,
            is_stalled: false,
            worker,
            shared,
            dependencies,
        }
    }

    /// Submits a task that depends on its accesses and on the tasks `after`. Runs other tasks while
    /// there is no room.
    ///
    /// # Errors
    /// Every [`SubmitError`]; `Full` only if there is no room although no task is under way.
    #[inline]
    pub fn submit(&mut self, task: &Task, accesses: &[Access], after: &[TaskId]) -> Result<TaskId, SubmitError> {
        let mut attempts_idle = 0;
        loop {
            match self.try_submit(task, accesses, after) {
                Err(SubmitError::Full { .. }) if self.help(&mut attempts_idle) => {}
                other => return other,
            }
        }
    }

    /// Runs tasks of worker 0 because there is no room. Returns whether another attempt may find some:
    /// once no task is under way, only as many as the map needs to drop all its old entries.
    #[cold]
    #[inline(never)]
    fn help(&mut self, attempts_idle: &mut usize) -> bool {
        if self.poll_done() {
            *attempts_idle += 1;
            return *attempts_idle
                <= match &self.dependencies {
                    DependencyMap::Overlap(map) => map.attempts_of_a_sweep(),
                    DependencyMap::Exact(_) | DependencyMap::Explicit => 1,
                };
        }
        if self.worker.work(HELP_TASKS) == 0 {
            std::thread::yield_now();
        }
        true
    }

    /// Submits a task if there is room. Never waits, never runs a task.
    ///
    /// # Errors
    /// Every [`SubmitError`].
    #[inline]
    pub fn try_submit(&mut self, task: &Task, accesses: &[Access], after: &[TaskId]) -> Result<TaskId, SubmitError> {
        if self.is_closed {
            return Err(SubmitError::Closed);
        }
        if self.next == self.reserved {
            self.reserve()?;
        }
        if self.spill_next != self.spill_retired {
            self.reserve_links()?;
        }
        self.find(task, accesses, after)?;
        Ok(self.enter(task.words()))
    }

    /// Checks that spilled links are free for a task that depends on all others.
    #[cold]
    #[inline(never)]
    fn reserve_links(&mut self) -> Result<(), SubmitError> {
        let needed = |this: &Self| this.spill_links_used() + (this.next - this.retired) as u32;
        if needed(self) > self.spill_links {
            self.retire();
        }
        if needed(self) > self.spill_links {
            let (in_use, limit) = (self.spill_links_used().into(), self.spill_links.into());
            self.start();
            return Err(SubmitError::Full { what: "dependencies", in_use, limit, knob: "spill_links" });
        }
        Ok(())
    }

    /// Whether a submitted task has not ended yet.
    pub fn is_under_way(&self, task: TaskId) -> bool {
        task.0 >= self.retired && !self.shared.fanout.is_sealed(self.shared.slot(task.0))
    }

    /// Finds the predecessors of the task that gets the next number.
    #[inline(always)]
    fn find(&mut self, task: &Task, accesses: &[Access], after: &[TaskId]) -> Result<(), SubmitError> {
        if !self.shared.serves(task.pool) {
            return Err(SubmitError::NoWorker { pool: task.pool });
        }
        self.window_state.now = self.next as u32;
        self.window_state.under_way = (self.next - self.found_from) as u32;
        self.predecessors.clear();
        if !after.is_empty() {
            self.find_named(after)?;
        }
        match &mut self.dependencies {
            DependencyMap::Explicit => {}
            DependencyMap::Overlap(map) => match map.infer(accesses, &self.window_state, &mut self.predecessors) {
                Ok(()) => {}
                Err(InferError::Outside(access)) => return Err(SubmitError::Outside { access: *access }),
                Err(InferError::Full) => {
                    let (in_use, limit) = (map.in_use(), map.pieces());
                    return Err(self.map_is_full(in_use, limit));
                }
            },
            DependencyMap::Exact(map) => {
                if !map.has_room(accesses) {
                    let (in_use, limit) = (map.in_use(), map.entries());
                    return Err(self.map_is_full(in_use, limit));
                }
                map.infer(accesses, &self.window_state, &mut self.predecessors);
            }
        }
        Ok(())
    }

    /// The refusal of a task that has no room in the map. Only tasks that end make some.
    #[cold]
    fn map_is_full(&mut self, in_use: u32, limit: u32) -> SubmitError {
        self.retire();
        self.start();
        let (in_use, limit) = (in_use.into(), limit.into());
        SubmitError::Full { what: "dependency map", in_use, limit, knob: "map_entries" }
    }

    /// Adds predecessors that are named by number.
    fn find_named(&mut self, after: &[TaskId]) -> Result<(), SubmitError> {
        for task in after {
            if task.0 == 0 || task.0 >= self.next {
                return Err(SubmitError::Unknown { task: *task });
            }
            let age = self.next - task.0;
            if age <= u64::from(self.window_state.under_way) {
                self.predecessors.add(task.0 as u32, true);
            } else if age < u64::from(FAILURE_AGE_MAX) {
                let outcome = self.window_state.outcome(task.0 as u32);
                self.predecessors.failed_outcome =
                    if outcome == 0 { self.predecessors.failed_outcome } else { outcome };
            }
        }
        Ok(())
    }

    /// Opens the next number's record and links it.
    #[inline(always)]
    fn enter(&mut self, words: [u64; PAYLOAD]) -> TaskId {
        let task = self.next;
        let slot = self.shared.slot(task);
        let count = self.predecessors.list().len() as u32;
        self.shared.fanout.open(slot, self.shared.generation(task), count, &words);
        if let Some(recorder) = &mut self.recorder {
            recorder.add(words, self.predecessors.list());
        }
        if self.predecessors.failed_outcome != 0 {
            self.shared.fanout.spoil(slot, self.predecessors.failed_outcome);
        }
        self.next += 1;
        if count == 0 || self.link(slot, count) {
            self.ready(slot);
        }
        if self.spill_next != self.spill_retired {
            self.note_links(task);
        }
        if task.is_multiple_of(OFFER_EVERY) || !self.is_started {
            self.offer(task);
        }
        TaskId(task)
    }

    /// Remembers which spilled links are free once this task has retired.
    #[cold]
    #[inline(never)]
    pub(super) fn note_links(&mut self, task: u64) {
        self.spill_after[self.shared.slot(task) as usize] = self.spill_next;
        self.spill_from = self.spill_from.min(task);
    }

    /// Links the record to its predecessors; returns whether all of them have ended.
    #[inline(always)]
    fn link(&mut self, slot: u32, count: u32) -> bool {
        let mut refused = 0;
        let under_way = (self.next - 1 - self.retired) as u32;
        let now = self.window_state.now;
        let mut failed = self.predecessors.failed_outcome;
        for (index, one) in (0..).zip(self.predecessors.list()) {
            let predecessor = self.shared.slot(one.task.into());
            let is_under_way = now.wrapping_sub(one.task) <= under_way;
            if !is_under_way {
                // Of a recording; its record may be another task's.
                refused += 1;
                let outcome = if one.is_data { self.window_state.outcome(one.task) } else { 0 };
                failed = if outcome == 0 { failed } else { outcome };
                continue;
            }
            let link_slot = if index < INLINE {
                LinkSlot::Inline(index)
            } else {
                take_spilled(&mut self.spill_next, self.spill_links)
            };
            if !self.shared.fanout.link(predecessor, slot, link_slot, one.is_data) {
                refused += 1;
                if one.is_data {
                    let outcome = self.shared.fanout.outcome(predecessor);
                    failed = if outcome == 0 { failed } else { outcome };
                }
            }
        }
        self.summary.edges += u64::from(count - refused);
        if refused == 0 {
            return false;
        }
        if failed != 0 {
            // The refused links still count as pending, so no worker runs the task yet.
            self.shared.fanout.spoil(slot, failed);
        }
        if refused < count {
            return self.shared.fanout.release_refused(slot, refused);
        }
        self.shared.fanout.waits_for_none(slot);
        true
    }

    #[inline(always)]
    pub(super) fn ready(&mut self, slot: u32) {
        if self.is_started {
            self.worker.ready(slot.into());
        } else {
            self.worker.local.push_back(slot.into());
        }
    }

    #[cold]
    #[inline(never)]
    fn offer(&mut self, task: u64) {
        if let Start::Threshold(tasks) = self.shared.config.start
            && task >= u64::from(tasks)
        {
            self.start();
        }
        if !self.is_started {
            return;
        }
        if task.is_multiple_of(OFFER_ALL_EVERY) || self.worker.local.len() > 1 {
            self.worker.offer();
        }
    }

    /// Offers all ready tasks to other workers. For a submitter that stops submitting, at the end
    /// of its turn.
    pub fn flush(&mut self) {
        if self.is_started {
            self.worker.send_unsent();
            self.worker.offer_all();
        }
    }

    /// Lets tasks run from now on, whatever the start policy.
    pub fn start(&mut self) {
        if self.is_started {
            return;
        }
        self.is_started = true;
        // Worker 0 may be of another pool, so tasks that it does not keep go to the shared queues.
        for _ in 0..self.worker.local.len() {
            let Some(item) = self.worker.local.pop_front() else { break };
            self.worker.ready(item);
        }
        self.worker.offer();
    }

    pub(super) fn spill_links_used(&self) -> u32 {
        self.spill_next.wrapping_sub(self.spill_retired)
    }

    /// Reserves the next block of numbers.
    #[inline(never)]
    pub(super) fn reserve(&mut self) -> Result<(), SubmitError> {
        self.retire();
        let block = BLOCK.min((self.shared.window.capacity() / 4).max(1));
        let Some(range) = self.shared.window.reserve(block) else {
            let (tasks, is_refused) = (self.next - self.retired, self.shared.config.overflow == Overflow::Abort);
            self.summary.stalls += u64::from(is_refused || !self.is_stalled);
            self.start();
            if is_refused {
                return Err(SubmitError::Overflow { tasks });
            }
            self.is_stalled = true;
            let limit = self.shared.window.capacity();
            let is_slab = self.shared.config.overflow == Overflow::Benchmark;
            let knob = if is_slab { "slab_tasks" } else { "window_tasks" };
            return Err(SubmitError::Full { what: "window", in_use: tasks, limit, knob });
        };
        self.is_stalled = false;
        self.reserved = range.end;
        for task in range {
            self.shared.fanout.prefetch(self.shared.slot(task));
        }
        if let DependencyMap::Overlap(map) = &mut self.dependencies {
            map.sweep_some(&self.window_state);
        }
        Ok(())
    }
}

#[cold]
#[inline(never)]
fn take_spilled(next: &mut u32, links: u32) -> LinkSlot {
    let position = *next & (links - 1);
    *next = next.wrapping_add(1);
    LinkSlot::Spill(position)
}
