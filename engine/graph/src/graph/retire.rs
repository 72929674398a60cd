//! Retirement: tasks leave the window in the order in which they were submitted.
//!
//! Done by the submitter when it needs room or waits for the end. Bounded by the tasks under way. A
//! failed task poisons its successors even after it retired; if more fail than can be remembered,
//! the graph is cancelled.

use super::config::Overflow;
use super::predecessors::FAILURE_AGE_MAX;
use super::shared::Failure;
use super::submit::{DependencyMap, HELP_TASKS, Submitter, Summary};
use super::task::{Body, Status, TaskId, status_of};
use std::sync::atomic::Ordering;

impl<B: Body> Submitter<B> {
    /// Retires ended tasks, up to the first that has not ended.
    pub(super) fn retire(&mut self) {
        self.count_overflows();
        let before = self.retired;
        while self.retired < self.next {
            let slot = self.shared.slot(self.retired);
            let Some(outcome) = self.shared.fanout.ended(slot) else { break };
            if outcome != 0 {
                self.note(outcome);
            }
            if self.retired >= self.spill_from {
                self.spill_retired = self.spill_after[slot as usize];
                self.spill_from = if self.spill_retired == self.spill_next { u64::MAX } else { self.spill_from };
            }
            self.retired += 1;
        }
        if self.retired > before {
            self.shared.window.retire_to(self.retired);
            self.summary.retired = self.retired - 1;
            self.retire_entries();
        }
    }

    /// Frees the entries of tasks that are found as predecessors no more.
    pub(super) fn retire_entries(&mut self) {
        self.window_state.now = self.next as u32;
        self.window_state.forget_old_failures();
        self.found_from = self.recorder.as_ref().map_or(self.retired, |recorder| recorder.first.min(self.retired));
        self.window_state.under_way = (self.next - self.found_from) as u32;
        if let DependencyMap::Exact(map) = &mut self.dependencies
            && !map.retire(&self.window_state)
        {
            self.cancel();
        }
    }

    /// Counts the tasks that were submitted beyond the window since the last retirement.
    fn count_overflows(&mut self) {
        if self.shared.config.overflow == Overflow::Benchmark {
            let within = self.retired + u64::from(self.shared.config.window_tasks);
            self.summary.overflows += self.next.saturating_sub(within.max(self.counted));
            self.counted = self.next;
        }
    }

    /// Counts a task that was not done, and remembers its failure for its successors.
    #[cold]
    fn note(&mut self, outcome: u32) {
        match status_of(self.retired, outcome) {
            Status::Failed => self.summary.failed += 1,
            Status::Cancelled => self.summary.cancelled += 1,
            _ => self.summary.poisoned += 1,
        }
        let failed = &mut self.window_state.failed;
        if failed.len() < failed.capacity() && self.forgotten_from == u64::MAX {
            failed.push((self.retired as u32, outcome));
        } else {
            // The failure can no longer reach its successors, so no task may run that could read
            // from it.
            self.forgotten_from = self.forgotten_from.min(self.retired);
            self.shared.cancelled.store(1, Ordering::Relaxed);
        }
    }

    /// Cancels the graph: tasks that are submitted or wait from now on are skipped.
    pub fn cancel(&mut self) {
        self.shared.cancelled.store(1, Ordering::Relaxed);
    }

    /// The status of a task, as long as it is remembered: while under way, or among the last
    /// retired.
    pub fn status(&self, task: TaskId) -> Status {
        if task.0 >= self.retired {
            let slot = self.shared.slot(task.0);
            let is_its = self.shared.fanout.generation(slot) == self.shared.generation(task.0);
            if task.0 >= self.next || !is_its || !self.shared.fanout.is_sealed(slot) {
                return Status::UnderWay;
            }
            return status_of(task.0, self.shared.fanout.outcome(slot));
        }
        if task.0 >= self.forgotten_from || self.next - task.0 > FAILURE_AGE_MAX.into() {
            return Status::Forgotten;
        }
        status_of(task.0, self.window_state.outcome(task.0 as u32))
    }

    /// Runs tasks of worker 0 until all submitted tasks are retired.
    pub fn wait(&mut self) -> Summary {
        self.start();
        while !self.poll_done() {
            if self.worker.work(HELP_TASKS) == 0 {
                std::thread::yield_now();
            }
        }
        self.summary
    }

    /// Retires ended tasks; returns whether all are retired.
    pub fn poll_done(&mut self) -> bool {
        self.retire();
        self.retired == self.next
    }

    /// Runs tasks of worker 0, as [`Worker::work`](super::Worker::work). Runs none before the graph
    /// has started.
    pub fn work(&mut self, tasks_max: u32) -> u32 {
        if self.is_started { self.worker.work(tasks_max) } else { 0 }
    }

    /// Accepts no more tasks.
    pub fn close(&mut self) {
        if self.is_closed {
            return;
        }
        self.is_closed = true;
        self.start();
        self.worker.offer();
    }

    /// Closes the graph and waits until all tasks are retired.
    pub fn finish(&mut self) -> Summary {
        self.close();
        self.wait()
    }

    /// The counts so far.
    pub fn summary(&self) -> Summary {
        self.summary
    }

    /// Failed tasks and their reasons, as far as they are remembered, in no order.
    pub fn failures(&mut self) -> &[Failure] {
        while self.failures.len() < self.failures.capacity() {
            let Some(failure) = self.shared.failures.pop() else { break };
            self.failures.push(failure);
        }
        &self.failures
    }

    /// Worker 0.
    pub fn worker(&self) -> &super::Worker<B> {
        &self.worker
    }
}
