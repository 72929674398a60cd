//! The submitter: gives tasks numbers, finds what they wait for, retires them in order.
//!
//! Owned by one thread, together with worker 0, whose tasks it runs when it has to wait and may wait. Bounds: the window;
//! each refusal is typed and leaves nothing behind. [`Submitter::try_submit`] never waits and never runs a task;
//! [`Submitter::submit`] helps until there is room.
//!
//! # Why
//! One owner on this side: numbers, maps, links' places and retirement need no atomics of their own; only a list that a
//! running task may be sealing at this moment does. A task's number says its record (the low bits) and which of that
//! record's tasks it is; a record is free when the window has passed the task before.

use super::config::{Overflow, Pool, Start};
use super::exact::Exact;
use super::found::{Found, Live};
use super::overlap::{Overlap, Refused};
use super::region::Access;
use super::replay::Recorder;
use super::shared::{Failure, Shared};
use super::task::{Body, Task, TaskId};
use super::worker::Worker;
use crate::units::Ticks;
use pinwheel_edge::queue::fanout::{INLINE, Place};
use std::sync::Arc;

/// Positions reserved at once.
const BLOCK: u64 = 64;
/// Submissions after which ready tasks are offered to others, if there is a choice.
const OFFER_EVERY: u64 = 16;
/// Submissions after which a single one is offered too.
const OFFER_ALL_EVERY: u64 = 64;
/// Tasks run at once by a submitter that helps.
pub(super) const HELP_TASKS: u32 = 64;
/// Age at which a failure is forgotten, so that numbers that come round again do not find it.
pub(super) const FORGET: u32 = 1 << 29;

/// How dependencies are found, with what is remembered for it.
pub(super) enum Rules {
    Exact(Exact),
    Overlap(Overlap),
    Explicit,
}

/// Why a task was not submitted. Nothing of it is left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// No room now.
    #[error(
        "{what} full: found {in_use} of {limit} in use, expected room for one task more; come back, or raise {knob}"
    )]
    Full {
        /// What is full.
        what: &'static str,
        /// In use.
        in_use: u64,
        /// Limit.
        limit: u64,
        /// The field of the configuration that sets it.
        knob: &'static str,
    },
    /// More than the window holds, and it was asked to abort then.
    #[error("window overflow: found {tasks} tasks under way, expected less; raise window_tasks, or let it stall")]
    Overflow {
        /// Tasks under way.
        tasks: u64,
    },
    /// It can never have room: nothing but this submission could make some.
    #[error(
        "deadlock: task {oldest}, the oldest under way, waits on {waits_on}, which was promised and is not submitted, while the window is full; submit it first, or raise window_tasks"
    )]
    Deadlock {
        /// The oldest task.
        oldest: TaskId,
        /// What it waits on.
        waits_on: TaskId,
    },
    /// The graph takes no more tasks.
    #[error("graph closed: found a task, expected none after close or cancel; compile a new graph")]
    Closed,
    /// A region that is not within its tensor.
    #[error("region: found {access:?}, which is empty or leaves its tensor; expected one within")]
    Outside {
        /// The access.
        access: Access,
    },
    /// A task that could never run.
    #[error("pool {pool:?}: found no worker, expected at least one; add it to workers")]
    NoWorker {
        /// The pool.
        pool: Pool,
    },
    /// A predecessor that was never given out.
    #[error("dependency: found task {task}, which is no number given out so far; promise it first")]
    Unknown {
        /// The number.
        task: TaskId,
    },
    /// A dependency that comes back to the task itself.
    #[error("cycle: task {task} would wait on {predecessor}, which waits on it; remove one of the two dependencies")]
    Cycle {
        /// The task.
        task: TaskId,
        /// The predecessor.
        predecessor: TaskId,
    },
    /// A number that is not an open promise.
    #[error("promise: found task {task}, which is not promised or was submitted before; submit each promise once")]
    NotPromised {
        /// The number.
        task: TaskId,
    },
}

