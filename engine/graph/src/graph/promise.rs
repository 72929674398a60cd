//! Numbers given out before their tasks: what other tasks may already wait on.
//!
//! The submitter's own doing. Bounds: [`Config::promises`](super::Config::promises) open ones. A dependency that comes
//! back to the task itself is refused before anything is changed.
//!
//! # Why
//! Only a promise can make a cycle, for every other task waits on older ones alone. What waits on an open promise cannot
//! end, so its lists cannot change under a search that starts there.

use super::shared::Failure;
use super::submit::{SubmitError, Submitter};
use super::task::{Body, Reason, Task, TaskId, outcome_of};

impl<B: Body> Submitter<B> {
    /// Gives out a number whose task comes later, by [`Submitter::submit_promised`].
    ///
    /// # Errors
    /// `Full`, `Overflow` and `Closed`.
    pub fn promise(&mut self) -> Result<TaskId, SubmitError> {
        if self.is_closed || self.recorder.is_some() {
            return Err(SubmitError::Closed);
        }
        if self.promises.len() == self.promises.capacity() {
            let open = self.promises.len() as u64;
            return Err(SubmitError::Full { what: "promises", in_use: open, limit: open, knob: "promises" });
        }
        if self.next == self.reserved {
            self.reserve()?;
        }
        let task = self.next;
        let slot = self.shared.slot(task);
        self.shared.fanout.open(slot, self.shared.generation(task), 1, &[0; 4]);
        self.spill_after[slot as usize] = self.spill_next;
        self.next += 1;
        self.promises.push(task);
        Ok(TaskId(task))
    }

    /// Submits the task of a promise; it depends on the tasks `after` and nothing else.
    ///
    /// # Errors
    /// `NotPromised`, `NoWorker`, `Unknown`, `Cycle` and `Full`; the promise stays open.
    pub fn submit_promised(&mut self, promise: TaskId, task: &Task, after: &[TaskId]) -> Result<(), SubmitError> {
        let Some(place) = self.promises.iter().position(|open| *open == promise.0) else {
            return Err(SubmitError::NotPromised { task: promise });
        };
        if !self.shared.serves(task.pool) {
            return Err(SubmitError::NoWorker { pool: task.pool });
        }
        if self.spill_links_used() + after.len() as u32 > self.spill_links {
            let (in_use, limit) = (self.spill_links_used().into(), self.spill_links.into());
            return Err(SubmitError::Full { what: "dependencies", in_use, limit, knob: "spill_links" });
        }
        self.live.now = self.next as u32;
        self.live.under_way = (self.next - self.retired) as u32;
        self.found.clear();
        self.find_named(after)?;
        let slot = self.shared.slot(promise.0);
        self.search(slot);
        let back = after.iter().find(|one| one.0 >= self.retired && self.is_visited(self.shared.slot(one.0)));
        if let Some(predecessor) = back {
            return Err(SubmitError::Cycle { task: promise, predecessor: *predecessor });
        }
        self.promises.swap_remove(place);
        self.shared.fanout.rewrite(slot, &task.words());
        self.shared.fanout.expect_more(slot, self.found.list().len() as u32);
        self.live.now = (self.next - 1) as u32;
        let refused = self.link(slot);
        if self.found.spoilt != 0 {
            self.shared.fanout.spoil(slot, self.found.spoilt);
        }
        if self.shared.fanout.release_refused(slot, refused + 1) {
            self.ready(slot);
        }
        Ok(())
    }

    /// Fails a promise that can no longer be kept.
    pub(super) fn break_promise(&mut self, task: u64) {
        if self.failures.len() < self.failures.capacity() {
            self.failures.push(Failure { task: TaskId(task), reason: Reason::NeverSubmitted });
        }
        let slot = self.shared.slot(task);
        self.shared.fanout.spoil(slot, outcome_of(task));
        if self.shared.fanout.release_refused(slot, 1) {
            self.ready(slot);
        }
    }

    /// Visits all that wait on the task of a record, which cannot end now, directly or not.
    fn search(&mut self, slot: u32) {
        self.visit = self.visit.wrapping_add(1);
        self.to_visit.clear();
        self.to_visit.push(slot);
        self.visits[slot as usize] = self.visit;
        while let Some(slot) = self.to_visit.pop() {
            for successor in self.shared.fanout.waiting(slot) {
                let visited = &mut self.visits[successor.task as usize];
                if *visited != self.visit {
                    *visited = self.visit;
                    self.to_visit.push(successor.task);
                }
            }
        }
    }

    fn is_visited(&self, slot: u32) -> bool {
        self.visits[slot as usize] == self.visit
    }

    /// The oldest task under way and the promise that it waits on, if that is why it cannot run: a proof that only this
    /// thread can break.
    #[must_use]
    pub fn blocked_by_promise(&mut self) -> Option<(TaskId, TaskId)> {
        let oldest = self.retired;
        for at in 0..self.promises.len() {
            let promise = self.promises[at];
            let slot = self.shared.slot(promise);
            self.search(slot);
            if promise == oldest {
                let after = (oldest + 1..self.next).find(|task| self.is_visited(self.shared.slot(*task)));
                return Some((TaskId(after.unwrap_or(promise)), TaskId(promise)));
            }
            if self.is_visited(self.shared.slot(oldest)) {
                return Some((TaskId(oldest), TaskId(promise)));
            }
        }
        None
    }
}
