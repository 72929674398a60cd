//! Retirement: tasks leave the window in the order in which they were submitted.
//!
//! The submitter's own doing, when it needs room or asks for the end. Bounds: the tasks under way. What a failed task
//! poisons is remembered past its retirement; one failure more than can be remembered cancels the graph.

use super::shared::Failure;
use super::submit::{FORGET, HELP_TASKS, Rules, SubmitError, Submitter, Summary};
use super::task::{Body, Status, TaskId, status_of};
use std::sync::atomic::Ordering;

impl<B: Body> Submitter<B> {
    /// Retires the tasks that have ended, up to the first that has not.
    pub(super) fn retire(&mut self) {
        let before = self.retired;
        while self.retired < self.next {
            let slot = self.shared.slot(self.retired);
            if !self.shared.fanout.is_sealed(slot) {
                break;
            }
            let outcome = self.shared.fanout.outcome(slot);
            if outcome != 0 {
                self.note(outcome);
            }
            self.spill_retired = self.spill_after[slot as usize];
            self.retired += 1;
        }
        if self.retired > before {
            self.shared.window.retire_to(self.retired);
            self.summary.retired = self.retired - 1;
            self.live.now = self.next as u32;
            self.live.under_way = (self.next - self.retired) as u32;
            if let Some(recorder) = &self.recorder {
                self.live.under_way = (self.next - recorder.first.min(self.retired)) as u32;
            }
            if let Rules::Exact(map) = &mut self.rules
                && !map.retire(&self.live)
            {
                self.cancel();
            }
        }
    }

    /// Counts a task that was not done, and remembers whom it poisons.
    #[cold]
    fn note(&mut self, outcome: u32) {
        match status_of(self.retired, outcome) {
            Status::Failed => self.summary.failed += 1,
            Status::Cancelled => self.summary.cancelled += 1,
            _ => self.summary.poisoned += 1,
        }
        let failed = &mut self.live.failed;
        let is_old = |(task, _): &(u32, u32)| (self.retired as u32).wrapping_sub(*task) > FORGET;
        let old = failed.iter().take_while(|one| is_old(one)).count();
        failed.drain(..old);
        if failed.len() < failed.capacity() && self.forgotten_from == u64::MAX {
            failed.push((self.retired as u32, outcome));
        } else {
            // What it poisons can no longer be remembered, so nothing may run that could read it.
            self.forgotten_from = self.forgotten_from.min(self.retired);
            self.shared.cancelled.store(1, Ordering::Relaxed);
        }
    }

    /// Runs no body from here on: tasks that are submitted or wait are skipped.
    pub fn cancel(&mut self) {
        self.shared.cancelled.store(1, Ordering::Relaxed);
    }

    /// What became of a task, while it is remembered: under way, or among the last that retired.
    #[must_use]
    pub fn status(&self, task: TaskId) -> Status {
        if task.0 >= self.retired {
            let slot = self.shared.slot(task.0);
            let is_its = self.shared.fanout.generation(slot) == self.shared.generation(task.0);
            if task.0 >= self.next || !is_its || !self.shared.fanout.is_sealed(slot) {
                return Status::UnderWay;
            }
            return status_of(task.0, self.shared.fanout.outcome(slot));
        }
        if task.0 >= self.forgotten_from {
            return Status::Forgotten;
        }
        status_of(task.0, self.live.outcome(task.0 as u32))
    }

    /// Runs tasks of worker 0 until all that were submitted are retired.
    ///
    /// # Errors
    /// [`SubmitError::Deadlock`] if they wait on a promise.
    pub fn wait(&mut self) -> Result<Summary, SubmitError> {
        self.start();
        while !self.poll_done() {
            if self.worker.work(HELP_TASKS) > 0 {
                continue;
            }
            if let Some((oldest, waits_on)) = self.blocked_by_promise() {
                return Err(SubmitError::Deadlock { oldest, waits_on });
            }
            std::thread::yield_now();
        }
        Ok(self.summary)
    }

    /// Retires what can be; says whether that is all.
    pub fn poll_done(&mut self) -> bool {
        self.retire();
        self.retired == self.next
    }

    /// Runs tasks of worker 0, as [`Worker::work`](super::Worker::work): none before the graph has started.
    pub fn work(&mut self, tasks_max: u32) -> u32 {
        if self.is_started { self.worker.work(tasks_max) } else { 0 }
    }

    /// Takes no more tasks, and fails every promise that is still open: what waits on it can never run.
    pub fn close(&mut self) {
        if self.is_closed {
            return;
        }
        self.is_closed = true;
        self.start();
        while let Some(task) = self.promises.pop() {
            self.break_promise(task);
        }
        self.worker.offer();
    }

    /// Closes the graph and waits for its end.
    pub fn finish(&mut self) -> Summary {
        self.close();
        loop {
            if let Ok(summary) = self.wait() {
                return summary;
            }
        }
    }

    /// What was counted so far.
    #[must_use]
    pub fn summary(&self) -> Summary {
        self.summary
    }

    /// Tasks that failed and why, as far as they are remembered, in no order.
    pub fn failures(&mut self) -> &[Failure] {
        while self.failures.len() < self.failures.capacity() {
            let Some(failure) = self.shared.failures.pop() else { break };
            self.failures.push(failure);
        }
        &self.failures
    }

    /// Worker 0.
    #[must_use]
    pub fn worker(&self) -> &super::Worker<B> {
        &self.worker
    }
}
