//! Ends tasks that were launched on a device. The completion releases the tasks that wait for them.
//!
//! Owned by the thread that receives completions (poll). Each call ends one task. A second
//! completion, and one of an earlier task of the same record, is refused: a task's number contains
//! its record's generation.

use super::shared::{Failure, Shared, resolve};
use super::task::{Body, Reason, Task, TaskId, outcome_of};
use std::sync::Arc;

/// Why a completion was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum CompleteError {
    #[error("completion of task {task}: found it ended, expected it under way; drop the late answer")]
    Stale { task: TaskId },
    #[error("completion of task {task}: found it waiting for others, expected it launched; check who answered")]
    NotLaunched { task: TaskId },
}

/// Ends launched tasks.
pub struct Completer<B> {
    pub(super) shared: Arc<Shared<B>>,
}

impl<B> Shared<B> {
    /// The record and the gate of a launched task.
    pub(super) fn launched(&self, task: TaskId) -> Result<(u32, Option<usize>), CompleteError> {
        let slot = self.slot(task.0);
        if self.fanout.generation(slot) != self.generation(task.0) || self.fanout.is_sealed(slot) {
            return Err(CompleteError::Stale { task });
        }
        if self.fanout.pending(slot) > 1 {
            return Err(CompleteError::NotLaunched { task });
        }
        Ok((slot, self.gate_of(&Task::of_words(self.fanout.payload(slot)))))
    }
}

impl<B: Body> Completer<B> {
    /// Ends a task whose body returned `Launched`; `failed` is the device's error code.
    ///
    /// # Errors
    /// If the task has ended, or waits for several others. One that is ready and has not begun must not be
    /// ended: to tell it apart would cost each task a store.
    pub fn complete(&mut self, task: TaskId, failed: Option<u32>) -> Result<(), CompleteError> {
        let shared = &*self.shared;
        let (slot, gate) = shared.launched(task)?;
        let outcome = failed.map_or(0, |code| {
            // A failure that finds no room in the list is still in the task's outcome.
            let _ = shared.failures.push(Failure { task, reason: Reason::Failed(code) });
            outcome_of(task.0)
        });
        resolve(shared, slot, outcome, |item| shared.route_all(item));
        if let Some(item) = gate.and_then(|gate| shared.pass_on_permit(gate)) {
            shared.route_all(item);
        }
        Ok(())
    }
}