/// What became of the tasks submitted so far, as far as they are retired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Tasks retired.
    pub retired: u64,
    /// Of these, failed.
    pub failed: u64,
    /// Of these, skipped because one that failed made what they read.
    pub poisoned: u64,
    /// Of these, skipped because the graph was cancelled.
    pub cancelled: u64,
    /// Dependencies found, of tasks under way.
    pub edges: u64,
    /// Submissions that found no room at once.
    pub stalls: u64,
    /// Submissions admitted beyond the window.
    pub overflows: u64,
}

/// The submitter, and worker 0.
pub struct Submitter<B> {
    pub(super) worker: Worker<B>,
    pub(super) shared: Arc<Shared<B>>,
    pub(super) rules: Rules,
    pub(super) live: Live,
    pub(super) found: Found,
    /// The next number, and the first one that is not reserved.
    pub(super) next: u64,
    pub(super) reserved: u64,
    pub(super) retired: u64,
    /// A power of two, so that positions may wrap.
    pub(super) spill_links: u32,
    pub(super) spill_next: u32,
    pub(super) spill_retired: u32,
    /// Of each record: where the spill continued after its task's links.
    pub(super) spill_after: Box<[u32]>,
    pub(super) is_started: bool,
    pub(super) is_closed: bool,
    pub(super) promises: Vec<u64>,
    pub(super) summary: Summary,
    /// First task that retired after more had failed than are remembered.
    pub(super) forgotten_from: u64,
    pub(super) failures: Vec<Failure>,
    pub(super) recorder: Option<Recorder>,
    pub(super) progress: (u64, Ticks),
    /// For the search for cycles.
    pub(super) visits: Box<[u32]>,
    pub(super) visit: u32,
    pub(super) to_visit: Vec<u32>,
}

impl<B: Body> Submitter<B> {
    pub(super) fn new(worker: Worker<B>, rules: Rules) -> Submitter<B> {
        let shared = Arc::clone(&worker.shared);
        let records = shared.config.records();
        let failures = shared.config.failures as usize;
        Submitter {
            live: Live { now: 1, under_way: 0, failed: Vec::with_capacity(failures) },
            found: Found::new(records),
            next: 1,
            reserved: 1,
            retired: 1,
            spill_links: shared.config.spilled(),
            spill_next: 0,
            spill_retired: 0,
            spill_after: vec![0; records as usize].into_boxed_slice(),
            is_started: shared.config.start == Start::Immediate,
            is_closed: false,
            promises: Vec::with_capacity(shared.config.promises as usize),
            summary: Summary::default(),
            forgotten_from: u64::MAX,
            failures: Vec::with_capacity(failures),
            recorder: None,
            progress: (0, shared.clock.ticks()),
            visits: vec![0; records as usize].into_boxed_slice(),
            visit: 0,
            to_visit: Vec::with_capacity(records as usize),
            worker,
            shared,
            rules,
        }
    }

    /// Submits a task that depends on what its accesses say and on the tasks `after`; runs others while there is no room.
    ///
    /// # Errors
    /// Every [`SubmitError`] but `Full`.
    #[inline]
    pub fn submit(&mut self, task: &Task, accesses: &[Access], after: &[TaskId]) -> Result<TaskId, SubmitError> {
        loop {
            match self.try_submit(task, accesses, after) {
                Err(SubmitError::Full { .. }) => self.help()?,
                other => return other,
            }
        }
    }

    /// Runs tasks of worker 0 because there is no room.
    #[cold]
    #[inline(never)]
    fn help(&mut self) -> Result<(), SubmitError> {
        self.start();
        if self.worker.work(HELP_TASKS) == 0 {
            self.retire();
            if let Some((oldest, waits_on)) = self.blocked_by_promise() {
                return Err(SubmitError::Deadlock { oldest, waits_on });
            }
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Submits a task, if there is room. Never waits, never runs a task.
    ///
    /// # Errors
    /// Every [`SubmitError`] but `Deadlock`.
    #[inline]
    pub fn try_submit(&mut self, task: &Task, accesses: &[Access], after: &[TaskId]) -> Result<TaskId, SubmitError> {
        if self.is_closed {
            return Err(SubmitError::Closed);
        }
        if self.next == self.reserved {
            self.reserve()?;
        }
        if self.spill_links_used() + (self.next - self.retired) as u32 > self.spill_links {
            self.retire();
            if self.spill_links_used() + (self.next - self.retired) as u32 > self.spill_links {
                let (in_use, limit) = (self.spill_links_used().into(), self.spill_links.into());
                return Err(SubmitError::Full { what: "dependencies", in_use, limit, knob: "spill_links" });
            }
        }
        self.find(task, accesses, after)?;
        Ok(self.enter(task.words()))
    }

    /// Whether a task may be submitted now, as far as the window goes.
    pub fn has_room(&mut self) -> bool {
        self.next < self.reserved || self.reserve().is_ok()
    }

    /// Whether a task that was submitted has not ended.
    #[must_use]
    pub fn is_under_way(&self, task: TaskId) -> bool {
        task.0 >= self.retired && !self.shared.fanout.is_sealed(self.shared.slot(task.0))
    }

    /// Fills `found` for the task that gets the next number.
    #[inline(always)]
    fn find(&mut self, task: &Task, accesses: &[Access], after: &[TaskId]) -> Result<(), SubmitError> {
        if !self.shared.serves(task.pool) {
            return Err(SubmitError::NoWorker { pool: task.pool });
        }
        self.live.now = self.next as u32;
        self.live.under_way = match &self.recorder {
            None => (self.next - self.retired) as u32,
            Some(recorder) => (self.next - recorder.first.min(self.retired)) as u32,
        };
        self.found.clear();
        if !after.is_empty() {
            self.find_named(after)?;
        }
        let full = |in_use: u32, limit: u32| SubmitError::Full {
            what: "dependency map",
            in_use: in_use.into(),
            limit: limit.into(),
            knob: "map_entries",
        };
        match &mut self.rules {
            Rules::Explicit => {}
            Rules::Overlap(map) => match map.infer(accesses, &self.live, &mut self.found) {
                Ok(()) => {}
                Err(Refused::Outside(access)) => return Err(SubmitError::Outside { access: *access }),
                Err(Refused::Full) => {
                    let error = full(map.in_use(), map.pieces());
                    self.retire();
                    return Err(error);
                }
            },
            Rules::Exact(map) => {
                if !map.has_room(accesses) {
                    let error = full(map.in_use(), map.entries());
                    self.retire();
                    return Err(error);
                }
                map.infer(accesses, &self.live, &mut self.found);
            }
        }
        Ok(())
    }

    /// Adds predecessors by name. A promise is one as soon as it is given out.
    pub(super) fn find_named(&mut self, after: &[TaskId]) -> Result<(), SubmitError> {
        for task in after {
            if task.0 == 0 || task.0 >= self.next {
                return Err(SubmitError::Unknown { task: *task });
            }
            let age = self.next - task.0;
            if age <= u64::from(self.live.under_way) {
                self.found.add(task.0 as u32, true);
            } else if age < u64::from(FORGET) {
                let outcome = self.live.outcome(task.0 as u32);
                self.found.spoilt = if outcome == 0 { self.found.spoilt } else { outcome };
            }
        }
        Ok(())
    }

    /// Opens the next number's record and links it.
    #[inline(always)]
    fn enter(&mut self, words: [u64; 4]) -> TaskId {
        let task = self.next;
        let slot = self.shared.slot(task);
        let count = self.found.list().len() as u32;
        self.shared.fanout.open(slot, self.shared.generation(task), count, &words);
        if let Some(recorder) = &mut self.recorder {
            recorder.add(words, self.found.list());
        }
        if self.found.spoilt != 0 {
            self.shared.fanout.spoil(slot, self.found.spoilt);
        }
        self.next += 1;
        let refused = self.link(slot);
        self.spill_after[slot as usize] = self.spill_next;
        if refused > 0 && self.found.spoilt != 0 {
            // Still held up by those that were refused, so nobody runs it yet.
            self.shared.fanout.spoil(slot, self.found.spoilt);
        }
        if refused == count {
            self.shared.fanout.waits_for_none(slot);
            self.ready(slot);
        } else if refused > 0 && self.shared.fanout.release_refused(slot, refused) {
            self.ready(slot);
        }
        if task.is_multiple_of(OFFER_EVERY) || !self.is_started {
            self.offer(task);
        }
        TaskId(task)
    }

    /// Links the record to what was found; says how many of these had ended.
    #[inline(always)]
    pub(super) fn link(&mut self, slot: u32) -> u32 {
        let (mut refused, mut linked) = (0, 0);
        let under_way = (self.next - 1 - self.retired) as u32;
        let now = self.live.now;
        for at in 0..self.found.list().len() {
            let one = self.found.list()[at];
            let predecessor = self.shared.slot(one.task.into());
            let place = match linked {
                0..INLINE => Place::Inline(linked),
                _ => Place::Spill(self.spill_next & (self.spill_links - 1)),
            };
            let is_under_way = now.wrapping_sub(one.task) <= under_way;
            if is_under_way && self.shared.fanout.link(predecessor, slot, place, one.is_data) {
                linked += 1;
                self.spill_next = self.spill_next.wrapping_add(u32::from(linked > INLINE));
            } else {
                refused += 1;
                if is_under_way && one.is_data {
                    let outcome = self.shared.fanout.outcome(predecessor);
                    self.found.spoilt = if outcome == 0 { self.found.spoilt } else { outcome };
                }
            }
        }
        self.summary.edges += u64::from(linked);
        refused
    }

    #[inline(always)]
    pub(super) fn ready(&mut self, slot: u32) {
        if !self.is_started || !self.shared.route(slot.into(), Some(0)) {
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

    /// Lets others have what is ready. For a submitter that stops submitting for now, at the end of its turn.
    pub fn flush(&mut self) {
        if self.is_started {
            self.worker.offer_all();
        }
    }

    /// Lets tasks run from here on, whatever the start policy.
    pub fn start(&mut self) {
        if self.is_started {
            return;
        }
        self.is_started = true;
        // What worker 0 does not keep for itself goes where others find it: it may be of another pool.
        for _ in 0..self.worker.local.len() {
            let Some(item) = self.worker.local.pop_front() else { break };
            if !self.shared.route(item, Some(0)) {
                self.worker.local.push_back(item);
            }
        }
        self.worker.offer();
    }

    pub(super) fn spill_links_used(&self) -> u32 {
        self.spill_next.wrapping_sub(self.spill_retired)
    }

    /// Reserves the next numbers.
    #[inline(never)]
    pub(super) fn reserve(&mut self) -> Result<(), SubmitError> {
        self.retire();
        let block = BLOCK.min((self.shared.window.capacity() / 4).max(1));
        let Some(range) = self.shared.window.reserve(block) else {
            self.summary.stalls += 1;
            let tasks = self.next - self.retired;
            if self.shared.config.overflow == Overflow::Abort {
                return Err(SubmitError::Overflow { tasks });
            }
            self.start();
            let limit = self.shared.window.capacity();
            return Err(SubmitError::Full { what: "window", in_use: tasks, limit, knob: "window_tasks" });
        };
        if self.shared.config.overflow == Overflow::Benchmark {
            let beyond = range.end.saturating_sub(self.retired + u64::from(self.shared.config.window_tasks));
            self.summary.overflows += beyond.min(block);
        }
        self.reserved = range.end;
        for task in range {
            self.shared.fanout.prefetch(self.shared.slot(task));
        }
        if let Rules::Overlap(map) = &mut self.rules {
            map.sweep_some(&self.live);
        }
        Ok(())
    }
}
